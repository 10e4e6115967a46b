"""The dashboard's page of a survey: questions side by side, and the table of those that are counted together."""

from __future__ import annotations

import json
import re
from urllib.request import Request, urlopen

import numpy as np
import pytest
from playwright.sync_api import Browser, expect
from tests.browser.survey_person import Collector, overflow, violations
from tests.browser.test_survey_several import survey
from tests.patience import PATIENCE

DEVICES = 900
LOOK = "window.dispatchEvent(new Event('online'))"


@pytest.mark.parametrize(("width", "scheme"), [(390, "light"), pytest.param(1280, "dark", marks=pytest.mark.long)])
def test_results_side_by_side_and_a_table(browser: Browser, service: Collector, width: int, scheme: str) -> None:
    """Answers that always go together show in the table, where nothing is told before enough is known."""
    name = survey(service)
    for _ in range(2):
        service.operator.act_survey(name, "relax")
    context = browser.new_context(viewport={"width": width, "height": 844}, color_scheme=scheme)  # type: ignore[arg-type]
    context.set_default_timeout(1000 * PATIENCE)
    page = context.new_page()
    problems: list[str] = []
    context.on("weberror", lambda error: problems.append(str(error.error)))
    page.goto(f"{service.url}/")
    page.get_by_label("Operator’s token").fill(service.operator._headers["Authorization"].removeprefix("Bearer "))
    page.keyboard.press("Enter")
    page.locator(f"a[href='#survey/{name}']").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("How you eat")
    expect(page.get_by_text("Nobody has answered both yet.")).to_be_visible()
    report(service, name, 12)
    page.evaluate(LOOK)
    expect(page.get_by_text("Too few reports yet").first).to_be_visible()
    assert page.locator(".two-way").count() == 0
    report(service, name, DEVICES)
    page.evaluate(LOOK)
    table = page.locator(".two-way")
    expect(table).to_contain_text("leaves")
    rows = table.locator("tbody tr")
    shares = [[float(each.split(" %")[0]) for each in rows.nth(row).locator("td").all_inner_texts()] for row in (0, 2)]
    assert shares[0][0] > shares[0][1]
    assert shares[1][1] > shares[1][0]
    assert violations(page) == []
    assert overflow(page) <= 0
    page.get_by_role("button", name="End all questions").click()
    page.get_by_role("button", name="End", exact=True).click()
    expect(page.locator(".questions .card").first).to_contain_text(re.compile("finished|ended"))
    context.close()
    assert problems == []


def report(service: Collector, name: str, devices: int) -> None:
    """Let devices report by the law of the last level: who eats meat has lunch in the canteen, all others at home."""
    rng = np.random.default_rng(5)
    diets = rng.integers(3, size=devices)
    for question, values, truths in (
        ("diet", ["meat", "roots", "leaves"], diets),
        ("lunch", ["canteen", "home"], np.minimum(diets, 1)),
    ):
        campaign = service.operator.status(f"{name}-{question}")
        kept = rng.random(devices) < np.expm1(2) / (np.exp(2) + len(values) - 1)
        drawn = np.where(kept, truths, rng.integers(len(values), size=devices))
        reports = [
            {"device": f"{devices * 10_000 + place:032x}", "level": campaign["levels"][2], "report": values[value]}
            for place, value in enumerate(drawn)
        ]
        asked = Request(
            f"{service.url}/v1/campaigns/{name}-{question}/reports/batch",
            json.dumps({"reports": reports}).encode(),
            {"content-type": "application/json"},
        )
        with urlopen(asked) as answer:
            assert set(json.load(answer)["results"]) == {"new"}
