"""What people came for, from beginning to end, in both browsers and with the bundles that a wheel has."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, expect
from tests.browser.browsers import in_both, saved
from tests.browser.dashboard_operator import PHONE, VALUES, Operator, report_all
from tests.browser.survey_person import Collector, Person, collector
from tests.patience import PATIENCE
from tests.servers.collectors import Running, running

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def service(bundle_is_served: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Collector]:
    with collector(tmp_path_factory.mktemp("collector")) as started:
        yield started


@pytest.fixture(scope="module")
def server(bundle_is_served: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    folder = tmp_path_factory.mktemp("journeys")
    with running(f"sqlite:///{folder / 'collector.db'}", folder) as started:
        yield started


@in_both()
def test_a_survey_on_a_phone(service: Collector, person: Callable[..., Person]) -> None:
    """Answer, follow the campaign as it relaxes, come back later, in another language too, and see it end."""
    someone = person(viewport=PHONE)
    assert any("/bundle/survey/main.js" in request.url for request in someone.requests)
    someone.answer("fruit")
    assert service.devices(someone.campaign) == [1, 0, 0]
    service.act(someone.campaign, "relax")
    someone.look()
    someone.received(2)
    assert service.devices(someone.campaign) == [0, 1, 0]
    record = someone.kept()
    assert [(sent["epsilon"], sent["status"]) for sent in record["sent"]] == [("0.5", "sent"), ("1", "sent")]
    someone.page.reload()
    someone.received(2)
    assert someone.kept() == record
    for language, heading in (
        ("Deutsch", "Ihre Antwort, und was gesendet wurde"),
        ("English", "Your answer, and what"),
    ):
        someone.page.get_by_role("button", name=language).click()
        expect(someone.page.get_by_role("heading", name=heading)).to_be_visible()
    service.act(someone.campaign, "finish")
    someone.look()
    someone.now("The survey has finished")
    assert someone.kept()["key"] is None
    assert all(request.url.startswith(service.url) for request in someone.requests), "nobody else was asked"


@pytest.mark.long
@in_both()
def test_a_campaign_from_its_question_to_its_file(browser: Browser, server: Running, tmp_path: Path) -> None:
    """Create, share, answer on a phone, relax, see the interval narrow, end, export; `relaxdp estimate` agrees."""
    someone = Operator(browser, server)
    someone.sign_in()
    name = someone.create("How did you get to work?", VALUES, "0.5, 1, 2")
    assert someone.link() == f"{server.base}/survey/{name}"
    report_all(server, name)
    phone: dict[str, Any] = {"viewport": PHONE}
    guest = Person(browser.new_context(**phone), Collector(server.folder, server.base, server.token), name)
    guest.answer(VALUES[2])
    guest.received(1)
    someone.look()
    someone.fact("Devices", "4,001")
    first = someone.widths()
    someone.step("Relax to ε 1", "Relax to ε 1")
    guest.look()
    guest.received(2)
    report_all(server, name)
    someone.look()
    expect(someone.page.locator(".levels tbody tr").nth(1)).to_contain_text("4,001")
    assert all(new < 0.7 * old for old, new in zip(first, someone.widths(), strict=True))
    someone.step("Finish …", "Finish")
    someone.fact("State", "ended")
    saved(someone.page, someone.page.get_by_role("button", name="Download reports").click, tmp_path / "reports.parquet")
    words = [sys.executable, "-m", "relaxdp", "estimate", str(tmp_path / "reports.parquet"), "--json"]
    done = subprocess.run(words, capture_output=True, text=True, check=True, timeout=PATIENCE)
    (group,) = json.loads(done.stdout)["groups"]
    told = server.ask("GET", f"/v1/campaigns/{name}/estimate", operator=True).json["levels"][1]
    found = {row["value"]: row["estimate"] for row in group["estimates"]}
    assert found == pytest.approx({row["value"]: row["estimate"] for row in told["rows"]})
    guest.context.close()
    assert guest.problems == []
    someone.leave()
