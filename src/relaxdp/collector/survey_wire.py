"""What travels over HTTP of surveys: several questions, each a campaign, that are asked together."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import UNSET, Meta, Struct, UnsetType, field

from relaxdp.collector.estimate_wire import Row
from relaxdp.collector.introduction import Introduction
from relaxdp.collector.wire import CampaignRequest, OperatorCampaign, PublicCampaign, State
from relaxdp.service.wire import ID_PATTERN, About, Label, Method

MOST_QUESTIONS = 20
MOST_CELLS = 400
"""Of a two-way table: what is kept for each pair of levels, and shown."""

Id = Annotated[str, Meta(pattern=ID_PATTERN)]
Pair = tuple[Id, Id]


class SurveyRequest(Introduction, frozen=True, forbid_unknown_fields=True):
    """A survey to be created: how it introduces itself, its questions, and which of them are counted together."""

    questions: Annotated[list[CampaignRequest], Meta(min_length=2, max_length=MOST_QUESTIONS)]
    id: Id | None = None
    cross: Annotated[list[Pair], Meta(max_length=MOST_QUESTIONS)] = field(default_factory=list)
    """Rows and columns of two-way tables, by the ids of questions. It cannot be asked for later."""


class SurveyDefinition(Introduction, frozen=True):
    """A survey as it is kept. Its questions are campaigns, and know everything else."""

    questions: list[str]
    cross: list[tuple[str, str]]


class PublicSurvey(Introduction, frozen=True):
    """What everybody may know of a survey, and what a device needs."""

    id: str
    questions: list[PublicCampaign]
    cross: list[tuple[str, str]]
    """Which questions are counted together: their devices have one pseudonym in both, and another in all others."""


class OperatorSurvey(Introduction, frozen=True):
    """What the operator sees of a survey."""

    id: str
    questions: list[OperatorCampaign]
    cross: list[tuple[str, str]]


class Surveys(Struct, frozen=True):
    """All surveys."""

    surveys: list[OperatorSurvey]


class SurveyQuestion(Struct, frozen=True):
    """One question, and what its devices say together."""

    campaign: str
    version: int
    question: str
    state: State
    epsilon: str | None
    """That of its open level, or of the last one; None before it opens."""
    devices: int
    simultaneous: bool
    """Whether the intervals hold for all values at once, always where only the largest are shown."""
    values: int
    """How many rows there are in all; 0 before the first report."""
    rows: list[Row] | None
    """None before the first report."""


class Cell(Struct, frozen=True, omit_defaults=True):
    """The share of devices that have both values, with its interval."""

    row: Label
    column: Label
    estimate: float
    std_error: float | None
    low: float
    high: float
    beyond: Literal["below", "above"] | UnsetType = UNSET


class TwoWay(Struct, frozen=True):
    """Two questions that are counted together."""

    rows: str
    columns: str
    devices: int
    """How many answered both."""
    cells: list[Cell] | None
    """Row by row; None before somebody answered both."""


class SurveyEstimate(Struct, frozen=True):
    """The questions of a survey side by side, and the tables of those that are counted together."""

    survey: str
    method: Method
    confidence_level: float
    about: About
    simultaneous: bool
    """Whether the intervals of a question, or of a table, hold for all of its values at once."""
    questions: list[SurveyQuestion]
    tables: list[TwoWay]
