"""The browser's device in real browsers: IndexedDB, WebCrypto, pages that race, and a browser that is killed."""

from __future__ import annotations

import json
import os
import queue
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from tests.browser.browsers import firefox
from tests.conftest import require
from tests.patience import PATIENCE
from tests.servers.fake_collector import FakeCollector, Reply, Request, fake_collector

HERE = Path(__file__).parent
PLACES = {
    "/web/": HERE.parents[1] / "src" / "relaxdp" / "web",
    "/vectors/": HERE.parent / "vectors",
    "/tests/": HERE,
}
TYPES = {".js": "text/javascript", ".mjs": "text/javascript", ".json": "application/json"}
POLICY = (
    "default-src 'none'; script-src 'self'; connect-src 'self'; frame-src 'self'; require-trusted-types-for 'script'"
)
PAGE = b'<!doctype html><title>device</title><script type="module" src="/tests/chromium.mjs"></script>'


class Pages:
    """A collector that also serves the pages, under a strict policy, and hears what they tell."""

    def __init__(self, collector: FakeCollector) -> None:
        self.collector = collector
        self.told: queue.Queue[dict[str, Any]] = queue.Queue()
        self.hang_up_on_report = False
        self.report_came: queue.Queue[bytes] = queue.Queue()
        collector.instead = self._serve

    def _serve(self, request: Request) -> Reply | bytes | None:
        path = request.path.partition("?")[0]
        if path == "/told":
            self.told.put(request.json)
            return Reply(200, {})
        if path == "/page":
            return Reply(200, PAGE, {"Content-Type": "text/html", "Content-Security-Policy": POLICY})
        if path == "/frames":
            frames = "".join(f'<iframe src="{self.address("race", "a", "b", tab=tab)}"></iframe>' for tab in range(3))
            return Reply(200, frames.encode(), {"Content-Type": "text/html", "Content-Security-Policy": POLICY})
        for prefix, folder in PLACES.items():
            file = folder / path.removeprefix(prefix)
            if path.startswith(prefix) and file.is_file() and file.resolve().is_relative_to(folder.resolve()):
                return Reply(200, file.read_bytes(), {"Content-Type": TYPES[file.suffix]})
        if path.endswith("/reports"):
            self.report_came.put(request.body)
            if self.hang_up_on_report:
                return b""
        return None

    def address(self, step: str, *campaigns: str, tab: int = 0) -> str:
        return f"{self.collector.url}/page?step={step}&tab={tab}&campaigns={','.join(campaigns)}"

    def next(self) -> dict[str, Any]:
        told = self.told.get(timeout=PATIENCE)
        assert "problem" not in told, told["problem"]
        return told


@pytest.fixture
def pages() -> Iterator[Pages]:
    with fake_collector() as collector:
        yield Pages(collector)


@contextmanager
def browser(profile: Path, address: str) -> Iterator[subprocess.Popen[bytes]]:
    """Chromium at an address. It is killed at the end: whatever it has not written by then is lost."""
    options = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run"]
    process = subprocess.Popen(
        [require("chromium"), *options, f"--user-data-dir={profile}", address],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        yield process
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        (profile / "SingletonLock").unlink(missing_ok=True)


@contextmanager
def gecko(profile: Path, address: str) -> Iterator[None]:
    """Firefox at an address, for what need not survive it."""
    with firefox() as running:
        running.new_page().goto(address)
        yield


ENGINES = pytest.mark.parametrize("engine", [browser, pytest.param(gecko, marks=pytest.mark.long)])
Engine = Callable[[Path, str], AbstractContextManager[object]]


@ENGINES
def test_vectors(pages: Pages, tmp_path: Path, engine: Engine) -> None:
    with engine(tmp_path, pages.address("vectors")):
        told = pages.next()
    assert told["found"] == [{"cases": cases, "wrong": []} for cases in (360, 90, 80, 54)]
    assert told["missing"] == []


@ENGINES
def test_frames_that_race(pages: Pages, tmp_path: Path, engine: Engine) -> None:
    """Three copies of the page, three answers, two campaigns: one device, one report a level, within the limit."""
    for name in ("a", "b"):
        pages.collector.open(name, levels=("0.5", "0.7", "1.1"), open_level=2)
    with engine(tmp_path, f"{pages.collector.url}/frames"):
        told = [pages.next() for _ in range(3)]
    assert {each["tab"] for each in told} == {0, 1, 2}
    assert {code for each in told for code in each["codes"]} <= {"answer_changed_error", "budget_exceeded_error"}
    assert any("answer_changed_error" in each["codes"] for each in told)
    requests = [request for request in pages.collector.requests if request.path.endswith("/reports")]
    bodies = {(request.path, request.body) for request in requests}
    largest: dict[str, Decimal] = {}
    for path, body in bodies:
        epsilon = Decimal(json.loads(body)["level"]["epsilon"])
        largest[path] = max(largest.get(path, Decimal(0)), epsilon)
    assert len({(path, json.loads(body)["level"]["epsilon"]) for path, body in bodies}) == len(bodies)
    assert len({json.loads(body)["device"] for _, body in bodies}) == len(largest)
    assert 1 <= sum(largest.values()) <= Decimal("1.5")
    assert pages.collector.differing == 0


@pytest.mark.long
def test_killed_while_a_report_is_on_its_way(pages: Pages, tmp_path: Path) -> None:
    """What arrived had been written: the browser is killed the moment it does, and then sends the same again."""
    pages.collector.open()
    pages.hang_up_on_report = True
    with browser(tmp_path, pages.address("begin", "snacks")):
        first = pages.report_came.get(timeout=PATIENCE)
    pages.hang_up_on_report = False
    with browser(tmp_path, pages.address("again", "snacks")):
        told = pages.next()
    assert told["outcomes"][0]["status"] == "sent"
    assert told["balance"] == {"limit": "3", "spent": "0.5", "left": "2.5"}
    requests = [request for request in pages.collector.requests if request.path.endswith("/reports")]
    assert {request.body for request in requests} == {first}
    pages.collector.relax()
    with browser(tmp_path, pages.address("again", "snacks")):
        told = pages.next()
    assert [sent["epsilon"] for sent in told["details"]["sent"]] == ["0.5", "1"]
    assert len({key[1] for key in pages.collector.stored}) == 1


@pytest.mark.long
def test_cleared_storage_is_said(pages: Pages, tmp_path: Path) -> None:
    pages.collector.open()
    with browser(tmp_path, pages.address("cleared", "snacks")):
        told = pages.next()
    assert told["said"]["code"] == "device_file_error"
    assert told["said"]["fields"] == {"reason": "cleared"}
    assert told["balance"]["spent"] == "0"
