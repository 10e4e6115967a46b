"""Surveys in the database: several campaigns that are created, steered and shown together."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from decimal import Decimal

import msgspec
from msgspec.structs import replace
from sqlalchemy import Connection, insert, select

from relaxdp.collector import campaigns, joint
from relaxdp.collector.campaign import Campaign
from relaxdp.collector.campaigns import Step
from relaxdp.collector.introduction import completed, introduction_of
from relaxdp.collector.schema import SURVEYS
from relaxdp.collector.survey_wire import MOST_CELLS, SurveyDefinition, SurveyRequest
from relaxdp.ledger.events import add_amounts, parse_amount
from relaxdp.mechanisms.declared_values import DeclaredMechanism
from relaxdp.server_errors import CampaignError, CampaignExistsError, CampaignStateError
from relaxdp.service.wire import WireLevel
from relaxdp.storage.database import hold_creation

Prepared = tuple[str, SurveyDefinition, list[Campaign]]


def prepared(request: SurveyRequest) -> Prepared:
    """Return a survey that is not stored yet, or refuse it. This is work for a thread of its own."""
    name = request.id or secrets.token_hex(8)
    questions = [
        campaigns.prepared(replace(asked, id=asked.id or f"{name}-{place}"[-64:].strip("-")))
        for place, asked in enumerate(request.questions, 1)
    ]
    known = {each.id: each for each in questions}
    if len(known) < len(questions):
        raise CampaignError("two questions of a survey have the same id.")
    for pair in request.cross:
        _check_pair(known, pair)
    if len({frozenset(pair) for pair in request.cross}) < len(request.cross):
        raise CampaignError("two questions are counted together once.")
    if request.shows_results and any(each.definition.publish is None for each in questions):
        raise CampaignError("what participants are shown is what is published, of every question.")
    said = introduction_of(request) | completed(request, limits([each.levels for each in questions]))
    return name, SurveyDefinition(list(known), request.cross, **said), questions


def limits(questions: Sequence[Sequence[WireLevel]]) -> list[Decimal]:
    """Return the limits that suffice for all questions at their first level, at their second, and so on.

    A question with fewer levels than others stays at its last.
    """
    return [
        add_amounts(parse_amount(levels[min(place, len(levels) - 1)].epsilon) for levels in questions)
        for place in range(max(map(len, questions)))
    ]


def _check_pair(known: dict[str, Campaign], pair: tuple[str, str]) -> None:
    if pair[0] == pair[1] or not known.keys() >= set(pair):
        raise CampaignError("two different questions of the survey are counted together, by their ids.")
    cells = 1
    for each in pair:
        encoding = known[each].encoding
        if not isinstance(encoding, DeclaredMechanism):
            raise CampaignError("questions with values to choose from are counted together; {id!r} has none.", id=each)
        cells *= len(encoding.labels)
    if cells > MOST_CELLS:
        raise CampaignError(
            "a two-way table has at most {most} cells, and that of {rows!r} and {columns!r} would have {cells:,}.",
            most=MOST_CELLS,
            rows=pair[0],
            columns=pair[1],
            cells=cells,
        )


def create(connection: Connection, survey: Prepared, now: float) -> None:
    """Store a new survey with all its questions, or nothing."""
    name, definition, questions = survey
    hold_creation(connection)
    if connection.execute(select(SURVEYS.c.name).where(SURVEYS.c.name == name)).first() is not None:
        raise CampaignExistsError("there is a survey with the id {id!r} already.", id=name)
    text = msgspec.json.encode(definition).decode()
    connection.execute(insert(SURVEYS).values(name=name, definition=text))
    for each in questions:
        campaigns.create(connection, each, now, name)


def names(connection: Connection) -> list[str]:
    """Return the names of all surveys."""
    return list(connection.execute(select(SURVEYS.c.name).order_by(SURVEYS.c.name)).scalars())


def step(connection: Connection, questions: Sequence[Campaign], what: Step, now: float) -> None:
    """Do what an operator asks for with all questions that it can be done with; reports are reduced of all, or of none.

    So a device that can be found in one of two questions can be found in both, and a withdrawal takes along what both
    counted for.
    """
    refused: list[CampaignStateError] = []
    joint.hold(connection, questions)
    for each in questions:
        try:
            campaigns.step(connection, each, what, now, with_survey=True)
        except CampaignStateError as problem:
            if what == "reduce":
                raise
            refused.append(problem)
    if len(refused) == len(questions):
        raise refused[0]
