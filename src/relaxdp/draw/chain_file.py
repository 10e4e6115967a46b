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
from typing import Any, Protocol

from relaxdp.draw.private_file import PrivateFileError, locked_folder, read_private, write_private
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
    seed: str | None = None
    """The object's public seed, where the encoding has one."""


class ChainStore(Protocol):
    """Where the last link of a chain is kept."""

    def locked(self) -> Any:
        """Hold the chain while a step is taken; a context manager."""

    def read(self) -> Link | None:
        """Return the last link, None before the first."""

    def write(self, link: Link) -> None:
        """Keep a link, durably."""


class MemoryStore:
    """Keeps the last link in memory: it is gone with the process, and then the chain must not go on."""

    def __init__(self) -> None:
        self._link: Link | None = None
        self._lock = Lock()
        self._process = os.getpid()

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the chain against other threads. In a forked copy it would be drawn from a second time."""
        if os.getpid() != self._process:
            raise ChainFileError("a chain in memory belongs to the process that began it.")
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
        # Resolved once: neither a link nor a later change of the working folder may lead to a second chain.
        self._path = Path(path).resolve()
        if self._path.is_dir():
            raise self._problem("is a folder")

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the chain against other processes and threads: two that drew at once would draw twice."""
        holder = locked_folder(self._path.parent)
        try:
            holder.__enter__()
        except PrivateFileError as problem:
            raise self._problem(str(problem)) from None
        try:
            yield
        finally:
            holder.__exit__(None, None, None)

    def read(self) -> Link | None:
        """Return the last link; None where there is no file yet."""
        try:
            content = read_private(self._path)
        except PrivateFileError as problem:
            raise self._problem(str(problem)) from None
        link = None if content is None else _parse(content)
        if content is not None and link is None:
            raise self._problem("is damaged or of another kind; a new chain would be charged in addition")
        return link

    def write(self, link: Link) -> None:
        """Replace the file by one step, and wait until it is on disk."""
        content = {name: value for name, value in asdict(link).items() if value is not None}
        whole = {"format": _FORMAT, **content, "check": _checksum(content)}
        try:
            write_private(self._path, json.dumps(whole).encode(), replace=True)
        except PrivateFileError as problem:
            raise self._problem(str(problem)) from None

    def _problem(self, what: str) -> ChainFileError:
        return ChainFileError("the chain file {path!r} {what}.", what=what, path=str(self._path))


def _parse(data: bytes) -> Link | None:
    """Return the link, or None for what is none: an exception's context would carry the file's content."""
    try:
        content = json.loads(data)
        check = content.pop("check")
        if content.pop("format") == _FORMAT and check == _checksum(content):
            return Link(**{**content, "symbols": tuple(content["symbols"]), "report": tuple(content["report"])})
    except (ValueError, TypeError, KeyError, AttributeError):
        pass
    return None


def _checksum(content: dict[str, Any]) -> str:
    """Return what tells an intact file from a damaged one; it is no protection against its owner."""
    return sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
