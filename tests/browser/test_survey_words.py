"""The survey page in its readers' words: who asks, two languages, what was sent beside what stays, what was learnt."""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect
from tests.browser.survey_person import Collector, Person, overflow, violations
from tests.patience import until

pytestmark = pytest.mark.long

MakePerson = Callable[..., Person]
HARM = "<img src=x onerror='window.harmed = true'><script>window.harmed = true</script>"
RUNS = b"<svg xmlns='http://www.w3.org/2000/svg' width='60' height='20' onload='parent.harmed = true'>"
LOGO = f"data:image/svg+xml;base64,{b64encode(RUNS + b'<script>window.harmed = true</script></svg>').decode()}"
SAID: dict[str, Any] = {
    "asker": "City library",
    "about": "How people come to the library",
    "purpose": f"We plan bicycle stands.\n{HARM}",
    "contact": "desk@example.org",
    "privacy_notice": "https://example.org/privacy?a=1",
    "colour": "#aa3300",
    "logo": LOGO,
    "suggested": "1",
}
WORDS = Path(__file__).parents[2] / "src" / "relaxdp" / "web" / "survey" / "words" / "en.js"
NAMES = re.findall(r'^  "([a-z]+\.[A-Za-z.]+)":', WORDS.read_text("utf-8"), flags=re.MULTILINE)


def shows_no_name(someone: Person) -> None:
    """No name of a sentence, and no place for a field, is shown in place of words."""
    shown = someone.page.locator("body").inner_text()
    assert [name for name in NAMES if name in shown] == []
    assert "{" not in shown
    assert "undefined" not in shown


def test_who_asks_is_said_first_and_is_text(service: Collector, person: MakePerson) -> None:
    someone = person(service.create(**SAID))
    someone.view("limit")
    page = someone.page
    expect(page.get_by_role("heading", level=1)).to_have_text(SAID["about"])
    expect(page).to_have_title(SAID["about"])
    expect(page.locator("#intro-asker")).to_have_text("City library")
    assert page.locator("#intro-facts dd").first.text_content() == SAID["purpose"]
    expect(page.get_by_role("link", name="desk@example.org")).to_have_attribute("href", "mailto:desk@example.org")
    notice = page.get_by_role("link", name="Read the privacy notice")
    expect(notice).to_have_attribute("href", SAID["privacy_notice"])
    expect(notice).to_have_attribute("rel", "noopener noreferrer")
    logo = page.get_by_role("img", name="Logo of City library")
    assert logo.evaluate("image => image.naturalWidth") == 60
    assert page.evaluate("window.harmed") is None
    assert "eat" not in page.locator("body").inner_text(), "and the question later"
    suggested = page.locator(".option", has_text="suggested by City library")
    expect(suggested).to_contain_text("Up to step 2 of 3")
    expect(suggested.get_by_role("radio")).not_to_be_checked()
    expect(suggested).to_contain_text(
        re.compile(r"right at most 58 times in 100, instead of 33\..*about [\d,]+ people")
    )
    someone.limit(1)
    expect(page.locator("#intro-more")).not_to_have_attribute("open", "")
    someone.choose("fruit")
    someone.received(1)
    assert all(request.url.startswith((service.url, "data:")) for request in someone.requests), "nobody else was asked"


def test_a_survey_that_does_not_say_who_asks_says_that(person: MakePerson) -> None:
    someone = person()
    someone.view("limit")
    expect(someone.page.locator("#intro-unknown")).to_have_text("This survey does not say who asks.")
    expect(someone.page.locator("#intro-more")).to_be_hidden()
    assert someone.page.locator(".option", has_text="suggested").count() == 0


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_colour_that_is_accepted_can_be_read(service: Collector, person: MakePerson, scheme: str) -> None:
    """Axe measures the red that is nearest to the limit, in every view; a dark page keeps its colours."""
    someone = person(service.create(**{**SAID, "colour": "#dc0000"}), color_scheme=scheme)
    someone.view("limit")
    colours = {"light": "rgb(220, 0, 0)", "dark": "rgb(131, 180, 255)"}

    def background() -> Any:
        button = "document.querySelector('#limit-form button')"
        return someone.page.evaluate(f"getComputedStyle({button}).backgroundColor")

    assert background() == colours[scheme]
    assert violations(someone.page) == []
    someone.page.locator("#limit-choices input").nth(1).check()
    assert violations(someone.page) == []
    other = {"light": "dark", "dark": "light"}[scheme]
    someone.page.emulate_media(color_scheme=other)  # type: ignore[arg-type]
    assert until(lambda: background() == colours[other])
    assert violations(someone.page) == [], "also when the evening comes"
    someone.page.locator("#limit-form button").click()
    someone.view("question")
    assert violations(someone.page) == []


def test_a_person_answers_in_german(service: Collector, person: MakePerson) -> None:
    """From the first view to the last in the browser's language, with its numbers, and back to English by hand."""
    campaign = service.create(question="How far?", encoding={"name": "wave", "range": [0, 20]}, **SAID)
    someone = person(campaign, locale="de-AT")
    someone.view("limit")
    page = someone.page
    assert page.locator("html").get_attribute("lang") == "de"
    expect(page.locator("#limit-title")).to_have_text("Zuerst Ihre eigene Grenze")
    shows_no_name(someone)
    page.locator("#limit-choices input").first.check()
    page.get_by_role("button", name="English").click()
    expect(page.locator("#limit-title")).to_have_text("First, your own limit")
    expect(page.locator("#limit-choices input").first).to_be_checked()
    page.get_by_role("button", name="Deutsch").click()
    page.locator("#limit-form button").click()
    someone.view("question")
    field, wrong = page.get_by_label("Eine Zahl von 0 bis 20"), page.locator("#question-problem")
    for text, sentence in (
        ("", "Bitte antworten Sie zuerst."),
        ("viel", "Das ist keine Zahl."),
        ("20,5", "Bitte geben Sie eine Zahl von 0 bis 20 an."),
    ):
        field.fill(text)
        page.locator("#question-form button").click()
        expect(wrong).to_have_text(sentence)
    field.fill("7.5")
    expect(wrong).to_be_hidden()
    expect(page.get_by_text("Das wird als 7,5 gelesen.")).to_be_visible()
    field.fill("7,5")
    page.get_by_role("button", name="English").click()
    expect(page.get_by_label("A number from 0 to 20")).to_have_value("7,5")
    page.get_by_role("button", name="Deutsch").click()
    someone.send()
    someone.received(1)
    assert someone.kept()["answer"] == {"number": (7.5).hex()}
    expect(page.locator("#status-answer")).to_have_text("7,5")
    expect(page.locator("#status-lead")).to_contain_text("Wie nah es an Ihrer Antwort liegt, weiß niemand.")
    expect(page.locator("#status-spent")).to_contain_text("Epsilon 0,5")
    shows_no_name(someone)
    assert violations(page) == []
    page.get_by_role("button", name="English").click()
    expect(page.locator("#status-spent")).to_contain_text("epsilon 0.5")
    page.reload()
    expect(page.locator("#status-title")).to_have_text("Your answer, and what was sent")  # it was remembered
    shows_no_name(someone)


@pytest.mark.parametrize("locale", ["en-GB", "de-DE"])
def test_no_view_shows_a_name(service: Collector, person: MakePerson, locale: str) -> None:
    campaign = service.create(invitations=True, **SAID)
    (invitation,) = service.operator.invite(campaign, 1)
    someone = person(campaign, locale=locale, viewport={"width": 390, "height": 800})
    someone.view("invitation")
    shows_no_name(someone)
    someone.page = someone.open(f"#invitation={invitation}")
    someone.limit(2)
    shows_no_name(someone)
    someone.choose("fruit")
    someone.received(1)
    shows_no_name(someone)
    someone.page.locator("#status-leave").click()
    shows_no_name(someone)
    someone.page.locator("#leave-dialog .danger").click()
    expect(someone.page.locator("#status-erased")).to_be_visible()
    shows_no_name(someone)
    assert overflow(someone.page) <= 0
    service.act(campaign, "finish")
    for name in (campaign, service.create(opens="2999-01-01T00:00:00Z"), "no-such-survey"):
        other = person(name, locale=locale)
        other.view("problem")
        shows_no_name(other)


def test_the_answer_is_shown_here_and_hidden_from_whoever_comes_later(person: MakePerson) -> None:
    someone = person()
    someone.answer("none", step=0)
    own = someone.page.locator("#status-answer")
    expect(own).to_be_visible()
    expect(own).to_have_text("none")
    sent = someone.page.locator(".theirs")
    expect(sent).to_contain_text("blurred on purpose")
    assert sent.locator("strong").count() == 0, "what chance made is not what stands out"
    someone.page.reload()
    someone.received(1)
    expect(own).to_be_hidden()
    someone.page.locator("#status-own summary").click()
    expect(own).to_have_text("none")
    someone.page.get_by_role("button", name="Stop here").click()
    someone.page.get_by_role("dialog").get_by_role("button", name="Send nothing more").click()
    expect(someone.page.locator("#status-erased")).to_be_visible()
    expect(own).to_have_text("")


def test_what_was_learnt_is_shown_when_it_ended(service: Collector, person: MakePerson) -> None:
    ending = {"levels": [{"epsilon": "4"}], "target": {"half_width": 0.2}, "publish": {"least": 20}}
    campaign, silent = (service.create(**ending, shows_results=shown) for shown in (True, False))
    someone = person(campaign)
    someone.view("limit")
    someone.page.locator("#limit-form button").click()  # there is one limit
    someone.choose("fruit")
    someone.received(1)
    expect(someone.page.locator("#results")).to_be_hidden()
    for name in (campaign, silent):
        service.others_answer(name, ["fruit", "none", "fruit", "fruit"] * 25)
    late, unshown = person(campaign), person(silent)
    someone.page.reload()
    someone.now("The survey has finished")
    for each in (someone, late):
        expect(each.page.locator("#results")).to_contain_text("From the reports of 101 people together")
        expect(each.page.get_by_role("row", name=re.compile(r"^fruit [67]\d"))).to_be_visible()
        assert violations(each.page) == []
    expect(late.page.locator("#problem")).to_contain_text("This survey has finished")
    unshown.view("problem")
    expect(unshown.page.locator("#results")).to_be_hidden()
    assert not any(request.url.endswith("/published") for request in unshown.requests)


def test_a_survey_that_was_ended_by_hand_has_nothing_to_show(service: Collector, person: MakePerson) -> None:
    campaign = service.create(closes="2999-01-01T00:00:00Z", publish={"least": 20}, shows_results=True)
    service.act(campaign, "finish")
    someone = person(campaign)
    expect(someone.page.locator("#results")).to_contain_text(
        "if the survey ended as planned and enough people took part"
    )
