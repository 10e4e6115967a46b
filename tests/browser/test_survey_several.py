"""A survey of several questions in a browser: one limit, one question after the other, and what was sent of each."""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Callable, Iterator
from decimal import Decimal
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, Request, expect
from tests.browser.browsers import in_both
from tests.browser.survey_person import Collector, overflow, violations
from tests.patience import PATIENCE

LEVELS = [{"epsilon": epsilon} for epsilon in ("0.5", "1", "2")]
QUESTIONS: dict[str, tuple[str, dict[str, Any]]] = {
    "diet": ("What do you eat?", {"name": "categorical", "values": ["meat", "roots", "leaves"]}),
    "lunch": ("Where do you have lunch?", {"name": "categorical", "values": ["canteen", "home"]}),
    "age": ("How old are you?", {"name": "numeric", "range": [0, 120]}),
}


def survey(service: Collector, **changes: Any) -> str:
    """Create a survey of three questions, of which the first two are counted together, and return its name."""
    name = f"s-{uuid.uuid4().hex[:12]}"
    questions = [
        {"id": f"{name}-{each}", "question": question, "encoding": encoding, "levels": LEVELS}
        for each, (question, encoding) in QUESTIONS.items()
    ]
    cross = [[f"{name}-diet", f"{name}-lunch"]]
    asked = {"id": name, "about": "How you eat", "asker": "The canteen", "suggested": "3", "cross": cross}
    created = service.operator.create_survey({**asked, "questions": questions, **changes})
    return str(created["id"])


class Visitor:
    """One person with one browser profile; everything that leaves the page is kept."""

    def __init__(self, browser: Browser, service: Collector, name: str, **options: Any) -> None:
        self.service, self.name = service, name
        self.context = browser.new_context(**{"locale": "en-GB", "viewport": {"width": 390, "height": 844}, **options})
        self.context.set_default_timeout(1000 * PATIENCE)
        self.requests: list[Request] = []
        self.problems: list[str] = []
        self.context.on("request", lambda request: self.requests.append(request))  # noqa: PLW0108
        self.context.on("weberror", lambda error: self.problems.append(str(error.error)))
        self.page = self.open()

    def open(self) -> Page:
        page = self.context.new_page()
        page.goto(f"{self.service.url}/surveys/{self.name}")
        return page

    def limit(self, place: int) -> None:
        expect(self.page.locator("#limit")).to_be_visible()
        assert self.page.locator("#limit-choices :checked").count() == 0, "nothing is chosen for anybody"
        self.page.locator("#limit-choices input").nth(place).check()
        self.page.locator("#limit-form button").click()

    def answer(self, place: str, value: str) -> None:
        """Answer the question of this place, like 2 of 3."""
        expect(self.page.locator("#question-title")).to_have_text(f"Question {place}")
        if value.isdigit():
            self.page.locator("#answer").fill(value)
        else:
            self.page.get_by_label(value, exact=True).check()
        self.page.locator("#question-form button").click()

    def received(self, number: int) -> None:
        expect(self.page.locator(".badge.sent")).to_have_count(number)

    @property
    def reports(self) -> dict[str, list[dict[str, Any]]]:
        """What was posted to each question, in order."""
        found: dict[str, list[dict[str, Any]]] = {}
        for request in self.requests:
            if request.method == "POST" and request.url.endswith("/reports"):
                name = request.url.split("/")[-2].removeprefix(f"{self.name}-")
                found.setdefault(name, []).append(json.loads(request.post_data or ""))
        return found

    def check(self) -> None:
        assert violations(self.page) == []
        assert overflow(self.page) <= 0


@pytest.fixture
def visitor(browser: Browser, service: Collector) -> Iterator[Callable[..., Visitor]]:
    people: list[Visitor] = []

    def make(name: str, **options: Any) -> Visitor:
        people.append(Visitor(browser, service, name, **options))
        return people[-1]

    yield make
    for each in people:
        each.context.close()
    assert [problem for each in people for problem in each.problems] == []


def cost(person: Visitor) -> dict[str, Decimal]:
    return {name: max(Decimal(each["level"]["epsilon"]) for each in sent) for name, sent in person.reports.items()}


@in_both(long=True)
def test_from_the_limit_to_the_table(service: Collector, visitor: Callable[..., Visitor]) -> None:
    name = survey(service)
    person = visitor(name)
    person.limit(2)
    for place, value in (("1 of 3", "meat"), ("2 of 3", "canteen"), ("3 of 3", "30")):
        person.answer(place, value)
    person.received(3)
    found = service.operator.survey(name)
    assert [each["devices"] for each in found["questions"]] == [1, 1, 1]
    assert found["tables"][0]["devices"] == 1


def test_three_questions_under_one_limit(service: Collector, visitor: Callable[..., Visitor]) -> None:
    name = survey(service)
    person = visitor(name)
    expect(person.page.locator("#limit-together")).to_contain_text("Questions 1 and 2 are counted together")
    assert QUESTIONS["diet"][0] not in person.page.locator("main").inner_text(), "the limit comes before the questions"
    suggested = person.page.locator(".option", has_text="suggested by The canteen")
    expect(suggested).to_contain_text("All 3 questions, up to step 2 of 3")
    person.check()
    person.limit(3)
    person.answer("1 of 3", "leaves")
    expect(person.page.locator("#question-title")).to_be_focused()
    person.check()
    person.page.reload()  # in the middle: it goes on where it stopped
    person.answer("2 of 3", "home")
    person.answer("3 of 3", "41")
    person.received(3)
    expect(person.page.locator(".answers > li")).to_have_count(3)
    expect(person.page.locator(".answers .own")).to_have_text(["leaves", "home", "41"])
    expect(person.page.locator("#status-now")).to_contain_text("epsilon 1.5 of your limit, 3.")
    person.check()
    for _ in range(2):
        service.operator.act_survey(name, "relax")
    person.page.get_by_role("button", name="Look for news").click()
    person.received(6)
    assert cost(person) == {"diet": 1, "lunch": 1, "age": 1}
    devices = {each: {sent["device"] for sent in found} for each, found in person.reports.items()}
    assert devices["diet"] == devices["lunch"] != devices["age"]
    [table] = service.operator.survey(name)["tables"]
    assert table["devices"] == 1
    person.page.locator("#status-leave").click()
    person.page.locator("#leave-dialog button[value=yes]").click()
    expect(person.page.locator("#status-now")).to_contain_text("You have withdrawn")
    found = service.operator.survey(name)
    assert [each["devices"] for each in found["questions"]] == [0, 0, 0]
    assert found["tables"][0]["devices"] == 0
    sent = json.dumps([request.post_data for request in person.requests])
    assert '"41"' not in sent
    assert "answer" not in sent


@pytest.mark.long
@pytest.mark.parametrize(
    ("locale", "most"), [("en-GB", "at most {} times in 100"), ("de-DE", "höchstens {} von 100 Mal")]
)
def test_every_chance_follows_from_the_limit_of_all_questions(
    service: Collector, visitor: Callable[..., Visitor], locale: str, most: str
) -> None:
    """With E for all questions and m answers, a guess is right with at most e^E / (e^E + m - 1)."""
    questions = [
        {"id": f"q-{uuid.uuid4().hex[:12]}", "question": question, "encoding": encoding, "levels": LEVELS}
        for question, encoding in (QUESTIONS["diet"], QUESTIONS["lunch"])
    ]
    person = visitor(survey(service, questions=questions, cross=[], suggested="4"), locale=locale)
    options = person.page.locator("#limit-choices .option")
    expect(options).to_have_count(4)
    # The limits are 0.5 for the first question alone, then 1, 2 and 4 for both, of which each gets half.
    for text, right, of_one in zip(options.all_inner_texts(), (46, 74, 89, 99), (None, 63, 74, 89), strict=True):
        assert most.format(right) in text
        assert most.format(of_one) not in text
    person.limit(3)
    for value, right in (("leaves", 97), ("home", 99)):
        expect(person.page.locator("#question-limit")).to_contain_text(most.format(right))
        person.page.get_by_label(value, exact=True).check()
        person.page.locator("#question-form button").click()
    person.received(2)
    person.page.goto(f"{service.url}/survey/{questions[0]['id']}")
    expect(person.page.locator("#status-spent")).to_contain_text(most.format(58))  # both questions cost 0.5


def test_what_does_not_fit_is_said_before_and_not_asked(service: Collector, visitor: Callable[..., Visitor]) -> None:
    person = visitor(survey(service), locale="de-DE", viewport={"width": 1280, "height": 800}, color_scheme="dark")
    expect(person.page.locator("#limit")).to_be_visible()
    person.page.locator("#limit-choices input").nth(1).check()
    expect(person.page.locator("#limit-detail")).to_contain_text("Frage 3 wird dann nicht gestellt")
    person.check()
    person.page.locator("#limit-form button").click()
    for place, value in (("1 von 2", "roots"), ("2 von 2", "home")):
        expect(person.page.locator("#question-title")).to_have_text(f"Frage {place}")
        person.page.get_by_label(value, exact=True).check()
        person.page.locator("#question-form button").click()
    person.received(2)
    last = person.page.locator(".answers > li").last
    expect(last).to_contain_text(QUESTIONS["age"][0])
    expect(last).to_contain_text("Nicht gefragt")
    assert cost(person) == {"diet": Decimal("0.5"), "lunch": Decimal("0.5")}


def test_a_question_that_was_answered_on_its_own_page(service: Collector, visitor: Callable[..., Visitor]) -> None:
    """A limit below what it may cost is refused, and that is said; else it is shown with the others, also later."""
    name = survey(service)
    person = visitor(name)
    person.page.goto(f"{service.url}/survey/{name}-diet")
    person.limit(2)
    person.page.get_by_label("roots", exact=True).check()
    person.page.locator("#question-form button").click()
    expect(person.page.locator("#status-now")).to_be_visible()
    person.page.goto(f"{service.url}/surveys/{name}")
    person.limit(0)
    expect(person.page.locator("#problem")).to_contain_text("more than your limit allows")
    person.page.locator("#problem-again").click()
    expect(person.page.locator("#limit")).to_be_visible()
    person.page.locator("#limit-choices input").last.check()
    person.page.locator("#limit-form button").click()
    for place, value in (("2 of 3", "home"), ("3 of 3", "41")):
        person.answer(place, value)
    person.received(3)
    person.page.reload()
    person.received(3)
    assert service.operator.survey(name)["tables"][0]["devices"] == 0, "it was joined by itself, and stays apart"


@pytest.mark.long
def test_offline_between_two_questions(service: Collector, visitor: Callable[..., Visitor]) -> None:
    """An answer that was given is kept and sent later; the limit holds all the same."""
    person = visitor(survey(service))
    person.limit(2)
    person.answer("1 of 3", "meat")
    expect(person.page.locator("#question-title")).to_have_text("Question 2 of 3")
    person.context.set_offline(True)
    person.answer("2 of 3", "home")
    person.answer("3 of 3", "7")
    expect(person.page.locator(".answers > li").last).to_contain_text("Your answer is kept here")
    expect(person.page.locator(".answers > li").first).to_contain_text("has been received")
    person.check()
    person.context.set_offline(False)
    person.received(3)
    assert sum(cost(person).values()) == Decimal("1.5")


@pytest.mark.long
def test_what_was_learnt_of_each_question_is_shown(service: Collector, visitor: Callable[..., Visitor]) -> None:
    ending = {"levels": [{"epsilon": "4"}], "target": {"half_width": 0.2}, "publish": {"least": 20}}
    name = f"r-{uuid.uuid4().hex[:12]}"
    asked = [
        {"id": f"{name}-{each}", "question": QUESTIONS[each][0], "encoding": QUESTIONS[each][1], **ending}
        for each in ("diet", "lunch")
    ]
    survey(service, id=name, questions=asked, cross=[], shows_results=True, suggested="8")
    person = visitor(name)
    person.limit(1)  # for both of them
    person.answer("1 of 2", "meat")
    person.answer("2 of 2", "home")
    person.received(2)
    expect(person.page.locator("#results")).to_be_hidden()
    service.others_answer(f"{name}-diet", ["meat", "roots"] * 50)
    service.others_answer(f"{name}-lunch", ["home", "canteen"] * 50)
    late = visitor(name)
    expect(late.page.locator("#problem-title")).to_have_text("This survey has finished")
    person.page.reload()
    for each in (person, late):
        shown = each.page.locator("#results")
        expect(shown.get_by_role("heading", level=3)).to_have_text([QUESTIONS["diet"][0], QUESTIONS["lunch"][0]])
        expect(shown.get_by_text("From the reports of 101 people together")).to_have_count(2)
        pages = [link.get_attribute("href") for link in shown.get_by_role("link").all()]
        assert pages == [f"{service.url}/published/{name}-{question}" for question in ("diet", "lunch")]
        each.check()


@pytest.mark.long
def test_closed_and_invited(service: Collector, visitor: Callable[..., Visitor]) -> None:
    name = survey(service)
    service.operator.act_survey(name, "finish")
    person = visitor(name)
    expect(person.page.locator("#problem-title")).to_have_text("This survey has finished")
    questions = [
        {"question": question, "encoding": encoding, "levels": LEVELS, "invitations": True}
        for question, encoding in QUESTIONS.values()
    ]
    name = survey(service, questions=questions, cross=[])
    person = visitor(name)
    person.page.locator("#invitation-text").fill("wrong")
    person.page.locator("#invitation-form button").click()
    expect(person.page.locator("#invitation-wrong")).to_be_visible()
    [good] = service.operator.invite_to_survey(name, 1)
    person.page.locator("#invitation-text").fill(good)
    person.page.locator("#invitation-form button").click()
    expect(person.page.locator("#limit-together")).to_contain_text("Your invitation goes along")
    person.limit(4)
    for place, value in (("1 of 3", "meat"), ("2 of 3", "home"), ("3 of 3", "7")):
        person.answer(place, value)
    person.received(3)
    assert re.fullmatch(r"[\w-]+", good)
    unknown = visitor("nothing-here")
    expect(unknown.page.locator("#problem-text")).to_contain_text("There is no survey at this address")
