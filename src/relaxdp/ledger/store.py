"""Where a ledger is kept: the protocol of a store, which one an address names, and its schema."""

from __future__ import annotations

import os
import re
from contextlib import AbstractContextManager, suppress
from pathlib import Path
from typing import Protocol

from sqlalchemy import Connection, make_url
from sqlalchemy.exc import ArgumentError

from relaxdp.errors import LedgerAccessError, LedgerError
from relaxdp.ledger.rows import METADATA
from relaxdp.storage.address import POSTGRES
from relaxdp.storage.database import Schema

SCHEMA = Schema(METADATA, "ledger_version", version=2)

# As a file name these would be shown, and a password with them; the last is libpq's other form of an address.
_HALF_A_URL = re.compile(r"(postgres|postgresql)(\+\w*)?:|sqlite(\+\w*)?:/|.*\bpassword\s*=", re.IGNORECASE | re.DOTALL)


class Store(Protocol):
    """Where the events and the state that they add up to are kept.

    Every problem of the database comes out of these as a `LedgerError`.
    """

    def prepare(self, *, create: bool) -> None:
        """Create the tables, in a new place only with `create`; reject what cannot be used.

        A file is not even there before something is written: nobody takes an empty one for a ledger that was kept.
        """

    def reading(self) -> AbstractContextManager[Connection]:
        """Look at one consistent state."""

    def writing(self) -> AbstractContextManager[Connection]:
        """Hold the ledger against all other writers; on a normal exit everything is on disk, otherwise nothing."""

    def address(self) -> str:
        """Return where it is, so that it can be found again: whole, but without a password."""

    def absence(self) -> str:
        """Say of a ledger in which nothing has happened that it is empty, or not even there."""

    def copy_to(self, target: Path) -> None:
        """Write a consistent copy to a new file; fail where there are better tools."""

    def problem(self, what: str) -> LedgerError:
        """Return the error for content that no ledger has written."""

    def close(self) -> None:
        """Let go of it."""


def describe_other_version(version: object) -> str:
    """Say why a ledger of another version cannot be used."""
    return (
        f"has schema version {version!r}, and this version of relaxdp needs {SCHEMA.version!r}. It was created by "
        "another version. Nothing is published yet, so there is no migration. Use the version that created it"
    )


def store_of(where: str | os.PathLike[str], *, timeout: float) -> Store:
    """Return the store of a file name or of a database URL. A URL may hold a password, so it is not shown."""
    from relaxdp.ledger.sqlite import SqliteStore  # noqa: PLC0415

    text = str(where)
    if not isinstance(where, str) or "://" not in text:
        if _HALF_A_URL.match(text):
            raise LedgerAccessError("the ledger's URL cannot be understood.")
        return SqliteStore(where, timeout=timeout)
    scheme = text.partition("://")[0].lower()
    if scheme in POSTGRES:
        return _postgres(text, timeout)
    url = None
    with suppress(ArgumentError, ValueError):  # their texts quote from it
        url = make_url(text)
    if url is None:
        raise LedgerAccessError("the ledger's URL cannot be understood.")
    if url.get_backend_name() != "sqlite":
        raise LedgerAccessError("a ledger cannot be kept in {scheme!r}, only in SQLite or PostgreSQL.", scheme=scheme)
    if not url.database or url.database == ":memory:" or url.query:
        raise LedgerAccessError(
            "the ledger's URL must name a file and nothing else, such as sqlite:///ledger.db: a ledger in "
            "memory would forget."
        )
    return SqliteStore(url.database, timeout=timeout)


def _postgres(url: str, timeout: float) -> Store:
    try:
        from relaxdp.ledger.postgres import PostgresStore  # noqa: PLC0415
    except ImportError:
        raise LedgerAccessError("a ledger in PostgreSQL needs psycopg: pip install 'relaxdp[postgres]'.") from None
    return PostgresStore(url, timeout=timeout)
