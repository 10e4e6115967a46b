"""What pages rest on: their headers and files, the planner's advice over HTTP, what each level told, and the tour."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.request import urlopen

import pyarrow.parquet as pq
import pytest
from tests.browser.dashboard_operator import commute, report_all
from tests.browser.wire_types import PLACE, types_of
from tests.patience import PATIENCE
from tests.servers.collectors import STORES, Running, running, url_of

from relaxdp.device.address import Server
from relaxdp.estimation.planning import find_margin, find_n
from relaxdp.market.client import MarketClient
from relaxdp.mechanisms.categorical import Categorical
from relaxdp.server_errors import ServiceError
from relaxdp.service.pages import sites_of

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors "
)
WEB = Path(__file__).parents[2] / "src" / "relaxdp" / "web"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    folder = tmp_path_factory.mktemp("pages")
    sites = ("--embed", "https://shop.example", "--embed", "https://*.example.org:8443")
    with running(f"sqlite:///{folder / 'collector.db'}", folder, *sites) as started:
        yield started


def test_policy(server: Running) -> None:
    """Only the survey may be framed, and only by the sites that were named."""
    framed = {
        "/": "'none'",
        "/market": "'none'",
        "/survey/any": "https://shop.example https://*.example.org:8443",
    }
    for path, ancestors in framed.items():
        answer = server.ask("GET", path)
        assert answer.status == 200
        assert answer.headers["content-security-policy"] == POLICY + ancestors
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["referrer-policy"] == "no-referrer"
        assert server.ask("GET", path, if_none_match=answer.headers["etag"]).status == 304
        assert server.ask("HEAD", path).status == 200
    script = server.ask("GET", "/static/dashboard/main.js")
    assert script.headers["content-security-policy"] == "default-src 'none'; sandbox"
    assert script.headers["x-content-type-options"] == "nosniff"


def test_only_files_of_the_package_are_served(server: Running) -> None:
    for path in (
        "/static/", "/static/dashboard/page.html", "/static/device/package.json", "/static/../errors.py",
        "/static/..%2ferrors.py", "/static//etc/passwd", "/static/%2e%2e/%2e%2e/errors.py", "/survey/",
        "/survey/a/b", "/index.html",
    ):  # fmt: skip
        answer = server.ask("GET", path)
        assert (answer.status, answer.error) == (404, "unknown_route"), path
    assert server.ask("POST", "/", {}).status == 405
    for path in ("/nowhere", "/survey/a/b", "/published/none"):
        page = server.ask("GET", path, accept="text/html,*/*", accept_language="de-AT,en")
        assert page.status == 404
        assert page.headers["content-type"] == "text/html; charset=utf-8"
        assert b"Hier ist nichts" in page.body
        styles = re.findall(rb'href="([./]*)static/', page.body)
        assert {root.count(b"../") for root in styles} == {path.count("/") - 1}
        assert b"There is nothing here" in server.ask("GET", path, accept="text/html").body
    for path in ("/v1/nothing", "/static/none.js"):
        assert server.ask("GET", path, accept="text/html").error == "unknown_route"
    kinds = {".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml"}
    for file in WEB.rglob("*"):
        if file.suffix in kinds:
            answer = server.ask("GET", f"/static/{file.relative_to(WEB).as_posix()}")
            assert answer.body == file.read_bytes()
            assert answer.headers["content-type"].startswith(kinds[file.suffix])


def test_pages_know_the_answers_of_the_service(server: Running) -> None:
    """Where this fails, an answer is another one now: `python -m tests.browser.wire_types` writes its type."""
    assert PLACE.read_text("utf-8") == types_of(server.ask("GET", "/openapi.json").json)


def test_pages_name_nobody_else() -> None:
    """No page, script or style has an address of another site, an inline script or an inline style in it."""
    for file in WEB.rglob("*"):
        if file.suffix in (".html", ".css", ".js"):
            text = file.read_text("utf-8").replace("http://www.w3.org/2000/svg", "")
            assert not re.search(r"(src|href|import|url\()\W*(https?:)?//\w", text), file.name
            assert "innerHTML" not in text, file.name
        if file.suffix == ".html":
            assert not re.search(r"<style|\son\w+=|\sstyle=|<script(?![^>]*\ssrc=)", text), file.name


@pytest.mark.parametrize("site", ["example.org", "https://a.example/path", "https://a.example; script-src *", "*", ""])
def test_a_site_cannot_change_the_policy(site: str) -> None:
    with pytest.raises(ServiceError, match="is written like"):
        sites_of([site])


def test_advice_is_the_planner_s(server: Running) -> None:
    before = server.ask("GET", "/v1/campaigns", operator=True).json
    asked = {
        "encoding": {"name": "auto", "values": ["a", "b", "c", "d"]},
        "levels": [{"epsilon": "0.5"}, {"epsilon": "2"}],
        "devices": 20_000,
        "target": {"half_width": 0.012, "confidence_level": 0.99},
    }
    found = server.ask("POST", "/v1/advice", asked, operator=True).json
    assert found["encoding"]["name"] == "categorical"
    for level, epsilon in zip(found["levels"], ("0.5", "2"), strict=True):
        width = find_margin(n=20_000, planned_values=4, epsilon=epsilon, confidence_level=0.99)
        assert level["half_width"] == pytest.approx(width)
        assert level["met"] == (width <= 0.012)
        assert level["devices_needed"] == find_n(0.012, epsilon=epsilon, planned_values=4, confidence_level=0.99)
    assert server.ask("POST", "/v1/advice", asked).status == 401
    impossible = {**asked, "levels": [{"epsilon": "0.0000001"}], "target": {"half_width": 0.0001}}
    (level,) = server.ask("POST", "/v1/advice", impossible, operator=True).json["levels"]
    assert (level["half_width"], level["met"], level["devices_needed"]) == (0.5, False, None)
    falling = {**asked, "levels": [{"epsilon": "2"}, {"epsilon": "1"}]}
    assert server.ask("POST", "/v1/advice", falling, operator=True).error == "campaign"
    assert server.ask("GET", "/v1/campaigns", operator=True).json == before


@pytest.mark.parametrize("store", STORES)
def test_each_level_is_estimated_from_all_its_reports(
    store: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """The estimate of a level is that of its exported reports, also after all devices went further."""
    with running(url_of(store, request), tmp_path / "server") as started:
        check_levels(started, tmp_path)


def check_levels(server: Running, tmp_path: Path) -> None:
    name = commute(server, target={"half_width": 0.001, "confidence_level": 0.9})
    for _ in range(3):
        report_all(server, name, devices=1500)
        server.ask("POST", f"/v1/campaigns/{name}/relax", operator=True)
    path = f"/v1/campaigns/{name}/estimate?confidence_level=0.9"
    found = server.ask("GET", path, operator=True).json
    together = server.ask("GET", f"{path}&simultaneous=true", operator=True).json
    for place, level in enumerate(found["levels"]):
        file = tmp_path / f"{place}.parquet"
        file.write_bytes(server.ask("GET", f"/v1/campaigns/{name}/export?level={place}", operator=True).body)
        answers = Categorical(["by car", "by bus", "on foot"])
        expected = answers.estimate(pq.read_table(file)["answer"].to_pylist(), epsilon=level["epsilon"])
        low, high = expected.interval(0.9)
        assert (level["reports"], level["devices"]) == (1500, 1500 if place == 2 else 0)
        assert [row["estimate"] for row in level["rows"]] == pytest.approx(expected.value.tolist())
        assert [row["low"] for row in level["rows"]] == pytest.approx(low.tolist())
        assert [row["high"] for row in level["rows"]] == pytest.approx(high.tolist())
        assert (found["simultaneous"], together["simultaneous"]) == (False, True)
        ends = expected.interval(0.9, simultaneous=True)
        assert [row["low"] for row in together["levels"][place]["rows"]] == pytest.approx(ends[0].tolist())
    for step in ("finish", "reduce"):
        server.ask("POST", f"/v1/campaigns/{name}/{step}", operator=True)
    assert server.ask("GET", path, operator=True).json["levels"] == found["levels"]  # counts stay


def check_market(shown: str) -> None:
    """The market of the tour has a release and a pool, a level is sold, another is requested, and the tokens work."""
    found = re.search(r"the market +(http://127\.0\.0\.1:\d+)/market", shown)
    assert found
    with urlopen(f"{found[1]}/market") as answer:
        assert b"market/main.js" in answer.read()
    server = Server.parse(found[1])
    members = re.findall(r"(?:seller|buyer) (\S+) +(\S+)", shown)
    clients = {name: MarketClient(server, token) for name, token in members}
    assert [client.member()["role"] for client in clients.values()] == ["seller", "buyer", "buyer"]
    rows = {each["kind"]: each["levels"][-1]["rows"] for each in MarketClient(server).listings()}
    assert rows == {"release": 4000, "pool": 40}
    (column,) = clients["energy-office"].sales()["columns"]
    assert (column["largest_sold"], column["held"], column["open_requests"]) == ("0.5", "2", 1)
    assert [each["state"] for name in ("anna", "ben") for each in clients[name].orders()] == ["approved", "requested"]


@pytest.mark.long
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_tour(tmp_path: Path, number: signal.Signals) -> None:
    """The tour shows where to look, its devices answer until it is precise enough, and it leaves nothing behind."""
    words = ["tour", "--devices", "3000", "--pace", "0", "--half-width", "0.08"]
    process = subprocess.Popen(
        [sys.executable, "-m", "relaxdp", *words], stdout=subprocess.PIPE, text=True, start_new_session=True,
        env={**os.environ, "TMPDIR": str(tmp_path)},
    )  # fmt: skip
    with process:
        assert process.stdout is not None
        lines = []
        for line in process.stdout:
            lines.append(line)
            if "Ctrl-C" in line:
                break
        shown = "".join(lines)
        address = re.search(r"dashboard +(http://127\.0\.0\.1:\d+/)\n", shown)
        token = re.search(r"operator token +(\S+)\n", shown)
        assert address
        assert token
        assert "finished by itself" in shown
        with urlopen(address[1]) as answer:
            assert b"dashboard/main.js" in answer.read()
        check_market(shown)
        for place in re.findall(r"(http://\S+/surveys?/\S+)", shown):
            with urlopen(place) as answer:
                assert answer.status == 200
        assert list(tmp_path.iterdir())
        process.send_signal(number)
        assert "everything removed" in process.stdout.read()
        assert process.wait(PATIENCE) == 0
    assert not list(tmp_path.iterdir())
    with pytest.raises(OSError, match="refused"):
        urlopen(address[1])
