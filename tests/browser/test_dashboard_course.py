"""What an operator does besides looking: plans, copies and publishes campaigns, and reads their charts."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, expect
from tests.browser.dashboard_operator import PHONE, VALUES, Operator, commute, report_all
from tests.browser.survey_person import overflow, violations
from tests.servers.collectors import Running, running

from relaxdp.estimation.planning import find_margin

pytestmark = pytest.mark.long

New = Callable[..., Operator]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    folder = tmp_path_factory.mktemp("course")
    with running(f"sqlite:///{folder / 'collector.db'}", folder) as started:
        yield started


@pytest.fixture
def operator(browser: Browser, server: Running) -> Iterator[New]:
    made: list[Operator] = []

    def make(**options: Any) -> Operator:
        made.append(Operator(browser, server, **options))
        made[-1].sign_in()
        return made[-1]

    yield make
    for each in made:
        each.leave()


def test_charts_say_their_values_to_pointer_and_keys(operator: New, server: Running) -> None:
    name = commute(server)
    report_all(server, name)
    server.ask("POST", f"/v1/campaigns/{name}/relax", operator=True)
    report_all(server, name)
    someone = operator(viewport=PHONE)
    someone.campaign(name)
    page = someone.page
    chart = page.locator(".panels li").first
    expect(chart.locator(".told")).to_contain_text("Now ")
    chart.get_by_role("img").focus()
    expect(chart.locator(".told")).to_have_text(re.compile(r"ε 1: [0-9.]+ % \([0-9.]+ to [0-9.]+ %\)"))
    page.keyboard.press("ArrowLeft")
    expect(chart.locator(".told")).to_contain_text("ε 0.5: ")
    page.locator("h1").focus()
    expect(chart.locator(".told")).to_contain_text("Now ")
    chart.get_by_role("img").hover()
    expect(chart.locator(".told")).to_contain_text("ε ")
    dot = chart.locator("circle").first.bounding_box()
    assert dot is not None
    assert dot["width"] >= 8
    tops = [box.bounding_box() for box in page.locator(".panels svg").all()]
    assert tops[0] is not None
    assert tops[1] is not None
    assert tops[0]["y"] == pytest.approx(tops[1]["y"], abs=0.5)
    assert violations(page) == []
    assert overflow(page) == 0


def test_the_forecast_is_the_plan_of_the_command_line(operator: New, server: Running) -> None:
    page = operator().page
    page.goto(f"{server.base}/#new")
    page.get_by_label("Possible answers").fill("a\nb\nc\nd")
    page.get_by_label("Levels").fill("0.5, 1")
    advice = page.get_by_role("complementary")
    width = find_margin(n=10_000, planned_values=4, epsilon="1")
    expect(advice.locator("tbody tr").last).to_contain_text(f"± {100 * width:.2g} %")


def test_a_campaign_is_made_like_another_and_published(operator: New, server: Running) -> None:
    known = {"asker": "The town hall", "about": "Traffic", "colour": "#aa3300", "contact": "ann@example.org"}
    name = commute(server, target={"half_width": 0.05}, devices=500, suggested="1", **known)
    someone = operator()
    someone.campaign(name)
    page = someone.page
    page.get_by_role("link", name="Use it for a new campaign").click()
    someone.heading("New campaign, like another")
    expect(page.get_by_label("Possible answers")).to_have_value("\n".join(VALUES))
    page.get_by_text("Preview: what people will see").click()
    expect(page.locator(".screen")).to_contain_text("The town hall asks")
    page.get_by_label("Publish the result once").check()
    page.get_by_label("Fewest devices at a level").fill("1")
    page.get_by_role("button", name="Create the campaign").click()
    expect(page.locator("#least-wrong")).to_have_text("A whole number, from 2 on.")
    page.get_by_label("Fewest devices at a level").fill("2000")
    expect(page.locator("#least-wrong")).to_have_text("")  # what is right is not called wrong any more
    page.get_by_label("Show the published result").check()
    page.get_by_role("button", name="Create the campaign").click()
    someone.heading("How did you get to work?")
    expect(page).not_to_have_url(re.compile(name))
    expect(page.get_by_text("Published once, when the answer is precise enough.")).to_be_visible()
    expect(page.get_by_role("button", name="Relax")).to_be_hidden()
    new = server.ask("GET", f"/v1/campaigns/{page.url.rpartition('/')[2]}/status", operator=True).json
    old = server.ask("GET", f"/v1/campaigns/{name}/status", operator=True).json
    same = ("question", "encoding", "levels", "target", "automatic_devices", "suggested", *known)
    assert [new[each] for each in same] == [old[each] for each in same]
    assert (new["publish"]["least"], new["shows_results"]) == (2000, True)


def test_one_signs_in_once_for_dashboard_and_market(operator: New, server: Running) -> None:
    someone = operator()
    page = someone.page
    page.get_by_role("link", name="Market").click()
    expect(page.get_by_role("button", name="Sign out")).to_be_visible()
    made = server.ask("POST", "/v1/market/tokens", {"name": "ann", "role": "buyer"}, operator=True).json
    page.evaluate("token => sessionStorage.setItem('relaxdp token', token)", made["token"])
    page.goto(f"{server.base}/")
    expect(page.get_by_text("You are signed in to the market as ann.")).to_be_visible()
    page.goto(f"{server.base}/market")
    expect(page.get_by_role("button", name="Sign out")).to_be_visible()


def test_somebody_who_looks_again_is_live_at_once(operator: New, server: Running) -> None:
    """The page waits longer and longer for a service that is away, and not any more when there is a reason to ask."""
    someone = operator()
    page = someone.page
    page.route("**/status", lambda route: route.abort())
    name = commute(server)
    page.goto(f"{server.base}/#campaign/{name}")
    someone.heading("That did not work")
    page.unroute("**/status")
    page.get_by_role("button", name="Try again").click()
    expect(page.locator(".live")).to_have_text("live")
    someone.context.set_offline(True)
    expect(page.locator(".live")).to_have_text("connection lost, trying again")
    someone.context.set_offline(False)
    expect(page.locator(".live")).to_have_text("live")


def test_what_has_not_changed_is_not_sent_again(operator: New, server: Running) -> None:
    someone, name = operator(), commute(server)
    page, found = someone.page, list[int]()
    page.on("response", lambda answer: found.append(answer.status) if answer.url.endswith("/status") else None)
    someone.campaign(name)
    assert found.count(200) == 2  # the page itself, and its first look
    with page.expect_response(lambda answer: answer.url.endswith("/status") and answer.status == 304):
        someone.look()
    report_all(server, name, devices=10)
    someone.look()
    someone.fact("Devices", "10")
    with page.expect_response(lambda answer: answer.url.endswith("/status") and answer.status == 304):
        someone.look()
    assert found.count(200) == 3
