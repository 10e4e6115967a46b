"""One suite for every kind of device: what it sends, what it keeps to itself, and what it refuses."""

from __future__ import annotations

import json
from base64 import b64decode
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from tests.contract.device.device_clients import CLIENTS, DeviceClient
from tests.servers.fake_collector import FakeCollector, Reply, Request, fake_collector

from relaxdp import Key
from relaxdp.device.offer import encoding_of
from relaxdp.mechanisms.base import Mechanism
from relaxdp.mechanisms.bloom import Bloom
from relaxdp.mechanisms.keyed_reports import ReportPath
from relaxdp.sampling.keyed_stream import PathId

ENCODINGS: dict[str, tuple[dict[str, Any], Any]] = {
    "categorical": ({"name": "categorical", "values": ["crisps", "fruit", "none"]}, "fruit"),
    "whole numbers": ({"name": "categorical", "values": [10, 20, 30]}, 20),
    "unary-optimised": ({"name": "unary-optimised", "values": ["crisps", "fruit", "none"]}, "fruit"),
    "unary-symmetric": ({"name": "unary-symmetric", "values": list(range(11))}, 7),
    "local-hash": ({"name": "local-hash", "values": list(range(50)), "options": {"buckets": 4}}, 7),
    "numeric": ({"name": "numeric", "range": [0, 120]}, 41),
    "wave": ({"name": "wave", "range": [-7.5, 120], "options": {"bins": 300, "window": 64}}, 41.25),
    "bloom": ({"name": "bloom", "options": {"bits": 64, "hashes": 2, "cohorts": 8}}, "Käse"),
    "boolean": ({"name": "bloom", "options": {"bits": 1, "hashes": 1, "cohorts": 1}}, "true"),
}


@pytest.fixture
def server() -> Iterator[FakeCollector]:
    with fake_collector() as collector:
        yield collector


LONG_IN_BROWSERS = pytest.mark.parametrize(
    "client", ["python", pytest.param("browser", marks=pytest.mark.long)], indirect=True
)
"""For tests with very many cases: the browser's own tests have a server that says anything."""


@pytest.fixture(params=sorted(CLIENTS))
def client(request: pytest.FixtureRequest) -> DeviceClient:
    made: DeviceClient = CLIENTS[request.param]()
    return made


@pytest.fixture
def opened(client: DeviceClient, tmp_path: Path) -> DeviceClient:
    assert client.do({"do": "open", "file": str(tmp_path / "device"), "limit": "4"}) == {}
    return client


def answered(client: DeviceClient, address: str, value: Any = "fruit", **options: Any) -> None:
    joined = client.do({"do": "join", "campaign": address, **options})
    assert "error" not in joined, joined
    assert client.do({"do": "answer", "campaign": address, "value": value}) == {}


def report(client: DeviceClient, address: str) -> Any:
    done = client.do({"do": "report", "campaign": address})
    assert "error" not in done, done
    return done["sent"]


def refused(client: DeviceClient, address: str, code: str) -> str:
    """A report is refused with this code, in a sentence, and nothing was sent."""
    done = client.do({"do": "report", "campaign": address})
    assert done.get("error") == code, done
    return str(done["message"])


def reports(server: FakeCollector) -> list[Request]:
    return [request for request in server.requests if request.path.endswith("/reports")]


def test_the_limit_comes_first(client: DeviceClient, tmp_path: Path) -> None:
    file = str(tmp_path / "device")
    assert client.do({"do": "open", "file": file, "limit": None})["error"] == "budget_missing_error"
    for limit in ("0", "-1", "NaN", "Infinity", "much"):
        assert client.do({"do": "open", "file": file, "limit": limit})["error"] == "budget_error"
    assert client.do({"do": "open", "file": file, "limit": "2"}) == {}
    assert client.do({"do": "open", "file": file, "limit": None}) == {}
    assert client.do({"do": "open", "file": file, "limit": "2.0"}) == {}
    assert client.do({"do": "open", "file": file, "limit": "3"})["error"] == "budget_error"
    assert client.do({"do": "balance"}) == {"limit": "2", "spent": "0", "left": "2"}


@pytest.mark.parametrize("name", sorted(ENCODINGS))
def test_reports_are_those_of_the_keyed_path(opened: DeviceClient, server: FakeCollector, name: str) -> None:
    """The oracle is the path itself, from the device's key and pseudonym; other clients have the same stream."""
    description, value = ENCODINGS[name]
    address = server.open("c", description, levels=("1", "2", "4"))
    answered(opened, address, value)
    secrets = opened.do({"do": "secrets", "campaign": address})
    key = Key.from_bytes(bytes.fromhex(secrets["key"]))
    sents = [report(opened, address)]
    for _ in range(2):
        server.relax("c")
        sents.append(report(opened, address))
    encoding: Mechanism = encoding_of(description)
    if isinstance(encoding, Bloom):
        encoding = Bloom(encoding.shape, sents[0]["cohort"])
    path = ReportPath(encoding, value, key=key, object_id=secrets["device"], path=PathId("c", "answer"))
    for sent in sents:
        got = b64decode(sent["report"]) if isinstance(path.at(1), bytes) else sent["report"]
        assert got == path.at(sent["epsilon"])
        assert server.stored["c", secrets["device"], sent["epsilon"]] == (sent["report"], sent["cohort"])
    assert [sent["epsilon"] for sent in sents] == ["1", "2", "4"]
    assert opened.do({"do": "balance"})["spent"] == "4"


def test_what_is_sent_is_the_report_and_nothing_else(opened: DeviceClient, server: FakeCollector) -> None:
    address = server.open()
    answered(opened, address)
    sent = report(opened, address)
    secrets = opened.do({"do": "secrets", "campaign": address})
    (request,) = reports(server)
    assert request.json == {
        "device": secrets["device"],
        "level": {"epsilon": sent["epsilon"], "threshold": sent["threshold"]},
        "report": sent["report"],
    }
    assert opened.do({"do": "sent", "campaign": address}) == {"sent": [sent]}
    every_byte = b"".join(request.raw for request in server.requests)
    assert secrets["key"].encode() not in every_byte
    assert bytes.fromhex(secrets["key"]) not in every_byte
    allowed = {
        "host", "accept", "accept-encoding", "user-agent", "connection", "content-type", "content-length",
    } | getattr(opened, "adds", frozenset())  # fmt: skip
    assert all(set(request.headers) <= allowed for request in server.requests)


def test_another_campaign_another_pseudonym(opened: DeviceClient, server: FakeCollector) -> None:
    seen = set()
    for name in "abc":
        address = server.open(name)
        answered(opened, address)
        secrets = opened.do({"do": "secrets", "campaign": address})
        seen |= {secrets["device"], secrets["key"]}
        assert len(bytes.fromhex(secrets["device"])) == 16
    assert len(seen) == 6


def test_a_report_is_sent_once(opened: DeviceClient, server: FakeCollector) -> None:
    address = server.open()
    answered(opened, address)
    assert report(opened, address) == report(opened, address)
    assert len(reports(server)) == 1


def test_until_it_is_acknowledged_the_same_report_is_sent_again(opened: DeviceClient, server: FakeCollector) -> None:
    """Lost on the way there, lost on the way back, an overloaded server: in the end there is one report."""
    address = server.open()
    answered(opened, address)
    first_reports = iter(("hang up", "busy", "lost answer", "broken"))

    def misbehave(request: Request) -> Reply | bytes | None:
        if not request.path.endswith("/reports"):
            return None
        match next(first_reports, None):
            case "hang up":
                return b""
            case "busy":
                return Reply(503, {}, {"Retry-After": "0"})
            case "lost answer":
                server._report(server.campaigns["snacks"], request.json)
                return b""
            case "broken":
                return Reply(200, b"{")
        return None

    server.instead = misbehave
    for _ in range(5):
        done = opened.do({"do": "report", "campaign": address})
        if "error" not in done:
            break
    assert done["sent"]["status"] == "sent"
    bodies = {request.body for request in reports(server)}
    assert len(reports(server)) == 5
    assert len(bodies) == 1
    assert server.differing == 0


def test_levels_are_skipped_and_never_gone_back_to(opened: DeviceClient, server: FakeCollector) -> None:
    address = server.open()
    server.relax()
    server.relax()
    answered(opened, address)
    assert report(opened, address)["epsilon"] == "2"
    server.campaigns["snacks"]["open_level"] = 0
    assert "epsilon may only grow" in refused(opened, address, "level_error")
    assert len(reports(server)) == 1


def test_one_campaign_costs_its_largest_level_and_several_add_up(opened: DeviceClient, server: FakeCollector) -> None:
    one, two = server.open("one"), server.open("two")
    answered(opened, one)
    answered(opened, two)
    for expected in ("0.5", "1", "2"):
        report(opened, one)
        assert opened.do({"do": "balance"})["spent"] == expected
        if expected != "2":
            server.relax("one")
    report(opened, two)
    assert opened.do({"do": "balance"}) == {"limit": "4", "spent": "2.5", "left": "1.5"}


def test_campaigns_add_up_and_the_limit_ends_them(client: DeviceClient, server: FakeCollector, tmp_path: Path) -> None:
    """A question that is asked again is another campaign: another key, another pseudonym, and a separate cost."""
    client.do({"do": "open", "file": str(tmp_path / "d"), "limit": "1.2"})
    years = {year: server.open(f"s{year}") for year in ("2027", "2026", "2028")}
    other = server.open("other", levels=("0.2",))
    for address in (*years.values(), other):
        answered(client, address)
    for year in ("2026", "2027"):
        assert report(client, years[year])["epsilon"] == "0.5"
    message = refused(client, years["2028"], "budget_exceeded_error")
    assert message == "limit exceeded: 0.2 left of 1.2, this report needs 0.5. Nothing was sent."
    assert not [request for request in reports(server) if "s2028" in request.path]
    assert report(client, other)["epsilon"] == "0.2"
    secrets = [client.do({"do": "secrets", "campaign": address}) for address in years.values()]
    assert len({each["key"] for each in secrets}) == len({each["device"] for each in secrets}) == 3
    client.do({"do": "withdraw", "campaign": years["2026"]})
    reopened = type(client)()
    reopened.do({"do": "open", "file": str(tmp_path / "d"), "limit": None})
    assert reopened.do({"do": "balance"}) == {"limit": "1.2", "spent": "1.2", "left": "0"}
    sent = b"".join(request.raw for request in server.requests if request.method == "POST")
    assert b"2026" not in sent.replace(b"s2026", b""), "the server is not told what else this device took part in"


def test_campaigns_of_two_servers_add_up(opened: DeviceClient, server: FakeCollector) -> None:
    with fake_collector() as stranger:
        for each in (server, stranger):
            answered(opened, each.open())
            report(opened, each.address())
        assert opened.do({"do": "balance"})["spent"] == "1"


def test_a_device_stays_below_its_limit_and_behind_its_campaign(
    client: DeviceClient, server: FakeCollector, tmp_path: Path
) -> None:
    """0.1 + 0.2 is 0.3 here, and 0.3 is not too much."""
    client.do({"do": "open", "file": str(tmp_path / "d"), "limit": "0.3"})
    one = server.open("one", levels=("0.1", "0.2", "0.4"))
    two = server.open("two", levels=("0.1", "0.3"))
    three = server.open("three", levels=("0.000001",))
    for address in (one, two, three):
        answered(client, address)
    server.campaigns["one"]["open_level"] = 2
    assert report(client, one)["epsilon"] == "0.2"
    server.relax("two")
    assert report(client, two)["epsilon"] == "0.1"
    assert client.do({"do": "balance"}) == {"limit": "0.3", "spent": "0.3", "left": "0"}
    message = refused(client, three, "budget_exceeded_error")
    assert message == "limit exceeded: 0 left of 0.3, this report needs 0.000001. Nothing was sent."
    assert report(client, one)["epsilon"] == "0.2"
    assert not [request for request in reports(server) if "three" in request.path]
    assert client.do({"do": "change_limit", "limit": "0.2"})["error"] == "budget_error"
    assert client.do({"do": "change_limit", "limit": "0.5"}) == {}
    assert report(client, one)["epsilon"] == "0.4"
    assert client.do({"do": "balance"})["left"] == "0"


def test_consent_holds_whatever_the_server_says_later(opened: DeviceClient, server: FakeCollector) -> None:
    address, little = server.open(levels=("0.5", "1")), server.open("little")
    answered(opened, address)
    answered(opened, little, upto="0.75")
    server.open(levels=("2", "3"))
    assert "you agreed to an epsilon of at most 1" in refused(opened, address, "consent_error")
    server.campaigns["little"]["open_level"] = 2
    assert report(opened, little)["epsilon"] == "0.5"
    assert opened.do({"do": "join", "campaign": little, "upto": "2"})["error"] == "consent_error"
    assert opened.do({"do": "join", "campaign": little})["consent"] == "0.75"


@pytest.mark.parametrize("part", ["threshold of the open level", "threshold of a later level"])
def test_a_threshold_that_tells_too_much(opened: DeviceClient, server: FakeCollector, part: str) -> None:
    address = server.open()
    answered(opened, address)
    level = server.campaigns["snacks"]["levels"][0 if "open" in part else 2]
    allowed = level["threshold"]
    level["threshold"] = str(int(allowed) + 1)
    assert "larger than that epsilon allows" in refused(opened, address, "level_error")
    assert reports(server) == []
    level["threshold"] = str(int(allowed) - 1)  # more private than it must be: fine
    sent = report(opened, address)
    assert sent["threshold"] == server.campaigns["snacks"]["levels"][0]["threshold"]
    level["threshold"] = allowed
    if "open" in part:  # one epsilon has one threshold
        refused(opened, address, "level_error")


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"encoding": {"name": "categorical", "values": ["fruit", "crisps", "none"]}}, "values_changed_error"),
        ({"encoding": {"name": "categorical", "values": ["crisps", "fruit"]}}, "values_changed_error"),
        ({"encoding": {"name": "unary-optimised", "values": ["crisps", "fruit", "none"]}}, "values_changed_error"),
        ({"encoding": {"name": "bloom", "options": {"bits": 8, "hashes": 1, "cohorts": 1}}}, "level_error"),
        ({"encoding": {"name": "psychic"}}, "offer_error"),
        ({"question": "What did you vote last?"}, "path_changed_error"),
        ({"release": "another"}, "offer_error"),
        ({"attribute": "another"}, "offer_error"),
        ({"id": "another"}, "offer_error"),
        ({"state": "odd"}, "offer_error"),
        ({"open_level": 7}, "offer_error"),
        ({"open_level": True}, "offer_error"),
        ({"open_level": "0"}, "offer_error"),
        ({"largest_epsilon": "0.1"}, "offer_error"),
        ({"largest_epsilon": None}, "offer_error"),
        ({"levels": []}, "offer_error"),
        ({"levels": [{"epsilon": 0.5, "threshold": "1"}]}, "offer_error"),
        ({"levels": [{"epsilon": "0.50", "threshold": "1"}]}, "offer_error"),
        ({"levels": [{"epsilon": "NaN", "threshold": "1"}]}, "offer_error"),
        ({"levels": [{"epsilon": "1e999999999999", "threshold": "1"}]}, "offer_error"),
        ({"levels": [{"epsilon": "0.5", "threshold": "0"}]}, "offer_error"),
        ({"levels": [{"epsilon": "0.5", "threshold": str(2**64)}]}, "offer_error"),
        ({"levels": [{"epsilon": "1", "threshold": "5"}, {"epsilon": "0.5", "threshold": "6"}]}, "level_error"),
        ({"levels": [{"epsilon": "0.5", "threshold": "6"}, {"epsilon": "1", "threshold": "5"}]}, "level_error"),
    ],
)  # fmt: skip
@LONG_IN_BROWSERS
def test_a_campaign_that_changed(opened: DeviceClient, server: FakeCollector, changes: Any, code: str) -> None:
    address = server.open()
    answered(opened, address)
    server.campaigns["snacks"] |= changes
    message = refused(opened, address, code)
    assert "Nothing was sent" in message
    assert "\n" not in message
    assert reports(server) == []
    assert opened.do({"do": "balance"})["spent"] == "0"


def test_the_first_answer_is_kept(opened: DeviceClient, server: FakeCollector) -> None:
    address = server.open()
    answered(opened, address, "fruit")
    before = report(opened, address)
    done = opened.do({"do": "answer", "campaign": address, "value": "none"})
    assert done["error"] == "answer_changed_error"
    assert not any(value in done["message"] for value in ("fruit", "none", "crisps"))
    assert opened.do({"do": "answer", "campaign": address, "value": "fruit"}) == {}
    assert opened.do({"do": "sent", "campaign": address})["sent"] == [before]


@pytest.mark.parametrize("name", sorted(ENCODINGS))
@LONG_IN_BROWSERS
def test_an_answer_that_is_none(opened: DeviceClient, server: FakeCollector, name: str) -> None:
    address = server.open("c", ENCODINGS[name][0])
    assert "error" not in opened.do({"do": "join", "campaign": address})
    values: list[Any] = [None, [], {}, -8.5, 10**30, "a secret" if name != "bloom" else 5]
    for value in values:
        done = opened.do({"do": "answer", "campaign": address, "value": value})
        assert done.get("error") == "undeclared_value_error", value
        assert "secret" not in done["message"]
    assert "no answer" in refused(opened, address, "answer_missing_error")


def test_paused_waiting_and_finished(opened: DeviceClient, server: FakeCollector) -> None:
    address = server.open(state="waiting", open_level=None)
    answered(opened, address)
    assert report(opened, address) is None
    server.campaigns["snacks"] |= {"state": "paused", "open_level": 0}
    assert report(opened, address) is None
    server.campaigns["snacks"]["state"] = "open"
    sent = report(opened, address)
    server.campaigns["snacks"]["state"] = "finished"
    assert report(opened, address) is None
    secrets = opened.do({"do": "secrets", "campaign": address})
    assert (secrets["key"], secrets["answered"]) == (None, False), "after the last level, key and answer are erased"
    server.campaigns["snacks"] |= {"state": "open", "open_level": 2}
    refused(opened, address, "participation_error")
    assert opened.do({"do": "sent", "campaign": address})["sent"] == [sent]


def test_withdraw(opened: DeviceClient, server: FakeCollector, tmp_path: Path) -> None:
    address = server.open()
    answered(opened, address)
    report(opened, address)
    device = opened.do({"do": "secrets", "campaign": address})["device"]
    server.instead = lambda request: b"" if "withdraw" in request.path else None
    assert opened.do({"do": "withdraw", "campaign": address})["error"] == "unreachable_error"
    refused(opened, address, "participation_error")
    server.instead = None
    assert opened.do({"do": "withdraw", "campaign": address}) == {}
    assert server.stored == {}
    assert server.requests[-1].json == {"device": device}
    assert device not in server.requests[-1].path
    assert opened.do({"do": "balance"})["spent"] == "0.5", "what was spent does not come back"
    secrets = opened.do({"do": "secrets", "campaign": address})
    assert (secrets["key"], secrets["answered"]) == (None, False)
    assert opened.do({"do": "answer", "campaign": address, "value": "fruit"})["error"] == "participation_error"


def test_withdraw_before_anything_was_sent_tells_nobody(opened: DeviceClient, server: FakeCollector) -> None:
    address = server.open()
    answered(opened, address)
    asked = len(server.requests)
    assert opened.do({"do": "withdraw", "campaign": address}) == {}
    assert len(server.requests) == asked


@pytest.mark.parametrize("invitation", [None, "welcome"])
def test_withdraw_after_a_report_was_lost(opened: DeviceClient, server: FakeCollector, invitation: str | None) -> None:
    """The server does not know the device: it is told with what a report needs, and again after a pause."""
    address = server.open(needs_invitation=invitation is not None)
    server.invitations["welcome"] = None
    opened.do({"do": "join", "campaign": address, "invitation": invitation})
    answered(opened, address)
    server.instead = lambda request: b"" if request.path.endswith("/reports") else None
    refused(opened, address, "unreachable_error")
    late = reports(server)[-1]
    server.instead = None
    server.campaigns["snacks"]["state"] = "paused"
    assert opened.do({"do": "withdraw", "campaign": address}) == {}
    secrets = opened.do({"do": "secrets", "campaign": address})
    assert (secrets["key"], secrets["answered"]) == (None, False), "the device has left all the same"
    refused(opened, address, "participation_error")
    server.campaigns["snacks"]["state"] = "open"
    assert opened.do({"do": "withdraw", "campaign": address}) == {}
    withdrawals = [request.json for request in server.requests if request.path.endswith("/withdraw")]
    invited = {} if invitation is None else {"invitation": invitation}
    assert withdrawals == [{"device": secrets["device"], **invited}] * 2
    assert server.reply(late).startswith(b"HTTP/1.1 409 ")
    assert server.stored == {}
    assert opened.do({"do": "withdraw", "campaign": address}) == {}
    assert not server.requests[-1].path.endswith("/withdraw"), "once the server knows, it is not told again"


def test_forget(opened: DeviceClient, server: FakeCollector) -> None:
    address = server.open()
    answered(opened, address)
    report(opened, address)
    assert opened.do({"do": "forget", "campaign": address}) == {}
    server.relax()
    refused(opened, address, "participation_error")
    assert opened.do({"do": "withdraw", "campaign": address}) == {}
    assert server.stored == {}


def test_invitations(opened: DeviceClient, server: FakeCollector) -> None:
    address = server.open(needs_invitation=True)
    server.invitations["welcome"] = None
    answered(opened, address)
    refused(opened, address, "participation_error")
    assert reports(server) == []
    opened.do({"do": "join", "campaign": address, "invitation": "stolen"})
    refused(opened, address, "refused_by_server_error")
    opened.do({"do": "join", "campaign": address, "invitation": "welcome"})
    assert report(opened, address)["status"] == "sent"
    assert "invitation" in reports(server)[-1].json
    server.relax()
    report(opened, address)
    assert "invitation" not in reports(server)[-1].json, "it has served, so it is not told again"


def test_a_server_that_has_another_report(opened: DeviceClient, server: FakeCollector) -> None:
    address = server.open()
    answered(opened, address)
    device = opened.do({"do": "secrets", "campaign": address})["device"]
    server.stored["snacks", device, "0.5"] = ("something else", None)
    assert "report_differs" in refused(opened, address, "refused_by_server_error")
    assert opened.do({"do": "sent", "campaign": address})["sent"][0]["status"] == "refused"
    assert opened.do({"do": "balance"})["spent"] == "0.5", "it has left the device"


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_no_redirect_is_followed(opened: DeviceClient, server: FakeCollector, status: int) -> None:
    address = server.open()
    answered(opened, address)
    with fake_collector() as elsewhere:
        elsewhere.open()
        target = {"Location": elsewhere.address()}
        server.instead = lambda _: Reply(status, {}, target)
        refused(opened, address, "server_answer_error")
        server.instead = lambda request: Reply(status, {}, target) if request.method == "POST" else None
        refused(opened, address, "server_answer_error")
        assert elsewhere.requests == []


@pytest.mark.parametrize(
    "address",
    [
        "http://collect.example/v1/campaigns/a", "ftp://127.0.0.1/v1/campaigns/a", "https://u:p@h/v1/campaigns/a",
        "https://h/v1/campaigns/../a", "https://h/v1/campaigns/", "https://h/v1/campaigns/a?b", "https://h", "",
        "x" * 9999, "//h/v1/campaigns/a",
        "https://h:99999/v1/campaigns/a", "https://h h/v1/campaigns/a", "https://h/v1/campaigns/a#b",
        "https:///v1/campaigns/a", "https://[::1/v1/campaigns/a", "https://h/%2e/v1/campaigns/a",
    ],
)  # fmt: skip
@LONG_IN_BROWSERS
def test_addresses_that_are_none(opened: DeviceClient, address: str) -> None:
    assert opened.do({"do": "join", "campaign": address})["error"] == "address_error"


def test_the_same_whatever_the_answer(client: DeviceClient, server: FakeCollector, tmp_path: Path) -> None:
    """Two devices that differ in their answers alone send the same bytes, apart from the reports themselves."""
    address = server.open(levels=("0.5", "1", "2", "3"))
    seen = []
    client.do({"do": "open", "file": str(tmp_path / "a"), "limit": "2.5"})
    client.do({"do": "join", "campaign": address})
    (tmp_path / "b").write_bytes((tmp_path / "a").read_bytes())
    (tmp_path / "b").chmod(0o600)
    for name, value in (("a", "crisps"), ("b", "fruit")):
        other = type(client)()
        other.do({"do": "open", "file": str(tmp_path / name), "limit": None})
        server.requests.clear()
        server.stored.clear()
        server.campaigns["snacks"]["open_level"] = 0
        outcomes = [other.do({"do": "answer", "campaign": address, "value": value})]
        for step in range(4):
            server.campaigns["snacks"]["open_level"] = step
            done = other.do({"do": "report", "campaign": address})
            outcomes.append(done.get("error") or {**done["sent"], "report": ""})
        trace = []
        for request in server.requests:
            body = {**request.json, "report": ""} if request.body else None
            trace.append((request.method, request.path, {**request.headers, "content-length": ""}, json.dumps(body)))
        seen.append((outcomes, trace))
    assert seen[0] == seen[1]
    assert Decimal(client.do({"do": "balance"})["spent"]) <= Decimal("2.5")
