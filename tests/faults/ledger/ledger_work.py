"""What processes do with a ledger while they are raced and killed. Importable, for those that are spawned."""

from __future__ import annotations

import multiprocessing
import os
from decimal import Decimal
from typing import Any

from relaxdp.draw.stream import PathId
from relaxdp.errors import BudgetExceededError, LedgerError
from relaxdp.ledger.entries import Entry, PathFacts, Subject
from relaxdp.ledger.events import BudgetSet, PathOpened
from relaxdp.ledger.ledger import Ledger

EVERYONE = Subject.population("everyone")
FACTS = PathFacts("categorical", "ab" * 32, "1234", "text", "aa")
FORK = multiprocessing.get_context("fork")
STEP = Decimal("0.001")


def path(name: object) -> PathId:
    return PathId("r", str(name))


def is_one_sentence(problem: LedgerError, name: str) -> None:
    """It names the ledger, and shows nothing of SQL. What was not released is said by whoever wanted to release it."""
    assert problem.message.startswith(f"the ledger {name!r} ")
    assert problem.sentence.endswith(".")
    assert "\n" not in problem.message
    assert "SELECT" not in problem.message
    assert problem.fields["path"] == name


def spend(where: str, number: int, start: Any, results: Any) -> None:
    """Ask for 0.1 four times, as soon as everybody is there; say how often it was granted."""
    start.wait()
    granted = 0
    with Ledger.open(where) as ledger:
        for step in range(4):
            try:
                ledger.charge(EVERYONE, path(f"{number}-{step}"), FACTS, "0.1", budget="2.05")
                granted += 1
            except BudgetExceededError:
                pass
    results.put(granted)


def spend_forever(where: str, worker: int, log: str) -> None:
    """Charge a little more, again and again, and acknowledge each after it returned."""
    descriptor = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    ledger = Ledger.open(where)
    for _ in range(100_000):
        paths = ledger.balance(EVERYONE).paths if ledger.subjects() else ()
        here = max((each.largest for each in paths if each.path == path(worker)), default=Decimal(0)) + STEP
        ledger.charge_all(
            EVERYONE, [Entry(path(worker), FACTS, here), Entry(path(f"{worker}-b"), FACTS, here)], budget=10**9
        )
        os.write(descriptor, f"{worker} {here}\n".encode())


def open_and_count(where: str, start: Any, results: Any) -> None:
    """Open it as soon as everybody is there, begin it where nobody has, and say how often it was begun."""
    start.wait()
    ledger = Ledger.open(where)
    ledger.charge(EVERYONE, path("a"), FACTS, 1, budget=1)
    results.put(sum(isinstance(event, BudgetSet | PathOpened) for event in ledger.history()))
