"""What a listing says of itself, and what a purchase tells: the numbers of the file that was bought."""

from __future__ import annotations

from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from tests.servers.markets import VALUES, Here, Refused, here, level_of, release_file

import relaxdp as rx
from relaxdp.market import told
from relaxdp.market.purchases import find
from relaxdp.server_errors import MarketError

PRICES = {"points": [["0.1", 10], ["2", 200]]}
SAID = {"description": " What they had. ", "source": "A clinic", "collected": "May 2026", "licence": "CC BY 4.0"}


@pytest.fixture
def trader(tmp_path: Path) -> Iterator[Here]:
    with here(tmp_path) as made:
        for name, role in (("clinic", "seller"), ("institute", "buyer")):
            made.account(name, role)
        made.credit("institute", 1000)
        made.list_release("clinic", "one", PRICES, details=SAID)
        made.deliver("clinic", "one", release_file(tmp_path, "1"))
        yield made


def told_by(trader: Here, number: int) -> Any:
    with trader.database.reading() as connection:
        return told.told_by(connection, find(connection, number))


def test_a_listing_says_what_who_when_how(trader: Here) -> None:
    assert trader.listing("one")["details"] == {**SAID, "description": "What they had."}
    trader.list_release("clinic", "two", PRICES)
    assert trader.sales("clinic")[1]["listing"]["details"] == {}


def test_a_pool_asks_after_the_limit_and_may_suggest_one(trader: Here) -> None:
    levels = {"levels": ["0.5", "1"]}
    made = trader.pool("p", {"name": "categorical", "values": VALUES}, PRICES, **levels, question="Q?", suggested="1.0")
    assert (made["question"], made["suggested"]) == ("Q?", "1")
    for more in ({"suggested": "0.7"}, {"question": " "}):
        with pytest.raises(Refused):
            trader.pool("q", {"name": "categorical", "values": VALUES}, PRICES, **levels, **more)


def test_it_tells_what_the_file_tells(trader: Here) -> None:
    """The same numbers as from the file in the buyer's hands, and the same once more: nothing is drawn for it."""
    number = trader.buy("institute", "one", "0.5")["number"]
    content = trader.data("institute", number)
    found = told_by(trader, number)
    table = pq.read_table(BytesIO(content))
    expected = rx.estimate(table, table.column_names[1])
    low, high = expected.interval()
    assert [row.value for row in found.rows] == list(expected.labels) == VALUES
    assert [row.estimate for row in found.rows] == expected.value.tolist()
    assert [(row.low, row.high) for row in found.rows] == list(zip(low.tolist(), high.tolist(), strict=True))
    assert (found.objects, found.values) == (table.num_rows, len(VALUES))
    assert told_by(trader, number) == found
    assert trader.data("institute", number) == content


@pytest.mark.parametrize("mechanism", [rx.Numeric(0, 10), rx.SquareWave(0, 10, bins=16, window=4)])
def test_a_mean_lies_in_its_range(trader: Here, tmp_path: Path, mechanism: Any) -> None:
    trader.list_release("clinic", "two", PRICES)
    path = release_file(tmp_path, "1", mechanism=mechanism, truths=[4.0] * 40, release="two-2026")
    trader.deliver("clinic", "two", path)
    found = told_by(trader, trader.buy("institute", "two", "0.5")["number"])
    assert (found.range, [row.value for row in found.rows]) == ((0.0, 10.0), ["mean"])
    assert 0 <= found.rows[0].low < found.rows[0].high <= 10


def test_more_than_it_counts_is_left_to_the_buyer(trader: Here, monkeypatch: pytest.MonkeyPatch) -> None:
    number = trader.buy("institute", "one", "0.5")["number"]
    monkeypatch.setattr(told, "MOST_READ", 1)
    with pytest.raises(MarketError, match="relaxdp estimate"):
        told_by(trader, number)


def test_a_level_of_a_pool_that_nobody_should_want_names_a_better_one(trader: Here) -> None:
    """At a high level few people sell: it is cheaper than a lower one of more people that tells as little."""
    trader.pool("p", {"name": "categorical", "values": VALUES}, {"formula": "10*epsilon"}, levels=["0.5", "1", "2"])
    for place, epsilon in enumerate(["1"] * 10 + ["2"]):
        trader.account(f"s{place}", "seller")
        trader.join(f"s{place}", "p", level_of(epsilon), VALUES[0])
    levels = trader.listing("p")["levels"]
    assert [each["price"] for each in levels] == [55, 110, 20]
    assert {each["half_width"] for each in levels} == {0.5}
    assert [each["better"] for each in levels] == ["2", "2", None]
