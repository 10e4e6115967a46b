"""Databases: engines of SQLite and PostgreSQL, the version of a schema, and who may write when.

A commit is on disk before it returns.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from sqlalchemy import (
    Column,
    Connection,
    Engine,
    Integer,
    MetaData,
    Table,
    create_engine,
    event,
    insert,
    inspect,
    select,
)
from sqlalchemy.exc import DBAPIError, InterfaceError, OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError
from sqlalchemy.pool import QueuePool

from relaxdp.errors import MissingDependencyError, RelaxdpError
from relaxdp.server_errors import ServiceError, StorageUnavailableError, StorageVersionError
from relaxdp.storage.address import POSTGRES, PostgresAddress, SqliteAddress, postgres_address


def sqlite_engine(path: Path, *, pragmas: Sequence[str], timeout: float, **pool: Any) -> Engine:
    """Return the engine of a file that is there. Transactions begin by a statement, at which writers wait."""

    def connect() -> sqlite3.Connection:
        # `mode=rw`: a file that was deleted under us is an error, not a new and empty one.
        made = sqlite3.connect(
            f"{path.as_uri()}?mode=rw", uri=True, timeout=timeout, isolation_level=None, check_same_thread=False
        )
        try:
            for pragma in pragmas:
                made.execute(f"PRAGMA {pragma}")
        except BaseException:
            made.close()
            raise
        return made

    engine = create_engine("sqlite://", creator=connect, hide_parameters=True, **pool)

    @event.listens_for(engine, "begin")
    def begin(connection: Connection) -> None:
        immediate = connection.get_execution_options().get("immediate", False)
        connection.exec_driver_sql("BEGIN IMMEDIATE" if immediate else "BEGIN")

    return engine


def postgres_engine(parameters: dict[str, Any], *, settings: str = "", **pool: Any) -> Engine:
    """Return the engine of a database, each of whose connections begins with these settings."""
    import psycopg  # noqa: PLC0415 (files do not need it)

    def connect() -> psycopg.Connection[Any]:
        # Nothing is prepared: that would tie a transaction to its connection, and poolers in between share those.
        made = psycopg.connect(**parameters, prepare_threshold=None)
        if settings:
            made.execute(settings.encode())
            made.commit()
        return made

    return create_engine(
        "postgresql+psycopg://", creator=connect, hide_parameters=True, use_native_hstore=False, **pool
    )


def unfit(connection: Connection) -> Literal["fsync", "encoding"] | None:
    """Return why a PostgreSQL server is not to be trusted with anything: it would forget, or cannot hold every name."""
    query = "SELECT current_setting('fsync'), current_setting('server_encoding')"
    syncs, encoding = connection.exec_driver_sql(query).one()
    return "fsync" if syncs != "on" else "encoding" if encoding != "UTF8" else None


@dataclass(frozen=True, slots=True)
class SqlStatement:
    """One statement in the words of both databases."""

    sqlite: str
    postgres: str

    @classmethod
    def shared(cls, text: str) -> SqlStatement:
        """Return a statement that both understand, but for the mark of a parameter.

        >>> SqlStatement.shared("SELECT ?").postgres
        'SELECT %s'
        """
        return cls(text, text.replace("?", "%s"))

    def run(self, connection: Connection, parameters: Sequence[Any]) -> Any:
        """Run it within the transaction of a connection, and return the driver's cursor."""
        driver: Any = connection.connection.driver_connection
        return driver.execute(self.sqlite if connection.dialect.name == "sqlite" else self.postgres, parameters)

    def run_many(self, connection: Connection, rows: Sequence[Sequence[Any]]) -> None:
        """Run it once for each row."""
        driver: Any = connection.connection.driver_connection
        if connection.dialect.name == "sqlite":
            driver.executemany(self.sqlite, rows)
            return
        with driver.cursor() as cursor:
            cursor.executemany(self.postgres, rows)


_CREATION = f"SELECT pg_advisory_xact_lock({int.from_bytes(b'relaxsrv')})"


def hold_creation(connection: Connection) -> None:
    """Let processes that start at once create the schema one after the other; SQLite's writers wait anyway."""
    if connection.dialect.name == "postgresql":
        connection.exec_driver_sql(_CREATION)


# `secure_delete` overwrites what is deleted: a report that was withdrawn is not left in a free page. With
# `recursive_triggers` a row that is replaced counts as deleted.
_PRAGMAS = (
    "journal_mode = WAL", "synchronous = FULL", "fullfsync = ON", "secure_delete = ON", "temp_store = MEMORY",
    "cache_size = -65536", "wal_autocheckpoint = 4000", "foreign_keys = ON", "recursive_triggers = ON",
)  # fmt: skip

# Whatever the server, the database or the user have as defaults: a commit is on disk, and on synchronous replicas if
# there are any, before it returns; waiting for a lock ends; a process that vanished does not hold a campaign for long.
_SETTINGS = (
    "SELECT set_config('lock_timeout', '30s', false), "
    "set_config('idle_in_transaction_session_timeout', '60s', false), "
    "set_config('synchronous_commit', "
    "CASE current_setting('synchronous_commit') WHEN 'remote_apply' THEN 'remote_apply' ELSE 'on' END, false)"
)

# A writer must see what was committed while it waited, a reader one state and nothing later.
READING = {"isolation_level": "REPEATABLE READ", "postgresql_readonly": True}
WRITING = {"isolation_level": "READ COMMITTED", "postgresql_readonly": False}


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
    if scheme not in POSTGRES:
        raise ServiceError("the database is a SQLite file (sqlite:///file) or postgresql://...")
    try:
        found = postgres_address(url, timeout=timeout)
    except ImportError:
        raise MissingDependencyError("PostgreSQL needs psycopg: pip install 'relaxdp[postgres]'.") from None
    if found is None:
        raise ServiceError(
            "the database's URL cannot be understood: it is written postgresql://user@host/database, and in a "
            "password everything but letters and digits is encoded, like %40 for @."
        )
    return found


def engine_of(address: SqliteAddress | PostgresAddress, *, timeout: float, connections: int) -> Engine:
    """Return the engine of an address, with so many connections that are kept."""
    pool: Any = {"poolclass": QueuePool, "pool_size": connections, "max_overflow": connections}
    if isinstance(address, SqliteAddress):
        return sqlite_engine(address.path, pragmas=_PRAGMAS, timeout=timeout, **pool)
    return postgres_engine(address.parameters, settings=_SETTINGS, pool_pre_ping=True, **pool)


_BEGINS = b"SQLite format 3\x00"  # the first bytes of every file that SQLite wrote


class Database:
    """A SQLite file or a PostgreSQL database. Threads may share it; processes open it anew."""

    def __init__(self, url: str, *, timeout: float = 30.0, connections: int = 8) -> None:
        self.address = address_of(url, timeout=timeout)
        self.is_sqlite = isinstance(self.address, SqliteAddress)
        self.engine = engine_of(self.address, timeout=timeout, connections=connections)

    def prepare(self, schema: Schema) -> None:
        """Create the tables of a schema if they are missing; reject those of another version."""
        if isinstance(self.address, SqliteAddress):
            self._touch()
            check_file(self.address.path)
        with self.translated():
            if not self.is_sqlite:
                with self.reading() as connection:
                    _check_server(connection)
            with self.writing() as connection:
                hold_creation(connection)
                version = schema.read_version(connection)
                if version is None:
                    schema.create(connection)
                elif version != schema.version:
                    raise StorageVersionError(
                        "The database {database!r} has schema version {version!r}, and this version of relaxdp needs "
                        "{needed!r}. It was created by another version. Nothing is published yet, so there is no "
                        "migration. Use the version that created it, or a new database.",
                        database=self.address.name,
                        needed=schema.version,
                        version=version,
                    )

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """Look at one snapshot."""
        with self.translated(), self.engine.connect() as plain:
            connection = plain if self.is_sqlite else plain.execution_options(**READING)
            with connection.begin():
                yield connection

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """Write; it is durable when this ends without an exception."""
        with self.translated(), self.engine.connect() as plain, self.write_on(plain) as connection:
            yield connection

    @contextmanager
    def write_on(self, plain: Connection) -> Iterator[Connection]:
        """Write on a connection that somebody keeps."""
        options = {"immediate": True} if self.is_sqlite else WRITING
        connection = plain.execution_options(**options)
        with connection.begin():
            yield connection

    @contextmanager
    def translated(self) -> Iterator[None]:
        """Turn the database's exceptions into a sentence; their own text would show statements and parameters."""
        try:
            yield
        except RelaxdpError:  # a sentence already, though some of ours are of the system's kinds as well
            raise
        except (DBAPIError, PoolTimeoutError, sqlite3.Error, OSError) as problem:
            lost = is_lost(problem)
        except Exception as problem:
            if type(problem).__module__.partition(".")[0] != "psycopg":
                raise
            lost = True
        else:
            return
        raise unacknowledged(
            StorageUnavailableError("the database cannot be used now.", lost=lost)
        )  # nobody asks which

    def empty_log(self) -> None:
        """Remove what was deleted from SQLite's log too, not only from its file."""
        if self.is_sqlite:
            with self.engine.connect() as connection:
                driver = connection.connection.dbapi_connection
                if driver is not None:
                    driver.cursor().execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()

    def close(self) -> None:
        """Close all connections that nobody uses."""
        self.engine.dispose()

    def _touch(self) -> None:
        """Create an empty file that only its owner can read, before SQLite would with other rights."""
        path = self.address.name
        try:
            os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))
        except OSError as problem:
            raise ServiceError(
                "the database {path!r} cannot be opened: {why}.", path=path, why=problem.strerror
            ) from None


def unacknowledged(problem: StorageUnavailableError) -> StorageUnavailableError:
    """Return the refusal of something of which nobody knows whether it was done, unless an answer said so."""
    problem.consequence = "What was not acknowledged may be sent again."
    return problem


def check_file(path: Path) -> None:
    """Refuse a file that is no SQLite database; an empty one becomes a database."""
    try:
        with path.open("rb") as file:
            begins = file.read(len(_BEGINS))
    except OSError as problem:
        raise ServiceError(
            "the database {path!r} cannot be opened: {why}.", path=str(path), why=problem.strerror
        ) from None
    if begins not in (b"", _BEGINS):
        raise ServiceError("{path!r} is not a SQLite database.", path=str(path))


def is_lost(problem: BaseException) -> bool:
    """Tell whether another attempt on a new connection may succeed."""
    return getattr(problem, "connection_invalidated", False) or isinstance(problem, OperationalError | InterfaceError)


def _check_server(connection: Connection) -> None:
    why = unfit(connection)
    if why == "fsync":
        raise ServiceError("the database would forget: its server does not write to its disk (fsync is off).")
    if why == "encoding":
        raise ServiceError("the encoding of the database is not UTF8.")


class Schema:
    """The tables of one owner, and the number of their version, which is stored in a table as well."""

    def __init__(self, metadata: MetaData, table: str, version: int) -> None:
        self.table, self.version = table, version
        self._metadata = metadata
        self._versions = Table(table, metadata, Column("version_num", Integer, primary_key=True, autoincrement=False))

    def read_version(self, connection: Connection) -> Any:
        """Return which version a database has; None where these tables are not in it."""
        if not inspect(connection).has_table(self.table):
            return None
        return connection.execute(select(self._versions)).scalar()

    def create(self, connection: Connection) -> None:
        """Create all tables that were declared, within the transaction of the caller."""
        self._metadata.create_all(connection, checkfirst=False)  # a table of another owner is an error
        connection.execute(insert(self._versions).values(version_num=self.version))
