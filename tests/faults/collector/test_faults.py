"""A collector that is killed, stopped, starved and flooded: nothing that it acknowledged is lost, and it goes on."""

from __future__ import annotations

import os
import random
import resource
import time
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import missing
from tests.faults.collector.collector_load import Load, check_nothing_lost
from tests.patience import until
from tests.servers.collectors import STORES, running, url_of

pytestmark = pytest.mark.long

ROUNDS = min(50, int(os.environ.get("RELAXDP_FAULTS", "3")))


@pytest.fixture(params=STORES)
def url(request: pytest.FixtureRequest) -> str:
    return url_of(request.param, request)


def test_killed_under_load(url: str, tmp_path: Path) -> None:
    """kill -9 at random instants; what was acknowledged is there afterwards, and counted once."""
    chance = random.Random(1)
    with running(url, tmp_path, "--no-request-log") as server:
        campaign = server.create()
        assert server.ask("POST", f"/v1/campaigns/{campaign['id']}/relax", operator=True).status == 200
        load = Load(server, campaign)
        for number in range(ROUNDS):
            if number:
                server.start()
            before = load.requests
            load.start()
            until(lambda: load.requests > before + 3)  # noqa: B023
            time.sleep(chance.uniform(0, 0.5))
            server.kill()
            load.stop()
            assert load.requests > before
        server.start()
        stored = check_nothing_lost(url, campaign["id"], load)
        found = server.ask("GET", f"/v1/campaigns/{campaign['id']}/estimate", operator=True).json
        assert found["devices"] > 0
        print(f"\n{ROUNDS} kills, {load.requests} requests, {len(load.acknowledged)} acknowledged, {stored} stored")


def test_stopped_under_load(url: str, tmp_path: Path) -> None:
    """Asked to stop, it answers what it took, and exits in good order."""
    with running(url, tmp_path, "--no-request-log") as server:
        campaign = server.create()
        server.ask("POST", f"/v1/campaigns/{campaign['id']}/relax", operator=True)
        load = Load(server, campaign)
        load.start()
        until(lambda: load.requests > 20)
        assert server.stop() == 0
        load.stop()
        check_nothing_lost(url, campaign["id"], load)
        assert "Traceback" not in server.log.read_text("utf-8")


def test_two_services_on_one_database(url: str, tmp_path: Path) -> None:
    """Both take reports of one campaign; one is killed, and nothing is lost or counted twice."""
    with running(url, tmp_path, "--no-request-log") as one, running(url, tmp_path, "--no-request-log") as other:
        campaign = one.create()
        assert one.ask("POST", f"/v1/campaigns/{campaign['id']}/relax", operator=True).status == 200
        loads = [Load(server, campaign) for server in (one, other)]
        for load in loads:
            load.start()
        assert until(lambda: all(load.requests > 20 for load in loads))
        other.kill()
        before = loads[0].requests
        assert until(lambda: loads[0].requests > before + 20)
        for load in loads:
            load.stop()
        for load in loads:
            check_nothing_lost(url, campaign["id"], load)


def test_the_database_goes_away_and_comes_back(postgres: Any, tmp_path: Path) -> None:
    if not hasattr(postgres, "stop"):
        missing("the server of DATABASE_URL is not ours to stop")
    name = postgres.database()
    with running(postgres.url(name), tmp_path, "--no-request-log") as server:
        campaign = server.create()
        report = {"device": "0" * 32, "level": campaign["levels"][0], "report": "yes"}
        address = f"/v1/campaigns/{campaign['id']}/reports"
        assert server.ask("POST", address, report).status == 200
        postgres.stop("crash")
        try:
            away = server.ask("POST", address, {**report, "device": "1" * 32})
            assert (away.status, away.error, away.headers["retry-after"]) == (503, "storage_unavailable", "2")
            assert postgres.password not in away.body.decode()
            assert server.ask("GET", "/healthz").status == 503
        finally:
            postgres.start()
        assert until(lambda: server.ask("POST", address, {**report, "device": "1" * 32}).status == 200)
        assert server.ask("POST", address, report).json == {"status": "same"}
        assert postgres.password not in server.log.read_text("utf-8")
    postgres.give_back(name)


def test_a_client_that_asks_too_often(tmp_path: Path) -> None:
    with running(f"sqlite:///{tmp_path}/service.db", tmp_path, "--rate", "1", "--burst", "10") as server:
        answers = [server.ask("GET", "/healthz") for _ in range(30)]
        refused = [answer for answer in answers if answer.status == 429]
        assert refused
        assert refused[0].error == "too_many_requests"
        assert refused[0].headers["retry-after"] == "1"
        # Nobody trusts the header of a stranger.
        assert any(server.ask("GET", "/healthz", x_forwarded_for=f"10.0.0.{n}").status == 429 for n in range(30))


def test_a_full_disk_is_said_and_survived(tmp_path: Path) -> None:
    """No file may grow: 503, and nothing half-stored. With room again it goes on."""
    place = tmp_path / "service.db"
    with running(f"sqlite:///{place}", tmp_path, "--no-request-log") as server:
        campaign = server.create()
        assert place.stat().st_mode & 0o077 == 0
        server.ask("POST", f"/v1/campaigns/{campaign['id']}/relax", operator=True)
        load = Load(server, campaign)
        load.start()
        until(lambda: load.requests > 20)
        assert server.process is not None
        limits = resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE)
        resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE, (4096, limits[1]))
        report = {"device": "0" * 32, "level": campaign["levels"][0], "report": "yes"}
        full = server.ask("POST", f"/v1/campaigns/{campaign['id']}/reports", report)
        assert (full.status, full.error) == (503, "storage_unavailable")
        resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE, limits)
        before = load.requests
        assert until(lambda: load.requests > before + 20)
        load.stop()
        check_nothing_lost(f"sqlite:///{place}", campaign["id"], load)
