"""Files that appear under their name only when they are whole: written under another name, then renamed.

A process that is killed leaves unfinished files next to their targets, and temporary folders of sorts with
true values. The next release removes those that are abandoned: a free lock, the owner and a signature show it.
"""

from __future__ import annotations

import errno
import os
import platform
import re
import secrets
import shutil
import stat
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import cache
from hashlib import sha256
from pathlib import Path

from relaxdp.errors import TableFileError, replace_os_error
from relaxdp.sampling.private_file import sync_folder

_ENDING = ".relaxdp-unfinished"
_NAME = re.compile(rf"\..+\.[0-9a-f]{{12}}-(?P<machine>[0-9a-f]{{8}}){re.escape(_ENDING)}", re.DOTALL)
_DAY = 86_400
_MAKE_ROOM = "Free some space there, or choose a folder that you can write to."


def make_unfinished_path(target: Path) -> Path:
    """Return a new path next to `target` for the unfinished file."""
    return target.with_name(f".{target.name}.{secrets.token_hex(6)}-{_get_boot_id()}{_ENDING}")


def sign_unfinished_folder(folder_descriptor: int, name: str) -> None:
    """Sign an unfinished folder from within: others may give its name to another folder of ours, but not enter one."""
    descriptor = os.open(_ENDING, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600, dir_fd=folder_descriptor)
    with os.fdopen(descriptor, "wb") as file:
        file.write(name.encode())


def remove_abandoned_files(folder: Path) -> None:
    """Remove abandoned files from a folder and from the temporary files, where sorts spill true values."""
    found: list[Path] = []
    for list_folder in (folder.iterdir, lambda: Path(tempfile.gettempdir()).iterdir()):
        with suppress(OSError):
            found += [path for path in list_folder() if _NAME.fullmatch(path.name)]
    for path in dict.fromkeys(found):
        with suppress(OSError), open_abandoned(path) as descriptor:
            if descriptor is not None and _is_abandoned(path, descriptor):
                _remove_abandoned(path, descriptor)


@contextmanager
def open_abandoned(path: Path) -> Iterator[int | None]:
    """Open a file or folder that a process of this user left behind, and lock it; None if it is in use or foreign.

    Other users may write to the folder too. Under such a name they can create a pipe, which blocks when it is opened,
    or a link to another place. They can also rename a folder of this user, so only a private folder counts.
    """
    found, mine = path.lstat(), os.geteuid() if os.name == "posix" else None
    is_folder, is_private = stat.S_ISDIR(found.st_mode), not found.st_mode & (stat.S_IRWXG | stat.S_IRWXO)
    if found.st_uid != mine or not (is_private if is_folder else stat.S_ISREG(found.st_mode)):
        yield None
        return
    kind = os.O_RDONLY | os.O_DIRECTORY if is_folder else os.O_WRONLY
    descriptor = os.open(path, kind | os.O_NOFOLLOW | os.O_NONBLOCK)
    try:
        yield descriptor if os.path.samestat(os.fstat(descriptor), found) and try_lock(descriptor) else None
    finally:
        os.close(descriptor)


def try_lock(descriptor: int) -> bool | None:
    """Try to lock: return False where another process has the lock, None where there are no locks."""
    if os.name != "posix":  # pragma: no cover
        return None
    import fcntl  # noqa: PLC0415

    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return None
    return True


def _is_abandoned(path: Path, descriptor: int) -> bool:
    """Tell whether a free lock proves that the process is gone; on another machine its age has to."""
    found = _NAME.fullmatch(path.name)
    if found is not None and found["machine"] == _get_boot_id():
        return True
    times = [os.fstat(descriptor).st_mtime]
    if stat.S_ISDIR(os.fstat(descriptor).st_mode):
        for _, _, names, within in os.fwalk(dir_fd=descriptor, follow_symlinks=False):
            times += [os.stat(name, dir_fd=within, follow_symlinks=False).st_mtime for name in names]
    return max(times) < time.time() - _DAY


def _remove_abandoned(path: Path, descriptor: int) -> None:
    """Remove a file, or a folder with its content; a folder without our signature must be empty."""
    if not stat.S_ISDIR(os.fstat(descriptor).st_mode):
        path.unlink()
        return
    if _has_signature(descriptor, path.name):
        # Through the descriptor: whatever has the name by now, this is what was looked at. The signature goes last.
        for name in sorted(os.listdir(descriptor), key=_ENDING.__eq__):
            if stat.S_ISDIR(os.stat(name, dir_fd=descriptor, follow_symlinks=False).st_mode):
                shutil.rmtree(name, dir_fd=descriptor)
            else:
                os.unlink(name, dir_fd=descriptor)
    path.rmdir()


def _has_signature(folder_descriptor: int, name: str) -> bool:
    with suppress(OSError):
        descriptor = os.open(_ENDING, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=folder_descriptor)
        with os.fdopen(descriptor, "rb") as file:
            signed = file.read()
            # A process that was killed while signing had written nothing else.
            is_begun = not signed and os.listdir(folder_descriptor) == [_ENDING]
            return stat.S_ISREG(os.fstat(descriptor).st_mode) and (is_begun or signed == name.encode())
    return False


@cache
def _get_boot_id() -> str:
    """Return an id of this run of the system, which knows all locks. Containers on it share the id."""
    try:
        name = Path("/proc/sys/kernel/random/boot_id").read_bytes()
    except OSError:
        name = platform.node().encode()
    return sha256(name).hexdigest()[:8]


# How the opening of something that is not ours may fail: of a link, of what is gone, of what only others may read.
_NOT_OURS = {errno.ELOOP, errno.EMLINK, errno.ENOENT, errno.ENXIO, errno.EACCES}
_unfinished_targets: dict[tuple[int, int], Path] = {}
"""The targets of the files that this process writes now, by their identity: their names may get to other files."""


@contextmanager
def make_unfinished_file(target: Path) -> Iterator[Path]:
    """Give the path of a new file next to `target` to write to; it is removed at the end unless it was renamed.

    A killed process leaves its unfinished file behind. The next release into that folder removes it.
    """
    reject_existing(target)
    with _make_unfinished(target, is_folder=False) as path:
        yield path


@contextmanager
def make_temporary_folder() -> Iterator[Path]:
    """Give a private folder among the temporary files, for rows that do not fit into memory or are on their way.

    True values may be in it, so it is locked and removed like an unfinished file.
    """
    with ExitStack() as stack:
        try:
            if os.name == "posix":
                place = Path(tempfile.gettempdir()) / "relaxdp-files"
                folder = stack.enter_context(_make_unfinished(place, is_folder=True))
            else:  # pragma: no cover (a folder cannot be held there)
                folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="relaxdp-")))
        except OSError:
            raise TableFileError(
                "The folder for temporary files, {folder!r}, cannot be written to.",
                hint="Free some space there, or set the environment variable TMPDIR to a folder that you can write to.",
                folder=tempfile.gettempdir(),
            ) from None
        yield folder


@contextmanager
def _make_unfinished(target: Path, *, is_folder: bool) -> Iterator[Path]:
    """Make a locked file or folder next to `target`, and remove it at the end, unless it was exchanged.

    Another release may find it before it is locked, and remove it as abandoned: then the next one is made.
    """
    remove_abandoned_files(target.parent)
    path, descriptor = make_unfinished_path(target), None
    sentence = "The folder of the file {target!r} cannot be written to: {why}."
    try:
        with replace_os_error(TableFileError, sentence, hint=_MAKE_ROOM, target=str(target)):
            while (descriptor := _try_create_and_lock(path, is_folder=is_folder)) is None:
                path = make_unfinished_path(target)
        number, open_descriptors = _get_device_and_inode(os.fstat(descriptor)), [descriptor]
    except BaseException:  # Ctrl-C may come between any two steps
        _remove_empty(path)
        raise
    try:
        _unfinished_targets[number] = target
        yield path
    finally:
        try:
            _remove_unfinished(path, number, open_descriptors)
        except BaseException:  # Ctrl-C came while it was removed, and true values may be left
            _remove_unfinished(path, number, open_descriptors)
            raise


def _remove_unfinished(path: Path, number: tuple[int, int], open_descriptors: list[int]) -> None:
    """Remove what is still there of an unfinished file or folder; this may be called again after an interrupt."""
    _unfinished_targets.pop(number, None)
    is_there = _read_device_and_inode(path) == number
    while open_descriptors:
        os.close(open_descriptors.pop())
    if is_there:
        shutil.rmtree(path, ignore_errors=True) if path.is_dir() else path.unlink(missing_ok=True)


def _remove_empty(path: Path) -> None:
    """Remove a file or folder that was only just made: nothing but the signature of a folder is in it."""
    with suppress(OSError):
        if stat.S_ISDIR(path.lstat().st_mode):
            (path / _ENDING).unlink(missing_ok=True)
            path.rmdir()
        else:
            path.unlink()


def _try_create_and_lock(path: Path, *, is_folder: bool) -> int | None:
    """Make and lock a file or folder; None where another process removed it in between."""
    if is_folder:
        path.mkdir(0o700)
    try:
        descriptor = os.open(path, os.O_RDONLY if is_folder else os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileNotFoundError:
        if is_folder:
            return None
        raise
    # Where a file system has no locks, no process removes abandoned files either.
    taken, is_held = try_lock(descriptor) is False, False
    try:
        if not taken and _read_device_and_inode(path) == _get_device_and_inode(os.fstat(descriptor)):
            if is_folder:
                sign_unfinished_folder(descriptor, path.name)
            is_held = True
    finally:
        if not is_held:
            os.close(descriptor)
    return descriptor if is_held else None


def move_to_target(unfinished: Path, target: Path) -> None:
    """Move a finished file to its target. Its mode becomes that of any new one: reports are there to be read."""
    reject_existing(target)
    umask = os.umask(0)
    os.umask(umask)
    if os.name == "posix":
        # Others who may write to the folder can exchange the file, for a link or for another private file of ours.
        try:
            descriptor = os.open(unfinished, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        except OSError as problem:
            if problem.errno not in _NOT_OURS:
                raise
            raise _make_exchanged_error(unfinished.name) from None
        try:
            if _unfinished_targets.get(_get_device_and_inode(os.fstat(descriptor))) != target:
                raise _make_exchanged_error(unfinished.name)
            os.fchmod(descriptor, 0o666 & ~umask)
        finally:
            os.close(descriptor)
    else:  # pragma: no cover
        unfinished.chmod(0o666 & ~umask)
    unfinished.rename(target)
    with suppress(OSError):  # the file is there; a power failure may take its name away again
        sync_folder(target.parent)


def _make_exchanged_error(name: str) -> TableFileError:
    return TableFileError(
        "Another process replaced the unfinished file {name!r} while it was written.",
        hint="Write to a folder that only you can write to, and run the same call again. It charges nothing twice.",
        name=name,
    )


def _get_device_and_inode(stat_result: os.stat_result) -> tuple[int, int]:
    return stat_result.st_dev, stat_result.st_ino


def _read_device_and_inode(path: Path) -> tuple[int, int] | None:
    with suppress(OSError):
        return _get_device_and_inode(path.lstat())
    return None


def reject_existing(target: Path) -> None:
    """Reject a target that exists, even as a broken link."""
    if os.path.lexists(target):
        raise TableFileError(
            "The file {path!r} already exists.",
            hint="Choose another file name, or move the existing file away.",
            path=str(target),
        )
