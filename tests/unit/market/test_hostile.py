"""What hostile sellers and strangers try: files that lie or unfold, prices that cannot be shown, levels without end."""

from __future__ import annotations

import json
import resource
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pa_parquet
import pytest
from sqlalchemy import Connection, update
from tests.servers.markets import Here, Refused, altered, column_of, dump, here, level_of, release_file

import relaxdp as rx
from relaxdp.market import listings, pools, views
from relaxdp.market.public_routes import _view
from relaxdp.market.schema import LISTINGS
from relaxdp.tables.metadata import METADATA_KEY

PRICES = {"formula": "1 + 2*epsilon"}


@pytest.fixture
def trader(tmp_path: Path) -> Iterator[Here]:
    with here(tmp_path) as made:
        made.account("clinic", "seller")
        made.account("institute", "buyer")
        made.credit("institute", 5000)
        made.list_release("clinic", "one", PRICES)
        yield made


def nested(depth: int) -> Any:
    found: Any = 0
    for _ in range(depth):
        found = [found]
    return found


def test_only_what_was_understood_is_published(trader: Here, tmp_path: Path) -> None:
    """What else a description says would be shown to everybody as it is, or could not be shown at all."""
    path = release_file(tmp_path, "1", mechanism=rx.Numeric(0, 10), truths=[3.5] * 40)

    def lie(said: Any) -> None:
        column_of(said).update(surprise="y" * 10_000)

    shown = json.dumps(trader.deliver("clinic", "one", altered(path, "lying", description=lie)))
    assert "surprise" not in shown
    assert trader.listing("one")["encoding"] == {"name": "numeric", "options": {}, "range": [0.0, 10.0]}


@pytest.mark.parametrize(
    "change",
    [
        {"options": None, "range": [0, 10**400]},
        {"options": {"x": nested(400)}},
        {"encoding": "x" * 5_000_000},
        {"encoding": {"name": "categorical"}},
        {"values": [{"number": "0x1p99999"}, "b"]},
        {"values": list(range(10_001))},
        {"retention": "1e400000000"},
        {"release": nested(900)},
    ],
    ids=["range", "options", "long name", "no name", "number", "values", "retention", "nested"],
)
def test_odd_descriptions_are_refused(trader: Here, tmp_path: Path, change: dict[str, Any]) -> None:
    path = release_file(tmp_path, "1")

    def lie(said: Any) -> None:
        column = column_of(said)
        column.update(change)
        if "range" in change:
            del column["values"]

    before = dump(trader.database)
    with pytest.raises(Refused, match="Nothing was delivered."):
        trader.deliver("clinic", "one", altered(path, "odd", description=lie))
    assert dump(trader.database) == before


def test_a_small_file_that_unfolds_to_more_than_memory(tmp_path: Path) -> None:
    """One long text, 262,144 times: two kilobytes in the file, 24 GiB as a column. It is refused before it unfolds."""
    rows = 262_144
    ids = pa.DictionaryArray.from_arrays(pa.array([0] * rows, pa.int32()), pa.array(["x" * 100_000]))
    said = pa_parquet.read_schema(release_file(tmp_path, "1")).metadata[METADATA_KEY].replace(b"integer", b"text")
    table = pa.table({"patient": ids, "diagnosis": pa.array(["flu"] * rows)})
    id_column = json.loads(said)["id"]
    table = table.rename_columns([id_column, next(iter(json.loads(said)["columns"]))])
    path = tmp_path / "bomb.parquet"
    pa_parquet.write_table(table.replace_schema_metadata({METADATA_KEY: said}), path)
    assert path.stat().st_size < 100_000
    code = (
        "import sys; from pathlib import Path\n"
        "from relaxdp.server_errors import DeliveryError\n"
        "from relaxdp.market.deliveries import read_delivery\n"
        "try: read_delivery(Path(sys.argv[1]))\n"
        "except DeliveryError as problem: print(problem.message)\n"
    )

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (6 << 30, 6 << 30))

    done = subprocess.run(
        [sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=False, preexec_fn=limit
    )
    assert done.stdout == "the delivery is larger than the market takes.\n", done.stderr


def test_the_digits_of_a_delivery(trader: Here, tmp_path: Path) -> None:
    """0.1 + 0.2 as a computer writes it is a level as good as any; nobody types more digits."""
    written = "0.50000000000000001"
    assert level_of(written)["threshold"] != level_of("0.5")["threshold"]
    with pytest.raises(Refused, match="at most 17 digits. Nothing was delivered."):
        trader.deliver("clinic", "one", release_file(tmp_path, "0.500000000000000001"))
    trader.deliver("clinic", "one", release_file(tmp_path, repr(0.1 + 0.2)))
    assert trader.buy("institute", "one", repr(0.1 + 0.2))["epsilon"] == "0.30000000000000004"


def test_prices_that_could_not_be_shown(trader: Here) -> None:
    before = dump(trader.database)
    with pytest.raises(Refused, match="at most 80 letters"):
        trader.list_release("clinic", "two", {"points": [["1e-99", 1], ["2", 5]]})
    assert dump(trader.database) == before


def test_a_listing_that_cannot_be_shown_hides_no_other(trader: Here, tmp_path: Path) -> None:
    trader.deliver("clinic", "one", release_file(tmp_path, "1"))
    trader.pool("two", {"name": "categorical", "values": ["a", "b"]}, PRICES, levels=["0.5", "1", "1.5", "2"])
    broken = update(LISTINGS).where(LISTINGS.c.id == "one").values(prices='{"points": []}')
    with trader.database.writing() as connection:
        connection.execute(broken)
    with trader.database.reading() as connection:
        found = [_view(connection, each) for each in listings.everything(connection, None)]
    assert [each and each.id for each in found] == [None, "two"]


def test_ten_credits_do_not_exhaust_a_listing(trader: Here, tmp_path: Path) -> None:
    """Between two whole credits new levels cost nothing, and every one of them is kept for good."""
    trader.account("vandal", "buyer")
    trader.credit("vandal", 10)
    trader.deliver("clinic", "one", release_file(tmp_path, "1"))
    owned = False
    for number in range(10, 1000, 5):
        with suppress(Refused):
            trader.buy("vandal", "one", f"0.{number:03}", upgrade=owned)
            owned = True
    levels = trader.listing("one")["levels"]
    assert len(levels) == 20
    assert len(dump(trader.database)["market_level"]) == len(levels)
    for place, level in enumerate(levels):  # nobody else is kept from anything
        assert trader.buy("institute", "one", level["epsilon"], upgrade=place > 0)["price"] == level["price"]


def test_a_quote_reads_no_report(trader: Here, monkeypatch: pytest.MonkeyPatch) -> None:
    """Strangers may ask as often as they like: a pool with many members and many sold levels must not make it slow."""
    trader.pool("two", {"name": "categorical", "values": ["a", "b"]}, PRICES, levels=["0.5", "1", "1.5", "2"])
    answers = rx.Categorical(["a", "b"])
    for name, epsilon in (("ann", "1"), ("bob", "2")):
        trader.account(name, "seller")
        trader.join(name, "two", level_of(epsilon, answers), "a")
    trader.buy("institute", "two", "0.5")
    paid = {epsilon: trader.quote("two", epsilon, "institute")["due"] for epsilon in ("1", "1.5")}

    def nobody(*_: object) -> None:
        raise AssertionError("members were loaded with their reports")

    monkeypatch.setattr(pools, "members_of", nobody)
    assert [trader.quote("two", epsilon)["price"] for epsilon in ("1", "1.5")] == [6, 4]
    assert paid == {"1": 6 - 2 * 2, "1.5": 4 - 2}


def test_levels_are_computed_once(trader: Here, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    trader.deliver("clinic", "one", release_file(tmp_path, "1"))

    def shown(connection: Connection) -> Any:
        return views.listing_view(connection, listings.find(connection, "one"))

    with trader.database.reading() as connection:
        first = shown(connection)
        monkeypatch.setattr(listings.StoredListing, "half_width", None)
        assert shown(connection) == first
