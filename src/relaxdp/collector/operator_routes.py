"""Routes of the operator: campaigns and their life, invitations, estimates, exports."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import IO, Any

from sqlalchemy import Connection
from starlette.requests import Request
from starlette.responses import Response

from relaxdp.collector import campaigns, states
from relaxdp.collector.campaign import Campaign
from relaxdp.collector.campaigns import Step
from relaxdp.collector.estimate_cache import Estimates
from relaxdp.collector.estimate_wire import QUANTILES, Estimate, EstimateOptions
from relaxdp.collector.estimates import csv_text
from relaxdp.collector.export import export
from relaxdp.collector.invitations import invite
from relaxdp.collector.rules import decided
from relaxdp.collector.service import Collector
from relaxdp.collector.views import ENCODER, operator_view, tagged
from relaxdp.collector.wire import (
    CampaignRequest,
    Campaigns,
    ExportOptions,
    InvitationRequest,
    Invitations,
    OperatorCampaign,
)
from relaxdp.errors import MissingDependencyError
from relaxdp.server_errors import (
    CampaignError,
    CampaignExistsError,
    CampaignReducedError,
    CampaignStateError,
    UnknownCampaignError,
)
from relaxdp.service.limits import Limits, decode, decoder_of, read_body
from relaxdp.service.operations import Operation, Query, read_queries
from relaxdp.service.transfer import HandedOut

_CAMPAIGN, _INVITATION = decoder_of(CampaignRequest), decoder_of(InvitationRequest)
_JSON, _PARQUET, _CSV = "application/json", "application/vnd.apache.parquet", "text/csv"
_LEVEL = (Query("level", {"type": "integer", "minimum": 0, "maximum": 99}, "The level's place.", required=True),)
QUERIES = (
    Query("method", {"enum": ["average", "precision"]}, "How levels are pooled."),
    Query(
        "confidence_level", {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1}, "That of the intervals."
    ),
    Query("about", {"enum": ["sample", "population"]}, "These devices, or those that they are a sample of."),
    Query("simultaneous", {"type": "boolean"}, "Intervals that hold for all values at once."),
    Query(
        "largest",
        {"type": "integer", "minimum": 1},
        "Only so many values, the largest where there are more; then their intervals are simultaneous.",
    ),
)
_WITH_QUANTILES = (
    *QUERIES,
    Query(
        "quantiles",
        {"type": "string", "pattern": QUANTILES, "maxLength": 200},
        "Quantiles too, such as 0.1,0.5,0.9, where reports tell them; that takes longer.",
    ),
)


class OperatorRoutes:
    """What the operator asks for, with the token."""

    def __init__(self, collector: Collector, limits: Limits) -> None:
        self._collector, self._limits = collector, limits
        self._estimates = Estimates(collector)

    async def create_campaign(self, request: Request) -> Response:
        """Create a campaign."""
        await self._collector.check_operator(request)
        asked = decode(await read_body(request, self._limits), _CAMPAIGN)
        prepared = await self._collector.compute(lambda: campaigns.prepared(asked))
        now = self._collector.clock()

        def create(connection: Connection) -> OperatorCampaign:
            campaigns.create(connection, prepared, now)
            return operator_view(connection, prepared, states.look(connection, prepared.number))

        view = await self._collector.writer.call(create)
        self._collector.keep(prepared)
        return Response(ENCODER.encode(view), 201, media_type=_JSON)

    async def list_campaigns(self, request: Request) -> Response:
        """List all campaigns."""
        await self._collector.check_operator(request)
        names = await self._collector.read(campaigns.all_ids)
        found = [await self._view(await self._collector.campaign_named(name)) for name in names]
        return Response(ENCODER.encode(Campaigns(found)), media_type=_JSON)

    async def show_status(self, request: Request) -> Response:
        """Show a campaign as its operator sees it."""
        await self._collector.check_operator(request)
        return tagged(request, ENCODER.encode(await self._view(await self._collector.campaign(request))))

    async def make_invitations(self, request: Request) -> Response:
        """Make invitations, shown this once."""
        await self._collector.check_operator(request)
        asked = decode(await read_body(request, self._limits), _INVITATION)
        campaign = await self._collector.campaign(request)
        if not campaign.definition.invitations:
            raise CampaignError("this campaign does not ask for invitations.")
        made = await self._collector.writer.call(lambda connection: invite(connection, campaign.number, asked.count))
        return Response(ENCODER.encode(Invitations(made)), media_type=_JSON)

    async def show_estimate(self, request: Request) -> Response:
        """Estimate, per level and pooled."""
        return tagged(request, ENCODER.encode(await self._estimate(request, _WITH_QUANTILES)))

    async def show_estimate_csv(self, request: Request) -> Response:
        """Estimate, as a CSV file."""
        found = await self._estimate(request, QUERIES)
        return Response(await self._collector.compute(lambda: csv_text(found)), media_type=_CSV)

    async def export_reports(self, request: Request) -> Response:
        """Export the reports of one level."""
        await self._collector.check_operator(request)
        options: ExportOptions = read_queries(request, _LEVEL, ExportOptions)
        campaign = await self._collector.campaign(request)
        if options.level >= len(campaign.levels):
            raise CampaignError("the campaign has {levels} levels, counted from 0.", levels=len(campaign.levels))

        def work(connection: Connection) -> IO[bytes]:
            if states.look(connection, campaign.number).reduced:
                raise CampaignReducedError("the reports were reduced to counts and are gone.")
            return export(connection, campaign, options.level)

        return HandedOut(await self._collector.read(work), f"{campaign.id}-{options.level}.parquet", _PARQUET)

    def _stepper(self, what: Step) -> Callable[[Request], Awaitable[Response]]:
        async def step_campaign(request: Request) -> Response:
            await self._collector.check_operator(request)
            campaign = await self._collector.campaign(request)
            now = self._collector.clock()

            def work(connection: Connection) -> OperatorCampaign:
                return operator_view(connection, campaign, campaigns.step(connection, campaign, what, now))

            return Response(ENCODER.encode(await self._collector.writer.call(work)), media_type=_JSON)

        step_campaign.__name__ = f"{what}_campaign"
        return step_campaign

    async def _view(self, campaign: Campaign) -> OperatorCampaign:
        now = self._collector.clock()

        def work(connection: Connection) -> OperatorCampaign:
            state = decided(campaign, states.look(connection, campaign.number), now)
            return operator_view(connection, campaign, state)

        return await self._collector.read(work)

    async def _estimate(self, request: Request, queries: Sequence[Query]) -> Estimate:
        await self._collector.check_operator(request)
        options: EstimateOptions = read_queries(request, queries, EstimateOptions)
        return await self._estimates.now(await self._collector.campaign(request), options)

    def operations(self) -> list[Operation]:
        """Return what the routes are."""
        known: Any = {"security": "operator", "problems": (UnknownCampaignError,)}
        path = "/v1/campaigns/{id}"
        steps = [
            Operation("POST", f"{path}/{what}", self._stepper(what), summary, answer=OperatorCampaign,
                      security="operator", nothing="Nothing was changed.",
                      problems=(UnknownCampaignError, CampaignStateError))
            for what, summary in _SUMMARIES.items()
        ]  # fmt: skip
        return [
            Operation("POST", "/v1/campaigns", self.create_campaign, "Create a campaign.", CampaignRequest,
                      OperatorCampaign, status=201, security="operator", nothing="Nothing was created.",
                      problems=(CampaignError, CampaignExistsError)),
            Operation("GET", "/v1/campaigns", self.list_campaigns, "List campaigns.", answer=Campaigns,
                      security="operator"),
            Operation("GET", f"{path}/status", self.show_status, "Show a campaign as its operator sees it.",
                      answer=OperatorCampaign, also=(304,), **known),
            *steps,
            Operation("POST", f"{path}/invitations", self.make_invitations, "Make invitations, shown this once.",
                      InvitationRequest, Invitations, security="operator", nothing="Nothing was made.",
                      problems=(UnknownCampaignError, CampaignError)),
            Operation("GET", f"{path}/estimate", self.show_estimate, "Estimate, per level and pooled.", answer=Estimate,
                      queries=_WITH_QUANTILES, also=(304,), security="operator", nothing="Nothing was estimated.",
                      problems=(UnknownCampaignError, MissingDependencyError)),
            Operation("GET", f"{path}/estimate.csv", self.show_estimate_csv, "Estimate, as a CSV file.",
                      media_type=_CSV, queries=QUERIES, security="operator", nothing="Nothing was estimated.",
                      problems=(UnknownCampaignError, MissingDependencyError)),
            Operation("GET", f"{path}/export", self.export_reports, "Export the reports of one level as Parquet.",
                      media_type=_PARQUET, queries=_LEVEL, security="operator", nothing="Nothing was exported.",
                      problems=(UnknownCampaignError, CampaignReducedError, CampaignError)),
        ]  # fmt: skip


_SUMMARIES: dict[Step, str] = {
    "relax": "Open the next level.",
    "pause": "Take no reports for a while.",
    "resume": "Take reports again.",
    "finish": "Take no reports any more.",
    "reduce": "Keep only the counts of a finished campaign; its reports are removed.",
}
