"""Devices that are killed in the middle of a survey, at every request: the questions together keep to the limit.

What was spent is worked out here from the bytes that arrived, never from the device's own books.
"""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from tests.contract.device.device_clients import BrowserClient
from tests.faults.forking import Zygote
from tests.patience import until
from tests.servers.fake_collector import FakeCollector, Request, fake_collector

from relaxdp.device import Device

pytestmark = pytest.mark.long

NAMES = ["diet", "lunch", "age"]
LIMIT = "2.2"
REQUESTS = 1 + 2 * len(NAMES)
"""Of one round: what the survey is, and for each question what it is now, and a report."""


@pytest.fixture
def server() -> Iterator[FakeCollector]:
    with fake_collector() as collector:
        for name in NAMES:
            collector.open(name)
        yield collector


def python_device() -> Iterator[Any]:
    zygote = Zygote("tests.faults.device.device_zygote")

    def play(file: Path, survey: str, tell: Callable[[int], None]) -> bool:
        if not file.exists():
            Device.open(file, limit="50")
        tell(*zygote.start({"file": str(file), "survey": survey, "upto": LIMIT}))
        return zygote.line() == [0]

    yield play
    zygote.close()


def browser_device() -> Iterator[Any]:
    def play(file: Path, survey: str, tell: Callable[[int], None]) -> bool:
        client = BrowserClient()
        tell(client._process.pid)
        try:
            client.do({"do": "open", "file": str(file), "limit": None if file.exists() else "50"})
            joined = client.do({"do": "join_survey", "survey": survey, "upto": LIMIT})
            for address in joined["questions"]:
                client.do({"do": "answer", "campaign": address, "value": "fruit"})
            return all("sent" in client.do({"do": "report", "campaign": each}) for each in joined["questions"])
        except (json.JSONDecodeError, BrokenPipeError):
            return False
        finally:
            client._process.kill()
            client._process.wait()

    yield play


@pytest.fixture(params=[python_device, pytest.param(browser_device, marks=pytest.mark.long)])
def play(request: pytest.FixtureRequest) -> Iterator[Any]:
    """Joins, answers and reports in a process of its own, tells its number, and returns whether it came to its end."""
    yield from request.param()


def test_killed_at_every_request_of_a_survey(server: FakeCollector, tmp_path: Path, play: Any) -> None:
    for place in range(1, REQUESTS + 1):
        del server.requests[:]
        server.stored.clear()
        for name in NAMES:
            server.campaigns[name]["open_level"] = 0
        survey, file = server.survey(f"canteen-{place}", NAMES), tmp_path / f"device-{place}"
        assert not killed_at(server, place, file, survey, play)
        server.instead = None
        assert play(file, survey, lambda _: None)
        for name in NAMES:
            server.campaigns[name]["open_level"] = 2
        assert play(file, survey, lambda _: None)
        check(server)


def killed_at(server: FakeCollector, place: int, file: Path, survey: str, play: Any) -> bool:
    """Kill the device when its request of this number has come, before it is answered."""
    process: list[int] = []

    def instead(request: Request) -> bytes | None:
        if len(server.requests) < place:
            return None
        until(lambda: process)  # a fast child may speak before its parent has said who it is
        os.kill(process[0], signal.SIGKILL)
        return b""

    server.instead = instead
    ended: bool = play(file, survey, process.append)
    return ended


def check(server: FakeCollector) -> None:
    cost: dict[str, Decimal] = {}
    seen: dict[tuple[str, str], bytes] = {}
    for request in server.requests:
        if request.path.endswith("/reports"):
            name, epsilon = request.path.split("/")[3], request.json["level"]["epsilon"]
            assert seen.setdefault((name, epsilon), request.body) == request.body, "two reports for one level"
            cost[name] = max(cost.get(name, Decimal(0)), Decimal(epsilon))
    assert cost == {"diet": 1, "lunch": Decimal("0.5"), "age": Decimal("0.5")}
    assert sum(cost.values()) <= Decimal(LIMIT)
    assert server.differing == 0
