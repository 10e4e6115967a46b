"""What each level told: estimates from all reports that were ever sent at a level, also of devices that went further.

The campaign's estimate counts a device once, at its highest level, and reads a few rows. This reads every report, so it
is made at most once in a while; it shows how the answer became sharper as epsilon grew.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from dataclasses import dataclass

from msgspec import UNSET, Struct
from msgspec.structs import replace
from sqlalchemy import Connection, select
from starlette.requests import Request
from starlette.responses import Response

from relaxdp import errors
from relaxdp.collector import counts, states
from relaxdp.collector.campaign import Campaign
from relaxdp.collector.estimate_wire import EstimateOptions, HistoryOptions, LevelEstimate
from relaxdp.collector.estimates import Levels, level_rows
from relaxdp.collector.schema import REPORTS
from relaxdp.collector.service import Collector
from relaxdp.collector.views import ENCODER
from relaxdp.errors import CampaignReducedError
from relaxdp.service.operations import Operation, Query, read_queries
from relaxdp.service.wire import About

_OPTIONS = (
    Query(
        "simultaneous",
        {"type": "boolean"},
        "Intervals that hold for all values at once, or of each alone; by default those that the target speaks of.",
    ),
)
_PAGE = 50_000
_MOST_KEPT = 100
_REST = 20.0
"""Reports are read again only after this many times as long as reading took: a twentieth of a core at most."""


class History(Struct, frozen=True):
    """Estimates of each level alone; `devices` are those that sent a report at that level."""

    campaign: str
    version: int
    confidence_level: float
    about: About
    simultaneous: bool
    levels: list[LevelEstimate]


@dataclass(slots=True)
class _Kept:
    """The counts of all reports, and what was estimated from them, of each value alone and of all at once."""

    version: int
    levels: Levels
    found: dict[bool, History]
    until: float = 0.0


class HistoryRoutes:
    """What the operator asks to see how an answer came about."""

    def __init__(self, collector: Collector) -> None:
        self._collector = collector
        self._kept: OrderedDict[int, _Kept] = OrderedDict()

    async def show_history(self, request: Request) -> Response:
        """Estimate each level alone."""
        await self._collector.check_operator(request)
        asked: HistoryOptions = read_queries(request, _OPTIONS, HistoryOptions)
        campaign = await self._collector.campaign(request)
        options = _options(campaign, asked)
        found = await self._collector.read(lambda connection: self._found(connection, campaign, options))
        return Response(ENCODER.encode(found), media_type="application/json")

    def operations(self) -> list[Operation]:
        """Return what the routes are."""
        return [
            Operation("GET", "/v1/campaigns/{id}/history", self.show_history, "Estimate each level alone.",
                      answer=History, queries=_OPTIONS, security="operator", nothing="Nothing was estimated.",
                      problems=(errors.UnknownCampaignError, CampaignReducedError, errors.MissingPartError)),
        ]  # fmt: skip

    def _found(self, connection: Connection, campaign: Campaign, options: EstimateOptions) -> History:
        state = states.look(connection, campaign.number)
        if state.reduced:
            raise CampaignReducedError("the reports were reduced to counts and are gone.")
        began = time.monotonic()
        kept = self._kept.get(campaign.number)
        if kept is None or (kept.version != state.version and began >= kept.until):
            kept = self._kept[campaign.number] = _Kept(state.version, all_counts(connection, campaign), {})
        if options.simultaneous not in kept.found:
            kept.found[options.simultaneous] = _history(campaign, kept, options)
            ended = time.monotonic()
            kept.until = max(kept.until, ended + _REST * (ended - began))
        while len(self._kept) > _MOST_KEPT:
            self._kept.popitem(last=False)
        return kept.found[options.simultaneous]


def _history(campaign: Campaign, kept: _Kept, options: EstimateOptions) -> History:
    return History(
        campaign.id,
        kept.version,
        options.confidence_level,
        options.about,
        options.simultaneous,
        [
            LevelEstimate(
                level.epsilon,
                level.threshold,
                int(sum(numbers[0] for numbers in kept.levels[place].values())),
                level_rows(campaign, kept.levels, place, options),
            )
            for place, level in enumerate(campaign.levels)
        ],
    )


def all_counts(connection: Connection, campaign: Campaign) -> Levels:
    """Return, for each level, the counts of all reports at it."""
    found: Levels = [{} for _ in campaign.levels]
    query = select(REPORTS.c.level, REPORTS.c.report).where(REPORTS.c.campaign == campaign.number, REPORTS.c.level >= 0)
    streamed = connection.execution_options(stream_results=True, yield_per=_PAGE)
    for rows in streamed.execute(query).partitions():
        kept: dict[int, list[bytes]] = {}
        for level, report in rows:
            kept.setdefault(level, []).append(bytes(report))
        for level, page in kept.items():
            found[level] = counts.total(found[level], campaign.codec.count(page))
    return found


def _options(campaign: Campaign, asked: HistoryOptions) -> EstimateOptions:
    """Return which intervals are shown: those that the campaign's target speaks of, unless others are asked for."""
    target = campaign.definition.target
    found = (
        EstimateOptions()
        if target is None
        else EstimateOptions(target.method, target.confidence_level, target.about, target.simultaneous)
    )
    return found if asked.simultaneous is UNSET else replace(found, simultaneous=asked.simultaneous)
