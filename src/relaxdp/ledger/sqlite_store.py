"""The ledger as one SQLite file, by the standard library's sqlite3."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path

from relaxdp.errors import LedgerError
from relaxdp.ledger.ledger import (
    LOCKED,
    UNCERTAIN,
    EventStore,
    StoredEvents,
    StoreProblem,
    TransactionKind,
    TransactionStep,
)
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
_DAMAGED = StoreProblem("is damaged", _RESTORE)
_NO_LEDGER = StoreProblem("is damaged, or is not a ledger", _RESTORE)
_MISSING = StoreProblem(
    "is missing",
    "Restore it from a backup of the vault. A new ledger would not contain the epsilon spent.",
)
_LINKED = StoreProblem("has a second name (a hard link), under which it could be changed", "Remove the other name.")
_OTHER = StoreProblem("cannot be used", "Run the command again.")
_PROBLEMS = {
    sqlite3.SQLITE_BUSY: LOCKED,
    sqlite3.SQLITE_LOCKED: LOCKED,
    0: _DAMAGED,  # Python's own errors have no code: text in the file is not UTF-8.
    sqlite3.SQLITE_ERROR: _DAMAGED,  # A table is missing, or has other columns.
    sqlite3.SQLITE_CONSTRAINT: _DAMAGED,
    sqlite3.SQLITE_CORRUPT: _DAMAGED,
    sqlite3.SQLITE_NOTADB: _NO_LEDGER,
    sqlite3.SQLITE_READONLY: StoreProblem("cannot be written: it is read-only", _RIGHTS),
    sqlite3.SQLITE_CANTOPEN: StoreProblem("cannot be opened", _RIGHTS),
    sqlite3.SQLITE_PERM: StoreProblem("cannot be opened: permission denied", _RIGHTS),
    sqlite3.SQLITE_AUTH: StoreProblem("cannot be opened: permission denied", _RIGHTS),
    sqlite3.SQLITE_FULL: StoreProblem("cannot be written: the disk is full", _SPACE),
    sqlite3.SQLITE_IOERR: StoreProblem("cannot be read or written: the disk is full or fails", _SPACE),
}


class SqliteStore(EventStore):
    """A store of events in an SQLite file that only its owner can read.

    SQLite's locks survive neither a fork nor another open and close of the file in the same process.
    """

    select = "SELECT number, content, digest FROM event WHERE number >= ? ORDER BY number"
    insert = "INSERT INTO event VALUES (?, ?, ?)"
    database_error = sqlite3.Error

    def __init__(self, path: str | os.PathLike[str], *, timeout: float = 30.0) -> None:
        # Resolved once, so that a link or another working folder later leads to the same file and journal.
        self._path = Path(path).resolve()
        super().__init__(str(self._path), timeout)

    @contextmanager
    def begin_transaction(self, kind: TransactionKind) -> Iterator[StoredEvents]:
        with self._create_file() if kind == "create" else nullcontext(), super().begin_transaction(kind) as events:
            yield events

    @contextmanager
    def _create_file(self) -> Iterator[None]:
        """Create the file with mode 0600, and remove it again on an exception."""
        try:
            os.close(os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
        except FileExistsError:
            raise LedgerError(
                "The ledger {path!r} exists already.",
                hint="Open the vault with rx.Vault(...) or --vault instead of creating it, or choose another path.",
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
            yield
            sync_folder(self._path.parent)
        except BaseException:
            for made in (self._path, Path(f"{self._path}-journal")):
                with suppress(OSError):
                    made.unlink()
            raise

    def _connect(self) -> sqlite3.Connection:
        # With `mode=rw` a missing file is an error, and not a new empty ledger.
        uri = f"{self._path.as_uri()}?mode=rw"
        return sqlite3.connect(uri, uri=True, timeout=self._timeout, isolation_level=None)

    def _begin(self, connection: sqlite3.Connection, kind: TransactionKind) -> None:
        for pragma in PRAGMAS:
            connection.execute(f"PRAGMA {pragma}")
        connection.execute("BEGIN" if kind == "read" else "BEGIN IMMEDIATE")
        if kind != "create":
            self._check_file(connection)
            return
        for statement in SCHEMA:
            connection.execute(statement)

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
            what = f"has version {version}, and this version of relaxdp needs {VERSION}"
            raise self._make_error(StoreProblem(what, "Use the version of relaxdp that created it."))

    def _explain_error(self, error: sqlite3.Error, step: TransactionStep) -> StoreProblem:
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF
        # The commit is the deletion of the journal: if an input or output error hides that, nothing is known.
        if step == "commit" and code == sqlite3.SQLITE_IOERR:
            return UNCERTAIN
        if code == sqlite3.SQLITE_CANTOPEN and not self._path.exists():
            return _MISSING
        return _PROBLEMS.get(code, _OTHER)
