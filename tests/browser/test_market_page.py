"""The market's page in a real browser: looking around, signing in, buying, upgrading, downloading; readable by all."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Route, expect
from tests.browser.browsers import in_both, saved
from tests.browser.market_people import ROWS, VALUES, Market, New, Trader
from tests.browser.survey_person import overflow, violations
from tests.patience import PATIENCE
from tests.servers.collectors import STORES, running

from relaxdp.estimation.planning import find_margin

pytestmark = pytest.mark.long


def test_everybody_may_look(trader: New, market: Market) -> None:
    name = market.listing(epsilon="2").name
    someone = trader()
    page = someone.page
    card = page.get_by_role("article").filter(has=page.locator(f"a[href='#listing/{name}']"))
    clearest = 100 * find_margin(n=ROWS, planned_values=len(VALUES), epsilon=2)
    for words in ("data set", "on sale", f"{ROWS:,}", "10 to 200 credits", f"every share to ± {clearest:.2g} %"):
        expect(card).to_contain_text(words)
    card.get_by_role("link").press("Enter")
    someone.heading("How households heat")
    someone.fact("Collected by", "Energy office")
    someone.fact("When", "March to May 2026")
    someone.fact("Licence", "CC BY 4.0")
    someone.fact("Possible answers", "one of 3: gas, electricity, wood")
    expect(page.get_by_text("One answer for each household.")).to_be_visible()
    for epsilon, price in (("0.5", 50), ("1.3", 130), ("0.1", 10)):
        someone.choose(epsilon)
        someone.fact(f"Price of ε {epsilon}", f"{price} credits")
        width = find_margin(n=ROWS, planned_values=len(VALUES), epsilon=epsilon)
        someone.fact("What it tells", "almost nothing" if width == 0.5 else f"every share to ± {100 * width:.2g} %")
    below = page.get_by_role("link", name="Sign in to buy").bounding_box()
    slider = page.get_by_role("slider")
    slider.press("End")
    someone.fact("Price of ε 2", "200 credits")
    slider.press("ArrowLeft")
    someone.fact("Price of ε 1.9", "190 credits")
    expect(slider).to_have_attribute("aria-valuetext", "ε 1.9")
    expect(page.get_by_label("Level (ε)")).to_have_value("1.9")
    assert page.get_by_role("link", name="Sign in to buy").bounding_box() == below  # nothing jumps
    page.get_by_role("img").click(position={"x": 60, "y": 60})
    expect(slider).not_to_have_value("18")
    assert page.get_by_role("img").locator("circle.dot").count() == 2  # the chosen level on both curves


def test_what_a_level_would_tell_is_drawn_from_made_up_numbers(trader: New, market: Market) -> None:
    """The widths are those that everybody is told; the shares are the same for every listing of three values."""
    name = market.listing(epsilon="2").name
    someone = trader()
    someone.listing(name)
    someone.choose("1")
    preview = someone.page.locator(".preview")
    expect(preview.get_by_role("heading")).to_have_text("What ε 1 would look like")
    width = find_margin(n=ROWS, planned_values=len(VALUES), epsilon=1)
    ends = f"({100 * (0.5 - width):.1f} to {100 * (0.5 + width):.1f} %)"
    expect(preview.get_by_role("listitem").first).to_have_text(f"gas50.0 % {ends}")
    expect(preview).to_contain_text("made-up numbers")
    someone.choose("0.1")
    expect(preview).to_contain_text("At this level an answer could be anything")
    asked = [request.url for request in someone.requests if "/v1/market" in request.url]
    assert not any("told" in url or "data" in url for url in asked)


def test_no_level_is_proposed_that_nobody_should_want(trader: New, market: Market) -> None:
    """Few people sell at 2, so that it is cheaper than 1 and tells as little: the page says why, and proposes it."""
    pool = market.pool(6)
    market.join(pool, "2")
    levels = market.client(None).listing(pool)["levels"]
    better = {each["epsilon"] for each in levels if each["better"] is not None}
    assert "1" in better
    someone = trader()
    page = someone.page
    someone.listing(pool)
    assert page.get_by_label("Level (ε)").input_value() not in better
    expect(page.get_by_text("The curve dips at ε 1.25: 1 person")).to_be_visible()
    assert page.locator("circle.hollow").count() == 2 * len(better)
    someone.choose("1")
    expect(page.locator(".better")).to_contain_text("costs no more and tells no less.")


def test_only_levels_on_sale_are_offered(trader: New, market: Market) -> None:
    listed = market.listing()
    prices = {"points": [["0.1", 10], ["1", 100], ["1.5", 100], ["3", 300]]}
    market.client(listed.token).extend_prices(listed.name, prices, ["1.5", "3"])
    market.client(listed.token).deliver(listed.name, listed.file("1.5"))
    someone = trader()
    someone.listing(listed.name)
    options = someone.page.get_by_label("Level (ε)").locator("option")
    assert options.all_text_contents()[-3:] == ["1: 100 credits", "1.5: 100 credits", "3: not on sale yet"]
    assert [each.is_enabled() for each in options.all()[-2:]] == [True, False]
    someone.choose("1")
    someone.fact("Price of ε 1", "100 credits")
    someone.choose("1.5")
    someone.fact("Price of ε 1.5", "100 credits, same as ε 1")
    someone.page.get_by_text("The same as a table").click()
    rows = someone.page.locator(".levels tbody tr").all_text_contents()
    assert [row.rpartition("±")[0] for row in rows[-2:]] == ["1.5100same as ε 1", "3300not on sale yet"]
    someone.go("listing/nothing-here")
    expect(someone.page.get_by_role("alert")).to_have_text("there is no listing with this id. Nothing was done.")


def test_the_table_says_what_the_chart_shows(trader: New, market: Market) -> None:
    name = market.listing().name
    someone = trader()
    someone.listing(name)
    someone.page.get_by_text("The same as a table").click()
    levels = market.client(None).listing(name)["levels"]
    rows = someone.page.locator(".levels tbody tr").all_text_contents()
    assert len(rows) == len(levels) == 19
    for row, point in zip(rows, levels, strict=True):
        assert row.startswith(f"{point['epsilon']}{point['price']}")
    points = str(someone.page.locator("polyline").first.get_attribute("points")).split()
    heights = [float(point.split(",")[1]) for point in points]
    assert len(points) == len(levels)
    assert heights == sorted(heights, reverse=True)  # the price never falls
    assert heights[0] > heights[-1]


def test_the_token_stays_in_its_tab(trader: New, market: Market) -> None:
    name, token = market.account("buyer", 70)
    someone = trader()
    page = someone.page
    someone.go("sign-in")
    someone.type_token("wrong")
    expect(page.get_by_role("alert")).to_have_text("Nobody has this token.")
    someone.type_token("smørrebrød")
    expect(page.get_by_role("alert")).to_contain_text("This is not a token")
    assert page.evaluate("sessionStorage.length") == 0
    someone.enter(token)
    page.reload()
    expect(page.locator("#purse")).to_have_text(f"{name} · 70 credits")
    kept = "() => [localStorage.length, document.cookie, location.href, document.documentElement.outerHTML].join()"
    assert token not in page.evaluate(kept)
    assert page.evaluate("localStorage.length + document.cookie.length") == 0
    expect(someone.open().get_by_role("link", name="Sign in")).to_be_visible()
    someone.go("accounts")
    expect(page.get_by_role("alert")).to_have_text("This page is for the operator: sign in with such a token.")
    page.get_by_role("button", name="Sign out").click()
    assert page.evaluate("sessionStorage.length") == 0
    page.reload()
    expect(page.get_by_role("link", name="Sign in")).to_be_visible()


def test_a_token_that_ended_is_told_and_forgotten(trader: New, market: Market) -> None:
    name, token = market.account("buyer")
    someone = trader(token)
    someone.heading("Market")  # what it still asks for would be refused a moment earlier
    market.tokens.append(str(market.operator.renew_token(name)["token"]))
    someone.go("owned")
    expect(someone.page.get_by_role("alert")).to_have_text("Nobody has this token.")
    assert someone.page.evaluate("sessionStorage.length") == 0


@in_both(long=True)
def test_buy_upgrade_and_check(trader: New, market: Market, tmp_path: Path) -> None:
    name = market.listing(epsilon="2").name
    _, token = market.account("buyer", 200)
    someone = trader()
    page = someone.page
    someone.listing(name)
    page.get_by_role("link", name="Sign in to buy").click()
    someone.type_token(token)
    expect(page.get_by_text("Choose a level")).to_be_visible()  # back where the wish to buy was
    someone.choose("0.3")
    page.get_by_role("button", name="Buy …").click()
    expect(page.get_by_role("button", name="Cancel")).to_be_focused()
    expect(someone.dialog).to_contain_text("It costs 30 credits. You have 200 credits, and 170 credits would be left.")
    page.keyboard.press("Escape")
    expect(page.locator("#purse")).to_contain_text("200 credits")
    someone.step("Buy …", "Buy for 30 credits")
    expect(page.locator("#purse")).to_contain_text("170 credits")
    expect(page.get_by_role("status")).to_have_text("You own ε 0.3 of How households heat now.")
    expect(page.get_by_role("button", name="Upgrade …")).to_be_disabled()
    first = _estimate(someone, tmp_path / "first.parquet")
    expect(page.get_by_role("heading", name="What your ε 0.3 tells")).to_be_visible()
    _check_told(someone, first)

    someone.choose("1.5")
    expect(page.get_by_role("heading", name="What ε 1.5 would look like")).to_be_visible()
    expect(page.locator(".due")).to_have_text(
        "You own ε 0.3, so you pay the difference: 120 credits. You have 170 credits."
    )
    page.get_by_role("button", name="Upgrade …").click()
    expect(someone.dialog).to_contain_text(
        "ε 1.5 costs 150 credits. You paid for ε 0.3 already, so you pay the difference of 120 credits. "
        "You have 170 credits, and 50 credits would be left."
    )
    someone.dialog.get_by_role("button", name="Upgrade for 120 credits").click()
    expect(page.locator("#purse")).to_contain_text("50 credits")

    page.get_by_role("link", name="What I own").click()
    someone.fact("Level", "ε 1.5")
    someone.fact("Paid", "120 of 150 credits")
    expect(page.get_by_text("they learn no more than the best of them")).to_be_visible()
    page.get_by_text("Earlier purchases").click()
    expect(page.get_by_role("row", name=re.compile("ε 0.3, upgraded 30 "))).to_be_visible()
    page.get_by_text("Every credit that came and went").click()
    expect(page.get_by_role("row", name=re.compile("-120$"))).to_be_visible()
    second = _estimate(someone, tmp_path / "second.parquet")
    _check_told(someone, second)
    assert list(second["levels"]) == ["1.5"]
    assert _widest(second) < 0.4 * _widest(first)
    _check_receipt(someone, tmp_path)


def _estimate(someone: Trader, file: Path) -> dict[str, Any]:
    """Download the data, and let the analyst's tool read it."""
    saved(someone.page, someone.page.get_by_role("button", name="Download data").click, file)
    words = [sys.executable, "-m", "relaxdp", "estimate", str(file), "--json"]
    done = subprocess.run(words, capture_output=True, text=True, check=True, timeout=PATIENCE)
    (found,) = json.loads(done.stdout)["groups"]
    return dict(found)


def _check_told(someone: Trader, estimate: dict[str, Any]) -> None:
    """The page shows the numbers of the file that was bought; a middle only where there is something to know."""
    rows = someone.page.locator(".told").get_by_role("listitem")
    expect(rows).to_have_count(len(estimate["estimates"]))
    for place, row in enumerate(estimate["estimates"]):
        expect(rows.nth(place)).to_contain_text(f"{100 * row['low']:.1f} to {100 * row['high']:.1f} %")
        expect(rows.nth(place).locator("circle")).to_have_count(int(row["high"] - row["low"] <= 0.5))


def _widest(estimate: dict[str, Any]) -> float:
    return max(float(row["high"]) - float(row["low"]) for row in estimate["estimates"])


def _check_receipt(someone: Trader, folder: Path) -> None:
    """The receipt names the very bytes that were downloaded, the market knows it, and a changed one is refused."""
    page = someone.page
    saved(page, page.get_by_role("button", name="Save receipt", exact=True).click, folder / "receipt.json")
    signed = json.loads((folder / "receipt.json").read_text("utf-8"))
    assert signed["receipt"]["digest"] == sha256((folder / "second.parquet").read_bytes()).hexdigest()
    forged = {**signed, "receipt": {**signed["receipt"], "paid": 1}}
    (folder / "forged.json").write_text(json.dumps(forged))
    (folder / "other.json").write_text("{}")
    page.get_by_role("link", name="Listings").click()
    page.get_by_text("Check a receipt").click()
    expected = {
        "receipt.json": "This market signed it",
        "forged.json": "changed after it was signed",
        "other.json": "is no receipt",
    }
    for file, said in expected.items():
        page.get_by_label("Receipt (JSON)").set_input_files(folder / file)
        expect(page.locator(".receipt .notice")).to_contain_text(said)
        expect(page.locator(".receipt .notice.good")).to_have_count(1 if file == "receipt.json" else 0)


def test_too_few_credits(trader: New, market: Market) -> None:
    """The page says so before it asks; where the credits go meanwhile, the service's own sentence stands there."""
    name, other = market.listing().name, market.listing().name
    buyer, token = market.account("buyer", 40)
    someone = trader(token)
    page = someone.page
    someone.listing(name)
    someone.choose("0.5")
    page.get_by_role("button", name="Buy …").click()
    said = "This costs 50 credits and you have 40 credits: 10 credits too few. Nothing was bought."
    expect(page.get_by_role("alert")).to_have_text(said)
    someone.choose("0.3")
    page.get_by_role("button", name="Buy …").click()
    market.client(token).buy(other, "0.2")
    someone.dialog.get_by_role("button", name="Buy for 30 credits").click()
    expect(page.get_by_role("alert")).to_have_text(f"{buyer} has 20 credits, and 30 are due. Nothing was sold.")
    assert market.client(token).me()["balance"] == 20


def test_what_was_agreed_to_is_what_is_paid(trader: New, market: Market) -> None:
    """Somebody joins a pool while its price stands in the question: nothing is bought for more than that."""
    pool = market.pool(3)
    _, token = market.account("buyer", 100)
    someone = trader(token)
    someone.listing(pool)
    someone.choose("0.5")
    someone.fact("Price of ε 0.5", "6 credits, same as ε 0.25")
    someone.fact("From", "3 people")
    someone.page.get_by_role("button", name="Buy …").click()
    market.join(pool, "1")
    someone.dialog.get_by_role("button", name="Buy for 6 credits").click()
    expect(someone.page.get_by_role("alert")).to_contain_text("8 credits are due, which is more than the 6")
    assert market.client(token).me()["balance"] == 100


def test_a_page_that_was_left_does_not_come_back(trader: New, market: Market) -> None:
    """A slow answer for a page that nobody looks at any more is not shown over the one that was opened since."""
    someone = trader()
    waiting: list[Route] = []
    someone.page.route("**/v1/market/listings", lambda route: waiting.append(route))  # noqa: PLW0108 (playwright marks it)
    someone.page.reload()
    expect(someone.page.get_by_text("One moment …")).to_be_visible()
    someone.go("sign-in")
    expect(someone.page.get_by_label("Token")).to_be_focused()
    for each in waiting:
        each.continue_()
    someone.page.wait_for_timeout(300)
    expect(someone.page.get_by_label("Token")).to_be_focused()
    assert waiting


def test_a_title_with_a_script_is_text(trader: New, market: Market) -> None:
    nasty = "<script>document.title='no'</script><img src=x onerror=\"document.title='no'\">"
    values = ["gas", "electricity", "wood", "</p><svg onload=alert(1)>"]
    name = market.listing(title=nasty, values=values).name
    someone = trader()
    expect(someone.page.get_by_role("link", name=nasty)).to_be_visible()
    someone.listing(name)
    someone.heading(nasty)
    expect(someone.page.get_by_text("svg onload=alert(1)")).to_be_visible()
    assert someone.page.locator("main script, main [onerror], main [onload], main img").count() == 0
    assert someone.page.title() == f"{nasty} · relaxdp"


@pytest.mark.parametrize(("width", "scheme"), [(360, "dark"), (1280, "light")])
def test_readable_by_all(trader: New, market: Market, scheme: str, width: int) -> None:
    listed = market.listing(title="A rather long title of a listing that wants more than one line on a phone")
    _, token = market.account("buyer", 100)
    someone = trader(viewport={"width": width, "height": 800}, color_scheme=scheme)
    page = someone.page

    def look(words: str) -> None:
        expect(page.get_by_text(words).first).to_be_visible()
        assert violations(page) == []
        assert overflow(page) == 0

    page.get_by_text("Check a receipt").click()
    look("Receipt (JSON)")
    someone.go("sign-in")
    look("It stays in this tab")
    someone.enter(token)
    someone.listing(listed.name)
    page.get_by_text("The same as a table").click()
    someone.choose("0.4")
    look("You pay 40 credits.")
    page.get_by_role("button", name="Buy …").click()
    look("would be left")
    someone.dialog.get_by_role("button", name="Buy for").click()
    look("What you bought stays yours")
    someone.go("owned")
    page.get_by_text("Every credit that came and went").click()
    look("The newest first")
    for role, places in ((listed.token, ("sales", "sell")), (market.server.token, ("accounts",))):
        page.get_by_role("button", name="Sign out").click()
        someone.enter(role)
        for place in places:
            someone.go(place)
            expect(page.locator("main form").first).to_be_attached()
            for summary in page.locator("main summary").all():
                summary.click()
            look(
                {"sales": "All buyers together know", "sell": "Name in addresses", "accounts": "The books balance"}[
                    place
                ]
            )


@pytest.mark.parametrize("store", STORES)
def test_an_empty_market_and_a_closed_one(
    browser: Browser, tmp_path: Path, store: str, request: pytest.FixtureRequest
) -> None:
    """Without a key for the market the service collects, and the page says why it sells nothing."""
    url = f"sqlite:///{tmp_path / 'new.db'}" if store == "sqlite" else request.getfixturevalue("postgres_url")()
    with running(url, tmp_path / "server") as started:
        someone = Trader(browser, Market(started, tmp_path))
        if store == "sqlite":
            expect(someone.page.get_by_role("main")).to_contain_text("Nothing is on sale yet")
        else:
            expect(someone.page.get_by_role("alert")).to_contain_text("market")
        someone.leave()
