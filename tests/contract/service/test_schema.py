"""The schema of the service: migrations lead to it, on both stores."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from tests.servers.collectors import STORES

from relaxdp.collector import schema as collector
from relaxdp.market import schema as market
from relaxdp.service.schema import METADATA, SCHEMA
from relaxdp.storage.database import Database


@pytest.fixture(params=STORES)
def database(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Database]:
    """A database in which there is nothing yet."""
    if request.param == "sqlite":
        place = tmp_path / "service.db"
        place.touch(0o600)
        made = Database(f"sqlite:///{place}")
    else:
        make: Callable[[], str] = request.getfixturevalue("postgres_url")
        made = Database(make())
    yield made
    made.close()


def test_migrations_lead_to_the_schema(database: Database) -> None:
    database.prepare(SCHEMA)
    assert collector.REPORTS.metadata is market.MEMBERS.metadata is METADATA  # the tables of both are there too
    with database.reading() as connection:
        context = MigrationContext.configure(connection, opts={"version_table": SCHEMA.table})
        assert compare_metadata(context, METADATA) == []
        assert SCHEMA.version_of(connection) == SCHEMA.last


def test_all_versions_are_known_and_in_order() -> None:
    script = ScriptDirectory(SCHEMA.folder)
    assert tuple(step.revision for step in reversed(list(script.walk_revisions()))) == SCHEMA.versions
