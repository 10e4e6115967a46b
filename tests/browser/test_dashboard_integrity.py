"""The dashboard's card on fabricated reports, in a real browser."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, expect
from tests.browser.dashboard_operator import PHONE, Operator
from tests.browser.survey_person import overflow, violations
from tests.servers.collectors import Running, running

import relaxdp as rx

VALUES = ["by car", "by bus", "on foot", "by air"]
LEVELS = [{"epsilon": "0.5"}, {"epsilon": "2"}]
HONEST, FAKES, ALONE = 1_500, 200, 100


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    folder = tmp_path_factory.mktemp("integrity")
    with running(f"sqlite:///{folder / 'collector.db'}", folder) as started:
        yield started


def fill(server: Running, fakes: int) -> str:
    """A campaign with honest devices, some that came late, and some that always send one answer."""
    made = server.create(
        question="How do you travel?", encoding={"name": "categorical", "values": VALUES}, levels=LEVELS
    )
    path = f"/v1/campaigns/{made['id']}"
    answers, key = rx.Categorical(VALUES), rx.Key.from_bytes(bytes(range(32)))
    truths = [VALUES[number % 3] for number in range(HONEST + ALONE)]
    names = [os.urandom(16).hex() for _ in range(HONEST + ALONE + fakes)]
    for level, each in enumerate(LEVELS):
        where = {"key": key, "name": made["id"], "column": "answer"}
        reports = answers.release(truths, list(range(len(truths))), epsilon=each["epsilon"], **where)
        sent = list(zip(names, [*reports, *["by air"] * fakes], strict=True))
        sent = sent if level == 0 else sent[:HONEST] + sent[HONEST + ALONE :]
        batches = [
            [
                {"device": name, "level": made["levels"][level], "report": report}
                for name, report in sent[start : start + 900]
            ]
            for start in range(0, len(sent), 900)
        ]
        for batch in batches:
            assert server.ask("POST", f"{path}/reports/batch", {"reports": batch}).status == 200
        server.ask("POST", f"{path}/relax", operator=True)
    return str(made["id"])


def test_fabricated_reports_are_shown_with_what_cannot_be_detected(browser: Browser, server: Running) -> None:
    someone = Operator(browser, server)
    someone.sign_in()
    for fakes in (0, FAKES):
        someone.campaign(fill(server, fakes))
        card = someone.page.locator("section.card", has=someone.page.get_by_role("heading", name="Fabricated reports"))
        words = "Fabricated reports were noticed: at least" if fakes else "Nothing was noticed. About "
        expect(card).to_contain_text(words)
        expect(card).to_contain_text(f"{HONEST + fakes:,} of {HONEST + ALONE + fakes:,} devices have two reports")
        expect(card).to_contain_text("lie about their true value", ignore_case=True)
        expect(card).to_contain_text("only invitations help")
        expect(card).to_contain_text("can repeat every report without being noticed")
        if fakes:
            expect(card.get_by_role("table", name="Pushed answers.")).to_contain_text("by airsent again too often")
            expect(card).to_contain_text("Without fabricated ones")
    assert violations(someone.page) == []
    someone.page.set_viewport_size({"width": PHONE["width"], "height": PHONE["height"]})
    assert overflow(someone.page) <= 0
    someone.leave()
