"""Private files, such as keys: only their owner may read them, and they are written wholly or not at all.

By hand, because nothing that Python brings along promises all of that together.
"""

from __future__ import annotations

import os
import platform
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


class PrivateFileError(Exception):
    """Hold the reason why a private file cannot be used, as a predicate: the caller adds the subject.

    For a path that others may read, `hint` is the instruction to change its mode, with a place for the path.
    """

    def __init__(self, what: str, exposed: Path | None = None) -> None:
        super().__init__(what if exposed is None else f"{what}. Run: chmod 600 {exposed}")
        self.what, self.hint = what, "" if exposed is None else "Run: chmod 600 {path!r}"


def read_private_file(path: Path, max_bytes: int = 1 << 20) -> bytes | None:
    """Return the content of a file, or None if it is missing. Reject one that others may read or that has two names."""
    try:
        with path.open("rb") as file:
            status = os.fstat(file.fileno())
            content = file.read(max_bytes)
    except FileNotFoundError:
        return None
    except OSError as problem:
        raise PrivateFileError(f"cannot be read: {problem.strerror}") from None
    if os.name == "posix" and status.st_mode & (stat.S_IRWXG | stat.S_IRWXO):
        mode = stat.S_IMODE(status.st_mode)
        raise PrivateFileError(f"can be read by others (mode {mode:04o})", path)
    if status.st_nlink > 1:
        raise PrivateFileError("has a second name (a hard link), under which it could be changed")
    return content


def write_private_file(path: Path, content: bytes, *, replace: bool) -> None:
    """Write a file of mode 0600 and wait until it is on disk; one that is replaced is replaced wholly or not at all.

    Without `replace`, a file that exists stays as it is and `FileExistsError` is raised.
    """
    try:
        if replace:
            # A new name that nobody can have prepared: no link is followed, no mode is inherited.
            descriptor, written = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
        else:
            descriptor, written = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), str(path)
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            if replace:
                Path(written).replace(path)
        except BaseException:
            with suppress(OSError):
                Path(written).unlink()
            raise
        sync_folder(path.parent)
    except FileExistsError:
        raise
    except OSError as problem:
        raise PrivateFileError(f"cannot be written: {problem.strerror}") from None


def sync_folder(folder: Path) -> None:
    """Wait until a folder's entries are on disk."""
    if os.name == "posix":  # elsewhere a folder cannot be opened, and a rename is journalled
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


@contextmanager
def lock_folder(folder: Path) -> Iterator[None]:
    """Hold a folder against other processes. A separate lock file could be deleted or reached by two names."""
    if os.name != "posix":  # pragma: no cover
        raise PrivateFileError("cannot be locked: this needs a POSIX system")
    import fcntl  # noqa: PLC0415

    try:
        descriptor = os.open(folder, os.O_RDONLY)
    except OSError as problem:
        raise PrivateFileError(f"cannot be used: {problem.strerror}") from None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        # Unlocked before it is closed: a forked child that still has the descriptor must not keep the lock.
        fcntl.flock(descriptor, fcntl.LOCK_UN)
        os.close(descriptor)


def get_state_folder() -> Path:
    """Return the folder of this user's state; a `RuntimeError` where the user has no home."""
    given = Path(os.environ.get("XDG_STATE_HOME", ""))
    if given.is_absolute():
        return given / "relaxdp"
    system = platform.system()
    if system == "Windows":  # pragma: no cover
        return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local") / "relaxdp"
    return Path.home() / ("Library/Application Support" if system == "Darwin" else ".local/state") / "relaxdp"
