"""Whether a market that was raced and killed did what it says: looked at from outside, row by row.

The books with every credit, and purchases, in which goods and money change together.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from decimal import Decimal
from fractions import Fraction
from hashlib import sha256
from math import ceil
from pathlib import Path
from typing import Any

from tests.faults.market.log import everything
from tests.faults.market.path_check import check_paths
from tests.faults.market.rows import Purchase, Rows, read
from tests.faults.market.told import check_told
from tests.faults.market.world import LISTING, MARKET_KEY, OBJECTS
from tests.servers.ledgers import Place

from relaxdp.market.receipts import Receipt, Signer, VerifiableReceipt, fingerprint_of, verify

ONE = 1 << 64


def check(place: Place, folder: Path) -> Counter[str]:
    """Fail where anything is not as it must be, and return how much was looked at."""
    rows = read(place)
    assert not [each for each in rows.seen if each.kind == "changed"], "what is kept for good was changed"
    assert rows.public_key == Signer(MARKET_KEY).public_key
    check_books(rows)
    for purchase in rows.purchases.values():
        check_purchase(rows, purchase)
    check_chains(rows)
    check_paths(rows, folder)
    check_journal(rows, folder)
    return check_told(rows, everything(folder))


# The books


def check_books(rows: Rows) -> None:
    """Every line has its other side, and nobody has what was not issued."""
    assert sorted(rows.transactions) == list(range(1, len(rows.transactions) + 1)), "a transaction is missing"
    for number, lines in rows.transactions.items():
        assert sum(lines.values()) == 0, f"transaction {number} does not add up to 0"
        assert 0 not in lines.values()
    sums: Counter[int] = Counter()
    for entry in rows.entries:
        sums[entry.account] += entry.amount
    for account in rows.accounts.values():
        assert account.balance == sums[account.number], f"the balance of {account.name} is not the sum of its lines"
        assert account.balance >= 0 or account.name == "issue", f"{account.name} owes something"
    issued = -sum(entry.amount for entry in rows.entries if entry.account == rows.names["issue"])
    others = sum(account.balance for account in rows.accounts.values() if account.name != "issue")
    assert issued == others == -rows.accounts[rows.names["issue"]].balance, "there are other credits than were issued"
    for entry in rows.entries:
        assert entry.purchase is None or entry.purchase in rows.purchases, "somebody was charged without goods"


# Goods and money


def check_purchase(rows: Rows, purchase: Purchase) -> None:
    """One purchase: its price, its file, its receipt, and the lines that paid for it."""
    threshold, epsilon = int(purchase.threshold), Decimal(purchase.epsilon)
    assert purchase.digest in rows.files, "somebody was charged, and there is no file"
    before = None if purchase.previous is None else rows.purchases[purchase.previous]
    if rows.listings[purchase.listing] == LISTING:
        price = ceil(10 + 90 * Fraction(epsilon) + 50 * Fraction(threshold, ONE) ** 2)
        shares = {rows.names["seller"]: price - (0 if before is None else before.price)}
        objects = OBJECTS
    else:
        each, objects = ceil(2 + 3 * Fraction(epsilon)), len(rows.shares[purchase.number])
        earlier: dict[int, int] = {}
        while before is not None:  # the highest price that was paid for each person, however long ago
            earlier = {**rows.shares[before.number], **earlier}
            before = None if before.previous is None else rows.purchases[before.previous]
        shares = {account: each - earlier.get(account, 0) for account in rows.shares[purchase.number]}
        assert set(rows.shares[purchase.number].values()) == {each}
        price = each * objects
    assert (purchase.price, purchase.objects) == (price, objects)
    assert purchase.paid == sum(shares.values()), f"purchase {purchase.number} cost something else than it should"
    lines = {account: amount for account, amount in shares.items() if amount}
    if purchase.paid:
        lines[purchase.buyer] = -purchase.paid
    charged = [rows.transactions[number] for number, is_refund in rows.charges[purchase.number] if not is_refund]
    assert charged == ([lines] if lines else []), f"purchase {purchase.number} was not paid once, as it should be"
    _check_receipt(rows, purchase)


def _check_receipt(rows: Rows, purchase: Purchase) -> None:
    threshold = int(purchase.threshold)
    same = ("number", "epsilon", "price", "paid", "objects", "digest", "previous", "issued")
    fields: dict[str, Any] = {name: getattr(purchase, name) for name in same}
    receipt = Receipt(
        version=1, listing=rows.listings[purchase.listing], buyer=rows.accounts[purchase.buyer].name,
        threshold=str(threshold), retention=str(Fraction(threshold, ONE)), market=fingerprint_of(rows.public_key),
        **fields,
    )  # fmt: skip
    assert verify(VerifiableReceipt(receipt, purchase.signature), rows.public_key) == receipt


def check_journal(rows: Rows, folder: Path) -> None:
    """What was sold stands there in its order, and all of it that anybody was told of."""
    told = {attempt.told["number"] for attempt in everything(folder) if "number" in attempt.told}
    written: defaultdict[str, list[Any]] = defaultdict(list)
    for file in (folder / "journal").glob("*.jsonl"):
        content = file.read_bytes()
        for start in range(0, len(content) // 768 * 768, 768):
            line = json.loads(content[start : start + 768])
            written[line["listing"]].append((line["number"], line["digest"], line["history"]))
    for number, listing in rows.listings.items():
        sold = [each for each in rows.purchases.values() if each.listing == number]
        history, expected, found = listing, [], written[listing]
        for place, each in enumerate(sold):
            history = sha256(f"{history} {int(each.threshold)} {each.digest}".encode()).hexdigest()
            assert (each.place, each.history) == (place, history), "a history is not that of the sales before"
            expected.append((each.number, each.digest, history))
        assert found == expected[: len(found)], "the journal tells of other sales"
        assert not told & {each.number for each in sold[len(found) :]}, "somebody was told of a sale before the journal"


def check_chains(rows: Rows) -> None:
    """What a buyer has of a listing: upgrades that rise, one at a time, all paid or all refunded. Nothing twice."""
    assert list(rows.purchases) == list(range(1, len(rows.purchases) + 1)), "a purchase is missing"
    refunded = {each.one: each.place for each in rows.seen if each.kind == "refund"}
    upgraded = {purchase.previous for purchase in rows.purchases.values()}
    last = dict[tuple[int, int], list[Purchase]]()
    for purchase in rows.purchases.values():
        key = (purchase.buyer, purchase.listing)
        chain = last.get(key, [])
        place = rows.appeared["purchase", purchase.listing, purchase.number, purchase.threshold]
        if purchase.previous is None:
            assert all(refunded.get(each.number, place) < place for each in chain), "somebody was charged twice"
            chain = []
        else:
            assert chain, "an upgrade of nothing"
            assert purchase.previous == chain[-1].number, "one purchase was upgraded twice, or somebody else's"
            assert purchase.threshold > chain[-1].threshold, "an upgrade to the same or a lower level"
            assert all(refunded.get(each.number, place + 1) > place for each in chain), (
                "an upgrade of what was refunded"
            )
        last[key] = [*chain, purchase]
        if purchase.number not in upgraded:
            _check_end(rows, last[key])


def _check_end(rows: Rows, chain: list[Purchase]) -> None:
    """A chain of upgrades that has come to its end, for now: it is owned and paid, or refunded and paid back."""
    *earlier, end = chain
    if rows.listings[end.listing] == LISTING:
        assert sum(purchase.paid for purchase in chain) == end.price, "the steps do not add up to the price"
    assert end.state in ("owned", "refunded")
    is_owned = end.state == "owned"
    assert {purchase.state for purchase in earlier} <= {"upgraded" if is_owned else "refunded"}, "a chain is torn"
    paid, back = Counter[int](), Counter[int]()
    for purchase in chain:
        for number, is_refund in rows.charges[purchase.number]:
            (back if is_refund else paid).update(rows.transactions[number])
    if is_owned:
        assert not back, "what was refunded is owned"
    else:
        paid.update(back)
        assert not any(paid.values()), "a refund is not what was paid"
