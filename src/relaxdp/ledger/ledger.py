"""The ledger: a chain of events, verified when it is read, and durable before anything is released.

The digest of an event is HMAC-SHA256(K, digest of the event before || canonical JSON), in hexadecimal. K is derived
from the vault's key, and the vault's id takes the place of the digest before the first event. So an event can be
neither changed, removed, reordered nor made up without the key. Only the last events can be cut off: stamps and
released files show that.
"""

from __future__ import annotations

import hmac
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple

from relaxdp.errors import LedgerBusyError, LedgerError, LedgerUncertainError, MissingDependencyError
from relaxdp.ledger.account import Account
from relaxdp.ledger.events import Event, parse_event
from relaxdp.sampling.keys import Key, add_length_prefix

StoredEvent = tuple[int, str, str]
"""An event as it is stored: its number, its JSON and its digest."""


class StoreProblem(NamedTuple):
    """A problem of a database: the state of the ledger, the remedy, and the error to raise."""

    what: str
    """`{timeout}` stands for the seconds that were waited."""
    hint: str
    error_class: type[LedgerError] = LedgerError


LOCKED = StoreProblem(
    "is in use by another process, and did not become free within {timeout:g} seconds",
    "Run the command again when the other process has ended.",
    LedgerBusyError,
)
UNCERTAIN = StoreProblem(
    "failed while it was written, so the change may be recorded",
    "Look at the history with `relaxdp budget history`, then run the command again.",
    LedgerUncertainError,
)

TransactionKind = Literal["create", "read", "write"]
TransactionStep = Literal["connect", "use", "commit", "close"]


class StoredEvents:
    """The events of one vault, within a transaction."""

    def __init__(self, connection: Any, select: str, insert: str, vault: tuple[str, ...]) -> None:
        self._connection, self._select, self._insert, self._vault = connection, select, insert, vault

    def read_events_from(self, number: int) -> list[StoredEvent]:
        """Return the events from a number on, in ascending order."""
        found: list[StoredEvent] = self._connection.execute(self._select, (*self._vault, number)).fetchall()
        return found

    def add_event(self, number: int, content: str, digest: str) -> None:
        """Store the next event."""
        self._connection.execute(self._insert, (*self._vault, number, content, digest))


class EventStore(ABC):
    """Where events are stored. A connection is open during one transaction only."""

    select: str
    insert: str
    database_error: type[Exception]
    """What the database raises."""
    vault: tuple[str, ...] = ()
    """The id of the vault, where vaults share a table: the first parameter of both statements."""

    def __init__(self, address: str, timeout: float) -> None:
        self.address, self._timeout = address, timeout

    @contextmanager
    def begin_transaction(self, kind: TransactionKind) -> Iterator[StoredEvents]:
        """Begin a transaction, which ends with the block: on a normal exit all is on disk, otherwise nothing.

        Every problem of the database is raised as a `LedgerError`.
        """
        found: Exception | None = None
        step: TransactionStep = "connect"
        try:
            with closing(self._connect()) as connection:
                step = "use"
                self._begin(connection, kind)
                yield StoredEvents(connection, self.select, self.insert, self.vault)
                step = "use" if kind == "read" else "commit"
                connection.execute("COMMIT")
                step = "close"
        except self.database_error as problem:
            found = None if step == "close" else problem  # all is on disk, whatever closing meets
        if found is not None:
            error = self._make_error(self._explain_error(found, step))
            try:
                raise error
            finally:
                error.__context__ = None  # Its text can show statements, and its frames a password.

    @abstractmethod
    def _connect(self) -> Any:
        """Connect to the database."""

    @abstractmethod
    def _begin(self, connection: Any, kind: TransactionKind) -> None:
        """Begin a transaction: writers lock first, so that a decision still holds when it is written."""

    @abstractmethod
    def _explain_error(self, error: Any, step: TransactionStep) -> StoreProblem:
        """Explain an error of the database: return the problem behind it."""

    def _make_error(self, problem: StoreProblem) -> LedgerError:
        what = problem.what.format(timeout=self._timeout)
        error = problem.error_class("The ledger {path!r} {what}.", hint=problem.hint, path=self.address, what=what)
        if isinstance(error, LedgerUncertainError):
            error.consequence = "Nothing is charged twice."  # No boundary may add that nothing happened.
        return error


def open_store(address: Path | str, vault_id: str) -> EventStore:
    """Return the store in a file, or at a postgresql:// URL, which is text. Nothing is opened or created yet."""
    if isinstance(address, Path):
        from relaxdp.ledger.sqlite_store import SqliteStore  # noqa: PLC0415 (it imports this module)

        return SqliteStore(address)
    if not address.lower().startswith(("postgres://", "postgresql://")):  # It is not shown: it may hold a password.
        raise LedgerError(
            "`ledger` must be the URL of a PostgreSQL database.",
            hint="Write postgresql://user@host/database. Without `ledger`, the ledger is a file in the vault.",
        )
    try:
        from relaxdp.ledger.postgres_store import PostgresStore  # noqa: PLC0415
    except ImportError:
        raise MissingDependencyError(
            "A ledger in PostgreSQL needs psycopg.", hint="Run: pip install 'relaxdp[postgres]'"
        ) from None
    return PostgresStore(address, vault_id)


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
        self.address = store.address
        self._secret = key.derive(add_length_prefix(b"ledger"))
        self._verified: _VerifiedChain | None = None

    def create(self, event: Event) -> Account:
        """Create the ledger with its first event, durably; reject a place that has events of this vault."""
        with self._store.begin_transaction("create") as rows:
            if rows.read_events_from(1):
                raise LedgerError(
                    "The ledger {address!r} already contains this vault.",
                    hint="Open the vault with rx.Vault(...) or --vault instead of creating it.",
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
        with self._store.begin_transaction("write") as rows:
            found = rows.read_events_from(1 if known is None else known.account.number)
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

    def copy_to(self, path: Path) -> Account:
        """Verify the chain, write a copy to a new private SQLite file, and return what the copy adds up to."""
        chain, _, stored = self._read_chain()
        with open_store(path, self._vault).begin_transaction("create") as target:
            for event in stored:
                target.add_event(*event)
        return chain.account

    def _read_chain(self) -> tuple[_VerifiedChain, list[Event], list[StoredEvent]]:
        known = self._verified  # Before the transaction: another thread may append while this one reads.
        with self._store.begin_transaction("read") as rows:
            found = rows.read_events_from(1)
        chain, events = self._verify_events(found, None)
        if known is not None and chain.digests[: len(known.digests)] != known.digests:
            raise self._make_rollback_error()
        self._verified = chain
        return chain, events, found

    def _verify_events(
        self, stored: Iterable[StoredEvent], verified: _VerifiedChain | None
    ) -> tuple[_VerifiedChain, list[Event]]:
        """Verify stored events, which continue the verified ones, and return the longer chain."""
        account, digests = (None, []) if verified is None else (verified.account, [*verified.digests])
        events: list[Event] = []
        for number, content, digest in stored:
            if number != len(digests) + 1:
                raise self._make_damage_error(f"event {len(digests) + 1} is missing")
            if not isinstance(content, str) or digest != self._compute_digest(account, content):
                # Under a wrong key, the first digest is the first to differ.
                damage = f"event {number} does not match its digest"
                if number > 1:
                    raise self._make_damage_error(damage)
                raise self._make_damage_error(
                    f"{damage} under the key {self._key.fingerprint}",
                    "If that is not the key of the vault, use the right one. Otherwise restore {address!r} from a "
                    "backup.",
                )
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

    def _store_event(self, events: StoredEvents, verified: _VerifiedChain | None, event: Event) -> _VerifiedChain:
        account, digests = (None, ()) if verified is None else (verified.account, verified.digests)
        content = event.to_json()
        event = parse_event(content)  # raises: an event that cannot be read again would damage the ledger for good
        digest = self._compute_digest(account, content)
        chain = _VerifiedChain(self._apply_event(account, event, digest), (*digests, digest))
        events.add_event(event.number, content, digest)
        return chain

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
