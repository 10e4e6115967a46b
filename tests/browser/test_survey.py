"""The survey page in a real browser against a real service: what leaves it, when, and what stays."""

from __future__ import annotations

import re
from base64 import b64decode
from collections.abc import Callable
from math import exp
from typing import Any

import pytest
from playwright.sync_api import Route, expect
from scipy.stats import binom
from tests.browser.survey_person import CLEAR, VALUES, Collector, Person, violations

from relaxdp import Categorical, Key

MakePerson = Callable[..., Person]


def reports_of_path(person: Person, truth: str) -> list[str]:
    """What the keyed path says that was to be reported, worked out in Python from what the browser keeps."""
    record = person.kept()
    key = Key.from_bytes(bytes.fromhex(record["key"]))
    path = Categorical(VALUES).path(truth, key=key, id=record["device"], name=person.campaign, column="answer")
    return [path.at(sent["epsilon"]) for sent in record["sent"]]


def test_a_person_answers_and_the_page_follows_the_campaign(service: Collector, person: MakePerson) -> None:
    """From the limit to the last step, without a hand being lifted after the answer."""
    someone = person()
    someone.page.clock.install()  # the page looks every 20 seconds by its own clock, and nobody else need wait for it
    someone.page.reload()
    someone.view("limit")
    assert "eat" not in someone.page.locator("main").inner_text(), "the question is not seen before the limit"
    someone.answer("fruit", step=2)
    assert service.devices(someone.campaign) == [1, 0, 0]
    service.act(someone.campaign, "relax")
    someone.page.clock.fast_forward(20_000)
    someone.received(2)
    assert service.devices(someone.campaign) == [0, 1, 0]
    someone.now("When the survey opens its next step")
    service.act(someone.campaign, "relax")
    someone.look()
    someone.received(3)
    someone.now("the last step of this survey")
    expect(someone.page.locator("#status-spent")).to_contain_text("at most 79 times in 100, instead of 33")
    assert [body["report"] for body in someone.reports] == reports_of_path(someone, "fruit")
    assert [body["level"]["epsilon"] for body in someone.reports] == ["0.5", "1", "2"]
    assert all(set(body) == {"device", "level", "report"} for body in someone.bodies)
    shown = someone.page.locator(".report").all_inner_texts()
    assert shown == [body["report"] for body in someone.reports], "the page shows what was sent"


@pytest.mark.long
def test_what_leaves_the_page_follows_the_law(service: Collector, person: MakePerson) -> None:
    """Many people with one answer: each sends the report of their own keyed path, and the server has nothing else.

    False alarms: 1e-6. A page that sends the bare answer would give 20 of 20 and is rejected.
    """
    campaign, people, secrets = service.create(), 20, []
    reported = []
    for _ in range(people):
        someone = person(campaign)
        someone.answer("fruit", step=0)
        (body,) = someone.reports
        record = someone.kept()
        assert record["answer"] == "fruit"
        assert reports_of_path(someone, "fruit") == [body["report"]]
        assert record["key"].encode() not in someone.everything()
        assert all(request.url.startswith(service.url) for request in someone.requests), "nobody else was asked"
        reported.append(body["report"])
        secrets.append(record["key"])
        someone.context.close()
    truths = binom(people, exp(0.5) / (exp(0.5) + len(VALUES) - 1))
    assert truths.ppf(0.5e-6) <= reported.count("fruit") <= truths.isf(0.5e-6) < people
    kept = service.bytes()
    assert not any(secret.encode() in kept or bytes.fromhex(secret) in kept for secret in secrets)
    assert service.devices(campaign) == [people, 0, 0]


def test_free_text_stays_here(service: Collector, person: MakePerson) -> None:
    options = {"bits": 64, "hashes": 2, "cohorts": 8}
    someone = person(service.create(encoding={"name": "bloom", "options": options, "candidates": ["plums"]}))
    word = "Zwetschgenröster-77"
    someone.limit(2)
    someone.page.get_by_label("My answer, in a word").fill(f"  {word} ")
    someone.send()
    someone.received(1)
    (body,) = someone.reports
    assert set(body) == {"device", "level", "report", "cohort"}
    assert len(b64decode(body["report"])) == 8
    record = someone.kept()
    assert record["answer"] == word
    for secret in (word.encode(), b"Zwetschgen", record["key"].encode()):
        assert secret not in someone.everything()
        assert secret not in service.bytes()
    expect(someone.page.locator(".report")).to_contain_text("a pattern of 64 marks")
    expect(someone.page.locator(".reports code")).to_have_text(body["report"])


def test_the_limit_is_kept(service: Collector, person: MakePerson) -> None:
    someone = person()
    someone.answer(step=0)
    someone.now("Your limit ends at this step")
    service.act(someone.campaign, "relax")
    someone.look()
    someone.now("has gone on to step 2 without you")
    assert len(someone.reports) == 1
    assert someone.kept()["consent"] == "0.5"


@pytest.mark.long
def test_the_limit_stays_below_an_open_level(service: Collector, person: MakePerson) -> None:
    """Whoever comes late reports at the highest step that the limit allows."""
    campaign = service.create()
    service.act(campaign, "relax")
    service.act(campaign, "relax")
    someone = person(campaign)
    someone.answer(step=1)
    assert [body["level"]["epsilon"] for body in someone.reports] == ["1"]


@pytest.mark.long
def test_limits_of_several_surveys_add_up(service: Collector, person: MakePerson) -> None:
    someone = person()
    someone.answer(step=1)
    someone.campaign = service.create()
    someone.page = someone.open()
    someone.view("limit")
    expect(someone.page.locator("#limit-others")).to_be_hidden()
    someone.page.locator("#limit-choices input").first.check()
    expect(someone.page.locator("#limit-others")).to_contain_text("another survey")
    expect(someone.page.locator("#limit-others")).to_contain_text("together they are then epsilon 1.5")
    someone.page.reload()
    someone.answer(step=2)
    assert someone.kept()["consent"] == "2"


def test_a_survey_that_is_to_be_published_says_so_before_anything_else(service: Collector, person: MakePerson) -> None:
    someone = person(service.create(closes="2999-01-01T00:00:00Z", publish={"least": 1_000}))
    someone.view("limit")
    expect(someone.page.locator("#limit-published")).to_contain_text("at least 1,000 people together")
    other = person()
    other.view("limit")
    expect(other.page.locator("#limit-published")).to_be_hidden()


@pytest.mark.long
def test_reload(service: Collector, person: MakePerson) -> None:
    someone = person()
    someone.limit(2)
    someone.page.reload()
    someone.view("question")
    expect(someone.page.locator("#question-limit")).to_contain_text("epsilon 2")
    someone.choose("none")
    someone.received(1)
    someone.page.reload()
    someone.received(1)
    assert len(someone.reports) == 1
    service.act(someone.campaign, "relax")
    someone.page.reload()
    someone.received(2)
    assert [body["report"] for body in someone.reports] == reports_of_path(someone, "none")


def test_written_before_it_is_sent(person: MakePerson) -> None:
    """A report that may or may not have arrived is sent again as it was, also by a page that was closed meanwhile."""
    someone = person()
    someone.limit(0)
    cut: list[str] = []

    def cut_off(route: Route) -> None:
        cut.append(route.request.post_data or "")
        route.abort()

    someone.context.route("**/reports", cut_off)
    someone.choose("crisps")
    someone.now("its report is waiting to be sent")
    expect(someone.page.locator(".badge.written")).to_have_count(1)
    assert [sent["status"] for sent in someone.kept()["sent"]] == ["written"]
    someone.page.close()
    someone.context.unroute("**/reports")
    someone.page = someone.open()
    someone.received(1)
    assert {request.post_data for request in someone.requests if request.method == "POST"} == set(cut)
    assert len(set(cut)) == 1


def test_offline_and_back(service: Collector, person: MakePerson) -> None:
    someone = person()
    someone.limit(2)
    someone.context.set_offline(True)
    someone.choose("fruit")
    someone.now("cannot be reached")
    someone.now("its report is waiting to be sent")
    assert service.devices(someone.campaign) == [0, 0, 0]
    someone.context.set_offline(False)
    someone.received(1)
    someone.context.set_offline(True)
    someone.look()
    someone.now("Everything that was to be sent has been received")
    service.act(someone.campaign, "relax")
    someone.context.set_offline(False)
    someone.received(2)
    assert service.devices(someone.campaign) == [0, 1, 0]


def test_second_tab(service: Collector, person: MakePerson) -> None:
    """Both tabs show the same, and a report is sent once."""
    someone = person()
    first, second = someone.page, someone.open()
    for page in (first, second):
        expect(page.locator("#limit")).to_be_visible()
    first.bring_to_front()  # a browser takes its time for pages that nobody looks at
    someone.answer(step=2)
    expect(second.locator(".badge.sent")).to_have_count(1)
    service.act(someone.campaign, "relax")
    for page in (first, second):
        page.evaluate("window.dispatchEvent(new Event('online'))")
    for page in (first, second):
        expect(page.locator(".badge.sent")).to_have_count(2)
    assert [body["level"]["epsilon"] for body in someone.reports] == ["0.5", "1"]
    first.close()
    service.act(someone.campaign, "relax")
    someone.page = second
    someone.look()
    someone.received(3)


@pytest.mark.long
def test_two_tabs_two_answers(person: MakePerson) -> None:
    """The first answer counts, and the other tab says so by showing it."""
    someone = person()
    someone.limit(0)
    second = someone.open()
    expect(second.locator("#question")).to_be_visible()
    someone.page.get_by_label("fruit").check()
    second.get_by_label("none").check()
    # Both are found before one is pressed: the other tab may be quick to show the answer in the place of its question.
    found = [page.get_by_role("button", name="Keep my answer").element_handle() for page in (someone.page, second)]
    for button in found:
        button.evaluate("button => { button.click(); }")
    for page in (someone.page, second):
        expect(page.locator(".badge.sent")).to_have_count(1)
    assert len({body["report"] for body in someone.reports}) == 1
    assert someone.kept()["answer"] in ("fruit", "none")


@pytest.mark.parametrize("reloaded", [False, pytest.param(True, marks=pytest.mark.long)])
def test_cleared_storage(service: Collector, person: MakePerson, reloaded: bool) -> None:
    """A clear message, and no second path unless the person insists."""
    someone = person()
    someone.answer()
    someone.page.evaluate(CLEAR)
    service.act(someone.campaign, "relax")
    if reloaded:
        someone.page.reload()
    else:
        someone.look()
    someone.view("cleared")
    expect(someone.page.locator("#cleared")).to_contain_text("costs of both add up")
    assert len(someone.reports) == 1
    someone.page.get_by_role("button", name="Begin anew").click()
    someone.view("cleared")
    someone.page.get_by_role("checkbox").check()
    someone.page.get_by_role("button", name="Begin anew").click()
    someone.answer(step=1)
    first, second = someone.reports
    assert first["device"] != second["device"]


@pytest.mark.long
def test_a_browser_that_was_wiped_asks_first(person: MakePerson) -> None:
    """Nothing tells it from a new one: so every person is asked, before anything is kept or sent."""
    someone = person()
    someone.answer()
    someone.context.new_cdp_session(someone.page).send(
        "Storage.clearDataForOrigin", {"origin": someone.collector.url, "storageTypes": "all"}
    )
    someone.look()
    someone.view("cleared")  # a page that is open remembers
    someone.page.reload()
    someone.view("limit")
    expect(someone.page.locator("#limit")).to_contain_text("Have you answered this survey before")
    assert len(someone.reports) == 1


def test_withdraw(service: Collector, person: MakePerson) -> None:
    someone = person()
    someone.answer()
    someone.page.get_by_role("button", name="Withdraw").click()
    dialog = someone.page.get_by_role("dialog")
    expect(dialog).to_contain_text("Privacy that was spent does not come back")
    dialog.get_by_role("button", name="Go back").click()
    assert someone.kept()["ended"] is None
    someone.page.get_by_role("button", name="Withdraw").click()
    dialog.get_by_role("button", name="Withdraw").click()
    someone.now("The privacy that they cost does not come back")
    expect(someone.page.locator(".reports")).to_contain_text("received, then deleted")
    assert service.devices(someone.campaign) == [0, 0, 0]
    record = someone.kept()
    assert (record["answer"], record["key"], record["ended"]) == (None, None, "withdrawn")
    someone.page.reload()
    someone.now("You have withdrawn")


@pytest.mark.long
def test_withdraw_while_offline(service: Collector, person: MakePerson) -> None:
    someone = person()
    someone.answer()
    someone.context.set_offline(True)
    someone.page.get_by_role("button", name="Withdraw").click()
    someone.page.get_by_role("dialog").get_by_role("button", name="Withdraw").click()
    someone.now("The server does not know yet")
    assert someone.kept()["key"] is None
    someone.context.set_offline(False)
    someone.now("The server deleted your reports")
    assert service.devices(someone.campaign) == [0, 0, 0]


def test_stop_here(service: Collector, person: MakePerson) -> None:
    someone = person()
    someone.answer()
    someone.page.get_by_role("button", name="Stop here").click()
    someone.page.get_by_role("dialog").get_by_role("button", name="Send nothing more").click()
    someone.now("You stopped here")
    assert someone.kept()["key"] is None
    service.act(someone.campaign, "relax")
    someone.page.reload()
    someone.now("You stopped here")
    assert len(someone.reports) == 1
    assert service.devices(someone.campaign) == [1, 0, 0]


@pytest.mark.long
def test_invitations(service: Collector, person: MakePerson) -> None:
    campaign = service.create(invitations=True)
    (invitation,) = service.operator.invite(campaign, 1)
    someone = person(campaign)
    someone.view("invitation")
    assert "eat" not in someone.page.locator("main").inner_text()
    field, wrong = someone.page.get_by_label("Your invitation"), someone.page.locator("#invitation-wrong")
    someone.page.get_by_role("button", name="Go on").click()
    expect(wrong).to_have_text("Please type in your invitation.")
    field.fill("not-one")
    expect(wrong).to_be_hidden()
    someone.page.get_by_role("button", name="Go on").click()
    expect(wrong).to_contain_text("not known, or it was used already")
    expect(field).to_be_focused()
    assert someone.reports == []
    field.fill(invitation)
    expect(wrong).to_be_hidden()
    someone.page.get_by_role("button", name="Go on").click()
    someone.answer(step=0)
    assert all("device" not in body for body in someone.bodies if set(body) == {"invitation"}), "nobody is named"
    (invitation,) = service.operator.invite(campaign, 1)
    linked = person(campaign)
    linked.page = linked.open(f"#invitation={invitation}")
    linked.view("limit")
    assert linked.page.url.endswith(campaign), "the invitation has left the address bar"
    linked.answer(step=0)
    assert not any(invitation in request.url for request in linked.requests)
    late = person(campaign)
    late.page = late.open(f"#invitation={invitation}")
    late.view("invitation")
    expect(late.page.locator("#invitation-wrong")).to_contain_text("was used already")


@pytest.mark.long
def test_an_invitation_that_somebody_else_used_meanwhile(service: Collector, person: MakePerson) -> None:
    campaign = service.create(invitations=True)
    first, second = service.operator.invite(campaign, 2)
    slow, quick = person(campaign), person(campaign)
    for someone in (slow, quick):
        someone.page = someone.open(f"#invitation={first}")
        someone.limit(0)
    quick.choose("none")
    quick.received(1)
    slow.choose("fruit")
    slow.now("does not know this invitation")
    slow.page.get_by_label("Another invitation").fill(second)
    slow.page.get_by_role("button", name="Use this invitation").click()
    slow.received(1)
    assert len({body["report"] for body in slow.reports}) == 1


QUESTIONS: dict[str, tuple[dict[str, Any], str, Any]] = {
    "number": ({"name": "numeric", "range": [0, 120]}, "#answer", 41.5),
    "place": ({"name": "wave", "range": [0, 120]}, "#answer", 41.5),
    "whole numbers": ({"name": "categorical", "values": [10, 20, 30]}, "20", 20),
    "many values": ({"name": "local-hash", "values": list(range(50)), "options": {"buckets": 4}}, "list", 7),
    "bits": ({"name": "unary-optimised", "values": VALUES}, "fruit", "fruit"),
}


@pytest.mark.long
@pytest.mark.parametrize("name", sorted(QUESTIONS))
def test_every_kind_of_question(service: Collector, person: MakePerson, name: str) -> None:
    encoding, how, answer = QUESTIONS[name]
    someone = person(service.create(encoding=encoding))
    someone.limit(1)
    if how == "list":
        someone.page.get_by_label("My answer", exact=True).select_option(str(answer))
    elif how.startswith("#"):
        someone.page.locator(how).fill("121")
        someone.page.get_by_role("button", name="Keep my answer").click()
        expect(someone.page.locator("#question-problem")).to_have_text("Please give a number from 0 to 120.")
        expect(someone.page.locator(f"{how}[aria-invalid]")).to_be_focused()
        someone.page.locator(how).fill(str(answer))
        expect(someone.page.locator("#question-problem")).to_be_hidden()
        assert someone.page.locator("[aria-invalid]").count() == 0
    else:
        someone.page.get_by_label(how, exact=True).check()
    someone.send()
    someone.received(1)
    kept = someone.kept()["answer"]
    assert kept == ({"number": float(answer).hex()} if how == "#answer" else answer)
    assert someone.page.locator("#status-reports .scale circle").count() == (1 if how == "#answer" else 0)
    assert violations(someone.page) == []
    expect(someone.page.locator("#status-answer")).to_have_text(str(answer))
    assert str(answer).encode() not in someone.everything() or how not in ("#answer",)
    assert re.search(r"at most [\d,]+ times in 1", someone.page.locator("#status-spent").inner_text())
