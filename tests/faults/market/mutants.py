"""Mistakes that a market could make. The check of the campaigns has to find each of them."""

from __future__ import annotations

import importlib
import inspect
import textwrap
from typing import Any

Edit = tuple[str, str, str, str]
"""Where a mistake is: the file, the function, what stands there, and what a careless hand would have written."""

_KEEP = "listings.keep_level(connection, listing, KeptFile(deal.offer.level, between, digest))"
_PAY = "pay(connection, purchase, {listing.seller: deal.due})"
_LATER = """\
if sold is not None and sold[1]:
    with self.writing() as connection:
        sales.pay(connection, sold[0], {sold[0].listing.seller: sold[0].paid})
if sold is not None:
"""
MUTANTS: dict[str, list[Edit]] = {
    "a line is not written": [("accounts", "post", "insert(ENTRIES), rows", "insert(ENTRIES), rows[:-1]")],
    "a balance is not changed": [("accounts", "post", "connection.execute(raised, given)", "pass")],
    "nobody pays": [("sales", "sell", _PAY, "pass")],
    "an upgrade costs the whole price": [("sales", "release_deal", "else owned.price", "else 0")],
    "a level is not kept": [("sales", "sell", _KEEP, "pass")],
    "what is authorised is forgotten": [  # and whoever wants more gets the highest level there is, under another name
        (
            "sales",
            "level_of",
            "return level_on(listing.grid, as_epsilon(epsilon), listing.encoding, authorised)",
            "exact, encoding = as_epsilon(epsilon), listing.encoding\n    "
            "return encoding.level(exact, encoding.level(min(exact, authorised.epsilon)).threshold)",
        ),
    ],
    "a refund forgets what was upgraded": [
        ("market", "Market.refund", "purchases.chain(connection, purchase)", "[purchase]")
    ],
    "a refund is of goods alone": [
        ("market", "Market.refund", "accounts.post(connection, back", "accounts.post(connection, {}")
    ],
    "a stale draw is kept": [("sales", "sell", "drawn is None or drawn.between != between", "drawn is None")],
    "a sale is not written down": [
        ("market", "Market.buy", "self.write_down(connection, sold[0].listing)\n", "pass\n")
    ],
    "nobody holds the market": [("market", "Market.writing", "connection.exec_driver_sql(_HOLD)", "pass")],
    "goods first and money later": [
        ("sales", "sell", _PAY, "pass"),
        ("market", "Market.buy", "if sold is not None:\n", textwrap.indent(_LATER, " " * 8).lstrip()),
    ],
}


def mistakes(name: str) -> list[tuple[Any, str, Any]]:
    """Return whose attributes a mistake changes, their names, and the functions with the mistake in them."""
    found: dict[tuple[str, str], str] = {}
    for file, function, right, wrong in MUTANTS[name]:
        source = found.get((file, function)) or textwrap.dedent(inspect.getsource(_place(file, function)[2]))
        assert source.count(right) == 1, f"{function} is not what it was"
        found[file, function] = source.replace(right, wrong)
    made = []
    for (file, function), source in found.items():
        owner, attribute, _ = _place(file, function)
        scope: dict[str, Any] = {}
        code = compile(f"from __future__ import annotations\n{source}", f"<{function}>", "exec")
        exec(code, vars(importlib.import_module(f"relaxdp.market.{file}")), scope)
        made.append((owner, attribute, scope[attribute]))
    return made


def _place(file: str, function: str) -> tuple[Any, str, Any]:
    owner: Any = importlib.import_module(f"relaxdp.market.{file}")
    *owners, attribute = function.split(".")
    for each in owners:
        owner = getattr(owner, each)
    return owner, attribute, getattr(owner, attribute)


def make_mistake(name: str) -> None:
    """Make a mistake, in this process, for good."""
    for owner, attribute, function in mistakes(name):
        setattr(owner, attribute, function)
