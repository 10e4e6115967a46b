"""A market's answers as tables. They come from elsewhere: what is in them is shown, never obeyed or trusted."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich.table import Table

from relaxdp.cli.campaign_tables import make_table, text
from relaxdp.market.receipts import Receipt

Row = dict[str, Any]
_FEW = 12
_DETAILS = ("description", "source", "collected", "method", "licence")
_NOTHING_KNOWN = 0.5  # the half-width of all shares from 0 to 1


def credits_text(amount: Any) -> str:
    """Return an amount of credits.

    >>> credits_text(1), credits_text(12000)
    ('1 credit', '12,000 credits')
    """
    return f"{int(amount):,} credit{'' if int(amount) == 1 else 's'}"


def width(number: Any) -> str:
    """Return a half-width; a dash where nothing is known."""
    return "-" if number is None else f"± {float(number):.3g}"


def _or_dash(content: Any) -> str:
    return "-" if content is None else text(content)


def listings_table(listings: Sequence[Row]) -> Table:
    """Return what is for sale."""
    right = ("objects", "up to", "price", "half-width")
    return make_table(("listing", "kind", "title"), right, [_overview(each) for each in listings])


def _overview(listing: Row) -> list[str]:
    last = next((each for each in reversed(listing["levels"]) if each["available"]), None)
    state = "" if listing["state"] == "open" else f" ({text(listing['state'])})"
    words = [text(listing["id"]), text(listing["kind"]) + state, text(listing["title"])]
    numbers = [f"{int(listing['objects']):,}", _or_dash(listing["authorised"])]
    if last is None:
        return [*words, *numbers, "-", "-"]
    return [*words, *numbers, f"{int(last['price']):,}", width(last["half_width"])]


def heading(listing: Row) -> str:
    """Return what a listing is, in three lines, and what it says of itself."""
    seller = "many single sellers" if listing["seller"] is None else text(listing["seller"])
    upto = "nothing yet" if listing["authorised"] is None else f"up to epsilon {text(listing['authorised'])}"
    each = " for each object" if listing["kind"] == "pool" else ""
    return (
        f"{text(listing['id'])}: {text(listing['title'])}\n{text(listing['state'])}, {upto}, "
        f"{int(listing['objects']):,} objects of {seller}; {_described(listing['encoding'])}\n"
        f"price{each}: {prices_text(listing['prices'])}{_said(listing)}"
    )


def _said(listing: Row) -> str:
    """Return what a listing says of itself, a line for each."""
    asked = {"asks": listing["question"], "suggests the limit": listing["suggested"]}
    said = {**asked, **listing["details"]}
    return "".join(f"\n{name}: {text(said[name])}" for name in (*asked, *_DETAILS) if said.get(name) is not None)


def _described(encoding: Row | None) -> str:
    if encoding is None:
        return "what it holds is known from the first delivery on"
    if encoding.get("range") is not None:
        low, high = encoding["range"]
        return f"numbers from {float(low):g} to {float(high):g}"
    values = encoding["values"]
    shown = ", ".join(text(value) for value in values[:10])
    return f"one of {len(values):,} values: {shown}{', ...' if len(values) > 10 else ''}"


def prices_text(prices: Row) -> str:
    """Return prices as they are written on the command line."""
    if "formula" in prices:
        return text(prices["formula"])
    return ", ".join(f"{text(epsilon)}:{int(price)}" for epsilon, price in prices["points"])


def levels_text(listing: Row) -> str:
    """Return the levels in one line: few by their names, many by their number."""
    levels = [text(level["epsilon"]) for level in listing["levels"]]
    if len(levels) > _FEW:
        return f"levels: {len(levels)} from {levels[0]} to {levels[-1]}; relaxdp market show {text(listing['id'])}"
    return f"levels: {', '.join(levels) or 'from the first delivery on'}"


def levels_table(listing: Row) -> Table:
    """Return the price and the precision of all levels, and which of them are not on sale or cost nothing more.

    From a pool, a higher level is had of fewer people; the price is that of all of them together.
    """
    pool = listing["kind"] == "pool"
    rows, below = [], None
    for level in listing["levels"]:
        each = int(level["each"] if pool else level["price"])
        counted = [f"{each:,}", f"{int(level['objects']):,}"] if pool else []
        note = "" if level["available"] else "nobody sells it now" if pool else "not on sale yet"
        if level["available"] and below is not None and each == below[1]:
            note = f"costs no more than {below[0]}"
        if level["better"] is not None:
            note = f"{text(level['better'])} costs no more and tells no less"
        price = "-" if pool and not level["available"] else f"{int(level['price']):,}"
        rows.append([text(level["epsilon"]), *counted, price, width(level["half_width"]), note])
        below = text(level["epsilon"]), each
    table = make_table((), ("epsilon", *(["each", "objects"] if pool else []), "price", "half-width"), [])
    if any(row[-1] for row in rows):
        table.add_column("", overflow="fold")
    for row in rows:
        table.add_row(*row[: len(table.columns)])
    return table


def is_enough(found: Row) -> bool:
    """Tell whether a level tells anything at all, whatever the shares are."""
    return found["half_width"] is None or float(found["half_width"]) != _NOTHING_KNOWN


def tells(found: Row) -> str:
    """Return what can be known from a level: of how many objects, and how precisely."""
    objects = "it tells of 1 object" if int(found["objects"]) == 1 else f"it tells of {int(found['objects']):,} objects"
    half_width = found["half_width"]
    if half_width is None:
        return objects
    if not is_enough(found):
        return f"{objects}, which is too little for an estimate"
    return f"{objects}; estimates are right to within {width(half_width)} (95 %, at worst)"


def quote_text(quote: Row) -> str:
    """Return what a level costs, and whom."""
    due = ""
    if quote["owned"] is not None:
        due = f"; you own epsilon {text(quote['owned'])}, so {credits_text(quote['due'])} would be due"
    return f"epsilon {text(quote['epsilon'])} costs {credits_text(quote['price'])}{due}\n{tells(quote)}"


def purchases_table(found: Row) -> Table:
    """Return a buyer's purchases."""
    rows = [
        [f"{int(each['number'])}", text(each["listing"]), text(each["state"]), text(each["epsilon"]),
         f"{int(each['paid']):,}", width(each["half_width"]), _or_dash(each["authorised"])]
        for each in found["purchases"]
    ]  # fmt: skip
    right = ("epsilon", "paid", "half-width", "up to")
    title = f"balance: {credits_text(found['balance'])}"
    return make_table(("number", "listing", "state"), right, rows, title=title, title_justify="left")


def sales_tables(found: Row) -> list[Table | str]:
    """Return what a seller sold, and what it cost in privacy: against buyers, and against the platform."""
    tables = [make_table(("listing", text(each["listing"]["id"])), (), _sale(each)) for each in found["listings"]]
    return [*tables, f"balance: {credits_text(found['balance'])}"]


def _sale(each: Row) -> list[list[str]]:
    sold = [f"{text(level['epsilon'])} to {_people(level['buyers'])}" for level in each["sold"]]
    rows = [
        ["title", text(each["listing"]["title"])],
        ["state", text(each["listing"]["state"])],
        ["delivered", ", ".join(text(level["epsilon"]) for level in each["delivered"]) or "nothing yet"],
        ["sold", ", ".join(sold) or "nothing yet"],
        ["income", credits_text(each["income"])],
        ["loss against buyers", text(each["loss_buyers"])],
        ["loss against the platform", text(each["loss_platform"])],
    ]
    if each["budget"] is not None:
        rows.append(["left of the budget", f"{text(each['left'])} of {text(each['budget'])}"])
    if each["minimum"] is not None:
        rows.append(["your least price", credits_text(each["minimum"])])
    return rows


def _people(buyers: Any) -> str:
    return "1 buyer" if int(buyers) == 1 else f"{int(buyers):,} buyers"


def seller_text(each: Row) -> str:
    """Return where a listing stands for its seller, in three lines."""
    listing = each["listing"]
    budget = "without a budget" if each["budget"] is None else f"{text(each['left'])} left of {text(each['budget'])}"
    return (
        f"{text(listing['id'])} ({text(listing['state'])}): {_or_dash(listing['authorised'])} is the largest epsilon "
        f"on sale, {int(listing['objects']):,} objects\nprivacy loss: {text(each['loss_buyers'])} against buyers, "
        f"{text(each['loss_platform'])} against the platform; {budget}\n"
        f"{levels_text(listing)}"
    )


def statement_table(entries: Sequence[Row]) -> Table:
    """Return the entries of an account."""
    rows = [
        [f"{int(each['transaction'])}", text(each["issued"]), text(each["reason"]), _or_dash(each["purchase"]),
         f"{int(each['amount']):+,}"]
        for each in entries
    ]  # fmt: skip
    return make_table(("transaction", "time", "reason", "purchase"), ("amount",), rows)


def accounts_table(accounts: Sequence[Row]) -> Table:
    """Return all accounts."""
    rows = [[text(each["name"]), text(each["role"]), f"{int(each['balance']):,}"] for each in accounts]
    return make_table(("account", "role"), ("balance",), rows)


def receipt_table(receipt: Receipt) -> Table:
    """Return the fields of a receipt."""
    rows = [[name, _or_dash(content)] for name, content in receipt.to_json().items()]
    return make_table(("field", "content"), (), rows)
