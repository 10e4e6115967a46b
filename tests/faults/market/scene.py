"""Where the tests of a market's faults take place: a market, its processes, and what they leave in a folder."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.faults.forking import Zygote
from tests.faults.market.check import check
from tests.faults.market.rows import select
from tests.faults.market.work import Task, Worker
from tests.faults.market.world import LISTING, new_place, open_market, set_up, url_of
from tests.servers.ledgers import Place

TABLES = ["account", "entry", "file", "level", "listing", "member", "member_level", "purchase", "purchase_member"]
HERE, THERE, OTHER = 100, 101, 102
"""Slots of what is done in this process, in one that does a single thing, and by somebody else in this process."""


class Scene:
    """A market, the folder of its logs, and whoever forks processes that use it."""

    def __init__(self, place: Place, folder: Path, zygote: Zygote | None = None) -> None:
        self.place, self.folder, self.zygote = place, folder, zygote
        self.market = set_up(place, folder)
        self.other = open_market(url_of(place), folder)
        self.do, self.do_otherwise = Worker(self.market, folder, HERE).do, Worker(self.other, folder, OTHER).do

    def start(self, slot: int, **more: Any) -> int:
        """Start a process, and return its number."""
        assert self.zygote is not None
        return self.zygote.start({"url": url_of(self.place), "folder": str(self.folder), "slot": slot, **more})[0]

    def wait(self, worker: int) -> int:
        """Wait for the end of a process, and say how it ended."""
        assert self.zygote is not None
        return self.zygote.start({"wait": worker})[0]

    def run(self, task: Task, **more: Any) -> int:
        """Let a process do one thing, and say how it ended."""
        return self.wait(self.start(THERE, seed=0, task=task, **more))

    def close(self) -> None:
        """Leave nothing connected."""
        for market in (self.market, self.other):
            market._database.close()

    def check(self) -> Counter[str]:
        """Look at everything from outside."""
        self.close()
        return check(self.place, self.folder)

    def content(self) -> list[Any]:
        """Return everything that is in the market's tables, as soon as nobody is connected who could change it."""
        self.close()
        self.place.settle()
        return [sorted(rows, key=repr) for rows in select(self.place, *(f"SELECT * FROM market_{t}" for t in TABLES))]


@contextmanager
def new_scene(
    store: str, request: pytest.FixtureRequest, folder: Path, zygote: Zygote | None = None
) -> Iterator[Scene]:
    """Return a new market, and leave nothing of it behind."""
    with new_place(store, request, folder) as place:
        scene = Scene(place, folder, zygote)
        yield scene
        scene.close()


def buy(buyer: str, epsilon: str, listing: str = LISTING, *, upgrade: bool = False) -> Task:
    """Return the task of buying something."""
    return {"kind": "buy", "buyer": buyer, "listing": listing, "epsilon": epsilon, "upgrade": upgrade, "most": None}


def refund(number: int) -> Task:
    """Return the task of giving a purchase back."""
    return {"kind": "refund", "number": number}
