"""The ledger in a PostgreSQL database: all that is particular to PostgreSQL."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
from psycopg import Error, OperationalError
from psycopg.pq import TransactionStatus
from sqlalchemy import Connection, Engine, text
from sqlalchemy.exc import DBAPIError
from sqlalchemy.pool import NullPool

from relaxdp.errors import (
    LedgerAccessError,
    LedgerDamagedError,
    LedgerError,
    LedgerFullError,
    LedgerLockedError,
    LedgerUncertainError,
    LedgerVersionError,
)
from relaxdp.ledger.store import SCHEMA, describe_other_version
from relaxdp.storage.address import postgres_address
from relaxdp.storage.database import READING, WRITING, postgres_engine, unfit

Sentence = tuple[type[LedgerError], str]

LOCKED: Sentence = (
    LedgerLockedError,
    "is held by another process, and did not become free within {timeout:g} seconds",
)
_RIGHTS: Sentence = (LedgerAccessError, "may not be read or written by this user: the rights to its tables are missing")
_DOWN: Sentence = (LedgerAccessError, "cannot be used now: its server is shutting down or starting")
_BUSY: Sentence = (LedgerAccessError, "cannot be opened: its server has no connection or no memory left")
_READ_ONLY: Sentence = (LedgerAccessError, "may not be written: this server is a replica, or read-only")
_REFUSED: Sentence = (LedgerAccessError, "refuses this user: the name or the password is wrong, or missing")
_NO_DATABASE: Sentence = (LedgerAccessError, "cannot be opened: there is no such database")
_STOPPED: Sentence = (LedgerAccessError, "ended the transaction: it took too long, or somebody stopped it")
_NOBODY: Sentence = (LedgerAccessError, "cannot be reached: no server answers there")
_LOST: Sentence = (LedgerAccessError, "cannot be used: the connection was lost")

# By the code of the answer: the whole of it first, then its class.
_CODES: dict[str, Sentence] = {
    "55P03": LOCKED,
    "40P01": LOCKED,
    "42501": _RIGHTS,
    "28": _REFUSED,
    "3D000": _NO_DATABASE,
    "3F000": (LedgerAccessError, "cannot be created: the schema of the search path does not exist"),
    "25006": _READ_ONLY,
    "25P03": _STOPPED,
    "25P04": _STOPPED,
    "57014": _STOPPED,
    "57P": _DOWN,
    "08": _LOST,
    "53100": (LedgerFullError, "cannot be written: the disk is full"),
    "53": _BUSY,
    "58": (LedgerFullError, "cannot be read or written: the disk fails, or has no room for it"),
    "42P07": (LedgerDamagedError, "has tables of the ledger's names, but is no ledger"),
    "42P01": (LedgerAccessError, "cannot be used: its tables are gone"),
    "42703": (LedgerDamagedError, "is damaged: its tables have other columns"),
    "54000": (LedgerAccessError, "cannot hold names as long as these, taken together"),
    "23": (LedgerDamagedError, "is damaged, or somebody else writes to it who does not hold it"),
    "XX": (LedgerDamagedError, "is damaged"),
}

# A connection that fails has no code, so it is told by its words, where the server speaks English.
_WORDS: tuple[tuple[tuple[str, ...], Sentence], ...] = (
    (("password", "authentication failed", "pg_hba.conf", 'role ""'), _REFUSED),
    (("starting up", "shutting down", "recovery mode", "not yet accepting"), _DOWN),
    (("too many", "connection slots"), _BUSY),
    (("permission denied",), _RIGHTS),
    (('database "" does not exist',), _NO_DATABASE),
    (("session is read-only", "hot standby"), _READ_ONLY),
    (("definition of service",), (LedgerAccessError, "cannot be opened: its service is not in the service file")),
    ((' value: ""', "bad value"), (LedgerAccessError, "cannot be opened: a parameter of its URL has no valid value")),
    (("timeout", "timed out"), (LedgerAccessError, "did not answer in time")),
    (("certificate", "SSL"), (LedgerAccessError, "cannot be opened: no encrypted connection can be made")),
    (("refused", "No such file", "resolve", "translate host"), _NOBODY),
)
_UNREACHABLE: Sentence = (LedgerAccessError, "cannot be reached, or does not accept the connection")
_NAMES = re.compile(r"\"[^\"]*\"|'[^']*'")  # of hosts and users, which may be any words


def sentence(problem: BaseException, *, connecting: bool) -> Sentence:
    """Return the kind of an error and what it says; `{timeout}` in it stands for the seconds that were waited."""
    code = getattr(problem, "sqlstate", None) or ""
    for known in (code, code[:3], code[:2]):
        if known in _CODES:
            return _CODES[known]
    if connecting:
        text = _NAMES.sub('""', str(problem))
        found = (said for words, said in _WORDS if any(word in text for word in words))
        return next(found, _UNREACHABLE)
    return _LOST if is_lost(problem) else (LedgerError, "cannot be used")


def is_lost(problem: BaseException) -> bool:
    """Return whether the server may have gone on without us, so that nobody knows how it ended."""
    code = problem.sqlstate if isinstance(problem, Error) else None
    if code is None:
        return isinstance(problem, OperationalError)
    return code.startswith(("08", "57P", "25P0"))


# What happened stays, and so does whom it happened to; ALWAYS holds for replication roles as well.
_REFUSE = "ledger_refuse"
GUARDS = (
    f"CREATE OR REPLACE FUNCTION {_REFUSE}() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION "
    "'% is append-only', TG_TABLE_NAME USING ERRCODE = 'integrity_constraint_violation'; END $$",
    *(
        statement
        for table, deeds in [
            ("ledger_event", "UPDATE OR DELETE OR TRUNCATE"),
            ("ledger_path", "DELETE OR TRUNCATE"),
            ("ledger_subject", "DELETE OR TRUNCATE"),
            (SCHEMA.table, "DELETE OR TRUNCATE"),
        ]
        for statement in (
            f"CREATE TRIGGER {table}_append_only BEFORE {deeds} ON {table} EXECUTE FUNCTION {_REFUSE}()",
            f"ALTER TABLE {table} ENABLE ALWAYS TRIGGER {table}_append_only",
        )
    ),
)

# For one transaction, whatever the server, the database or the user have as their defaults: waiting ends; a process
# that vanished while it held the ledger holds it for half a minute at most; a commit is on disk (and on synchronous
# replicas, if there are any) before it returns.
_SETTINGS = text(
    "SELECT set_config('lock_timeout', :wait, true), set_config('idle_in_transaction_session_timeout', '30s', true), "
    "set_config('synchronous_commit', "
    "CASE current_setting('synchronous_commit') WHEN 'remote_apply' THEN 'remote_apply' ELSE 'on' END, true)"
)

# The one row of this table is what every writer holds. Unlike an advisory lock it cannot be another one for users
# with another search path, and it says under which version of the schema one writes.
_HOLD = text(f"SELECT version_num FROM {SCHEMA.table} FOR UPDATE")  # noqa: S608

# Where there is no such row yet, those who want to create it wait for each other here ("relaxdp" in ASCII).
_CREATION = text(f"SELECT pg_advisory_xact_lock({int.from_bytes(b'relaxdp')})")


class PostgresStore:
    """The tables `ledger_*` of a database, in which others may live beside it.

    Connections live for one transaction. None is open when a process forks, and none crosses threads.
    """

    def __init__(self, url: str, *, timeout: float) -> None:
        address = postgres_address(url, timeout=timeout)
        if address is None:
            raise LedgerAccessError(
                "the ledger's URL cannot be understood: it is written postgresql://user@host/database, and in a "
                "password everything but letters and digits is encoded, like %40 for @."
            )
        self._name, self._place, self._timeout = address.name, address.place, timeout
        self._engine: Engine | None = postgres_engine(address.parameters, poolclass=NullPool)

    def prepare(self, *, create: bool) -> None:
        """Check the server, and create the tables if they are missing."""
        with self.reading() as connection:
            self._check_server(connection)
            version = SCHEMA.read_version(connection)
        if version is None:
            if not create:
                raise self._error(LedgerAccessError, "does not exist: the database holds none")
            version = self._create()
        self._check_version(version)

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """Look at one snapshot."""
        with self._transaction(writing=False) as connection:
            yield connection

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """Hold the ledger before looking, so that what was checked still holds when it is written."""
        with self._transaction(writing=True) as connection:
            self._check_version(self._hold(connection))
            yield connection

    def close(self) -> None:
        """Refuse further use."""
        self._engine = None

    def address(self) -> str:
        """Return the URL without what is secret."""
        return self._place

    def copy_to(self, target: Path) -> None:
        """Refuse: the server's own tools do it, triggers and all."""
        raise LedgerError("a ledger in PostgreSQL is backed up with pg_dump and restored with pg_restore.")

    def absence(self) -> str:
        """Say that nothing has happened in it yet."""
        return f"the ledger {self._name!r} is empty"

    def problem(self, what: str) -> LedgerError:
        """Return the error for content that no ledger has written."""
        return self._error(LedgerDamagedError, f"is damaged: {what}")

    def _create(self) -> object:
        with self._transaction(writing=True) as connection:
            connection.execute(_CREATION)
            version = SCHEMA.read_version(connection)
            if version is None:  # otherwise another process was faster
                SCHEMA.create(connection)
                for statement in GUARDS:
                    connection.execute(text(statement))
        return version or SCHEMA.version

    def _hold(self, connection: Connection) -> object:
        versions = connection.execute(_HOLD).scalars().all()
        if len(versions) != 1:  # nothing would be held
            raise self.problem("its version is missing")
        return versions[0]

    def _check_version(self, version: object) -> None:
        if version != SCHEMA.version:
            raise self._error(LedgerVersionError, describe_other_version(version), version=version)

    def _check_server(self, connection: Connection) -> None:
        why = unfit(connection)
        if why == "fsync":
            raise self._error(LedgerAccessError, "would forget: its server does not write to its disk (fsync is off)")
        if why == "encoding":
            raise self._error(LedgerAccessError, "cannot hold every name: the encoding of the database is not UTF8")

    @contextmanager
    def _transaction(self, *, writing: bool) -> Iterator[Connection]:
        """Run one transaction on a connection of its own, and turn the database's exceptions into sentences."""
        if self._engine is None:
            raise self._error(LedgerAccessError, "was closed")
        found: BaseException | None = None
        connecting, committing = True, False
        try:
            with self._engine.connect() as plain:
                connecting = False
                connection = plain.execution_options(**(WRITING if writing else READING))
                with connection.begin():
                    connection.execute(_SETTINGS, {"wait": str(min(2**31 - 1, max(1, round(self._timeout * 1000))))})
                    yield connection
                    # PostgreSQL answers the commit of a transaction that failed with a silent rollback.
                    if _status(connection) != TransactionStatus.INTRANS:
                        raise self._error(LedgerError, "cannot be used: the transaction failed")
                    committing = writing
                committing = False
        except DBAPIError as problem:
            found = problem.orig
        except psycopg.Error as problem:
            found = problem
        if found is None:
            return
        error = self._sentence(found, connecting, committing)
        try:
            raise error
        finally:
            # The exception that we were called with would come along, and with it the connection and its password.
            error.__context__ = None

    def _sentence(self, problem: BaseException, connecting: bool, committing: bool) -> LedgerError:
        if committing and is_lost(problem):
            lost = self._error(
                LedgerUncertainError, "was lost while it wrote, so that what was to be charged may be charged"
            )
            # No boundary may say that nothing happened.
            lost.consequence = "Running it again charges nothing twice."
            return lost
        kind, what = sentence(problem, connecting=connecting)
        return self._error(kind, what.format(timeout=self._timeout))

    def _error(self, kind: type[LedgerError], what: str, **fields: Any) -> LedgerError:
        return kind("the ledger {path!r} {what}.", what=what, path=self._name, **fields)


def _status(connection: Connection) -> TransactionStatus:
    driver: Any = connection.connection.dbapi_connection
    status: TransactionStatus = driver.info.transaction_status
    return status
