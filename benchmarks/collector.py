"""The collector's speed as ratios of one run: durable ingest, single reports, and estimates over few and many reports.

python -m benchmarks.collector [--rounds N] [--reports N] prints a table. Server and client are processes of their own;
all contenders take turns, and a ratio is the median of the rounds.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import socket
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from tests.servers.collectors import Running, running

from benchmarks.collector_client import drive, post
from relaxdp.collector import campaigns, counts, states
from relaxdp.storage.database import Database

BATCH, CONNECTIONS_BATCH, CONNECTIONS_SINGLE = 100, 16, 256
TABLE = """CREATE TABLE collector_report (campaign INTEGER NOT NULL, device BLOB NOT NULL, level SMALLINT NOT NULL,
report BLOB NOT NULL, PRIMARY KEY (campaign, device, level)) WITHOUT ROWID"""


def plain_inserts(folder: Path, rows: int, batch: int) -> float:
    """Return rows a second of plain SQLite: the same table, WAL, synchronous=FULL, `batch` rows a transaction."""
    place = folder / f"plain-{os.urandom(4).hex()}.db"
    with contextlib.closing(sqlite3.connect(place, isolation_level=None)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute(TABLE)
        made = [(1, os.urandom(16), 0, b"\1") for _ in range(rows)]
        start = time.perf_counter()
        for first in range(0, rows, batch):
            connection.execute("BEGIN IMMEDIATE")
            connection.executemany("INSERT INTO collector_report VALUES (?, ?, ?, ?)", made[first : first + batch])
            connection.execute("COMMIT")
        return rows / (time.perf_counter() - start)


def report(campaign: dict[str, Any]) -> dict[str, Any]:
    """Return a report of a new device."""
    return {"device": os.urandom(16).hex(), "level": campaign["levels"][0], "report": "yes"}


def batched(server: Running, rows: int) -> float:
    """Return reports a second, a hundred in each request; all are durable before their answer."""
    campaign = server.create()
    path = f"/v1/campaigns/{campaign['id']}/reports/batch"
    requests = [
        post(path, json.dumps({"reports": [report(campaign) for _ in range(BATCH)]}).encode())
        for _ in range(rows // BATCH)
    ]
    return rows / drive(server.host, server.port, requests, CONNECTIONS_BATCH)


def single(server: Running, campaign: dict[str, Any], requests: int) -> float:
    """Return requests a second, one durable report in each."""
    path = f"/v1/campaigns/{campaign['id']}/reports"
    made = [post(path, json.dumps(report(campaign)).encode()) for _ in range(requests)]
    return requests / drive(server.host, server.port, made, CONNECTIONS_SINGLE)


def empty(port: int, campaign: dict[str, Any], requests: int) -> float:
    """Return requests a second of the empty route, with the same bytes."""
    path = f"/v1/campaigns/{campaign['id']}/reports"
    made = [post(path, json.dumps(report(campaign)).encode()) for _ in range(requests)]
    return requests / drive("127.0.0.1", port, made, CONNECTIONS_SINGLE)


@contextlib.contextmanager
def empty_server() -> Iterator[int]:
    """Run the empty route under the same server."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port = one.getsockname()[1]
    command = [
        sys.executable, "-m", "uvicorn", "benchmarks.collector_empty:app", "--port", str(port), "--no-access-log",
        "--log-level", "warning", "--http", "httptools",
    ]  # fmt: skip
    process = subprocess.Popen(command)
    try:
        for _ in range(200):
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port)):
                break
            time.sleep(0.05)
        yield port
    finally:
        process.terminate()
        process.wait()


def fill(place: Path, number: int, rows: int) -> None:
    """Store many reports of one campaign by hand, with their counts."""
    database = Database(f"sqlite:///{place}")
    with contextlib.closing(sqlite3.connect(place)) as connection:
        made = ((number, each.to_bytes(16), 0, b"\1") for each in range(rows))
        connection.executemany("INSERT INTO collector_report VALUES (?, ?, ?, ?)", made)
        connection.commit()
    with database.writing() as connection_:
        name = campaigns.all_ids(connection_)[number - 1]
        campaign = campaigns.find(connection_, name)
        state = states.look(connection_, number)
        counts.add(connection_, number, {0: {0: rows * campaign.codec.count([b"\1"])[0]}})
        states.write(connection_, number, replace(state, devices=(rows, 0, 0), version=state.version + 1))
    database.close()


def estimate_once(server: Running, campaign: dict[str, Any]) -> float:
    """Return the seconds of an estimate; each asks for another confidence, so that none is a kept answer."""
    path = f"/v1/campaigns/{campaign['id']}/estimate?confidence_level={0.9 + 0.09 * random.random()}"
    start = time.perf_counter()
    answer = server.ask("GET", path, operator=True)
    seconds = time.perf_counter() - start
    assert answer.status == 200
    return seconds


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--rows", type=int, default=50_000)
    parser.add_argument("--reports", type=int, default=10_000_000)
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=".") as name:
        folder = Path(name).resolve()
        ingest(folder, chosen)
        compare_estimates(folder, chosen)


def ingest(folder: Path, chosen: argparse.Namespace) -> None:
    """Compare ingest with plain inserts, and single reports with an empty route."""
    rounds: list[dict[str, float]] = []
    with running(f"sqlite:///{folder}/service.db", folder / "a", "--no-request-log") as server, empty_server() as port:
        campaign = server.create()
        for number in range(chosen.rounds + 1):
            found = {
                "plain-100": plain_inserts(folder, chosen.rows, 100),
                "plain-1000": plain_inserts(folder, chosen.rows, 1000),
                "batched": batched(server, chosen.rows),
                "empty": empty(port, campaign, chosen.rows // 2),
                "single": single(server, campaign, chosen.rows // 2),
            }
            if number:  # the first round warms everything up
                rounds.append(found)
                print({name: round(value) for name, value in found.items()}, flush=True)
    for what, beside, target in [
        ("batched", "plain-100", 0.5), ("batched", "plain-1000", 0.5), ("single", "empty", 0.4),
    ]:  # fmt: skip
        ratios = sorted(each[what] / each[beside] for each in rounds)
        middle = statistics.median(ratios)
        print(f"{what} / {beside}: {middle:.2f} ({ratios[0]:.2f} .. {ratios[-1]:.2f}), target {target}")


def compare_estimates(folder: Path, chosen: argparse.Namespace) -> None:
    """Compare an estimate over ten thousand with one over many more reports."""
    place = folder / "estimates.db"
    with running(f"sqlite:///{place}", folder / "b", "--no-request-log") as server:
        made = [server.create(), server.create()]
        for number, rows in enumerate((10_000, chosen.reports), 1):
            fill(place, number, rows)
        ratios = []
        for _ in range(chosen.rounds):
            turns = [[estimate_once(server, campaign) for campaign in made] for _ in range(60)][10:]
            few, many = (statistics.median(each) for each in zip(*turns, strict=True))
            ratios.append(many / few)
        middle = statistics.median(ratios)
        print(f"estimate over {chosen.reports:,} / over 10,000 reports: {middle:.2f} ({min(ratios):.2f} .. "
              f"{max(ratios):.2f}) times as long, target 1")  # fmt: skip


if __name__ == "__main__":
    main()
