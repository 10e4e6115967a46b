"""A collector that is killed while questions are counted together: what was kept equals a recount of the reports."""

from __future__ import annotations

import http.client
import json
import os
import random
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from tests.contract.collector.test_joint import recounted
from tests.patience import PATIENCE, until
from tests.servers.collectors import STORES, Running, running, url_of

from relaxdp.collector import campaigns, joint
from relaxdp.storage.database import Database

pytestmark = pytest.mark.long

ROUNDS = min(50, int(os.environ.get("RELAXDP_FAULTS", "3")))
VALUES = {"diet": ["meat", "vegan"], "lunch": ["canteen", "home", "out"]}


@pytest.fixture(params=STORES)
def url(request: pytest.FixtureRequest) -> str:
    return url_of(request.param, request)


class Load:
    """Threads that report, relax and withdraw for the same few devices, each to any of the questions."""

    def __init__(self, server: Running, questions: list[dict[str, Any]]) -> None:
        self.server, self.questions, self.done, self.withdrawn = server, questions, 0, 0
        self._stop, self._threads = threading.Event(), list[threading.Thread]()
        self._round = 0

    def start(self) -> None:
        self._stop.clear()
        self._round += 1
        self._threads = [threading.Thread(target=self._run, args=(8 * self._round + n,)) for n in range(4)]
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join()

    def _run(self, seed: int) -> None:
        chance = random.Random(seed)
        while not self._stop.is_set():
            try:
                connection = http.client.HTTPConnection(self.server.host, self.server.port, timeout=PATIENCE)
                while not self._stop.is_set():
                    self._one(connection, chance)
            except (OSError, http.client.HTTPException):
                time.sleep(0.01)
            finally:
                connection.close()

    def _one(self, connection: http.client.HTTPConnection, chance: random.Random) -> None:
        question = chance.choice(self.questions)
        devices = [f"{chance.randrange(300):032x}" for _ in range(chance.choice([1, 1, 20]))]
        path, body = f"/v1/campaigns/{question['id']}", dict[str, Any]()
        if chance.random() < 0.03:
            path, body = f"{path}/withdraw", {"device": devices[0]}
        else:
            path = f"{path}/reports/batch"
            body["reports"] = [self._report(question, device, chance.randrange(3)) for device in devices]
        connection.request("POST", path, json.dumps(body), {"content-type": "application/json"})
        answer = connection.getresponse()
        answer.read()
        if answer.status == 200:
            self.done += 1
            self.withdrawn += path.endswith("withdraw")

    @staticmethod
    def _report(question: dict[str, Any], device: str, level: int) -> dict[str, Any]:
        """A device always says the same at a level."""
        values = VALUES[question["id"]]
        label = values[(int(device, 16) * 7 + level) % len(values)]
        return {"device": device, "level": question["levels"][level], "report": label}


def test_killed_while_questions_are_counted_together(url: str, tmp_path: Path) -> None:
    chance = random.Random(1)
    asked = [
        {"id": name, "question": "q", "encoding": {"name": "categorical", "values": values}, "levels": LEVELS}
        for name, values in VALUES.items()
    ]
    with running(url, tmp_path, "--no-request-log") as server:
        body = {"id": "canteen", "questions": asked, "cross": [["diet", "lunch"]]}
        made = server.ask("POST", "/v1/surveys", body, operator=True).json
        for _ in LEVELS[1:]:
            assert server.ask("POST", "/v1/surveys/canteen/relax", operator=True).status == 200
        load = Load(server, made["questions"])
        for number in range(ROUNDS):
            if number:
                server.start()
            before = load.done
            load.start()
            until(lambda: load.done > before + 5)  # noqa: B023
            time.sleep(chance.uniform(0, 0.3))
            server.kill()
            load.stop()
            counted = check(url)
        assert counted > 0
        print(f"\n{ROUNDS} kills, {load.done} requests, {load.withdrawn} withdrawals, {counted} devices in both")


LEVELS = [{"epsilon": "0.5"}, {"epsilon": "1"}, {"epsilon": "2"}]


def check(url: str) -> int:
    """What was kept is what is stored; return how many devices it is."""
    database = Database(url)
    with database.reading() as connection:
        sides = [campaigns.find(connection, name) for name in VALUES]
        kept = joint.read(connection, *(each.number for each in sides))
        wanted = recounted(connection, *sides)
    database.close()
    assert {levels: each.tolist() for levels, each in kept.items() if each.any()} == wanted
    return sum(each[0] for each in wanted.values())
