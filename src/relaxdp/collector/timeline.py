"""How a campaign went: what it did in which hour, and how many reports there were.

No time is kept with a report or a device. But a count can be one report: where an hour's number grew by one, and one
device is at that level, its hour would be known. So numbers are kept by the hour, and each of them moves by ten at
least or not at all: a ninth report is in no number before the tenth has come.

Of devices no number is kept. Beside the reports at each level, how many devices stand at each would tell how many have
come, one by one: whoever came to a later level at once is seen in an export, and would have an hour.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Literal

from msgspec import Struct
from sqlalchemy import Connection, delete, func, insert, select

from relaxdp.collector.campaign import Campaign
from relaxdp.collector.counts import pack, unpack
from relaxdp.collector.rules import CampaignState
from relaxdp.collector.schema import HOURS, STEPS

LEAST = 10
"""By how many a number that is kept moves at least."""
HOUR = 3600

What = Literal["created", "opened", "relaxed", "paused", "resumed", "finished", "reduced"]


class TimelineStep(Struct, frozen=True):
    """Something that a campaign did; a level where one was opened."""

    what: What
    level: int | None
    hour: str
    """The hour in which it was, by its beginning."""


class TimelineHour(Struct, frozen=True):
    """What there was at the end of an hour."""

    hour: str
    reports: list[int]
    """At each level, of all hours so far."""
    half_width: float | None
    """How precise the answer was, whatever it was, if all came from level to level; None without any report."""


class Timeline(Struct, frozen=True):
    """How a campaign went. Hours in which no number moved are left out."""

    campaign: str
    least: int
    """By how many each number moves at least."""
    steps: list[TimelineStep]
    hours: list[TimelineHour]


def coarse(shown: Sequence[int], now: Sequence[int]) -> tuple[int, ...]:
    """Return what is shown from now on: a number that is far enough from what was shown, or what was shown.

    >>> coarse((0, 20, 30), (9, 30, 11))
    (0, 30, 11)
    """
    return tuple(new if abs(new - old) >= LEAST else old for old, new in zip(shown, now, strict=True))


def standing(reports: Sequence[int]) -> list[int]:
    """Return how many devices have each level as their highest, if all of them came from level to level.

    >>> standing([100, 30])
    [70, 30]
    """
    devices: list[int] = []
    for number in reversed(reports):
        devices.append(max(0, number - sum(devices)))
    return devices[::-1]


def note(
    connection: Connection, campaign: Campaign, before: CampaignState | None, after: CampaignState, now: float
) -> None:
    """Keep what happened between two states, in the transaction in which it did."""
    happened = list(_happened(before, after))
    if not happened:
        return
    first = connection.execute(select(func.count()).where(STEPS.c.campaign == campaign.number)).scalar_one()
    rows = [
        {"campaign": campaign.number, "place": first + place, "hour": int(now // HOUR), "what": what, "level": level}
        for place, (what, level) in enumerate(happened)
    ]
    connection.execute(insert(STEPS), rows)
    if ("finished", None) in happened:
        record(connection, campaign, after, now)


def _happened(before: CampaignState | None, after: CampaignState) -> Iterator[tuple[What, int | None]]:
    if before is None:
        yield "created", None
        return
    if before.state == "waiting" and after.open_level is not None:
        yield "opened", 0
    for level in range((before.open_level or 0) + 1, (after.open_level or 0) + 1):
        yield "relaxed", level
    if before.state == "paused" and after.state == "open":
        yield "resumed", None
    elif before.state != after.state and after.state == "paused":
        yield "paused", None
    elif before.state != after.state and after.state == "finished":
        yield "finished", None
    if after.reduced and not before.reduced:
        yield "reduced", None


def record(connection: Connection, campaign: Campaign, state: CampaignState, now: float) -> None:
    """Keep the numbers of this hour; until it ends they may be written again."""
    hour, own = int(now // HOUR), HOURS.c.campaign == campaign.number
    query = select(HOURS.c.reports).where(own, HOURS.c.hour < hour)
    last = connection.execute(query.order_by(HOURS.c.hour.desc()).limit(1)).scalar()
    shown = (0,) * len(campaign.levels) if last is None else tuple(unpack(last).tolist())
    numbers = coarse(shown, state.reports)
    connection.execute(delete(HOURS).where(own, HOURS.c.hour == hour))
    if numbers != shown:
        connection.execute(insert(HOURS).values(campaign=campaign.number, hour=hour, reports=pack(numbers)))


def read(connection: Connection, campaign: Campaign) -> Timeline:
    """Return how it went so far."""
    steps = select(STEPS.c.what, STEPS.c.level, STEPS.c.hour).where(STEPS.c.campaign == campaign.number)
    hours = select(HOURS.c.hour, HOURS.c.reports).where(HOURS.c.campaign == campaign.number)
    found = [(hour, unpack(reports).tolist()) for hour, reports in connection.execute(hours.order_by(HOURS.c.hour))]
    return Timeline(
        campaign.id,
        LEAST,
        [
            TimelineStep(what, level, _text(hour))
            for what, level, hour in connection.execute(steps.order_by(STEPS.c.place))
        ],
        [
            TimelineHour(_text(hour), reports, campaign.precision.half_width(standing(reports)))
            for hour, reports in found
        ],
    )


def _text(hour: int) -> str:
    return datetime.fromtimestamp(hour * HOUR, UTC).strftime("%Y-%m-%dT%H:00:00Z")
