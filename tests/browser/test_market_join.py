"""Joining a pool on the market's page: a report leaves, the limit is raised, the price is changed; for everybody."""

from __future__ import annotations

import re
from typing import Any

import pytest
from playwright.sync_api import expect
from tests.browser.market_member import FORMULA, Member, open_pool
from tests.browser.market_people import Market, New
from tests.browser.survey_person import overflow, violations

pytestmark = pytest.mark.long

POINTS = {"points": [["0.5", 2], ["2", 8]]}
SLEEP = {"name": "numeric", "range": [0, 12]}
ENCODINGS: dict[str, tuple[dict[str, Any], str]] = {
    "categorical": ({"name": "categorical", "values": ["gas", "wood", "coal"]}, "wood"),
    "whole numbers": ({"name": "categorical", "values": [10, 20, 30]}, "20"),
    "unary-optimised": ({"name": "unary-optimised", "values": ["gas", "wood", "coal"]}, "wood"),
    "unary-symmetric": ({"name": "unary-symmetric", "values": ["gas", "wood", "coal"]}, "wood"),
    "local-hash": ({"name": "local-hash", "values": [f"v{n}" for n in range(30)], "options": {"buckets": 4}}, "v7"),
    "numeric": (SLEEP, "7.25"),
    "wave": ({"name": "wave", "range": [0, 12], "options": {"bins": 64, "window": 16}}, "7.25"),
}
"""Plain values are what all other tests join with."""


def test_join_raise_and_change_the_price(trader: New, market: Market) -> None:
    pool = open_pool(market)
    ann = Member(trader(), pool, market.account("seller")).arrive()
    expect(ann.page.get_by_text("Nothing was delivered yet, so nothing can be bought.")).to_be_attached()
    ann.limit.select_option("1")
    expect(ann.card).to_contain_text(
        "There are 2 possible answers, so a blind guess at yours is right 50 times in 100."
    )
    expect(ann.card.locator(".cost strong")).to_have_text("at most 74 times")
    expect(ann.card).to_contain_text("A sale at epsilon brings 1 + 2*epsilon credits for one report")
    ann.join("yes", "1", 3, agree=False)
    asked = ann.page.get_by_role("dialog")
    expect(asked).to_contain_text("Whoever sees it guesses right at most 74 times in 100, instead of 50.")
    expect(asked).to_contain_text("You are in every sale up to your limit that pays you at least 3 credits.")
    asked.get_by_role("button", name="Cancel").click()
    assert ann.posts == []
    assert ann.sales() == []
    ann.page.get_by_role("button", name="Join …").click()
    asked.get_by_role("button", name="Join at ε 1").click()
    ann.stands("1", 3)
    expect(ann.page.get_by_role("status")).to_have_text("You are in this pool at ε 1, least price 3 credits.")
    expect(ann.card).to_be_focused()
    expect(ann.card.locator(".own")).to_have_text("yes")
    ann.trader.fact("Size", "1 person")  # the rest of the page knows it, too
    market.client(market.account("buyer", 100)[1]).buy(pool, "1")

    ann.page.reload()
    ann.trader.fact("Income", "3 credits")
    ann.trader.fact("All buyers together know", "up to ε 1")
    expect(ann.card).to_contain_text("This page does not keep your answer")
    ann.page.get_by_text("Raise your limit").click()
    assert ann.limit.locator("option").all_text_contents()[:2] == ["Choose …", "1.25"]  # never less than it was
    ann.answer("yes")
    ann.page.get_by_role("button", name="Raise …").click()
    expect(ann.page.locator("#higher-wrong")).to_have_text("Choose your limit.")
    ann.raise_to("yes", "2.5")
    ann.stands("2.5", 3)
    ann.page.get_by_text("Change your least price").click()
    ann.page.get_by_label("Your least price").fill("a lot")
    ann.page.get_by_role("button", name="Change the least price").click()
    expect(ann.page.locator("#price-wrong")).to_have_text("A whole number of credits, 0 or more.")
    ann.page.get_by_label("Your least price").fill("5")
    ann.page.get_by_role("button", name="Change the least price").click()
    ann.stands("2.5", 5)
    assert ann.bodies == ann.expected("yes", ("1", 3), ("2.5", 3), ("2.5", 5))
    reports = [ann.bodies[0]["report"], ann.bodies[1]["report"]]
    sent = ann.card.locator(".sent li").all_text_contents()
    assert sent == [f"{report} at ε {level}" for report, level in zip(reports, ("1", "2.5"), strict=True)]
    expect(ann.card).to_contain_text("guesses right at most 93 times in 100, instead of 50")


@pytest.mark.parametrize("name", sorted(ENCODINGS))
def test_the_report_is_that_of_the_command_line(trader: New, market: Market, name: str) -> None:
    encoding, value = ENCODINGS[name]
    ann = Member(trader(), open_pool(market, encoding), market.account("seller")).arrive()
    ann.join(value, "0.75")
    ann.stands("0.75", 0)
    ann.raise_to(value, "3")
    ann.stands("3", 0)
    assert ann.bodies == ann.expected(value, ("0.75", 0), ("3", 0))
    assert ann.kept()["encoding"] == encoding["name"]
    assert [sent["status"] for sent in ann.kept()["sent"]] == ["sent", "sent"]
    expect(ann.card.locator(".why .scale circle")).to_have_count(2 if "range" in encoding else 0)


def test_what_is_left_out_is_said_at_its_field(trader: New, market: Market) -> None:
    ann = Member(trader(), open_pool(market, SLEEP), market.account("seller")).arrive()
    go_on = ann.page.get_by_role("button", name="Go on to the question")
    ann.page.get_by_label("Your least price").fill("-1")
    go_on.click()
    expect(ann.page.locator("#limit-wrong")).to_have_text("Choose your limit.")
    expect(ann.page.locator("#least-wrong")).to_have_text("A whole number of credits, 0 or more.")
    expect(ann.limit).to_be_focused()
    ann.limit.select_option("0.25")
    expect(ann.page.locator("#limit-wrong")).to_be_empty()  # what is right now is not called wrong
    expect(ann.page.locator("#least-wrong")).not_to_be_empty()
    ann.page.get_by_label("Your least price").fill("0")
    go_on.click()
    join = ann.page.get_by_role("button", name="Join …")
    for wrong in ("", "12.5"):
        ann.answer(wrong)
        join.click()
        expect(ann.page.locator("#answer-wrong")).to_have_text("A number from 0 to 12.")
    assert ann.posts == []


def test_the_limit_comes_before_the_question(trader: New, market: Market) -> None:
    """Who asks and why, then the limit, of which none is chosen; what is asked and can be answered only then."""
    said = {"source": "Transport authority", "description": "The answer decides when buses run."}
    pool = open_pool(market, question="Do you work after midnight?", suggested="1", details=said, title="Buses")
    market.join(pool, "0.5")
    ann = Member(trader(), pool, market.account("seller")).arrive()
    ann.trader.fact("Asked by", "Transport authority")
    expect(ann.page.get_by_role("main")).to_contain_text("The answer decides when buses run.")
    expect(ann.limit).to_have_value("")
    assert [text for text in ann.limit.locator("option").all_text_contents() if "suggested" in text] == [
        "1 (suggested by Transport authority)"
    ]
    veiled = ("Do you work after midnight?", "one of 2: no, yes")
    for words in veiled:
        assert words not in ann.page.get_by_role("main").inner_text()
    ann.limit.select_option("0.5")
    expect(ann.card.locator(".cost")).to_contain_text("1 person sells at this level now; together they tell")
    ann.choose("0.5")
    expect(ann.page.get_by_role("heading", name=veiled[0])).to_be_focused()
    ann.trader.fact("Possible answers", veiled[1])
    expect(ann.card).to_contain_text("You chose the limit ε 0.5 and the least price 0 credits.")
    ann.join("yes", "0.5")
    ann.stands("0.5", 0)
    order = ann.card.locator("h3").all_text_contents()
    assert order[:2] == ["Your answer, only here", "What was sent, blurred on purpose"]


def test_only_levels_of_the_pool_are_offered(trader: New, market: Market) -> None:
    ann = Member(trader(), open_pool(market, prices=POINTS), market.account("seller")).arrive()
    expect(ann.card).to_contain_text("A sale brings 2 credits at ε 0.5, 8 credits at ε 2 for one report")
    offered = ann.limit.locator("option").all_text_contents()
    assert offered[1:] == [level["epsilon"] for level in market.client(None).listing(ann.pool)["levels"]]
    assert (offered[1], offered[-1]) == ("0.5", "2")
    ann.join("yes", "2")
    ann.stands("2", 0)
    expect(ann.page.get_by_text("Raise your limit")).to_have_count(0)  # there is nothing above


def test_few_limits_are_buttons_and_none_is_pressed(trader: New, market: Market) -> None:
    pool = open_pool(market, levels=["0.5", "1", "2"], suggested="1")
    ann = Member(trader(), pool, market.account("seller")).arrive()
    buttons = ann.page.get_by_role("radio")
    expect(buttons).to_have_count(3)
    assert not any(each.is_checked() for each in buttons.all())
    expect(ann.card.locator(".option").nth(1)).to_contain_text(
        "suggested by who asksFrom your report, a guess at your answer is right at most 74 times in 100, instead of 50."
    )
    go_on = ann.page.get_by_role("button", name="Go on to the question")
    go_on.click()
    expect(ann.page.locator("#limit-wrong")).to_have_text("Choose your limit.")
    expect(buttons.first).to_be_focused()
    buttons.nth(2).check()
    expect(ann.page.locator("#limit-wrong")).to_be_empty()
    expect(ann.card.locator(".cost strong")).to_have_text("at most 89 times")
    assert violations(ann.page) == []
    go_on.click()
    ann.join("yes", "2")
    ann.stands("2", 0)
    assert ann.bodies == ann.expected("yes", ("2", 0))


def test_what_was_refused_has_left_all_the_same(trader: New, market: Market) -> None:
    ben = Member(trader(), open_pool(market), market.account("seller")).arrive()
    refusal = {"error": "market", "message": "Not now. Nothing was delivered.", "fields": {}}
    ben.page.route("**/reports", lambda route: route.fulfill(status=422, json=refusal), times=1)
    ben.join("yes", "2")
    ben.refused("Not now. Nothing was delivered. If you ask again, give the same")
    assert ben.sales() == []
    ben.page.reload()
    expect(ben.card).to_contain_text("You began to join this pool before. Give the same answer as then.")
    ben.join("no", "1")
    ben.refused("this is another answer than the one that you gave in this pool before")
    ben.join("yes", "1")
    ben.stands("1", 0)
    assert ben.bodies == ben.expected("yes", ("2", 0), ("1", 0))


def test_with_the_keyboard_alone(trader: New, market: Market) -> None:
    """From the list to a higher limit, without a mouse."""
    pool = open_pool(market)
    ann = Member(trader(), pool, market.account("seller")).arrive()
    page, press = ann.page, ann.page.keyboard.press
    page.goto(f"{market.server.base}/market#")
    expect(page.get_by_role("heading", level=1)).to_have_text("Market")
    page.locator(f"a[href='#listing/{pool}']").focus()
    press("Enter")
    expect(page.get_by_role("heading", level=1)).to_be_focused()
    for words in ("For programs", "What is promised to you"):
        press("Tab")
        expect(page.locator("summary", has_text=words)).to_be_focused()
    press("Tab")
    expect(ann.limit).to_be_focused()
    page.keyboard.type("0.5")
    press("Tab")
    expect(page.get_by_label("Your least price")).to_be_focused()
    page.keyboard.type("2")  # the 0 that stands there is selected by Tab
    press("Tab")
    expect(page.get_by_role("button", name="Go on to the question")).to_be_focused()
    press("Enter")
    expect(page.get_by_role("heading", name="Do you work at night?", level=3)).to_be_focused()
    press("Tab")
    page.keyboard.type("yes")
    press("Tab")
    expect(page.get_by_role("button", name="Join …")).to_be_focused()
    press("Enter")
    expect(page.get_by_role("button", name="Cancel")).to_be_focused()
    press("Tab")
    press("Enter")
    ann.stands("0.5", 2)
    expect(ann.card).to_be_focused()
    press("Tab")
    expect(page.locator("summary", has_text="Raise your limit")).to_be_focused()
    press("Enter")
    press("Tab")
    page.keyboard.type("1")
    press("Tab")
    page.keyboard.type("y")
    press("Tab")
    press("Enter")
    expect(page.get_by_role("dialog")).to_contain_text("Raise your limit from ε 0.5 to ε 1?")
    press("Escape")
    expect(page.get_by_role("button", name="Raise …")).to_be_focused()
    press("Enter")
    press("Tab")
    press("Enter")
    ann.stands("1", 2)
    assert ann.bodies == ann.expected("yes", ("0.5", 2), ("1", 2))


def test_sales_and_listings_lead_there(trader: New, market: Market) -> None:
    pool = open_pool(market)
    ann = Member(trader(), pool, market.account("seller")).arrive()
    page = ann.page
    page.get_by_role("link", name="My sales").click()
    expect(page.get_by_text("Nothing is listed yet")).to_be_visible()
    page.get_by_role("link", name="Look for a pool").click()
    page.locator(f"a[href='#listing/{pool}']").click()
    ann.join("no", "1")
    ann.stands("1", 0)
    page.get_by_role("link", name="My sales").click()
    page.get_by_role("link", name="Raise your limit or change your least price").click()
    expect(ann.card).to_contain_text("You are in this pool at ε 1")
    other = Member(trader(), open_pool(market), (ann.name, ann.token)).arrive()
    expect(other.card).not_to_contain_text("other pools")
    visitor = trader()
    visitor.listing(pool)
    expect(visitor.page.get_by_role("link", name="Sign in to buy or to join")).to_be_visible()
    expect(visitor.page.get_by_label("Your own report", exact=True)).to_have_count(0)


def test_a_closed_pool_takes_nobody(trader: New, market: Market) -> None:
    pool = open_pool(market)
    ann = Member(trader(), pool, market.account("seller")).arrive()
    ann.join("yes", "1")
    ann.stands("1", 0)
    ben = Member(trader(), pool, market.account("seller")).arrive()
    market.operator.close_any(pool)
    ben.join("yes", "1")
    ben.refused("this pool is closed. Nothing was sent.")
    assert ben.posts == []  # nothing left in vain
    ben.page.reload()
    expect(ben.page.locator(".badge.closed")).to_be_visible()
    expect(ben.card).to_have_count(0)
    ann.page.reload()
    expect(ann.card).to_contain_text("The pool is closed: nothing more is sold")
    expect(ann.card.get_by_role("button")).to_have_count(0)


def test_costs_of_several_pools_add_up(trader: New, market: Market) -> None:
    first, second = open_pool(market), open_pool(market)
    ann = Member(trader(), first, market.account("seller")).arrive()
    ann.join("yes", "1.25")
    ann.stands("1.25", 0)
    again = Member(ann.trader, second, (ann.name, ann.token)).arrive()
    expect(again.page.get_by_role("button", name="Go on to the question")).to_be_visible()
    again.limit.select_option("0.5")
    expect(again.card.locator(".cost")).to_contain_text(
        "From this browser you are also in another pool; costs add up, to ε 1.75 for all together."
    )
    again.limit.select_option("5")
    expect(again.card.locator(".cost")).to_contain_text("That is close to saying your answer openly.")


@pytest.mark.parametrize(("width", "scheme"), [(360, "dark"), (1280, "light")])
def test_readable_by_all(trader: New, market: Market, scheme: str, width: int) -> None:
    values = ["no", "yes, at least once in a week, and in most weeks of the year more than that", "now and then"]
    pool = open_pool(market, {"name": "unary-optimised", "values": values}, FORMULA)
    someone = trader(viewport={"width": width, "height": 800}, color_scheme=scheme)
    ann = Member(someone, pool, market.account("seller")).arrive()

    def look(words: str) -> None:
        expect(ann.page.get_by_text(re.compile(re.escape(words))).first).to_be_visible()
        assert violations(ann.page) == []
        assert overflow(ann.page) == 0

    look("Your answer becomes one report in this browser.")
    ann.page.get_by_role("button", name="Go on to the question").click()
    look("Choose your limit.")
    ann.choose("4")
    ann.page.get_by_role("button", name="Join …").click()
    look("Choose your answer.")
    ann.join("now and then", "4", agree=False)
    look("leaves this browser. Whoever sees it")
    ann.page.get_by_role("dialog").get_by_role("button", name="Join at").click()
    look("You are in this pool at ε 4")
    for summary in ann.card.locator("summary").all():
        summary.click()
    ann.limit.select_option("8")
    look("That is close to saying your answer openly.")
    ann.answer("no")
    ann.page.get_by_role("button", name="Raise …").click()
    ann.page.get_by_role("dialog").get_by_role("button", name="Raise to").click()
    look("this is another answer than the one that you gave")
