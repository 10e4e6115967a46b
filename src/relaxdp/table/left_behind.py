"""What a process that was killed left behind: told from what is at work and from what is not ours, then removed.

Numbers of processes are given to others, and mean nothing on another machine. So whoever writes holds a lock, which
ends with the process. Where a folder is shared over a network, locks of another machine may not be seen: the name says
on which one it was made, and that of another one must also have been untouched for a day.
"""

from __future__ import annotations

import os
import platform
import re
import secrets
import shutil
import stat
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from hashlib import sha256
from pathlib import Path

_ENDING = ".relaxdp-unfinished"
_NAME = re.compile(rf"\..+\.[0-9a-f]{{12}}-(?P<machine>[0-9a-f]{{8}}){re.escape(_ENDING)}", re.DOTALL)
_DAY = 86_400


def unfinished_name(target: Path) -> Path:
    """Return a new name beside `target` for what is written for it."""
    return target.with_name(f".{target.name}.{secrets.token_hex(6)}-{_machine()}{_ENDING}")


def sign(folder: int, name: str) -> None:
    """Sign an unfinished folder from within: others may give its name to another folder of ours, but not enter one."""
    descriptor = os.open(_ENDING, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600, dir_fd=folder)
    with os.fdopen(descriptor, "wb") as file:
        file.write(name.encode())


def sweep(folder: Path) -> None:
    """Remove what was left unfinished in a folder, and among the temporary files, where sorts spill truths."""
    for each in {folder: None, _temporary_files(): None}:
        for left in _unfinished_in(each):
            with suppress(OSError), left_behind(left) as descriptor:
                if descriptor is not None and _is_over(left, descriptor):
                    _remove(left, descriptor)


@contextmanager
def left_behind(left: Path) -> Iterator[int | None]:
    """Open what a process of this user left behind, if that is gone; while it is looked at, nobody else has it.

    Others may write to the folder too. A pipe of theirs under such a name would block whoever opens it, a link would
    lead elsewhere, and a folder of ours that they gave such a name is no unfinished one, unless it is private.
    """
    found, mine = left.lstat(), os.geteuid() if os.name == "posix" else None
    is_folder, is_private = stat.S_ISDIR(found.st_mode), not found.st_mode & (stat.S_IRWXG | stat.S_IRWXO)
    if found.st_uid != mine or not (is_private if is_folder else stat.S_ISREG(found.st_mode)):
        yield None
        return
    kind = os.O_RDONLY | os.O_DIRECTORY if is_folder else os.O_WRONLY
    descriptor = os.open(left, kind | os.O_NOFOLLOW | os.O_NONBLOCK)
    try:
        yield descriptor if os.path.samestat(os.fstat(descriptor), found) and lock(descriptor) else None
    finally:
        os.close(descriptor)


def lock(descriptor: int) -> bool | None:
    """Lock, or say that somebody else has the lock; None where there are no locks."""
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


def _unfinished_in(folder: Path | None) -> list[Path]:
    with suppress(OSError):
        return [] if folder is None else [each for each in folder.iterdir() if _NAME.fullmatch(each.name)]
    return []


def _temporary_files() -> Path | None:
    with suppress(OSError):
        return Path(tempfile.gettempdir())
    return None


def _is_over(left: Path, descriptor: int) -> bool:
    """Tell whether a lock that nobody holds is all that there is to know, or time has to tell."""
    found = _NAME.fullmatch(left.name)
    if found is not None and found["machine"] == _machine():
        return True
    times = [os.fstat(descriptor).st_mtime]
    if stat.S_ISDIR(os.fstat(descriptor).st_mode):
        for _, _, names, within in os.fwalk(dir_fd=descriptor, follow_symlinks=False):
            times += [os.stat(name, dir_fd=within, follow_symlinks=False).st_mtime for name in names]
    return max(times) < time.time() - _DAY


def _remove(left: Path, descriptor: int) -> None:
    """Remove a file; of a folder what is in it, if it is signed, and then the folder, which must be empty."""
    if not stat.S_ISDIR(os.fstat(descriptor).st_mode):
        left.unlink()
        return
    if _is_signed(descriptor, left.name):
        # Through the descriptor: whatever has the name by now, this is what was looked at. The signature goes last.
        for name in sorted(os.listdir(descriptor), key=_ENDING.__eq__):
            if stat.S_ISDIR(os.stat(name, dir_fd=descriptor, follow_symlinks=False).st_mode):
                shutil.rmtree(name, dir_fd=descriptor)
            else:
                os.unlink(name, dir_fd=descriptor)
    left.rmdir()


def _is_signed(folder: int, name: str) -> bool:
    with suppress(OSError):
        descriptor = os.open(_ENDING, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=folder)
        with os.fdopen(descriptor, "rb") as file:
            return stat.S_ISREG(os.fstat(descriptor).st_mode) and file.read() == name.encode()
    return False


@cache
def _machine() -> str:
    """Name what knows all locks that are held here: this run of the system. Containers on it share it."""
    try:
        name = Path("/proc/sys/kernel/random/boot_id").read_bytes()
    except OSError:
        name = platform.node().encode()
    return sha256(name).hexdigest()[:8]
