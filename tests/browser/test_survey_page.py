"""The survey page as people meet it: hostile texts, closed campaigns, small and dark screens, keyboards, frames."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, Route, expect
from tests.browser.browsers import ELSEWHERE, SITE, STRANGER
from tests.browser.survey_person import (
    Collector,
    Person,
    collector,
    overflow,
    violations,
)

pytestmark = pytest.mark.long

MakePerson = Callable[..., Person]
SCRIPT = "<script>window.harmed = true</script><img src=x onerror='window.harmed = true'>Really?\u202e"
LOOKS = [(360, "dark"), (1280, "light")]


def check(page: Page) -> None:
    """Everybody can read what is shown now, and nothing of it lies beside the window."""
    assert violations(page) == []
    assert overflow(page) <= 0


def test_a_question_with_script_is_text(service: Collector, person: MakePerson) -> None:
    values = ["<b>bold</b>", "<script>window.harmed = true</script>"]
    someone = person(service.create(question=SCRIPT, encoding={"name": "categorical", "values": values}))
    someone.limit()
    assert someone.page.locator("#question-text").text_content() == SCRIPT
    assert someone.page.locator("#question img, #question script, #question b").count() == 0
    someone.choose("<b>bold</b>")
    someone.received(1)
    assert someone.page.locator("#status-question").text_content() == SCRIPT
    assert someone.page.evaluate("window.harmed") is None


def test_no_inline_script_runs(person: MakePerson) -> None:
    someone = person()
    someone.view("limit")
    violated = someone.page.evaluate(
        """() => new Promise((resolve) => {
          document.addEventListener("securitypolicyviolation", (event) => resolve(event.effectiveDirective));
          const script = document.createElement("script");
          script.textContent = "window.harmed = true";
          document.body.append(script);
        })"""
    )
    assert violated.startswith("script-src")
    assert someone.page.evaluate("window.harmed") is None


@pytest.mark.parametrize(("width", "scheme"), LOOKS)
def test_readable_everywhere(service: Collector, person: MakePerson, width: int, scheme: str) -> None:
    """Every view, on a phone and on a desk, light and dark: no serious finding of axe, nothing beside the window."""
    question = "How content are you with the Donaudampfschifffahrtsgesellschaftskapitänsversicherungspolicenverwaltung?"
    campaign = service.create(question=question, encoding={"name": "unary-optimised", "values": list(range(300))})
    someone = person(campaign, viewport={"width": width, "height": 740}, color_scheme=scheme, reduced_motion="reduce")
    someone.view("limit")
    someone.page.locator("#limit-choices input").nth(1).check()
    for summary in someone.page.locator("#limit summary").all():
        summary.click()
    check(someone.page)
    someone.page.reload()
    someone.limit(2)
    check(someone.page)
    someone.page.get_by_label("My answer", exact=True).select_option("7")
    someone.send()
    someone.received(1)
    someone.page.locator("#status-about summary").click()
    check(someone.page)
    someone.page.get_by_role("button", name="Withdraw").click()
    check(someone.page)
    someone.page.get_by_role("dialog").get_by_role("button", name="Withdraw").click()
    someone.now("You have withdrawn")
    check(someone.page)
    someone.page.evaluate("indexedDB.deleteDatabase('relaxdp device')")
    someone.page.reload()
    someone.view("cleared")
    check(someone.page)


def test_a_keyboard_is_enough(person: MakePerson) -> None:
    someone = person()
    someone.view("limit")
    keys = someone.page.keyboard
    for name in ("English", "Deutsch"):
        keys.press("Tab")
        expect(someone.page.get_by_role("button", name=name)).to_be_focused()
    keys.press("Tab")
    first = someone.page.locator("#limit-choices input").first
    expect(first).to_be_focused()
    expect(first).not_to_be_checked()
    keys.press("Enter")
    expect(someone.page.locator("#limit-wrong")).to_contain_text("Nothing is chosen for you")
    expect(first).to_be_focused()
    keys.press("ArrowDown")
    expect(someone.page.locator("#limit-wrong")).to_be_hidden()
    expect(someone.page.get_by_role("radio", name="a guess is right at most 58 times in 100")).to_be_checked()
    keys.press("Tab")
    keys.press("Enter")
    someone.view("question")
    expect(someone.page.locator("#question-title")).to_be_focused()
    keys.press("Tab")
    keys.press("ArrowDown")
    keys.press("Tab")
    keys.press("Enter")
    someone.received(1)
    expect(someone.page.locator("#status-title")).to_be_focused()
    assert someone.kept()["consent"] == "1"
    for _ in range(5):
        keys.press("Tab")
    keys.press("Enter")
    expect(someone.page.get_by_role("dialog")).to_be_visible()
    keys.press("Escape")
    expect(someone.page.get_by_role("dialog")).to_be_hidden()
    assert someone.kept()["ended"] is None


def test_paused_and_finished(service: Collector, person: MakePerson) -> None:
    someone = person()
    service.act(someone.campaign, "pause")
    someone.page.reload()
    expect(someone.page.locator("#intro-paused")).to_contain_text("pauses at the moment")
    someone.limit(2)
    expect(someone.page.locator("#question-limit")).to_contain_text("The survey pauses now")
    someone.choose("fruit")
    someone.now("its report is sent when the survey goes on")
    assert someone.reports == []
    service.act(someone.campaign, "resume")
    someone.look()
    someone.received(1)
    service.act(someone.campaign, "finish")
    someone.look()
    someone.now("The survey has finished. Your answer and its key were erased")
    assert someone.kept()["key"] is None
    late = person(someone.campaign)
    late.view("problem")
    expect(late.page.locator("#problem")).to_contain_text("This survey has finished")
    check(late.page)


def test_not_begun_and_not_there(service: Collector, person: MakePerson) -> None:
    early = person(service.create(opens="2999-01-01T00:00:00Z"))
    early.view("problem")
    expect(early.page.locator("#problem")).to_contain_text("It opens on 1 January 2999")
    lost = person("no-such-survey")
    lost.view("problem")
    expect(lost.page.locator("#problem")).to_contain_text("There is no survey at this address")
    assert early.bodies == lost.bodies == []


def test_a_server_that_is_away_is_asked_again(person: MakePerson) -> None:
    """What came with the page is shown; what is asked afterwards is asked until somebody answers."""
    someone = person()
    someone.context.route("**/v1/**", lambda route: route.abort())
    someone.page.reload()
    someone.view("limit")
    someone.page.locator("#limit-choices input").nth(1).check()
    someone.page.get_by_role("button", name="Set this limit").click()
    someone.view("problem")
    expect(someone.page.locator("#problem")).to_contain_text("tries again by itself")
    someone.context.unroute("**/v1/**")
    someone.view("limit")
    expect(someone.page.locator("#limit-choices input").nth(1)).to_be_checked()  # what was chosen stays chosen


def behind_proxy(someone: Person) -> str:
    """Put the service into a folder of its own site, as a proxy would, and return the folder's address."""
    url = someone.collector.url
    someone.context.route(
        f"{url}/private/**",
        lambda route: route.fulfill(response=route.fetch(url=route.request.url.replace("/private/", "/"))),
    )
    return f"{url}/private"


def test_below_a_prefix(person: MakePerson) -> None:
    """Behind a proxy that puts the service into a folder of another site, everything is still found."""
    someone = person()
    someone.view("limit")
    folder = behind_proxy(someone)
    someone.requests.clear()
    someone.page.goto(f"{folder}/survey/{someone.campaign}")
    someone.limit()
    someone.choose("none")
    someone.received(1)
    assert [request.url for request in someone.requests if not request.url.startswith(f"{folder}/")] == []


def test_the_module_on_a_page_of_ones_own(service: Collector, person: MakePerson) -> None:
    """The script of docs/embedding.md runs as it is written."""
    page = Path(__file__).parents[2] / "docs" / "embedding.md"
    scripts = re.findall(r"```js\n(.*?)```", page.read_text("utf-8"), flags=re.DOTALL)
    (script,) = (each for each in scripts if "function begin(" in each)
    someone = person(service.create(id="commute"))
    someone.view("limit")
    folder = behind_proxy(someone)
    named = '<script type="importmap">{"imports": {"relaxdp": "/private/static/device/relaxdp.js"}}</script>'
    someone.context.route(
        f"{service.url}/own", lambda route: route.fulfill(body=f"<!doctype html>{named}<title>own</title>")
    )
    someone.context.route(
        f"{service.url}/own.js", lambda route: route.fulfill(body=script, content_type="text/javascript")
    )
    someone.page.goto(f"{service.url}/own")
    follow = """async () => {
      const { begin, answer, follow } = await import("/own.js");
      const device = await begin(async () => "1.5");
      const campaign = await answer(device, async (question, values) => values[1]);
      return { sent: await follow(campaign), balance: await device.balance() };
    }"""
    first = someone.page.evaluate(follow)
    assert [each["status"] for each in first["sent"]] == ["sent"]
    service.act("commute", "relax")
    service.act("commute", "relax")
    second = someone.page.evaluate(follow)
    assert [each["epsilon"] for each in second["sent"]] == ["0.5", "1"]
    assert second["balance"] == {"limit": "1.5", "spent": "1", "left": "0.5"}
    assert sum(request.method == "POST" and request.url.startswith(folder) for request in someone.requests) == 2


def test_plain_http_from_another_machine(service: Collector, browser: Browser) -> None:
    """There browsers have no WebCrypto: the page says what is needed, asks nothing and sends nothing."""
    page = browser.new_page()
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto(f"{service.url.replace('127.0.0.1', ELSEWHERE)}/survey/{service.create()}")
    expect(page.locator("#problem")).to_contain_text("an address that begins with https://")
    check(page)
    assert page.evaluate("window.isSecureContext") is False
    assert not any("/v1/" in url for url in asked)
    page.close()


def test_without_javascript(person: MakePerson) -> None:
    someone = person(java_script_enabled=False)
    expect(someone.page.get_by_text("This page needs JavaScript")).to_be_visible()


def framed(url: str, campaign: str) -> Callable[[Route], None]:
    """A page of another site that shows the survey in a frame."""
    body = f"<!doctype html><title>host</title><iframe src='{url}/survey/{campaign}' width=340 height=700></iframe>"
    return lambda route: route.fulfill(body=body, content_type="text/html")


def test_in_a_frame_of_an_allowed_site(tmp_path: Path, browser: Browser) -> None:
    """The survey works in a frame of the sites that the operator named, and is not shown by others."""
    with collector(tmp_path, "--embed", SITE) as running:
        campaign = running.create()
        page = browser.new_page()
        for site in (SITE, STRANGER):
            page.route(f"{site}/", framed(running.url, campaign))
        page.goto(f"{SITE}/")
        survey = page.frame_locator("iframe")
        survey.locator("#limit-choices input").first.check()
        survey.get_by_role("button", name="Set this limit").click()
        survey.get_by_label("fruit").check()
        survey.get_by_role("button", name="Keep my answer").click()
        expect(survey.locator(".badge.sent")).to_have_count(1)
        assert running.devices(campaign) == [1, 0, 0]
        page.goto(f"{STRANGER}/")
        page.wait_for_timeout(500)
        assert survey.locator("#limit").count() == 0
        page.close()
