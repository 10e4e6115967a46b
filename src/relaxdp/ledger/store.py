"""The protocol of a store: what differs between databases, and nothing else."""

from __future__ import annotations

import os
from contextlib import AbstractContextManager
from typing import Protocol

from sqlalchemy import Connection, make_url
from sqlalchemy.exc import ArgumentError

from relaxdp.errors import LedgerAccessError, LedgerError


class Store(Protocol):
    """Where the events and the state that they add up to are kept.

    Every problem of the database comes out of these as a `LedgerError`.
    """

    def prepare(self, *, create: bool) -> None:
        """Bring the schema to the last version, in a new place only with `create`; refuse what cannot be used."""

    def reading(self) -> AbstractContextManager[Connection]:
        """Look at one consistent state."""

    def writing(self) -> AbstractContextManager[Connection]:
        """Hold the ledger against all other writers; on a normal exit everything is on disk, otherwise nothing."""

    def problem(self, what: str) -> LedgerError:
        """Return the error for content that no ledger has written."""

    def close(self) -> None:
        """Let go of it."""


def store_of(where: str | os.PathLike[str], *, timeout: float) -> Store:
    """Return the store of a file name or of a database URL. A URL may hold a password, so it is not shown."""
    from relaxdp.ledger.sqlite import SqliteStore  # noqa: PLC0415

    if not isinstance(where, str) or "://" not in where:
        return SqliteStore(where, timeout=timeout)
    try:
        url = make_url(where)
    except ArgumentError:
        raise LedgerAccessError("the ledger's URL cannot be understood. Nothing was released.") from None
    if url.get_backend_name() != "sqlite":
        raise LedgerAccessError(
            f"a ledger cannot be kept in {url.get_backend_name()!r}, only in SQLite. Nothing was released."
        )
    if not url.database or url.database == ":memory:" or url.query:
        raise LedgerAccessError(
            "the ledger's URL must name a file and nothing else, such as sqlite:///ledger.db: "
            "a ledger in memory would forget. Nothing was released."
        )
    return SqliteStore(url.database, timeout=timeout)
