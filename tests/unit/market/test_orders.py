"""Orders: requested, approved once, withdrawn or upgraded, and restored from a receipt."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.refusals import refused
from tests.servers.collectors import STORES
from tests.servers.markets import ROWS, Market, make_market_fixture, make_vault

from relaxdp.market.client import MarketClient
from relaxdp.market.receipts import SignedReceipt, Signer
from relaxdp.server_errors import RefusedByServerError

market = make_market_fixture(STORES)


@pytest.fixture(scope="module")
def seller(market: Market) -> MarketClient:
    return market.add("seller")


@pytest.fixture(scope="module")
def listing(market: Market, seller: MarketClient, tmp_path_factory: pytest.TempPathFactory) -> str:
    """A listing of 0.25 for 20, 0.5 for 60 and 1 for 100, whose seller approves each order."""
    vault = make_vault(tmp_path_factory.mktemp("seller"))
    return str(market.publish(vault, seller, approval="seller").listing["id"])


@pytest.fixture
def buyer(market: Market) -> MarketClient:
    return market.add("buyer")


def offers(client: MarketClient, listing: str) -> dict[str, Any]:
    found = client.listing(listing)
    return {"owned": found["owned"], **{each["epsilon"]: each["due"] for each in found["levels"]}}


def test_a_request_is_approved_once(seller: MarketClient, buyer: MarketClient, listing: str, tmp_path: Path) -> None:
    """The same request and the same approval again change nothing; a file and a receipt come with the approval."""
    order = buyer.order(listing, "0.5")
    assert (order["state"], order["due"], order["digest"], order["is_new"]) == ("requested", "60", None, True)
    assert buyer.order(listing, "0.50") == {**order, "is_new": False}
    for ask in (buyer.receipt, lambda each: buyer.download(each, tmp_path / "x.parquet")):
        with refused(RefusedByServerError, error="order_state"):
            ask(order["id"])
    approved = seller.approve(order["id"])
    levels = {each["epsilon"]: each for each in seller.listing(listing)["levels"]}
    assert approved == {**order, "state": "approved", "digest": levels["0.5"]["digest"], "is_new": False}
    signed = buyer.receipt(order["id"])
    assert seller.approve(order["id"]) == approved == buyer.order(listing, "0.5", upgrade=True)
    assert buyer.receipt(order["id"]) == signed == buyer.download(order["id"], tmp_path / "x.parquet")
    receipt = signed.receipt
    assert (receipt.order, receipt.buyer, receipt.seller) == (order["id"], order["buyer"], order["seller"])
    assert (receipt.epsilon, receipt.rows, receipt.price, receipt.due) == ("0.5", ROWS, "60", "60")
    assert (receipt.digest, receipt.previous) == (levels["0.5"]["digest"], None)
    assert buyer.orders() == [approved]
    assert approved in seller.orders()
    for client in (buyer, seller):
        with refused(RefusedByServerError, error="order_state"):
            client.withdraw(order["id"])


def test_an_upgrade_costs_the_difference(seller: MarketClient, buyer: MarketClient, listing: str) -> None:
    assert offers(buyer, listing) == {"owned": None, "0.25": "20", "0.5": "60", "1": "100"}
    with refused(RefusedByServerError, error="order_state") as found:
        buyer.order(listing, "0.5", upgrade=True)
    assert "nothing to upgrade" in found.value.message
    first = seller.approve(buyer.order(listing, "0.25")["id"])
    assert offers(buyer, listing) == {"owned": "0.25", "0.25": "0", "0.5": "40", "1": "80"}
    with refused(RefusedByServerError, error="order_state") as found:
        buyer.order(listing, "1")
    assert "An upgrade to 1 costs the difference, 80 EUR." in found.value.message
    upgrade = seller.approve(buyer.order(listing, "1", upgrade=True)["id"])
    assert (upgrade["price"], upgrade["due"], upgrade["previous"]) == ("100", "80", first["id"])
    receipts = [buyer.receipt(each["id"]).receipt for each in (first, upgrade)]
    assert [(each.due, each.previous) for each in receipts] == [("20", None), ("80", first["id"])]
    assert offers(buyer, listing) == {"owned": "1", "0.25": "0", "0.5": "0", "1": "0"}
    for upgraded in (True, False):  # a lower level has less information than what the buyer has
        with refused(RefusedByServerError, error="order_state") as found:
            buyer.order(listing, "0.5", upgrade=upgraded)
        assert f"Download it: relaxdp market download {upgrade['id']} FILE." in found.value.message


def test_one_request_at_a_time(seller: MarketClient, buyer: MarketClient, listing: str) -> None:
    """Two open requests could both cost the whole price. A withdrawn one leaves room, and stays withdrawn."""
    first = buyer.order(listing, "0.25")
    with refused(RefusedByServerError, error="order_state") as found:
        buyer.order(listing, "1")
    assert f"withdraw it: relaxdp market withdraw {first['id']}." in found.value.message
    assert buyer.withdraw(first["id"])["state"] == seller.withdraw(first["id"])["state"] == "withdrawn"
    with refused(RefusedByServerError, error="order_state"):
        seller.approve(first["id"])
    again = buyer.order(listing, "0.25")
    assert (again["is_new"], again["id"] == first["id"]) == (True, False)
    assert seller.withdraw(again["id"])["state"] == "withdrawn"  # the seller rejects it
    assert [each["state"] for each in buyer.orders()] == ["withdrawn", "withdrawn"]
    assert offers(buyer, listing)["owned"] is None


def test_a_listing_may_approve_by_itself(market: Market, buyer: MarketClient, tmp_path: Path) -> None:
    listing = market.publish(make_vault(tmp_path), approval="automatic").listing["id"]
    order = buyer.order(listing, "0.5")
    assert (order["state"], order["is_new"]) == ("approved", True)
    assert buyer.order(listing, "0.5") == {**order, "is_new": False}
    buyer.download(order["id"], tmp_path / "x.parquet")


def test_orders_of_others_are_unknown(market: Market, seller: MarketClient, buyer: MarketClient, listing: str) -> None:
    """To everyone but buyer and seller, an order looks like one that does not exist."""
    order = seller.approve(buyer.order(listing, "0.5")["id"])["id"]
    stranger, rival = market.add("buyer"), market.add("seller")
    asked: list[Any] = [stranger.receipt, stranger.withdraw, rival.approve, rival.withdraw, market.operator.approve]
    for ask in asked:
        messages = []
        for name in (order, "0000000000"):
            with refused(RefusedByServerError, error="unknown_order", status=404) as found:
                ask(name)
            messages.append(found.value.message.replace(name, "X"))
        assert messages[0] == messages[1]
    assert stranger.orders() == rival.orders() == []
    with refused(RefusedByServerError, error="wrong_role"):
        buyer.approve(order)
    with refused(RefusedByServerError, error="unknown_level") as found:
        buyer.order(listing, "0.75")
    assert "Its levels are 0.25, 0.5, 1." in found.value.message
    with refused(RefusedByServerError, error="unknown_listing"):
        buyer.order("nothing", "0.5")


def test_sales_show_the_loss_towards_all_buyers(market: Market, tmp_path: Path) -> None:
    """Of each column the largest level that was sold, and the sum over the columns of a vault."""
    seller, vault = market.add("seller"), make_vault(tmp_path)
    first = market.publish(vault, seller, approval="seller").listing["id"]
    other = market.publish(make_vault(tmp_path), seller, {"2": "9"}, approval="seller").listing["id"]
    buyers = [market.add("buyer") for _ in range(3)]
    for client, epsilon in zip(buyers, ("0.25", "0.5", "0.5"), strict=True):
        seller.approve(client.order(first, epsilon)["id"])
    buyers[0].order(first, "1", upgrade=True)
    sales = seller.sales()
    found = {each["listing"]: each for each in sales["columns"]}
    assert found[first]["sold"] == [{"epsilon": "0.25", "buyers": 1}, {"epsilon": "0.5", "buyers": 2}]
    assert [found[first][name] for name in ("largest_sold", "held", "open_requests")] == ["0.5", "1", 1]
    assert [found[other][name] for name in ("sold", "largest_sold", "held", "open_requests")] == [[], "0", "2", 0]
    sums = {each["key_fingerprint"]: (each["largest_sold"], each["held"]) for each in sales["vaults"]}
    assert sums[vault.key_fingerprint] == ("0.5", "1")
    assert len(sums) == 2


def test_columns_of_one_vault_add_up(market: Market, tmp_path: Path) -> None:
    seller, vault, buyer = market.add("seller"), make_vault(tmp_path), market.add("buyer")
    table = vault.relax("survey", "0.01").to_frame().select(["id"])
    smokes = table.append_column("smokes", [["no", "yes", "no", "yes"] * (ROWS // 4)])
    vault.release(smokes, {"smokes": ["no", "yes"]}, id="id", epsilon="0.5", name="survey-2", planned_epsilon=9)
    for name, epsilon in (("survey", "1"), ("survey-2", "0.5")):
        listing = market.publish(vault, seller, {epsilon: "5"}, name=name).listing["id"]
        buyer.order(listing, epsilon)
    (vaults,) = seller.sales()["vaults"]
    assert (vaults["largest_sold"], vaults["held"]) == ("1.5", "1.5")


def test_a_lost_order_is_restored(
    market: Market, seller: MarketClient, buyer: MarketClient, listing: str, tmp_path: Path
) -> None:
    """From its receipt alone, next to other orders of the same buyer; prices are those of the receipt."""
    other = market.add("buyer")
    kept = other.receipt(seller.approve(other.order(listing, "1")["id"])["id"]).receipt
    first = seller.approve(buyer.order(listing, "0.25")["id"])
    request = buyer.order(listing, "1", upgrade=True)
    signed = market.sign_lost_order(kept, buyer, price="90", due="70", previous="another")
    restored = buyer.restore(signed)
    assert [restored[name] for name in ("id", "epsilon", "state", "price", "due", "previous", "digest")] == [
        signed.receipt.order, "1", "approved", "90", "70", "another", kept.digest,
    ]  # fmt: skip
    assert restored["requested"] == kept.issued
    assert buyer.restore(signed) == restored
    assert buyer.download(restored["id"], tmp_path / "x.parquet") == signed
    assert {each["id"]: each["state"] for each in buyer.orders()} == {
        first["id"]: "approved", request["id"]: "withdrawn", restored["id"]: "approved"
    }  # fmt: skip
    wrong = market.sign_lost_order(kept, buyer, epsilon="0.5")  # with the digest of another level
    with refused(RefusedByServerError, error="receipt") as found:
        buyer.restore(wrong)
    assert "has other ids or reports now" in found.value.message
    # In another currency, of another seller, and for an order of another buyer.
    for client, change in [
        (buyer, {"currency": "USD"}), (buyer, {"seller": "x"}), (market.add("buyer"), {"order": first["id"]})
    ]:  # fmt: skip
        with refused(RefusedByServerError, error="receipt", hint="Ask the operator"):
            client.restore(market.sign_lost_order(kept, client, **change))
    with refused(RefusedByServerError, error="unknown_level", hint="publish this level again"):
        buyer.restore(market.sign_lost_order(kept, buyer, epsilon="2"))
    assert len(buyer.orders()) == 3


@pytest.mark.parametrize("state", ["requested", "withdrawn"])
def test_a_receipt_approves_an_order_that_the_backup_has_as_a_request(
    market: Market, seller: MarketClient, buyer: MarketClient, listing: str, state: str
) -> None:
    """It becomes the order that the receipt names. A request for another level ends."""
    other = market.add("buyer")
    kept = other.receipt(seller.approve(other.order(listing, "0.5")["id"])["id"]).receipt
    order = buyer.order(listing, "0.5")
    requests = []
    if state == "withdrawn":
        seller.withdraw(order["id"])
        requests = [buyer.order(listing, "1")["id"]]
    signed = market.sign_lost_order(kept, buyer, order=order["id"])
    restored = buyer.restore(signed)
    assert restored == {**order, "state": "approved", "digest": kept.digest, "is_new": False}
    assert (buyer.restore(signed), buyer.receipt(order["id"])) == (restored, signed)
    states = {each["id"]: each["state"] for each in buyer.orders()}
    assert states == {order["id"]: "approved", **dict.fromkeys(requests, "withdrawn")}


def test_an_upgrade_never_pays_the_buyer(
    market: Market, seller: MarketClient, buyer: MarketClient, listing: str
) -> None:
    """A restored order may have cost more than a higher level does now."""
    other = market.add("buyer")
    kept = other.receipt(seller.approve(other.order(listing, "0.25")["id"])["id"]).receipt
    buyer.restore(market.sign_lost_order(kept, buyer, price="150", due="150"))
    assert offers(buyer, listing) == {"owned": "0.25", "0.25": "0", "0.5": "0", "1": "0"}
    assert buyer.order(listing, "1", upgrade=True)["due"] == "0"


def test_only_a_receipt_of_this_buyer_and_market_restores(
    market: Market, seller: MarketClient, buyer: MarketClient, listing: str
) -> None:
    """What the market still has it keeps; tests/contract/market/test_restored.py loses orders first."""
    order = buyer.order(listing, "0.5")
    approved = seller.approve(order["id"])
    signed = buyer.receipt(order["id"])
    assert buyer.restore(signed) == approved
    changed = SignedReceipt(replace(signed.receipt, epsilon="1"), signed.signature)
    foreign = Signer(bytes(32)).sign(signed.receipt)
    for client, wrong, hint in (
        (market.add("buyer"), signed, "token of the buyer"), (buyer, changed, "receipt file"), (buyer, foreign, "")
    ):  # fmt: skip
        with refused(RefusedByServerError, error="receipt", status=422, hint=hint):
            client.restore(wrong)
    assert buyer.orders() == [approved]
