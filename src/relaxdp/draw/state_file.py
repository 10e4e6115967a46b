"""The state of Algorithm 1, in memory or in a private file that is on disk before reports are returned.

A state file is a line that names the format, a line of JSON, the raw bytes of the arrays, and a SHA-256 of all of it.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, fields
from hashlib import sha256
from pathlib import Path
from threading import Lock

import numpy as np
from numpy.typing import NDArray

from relaxdp.draw.private_file import PrivateFileError, locked_folder, read_private, write_private
from relaxdp.errors import ChainFileError

_FORMAT = b"relaxdp relaxation 1\n"
_ARRAYS = ("symbols", "reports", "seeds")
_DIGEST_BYTES = 32


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class State:
    """All that Algorithm 1 keeps. It tells the true values, so its `repr` shows nothing and its file is as secret."""

    mechanism: str
    params: str
    """The parameters of the mechanism, in hexadecimal."""
    values: str
    """A digest of the true values, in the form in which the mechanism takes them."""
    origin: str
    """A random text. A second state of the same values has another one."""
    symbols: NDArray[np.uint8]
    """One row of bytes per value: its report without noise, with the randomness that is drawn once."""
    reports: NDArray[np.uint8]
    seeds: NDArray[np.uint64] | None
    """The public word of each value, where the mechanism has one."""
    epsilon: str = "0"
    """The level of the last reports; 0 before the first ones."""
    threshold: str = "0"
    start_epsilon: str = "0"
    """The stated level of the reports that it started from; 0 where there were none."""
    start_reports: str = ""
    """A digest of these reports."""

    def to_bytes(self) -> bytes:
        """Return the content of the state file."""
        rows, width = self.symbols.shape
        texts = {field.name: getattr(self, field.name) for field in fields(self) if field.name not in _ARRAYS}
        header = {"rows": rows, "width": width, "seeded": self.seeds is not None, **texts}
        seeds = b"" if self.seeds is None else self.seeds.astype("<u8").tobytes()
        arrays = self.symbols.tobytes() + self.reports.tobytes() + seeds
        content = _FORMAT + json.dumps(header).encode() + b"\n" + arrays
        return content + sha256(content).digest()

    @classmethod
    def from_bytes(cls, content: bytes) -> State | None:
        """Return the state, or None for anything else: an exception's context would carry the content along."""
        body, check = memoryview(content)[:-_DIGEST_BYTES], content[-_DIGEST_BYTES:]
        if not content.startswith(_FORMAT) or sha256(body).digest() != check:
            return None
        try:
            end = content.index(b"\n", len(_FORMAT)) + 1
            header = json.loads(content[len(_FORMAT) : end])
            rows, width, is_seeded = (header.pop(name) for name in ("rows", "width", "seeded"))
            symbols, reports, seeds = np.split(np.frombuffer(body, np.uint8)[end:], [rows * width, 2 * rows * width])
            words = seeds.view("<u8").astype(np.uint64) if is_seeded else None
            if len(seeds) == 8 * rows * is_seeded:
                symbols, reports = symbols.reshape(rows, width), reports.reshape(rows, width)
                return cls(symbols=symbols, reports=reports, seeds=words, **header)
        except (ValueError, TypeError, KeyError, AttributeError):
            pass
        return None


class MemoryStore:
    """Keeps the state in memory, for the process that made it: it must not continue elsewhere."""

    def __init__(self) -> None:
        self._state: State | None = None
        self._lock = Lock()
        self._process = os.getpid()

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Exclude other threads. A forked process is rejected, because it would draw a level a second time."""
        if os.getpid() != self._process:
            raise self.problem("belongs to the process that created it", "Pass a file as state= to share it.")
        with self._lock:
            yield

    def read(self) -> State | None:
        """Return the last state, if there is one."""
        return self._state

    def write(self, state: State) -> None:
        """Keep a state."""
        self._state = state

    def problem(self, what: str, hint: str = "") -> ChainFileError:
        """Return an error about the state."""
        return ChainFileError("A relaxation in memory {what}.", what=what, hint=hint)


class FileStore:
    """Keeps the state in a file that only its owner can read."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        # Resolved once: neither a link nor a later change of the working folder may lead to a second state.
        self._path = Path(path).resolve()
        if self._path.is_dir():
            raise self.problem("is a folder", "Pass the name of a file.")

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Exclude other processes and threads: two that drew at the same time would draw a level twice."""
        with ExitStack() as stack:
            try:
                stack.enter_context(locked_folder(self._path.parent))
            except PrivateFileError as problem:
                raise self.problem(str(problem)) from None
            yield

    def read(self) -> State | None:
        """Return the last state; None where there is no file."""
        try:
            content = read_private(self._path, -1)  # the whole file, however large
        except PrivateFileError as problem:
            raise self.problem(str(problem)) from None
        state = None if content is None else State.from_bytes(content)
        if content is not None and state is None:
            raise self.problem(
                "is damaged, or is not a state file",
                "Use a new file only for another draw, whose epsilon is added to what was spent.",
            )
        return state

    def write(self, state: State) -> None:
        """Replace the file as a whole, and wait until it is on disk."""
        try:
            write_private(self._path, state.to_bytes(), replace=True)
        except PrivateFileError as problem:
            raise self.problem(str(problem)) from None

    def problem(self, what: str, hint: str = "") -> ChainFileError:
        """Return an error about the file."""
        return ChainFileError("The state file {path!r} {what}.", path=str(self._path), what=what, hint=hint)
