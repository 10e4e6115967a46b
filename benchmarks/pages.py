"""What pages weigh, and when they can be used on a slow line: counted and timed in Chromium.

python -m benchmarks.pages [--rounds N] [--show] writes docs/benchmarks-pages.md, or only shows it.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any

from playwright.sync_api import Browser
from tests.browser.browsers import chromium
from tests.browser.bundles import esbuild
from tests.browser.dashboard_operator import commute
from tests.browser.visits import Visit, visit
from tests.servers.collectors import Running, running

from benchmarks.machine import machine
from relaxdp.service.bundle import build
from relaxdp.service.page_files import SETTING

PAGE = Path(__file__).parents[1] / "docs" / "benchmarks-pages.md"
KBIT, MILLISECONDS = 400, 400
LINE = {
    "latency": float(MILLISECONDS),
    "downloadThroughput": KBIT * 1000 / 8,
    "uploadThroughput": KBIT * 1000 / 8,
}
PLACES = {"survey": "/survey/{campaign}", "dashboard": "/", "market": "/market"}
MOST_BYTES, MOST_REQUESTS, MOST_SECONDS = 40_000, 6, 3.0
_HEAD = """# Benchmarks of the pages

`make bench-pages` wrote this page: Chromium opens each page over a line of {kbit} kbit/s with {ms} ms before each
answer (the browser's own emulation), in a fresh profile and then again in a new tab. *requests* and *kB* are all that
went over the wire, with headers, pages and what they asked the service; what was taken from the browser's cache is not
counted. *ready* is the time until a person can use the page: the survey shows its first view, the dashboard asks for a
token, and the market shows its listings. Medians of {rounds} rounds.

*bundled* is what a wheel has that was built with node, *modules* what is served without. The targets are for bundles at
the first visit: at most {bytes} kB, {requests} requests and {seconds:g} seconds; and one request at the next, beside
what the market asks the service, of which nothing is kept.

| page | served | visit | requests | of them to the service's API | kB | ready (s) | within |
|---|---|---|---:|---:|---:|---:|---|
"""


@contextmanager
def a_service(bundle: str) -> Iterator[Running]:
    """Run a service with a campaign, which serves the bundle in a folder, or none."""
    before = os.environ.get(SETTING)
    os.environ[SETTING] = bundle
    try:
        with tempfile.TemporaryDirectory() as folder, running(f"sqlite:///{folder}/pages.db", Path(folder)) as started:
            yield started
    finally:
        if before is None:
            del os.environ[SETTING]
        else:
            os.environ[SETTING] = before


def visits(browser: Browser, server: Running, place: str, rounds: int) -> list[tuple[Visit, Visit]]:
    """Open a page twice in a fresh profile, several times."""
    address = place.format(campaign=commute(server))
    found = []
    for _ in range(rounds):
        context = browser.new_context()
        found.append((visit(context, server.base, address, LINE), visit(context, server.base, address, LINE)))
        context.close()
    return found


def row(page: str, form: str, place: int, measured: list[Visit]) -> str:
    """Return a line of the table."""
    seconds, weight = median(each.seconds for each in measured), median(each.bytes for each in measured)
    requests, asked = max(each.requests for each in measured), max(len(each.asked) for each in measured)
    most = MOST_REQUESTS if place == 0 else 1 + (0 if page == "survey" else asked)
    met = weight <= MOST_BYTES and requests <= most and seconds <= MOST_SECONDS
    shown = [page, form, ("first", "next")[place], requests, asked, f"{weight / 1000:.1f}", f"{seconds:.2f}"]
    return f"| {' | '.join(map(str, [*shown, ('yes' if met else 'no') if form == 'bundled' else '']))} |"


def main() -> None:
    """Measure and write."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--show", action="store_true")
    asked = parser.parse_args()
    lines = []
    with tempfile.TemporaryDirectory() as folder, chromium() as browser:
        build(esbuild(), bundle=Path(folder, "bundled"))
        for form, place in (("bundled", str(Path(folder, "bundled"))), ("modules", "off")):
            with a_service(place) as server:
                for page, address in PLACES.items():
                    pairs = visits(browser, server, address, asked.rounds)
                    lines += [row(page, form, turn, [pair[turn] for pair in pairs]) for turn in range(2)]
        about: list[tuple[str, Any]] = [*machine()[:1], ("Chromium", browser.version)]
    limits = {"bytes": MOST_BYTES // 1000, "requests": MOST_REQUESTS, "seconds": MOST_SECONDS}
    text = _HEAD.format(kbit=KBIT, ms=MILLISECONDS, rounds=asked.rounds, **limits)
    text += "\n".join([*lines, "", "## Machine", "", "| what | |", "|---|---|"])
    text += "".join(f"\n| {name} | {value} |" for name, value in about) + "\n"
    if asked.show:
        print(text)
    else:
        PAGE.write_text(text, "utf-8")


if __name__ == "__main__":
    main()
