"""What a visit to a page costs: every request that Chromium sends, and every byte that comes back."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from playwright.sync_api import BrowserContext, Page, expect
from tests.patience import PATIENCE

READY = {"/survey/": "main > section:visible", "/market": "main h1:visible", "/": "main h1:visible"}
"""What a person can read and use when a page is ready, by how its address begins."""


@dataclass
class Visit:
    """What went over the wire, headers included, until the page was ready and nothing more was on its way."""

    seconds: float = 0.0
    received: dict[str, int] = field(default_factory=dict)
    """The bytes of each answer that was not taken from the browser's cache, by its address."""
    sent: list[str] = field(default_factory=list)

    @property
    def bytes(self) -> int:
        return sum(self.received.values())

    @property
    def requests(self) -> int:
        return len(self.sent)

    @property
    def files(self) -> list[str]:
        """Requests for scripts, styles and pictures."""
        return [url for url in self.sent if "/static/" in url]

    @property
    def asked(self) -> list[str]:
        """Requests for what is known of the campaign or the market."""
        return [url for url in self.sent if "/v1/" in url]


@contextmanager
def watched(page: Page, line: dict[str, float] | None = None) -> Iterator[Visit]:
    """Count what a page asks for, over a line that may be slow."""
    visit, urls, cached = Visit(), {}, set()
    session = page.context.new_cdp_session(page)

    def begin(event: dict[str, Any]) -> None:
        url = event["request"]["url"]
        if url.startswith("http"):
            urls[event["requestId"]] = url
            visit.sent.append(url)

    def keep(event: dict[str, Any]) -> None:
        cached.add(event["requestId"])
        visit.sent.remove(urls[event["requestId"]])

    def answered(event: dict[str, Any]) -> None:
        found = event["response"]
        local = found.get("fromDiskCache") or found.get("fromPrefetchCache")
        if local and event["requestId"] in urls and event["requestId"] not in cached:
            keep(event)

    def finish(event: dict[str, Any]) -> None:
        if event["requestId"] in urls and event["requestId"] not in cached:
            visit.received[urls[event["requestId"]]] = int(event["encodedDataLength"])

    session.on("Network.requestWillBeSent", begin)
    session.on("Network.requestServedFromCache", lambda event: keep(event) if event["requestId"] in urls else None)
    session.on("Network.responseReceived", answered)
    session.on("Network.loadingFinished", finish)
    session.send("Network.enable")
    if line is not None:
        session.send("Network.emulateNetworkConditions", {"offline": False, **line})
    yield visit
    session.detach()


def visit(context: BrowserContext, base: str, place: str, line: dict[str, float] | None = None) -> Visit:
    """Open a page in a new tab, wait until it is ready and quiet, and say what it cost."""
    context.set_default_timeout(1000 * PATIENCE)
    page = context.new_page()
    ready = next(selector for beginning, selector in READY.items() if place.startswith(beginning))
    with watched(page, line) as found:
        start = time.monotonic()
        page.goto(f"{base}{place}", wait_until="commit")
        expect(page.locator(ready).first).to_be_visible(timeout=1000 * PATIENCE)
        found.seconds = time.monotonic() - start
        page.wait_for_load_state("networkidle")
    page.close()
    return found
