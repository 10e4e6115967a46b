"""Places for a ledger, one of each store, with what a test needs beside the ledger itself."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Protocol

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict
from tests.patience import until

STORES = ["sqlite", "postgres"]
LONG_STORES = ["sqlite", pytest.param("postgres", marks=pytest.mark.long)]
"""For tests that take long on PostgreSQL, or try what is decided before a store is asked."""


class Place(Protocol):
    """Where a ledger may be. `where` is what `Ledger.open` takes, `name` how its messages call it."""

    where: str
    name: str

    def run(self, *statements: str) -> list[Any]:
        """Run statements behind the ledger's back, in one transaction; return the rows of the last."""

    def tamper(self, *statements: str) -> None:
        """The same, as somebody who first removed the guards."""

    def hold(self) -> contextlib.AbstractContextManager[None]:
        """Hold it, as a writer does."""

    def settle(self) -> None:
        """Wait until nothing that was begun by a process that is gone can still happen."""


class SqlitePlace:
    """A file."""

    def __init__(self, where: Path) -> None:
        self.where = self.name = str(where)

    def run(self, *statements: str) -> list[Any]:
        with contextlib.closing(sqlite3.connect(self.where)) as database, database:
            return [database.execute(statement).fetchall() for statement in statements][-1]

    def tamper(self, *statements: str) -> None:
        guards = self.run("SELECT name FROM sqlite_master WHERE type = 'trigger'")
        self.run(*(f"DROP TRIGGER {name}" for (name,) in guards), *statements)

    @contextlib.contextmanager
    def hold(self) -> Iterator[None]:
        with contextlib.closing(sqlite3.connect(self.where, isolation_level=None)) as holder:
            holder.execute("BEGIN IMMEDIATE")
            yield
            holder.execute("ROLLBACK")

    def settle(self) -> None:
        return


class PostgresPlace:
    """A database."""

    def __init__(self, url: str) -> None:
        self.where = url
        self.parameters: dict[str, Any] = dict(conninfo_to_dict(url))
        self.name = "postgresql://{user}@{host}/{dbname}".format(**self.parameters)

    def connect(self) -> psycopg.Connection[Any]:
        return psycopg.connect(**self.parameters)

    def run(self, *statements: str) -> list[Any]:
        with self.connect() as database:
            for statement in statements:
                done = database.execute(statement.encode())
            return done.fetchall() if done.description else []

    def tamper(self, *statements: str) -> None:
        self.run(*(f"ALTER TABLE ledger_{each} DISABLE TRIGGER USER" for each in TABLES), *statements)

    @contextlib.contextmanager
    def hold(self) -> Iterator[None]:
        with self.connect() as holder:
            holder.execute("SELECT * FROM ledger_version FOR UPDATE")
            yield
            holder.rollback()

    def settle(self) -> None:
        others = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid != pg_backend_pid()"
        until(lambda: self.run(others) == [(0,)])


TABLES = ("event", "path", "subject", "version")


def place_of(store: str, request: pytest.FixtureRequest) -> Place:
    """Return a new place, in which there is no ledger yet."""
    if store == "sqlite":
        folder: Path = request.getfixturevalue("tmp_path")
        return SqlitePlace(folder / "ledger.db")
    make: Callable[[], str] = request.getfixturevalue("postgres_url")
    return PostgresPlace(make())
