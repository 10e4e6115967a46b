"""Counts always equal a recount of the stored reports, whatever devices, operators and chance do, on both stores."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import select

from relaxdp.collector import campaigns, counts, pairs, states
from relaxdp.collector.campaign import Campaign
from relaxdp.collector.definition import complete
from relaxdp.collector.ingest import Item, ingest
from relaxdp.collector.schema import REPORTS, WITHDRAWN
from relaxdp.collector.wire import CampaignRequest, LevelRequest
from relaxdp.estimation.report_pairs import count_packed_report_pairs
from relaxdp.mechanisms.bloom import Bloom
from relaxdp.server_errors import CampaignStateError
from relaxdp.service.wire import EncodingRequest
from relaxdp.storage.database import Database

LEVELS = [LevelRequest("0.5"), LevelRequest("1"), LevelRequest("2")]
ENCODINGS = {
    "categorical": EncodingRequest("categorical", ["a", "b", "c"]),
    "unary": EncodingRequest("unary-optimised", ["a", "b", "c"]),
    "local-hash": EncodingRequest("local-hash", ["a", "b", "c"], options={"buckets": 3}),
    "numeric": EncodingRequest("numeric", range=(0.0, 1.0)),
    "wave": EncodingRequest("wave", range=(0.0, 1.0), options={"bins": 2, "window": 2}),
    "bloom": EncodingRequest("bloom", options={"bits": 8, "hashes": 1, "cohorts": 2}, candidates=["a", "b"]),
}
FIXED = {"local-hash": 8, "bloom": 4}
DEVICES = [bytes([number]) * 16 for number in range(6)]


def kept(encoding: str, device: int, choice: int) -> bytes:
    """One of a few reports that a device could send; seeds and cohorts mostly stay, as they should."""
    if encoding == "local-hash":
        return bytes([device + 7 * (choice == 5)]) * 8 + bytes([choice % 3])
    if encoding == "bloom":
        return bytes([(device + (choice == 5)) % 2, 0, 0, 0, choice % 256])
    if encoding == "numeric":
        return bytes([choice % 2])
    return bytes([choice % 3])


REPORT = st.tuples(st.integers(0, 5), st.integers(0, 2), st.integers(0, 5))
DEED = st.one_of(
    st.tuples(st.just("reports"), st.lists(REPORT, min_size=1, max_size=8)),
    st.tuples(st.just("withdraw"), st.integers(0, 5)),
    st.tuples(st.sampled_from(["relax", "relax", "pause", "resume"]), st.none()),
)


class Model:
    """What ought to be stored, in plain Python: reports by device, and what the operator did."""

    def __init__(self) -> None:
        self.rows: dict[bytes, dict[int, bytes]] = {}
        self.gone: set[bytes] = set()
        self.level, self.open = 0, True

    def outcome(self, device: bytes, level: int, report: bytes, fixed: int) -> str:
        own = self.rows.get(device, {})
        if device in self.gone:
            return "device_withdrawn"
        if level in own:
            return "same" if own[level] == report else "report_differs"
        if any(each[:fixed] != report[:fixed] for each in own.values()):
            return "report_differs"
        if not self.open:
            return "campaign_closed"
        if level > self.level:
            return "level_not_open"
        self.rows.setdefault(device, {})[level] = report
        return "new"


@pytest.mark.parametrize("encoding", ENCODINGS)
@given(deeds=st.lists(DEED, min_size=1, max_size=25))
@settings(
    max_examples=60, deadline=None, derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)  # fmt: skip
def test_counts_equal_a_recount(database: Database, encoding: str, deeds: list[tuple[str, Any]]) -> None:
    request = complete(CampaignRequest("q", ENCODINGS[encoding], LEVELS))
    with database.writing() as connection:
        campaign = campaigns.create(connection, Campaign(0, request), now=0.0)
    model = Model()
    for deed, detail in deeds:
        if deed == "reports":
            chosen = [(DEVICES[d], level, kept(encoding, d, choice)) for d, level, choice in detail]
            items = [Item(*each) for each in chosen]
            with database.writing() as connection:
                ingest(connection, campaign, items, now=0.0)
            wanted = [model.outcome(*each, FIXED.get(encoding, 0)) for each in chosen]
            assert [item.outcome for item in items] == wanted
        elif deed == "withdraw":
            device = DEVICES[detail]
            with database.writing() as connection:
                campaigns.withdraw(connection, campaign, device, now=0.0)
            if model.rows.pop(device, {}) or model.open:
                model.gone.add(device)
        else:
            step(database, campaign, deed, model)
        check(database, campaign, model)


def step(database: Database, campaign: Campaign, deed: Any, model: Model) -> None:
    possible = {"relax": model.open and model.level < 2, "pause": model.open, "resume": not model.open}[deed]
    try:
        with database.writing() as connection:
            campaigns.step(connection, campaign, deed, now=0.0)
    except CampaignStateError:
        assert not possible
        return
    assert possible
    model.level += deed == "relax"
    model.open = deed != "pause"


def pair_counts(campaign: Campaign, both: list[tuple[bytes, bytes]], moved: bool) -> Any:
    """What is kept of pairs, from the encoding itself; what older reports of those that went on support is not."""
    first = FIXED.get(campaign.encoding.name, 0) if isinstance(campaign.encoding, Bloom) else 0
    older, newer = (np.array([list(pair[place][first:]) for pair in both], dtype=np.uint8) for place in (0, 1))
    found = count_packed_report_pairs(campaign.encoding, older, newer)
    labels = (len(found) - 2) // 3
    found[2 + labels : 2 + 2 * labels] *= not moved
    return found


def check(database: Database, campaign: Campaign, model: Model) -> None:
    """Recount from the stored rows and from the model, and compare with what was kept along the way."""
    table = REPORTS.c
    with database.reading() as connection:
        query = select(table.device_digest, table.level, table.report).where(table.campaign == campaign.number)
        stored: dict[bytes, dict[int, bytes]] = {}
        for device, level, report in connection.execute(query):
            stored.setdefault(bytes(device), {})[level] = bytes(report)
        state = states.look(connection, campaign.number)
        found, left = (
            [counts.read_level(connection, campaign.number, level, moved=each) for level in range(3)]
            for each in (False, True)
        )
        paired = pairs.read(connection, campaign.number)
    assert {device for device, own in stored.items() if WITHDRAWN in own} == model.gone
    assert {device: own for device, own in stored.items() if WITHDRAWN not in own} == model.rows
    assert (state.open_level, state.state) == (model.level, "open" if model.open else "paused")
    for level in range(3):
        highest = [own[level] for own in model.rows.values() if max(own) == level]
        earlier = [own[level] for own in model.rows.values() if level in own and max(own) > level]
        assert state.devices[level] == len(highest)
        assert state.reports[level] == len(highest) + len(earlier)
        for kept, reports in ((found[level], highest), (left[level], earlier)):
            wanted = campaign.codec.count(reports) if reports else {}
            for part in {*wanted, *kept}:
                have = kept.get(part)
                assert np.array_equal(0 if have is None else have, wanted.get(part, np.zeros_like(have)))
    for older, newer, moved in ((0, 1, False), (1, 2, False), (0, 2, False), (0, 1, True), (1, 2, True)):
        both = [
            (own[older], own[newer])
            for own in model.rows.values()
            if {older, newer} <= {*own}
            and not any(older < level < newer for level in own)
            and (not moved or max(own) > newer)
        ]
        have = paired.get(pairs.Place(older, newer, moved))
        wanted_pairs = pair_counts(campaign, both, moved) if both else np.zeros_like(0 if have is None else have)
        assert np.array_equal(0 if have is None else have, wanted_pairs)


def test_a_mistake_in_the_counts_would_be_seen(database: Database) -> None:
    """The recount must fail where counts are added but an earlier level is not taken away: a mutant."""
    request = complete(CampaignRequest("q", ENCODINGS["categorical"], LEVELS))
    with database.writing() as connection:
        campaign = campaigns.create(connection, Campaign(0, request), now=0.0)
        campaigns.step(connection, campaign, "relax", now=0.0)
        ingest(connection, campaign, [Item(DEVICES[0], 0, b"\0"), Item(DEVICES[0], 1, b"\0")], now=0.0)
        counts.add(connection, campaign.number, {0: campaign.codec.count([b"\0"])})
    model = Model()
    model.level, model.rows = 1, {DEVICES[0]: {0: b"\0", 1: b"\0"}}
    with pytest.raises(AssertionError):
        check(database, campaign, model)


def test_a_pair_that_stays_after_a_report_between_its_two_would_be_seen(database: Database) -> None:
    """A device that sends the middle level last has two other pairs than before: a mutant that forgets the old one."""
    request = complete(CampaignRequest("q", ENCODINGS["categorical"], LEVELS))
    own = {0: b"\0", 1: b"\1", 2: b"\0"}
    with database.writing() as connection:
        campaign = campaigns.create(connection, Campaign(0, request), now=0.0)
        for _ in range(2):
            campaigns.step(connection, campaign, "relax", now=0.0)
        for level in (0, 2, 1):
            ingest(connection, campaign, [Item(DEVICES[0], level, own[level])], now=0.0)
    model = Model()
    model.level, model.rows = 2, {DEVICES[0]: own}
    check(database, campaign, model)
    with database.writing() as connection:
        forgotten = {pairs.Place(0, 2, False): pair_counts(campaign, [(b"\0", b"\0")], False)}
        pairs.add(connection, campaign.number, forgotten)
    with pytest.raises(AssertionError):
        check(database, campaign, model)


@pytest.mark.parametrize("kind", ["open", "invitations", "waiting", "paused", "finished", "closed by its date"])
def test_made_up_withdrawals_write_nothing_where_reports_would_not(database: Database, kind: str) -> None:
    """In an open campaign each is a row, as a report of each would be; elsewhere there is none."""
    dates = {"waiting": {"opens": "2100-01-01T00:00:00Z"}, "closed by its date": {"closes": "1970-01-02T00:00:00Z"}}
    more: Any = {"invitations": True} if kind == "invitations" else dates.get(kind, {})
    with database.writing() as connection:
        request = complete(CampaignRequest("q", ENCODINGS["categorical"], LEVELS, **more))
        campaign = campaigns.create(connection, Campaign(0, request), now=0.0)
        if kind in ("paused", "finished"):
            campaigns.step(connection, campaign, "pause" if kind == "paused" else "finish", now=0.0)
        items = [Item(bytes([number, 1]) * 8, 0, b"\1") for number in range(20)]
        later = 90_000.0  # a day and an hour
        for number in range(20):
            campaigns.withdraw(connection, campaign, bytes([number, 0]) * 8, later, invitation=b"none")
        table = REPORTS.c
        stored = connection.execute(select(table.level).where(table.campaign == campaign.number)).scalars().all()
        ingest(connection, campaign, items, later)
        taken = [item for item in items if item.outcome == "new"]
    assert stored == [WITHDRAWN] * len(taken)
    assert len(taken) == (20 if kind == "open" else 0)


def test_reduced_campaigns_lose_their_reports_and_keep_their_counts(database: Database) -> None:
    request = complete(CampaignRequest("q", ENCODINGS["categorical"], LEVELS))
    with database.writing() as connection:
        campaign = campaigns.create(connection, Campaign(0, request), now=0.0)
        ingest(connection, campaign, [Item(device, 0, b"\1") for device in DEVICES], now=0.0)
        for what in ("finish", "reduce"):
            campaigns.step(connection, campaign, what, now=0.0)
        before = counts.read_level(connection, campaign.number, 0)
        assert campaigns.sweep(connection, campaign, 4) == 4
        assert campaigns.sweep(connection, campaign, 4) == 2
        assert campaigns.sweep(connection, campaign, 4) == 0
        assert np.array_equal(before[0], counts.read_level(connection, campaign.number, 0)[0])
