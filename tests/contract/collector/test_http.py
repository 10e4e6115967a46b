"""The collector's HTTP contract, on a real server, on both stores."""

from __future__ import annotations

import base64
import contextlib
import http.client
import io
import os
import re
import socket
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.csv as pa_csv
import pyarrow.parquet as pa_parquet
import pytest
from tests.patience import PATIENCE, until
from tests.servers.collectors import Running, running
from tests.servers.sockets import read_all
from typer.testing import CliRunner

import relaxdp as rx
from relaxdp.cli.main import app
from relaxdp.collector.schema import REPORTS
from relaxdp.estimation.planning import find_n
from relaxdp.mechanisms.bloom import Bloom, BloomShape, release_bloom
from relaxdp.mechanisms.registry import create_mechanism
from relaxdp.rappor.candidate_map import CandidateMap
from relaxdp.rappor.decoding import decode_words
from relaxdp.rappor.reports import count_report_files
from relaxdp.sampling.keyed_stream import PathId
from relaxdp.storage.database import Database
from relaxdp.theory.epsilon import as_epsilon

KEY = rx.Key.from_bytes(bytes(range(32)))


def device() -> str:
    return os.urandom(16).hex()


def digest(campaign: dict[str, Any], pseudonym: str) -> str:
    """What the service knows of a device: written out once more, as the documents have it."""
    return sha256(f"relaxdp device\n{campaign['id']}\n{pseudonym}".encode()).hexdigest()[:32]


def exported(server: Running, campaign: dict[str, Any], level: int = 0) -> list[str]:
    answer = server.ask("GET", f"/v1/campaigns/{campaign['id']}/export?level={level}", operator=True)
    return list(pa_parquet.read_table(io.BytesIO(answer.body))["device"].to_pylist())


def report(campaign: dict[str, Any], label: Any, level: int = 0, **more: Any) -> dict[str, Any]:
    return {"device": device(), "level": campaign["levels"][level], "report": label, **more}


def send(server: Running, campaign: dict[str, Any], *reports: dict[str, Any]) -> list[str]:
    answer = server.ask("POST", f"/v1/campaigns/{campaign['id']}/reports/batch", {"reports": list(reports)})
    assert answer.status == 200, answer.body
    return list(answer.json["results"])


def status(server: Running, campaign: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = server.ask("GET", f"/v1/campaigns/{campaign['id']}/status", operator=True).json
    return found


def act(server: Running, campaign: dict[str, Any], verb: str) -> Any:
    return server.ask("POST", f"/v1/campaigns/{campaign['id']}/{verb}", operator=True)


def estimate(server: Running, campaign: dict[str, Any], query: str = "") -> dict[str, Any]:
    answer = server.ask("GET", f"/v1/campaigns/{campaign['id']}/estimate{query}", operator=True)
    assert answer.status == 200, answer.body
    found: dict[str, Any] = answer.json
    return found


def test_a_campaign_from_end_to_end(server: Running) -> None:
    made = server.create()
    path = f"/v1/campaigns/{made['id']}"
    seen = server.ask("GET", path)
    assert seen.json["levels"] == [
        {"epsilon": text, "threshold": str(rx.Categorical(["no", "yes"]).threshold(as_epsilon(text)))}
        for text in ("0.5", "1", "2")
    ]
    assert (seen.json["state"], seen.json["open_level"], seen.json["release"]) == ("open", 0, made["id"])
    assert server.ask("GET", path, if_none_match=seen.headers["etag"]).status == 304
    first = report(made, "yes")
    assert server.ask("POST", f"{path}/reports", first).json == {"status": "new"}
    assert server.ask("POST", f"{path}/reports", first).json == {"status": "same"}
    differs = server.ask("POST", f"{path}/reports", {**first, "report": "no"})
    assert (differs.status, differs.error) == (409, "report_differs")
    assert status(server, made)["refused"] == {"differing": 1}
    above = server.ask("POST", f"{path}/reports", {**first, "level": made["levels"][1]})
    assert (above.status, above.error) == (409, "level_not_open")
    assert act(server, made, "relax").json["open_level"] == 1
    assert server.ask("GET", path, if_none_match=seen.headers["etag"]).status == 200
    assert server.ask("POST", f"{path}/reports", {**first, "level": made["levels"][1], "report": "no"}).status == 200
    found = estimate(server, made)
    assert [level["devices"] for level in found["levels"]] == [0, 1, 0]
    assert found["devices"] == 1
    late = report(made, "yes", 0)  # a device may stay below the open level
    assert send(server, made, late) == ["new"]
    assert status(server, made)["devices"] == {"total": 2, "per_level": [1, 1, 0], "reports": [2, 1, 0]}
    gone = server.ask("POST", f"{path}/withdraw", {"device": first["device"]})
    assert (gone.json["status"], gone.json["state"]) == ("withdrawn", "open")
    assert server.ask("POST", f"{path}/reports", first).error == "device_withdrawn"
    assert status(server, made)["devices"] == {"total": 1, "per_level": [1, 0, 0], "reports": [1, 0, 0]}
    assert act(server, made, "pause").json["state"] == "paused"
    assert server.ask("POST", f"{path}/reports", report(made, "yes")).error == "campaign_closed"
    assert send(server, made, late) == ["same"]
    assert act(server, made, "pause").error == "campaign_state"
    assert act(server, made, "resume").json["state"] == "open"
    assert act(server, made, "reduce").error == "campaign_state"
    assert act(server, made, "finish").json["state"] == "finished"
    assert act(server, made, "relax").error == "campaign_state"
    before = estimate(server, made)
    assert act(server, made, "reduce").json["reduced"] is True
    after = estimate(server, made)
    assert (after["pooled"], after["levels"]) == (before["pooled"], before["levels"])
    assert server.ask("GET", f"{path}/export?level=0", operator=True).error == "campaign_reduced"
    assert server.ask("POST", f"{path}/withdraw", {"device": late["device"]}).error == "campaign_reduced"
    assert server.ask("POST", f"{path}/reports", late).error in ("campaign_closed",)


def test_a_batch_has_an_answer_for_each_report(server: Running) -> None:
    made = server.create()
    first = report(made, "yes")
    answers = send(
        server, made, first, first, {**first, "report": "no"}, report(made, "maybe"), report(made, 1),
        report(made, "no", 1), {**report(made, "no"), "level": {"epsilon": "0.5", "threshold": "1"}},
        report(made, "no"), report(made, "no", cohort=1),
    )  # fmt: skip
    assert answers == [
        "new", "same", "report_differs", "report_outside_encoding", "report_outside_encoding", "level_not_open",
        "level_not_open", "new", "report_outside_encoding",
    ]  # fmt: skip
    assert status(server, made)["devices"]["total"] == 2


@pytest.mark.parametrize(
    ("encoding", "wrong"),
    [
        ({"name": "categorical", "values": ["flu", "covid", "none"]}, ["", "Flu", 1, 0.5]),
        ({"name": "categorical", "values": [1, 2, 4]}, ["1", 3, 1.5]),
        ({"name": "unary-optimised", "values": ["flu", "covid", "none"]}, ["CA==", "AAA=", "x", 1]),
        ({"name": "unary-symmetric", "values": list(range(20))}, ["AAAAAA==", "AADw"]),
        ({"name": "local-hash", "values": list(range(50)), "options": {"buckets": 5}}, ["AAAAAAAAAAAF", "AA=="]),
        ({"name": "numeric", "range": [0, 120]}, [1, "0", 119.9]),
    ],
)
def test_every_encoding_is_estimated_as_the_library_does(
    server: Running, encoding: dict[str, Any], wrong: list[Any], tmp_path: Path
) -> None:
    made = server.create(encoding=encoding)
    path = f"/v1/campaigns/{made['id']}"
    mechanism: Any = (
        rx.Numeric(*encoding["range"])
        if "range" in encoding
        else create_mechanism(encoding["name"], values=encoding["values"], options={**encoding.get("options", {})})
    )
    rng = np.random.default_rng(5)
    truths = [60.5] * 300 if "range" in encoding else rng.choice(np.array(encoding["values"], object), 300).tolist()
    ids = [device() for _ in truths]
    where: Any = {"key": KEY, "name": made["id"], "column": "answer"}
    assert act(server, made, "relax").status == 200
    levels: list[list[Any]] = []
    for place, many in enumerate((300, 200)):
        reports = mechanism.release(truths, ids, epsilon=made["levels"][place]["epsilon"], **where)[:many]
        levels.append(list(reports))
        texts = [base64.b64encode(each).decode() if isinstance(each, bytes) else each for each in reports]
        sent = [{**report(made, text, place), "device": name} for name, text in zip(ids, texts, strict=False)]
        assert set(send(server, made, *sent)) == {"new"}
    assert set(send(server, made, *(report(made, each) for each in wrong))) == {"report_outside_encoding"}
    wanted = rx.Counts(mechanism)
    wanted.add(levels[0][200:], epsilon="0.5")
    wanted.add(levels[1], epsilon="1")
    found = estimate(server, made)
    pooled = wanted.estimate()
    assert [row["estimate"] for row in found["pooled"]] == pytest.approx(np.atleast_1d(pooled.value).tolist())
    assert [row["low"] for row in found["pooled"]] == pytest.approx(np.atleast_1d(pooled.interval()[0]).tolist())
    level = mechanism.estimate(levels[1], epsilon="1")
    assert [row["high"] for row in found["levels"][1]["rows"]] == pytest.approx(
        np.atleast_1d(level.interval()[1]).tolist()
    )
    table = pa_csv.read_csv(io.BytesIO(server.ask("GET", f"{path}/estimate.csv", operator=True).body))
    assert table.num_rows == 3 * len(found["pooled"])
    last = table.slice(2 * len(found["pooled"])).to_pylist()
    assert [row["low"] for row in last] == pytest.approx([row["low"] for row in found["pooled"]])
    assert [row["epsilon"] for row in last] == [None] * len(last)
    files = []
    for place in range(2):
        files.append(tmp_path / f"{place}.parquet")
        files[-1].write_bytes(server.ask("GET", f"{path}/export?level={place}", operator=True).body)
    names = pa_parquet.read_table(files[0])["device"].to_pylist()
    assert names == sorted(digest(made, name) for name in ids)
    shown = CliRunner().invoke(app, ["estimate", *map(str, files), "--json"])
    assert shown.exit_code == 0, shown.output
    printed = [float(number) for number in re.findall(r"-?\d+\.\d+(?:e-?\d+)?", shown.output)]
    for value in np.atleast_1d(pooled.value).tolist():
        assert min(abs(number - value) for number in printed) < 1e-6


def test_what_is_stored_and_exported_lets_nobody_act_for_a_device(server: Running) -> None:
    """A pseudonym is what a device reports and withdraws with, so neither an export nor the database has it."""
    made, other = server.create(), server.create()
    path = f"/v1/campaigns/{made['id']}"
    assert act(server, made, "relax").status == 200
    ids = [device() for _ in range(5)]
    for place in range(2):
        sent = [{**report(made, "yes", place), "device": name} for name in ids]
        assert set(send(server, made, *sent)) == {"new"}
        assert set(send(server, made, *sent)) == {"same"}
    assert send(server, other, {**report(other, "yes"), "device": ids[0]}) == ["new"]
    names = exported(server, made)
    assert names == exported(server, made, 1), "a device is the same at all levels"
    assert names == sorted(digest(made, name) for name in ids)
    assert exported(server, other) == [digest(other, ids[0])]
    assert not {*names} & {*exported(server, other), *ids}, "and another one in another campaign"
    for name in names:
        assert server.ask("POST", f"{path}/withdraw", {"device": name}).status == 200
        assert send(server, made, {**report(made, "no"), "device": name}) != ["report_differs"]
    assert exported(server, made, 1) == names
    database = Database(server.url)
    with contextlib.closing(database), database.reading() as connection:
        stored = b"|".join(
            bytes(value) if isinstance(value, bytes | memoryview) else str(value).encode()
            for table in REPORTS.metadata.sorted_tables
            for row in connection.execute(table.select())
            for value in row
        )
    assert bytes.fromhex(names[0]) in stored
    for name in ids:
        assert bytes.fromhex(name) not in stored
        assert name.encode() not in stored


@pytest.mark.parametrize("change", [str.upper, lambda text: text[:-1], lambda text: f"{text}0", lambda _: "é" * 32])
def test_a_pseudonym_has_all_its_digits(server: Running, change: Callable[[str], str]) -> None:
    """What is shorter could be guessed from its digest; two spellings of one would be two devices."""
    made = server.create()
    wrong = change("a" + device()[1:])
    for route, body in (("reports", report(made, "yes")), ("withdraw", {})):
        answer = server.ask("POST", f"/v1/campaigns/{made['id']}/{route}", {**body, "device": wrong})
        assert (answer.status, answer.error) == (400, "malformed_request")
        assert wrong not in answer.body.decode()


def test_words_are_found_by_rappor(server: Running, tmp_path: Path) -> None:
    words = [f"word-{number}" for number in range(20)]
    options = {"bits": 32, "hashes": 2, "cohorts": 8}
    made = server.create(
        encoding={"name": "bloom", "options": options, "candidates": words},
        levels=[{"epsilon": "4"}, {"epsilon": "8"}],
    )
    assert "candidates" not in server.ask("GET", f"/v1/campaigns/{made['id']}").json["encoding"]
    truths = ["word-3"] * 600 + ["word-7"] * 400
    ids = [device() for _ in truths]
    shape = BloomShape(**options)
    reports = release_bloom(
        shape, truths, ids, key=KEY, level=Bloom(shape).level("4"), path=PathId(made["id"], "answer")
    )
    sent = [
        {
            "device": name,
            "level": made["levels"][0],
            "cohort": int(cohort),
            "report": base64.b64encode(row.tobytes()).decode(),
        }
        for name, cohort, row in zip(ids, reports.cohorts, reports.packed, strict=True)
    ]
    assert set(send(server, made, *sent[:300])) == {"new"}
    assert send(server, made, {**sent[0], "cohort": 8}, {**sent[0], "cohort": None}) == ["report_outside_encoding"] * 2
    moved = {**sent[0], "cohort": (sent[0]["cohort"] + 1) % 8}
    assert send(server, made, moved) == ["report_differs"]
    results = [send(server, made, *sent[start : start + 350]) for start in (300, 650)]
    assert [set(each) for each in results] == [{"new"}] * 2
    found = estimate(server, made)
    best = sorted(found["pooled"], key=lambda row: -row["share"])[:2]
    assert {row["value"] for row in best} == {"word-3", "word-7"}
    assert best[0]["found"]
    answer = server.ask("GET", f"/v1/campaigns/{made['id']}/export?level=0", operator=True)
    (tmp_path / "reports.parquet").write_bytes(answer.body)
    table = pa_parquet.read_table(tmp_path / "reports.parquet")
    assert table.column_names == ["client", "cohort", "report"]
    assert table.num_rows == found["devices"]
    counts, notes = count_report_files([tmp_path / "reports.parquet"], shape)
    assert notes == [("reports at epsilon 4", found["devices"])]
    again = decode_words(counts, CandidateMap(words, shape))
    assert again.value.tolist() == pytest.approx([row["estimate"] for row in found["pooled"]])


def test_invitations_are_used_once(server: Running) -> None:
    made = server.create(invitations=True)
    path = f"/v1/campaigns/{made['id']}"
    assert made["needs_invitation"]
    first, second = server.ask("POST", f"{path}/invitations", {"count": 2}, operator=True).json["invitations"]
    assert server.ask("POST", f"{path}/reports", report(made, "yes")).error == "invitation_refused"
    assert server.ask("POST", f"{path}/reports", report(made, "yes", invitation="x")).status == 403
    good = report(made, "yes", invitation=first)
    assert send(server, made, good, {**report(made, "no"), "invitation": first}) == ["new", "invitation_refused"]
    assert send(server, made, good) == ["same"]
    assert act(server, made, "relax").status == 200
    assert send(server, made, {"device": good["device"], "level": made["levels"][1], "report": "no"}) == ["new"]
    assert status(server, made)["invitations"] == {"issued": 2, "used": 1}
    assert send(server, made, report(made, "no", invitation=second)) == ["new"]
    plain = server.create()
    assert server.ask("POST", f"/v1/campaigns/{plain['id']}/invitations", {"count": 1}, operator=True).status == 422


def test_an_invitation_is_checked_before_somebody_answers(server: Running) -> None:
    """The check uses nothing up, and says the same of an invitation that is unknown, used or of another campaign."""
    name = server.create(invitations=True)["id"]
    other = server.create(invitations=True)["id"]
    fresh, taken = server.ask("POST", f"/v1/campaigns/{name}/invitations", {"count": 2}, operator=True).json[
        "invitations"
    ]

    def check(campaign: str, invitation: str) -> tuple[int, str]:
        answer = server.ask("POST", f"/v1/campaigns/{campaign}/invitation", {"invitation": invitation})
        return answer.status, answer.json.get("error", answer.json.get("status"))

    level = server.ask("GET", f"/v1/campaigns/{name}").json["levels"][0]
    report = {"device": "0" * 32, "level": level, "report": "no", "invitation": taken}
    assert server.ask("POST", f"/v1/campaigns/{name}/reports", report).status == 200
    assert [check(name, fresh) for _ in range(3)] == 3 * [(200, "good")]
    refused = (403, "invitation_refused")
    assert [check(name, taken), check(name, "none"), check(other, fresh)] == 3 * [refused]
    assert check(server.create()["id"], "whatever") == (200, "good")


def test_people_are_told_how_many_it_takes(server: Running) -> None:
    """What the survey says of a limit is what the planner says, and follows from the definition alone."""
    levels = [{"epsilon": "0.5"}, {"epsilon": "1"}, {"epsilon": "2"}]
    values = {"name": "categorical", "values": ["a", "b", "c", "d"]}
    made = server.create(encoding=values, levels=levels, target={"half_width": 0.02})
    shown = server.ask("GET", f"/v1/campaigns/{made['id']}").json["learns"]
    needed = [find_n(0.02, epsilon=each["epsilon"], planned_values=4) for each in levels]
    assert shown == {"half_width": 0.02, "devices": needed}
    assert server.create(encoding={"name": "numeric", "range": [0, 100]})["learns"]["half_width"] == 10


def test_a_withdrawal_that_overtakes_its_report(server: Running) -> None:
    """Once it was answered, a report that comes later is not counted; and it tells nobody who is known."""
    made, invited = server.create(), server.create(invitations=True)
    path = f"/v1/campaigns/{made['id']}/withdraw"
    early, known = report(made, "yes"), report(made, "yes")
    assert send(server, made, known) == ["new"]
    answers = {server.ask("POST", path, {"device": each["device"]}).body for each in (early, known, early, known)}
    assert len(answers) == 1, "known, unknown and withdrawn before: all the same"
    assert send(server, made, early, known) == ["device_withdrawn"] * 2
    assert status(server, made)["devices"]["total"] == 0
    path = f"/v1/campaigns/{invited['id']}"
    codes = server.ask("POST", f"{path}/invitations", {"count": 2}, operator=True).json["invitations"]
    late, stranger = report(invited, "yes", invitation=codes[0]), report(invited, "no", invitation=codes[1])
    for body in ({"device": late["device"], "invitation": codes[0]}, {"device": stranger["device"]}):
        assert server.ask("POST", f"{path}/withdraw", body).json["status"] == "withdrawn"
    assert send(server, invited, late, stranger) == ["device_withdrawn", "new"]
    assert status(server, invited)["invitations"] == {"issued": 2, "used": 2}
    for campaign, each in ((made, known), (invited, stranger)):
        act(server, campaign, "finish")
        gone = server.ask("POST", f"/v1/campaigns/{campaign['id']}/withdraw", {"device": each["device"]})
        assert (gone.status, gone.json["state"]) == (200, "finished")
        assert status(server, campaign)["devices"]["total"] == 0


def test_a_campaign_relaxes_and_stops_by_itself(server: Running) -> None:
    made = server.create(devices=400, target={"half_width": 0.09})
    ids = [device() for _ in range(400)]
    for place in range(3):
        seen = status(server, made)
        if seen["state"] == "finished":
            break
        assert seen["open_level"] == place
        send(server, made, *({**report(made, "yes", place), "device": name} for name in ids))
    seen = status(server, made)
    assert (seen["state"], seen["open_level"], seen["target_met"]) == ("finished", 2, True)
    assert seen["half_width"] <= 0.09
    assert send(server, made, report(made, "yes", 2)) == ["campaign_closed"]


@pytest.mark.long
def test_dates_open_relax_and_close(server: Running) -> None:
    """A campaign for each date: whenever one is looked at, its date may be long past."""
    soon, far = ((datetime.now(UTC) + timedelta(seconds=seconds)).isoformat() for seconds in (2, 36_000))
    levels = [{"epsilon": "0.5"}, {"epsilon": "1"}]
    waits = server.create(opens=far, levels=levels)
    assert (waits["state"], waits["open_level"]) == ("waiting", None)
    refused = server.ask("POST", f"/v1/campaigns/{waits['id']}/reports", report(waits, "yes"))
    assert refused.error == "campaign_closed"
    opens = server.create(opens=soon, levels=levels)
    relaxes = server.create(levels=[levels[0], {**levels[1], "opens": soon}])
    closes = server.create(closes=soon, levels=levels)
    for made, state, level in ((opens, "open", 0), (relaxes, "open", 1), (closes, "finished", 0)):
        # Nobody reported, so it was a duty that wrote it down.
        seen: Any = until(partial(_written, server, made, state))
        assert (seen["state"], seen["open_level"]) == (state, level)
    assert status(server, waits)["version"] == 0


def _written(server: Running, made: dict[str, Any], state: str) -> dict[str, Any] | None:
    seen = status(server, made)
    return seen if seen["version"] >= 1 and seen["state"] == state else None


def test_definitions_that_make_no_sense(server: Running) -> None:
    good = {
        "question": "q",
        "encoding": {"name": "categorical", "values": ["a", "b"]},
        "levels": [{"epsilon": "1"}],
    }
    bad: list[dict[str, Any]] = [
        {"levels": [{"epsilon": "1"}, {"epsilon": "1"}]},
        {"levels": [{"epsilon": "0"}]},
        {"levels": [{"epsilon": "1e-30"}]},
        {"levels": [{"epsilon": "x"}]},
        {"levels": [{"epsilon": "1", "opens": "2026-01-01T00:00:00Z"}]},
        {"largest_epsilon": "0.5"},
        {"question": " "},
        {"encoding": {"name": "nothing", "values": ["a", "b"]}},
        {"encoding": {"name": "categorical", "values": ["a"]}},
        {"encoding": {"name": "categorical", "values": ["a", "a"]}},
        {"encoding": {"name": "categorical", "values": ["a", 1]}},
        {"encoding": {"name": "categorical", "values": [1, 2**60]}},
        {"encoding": {"name": "categorical", "values": ["a", "b"], "options": {"buckets": 3}}},
        {"encoding": {"name": "categorical", "values": ["a", "b"], "candidates": ["a"]}},
        {"encoding": {"name": "categorical"}},
        {"encoding": {"name": "numeric", "values": ["a", "b"]}},
        {"encoding": {"name": "numeric", "range": [1, 1]}},
        {"encoding": {"name": "local-hash", "values": ["a", "b"], "options": {"buckets": 1}}},
        {"encoding": {"name": "bloom", "options": {"bits": 32, "hashes": 2}, "candidates": ["a"]}},
        {"encoding": {"name": "bloom", "options": {"bits": 1, "hashes": 1, "cohorts": 1}, "candidates": ["a"]}},
        {"encoding": {"name": "bloom", "options": {"bits": 65536, "hashes": 1, "cohorts": 64}, "candidates": ["a"]}},
        {"encoding": {"name": "bloom", "options": {"bits": 32, "hashes": 2, "cohorts": 2}, "candidates": ["a", "a"]}},
        {"encoding": {"name": "bloom", "options": {"bits": 32, "hashes": 2, "cohorts": 2}}},
        {"opens": "2026-01-01"},
        {"opens": "9999-12-31T23:59:59-14:00"},
        {"opens": "2026-02-01T00:00:00Z", "closes": "2026-01-01T00:00:00Z"},
        {"target": {"half_width": 0}},
        {"target": {"half_width": 0.5}},
        {"asker": "a\0b"},
        {"privacy_notice": "javascript:alert(1)"},
        {"logo": "data:text/html;base64,PHN2Zz4="},
        {"suggested": "2"},
        {"shows_results": True},
    ]
    for change in bad:
        answer = server.ask("POST", "/v1/campaigns", {**good, **change}, operator=True)
        assert answer.status == 422, (change, answer.body)
        assert answer.json["message"].endswith("."), answer.json
    made = server.create(id="taken")
    again = server.ask("POST", "/v1/campaigns", {**good, "id": made["id"]}, operator=True)
    assert (again.status, again.error) == (409, "campaign_exists")


def test_strangers(server: Running) -> None:
    made = server.create()
    path = f"/v1/campaigns/{made['id']}"
    tokens = ("Bearer wrong", "Basic x", "Bearer é")
    headers: list[dict[str, Any]] = [{}, *({"authorization": each} for each in tokens)]
    for header in headers:
        for method, address in [
            ("POST", "/v1/campaigns"), ("GET", "/v1/campaigns"), ("GET", f"{path}/status"), ("POST", f"{path}/relax"),
            ("GET", f"{path}/estimate"), ("GET", f"{path}/export?level=0"),
            ("POST", f"{path}/invitations"), ("GET", "/metrics"),
        ]:  # fmt: skip
            answer = server.ask(method, address, **header)
            assert (answer.status, answer.error) == (401, "wrong_token"), address
    assert server.ask("GET", "/v1/campaigns/nobody").error == "unknown_campaign"
    assert server.ask("GET", "/v1/campaigns/%00").error == "unknown_campaign"
    assert server.ask("POST", "/v1/campaigns/nobody/reports", report(made, "yes")).status == 404
    assert server.ask("GET", "/nothing").error == "unknown_route"
    wrong = server.ask("DELETE", path)
    assert (wrong.status, wrong.error, wrong.headers["allow"]) == (405, "method_not_allowed", "GET, HEAD")
    for body in (b"", b"{", b"[]", b"\xff", b'{"device": 1}', b"[" * 100_000):
        answer = server.ask("POST", f"{path}/reports", body)
        assert (answer.status, answer.error) == (400, "malformed_request"), body[:10]
    secret = {**report(made, "yes"), "device": "SECRET", "surprise": "SECRET"}
    assert b"SECRET" not in server.ask("POST", f"{path}/reports", secret).body
    assert server.ask("POST", f"{path}/reports", b"x", content_type="text/plain").status == 415
    large = server.ask("POST", f"{path}/reports", b"x" * 10_000_000)
    assert (large.status, large.error) == (413, "body_too_large")
    headed = server.ask("GET", "/healthz", x_long="a" * 70_000)
    assert (headed.status, headed.error) == (431, "head_too_large")
    assert server.ask("GET", "/healthz", x_long="a" * 32_768).status == 200
    assert server.ask("GET", f"{path}/estimate?method=best", operator=True).status == 400
    assert server.ask("GET", f"{path}/estimate?unknown=1", operator=True).status == 400
    assert server.ask("GET", f"{path}/export?level=7", operator=True).status == 422
    assert server.ask("GET", "/healthz").json == {"status": "ok"}


def test_a_head_without_end_takes_no_memory(server: Running) -> None:
    assert server.process is not None
    status = Path(f"/proc/{server.process.pid}/status")

    def peak() -> int:
        return int(re.findall(r"VmHWM:\s+(\d+) kB", status.read_text("utf-8"))[0]) << 10

    before = peak()
    with socket.create_connection((server.host, server.port), timeout=PATIENCE) as plain:
        plain.sendall(b"GET /healthz HTTP/1.1\r\nhost: x\r\n")
        with contextlib.suppress(ConnectionError):
            for _ in range(100):
                plain.sendall(b"a: b\r\n" * (1 << 17))
        assert read_all(plain).startswith(b"HTTP/1.1 431 ")
    assert peak() - before < 16 << 20
    assert server.ask("GET", "/healthz").status == 200


def test_what_a_page_watches_has_a_tag_that_changes_with_every_change(server: Running) -> None:
    made = server.create()
    path = f"/v1/campaigns/{made['id']}"
    paths = [f"{path}/status", f"{path}/estimate", f"{path}/estimate?simultaneous=true&largest=1"]
    first, second = report(made, "yes"), report(made, "no")

    def ask(tag: str = "") -> list[Any]:
        return [server.ask("GET", each, operator=True, if_none_match=tag) for each in paths]

    seen = {each.headers["etag"] for each in ask()}
    assert len(seen) == 3
    deeds: list[Callable[[], Any]] = [
        lambda: send(server, made, first),
        lambda: send(server, made, second),
        lambda: send(server, made, {**second, "report": "yes"}),  # it differs, and is counted as that
        lambda: act(server, made, "relax"),
        lambda: send(server, made, {**first, "level": made["levels"][1]}),
        lambda: server.ask("POST", f"{path}/withdraw", {"device": second["device"]}),
        lambda: act(server, made, "pause"),
        lambda: act(server, made, "resume"),
        lambda: act(server, made, "finish"),
        lambda: act(server, made, "reduce"),
    ]
    for deed in deeds:
        same = ask(", ".join(seen))
        assert [(each.status, each.body) for each in same] == [(304, b"")] * 3
        deed()
        changed = ask(", ".join(seen))
        assert [each.status for each in changed] == [200] * 3
        tags = {each.headers["etag"] for each in changed}
        assert len(tags) == 3
        assert not tags & seen
        seen |= tags
    assert server.ask("GET", paths[0], if_none_match=", ".join(seen)).status == 401


def test_a_report_that_is_known_changes_no_tag(server: Running) -> None:
    made = server.create()
    sent = report(made, "yes")
    send(server, made, sent)
    paths = [f"/v1/campaigns/{made['id']}/{each}" for each in ("status", "estimate")]
    tags = [server.ask("GET", each, operator=True).headers["etag"] for each in paths]
    assert send(server, made, sent) == ["same"]
    for path, tag in zip(paths, tags, strict=True):
        assert server.ask("GET", path, operator=True, if_none_match=tag).status == 304


def test_metrics_and_log_hold_no_content(server: Running) -> None:
    before = len(server.log.read_text("utf-8"))
    made = server.create(id="private-name")
    sent = report(made, "yes", invitation="INVITATION")
    send(server, made, sent)
    server.ask("GET", f"/v1/campaigns/{made['id']}?device={sent['device']}")
    text = server.ask("GET", "/metrics", operator=True).body.decode()
    assert 'relaxdp_reports_total{outcome="new"}' in text
    assert 'relaxdp_requests_total{method="POST",route="/v1/campaigns/{id}/reports/batch",status="200"}' in text
    assert "relaxdp_commits_total" in text
    server.ask("GET", "/healthz")
    routes = ("/v1/campaigns/{id}/reports/batch 200", "/v1/campaigns/{id} 200", "/metrics 200", "/healthz 200")
    log = until(lambda: all(each in (found := server.log.read_text("utf-8"))[before:] for each in routes) and found)
    assert log
    for secret in (sent["device"], "INVITATION", server.token, made["id"], "127.0.0.1"):
        assert secret not in log
        assert secret not in text
    assert "Traceback" not in log


def test_metrics_without_a_token_have_a_port_of_their_own(tmp_path: Path) -> None:
    """It is on the loopback address and has nothing else; the main port asks for the token, wherever one comes from."""
    with running(f"sqlite:///{tmp_path / 'a.db'}", tmp_path, "--metrics-port", "0") as server:
        host, port = re.findall(r"^metrics http://(127\.0\.0\.1):(\d+)/metrics$", server.said, re.MULTILINE)[0]
        send(server, (made := server.create()), report(made, "yes"))

        def ask(method: str, path: str, **headers: str) -> tuple[int, bytes]:
            with contextlib.closing(http.client.HTTPConnection(host, int(port), timeout=PATIENCE)) as connection:
                connection.request(method, path, headers=headers)
                answer = connection.getresponse()
                return answer.status, answer.read()

        status, text = ask("GET", "/metrics")
        assert status == 200
        assert b'relaxdp_reports_total{outcome="new"} 1.0' in text
        for path in ("/", "/healthz", "/v1/campaigns", f"/v1/campaigns/{made['id']}", "/metrics/"):
            assert ask("GET", path)[0] == 404, path
        assert ask("POST", "/metrics")[0] == 501
        assert ask("GET", "/metrics", Host=f"rebound.example:{port}")[0] == 404
        assert server.ask("GET", "/metrics").status == 401
        assert server.ask("GET", "/metrics", host=f"127.0.0.1:{port}", x_forwarded_for="127.0.0.1").status == 401
        with socket.socket() as other, pytest.raises(ConnectionRefusedError):
            other.connect(("127.0.0.2", int(port)))
        before = server.log.read_text("utf-8")
        assert "127.0.0.1" not in before
        assert server.stop() == 0


def test_openapi_describes_every_route(server: Running) -> None:
    document = server.ask("GET", "/openapi.json").json
    assert document["openapi"].startswith("3.1")
    assert "/v1/campaigns/{id}/reports/batch" in document["paths"]
    operations = [each for path in document["paths"].values() for each in path.values()]
    assert len({each["operationId"] for each in operations}) == len(operations) >= 20
    for each in operations:
        assert {"429", "503"} <= set(each["responses"])
