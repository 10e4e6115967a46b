"""A market's answers as tables and sentences. They come from a server: their text is shown, never trusted."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import Any

from rich.table import Table

from relaxdp.cli.campaign_tables import make_table, text
from relaxdp.market.publish import Published
from relaxdp.theory.epsilon import format_epsilon

Row = dict[str, Any]


def format_money(amount: Any, listing: Row) -> str:
    """Return an amount with the currency of a listing or an order."""
    return f"{text(amount)} {text(listing['currency'])}"


def format_margin(margin: Any) -> str:
    """Return a margin of error; a dash where it is unknown."""
    return "-" if margin is None else f"±{float(margin):.2g}"


def make_listings_table(listings: Sequence[Row]) -> Table | str:
    """Return what is for sale."""
    if not listings:
        return "Nothing is for sale."
    rows = []
    for each in listings:
        last = each["levels"][-1] if each["levels"] else None
        best = ["-", "-", "-"]
        if last is not None:
            best = [text(last["epsilon"]), format_money(last["price"], each), format_margin(last["margin"])]
        rows.append([text(each["id"]), text(each["title"]), f"{len(each['levels'])}", *best])
    return make_table(("listing", "title"), ("levels", "largest epsilon", "price", "margin of error"), rows)


def describe_listing(listing: Row) -> list[Any]:
    """Return a listing and the table of its levels."""
    seller = f"sold by {text(listing['seller'])}" if listing["seller"] else "a pool of individuals"
    approval = "approved at once" if listing["approval"] == "automatic" else "approved by the seller"
    parts: list[Any] = [f"{text(listing['title'])} ({text(listing['id'])}), {seller}. Orders are {approval}."]
    if listing["about"]:
        parts.append(text(listing["about"], 2000))
    if not listing["levels"]:
        return [*parts, "No level is published yet."]
    has_due = listing["owned"] is not None
    owned = [each["epsilon"] for each in listing["levels"]].index(listing["owned"]) if has_due else -1
    rows = [
        [
            text(each["epsilon"]), format_money(each["price"], listing),
            *(["-" if place <= owned else format_money(each["due"], listing)] if has_due else []),
            f"{int(each['rows']):,}",
            format_margin(each["margin"]), _describe_offer(listing, each),
        ]
        for place, each in enumerate(listing["levels"])
    ]  # fmt: skip
    headings = ("epsilon", "price", *(["you pay"] if has_due else []), "rows", "margin of error")
    table = make_table((), headings, [])
    table.add_column("", overflow="fold")
    for row in rows:
        table.add_row(*row)
    parts += [
        table,
        "Margins of error (95 %) hold for any share or mean. They depend on rows and levels, not on reports.",
    ]
    if listing["recommended"] is None:
        parts.append("No level is recommended, because every margin of error exceeds a tenth of the possible range.")
    return parts


def _describe_offer(listing: Row, offer: Row) -> str:
    if offer["epsilon"] == listing["owned"]:
        return "yours"
    if offer["epsilon"] == listing["recommended"]:
        return "recommended"
    if offer["is_dominated"]:
        return "another level costs no more and is more accurate"
    return "" if offer["is_useful"] else "not accurate enough for most uses"


def describe_order(order: Row) -> str:
    """Return the state of an order, and what comes next."""
    number, what = text(order["id"]), f"{text(order['listing'])} at epsilon {text(order['epsilon'])}"
    money = format_money(order["due"], order)
    if order["state"] == "approved":
        file = shlex.quote(f"{text(order['listing'])}-{text(order['epsilon'])}.parquet")
        return f"Order {number} is approved: {what} for {money}.\nnext: relaxdp market download {number} {file}"
    if order["state"] == "withdrawn":
        return f"Order {number} is withdrawn: {what}. Nothing was delivered."
    paid = f"the difference, {money}" if order["previous"] else money
    return f"Order {number} is requested: {what} for {paid}. The seller has to approve it."


def describe_approved(order: Row) -> str:
    """Return what the seller approved."""
    what = f"{text(order['listing'])} at epsilon {text(order['epsilon'])} for {format_money(order['due'], order)}"
    return f"Order {text(order['id'])} is approved: {what}. {text(order['buyer'])} can download it now."


def make_orders_table(orders: Sequence[Row]) -> Table | str:
    """Return orders, the newest first."""
    if not orders:
        return "There are no orders."
    rows = [
        [
            text(each["id"]), text(each["listing"]), text(each["buyer"]), text(each["state"]),
            text(each["requested"])[:16], text(each["epsilon"]), format_money(each["due"], each),
        ]
        for each in orders
    ]  # fmt: skip
    return make_table(("order", "listing", "buyer", "state", "requested (UTC)"), ("epsilon", "due"), rows)


def describe_published(found: Published, vault: str) -> list[Any]:
    """Return which levels are new, and what they cost."""
    new = f"Published epsilon {', '.join(map(text, found.new))}." if found.new else "All levels were published before."
    cost = format_epsilon(found.cost) if found.cost else "0"
    left = format_epsilon(found.remaining) if found.remaining else "0"
    return [f"{new} Cost {cost}, {left} remaining in {text(vault)}.", *describe_listing(found.listing)]


def describe_sales(sales: Row) -> list[Any]:
    """Return what was sold at most of each column, and the sums for each key."""
    rows = [
        [
            text(each["listing"]), text(each["release"]), text(each["column"]),
            ", ".join(map(_describe_sold, each["sold"])) or "-",
            f"{int(each['open_requests']):,}", text(each["largest_sold"]), text(each["held"]),
        ]
        for each in sales["columns"]
    ]  # fmt: skip
    if not rows:
        return ["You have no listings."]
    headings = ("open requests", "largest sold", "market holds")
    table = make_table(("listing", "release", "column", "sold"), headings, rows)
    return [table, *(
        f"Sum over the columns of key {text(each['key_fingerprint'])}: privacy loss {text(each['largest_sold'])} "
        f"towards all buyers together, {text(each['held'])} towards the market."
        for each in sales["vaults"]
    )]  # fmt: skip


def _describe_sold(level: Row) -> str:
    buyers = int(level["buyers"])
    return f"{text(level['epsilon'])} ({buyers:,} buyer{'' if buyers == 1 else 's'})"
