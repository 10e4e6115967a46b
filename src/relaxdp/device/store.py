"""Where a device keeps its state: a file of mode 0600. A report is durable there before it is sent."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path

from relaxdp.device.state import DeviceState
from relaxdp.sampling.private_file import PrivateFileError, lock_folder, read_private_file, write_private_file
from relaxdp.server_errors import BudgetMissingError, DeviceFileError

MOST_BYTES = 64 << 20
_LEFT_OVER = re.compile(r"[a-z0-9_]{8}", re.ASCII)


class DeviceStore:
    """One device's file. Whoever reads and then writes it holds the lock."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        # Resolved once: neither a link nor a later change of the working folder may lead to a second device.
        self.path = Path(path).resolve()
        if self.path.is_dir():
            raise DeviceFileError("the device file {path!r} is a folder.", path=str(self.path))

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Hold the device against other processes and threads."""
        holder = lock_folder(self.path.parent)
        try:
            holder.__enter__()
        except PrivateFileError as problem:
            raise DeviceFileError("the device file {path!r} {why}.", path=str(self.path), why=problem) from None
        try:
            yield
        finally:
            holder.__exit__(None, None, None)

    def read(self) -> bytes | None:
        """Return what was written last, None where there is no file yet."""
        try:
            return read_private_file(self.path, MOST_BYTES)
        except PrivateFileError as problem:
            raise DeviceFileError("the device file {path!r} {why}.", path=str(self.path), why=problem) from None

    def write(self, content: bytes) -> None:
        """Replace the file in one step, and wait until it is on disk."""
        try:
            write_private_file(self.path, content, replace=True)
        except PrivateFileError as problem:
            raise DeviceFileError("the device file {path!r} {why}.", path=str(self.path), why=problem) from None

    def sweep(self) -> None:
        """Remove what a killed writer left beside the file: it holds an answer. The lock must be held."""
        prefix = f".{self.path.name}."
        for left in self.path.parent.glob(f"{_literal(prefix)}*"):
            if _LEFT_OVER.fullmatch(left.name.removeprefix(prefix)):
                with contextlib.suppress(OSError):
                    left.unlink()


def _literal(text: str) -> str:
    return re.sub(r"([*?\[])", r"[\1]", text)


class DeviceFile:
    """Reads, changes and writes a device's state. The lock is never held while a server is asked."""

    def __init__(self, store: DeviceStore) -> None:
        self._store = store
        self._seen = 0

    @property
    def path(self) -> Path:
        """Where the file is."""
        return self._store.path

    def begin(self, limit: Decimal | None) -> DeviceState:
        """Return the state; where there is no file yet, that of a new device, for which a limit is needed."""
        with self._store.lock():
            self._store.sweep()
            content = self._store.read()
            if content is not None:
                return self._checked(content)
            if limit is None:
                raise BudgetMissingError(
                    "a new device needs a limit, the most that all its campaigns together may cost, before "
                    "its first answer: Device.open(path, limit=...)."
                )
            return self._write(DeviceState(limit))

    def state(self) -> DeviceState:
        """Return the state as it is now."""
        with self._store.lock():
            return self._checked(self._store.read())

    def change(self, change: Callable[[DeviceState], DeviceState]) -> DeviceState:
        """Return the state after a change, which is on disk. One that returns what it was given writes nothing."""
        with self._store.lock():
            state = self._checked(self._store.read())
            changed = change(state)
            return state if changed is state else self._write(changed)

    def _checked(self, content: bytes | None) -> DeviceState:
        if content is None:
            raise DeviceFileError(
                "the device file {path!r} is gone: what it had spent would be forgotten.", path=str(self.path)
            )
        state = DeviceState.loads(content)
        if state is None:
            raise DeviceFileError("the device file {path!r} is damaged or of another kind.", path=str(self.path))
        if state.revision < self._seen:
            raise DeviceFileError(
                "the device file {path!r} went back to an earlier state: what was spent since is forgotten.",
                path=str(self.path),
            )
        self._seen = state.revision
        return state

    def _write(self, state: DeviceState) -> DeviceState:
        if state.spent > state.limit:  # a second lock behind the rules: what is not written is not sent
            raise DeviceFileError("the device file {path!r} would hold more than its limit.", path=str(self.path))
        self._store.write(state.dumps())
        self._seen = state.revision
        return state
