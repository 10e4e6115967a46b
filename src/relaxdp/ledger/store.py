"""What a ledger needs from a store, and how the problems of a database become sentences."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import NamedTuple, Protocol

from relaxdp.errors import LedgerBusyError, LedgerError, LedgerUncertainError

Row = tuple[int, str, str]
"""An event as it is stored: its number, its JSON and its digest."""


class Rows(Protocol):
    """The events of one vault, within a transaction."""

    def read(self, start: int) -> list[Row]:
        """Return the events from a number on, in ascending order."""

    def add(self, number: int, content: str, digest: str) -> None:
        """Store the next event."""


class Store(Protocol):
    """Where events are stored. Every problem of the database is raised as a `LedgerError`."""

    @property
    def address(self) -> str:
        """Where the ledger is, without a password."""

    def begin_creation(self) -> AbstractContextManager[Rows]:
        """Create the ledger in one transaction; on an exception nothing of it remains."""

    def begin_read(self) -> AbstractContextManager[Rows]:
        """Show one consistent state."""

    def begin_write(self) -> AbstractContextManager[Rows]:
        """Hold the ledger against all other writers; on a normal exit everything is on disk, otherwise nothing."""


class Problem(NamedTuple):
    """A problem of a database: the error to raise, what is wrong with the ledger, and what to do."""

    kind: type[LedgerError]
    what: str
    hint: str

    def to_error(self, address: str, timeout: float) -> LedgerError:
        """Return the error. `{timeout}` in its words stands for the seconds that were waited."""
        what = self.what.format(timeout=timeout)
        error = self.kind("The ledger {path!r} {what}.", hint=self.hint, path=address, what=what)
        if isinstance(error, LedgerUncertainError):
            error.consequence = "Nothing is charged twice."  # No boundary may add that nothing happened.
        return error


LOCKED = Problem(
    LedgerBusyError,
    "is in use by another process, and did not become free within {timeout:g} seconds",
    "Run the command again when the other process has ended.",
)
UNCERTAIN = Problem(
    LedgerUncertainError,
    "failed while it was written, so the change may be recorded",
    "Look at the history of the vault, then run the command again.",
)
