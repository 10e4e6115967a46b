"""The collector: its writer, and the campaigns that it has seen."""

from __future__ import annotations

import re
from collections import OrderedDict

from starlette.requests import Request

from relaxdp.collector import campaigns
from relaxdp.collector.campaign import Campaign
from relaxdp.collector.writer import Writer
from relaxdp.server_errors import UnknownCampaignError
from relaxdp.service.resources import Resources
from relaxdp.service.wire import ID_PATTERN

_MOST_KEPT = 1000
_ID = re.compile(ID_PATTERN)


class Collector:
    """What all routes share, and beside it what the whole service does."""

    def __init__(self, resources: Resources) -> None:
        self.database, self.clock = resources.database, resources.clock
        self.read, self.compute, self.check_operator = resources.read, resources.compute, resources.check_operator
        metrics = resources.metrics
        self.reports = metrics.counter("relaxdp_reports_total", "Reports by what became of them.", ("outcome",))
        self.checks = metrics.counter(
            "relaxdp_campaign_checks_total", "Tests for fabricated reports by their result.", ("outcome",)
        )
        for outcome in ("quiet", "alarm"):
            self.checks.labels(outcome)  # shown before the first look
        commits = metrics.counter("relaxdp_commits_total", "Groups of reports, each one commit.")
        self.writer = Writer(resources.database, clock=resources.clock, stored=commits.inc)
        metrics.gauge("relaxdp_waiting_reports", "Reports that wait for their commit.", lambda: self.writer.waiting)
        self._kept: OrderedDict[str, Campaign] = OrderedDict()

    async def campaign(self, request: Request) -> Campaign:
        """Return the campaign that a request's address names."""
        return await self.campaign_named(request.path_params["id"])

    async def campaign_named(self, campaign_id: str) -> Campaign:
        """Return a campaign. It never changes, so that it is read once."""
        found = self._kept.get(campaign_id)
        if found is not None:
            return found
        if _ID.fullmatch(campaign_id) is None:
            raise UnknownCampaignError("there is no campaign with this id.")
        found = await self.read(lambda connection: campaigns.find(connection, campaign_id))
        self.keep(found)
        return found

    def keep(self, campaign: Campaign) -> None:
        """Remember a campaign."""
        self._kept[campaign.id] = campaign
        while len(self._kept) > _MOST_KEPT:
            self._kept.popitem(last=False)
