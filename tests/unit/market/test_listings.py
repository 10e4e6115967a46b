"""Listings: prices, offers, at most 100 levels, and rules that the database keeps whatever the code does."""

from __future__ import annotations

import json
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow.parquet as pa_parquet
import pytest
from sqlalchemy import select
from sqlalchemy.exc import DBAPIError
from tests.refusals import refused
from tests.servers.markets import (
    PRICES,
    ROWS,
    VALUES,
    Market,
    ask_for_listing,
    make_market_fixture,
    make_table,
    make_vault,
    release_again,
)

import relaxdp as rx
from relaxdp.market.client import PARQUET, MarketClient
from relaxdp.market.listings import ListedLevel, Listing, make_offers, parse_price, recommend_level
from relaxdp.mechanisms.base import Mechanism
from relaxdp.sampling.keyed_stream import PathId
from relaxdp.server_errors import MarketError, RefusedByServerError
from relaxdp.service.schema import METADATA
from relaxdp.tables.metadata import METADATA_KEY, ColumnDescription
from relaxdp.tables.release_plan import compute_margin

market = make_market_fixture(["sqlite", "postgres"])
TABLES = [table for table in METADATA.sorted_tables if table.name.startswith("market_")]


def dump(market: Market) -> dict[str, list[Any]]:
    """Return all rows of all tables of the market."""
    with market.open_database() as database, database.reading() as connection:
        return {table.name: sorted(map(tuple, connection.execute(select(table))), key=repr) for table in TABLES}


# Prices and offers.


def test_amounts_have_at_most_four_decimals() -> None:
    for text in ("0", "60", "9.50", "0.0001", "999999999999.9999"):
        assert str(parse_price(text)) == text
    for text in ("", "-1", "+1", "1e3", "1.", ".5", "1.00001", "1" * 13, " 1", "1\n", "١", "1,5", "nan", "0x1"):
        with pytest.raises(MarketError, match="is not an amount"):
            parse_price(text)


def make_listing(mechanism: Mechanism, levels: dict[str, tuple[str, dict[str, int]]]) -> tuple[Listing, list[Any]]:
    described = ColumnDescription.from_level(mechanism, mechanism.level(1), path=PathId("survey", "x"))
    found = Listing("a", "release", "clinic", "{}", "x", "id", "T", "", "EUR", "seller")
    vars(found)["description"] = described
    return found, [ListedLevel(mechanism.level(e), Decimal(price), rows, "d") for e, (price, rows) in levels.items()]


@pytest.mark.parametrize("mechanism", [rx.Categorical(VALUES), rx.Unary(VALUES), rx.Numeric(0, 10)], ids=repr)
def test_the_margin_of_a_level_is_that_of_its_release(mechanism: Mechanism) -> None:
    """It follows from rows and levels alone; rows at lower levels make it wider."""
    rows = {"0.1": {"0.1": 5000}, "1": {"1": 5000}, "2": {"1": 5000}, "4": {"1": 2500, "4": 2500}, "8": {"8": 5000}}
    found = [offer.margin for offer in make_offers(*make_listing(mechanism, {e: ("1", rows[e]) for e in rows}))]
    margins = [margin for margin in found if margin is not None]
    expected = [compute_margin(mechanism, Decimal(epsilon), 5000) for epsilon in ("0.1", "1", "1")]
    assert margins[:3] == pytest.approx(expected, rel=0.02)
    assert margins[0] > margins[1] == margins[2] > margins[3] > margins[4]


def test_useful_dominated_and_recommended_levels() -> None:
    """A useful margin is a tenth of what could be known; a dominated level costs no less and tells less."""
    rows = {"0.1": {"0.1": 9000}, "0.2": {"0.2": 9000}, "1": {"1": 9000}, "1.5": {"1.5": 9000}, "2": {"0.1": 9000}}
    prices = {"0.1": "5", "0.2": "10", "1": "20", "1.5": "20", "2": "30"}
    listing, levels = make_listing(rx.Categorical(VALUES), {e: (prices[e], rows[e]) for e in rows})
    offers = make_offers(listing, levels)
    assert [offer.is_useful for offer in offers] == [False, False, True, True, False]
    assert [offer.is_dominated for offer in offers] == [False, False, True, False, True]
    assert str(recommend_level(offers)) == "1.5"
    assert str(recommend_level(make_offers(listing, levels[:3]))) == "1"
    assert recommend_level(make_offers(listing, levels[:2])) is None
    dearer = [*levels[:3], replace(levels[3], price=Decimal("20.0001"))]
    assert str(recommend_level(make_offers(listing, dearer))) == "1"  # both are useful, and it is cheaper
    (empty,) = make_offers(*make_listing(rx.Categorical(VALUES), {"1": ("5", {})}))
    assert (empty.margin, empty.is_useful, empty.is_dominated) == (None, False, False)


def test_an_offer_depends_on_no_report(market: Market, tmp_path: Path) -> None:
    found = []
    for values in (["flu", "covid"], ["none", "flu"]):
        levels = market.publish(make_vault(tmp_path, make_table(values=values)), limits="limit").listing["levels"]
        found.append([{**level, "digest": ""} for level in levels])
    assert found[0] == found[1]


# One listing of a path, with prices that never fall and never change.


@pytest.fixture
def seller(market: Market) -> MarketClient:
    return market.add("seller")


def test_a_path_has_one_listing_of_its_seller(market: Market, seller: MarketClient, tmp_path: Path) -> None:
    vault = make_vault(tmp_path)
    name = market.publish(vault, seller).listing["id"]
    with refused(RefusedByServerError, error="listing_exists") as found:
        market.publish(vault, seller, listing=market.make_name())
    assert f"Publish its levels there: --listing {name}." in found.value.message
    rival = market.publish(vault, market.add("seller"))  # everyone who has the vault sells the same reports
    assert [each["digest"] for each in rival.listing["levels"]] == [
        each["digest"] for each in market.publish(vault, seller, listing=name).listing["levels"]
    ]
    for options in ({"listing": rival.listing["id"]}, {"listing": name, "column": None}):
        with refused(RefusedByServerError, error="listing_exists"):
            market.publish(make_vault(tmp_path), seller, **options)


def test_title_text_and_approval_may_change(market: Market, seller: MarketClient, tmp_path: Path) -> None:
    vault = make_vault(tmp_path)
    first = market.publish(vault, seller, approval="seller").listing
    asked = ask_for_listing(vault)
    same = seller.create_listing(first["id"], **asked)
    assert same == first
    changed = seller.create_listing(first["id"], **asked, title="New", about="Text", approval="automatic")
    assert changed == {**first, "title": "New", "about": "Text", "approval": "automatic"}
    before = dump(market)
    for field in ({"currency": "USD"}, {"column": "other"}, {"id_column": "other"}, {"prices": {"0.5": "61"}}):
        with refused(RefusedByServerError) as found:
            seller.create_listing(first["id"], **{**asked, **field})
        assert found.value.fields["error"] == ("market" if "prices" in field else "listing_exists")
    assert dump(market) == before


def test_prices_never_fall_as_epsilon_grows(market: Market, seller: MarketClient, tmp_path: Path) -> None:
    vault, name = make_vault(tmp_path), market.make_name()
    before = vault.spent
    for prices, hint in [
        ({"0.5": "10", "1": "9.99"}, "Let prices grow"), ({"1": "free"}, ""), ({"1": "-5"}, ""),
    ]:  # fmt: skip
        with refused(RefusedByServerError, error="market") as found:
            market.publish(vault, seller, prices, listing=name)
        assert hint in found.value.message
        assert found.value.consequence == "Nothing was published."
    assert vault.spent == before
    market.publish(vault, seller, {"0.5": "10", "1": "10.0000"}, listing=name)
    for wrong in ({"0.7": "11"}, {"2": "9"}, {"0.1": "10.5"}, {"0.5": "11"}):
        with refused(RefusedByServerError, error="market"):
            market.publish(vault, seller, wrong, listing=name)
    added = market.publish(vault, seller, {"0.7": "10", "0.5": "10.0"}, listing=name)
    assert added.new == ("0.7",)
    assert [level["price"] for level in added.listing["levels"]] == ["10", "10", "10.0000"]


def test_a_level_named_twice_is_rejected(market: Market, seller: MarketClient, tmp_path: Path) -> None:
    """0.5 and 0.50 are one level, whichever price counts."""
    encoding = {"name": "categorical", "values": ["no", "yes"]}
    with refused(RefusedByServerError, error="market"):
        market.operator.create_pool(
            market.make_name(), title="T", currency="EUR", prices={"0.5": "1", "0.50": "1"}, encoding=encoding
        )
    with refused(MarketError):
        market.publish(make_vault(tmp_path), seller, {"0.5": "1", "0.50": "1"})


def test_a_listing_has_at_most_100_levels(market: Market, seller: MarketClient, tmp_path: Path) -> None:
    """One is published, and so many are planned."""
    vault, name = make_vault(tmp_path), market.make_name()
    market.publish(vault, seller, {"0.5": "5"}, listing=name)
    for planned in (99, 100):
        asked = ask_for_listing(vault, {f"{1 + step / 10:.1f}": str(10 + step) for step in range(planned)})
        if planned == 99:
            seller.create_listing(name, **asked)
            continue
        with refused(RefusedByServerError, error="market") as found:
            seller.create_listing(name, **asked)
        assert "would have 101 levels. The maximum is 100." in found.value.message


def test_a_level_is_never_replaced(market: Market, seller: MarketClient, tmp_path: Path) -> None:
    """The same rows are accepted again, as another file too; other rows are rejected by the market itself."""
    vault, name, path = make_vault(tmp_path), market.make_name(), tmp_path / "level.parquet"
    seller.create_listing(name, **ask_for_listing(vault))

    def send(epsilon: str, price: str, id_column: str = "id") -> Any:
        table = vault.relax("survey", epsilon).to_frame()
        stated = json.loads(table.schema.metadata[METADATA_KEY]) | {"id": id_column}
        table = table.select(["id", "diagnosis"]).rename_columns([id_column, "diagnosis"])
        pa_parquet.write_table(table.replace_schema_metadata({METADATA_KEY: json.dumps(stated)}), path)
        address, token = f"/v1/market/listings/{name}/levels?price={price}", seller._headers["Authorization"]
        sent = market.server.ask("POST", address, path.read_bytes(), content_type=PARQUET, authorization=token)
        return sent.status if sent.status < 300 else sent.error

    assert [send("1", "100"), send("1", "100"), send("0.5", "60"), send("0.5", "60")] == [201, 200, 201, 200]
    first = seller.listing(name)
    assert send("1", "100", id_column="patient") == "level_file"
    vault.relax("survey", 1, output=(released := tmp_path / "released.parquet"))
    with refused(RefusedByServerError, error="level_file", status=422):
        seller.add_level(name, released, "100")  # it has the column of limits
    release_again(vault, make_table(range(ROWS - 1)))
    assert [send("1", "100"), send("1", "99"), send("0.25", "61")] == ["level_differs", "market", "market"]
    vault = make_vault(tmp_path)
    assert send("2", "200") == "level_file"
    assert seller.listing(name) == first


def test_only_the_seller_sees_the_digest_of_a_level(market: Market, seller: MarketClient, tmp_path: Path) -> None:
    """With the digest of a level that was not bought, a buyer of a lower one could check guesses of its reports."""
    vault, name, buyer = make_vault(tmp_path), market.make_name(), market.add("buyer")
    digests = {each["digest"] for each in market.publish(vault, seller, listing=name).listing["levels"]}
    assert len(digests) == len(PRICES)
    assert None not in digests
    bought = buyer.order(name, "0.25")["digest"]
    others = [market.connect(), market.operator, market.add("seller"), buyer]
    for client in others:
        assert {each["digest"] for each in client.listing(name)["levels"]} == {None}
        assert not any(digest in json.dumps(client.listings()) for digest in digests)
    assert [each["digest"] for each in buyer.orders()] == [bought]
    assert {each["digest"] for each in seller.listing(name)["levels"]} == digests


def test_listings_differ_in_what_the_message_names(market: Market, seller: MarketClient, tmp_path: Path) -> None:
    vault, name = make_vault(tmp_path), market.make_name()
    market.publish(vault, seller, listing=name)
    asked = ask_for_listing(vault)
    for client, change, words in [
        (market.add("seller"), {}, "Another seller"),
        (seller, {"currency": "USD"}, "are in EUR"),
        (seller, {"limits": "limit"}, "have no limits"),
        (seller, {"id_column": "other"}, "another release, column, mechanism or key"),
    ]:
        with refused(RefusedByServerError, error="listing_exists") as found:
            client.create_listing(name, **{**asked, **change})
        assert words in found.value.message


# The rules of the database.

LISTING = "('{}', 'release', '{}', '{}', '{{}}', 'c', 'i', 't', 'a', 'EUR', 'seller', '')"
BROKEN = {
    "a price changes": "UPDATE market_level SET price = '1' WHERE listing = 'L'",
    "a digest changes": "UPDATE market_level SET digest = 'other' WHERE listing = 'L'",
    "a level is deleted": "DELETE FROM market_level WHERE listing = 'L'",
    "a level is replaced": "INSERT INTO market_level SELECT listing, threshold, epsilon, '1', 50, rows, 'x' "
    "FROM market_level WHERE listing = 'L'",
    "a place is taken": "INSERT INTO market_level VALUES ('L', 'T', '3', '1', 1, '{}', 'x')",
    "a 101st level": "INSERT INTO market_level VALUES ('L', 'T', '3', '1', 101, '{}', 'x')",
    "a level of no listing": "INSERT INTO market_level VALUES ('nothing', 'T', '3', '1', 1, '{}', 'x')",
    "a file changes": "UPDATE market_file SET content = content",
    "a file is deleted": "DELETE FROM market_file",
    "a path changes": "UPDATE market_listing SET path = 'other' WHERE id = 'L'",
    "a seller changes": "UPDATE market_listing SET seller = 'other' WHERE id = 'L'",
    "a column changes": "UPDATE market_listing SET \"column\" = 'other' WHERE id = 'L'",
    "a currency changes": "UPDATE market_listing SET currency = 'USD' WHERE id = 'L'",
    "a column of limits changes": "UPDATE market_listing SET limits = 'other' WHERE id = 'L'",
    "a listing is deleted": "DELETE FROM market_listing WHERE id = 'L'",
    "a path is listed twice": "INSERT INTO market_listing SELECT 'other', kind, seller, path, description, \"column\", "
    "id_column, title, about, currency, approval, limits FROM market_listing WHERE id = 'L'",
    "an unknown kind": "INSERT INTO market_listing VALUES " + LISTING.format("other", "s", "p").replace("release", "x"),
    "an approved order changes": "UPDATE market_order SET due = '0' WHERE id = 'O'",
    "an approved order is withdrawn": "UPDATE market_order SET state = 'withdrawn' WHERE id = 'O'",
    "a withdrawn order is requested": "UPDATE market_order SET state = 'requested' WHERE id = 'W'",
    "a withdrawn order is approved for another buyer": "UPDATE market_order SET state = 'approved', buyer = 'other', "
    "receipt = '{}', signature = 'x', digest = 'x' WHERE id = 'W'",
    "a withdrawn order is approved as an upgrade": "UPDATE market_order SET state = 'approved', previous = 'x', "
    "receipt = '{}', signature = 'x', digest = 'x' WHERE id = 'W'",
    "an order is deleted": "DELETE FROM market_order WHERE id = 'R'",
    "an order without a receipt": "UPDATE market_order SET state = 'approved' WHERE id = 'R'",
    "a receipt without an approval": "UPDATE market_order SET receipt = '{}', signature = 'x', digest = 'x' "
    "WHERE id = 'R'",
    "an unknown state": "UPDATE market_order SET state = 'SECRET' WHERE id = 'R'",
    "two requests": "INSERT INTO market_order SELECT 'other', listing, threshold, buyer, state, price, due, previous, "
    "requested, digest, receipt, signature FROM market_order WHERE id = 'R'",
    "a level bought twice": "INSERT INTO market_order SELECT 'other', listing, threshold, buyer, state, price, due, "
    "previous, requested, digest, receipt, signature FROM market_order WHERE id = 'O'",
    "an order of no level": "INSERT INTO market_order SELECT 'other', listing, 'T', 'stranger', state, price, due, "
    "previous, requested, digest, receipt, signature FROM market_order WHERE id = 'R'",
    "a report changes": "UPDATE market_pool_report SET report = 'x'",
    "a report is deleted": "DELETE FROM market_pool_report",
    "the signing key changes": "UPDATE market_setup SET signing_key = 'x'",
    "the signing key is deleted": "DELETE FROM market_setup",
    "an unknown role": "INSERT INTO market_member VALUES ('nobody', 'operator', 'x')",
}  # fmt: skip


@pytest.fixture(scope="module")
def names(market: Market, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """One listing with an approved, a withdrawn and a requested order, and a pool with a member."""
    seller, one, two = market.add("seller"), market.add("buyer"), market.add("buyer")
    vault = make_vault(tmp_path_factory.mktemp("rules"))
    listing = market.publish(vault, seller, approval="seller").listing["id"]
    approved, withdrawn = one.order(listing, "0.5")["id"], two.order(listing, "0.25")["id"]
    seller.approve(approved)
    two.withdraw(withdrawn)
    pool = market.make_name()
    encoding = {"name": "categorical", "values": ["no", "yes"]}
    market.operator.create_pool(pool, title="T", currency="EUR", prices={"1": "1"}, encoding=encoding)
    seller.join_pool(pool, {"1": "yes"})
    return {"'L'": listing, "'O'": approved, "'W'": withdrawn, "'R'": two.order(listing, "1")["id"]}


def execute(market: Market, names: dict[str, str], statement: str) -> int:
    for short, name in names.items():
        statement = statement.replace(short, f"'{name}'")
    with market.open_database() as database, database.engine.connect() as connection:
        done = connection.exec_driver_sql(statement.replace("%", "%%")).rowcount
        connection.commit()
        return done


@pytest.mark.parametrize("rule", BROKEN)
def test_the_database_keeps_its_rules(market: Market, names: dict[str, str], rule: str) -> None:
    before = dump(market)
    with pytest.raises(DBAPIError):
        execute(market, names, BROKEN[rule])
    assert dump(market) == before


def test_a_row_is_not_replaced_in_other_words(market: Market, names: dict[str, str]) -> None:
    """What either database offers besides UPDATE and DELETE."""
    before = dump(market)
    columns = "listing, threshold, epsilon, '1', place, rows, digest"
    row = f"INTO market_level SELECT {columns} FROM market_level WHERE listing = 'L'"
    if market.server.url.startswith("sqlite"):
        words = [f"INSERT OR REPLACE {row}", f"REPLACE {row}"]
    else:
        words = [f"INSERT {row} ON CONFLICT (listing, threshold) DO UPDATE SET price = '1'", "TRUNCATE market_file"]
    for statement in words:
        with pytest.raises(DBAPIError):
            execute(market, names, statement)
    assert dump(market) == before


def test_the_rules_leave_room_for_what_is_allowed(market: Market, names: dict[str, str]) -> None:
    """Otherwise the statements above could fail for another reason."""
    for statement, rows in [
        ("UPDATE market_listing SET title = 'New', about = 'x', approval = 'automatic' WHERE id = 'L'", 1),
        ("INSERT INTO market_level VALUES ('L', 'T', '3', '1', 100, '{}', 'x')", 1),
        ("INSERT INTO market_listing VALUES " + LISTING.format("free", "s", "p"), 1),
        ("UPDATE market_order SET state = 'withdrawn' WHERE id = 'R'", 1),
        ("INSERT INTO market_file VALUES ('free', 0, 'x')", 1),
    ]:
        assert execute(market, names, statement) == rows
