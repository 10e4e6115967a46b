"""What is published of a campaign: once, when it has ended by itself, and for good.

Two publications of devices that partly are the same have no bound but epsilon, since their noise is the same. So there
is one, of groups that nobody is in twice (a device counts at its highest level), and its counts are kept in the
transaction that ends the campaign: what happens later does not change them. All that is told is made of these counts,
and so of reports without ids in random order.
"""

from __future__ import annotations

from typing import Literal

import msgspec
import numpy as np
from sqlalchemy import Connection, insert, select, update

from relaxdp.collector import counts
from relaxdp.collector.campaign import Campaign
from relaxdp.collector.estimate_wire import EstimateOptions, Row
from relaxdp.collector.estimates import Levels, level_rows, result_of
from relaxdp.collector.rows import rows_of
from relaxdp.collector.rules import CampaignState
from relaxdp.collector.schema import CAMPAIGNS, PUBLICATIONS
from relaxdp.collector.wire import PublicEncoding
from relaxdp.estimation.shuffling import ShufflingBound, compute_bound, compute_default_delta
from relaxdp.mechanisms.bloom import Bloom
from relaxdp.server_errors import CampaignError, NotPublishedError
from relaxdp.service.codecs import Counted
from relaxdp.service.wire import WireLevel
from relaxdp.theory.epsilon import format_epsilon

Stage = Literal["never", "later", "soon", "done"]

_OPTIONS = EstimateOptions(simultaneous=True)
_BY_ITSELF = (
    "Levels opened and the campaign ended by dates and numbers of devices; nobody paused it for what reports said."
)


class Counts(msgspec.Struct, frozen=True):
    """How many reports there are, and how many support each value or bit; by cohort, where there are cohorts."""

    cohort: int | None
    reports: int
    supports: list[int]


class Group(msgspec.Struct, frozen=True):
    """The devices that stopped at one level, and what their reports cost them towards the public."""

    level: WireLevel
    devices: int
    public_epsilon: str
    rows: list[Row]
    counts: list[Counts]


class Publication(msgspec.Struct, frozen=True):
    """All that is published of a campaign. It never changes."""

    campaign: str
    question: str
    encoding: PublicEncoding
    devices: int
    """In the groups that are published."""
    least: int
    """Levels with fewer devices are left out."""
    public_epsilon: str
    """What this publication costs each of these devices towards the public, at most."""
    delta: float
    report_epsilon: str
    """What its reports cost a device towards the collector, which receives them with ids."""
    assumes: list[str]
    """What must be true for the public epsilon."""
    confidence_level: float
    rows: list[Row]
    """Of all groups together; the intervals hold for all values at once."""
    groups: list[Group]


_Kept = dict[int, dict[int, list[int]]]
_DECODER = msgspec.msgpack.Decoder(_Kept)


def check(campaign: Campaign) -> None:
    """Refuse a campaign that is to be published and would not end by itself, or has no bound."""
    asked = campaign.definition.publish
    if asked is None:
        if campaign.definition.shows_results:
            raise CampaignError("what participants are shown is what is published: say from how many devices on.")
        return
    if campaign.closes is None and campaign.definition.target is None:
        raise CampaignError("a campaign that is published ends by itself: say when it closes, or a target.")
    _bound(campaign, campaign.levels[-1].epsilon, asked.least, asked.delta or compute_default_delta(asked.least))


def close(connection: Connection, campaign: Campaign, before: CampaignState, after: CampaignState) -> None:
    """Keep the counts of what will be published, in the transaction that ends a campaign; there is no second time."""
    asked = campaign.definition.publish
    if asked is None or before.state == "finished" or after.state != "finished":
        return
    kept = {
        level: {part: numbers.tolist() for part, numbers in found.items() if numbers[0]}
        for level, devices in enumerate(after.devices)
        if devices >= asked.least
        for found in [counts.read_level(connection, campaign.number, level)]
    }
    if kept:
        row = {"campaign": campaign.number, "counts": msgspec.msgpack.encode(kept)}
        connection.execute(insert(PUBLICATIONS).values(row))


def stage(connection: Connection, campaign: Campaign, state: CampaignState) -> Stage:
    """Tell whether and when a campaign is published."""
    if campaign.definition.publish is None:
        return "never"
    query = select(PUBLICATIONS.c.content.is_not(None)).where(PUBLICATIONS.c.campaign == campaign.number)
    row = connection.execute(query).one_or_none()
    if row is not None:
        return "done" if row[0] else "soon"
    return "never" if state.state == "finished" else "later"


def unwritten(connection: Connection) -> list[str]:
    """Return the campaigns whose counts are kept, and of which nothing is told yet."""
    query = select(CAMPAIGNS.c.id).join(PUBLICATIONS, PUBLICATIONS.c.campaign == CAMPAIGNS.c.number)
    return list(connection.execute(query.where(PUBLICATIONS.c.content.is_(None))).scalars())


def kept_counts(connection: Connection, campaign: Campaign) -> Levels:
    """Return the counts that are published, by level; empty where a level is left out."""
    query = select(PUBLICATIONS.c.counts).where(PUBLICATIONS.c.campaign == campaign.number)
    kept = _DECODER.decode(connection.execute(query).scalar_one())
    return [
        {part: np.array(numbers, dtype=np.int64) for part, numbers in kept.get(level, {}).items()}
        for level in range(len(campaign.levels))
    ]


def write(connection: Connection, campaign: Campaign, content: bytes) -> None:
    """Keep what is told, unless somebody was first."""
    own = PUBLICATIONS.c.campaign == campaign.number
    connection.execute(update(PUBLICATIONS).where(own, PUBLICATIONS.c.content.is_(None)).values(content=content))


def read(connection: Connection, campaign: Campaign) -> bytes:
    """Return what is published, always the same bytes."""
    query = select(PUBLICATIONS.c.content).where(PUBLICATIONS.c.campaign == campaign.number)
    content = connection.execute(query).scalar()
    if content is None:
        raise NotPublishedError("nothing is published of this campaign.")
    return bytes(content)


def published(campaign: Campaign, levels: Levels) -> Publication:
    """Return what is told of these counts: estimates, the counts themselves, and what that costs."""
    asked = campaign.definition.publish
    assert asked is not None  # noqa: S101
    sizes = {place: _size(level) for place, level in enumerate(levels) if level}
    delta = asked.delta or compute_default_delta(sum(sizes.values()))
    bounds = {place: _bound(campaign, campaign.levels[place].epsilon, size, delta) for place, size in sizes.items()}
    worst = max(bounds.values(), key=lambda bound: bound.epsilon)
    pooled = result_of(campaign, levels, _OPTIONS)
    assert pooled is not None  # noqa: S101
    told = [
        Group(
            campaign.levels[place],
            size,
            format_epsilon(bounds[place].epsilon),
            level_rows(campaign, levels, place, _OPTIONS),
            [
                Counts(part if isinstance(campaign.encoding, Bloom) else None, int(numbers[0]), numbers[1:].tolist())
                for part, numbers in sorted(levels[place].items())
            ],
        )
        for place, size in sizes.items()
    ]
    return Publication(
        campaign=campaign.id,
        question=campaign.definition.question,
        encoding=campaign.public_encoding,
        devices=sum(sizes.values()),
        least=asked.least,
        public_epsilon=format_epsilon(worst.epsilon),
        delta=delta,
        report_epsilon=campaign.levels[max(sizes)].epsilon,
        assumes=[*worst.assumes, _BY_ITSELF],
        confidence_level=_OPTIONS.confidence_level,
        rows=rows_of(pooled, _OPTIONS, None),
        groups=told,
    )


def _size(level: Counted) -> int:
    return sum(int(numbers[0]) for numbers in level.values())


def _bound(campaign: Campaign, epsilon: str, devices: int, delta: float) -> ShufflingBound:
    return compute_bound(epsilon, n=devices, delta=delta, values=campaign.mechanism)
