"""The page of what a campaign has published: readable everywhere, and made of words only."""

from __future__ import annotations

import os

import pytest
from playwright.sync_api import Browser, expect
from tests.browser.survey_person import Collector, overflow, violations
from tests.patience import PATIENCE, until

QUESTION = (
    "How do you come to <b>work</b> & back, Donaudampfschifffahrtsgesellschaftskapitänsversicherungspolicenverwaltung?"
)
VALUES = ["on foot", "<i>by bicycle</i>", "by bus or train", "by Donaudampfschifffahrtsgesellschaftskapitänsschiff"]


@pytest.fixture(scope="module")
def address(browser: Browser, service: Collector) -> str:
    """Return the page of a campaign that ended with the last report that its target needs."""
    name = service.create(
        question=QUESTION,
        encoding={"name": "categorical", "values": VALUES},
        levels=[{"epsilon": "1"}, {"epsilon": "2", "opens": "2001-01-01T00:00:00Z"}],
        target={"half_width": 0.1},
        publish={"least": 300},
    )
    levels = service.operator.status(name)["levels"]
    reports = [
        {"device": os.urandom(16).hex(), "level": levels[number >= 350], "report": VALUES[number % 10 % 4]}
        for number in range(1_000)
    ]
    asked = browser.new_context().request
    assert asked.post(f"{service.url}/v1/campaigns/{name}/reports/batch", data={"reports": reports}).ok
    address = f"{service.url}/published/{name}"
    until(lambda: asked.get(address, timeout=PATIENCE * 1_000).ok)
    return address


@pytest.mark.long
@pytest.mark.parametrize(("width", "scheme"), [(390, "dark"), (390, "light"), (1280, "light")])
def test_readable_everywhere(browser: Browser, address: str, width: int, scheme: str) -> None:
    page = browser.new_page(viewport={"width": width, "height": 740}, color_scheme=scheme)  # type: ignore[arg-type]
    problems: list[str] = []
    page.on("console", lambda message: problems.append(message.text))
    page.goto(address)
    expect(page.get_by_role("heading", level=1)).to_have_text(QUESTION)
    expect(page.get_by_role("rowheader")).to_have_text(VALUES)
    expect(page.get_by_text("350 devices at epsilon 1 and 650 devices at epsilon 2")).to_be_visible()
    assert (violations(page), overflow(page), problems) == ([], 0, [])
    page.get_by_role("link", name="The same as a file").click()
    expect(page.locator("body")).to_contain_text('"public_epsilon"')
    page.close()
