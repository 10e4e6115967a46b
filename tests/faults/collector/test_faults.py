"""A collector that is killed, stopped, starved and flooded: nothing that it acknowledged is lost, and it goes on."""

from __future__ import annotations

import contextlib
import os
import random
import resource
import select
import signal
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import missing
from tests.faults.collector.collector_load import Load, check_nothing_lost
from tests.patience import PATIENCE, until
from tests.servers.collectors import STORES, Running, running, url_of
from tests.servers.sockets import read_all

ROUNDS = min(50, int(os.environ.get("RELAXDP_FAULTS", "3")))


@pytest.fixture(params=STORES)
def url(request: pytest.FixtureRequest) -> str:
    return url_of(request.param, request)


@pytest.mark.parametrize("workers", [1, pytest.param(2, marks=pytest.mark.long)])
def test_killed_under_load(url: str, tmp_path: Path, workers: int) -> None:
    """kill -9 at random instants; what was acknowledged is there afterwards, and counted once."""
    chance = random.Random(workers)
    rounds = ROUNDS if workers == 1 else max(1, ROUNDS // 5)
    with running(url, tmp_path, "--workers", str(workers), "--no-request-log") as server:
        campaign = server.create()
        assert server.ask("POST", f"/v1/campaigns/{campaign['id']}/relax", operator=True).status == 200
        load = Load(server, campaign)
        for number in range(rounds):
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
        print(f"\n{rounds} kills, {load.requests} requests, {len(load.acknowledged)} acknowledged, {stored} stored")


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


@pytest.mark.parametrize("workers", [2, pytest.param(3, marks=pytest.mark.long)])
def test_several_workers_start_together_and_share_one_duty(
    url: str, tmp_path: Path, workers: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = tmp_path / "files"
    files.mkdir()
    monkeypatch.setenv("TMPDIR", str(files))
    with running(url, tmp_path, "--workers", str(workers), "--no-request-log") as server:
        campaign = server.create()
        server.ask("POST", f"/v1/campaigns/{campaign['id']}/relax", operator=True)
        load = Load(server, campaign)
        load.start()
        until(lambda: load.requests > 30)
        load.stop()
        check_nothing_lost(url, campaign["id"], load)
        # Every worker counts for itself; whichever is asked adds them up, also those of a worker that died.
        counted = until(lambda: (found := _requests(server)) >= load.requests and found)
        killed = _workers(server)[0]
        os.kill(killed, signal.SIGKILL)
        assert until(lambda: len(found := _workers(server)) == workers and killed not in found)
        assert _requests(server) >= counted
        [shared] = files.glob(".relaxdp-metrics*")
        assert shared.stat().st_mode & 0o077 == 0
        assert server.stop() == 0
        assert list(files.iterdir()) == []
        server.start()
        assert _requests(server) == 0


def _workers(server: Running) -> list[int]:
    """Return the processes that serve: besides them the parent has one that tidies up after all."""
    assert server.process is not None
    found = []
    for each in Path(f"/proc/{server.process.pid}/task/{server.process.pid}/children").read_text("utf-8").split():
        with contextlib.suppress(OSError):  # it is gone by now
            if b"spawn_main" in Path(f"/proc/{each}/cmdline").read_bytes():
                found.append(int(each))
    return found


def _requests(server: Running) -> int:
    text = server.ask("GET", "/metrics", operator=True).body.decode()
    lines = [line for line in text.splitlines() if line.startswith("relaxdp_requests_total") and "/reports" in line]
    return sum(int(float(line.rsplit(" ", 1)[1])) for line in lines)


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


@pytest.fixture
def impatient(tmp_path: Path) -> Iterator[Running]:
    """A server with little patience."""
    with running(f"sqlite:///{tmp_path}/service.db", tmp_path, "--idle-seconds", "1.5") as server:
        yield server


def connected(server: Running, number: int, stack: contextlib.ExitStack) -> list[socket.socket]:
    """Open so many connections."""
    place = (server.host, server.port)
    return [stack.enter_context(socket.create_connection(place, timeout=PATIENCE)) for _ in range(number)]


def test_idle_connections_are_told_and_closed(impatient: Running) -> None:
    """A thousand connections that say nothing, or half a request: each gets a 408, and others are served meanwhile."""
    with contextlib.ExitStack() as stack:
        idle = connected(impatient, 1000, stack)
        for each in idle[::2]:
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # it was told before it could speak
                each.sendall(b"GET /healthz HTTP/1.1\r\nho")
        assert impatient.ask("GET", "/healthz").status == 200
        for each in idle:
            answer = read_all(each)
            assert answer.startswith(b"HTTP/1.1 408 "), answer
            assert b'"error":"request_timeout"' in answer
    assert impatient.ask("GET", "/healthz").status == 200


def test_connections_beyond_the_limit_are_refused(tmp_path: Path) -> None:
    options = ("--idle-seconds", "3600", "--connections", "50")
    with running(f"sqlite:///{tmp_path}/service.db", tmp_path, *options) as server:
        with contextlib.ExitStack() as stack:
            made = connected(server, 80, stack)
            until(lambda: len(select.select(made, [], [], 0)[0]) == 30)
            answers = [read_all(each) for each in select.select(made, [], [], 0)[0]]
        assert {answer.split(b" ")[1] for answer in answers} == {b"429"}
        until(lambda: server.ask("GET", "/healthz").status == 200)


def test_a_body_that_does_not_come(impatient: Running) -> None:
    """The body has its own limit of time; the server does not wait with the connection open for good."""
    campaign = impatient.create()
    with socket.create_connection((impatient.host, impatient.port), timeout=PATIENCE) as slow:
        head = f"POST /v1/campaigns/{campaign['id']}/reports HTTP/1.1\r\nhost: x\r\ncontent-length: 100\r\n"
        slow.sendall(f"{head}content-type: application/json\r\n\r\n{{".encode())
        assert impatient.ask("GET", "/healthz").status == 200
        answer = slow.recv(4096)
        assert answer.startswith(b"HTTP/1.1 408 "), answer


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
