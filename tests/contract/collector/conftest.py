"""A database, and a server on it, for the tests of a module: once on each store."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.servers.collectors import STORES, Running, running

from relaxdp.service.schema import SCHEMA
from relaxdp.storage.database import Database


@pytest.fixture(scope="module", params=STORES)
def address(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path_factory.mktemp('collector')}/service.db"
        return
    postgres = request.getfixturevalue("postgres")
    name = postgres.database()
    yield postgres.url(name)
    postgres.give_back(name)


@pytest.fixture(scope="module")
def database(address: str) -> Iterator[Database]:
    made = Database(address)
    made.prepare(SCHEMA)
    yield made
    made.close()


@pytest.fixture(scope="module")
def server(address: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with running(address, tmp_path_factory.mktemp("server")) as started:
        yield started
