"""Campaigns are tested for fabricated reports without a request, so that a metric can alert the operator."""

from __future__ import annotations

from sqlalchemy import Connection

from relaxdp.collector import campaigns, pairs, states
from relaxdp.collector.campaign import Campaign
from relaxdp.collector.integrity import inspected
from relaxdp.collector.pairs import Kept
from relaxdp.collector.rules import CampaignState
from relaxdp.collector.service import Collector

_SECONDS = 60.0


class Watch:
    """Looks at campaigns that changed, once a minute at most. However often it looks, false alarms stay as rare."""

    def __init__(self, collector: Collector) -> None:
        self._collector, self._versions, self._next = collector, dict[str, int](), 0.0

    async def look(self) -> None:
        """Look at all campaigns of which something is new, and count what was found."""
        now = self._collector.clock()
        if now < self._next:
            return
        self._next = now + _SECONDS
        for name in await self._collector.read(campaigns.all_ids):
            campaign = await self._collector.campaign_named(name)
            if len(campaign.levels) > 1:
                await self._look_at(campaign)

    async def _look_at(self, campaign: Campaign) -> None:
        last = self._versions.get(campaign.id)

        def work(connection: Connection) -> tuple[CampaignState, Kept]:
            state = states.look(connection, campaign.number)
            return state, {} if state.version == last else pairs.read(connection, campaign.number)

        state, kept = await self._collector.read(work)
        self._versions[campaign.id] = state.version
        if kept:
            found = await self._collector.compute(lambda: inspected(campaign, state, kept).is_alarm)
            self._collector.checks.labels("alarm" if found else "quiet").inc()
