"""Pools: who is in a sale, what each member earns and loses, and whose neighbours a report is drawn from."""

from __future__ import annotations

import base64
import io
import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from math import ceil
from pathlib import Path
from typing import Any

import pyarrow.parquet as pa_parquet
import pytest
from sqlalchemy import select
from tests.servers.markets import MARKET_KEY, VALUES, Here, Refused, described, dump, here, level_of

import relaxdp as rx
from relaxdp.market.schema import ACCOUNTS, MEMBER_LEVELS, MEMBERS
from relaxdp.mechanisms.base import Mechanism
from relaxdp.mechanisms.registry import create_mechanism
from relaxdp.sampling.bridge import draw_keyed_bridge_report
from relaxdp.sampling.keyed_stream import PathId, PathKeyInfo
from relaxdp.sampling.keys import add_length_prefix
from relaxdp.theory.epsilon import ONE, as_epsilon, format_epsilon

KINDS: dict[str, tuple[dict[str, Any], Mechanism]] = {
    "categorical": ({"name": "categorical", "values": VALUES}, rx.Categorical(VALUES)),
    "unary-optimised": (
        {"name": "unary-optimised", "values": list(range(11))},
        create_mechanism("unary-optimised", values=list(range(11))),
    ),
    "local-hash": (
        {"name": "local-hash", "values": list(range(50)), "options": {"buckets": 5}},
        create_mechanism("local-hash", values=list(range(50)), options={"buckets": 5}),
    ),
    "numeric": ({"name": "numeric", "range": [0, 10]}, rx.Numeric(0, 10)),
}
GRID = ["0.1", "0.3", "0.5", "0.8", "1", "1.4", "2", "3"]
FORMULA = "3 + 7*epsilon"


@pytest.fixture
def trader(tmp_path: Path) -> Iterator[Here]:
    with here(tmp_path) as made:
        for name in ("ann", "bob", "carl"):
            made.account(name, "seller")
        for name in ("institute", "insurer"):
            made.account(name, "buyer")
            made.credit(name, 10_000)
        yield made


@dataclass
class Person:
    """What should be known of a member."""

    name: str
    place: int
    minimum: int
    delivered: list[str] = field(default_factory=list)
    out: dict[int, Any] = field(default_factory=dict)
    between: dict[int, tuple[int | None, int | None]] = field(default_factory=dict)
    sold: dict[int, set[str]] = field(default_factory=dict)
    incomes: Counter[int] = field(default_factory=Counter)
    income: int = 0
    loss: Decimal = Decimal(0)

    @property
    def limit(self) -> Decimal:
        return max(map(as_epsilon, self.delivered))


class Watched:
    """A pool, beside which everything that should happen is computed independently, a member at a time."""

    def __init__(self, trader: Here, kind: str) -> None:
        self.trader, (asked, self.mechanism) = trader, KINDS[kind]
        self.people: dict[str, Person] = {}
        self.owned: dict[str, tuple[int, dict[str, int]]] = {}
        trader.pool("pool", asked, {"formula": FORMULA}, levels=GRID)
        encoding = self.mechanism
        self.name = PathKeyInfo(PathId("pool//pool", "answer"), encoding.name, encoding.alphabet, encoding.params)

    def threshold(self, epsilon: str) -> int:
        return self.mechanism.threshold(as_epsilon(epsilon))

    def report(self, person: Person, epsilon: str) -> Any:
        """The member's own report, from their own key."""
        key = rx.Key.from_bytes(bytes([person.place]) * 32)
        truth = 4 if isinstance(self.mechanism, rx.Numeric) else self.mechanism.labels[person.place % 3]
        path = self.mechanism.path(truth, key=key, id=person.name, name="pool", column="answer")
        return path.at(epsilon)

    def join(self, person: Person, epsilon: str, minimum: int) -> None:
        report = self.report(person, epsilon)
        sent = base64.b64encode(report).decode() if isinstance(report, bytes) else report
        made = self.trader.join(person.name, "pool", level_of(epsilon, self.mechanism), sent, minimum)
        self.people[person.name] = person
        person.minimum = minimum
        if epsilon not in person.delivered:
            person.delivered.append(epsilon)
            person.out[self.threshold(epsilon)] = report
            person.between[self.threshold(epsilon)] = (None, None)
        assert (made["minimum"], made["listing"]["objects"]) == (minimum, len(self.people))

    def pseudonyms(self) -> dict[str, str]:
        query = select(ACCOUNTS.c.name, MEMBERS.c.pseudonym).where(ACCOUNTS.c.number == MEMBERS.c.account)
        with self.trader.database.reading() as connection:
            return {row.name: row.pseudonym for row in connection.execute(query)}

    def buy(self, buyer: str, epsilon: str) -> str:
        """Buy or upgrade, and check everything; return what happened."""
        threshold, level = self.threshold(epsilon), as_epsilon(epsilon)
        each = ceil(3 + 7 * Fraction(level))
        willing = {
            person.name: person for person in self.people.values() if person.limit >= level and person.minimum <= each
        }
        owned, before = self.owned.get(buyer, (0, {}))
        due = sum(each - before.get(name, 0) for name in willing)
        balance, incomes = self.trader.balance(buyer), {name: self.trader.balance(name) for name in self.people}
        above = level > max((person.limit for person in self.people.values()), default=Decimal(0))
        if above or owned > threshold or (not willing and owned != threshold):
            with pytest.raises(Refused) as refused:
                self.trader.buy(buyer, "pool", epsilon, upgrade=0 < owned < threshold)
            assert refused.value.code == ("owned_already" if owned > threshold and not above else "not_authorised")
            assert self.trader.balance(buyer) == balance
            return refused.value.code
        purchase = self.trader.buy(buyer, "pool", epsilon, upgrade=0 < owned < threshold)
        if owned == threshold:
            assert not purchase["new"]
            assert self.trader.balance(buyer) == balance
            return "owned"
        assert willing
        assert (purchase["price"], purchase["paid"], purchase["objects"]) == (each * len(willing), due, len(willing))
        assert self.trader.balance(buyer) == balance - due
        for name, income in incomes.items():
            earned = each - before.get(name, 0) if name in willing else 0
            assert self.trader.balance(name) == income + earned
            self.people[name].income += earned
            self.people[name].incomes[threshold] += earned
        self._check_file(self.trader.data(buyer, purchase["number"]), willing, epsilon)
        for person in willing.values():
            person.sold.setdefault(threshold, set()).add(buyer)
            person.loss = max(person.loss, level)
        self.owned[buyer] = (threshold, {**before, **dict.fromkeys(willing, each)})
        return "bought"

    def _check_file(self, content: bytes, willing: dict[str, Person], epsilon: str) -> None:
        table, threshold = pa_parquet.read_table(io.BytesIO(content)), self.threshold(epsilon)
        pseudonyms = self.pseudonyms()
        assert table.column_names == ["member", "answer"]
        ids, reports = (column.to_pylist() for column in table.columns)
        assert ids == sorted(pseudonyms[name] for name in willing)
        said = described(content)["columns"]["answer"]
        assert (said["epsilon"], said["threshold"]) == (format_epsilon(as_epsilon(epsilon)), str(threshold))
        assert said["retention"] == str(Fraction(threshold, ONE))
        found = dict(zip(ids, reports, strict=True))
        for person in willing.values():
            report = found[pseudonyms[person.name]]
            if threshold not in person.out:
                lower = max((level for level in person.out if level < threshold), default=None)
                upper = min(level for level in person.out if level > threshold)
                person.between[threshold] = (lower, upper)
                wanted = self._bridged(person, pseudonyms[person.name], lower, threshold, upper)
                assert self._symbols(report) == wanted
                person.out[threshold] = report
            assert report == person.out[threshold]

    def _bridged(self, person: Person, who: str, lower: int | None, middle: int, upper: int) -> tuple[list[int], bytes]:
        above, seed = self._symbols(person.out[upper])
        below = [0] * len(above) if lower is None else self._symbols(person.out[lower])[0]
        levels = [Fraction(lower or 0, ONE), Fraction(middle, ONE), Fraction(upper, ONE)]
        return [
            draw_keyed_bridge_report(
                MARKET_KEY, self.name, who, *levels, lower_report=low, upper_report=high, symbol=symbol
            )
            for symbol, (low, high) in enumerate(zip(below, above, strict=True))
        ], seed

    def _symbols(self, report: Any) -> tuple[list[int], bytes]:
        encoding = self.mechanism
        if encoding.name.startswith("unary"):
            return [report[place // 8] >> place % 8 & 1 for place in range(encoding.symbols)], b""
        if encoding.name == "local-hash":
            return [int.from_bytes(report[8:], "little")], report[:8]
        return [list(encoding.labels).index(report)], b""

    def check_views(self) -> None:
        """Every member sees their own income, losses and neighbours, and nobody else's."""
        names = {self.threshold(epsilon): epsilon for epsilon in GRID}
        for person in self.people.values():
            (seen,) = self.trader.sales(person.name)
            assert (seen["income"], seen["minimum"], seen["budget"]) == (person.income, person.minimum, None)
            assert seen["loss_buyers"] == format_epsilon(person.loss)
            assert seen["loss_platform"] == format_epsilon(person.limit)
            assert [each["epsilon"] for each in seen["delivered"]] == person.delivered
            assert seen["buyers"] == len(set().union(*person.sold.values()))
            wanted = []
            for threshold in sorted(person.sold):
                lower, upper = person.between[threshold]
                drawn_from = None if upper is None else [None if lower is None else names[lower], names[upper]]
                wanted.append({
                    "epsilon": names[threshold], "buyers": len(person.sold[threshold]),
                    "income": person.incomes[threshold], "from": drawn_from,
                })  # fmt: skip
            assert seen["sold"] == wanted
        with self.trader.database.reading() as connection:
            rows = connection.execute(select(MEMBER_LEVELS, ACCOUNTS.c.name).join_from(
                MEMBER_LEVELS, ACCOUNTS, MEMBER_LEVELS.c.account == ACCOUNTS.c.number
            )).all()  # fmt: skip
        recorded = {
            (row.name, int(row.threshold)): (row.lower and int(row.lower), row.upper and int(row.upper)) for row in rows
        }
        assert recorded == {
            (person.name, threshold): ends
            for person in self.people.values()
            for threshold, ends in person.between.items()
        }
        assert self.trader.books()["balanced"]


@pytest.mark.long
@pytest.mark.parametrize("kind", KINDS)
def test_any_course_of_events(trader: Here, kind: str) -> None:
    """Members join, deliver more and change their price while buyers buy and upgrade, all at random."""
    chooser, watched = random.Random(f"pool {kind}"), Watched(trader, kind)
    happened: dict[str, int] = {}
    for step in range(60):
        what = "join" if step < 4 else chooser.choice(["join", "raise", "price", "buy", "buy", "buy"])
        if what == "join" and len(watched.people) < 9:
            person = Person(f"person-{step}", step + 1, 0)
            trader.account(person.name, "seller")
            watched.join(person, chooser.choice(["0.5", "1", "2"]), chooser.choice([0, 0, 8, 12]))
        elif what in ("raise", "price"):
            person = chooser.choice(list(watched.people.values()))
            higher = [epsilon for epsilon in GRID if as_epsilon(epsilon) > person.limit]
            epsilon = chooser.choice(higher) if what == "raise" and higher else person.delivered[-1]
            watched.join(person, epsilon, chooser.choice([0, 5, 12, 25]))
        elif what == "buy":
            buyer = chooser.choice(["institute", "insurer", f"buyer-{step}"])
            if buyer.startswith("buyer"):
                trader.account(buyer, "buyer")
                trader.credit(buyer, 10_000)
            came = watched.buy(buyer, chooser.choice(GRID))
            happened[came] = happened.get(came, 0) + 1
    watched.check_views()
    assert happened["bought"] >= 8
    drawn = [ends for person in watched.people.values() for ends in person.between.values() if ends[1] is not None]
    assert {lower is None for lower, _ in drawn} == {True, False}
    assert any(len(buyers) > 1 for person in watched.people.values() for buyers in person.sold.values())


def test_who_is_in_a_sale(trader: Here) -> None:
    """Eligible is whoever delivered at least that level, for at least their own price."""
    watched = Watched(trader, "categorical")
    watched.join(Person("ann", 1, 0), "1", 0)
    watched.join(Person("bob", 2, 0), "2", 10)
    watched.join(Person("carl", 3, 0), "0.5", 0)
    assert [trader.quote("pool", epsilon)["objects"] for epsilon in ("0.1", "0.5", "1", "2")] == [2, 2, 2, 1]
    assert trader.quote("pool", "1")["price"] == 20
    with pytest.raises(Refused) as refused:
        trader.quote("pool", "3")
    assert refused.value.code == "not_authorised"
    levels = {level["epsilon"]: level for level in trader.listing("pool")["levels"]}
    assert list(levels) == GRID
    assert trader.listing("pool")["authorised"] == "2"
    assert [levels["2"][name] for name in ("objects", "each", "price", "available")] == [1, 17, 17, True]
    assert [levels["3"][name] for name in ("objects", "each", "price", "available")] == [0, 24, 0, False]
    assert all((level["half_width"] is not None) == level["available"] for level in levels.values())
    assert watched.buy("institute", "0.5") == "bought"
    before = trader.balance("ann")
    # An upgrade charges the difference for ann, the whole price for bob, and nothing for carl, who is out of it.
    purchase = trader.buy("institute", "pool", "1", upgrade=True)
    assert (purchase["price"], purchase["paid"], purchase["objects"]) == (20, (10 - 7) + 10, 2)
    assert trader.balance("ann") == before + 3


def test_a_second_buyer_gets_the_same_reports(trader: Here) -> None:
    watched = Watched(trader, "unary-optimised")
    watched.join(Person("ann", 1, 0), "2", 0)
    watched.join(Person("bob", 2, 0), "1", 0)
    assert watched.buy("institute", "0.5") == "bought"
    first = {name: dict(person.out) for name, person in watched.people.items()}
    watched.join(Person("carl", 3, 0), "1", 0)
    assert watched.buy("institute", "0.5") == "owned"
    assert watched.buy("insurer", "0.5") == "bought"
    threshold = watched.threshold("0.5")
    for name in ("ann", "bob"):
        assert watched.people[name].out[threshold] == first[name][threshold]
    assert threshold in watched.people["carl"].out
    one, two = (trader.purchases(buyer)[0] for buyer in ("institute", "insurer"))
    assert (one["objects"], two["objects"]) == (2, 3)
    assert one["digest"] != two["digest"]
    watched.check_views()


def test_names_never_leave(trader: Here) -> None:
    """In files, listings and quotes there are pseudonyms, another one in each pool, or nobody at all."""
    watched = Watched(trader, "categorical")
    for place, name in enumerate(("ann", "bob", "carl")):
        watched.join(Person(name, place + 1, 0), "1", 0)
    pseudonyms = watched.pseudonyms()
    assert len(set(pseudonyms.values())) == 3
    for name, pseudonym in pseudonyms.items():  # a function of the market's key: a restored backup gives no second one
        parts = b"".join(add_length_prefix(part) for part in (b"market member", b"pool", name.encode()))
        assert pseudonym == MARKET_KEY.derive(parts)[:16].hex()
    trader.pool("other", KINDS["categorical"][0], {"formula": FORMULA}, levels=GRID)
    trader.join("ann", "other", level_of("1"), "flu")
    with trader.database.reading() as connection:
        everywhere = list(connection.execute(select(MEMBERS.c.pseudonym)).scalars())
    assert len(set(everywhere)) == 4
    purchase = trader.buy("institute", "pool", "0.5")
    content = trader.data("institute", purchase["number"])
    table = pa_parquet.read_table(io.BytesIO(content))
    shown = f"{table.to_pylist()} {described(content)} {trader.listing('pool')} {trader.receipt('institute', 1)}"
    shown += f"{purchase} {trader.statement('institute')} {trader.quote('pool', '1')}"
    for name in ("ann", "bob", "carl"):
        assert f"'{name}'" not in shown
        assert name.encode() not in content
    assert described(content)["columns"]["answer"]["key_fingerprint"] == ""
    assert trader.listing("pool")["seller"] is None


def test_a_refund_of_a_pool(trader: Here) -> None:
    """Every member gives back what they earned; what they lost in privacy stays lost."""
    watched = Watched(trader, "categorical")
    watched.join(Person("ann", 1, 0), "1", 0)
    watched.join(Person("bob", 2, 0), "2", 0)
    trader.buy("institute", "pool", "0.5")
    last = trader.buy("institute", "pool", "2", upgrade=True)
    losses = {name: trader.sales(name)[0]["loss_buyers"] for name in ("ann", "bob")}
    assert losses == {"ann": "0.5", "bob": "2"}
    for who in ("ann", "bob", "institute"):
        with pytest.raises(Refused) as refused:
            trader.refund(who, last["number"])
        assert refused.value.code == "unknown_purchase"
    trader.refund("operator", last["number"])
    for name in ("ann", "bob"):
        (seen,) = trader.sales(name)
        assert (trader.balance(name), seen["income"], seen["loss_buyers"]) == (0, 0, losses[name])
    assert trader.balance("institute") == 10_000
    assert trader.books()["balanced"]


def test_a_member_who_is_out_of_an_upgrade_keeps_what_was_earned(trader: Here) -> None:
    """Somebody who raised their price is not in the next level; what was bought of them stays bought."""
    watched = Watched(trader, "categorical")
    watched.join(Person("ann", 1, 0), "2", 0)
    watched.join(Person("bob", 2, 0), "2", 0)
    assert watched.buy("institute", "0.5") == "bought"
    watched.join(watched.people["bob"], "2", 1000)
    assert watched.buy("institute", "1") == "bought"
    assert [each["objects"] for each in trader.purchases("institute")] == [1, 2]
    assert (trader.balance("ann"), trader.balance("bob")) == (10, 7)
    watched.check_views()
    watched.join(watched.people["bob"], "2", 0)
    assert watched.buy("institute", "2") == "bought"  # and back again: what was paid for them at 0.5 still counts
    assert (trader.balance("ann"), trader.balance("bob")) == (17, 17)


def test_the_same_report_again_changes_only_the_price(trader: Here) -> None:
    watched = Watched(trader, "local-hash")
    watched.join(Person("ann", 1, 0), "1", 5)
    before = dump(trader.database)
    watched.join(watched.people["ann"], "1", 6)
    after = dump(trader.database)
    assert [name for name in before if before[name] != after[name]] == ["market_member"]
    watched.join(watched.people["ann"], "1", 5)
    assert dump(trader.database) == before
