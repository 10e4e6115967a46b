"""The market's page for sellers and for the operator: income against loss, deliveries, accounts, credits, the books."""

from __future__ import annotations

import re
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from playwright.sync_api import Browser, expect
from tests.browser.browsers import in_both
from tests.browser.market_people import ROWS, Listed, Market, New, Trader

from relaxdp.sampling.keys import Key

pytestmark = pytest.mark.long


def _sell(market: Market, listed: Listed, *levels: str) -> None:
    """Let somebody buy the first level, and upgrade to the others."""
    client = market.client(market.account("buyer", 1000)[1])
    client.buy(listed.name, levels[0])
    for level in levels[1:]:
        client.upgrade(listed.name, level)


def test_income_against_loss(trader: New, market: Market) -> None:
    listed = market.listing()
    _sell(market, listed, "0.2")
    _sell(market, listed, "0.2", "0.5")
    someone = trader(listed.token)
    page = someone.page
    someone.heading("My sales")
    expect(page.locator("#purse")).to_have_text(f"{listed.seller} · 70 credits")
    known = {"All buyers together know": "up to ε 0.5", "This market holds": "up to ε 1", "Left of your budget": "ε 3"}
    for name, value in {"Income": "70 credits", "Buyers": "2", **known}.items():
        someone.fact(name, value)
    rows = [re.sub(r"\s+", " ", text) for text in page.locator("main table tbody tr").all_text_contents()]
    assert rows == ["0.22blurred from ε 1", "0.51drawn between ε 0.2 and 1", "1–delivered"]
    bar = page.get_by_role("img", name="Budget: sold up to ε 0.5, delivered up to ε 1, ε 3 left of a budget of ε 4")
    widths = [float(str(each.get_attribute("width"))) for each in bar.locator("rect").all()]
    assert widths == [100, 25, 12.5]
    chart = page.get_by_role("img", name=re.compile("each level brought: epsilon 0.2: .*, epsilon 0.5: "))
    assert chart.locator("circle").count() == 2
    page.get_by_text("Every credit that came and went").click()
    expect(page.get_by_role("row", name=re.compile(r"\+30$"))).to_be_visible()


def test_a_higher_level_is_delivered(trader: New, market: Market) -> None:
    listed = market.listing()
    someone = trader(listed.token)
    page = someone.page
    page.get_by_text("Deliver a higher level").click()
    page.get_by_label("Released file").set_input_files(listed.file("0.5"))
    expect(page.locator(".hint").get_by_text("It holds “heating”")).to_have_text(
        f"It holds “heating”, {ROWS:,} answers, released at ε 0.5."
    )
    page.get_by_role("button", name="Deliver").click()
    expect(page.get_by_role("alert")).to_contain_text("must lie above every delivered level: 1 was delivered")
    page.get_by_label("Released file").set_input_files(listed.file("2"))
    page.get_by_role("button", name="Deliver").click()
    someone.fact("This market holds", "up to ε 2")
    someone.fact("Left of your budget", "ε 2")
    expect(page.get_by_role("status")).to_have_text("How households heat: delivered up to ε 2.")
    page.get_by_label("Released file").set_input_files(market.file(Key.generate(), listed.name, "3"))
    page.get_by_role("button", name="Deliver").click()
    expect(page.get_by_role("alert")).to_contain_text("another release, attribute or key")


def test_what_may_hold_answers_does_not_leave(trader: New, market: Market, tmp_path: Path) -> None:
    """A file that was not released, or that has more in it than is for sale, is refused before anything is sent."""
    listed = market.listing()
    someone = trader(listed.token)
    page = someone.page
    page.get_by_text("Deliver a higher level").click()
    truths = tmp_path / "truths.parquet"
    pq.write_table(market.truths(), truths)
    ages = [number % 90 for number in range(ROWS)]
    kept = market.file(listed.key, listed.name, "2", table=market.truths(age=ages), passthrough=["age"])
    damaged = tmp_path / "damaged.parquet"
    damaged.write_bytes(listed.file("2").read_bytes()[:-9] + b"\xffxxxxPAR1")
    for file, said in ((truths, "it could hold answers"), (kept, "sent too: age"), (damaged, "no Parquet file")):
        page.get_by_label("Released file").set_input_files(file)
        expect(page.locator(".wrong").get_by_text(said)).to_be_visible()
        page.get_by_role("button", name="Deliver").click()
        expect(page.get_by_role("alert")).to_contain_text(said)
    assert not any("deliveries" in request.url for request in someone.requests)


@in_both(long=True)
def test_a_release_is_put_on_sale(trader: New, market: Market) -> None:
    seller, token = market.account("seller")
    someone = trader(token)
    page = someone.page
    expect(page.get_by_text("Nothing is listed yet")).to_be_visible()
    page.get_by_role("link", name="Sell a release").click()
    someone.heading("Sell a release")
    sell, key = page.get_by_role("button", name="Put it on sale"), Key.generate()
    sell.click()
    expect(page.locator("#title-wrong")).to_have_text("A listing needs a title.")
    page.get_by_label("Title").fill("How we heat")
    expect(page.locator("#title-wrong")).to_be_empty()  # at once: it is right now
    page.get_by_label("Description").fill("One answer for each of us.")
    page.get_by_label("Licence").fill("CC0")
    sell.click()
    expect(page.locator("#file-new-wrong")).to_have_text("Choose the released Parquet file.")
    expect(page.get_by_label("Released file")).to_be_focused()
    page.get_by_label("Released file").set_input_files(market.file(key, "we", "2"))
    page.get_by_label("Prices").fill("0.1 50\n2 10")
    sell.click()
    expect(page.get_by_role("alert")).to_contain_text("fall")
    page.get_by_label("Prices").fill("0.1 10\n1 fifty")
    expect(page.get_by_role("alert")).to_have_count(0)  # what was refused was something else
    sell.click()
    expect(page.locator("#prices-wrong")).to_contain_text("“1 fifty” is not a level and a price")
    assert market.client(token).sales()["listings"] == []
    page.get_by_label("Prices").fill("0.1 10\n1 100")
    page.get_by_label("Budget").fill("3")
    sell.click()  # the prices do not reach the file's level, so that it stays a draft
    expect(page.get_by_role("alert")).to_contain_text("The listing is a draft")
    page.get_by_label("Released file").set_input_files(market.file(key, "we", "1"))
    sell.click()
    someone.heading("My sales")
    someone.fact("Left of your budget", "ε 2")
    (made,) = market.client(token).sales()["listings"]
    assert (made["listing"]["state"], made["listing"]["seller"]) == ("open", seller)
    assert made["listing"]["prices"] == {"points": [["0.1", 10], ["1", 100]]}
    assert made["listing"]["details"] == {"description": "One answer for each of us.", "licence": "CC0"}

    page.get_by_text("Prices, budget, end of the sale").click()
    page.get_by_label("Prices").fill("0.1 10\n1 90\n2 200")
    page.get_by_role("button", name="Extend the prices").click()
    expect(page.get_by_role("alert")).to_be_visible()
    page.get_by_label("Prices").fill("0.1 10\n1 100\n2 200")
    page.get_by_role("button", name="Extend the prices").click()
    expect(page.get_by_text("Done.")).to_be_visible()
    page.get_by_label("Budget (ε)").fill("4")
    page.get_by_role("button", name="Raise the budget").click()
    someone.fact("Left of your budget", "ε 3")
    someone.step("Sell no more …", "Sell no more")
    expect(page.locator(".badge.closed")).to_be_visible()
    assert market.client(token).sales()["listings"][0]["listing"]["state"] == "closed"


def test_a_member_of_a_pool_sees_what_was_earned(trader: New, market: Market) -> None:
    pool = market.pool(2)
    member = market.join(pool, "2")
    market.client(market.account("buyer", 100)[1]).buy(pool, "0.5")
    someone = trader(member)
    someone.fact("Income", "2 credits")
    someone.fact("All buyers together know", "up to ε 0.5")
    someone.fact("This market holds", "up to ε 2")
    someone.fact("Least price", "0 credits for your report")
    expect(someone.page.get_by_label("Released file")).to_have_count(0)  # a pool is joined with an answer, not here


def test_the_operator_keeps_the_accounts(trader: New, market: Market) -> None:
    someone = trader(market.server.token)
    page = someone.page
    someone.heading("Accounts")
    before = market.operator.books()
    make = page.get_by_role("button", name="Make the account")
    page.get_by_label("Name").fill("clara")
    make.click()
    first = _shown_token(someone, "clara")
    page.get_by_label("Name").fill("clara")
    make.click()
    expect(page.get_by_role("alert")).to_have_text("there is an account 'clara' already. Nothing was created.")
    page.get_by_label("Account", exact=True).fill("clara")
    page.get_by_label("Credits").fill("1.5")
    page.get_by_role("button", name="Give credits").click()
    expect(page.locator("#amount-wrong")).to_have_text("A whole number, from 1 on.")
    expect(page.locator("#reason-wrong")).to_have_text("Say why, in a few words.")
    page.get_by_label("Credits").fill("250")
    page.get_by_label("Reason").fill("welcome")
    page.get_by_role("button", name="Give credits").click()
    expect(page.get_by_role("status")).to_have_text("clara has 250 credits now.")
    numbers = f"{before['transactions'] + 1} transactions, {before['credits'] + 250:,} credits in circulation."
    expect(page.locator("main .notice.good").first).to_have_text(f"The books balance: {numbers}")
    page.get_by_label("Find").fill("clar")
    expect(page.locator(".people tbody tr")).to_have_text([re.compile(r"clara\s*buyer\s*250")])
    assert market.client(first).statement()[0]["reason"] == "welcome"

    page.get_by_role("button", name="New token for clara").click()
    someone.dialog.get_by_role("button", name="Make a new token").click()
    expect(page.locator(".copied").last).not_to_have_text(first)
    second = page.locator(".copied").last.inner_text()
    market.tokens.append(second)
    page.reload()
    expect(page.get_by_role("heading", name="All accounts")).to_be_visible()
    assert second not in page.content()  # it was shown once
    assert market.client(second).me() == {"name": "clara", "role": "buyer", "balance": 250}
    other = trader()
    other.go("sign-in")
    other.type_token(first)
    expect(other.page.get_by_role("alert")).to_contain_text("Nobody has this token.")


def _shown_token(someone: Trader, name: str) -> str:
    shown = someone.page.locator(".copy").filter(has_text=f"Token of {name}").locator(".copied")
    expect(shown).to_be_visible()
    token = shown.inner_text()
    assert shown.evaluate("each => each.scrollWidth <= each.clientWidth")  # nothing of it is clipped
    someone.page.get_by_role("button", name=f"Copy: Token of {name}").click()
    expect(someone.page.get_by_role("status")).to_contain_text(f"Token of {name} (buyer): ")
    someone.market.tokens.append(token)
    return token


def test_the_dashboard_leads_to_the_market(browser: Browser, market: Market) -> None:
    someone = Trader(browser, market)
    someone.page.goto(f"{market.server.base}/")
    someone.page.get_by_label("Operator’s token").fill(market.server.token)
    someone.page.keyboard.press("Enter")
    someone.page.get_by_role("link", name="Market").click()
    someone.heading("Market")
    someone.leave()
