"""Where a ledger is kept: the protocol of a store, its addresses, and the versions of its schema (alembic)."""

from __future__ import annotations

import math
import os
import re
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from threading import Lock
from typing import Any, Protocol
from urllib.parse import quote, urlencode

from sqlalchemy import Connection, inspect, make_url, text
from sqlalchemy.exc import ArgumentError

from relaxdp.errors import LedgerAccessError, LedgerError

_POSTGRES = ("postgresql", "postgres", "postgresql+psycopg")
# As a file name these would be shown, and a password with them; the last is libpq's other form of an address.
_HALF_A_URL = re.compile(r"(postgres|postgresql)(\+\w*)?:|sqlite(\+\w*)?:/|.*\bpassword\s*=", re.IGNORECASE | re.DOTALL)


class Store(Protocol):
    """Where the events and the state that they add up to are kept.

    Every problem of the database comes out of these as a `LedgerError`.
    """

    def prepare(self, *, create: bool) -> None:
        """Bring the schema to the last version, in a new place only with `create`; refuse what cannot be used.

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

    def problem(self, what: str) -> LedgerError:
        """Return the error for content that no ledger has written."""

    def close(self) -> None:
        """Let go of it."""


def store_of(where: str | os.PathLike[str], *, timeout: float) -> Store:
    """Return the store of a file name or of a database URL. A URL may hold a password, so it is not shown."""
    from relaxdp.ledger.sqlite import SqliteStore  # noqa: PLC0415

    text = str(where)
    if not isinstance(where, str) or "://" not in text:
        if _HALF_A_URL.match(text):
            raise LedgerAccessError("the ledger's URL cannot be understood.")
        return SqliteStore(where, timeout=timeout)
    scheme = text.partition("://")[0].lower()
    if scheme in _POSTGRES:
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


_SCHEMA = re.compile(r"-c ?search_path=[\w,]+")


@dataclass(frozen=True, slots=True)
class Address:
    """What a connection needs, and how the ledger is called in messages."""

    name: str
    place: str
    """Like the name, but with port and options: another port or schema is another ledger, another user is not."""
    parameters: dict[str, Any] = field(repr=False)


def read_address(url: str, *, timeout: float) -> Address:
    """Return the address that a URL names. Not all of it may be understood, but none of it is shown then.

    What the URL leaves out comes from libpq's own places: PGPASSWORD and its sisters, `.pgpass`, a service file.
    """
    import psycopg  # noqa: PLC0415 (files do not need it)
    from psycopg.conninfo import conninfo_to_dict  # noqa: PLC0415

    rest = url.partition("://")[2]
    # libpq wants a second `=` of a parameter (`options=-csearch_path=books`) in its encoded form; nobody writes it so.
    parts = [first + mark + value.replace("=", "%3D") for first, mark, value in map(_cut, rest.split("&"))]
    try:
        found: dict[str, Any] = dict(conninfo_to_dict(f"postgresql://{'&'.join(parts)}"))
    except (psycopg.Error, UnicodeError):
        found = {"host": "@@"}
    host, port, database = (str(found.get(key) or "") for key in ("host", "port", "dbname"))
    # A password whose @, : or / was not encoded ends up in one of these, and from there in messages.
    if "@" in host[1:] or "@" in database or not all(each.isdecimal() for each in port.split(",") if each):
        raise LedgerAccessError(
            "the ledger's URL cannot be understood: it is written postgresql://user@host/database, and in a "
            "password everything but letters and digits is encoded, like %40 for @."
        )
    found.setdefault("connect_timeout", max(2, math.ceil(timeout)))
    # A network that falls silent ends the wait as well, and of several servers it is the one that is written to.
    found.setdefault("tcp_user_timeout", max(2000, math.ceil(timeout * 1000)))
    found.setdefault("keepalives_idle", 30)
    found.setdefault("target_session_attrs", "read-write")
    return Address(_name(found), _place(found), {**found, "client_encoding": "utf8"})


def _cut(pair: str) -> tuple[str, str, str]:
    return pair.partition("=")


def _place(found: dict[str, Any]) -> str:
    known = {name: str(found[name]) for name in ("host", "port", "service", "options") if found.get(name)}
    options = known.get("options", "")
    if options and not _SCHEMA.fullmatch(options):  # whatever else is set there may be secret
        known["options"] = sha256(options.encode()).hexdigest()[:16]
    return f"postgresql:///{quote(str(found.get('dbname') or ''))}?{urlencode(known)}".rstrip("?")


def _name(found: dict[str, Any]) -> str:
    """Return the URL without what is secret, and without what nobody needs in order to recognise it."""
    user = f"{found['user']}@" if found.get("user") else ""
    host = found.get("host") or ""
    service = f"?service={found['service']}" if found.get("service") else ""
    if host.startswith("/"):  # a folder with the server's socket
        host, service = "", service or f"?host={host}"
    return f"postgresql://{user}{host}/{found.get('dbname') or ''}{service}"


VERSION_TABLE = "ledger_version"
VERSIONS = ("0001",)
MIGRATIONS = Path(__file__).parent / "migrations"

_LOCK = Lock()  # alembic keeps what it works on in a global name


def version_of(connection: Connection, *, table: str = VERSION_TABLE) -> str | None:
    """Return which version a database has; None where there is no ledger in it, or what else `table` stands for."""
    if not inspect(connection).has_table(table):
        return None
    return connection.execute(text(f"SELECT version_num FROM {table}")).scalar()  # noqa: S608


def migrate(
    connection: Connection, *, folder: Path = MIGRATIONS, table: str = VERSION_TABLE, last: str = VERSIONS[-1]
) -> None:
    """Bring a database to the last version, within the transaction of the caller, who also holds it."""
    # Most calls find the schema as it should be; only those that do not wait for alembic.
    from alembic.config import Config  # noqa: PLC0415
    from alembic.runtime.environment import EnvironmentContext  # noqa: PLC0415
    from alembic.script import ScriptDirectory  # noqa: PLC0415

    script = ScriptDirectory(folder)

    def steps(revision: Any, context: object) -> Any:
        return script._upgrade_revs(last, revision)

    with _LOCK, EnvironmentContext(Config(), script, fn=steps) as environment:
        environment.configure(connection=connection, transactional_ddl=True, version_table=table)
        with environment.begin_transaction():
            environment.run_migrations()
