"""A survey over HTTP: created whole, described to everybody, reported to, estimated, exported, reduced."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.servers.collectors import Running

from relaxdp.tables.estimate import count

VALUES = {"diet": ["meat", "vegetarian", "vegan"], "lunch": ["canteen", "home"], "age": None}
PAIRS = [["diet", "lunch"]]


def definition(name: str, **changes: Any) -> dict[str, Any]:
    questions = [
        {
            "id": f"{name}-{each}",
            "question": f"What about {each}?",
            "encoding": {"name": "categorical", "values": values} if values else {"name": "numeric", "range": [0, 120]},
            "levels": [{"epsilon": "0.5"}, {"epsilon": "1"}],
        }
        for each, values in VALUES.items()
    ]
    cross = [[f"{name}-{one}", f"{name}-{other}"] for one, other in PAIRS]
    return {"id": name, "asker": "The canteen", "suggested": "3", "questions": questions, "cross": cross, **changes}


def create(server: Running, name: str, **changes: Any) -> dict[str, Any]:
    answer = server.ask("POST", "/v1/surveys", definition(name, **changes), operator=True)
    assert answer.status == 201, answer.body
    found: dict[str, Any] = answer.json
    return found


def report(server: Running, campaign: dict[str, Any], device: str, level: int, value: Any) -> None:
    sent = {"device": device, "level": campaign["levels"][level], "report": value}
    answer = server.ask("POST", f"/v1/campaigns/{campaign['id']}/reports", sent)
    assert answer.status == 200, answer.body


def pseudonym(number: int) -> str:
    return f"{number:032x}"


def test_everybody_sees_the_questions_and_which_are_counted_together(server: Running) -> None:
    made = create(server, "seen")
    answer = server.ask("GET", "/v1/surveys/seen")
    assert (answer.status, answer.json["asker"], answer.json["suggested"]) == (200, "The canteen", "3")
    assert [each["id"] for each in answer.json["questions"]] == ["seen-diet", "seen-lunch", "seen-age"]
    assert answer.json["cross"] == [["seen-diet", "seen-lunch"]] == made["cross"]
    assert [each["survey"] for each in answer.json["questions"]] == [
        {"name": "seen", "counted_with": ["seen-lunch"]},
        {"name": "seen", "counted_with": ["seen-diet"]},
        {"name": "seen", "counted_with": []},
    ]
    for each in answer.json["questions"]:  # a question is a campaign like any other
        assert server.ask("GET", f"/v1/campaigns/{each['id']}").json == each
    assert server.ask("GET", "/v1/surveys/seen", if_none_match=answer.headers["etag"]).status == 304
    assert server.ask("GET", "/v1/surveys/unseen").error == "unknown_campaign"
    assert server.ask("GET", "/v1/surveys/seen/estimate").status == 401
    assert server.ask("POST", "/v1/surveys/seen/relax").status == 401
    assert "seen" in [each["id"] for each in server.ask("GET", "/v1/surveys", operator=True).json["surveys"]]


def test_a_survey_is_created_whole_or_not_at_all(server: Running) -> None:
    create(server, "whole")
    again = definition("half")
    again["questions"][2]["id"] = "whole-age"
    answer = server.ask("POST", "/v1/surveys", again, operator=True)
    assert (answer.status, answer.error) == (409, "campaign_exists")
    assert server.ask("GET", "/v1/surveys/half").status == 404
    assert server.ask("GET", "/v1/campaigns/half-diet").status == 404


@pytest.mark.parametrize(
    "changes", [{"suggested": "2"}, {"shows_results": True}, {"questions": []}, {"cross": [["bad-diet"]]}, {"more": 1}]
)
def test_what_cannot_be(server: Running, changes: dict[str, Any]) -> None:
    """A limit at which no level of all questions ends, results that are not published, too few, a pair of one."""
    assert server.ask("POST", "/v1/surveys", definition("bad", **changes), operator=True).status in (400, 422)


def test_questions_without_names_are_named_after_their_survey(server: Running) -> None:
    questions = [{name: part for name, part in each.items() if name != "id"} for each in definition("x")["questions"]]
    made = create(server, "named", questions=questions, cross=[["named-1", "named-2"]])
    assert [each["id"] for each in made["questions"]] == ["named-1", "named-2", "named-3"]


def test_a_table_is_what_the_exports_say(server: Running, tmp_path: Path) -> None:
    """Reports of both questions at several levels; the service and `relaxdp estimate --crosstab` agree."""
    made = create(server, "table")
    diet, lunch, age = made["questions"]
    empty = server.ask("GET", "/v1/surveys/table/estimate", operator=True).json
    assert empty["tables"] == [{"rows": "table-diet", "columns": "table-lunch", "devices": 0, "cells": None}]
    assert [each["rows"] for each in empty["questions"]] == [None, None, None]
    chance = np.random.default_rng(1)
    for device in range(40):
        report(server, diet, pseudonym(device), 0, VALUES["diet"][chance.integers(3)])  # type: ignore[index]
        if device % 4:
            report(server, lunch, pseudonym(device), 0, VALUES["lunch"][chance.integers(2)])  # type: ignore[index]
        report(server, age, pseudonym(1000 + device), 0, [0, 120][chance.integers(2)])
    assert server.ask("POST", "/v1/campaigns/table-lunch/relax", operator=True).status == 200
    for device in range(20):
        report(server, lunch, pseudonym(device), 1, VALUES["lunch"][chance.integers(2)])  # type: ignore[index]
    gone = server.ask("POST", "/v1/campaigns/table-diet/withdraw", {"device": pseudonym(7)})
    assert gone.status == 200
    query = "simultaneous=true&confidence_level=0.9"
    found = server.ask("GET", f"/v1/surveys/table/estimate?{query}", operator=True).json
    [table] = found["tables"]
    assert table["devices"] == 34  # 30 at first, 5 more with their first report at the second level, one gone
    assert [each["devices"] for each in found["questions"]] == [39, 35, 40]

    files = []
    for name, levels in (("diet", 1), ("lunch", 2)):
        for level in range(levels):
            answer = server.ask("GET", f"/v1/campaigns/table-{name}/export?level={level}", operator=True)
            files.append(tmp_path / f"{name}-{level}.parquet")
            files[-1].write_bytes(answer.body)
    renamed = [_renamed(file) for file in files]
    wanted = count(renamed, column="diet", crosstab="lunch").estimate()
    low, high = wanted.interval(0.9, simultaneous=True)
    assert [[each[name] for each in table["cells"]] for name in ("row", "column")] == [
        [value for value in VALUES["diet"] or () for _ in range(2)],
        [*(VALUES["lunch"] or ())] * 3,
    ]
    for name, column in (("estimate", wanted.value), ("low", low), ("high", high), ("std_error", wanted.std_error)):
        assert np.allclose([each[name] for each in table["cells"]], column, atol=1e-12)
    alone = server.ask("GET", f"/v1/campaigns/table-lunch/estimate?{query}", operator=True).json
    assert found["questions"][1]["rows"] == alone["pooled"]


def _renamed(file: Path) -> Path:
    """Give the answer of an export the name of its question: in a table two columns are told apart by their names."""
    import pyarrow.parquet as pq  # noqa: PLC0415

    from relaxdp.tables.metadata import METADATA_KEY  # noqa: PLC0415

    table, name = pq.read_table(file), file.stem.partition("-")[0]
    metadata = dict(table.schema.metadata)
    metadata[METADATA_KEY] = metadata[METADATA_KEY].replace(b'"answer": {', f'"{name}": {{'.encode())
    place = file.with_name(f"{file.stem}-renamed.parquet")
    pq.write_table(table.rename_columns(["device", name]).replace_schema_metadata(metadata), place)
    return place


def test_one_pseudonym_is_one_device_only_where_it_is_counted_together(server: Running) -> None:
    made = create(server, "apart")
    for each, value in zip(made["questions"], ("meat", "home", 0), strict=True):
        report(server, each, pseudonym(5), 0, value)
    digests = []
    for each in made["questions"]:
        answer = server.ask("GET", f"/v1/campaigns/{each['id']}/export?level=0", operator=True)
        digests.append(_devices(answer.body))
    assert digests[0] == digests[1] != digests[2]
    other = create(server, "again")
    report(server, other["questions"][0], pseudonym(5), 0, "meat")
    answer = server.ask("GET", "/v1/campaigns/again-diet/export?level=0", operator=True)
    assert _devices(answer.body) != digests[0]


def _devices(content: bytes) -> list[str]:
    import pyarrow as pa  # noqa: PLC0415
    import pyarrow.parquet as pq  # noqa: PLC0415

    found: list[str] = pq.read_table(pa.BufferReader(content))["device"].to_pylist()
    return found


def test_steps_and_invitations_of_all_questions(server: Running) -> None:
    asked = definition("steps")
    for each in asked["questions"][:2]:
        each["invitations"] = True
    made = create(server, "steps", questions=asked["questions"])
    [one] = server.ask("POST", "/v1/surveys/steps/invitations", {"count": 1}, operator=True).json["invitations"]
    for each, value in zip(made["questions"][:2], ("meat", "home"), strict=True):
        sent = {"device": pseudonym(1), "level": each["levels"][0], "report": value, "invitation": one}
        address = f"/v1/campaigns/{each['id']}/reports"
        assert server.ask("POST", address, sent).json == {"status": "new"}
        again = server.ask("POST", address, {**sent, "device": pseudonym(2)})
        assert again.error == "invitation_refused"
    create(server, "open")
    assert server.ask("POST", "/v1/surveys/open/invitations", {"count": 1}, operator=True).status in (400, 422)

    def step(what: str) -> Any:
        return server.ask("POST", f"/v1/surveys/steps/{what}", operator=True)

    assert server.ask("POST", "/v1/campaigns/steps-diet/relax", operator=True).status == 200
    assert [each["open_level"] for each in step("relax").json["questions"]] == [1, 1, 1]
    assert step("relax").error == "campaign_state"
    assert {each["state"] for each in step("pause").json["questions"]} == {"paused"}
    assert {each["state"] for each in step("resume").json["questions"]} == {"open"}
    assert step("reduce").error == "campaign_state"
    assert {each["state"] for each in step("finish").json["questions"]} == {"finished"}
    alone = server.ask("POST", "/v1/campaigns/steps-diet/reduce", operator=True)
    assert alone.error == "campaign_state"
    assert {each["reduced"] for each in step("reduce").json["questions"]} == {True}
    [table] = server.ask("GET", "/v1/surveys/steps/estimate", operator=True).json["tables"]
    assert table["devices"] == 1
