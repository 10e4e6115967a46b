"""A survey of several questions is written in the form of a new campaign, and leads to its link."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect
from tests.browser.dashboard_operator import PHONE, Operator
from tests.browser.survey_person import overflow, violations
from tests.servers.collectors import Running, running


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    folder = tmp_path_factory.mktemp("several")
    with running(f"sqlite:///{folder / 'collector.db'}", folder) as started:
        yield started


@pytest.fixture
def operator(browser: Browser, server: Running) -> Iterator[Operator]:
    someone = Operator(browser, server, viewport=PHONE)
    someone.sign_in()
    yield someone
    someone.leave()


def press(page: Page, name: str) -> None:
    """Press a button with the keyboard."""
    page.get_by_role("button", name=name).focus()
    page.keyboard.press("Enter")


def focused(page: Page) -> str:
    """The name of the field that the keyboard writes into."""
    return str(page.evaluate("document.activeElement.name"))


def test_two_questions_and_their_table_are_created(operator: Operator, server: Running) -> None:
    """With the keyboard: a question too many is removed, mistakes stand at their fields, a reload loses nothing."""
    page = operator.page
    page.goto(f"{server.base}/#new")
    page.locator("#question").fill("What do you eat?")
    page.locator("#values").fill("meat\nroots\nleaves")
    page.locator("#levels").fill("0.1, 0.7")
    for place in (2, 3):
        press(page, "Add another question")
        assert focused(page) == f"question-{place}"
    page.locator("#question-2").fill("One too many?")
    page.locator("#question-3").fill("Where do you have lunch?")
    page.get_by_label("1. What do you eat? – with – 3. Where do you have lunch?").check()
    press(page, "Remove question 2")
    assert focused(page) == "question-2"
    expect(page.locator(".pairs input")).to_have_count(1)
    expect(page.get_by_label("1. What do you eat? – with – 2. Where do you have lunch?")).to_be_checked()
    expect(page.locator(".several > .hint")).to_contain_text("gives away ε 1.4.")
    press(page, "Create the survey")
    expect(page.locator("#values-2-wrong")).to_have_text("At least two answers are needed, each on a line of its own.")
    assert focused(page) == "values-2"
    page.keyboard.type("canteen\nhome")
    expect(page.locator("[aria-invalid]")).to_have_count(0)
    odds = page.get_by_role("complementary").locator("tbody tr td:last-child")
    expect(odds).to_have_text(["× 1.22", "× 4.06"])  # e^0.2 and e^1.4: reports to both questions count
    page.locator("#about").fill("How you eat")
    page.locator("#suggested").select_option("1.4")
    assert violations(page) == []
    assert overflow(page) <= 0
    press(page, "Create the survey")

    operator.heading("How you eat")
    name = page.url.rpartition("/")[2]
    expect(page.get_by_role("link", name="Open it as people see it")).to_have_attribute(
        "href", f"{server.base}/surveys/{name}"
    )
    assert violations(page) == []
    assert overflow(page) <= 0
    made = server.ask("GET", f"/v1/surveys/{name}").json
    assert made["cross"] == [[f"{name}-1", f"{name}-2"]]
    assert (made["about"], made["suggested"]) == ("How you eat", "1.4")
    assert [(each["question"], each["encoding"]["values"]) for each in made["questions"]] == [
        ("What do you eat?", ["meat", "roots", "leaves"]),
        ("Where do you have lunch?", ["canteen", "home"]),
    ]
    assert [[level["epsilon"] for level in each["levels"]] for each in made["questions"]] == [["0.1", "0.7"]] * 2

    page.get_by_role("link", name="All campaigns").click()
    card = page.get_by_role("article")
    expect(card).to_have_count(1)
    expect(card.get_by_role("listitem")).to_contain_text(["What do you eat?", "Where do you have lunch?"])
    assert violations(page) == []
