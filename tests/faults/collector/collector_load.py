"""Load on a collector from several threads, and a memory of everything that it acknowledged."""

from __future__ import annotations

import http.client
import json
import os
import random
import threading
import time
from typing import Any

from sqlalchemy import select
from tests.patience import PATIENCE
from tests.servers.collectors import Running

from relaxdp.collector import campaigns, counts, states
from relaxdp.collector.report_routes import read_device
from relaxdp.collector.schema import REPORTS
from relaxdp.storage.database import Database

LABELS = ("no", "yes")
Sent = dict[str, Any]


class Load:
    """Devices that report, relax and try again: each thread has its own, so that every answer can be judged."""

    def __init__(self, server: Running, campaign: Sent, threads: int = 4, seed: int = 1) -> None:
        self.server, self.campaign = server, campaign
        self.acknowledged: dict[tuple[str, int], str] = {}
        self.requests, self.problems = 0, list[str]()
        self._chance = [random.Random(seed + number) for number in range(threads)]
        self._stop = threading.Event()
        self._lock = threading.Lock()
        self._threads: list[threading.Thread] = []

    def start(self) -> None:
        """Begin, or go on with a server that was started again."""
        self._stop.clear()
        self._threads = [threading.Thread(target=self._run, args=(chance,)) for chance in self._chance]
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """End after the requests that are under way."""
        self._stop.set()
        for thread in self._threads:
            thread.join()

    def _run(self, chance: random.Random) -> None:
        connection: http.client.HTTPConnection | None = None
        waiting: list[Sent] = []
        while not self._stop.is_set():
            waiting = waiting or self._reports(chance)
            try:
                if connection is None:
                    connection = http.client.HTTPConnection(self.server.host, self.server.port, timeout=PATIENCE)
                self._send(connection, waiting)
                waiting = []
            except (OSError, http.client.HTTPException):
                if connection is not None:
                    connection.close()
                connection = None
                time.sleep(0.01)  # and the same reports again, as a device does
        if connection is not None:
            connection.close()

    def _reports(self, chance: random.Random) -> list[Sent]:
        with self._lock:
            known = [key for key in self.acknowledged if key[1] == 0][-200:]
        reports = []
        for _ in range(chance.choice([1, 5, 50])):
            device, level = os.urandom(16).hex(), 0
            if known and chance.random() < 0.4:
                device, level = chance.choice(known)[0], 1
            label = LABELS[int(device[level], 16) % 2]  # a device always says the same at a level
            reports.append({"device": device, "level": self.campaign["levels"][level], "report": label})
        return reports

    def _send(self, connection: http.client.HTTPConnection, reports: list[Sent]) -> None:
        path = f"/v1/campaigns/{self.campaign['id']}/reports"
        body: Any = reports[0] if len(reports) == 1 else {"reports": reports}
        address = path if len(reports) == 1 else f"{path}/batch"
        connection.request("POST", address, json.dumps(body), {"content-type": "application/json"})
        answer = connection.getresponse()
        content = json.loads(answer.read())
        if answer.status == 503:
            raise OSError("away")
        outcomes = [content.get("status") or content["error"]] if len(reports) == 1 else content["results"]
        with self._lock:
            self.requests += 1
            for sent, outcome in zip(reports, outcomes, strict=True):
                if outcome in ("new", "same"):
                    level = self.campaign["levels"].index(sent["level"])
                    self.acknowledged[sent["device"], level] = sent["report"]
                else:
                    self.problems.append(outcome)


def check_nothing_lost(url: str, campaign_id: str, load: Load) -> int:
    """Every acknowledged report is stored as it was sent, and the counts are those of the stored reports."""
    database = Database(url)
    table = REPORTS.c
    with database.reading() as connection:
        campaign = campaigns.find(connection, campaign_id)
        query = select(table.device_digest, table.level, table.report).where(table.campaign == campaign.number)
        stored = {(bytes(digest), level): bytes(report) for digest, level, report in connection.execute(query)}
        state = states.look(connection, campaign.number)
        kept = [counts.read_level(connection, campaign.number, level) for level in range(len(campaign.levels))]
    database.close()
    assert load.problems == []
    for (device, level), label in load.acknowledged.items():
        assert stored.get((read_device(campaign, device), level)) == bytes([LABELS.index(label)]), (
            "an acknowledged report is lost"
        )
    highest: dict[bytes, int] = {}
    for digest, level in stored:
        highest[digest] = max(level, highest.get(digest, 0))
    for level in range(len(campaign.levels)):
        own = [stored[digest, level] for digest, best in highest.items() if best == level]
        assert state.devices[level] == len(own)
        wanted = campaign.codec.count(own)[0].tolist()
        assert kept[level].get(0, campaign.codec.count([])[0]).tolist() == wanted
    return len(stored)
