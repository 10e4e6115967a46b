"""The schema of the service: a service that starts creates all tables, on both stores."""

from __future__ import annotations

from pathlib import Path

import pytest
from sqlalchemy import inspect
from tests.servers.collectors import STORES, running, url_of

from relaxdp.collector import schema as collector
from relaxdp.market import schema as market
from relaxdp.service.schema import METADATA, SCHEMA
from relaxdp.storage.database import Database


@pytest.mark.parametrize("store", STORES)
def test_a_service_creates_the_tables_of_all_its_parts(
    store: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    assert collector.REPORTS.metadata is market.MEMBERS.metadata is METADATA
    url = url_of(store, request)
    with running(url, tmp_path):
        pass
    database = Database(url)
    with database.reading() as connection:
        assert set(inspect(connection).get_table_names()) == set(METADATA.tables)
        assert SCHEMA.read_version(connection) == SCHEMA.version
    database.close()
