"""What is kept of the hours of a campaign: no number that fewer than ten reports made, and every step that it took."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from relaxdp.collector import campaigns, states, timeline
from relaxdp.collector.campaign import Campaign
from relaxdp.collector.definition import complete
from relaxdp.collector.ingest import Item, ingest
from relaxdp.collector.timeline import HOUR, LEAST, coarse
from relaxdp.collector.wire import CampaignRequest, LevelRequest
from relaxdp.service.schema import SCHEMA
from relaxdp.service.wire import EncodingRequest
from relaxdp.storage.database import Database

LEVELS = [LevelRequest("0.5"), LevelRequest("1")]


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Database]:
    made = Database(f"sqlite:///{tmp_path_factory.mktemp('timeline')}/service.db")
    made.prepare(SCHEMA)
    yield made
    made.close()


def created(database: Database, **more: object) -> Campaign:
    asked = CampaignRequest("q", EncodingRequest("categorical", ["a", "b"]), LEVELS, **more)  # type: ignore[arg-type]
    with database.writing() as connection:
        return campaigns.create(connection, Campaign(0, complete(asked)), now=0.0)


def send(database: Database, campaign: Campaign, first: int, number: int, now: float, level: int = 0) -> None:
    items = [Item(device.to_bytes(16, "big"), level, b"\0") for device in range(first, first + number)]
    with database.writing() as connection:
        ingest(connection, campaign, items, now)
        timeline.record(connection, campaign, states.look(connection, campaign.number), now)


@given(st.lists(st.lists(st.integers(0, 40), min_size=2, max_size=2), max_size=20))
def test_no_number_moves_by_fewer_than_ten(moves: list[list[int]]) -> None:
    shown: tuple[int, ...] = (0, 0)
    for now in moves:
        following = coarse(shown, now)
        assert all(new == old or abs(new - old) >= LEAST for old, new in zip(shown, following, strict=True))
        assert all(abs(each - true) < LEAST for each, true in zip(following, now, strict=True))
        shown = following


@given(arrivals=st.lists(st.tuples(st.integers(0, 3), st.integers(1, 14)), max_size=12))
@settings(max_examples=25, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_an_hour_is_told_of_ten_reports_or_of_none(database: Database, arrivals: list[tuple[int, int]]) -> None:
    """However reports come, also in the middle of an hour, each told number is ten or more away from the one before."""
    campaign, now, sent = created(database), 0.0, 0
    for wait, number in arrivals:
        now += wait * HOUR / 2
        send(database, campaign, sent, number, now)
        sent += number
        with database.reading() as connection:
            found = timeline.read(connection, campaign)
        told = [0, *(each.reports[0] for each in found.hours)]
        assert all(new - old >= LEAST for old, new in pairwise(told))
        assert sent - told[-1] < LEAST
        assert [each.hour for each in found.hours] == sorted({each.hour for each in found.hours})


def test_the_steps_of_a_campaign(database: Database) -> None:
    campaign = created(database, opens="1970-01-01T01:00:00Z", devices=20)
    with database.writing() as connection:
        campaigns.tick(connection, campaign, 1.5 * HOUR)
    send(database, campaign, 0, 25, 2.5 * HOUR)
    for what, hour in (("pause", 3), ("resume", 4), ("finish", 5), ("reduce", 6)):
        with database.writing() as connection:
            campaigns.step(connection, campaign, what, hour * HOUR)  # type: ignore[arg-type]
    with database.reading() as connection:
        found = timeline.read(connection, campaign)
    assert [(each.what, each.level, each.hour[11:13]) for each in found.steps] == [
        ("created", None, "00"), ("opened", 0, "01"), ("relaxed", 1, "02"), ("paused", None, "03"),
        ("resumed", None, "04"), ("finished", None, "05"), ("reduced", None, "06"),
    ]  # fmt: skip
    (last,) = found.hours
    assert (last.hour, last.reports) == ("1970-01-01T02:00:00Z", [25, 0])
    assert last.half_width == campaign.precision.half_width([25, 0])


def test_the_database_has_no_hour_of_a_single_report(database: Database) -> None:
    """One device goes on in another hour than the others: nothing in the tables has that hour."""
    campaign = created(database)
    send(database, campaign, 0, 12, 2 * HOUR)
    with database.writing() as connection:
        campaigns.step(connection, campaign, "relax", 2 * HOUR)
    send(database, campaign, 0, 1, 5 * HOUR, level=1)
    with database.writing() as connection:
        campaigns.step(connection, campaign, "finish", 9 * HOUR)
    with database.reading() as connection:
        found = timeline.read(connection, campaign)
    assert "T05" not in str(found)
    assert [each.reports for each in found.hours] == [[12, 0]]


def test_numbers_together_do_not_tell_of_a_single_device_either(database: Database) -> None:
    """One of 60 devices at the second level comes there at once, and the others from the first, in two hours.

    A file of reports shows which one it is. Its hour must not follow from all numbers of both hours either.
    """
    told = []
    for late in (3, 4):
        campaign = created(database)
        send(database, campaign, 0, 100, 2 * HOUR)
        with database.writing() as connection:
            campaigns.step(connection, campaign, "relax", 2 * HOUR)
        # The other 59 go on, 30 in each hour together with the late one.
        send(database, campaign, 1000, int(late == 3), 3 * HOUR, level=1)
        send(database, campaign, 0, 30 - int(late == 3), 3 * HOUR, level=1)
        send(database, campaign, 1000, int(late == 4), 4 * HOUR, level=1)
        send(database, campaign, 30 - int(late == 3), 30 - int(late == 4), 4 * HOUR, level=1)
        with database.reading() as connection:
            told.append(timeline.read(connection, campaign).hours)
            assert states.look(connection, campaign.number).devices == (41, 60)
    assert told[0] == told[1]


def test_an_hour_of_a_single_report_would_be_seen(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """The test before must fail where numbers move by one: a mutant."""
    monkeypatch.setattr(timeline, "LEAST", 1)
    with pytest.raises(AssertionError):
        test_the_database_has_no_hour_of_a_single_report(database)
