"""A server that says anything at all: the limit holds, no level gets two reports, nothing secret leaves.

What was spent is worked out here from the bytes that arrived, never from the device's own books. RELAXDP_FAULTS sets
how many servers are tried (60 with the tests).
"""

from __future__ import annotations

import copy
import json
import os
import tempfile
from base64 import b64decode
from collections import Counter
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.exact.enumeration import compute_realised_epsilon
from tests.patience import PATIENCE
from tests.servers.fake_collector import FakeCollector, Reply, Request, fake_collector

from relaxdp.device import Device
from relaxdp.device.client import Client
from relaxdp.device.offer import encoding_of
from relaxdp.device.state import DeviceState
from relaxdp.errors import BudgetExceededError, RelaxdpError
from relaxdp.theory.epsilon import ONE

SERVERS = int(os.environ.get("RELAXDP_FAULTS", "60"))
"""How often what happened over all servers: a suite in which nothing happens shows nothing."""
VALUES = ["crisps", "fruit", "none"]
TRUTH = "fruit"


class Campaign(NamedTuple):
    """A campaign, and what a threshold means in it: each of `differing` symbols is a response with this alphabet."""

    encoding: dict[str, Any]
    alphabet: int
    differing: int
    width: int = 0


CAMPAIGNS = {
    "a": Campaign({"name": "categorical", "values": VALUES}, 3, 1),
    "b": Campaign({"name": "unary-symmetric", "values": VALUES}, 2, 2, 1),
    "c": Campaign({"name": "bloom", "options": {"bits": 16, "hashes": 2, "cohorts": 4}}, 2, 4, 2),
}
PLAIN = ["0.1", "0.25", "0.5", "1", "2", "7", "80"]
EPSILONS = [*PLAIN, "0.0000001", "1e3", "-1", "NaN", "Infinity", "0.50", "٣", "", "9" * 80]
JUNK: Any = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)
THRESHOLDS = st.one_of(
    st.integers(-1, 2 * ONE).map(str), st.just(str(ONE - 1)), st.just("1"), st.integers(), st.just("1" * 30)
)


LEVELS = st.lists(st.sampled_from(PLAIN), min_size=1, max_size=4)
ODD_LEVELS = st.lists(
    st.fixed_dictionaries({"epsilon": st.sampled_from(EPSILONS), "threshold": THRESHOLDS}) | JUNK, max_size=3
)
LISTS = st.permutations(VALUES) | st.just([*VALUES, "other"]) | st.just(["no", "yes"]) | st.just(["\ud800", "e\u0301"])
ENCODINGS = (
    st.fixed_dictionaries(
        {"name": st.sampled_from(["categorical", "unary-optimised", "unary-symmetric", "auto"]), "values": LISTS}
    )
    | st.builds(lambda g: {"name": "local-hash", "values": VALUES, "options": {"buckets": g}}, st.integers() | JUNK)
    | st.builds(lambda ends: {"name": "numeric", "range": ends}, st.lists(st.floats() | st.integers(), max_size=3))
    | st.builds(lambda k: {"name": "bloom", "options": {"bits": k, "hashes": 1, "cohorts": 1}}, st.integers(0, 99))
    | JUNK
)
CHANGES = st.fixed_dictionaries(
    {},
    optional={
        "id": JUNK,
        "question": st.just("Another question?") | JUNK,
        "encoding": ENCODINGS,
        "release": JUNK,
        "attribute": JUNK,
        "levels": ODD_LEVELS,
        "open_level": st.integers(-2, 5) | JUNK,
        "state": st.sampled_from(["waiting", "paused", "finished"]) | JUNK,
        "largest_epsilon": st.sampled_from(EPSILONS) | JUNK,
        "needs_invitation": JUNK,
    },
)
PLAUSIBLE = st.tuples(LEVELS, st.integers(0, 3), st.sampled_from([0, 0, 0, -1, 1, 10**15]))
"""Levels that a server could really have, except that their thresholds may be a little or a lot too large."""
RAW = st.sampled_from(
    [
        b"", b"\x00\x01", b"HTTP/1.1 200 OK\r\n\r\n[", b"HTTP/1.1 999 X\r\n\r\n", b"SSH-2.0-x\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\n{}", b"HTTP/1.1 200 OK\r\nContent-Length: 99999999\r\n\r\n{}",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"HTTP/1.1 200 OK\r\n" + b"A: b\r\n" * 200 + b"\r\n",
        b"HTTP/1.1 200 OK\r\nA: " + b"b" * 70_000 + b"\r\n\r\n", b"HTTP/1.1 100 Continue\r\n\r\n" * 3,
        b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\n\x1f\x8b",
        b"HTTP/1.1 429 X\r\nRetry-After: 99999999\r\n\r\n",
    ]
)  # fmt: skip
BODIES = st.sampled_from(
    [
        b"", b"null", b"NaN", b"[" * 100_000, b'{"status": NaN}', b"9" * 10_000, b'"\\ud800"', b"\xff\xfe", b"1e999",
        b'{"status": "new", "status": "old"}', b'{"error": "x", "message": "\\u001b[31m"}', b" " * (10 << 20),
    ]
)  # fmt: skip
ANSWERS = st.one_of(
    *[st.tuples(st.just("plausible"), PLAUSIBLE)] * 4,
    st.tuples(st.just("changed"), CHANGES),
    st.tuples(st.just("raw"), RAW),
    st.tuples(st.just("body"), st.tuples(st.sampled_from([200, 201, 204, 302, 307, 400, 404, 409, 500, 503]), BODIES)),
    st.tuples(st.just("json"), st.tuples(st.sampled_from([200, 400, 409]), JUNK)),
    st.tuples(st.just("replay"), st.integers(0, 5)),
    st.tuples(st.just("honest"), st.none()),
)
STEPS = st.lists(
    st.tuples(
        st.sampled_from(["report", "report", "report", "sync", "join", "answer"]), st.integers(0, 2), ANSWERS, ANSWERS
    ),
    min_size=4,
    max_size=12,
)


@pytest.fixture(scope="module")
def server() -> Iterator[FakeCollector]:
    with fake_collector() as collector:
        yield collector


class Hostile:
    """Answers to the first and to the second request of a step as it was told, and then honestly."""

    def __init__(self, server: FakeCollector) -> None:
        self.server = server
        self.plan: list[tuple[str, Any]] = []
        self.past: list[bytes] = []

    def __call__(self, request: Request) -> Reply | bytes | None:
        step: tuple[str, Any] = self.plan.pop(0) if self.plan else ("honest", None)
        kind, what = step
        campaign = copy.deepcopy(self.server.campaigns[request.path.split("/")[3]])
        if kind == "changed":
            data = Reply(200, {**campaign, **what}).data()
        elif kind == "plausible":
            data = Reply(200, {**campaign, **plausible(campaign["id"], *what)}).data()
        elif kind == "raw":
            data = what
        elif kind in ("body", "json"):
            status, body = what
            data = Reply(status, body, {"Location": "http://127.0.0.1:9/"}).data()
        elif kind == "replay" and self.past:
            data = self.past[what % len(self.past)]
        else:
            data = self.server._answer(request).data()
        self.past.append(data)
        return data


def plausible(name: str, epsilons: list[str], place: int, slack: int) -> dict[str, Any]:
    """Levels for one of the campaigns, with thresholds that are right or off by `slack`."""
    encoding, growing = encoding_of(CAMPAIGNS[name].encoding), sorted(set(epsilons), key=Decimal)
    levels = [{"epsilon": e, "threshold": str(encoding.threshold(Decimal(e)) + slack)} for e in growing]
    return {"levels": levels, "open_level": place % len(levels), "largest_epsilon": "80"}


def reports(server: FakeCollector) -> Iterator[tuple[str, Request]]:
    for request in server.requests:
        if request.path.endswith("/reports"):
            yield request.path.split("/")[3], request


def spent_by_what_arrived(server: FakeCollector) -> Decimal:
    """What the reports that arrived can tell at most, from their thresholds and the encoding that was answered."""
    largest: dict[tuple[str, str], int] = {}
    for name, request in reports(server):
        place = (name, request.json["device"])
        largest[place] = max(largest.get(place, 0), int(request.json["level"]["threshold"]))
    return sum(
        (
            CAMPAIGNS[name].differing * compute_realised_epsilon(threshold, CAMPAIGNS[name].alphabet)
            for (name, _), threshold in largest.items()
        ),
        Decimal(0),
    )


def check_reports(server: FakeCollector) -> int:
    """Return at how many levels there was a report, after a look at each."""
    seen: dict[tuple[str, ...], Any] = {}
    for name, request in reports(server):
        level, campaign = request.json["level"], CAMPAIGNS[name]
        assert set(request.json) == {"device", "level", "report"} | ({"cohort"} if name == "c" else set())
        place = (name, request.json["device"], level["epsilon"])
        assert seen.setdefault(place, request.body) == request.body
        assert int(level["threshold"]) <= encoding_of(campaign.encoding).threshold(Decimal(level["epsilon"]))
        report = request.json["report"]
        assert report in VALUES if name == "a" else len(b64decode(report, validate=True)) == campaign.width
    assert all(request.body == b"" for request in server.requests if request.method == "GET")
    return len(seen)


@settings(max_examples=SERVERS, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
@given(limit=st.sampled_from(["0.1", "0.6", "1.3", "2.25", "5"]), steps=STEPS)
def one_hostile_server(server: FakeCollector, seen: Counter[str], limit: str, steps: Any) -> None:
    """Let one server say anything, and look at every byte that a device sent to it."""
    server.requests.clear()
    server.stored.clear()
    addresses = [
        server.open(name, campaign.encoding, levels=("0.1", "0.5", "1", "2"), open_level=place)
        for place, (name, campaign) in enumerate(CAMPAIGNS.items())
    ]
    hostile = Hostile(server)
    client = Client(timeout=PATIENCE, attempts=2, sleep=lambda _: None)
    said: list[RelaxdpError] = []
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "device"
        device = Device.open(file, limit=limit, client=client)
        server.instead = None
        for address in addresses:
            device.join(address).answer(TRUTH)
        server.instead = hostile
        for action, which, *plan in steps:
            hostile.plan = list(plan)
            participation = device.campaigns[which]
            try:
                if action == "report":
                    participation.report()
                elif action == "sync":
                    device.sync()
                elif action == "join":
                    device.join(addresses[which])
                else:
                    participation.answer("none")
            except RelaxdpError as problem:
                said.append(problem)
            server.instead, kept = None, server.instead
            assert spent_by_what_arrived(server) <= device.spent <= device.limit == Decimal(limit)
            server.instead = kept
        assert all(problem.message.isprintable() for problem in said)
        seen.update(problem.code for problem in said)
        seen["reports"] += check_reports(server)
        every_byte = b"".join(request.raw for request in server.requests)
        for campaign in json.loads(file.read_bytes())["campaigns"]:
            for secret in filter(None, (campaign["key"],)):
                assert secret.encode() not in every_byte
                assert bytes.fromhex(secret) not in every_byte


@pytest.mark.long
def test_a_server_that_says_anything(server: FakeCollector) -> None:
    """No server gets more than the limit allows. It was no idle talk: reports went out, and were refused for every
    kind of reason.
    """
    seen: Counter[str] = Counter()
    one_hostile_server(server, seen)
    print(f"{SERVERS} servers: {dict(seen)}")
    assert seen["reports"] > SERVERS
    kinds = {"level_error", "offer_error", "server_answer_error", "unreachable_error", "budget_exceeded_error"}
    assert kinds <= set(seen)


def test_the_suite_would_notice_a_device_that_overspends(
    server: FakeCollector, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A mutant that forgets what other campaigns have cost sends too much, and the count of what arrived says so."""
    server.requests.clear()
    server.instead = None
    device = Device.open(tmp_path / "device", limit="1")
    for name in "ab":
        device.join(server.open(name, CAMPAIGNS[name].encoding, levels=("0.8",))).answer(TRUTH)
    device.campaigns[0].report()
    assert spent_by_what_arrived(server) <= device.limit
    with pytest.raises(BudgetExceededError):
        device.campaigns[1].report()
    monkeypatch.setattr(DeviceState, "spent", Decimal(0))
    device.campaigns[1].report()
    assert spent_by_what_arrived(server) > 1
