"""What pages weigh on the wire, counted in a browser: requests and bytes, at the first visit and at the next."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser
from tests.browser.bundles import esbuild
from tests.browser.dashboard_operator import commute
from tests.browser.visits import visit
from tests.servers.collectors import Running, running

from relaxdp.service.bundle import build
from relaxdp.service.page_files import SETTING

pytestmark = pytest.mark.long

KILOBYTES = 40_000
REQUESTS = 6
PLACES = [("/survey/{campaign}", "en-GB"), ("/survey/{campaign}", "de-DE"), ("/market", "en-GB"), ("/", "en-GB")]


@pytest.fixture(scope="module", params=["bundled", "modules"])
def served(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Running, str]]:
    """A service with bundles, and one where there is no node."""
    folder: Path = tmp_path_factory.mktemp("weight")
    with pytest.MonkeyPatch.context() as patch:
        if request.param == "bundled":
            build(esbuild(), bundle=folder / "bundled")
        patch.setenv(SETTING, str(folder / "bundled") if request.param == "bundled" else "off")
        with running(f"sqlite:///{folder / 'a.db'}", folder) as started:
            yield started, request.param


@pytest.mark.parametrize(("place", "locale"), PLACES)
def test_weight(served: tuple[Running, str], browser: Browser, place: str, locale: str) -> None:
    """Few requests and few bytes at first; then the page alone, and what it must ask the service."""
    server, form = served
    address = place.format(campaign=commute(server))
    context = browser.new_context(locale=locale)
    first, second = (visit(context, server.base, address) for _ in range(2))
    context.close()
    survey = place.startswith("/survey")
    assert set(first.sent) == set(first.received)
    if form == "bundled":
        assert first.requests <= REQUESTS, first.sent
        assert first.bytes <= KILOBYTES, first.received
    page = server.ask("GET", address).body.decode()
    named = set(re.findall(r'(?:href|src)="[./]*(static/[^"]+)"', page))
    loaded = {url.removeprefix(f"{server.base}/") for url in first.files}
    assert named <= loaded, "nothing is loaded in vain"
    assert len(loaded - named) <= 2, "only a language is found out later: its words, and those of the kit"
    assert second.files == [], "what was loaded once is kept"
    assert second.requests - len(second.asked) == 1
    if survey:
        assert (first.asked, second.asked) == ([], []), "the page encloses what its script would ask"


def test_packed_for_whoever_can_unpack_it(served: tuple[Running, str]) -> None:
    server, _ = served
    for path in ("/", "/market", f"/survey/{commute(server)}", "/static/device/relaxdp.js"):
        plain, packed = server.ask("GET", path), server.ask("GET", path, accept_encoding="gzip")
        assert "content-encoding" not in plain.headers
        assert packed.headers["content-encoding"] == "gzip"
        assert len(packed.body) < len(plain.body)
        for answer in (plain, packed):
            assert answer.headers["vary"] == "accept-encoding"
            assert answer.headers["cache-control"] == "no-cache"
            tag = answer.headers["etag"]
            assert server.ask("GET", path, accept_encoding="gzip", if_none_match=tag).status == 304
        assert plain.headers["etag"] != packed.headers["etag"]
    assert "content-encoding" not in server.ask("GET", "/v1/campaigns", operator=True, accept_encoding="gzip").headers


def test_lasting_addresses(served: tuple[Running, str]) -> None:
    server, _ = served
    page = server.ask("GET", "/").body.decode()
    (address,) = {each.split('"')[0] for each in page.split('src="')[1:]}
    assert server.ask("GET", f"/{address}").headers["cache-control"] == "max-age=31536000, immutable"
    digest = address.split("/")[1]
    assert server.ask("GET", f"/{address.replace(digest, '0' * len(digest))}").status == 404


def test_a_page_changes_with_its_campaign(served: tuple[Running, str]) -> None:
    """A browser that has the page asks whether it is still the same: not after the campaign has changed."""
    server, _ = served
    name = commute(server)
    tag = server.ask("GET", f"/survey/{name}").headers["etag"]
    assert server.ask("GET", f"/survey/{name}", if_none_match=tag).status == 304
    server.ask("POST", f"/v1/campaigns/{name}/pause", operator=True)
    assert server.ask("GET", f"/survey/{name}", if_none_match=tag).status == 200
    assert 'name="enclosed"' not in server.ask("GET", "/survey/nobody-s").body.decode()
