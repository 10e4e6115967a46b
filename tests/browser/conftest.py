"""Shared by the tests of pages: one browser, one collector and one market for a file of tests."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser
from tests.browser.browsers import BROWSERS
from tests.browser.bundles import esbuild
from tests.browser.market_scene import Market, New, open_visits, run_market
from tests.browser.survey_person import Collector, Person, collector

from relaxdp.service.bundle import build
from relaxdp.service.page_files import SETTING


@pytest.fixture(scope="session", autouse=True)
def sources_are_served() -> Iterator[None]:
    """Pages load modules, whatever was built here: what fails then has a name and a line."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(SETTING, "off")
        yield


@pytest.fixture(scope="module")
def bundle_is_served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Pages load what a wheel has, for a file of tests that asks for it before its services."""
    folder = tmp_path_factory.mktemp("pages") / "bundled"
    build(esbuild(), bundle=folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(SETTING, str(folder))
        yield


@pytest.fixture(scope="module")
def browser(request: pytest.FixtureRequest) -> Iterator[Browser]:
    """Chromium, unless a test asks for another one (`in_both`)."""
    with BROWSERS[getattr(request, "param", "chromium")]() as running:
        yield running


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Collector]:
    with collector(tmp_path_factory.mktemp("collector")) as running:
        yield running


@pytest.fixture
def person(browser: Browser, service: Collector) -> Iterator[Callable[..., Person]]:
    """Return a new person, in a browser that has kept nothing, each time that it is called."""
    people: list[Person] = []

    def make(campaign: str | None = None, **options: Any) -> Person:
        people.append(
            Person(browser.new_context(**{"locale": "en-GB", **options}), service, campaign or service.create())
        )
        return people[-1]

    yield make
    for each in people:
        each.context.close()
    assert [problem for each in people for problem in each.problems] == []


@pytest.fixture(scope="module")
def market(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Market]:
    with run_market(tmp_path_factory.mktemp("market")) as started:
        yield started


@pytest.fixture
def visitor(browser: Browser, market: Market) -> Iterator[New]:
    """Return a new visitor of the market's page, each time that it is called."""
    with open_visits(browser, market) as make:
        yield make
