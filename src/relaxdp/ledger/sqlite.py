"""The ledger in one SQLite file: all that is particular to SQLite."""

from __future__ import annotations

import contextlib
import glob
import os
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Engine, create_engine
from sqlalchemy.exc import DBAPIError
from sqlalchemy.pool import NullPool

from relaxdp.draw.private_file import PrivateFileError, locked_folder, sync_folder
from relaxdp.errors import (
    LedgerAccessError,
    LedgerDamagedError,
    LedgerError,
    LedgerFullError,
    LedgerLockedError,
    LedgerVersionError,
)
from relaxdp.ledger.marks import mark, mark_of
from relaxdp.ledger.rows import METADATA
from relaxdp.ledger.store import SCHEMA, describe_other_version
from relaxdp.storage.database import sqlite_engine

# A commit is on disk before it returns; `fullfsync` says so to macOS, where a sync alone does not.
PRAGMAS = ("synchronous = FULL", "fullfsync = ON")

_UNFINISHED = ".relaxdp-unfinished"

# What happened stays, and so does whom it happened to.
GUARDS = tuple(
    f"CREATE TRIGGER {table}_no_{deed.lower()} BEFORE {deed} ON {table} "
    f"BEGIN SELECT RAISE(ABORT, '{table} is append-only'); END"
    for table, deed in [
        ("ledger_event", "UPDATE"),
        ("ledger_event", "DELETE"),
        ("ledger_path", "DELETE"),
        ("ledger_subject", "DELETE"),
    ]
)

_SENTENCES: dict[int, tuple[type[LedgerError], str]] = {
    sqlite3.SQLITE_READONLY: (LedgerAccessError, "may not be written"),
    sqlite3.SQLITE_CANTOPEN: (LedgerAccessError, "cannot be opened: it is gone, or it or its folder is not accessible"),
    sqlite3.SQLITE_PERM: (LedgerAccessError, "may not be accessed"),
    sqlite3.SQLITE_AUTH: (LedgerAccessError, "may not be accessed"),
    sqlite3.SQLITE_IOERR: (LedgerFullError, "cannot be read or written: the disk fails, or has no room for it"),
    sqlite3.SQLITE_FULL: (LedgerFullError, "cannot be written: the disk is full"),
    sqlite3.SQLITE_CORRUPT: (LedgerDamagedError, "is damaged"),
    sqlite3.SQLITE_NOTADB: (LedgerDamagedError, "is damaged, or is no ledger"),
}


class SqliteStore:
    """A file that only its owner can read, with a write-ahead log beside it.

    Connections live for one transaction. None is open when a process forks, and none crosses threads: SQLite's
    locks survive neither.
    """

    def __init__(self, path: str | os.PathLike[str], *, timeout: float) -> None:
        # Resolved once: neither a link nor a later change of the working folder may lead to a second ledger.
        self._path = Path(path).resolve()
        self._timeout = timeout
        self._engine: Engine | None = _engine(self._path, timeout)
        self._is_known = False

    def prepare(self, *, create: bool) -> None:
        """Check that the file is whole and of this version; a new one is begun by the first write."""
        if self._is_there():
            return
        self._refuse_lost()
        if not create and not self._is_there():
            raise self._error(LedgerAccessError, "does not exist")
        with self._folder():
            if not os.access(self._path.parent, os.W_OK | os.X_OK):
                raise self._error(LedgerAccessError, "cannot be created: Permission denied")

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """Look at one snapshot."""
        with self._transaction() if self._is_there() else self._nothing() as connection:
            yield connection

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """Take the one write lock before looking, so that what was checked still holds when it is written."""
        if not self._is_there():
            with self._folder():
                if not self._is_there():  # otherwise another process was faster
                    self._refuse_lost()
                    with self._beginning() as connection:
                        yield connection
                    return
        self._mark()
        with self._transaction(immediate=True) as connection:
            yield connection

    def close(self) -> None:
        """Refuse further use."""
        self._engine = None

    def problem(self, what: str) -> LedgerError:
        """Return the error for content that no ledger has written."""
        return self._error(LedgerDamagedError, f"is damaged: {what}")

    def address(self) -> str:
        """Return the name of the file, from the root."""
        return str(self._path)

    def copy_to(self, target: Path) -> None:
        """Write one snapshot to a new private file, by SQLite's own backup."""
        os.close(os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
        with self._transaction() as connection, contextlib.closing(sqlite3.connect(target)) as copy:
            plain: Any = connection.connection.dbapi_connection
            plain.backup(copy)

    def absence(self) -> str:
        """Say that nothing has happened in it yet."""
        name = repr(str(self._path))
        return f"the ledger {name} is empty" if self._is_known else f"there is no ledger {name}"

    def _is_there(self) -> bool:
        """Return whether it was begun. One that others began meanwhile is looked at like one that was there before."""
        if not self._is_known and self._path.exists():
            self._check()
            self._is_known = True
        return self._is_known

    def _check(self) -> None:
        if not self._path.is_file():
            raise self._error(LedgerAccessError, "is not a file")
        status = self._path.stat()
        if status.st_size == 0:  # we never leave an empty file: somebody cut it
            raise self._error(LedgerDamagedError, "is empty, so it is damaged")
        if status.st_nlink > 1:
            raise self._error(LedgerAccessError, "has a second name (a hard link), under which it could be changed")
        with self._transaction() as connection:
            # SQLite fills up a last page that was cut with zeros; a log may still hold the rest of it.
            log, page = Path(f"{self._path}-wal"), connection.exec_driver_sql("PRAGMA page_size").scalar_one()
            cut = status.st_size % page and not (log.exists() and log.stat().st_size)
            if cut or connection.exec_driver_sql("PRAGMA quick_check(1)").scalar() != "ok":
                raise self._error(LedgerDamagedError, "is damaged")
            self._check_version(SCHEMA.read_version(connection))

    def _refuse_lost(self) -> None:
        """Refuse to begin a second ledger in the place of one that was begun: it would forget what was spent."""
        beside, log = mark_of(self._path), Path(f"{self._path}-wal")
        marked, logged = beside.exists(), log.exists()
        if self._path.exists():  # another process has just begun it; the file was there before its mark and its log
            return
        if marked:
            raise self._error(
                LedgerAccessError,
                f"is gone: one was begun here ({beside.name!r} says so), and a new one would forget what was spent. "
                "Restore it, or make it anew as docs/ledger.md says",
            )
        if logged:
            raise self._error(LedgerDamagedError, "is gone, but its log (-wal) is still there")

    def _mark(self) -> None:
        try:
            mark(self._path)
        except PrivateFileError as problem:
            beside = mark_of(self._path).name
            raise self._error(LedgerAccessError, f"cannot be used: its mark {beside!r} {problem}") from None

    def _check_version(self, version: object) -> None:
        if version is None:
            raise self._error(LedgerDamagedError, "is a database, but no ledger")
        if version != SCHEMA.version:
            raise self._error(LedgerVersionError, describe_other_version(version), version=version)

    @contextmanager
    def _transaction(self, **options: Any) -> Iterator[Connection]:
        if self._engine is None:
            raise self._error(LedgerAccessError, "was closed")
        with self._translated(), self._engine.connect() as plain:
            connection = plain.execution_options(**options)
            with connection.begin():
                yield connection

    @contextmanager
    def _nothing(self) -> Iterator[Connection]:
        """Look at a ledger in which nothing has happened; there is no file of it yet."""
        if self._engine is None:
            raise self._error(LedgerAccessError, "was closed")
        with create_engine("sqlite://", poolclass=NullPool).connect() as connection:
            METADATA.create_all(connection)
            yield connection

    @contextmanager
    def _folder(self) -> Iterator[None]:
        """Hold the folder against others who want to begin this ledger."""
        with contextlib.ExitStack() as stack:
            try:
                stack.enter_context(locked_folder(self._path.parent))
            except PrivateFileError as problem:
                raise self._error(LedgerAccessError, f"cannot be created: its folder {problem}") from None
            yield

    @contextmanager
    def _beginning(self) -> Iterator[Connection]:
        """Write the whole ledger, with what happens first, under another name and move it here.

        So nobody ever sees a half-made or an empty one, and nothing is left where the first charge is refused.
        """
        if self._engine is None:
            raise self._error(LedgerAccessError, "was closed")
        self._sweep()
        with self._created():
            descriptor, name = tempfile.mkstemp(_UNFINISHED, f".{self._path.name}.", self._path.parent)
        os.close(descriptor)
        made = Path(name)
        try:
            with self._translated(), _engine(made, self._timeout).connect() as plain:
                connection = plain.execution_options(immediate=True)
                with connection.begin():
                    SCHEMA.create(connection)
                    for statement in GUARDS:
                        connection.exec_driver_sql(statement)
                    yield connection
                # Outside of a transaction, and after everything else: from here on readers do not wait.
                connection.connection.cursor().execute("PRAGMA journal_mode = WAL")
            with self._created():
                made.replace(self._path)
                sync_folder(self._path.parent)
            self._is_known = True
            self._mark()
        finally:
            for suffix in ("", "-wal", "-shm", "-journal"):
                Path(f"{made}{suffix}").unlink(missing_ok=True)

    def _sweep(self) -> None:
        """Remove what was left by a process that was killed while it began this ledger: the folder is held."""
        for left in self._path.parent.glob(f".{glob.escape(self._path.name)}.????????{_UNFINISHED}*"):
            with contextlib.suppress(OSError):
                if left.lstat().st_uid == os.geteuid():
                    left.unlink()

    @contextmanager
    def _created(self) -> Iterator[None]:
        try:
            yield
        except OSError as problem:
            raise self._error(LedgerAccessError, f"cannot be created: {problem.strerror}") from None

    @contextmanager
    def _translated(self) -> Iterator[None]:
        """Turn the database's exceptions into sentences; their own text would show statements and parameters."""
        found: BaseException | None = None
        try:
            yield
        except DBAPIError as problem:
            found = problem.orig
        except sqlite3.Error as problem:
            found = problem
        if found is not None:
            raise self._sentence(found)

    def _sentence(self, problem: BaseException) -> LedgerError:
        code = getattr(problem, "sqlite_errorcode", 0) & 0xFF
        if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
            wait = f"is held by another process, and did not become free within {self._timeout:g} seconds"
            return self._error(LedgerLockedError, wait, timeout=self._timeout)
        kind, what = _SENTENCES.get(code, (LedgerError, "cannot be used"))
        return self._error(kind, what)

    def _error(self, kind: type[LedgerError], what: str, **fields: Any) -> LedgerError:
        return kind("the ledger {path!r} {what}.", what=what, path=str(self._path), **fields)


def _engine(path: Path, timeout: float) -> Engine:
    return sqlite_engine(path, pragmas=PRAGMAS, timeout=timeout, poolclass=NullPool)
