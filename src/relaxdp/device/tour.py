"""A campaign to look at: simulated devices answer a few at a time and relax, until it ends by itself."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from relaxdp.device.address import CampaignAddress
from relaxdp.device.client import Client
from relaxdp.device.operator import Operator
from relaxdp.device.participation import ask_offer
from relaxdp.device.simulate import Fleet, Sender

WATCHED = "commute"
OWN = "lunch"
SEVERAL = "canteen"
_VALUES = ["by car", "by bus or train", "by bicycle", "on foot", "I stayed at home"]
_LEVELS = ["0.25", "0.5", "1", "2", "4"]
_WAVES = 50
_CANTEEN = {
    "asker": "The canteen",
    "about": "How you eat",
    "purpose": "We plan next year's menu by what all answers say together.",
    "contact": "canteen@example.org",
    "privacy_notice": "Your answer stays in your browser. What is sent is blurred, and no report is passed on.",
    "colour": "#2a7a4b",
}
_PLANNERS = {
    "asker": "The town's traffic planners",
    "about": "Ways to work",
    "purpose": "The answers decide where bicycle lanes are built first.",
    "contact": "traffic@example.org",
    "suggested": "2",
}


@dataclass(frozen=True, slots=True)
class Reached:
    """How the campaign stood when all devices had reported at a level."""

    epsilon: str
    devices: int
    half_width: float
    state: str


def campaigns(devices: int, half_width: float) -> list[dict[str, Any]]:
    """Return the campaign that the simulated devices answer, and one for whoever takes the tour."""
    levels = [{"epsilon": epsilon} for epsilon in _LEVELS]
    return [
        {
            "id": OWN,
            "question": "What did you have for lunch?",
            "encoding": {"name": "categorical", "values": ["something warm", "bread", "salad", "nothing"]},
            "levels": levels,
            "suggested": "2",
            **_CANTEEN,
        },
        {
            "id": WATCHED,
            "question": "How did you get to work today?",
            "encoding": {"name": "categorical", "values": _VALUES},
            "levels": levels,
            "devices": devices,
            # Who reports first has nothing to do with the answer here, so a clearer report may count more.
            "target": {"half_width": half_width, "method": "precision"},
            **_PLANNERS,
        },
    ]


def several_questions() -> dict[str, Any]:
    """Return a survey of three questions for whoever takes the tour; two of them are counted together."""
    levels = [{"epsilon": epsilon} for epsilon in ("0.5", "1", "2")]

    def question(identity: str, text: str, **encoding: Any) -> dict[str, Any]:
        return {"id": identity, "question": text, "encoding": encoding, "levels": levels}

    return {
        "id": SEVERAL,
        **_CANTEEN,
        "suggested": "3",
        "questions": [
            question("diet", "What do you eat?", name="auto", values=["everything", "vegetarian", "vegan"]),
            question("where", "Where do you have lunch?", name="auto", values=["canteen", "home", "elsewhere"]),
            question("minutes", "How many minutes does lunch take?", name="wave", range=[0, 120]),
        ],
        "cross": [["diet", "where"]],
    }


def run(operator: Operator, *, devices: int, seed: int, pace: float, moved: Callable[[int], None]) -> Iterator[Reached]:
    """Let all devices report at every level that opens, each level in about `pace` seconds."""
    fleet = Fleet(devices, len(_VALUES), seed)
    address, client = CampaignAddress(operator.server, WATCHED), Client(attempts=3)
    size = max(1, min(1000, -(-devices // _WAVES)))
    sender = Sender(address, batch=size, connections=1)
    done: set[str] = set()
    try:
        while (offer := ask_offer(client, address)).state == "open" and str(offer.open[-1]) not in done:
            level = offer.open[-1]
            reports = fleet.reports(offer, level)
            for start in range(0, len(reports), size):
                began = time.monotonic()
                sender.send(reports[start : start + size], moved)
                time.sleep(max(0.0, pace * size / devices - (time.monotonic() - began)))
            done.add(str(level))
            status = operator.status(WATCHED)
            yield Reached(str(level), status["devices"]["total"], status["half_width"], status["state"])
    finally:
        sender.close()
