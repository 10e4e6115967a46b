"""What the processes of a market were told, and what they did not live to hear: nothing else may have happened."""

from __future__ import annotations

from collections import Counter
from typing import Any

from tests.faults.market.log import Attempt
from tests.faults.market.rows import Rows
from tests.faults.market.world import BEGINNING, DELIVERIES, MEMBER_LEVELS, MEMBERS

# What a market may refuse to processes like ours; anything else is a mistake.
REFUSALS = {
    "CreditsError", "DeliveryError", "ListingStateError", "NotAuthorisedError", "NotOwnedError", "OwnedAlreadyError",
    "PriceChangedError", "UnknownLevelError",
}  # fmt: skip


def check_told(rows: Rows, attempts: list[Attempt]) -> Counter[str]:
    """What was acknowledged is there as it was told; what is there was acknowledged, or cut off. Nothing else is."""
    figures: Counter[str] = Counter()
    told, bought, possible = set[int](), set[int](), Counter[tuple[str, ...]]()
    for task, end, answer in attempts:
        figures[f"{task['kind']} {end or 'cut off'}"] += 1
        if end == "refused":
            assert answer["refused"] in REFUSALS, answer
            assert "\n" not in answer["message"]
            figures[answer["refused"]] += 1
        elif end is None:
            possible[_name(task)] += 1
        elif task["kind"] == "buy":
            found = rows.purchases[answer["number"]]
            assert rows.accounts[found.buyer].name == task["buyer"], "somebody else has what was acknowledged"
            assert rows.listings[found.listing] == task["listing"]
            kept = found._asdict() | {"threshold": int(found.threshold), "new": answer["new"]}
            assert answer.items() <= kept.items(), "a purchase is not what was acknowledged"
            told.add(found.number)
            if answer["new"]:
                assert task["most"] is None or found.paid <= task["most"]
                assert found.number not in bought, "one purchase was new twice"
                bought.add(found.number)
            elif "again" in task:
                figures["bought before the kill, told after it"] += 1
        else:
            possible[_name(task)] += 1
            _check_done(rows, task)
    _check_nothing_else(rows, told, possible)
    figures["purchases"], figures["told"] = len(rows.purchases), len(told)
    figures["levels drawn"] = sum(not level.delivered and not level.account for level in rows.levels)
    figures["members' levels drawn"] = sum(not level.delivered and level.account > 0 for level in rows.levels)
    figures["delivered"] = sum(bool(level.delivered) for level in rows.levels)
    figures["transactions"] = len(rows.transactions)
    return figures


def _name(task: dict[str, Any]) -> tuple[str, ...]:
    """Return what tells whether something in the database comes from a task."""
    names = ("buyer", "listing", "member", "epsilon", "number", "tag")
    return (task["kind"], *(str(task[name]) for name in names if name in task))


def _check_done(rows: Rows, task: dict[str, Any]) -> None:
    if task["kind"] == "deliver":
        assert (0, task["epsilon"]) in rows.delivered, "an acknowledged delivery is lost"
    elif task["kind"] == "join":
        assert (rows.names[task["member"]], task["epsilon"]) in rows.delivered, "an acknowledged report is lost"
    elif task["kind"] == "refund":
        assert rows.purchases[task["number"]].state == "refunded", "an acknowledged refund is lost"
    else:
        gifts = [entry for entry in rows.entries if entry.reason == task["tag"]]
        assert sorted((entry.account, entry.amount) for entry in gifts) == [(0, -40), (rows.names[task["to"]], 40)]


def _check_nothing_else(rows: Rows, told: set[int], possible: Counter[tuple[str, ...]]) -> None:
    """What nobody was told of was being done when somebody was killed. What was refused has changed nothing."""
    there: Counter[tuple[str, ...]] = Counter()
    for purchase in rows.purchases.values():
        if purchase.number not in told:
            buyer, listing = rows.accounts[purchase.buyer].name, rows.listings[purchase.listing]
            there["buy", buyer, listing, purchase.epsilon] += 1
    for level in rows.levels:
        if level.delivered and level.account:
            there["join", rows.accounts[level.account].name, level.epsilon] = 1
        elif level.delivered:
            there["deliver", level.epsilon] = 1
    for entry in rows.entries:
        if entry.reason.startswith("refund of "):
            there["refund", entry.reason.split()[2].rstrip(":")] = 1
        elif entry.account == 0 and entry.reason != BEGINNING:
            there["gift", entry.reason] += 1
    surplus = {name: count for name, count in there.items() if count > possible[name] and not _is_first(name)}
    assert not surplus, f"something happened that nobody was told of: {surplus}"


def _is_first(name: tuple[str, ...]) -> bool:
    """Say whether it was there before any process began."""
    return name == ("deliver", DELIVERIES[0]) or name in {("join", each, MEMBER_LEVELS[1]) for each in MEMBERS[1:]}
