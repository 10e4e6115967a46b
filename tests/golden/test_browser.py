"""Browser devices: in real Chromium they send the same reports as Python devices with the same secrets."""

from __future__ import annotations

import re
import subprocess
import tarfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext
from tests.browser.browsers import SITE, STRANGER, chromium
from tests.golden import recorded
from tests.golden.driver_browser import BrowserDevice, SurveyVisitor, answer_in_frame, make_package
from tests.golden.driver_server import Device, Question, Service, serve
from tests.golden.people import secrets_of
from tests.patience import PATIENCE

LEVELS = ("0.5", "1", "2")
SHOP = "https://www.shop.example"
NewContext = Callable[[], BrowserContext]


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with serve(tmp_path_factory.mktemp("service"), "--embed", SITE) as running:
        yield running


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as running:
        yield running


@pytest.fixture
def new_context(browser: Browser) -> Iterator[NewContext]:
    """Return a function that makes a browser profile which has kept nothing."""
    made: list[BrowserContext] = []

    def make() -> BrowserContext:
        made.append(browser.new_context(locale="en-GB"))
        return made[-1]

    yield make
    for each in made:
        each.close()


def test_browser_devices_and_python_devices_send_the_same_reports(
    service: Service, new_context: NewContext, tmp_path: Path
) -> None:
    """Every mechanism, a crosstab, and a limit that leaves questions out; one device of each kind per person.

    Both devices of a person have the same secrets, so the service takes the second one's reports as known.
    """
    cities = tuple(f"city {number}" for number in range(6))
    questions = [
        Question("diet", LEVELS, values=("meat", "vegetarian", "vegan")),
        Question("lunch", LEVELS, values=("canteen", "home")),
        Question("city-oue", ("1", "2"), values=cities, mechanism="OUE"),
        Question("city-sue", ("1", "2"), values=cities, mechanism="SUE"),
        Question("city-olh", ("1", "2"), values=cities, mechanism="OLH", options={"buckets": 3}),
        Question("years", ("1", "2"), range=(0, 120), mechanism="mean"),
        Question("minutes", ("1", "2"), range=(0, 90), mechanism="square wave", options={"bins": 24, "window": 8}),
        Question("word", ("1", "2"), words=("tea", "coffee"), mechanism="RAPPOR",
                 options={"bits": 32, "hashes": 2, "cohorts": 4}),
    ]  # fmt: skip
    campaign = service.create_campaign("everything", *questions, crosstabs=[("diet", "lunch")])
    limits = {200: "5.5", 201: "16", 202: "10"}
    devices: list[tuple[Any, Any]] = [
        (
            BrowserDevice(new_context(), service, "20", secrets_of(number)),
            Device(tmp_path / str(number), "20", secrets_of(number)),
        )
        for number in limits
    ]
    given = []
    for (number, limit), pair in zip(limits.items(), devices, strict=True):
        first, second = (device.join(campaign, limit=limit) for device in pair)
        assert first == second
        given.append(first)
        answers: dict[str, Any] = dict.fromkeys(("city-oue", "city-sue", "city-olh"), cities[number % 6])
        answers |= {
            "diet": "vegan",
            "lunch": "home",
            "years": number % 100,
            "minutes": 7.5 * (number % 9),
            "word": "tea",
        }
        for device in pair:
            device.answer({name: answer for name, answer in answers.items() if name in first})
    for level in LEVELS:
        for in_browser, _ in devices:
            in_browser.report()
        arrived = campaign.counts()
        for in_browser, in_python in devices:
            in_python.report()
            assert in_browser.sent() == in_python.sent()
            assert in_browser.costs() == in_python.costs()
        assert campaign.counts() == arrived  # the same reports of the same devices
        if level != "2":
            campaign.relax()
    found = {
        "given": given,
        "reports": [in_python.sent() for _, in_python in devices],
        "costs": [in_python.costs() for _, in_python in devices],
        "counts": campaign.counts(),
        "crosstabs": campaign.crosstabs(),
    }
    devices[1][0].withdraw()
    found["counts_after_a_withdrawal"] = campaign.counts()
    recorded.check("browser-and-python-devices", found)


def test_a_person_on_the_survey_page(service: Service, new_context: NewContext, tmp_path: Path) -> None:
    """A person sets a limit, answers, and sees the next report leave when the campaign relaxes."""
    question = Question("commute", LEVELS, values=("car", "bus", "bicycle"))
    campaign = service.create_campaign("commute", question)
    visitor = SurveyVisitor(new_context(), campaign, secrets_of(210))
    visitor.set_limit("1")
    visitor.answer("bicycle")
    campaign.relax()
    visitor.look_for_news(reports=2)
    campaign.relax()  # above the person's limit: nothing more is sent

    device = Device(tmp_path / "device", "1", secrets_of(210))
    device.join(campaign, limit="1")
    device.answer({"commute": "bicycle"})
    device.report()
    assert device.sent()["commute"]["1"] == visitor.sent()["1"]
    recorded.check("survey-page", {"reports": visitor.sent(), "counts": campaign.counts()["commute"]})


def test_pages_of_other_sites(service: Service, new_context: NewContext, tmp_path: Path) -> None:
    """A page with the device module behind its own address, and the survey in a frame of a site that may show it."""
    campaign = service.create_campaign("smoker", Question("smoker", LEVELS, values=("no", "sometimes", "yes")))
    embedded = BrowserDevice(new_context(), service, "2", secrets_of(220), site=SHOP)
    embedded.join(campaign)
    embedded.answer({"smoker": "sometimes"})
    embedded.report()
    device = Device(tmp_path / "device", "2", secrets_of(220))
    device.join(campaign)
    device.answer({"smoker": "sometimes"})
    device.report()
    assert device.sent() == embedded.sent()
    found: dict[str, Any] = {"reports": embedded.sent(), "counts": [campaign.counts()["smoker"]]}
    assert answer_in_frame(new_context(), campaign, SITE, "no")
    assert not answer_in_frame(new_context(), campaign, STRANGER, "no")
    found["counts"].append(campaign.counts()["smoker"])
    recorded.check("embedding", found)


@pytest.mark.long
def test_the_vectors_of_the_npm_package(node: str, tmp_path: Path) -> None:
    """The package for npm brings the frozen vectors along, and they pass in Node."""
    with tarfile.open(make_package(tmp_path)) as archive:
        archive.extractall(tmp_path, filter="data")
    done = subprocess.run(
        [node, "--test"], cwd=tmp_path / "package", capture_output=True, text=True, timeout=PATIENCE, check=False
    )
    assert done.returncode == 0, done.stdout[-2000:]
    passed = re.search(r"^# pass (\d+)$", done.stdout, flags=re.MULTILINE)
    assert passed is not None
    assert int(passed[1]) > 40
