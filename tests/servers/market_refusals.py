"""What a market refuses: a table of all mistakes, tried in process and over HTTP.

A mistake has a code for each of the two where they are not one: what is no JSON of the right type does not reach the
model.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from tests.servers.market_scene import FORMULA, HASHED, POINTS, PRICES, Scene, seeded
from tests.servers.markets import Trader, level_of

import relaxdp as rx
from relaxdp.market.receipts import Signer, signed_of

MALFORMED = "malformed_request"
SECOND = [
    "more ids", "fewer ids", "other ids", "text ids", "another order", "other values", "values in another order",
    "more values", "another encoding", "numbers instead", "another key", "another release", "another attribute",
    "diagnoses", "a smaller level", "nearly the same level", "above the budget",
]  # fmt: skip
FIRST = [
    "no Parquet", "a truncated file", "a CSV file", "an empty table", "not released", "a tampered threshold",
    "a tampered epsilon", "a tampered retention", "an unknown encoding", "a Bloom filter", "another id type",
    "the attribute of the ids", "a name that is a number", "a null report", "a null id", "a report outside",
    "reports of another type", "ids of another type", "unsorted ids", "duplicate ids", "a missing column",
    "several columns",
]  # fmt: skip


@dataclass(frozen=True)
class Later:
    """A word of a mistake that only the scene knows: a file, the number of a purchase, a receipt."""

    find: Callable[[Trader, Scene], Any]


def file(name: str) -> Later:
    """A file of the scene."""
    return Later(lambda trader, scene: scene.files[name])


OWNED, UPGRADED, REFUNDED = (
    Later(lambda trader, scene: scene.owned),
    Later(lambda trader, scene: scene.upgraded),
    Later(lambda trader, scene: scene.refunded),
)


@dataclass(frozen=True)
class Mistake:
    """What somebody tries, and the code with which it is refused; None where it cannot be tried."""

    name: str
    words: tuple[Any, ...]
    """A verb of a trader, and what is said with it."""
    here: str | None
    remote: str | None
    more: dict[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        return self.name

    def act(self, trader: Trader, scene: Scene) -> Any:
        """Try it."""
        verb, *said = self.words
        found = [word.find(trader, scene) if isinstance(word, Later) else word for word in said]
        return getattr(trader, verb)(*found, **self.more)


def wrong(name: str, code: str | None, *words: Any, remote: str | None = "", **more: Any) -> Mistake:
    """Return a mistake; over HTTP it has the same code, unless another one is given."""
    return Mistake(name, words, code, code if remote == "" else remote, more)


def _prices() -> Iterator[Mistake]:
    for name, prices, remote in [
        ("a curve that falls", {"points": [["0.1", 10], ["1", 9]]}, "price"),
        ("points in no order", {"points": [["1", 10], ["0.1", 10]]}, "price"),
        ("a point twice", {"points": [["1", 10], ["1", 10]]}, "price"),
        ("no points", {"points": []}, MALFORMED),
        ("points and a formula", {"points": POINTS, "formula": "1"}, "price"),
        ("neither points nor a formula", {}, "price"),
        ("a formula that falls", {"formula": "10 - 1*epsilon"}, "price"),
        ("a formula with code in it", {"formula": "__import__('os')"}, "price"),
        ("a point at NaN", {"points": [["NaN", 10]]}, "price"),
        ("a point at 0", {"points": [["0", 10]]}, "price"),
        ("a negative price", {"points": [["1", -1]]}, MALFORMED),
        ("half a credit", {"points": [["1", 1.5]]}, MALFORMED),
        ("a price that is true", {"points": [["1", True]]}, MALFORMED),
        ("a huge price", {"points": [["1", 10**30]]}, MALFORMED),
        ("a large price", {"points": [["1", 10**13]]}, "price"),
        ("1,001 points", {"points": [[str(number), 1] for number in range(1, 1002)]}, MALFORMED),
    ]:
        yield wrong(f"listed with {name}", "price", "list_release", "clinic", "new", prices, remote=remote)
    for name, prices in [
        ("a dearer one", {"points": [["0.1", 10], ["1", 101], ["2", 200]]}),
        ("a cheaper one", {"points": [["0.1", 10], ["1", 99], ["2", 200]]}),
        ("one in between", {"points": [["0.1", 10], ["0.5", 11], ["1", 100], ["2", 200]]}),
        ("a formula", {"formula": "100*epsilon"}),
        ("prices that end below", {"points": [["0.1", 10], ["0.9", 90]]}),
    ]:
        yield wrong(f"a price on sale becomes {name}", "price", "prices", "clinic", "diagnoses", prices)


def _listings() -> Iterator[Mistake]:
    lists = ("list_release", "clinic")
    yield wrong("an id that is taken", "listing_exists", *lists, "draft", PRICES)
    yield wrong("an id that a pool has", "listing_exists", "list_release", "rival", "snacks", PRICES)
    for odd in ("", "a\n", "A", "-a", "a b", "ä", "a/b", "x" * 65):
        yield wrong(f"the listing id {odd[:10]!r}", "market", *lists, odd, PRICES, remote=MALFORMED)
    yield wrong("a blank title", "market", *lists, "new", PRICES, title=" ")
    for title in ("", "x" * 201):
        yield wrong(f"a title of {len(title)} letters", "market", *lists, "new", PRICES, remote=MALFORMED, title=title)
    for name, details in [
        ("a long description", {"description": "x" * 2001}),
        ("a long licence", {"licence": "x" * 201}),
        ("a blank source", {"source": " \n"}),
        ("a null character in the method", {"method": "by\0post"}),
    ]:
        yield wrong(f"listed with {name}", "market", *lists, "new", PRICES, remote=MALFORMED, details=details)
    for budget in ("0", "-1", "NaN", "Infinity", "x", "1e100", "", "1e-200"):
        yield wrong(f"listed with the budget {budget!r}", "epsilon", *lists, "new", PRICES, budget=budget)
        yield wrong(f"the budget raised to {budget!r}", "epsilon", "budget", "clinic", "diagnoses", budget)
    for listing, budget in (("diagnoses", "1.5"), ("diagnoses", "2"), ("open-end", "0.5")):
        yield wrong(f"the budget of {listing} lowered to {budget}", "market", "budget", "clinic", listing, budget)
    yield wrong("closed twice", "listing_state", "close", "clinic", "closed")
    yield wrong("a closed pool closed", "listing_state", "close_any", "shut")
    yield wrong("closed twice, by the operator", "listing_state", "close_any", "closed")
    yield wrong("nothing closed by the operator", "unknown_listing", "close_any", "nothing")
    for words in [
        ("deliver", "rival", "diagnoses", file("second")),
        ("prices", "rival", "diagnoses", PRICES),
        ("budget", "rival", "diagnoses", "5"),
        ("close", "rival", "diagnoses"),
        ("close", "rival", "nothing"),
        ("close", "ann", "snacks"),
        ("deliver", "ann", "snacks", file("second")),
    ]:
        yield wrong(f"somebody else's: {' '.join(map(str, words[:3]))}", "unknown_listing", *words)
    for name, role, nobody in (("institute", "wrong_role", ""), ("nobody", "unknown_account", None)):
        for words in [
            ("list_release", name, "new", PRICES),
            ("deliver", name, "draft", file("second")),
            ("join", name, "snacks", level_of("1"), "flu"),
        ]:
            yield wrong(f"a seller's {words[0]} by {name}", role, *words, remote=nobody)
    yield wrong("bought by a seller", "wrong_role", "buy", "clinic", "diagnoses", "0.5")
    yield wrong("bought by nobody", "unknown_account", "buy", "nobody", "diagnoses", "0.5", remote=None)


def _levels() -> Iterator[Mistake]:
    hundred = [f"0.{number:04}" for number in range(1, 101)]
    for name, levels, code, remote in [
        ("no level", [], "market", MALFORMED),
        ("101 levels", [*hundred, "0.5"], "market", MALFORMED),
        ("a level without a price", ["0.5", "2.1"], "price", ""),
        ("a level of 18 digits", ["0.500000000000000001"], "epsilon", ""),
        ("a level at 0", ["0"], "epsilon", ""),
    ]:
        for verb, *words in [("list_release", "clinic", "new"), ("prices", "clinic", "diagnoses")]:
            yield wrong(f"{verb} with {name}", code, verb, *words, PRICES, remote=remote or code, levels=levels)
    below = ["0.123", "1.5"]
    yield wrong(
        "a level that comes below what is on sale", "market", "prices", "clinic", "diagnoses", PRICES, levels=below
    )
    many = [f"1.{number:04}" for number in range(1, 100)]
    yield wrong("levels that come on top of too many", "market", "prices", "clinic", "diagnoses", PRICES, levels=many)


def _deliveries() -> Iterator[Mistake]:
    for name in SECOND:
        yield wrong(f"second delivery: {name}", "delivery", "deliver", "clinic", "diagnoses", file(name))
    for name in FIRST:
        yield wrong(f"first delivery: {name}", "delivery", "deliver", "clinic", "draft", file(name))
    several = file("several columns")
    yield wrong("another seed", "delivery", "deliver", "clinic", "hashes", file("other seeds"))
    yield wrong("in another encoding", "delivery", "deliver", "clinic", "numbers", file("clipped numbers"))
    yield wrong("a column that is not there", "delivery", "deliver", "clinic", "draft", several, "three")
    yield wrong("above the last price", "price", "deliver", "clinic", "short", file("second"))
    yield wrong("delivered to a closed listing", "listing_state", "deliver", "clinic", "closed", file("second"))
    yield wrong("delivered to nothing", "unknown_listing", "deliver", "clinic", "nothing", file("second"))
    for name, seller, listing, again in [
        ("by its seller", "clinic", "draft", "diagnoses"),
        ("by its seller, higher", "clinic", "draft", "second"),
        ("by another seller", "rival", "copy", "diagnoses"),
        ("after closing", "clinic", "draft", "closed"),
    ]:
        yield wrong(f"one release listed twice, {name}", "listing_exists", "deliver", seller, listing, file(again))

    for listing in ("diagnoses", "snacks"):
        yield wrong(
            f"what was bought of {listing} listed", "listing_exists", "deliver", "rival", "copy", bought(listing)
        )


def bought(listing: str) -> Later:
    """A file that the institute bought."""

    def find(trader: Trader, scene: Scene) -> Any:
        own = next(each for each in trader.purchases("institute") if each["listing"] == listing)
        path = scene.files["diagnoses"].with_name(f"bought-{listing}.parquet")
        path.write_bytes(trader.data("institute", own["number"]))
        return path

    return Later(find)


def _orders() -> Iterator[Mistake]:
    for epsilon in ("0", "-1", "NaN", "Infinity", "1e100", "1e-200", "x", "", "0,5", "0_5", "٠"):
        for asks in (("buy", "insurer", "diagnoses"), ("buy", "insurer", "snacks"), ("quote", "diagnoses")):
            yield wrong(f"{asks[0]} {asks[-1]} at {epsilon!r}", "epsilon", *asks, epsilon)
    for epsilon in ("1e-30", "0.01", "0.33", "0.999"):
        for asks in (("buy", "insurer", "diagnoses"), ("buy", "insurer", "snacks"), ("quote", "diagnoses")):
            yield wrong(f"{asks[0]} {asks[-1]} between levels, at {epsilon}", "unknown_level", *asks, epsilon)
    for odd in (True, None, ["0.5"]):
        yield wrong(f"bought at {odd!r}", "epsilon", "buy", "insurer", "diagnoses", odd, remote=MALFORMED)
    yield wrong("bought at a float", None, "buy", "insurer", "diagnoses", 0.5, remote=MALFORMED)
    for name, code, *words in [
        ("above what is authorised", "not_authorised", "buy", "insurer", "diagnoses", "1.00001"),
        ("far above what is authorised", "not_authorised", "buy", "insurer", "diagnoses", "1e50"),
        ("quoted above what is authorised", "not_authorised", "quote", "diagnoses", "2"),
        ("a pool above its limits", "not_authorised", "buy", "insurer", "snacks", "1.5"),
        ("an empty pool", "not_authorised", "buy", "insurer", "empty", "0.5"),
        ("a pool where nobody is willing", "not_authorised", "buy", "insurer", "proud", "0.5"),
        ("a draft bought", "unknown_listing", "buy", "insurer", "draft", "0.5"),
        ("a draft quoted", "unknown_listing", "quote", "draft", "0.5"),
        ("a draft shown", "unknown_listing", "listing", "draft"),
        ("nothing bought", "unknown_listing", "buy", "insurer", "nothing", "0.5"),
        ("a closed listing bought", "listing_state", "buy", "insurer", "closed", "0.5"),
        ("a closed listing quoted", "listing_state", "quote", "closed", "0.5"),
        ("a closed pool bought", "listing_state", "buy", "insurer", "shut", "0.5"),
        ("a closed pool quoted", "listing_state", "quote", "shut", "0.5"),
        ("lower than owned, bought", "owned_already", "buy", "institute", "diagnoses", "0.3"),
        ("a lower level is owned", "owned_already", "buy", "institute", "diagnoses", "0.8"),
        ("too few credits", "credits", "buy", "poor", "diagnoses", "0.1"),
        ("too few credits for a pool", "credits", "buy", "poor", "snacks", "1"),
        ("dearer than wanted", "price_changed", "buy", "insurer", "diagnoses", "1", 99),
        ("a pool that is dearer than wanted", "price_changed", "buy", "insurer", "snacks", "1", 9),
    ]:
        yield wrong(str(name), str(code), *words)
    for name, code, *words in [
        ("above what is authorised", "not_authorised", "institute", "diagnoses", "2"),
        ("a closed listing", "listing_state", "institute", "closed", "1"),
        ("a closed pool", "listing_state", "institute", "shut", "1"),
        ("what is not owned", "not_owned", "insurer", "diagnoses", "0.5"),
        ("what was refunded", "not_owned", "insurer", "open-end", "1"),
        ("a pool that is not owned", "not_owned", "insurer", "snacks", "1"),
        ("lower than owned", "owned_already", "institute", "diagnoses", "0.3"),
        ("too few credits", "credits", "thrifty", "diagnoses", "1"),
        ("dearer than wanted", "price_changed", "institute", "diagnoses", "1", 49),
    ]:
        yield wrong(f"upgrade: {name}", str(code), "buy", *words, upgrade=True)
    for most in (-1, 1.5, True, "5", 10**30):
        yield wrong(f"ready to pay {most!r}", None, "buy", "insurer", "diagnoses", "1", most, remote=MALFORMED)


def forged(change: Callable[[Any], Any]) -> Later:
    """A receipt that was good before it was changed."""
    return Later(lambda trader, scene: change(trader.receipt("institute", scene.owned)))


def with_receipt(**changes: Any) -> Callable[[Any], Any]:
    """Change fields of the receipt under its signature."""
    return lambda signed: {**signed, "receipt": {**signed["receipt"], **changes}}


def by_another_market(signed: Any, *, named: bool) -> Any:
    """Sign a receipt with another market's key, under that market's name or under this one's."""
    other = Signer(rx.Key.from_bytes(bytes(32)))
    theirs = other.sign(replace(signed_of(signed).receipt, market=other.fingerprint)).to_json()
    return theirs if named else {"receipt": signed["receipt"], "signature": theirs["signature"]}


def _receipts() -> Iterator[Mistake]:
    changes: dict[str, Callable[[Any], Any]] = {
        "another price": with_receipt(paid=0),
        "another buyer": with_receipt(buyer="poor"),
        "another file": with_receipt(digest="0" * 64),
        "one field more": with_receipt(x=1),
        "one field less": lambda signed: {
            **signed, "receipt": {name: value for name, value in signed["receipt"].items() if name != "paid"}
        },
        "no fields": lambda signed: {**signed, "receipt": {}},
        "another signature": lambda signed: {**signed, "signature": base64.b64encode(bytes(64)).decode()},
        "no signature": lambda signed: {**signed, "signature": ""},
        "another key": lambda signed: {**signed, "public_key": "0" * 64},
        "another market": lambda signed: by_another_market(signed, named=True),
        "another market's signature": lambda signed: by_another_market(signed, named=False),
    }  # fmt: skip
    for name, change in changes.items():
        yield wrong(f"a receipt with {name}", "receipt_forged", "verify", forged(change))
    for verb in ("receipt", "data"):
        yield wrong(f"somebody else's {verb}", "unknown_purchase", verb, "insurer", OWNED)
        for number in (0, 999):
            yield wrong(f"the {verb} of purchase {number}", "unknown_purchase", verb, "institute", number)
    yield wrong("refunded twice", "listing_state", "refund", "clinic", REFUNDED)
    yield wrong("refunded after an upgrade", "listing_state", "refund", "clinic", UPGRADED)
    yield wrong("refunded by its buyer", "unknown_purchase", "refund", "institute", OWNED, remote="wrong_role")
    yield wrong("refunded by another seller", "unknown_purchase", "refund", "rival", OWNED)
    for who in ("clinic", "operator"):
        yield wrong(f"nothing refunded by {who}", "unknown_purchase", "refund", who, 999)


def _accounts() -> Iterator[Mistake]:
    for name in ("", "A", "-a", "a b", "ä", "x" * 65, "a/b", "a\n"):
        yield wrong(f"an account named {name[:10]!r}", "market", "account", name, "buyer", remote=MALFORMED)
    for name in ("issue", "operator"):
        yield wrong(f"an account named {name!r}", "market", "account", name, "buyer")
    for role in ("operator", "issue", "admin", "", "Buyer"):
        yield wrong(f"an account with the role {role!r}", "market", "account", "new", role, remote=MALFORMED)
    for role in ("buyer", "seller"):
        yield wrong(f"a second {role} with one name", "account_exists", "account", "institute", role)
    for amount in (0, -1, 1.5, True, "5", None, 10**30):
        yield wrong(f"{amount!r} credits", "market", "credit", "poor", amount, remote=MALFORMED)
    yield wrong("more credits than there may be", "market", "credit", "poor", 10**15)
    for name in ("nobody", "issue", "operator"):
        yield wrong(f"credits for {name}", "unknown_account", "credit", name, 5)


def _pools() -> Iterator[Mistake]:
    level, hashed = level_of("1"), level_of("2", HASHED)
    off_by_one = str(int(level["threshold"]) - 1)
    for name, code, *words in [
        ("another threshold", "delivery", "bob", "snacks", {**level, "threshold": off_by_one}, "flu"),
        ("no threshold", "delivery", "bob", "snacks", {**level, "threshold": ""}, "flu"),
        ("a level in another spelling", "delivery", "bob", "snacks", {**level, "epsilon": "1.0"}, "flu"),
        ("a level at NaN", "epsilon", "bob", "snacks", {**level, "epsilon": "NaN"}, "flu"),
        ("a level at 0", "epsilon", "bob", "snacks", {**level, "epsilon": "0"}, "flu"),
        ("a level that is too small", "unknown_level", "bob", "snacks", {**level, "epsilon": "1e-30"}, "flu"),
        ("a level above the prices", "unknown_level", "bob", "snacks", level_of("3"), "flu"),
        ("a level between two", "unknown_level", "bob", "snacks", level_of("0.77"), "flu"),
        ("a label outside", "report_outside_encoding", "bob", "snacks", level, "SECRET"),
        ("a number for a label", "report_outside_encoding", "bob", "snacks", level, 1),
        ("a lower level", "delivery", "ann", "snacks", level_of("0.5"), "flu"),
        ("another report at one level", "delivery", "ann", "snacks", level, "none"),
        ("another seed", "delivery", "ann", "hashed", hashed, seeded(8, 2)),
        ("a bucket outside", "report_outside_encoding", "bob", "hashed", hashed, seeded(8, 5)),
        ("no base 64", "report_outside_encoding", "bob", "hashed", hashed, "?"),
        ("a number in between", "report_outside_encoding", "bob", "empty", level_of("1", rx.Numeric(0, 10)), 5),
        ("a report to a release", "listing_state", "ann", "diagnoses", level, "flu"),
        ("a report to a draft", "listing_state", "clinic", "draft", level, "flu"),
        ("a report to a closed pool", "listing_state", "bob", "shut", level, "flu"),
        ("a higher level for a closed pool", "listing_state", "ann", "shut", level_of("2"), "flu"),
        ("a report to nothing", "unknown_listing", "ann", "nothing", level, "flu"),
    ]:
        yield wrong(f"joined with {name}", str(code), "join", *words)
    for least in (-1, 1.5, True, "5", None, 10**30):
        yield wrong(f"the least price {least!r}", "market", "join", "bob", "snacks", level, "flu", least,
                    remote=MALFORMED)  # fmt: skip
    two = {"name": "categorical", "values": ["a", "b"]}
    for name, code, encoding, prices in [
        ("of one value", "values", {"name": "categorical", "values": ["a"]}, FORMULA),
        ("of a value twice", "values", {"name": "categorical", "values": ["a", "a"]}, FORMULA),
        ("of no values", "mechanism", {"name": "categorical"}, FORMULA),
        ("of an unknown encoding", "mechanism", {"name": "magic", "values": ["a", "b"]}, FORMULA),
        ("of Bloom filters", "campaign", {"name": "bloom", "options": {"bits": 8, "hashes": 1, "cohorts": 1}}, FORMULA),
        ("of an empty range", "values", {"name": "numeric", "range": [1, 1]}, FORMULA),
        ("with prices that fall", "price", two, {"formula": "0 - 1"}),
    ]:
        yield wrong(f"a pool {name}", str(code), "pool", "new", encoding, prices)
    yield wrong("a pool with an id that is taken", "listing_exists", "pool", "diagnoses", two, PRICES)
    yield wrong("a pool with a formula and no levels", "market", "pool", "new", two, FORMULA)
    yield wrong("a pool whose levels tell nothing", "market", "pool", "new", two, FORMULA, levels=["1e-30"])


MISTAKES = [*_prices(), *_listings(), *_levels(), *_deliveries(), *_orders(), *_receipts(), *_accounts(), *_pools()]
assert len({mistake.name for mistake in MISTAKES}) == len(MISTAKES)
