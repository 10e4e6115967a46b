"""A file that appears under its name only when it is whole: written aside, made durable, then renamed."""

from __future__ import annotations

import contextlib
import errno
import glob
import os
import shutil
import stat
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from relaxdp.draw.private_file import sync_folder
from relaxdp.errors import RelaxdpError, TableFileError
from relaxdp.table.left_behind import left_behind, lock, sign, sweep, unfinished_name

_KEPT = ".relaxdp-released"
# How the opening of something that is not ours may fail: of a link, of what is gone, of what only others may read.
_NOT_OURS = {errno.ELOOP, errno.EMLINK, errno.ENOENT, errno.ENXIO, errno.EACCES}
_written: dict[tuple[int, int], Path] = {}
"""What this process writes now, by its number in the file system, and what for: its name may get to something else."""


@contextmanager
def aside(target: Path) -> Iterator[Path]:
    """Give a place beside `target` to write to; whatever is still there at the end is removed.

    A run that was killed leaves its unfinished file behind. The next one in that folder removes it, see `left_behind`.
    """
    refuse_existing(target)
    with _held(target, is_folder=False) as place:
        yield place


@contextmanager
def aside_folder(target: Path) -> Iterator[Path]:
    """Give a folder beside `target` to write to, like `aside`; other processes may write into it too."""
    refuse_existing(target)
    with passing_folder(target) as place:
        yield place


@contextmanager
def passing_folder(target: Path) -> Iterator[Path]:
    """Give a folder that never gets the name `target`, only names made from it: whatever has that name may keep it."""
    with _held(target, is_folder=True) as place:
        yield place


@contextmanager
def temporary_folder() -> Iterator[Path]:
    """Give a private folder among the temporary files, for what does not fit into memory or is on its way.

    Truths may be in it, so it is held and swept like what is written beside a target. Everybody may write beside it,
    and can stop nobody.
    """
    with ExitStack() as stack:
        try:
            if os.name == "posix":
                folder = stack.enter_context(passing_folder(Path(tempfile.gettempdir()) / "relaxdp-files"))
            else:  # pragma: no cover (a folder cannot be held there)
                folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="relaxdp-")))
        except OSError:
            raise TableFileError("the folder for temporary files cannot be written to. Nothing was done.") from None
        yield folder


@contextmanager
def _held(target: Path, *, is_folder: bool) -> Iterator[Path]:
    """Hold a file or folder beside `target`, and remove it at the end; not what somebody else put in its place."""
    descriptor, place = _locked(target, is_folder=is_folder)
    number = _number(os.fstat(descriptor))
    _written[number] = target
    try:
        yield place
    finally:
        _written.pop(number, None)
        is_there = _number_at(place) == number
        os.close(descriptor)
        if is_there:
            shutil.rmtree(place, ignore_errors=True) if is_folder else place.unlink(missing_ok=True)


def _locked(target: Path, *, is_folder: bool) -> tuple[int, Path]:
    """Make a file or folder beside `target` and lock it.

    Whoever sweeps at that very instant may find it before it is locked, and take it for left behind: then the next one
    is made.
    """
    sweep(target.parent)
    try:
        while True:
            place = unfinished_name(target)
            descriptor = _made(place, is_folder=is_folder)
            if descriptor is not None:
                return descriptor, place
    except OSError as problem:
        raise TableFileError(
            f"the folder of {str(target)!r} cannot be written to: {problem.strerror}. Nothing was released."
        ) from None


def _made(place: Path, *, is_folder: bool) -> int | None:
    """Make and lock a file or folder; None where somebody swept it away in between."""
    if is_folder:
        place.mkdir(0o700)
    try:
        descriptor = os.open(place, os.O_RDONLY if is_folder else os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileNotFoundError:
        if is_folder:
            return None
        raise
    # Where a file system knows no locks, nobody sweeps either.
    taken, is_held = lock(descriptor) is False, False
    try:
        if not taken and _number_at(place) == _number(os.fstat(descriptor)):
            if is_folder:
                sign(descriptor, place.name)
            is_held = True
    finally:
        if not is_held:
            os.close(descriptor)
    return descriptor if is_held else None


def put_in_place(place: Path, target: Path) -> None:
    """Rename a finished file or folder. The mode becomes that of any new one: reports are there to be read."""
    refuse_existing(target)
    umask = os.umask(0)
    os.umask(umask)
    if os.name == "posix":
        _set_modes(place, target, umask)
    else:
        for file in place.iterdir() if place.is_dir() else ():
            file.chmod(0o666 & ~umask)
        place.chmod((0o777 if place.is_dir() else 0o666) & ~umask)
    place.rename(target)
    sync_folder(target.parent)


def _set_modes(place: Path, target: Path, umask: int) -> None:
    """Set the modes of what was written for `target`; refuse anything else that has its name.

    Whoever may write to the folder can exchange what is in it: for a link, or for another file of ours, which nothing
    but its mode protects. So it must be what this process made, or be in it. What was kept by a run that was killed
    nobody holds any more: that must be a file of ours, with no second name.
    """
    with _opened(place.parent) as parent, _opened(place.name, parent) as descriptor:
        found = os.fstat(descriptor)
        is_folder = stat.S_ISDIR(found.st_mode)
        if target in list(_written.values()):
            is_same = target in (_written.get(_number(os.fstat(each))) for each in (descriptor, parent))
        else:
            is_same = _is_file_of(os.geteuid(), found)
        if not is_same:
            raise _exchanged(place.name)
        for name in os.listdir(descriptor) if is_folder else ():  # noqa: PTH208 (a path could lead elsewhere)
            with _opened(name, descriptor) as entry:
                if not _is_file_of(found.st_uid, os.fstat(entry)):
                    raise _exchanged(name)
                os.fchmod(entry, 0o666 & ~umask)
        os.fchmod(descriptor, (0o777 if is_folder else 0o666) & ~umask)


@contextmanager
def _opened(name: str | Path, folder: int | None = None) -> Iterator[int]:
    """Open a folder, or something in one that is open: there no link is followed, and nobody waits for a pipe."""
    kind = os.O_DIRECTORY if folder is None else os.O_NOFOLLOW | os.O_NONBLOCK
    try:
        descriptor = os.open(name, os.O_RDONLY | kind, dir_fd=folder)
    except OSError as problem:
        if folder is None or problem.errno not in _NOT_OURS:
            raise
        raise _exchanged(str(name)) from None
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _is_file_of(owner: int, found: os.stat_result) -> bool:
    return stat.S_ISREG(found.st_mode) and found.st_uid == owner and found.st_nlink <= 1


def _exchanged(name: str) -> TableFileError:
    return TableFileError(f"{name!r} was exchanged while it was written. Nothing was put in its place.")


def _number(found: os.stat_result) -> tuple[int, int]:
    return found.st_dev, found.st_ino


def _number_at(place: Path) -> tuple[int, int] | None:
    with contextlib.suppress(OSError):
        return _number(place.lstat())
    return None


def kept_aside(target: Path, digest: str) -> Path:
    """Return where a finished file that must not be made twice waits for its name."""
    return target.with_name(f".{target.name}.{digest[:16]}{_KEPT}")


def sweep_kept(target: Path, recorded: Callable[[], set[str]]) -> None:
    """Remove kept files that were never charged. Asked after the lock is held: their maker is gone then."""
    for left in target.parent.glob(f".{glob.escape(target.name)}.*{_KEPT}"):
        with contextlib.suppress(OSError, RelaxdpError), left_behind(left) as descriptor:
            if descriptor is not None and left not in {kept_aside(target, digest) for digest in recorded()}:
                left.unlink()


def refuse_existing(target: Path) -> None:
    """Refuse to write over a file, or over a link, even one to nothing: it says where somebody wants a file."""
    if os.path.lexists(target):
        raise TableFileError(f"{str(target)!r} exists already. Nothing was written.", path=str(target))
