"""Estimates of the present state of campaigns, each computed once and kept until something changes."""

from __future__ import annotations

from collections import OrderedDict

from sqlalchemy import Connection

from relaxdp.collector import pairs, states
from relaxdp.collector.campaign import Campaign
from relaxdp.collector.estimate_wire import Estimate, EstimateOptions
from relaxdp.collector.estimates import Levels, estimate, read_counts
from relaxdp.collector.pairs import Kept
from relaxdp.collector.rules import CampaignState, decided
from relaxdp.collector.service import Collector

_MOST_KEPT = 100


class Estimates:
    """Estimates of the present state. One that was asked for already is kept until something changes."""

    def __init__(self, collector: Collector) -> None:
        self._collector = collector
        self._kept: OrderedDict[tuple[int, EstimateOptions], Estimate] = OrderedDict()

    async def now(self, campaign: Campaign, options: EstimateOptions) -> Estimate:
        """Return the estimate."""
        clock = self._collector.clock()

        def read(connection: Connection) -> tuple[Levels, Levels, Kept]:
            counted = read_counts(connection, campaign), read_counts(connection, campaign, moved=True)
            return *counted, pairs.read(connection, campaign.number)

        def work(connection: Connection) -> tuple[CampaignState, tuple[Levels, Levels, Kept] | None]:
            state = decided(campaign, states.look(connection, campaign.number), clock)
            kept = self._kept.get((campaign.number, options))
            return state, None if kept is not None and kept.version == state.version else read(connection)

        state, counted = await self._collector.read(work)
        kept = self._kept.get((campaign.number, options))
        if kept is not None and kept.version == state.version:
            return kept
        if counted is None:  # another request dropped the counts in between
            counted = await self._collector.read(read)
        levels, moved, paired = counted
        found = await self._collector.compute(lambda: estimate(campaign, state, levels, options, paired, moved))
        self._kept[campaign.number, options] = found
        while len(self._kept) > _MOST_KEPT:
            self._kept.popitem(last=False)
        return found
