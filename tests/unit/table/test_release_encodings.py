"""Every encoding through the table tool: the same reports as the front door, in every format, relaxed and estimated."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pa_parquet
import pytest
from typer.testing import CliRunner

import relaxdp as rx
from relaxdp.cli.main import app
from relaxdp.errors import CountsError, RelaxdpError

ROWS = 3_000
VALUES = [f"v{number}" for number in range(40)]
KEY = rx.Key.from_bytes(bytes(range(32)))
ENCODINGS = ["categorical", "unary-symmetric", "unary-optimised", "local-hash"]


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    KEY.save("key")
    rng = np.random.default_rng(3)
    truth = [VALUES[code] for code in rng.integers(0, 40, ROWS) ** 2 // 40]
    pa_parquet.write_table(
        pa.table({"id": rng.permutation(ROWS), "answer": truth, "ward": rng.integers(0, 2, ROWS)}), "in.parquet"
    )
    Path("values").write_text("\n".join(VALUES))
    return tmp_path


def run(*words: str) -> Any:
    """Run a command; what it prints as JSON, or the sentence that it refuses with."""
    result = CliRunner().invoke(app, [*words, "--json"])
    if isinstance(result.exception, RelaxdpError):
        return result.exception.message
    assert result.exit_code == 0, result.exception
    return json.loads(result.stdout)


def release(target: str, *more: str, epsilon: str = "1") -> Any:
    words = ["release", "in.parquet", target, "--id", "id", "--column", "answer", "--values-file", "values"]
    planned = [] if "--planned-epsilon" in more else ["--planned-epsilon", "1"]
    return run(*words, "--epsilon", epsilon, "--key", "key", "--budget", "5", *planned, *more)


def front(encoding: str, epsilon: float) -> Any:
    """The mechanism, and its reports of the whole table in the order of the ids."""
    mechanism = rx.mechanism(VALUES, encoding=encoding, epsilon=1)
    table = pa_parquet.read_table("in.parquet").sort_by("id")
    where: dict[str, Any] = {"key": KEY, "epsilon": epsilon, "release": "in", "attribute": "answer"}
    return mechanism, mechanism.release(table["answer"], table["id"], **where)


@pytest.mark.parametrize("encoding", ENCODINGS)
@pytest.mark.parametrize("ending", ["parquet", "csv"])
def test_files_hold_what_the_front_door_releases(encoding: str, ending: str) -> None:
    release(f"out.{ending}", "--encoding", encoding)
    mechanism, reports = front(encoding, 1)
    if ending == "parquet" and encoding != "categorical":
        assert pa_parquet.read_table("out.parquet")["answer"].to_pylist() == pa.array(reports).to_pylist()
    expected = mechanism.estimate(reports, epsilon=1)
    (group,) = run("estimate", f"out.{ending}")["groups"]
    assert [row["estimate"] for row in group["estimates"]] == pytest.approx(expected.value.tolist(), abs=1e-12)
    low, high = expected.interval()
    assert [row["low"] for row in group["estimates"]] == pytest.approx(low.tolist(), abs=1e-9)
    assert [row["high"] for row in group["estimates"]] == pytest.approx(high.tolist(), abs=1e-9)


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_a_path_goes_on_with_the_encoding_that_it_was_opened_with(encoding: str) -> None:
    assert release("one.parquet", "--encoding", encoding)["columns"]["answer"]["cost"] == "1"
    assert release("two.parquet", epsilon="2")["columns"]["answer"]["cost"] == "1"
    assert release("auto.parquet", "--encoding", "auto", epsilon="4")["columns"]["answer"]["cost"] == "2"
    said = run("estimate", "two.parquet")
    assert said["encoding"] == encoding
    other = "unary-optimised" if encoding != "unary-optimised" else "categorical"
    assert "Nothing was released." in release("three.parquet", "--encoding", other)
    # Three levels of the same objects: each counts once, at its highest.
    pooled = run("estimate", "one.parquet", "two.parquet", "auto.parquet")
    alone = run("estimate", "auto.parquet")
    assert pooled["groups"] == alone["groups"]
    reports = front(encoding, 4)[1]
    released = pa_parquet.read_table("auto.parquet")["answer"].to_pylist()
    assert released == pa.array(reports).to_pylist() if encoding != "local-hash" else len(released) == ROWS


@pytest.mark.parametrize("encoding", ["unary-optimised", "local-hash"])
def test_groups_and_a_second_file_of_other_people(encoding: str) -> None:
    table = pa_parquet.read_table("in.parquet")
    release("all.parquet", "--encoding", encoding, "--keep", "ward", "--no-ledger", "--release", "in")
    groups = {each["group"]: each for each in run("estimate", "all.parquet", "--by", "ward")["groups"]}
    assert {name: each["objects"] for name, each in groups.items()} == {
        name: int((table["ward"].to_numpy() == int(name)).sum()) for name in ("0", "1")
    }
    whole = pa_parquet.read_table("all.parquet")
    for ward, name in ((0, "a.parquet"), (1, "b.parquet")):
        pa_parquet.write_table(whole.filter(pa.compute.equal(whole["ward"], ward)), name)
    assert run("estimate", "a.parquet", "b.parquet")["groups"] == run("estimate", "all.parquet")["groups"]
    assert "had 3,000 rows when it was released" in run("estimate", "a.parquet")
    twice = run("estimate", "all.parquet", "a.parquet", *("--description", "all.parquet") * 2)
    assert "stands in more than one row at the same level" in twice


def test_auto_takes_what_is_best_for_the_last_level() -> None:
    best = rx.best_encoding(len(VALUES), 1).best
    release("small.parquet", "--encoding", "auto", "--release", "small")
    assert run("estimate", "small.parquet")["encoding"] == best != "categorical"
    release("large.parquet", "--encoding", "auto", "--planned-epsilon", "6", "--release", "large")
    assert run("estimate", "large.parquet")["encoding"] == rx.best_encoding(len(VALUES), 6).best == "categorical"


def test_bad_input() -> None:
    assert "nonsense" in release("out.parquet", "--encoding", "nonsense")
    assert "takes numbers in a range" in release("out.parquet", "--encoding", "numeric")
    release("out.parquet", "--encoding", "unary-optimised")
    table = pa_parquet.read_table("out.parquet")
    # Forty bits fill five bytes: any five bytes are a report, four are none, and neither is text.
    for column in (pa.array([b"\xff" * 4] * ROWS, pa.binary(4)), pa.array(["a report"] * ROWS)):
        pa_parquet.write_table(table.set_column(1, "answer", column), "bad.parquet")
        assert "its reports are bytes" in run("estimate", "bad.parquet")
    pa_parquet.write_table(table.set_column(1, "answer", pa.array([b"\xff"] * ROWS, pa.binary())), "bad.parquet")
    assert "is not one that the declared values allow" in run("estimate", "bad.parquet")


@pytest.mark.parametrize("ending", ["parquet", "csv"])
@pytest.mark.parametrize(("answers", "wards"), [("unary-optimised", "categorical"), ("local-hash", "unary-symmetric")])
def test_a_two_way_table_of_any_two_encodings(answers: str, wards: str, ending: str) -> None:
    """It is what the front door counts: where one file holds both columns, and where each has a file and a level."""
    columns: Any = {
        "answer": rx.Column(values=VALUES, encoding=answers),
        "ward": rx.Column(values=["0", "1"], encoding=wards),
    }
    where: Any = {"id": "id", "key": "key", "ledger": None, "planned_epsilon": 1, "release": "both"}
    rx.release("in.parquet", columns, to=f"both.{ending}", epsilon=1, **where)
    for name, said in columns.items():
        rx.release("in.parquet", {name: said}, to=f"{name}.{ending}", epsilon=2, **where)
    mechanisms = [
        rx.mechanism(VALUES, encoding=answers, epsilon=1), rx.mechanism([0, 1], encoding=wards, epsilon=1)
    ]  # fmt: skip
    table = pa_parquet.read_table("in.parquet").sort_by("id")

    def front(row_epsilon: int, column_epsilon: int) -> Any:
        reports = [
            mechanism.release(table[name], table["id"], key=KEY, epsilon=epsilon, release="both", attribute=name)
            for mechanism, name, epsilon in zip(mechanisms, columns, (row_epsilon, column_epsilon), strict=True)
        ]
        levels = {"row_epsilon": row_epsilon, "column_epsilon": column_epsilon}
        return rx.cross(mechanisms[0], reports[0], mechanisms[1], reports[1], **levels)

    for files, levels in (([f"both.{ending}"], (1, 1)), ([f"both.{ending}", f"ward.{ending}"], (1, 2))):
        found, expected = rx.estimate(files, "answer", cross="ward"), front(*levels)
        assert np.array_equal(found.value, expected.value)
        assert found.objects == expected.objects == ROWS
        assert np.allclose(found.interval(), expected.interval())
    half = pa_parquet.read_table("in.parquet").slice(0, ROWS // 2)
    pa_parquet.write_table(half, "half-in.parquet")
    for name in ("half", "double"):
        rx.release("half-in.parquet", {"ward": columns["ward"]}, to=f"{name}.{ending}", epsilon=2, **where)
    files = [f"answer.{ending}", f"half.{ending}"]
    assert rx.count(files, "answer", cross="ward").objects == ROWS // 2  # those that have both
    with pytest.raises(CountsError, match="stands in more than one row"):
        rx.estimate([*files, f"double.{ending}"], "answer", cross="ward")


@pytest.mark.parametrize("encoding", ["unary-optimised", pytest.param("local-hash", marks=pytest.mark.long)])
def test_levels_in_files_of_several_formats(encoding: str) -> None:
    """Every object counts once, at its highest level, whatever its files are; nothing is taken from a lower one."""
    words = ["--encoding", encoding, "--planned-epsilon", "1", "--keep", "ward", "--no-ledger", "--release", "in"]
    for ending in ("parquet", "csv"):
        release(f"low.{ending}", *words, epsilon="0.5")
        release(f"high.{ending}", *words, epsilon="1")
    expected = run("estimate", "high.parquet", "--by", "ward")["groups"]
    for low, high in (("low.csv", "high.parquet"), ("low.parquet", "high.csv")):
        assert run("estimate", low, high, "--by", "ward")["groups"] == expected
    table = pa_parquet.read_table("high.parquet")
    half = np.arange(ROWS) < ROWS // 2
    for name in ("answer", "ward"):
        place = table.schema.get_field_index(name)
        column = pa.array([None if gone else cell.as_py() for gone, cell in zip(half, table[name], strict=True)])
        column = column.cast(table.schema.field(name).type)
        pa_parquet.write_table(table.set_column(place, name, column), f"no-{name}.parquet")
    assert "is not one that the declared values allow" in run("estimate", "low.parquet", "no-answer.parquet")
    groups = run("estimate", "low.parquet", "no-ward.parquet", "--by", "ward")["groups"]
    assert {each["group"]: each["objects"] for each in groups}[None] == ROWS // 2


def test_a_column_of_numbers_that_becomes_one_of_values() -> None:
    words = ["release", "in.parquet", "--id", "id", "--column", "ward", "--key", "key", "--epsilon", "1"]
    run(*words, "numbers.parquet", "--range", "0", "1", "--budget", "5")
    refused = run(*words, "values.parquet", "--values", "0,1")
    assert refused.startswith("the encoding is not what 'ward' of release 'in' was released with")
    forced = run(*words, "values.parquet", "--values", "0,1", "--force")
    assert forced["columns"]["ward"] | {"cost": "1", "epoch": 2} == forced["columns"]["ward"]
