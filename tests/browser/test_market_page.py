"""The market's page in a browser: listings, orders, upgrades, downloads that verify, sales, and who may see what."""

from __future__ import annotations

import re
from pathlib import Path

import pyarrow.parquet as pa_parquet
import pytest
from playwright.sync_api import Route, expect
from tests.browser.browsers import in_both, saved
from tests.browser.dashboard_operator import PHONE
from tests.browser.market_scene import ROWS, TITLE, Market, New, Visitor
from tests.browser.survey_person import overflow, violations

from relaxdp.estimation.planning import find_margin
from relaxdp.market.receipts import parse_receipt, verify_file, verify_receipt
from relaxdp.server_errors import ReceiptError

pytestmark = pytest.mark.long

NAMES = "Epsilon Price Rows Margin of error Notes"
UNKNOWN = "This token is unknown. Check it, or ask the operator of the market for a new one."


def format_expected_margin(epsilon: str) -> str:
    """Return the margin of error that the planner computes."""
    return f"±\u00a0{100 * find_margin(n=ROWS, planned_values=3, epsilon=epsilon):.2g}\u00a0%"


def read_row(someone: Visitor, heading: str) -> list[str]:
    return [" ".join(text.split()) for text in someone.row(heading).locator("td").all_inner_texts()]


def decide(someone: Visitor, button: str | re.Pattern[str], yes: str) -> None:
    someone.page.get_by_role("button", name=button).click()
    someone.page.get_by_role("dialog").get_by_role("button", name=yes, exact=True).click()


def test_listings_need_no_token(visitor: New, market: Market) -> None:
    title = "Heating in 2026 <script>document.title = 'no'</script>"
    prices = {"0.1": "10", "0.5": "60", "0.9": "160", "1": "160"}
    name, _ = market.publish(title=title, about="One answer for each household.", prices=prices)
    someone = visitor()
    seller = market.get_client(None).listing(name)["seller"]
    assert "script" in someone.row(title).inner_text()
    margin = format_expected_margin("1").replace("\u00a0", " ")
    assert read_row(someone, title) == [seller, "4", "1", "160 EUR", margin]
    someone.page.get_by_role("link", name=title).press("Enter")
    someone.heading(title)
    for fact, value in [("Seller", seller), ("Orders are approved", "by the seller"), ("Column", "heating")]:
        someone.fact(fact, value)
    someone.fact("Possible answers", "gas, electricity, wood")
    expect(someone.page.get_by_text("One answer for each household.")).to_be_visible()
    assert " ".join(someone.page.locator("thead").inner_text().split()) == NAMES
    margins = {epsilon: format_expected_margin(epsilon).replace("\u00a0", " ") for epsilon in prices}
    assert read_row(someone, "0.1") == ["10 EUR", "2,000", margins["0.1"], "not accurate enough for most uses"]
    assert read_row(someone, "0.9")[3] == "another level costs no more and is more accurate"
    assert read_row(someone, "1") == ["160 EUR", "2,000", margins["1"], "recommended"]
    expect(someone.page.locator(".copied")).to_have_text(market.get_client(None).public_key().hex())
    assert someone.page.locator("main script").count() == 0
    expect(someone.page.locator("main button")).to_have_text(["Copy"])  # an order needs a token


def test_a_stranger_signs_in_to_order(visitor: New, market: Market) -> None:
    name, _ = market.publish()
    someone = visitor()
    someone.go(f"listing/{name}")
    someone.page.get_by_role("link", name="Sign in to order").click()
    someone.type_token(market.create_token("buyer"))
    someone.heading(TITLE)
    expect(someone.page.get_by_role("button", name="Order epsilon")).to_have_count(3)


@in_both()
def test_order_approve_upgrade_and_verify(visitor: New, market: Market, tmp_path: Path) -> None:
    """An order is approved, its file verifies, and an upgrade shows the difference before it is sent."""
    name, token = market.publish()
    buyer, seller = visitor(market.create_token("buyer")), visitor(token)
    buyer.go(f"listing/{name}")
    decide(buyer, "Order epsilon 0.1 …", "Order for 10\u00a0EUR")
    buyer.heading("My orders")
    assert approve(seller, buyer) == "10 EUR"
    buyer.page.reload()
    digest = download_and_verify(buyer, market, tmp_path / "first", "0.1")

    buyer.go(f"listing/{name}")
    assert [read_row(buyer, each)[i] for each in ("0.1", "0.5", "1") for i in (1, -1)] == [
        "–", "You have this level", "50 EUR", "Upgrade …", "150 EUR", "Upgrade …",
    ]  # fmt: skip
    buyer.page.get_by_role("button", name="Upgrade epsilon 0.5 …").click()
    dialog = buyer.page.get_by_role("dialog")
    expect(dialog).to_contain_text("Epsilon 0.5 costs 60\u00a0EUR. You have epsilon 0.1, so you pay the difference")
    buyer.page.keyboard.press("Escape")
    assert len(market.get_client(market.tokens[-1]).orders()) == 1, "nothing is ordered before the answer"
    decide(buyer, "Upgrade epsilon 0.5 …", "Upgrade for 50\u00a0EUR")
    buyer.heading("My orders")
    assert approve(seller, buyer) == "50 EUR (upgrade)"
    buyer.go(f"listing/{name}")
    assert read_row(buyer, "0.1")[-1] == "You have a higher level"
    buyer.go("orders", "My orders")
    assert download_and_verify(buyer, market, tmp_path / "second", "0.5") != digest


def approve(seller: Visitor, buyer: Visitor) -> str:
    """Approve the order that waits, and return the amount that the seller sees."""
    seller.go("sell", "Sell")
    seller.page.get_by_role("link", name="1", exact=True).click()
    seller.heading("Orders")
    row = seller.page.locator("tbody tr").filter(has_text="requested")
    order = row.locator("th").inner_text()
    expect(buyer.row(order)).to_contain_text("requested")
    amount = read_row(seller, order)[3]
    decide(seller, f"Approve order {order} …", "Approve")
    expect(seller.row(order)).to_contain_text("approved")
    expect(seller.row(order).get_by_role("button")).to_have_count(0)
    return amount


def download_and_verify(buyer: Visitor, market: Market, folder: Path, epsilon: str) -> str:
    """Download file and receipt, verify both, and return the digest. A changed file does not verify."""
    folder.mkdir()
    row = buyer.page.locator("tbody tr").filter(has=buyer.page.get_by_role("cell", name=epsilon, exact=True))
    file = row.get_by_role("button", name="Download file")
    receipt = row.get_by_role("button", name="Download receipt")
    name = saved(buyer.page, file.click, folder / "level.parquet")
    assert saved(buyer.page, receipt.click, folder / "receipt.json") == f"{name}.receipt.json"
    signed = parse_receipt((folder / "receipt.json").read_text("utf-8"))
    verified = verify_receipt(signed, market.get_client(None).public_key())
    verify_file(verified, folder / "level.parquet")
    assert (verified.epsilon, verified.rows) == (epsilon, ROWS)
    table = pa_parquet.read_table(folder / "level.parquet")
    pa_parquet.write_table(table.slice(1), folder / "less.parquet")
    with pytest.raises(ReceiptError, match="not the one"):
        verify_file(verified, folder / "less.parquet")
    return verified.digest


def test_withdraw(visitor: New, market: Market) -> None:
    """Buyer and seller withdraw; while a request is open there is no second one; an old page says what happened."""
    name, token = market.publish()
    buyer, seller = visitor(market.create_token("buyer")), visitor(token)
    client = market.get_client(market.tokens[-1])
    order = client.order(name, "0.5")["id"]
    buyer.go(f"listing/{name}")
    expect(buyer.page.get_by_text("You requested epsilon 0.5.")).to_be_visible()
    expect(buyer.page.locator("main button")).to_have_text(["Copy"])
    buyer.page.get_by_role("link", name="Requested").click()
    seller.go("orders", "Orders")
    decide(buyer, f"Withdraw order {order} …", "Withdraw")
    expect(buyer.row(order)).to_contain_text("withdrawn")
    expect(buyer.row(order)).to_be_focused()
    expect(buyer.page.get_by_role("status")).to_have_text(f"Order {order} is withdrawn.")
    decide(seller, f"Approve order {order} …", "Approve")
    expect(seller.page.get_by_role("alert")).to_contain_text("is withdrawn, so it cannot change any more")
    second = client.order(name, "1")["id"]
    seller.page.reload()
    decide(seller, f"Withdraw order {second} …", "Withdraw")
    expect(seller.row(second)).to_contain_text("withdrawn")
    assert [each["state"] for each in client.orders()] == ["withdrawn", "withdrawn"]


def test_sales_and_sums(visitor: New, market: Market) -> None:
    name, token = market.publish(approval="automatic")
    for levels in (["0.1", "0.5"], ["0.1"]):
        client = market.get_client(market.create_token("buyer"))
        for place, epsilon in enumerate(levels):
            client.order(name, epsilon, upgrade=place > 0)
    someone = visitor(token)
    someone.go("sell", "Sell")
    assert read_row(someone, name) == [name, "heating", "0.1: 2 buyers, 0.5: 1 buyer", "0.5", "1", "0"]
    (vault,) = market.get_client(token).sales()["vaults"]
    assert read_row(someone, vault["key_fingerprint"]) == ["0.5", "1"]
    expect(someone.page.get_by_text("towards all buyers together, whatever they share")).to_be_visible()
    command = "relaxdp market publish NAME --levels 0.1=10,0.5=60,1=160 --currency EUR"
    expect(someone.page.locator(".copied")).to_contain_text(command)


def test_tokens(visitor: New, market: Market) -> None:
    """A wrong token gets a clear message, a token stays in its tab, and one that ended is forgotten."""
    someone = visitor()
    page = someone.page
    someone.go("sell", "Sign in")
    expect(page.get_by_role("alert")).to_have_text("Sign in to see this page.")
    someone.type_token("wrong")
    expect(page.get_by_role("alert")).to_have_text(UNKNOWN)
    assert page.evaluate("sessionStorage.length") == 0
    token = market.create_token("buyer")
    someone.type_token(token)
    expect(page.get_by_role("alert")).to_have_text("This page needs the token of a seller.")
    page.reload()
    expect(page.get_by_role("button", name="Sign out")).to_be_visible()
    kept = "() => [localStorage.length, document.cookie, location.href, document.documentElement.outerHTML].join()"
    assert token not in page.evaluate(kept)
    expect(someone.open().get_by_role("link", name="Sign in")).to_be_visible()
    name = market.get_client(token).member()["name"]
    market.tokens.append(market.operator.create_token(name, "buyer", renew=True))
    page.goto(f"{market.server.base}/market#orders")
    expect(page.get_by_role("alert")).to_have_text(UNKNOWN)
    assert page.evaluate("sessionStorage.length") == 0
    someone.type_token(market.tokens[-1])
    someone.heading("My orders")
    page.get_by_role("button", name="Sign out").click()
    expect(page.get_by_label("Token")).to_be_focused()


def test_a_late_answer_does_not_replace_a_newer_view(visitor: New, market: Market) -> None:
    name, _ = market.publish()
    someone = visitor()
    waiting: list[Route] = []
    someone.page.route("**/v1/market/listings", lambda route: waiting.append(route))  # noqa: PLW0108 (playwright marks it)
    someone.page.reload()
    expect(someone.page.get_by_text("One moment …")).to_be_visible()
    someone.go(f"listing/{name}")
    with someone.page.expect_response("**/v1/market/listings") as answered:
        waiting[0].continue_()
    answered.value.finished()
    someone.page.evaluate("() => new Promise((done) => setTimeout(done))")  # what the answer starts has run
    someone.heading(TITLE)


@pytest.mark.parametrize(("width", "scheme"), [(PHONE["width"], "dark"), (1280, "light")])
def test_readable_by_all(visitor: New, market: Market, scheme: str, width: int) -> None:
    name, token = market.publish(title=f"A rather long title that needs more than one line on a phone, {scheme}")
    title, buyer = str(market.get_client(None).listing(name)["title"]), market.create_token("buyer")
    first = market.get_client(buyer).order(name, "0.1")["id"]
    market.get_client(token).approve(first)
    market.get_client(buyer).order(name, "0.5", upgrade=True)
    options = {"viewport": {"width": width, "height": 800}, "color_scheme": scheme}
    views = {
        None: [("", "Market"), (f"listing/{name}", title), ("sign-in/", "Sign in")],
        buyer: [(f"listing/{name}", title), ("orders", "My orders")],
        token: [("orders", "Orders"), ("sell", "Sell")],
    }
    for who, places in views.items():
        someone = visitor(who, **options)
        for place, heading in places:
            someone.go(place, heading)
            assert (violations(someone.page), overflow(someone.page)) == ([], 0), (place, who)
    someone.go("orders", "Orders")
    someone.page.get_by_role("button", name="Approve").click()
    assert violations(someone.page) == []
