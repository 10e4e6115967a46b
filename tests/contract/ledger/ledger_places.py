"""Ledgers of vaults for tests: places of each store, requests to charge, and workers that race or are killed."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import sqlite3
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any, Protocol

import psycopg
import pytest
from tests.patience import PATIENCE, until

from relaxdp.errors import BudgetExceededError, LedgerBusyError
from relaxdp.ledger.account import Account, ReleaseState, make_release_event
from relaxdp.ledger.events import ColumnCharge, ReleaseCharged, VaultCreated
from relaxdp.ledger.ledger import EventStore, Ledger
from relaxdp.ledger.postgres_store import PostgresStore
from relaxdp.ledger.sqlite_store import SqliteStore
from relaxdp.sampling.keys import Key

VAULT = "0123456789abcdef" * 2
KEY = Key.from_bytes(bytes(range(32)))
TIME = datetime(2026, 3, 1, 12, 30, 15, 250, tzinfo=UTC)
FORK = multiprocessing.get_context("fork")


def created(budget: object = 2) -> VaultCreated:
    return VaultCreated(1, TIME, Decimal(str(budget)), "study of 2026", VAULT, KEY.fingerprint)


def request_of(account: Account, name: str = "patients", **changes: Any) -> tuple[ReleaseCharged, ReleaseState | None]:
    """Return an event as a caller plans it: `levels` maps columns to epsilons, everything else is a field."""
    known = changes.pop("expected", account.releases.get(name))
    levels: dict[str, object] = changes.pop("levels", {"diagnosis": "0.5"})
    columns = tuple(
        ColumnCharge(
            column=column, epsilon=Decimal(str(level)), mechanism="categorical", params="ab12",
            description={"values": ["flu", "ärger", None], "weights": [0.5, 2]}, why="two values",
            snapshot=f"{account.number:064x}", known=10, joined=0, left=0, exchanged=0,
        )
        for column, level in levels.items()
    )  # fmt: skip
    given = {"passthrough": ("year",), "passthrough_snapshot": "cd", "rows": 1200, **changes}
    draft = {
        "name": name, "action": "release", "id_column": "patient", "id_type": "integer", "columns": columns,
        "accepted_new_rows": False, **given,
    }  # fmt: skip
    return ReleaseCharged(0, TIME, **draft), known


def charge(account: Account, name: str = "patients", **changes: Any) -> ReleaseCharged:
    return make_release_event(account, *request_of(account, name, **changes))


class LedgerPlace(Protocol):
    """A place in which there is no ledger yet."""

    def store(self, timeout: float = PATIENCE) -> EventStore:
        """Return its store."""

    def tamper(self, *statements: str) -> None:
        """Run statements on the table `event`, after the append-only triggers were removed."""

    def run(self, *statements: str) -> list[Any]:
        """Run statements in one transaction, and return the rows of the last one."""

    def hold(self) -> contextlib.AbstractContextManager[None]:
        """Hold the write lock."""

    def settle(self) -> None:
        """Wait until transactions of killed processes have ended."""


class FilePlace:
    """A SQLite file."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def store(self, timeout: float = PATIENCE) -> EventStore:
        return SqliteStore(self.path, timeout=timeout)

    def run(self, *statements: str) -> list[Any]:
        with contextlib.closing(sqlite3.connect(self.path)) as database, database:
            return [database.execute(statement).fetchall() for statement in statements][-1]

    def tamper(self, *statements: str) -> None:
        self.run("DROP TRIGGER event_no_update", "DROP TRIGGER event_no_delete", *statements)

    @contextlib.contextmanager
    def hold(self) -> Iterator[None]:
        with contextlib.closing(sqlite3.connect(self.path, isolation_level=None)) as holder:
            holder.execute("BEGIN IMMEDIATE")
            yield

    def settle(self) -> None:
        return


class DatabasePlace:
    """A PostgreSQL database."""

    def __init__(self, url: str) -> None:
        self.url = url

    def store(self, timeout: float = PATIENCE) -> EventStore:
        return PostgresStore(self.url, VAULT, timeout=timeout)

    def run(self, *statements: str) -> list[Any]:
        with psycopg.connect(self.url) as database:
            for statement in statements:
                done = database.execute(statement.replace(" event", " relaxdp_ledger_v1").encode())
            return done.fetchall() if done.description else []

    def tamper(self, *statements: str) -> None:
        self.run("ALTER TABLE event DISABLE TRIGGER USER", *statements)

    @contextlib.contextmanager
    def hold(self) -> Iterator[None]:
        store = PostgresStore(self.url, VAULT)
        with store.begin_transaction("write"):
            yield

    def settle(self) -> None:
        others = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid != pg_backend_pid()"
        until(lambda: self.run(others) == [(0,)])


def make_place(store: str, request: pytest.FixtureRequest) -> LedgerPlace:
    if store == "sqlite":
        folder: Path = request.getfixturevalue("tmp_path")
        return FilePlace(folder / "ledger.db")
    make: Callable[[], str] = request.getfixturevalue("postgres_url")
    return DatabasePlace(make())


def spend(ledger: Ledger, name: str, level: object) -> bool:
    """Charge a level, planned by a look at the ledger; return whether the budget allowed it."""
    while True:
        planned = request_of(ledger.read_account(), name, levels={"diagnosis": level, "age": level})
        try:
            ledger.append_event(lambda account: make_release_event(account, *planned))  # noqa: B023
        except LedgerBusyError:
            continue
        except BudgetExceededError:
            return False
        return True


def spend_at_once(ledger: Ledger, worker: int, start: Any, results: Any) -> None:
    """Spend 0.1 four times as soon as all workers are ready: on a shared name, then on names of one's own."""
    start.wait()
    names = ["shared", f"{worker}-1", f"{worker}-2", f"{worker}-3"]
    results.put(sum(spend(ledger, name, "0.05") for name in names))


def spend_forever(ledger: Ledger, worker: int, log: str) -> None:
    """Charge a little more again and again, and acknowledge each charge after it returned."""
    descriptor = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    while True:
        known = ledger.read_account().releases.get(str(worker))
        level = (Decimal(0) if known is None else known.columns["age"].largest) + Decimal("0.001")
        assert spend(ledger, str(worker), level)
        os.write(descriptor, f"{worker} {level}\n".encode())
