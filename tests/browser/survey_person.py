"""A person in a browser of their own, and a collector to answer to: what the tests of the survey page share."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request as Asking
from urllib.request import urlopen

from playwright.sync_api import BrowserContext, Page, Request, expect
from tests.patience import PATIENCE, until

from relaxdp.device.address import Server
from relaxdp.device.operator import Operator

VALUES = ["crisps", "fruit", "none"]
SERIOUS = ("serious", "critical")


class Collector:
    """A real service in a process of its own, with its operator."""

    def __init__(self, folder: Path, url: str, token: str) -> None:
        self.folder, self.url = folder, url
        self.operator = Operator(Server.parse(url), token)

    def create(self, **asked: Any) -> str:
        """Open a campaign and return its name."""
        campaign = {
            "id": f"c-{uuid.uuid4().hex[:12]}",
            "question": "What did you eat last?",
            "encoding": {"name": "categorical", "values": VALUES},
            "levels": [{"epsilon": epsilon} for epsilon in ("0.5", "1", "2")],
        }
        self.operator.create(campaign | asked)
        return str((campaign | asked)["id"])

    def act(self, campaign: str, deed: str) -> None:
        """Relax, pause, resume or finish."""
        self.operator.act(campaign, deed)

    def devices(self, campaign: str) -> list[int]:
        """How many devices stand at each level."""
        status = self.operator.status(campaign)
        per_level: list[int] = status["devices"]["per_level"]
        return per_level

    def others_answer(self, campaign: str, answers: Sequence[object]) -> None:
        """Have a campaign that publishes ended by so many reports more, straight to the service."""
        place = f"{self.url}/v1/campaigns/{campaign}"
        level = self.operator.status(campaign)["levels"][0]
        reports = [{"device": uuid.uuid4().hex, "level": level, "report": answer} for answer in answers]
        body = json.dumps({"reports": reports}).encode()
        with urlopen(Asking(f"{place}/reports/batch", body, {"content-type": "application/json"})) as answered:
            assert set(json.load(answered)["results"]) == {"new"}
        until(lambda: _is_there(f"{place}/published"))

    def bytes(self) -> bytes:
        """Every byte that the service has on disk, the log of its database included."""
        files = [file for file in self.folder.rglob("*") if file.is_file()]
        assert any(file.suffix == ".db" for file in files)
        return b"".join(file.read_bytes() for file in files)


def _is_there(address: str) -> bool:
    try:
        with urlopen(address):
            return True
    except HTTPError:
        return False


@contextmanager
def collector(folder: Path, *options: str) -> Iterator[Collector]:
    """Run `relaxdp serve` on loopback, with an empty database in a folder."""
    token_file = folder.parent / f"{folder.name}-token"
    words = ["serve", "--db", f"sqlite:///{folder / 'collector.db'}", "--port", "0", "--rate", "0", *options]
    process = subprocess.Popen(
        [sys.executable, "-m", "relaxdp", *words, "--token-file", str(token_file), "--no-request-log"],
        stdout=subprocess.PIPE,
        text=True,
    )
    with process:
        try:
            assert process.stdout is not None
            lines = iter(process.stdout.readline, "")
            found = next(found for line in lines if (found := re.search(r"listening on (http://\S+)", line)))
            yield Collector(folder, found[1], token_file.read_text("utf-8").strip())
        finally:
            process.terminate()
            process.wait(PATIENCE)


class Person:
    """One person, with one browser profile, in front of the survey page. Everything that leaves the page is kept."""

    def __init__(self, context: BrowserContext, collector: Collector, campaign: str) -> None:
        self.context, self.collector, self.campaign = context, collector, campaign
        self.requests: list[Request] = []
        self.problems: list[str] = []
        context.set_default_timeout(1000 * PATIENCE)
        context.on("request", lambda request: self.requests.append(request))  # noqa: PLW0108 (playwright marks it)
        context.on("weberror", lambda error: self.problems.append(str(error.error)))
        self.page = self.open()

    def open(self, more: str = "") -> Page:
        """Open the survey in a tab."""
        page = self.context.new_page()
        page.goto(f"{self.collector.url}/survey/{self.campaign}{more}")
        return page

    def view(self, name: str) -> None:
        """Wait until this view is shown."""
        expect(self.page.locator(f"#{name}")).to_be_visible()

    def limit(self, step: int = 0) -> None:
        """Choose a limit: the first one that is offered, or one that many steps further."""
        self.view("limit")
        assert self.page.locator("#limit-choices :checked").count() == 0, "nothing is chosen for anybody"
        self.page.locator("#limit-choices input").nth(step).check()
        self.page.locator("#limit-form button").click()
        self.view("question")

    def choose(self, value: str) -> None:
        """Answer with one of the values."""
        self.page.get_by_label(value, exact=True).check()
        self.send()

    def send(self) -> None:
        """Press the button under the question."""
        self.page.locator("#question-form button").click()
        self.view("status")

    def answer(self, value: str = "fruit", *, step: int = 2) -> None:
        """Everything up to the first report that the server has."""
        self.limit(step)
        self.choose(value)
        self.received(1)

    def received(self, number: int) -> None:
        """Wait until the page shows that so many reports were received."""
        expect(self.page.locator(".badge.sent")).to_have_count(number)

    def now(self, text: str | re.Pattern[str]) -> None:
        """Wait until the page says this of what is going on."""
        expect(self.page.locator("#status-now")).to_contain_text(text)

    def look(self) -> None:
        """Press the button that asks for news."""
        self.page.get_by_role("button", name="Look for news").click()

    @property
    def bodies(self) -> list[dict[str, Any]]:
        """What was posted to the campaign, in order."""
        posted = [request for request in self.requests if request.method == "POST"]
        assert all(request.url.startswith(f"{self.collector.url}/v1/campaigns/{self.campaign}/") for request in posted)
        return [json.loads(request.post_data or "") for request in posted]

    @property
    def reports(self) -> list[dict[str, Any]]:
        """The bodies that are reports."""
        return [body for body in self.bodies if "report" in body]

    def everything(self) -> bytes:
        """Every byte that left the page: addresses, headers and bodies."""
        parts = [[request.url, json.dumps(request.headers), request.post_data or ""] for request in self.requests]
        return "\n".join(text for each in parts for text in each).encode()

    def kept(self) -> dict[str, Any]:
        """What this browser keeps of the campaign, secrets included."""
        text = self.page.evaluate(READ)
        campaigns = {each["address"]: each for each in json.loads(text)["campaigns"]}
        record: dict[str, Any] = campaigns[f"{self.collector.url}/v1/campaigns/{self.campaign}"]
        return record


READ = """() => new Promise((resolve, reject) => {
  const opening = indexedDB.open("relaxdp device", 1);
  opening.onerror = reject;
  opening.onsuccess = () => {
    const reading = opening.result.transaction("device").objectStore("device").get("state");
    reading.onsuccess = () => { opening.result.close(); resolve(reading.result); };
  };
})"""

CLEAR = """() => new Promise((resolve, reject) => {
  const deleting = indexedDB.deleteDatabase("relaxdp device");
  deleting.onsuccess = resolve;
  deleting.onerror = deleting.onblocked = reject;
})"""


def violations(page: Page) -> list[str]:
    """What axe finds to be serious, in what is shown now."""
    from axe_playwright_python.sync_playwright import Axe  # noqa: PLC0415

    found = Axe().run(page).response["violations"]
    return [f"{each['id']}: {each['nodes'][0]['html']}" for each in found if each["impact"] in SERIOUS]


def overflow(page: Page) -> int:
    """By how many pixels the page is wider than its window."""
    wide: int = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
    return wide
