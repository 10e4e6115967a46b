"""The ledger: a chain of events, verified when it is read, and durable before anything is released.

The digest of an event is HMAC-SHA256(K, digest of the event before || canonical JSON), in hexadecimal. K is derived
from the vault's key, and the vault's id takes the place of the digest before the first event. So an event can be
neither changed, removed, reordered nor made up without the key. Only the last events can be cut off: stamps and
released files show that.
"""

from __future__ import annotations

import hmac
import os
import re
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, Protocol

from relaxdp.errors import LedgerBusyError, LedgerError, LedgerUncertainError, MissingDependencyError
from relaxdp.ledger.account import Account
from relaxdp.ledger.events import Event, parse_event
from relaxdp.sampling.canonical_encoding import add_length_prefix
from relaxdp.sampling.keys import Key

StoredEvent = tuple[int, str, str]
"""An event as it is stored: its number, its JSON and its digest."""


class StoredEvents(Protocol):
    """The events of one vault, within a transaction."""

    def read_from(self, number: int) -> list[StoredEvent]:
        """Return the events from a number on, in ascending order."""

    def add(self, number: int, content: str, digest: str) -> None:
        """Store the next event."""


class EventStore(Protocol):
    """Where events are stored. Every problem of the database is raised as a `LedgerError`."""

    @property
    def address(self) -> str:
        """Where the ledger is, without a password."""

    def begin_creation(self) -> AbstractContextManager[StoredEvents]:
        """Create the ledger in one transaction; on an exception nothing of it remains."""

    def begin_read(self) -> AbstractContextManager[StoredEvents]:
        """Show one consistent state."""

    def begin_write(self) -> AbstractContextManager[StoredEvents]:
        """Hold the ledger against all other writers; on a normal exit everything is on disk, otherwise nothing."""


class StoreProblem(NamedTuple):
    """A problem of a database: the error to raise, what is wrong with the ledger, and what to do."""

    error_class: type[LedgerError]
    what: str
    hint: str

    def to_error(self, address: str, timeout: float) -> LedgerError:
        """Return the error. `{timeout}` in its words stands for the seconds that were waited."""
        what = self.what.format(timeout=timeout)
        error = self.error_class("The ledger {path!r} {what}.", hint=self.hint, path=address, what=what)
        if isinstance(error, LedgerUncertainError):
            error.consequence = "Nothing is charged twice."  # No boundary may add that nothing happened.
        return error


LOCKED = StoreProblem(
    LedgerBusyError,
    "is in use by another process, and did not become free within {timeout:g} seconds",
    "Run the command again when the other process has ended.",
)
UNCERTAIN = StoreProblem(
    LedgerUncertainError,
    "failed while it was written, so the change may be recorded",
    "Look at the history with `relaxdp budget history`, then run the command again.",
)

# Shown as a file name, these would show a password. The last one is libpq's other form of an address.
_LIKE_A_URL = re.compile(r"\w+(\+\w*)?:/|(postgres|postgresql)(\+\w*)?:|.*\bpassword\s*=", re.IGNORECASE | re.DOTALL)


def open_store(address: str | os.PathLike[str], vault_id: str) -> EventStore:
    """Return the store at a path or a postgresql:// URL. Nothing is opened or created yet."""
    from relaxdp.ledger.sqlite_store import SqliteStore  # noqa: PLC0415 (it imports this module)

    text = os.fspath(address)
    if not isinstance(address, str) or not _LIKE_A_URL.match(text):
        return SqliteStore(address)
    if text.partition("://")[0].lower() not in ("postgres", "postgresql"):
        raise LedgerError(
            "The ledger must be a SQLite file or a PostgreSQL database.",
            hint="Pass a path, or a URL such as postgresql://user@host/database.",
        )
    try:
        from relaxdp.ledger.postgres_store import PostgresStore  # noqa: PLC0415
    except ImportError:
        raise MissingDependencyError(
            "A ledger in PostgreSQL needs psycopg.", hint="Run: pip install 'relaxdp[postgres]'"
        ) from None
    return PostgresStore(text, vault_id)


@dataclass(frozen=True, slots=True)
class _VerifiedChain:
    """Events that were verified: what they add up to, and their digests."""

    account: Account
    digests: tuple[str, ...]


class Ledger:
    """The events of one vault. Every call opens one connection and closes it; threads and forks may share a ledger."""

    def __init__(self, store: EventStore, key: Key, vault_id: str) -> None:
        # The key itself is kept as well: it cannot be pickled, and so neither can a ledger.
        self._store, self._key, self._vault = store, key, vault_id
        self._secret = key.derive(add_length_prefix(b"ledger"))
        self._verified: _VerifiedChain | None = None

    @property
    def address(self) -> str:
        """The file, or the URL without its password."""
        return self._store.address

    def create(self, event: Event) -> Account:
        """Create the ledger with its first event, durably; reject a place that has events of this vault."""
        with self._store.begin_creation() as rows:
            if rows.read_from(1):
                raise LedgerError(
                    "The ledger {address!r} has events of this vault already.",
                    hint="Open the vault instead of creating it.",
                    address=self.address,
                )
            chain = self._store_event(rows, None, event)
        self._verified = chain
        return chain.account

    def read_account(self) -> Account:
        """Verify the whole chain, and return what it adds up to."""
        return self._read_chain()[0].account

    def read_events(self) -> list[Event]:
        """Verify the whole chain, and return its events."""
        return self._read_chain()[1]

    def get_digest(self, number: int) -> str | None:
        """Return the digest of an event; None where there is no such event. Reads only if nothing was read yet."""
        digests = (self._verified or self._read_chain()[0]).digests
        return digests[number - 1] if 1 <= number <= len(digests) else None

    def append_event(self, make_event: Callable[[Account], Event | None]) -> Account:
        """Append the event that `make_event` returns for the account as it is now, and return the account after it.

        No other process writes between the call of `make_event` and the event. An exception or None writes nothing.
        """
        known = self._verified
        with self._store.begin_write() as rows:
            found = rows.read_from(1 if known is None else known.account.number)
            if known is not None:
                # Everything up to the last verified digest is settled by that digest, so only the rest is verified.
                if [each[2] for each in found[:1]] != [known.account.digest]:
                    raise self._make_rollback_error()
                found = found[1:]
            chain = self._verify_events(found, known)[0]
            event = make_event(chain.account)
            if event is not None:
                chain = self._store_event(rows, chain, event)
        self._verified = chain
        return chain.account

    def copy_to(self, path: str | os.PathLike[str]) -> Account:
        """Verify the chain, write a copy to a new private SQLite file, and return what the copy adds up to."""
        chain, _, stored = self._read_chain()
        with open_store(Path(path), self._vault).begin_creation() as target:
            for event in stored:
                target.add(*event)
        return chain.account

    def _read_chain(self) -> tuple[_VerifiedChain, list[Event], list[StoredEvent]]:
        known = self._verified  # Before the transaction: another thread may append while this one reads.
        with self._store.begin_read() as rows:
            found = rows.read_from(1)
        chain, events = self._verify_events(found, None)
        if known is not None and chain.digests[: len(known.digests)] != known.digests:
            raise self._make_rollback_error()
        self._verified = chain
        return chain, events, found

    def _verify_events(
        self, stored: Iterable[StoredEvent], known: _VerifiedChain | None
    ) -> tuple[_VerifiedChain, list[Event]]:
        """Follow the chain along stored events, and return where it ends."""
        account, digests = (None, []) if known is None else (known.account, [*known.digests])
        events: list[Event] = []
        for number, content, digest in stored:
            if number != len(digests) + 1:
                raise self._make_damage_error(f"event {len(digests) + 1} is missing")
            if not isinstance(content, str) or digest != self._compute_digest(account, content):
                raise self._make_event_digest_error(number)
            try:
                event = parse_event(content)
                account = self._apply_event(account, event, digest)
            except ValueError as problem:
                raise self._make_damage_error(f"event {number} is invalid: {problem}") from None
            digests.append(digest)
            events.append(event)
        if account is None:
            raise self._make_damage_error("it has no events")
        return _VerifiedChain(account, tuple(digests)), events

    def _store_event(self, rows: StoredEvents, known: _VerifiedChain | None, event: Event) -> _VerifiedChain:
        account, digests = (None, ()) if known is None else (known.account, known.digests)
        content = event.to_json()
        parse_event(content)  # raises: an event that cannot be read again would damage the ledger for good
        digest = self._compute_digest(account, content)
        after = self._apply_event(account, event, digest)
        rows.add(event.number, content, digest)
        return _VerifiedChain(after, (*digests, digest))

    def _apply_event(self, account: Account | None, event: Event, digest: str) -> Account:
        if account is not None:
            return account.apply_event(event, digest)
        begun = Account.from_first_event(event, digest)
        if begun.vault != self._vault:
            raise ValueError("it creates another vault")
        return begun

    def _compute_digest(self, account: Account | None, content: str) -> str:
        before = self._vault if account is None else account.digest
        return hmac.digest(self._secret, f"{before}{content}".encode(), "sha256").hex()

    def _make_event_digest_error(self, number: int) -> LedgerError:
        if number > 1:
            return self._make_damage_error(f"event {number} does not match its digest")
        return self._make_damage_error(
            f"event 1 does not match its digest under the key {self._key.fingerprint}",
            "If that is not the key of the vault, use the right one. Otherwise restore {address!r} from a backup.",
        )

    def _make_rollback_error(self) -> LedgerError:
        return self._make_damage_error("it went back to an earlier state, or has another history than before")

    def _make_damage_error(self, damage: str, hint: str = "") -> LedgerError:
        return LedgerError(
            "The ledger of vault {vault!r} is damaged: {damage}.",
            hint=hint or "Restore {address!r} from a backup of the vault.",
            vault=self._vault,
            damage=damage,
            address=self.address,
        )
