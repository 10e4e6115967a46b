"""One path is sold in one listing: who claims somebody else's first holds it only as long as it may still be sold."""

from __future__ import annotations

import inspect
import io
import json
from collections import defaultdict
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from threading import Barrier
from typing import Any

import pyarrow.parquet as pa_parquet
import pytest
from sqlalchemy import delete, select
from tests.patience import PATIENCE
from tests.servers.collectors import STORES
from tests.servers.markets import (
    SELLER_KEY,
    VALUES,
    Here,
    Refused,
    altered,
    column_of,
    dump,
    here,
    level_of,
    release_file,
)

import relaxdp as rx
from relaxdp.errors import RelaxdpError
from relaxdp.market import deliveries, listings, sales
from relaxdp.market import market as market_module
from relaxdp.market.market import Market
from relaxdp.market.prices import prices_from_json
from relaxdp.market.schema import LISTINGS, PURCHASES
from relaxdp.server_errors import ListingExistsError
from relaxdp.service.wire import EncodingRequest, WireLevel, resolved
from relaxdp.storage.database import Database

PRICES = {"points": [["0.1", 0], ["0.5", 20], ["3", 300]]}
TAKEN = "this release is listed already, as 'squat', and one path is sold in one place only. Nothing was delivered."


@pytest.fixture(params=STORES)
def trader(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Here]:
    """A market with an owner of a release, somebody who was faster, two buyers, and a draft of each seller."""
    url = str(tmp_path / "market.db") if request.param == "sqlite" else request.getfixturevalue("postgres_url")()
    database = Database(url)
    try:
        yield peopled(Here(database))
    finally:
        database.close()


def peopled(made: Here) -> Here:
    for name, role in (("clinic", "seller"), ("rival", "seller"), ("institute", "buyer"), ("insurer", "buyer")):
        made.account(name, role)
    for name in ("institute", "insurer"):
        made.credit(name, 5000)
    made.list_release("rival", "squat", PRICES)
    made.list_release("clinic", "own", PRICES)
    return made


def forged(folder: Path, epsilon: str = "2") -> Path:
    """A file that claims the owner's path, made without the owner's key."""
    path = release_file(folder, epsilon, key=rx.Key.from_bytes(bytes(32)), name=f"other-{epsilon}")

    def claim(said: Any) -> None:
        column_of(said).update(key_fingerprint=SELLER_KEY.fingerprint)

    return altered(path, f"forged-{epsilon}", description=claim)


def sold_from(database: Database) -> dict[tuple[str, ...], set[str]]:
    """Return from which listings something was sold, by path."""
    found: defaultdict[tuple[str, ...], set[str]] = defaultdict(set)
    with database.reading() as connection:
        query = select(LISTINGS.c.id, LISTINGS.c.described).join(PURCHASES, PURCHASES.c.listing == LISTINGS.c.number)
        for listing, text in connection.execute(query):
            said = json.loads(text)
            found[said["key_fingerprint"], said["release"], said["attribute"]].add(listing)
    return found


def check_paths(database: Database) -> None:
    """Check that no path was sold in two places."""
    assert [names for names in sold_from(database).values() if len(names) > 1] == []


def path_of(trader: Here, listing: str) -> str | None:
    with trader.database.reading() as connection:
        found: str | None = connection.execute(select(LISTINGS.c.path).where(LISTINGS.c.id == listing)).scalar_one()
        return found


def reports(content: bytes) -> list[str]:
    found: list[str] = pa_parquet.read_table(io.BytesIO(content))["diagnosis"].to_pylist()
    return found


def trade(trader: Here, folder: Path) -> list[str]:
    """Let the owner deliver and sell, and return the digests of what was sold."""
    trader.deliver("clinic", "own", release_file(folder, "1"))
    first = [trader.buy("institute", "own", "0.5"), trader.buy("insurer", "own", "0.2")]
    trader.deliver("clinic", "own", release_file(folder, "2"))
    last = [trader.buy("institute", "own", "1.5", upgrade=True), trader.buy("insurer", "own", "1", upgrade=True)]
    return [bought["digest"] for bought in (*first, *last)]


def refused_unchanged(trader: Here, act: Callable[[], Any], code: str) -> str:
    """Check that something is refused and changes nothing; return the sentence."""
    before = dump(trader.database)
    with pytest.raises(Refused) as refused:
        act()
    assert refused.value.code == code
    assert dump(trader.database) == before
    return refused.value.sentence


def test_the_owner_sells_after_the_operator_closed_what_was_in_the_way(trader: Here, tmp_path: Path) -> None:
    """And the owner's buyers get, byte for byte, what they would have got if nobody had been faster."""
    trader.deliver("rival", "squat", forged(tmp_path))
    own = release_file(tmp_path, "1")
    assert refused_unchanged(trader, lambda: trader.deliver("clinic", "own", own), "listing_exists") == TAKEN
    assert trader.close_any("squat")["state"] == "closed"
    assert path_of(trader, "squat") is None
    digests = trade(trader, tmp_path)
    refused_unchanged(trader, lambda: trader.buy("insurer", "squat", "0.5"), "listing_state")
    trader.list_release("rival", "again", PRICES)
    said = refused_unchanged(
        trader, lambda: trader.deliver("rival", "again", forged(tmp_path, "2.5")), "listing_exists"
    )
    assert said == TAKEN.replace("squat", "own")
    assert sold_from(trader.database) == {(SELLER_KEY.fingerprint, "survey-2026", "diagnosis"): {"own"}}
    check_paths(trader.database)
    quiet = tmp_path / "quiet"
    quiet.mkdir()
    with here(quiet) as undisturbed:
        assert trade(peopled(undisturbed), quiet) == digests


def test_a_seller_lists_again_what_never_sold(trader: Here, tmp_path: Path) -> None:
    """Also at a lower level: the higher one was delivered to the platform, and nobody bought of it."""
    trader.deliver("clinic", "own", release_file(tmp_path, "2"))
    trader.close("clinic", "own")
    trader.list_release("clinic", "second", PRICES)
    trader.deliver("clinic", "second", release_file(tmp_path, "1"))
    trader.close("clinic", "second")
    trader.list_release("clinic", "third", PRICES)
    trader.deliver("clinic", "third", tmp_path / "survey-2026-1.parquet")
    assert reports(trader.data("institute", trader.buy("institute", "third", "1")["number"])) == reports(
        (tmp_path / "survey-2026-1.parquet").read_bytes()
    )
    assert [path_of(trader, name) is None for name in ("own", "second", "third")] == [True, True, False]
    assert {each["listing"]["id"]: each["loss_platform"] for each in trader.sales("clinic")} == {
        "own": "2", "second": "1", "third": "1",
    }  # fmt: skip
    check_paths(trader.database)


def _forgotten(trader: Here) -> None:
    """A level was drawn for somebody, and the purchase is not there any more: that is not how it should be."""
    trader.buy("institute", "squat", "0.5")
    with trader.market.writing() as connection:
        connection.execute(delete(PURCHASES))


SALES: dict[str, Callable[[Here], Any]] = {
    "a drawn level": lambda trader: trader.buy("institute", "squat", "0.5"),
    "the delivered level": lambda trader: trader.buy("institute", "squat", "2"),
    "a gift": lambda trader: trader.buy("institute", "squat", "0.1", 0),
    "a refunded level": lambda trader: trader.refund("rival", trader.buy("institute", "squat", "2")["number"]),
    "a level without its purchase": _forgotten,
}


@pytest.mark.parametrize("sale", SALES)
@pytest.mark.parametrize("by_operator", [False, True], ids=["by its seller", "by the operator"])
def test_what_was_sold_holds_its_path(trader: Here, tmp_path: Path, sale: str, by_operator: bool) -> None:
    trader.deliver("rival", "squat", forged(tmp_path))
    SALES[sale](trader)
    _ = trader.close_any("squat") if by_operator else trader.close("rival", "squat")
    own = release_file(tmp_path, "1")
    assert refused_unchanged(trader, lambda: trader.deliver("clinic", "own", own), "listing_exists") == TAKEN


def test_a_sale_that_was_prepared_is_not_finished_elsewhere(
    trader: Here, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Drawn, then closed, then the path is claimed by its owner: the draw is thrown away, and nobody has paid."""
    trader.deliver("rival", "squat", release_file(tmp_path, "1"))
    _between(monkeypatch, lambda: _handed_over(trader, tmp_path))
    with pytest.raises(Refused) as refused:
        trader.buy("institute", "squat", "0.5")
    assert (refused.value.code, refused.value.sentence) == (
        "listing_state", "this listing is closed and sells nothing now. Nothing was sold.",
    )  # fmt: skip
    assert (trader.balance("institute"), trader.balance("rival"), trader.purchases("institute")) == (5000, 0, [])
    with trader.database.reading() as connection:
        levels = listings.levels_of(connection, listings.find(connection, "squat"))
    assert [level.delivered for level in levels.values()] == [True]
    trader.buy("institute", "own", "0.5")
    check_paths(trader.database)


def test_a_sale_that_is_finished_first_holds_the_path(
    trader: Here, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The owner's file was read, and before it is delivered the other listing sells and is closed."""
    trader.deliver("rival", "squat", forged(tmp_path))

    def sold_and_closed() -> None:
        trader.buy("institute", "squat", "2")
        trader.close_any("squat")

    _between(monkeypatch, sold_and_closed, market_module, "level_file")
    own = release_file(tmp_path, "1")
    with pytest.raises(Refused) as refused:
        trader.deliver("clinic", "own", own)
    assert refused.value.sentence == TAKEN
    check_paths(trader.database)


def _between(monkeypatch: pytest.MonkeyPatch, act: Callable[[], Any], module: Any = sales, name: str = "draw") -> None:
    """Let something happen right after a function was called for the first time."""
    real = getattr(module, name)

    def interrupted(*arguments: Any) -> Any:
        result = real(*arguments)
        monkeypatch.setattr(module, name, real)
        act()
        return result

    monkeypatch.setattr(module, name, interrupted)


def _handed_over(trader: Here, folder: Path) -> None:
    trader.close_any("squat")
    trader.deliver("clinic", "own", release_file(folder, "1"))


def test_closing_is_final(trader: Here, tmp_path: Path) -> None:
    """Everything that a market does with a listing is tried on a closed one, before and after it gave up its path."""
    market = trader.market
    trader.deliver("rival", "squat", forged(tmp_path))
    trader.close("rival", "squat")
    higher, prices = forged(tmp_path, "2.5"), prices_from_json({"points": [*PRICES["points"], ["4", 500]]})
    pool = resolved(EncodingRequest("categorical", [*VALUES]), "1")
    attempts: dict[str, Callable[[], Any]] = {
        "list_release": lambda: market.list_release("rival", "t", prices, listing_id="squat"),
        "deliver": lambda: market.deliver("rival", "squat", higher),
        "change_listing": lambda: market.change_listing("rival", "squat", deliveries.close),
        "extend_prices": lambda: market.extend_prices("rival", "squat", prices),
        "raise_budget": lambda: market.raise_budget("rival", "squat", "9"),
        "close_listing": lambda: market.close_listing("rival", "squat"),
        "create_pool": lambda: market.create_pool("t", pool, prices, listing_id="squat"),
        "close_any": lambda: market.close_any("squat"),
        "join_pool": lambda: market.join_pool("rival", "squat", WireLevel(**level_of("1")), "flu", 0),
        "quote": lambda: market.quote("squat", "0.5"),
        "buy": lambda: market.buy("institute", "squat", "0.5"),
        "upgrade": lambda: market.upgrade("institute", "squat", "0.5"),
    }
    looking = {"quoted", "visible"}  # in somebody else's transaction
    methods = {name for name, each in vars(Market).items() if inspect.isfunction(each)}
    named = {name for name in methods if "listing_id" in inspect.signature(getattr(Market, name)).parameters}
    assert set(attempts) == named - looking

    def allowed() -> list[str]:
        """Try everything, and return what was not refused."""
        found = []
        for name, act in attempts.items():
            with suppress(RelaxdpError):
                act()
                found.append(name)
            assert trader.listing("squat")["state"] == "closed"
            assert dump(trader.database)[PURCHASES.name] == []
        return found

    assert allowed() == ["extend_prices", "raise_budget"]  # which sell nothing
    trader.deliver("clinic", "own", release_file(tmp_path, "1"))
    assert allowed() == ["extend_prices"]  # the same budget again is no raise
    assert path_of(trader, "squat") is None


def test_a_delivery_that_fails_takes_no_path(trader: Here, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    trader.deliver("rival", "squat", forged(tmp_path))
    trader.close_any("squat")
    own, before = release_file(tmp_path, "1"), dump(trader.database)
    with monkeypatch.context() as patch:
        patch.setattr(listings, "keep_level", lambda *_: 1 // 0)
        with pytest.raises(ZeroDivisionError):
            trader.deliver("clinic", "own", own)
    assert dump(trader.database) == before
    trader.deliver("clinic", "own", own)


def test_one_of_many_gets_a_path_that_was_given_up(trader: Here, tmp_path: Path) -> None:
    """Each of them with a connection of their own, at once."""
    trader.deliver("rival", "squat", forged(tmp_path))
    trader.close_any("squat")
    names = [f"new-{number}" for number in range(4)]
    for name in names:
        trader.list_release("clinic", name, PRICES)
    own, ready = release_file(tmp_path, "1"), Barrier(len(names))

    def claim(name: str) -> str:
        ready.wait(PATIENCE)
        try:
            return trader.market.deliver("clinic", name, own).id
        except ListingExistsError as problem:
            return str(problem.fields["listing"])

    with ThreadPoolExecutor(len(names)) as crowd:
        (winner,) = set(crowd.map(claim, names))
    states = {each["listing"]["id"]: each["listing"]["state"] for each in trader.sales("clinic")}
    assert states == {**dict.fromkeys(["own", *names], "draft"), winner: "open"}


def _pool_file(folder: Path, name: str) -> Path:
    """A file that says to be of a pool."""
    path = release_file(folder, "1", columns=["answer"], release=name, name=f"as-{name}")
    return altered(path, f"of-{name}", description=lambda said: column_of(said).update(key_fingerprint=""))


def test_pools_keep_their_paths_and_get_them(trader: Here, tmp_path: Path) -> None:
    """A pool's path is named after its id, which stays taken; who claimed it before the pool was made gives it up."""
    encoding = {"name": "categorical", "values": VALUES}
    trader.pool("snacks", encoding, PRICES)
    trader.close_any("snacks")
    false = _pool_file(tmp_path, "snacks")
    said = refused_unchanged(trader, lambda: trader.deliver("rival", "squat", false), "listing_exists")
    assert said == TAKEN.replace("squat", "snacks")
    trader.deliver("rival", "squat", _pool_file(tmp_path, "meals"))
    assert refused_unchanged(trader, lambda: trader.pool("meals", encoding, PRICES), "listing_exists") == TAKEN.replace(
        "delivered", "listed"
    )
    trader.close_any("squat")
    assert trader.pool("meals", encoding, PRICES)["state"] == "open"
    assert path_of(trader, "squat") is None


# Mistakes that `check_paths` has to find: it is what says that a path is sold in one place.


def test_mutant_what_was_sold_is_forgotten(trader: Here, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two draws of one level then go to two buyers, who together know more than what each of them bought."""
    monkeypatch.setattr(listings, "anything_sold", lambda *_: False)
    file = release_file(tmp_path, "1")
    trader.deliver("rival", "squat", file)
    one = trader.buy("institute", "squat", "0.5")
    trader.close_any("squat")
    trader.deliver("clinic", "own", file)
    two = trader.buy("insurer", "own", "0.5")
    assert reports(trader.data("institute", one["number"])) != reports(trader.data("insurer", two["number"]))
    with pytest.raises(AssertionError):
        check_paths(trader.database)


def test_mutant_a_prepared_sale_is_finished(trader: Here, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a second look at the state while the market is held, a sale would come after the path was given up."""
    real = sales.level_of
    monkeypatch.setattr(sales, "level_of", lambda listing, *more: real(replace(listing, state="open"), *more))
    trader.deliver("rival", "squat", release_file(tmp_path, "1"))
    _between(monkeypatch, lambda: _handed_over(trader, tmp_path))
    trader.buy("institute", "squat", "0.5")
    trader.buy("institute", "own", "0.5")
    with pytest.raises(AssertionError):
        check_paths(trader.database)
