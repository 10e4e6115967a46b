"""What is counted of two questions together always equals a recount of the stored reports, on both stores."""

from __future__ import annotations

import secrets
import threading
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import Connection, select
from tests.refusals import refused

from relaxdp.collector import campaigns, joint, surveys
from relaxdp.collector.campaign import Campaign
from relaxdp.collector.ingest import Item, ingest
from relaxdp.collector.schema import JOINT, REPORTS, WITHDRAWN
from relaxdp.collector.survey_wire import SurveyRequest
from relaxdp.collector.wire import CampaignRequest, LevelRequest
from relaxdp.server_errors import CampaignError, CampaignExistsError, CampaignReducedError, CampaignStateError
from relaxdp.service.wire import EncodingRequest
from relaxdp.storage.database import Database

LEVELS = [LevelRequest("0.5"), LevelRequest("1"), LevelRequest("2")]
ENCODINGS = [
    EncodingRequest("categorical", ["a", "b", "c"]),
    EncodingRequest("unary-optimised", ["d", "e"]),
    EncodingRequest("local-hash", ["f", "g", "h"], options={"buckets": 3}),
    EncodingRequest("numeric", range=(0.0, 1.0)),
]
DEVICES = [bytes([number]) * 16 for number in range(6)]


def asked(name: str | None = None) -> SurveyRequest:
    """Four questions; two tables, of which the second has its rows in a question that comes later."""
    name = name or f"s{secrets.token_hex(8)}"
    questions = [CampaignRequest("q", each, LEVELS, id=f"{name}-{n}") for n, each in enumerate(ENCODINGS)]
    return SurveyRequest(questions, name, [(f"{name}-0", f"{name}-1"), (f"{name}-2", f"{name}-0")])


def created(database: Database) -> list[Campaign]:
    request = asked()
    with database.writing() as connection:
        surveys.create(connection, surveys.prepared(request), now=0.0)
        return [campaigns.find(connection, str(each.id)) for each in request.questions]


def kept(question: int, device: int, choice: int) -> bytes:
    """One of a few reports that a device could send."""
    if question == 2:
        return bytes([device]) * 8 + bytes([choice % 3])
    return bytes([choice % (2 if question == 3 else 3)])


def send(database: Database, questions: list[Campaign], sent: list[tuple[int, int, int, int]]) -> list[str]:
    """Store reports (question, device, level, choice) as the writer does: all in one transaction."""
    by_question: dict[int, list[Item]] = {}
    for question, device, level, choice in sent:
        by_question.setdefault(question, []).append(Item(DEVICES[device], level, kept(question, device, choice)))
    with database.writing() as connection:
        joint.hold(connection, [questions[each] for each in by_question])
        for question in sorted(by_question):
            ingest(connection, questions[question], by_question[question], now=0.0)
    return [item.outcome for each in by_question.values() for item in each]


def recounted(connection: Connection, rows: Campaign, columns: Campaign) -> dict[tuple[int, int], list[int]]:
    """Count pairs of newest reports from the stored rows, one device after the other."""
    newest: list[dict[bytes, tuple[int, bytes]]] = []
    for campaign in (rows, columns):
        query = select(REPORTS.c.device_digest, REPORTS.c.level, REPORTS.c.report)
        own: dict[bytes, tuple[int, bytes]] = {}
        gone = set()
        for device, level, report in connection.execute(query.where(REPORTS.c.campaign == campaign.number)):
            if level == WITHDRAWN:
                gone.add(bytes(device))
            elif bytes(device) not in own or own[bytes(device)][0] < level:
                own[bytes(device)] = (level, bytes(report))
        assert not gone & own.keys()
        newest.append(own)
    found: dict[tuple[int, int], Any] = {}
    for device in newest[0].keys() & newest[1].keys():
        (row_level, row), (column_level, column) = newest[0][device], newest[1][device]
        first, second = (
            each.encoding.find_supported_labels(*each.codec.codes([report]))[0].astype(int)
            for each, report in ((rows, row), (columns, column))
        )
        numbers = np.concatenate([[1], first, second, np.outer(first, second).reshape(-1)])
        found[row_level, column_level] = found.get((row_level, column_level), 0) + numbers
    return {levels: numbers.tolist() for levels, numbers in found.items()}


def check(database: Database, questions: list[Campaign]) -> None:
    with database.reading() as connection:
        for rows, columns in ((0, 1), (2, 0)):
            sides = questions[rows], questions[columns]
            have = joint.read(connection, *(each.number for each in sides))
            assert {levels: each.tolist() for levels, each in have.items() if each.any()} == recounted(
                connection, *sides
            )
        pairs = connection.execute(select(JOINT.c.row_campaign, JOINT.c.column_campaign)).all()
    numbers = [each.number for each in questions]
    declared = {(numbers[0], numbers[1]), (numbers[2], numbers[0])}
    assert {tuple(pair) for pair in pairs if set(pair) & set(numbers)} <= declared, "a pair that nobody asked for"


REPORT = st.tuples(st.integers(0, 3), st.integers(0, 5), st.integers(0, 2), st.integers(0, 5))
DEED = st.one_of(
    st.tuples(st.just("reports"), st.lists(REPORT, min_size=1, max_size=10)),
    st.tuples(st.just("withdraw"), st.tuples(st.integers(0, 3), st.integers(0, 5))),
    st.tuples(st.sampled_from(["relax", "pause", "resume"]), st.integers(-1, 3)),
)


@given(deeds=st.lists(DEED, min_size=1, max_size=25))
@settings(
    max_examples=60, deadline=None, derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)  # fmt: skip
def test_joint_counts_equal_a_recount(database: Database, deeds: list[tuple[str, Any]]) -> None:
    """Reports in any order, repeated, relaxed in one question before the other, withdrawn, while levels open."""
    questions = created(database)
    for deed, detail in deeds:
        if deed == "reports":
            send(database, questions, detail)
        elif deed == "withdraw":
            question, device = detail
            with database.writing() as connection:
                campaigns.withdraw(connection, questions[question], DEVICES[device], now=0.0)
        else:
            try:
                with database.writing() as connection:
                    if detail < 0:
                        surveys.step(connection, questions, deed, now=0.0)  # type: ignore[arg-type]
                    else:
                        campaigns.step(connection, questions[detail], deed, now=0.0)  # type: ignore[arg-type]
            except CampaignStateError:
                pass
        check(database, questions)


def test_a_pair_that_stays_after_one_of_its_reports_was_relaxed_would_be_seen(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A mutant that adds new pairs and takes none away."""
    questions = created(database)
    send(database, questions, [(0, 0, 0, 1), (1, 0, 0, 1)])
    check(database, questions)
    with database.writing() as connection:
        surveys.step(connection, questions, "relax", now=0.0)
    real = joint.newest
    asked_for = iter([True, False, False])
    monkeypatch.setattr(joint, "newest", lambda known: {} if next(asked_for, False) else real(known))
    send(database, questions, [(1, 0, 1, 2)])
    with pytest.raises(AssertionError):
        check(database, questions)


def test_two_services_at_the_same_time(database: Database) -> None:
    """Each stores one device's report to another question; whoever comes second sees the first."""
    for _ in range(5):
        questions = created(database)
        barrier = threading.Barrier(3)
        problems: list[BaseException] = []

        def work(question: int) -> None:
            try:
                barrier.wait()  # noqa: B023
                for device in range(6):
                    send(database, questions, [(question, device, 0, 1)])  # noqa: B023
            except BaseException as problem:
                problems.append(problem)  # noqa: B023

        threads = [threading.Thread(target=work, args=(question,)) for question in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert problems == []
        check(database, questions)
        with database.reading() as connection:
            assert joint.read(connection, questions[0].number, questions[1].number)[0, 0][0] == 6


def test_reports_are_reduced_of_all_questions_or_of_none(database: Database) -> None:
    questions = created(database)
    send(database, questions, [(question, device, 0, 1) for question in range(4) for device in range(3)])
    with database.writing() as connection:
        campaigns.step(connection, questions[0], "finish", now=0.0)
        with refused(CampaignStateError):
            campaigns.step(connection, questions[0], "reduce", now=0.0)
    with refused(CampaignStateError), database.writing() as connection:
        surveys.step(connection, questions, "reduce", now=0.0)
    with database.writing() as connection:
        campaigns.withdraw(connection, questions[0], DEVICES[0], now=0.0)
    check(database, questions)
    with database.writing() as connection:
        surveys.step(connection, questions, "finish", now=0.0)
        surveys.step(connection, questions, "reduce", now=0.0)
        before = joint.read(connection, questions[0].number, questions[1].number)
        with refused(CampaignReducedError):
            campaigns.withdraw(connection, questions[1], DEVICES[1], now=0.0)
        for each in questions:
            campaigns.sweep(connection, each, 1000)
        after = joint.read(connection, questions[0].number, questions[1].number)
    assert {levels: each.tolist() for levels, each in before.items()} == {
        levels: each.tolist() for levels, each in after.items()
    }
    assert before[0, 0][0] == 2


def test_a_question_alone_may_be_reduced_where_it_is_counted_alone(database: Database) -> None:
    questions = created(database)
    with database.writing() as connection:
        campaigns.step(connection, questions[3], "finish", now=0.0)
        assert campaigns.step(connection, questions[3], "reduce", now=0.0).reduced


def test_surveys_that_cannot_be(database: Database) -> None:
    request = asked("taken")
    with database.writing() as connection:
        surveys.create(connection, surveys.prepared(request), now=0.0)
    with refused(CampaignExistsError, id="taken"), database.writing() as connection:
        surveys.create(connection, surveys.prepared(request), now=0.0)
    again = asked("other")
    shared = SurveyRequest([*again.questions[:1], *request.questions[:1]], "other")
    with refused(CampaignExistsError, id="taken-0"), database.writing() as connection:
        surveys.create(connection, surveys.prepared(shared), now=0.0)
    with database.reading() as connection:
        assert "other" not in surveys.names(connection)
    many = CampaignRequest("q", EncodingRequest("categorical", [f"v{n}" for n in range(200)]), LEVELS, id="many")
    for questions, cross, fields in (
        (again.questions, [("other-0", "other-0")], {}),
        (again.questions, [("other-0", "elsewhere")], {}),
        (again.questions, [("other-0", "other-1"), ("other-1", "other-0")], {}),
        (again.questions, [("other-0", "other-3")], {"id": "other-3"}),
        ([*again.questions, many], [("other-0", "many")], {"cells": 600, "most": 400}),
        ([many, many], [], {}),
    ):
        with refused(CampaignError, **fields):
            surveys.prepared(SurveyRequest(list(questions), "other", cross))
