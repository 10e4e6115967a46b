"""The state of a device in its file: read and changed under a lock, and never taken back to what it was."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from pathlib import Path

from relaxdp.collector.device_state import State
from relaxdp.collector.device_store import DeviceStore
from relaxdp.errors import BudgetMissingError, DeviceFileError


class DeviceFile:
    """Reads, changes and writes a device's state. The lock is never held while a server is asked."""

    def __init__(self, store: DeviceStore) -> None:
        self._store = store
        self._seen = 0

    @property
    def path(self) -> Path:
        """Where the file is."""
        return self._store.path

    def begin(self, limit: Decimal | None) -> State:
        """Return the state; where there is no file yet, that of a new device, for which a limit is needed."""
        with self._store.locked():
            self._store.sweep()
            content = self._store.read()
            if content is not None:
                return self._checked(content)
            if limit is None:
                raise BudgetMissingError(
                    "a new device needs a limit, the most that all its campaigns together may cost, before "
                    "its first answer: Device.open(path, limit=...)."
                )
            return self._write(State(limit))

    def state(self) -> State:
        """Return the state as it is now."""
        with self._store.locked():
            return self._checked(self._store.read())

    def change(self, change: Callable[[State], State]) -> State:
        """Return the state after a change, which is on disk. One that returns what it was given writes nothing."""
        with self._store.locked():
            state = self._checked(self._store.read())
            changed = change(state)
            return state if changed is state else self._write(changed)

    def _checked(self, content: bytes | None) -> State:
        if content is None:
            raise DeviceFileError(
                "the device file {path!r} is gone: what it had spent would be forgotten.", path=str(self.path)
            )
        state = State.loads(content)
        if state is None:
            raise DeviceFileError("the device file {path!r} is damaged or of another kind.", path=str(self.path))
        if state.revision < self._seen:
            raise DeviceFileError(
                "the device file {path!r} went back to an earlier state: what was spent since is forgotten.",
                path=str(self.path),
            )
        self._seen = state.revision
        return state

    def _write(self, state: State) -> State:
        if state.spent > state.limit:  # a second lock behind the rules: what is not written is not sent
            raise DeviceFileError("the device file {path!r} would hold more than its limit.", path=str(self.path))
        self._store.write(state.dumps())
        self._seen = state.revision
        return state
