"""Publishing from a vault: which reports leave, what they cost, and that nothing else leaves."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path
from typing import Any
from unittest.mock import Mock, PropertyMock

import pyarrow.parquet as pa_parquet
import pytest
from sqlalchemy import select
from tests.refusals import refused
from tests.servers.collectors import STORES
from tests.servers.markets import (
    PRICES,
    ROWS,
    VALUES,
    Market,
    make_market_fixture,
    make_table,
    make_vault,
    release_again,
)

import relaxdp as rx
from relaxdp.errors import (
    BudgetExceededError,
    ColumnError,
    LedgerError,
    LedgerUncertainError,
    UnknownReleaseError,
    UselessReleaseError,
)
from relaxdp.market.client import MarketClient
from relaxdp.market.publish import Terms, publish
from relaxdp.market.schema import FILES, LISTINGS
from relaxdp.mechanisms.base import Mechanism
from relaxdp.server_errors import LevelDiffersError, MarketError, RefusedByServerError, UnreachableError
from relaxdp.tables.metadata import METADATA_KEY

market = make_market_fixture(STORES)
MECHANISMS: dict[str, Mechanism] = {
    "categorical": rx.Categorical(VALUES), "unary": rx.Unary(VALUES), "local hash": rx.LocalHash(VALUES, buckets=4)
}  # fmt: skip


def buy(market: Market, listing: str, epsilon: str, folder: Path) -> Path:
    """Buy a level as a new buyer, and return the file."""
    buyer, path = market.add("buyer"), folder / f"{listing}-{epsilon}-{len([*folder.iterdir()])}.parquet"
    buyer.download(buyer.order(listing, epsilon)["id"], path)
    return path


def read_reports(file: Path) -> dict[Any, Any]:
    table = pa_parquet.read_table(file).to_pydict()
    return dict(zip(table["id"], table["diagnosis"], strict=True))


def relax(vault: rx.Vault, epsilon: Any) -> dict[Any, Any]:
    table = vault.relax("survey", epsilon).to_frame().to_pydict()
    return dict(zip(table["id"], table["diagnosis"], strict=True))


@pytest.mark.parametrize("name", MECHANISMS)
def test_a_row_is_the_vaults_report_at_the_smaller_of_level_and_limit(
    market: Market, tmp_path: Path, name: str
) -> None:
    """For every row by value, with limits at, between, below and above the listed levels, and without limits."""
    vault, table = make_vault(tmp_path, mechanism=MECHANISMS[name]), make_table().to_pydict()
    plain = market.publish(vault).listing["id"]
    limited = market.publish(vault, prices={"0.5": "60", "2": "200"}, limits="limit").listing["id"]
    drawn = {epsilon: relax(vault, epsilon) for epsilon in ("0.25", "0.5", "1", "2")}
    for epsilon in PRICES:
        assert read_reports(buy(market, plain, epsilon, tmp_path)) == drawn[epsilon]
    for epsilon in ("0.5", "2"):
        path = buy(market, limited, epsilon, tmp_path)
        used = [min(epsilon, limit, key=Decimal) for limit in table["limit"]]
        assert pa_parquet.read_table(path)["diagnosis_epsilon"].to_pylist() == used
        assert read_reports(path) == {row: drawn[own][row] for row, own in zip(table["id"], used, strict=True)}
    assert len({*table["limit"]}) == 4


def test_nothing_but_ids_reports_and_levels_leaves(market: Market, tmp_path: Path) -> None:
    """No pass-through column, no state of the vault, and no key, in the file and in what the market stores."""
    vault = make_vault(tmp_path)
    listings = [market.publish(vault, limits=limits).listing["id"] for limits in (None, "limit")]
    for listing, columns in zip(listings, (["id", "diagnosis"], ["id", "diagnosis", "diagnosis_epsilon"]), strict=True):
        path = buy(market, listing, "1", tmp_path)
        assert pa_parquet.read_schema(path).names == columns
        stated = json.loads(pa_parquet.read_schema(path).metadata[METADATA_KEY])
        assert sorted(stated) == ["columns", "id", "rows"]
        assert [*stated["columns"]] == ["diagnosis"]
    key = (vault.path / "key").read_text("ascii").splitlines()[1]
    secrets = [vault.id.encode(), key.encode(), bytes.fromhex(key)]
    with market.open_database() as database, database.reading() as connection:
        stored = b"".join(connection.execute(select(FILES.c.content)).scalars())
        assert b"limit" not in stored
        stored += repr(connection.execute(select(LISTINGS).where(LISTINGS.c.id.in_(listings))).all()).encode()
    assert [secret for secret in secrets if secret in stored] == []


def test_the_vault_is_charged_for_the_largest_level(market: Market, tmp_path: Path) -> None:
    vault, seller, name = make_vault(tmp_path), market.add("seller"), market.make_name()
    seen: list[str] = []
    found = market.publish(vault, seller, listing=name, progress=seen.append)
    assert (found.new, found.cost, found.remaining) == (("0.25", "0.5", "1"), Decimal("0.99"), Decimal(9))
    assert sorted(seen) == ["0.25", "0.5", "1"]
    again = market.publish(vault, seller, listing=name)
    assert (again.new, again.cost, again.listing) == ((), Decimal(0), found.listing)
    below = market.publish(vault, seller, {"0.75": "80"}, listing=name)
    assert (below.new, below.cost) == (("0.75",), Decimal(0))
    above = market.publish(vault, seller, {"2": "200", "1": "100"}, listing=name)
    assert (above.new, above.cost, vault.spent) == (("2",), Decimal(1), Decimal(2))
    assert [level["epsilon"] for level in above.listing["levels"]] == ["0.25", "0.5", "0.75", "1", "2"]


def test_what_the_vault_does_not_allow_is_not_sent(market: Market, tmp_path: Path) -> None:
    """The budget, the names and the limits are checked before the market hears of anything."""
    vault, seller = make_vault(tmp_path, budget=1), market.add("seller")
    before, spent, events = market.operator.listings(), vault.spent, len(vault.events())
    with refused(BudgetExceededError):
        market.publish(vault, seller, {"0.5": "10", "1.5": "20"})
    with refused(UnknownReleaseError):
        market.publish(vault, seller, name="nothing")
    with refused(ColumnError):
        market.publish(vault, seller, column="limit")
    for prices in ({}, {"1": "1", "1.0": "2"}):
        with refused(MarketError):
            market.publish(vault, seller, prices)
    assert len(vault.events()) == events
    for limits in ("diagnosis", "nothing"):
        with refused(ColumnError, says="no pass-through column"):
            market.publish(vault, seller, limits=limits)
    assert market.operator.listings() == before
    assert vault.spent == spent


def test_a_release_of_several_columns_is_published_column_by_column(market: Market, tmp_path: Path) -> None:
    """Also of a number, whose column of reports has another name than the table's."""
    table = make_table().append_column("age", [[row % 90 for row in range(ROWS)]])
    vault, seller = make_vault(tmp_path), market.add("seller")
    columns: dict[str, Any] = {"diagnosis": VALUES, "age": rx.Numeric(0, 120)}
    vault.release(table, columns, id="id", epsilon="0.5", name="both", planned_epsilon=9)
    with refused(ColumnError, hint="--column") as found:
        market.publish(vault, seller, name="both")
    assert "'diagnosis', 'age'" in found.value.message
    with refused(ColumnError, hint="--column"):
        market.publish(vault, seller, name="both", column="weight")
    spent = vault.spent
    age = market.publish(vault, seller, {"1": "5"}, name="both", column="age").listing
    assert vault.spent - spent == Decimal("0.5")
    assert (
        market.publish(vault, seller, {"1": "5"}, name="both", column="diagnosis", listing=None).listing["id"] == "both"
    )
    path = buy(market, age["id"], "1", tmp_path)
    assert rx.estimate(path).n == ROWS
    assert pa_parquet.read_table(path)["age_report"].to_pylist() == (
        vault.relax("both", 1, columns=["age"]).to_frame()["age_report"].to_pylist()
    )


@pytest.mark.parametrize("ids", [range(ROWS - 1), range(ROWS + 1)], ids=["left", "joined"])
def test_rows_may_join_and_leave_between_levels(market: Market, tmp_path: Path, ids: Any) -> None:
    """A new level has the rows of the last release, each on its own path; a published one stays as it was."""
    vault, seller, name = make_vault(tmp_path), market.add("seller"), market.make_name()
    first = market.publish(vault, seller, {"0.5": "60"}, listing=name).listing
    release_again(vault, make_table(ids))
    for prices in ({"0.5": "60"}, {"0.5": "60", "0.25": "20", "1": "100"}):
        with refused(LevelDiffersError) as found:
            market.publish(vault, seller, prices, listing=name)
        assert "never replaced" in found.value.message
        assert seller.listing(name) == first
    assert vault.spent == Decimal("0.5")
    later = market.publish(vault, seller, {"1": "100"}, listing=name).listing
    assert [level["rows"] for level in later["levels"]] == [ROWS, len(ids)]
    assert later["levels"][0] == first["levels"][0]
    assert read_reports(buy(market, name, "1", tmp_path)) == relax(vault, 1)
    old, now = read_reports(buy(market, name, "0.5", tmp_path)), relax(vault, "0.5")
    assert all(old[row] == now[row] for row in old.keys() & now.keys())


def test_changed_limits_are_other_rows(market: Market, tmp_path: Path) -> None:
    """A published level states the level of each row. One below all limits stays the same."""
    vault, seller, name = make_vault(tmp_path), market.add("seller"), market.make_name()
    market.publish(vault, seller, {"0.5": "60", "0.1": "6"}, listing=name, limits="limit")
    table = make_table()
    release_again(vault, table.set_column(2, "limit", [table["limit"].to_pylist()[::-1]]))
    assert market.publish(vault, seller, {"0.1": "6"}, listing=name, limits="limit").new == ()
    with refused(LevelDiffersError):
        market.publish(vault, seller, {"0.5": "60"}, listing=name, limits="limit")


def test_all_levels_have_the_same_limits(market: Market, tmp_path: Path) -> None:
    """Also where the second column has larger numbers, and whatever the first level says."""
    table = make_table().append_column("other", [["9"] * ROWS])
    vault = rx.Vault.create(tmp_path / "two.vault", budget=10)
    vault.release(
        table,
        {"diagnosis": VALUES},
        id="id",
        epsilon="0.1",
        name="survey",
        passthrough=["limit", "other"],
        planned_epsilon=9,
    )
    seller, name = market.add("seller"), market.make_name()
    first = market.publish(vault, seller, {"1": "20"}, listing=name, limits="limit").listing
    spent = vault.spent
    for limits in ("other", None):
        with refused(RefusedByServerError, error="listing_exists") as found:
            market.publish(vault, seller, {"4": "99"}, listing=name, limits=limits)
        assert "have the limits of the column 'limit'" in found.value.message
    assert (seller.listing(name), vault.spent) == (first, spent)


@pytest.mark.parametrize("changed", ["limits", "ids", "rows", "passthrough"])
def test_limits_belong_to_the_rows_that_are_drawn(
    market: Market, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, changed: str
) -> None:
    """Another process releases the name after the limits were read: the rows at these positions are others."""
    vault, seller, name = make_vault(tmp_path), market.add("seller"), market.make_name()
    table = make_table([*range(ROWS - 1), ROWS]) if changed == "ids" else make_table()
    if changed == "limits":
        table = table.set_column(2, "limit", [table["limit"].to_pylist()[::-1]])
    if changed == "rows":
        table = make_table(range(ROWS - 1))
    real = MarketClient.create_listing

    def release_meanwhile(self: MarketClient, listing: str, **terms: Any) -> Any:
        passthrough = ["limit"] if changed != "passthrough" else []
        release_again(rx.Vault(vault.path), table, passthrough=passthrough)
        return real(self, listing, **terms)

    with monkeypatch.context() as patch:
        patch.setattr(MarketClient, "create_listing", release_meanwhile)
        with refused(MarketError, says="has changed while its levels were drawn"):
            market.publish(vault, seller, listing=name, limits="limit")
    assert seller.listing(name)["levels"] == []
    if changed == "passthrough":
        release_again(vault, table)
    market.publish(vault, seller, listing=name, limits="limit")
    limits = dict(zip(table["id"].to_pylist(), table["limit"].to_pylist(), strict=True))
    bought = pa_parquet.read_table(buy(market, name, "1", tmp_path)).to_pydict()
    stated = dict(zip(bought["id"], bought["diagnosis_epsilon"], strict=True))
    assert {row: min("1", limits[row], key=Decimal) for row in stated} == stated


@pytest.mark.parametrize("largest", ["1", "63"])
def test_more_limits_than_a_file_can_state_cost_nothing(market: Market, tmp_path: Path, largest: str) -> None:
    """Limits above the largest level are one level. 62 different levels fit into a file."""
    table = make_table()
    table = table.set_column(2, "limit", [[str(1 + row // 3 % 63) for row in range(ROWS)]])
    vault = make_vault(tmp_path, table, budget=100)
    if largest == "1":
        assert market.publish(vault, prices={"1": "5", "0.5": "1"}, limits="limit").new == ("0.5", "1")
        assert market.publish(vault, prices={"62": "5"}, limits="limit").new == ("62",)
        return
    listings, spent = market.operator.listings(), vault.spent
    with refused(ColumnError, says="different limits", hint="Round"):
        market.publish(vault, prices={"1": "1", "63": "5"}, limits="limit")
    assert (market.operator.listings(), vault.spent) == (listings, spent)


@pytest.mark.parametrize(
    ("limits", "problem"), [("0", "is not an epsilon"), ("SECRET", "is not an epsilon"), (None, "no limit")]
)
def test_limits_that_are_none(market: Market, tmp_path: Path, limits: Any, problem: str) -> None:
    table = make_table()
    table = table.set_column(2, "limit", [[*["1"] * (ROWS - 1), limits]])
    with refused(ColumnError) as found:
        market.publish(make_vault(tmp_path, table), limits="limit")
    assert problem in found.value.message
    assert "SECRET" not in found.value.message


def test_the_largest_level_decides_whether_publishing_is_useful(market: Market, tmp_path: Path) -> None:
    """A level that tells next to nothing may be listed below one that tells more; the vault charges the largest."""
    few = make_vault(tmp_path, make_table(range(160)))
    assert len(market.publish(few, prices={"0.1": "1", "1": "2"}, limits="limit").new) == 2
    with refused(UselessReleaseError, hint="Publish a larger level too"):
        market.publish(make_vault(tmp_path, make_table(range(160))), prices={"0.1": "1"})


def test_an_error_tells_what_was_published_before(
    market: Market, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    vault, real = make_vault(tmp_path), MarketClient.add_level
    for stop, expected in [
        ("100", "Nothing was published. The vault was charged 0.99. Publishing again costs nothing more."),
        ("60", "Only these levels were published: 1."),  # the charge is from the first attempt
        (
            "20",
            "Only these levels were published: 2, 1, 0.5. The vault was charged 1. "
            "Publishing again costs nothing more.",
        ),
    ]:

        def refuse(self: MarketClient, listing: str, file: Path, price: str, *, stop: str = stop) -> Any:
            if price == stop:
                raise MarketError("Stop.")
            return real(self, listing, file, price)

        prices = {**PRICES, "2": "200"} if stop == "20" else PRICES
        with monkeypatch.context() as patch:
            patch.setattr(MarketClient, "add_level", refuse)
            with refused(MarketError) as found:
                market.publish(vault, prices=prices)
        assert found.value.consequence == expected
    unknown, known = "It is unknown whether another level was published.", "Only these levels were published: 1, 0.5."
    for problem, expected in [
        (UnreachableError("Gone.", asked=True), unknown), (RefusedByServerError("Full.", status=500), unknown),
        (UnreachableError("Gone."), known), (RefusedByServerError("No.", status=499), known),
    ]:  # fmt: skip

        def lose(self: MarketClient, listing: str, file: Path, price: str, *, problem: Any = problem) -> Any:
            if price == "20":
                raise problem
            return real(self, listing, file, price)

        with monkeypatch.context() as patch, refused(type(problem)) as found:
            patch.setattr(MarketClient, "add_level", lose)
            market.publish(vault)
        assert found.value.consequence == expected
    spent = PropertyMock(side_effect=[Decimal(1), LedgerError("Damaged.")])
    with monkeypatch.context() as patch, refused(MarketError) as found:
        patch.setattr(rx.Vault, "spent", spent)
        patch.setattr(rx.Vault, "relax", Mock(side_effect=MarketError("Stop.")))
        market.publish(vault)
    assert found.value.consequence == "Nothing was published."
    uncertain = LedgerUncertainError("Perhaps.")
    uncertain.consequence = "It may be charged."
    with monkeypatch.context() as patch, refused(LedgerUncertainError) as found:
        patch.setattr(rx.Vault, "relax", Mock(side_effect=uncertain))
        market.publish(vault)
    assert found.value.consequence == "It may be charged."
    with refused(MarketError, says="three capital letters") as found:
        publish(vault, "survey", market.add("seller"), PRICES, Terms(currency="euro"))
    assert found.value.consequence == "Nothing was published."


def test_a_market_that_breaks_off_is_continued_for_free(
    market: Market, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The charge stays, and the same command publishes the same rows."""
    vault, seller, name = make_vault(tmp_path), market.add("seller"), market.make_name()
    real = MarketClient.add_level

    def break_off(self: MarketClient, listing: str, file: Path, price: str) -> Any:
        if price == PRICES["0.5"]:
            raise ConnectionResetError
        return real(self, listing, file, price)

    with monkeypatch.context() as patch:
        patch.setattr(MarketClient, "add_level", break_off)
        with pytest.raises(ConnectionResetError):
            market.publish(vault, seller, listing=name)
    assert vault.spent == 1
    found = market.publish(vault, seller, listing=name)
    assert (found.new, found.cost) == (("0.25", "0.5"), Decimal(0))
    whole = market.publish(vault, market.add("seller")).listing["levels"]
    assert [level["digest"] for level in found.listing["levels"]] == [level["digest"] for level in whole]
