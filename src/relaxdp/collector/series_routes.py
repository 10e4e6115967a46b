"""A question that is asked repeatedly: the estimates of its dates side by side, and how they changed.

Every date is a campaign of its own, and a device has another pseudonym, key and noise in each. So no two reports can be
joined, and the noise of two dates is independent whoever took part: about these devices, the interval of a change holds
also where the same people answered twice. About the population it takes the dates for two samples; where people come
back and answer alike, it is wider than it had to be.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from itertools import pairwise

from msgspec import UNSET
from sqlalchemy import Connection
from starlette.requests import Request
from starlette.responses import Response

from relaxdp import errors
from relaxdp.collector import campaigns, states
from relaxdp.collector.campaign import Campaign
from relaxdp.collector.estimate_wire import EstimateOptions, SeriesChange, SeriesDate, SeriesEstimate
from relaxdp.collector.estimates import Levels, read_counts, result_of
from relaxdp.collector.operator_routes import QUERIES
from relaxdp.collector.rows import rows_of
from relaxdp.collector.rules import CampaignState, decided
from relaxdp.collector.service import Collector
from relaxdp.collector.views import ENCODER
from relaxdp.estimation.compare import compare
from relaxdp.estimation.result import Chosen, Places, Result
from relaxdp.service.operations import Operation, read_queries

_MOST_KEPT = 20


@dataclass(frozen=True, slots=True)
class Asked:
    """One date as it stands now."""

    campaign: Campaign
    state: CampaignState
    levels: Levels

    @property
    def date(self) -> str:
        """Which date it is."""
        series = self.campaign.definition.series
        return "" if series is None else series.date


class SeriesRoutes:
    """What the operator asks of a series."""

    def __init__(self, collector: Collector) -> None:
        self._collector = collector
        self._kept: OrderedDict[tuple[str, EstimateOptions], tuple[list[tuple[str, int]], SeriesEstimate]] = (
            OrderedDict()
        )

    async def show_series(self, request: Request) -> Response:
        """Estimate each date of a series, and the changes between them."""
        await self._collector.check_operator(request)
        options: EstimateOptions = read_queries(request, QUERIES, EstimateOptions)
        name = request.path_params["series"]
        ids = await self._collector.read(lambda connection: campaigns.ids_of_series(connection, name))
        known = [await self._collector.campaign_named(each) for each in ids]
        clock = self._collector.clock()

        def read(connection: Connection) -> list[Asked]:
            return [
                Asked(
                    each,
                    decided(each, states.look(connection, each.number), clock),
                    read_counts(connection, each),
                )
                for each in known
            ]

        dates = await self._collector.read(read)
        versions = [(each.campaign.id, each.state.version) for each in dates]
        kept = self._kept.get((name, options))
        if kept is None or kept[0] != versions:
            kept = versions, await self._collector.compute(lambda: series_estimate(name, dates, options))
            self._kept[name, options] = kept
            while len(self._kept) > _MOST_KEPT:
                self._kept.popitem(last=False)
        return Response(ENCODER.encode(kept[1]), media_type="application/json")

    def operations(self) -> list[Operation]:
        """Return what the routes are."""
        return [
            Operation("GET", "/v1/series/{series}/estimate", self.show_series,
                      "Estimate each date of a series, and the changes between them.", answer=SeriesEstimate,
                      queries=QUERIES, security="operator", nothing="Nothing was estimated.",
                      problems=(errors.UnknownCampaignError, errors.MissingPartError)),
        ]  # fmt: skip


def series_estimate(name: str, dates: list[Asked], options: EstimateOptions) -> SeriesEstimate:
    """Return the estimates of all dates; where only the largest values are shown, those of the last date are."""
    found = [result_of(each.campaign, each.levels, options) for each in dates]
    told = [(each.date, result) for each, result in zip(dates, found, strict=True) if result is not None]
    chosen = _chosen(told[-1][1], options) if told else None
    return SeriesEstimate(
        series=name,
        encoding=dates[-1].campaign.public_encoding,
        method=options.method,
        confidence_level=options.confidence_level,
        about=options.about,
        simultaneous=options.simultaneous or chosen is not None,
        values=len(told[-1][1].labels) if told else 0,
        dates=[
            SeriesDate(
                date=each.date,
                campaign=each.campaign.id,
                question=each.campaign.definition.question,
                state=each.state.state,
                epsilon=None if each.state.open_level is None else each.campaign.levels[each.state.open_level].epsilon,
                devices=sum(each.state.devices),
                rows=None if result is None else rows_of(result, options, chosen),
            )
            for each, result in zip(dates, found, strict=True)
        ],
        changes=[
            SeriesChange(earlier, later, rows_of(compare(old, new), options, chosen))
            for (earlier, old), (later, new) in pairwise(told)
        ],
    )


def _chosen(last: Result, options: EstimateOptions) -> Places | None:
    shown = last if options.largest is UNSET else last.largest(options.largest)
    return shown.places if isinstance(shown, Chosen) else None
