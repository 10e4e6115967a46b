"""The market's page: its commands print what it shows, and it names every table and limit, and only real routes."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pyarrow as pa
import pytest
from tests.docs.market_page import PAGE, play, stage
from typer.testing import CliRunner

import relaxdp as rx
from relaxdp.cli.main import app
from relaxdp.cli.serve import build
from relaxdp.collector.component import CollectorComponent
from relaxdp.device.address import Server
from relaxdp.market import accounts, details, goods, levels, pools, prices, schema, told
from relaxdp.market.client import MarketClient
from relaxdp.market.market import Market
from relaxdp.market.receipts import HEADER
from relaxdp.service.application import build_application
from relaxdp.service.maintenance import back_up, restore
from relaxdp.service.schema import METADATA, SCHEMA
from relaxdp.service.settings import Settings
from relaxdp.storage.database import Database

TEXT = PAGE.read_text("utf-8")


def test_every_command_prints_what_the_page_shows() -> None:
    with stage() as server:
        played = list(play(TEXT, server))
    for each in played:
        assert each.fits, f"$ {each.command}\n{each.got}\nTo renew the page: python -m tests.docs.market_page"
    assert len(played) == len(re.findall(r"^\$ ", TEXT, re.MULTILINE)) > 30
    commands = {each.command.split()[2] for each in played if each.command.startswith("relaxdp market")}
    assert {"account", "credit", "list", "deliver", "buy", "upgrade", "receipt", "sales", "pool", "join"} <= commands
    (digest,) = [each.got.split()[0] for each in played if each.command.startswith("sha256sum")]
    assert any(digest in each.got for each in played if each.command.startswith("relaxdp market receipt"))


def test_the_commands_of_the_readme_cost_what_it_says() -> None:
    readme = (PAGE.parents[1] / "README.md").read_text("utf-8")
    lines = re.findall(r"^relaxdp (market .*?)  +# (.*)$", readme, re.MULTILINE)
    assert [comment for _, comment in lines] == ["the seller, once", "a buyer: 60 credits", "later: the other 100"]
    said = []
    with stage() as server:
        _release(Path(), "1").rename("level-1.parquet")
        operator = MarketClient(Server.parse(server.base), server.token)
        tokens = [operator.create_account(name, name)["token"] for name in ("seller", "buyer")]
        operator.credit("buyer", 160, "test")
        for token, (line, _) in zip((tokens[0], tokens[1], tokens[1]), lines, strict=True):
            env = {"RELAXDP_SERVER": server.base, "RELAXDP_TOKEN": token}
            result = CliRunner(env=env).invoke(app, shlex.split(line))
            assert result.exit_code == 0, (line, result.output, result.exception)
            said.append(result.output)
    assert "for 60 credits" in said[1]
    assert "for 100 credits" in said[2]


def test_routes_that_are_named_exist(tmp_path: Path) -> None:
    """All of them are in the reference, which is made from the service's own description."""
    key = tmp_path / "market-key"
    rx.Key.generate().save(key)
    settings = Settings(database=str(tmp_path / "x.db"), market_key=key)
    whole, without = (
        {(method, route.path) for route in each._inner.routes for method in route.methods or ()}  # type: ignore[attr-defined]
        for each in (build(settings), build_application(settings, lambda resources: [CollectorComponent(resources)]))
    )
    routes = {each for each in whole - without if each[0] != "HEAD"}
    named = set(re.findall(r"`(GET|POST) (/v1/market[^`?]*)", TEXT))
    assert named
    assert named - routes == set()


def test_every_table_is_named() -> None:
    assert schema.ENTRIES.name in METADATA.tables
    tables = {name for name in METADATA.tables if name.startswith("market_")}
    assert set(re.findall(r"`(market_[a-z_]+)`", TEXT)) - {"market_closed"} == tables


def test_the_limits_are_those_of_the_code() -> None:
    assert f"| {Settings(database='x').upload_limit >> 20} MiB | `--upload-limit`" in TEXT
    assert f"| {goods.MOST_OBJECTS:,}, and {goods.MOST_BYTES >> 30} GiB unpacked |" in TEXT
    assert f"| members of a pool | {pools.MOST_MEMBERS:,} |" in TEXT
    assert f"| levels of a listing | {levels.MOST_LEVELS} |" in TEXT
    assert f"| digits of a level | {levels.MAX_DIGITS} |" in TEXT
    assert f"| points of a price curve | {prices.MOST_POINTS:,} |" in TEXT
    assert prices.MOST_PRICE == accounts.MOST_CREDITS == 10**15
    assert "| a price, and all credits in circulation | 10^15 |" in TEXT
    assert f"| description and method of a listing | {details.MOST_SAID:,} letters; source, time, licence 200 |" in TEXT
    assert f"Up to {told.MOST_READ:,} objects" in TEXT
    assert f"of many values the largest {told.MOST_SHOWN}." in TEXT
    assert f"`{HEADER.decode().strip()}`" in TEXT


def test_lost_sales_bought_again_in_order_are_the_same_bytes(
    tmp_path: Path, opened: Callable[[str, rx.Key], Market]
) -> None:
    """What the page says of a restored copy; in another order they are not, so the digest tells."""
    key = rx.Key.generate()
    levels = {epsilon: _release(tmp_path, epsilon) for epsilon in ("1", "2")}
    place, copy = f"sqlite:///{tmp_path}/market.db", tmp_path / "copy.db"
    market = opened(place, key)
    for buyer in ("acme", "zeta"):
        market.create_account(buyer, "buyer")
        market.issue(buyer, 10, "test")
    market.create_account("clinic", "seller")
    market.list_release("clinic", "t", prices.prices_of(None, "1"), listing_id="a")
    market.deliver("clinic", "a", levels["1"])
    back_up(place, copy)
    sold = [market.buy("acme", "a", "0.5"), market.buy("zeta", "a", "0.7")]
    market.deliver("clinic", "a", levels["2"])
    sold += [market.upgrade("acme", "a", "1.2"), market.upgrade("zeta", "a", "0.9")]
    digests = {purchase.level.epsilon: purchase.digest for purchase, _ in sold}
    assert len(set(digests.values())) == 4

    def again(name: str, order: list[int]) -> list[bool]:
        url = f"sqlite:///{tmp_path}/{name}.db"
        restore(copy, url)
        restored = opened(url, key)
        restored.deliver("clinic", "a", levels["2"])
        found = []
        for number in order:
            restored.create_account(f"again-{number}", "buyer")
            restored.issue(f"again-{number}", 1, "lost")
            wanted = sold[number][0]
            found.append(restored.buy(f"again-{number}", "a", wanted.level.epsilon)[0].digest == wanted.digest)
        return found

    assert again("same", [0, 1, 2, 3]) == [True] * 4
    assert False in again("other", [3, 2, 1, 0])


@pytest.fixture
def opened() -> Iterator[Callable[[str, rx.Key], Market]]:
    """Open markets, whose databases are closed in the end."""
    with ExitStack() as stack:

        def open_market(url: str, key: rx.Key) -> Market:
            database = stack.enter_context(closing(Database(url)))
            database.prepare(SCHEMA)
            market = Market(database, key)
            market.open()
            return market

        yield open_market


def _release(folder: Path, epsilon: str) -> Path:
    table = pa.table({"person": range(500), "answer": ["yes", "no"] * 250})
    place, output = folder / "seller.vault", folder / f"{epsilon}.parquet"
    vault = rx.Vault(place) if place.exists() else rx.Vault.create(place, budget=2)
    vault.release(table, {"answer": ["no", "yes"]}, id="person", epsilon=epsilon, name="r", output=output)
    return output
