"""What Algorithm 1 must remember: the last report, kept in a file and made durable before the report leaves."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from hashlib import sha256
from pathlib import Path
from threading import Lock
from typing import Any

from relaxdp.errors import ChainFileError

_FORMAT = "relaxdp chain 1"


@dataclass(frozen=True, slots=True, repr=False)
class Link:
    """The state of a chain. It holds the truth, so its `repr` shows nothing and its file is as secret as a key."""

    encoding: str
    params: str
    truth: str
    symbols: tuple[int, ...]
    epsilon: str
    threshold: str
    report: tuple[int, ...]


class MemoryStore:
    """Keeps the last link in memory: it is gone with the process, and then the chain must not go on."""

    def __init__(self) -> None:
        self._link: Link | None = None
        self._lock = Lock()

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the chain against other threads while a step is taken."""
        with self._lock:
            yield

    def read(self) -> Link | None:
        """Return the last link, if there is one."""
        return self._link

    def write(self, link: Link) -> None:
        """Keep a link."""
        self._link = link


class FileStore:
    """Keeps the last link in a file that only its owner can read."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._path = Path(path)

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the chain against other processes: two that drew at once would draw twice."""
        lock = self._path.with_name(self._path.name + ".lock")
        try:
            descriptor = os.open(lock, os.O_RDWR | os.O_CREAT, 0o600)
        except OSError as problem:
            raise self._problem(f"cannot be used: {problem.strerror}") from None
        try:
            _lock(descriptor)
            yield
        finally:
            os.close(descriptor)  # which also unlocks

    def read(self) -> Link | None:
        """Return the last link; None where there is no file yet."""
        try:
            content = json.loads(self._path.read_text("utf-8"))
            check = content.pop("check")
            if content.pop("format") == _FORMAT and check == _checksum(content):
                return Link(**{**content, "symbols": tuple(content["symbols"]), "report": tuple(content["report"])})
        except FileNotFoundError:
            return None
        except OSError as problem:
            raise self._problem(f"cannot be read: {problem.strerror}") from None
        except (ValueError, TypeError, KeyError, AttributeError):
            pass
        raise self._problem("is damaged or of another kind; a new chain would be charged in addition")

    def write(self, link: Link) -> None:
        """Replace the file by one step that either happens wholly or not at all, and wait until it is on disk."""
        temporary = self._path.with_name(self._path.name + ".new")
        try:
            descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
            with os.fdopen(descriptor, "w", encoding="utf-8") as file:
                json.dump({"format": _FORMAT, **asdict(link), "check": _checksum(asdict(link))}, file)
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(self._path)
            _sync_folder(self._path.parent)
        except OSError as problem:
            raise self._problem(f"cannot be written: {problem.strerror}. Nothing was released") from None

    def _problem(self, what: str) -> ChainFileError:
        return ChainFileError(f"the chain file {str(self._path)!r} {what}.", path=str(self._path))


def _checksum(content: dict[str, Any]) -> str:
    """Return what tells an intact file from a damaged one; it is no protection against its owner."""
    return sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def _sync_folder(folder: Path) -> None:
    if os.name == "posix":  # elsewhere a folder cannot be opened, and the rename is journalled
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _lock(descriptor: int) -> None:
    if os.name == "posix":
        import fcntl  # noqa: PLC0415

        fcntl.flock(descriptor, fcntl.LOCK_EX)
    else:  # pragma: no cover
        import msvcrt  # noqa: PLC0415

        msvcrt.locking(descriptor, msvcrt.LK_LOCK, 1)  # type: ignore[attr-defined]
