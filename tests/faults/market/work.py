"""What processes do with a market while they are raced and killed; and the process that forks them.

One line of JSON in: a list of orders, each for a worker, or {"wait": pid}. One line out: for each order the worker's
process id, or how the one that was waited for ended.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import tempfile
import traceback
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

from tests.faults.market.deaths import die_in_time, limit_files
from tests.faults.market.log import Log
from tests.faults.market.mutants import make_mistake
from tests.faults.market.world import (
    DELIVERIES,
    LEVELS,
    LISTING,
    MEMBER_LEVELS,
    MEMBERS,
    MINIMA,
    POOL,
    SHARED,
    delivery,
    member_report,
    open_market,
    own_buyers,
)

from relaxdp.errors import RelaxdpError
from relaxdp.market import accounts, listings, purchases
from relaxdp.market.accounts import OPERATOR
from relaxdp.market.market import Market
from relaxdp.market.purchases import StoredPurchase
from relaxdp.theory.epsilon import format_epsilon

Task = dict[str, Any]
POPULAR = LEVELS[::7]
"""Levels that many ask for."""


class Worker:
    """One process: it does one thing after the other, and writes down what it wants and what it was told."""

    def __init__(self, market: Market, folder: Path, slot: int, seed: int = 0) -> None:
        self.market, self.folder, self.slot = market, folder, slot
        self.chance = random.Random(seed)
        self.log = Log(folder, slot)

    def run(self) -> None:
        """Do again what was cut off, and then go on until there is nothing more to do."""
        if (unfinished := self.log.unfinished()) is not None and unfinished["kind"] != "gift":
            self.do({**unfinished, "again": True})
        while not (self.folder / "stop").exists():
            self.do(self._management() if self.slot == 0 else self._order())

    def do(self, task: Task) -> Task:
        """Carry out a task and return what is known of it then; whatever has no answer in the log may have happened."""
        self.log.write({"try": task})
        try:
            answer: Task = {"done": carry_out(self.market, self.folder, task)}
        except RelaxdpError as problem:
            answer = {"refused": type(problem).__name__, "message": problem.message}
        self.log.write(answer)
        return answer

    def _order(self) -> Task:
        """Buy something, or upgrade what is owned; sometimes what cannot be had, and sometimes give it back."""
        listing = POOL if self.chance.random() < 0.3 else LISTING
        buyer = self.chance.choice([*own_buyers(self.slot), *own_buyers(self.slot), *SHARED])
        owned = self._owned(buyer, listing)
        if owned is not None and self.chance.random() < 0.05 + float(owned.level.epsilon) / 8:
            return {"kind": "refund", "number": owned.number}
        low = Decimal(0) if owned is None else owned.level.epsilon
        chosen = POPULAR if self.chance.random() < 0.35 else LEVELS
        near = [level for level in chosen if Decimal(level) >= low][: 4 if chosen is POPULAR else 20]
        none = format_epsilon(low + Decimal(self.chance.randint(1, 400)) / 997)
        epsilon = self.chance.choice(near) if near and self.chance.random() < 0.97 else none
        is_right = self.chance.random() < 0.95
        return {
            "kind": "buy",
            "buyer": buyer,
            "listing": listing,
            "epsilon": epsilon,
            "upgrade": (owned is not None) == is_right,
            "most": self.chance.choice([None, None, 30]),
        }

    def _management(self) -> Task:
        """Deliver what raises the authorised epsilon, and give credits away."""
        what = self.chance.random()
        if what < 0.3:
            return {"kind": "deliver", "epsilon": self.chance.choice(self._next_deliveries())}
        if what < 0.8:
            level = self.chance.choice(MEMBER_LEVELS)
            return {"kind": "join", "member": self.chance.choice(MEMBERS), "epsilon": level}
        return {"kind": "gift", "to": self.chance.choice(SHARED), "tag": f"gift {self.chance.getrandbits(64)}"}

    def _next_deliveries(self) -> list[str]:
        """Return the next level, or one that was delivered already: that has to be refused."""
        with self.market.reading() as connection:
            levels = listings.levels_of(connection, listings.find(connection, LISTING)).values()
        count = sum(level.delivered for level in levels)
        return DELIVERIES[max(0, count - 1) : count + 1]

    def _owned(self, buyer: str, listing: str) -> StoredPurchase | None:
        with self.market.reading() as connection:
            account = accounts.named(connection, buyer)
            return purchases.owned(connection, listings.find(connection, listing), account.number)


def carry_out(market: Market, folder: Path, task: Task) -> Task:
    """Do one thing, and return what is known of it then."""
    if task["kind"] == "deliver":
        market.deliver("seller", LISTING, delivery(folder, task["epsilon"]))
    elif task["kind"] == "join":
        market.join_pool(task["member"], POOL, *member_report(task["member"], task["epsilon"]), MINIMA[task["member"]])
    elif task["kind"] == "gift":
        market.issue(task["to"], 40, task["tag"])
    elif task["kind"] == "refund":
        market.refund(OPERATOR, task["number"], "as agreed")
    else:
        names = ("buyer", "listing", "epsilon")
        options = {"most": task.get("most"), "upgrade": task.get("upgrade", False)}
        sold, new = market.buy(*(task[name] for name in names), **options)
        told = ("number", "price", "paid", "objects", "digest", "previous", "issued", "signature")
        return {name: getattr(sold, name) for name in told} | {"threshold": sold.level.threshold, "new": new}
    return {}


def live(order: Task) -> None:
    """Be a worker. What a kill leaves behind lies in the test's own folder."""
    folder = Path(order["folder"])
    tempfile.tempdir = str(folder / order.get("temporary", "temporary"))
    if "mistake" in order:
        make_mistake(order["mistake"])
    worker = Worker(open_market(order["url"], folder), folder, order["slot"], order["seed"])
    if "die" in order:
        die_in_time(worker.market, order["die"])
    if "limit" in order:
        limit_files(order["limit"])
    if "task" in order:
        worker.do(order["task"])
    else:
        worker.run()


def fork(order: Task, work: Callable[[Task], None]) -> int:
    """Return the process id of a new process that does some work, and ends with 3 where it fails."""
    child = os.fork()
    if child == 0:
        status = 3
        try:
            work(order)
            status = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(status)
    return child


def main() -> None:
    """Serve orders until there are no more; then nobody is left."""
    import pandas  # noqa: F401, PLC0415 (Arrow looks for it, which in every worker would take longer than a sale)
    import psycopg  # noqa: F401, PLC0415

    children: set[int] = set()
    for line in sys.stdin:
        answers = []
        for order in json.loads(line):
            if "wait" in order:
                answers.append(os.waitstatus_to_exitcode(os.waitpid(order["wait"], 0)[1]))
                children.remove(order["wait"])
            else:
                answers.append(fork(order, live))
                children.add(answers[-1])
        print(json.dumps(answers), flush=True)
    for child in children:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


if __name__ == "__main__":
    main()
