"""The schema of the service: migrations lead to it, and databases made before go on, on both stores."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from hashlib import sha256
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import select, text
from tests.servers.collectors import STORES

from relaxdp.collector import campaigns, reports, states
from relaxdp.collector.campaign import Campaign
from relaxdp.collector.definition import complete
from relaxdp.collector.ingest import Item, ingest
from relaxdp.collector.report_routes import read_device
from relaxdp.collector.schema import REPORTS, WITHDRAWN
from relaxdp.collector.wire import CampaignRequest, EncodingRequest, LevelRequest
from relaxdp.ledger import store as ledger
from relaxdp.market import schema as market
from relaxdp.service.database import Database
from relaxdp.service.migrate import MIGRATIONS, VERSION_TABLE, VERSIONS, version_of
from relaxdp.service.schema import METADATA


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


def begin_at(database: Database, version: str) -> None:
    """Make the database of an earlier version."""
    with database.writing() as connection:
        ledger.migrate(connection, folder=MIGRATIONS, table=VERSION_TABLE, last=version)


def test_migrations_lead_to_the_schema(database: Database) -> None:
    database.prepare()
    assert market.MEMBERS.metadata is METADATA  # its tables are there too
    with database.reading() as connection:
        context = MigrationContext.configure(connection, opts={"version_table": VERSION_TABLE})
        assert compare_metadata(context, METADATA) == []
        assert version_of(connection) == VERSIONS[-1]


def test_all_versions_are_known_and_in_order() -> None:
    script = ScriptDirectory(MIGRATIONS)
    assert tuple(step.revision for step in reversed(list(script.walk_revisions()))) == VERSIONS


def test_pseudonyms_of_earlier_versions_become_digests(database: Database) -> None:
    """Reports, withdrawals and counts stay those of the same devices, and nothing is left of a pseudonym."""
    begin_at(database, "0002")
    asked = CampaignRequest("q", EncodingRequest("categorical", ["a", "b"]), [LevelRequest("1")])
    old = text("INSERT INTO collector_report (campaign, device, level, report) VALUES (:campaign, :device, :level, :r)")
    names = [sha256(bytes([number])).digest()[:16] for number in range(200)]
    with database.writing() as connection:
        made = [campaigns.create(connection, Campaign(0, complete(asked)), now=0.0) for _ in range(2)]
        for campaign in made:
            for place, name in enumerate(names):
                level, kept = (WITHDRAWN, b"") if place == 7 else (0, bytes([place % 2]))
                connection.execute(old, {"campaign": campaign.number, "device": name, "level": level, "r": kept})
    database.prepare()
    database.prepare()  # and once is enough
    for campaign in made:
        devices = [read_device(campaign, name.hex()) for name in names]
        with database.writing() as connection:
            known = reports.find(connection, campaign.number, devices)
            assert [known[device] for device in devices] == [
                {WITHDRAWN: b""} if place == 7 else {0: bytes([place % 2])} for place in range(200)
            ]
            items = [Item(device, 0, bytes([place % 2])) for place, device in enumerate(devices)]
            ingest(connection, campaign, items, now=0.0)
            assert {item.outcome for item in items[:7] + items[8:]} == {"same"}
            assert items[7].outcome == "device_withdrawn"
            assert states.look(connection, campaign.number).differing == 0
    with database.reading() as connection:
        assert len(connection.execute(select(REPORTS)).all()) == 400
    if database.is_sqlite:
        file = Path(database.address.name)
        files = b"".join(each.read_bytes() for each in file.parent.iterdir())
        assert read_device(made[0], names[0].hex()) in files
        assert not [name for name in names if name in files], "a row that was dropped is overwritten, in the log too"
