"""The market's model: what it refuses leaves everything as it was, and credits add up whatever happens."""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Callable, Iterator
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise
from math import ceil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sqlalchemy import delete, event, insert, update
from tests.servers.market_refusals import MISTAKES, Mistake
from tests.servers.market_scene import Scene, set_the_scene
from tests.servers.markets import (
    MARKET_KEY,
    Here,
    Refused,
    column_of,
    described,
    dump,
    here,
    level_of,
    release_file,
)

import relaxdp as rx
from relaxdp.market import accounts
from relaxdp.market.accounts import NAME_PATTERN, OPERATOR, next_number
from relaxdp.market.journal import Journal
from relaxdp.market.market import Market
from relaxdp.market.schema import ACCOUNTS, ENTRIES, LEVELS
from relaxdp.server_errors import CreditsError, MarketKeyError, WrongRoleError
from relaxdp.theory.epsilon import as_epsilon, format_epsilon

SENTENCE = re.compile(r"[^\n]{10,300}[.]")
POINTS = [("0.1", 7), ("0.5", 7), ("1", 100), ("2.5", 1_003)]


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Here, Scene]]:
    folder = tmp_path_factory.mktemp("market")
    with here(folder) as trader:
        yield trader, set_the_scene(trader, folder)


@pytest.fixture
def trader(tmp_path: Path) -> Iterator[Here]:
    """A market with a seller, two buyers, and a release at epsilon 2.5."""
    with here(tmp_path) as made:
        for name, role in (("clinic", "seller"), ("institute", "buyer"), ("insurer", "buyer")):
            made.account(name, role)
        for name in ("institute", "insurer"):
            made.credit(name, 5000)
        made.list_release("clinic", "one", {"points": [list(point) for point in POINTS]}, budget="3")
        made.deliver("clinic", "one", release_file(tmp_path, "2.5"))
        yield made


@pytest.mark.parametrize("mistake", [each for each in MISTAKES if each.here is not None], ids=str)
def test_a_mistake_changes_nothing(stage: tuple[Here, Scene], mistake: Mistake) -> None:
    trader, scene = stage
    before = dump(trader.database)
    with pytest.raises(Refused) as refused:
        mistake.act(trader, scene)
    assert refused.value.code == mistake.here
    assert SENTENCE.fullmatch(refused.value.sentence)
    assert "SECRET" not in refused.value.sentence
    assert dump(trader.database) == before


def test_the_table_of_mistakes_would_notice_a_change(stage: tuple[Here, Scene]) -> None:
    """The comparison can fail: every table has rows, and what is allowed changes them."""
    trader, _ = stage
    before = dump(trader.database)
    assert len(before) == 10
    assert all(before.values())
    trader.credit("poor", 1)
    after = dump(trader.database)
    assert {name for name in before if before[name] != after[name]} == {"market_account", "market_entry"}


Transaction = tuple[str, Counter[str]]


def looked(trader: Here, act: Callable[[], Any]) -> list[Transaction]:
    """Return how every transaction of an act began, and how often it looked at each table."""
    found: list[Transaction] = []

    def note(_connection: Any, _cursor: Any, statement: str, *_more: Any) -> None:
        if statement.startswith("BEGIN"):
            found.append((statement, Counter()))
        for table in re.findall(r"^SELECT .*?FROM (\w+)", statement, re.DOTALL):
            is_owned = "market_purchase.state = " in statement
            found[-1][1].update([f"{table}, owned" if is_owned else table])

    event.listen(trader.database.engine, "before_cursor_execute", note)
    try:
        act()
    finally:
        event.remove(trader.database.engine, "before_cursor_execute", note)
    return found


def test_a_sale_looks_at_everything_once(trader: Here, tmp_path: Path) -> None:
    """Once while the market is held, and once before: what is looked up twice may be two things."""
    (tmp_path / "journal").mkdir()
    market, trader.market.journal = trader.market, Journal(tmp_path / "journal")
    trader.pool("pool", {"name": "categorical", "values": ["a", "b"]}, {"formula": "5"}, levels=["1"])
    trader.join("clinic", "pool", level_of("1", rx.Categorical(["a", "b"])), "a")
    sales: dict[str, Callable[[], Any]] = {
        "a level that is drawn": lambda: market.buy("institute", "one", "0.5"),
        "one between two": lambda: market.upgrade("institute", "one", "1"),
        "one that is out": lambda: market.buy("insurer", "one", "1"),
        "one that is owned": lambda: market.buy("insurer", "one", "1"),
        "one of a pool": lambda: market.buy("insurer", "pool", "1"),
    }
    for name, sale in sales.items():
        transactions = looked(trader, sale)
        (held,) = (place for place, (begin, _) in enumerate(transactions) if begin == "BEGIN IMMEDIATE")
        before, after = (sum((each for _, each in part), Counter[str]())
                         for part in (transactions[:held], transactions[held + 1 :]))  # fmt: skip
        once = {"market_listing": 1, "market_account": 1, "market_purchase, owned": 1}
        once |= {} if name == "one of a pool" else {"market_level": 1}
        for table in ("market_listing", "market_level", "market_account", "market_purchase, owned"):
            assert transactions[held][1][table] == once.get(table, 0), (name, table)
            assert before[table] <= 1, (name, table)
            assert after[table] == 0, (name, table)


def test_a_level_that_tells_more_than_its_row_says_is_not_sold(trader: Here) -> None:
    """Epsilon and threshold are two columns: a row in which they are not one level is refused, whoever changed it."""
    with trader.market.writing() as connection:
        connection.execute(update(LEVELS).values(epsilon="0.4"))
    before = dump(trader.database)
    for epsilon in ("0.25", "2.5"):
        with pytest.raises(Refused) as refused:
            trader.buy("institute", "one", epsilon)
        assert refused.value.code == "level"
    assert dump(trader.database) == before


def test_entries_say_what_was_sold(trader: Here) -> None:
    trader.buy("institute", "one", "0.5")
    trader.buy("institute", "one", "1", upgrade=True)
    for name, kind in (("institute", -1), ("clinic", 1)):
        said = [(each["reason"], kind * each["amount"]) for each in trader.statement(name)]
        assert said[:2] == [("upgraded one at 1", 93), ("bought one at 0.5", 7)]


def price_by_hand(epsilon: Decimal) -> int:
    """The price on the broken line of POINTS, rounded up."""
    level = Fraction(epsilon)
    corners = [(Fraction(written), price) for written, price in POINTS]
    if level <= corners[0][0]:
        return corners[0][1]
    for (low, cheap), (high, dear) in pairwise(corners):
        if low <= level <= high:
            return ceil(cheap + (dear - cheap) * (level - low) / (high - low))
    raise AssertionError("above the last point there is no price")


def test_upgrades_cost_the_difference_and_telescope(trader: Here) -> None:
    """However many steps, in whatever sizes: at each of them all that was paid is the price of what is owned."""
    chooser, rounds = random.Random(3), 6
    levels = [as_epsilon(level["epsilon"]) for level in trader.listing("one")["levels"]]
    for number in range(rounds):
        buyer = f"buyer-{number}"
        trader.account(buyer, "buyer")
        trader.credit(buyer, 2000)
        chosen = sorted(chooser.sample(levels, chooser.randint(1, 8)))
        paid, last = 0, None
        for place, epsilon in enumerate(chosen):
            quote = trader.quote("one", format_epsilon(epsilon), buyer)
            bought = trader.buy(buyer, "one", format_epsilon(epsilon), quote["due"], upgrade=place > 0)
            assert bought["price"] == price_by_hand(epsilon) == quote["price"]
            assert bought["paid"] == bought["price"] - paid == quote["due"]
            assert (quote["owned"], bought["previous"]) == (last and last["epsilon"], last and last["number"])
            paid, last = bought["price"], bought
            assert trader.balance(buyer) == 2000 - paid
        states = [each["state"] for each in trader.purchases(buyer)]
        assert states == ["owned"] + ["upgraded"] * (len(chosen) - 1)
        again = trader.buy(buyer, "one", format_epsilon(epsilon), 0, upgrade=bool(chooser.getrandbits(1) and place))
        assert (again["new"], again["number"]) == (False, bought["number"])
        assert trader.quote("one", format_epsilon(epsilon), buyer)["due"] == 0
    buyers = [f"buyer-{number}" for number in range(rounds)]
    assert trader.balance("clinic") == sum(2000 - trader.balance(buyer) for buyer in buyers)
    books_now = trader.books()
    assert (books_now["balanced"], books_now["credits"]) == (True, 10_000 + 2000 * rounds)
    (sold,) = trader.sales("clinic")
    assert (sold["buyers"], sold["income"]) == (rounds, trader.balance("clinic"))
    assert sold["loss_buyers"] == max((each["epsilon"] for each in sold["sold"]), key=Decimal)


def test_one_level_has_one_name(trader: Here) -> None:
    """Epsilons with one threshold are one level, at one price: what is sold bears the name that its file bears."""
    near = ["0.50000000000000000000001", "0.49999999999999999999999", "0.50"]
    assert {level_of(each)["threshold"] for each in near} == {level_of("0.5")["threshold"]}
    first = trader.buy("institute", "one", near[0])
    assert first["epsilon"] == column_of(described(trader.data("institute", first["number"])))["epsilon"] == "0.5"
    assert trader.buy("institute", "one", "0.5") == {**first, "new": False}
    before = dump(trader.database)
    for each in near:
        assert trader.buy("institute", "one", each, upgrade=True) == {**first, "new": False}
        assert trader.quote("one", each, "institute") == trader.quote("one", "0.5", "institute")
    with pytest.raises(
        Refused, match=r"is none of the levels on sale: the nearest are 0.25 and 0.5. Nothing was sold."
    ):
        trader.buy("insurer", "one", "0.49999999999")  # which has another threshold
    assert dump(trader.database) == before
    top = trader.buy("insurer", "one", "2.500000000000000000000001")  # no more than what was delivered
    assert (top["epsilon"], top["price"]) == ("2.5", 1003)


@pytest.mark.parametrize(
    ("asked", "near"),
    [
        ("0.3", "nearest are 0.25 and 0.5"),
        ("0.05", "nearest is 0.1"),
        ("1e-30", "nearest is 0.1"),
        ("2.49", "2.25 and 2.5"),
    ],
)
def test_what_is_no_level_is_told_its_neighbours(trader: Here, asked: str, near: str) -> None:
    for act in (trader.quote, lambda listing, epsilon: trader.buy("institute", listing, epsilon)):
        with pytest.raises(Refused, match=near) as refused:
            act("one", asked)
        assert refused.value.code == "unknown_level"


def test_levels_with_one_threshold_are_one(trader: Here, tmp_path: Path) -> None:
    """Two that give the same reports are one level, the cheaper; a delivery gives it the name of its file."""
    assert level_of("50")["threshold"] == level_of("60")["threshold"] == level_of("70")["threshold"]
    levels = ["1e-30", "1", "50", "60"]
    made = trader.list_release("clinic", "two", {"formula": "10*epsilon"}, levels=levels)
    assert made["listing"]["levels"] == []  # what a draft would tell is not known yet
    made = trader.deliver("clinic", "two", release_file(tmp_path, "1", release="two-2026"))["listing"]
    shown = [(each["epsilon"], each["price"], each["available"]) for each in made["levels"]]
    assert shown == [("1", 10, True), ("50", 500, False)]
    made = trader.deliver("clinic", "two", release_file(tmp_path, "70", release="two-2026"))["listing"]
    assert [each["epsilon"] for each in made["levels"]] == ["1", "70"]
    assert trader.buy("institute", "two", "50")["epsilon"] == "70"


def test_levels_grow_above_what_was_delivered(trader: Here, tmp_path: Path) -> None:
    """What is on sale stays as it is: its levels, and their prices."""

    def levels(made: Any) -> list[str]:
        return [level["epsilon"] for level in made["listing"]["levels"]]

    first = [level["epsilon"] for level in trader.listing("one")["levels"]]
    quarters = [format_epsilon(Decimal(number) / 4) for number in range(1, 11)]
    assert first == ["0.1", *quarters]
    prices = {"points": [*(list(point) for point in POINTS), ["4", 3000]]}
    made = trader.prices("clinic", "one", prices, ["3", "2.5"])
    assert levels(made) == [*first, "3"]
    assert [each["available"] for each in made["listing"]["levels"]] == [True] * len(first) + [False]
    with pytest.raises(Refused, match=r"more than the seller has authorised, which is 2.5. Nothing was sold."):
        trader.buy("institute", "one", "3")
    trader.budget("clinic", "one", "4")
    made = trader.deliver("clinic", "one", release_file(tmp_path, "2.71"))  # a delivery is always a level
    assert levels(made) == [*first, "2.71", "3"]
    made = trader.deliver("clinic", "one", release_file(tmp_path, "4"))  # above the last one, round ones come between
    assert levels(made) == [*first, "2.71", "3", "3.25", "3.5", "3.75", "4"]
    assert trader.buy("institute", "one", "3")["price"] == trader.quote("one", "3")["price"]


def test_a_seller_comes_to_the_last_level(trader: Here, tmp_path: Path) -> None:
    """Then deliveries are at stated levels: only a seller gets there, by stating them."""
    hundred = [format_epsilon(Decimal(number) / 100) for number in range(1, 101)]
    trader.list_release("clinic", "two", {"formula": "10*epsilon"}, levels=hundred)
    trader.deliver("clinic", "two", release_file(tmp_path, "0.5", release="two-2026"))
    with pytest.raises(Refused, match="at most 100 levels: deliver at one of them. Nothing was delivered."):
        trader.deliver("clinic", "two", release_file(tmp_path, "0.505", release="two-2026"))
    assert trader.deliver("clinic", "two", release_file(tmp_path, "1", release="two-2026"))["loss_platform"] == "1"


def test_a_refund_returns_credits_and_not_privacy(trader: Here) -> None:
    before = trader.balance("clinic")
    trader.buy("insurer", "one", "0.25")
    income = trader.balance("clinic") - before
    for place, epsilon in enumerate(("0.1", "0.75", "2")):
        last = trader.buy("institute", "one", epsilon, upgrade=place > 0)
    content = trader.data("institute", last["number"])
    (sold,) = trader.sales("clinic")
    assert (sold["loss_buyers"], sold["loss_platform"], sold["left"]) == ("2", "2.5", "0.5")
    assert trader.refund("clinic", last["number"], "wrong file")["state"] == "refunded"
    assert trader.balance("institute") == 5000
    assert trader.balance("clinic") == before + income
    assert [each["state"] for each in trader.purchases("institute")] == ["refunded"] * 3
    (after,) = trader.sales("clinic")
    kept = [{**level, "income": income if level["epsilon"] == "0.25" else 0} for level in sold["sold"]]
    assert after == {**sold, "income": income, "sold": kept}  # the levels, their buyers and the losses stay
    assert trader.quote("one", "2", "institute")["owned"] is None
    back = trader.statement("institute")[:3]  # each purchase of the chain has its own line
    numbers = [each["number"] for each in trader.purchases("institute")]
    assert sorted((entry["amount"], entry["purchase"]) for entry in back) == sorted(
        (each["paid"], each["number"]) for each in trader.purchases("institute")
    )
    assert {entry["reason"] for entry in back} == {f"refund of {last['number']}: wrong file"}
    assert numbers[0] == last["number"]
    assert trader.verify(trader.receipt("institute", last["number"])) == "refunded"
    # Bought again it is charged in full, begins anew, and is the same file.
    again = trader.buy("institute", "one", "2")
    assert (again["paid"], again["previous"]) == (again["price"], None)
    assert trader.data("institute", again["number"]) == content
    assert trader.books()["balanced"]


def test_refunds_by_the_operator_and_of_gifts(trader: Here, tmp_path: Path) -> None:
    trader.list_release("clinic", "free", {"formula": "0"})
    trader.deliver("clinic", "free", release_file(tmp_path, "1", release="free-2026"))
    gift = trader.buy("insurer", "free", "0.5")
    assert (gift["price"], gift["paid"]) == (0, 0)
    entries = trader.books()["transactions"]
    assert trader.refund("operator", gift["number"])["state"] == "refunded"
    assert trader.books() == {"balanced": True, "transactions": entries, "credits": 10_000}
    bought = trader.buy("insurer", "one", "1")
    trader.refund("operator", bought["number"])
    assert (trader.balance("insurer"), trader.balance("clinic")) == (5000, 0)


def test_a_refund_that_the_seller_cannot_pay(trader: Here) -> None:
    """Whatever a seller's credits went for: then nothing is refunded, not even a part."""
    bought = trader.buy("institute", "one", "1")
    with trader.market.writing() as connection:
        clinic, insurer = trader.market.account("clinic").number, trader.market.account("insurer").number
        accounts.post(connection, {clinic: -1, insurer: 1}, reason="spent", issued="2026-11-15T00:00:00Z")
    before = dump(trader.database)
    for who in ("clinic", "operator"):
        with pytest.raises(Refused) as refused:
            trader.refund(who, bought["number"])
        assert refused.value.code == "credits"
        assert dump(trader.database) == before
    trader.credit("clinic", 1)
    trader.refund("clinic", bought["number"])
    assert (trader.balance("clinic"), trader.balance("institute")) == (0, 5000)


def test_statements(trader: Here) -> None:
    first = trader.buy("institute", "one", "0.1")
    second = trader.buy("institute", "one", "1", upgrade=True)
    found = trader.statement("institute")
    assert [entry["amount"] for entry in found] == [-93, -7, 5000]
    assert [entry["purchase"] for entry in found] == [second["number"], first["number"], None]
    assert [entry["reason"] for entry in found] == ["upgraded one at 1", "bought one at 0.1", "a gift"]
    assert [entry["amount"] for entry in trader.statement("clinic")] == [93, 7]
    assert all(entry["issued"] == "2027-01-15T08:00:00Z" for entry in found)
    transactions = [entry["transaction"] for entry in found]
    assert transactions == sorted(transactions, reverse=True)


def a_stray_entry(connection: Any) -> Any:
    row = {"account": 3, "amount": 1, "reason": "x", "purchase": None, "issued": "x"}
    return insert(ENTRIES).values(transaction=next_number(connection, ENTRIES, "transaction"), **row)


TAMPERINGS: dict[str, Callable[[Any], Any]] = {
    "a balance": lambda _: update(ACCOUNTS).where(ACCOUNTS.c.number == 2).values(balance=ACCOUNTS.c.balance + 1),
    "the issuer's balance": lambda _: update(ACCOUNTS).where(ACCOUNTS.c.number == 0).values(balance=-1),
    "an entry": lambda _: update(ENTRIES).where(ENTRIES.c.account == 1).values(amount=ENTRIES.c.amount + 1),
    "an entry's account": lambda _: update(ENTRIES).where(ENTRIES.c.account == 1).values(account=3),
    "a missing entry": lambda _: delete(ENTRIES).where(ENTRIES.c.account == 1),
    "a missing transaction": lambda _: delete(ENTRIES).where(ENTRIES.c.transaction == 1),
    "a missing account": lambda _: delete(ACCOUNTS).where(ACCOUNTS.c.number == 1),
    "an entry of nobody": lambda _: update(ENTRIES).where(ENTRIES.c.account == 3).values(account=99),
    "a stray entry": a_stray_entry,
}


@pytest.mark.parametrize("what", TAMPERINGS)
def test_books_that_were_tampered_with_do_not_balance(trader: Here, what: str) -> None:
    trader.buy("institute", "one", "1")
    assert trader.books() == {"balanced": True, "transactions": 3, "credits": 10_000}
    with trader.database.writing() as connection:
        assert connection.execute(TAMPERINGS[what](connection)).rowcount >= 1
    assert trader.books()["balanced"] is False


def test_nobody_but_the_issuer_may_owe(trader: Here) -> None:
    clinic, institute = (trader.market.account(name).number for name in ("clinic", "institute"))
    with pytest.raises(CreditsError), trader.market.writing() as connection:
        accounts.post(connection, {clinic: -1, institute: 1}, reason="x", issued="x")
    with pytest.raises(AssertionError), trader.market.writing() as connection:
        accounts.post(connection, {institute: -1}, reason="x", issued="x")
    assert trader.books()["transactions"] == 2


def test_levels_go_up_to_what_is_authorised(trader: Here, tmp_path: Path) -> None:
    trader.list_release("clinic", "two", {"points": [["0.1", 7], ["0.5", 7], ["1", 50]]})
    file = release_file(tmp_path, "1", release="other-2026")
    made = trader.deliver("clinic", "two", file)["listing"]
    levels = [as_epsilon(point["epsilon"]) for point in made["levels"]]
    assert levels == sorted(set(levels))
    assert made["levels"][-1]["epsilon"] == made["authorised"] == "1"
    assert {"0.1", "0.5", "1"} <= {point["epsilon"] for point in made["levels"]}
    prices = [point["price"] for point in made["levels"]]
    assert prices == sorted(prices)
    for point in made["levels"]:
        quote = trader.quote("two", point["epsilon"])
        assert [quote[name] for name in ("price", "objects", "half_width")] == [
            point[name] for name in ("price", "objects", "half_width")
        ]
    widths = [point["half_width"] for point in made["levels"]]
    assert widths == sorted(widths, reverse=True)
    assert 0 < widths[-1] < widths[0] <= 0.5


def test_what_a_seller_may_do_as_a_listing_goes_on(trader: Here, tmp_path: Path) -> None:
    extended = {"points": [*(list(point) for point in POINTS), ["3", 2000], ["4", 3000]]}
    assert trader.prices("clinic", "one", extended)["listing"]["prices"] == extended
    with pytest.raises(Refused) as refused:
        trader.deliver("clinic", "one", release_file(tmp_path, "4"))
    assert refused.value.code == "delivery"
    assert trader.budget("clinic", "one", "4")["left"] == "1.5"
    made = trader.deliver("clinic", "one", tmp_path / "survey-2026-4.parquet")
    assert [level["epsilon"] for level in made["delivered"]] == ["2.5", "4"]
    assert (made["loss_platform"], made["left"], made["listing"]["authorised"]) == ("4", "0", "4")
    bought = trader.buy("institute", "one", "3")
    (sold,) = trader.sales("clinic")[0]["sold"]
    assert sold == {"epsilon": "3", "buyers": 1, "income": bought["price"], "from": ["2.5", "4"]}
    trader.buy("insurer", "one", "2.5")
    assert trader.sales("clinic")[0]["sold"][0] == {"epsilon": "2.5", "buyers": 1, "income": 1003, "from": None}
    trader.close("clinic", "one")
    assert described(trader.data("institute", bought["number"]))["id"] == "id"  # what was bought stays bought
    assert trader.refund("clinic", bought["number"])["state"] == "refunded"


def test_one_of_several_columns(trader: Here, tmp_path: Path) -> None:
    trader.list_release("clinic", "two", {"formula": "1"})
    trader.list_release("clinic", "three", {"formula": "1"})
    path = release_file(tmp_path, "1", columns=["one", "two"], release="both-2026")
    trader.deliver("clinic", "two", path, "two")
    trader.deliver("clinic", "three", path, "one")  # another attribute is another path
    bought = trader.buy("institute", "two", "0.5")
    assert list(described(trader.data("institute", bought["number"]))["columns"]) == ["two"]


def test_another_key_is_refused(trader: Here) -> None:
    before = dump(trader.database)
    with pytest.raises(MarketKeyError, match="Nothing was started"):
        Market(trader.database, rx.Key.from_bytes(bytes(32))).open()
    Market(trader.database, MARKET_KEY).open()
    assert dump(trader.database) == before


def test_a_token_is_kept_as_a_digest_and_ends_when_it_is_renewed(trader: Here) -> None:
    token = trader.account("new", "buyer")
    rows = repr(dump(trader.database))
    assert token not in rows
    renewed = trader.market.renew_token("new")
    assert renewed != token
    after = repr(dump(trader.database))
    assert renewed not in after
    assert after != rows


def test_epsilons_that_are_no_numbers_of_python(trader: Here) -> None:
    """In process a level may be a number as well; one that was rounded in silence is refused."""
    assert trader.buy("institute", "one", 0.5)["epsilon"] == "0.5"
    for wrong in (np.float32(0.5), float("nan"), float("inf"), 1j, object()):
        with pytest.raises(Refused) as refused:
            trader.buy("insurer", "one", wrong)
        assert refused.value.code == "epsilon"


def test_the_operator_is_no_account(trader: Here) -> None:
    with pytest.raises(WrongRoleError) as refused:
        OPERATOR.check("seller")
    assert refused.value.fields == {"needed": "seller", "account": "operator", "role": "operator"}
    assert re.fullmatch(NAME_PATTERN, "operator")  # so that it must be refused by name
