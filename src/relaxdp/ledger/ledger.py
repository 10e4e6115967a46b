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
from dataclasses import dataclass

from relaxdp.errors import LedgerError, MissingDependencyError
from relaxdp.ledger.account import Account
from relaxdp.ledger.events import Event, from_json
from relaxdp.ledger.sqlite import SqliteStore
from relaxdp.ledger.store import Row, Rows, Store
from relaxdp.sampling.canonical import prefix_length
from relaxdp.sampling.keys import Key

# Shown as a file name, these would show a password. The last one is libpq's other form of an address.
_LIKE_A_URL = re.compile(r"\w+(\+\w*)?:/|(postgres|postgresql)(\+\w*)?:|.*\bpassword\s*=", re.IGNORECASE | re.DOTALL)


def open_store(place: str | os.PathLike[str], vault_id: str) -> Store:
    """Return the store at a path or a postgresql:// URL. Nothing is opened or created yet."""
    text = os.fspath(place)
    if not isinstance(place, str) or not _LIKE_A_URL.match(text):
        return SqliteStore(place)
    if text.partition("://")[0].lower() not in ("postgres", "postgresql"):
        raise LedgerError(
            "The ledger must be a SQLite file or a PostgreSQL database.",
            hint="Pass a path, or a URL such as postgresql://user@host/database.",
        )
    try:
        from relaxdp.ledger.postgres import PostgresStore  # noqa: PLC0415
    except ImportError:
        raise MissingDependencyError(
            "A ledger in PostgreSQL needs psycopg.", hint="Run: pip install 'relaxdp[postgres]'"
        ) from None
    return PostgresStore(text, vault_id)


@dataclass(frozen=True, slots=True)
class _Chain:
    """Events that were verified: what they add up to, and their digests."""

    account: Account
    digests: tuple[str, ...]


class Ledger:
    """The events of one vault. Every call opens one connection and closes it; threads and forks may share a ledger."""

    def __init__(self, store: Store, key: Key, vault_id: str) -> None:
        # The key itself is kept as well: it cannot be pickled, and so neither can a ledger.
        self._store, self._key, self._vault = store, key, vault_id
        self._secret = key.derive(prefix_length(b"ledger"))
        self._verified: _Chain | None = None

    @property
    def address(self) -> str:
        """The file, or the URL without its password."""
        return self._store.address

    def create(self, event: Event) -> Account:
        """Create the ledger with its first event, durably; reject a place that has events of this vault."""
        with self._store.begin_creation() as rows:
            if rows.read(1):
                raise LedgerError(
                    "The ledger {address!r} has events of this vault already.",
                    hint="Open the vault instead of creating it.",
                    address=self.address,
                )
            chain = self._store_event(rows, None, event)
        self._verified = chain
        return chain.account

    def read(self) -> Account:
        """Verify the whole chain, and return what it adds up to."""
        return self._read_all()[0].account

    def events(self) -> list[Event]:
        """Verify the whole chain, and return its events."""
        return self._read_all()[1]

    def digest_at(self, number: int) -> str | None:
        """Return the digest of an event; None where there is no such event. Reads only if nothing was read yet."""
        digests = (self._verified or self._read_all()[0]).digests
        return digests[number - 1] if 1 <= number <= len(digests) else None

    def append(self, make: Callable[[Account], Event | None]) -> Account:
        """Append the event that `make` returns for the account as it is now, and return the account after it.

        No other process writes between the call of `make` and the event. An exception or None writes nothing.
        """
        known = self._verified
        with self._store.begin_write() as rows:
            found = rows.read(1 if known is None else known.account.number)
            if known is not None:
                # Everything up to the last verified digest is settled by that digest, so only the rest is verified.
                if [each[2] for each in found[:1]] != [known.account.digest]:
                    raise self._make_rollback_error()
                found = found[1:]
            chain = self._verify(found, known)[0]
            event = make(chain.account)
            if event is not None:
                chain = self._store_event(rows, chain, event)
        self._verified = chain
        return chain.account

    def copy_to(self, path: str | os.PathLike[str]) -> Account:
        """Verify the chain, write a copy to a new private SQLite file, and return what the copy adds up to."""
        chain, _, found = self._read_all()
        with SqliteStore(path).begin_creation() as rows:
            for row in found:
                rows.add(*row)
        return chain.account

    def _read_all(self) -> tuple[_Chain, list[Event], list[Row]]:
        known = self._verified  # Before the transaction: another thread may append while this one reads.
        with self._store.begin_read() as rows:
            found = rows.read(1)
        chain, events = self._verify(found, None)
        if known is not None and chain.digests[: len(known.digests)] != known.digests:
            raise self._make_rollback_error()
        self._verified = chain
        return chain, events, found

    def _verify(self, rows: Iterable[Row], known: _Chain | None) -> tuple[_Chain, list[Event]]:
        """Follow the chain along stored events, and return where it ends."""
        account, digests = (None, []) if known is None else (known.account, [*known.digests])
        events: list[Event] = []
        for number, content, digest in rows:
            if number != len(digests) + 1:
                raise self._make_damage_error(f"event {len(digests) + 1} is missing")
            if not isinstance(content, str) or digest != self._compute_digest(account, content):
                raise self._make_mismatch_error(number)
            try:
                event = from_json(content)
                account = self._follow(account, event, digest)
            except ValueError as problem:
                raise self._make_damage_error(f"event {number} is invalid: {problem}") from None
            digests.append(digest)
            events.append(event)
        if account is None:
            raise self._make_damage_error("it has no events")
        return _Chain(account, tuple(digests)), events

    def _store_event(self, rows: Rows, known: _Chain | None, event: Event) -> _Chain:
        account, digests = (None, ()) if known is None else (known.account, known.digests)
        content = event.to_json()
        from_json(content)  # raises: an event that cannot be read again would damage the ledger for good
        digest = self._compute_digest(account, content)
        after = self._follow(account, event, digest)
        rows.add(event.number, content, digest)
        return _Chain(after, (*digests, digest))

    def _follow(self, account: Account | None, event: Event, digest: str) -> Account:
        if account is not None:
            return account.apply_event(event, digest)
        begun = Account.begin(event, digest)
        if begun.vault != self._vault:
            raise ValueError("it creates another vault")
        return begun

    def _compute_digest(self, account: Account | None, content: str) -> str:
        before = self._vault if account is None else account.digest
        return hmac.digest(self._secret, f"{before}{content}".encode(), "sha256").hex()

    def _make_mismatch_error(self, number: int) -> LedgerError:
        if number > 1:
            return self._make_damage_error(f"event {number} does not match its digest")
        return self._make_damage_error(
            f"event 1 does not match its digest under the key {self._key.fingerprint}",
            "If that is not the key of the vault, use the right one. Otherwise restore {address!r} from a backup.",
        )

    def _make_rollback_error(self) -> LedgerError:
        return self._make_damage_error("it went back to an earlier state, or has another history than before")

    def _make_damage_error(self, what: str, hint: str = "") -> LedgerError:
        return LedgerError(
            "The ledger of vault {vault!r} is damaged: {what}.",
            hint=hint or "Restore {address!r} from a backup of the vault.",
            vault=self._vault,
            what=what,
            address=self.address,
        )
