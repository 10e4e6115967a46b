"""A whole campaign with simulated devices: created, relaxed level by level, and ended by itself."""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from relaxdp.collector.client import Client
from relaxdp.collector.client_address import CampaignAddress
from relaxdp.collector.client_operator import Operator
from relaxdp.collector.device_offer import Offer
from relaxdp.collector.device_participation import ask_offer
from relaxdp.collector.simulate_fleet import Fleet
from relaxdp.collector.simulate_send import Progress, Sender
from relaxdp.errors import ScheduleError, SimulationError
from relaxdp.estimation.schedules import Explicit, UntilPrecise
from relaxdp.law.epsilon import epsilon_text
from relaxdp.law.level import Level

_PATIENCE, _PATIENCE_AT_THE_END = 30.0, 3.0
_TICK = 0.05


@dataclass(frozen=True, slots=True)
class Simulation:
    """What is simulated: how many devices with how many values, over which levels, until how precise an answer."""

    devices: int
    levels: tuple[Decimal, ...]
    half_width: float
    values: int = 5
    encoding: str = "categorical"
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
            "encoding": {"name": self.encoding, "values": self.labels},
            "levels": [{"epsilon": epsilon_text(level)} for level in self.levels],
            "devices": self.devices,
            "target": {"half_width": self.half_width},
        }
        return request if self.name is None else {**request, "id": self.name}

    def planned_stop(self) -> Decimal | None:
        """Return the smallest level that suffices, by the planner alone; None where none does or it cannot tell."""
        if self.encoding != "categorical":
            return None
        until = UntilPrecise(
            Explicit(self.levels), half_width=self.half_width, objects=self.devices, values=self.values
        )
        return list(until)[-1] if until.reached else None


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a simulation."""

    campaign: str
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
    seconds: float
    """How long sending took; drawing is not part of it."""

    @property
    def accepted(self) -> int:
        """How many reports were taken; one that is on its way when the campaign moves on comes too late."""
        return self.answers["new"] + self.answers["same"]

    @property
    def covered(self) -> int:
        """How many intervals hold the truth."""
        return sum(row["low"] <= truth <= row["high"] for row, truth in zip(self.rows, self.truth, strict=True))


def simulate(simulation: Simulation, operator: Operator, client: Client, progress: Progress) -> Outcome:
    """Create a campaign, let all devices report at every level that opens, and return how it ended."""
    if len(set(simulation.levels)) != len(simulation.levels):
        raise ScheduleError("the levels of a campaign must all be different.")
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
    return Outcome(
        campaign=address.id,
        state=status["state"],
        stopped_at=last.epsilon,
        planned_stop=simulation.planned_stop(),
        per_level=status["devices"]["per_level"],
        truth=fleet.shares(simulation.values).tolist(),
        rows=found["pooled"],
        target_met=status["target_met"],
        answers=answers,
        requests=sender.requests,
        seconds=sender.seconds,
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
