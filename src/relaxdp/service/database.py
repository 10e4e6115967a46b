"""The service's database: engines whose commits are on disk before they return, and who may write when."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Engine, create_engine, event
from sqlalchemy.exc import DBAPIError, InterfaceError, OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError
from sqlalchemy.pool import QueuePool

from relaxdp.errors import RelaxdpError, ServiceError, StorageUnavailableError, StorageVersionError
from relaxdp.ledger import store as ledger
from relaxdp.service.address import PostgresAddress, SqliteAddress, address_of


@dataclass(frozen=True, slots=True)
class Statement:
    """One statement in the words of both databases."""

    sqlite: str
    postgres: str

    @classmethod
    def shared(cls, text: str) -> Statement:
        """Return a statement that both understand, but for the mark of a parameter.

        >>> Statement.shared("SELECT ?").postgres
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


VERSION_TABLE = "service_version"
VERSIONS = ("0001_collector", "0002_market")
MIGRATIONS = Path(__file__).parent / "migrations"

_CREATION = f"SELECT pg_advisory_xact_lock({int.from_bytes(b'relaxsrv')})"


def hold_creation(connection: Connection) -> None:
    """Let processes that start at once create the schema one after the other; SQLite's writers wait anyway."""
    if connection.dialect.name == "postgresql":
        connection.exec_driver_sql(_CREATION)


def version_of(connection: Connection) -> str | None:
    """Return which version a database has; None where there is no service in it."""
    return ledger.version_of(connection, table=VERSION_TABLE)


def migrate(connection: Connection) -> None:
    """Bring a database to the last version, within the transaction of the caller, who also holds it."""
    ledger.migrate(connection, folder=MIGRATIONS, table=VERSION_TABLE, last=VERSIONS[-1])


# `secure_delete` overwrites what is deleted: a report that was withdrawn is not left in a free page.
_PRAGMAS = (
    "journal_mode = WAL", "synchronous = FULL", "fullfsync = ON", "secure_delete = ON", "temp_store = MEMORY",
    "cache_size = -65536", "wal_autocheckpoint = 4000",
)  # fmt: skip

# Whatever the server, the database or the user have as defaults: a commit is on disk, and on synchronous replicas if
# there are any, before it returns; waiting for a lock ends; a worker that vanished does not hold a campaign for long.
_SETTINGS = (
    "SELECT set_config('lock_timeout', '30s', false), "
    "set_config('idle_in_transaction_session_timeout', '60s', false), "
    "set_config('synchronous_commit', "
    "CASE current_setting('synchronous_commit') WHEN 'remote_apply' THEN 'remote_apply' ELSE 'on' END, false)"
)

READING = {"isolation_level": "REPEATABLE READ", "postgresql_readonly": True}
WRITING = {"isolation_level": "READ COMMITTED", "postgresql_readonly": False}


def engine_of(address: SqliteAddress | PostgresAddress, *, timeout: float, connections: int) -> Engine:
    """Return an engine that knows no URL, so that neither it nor its exceptions can show one."""
    if isinstance(address, SqliteAddress):
        return _sqlite(address.path, timeout, connections)
    return _postgres(address.parameters, connections)


def _sqlite(path: Path, timeout: float, connections: int) -> Engine:
    def connect() -> sqlite3.Connection:
        made = sqlite3.connect(
            f"{path.as_uri()}?mode=rw", uri=True, timeout=timeout, isolation_level=None, check_same_thread=False
        )
        try:
            for pragma in _PRAGMAS:
                made.execute(f"PRAGMA {pragma}")
        except BaseException:
            made.close()
            raise
        return made

    engine = create_engine(
        "sqlite://", creator=connect, poolclass=QueuePool, pool_size=connections, max_overflow=connections,
        hide_parameters=True,
    )  # fmt: skip

    @event.listens_for(engine, "begin")
    def begin(connection: Connection) -> None:
        immediate = connection.get_execution_options().get("immediate", False)
        connection.exec_driver_sql("BEGIN IMMEDIATE" if immediate else "BEGIN")

    return engine


def _postgres(parameters: dict[str, Any], connections: int) -> Engine:
    import psycopg  # noqa: PLC0415

    def connect() -> psycopg.Connection[Any]:
        # Nothing is prepared: that would tie a transaction to its connection, and poolers in between share those.
        made = psycopg.connect(**parameters, prepare_threshold=None)
        made.execute(_SETTINGS)
        made.commit()
        return made

    return create_engine(
        "postgresql+psycopg://", creator=connect, poolclass=QueuePool, pool_size=connections,
        max_overflow=connections, pool_pre_ping=True, hide_parameters=True, use_native_hstore=False,
    )  # fmt: skip


_BEGINS = b"SQLite format 3\x00"  # the first bytes of every file that SQLite wrote


class Database:
    """A SQLite file or a PostgreSQL database. Threads may share it; processes open it anew."""

    def __init__(self, url: str, *, timeout: float = 30.0, connections: int = 8) -> None:
        self.address = address_of(url, timeout=timeout)
        self.is_sqlite = isinstance(self.address, SqliteAddress)
        self.engine = engine_of(self.address, timeout=timeout, connections=connections)

    def prepare(self) -> None:
        """Create the tables where there are none, and bring them to the last version."""
        if isinstance(self.address, SqliteAddress):
            self._touch()
            check_file(self.address.path)
        with self.translated():
            if not self.is_sqlite:
                with self.reading() as connection:
                    _check_server(connection)
            with self.writing() as connection:
                hold_creation(connection)
                version = version_of(connection)
                if version is not None and version not in VERSIONS:
                    raise StorageVersionError(
                        "the database {database!r} has schema version {version!r} and this relaxdp knows "
                        "{known!r} at most: it was written by another version.",
                        database=self.address.name,
                        known=VERSIONS[-1],
                        version=version,
                    )
                if version != VERSIONS[-1]:
                    migrate(connection)

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
    query = "SELECT current_setting('fsync'), current_setting('server_encoding')"
    syncs, encoding = connection.exec_driver_sql(query).one()
    if syncs != "on":
        raise ServiceError("the database would forget: its server does not write to its disk (fsync is off).")
    if encoding != "UTF8":
        raise ServiceError("the encoding of the database is not UTF8.")
