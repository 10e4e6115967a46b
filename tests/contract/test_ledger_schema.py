"""The schema that the migrations make is the schema that the code uses, and the store guards what happened."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import create_engine

from relaxdp.errors import LedgerAccessError
from relaxdp.ledger.ledger import Ledger
from relaxdp.ledger.migrate import MIGRATIONS, VERSION_TABLE, VERSIONS, version_of
from relaxdp.ledger.paths import PathFacts, PathIdentity
from relaxdp.ledger.schema import METADATA
from relaxdp.ledger.subject import Subject


@pytest.fixture
def place(tmp_path: Path) -> Path:
    Ledger.open(tmp_path / "ledger.db").charge(
        Subject.population("x"), PathIdentity("r", "a"), PathFacts("categorical", "ab", "1", "text", None), 1, budget=1
    )
    return tmp_path / "ledger.db"


def test_migrations_lead_to_the_schema(place: Path) -> None:
    engine = create_engine(f"sqlite:///{place}")
    with engine.connect() as connection:
        context = MigrationContext.configure(connection, opts={"version_table": VERSION_TABLE})
        assert compare_metadata(context, METADATA) == []
        assert version_of(connection) == VERSIONS[-1]
    engine.dispose()


def test_all_versions_are_known_and_in_order() -> None:
    script = ScriptDirectory(MIGRATIONS)
    assert tuple(step.revision for step in reversed(list(script.walk_revisions()))) == VERSIONS


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE ledger_event SET cost = '0'",
        "DELETE FROM ledger_event",
        "DELETE FROM ledger_path",
        "DELETE FROM ledger_subject",
    ],
)
def test_what_happened_cannot_be_changed(place: Path, statement: str) -> None:
    database = sqlite3.connect(place)
    with pytest.raises(sqlite3.IntegrityError, match="is append-only"):
        database.execute(statement)
    database.close()


def test_amounts_are_text(place: Path) -> None:
    database = sqlite3.connect(place)
    assert database.execute("SELECT typeof(epsilon), typeof(cost) FROM ledger_event WHERE cost != ''").fetchall() == [
        ("text", "text")
    ]
    assert database.execute("SELECT typeof(largest) FROM ledger_path").fetchall() == [("text",)]
    assert database.execute("SELECT typeof(budget) FROM ledger_subject").fetchall() == [("text",)]
    assert database.execute("PRAGMA journal_mode").fetchall() == [("wal",)]
    database.close()


def test_a_url_names_the_same_ledger(place: Path) -> None:
    assert Ledger.open(f"sqlite:///{place}").history() == Ledger.open(place).history()


@pytest.mark.parametrize(
    ("url", "sentence"),
    [
        ("postgresql://me:secret@host/db", "cannot be kept in 'postgresql'"),
        ("sqlite://", "would forget"),
        ("sqlite:///:memory:", "would forget"),
        ("sqlite:///x?mode=ro", "nothing else"),
        ("://", "cannot be understood"),
    ],
)
def test_other_urls_are_refused_without_showing_them(url: str, sentence: str) -> None:
    with pytest.raises(LedgerAccessError, match=sentence) as found:
        Ledger.open(url)
    assert "secret" not in str(found.value)
