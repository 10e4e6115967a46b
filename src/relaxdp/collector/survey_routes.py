"""Several questions in one survey: created together, shown to devices together, estimated side by side.

A device has noise of its own for each question. Where the survey said beforehand that two questions are counted
together, it has one pseudonym in both, and a two-way table is estimated from what was counted. No other two questions
can be joined: nobody can tell which devices are the same.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from msgspec import UNSET
from sqlalchemy import Connection
from starlette.requests import Request
from starlette.responses import Response

from relaxdp import errors
from relaxdp.collector import invitations, joint, states, surveys
from relaxdp.collector.campaign import Campaign
from relaxdp.collector.campaigns import Step
from relaxdp.collector.estimate_wire import EstimateOptions
from relaxdp.collector.estimates import Levels, read_counts, result_of
from relaxdp.collector.introduction import introduction_of
from relaxdp.collector.operator_routes import QUERIES
from relaxdp.collector.rows import rows_of
from relaxdp.collector.rules import CampaignState, decided
from relaxdp.collector.service import Collector
from relaxdp.collector.survey_wire import (
    Cell,
    OperatorSurvey,
    PublicSurvey,
    SurveyDefinition,
    SurveyEstimate,
    SurveyQuestion,
    SurveyRequest,
    Surveys,
    TwoWay,
)
from relaxdp.collector.views import ENCODER, operator_view, public_view, tagged
from relaxdp.collector.wire import InvitationRequest, Invitations
from relaxdp.estimation.crosstab import PairSupportCounts, combine_crosstabs
from relaxdp.estimation.result import SelectedRows
from relaxdp.server_errors import CampaignError, CampaignExistsError, CampaignStateError, UnknownCampaignError
from relaxdp.service.codecs import Integers
from relaxdp.service.limits import Limits, decode, decoder_of, read_body
from relaxdp.service.operations import Operation, read_queries
from relaxdp.theory.randomized_response import SupportProbabilities

_SURVEY, _INVITATION = decoder_of(SurveyRequest), decoder_of(InvitationRequest)
_JSON = "application/json"
_MOST_KEPT = 20
_SUMMARIES: dict[Step, str] = {
    "relax": "Open the next level of all questions that have one.",
    "pause": "Take no reports to any question for a while.",
    "resume": "Take reports again.",
    "finish": "Take no reports any more.",
    "reduce": "Keep only the counts of a survey whose questions are all finished; its reports are removed.",
}


@dataclass(frozen=True, slots=True)
class CurrentQuestion:
    """One question as it stands now."""

    campaign: Campaign
    state: CampaignState
    levels: Levels


Tables = list[tuple[Campaign, Campaign, dict[tuple[int, int], Integers]]]
"""Rows, columns, and what was counted for each pair of levels."""


class SurveyRoutes:
    """What is asked of a survey."""

    def __init__(self, collector: Collector, limits: Limits) -> None:
        self._collector, self._limits = collector, limits
        self._kept: OrderedDict[tuple[str, EstimateOptions], tuple[list[int], SurveyEstimate]] = OrderedDict()

    async def create_survey(self, request: Request) -> Response:
        """Create a survey with all its questions."""
        await self._collector.check_operator(request)
        asked = decode(await read_body(request, self._limits), _SURVEY)
        prepared = await self._collector.compute(lambda: surveys.prepared(asked))
        now = self._collector.clock()
        await self._collector.writer.call(lambda connection: surveys.create(connection, prepared, now))
        return Response(ENCODER.encode(await self._operator(prepared[0])), 201, media_type=_JSON)

    async def list_surveys(self, request: Request) -> Response:
        """List all surveys."""
        await self._collector.check_operator(request)
        names = await self._collector.read(surveys.names)
        return Response(ENCODER.encode(Surveys([await self._operator(name) for name in names])), media_type=_JSON)

    async def show_survey(self, request: Request) -> Response:
        """Show what a device needs of all questions, and which of them are counted together."""
        name = request.path_params["survey"]
        definition, questions = await self._questions(name)
        now = self._collector.clock()

        def work(connection: Connection) -> list[CampaignState]:
            return [decided(each, states.look(connection, each.number), now) for each in questions]

        found = zip(questions, await self._collector.read(work), strict=True)
        shown = [public_view(each, state) for each, state in found]
        content = ENCODER.encode(PublicSurvey(name, shown, definition.cross, **introduction_of(definition)))
        return tagged(request, content)

    async def invite_to_survey(self, request: Request) -> Response:
        """Make invitations that serve once in each question that asks for one."""
        await self._collector.check_operator(request)
        asked = decode(await read_body(request, self._limits), _INVITATION)
        _, questions = await self._questions(request.path_params["survey"])
        closed = [each.number for each in questions if each.definition.invitations]
        if not closed:
            raise CampaignError("no question of this survey asks for invitations.")
        made = await self._collector.writer.call(
            lambda connection: invitations.invite(connection, closed[0], asked.count, also=closed[1:])
        )
        return Response(ENCODER.encode(Invitations(made)), media_type=_JSON)

    async def show_survey_estimate(self, request: Request) -> Response:
        """Estimate each question, and the tables of those that are counted together."""
        await self._collector.check_operator(request)
        options: EstimateOptions = read_queries(request, QUERIES, EstimateOptions)
        name = request.path_params["survey"]
        definition, questions = await self._questions(name)
        now = self._collector.clock()

        def read(connection: Connection) -> tuple[list[CurrentQuestion], Tables]:
            found = [
                CurrentQuestion(
                    each,
                    decided(each, states.look(connection, each.number), now),
                    read_counts(connection, each),
                )
                for each in questions
            ]
            known = {each.id: each for each in questions}
            sides = [(known[rows], known[columns]) for rows, columns in definition.cross]
            return found, [(*pair, joint.read(connection, *(each.number for each in pair))) for pair in sides]

        asked, tables = await self._collector.read(read)
        versions = [each.state.version for each in asked]
        kept = self._kept.get((name, options))
        if kept is None or kept[0] != versions:
            kept = versions, await self._collector.compute(lambda: survey_estimate(name, asked, tables, options))
            self._kept[name, options] = kept
            while len(self._kept) > _MOST_KEPT:
                self._kept.popitem(last=False)
        return tagged(request, ENCODER.encode(kept[1]))

    def _stepper(self, what: Step) -> Callable[[Request], Awaitable[Response]]:
        async def step_survey(request: Request) -> Response:
            await self._collector.check_operator(request)
            name = request.path_params["survey"]
            _, questions = await self._questions(name)
            now = self._collector.clock()
            await self._collector.writer.call(lambda connection: surveys.step(connection, questions, what, now))
            return Response(ENCODER.encode(await self._operator(name)), media_type=_JSON)

        step_survey.__name__ = f"{what}_survey"
        return step_survey

    async def _questions(self, name: str) -> tuple[SurveyDefinition, list[Campaign]]:
        definition = await self._collector.read(lambda connection: joint.definition(connection, name))
        return definition, [await self._collector.campaign_named(each) for each in definition.questions]

    async def _operator(self, name: str) -> OperatorSurvey:
        definition, questions = await self._questions(name)
        now = self._collector.clock()

        def work(connection: Connection) -> OperatorSurvey:
            found = [
                operator_view(connection, each, decided(each, states.look(connection, each.number), now))
                for each in questions
            ]
            return OperatorSurvey(name, found, definition.cross, **introduction_of(definition))

        return await self._collector.read(work)

    def operations(self) -> list[Operation]:
        """Return what the routes are."""
        path, unknown = "/v1/surveys/{survey}", (UnknownCampaignError,)
        operator: Any = {"security": "operator"}
        return [
            Operation("POST", "/v1/surveys", self.create_survey, "Create a survey with all its questions.",
                      SurveyRequest, OperatorSurvey, status=201, nothing="Nothing was created.",
                      problems=(CampaignError, CampaignExistsError), **operator),
            Operation("GET", "/v1/surveys", self.list_surveys, "List surveys.", answer=Surveys, **operator),
            Operation("GET", path, self.show_survey, "Show what a device needs of a survey.", answer=PublicSurvey,
                      also=(304,), problems=unknown),
            *(
                Operation("POST", f"{path}/{what}", self._stepper(what), summary, answer=OperatorSurvey,
                          nothing="Nothing was changed.", problems=(*unknown, CampaignStateError), **operator)
                for what, summary in _SUMMARIES.items()
            ),
            Operation("POST", f"{path}/invitations", self.invite_to_survey,
                      "Make invitations that serve once in each question, shown this once.",
                      InvitationRequest, Invitations, nothing="Nothing was made.",
                      problems=(*unknown, CampaignError), **operator),
            Operation("GET", f"{path}/estimate", self.show_survey_estimate,
                      "Estimate each question, and the tables of those that are counted together.",
                      answer=SurveyEstimate, queries=QUERIES, also=(304,), nothing="Nothing was estimated.",
                      problems=(*unknown, errors.MissingDependencyError), **operator),
        ]  # fmt: skip


def survey_estimate(
    name: str, asked: list[CurrentQuestion], tables: Tables, options: EstimateOptions
) -> SurveyEstimate:
    """Return the estimates of all questions and tables."""
    return SurveyEstimate(
        survey=name,
        method=options.method,
        confidence_level=options.confidence_level,
        about=options.about,
        simultaneous=options.simultaneous,
        questions=[_question(each, options) for each in asked],
        tables=[two_way(*each, options) for each in tables],
    )


def _question(asked: CurrentQuestion, options: EstimateOptions) -> SurveyQuestion:
    found, state = result_of(asked.campaign, asked.levels, options), asked.state
    shown = found if found is None or options.largest is UNSET else found.largest(options.largest)
    chosen = shown.indexes if isinstance(shown, SelectedRows) else None
    return SurveyQuestion(
        campaign=asked.campaign.id,
        version=state.version,
        question=asked.campaign.definition.question,
        state=state.state,
        epsilon=None if state.open_level is None else asked.campaign.levels[state.open_level].epsilon,
        devices=sum(state.devices),
        simultaneous=options.simultaneous or chosen is not None,
        values=0 if found is None else len(found.labels),
        rows=None if found is None else rows_of(found, options, chosen),
    )


def two_way(
    rows: Campaign, columns: Campaign, counted: dict[tuple[int, int], Integers], options: EstimateOptions
) -> TwoWay:
    """Return the two-way table of two questions, from all pairs of levels."""
    parts = []
    for levels, numbers in sorted(counted.items()):
        if numbers[0]:
            joint_counts = PairSupportCounts(rows.encoding, columns.encoding)
            joint_counts.add_counts(numbers)
            parts.append(joint_counts.make_crosstab(_support(rows, levels[0]), _support(columns, levels[1])))
    if not parts:
        return TwoWay(rows.id, columns.id, 0, None)
    found = combine_crosstabs(parts, options.method)
    cells = [
        Cell(row, column, each.estimate, each.std_error, each.low, each.high, each.beyond)
        for row, column, each in zip(*found.key_columns.values(), rows_of(found, options, None), strict=True)
    ]
    return TwoWay(rows.id, columns.id, sum(part.n for part in parts), cells)


def _support(campaign: Campaign, level: int) -> SupportProbabilities:
    encoding = campaign.encoding
    return encoding.compute_noise_and_gain(encoding.level(campaign.levels[level].epsilon).retention)
