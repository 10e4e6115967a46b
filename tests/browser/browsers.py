"""Debian's browsers, as tests drive them: Chromium over its own protocol, Firefox over WebDriver BiDi.

What a page test does is the same in both. What Firefox cannot tell over BiDi yet: the bodies of requests (so tests of
what leaves a page are Chromium's), colour schemes and permissions.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright
from tests.conftest import require
from tests.patience import PATIENCE, until

ARGUMENTS = (
    "--no-sandbox --headless=new --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync"
)
# Another machine on plain HTTP, and two sites that are as good as encrypted and as near: they frame the survey.
ELSEWHERE, SITE, STRANGER = "survey.test", "http://host.test", "http://stranger.test"
NAMES = (
    f"--host-resolver-rules=MAP {ELSEWHERE} 127.0.0.1",
    f"--unsafely-treat-insecure-origin-as-secure={SITE},{STRANGER}",
    "--disable-features=LocalNetworkAccessChecks",
)
# Whatever Firefox would like to ask its makers goes to a port where nobody listens; loopback is asked directly.
NOBODY: dict[str, str | float | bool] = {
    "network.proxy.type": 1,
    "network.proxy.http": "127.0.0.1",
    "network.proxy.http_port": 9,
    "network.proxy.ssl": "127.0.0.1",
    "network.proxy.ssl_port": 9,
    "network.proxy.no_proxies_on": "127.0.0.1",
}
_FOLDERS: dict[Browser, Path] = {}
"""Where a Firefox that runs puts downloads."""


@contextmanager
def chromium() -> Iterator[Browser]:
    """Debian's browser: playwright's own cannot be fetched everywhere."""
    place = require("chromium")
    expect.set_options(timeout=1000 * PATIENCE)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=place, args=[*ARGUMENTS.split(), *NAMES])
        yield browser
        browser.close()


@contextmanager
def firefox() -> Iterator[Browser]:
    """Debian's Firefox, with a home of its own: as root it refuses one that belongs to somebody else."""
    place = shutil.which("firefox-esr") or require("firefox")
    expect.set_options(timeout=1000 * PATIENCE)
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        home, downloads = Path(folder, "home"), Path(folder, "downloads")
        for each in (home, downloads):
            each.mkdir()
        browser = playwright.firefox.launch(
            channel="moz-firefox",
            executable_path=place,
            env={**os.environ, "HOME": str(home)},
            downloads_path=downloads,
            firefox_user_prefs=NOBODY,
        )
        _FOLDERS[browser] = downloads
        yield browser
        del _FOLDERS[browser]
        browser.close()


BROWSERS = {"chromium": chromium, "firefox": firefox}


def in_both(*, long: bool = False) -> pytest.MarkDecorator:
    """Run a test in Firefox as well; where it is long there, the short tests have it in Chromium only."""
    other = pytest.param("firefox", marks=pytest.mark.long if long else ())
    return pytest.mark.parametrize("browser", ["chromium", other], indirect=True)


def saved(page: Page, press: Callable[[], None], place: Path) -> str:
    """Do what makes a page hand over a file, put it into its place, and return the name that the page gave it."""
    browser = page.context.browser
    folder = _FOLDERS.get(browser) if browser is not None else None
    if folder is None:
        with page.expect_download() as waiting:
            press()
        waiting.value.save_as(place)
        return waiting.value.suggested_filename
    # A page makes a file of what it has, which playwright does not recognise as a download of Firefox.
    press()
    (file,) = until(lambda: _whole(page, folder))
    shutil.move(file, place)
    return file.name


def _whole(page: Page, folder: Path) -> list[Path]:
    """Return the file that was downloaded, once all of it is there."""
    page.wait_for_timeout(20)  # the browser goes on meanwhile
    files = [each for each in folder.iterdir() if each.stat().st_size > 0]
    return files if [each.suffix == ".part" for each in files] == [False] else []
