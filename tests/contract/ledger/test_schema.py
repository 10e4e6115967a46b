"""The tables of a ledger, and how the store guards what happened."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import psycopg
import pytest
from tests.faults.ledger.ledger_work import FACTS, path
from tests.patience import PATIENCE
from tests.refusals import refused
from tests.servers.ledgers import STORES, TABLES, Place, SqlitePlace, place_of

from relaxdp.errors import LedgerAccessError
from relaxdp.ledger.entries import Subject
from relaxdp.ledger.ledger import Ledger
from relaxdp.ledger.store import SCHEMA, store_of


@pytest.fixture(params=STORES)
def place(request: pytest.FixtureRequest) -> Place:
    found = place_of(request.param, request)
    Ledger.open(found.where).charge(Subject.population("x"), path("a"), FACTS, 1, budget=1)
    return found


def test_the_version_is_stored(place: Place) -> None:
    with store_of(place.where, timeout=PATIENCE).reading() as connection:
        assert SCHEMA.read_version(connection) == SCHEMA.version


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE ledger_event SET cost = '0'",
        "DELETE FROM ledger_event",
        "DELETE FROM ledger_path",
        "DELETE FROM ledger_subject",
        "TRUNCATE ledger_event",
        "TRUNCATE ledger_path, ledger_subject",
        "DELETE FROM ledger_version",
        "SET LOCAL session_replication_role = replica; UPDATE ledger_event SET cost = '0'",
    ],
)
def test_what_happened_cannot_be_changed(place: Place, statement: str) -> None:
    if isinstance(place, SqlitePlace) and (
        "TRUNCATE" in statement or "version" in statement or "SET LOCAL" in statement
    ):
        return  # there is no such statement; and the version is not what a writer holds
    with pytest.raises((sqlite3.IntegrityError, psycopg.IntegrityError), match="is append-only"):
        place.run(statement)


def test_amounts_are_text(place: Place) -> None:
    typeof = "typeof" if isinstance(place, SqlitePlace) else "pg_typeof"
    for columns, table in [("epsilon cost", "event"), ("largest", "path"), ("budget", "subject")]:
        shown = ", ".join(f"CAST({typeof}({column}) AS text)" for column in columns.split())
        there = " AND ".join(f"{column} != ''" for column in columns.split())
        assert place.run(f"SELECT {shown} FROM ledger_{table} WHERE {there}") == [("text",) * len(columns.split())]


def test_a_file_has_a_write_ahead_log_and_every_commit_is_synced(tmp_path: Path) -> None:
    place = tmp_path / "ledger.db"
    for _ in ("the commit that begins the file", "one after it"):
        with store_of(str(place), timeout=1).writing() as connection:
            synced = [connection.exec_driver_sql(f"PRAGMA {name}").scalar() for name in ("synchronous", "fullfsync")]
            assert synced == [2, 1]  # FULL, and on macOS down to the disk itself
    assert SqlitePlace(place).run("PRAGMA journal_mode") == [("wal",)]


def test_the_tables_are_all_there_is(place: Place) -> None:
    """So that a person can see what belongs to the ledger, and so that others can live beside it."""
    every = "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'"
    if not isinstance(place, SqlitePlace):
        every = "SELECT relname FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'S')"
    assert {name for (name,) in place.run(every)} == {f"ledger_{table}" for table in TABLES}


def test_a_url_names_the_same_ledger(tmp_path: Path) -> None:
    place = tmp_path / "ledger.db"
    Ledger.open(place).set_budget(Subject.population("x"), 1, reason="by hand")
    assert Ledger.open(f"sqlite:///{place}").history() == Ledger.open(place).history() != []


@pytest.mark.parametrize(
    ("url", "fields"),
    [
        ("mysql://me:secret@host/db", {"scheme": "mysql"}),
        ("postgresql+asyncpg://me:secret@host/db", {"scheme": "postgresql+asyncpg"}),
        ("mysql://me:secret/db", {"says": "cannot be understood"}),
        ("sqlite://", {"says": "would forget"}),
        ("sqlite:///:memory:", {"says": "would forget"}),
        ("sqlite:///x?mode=ro", {"says": "nothing else"}),
        ("://", {"says": "cannot be understood"}),
        (Path("postgresql://me:secret@host/db"), {"says": "cannot be understood"}),
        ("postgresql:/me:secret@host/db", {"says": "cannot be understood"}),
        ("Postgres:/me:secret@host/db", {"says": "cannot be understood"}),
    ],
)
def test_other_urls_are_refused_without_showing_them(url: str | Path, fields: dict[str, Any]) -> None:
    with refused(LedgerAccessError, **fields) as found:
        Ledger.open(url)
    assert "secret" not in str(found.value)
    assert "secret" not in repr(found.value.__context__)
