"""Where a service keeps its data: a SQLite file, or a PostgreSQL database by its URL."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from relaxdp.errors import LedgerAccessError, MissingPartError, ServiceError
from relaxdp.ledger.store import read_address


@dataclass(frozen=True, slots=True)
class SqliteAddress:
    """A file."""

    path: Path

    @property
    def name(self) -> str:
        """How it is called in messages."""
        return str(self.path)


@dataclass(frozen=True, slots=True)
class PostgresAddress:
    """What a connection needs, and a name without its password."""

    name: str
    parameters: dict[str, Any] = field(repr=False)


def address_of(url: str, *, timeout: float = 30.0) -> SqliteAddress | PostgresAddress:
    """Return the address that a URL names: sqlite:///file, sqlite:////absolute/file, postgresql://..., or a file.

    >>> address_of("sqlite:///service.db").name.endswith("service.db")
    True
    """
    scheme, mark, rest = url.partition("://")
    if not mark:
        return SqliteAddress(Path(url).resolve())
    if scheme == "sqlite":
        if not rest.startswith("/") or len(rest) < 2:
            raise ServiceError("a SQLite database is written sqlite:///file or sqlite:////absolute/file.")
        return SqliteAddress(Path(rest[1:]).resolve())
    if scheme in ("postgresql", "postgres", "postgresql+psycopg"):
        return _postgres(url, timeout)
    raise ServiceError("the database is a SQLite file (sqlite:///file) or postgresql://...")


def _postgres(url: str, timeout: float) -> PostgresAddress:
    try:
        found = read_address(url, timeout=timeout)
    except ImportError:
        raise MissingPartError("PostgreSQL needs psycopg: pip install 'relaxdp[postgres]'.") from None
    except LedgerAccessError:
        found = None
    if found is None:  # the ledger's own sentence speaks of a ledger, and its context holds the URL
        raise ServiceError(
            "the database's URL cannot be understood: it is written postgresql://user@host/database, and in a "
            "password everything but letters and digits is encoded, like %40 for @."
        )
    return PostgresAddress(found.name, found.parameters)
