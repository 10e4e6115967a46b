"""The adapter's part for browsers: the JavaScript device, the survey page, and pages of other sites."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

from playwright.sync_api import BrowserContext, Error, Page, Route, expect
from tests.browser.survey_person import Collector, Person
from tests.golden.driver_server import Campaign, Question, Rejected, Secrets, Service, read_sent
from tests.patience import PATIENCE, until

from packages import npm

IN_BROWSER = """async ({ module, limit }) => {
  const { BrowserStorage, Device } = await import(module);
  const device = await Device.open({ limit });
  const named = (address) => address.split("/").at(-1);
  const questions = async () => (await device.campaigns()).map((each) => [named(each.address), each]);
  window.golden = {
    join: async ({ address, several, limit, invitation }) => {
      const options = { upto: limit, invitation };
      const joined = several
        ? (await device.joinSurvey(address, options)).questions
        : [await device.join(address, options)];
      const consents = joined.map(async (each) => [named(each.address), (await each.details()).consent]);
      return Object.fromEntries(await Promise.all(consents));
    },
    answer: async (answers) => {
      for (const [name, each] of await questions()) if (name in answers) await each.answer(answers[name]);
    },
    report: async () => {
      for (const { problem } of await device.sync()) if (problem !== null) throw problem;
    },
    withdraw: async () => {
      for (const [, each] of await questions()) await each.withdraw();
    },
    sent: async () => {
      const found = {};
      for (const [name, each] of await questions()) {
        found[name] = (await each.sent()).map(({ epsilon, report, cohort }) => [epsilon, report, cohort]);
      }
      return found;
    },
    costs: () => device.balance(),
  };
}"""

FIX_IN_BROWSER = """async ({ module, keys, pseudonyms }) => {
  const { BrowserStorage } = await import(module);
  const storage = new BrowserStorage();
  const before = await storage.read();
  const { check, ...content } = JSON.parse(before);
  const known = new Map();
  for (const record of content.campaigns) {
    const name = record.address.split("/").at(-1);
    if (!known.has(record.device)) known.set(record.device, pseudonyms[name]);
    record.device = known.get(record.device);
    record.key = keys[name];
  }
  const digest = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(JSON.stringify(content)));
  const hex = Array.from(new Uint8Array(digest), (byte) => byte.toString(16).padStart(2, "0")).join("");
  return storage.replace(before, JSON.stringify({ ...content, check: hex }));
}"""
MODULE = "/static/device/relaxdp.js"
_MILLISECONDS = timedelta(seconds=PATIENCE) / timedelta(milliseconds=1)
_BLANK = "<!doctype html><title>A page with the device module</title>"


class BrowserDevice:
    """The JavaScript device on an otherwise empty page, in a new browser profile.

    Without a `site` the page has the service's own origin. With one it is a page of that site, which has a copy of the
    module and passes requests for campaigns on to the service.
    """

    def __init__(
        self, context: BrowserContext, service: Service, limit: str, secrets: Secrets, site: str | None = None
    ) -> None:
        self._origin, self._secrets = site or service.url, secrets
        self._questions: dict[str, Question] = {}
        self._module = MODULE if site is None else "/modules/relaxdp.js"
        context.set_default_timeout(_MILLISECONDS)
        self._page = context.new_page()
        self._page.route(f"{self._origin}/golden", lambda route: route.fulfill(body=_BLANK, content_type="text/html"))
        if site is not None:
            self._page.route(f"{site}/modules/**", _serve_module)
            self._page.route(f"{site}/v1/**", partial(_pass_on, site=site, service=service))
        self._page.goto(f"{self._origin}/golden")
        self._evaluate(IN_BROWSER, {"module": self._module, "limit": limit})

    def join(self, campaign: Campaign, *, limit: str | None = None, invitation: str | None = None) -> dict[str, str]:
        """Join a campaign, and return how far each question may be reported."""
        address = {"address": f"{self._origin}{campaign.route}", "several": campaign.has_several}
        found: dict[str, str] = self._call("join", {**address, "limit": limit, "invitation": invitation})
        _fix_in_browser(self._page, self._module, self._secrets)
        self._questions.update({each.name: each for each in campaign.questions})
        return found

    def answer(self, answers: Mapping[str, Any]) -> None:
        """Answer questions."""
        self._call("answer", dict(answers))

    def report(self) -> None:
        """Send the reports that are due."""
        self._call("report")

    def withdraw(self) -> None:
        """Leave all campaigns."""
        self._call("withdraw")

    def sent(self) -> dict[str, dict[str, Any]]:
        """Return every report that was sent, by question and level."""
        return {name: read_sent(self._questions[name], sent) for name, sent in self._call("sent").items()}

    def costs(self) -> dict[str, str]:
        """Return the limit, the epsilon spent, and the rest."""
        found: dict[str, str] = self._call("costs")
        return found

    def _call(self, name: str, argument: Any = None) -> Any:
        return self._evaluate("([name, argument]) => golden[name](argument)", [name, argument])

    def _evaluate(self, script: str, argument: Any) -> Any:
        try:
            return self._page.evaluate(script, argument)
        except Error as problem:
            raise Rejected(problem.message) from problem


def _fix_in_browser(page: Page, module: str, secrets: Secrets) -> None:
    assert page.evaluate(FIX_IN_BROWSER, {"module": module, **secrets.to_json()})


def _serve_module(route: Route) -> None:
    name = route.request.url.partition("/modules/")[2]
    route.fulfill(path=npm.DEVICE / name, content_type="text/javascript")


def _pass_on(route: Route, *, site: str, service: Service) -> None:
    route.fulfill(response=route.fetch(url=route.request.url.replace(site, service.url, 1)))


class SurveyVisitor:
    """A person who answers a campaign of one question on the service's survey page."""

    def __init__(self, context: BrowserContext, campaign: Campaign, secrets: Secrets) -> None:
        service = campaign.service
        self._secrets, self._question = secrets, campaign.questions[0]
        self._person = Person(context, Collector(service.folder, service.url, service.token), campaign.name)

    def set_limit(self, limit: str) -> None:
        """Choose one of the levels as the limit."""
        self._person.limit(list(self._question.levels).index(limit))
        _fix_in_browser(self._person.page, MODULE, self._secrets)

    def answer(self, value: str) -> None:
        """Answer, and wait until the service has the first report."""
        self._person.choose(value)
        self._person.received(1)

    def look_for_news(self, reports: int) -> None:
        """Press the button that asks for news, and wait until the service has this many reports."""
        self._person.look()
        self._person.received(reports)

    def sent(self) -> dict[str, Any]:
        """Return the reports that left the page, by level."""
        return {each["level"]["epsilon"]: each["report"] for each in self._person.reports}


def answer_in_frame(context: BrowserContext, campaign: Campaign, site: str, value: str) -> bool:
    """Open a page of another site with the survey in a frame, and answer; return whether the frame was shown."""
    page, address = context.new_page(), f"{campaign.service.url}/survey/{campaign.name}"
    body = f"<!doctype html><title>A shop</title><iframe src='{address}' width=340 height=700></iframe>"
    page.route(f"{site}/", lambda route: route.fulfill(body=body, content_type="text/html"))
    blocked: list[str] = []
    page.on("requestfailed", lambda request: blocked.append(request.url))
    page.goto(f"{site}/")
    survey = page.frame_locator("iframe")
    choices = survey.locator("#limit-choices input")
    until(lambda: choices.count() or address in blocked)
    if not choices.count():
        return False
    choices.last.check()
    survey.locator("#limit-form button").click()
    survey.get_by_label(value, exact=True).check()
    survey.locator("#question-form button").click()
    expect(survey.locator(".badge.sent")).to_have_count(1)
    return True


def make_package(folder: Path) -> Path:
    """Make the npm package of the device module."""
    return npm.make(folder)
