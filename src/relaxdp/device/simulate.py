"""A whole campaign with simulated devices: created, relaxed level by level, and ended by itself.

They differ from real ones in that one key serves them all and nothing is kept in files: a report is drawn on the keyed
path of its pseudonym, as a real device draws it, but for all devices together. The law of the reports is the same.
"""

from __future__ import annotations

import http.client
import json
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from decimal import Decimal
from hashlib import sha256
from queue import SimpleQueue
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from relaxdp.device.address import CampaignAddress, Server
from relaxdp.device.client import Client, parsed, tidy
from relaxdp.device.offer import ATTRIBUTE, Offer
from relaxdp.device.operator import Operator
from relaxdp.device.participation import ask_offer
from relaxdp.device.report import written_report
from relaxdp.errors import PlanError, add_consequence
from relaxdp.estimation.schedules import Explicit, UntilPrecise
from relaxdp.mechanisms.keyed_reports import release_reports
from relaxdp.sampling.keyed_stream import PathId
from relaxdp.sampling.keys import Key
from relaxdp.server_errors import SimulationError, UnreachableError
from relaxdp.theory.epsilon import format_epsilon
from relaxdp.theory.randomized_response import Level

Progress = Callable[[int], None]
_ATTEMPTS = 8
_TIMEOUT = 120


class Sender:
    """Sends batches until every one was answered. What breaks off is sent again: the same reports, which is safe."""

    def __init__(self, address: CampaignAddress, *, batch: int, connections: int) -> None:
        if not 1 <= batch <= 1000 or not 1 <= connections <= 64:
            raise SimulationError("a batch has 1 to 1,000 reports, and there are 1 to 64 connections.")
        self._address, self._batch = address, batch
        self._pool = ThreadPoolExecutor(connections)
        self._idle: SimpleQueue[http.client.HTTPConnection] = SimpleQueue()
        for _ in range(connections):
            self._idle.put(_connection(address.server))
        self.requests = 0
        """How many requests were answered."""

    def send(self, reports: Sequence[dict[str, Any]], progress: Progress) -> Counter[str]:
        """Return how many reports were answered with what: new, same, or why they were refused."""
        results: Counter[str] = Counter()
        for answer in self._pool.map(self._one, _batches(reports, self._batch)):
            results.update(answer)
            self.requests += 1
            progress(sum(answer.values()))
        return results

    def close(self) -> None:
        """Close all connections."""
        self._pool.shutdown(cancel_futures=True)
        while not self._idle.empty():
            self._idle.get().close()

    def _one(self, reports: Sequence[dict[str, Any]]) -> Counter[str]:
        body = json.dumps({"reports": reports}, ensure_ascii=False, separators=(",", ":")).encode()
        connection = self._idle.get()
        try:
            return _counted(self._post(connection, body), len(reports))
        finally:
            self._idle.put(connection)

    def _post(self, connection: http.client.HTTPConnection, body: bytes) -> Any:
        path = f"{self._address.server.prefix}{self._address.path('reports', 'batch')}"
        for attempt in range(_ATTEMPTS):
            try:
                connection.request("POST", path, body, {"Content-Type": "application/json", "User-Agent": "relaxdp"})
                with connection.getresponse() as response:
                    content = response.read()
                    if response.status == 200:
                        return parsed(content)
                    if response.status not in (408, 429, 503):
                        raise SimulationError(
                            "the server refused a batch (status {status}): {said}",
                            status=response.status,
                            said=tidy(content.decode("utf-8", "replace")),
                        )
            except (OSError, http.client.HTTPException):
                connection.close()
            time.sleep(min(5.0, 0.1 * 2**attempt))
        raise UnreachableError(
            "{server} did not take a batch in {attempts} attempts.",
            server=self._address.server.host_and_port,
            attempts=_ATTEMPTS,
        )


def _batches(reports: Sequence[dict[str, Any]], size: int) -> Iterator[Sequence[dict[str, Any]]]:
    return (reports[start : start + size] for start in range(0, len(reports), size))


def _counted(answer: Any, expected: int) -> Counter[str]:
    results = answer.get("results") if isinstance(answer, dict) else None
    if not isinstance(results, list) or len(results) != expected or not all(isinstance(r, str) for r in results):
        raise SimulationError("the server did not answer every report of a batch.")
    return Counter(results)


def _connection(server: Server) -> http.client.HTTPConnection:
    kind = http.client.HTTPConnection if server.scheme == "http" else http.client.HTTPSConnection
    return kind(server.host, server.port, timeout=_TIMEOUT)


MOST_DEVICES = 10_000_000


class Fleet:
    """Simulated devices. The seed decides everything, so a run can be repeated; that is why it is no real campaign."""

    def __init__(self, devices: int, values: int, seed: int) -> None:
        if not 1 <= devices <= MOST_DEVICES:
            raise SimulationError(
                "from 1 to {most:,} devices can be simulated, not {devices:,}.", most=MOST_DEVICES, devices=devices
            )
        random = np.random.default_rng(seed)
        weights = 1 / np.arange(1, values + 1)  # a few values are common and many are rare, as in life
        self.pseudonyms = _pseudonyms(random, devices)
        self.truths = random.choice(values, devices, p=weights / weights.sum())
        self._key = Key.from_bytes(sha256(f"relaxdp simulation {seed}".encode()).digest())

    def shares(self, values: int) -> NDArray[np.float64]:
        """Return what the campaign is to find out: the share of each value among these devices."""
        return np.bincount(self.truths, minlength=values) / len(self.truths)

    @add_consequence("Nothing was sent.")
    def reports(self, offer: Offer, level: Level) -> list[dict[str, Any]]:
        """Return the report of every device at a level, as it travels."""
        encoding, values = offer.encoding, offer.values
        if values is None or encoding.level(level.epsilon) != level:
            raise SimulationError("the server's campaign is not the one that was created.")
        labels = np.array(values, dtype=object)
        column = release_reports(
            encoding,
            labels[self.truths],
            self.pseudonyms,
            key=self._key,
            level=level,
            path=PathId(offer.address.id, ATTRIBUTE),
        )
        travelling, same = level.to_dict(), zip(self.pseudonyms, column.to_pylist(), strict=True)
        return [{"device": name, "level": travelling, "report": written_report(report)} for name, report in same]

    def __reduce__(self) -> NoReturn:
        raise TypeError("a fleet holds truths and is not pickled.")


def _pseudonyms(random: np.random.Generator, devices: int) -> list[str]:
    text = random.bytes(16 * devices).hex()
    return [text[start : start + 32] for start in range(0, len(text), 32)]


_PATIENCE, _PATIENCE_AT_THE_END = 30.0, 3.0
_TICK = 0.05


@dataclass(frozen=True, slots=True)
class Simulation:
    """What is simulated: how many devices with how many values, over which levels, until how precise an answer."""

    devices: int
    levels: tuple[Decimal, ...]
    half_width: float
    values: int = 5
    seed: int = 1
    batch: int = 500
    connections: int = 4
    name: str | None = None
    """The campaign's name, which is part of every path; None leaves it to the server."""

    @property
    def labels(self) -> list[str]:
        """The values' names."""
        return [f"value {number}" for number in range(1, self.values + 1)]

    def request(self) -> dict[str, Any]:
        """Return the campaign that is created."""
        request: dict[str, Any] = {
            "question": f"A simulation of {self.devices} devices: which value?",
            "encoding": {"name": "categorical", "values": self.labels},
            "levels": [{"epsilon": format_epsilon(level)} for level in self.levels],
            "devices": self.devices,
            "target": {"half_width": self.half_width},
        }
        return request if self.name is None else {**request, "id": self.name}

    def planned_stop(self) -> Decimal | None:
        """Return the smallest level that suffices, by the planner alone; None where none does."""
        until = UntilPrecise(Explicit(self.levels), margin=self.half_width, n=self.devices, values=self.values)
        return list(until)[-1] if until.is_reached else None


@dataclass(frozen=True, slots=True)
class SimulationResult:
    """What came of a simulation."""

    state: str
    stopped_at: Decimal
    """The level at which the campaign stood in the end."""
    planned_stop: Decimal | None
    per_level: list[int]
    """How many devices have each level as their highest."""
    truth: list[float]
    rows: list[dict[str, Any]]
    """Value, estimate, low and high."""
    target_met: bool
    answers: Counter[str]
    """How reports were answered."""
    requests: int

    @property
    def covered(self) -> int:
        """How many intervals hold the truth."""
        return sum(row["low"] <= truth <= row["high"] for row, truth in zip(self.rows, self.truth, strict=True))


def simulate(simulation: Simulation, operator: Operator, client: Client, progress: Progress) -> SimulationResult:
    """Create a campaign, let all devices report at every level that opens, and return how it ended."""
    if len(set(simulation.levels)) != len(simulation.levels):
        raise PlanError("the levels of a campaign must all be different.")
    fleet = Fleet(simulation.devices, simulation.values, simulation.seed)
    made = operator.create(simulation.request())
    address = CampaignAddress(operator.server, str(made.get("id")))
    sender = Sender(address, batch=simulation.batch, connections=simulation.connections)
    answers: Counter[str] = Counter()
    last: Level | None = None
    try:
        while (offer := _moved_on(client, address, last)) is not None:
            last = offer.open[-1]
            answers += sender.send(fleet.reports(offer, last), progress)
    finally:
        sender.close()
    status, found = operator.status(address.id), operator.estimate(address.id)
    if last is None or not isinstance(found.get("pooled"), list):
        raise SimulationError("the campaign ended without an estimate.")
    return SimulationResult(
        state=status["state"],
        stopped_at=last.epsilon,
        planned_stop=simulation.planned_stop(),
        per_level=status["devices"]["per_level"],
        truth=fleet.shares(simulation.values).tolist(),
        rows=found["pooled"],
        target_met=status["target_met"],
        answers=answers,
        requests=sender.requests,
    )


def _moved_on(client: Client, address: CampaignAddress, last: Level | None) -> Offer | None:
    """Wait until the campaign has opened another level; None where it has ended, or is at its last level for good."""
    began = time.monotonic()
    while True:
        offer = ask_offer(client, address)
        if offer.state != "open":
            return None
        if offer.open[-1] != last:
            return offer
        waited = time.monotonic() - began
        if waited > _PATIENCE_AT_THE_END and last == offer.levels[-1]:
            return None
        if waited > _PATIENCE:
            raise SimulationError("the campaign did not move on to its next level.")
        time.sleep(_TICK)
