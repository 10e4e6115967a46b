"""A fresh campaign leads to sharing: link, copy, a piece of HTML; and invitations are links of their own."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, expect
from tests.browser.dashboard_operator import Operator, commute, report_all
from tests.servers.collectors import Running, running


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    folder = tmp_path_factory.mktemp("sharing")
    with running(f"sqlite:///{folder / 'collector.db'}", folder) as started:
        yield started


@pytest.fixture
def operator(browser: Browser, server: Running) -> Iterator[Operator]:
    someone = Operator(browser, server, permissions=["clipboard-read", "clipboard-write"])
    someone.sign_in()
    yield someone
    someone.leave()


def test_a_fresh_campaign_leads_to_sharing(operator: Operator, server: Running) -> None:
    name = commute(server)
    operator.campaign(name)
    page, address = operator.page, f"{server.base}/survey/{name}"
    expect(page.locator("main section").nth(1).get_by_role("heading")).to_have_text("Share the survey")
    expect(page.get_by_role("link", name="Open it as people see it")).to_have_attribute("href", address)
    page.get_by_role("button", name="Copy: Link").click()
    expect(page.get_by_role("button", name="Copy: Link")).to_have_text("Copied")
    assert page.evaluate("navigator.clipboard.readText()") == address
    page.get_by_text("Show it inside your own site").click()
    expect(page.locator("pre")).to_contain_text(f'<iframe src="{address}"')
    report_all(server, name, devices=10)
    operator.look()
    expect(page.get_by_text("Too few reports yet: about")).to_have_count(2)
    expect(page.locator(".answer")).to_be_hidden()  # an interval that says nothing is no estimate
    report_all(server, name, seed=2)
    operator.look()
    expect(page.locator(".answer")).to_be_visible()
    page.reload()
    expect(page.locator("main section").nth(1).get_by_role("heading")).to_have_text("What is known now")


def test_invitations_are_links(operator: Operator, server: Running) -> None:
    name = commute(server, invitations=True)
    operator.campaign(name)
    page = operator.page
    page.get_by_label("How many").fill("2")
    page.get_by_role("button", name="Make invitations").click()
    page.get_by_role("button", name="Copy: 2 invitations").click()
    expect(page.get_by_role("status")).to_contain_text("Copied")
    links = page.evaluate("navigator.clipboard.readText()").split("\n")
    assert len(set(links)) == 2
    assert all(re.fullmatch(rf"{server.base}/survey/{name}#invitation=[\w-]+", each) for each in links)
    assert page.evaluate("localStorage.length + sessionStorage.length") == 1  # the token
