"""A market whose database was put back to an older copy: sellers publish again, buyers restore from receipts."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path

import pytest
from tests.conftest import missing
from tests.refusals import refused
from tests.servers.collectors import STORES
from tests.servers.markets import ROWS, Market, make_table, make_vault, release_again, serve_market
from tests.servers.postgres import programs

from relaxdp.server_errors import LevelDiffersError, RefusedByServerError
from relaxdp.service.maintenance import back_up, restore

POOL = {"name": "categorical", "values": ["no", "yes"]}


@pytest.fixture(params=STORES)
def market(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Market]:
    with serve_market(request.param, tmp_path, request) as served:
        yield served


def copy_database(market: Market, folder: Path) -> Callable[[], None]:
    """Copy the database while the service runs. Return what puts the copy back, with the service stopped meanwhile."""
    url, copy = market.server.url, folder / "copy"
    if url.startswith("sqlite"):
        back_up(url, copy)
    elif not (programs() / "pg_dump").exists():
        missing("pg_dump is not installed")
    else:
        subprocess.run([programs() / "pg_dump", "--format=custom", f"--file={copy}", url], check=True)

    def put_back() -> None:
        market.server.stop()
        if url.startswith("sqlite"):
            for file in folder.glob("service.db*"):
                file.unlink()
            restore(copy, url)
        else:
            words = ["--clean", "--exit-on-error", "--single-transaction", f"--dbname={url}", str(copy)]
            subprocess.run([programs() / "pg_restore", *words], check=True)
        market.start_again()

    return put_back


def test_everything_comes_back_from_vaults_and_receipts(market: Market, tmp_path: Path) -> None:
    vault, seller, name = make_vault(tmp_path), market.add("seller"), market.make_name()
    one, two, key = market.add("buyer"), market.add("buyer"), market.operator.public_key()
    market.publish(vault, seller, {"0.25": "20", "0.5": "60"}, listing=name)
    terms = {"title": "T", "currency": "EUR", "approval": "automatic"}
    market.operator.create_pool("pool", prices={"1": "9"}, encoding=POOL, **terms)
    seller.join_pool("pool", {"1": "yes"})
    first = one.order(name, "0.25")
    put_back = copy_database(market, tmp_path)

    upgraded = one.order(name, "0.5", upgrade=True)
    whole = market.publish(vault, seller, {"1": "100"}, listing=name).listing
    ordered = [(one, upgraded), (one, one.order(name, "1", upgrade=True)), (two, two.order("pool", "1"))]
    files = [tmp_path / f"{order['id']}.parquet" for _, order in ordered]
    receipts = [buyer.download(order["id"], file) for (buyer, order), file in zip(ordered, files, strict=True)]
    put_back()

    assert one.public_key() == key
    assert [each["id"] for each in one.orders()] == [first["id"]]
    assert [each["epsilon"] for each in one.listing(name)["levels"]] == ["0.25", "0.5"]
    with refused(RefusedByServerError, error="unknown_level"):  # the level has to be there first
        one.restore(receipts[1])
    again = market.publish(vault, seller, {"0.25": "20", "0.5": "60", "1": "100"}, listing=name)
    assert (again.new, again.cost) == (("1",), Decimal(0))
    assert [each["digest"] for each in again.listing["levels"]] == [each["digest"] for each in whole["levels"]]
    for (buyer, order), receipt, file in zip(ordered, receipts, files, strict=True):
        with refused(RefusedByServerError, error="unknown_order"):
            buyer.receipt(order["id"])
        restored = buyer.restore(receipt)
        assert restored == buyer.restore(receipt) == order | {"is_new": False, "requested": restored["requested"]}
        assert buyer.download(order["id"], tmp_path / f"{order['id']}-again.parquet") == receipt
        assert (tmp_path / f"{order['id']}-again.parquet").read_bytes() == file.read_bytes()
    assert one.listing(name)["owned"] == "1"
    assert [each["id"] for each in seller.orders()] == [ordered[1][1]["id"], upgraded["id"], first["id"]]


def test_a_receipt_of_rows_that_changed_is_not_restored(market: Market, tmp_path: Path) -> None:
    """The seller publishes other rows at a level that was lost. File and receipt of its buyer stay valid."""
    vault, seller, buyer, name = make_vault(tmp_path), market.add("seller"), market.add("buyer"), market.make_name()
    kept = market.publish(vault, seller, {"0.5": "60"}, listing=name).listing
    put_back = copy_database(market, tmp_path)
    market.publish(vault, seller, {"1": "100"}, listing=name)
    receipt = buyer.download(buyer.order(name, "1")["id"], tmp_path / "x.parquet")
    put_back()

    release_again(vault, make_table(range(ROWS - 1)))
    with refused(LevelDiffersError):
        market.publish(vault, seller, {"0.5": "60"}, listing=name)
    market.publish(vault, seller, {"1": "100"}, listing=name)
    with refused(RefusedByServerError, error="receipt") as found:
        buyer.restore(receipt)
    assert "Your downloaded file and receipt stay valid. Nothing was restored." in found.value.message
    assert seller.listing(name)["levels"][0] == kept["levels"][0]
    assert buyer.orders() == []


@pytest.mark.parametrize("meanwhile", ["requested", "withdrawn"])
def test_an_order_that_was_approved_after_the_backup_comes_back(market: Market, tmp_path: Path, meanwhile: str) -> None:
    """The backup holds its request, which the seller may have withdrawn since."""
    vault, seller, buyer, name = make_vault(tmp_path), market.add("seller"), market.add("buyer"), market.make_name()
    market.publish(vault, seller, {"0.5": "60"}, listing=name, approval="seller")
    order = buyer.order(name, "0.5")
    put_back = copy_database(market, tmp_path)
    approved = seller.approve(order["id"])
    receipt = buyer.download(order["id"], tmp_path / "x.parquet")
    put_back()

    assert [each["state"] for each in buyer.orders()] == ["requested"]
    if meanwhile == "withdrawn":
        seller.withdraw(order["id"])
        with refused(RefusedByServerError, error="order_state"):
            seller.approve(order["id"])
    assert buyer.restore(receipt) == buyer.restore(receipt) == approved
    assert buyer.receipt(order["id"]) == receipt
    assert seller.sales()["columns"][0]["largest_sold"] == "0.5"
    for client in (buyer, seller):
        with refused(RefusedByServerError, error="order_state"):
            client.withdraw(order["id"])


def test_a_restored_order_ends_what_was_requested_meanwhile(market: Market, tmp_path: Path) -> None:
    """The buyer asks again for a lost level, or for a higher one at the full price, and then finds the receipt."""
    vault, seller, name = make_vault(tmp_path), market.add("seller"), market.make_name()
    buyers = [market.add("buyer"), market.add("buyer")]
    market.publish(vault, seller, {"0.5": "60", "1": "100"}, listing=name, approval="seller")
    put_back = copy_database(market, tmp_path)
    lost = [seller.approve(buyer.order(name, "0.5")["id"]) for buyer in buyers]
    receipts = [buyer.receipt(order["id"]) for buyer, order in zip(buyers, lost, strict=True)]
    put_back()

    for buyer, epsilon, receipt, order in zip(buyers, ("0.5", "1"), receipts, lost, strict=True):
        asked = buyer.order(name, epsilon)
        assert asked["due"] == asked["price"]
        assert buyer.restore(receipt)["id"] == order["id"]
        assert {each["id"]: each["state"] for each in buyer.orders()} == {
            order["id"]: "approved", asked["id"]: "withdrawn"
        }  # fmt: skip
        with refused(RefusedByServerError, error="order_state"):
            seller.approve(asked["id"])
        upgrade = seller.approve(buyer.order(name, "1", upgrade=True)["id"])
        assert (upgrade["due"], upgrade["previous"]) == ("40", order["id"])
