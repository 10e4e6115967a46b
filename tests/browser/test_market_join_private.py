"""What joining a pool keeps to the browser: answer and key, over reloads, tabs, accounts and lost connections."""

from __future__ import annotations

import base64
import json
import re
from typing import Any

import pytest
from playwright.sync_api import ConsoleMessage, Route, expect
from tests.browser.market_member import CLEAR, READ, Member, open_pool
from tests.browser.market_people import Market, New

pytestmark = pytest.mark.long

OTHER = "this is another answer than the one that you gave in this pool before: that it changed would show."
ELSEWHERE = "The key of your report is not in this browser."
# Of a row of bits no label travels, so that every byte of one that did would be seen.
HIDDEN = {"name": "unary-optimised", "values": ["ultramarine", "vermilion", "chartreuse"]}
EXACT = {"name": "numeric", "range": [0, 12]}


@pytest.mark.parametrize(("encoding", "answer"), [(HIDDEN, "vermilion"), (EXACT, "7.40625")])
def test_only_the_report_leaves(trader: New, market: Market, encoding: dict[str, Any], answer: str) -> None:
    """Neither in an address nor in a header nor in a body is there anything of the answer or of the key."""
    someone, said = trader(), []
    someone.context.on("console", lambda message: said.append(message))  # noqa: PLW0108 (playwright marks it)
    ann = Member(someone, open_pool(market, encoding), market.account("seller")).arrive()
    ann.join(answer, "0.5")
    ann.stands("0.5", 0)
    ann.raise_to(answer, "2")
    ann.stands("2", 0)
    for body in ann.bodies:
        assert set(body) == {"level", "report", "minimum"}
        assert set(body["level"]) == {"epsilon", "threshold"}
    assert ann.bodies == ann.expected(answer, ("0.5", 0), ("2", 0))
    record = ann.kept()
    raw = bytes.fromhex(record["key"])
    secrets = [answer, record["key"], base64.b64encode(raw).decode().rstrip("="), record["answer"]]
    requests = [[each.url, json.dumps(each.all_headers()), each.post_data or ""] for each in someone.requests]
    assert len(requests) > 20
    left = "\n".join(text for parts in requests for text in parts)
    told = "\n".join([*_texts(said), ann.page.url, ann.page.evaluate("JSON.stringify({...localStorage})")])
    for secret in secrets:
        assert secret not in left
        assert secret not in told
    assert answer not in json.dumps(record)  # kept is a tag, which tells nothing without the key
    files = [file.read_bytes() for file in market.folder.rglob("*") if file.is_file()]
    assert any(b"SQLite format 3" in content[:16] for content in files)
    assert not any(raw in content or record["key"].encode() in content for content in files)


def _texts(said: list[ConsoleMessage]) -> list[str]:
    return [message.text for message in said]


def test_an_answer_stays_what_it_was(trader: New, market: Market) -> None:
    ann = Member(trader(), open_pool(market, HIDDEN), market.account("seller")).arrive()
    ann.join("vermilion", "1", 2)
    ann.stands("1", 2)
    before = ann.kept()
    ann.raise_to("chartreuse", "2")
    ann.refused(f"{OTHER} Nothing was sent.")
    expect(ann.card.get_by_role("alert")).not_to_contain_text(re.compile("chartreuse|vermilion"))
    assert len(ann.posts) == 1
    assert ann.kept() == before
    ann.raise_to("vermilion", "2")
    ann.stands("2", 2)


def test_values_stay_what_they_were(trader: New, market: Market) -> None:
    """A service that shows the values in another order gets no report of the answer under its new number."""
    ann = Member(trader(), open_pool(market, HIDDEN), market.account("seller")).arrive()

    def turned(route: Route) -> None:
        answer = route.fetch()
        listing = answer.json()
        listing["encoding"]["values"].reverse()
        route.fulfill(response=answer, json=listing)

    place = f"**/v1/market/listings/{ann.pool}"
    ann.page.route(place, turned)
    ann.join("vermilion", "1")
    ann.refused("the values of this pool (or their order) are not those that were shown. Nothing was sent.")
    ann.page.unroute(place)
    ann.join("vermilion", "1")
    ann.stands("1", 0)
    ann.page.route(place, turned)
    ann.page.reload()
    ann.raise_to("vermilion", "2")
    ann.refused("the values of this pool (or their order) are not those that you answered. Nothing was sent.")
    assert len(ann.posts) == 1


def test_reloads_and_tabs_have_one_key(trader: New, market: Market) -> None:
    ann = Member(trader(), open_pool(market), market.account("seller")).arrive()
    beside = Member(ann.trader, ann.pool, (ann.name, ann.token), ann.trader.open()).arrive()
    other = Member(ann.trader, ann.pool, (ann.name, ann.token), ann.trader.open()).arrive()
    for each in (beside, other):  # both have the form of somebody who is no member
        expect(each.page.get_by_role("button", name="Go on to the question")).to_be_visible()
    ann.join("yes", "0.5", 1)
    ann.stands("0.5", 1)
    key = ann.kept()["key"]
    other.join("no", "1")
    other.refused(OTHER)
    beside.join("yes", "1")
    beside.stands("1", 0)
    ann.page.reload()
    expect(ann.card).to_contain_text("You are in this pool at ε 1, least price 0 credits.")
    ann.raise_to("yes", "2")
    ann.stands("2", 0)
    assert ann.kept()["key"] == key
    assert ann.bodies == ann.expected("yes", ("0.5", 1), ("1", 0), ("2", 0))


def test_what_left_was_written_down(trader: New, market: Market) -> None:
    """The connection breaks off as the report leaves: the same one is sent later, and no other answer's."""
    ann = Member(trader(), open_pool(market), market.account("seller")).arrive()
    ann.page.route("**/reports", lambda route: route.abort())
    ann.join("yes", "1")
    ann.refused("The service does not answer.")
    ann.refused("If you ask again, give the same answer.")
    (sent,) = ann.kept()["sent"]
    assert (sent["epsilon"], sent["status"]) == ("1", "written")
    ann.page.unroute("**/reports")
    ann.page.reload()
    expect(ann.card).to_contain_text(f"{sent['report']} at ε 1, not delivered")
    ann.join("no", "1")
    ann.refused(OTHER)
    ann.join("yes", "1")
    ann.stands("1", 0)
    first, second = ann.bodies
    assert first == second
    assert [each["status"] for each in ann.kept()["sent"]] == ["sent"]


def test_accounts_in_one_browser_are_apart(trader: New, market: Market) -> None:
    pool = open_pool(market)
    ann = Member(trader(), pool, market.account("seller")).arrive()
    ann.join("yes", "1")
    ann.stands("1", 0)
    ann.page.get_by_role("button", name="Sign out").click()
    expect(ann.page.get_by_role("link", name="Sign in")).to_be_visible()
    ben = Member(ann.trader, pool, market.account("seller")).arrive()
    expect(ben.card).not_to_contain_text("You began to join")
    ben.join("no", "2")
    ben.stands("2", 0)
    assert ann.kept()["key"] != ben.kept()["key"]
    assert ben.bodies == ann.expected("yes", ("1", 0)) + ben.expected("no", ("2", 0))


def test_who_joined_elsewhere_gets_no_second_key(trader: New, market: Market) -> None:
    pool = open_pool(market)
    somewhere = market.join(pool, "1")
    name = str(market.client(somewhere).me()["name"])
    ann = Member(trader(), pool, (name, somewhere)).arrive()
    expect(ann.card).to_contain_text("You are in this pool at ε 1, least price 0 credits.")
    expect(ann.card).to_contain_text(ELSEWHERE)
    expect(ann.card.get_by_role("button")).to_have_count(0)
    ben = Member(trader(), pool, market.account("seller")).arrive()
    late = Member(trader(), pool, (ben.name, ben.token)).arrive()  # another browser, with the form still open
    ben.join("yes", "1")
    ben.stands("1", 0)
    late.join("yes", "2")
    late.refused(ELSEWHERE)
    assert late.posts == []
    assert late.page.evaluate(READ, late.place) is None


def test_lost_keys_are_missed(trader: New, market: Market) -> None:
    """Whoever was in the pool stays in it as they are; for other pools somebody who was told may begin anew."""
    ann = Member(trader(), open_pool(market), market.account("seller")).arrive()
    ann.join("yes", "1")
    ann.stands("1", 0)
    ann.page.evaluate(CLEAR, ann.place)
    ann.page.reload()
    ann.refused("what this browser had kept is gone (its site data was cleared)")
    expect(ann.card).to_contain_text("You are in this pool at ε 1")
    expect(ann.card.get_by_role("button")).to_have_count(0)
    again = Member(ann.trader, open_pool(market), (ann.name, ann.token)).arrive()
    again.refused("what this browser had kept is gone")
    begin = again.card.get_by_role("button", name="Begin anew …")
    begin.click()
    again.page.get_by_role("dialog").get_by_role("button", name="Cancel").click()
    expect(again.limit).to_have_count(0)
    begin.click()
    again.page.get_by_role("dialog").get_by_role("button", name="Begin anew").click()
    expect(again.limit).to_be_focused()
    again.join("no", "1")
    again.stands("1", 0)
    again.page.goto(f"{market.server.base}/market#listing/{ann.pool}")
    expect(ann.card).to_contain_text(ELSEWHERE)


@pytest.mark.parametrize("lacking", ["indexedDB", "crypto"])
def test_a_browser_that_cannot_is_asked_nothing(trader: New, market: Market, lacking: str) -> None:
    someone = trader()
    someone.page.add_init_script(f"Object.defineProperty(window, '{lacking}', {{ value: undefined }})")
    someone.page.reload()
    ann = Member(someone, open_pool(market), market.account("seller")).arrive()
    expect(ann.card).to_contain_text("IndexedDB is missing" if lacking == "indexedDB" else "has no WebCrypto")
    expect(ann.card).to_contain_text("Until then nothing is asked, and nothing is sent.")
    expect(ann.card.get_by_role("button")).to_have_count(0)


def test_a_browser_that_keeps_nothing_sends_nothing(trader: New, market: Market) -> None:
    someone = trader()
    someone.page.add_init_script("indexedDB.open = () => { throw new Error('blocked'); }")
    someone.page.reload()
    ann = Member(someone, open_pool(market), market.account("seller")).arrive()
    ann.refused("this browser keeps nothing for this page (a private window, or site data is blocked).")
    expect(ann.card.get_by_role("button")).to_have_count(0)
    assert ann.posts == []
