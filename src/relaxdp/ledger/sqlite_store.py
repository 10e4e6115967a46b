"""The ledger as one SQLite file, by the standard library's sqlite3."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

from relaxdp.errors import LedgerError
from relaxdp.ledger.ledger import LOCKED, UNCERTAIN, StoredEvent, StoreProblem
from relaxdp.sampling.private_file import sync_folder

APPLICATION_ID = int.from_bytes(b"rxdp")
VERSION = 1

# With a rollback journal, EXTRA also syncs the folder after the journal is deleted: only then is a commit durable.
# `fullfsync` does the same on macOS, where a plain sync does not reach the disk.
PRAGMAS = ("synchronous = EXTRA", "fullfsync = ON")

SCHEMA = (
    "CREATE TABLE event (number INTEGER PRIMARY KEY, content TEXT NOT NULL, digest TEXT NOT NULL)",
    *(
        f"CREATE TRIGGER event_no_{verb.lower()} BEFORE {verb} ON event "
        "BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END"
        for verb in ("UPDATE", "DELETE")
    ),
    f"PRAGMA application_id = {APPLICATION_ID}",
    f"PRAGMA user_version = {VERSION}",
)


_RESTORE = "Restore it from a backup of the vault."
_RIGHTS = "Check the owner and the mode of the file and of its folder."
_SPACE = "Free some space, and run the command again."
_DAMAGED = StoreProblem(LedgerError, "is damaged", _RESTORE)
_NO_LEDGER = StoreProblem(LedgerError, "is damaged, or is not a ledger", _RESTORE)
_MISSING = StoreProblem(
    LedgerError,
    "is missing",
    "Restore it from a backup of the vault. A new ledger would not contain the epsilon spent.",
)
_LINKED = StoreProblem(
    LedgerError, "has a second name (a hard link), under which it could be changed", "Remove the other name."
)
_OTHER = StoreProblem(LedgerError, "cannot be used", "Run the command again.")
_PROBLEMS = {
    0: _DAMAGED,  # Python's own errors have no code: text in the file is not UTF-8.
    sqlite3.SQLITE_ERROR: _DAMAGED,  # A table is missing, or has other columns.
    sqlite3.SQLITE_CONSTRAINT: _DAMAGED,
    sqlite3.SQLITE_CORRUPT: _DAMAGED,
    sqlite3.SQLITE_NOTADB: _NO_LEDGER,
    sqlite3.SQLITE_READONLY: StoreProblem(LedgerError, "cannot be written: it is read-only", _RIGHTS),
    sqlite3.SQLITE_CANTOPEN: StoreProblem(LedgerError, "cannot be opened", _RIGHTS),
    sqlite3.SQLITE_PERM: StoreProblem(LedgerError, "cannot be opened: permission denied", _RIGHTS),
    sqlite3.SQLITE_AUTH: StoreProblem(LedgerError, "cannot be opened: permission denied", _RIGHTS),
    sqlite3.SQLITE_FULL: StoreProblem(LedgerError, "cannot be written: the disk is full", _SPACE),
    sqlite3.SQLITE_IOERR: StoreProblem(LedgerError, "cannot be read or written: the disk is full or fails", _SPACE),
}


class SqliteStore:
    """A file that only its owner can read.

    A connection is open during one transaction only: SQLite's locks survive neither a fork nor another open and close
    of the file in the same process.
    """

    def __init__(self, path: str | os.PathLike[str], *, timeout: float = 30.0) -> None:
        # Resolved once, so that a link or another working folder later leads to the same file and journal.
        self._path, self._timeout = Path(path).resolve(), timeout

    @property
    def address(self) -> str:
        """The absolute path of the file."""
        return str(self._path)

    @contextmanager
    def begin_creation(self) -> Iterator[_SqliteEvents]:
        """Create the file with mode 0600, and its tables and first events in one transaction."""
        try:
            os.close(os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
        except FileExistsError:
            raise LedgerError(
                "The ledger {path!r} exists already.",
                hint="Open the vault instead of creating it, or choose another path.",
                path=self.address,
            ) from None
        except OSError as problem:
            raise LedgerError(
                "The ledger {path!r} cannot be created: {why}.",
                hint="Choose a folder that exists and that you can write to.",
                path=self.address,
                why=problem.strerror,
            ) from None
        try:
            with self._open_transaction("BEGIN IMMEDIATE") as connection:
                for statement in SCHEMA:
                    connection.execute(statement)
                yield _SqliteEvents(connection)
            sync_folder(self._path.parent)
        except BaseException:
            for made in (self._path, Path(f"{self._path}-journal")):
                with suppress(OSError):
                    made.unlink()
            raise

    @contextmanager
    def begin_read(self) -> Iterator[_SqliteEvents]:
        """Show one consistent state."""
        with self._open_transaction("BEGIN") as connection:
            self._check_file(connection)
            yield _SqliteEvents(connection)

    @contextmanager
    def begin_write(self) -> Iterator[_SqliteEvents]:
        """Take the write lock before reading, so that a decision still holds when it is written."""
        with self._open_transaction("BEGIN IMMEDIATE") as connection:
            self._check_file(connection)
            yield _SqliteEvents(connection)

    def _check_file(self, connection: sqlite3.Connection) -> None:
        try:
            links = self._path.stat().st_nlink
        except OSError:
            raise self._make_error(_MISSING) from None
        if links > 1:
            raise self._make_error(_LINKED)
        [(application,)], [(version,)] = (
            connection.execute(f"PRAGMA {name}").fetchall() for name in ("application_id", "user_version")
        )
        if application != APPLICATION_ID:
            raise self._make_error(_NO_LEDGER)
        if version != VERSION:
            raise LedgerError(
                "The ledger {path!r} has version {version}, and this version of relaxdp needs {needed}.",
                hint="Use the version of relaxdp that created it.",
                path=self.address,
                version=version,
                needed=VERSION,
            )

    @contextmanager
    def _open_transaction(self, begin: str) -> Iterator[sqlite3.Connection]:
        """Run one transaction, and turn the errors of SQLite into sentences: their own text can show statements."""
        found, committing = None, False
        try:
            # With `mode=rw` a missing file is an error, and not a new empty ledger.
            uri = f"{self._path.as_uri()}?mode=rw"
            with closing(sqlite3.connect(uri, uri=True, timeout=self._timeout, isolation_level=None)) as connection:
                for pragma in PRAGMAS:
                    connection.execute(f"PRAGMA {pragma}")
                connection.execute(begin)
                yield connection
                committing = True
                connection.execute("COMMIT")
                committing = False
        except sqlite3.Error as problem:
            found = problem
        if found is not None:
            raise self._translate_error(found, committing and begin != "BEGIN")

    def _translate_error(self, problem: sqlite3.Error, committing: bool) -> LedgerError:
        code = getattr(problem, "sqlite_errorcode", 0) & 0xFF
        if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
            return self._make_error(LOCKED)
        # The commit is the deletion of the journal: if an input or output error hides that, nothing is known.
        if committing and code == sqlite3.SQLITE_IOERR:
            return self._make_error(UNCERTAIN)
        if code == sqlite3.SQLITE_CANTOPEN and not self._path.exists():
            return self._make_error(_MISSING)
        return self._make_error(_PROBLEMS.get(code, _OTHER))

    def _make_error(self, problem: StoreProblem) -> LedgerError:
        return problem.to_error(self.address, self._timeout)


class _SqliteEvents:
    """The events, within a transaction."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def read_from(self, number: int) -> list[StoredEvent]:
        """Return the events from a number on, in ascending order."""
        select = "SELECT number, content, digest FROM event WHERE number >= ? ORDER BY number"
        return self._connection.execute(select, (number,)).fetchall()

    def add(self, number: int, content: str, digest: str) -> None:
        """Store the next event."""
        self._connection.execute("INSERT INTO event VALUES (?, ?, ?)", (number, content, digest))
