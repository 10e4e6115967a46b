"""An operator in front of the dashboard, and a fleet of devices that answers: what the dashboard's tests share."""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import urlsplit

from playwright.sync_api import Browser, Page, Request, expect
from tests.patience import PATIENCE
from tests.servers.collectors import Running

from relaxdp.device.address import CampaignAddress, Server
from relaxdp.device.client import Client
from relaxdp.device.participation import ask_offer
from relaxdp.device.simulate import Fleet

PHONE = {"width": 390, "height": 844}
DESKTOP = {"width": 1280, "height": 800}
VALUES = ["by car", "by bus", "on foot"]


class Operator:
    """One operator, with one browser profile. Everything that leaves the page is kept."""

    def __init__(self, browser: Browser, server: Running, **options: Any) -> None:
        self.server = server
        self.context = browser.new_context(**{"viewport": DESKTOP, **options})
        self.context.set_default_timeout(1000 * PATIENCE)
        self.requests: list[Request] = []
        self.problems: list[str] = []
        self.context.on("request", lambda request: self.requests.append(request))  # noqa: PLW0108 (playwright marks it)
        self.context.on("weberror", lambda error: self.problems.append(str(error.error)))
        self.context.on("console", lambda said: self.problems.append(said.text) if "Policy" in said.text else None)
        self.page = self.open()

    def open(self) -> Page:
        """Open the dashboard in a tab."""
        page = self.context.new_page()
        page.goto(f"{self.server.base}/")
        return page

    def sign_in(self, token: str | None = None) -> None:
        """Type the token and press Enter."""
        self.page.get_by_label("Operator’s token").fill(self.server.token if token is None else token)
        self.page.keyboard.press("Enter")
        if token is None:
            self.heading("Campaigns")

    def heading(self, words: str) -> None:
        """Wait until this page is shown."""
        expect(self.page.get_by_role("heading", level=1)).to_have_text(words)

    def create(self, question: str, values: list[str], levels: str) -> str:
        """Fill in the form of a new campaign, and return the campaign's name."""
        self.page.goto(f"{self.server.base}/#new")
        self.page.get_by_label("Question").fill(question)
        self.page.get_by_label("Possible answers").fill("\n".join(values))
        self.page.get_by_label("Levels").fill(levels)
        self.page.get_by_role("button", name="Create the campaign").click()
        self.heading(question)
        return self.page.url.rpartition("/")[2]

    def link(self) -> str:
        """Return the address that a fresh campaign offers for sharing."""
        return str(self.page.get_by_role("link", name="Open it as people see it").get_attribute("href"))

    def campaign(self, name: str) -> None:
        """Open the page of a campaign, and wait until it is live."""
        self.page.goto(f"{self.server.base}/#campaign/{name}")
        expect(self.page.locator(".live")).to_have_text("live")

    def look(self) -> None:
        """Let the page ask the service now, as it does when the network is back."""
        self.page.evaluate("window.dispatchEvent(new Event('online'))")

    def fact(self, name: str, value: str | re.Pattern[str]) -> None:
        """Wait until a fact about the campaign is shown."""
        expect(self.page.locator(f"dt:text-is('{name}') + dd").first).to_have_text(value)

    def step(self, button: str, yes: str | None = None) -> None:
        """Press a button, and agree where it asks."""
        self.page.get_by_role("button", name=button).first.click()
        if yes is not None:
            self.page.get_by_role("dialog").get_by_role("button", name=yes).click()

    def widths(self) -> list[float]:
        """How wide the intervals of what is known now are, in percentage points."""
        hints = self.page.locator(".answer .hint").all_text_contents()
        ends = [re.fullmatch(r"([0-9.]+) to ([0-9.]+) %", hint) for hint in hints]
        return [float(found[2]) - float(found[1]) for found in ends if found]

    def leave(self) -> None:
        """Close the browser, and look back: nobody outside was asked, and no address had the token."""
        self.context.close()
        assert self.problems == []
        addresses = [request.url for request in self.requests if not request.url.startswith("blob:")]
        assert {urlsplit(url).hostname for url in addresses} == {"127.0.0.1"}
        assert not any(self.server.token in url for url in addresses)


def report_all(server: Running, campaign: str, *, devices: int = 4000, seed: int = 1) -> None:
    """Let simulated devices report at the open level."""
    address = CampaignAddress(Server.parse(server.base), campaign)
    offer = ask_offer(Client(attempts=3), address)
    reports = Fleet(devices, len(offer.values or ()), seed).reports(offer, offer.open[-1])
    for start in range(0, devices, 1000):
        body = {"reports": reports[start : start + 1000]}
        answer = server.ask("POST", f"/v1/campaigns/{campaign}/reports/batch", body)
        assert set(answer.json["results"]) == {"new"}


def commute(server: Running, **more: Any) -> str:
    """Create a campaign and return its name."""
    asked = {
        "question": "How did you get to work?",
        "encoding": {"name": "categorical", "values": VALUES},
        "levels": [{"epsilon": "0.5"}, {"epsilon": "1"}, {"epsilon": "2"}],
        **more,
    }
    return str(server.create(**asked)["id"])
