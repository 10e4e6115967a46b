"""Numbers and times as they come: outside of a range, missing, as text; through every door, on one path."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pa_parquet
import pytest
from tests.refusals import refused
from typer.testing import CliRunner

import relaxdp as rx
from relaxdp.cli.main import app
from relaxdp.errors import DeriveError, EncodingError, RangeError, ValuesChangedError, ValuesError

ROWS = 20_000
WHERE: dict[str, Any] = {"id": "id", "epsilon": 2, "key": "key"}
DELAYS = rx.Column(range=(-30, 120), clip=True, missing=True)


def delays() -> list[float | None]:
    rng = np.random.default_rng(4)
    numbers = np.round(rng.normal(10, 40, ROWS))
    numbers[:20] = 1e6
    return [None if gone else float(number) for number, gone in zip(numbers, rng.random(ROWS) < 0.2, strict=True)]


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    rx.Key.from_bytes(bytes(range(32))).save("key")
    pa_parquet.write_table(pa.table({"id": range(ROWS), "delay": delays()}), "in.parquet")
    return tmp_path


def test_the_mean_of_what_is_there_and_the_share_that_is_not() -> None:
    rx.release("in.parquet", {"delay": DELAYS}, to="out.parquet", budget=4, **WHERE)
    reports = pa_parquet.read_table("out.parquet")["delay"]
    assert reports.null_count == 0
    assert set(reports.to_pylist()) == {"missing", "-30", "120"}
    result = rx.estimate("out.parquet", "delay")
    there = [min(max(each, -30), 120) for each in delays() if each is not None]
    low, high = result.interval()
    assert low < np.mean(there) < high < low + 6
    (below,), (above,) = result.missing.interval()
    assert below < 1 - len(there) / ROWS < above < below + 0.03


def test_every_door_draws_the_same() -> None:
    rx.release("in.parquet", {"delay": DELAYS}, to="out.parquet", budget=4, **WHERE)
    expected = pa_parquet.read_table("out.parquet")["delay"].to_pylist()
    Path("in.csv").write_text("id,delay\n" + "".join(f"{n},{'' if d is None else d}\n" for n, d in enumerate(delays())))
    words = ["--id", "id", "--column", "delay", "--range", "-30", "120", "--clip", "--missing", "--epsilon", "2"]
    shown = CliRunner().invoke(app, ["release", "in.csv", "out.csv", *words, "--key", "key", "--release", "text"])
    assert shown.exit_code == 0, shown.exception
    assert set(pd.read_csv("out.csv", dtype=str)["delay"]) == set(expected)  # ids of a CSV file are text: other people
    low, high = rx.estimate("out.csv", "delay").interval()
    assert low < rx.estimate("out.parquet", "delay").value < high
    for frame in (pd.DataFrame({"id": range(ROWS), "delay": delays()}), pl.read_parquet("in.parquet")):
        assert list(rx.release(frame, {"delay": DELAYS}, release="in", **WHERE)["delay"]) == expected
    numbers = rx.Numeric(-30, 120, clip=True, missing=True)
    column = pa_parquet.read_table("in.parquet")["delay"]
    path: Any = {"key": rx.Key.load("key"), "epsilon": 2, "release": "in", "attribute": "delay"}
    assert list(numbers.release(column, pa.array(range(ROWS)), **path).to_pylist()) == expected
    alone = numbers.path(None, key=rx.Key.load("key"), object_id=3, release="in", attribute="delay")
    assert {alone.at(epsilon) for epsilon in (0.5, 50)} <= set(numbers.encoding.labels)


def test_its_reports_are_frozen() -> None:
    numbers = rx.Numeric(0, 100, clip=True, missing=True)
    path: Any = {"release": "r", "attribute": "a"}
    drawn = {
        epsilon: numbers.release(
            [None, 0, 25, 100, 1e9, 50], range(1, 7), key=rx.Key.load("key"), epsilon=epsilon, **path
        )
        for epsilon in (0.5, 1, 4)
    }
    assert drawn == {
        0.5: ["0", "100", "0", "0", "0", "0"],
        1: ["missing", "0", "0", "0", "missing", "100"],
        4: ["missing", "0", "0", "100", "100", "0"],
    }


def test_the_command_says_both() -> None:
    rx.release("in.parquet", {"delay": DELAYS}, to="out.parquet", budget=4, **WHERE)
    shown = CliRunner().invoke(app, ["estimate", "out.parquet"])
    assert "mean of 'delay'" in shown.output
    assert "Missing: 2" in shown.output.replace("\n", " ")
    (group,) = json.loads(CliRunner().invoke(app, ["estimate", "out.parquet", "--json"]).stdout)["groups"]
    assert group["missing"]["low"] < group["missing"]["estimate"] < group["missing"]["high"]
    assert [row["value"] for row in group["estimates"]] == ["mean"]


def test_clipping_and_missing_are_part_of_the_path() -> None:
    rx.release("in.parquet", {"delay": DELAYS}, to="out.parquet", budget=4, **WHERE)
    for other in (
        rx.Column(range=(-30, 120), missing=True), rx.Column(range=(-30, 120), clip=True), rx.Numeric(-30, 120)
    ):  # fmt: skip
        with refused(ValuesChangedError):
            rx.release("in.parquet", {"delay": other}, to="two.parquet", **WHERE)


def test_what_is_clipped_is_the_truth() -> None:
    """One that was a million and is two is the same number in the range: the table did not change."""
    rx.release("in.parquet", {"delay": DELAYS}, to="out.parquet", budget=4, **WHERE)
    table = pa_parquet.read_table("in.parquet")
    larger = pa.array([each * 2 if each == 1e6 else each for each in table["delay"].to_pylist()])
    pa_parquet.write_table(table.set_column(1, "delay", larger), "in.parquet")
    done = rx.release("in.parquet", {"delay": DELAYS}, to="two.parquet", **WHERE)
    assert str(done.charges[0].cost) == "0"
    assert Path("two.parquet").read_bytes() == Path("out.parquet").read_bytes()


def test_what_is_refused_names_the_way_out() -> None:
    plain: Any = {"to": "two.parquet", "budget": 4, **WHERE}
    with refused(RangeError, remedy="clip"):
        rx.release("in.parquet", {"delay": rx.Column(range=(-30, 120), missing=True)}, **plain)
    with refused(RangeError, remedy="missing_number", missing=True):
        rx.release("in.parquet", {"delay": rx.Column(range=(-30, 120), clip=True)}, **plain)
    with refused(DeriveError, remedy="missing_value"):
        rx.release("in.parquet", {"delay": rx.Column(bins=[0, 60], clip=True)}, **plain)
    with refused(EncodingError, encoding="numeric"):
        rx.release("in.parquet", {"delay": rx.Column(range=(0, 1), missing=True, encoding="numeric")}, **plain)
    numbers = rx.Numeric(0, 10, missing=True)
    with refused(RangeError, row=2, says="is not within the range"):  # a number that is there is not missing
        numbers.release([1.0, -1.0], [1, 2], key=rx.Key.load("key"), epsilon=1, release="r", attribute="a")


@pytest.mark.parametrize(
    ("part", "expected"),
    [("hour", ["23", "07"]), ("weekday", ["Saturday", "Monday"]), ("month", ["January", "February"])],
)
def test_a_part_of_a_time_has_values_that_everybody_knows(part: Any, expected: list[str]) -> None:
    times = ["2026-01-31T23:59:59", "2026-02-02T07:00:00"]
    free: Any = {"id": "id", "epsilon": 60, "key": "key", "release": "r", "ledger": None}
    for column in (pa.array(times).cast(pa.timestamp("ms")), pa.array(times)):
        table = pa.table({"id": [1, 2], "time": column})
        released = rx.release(table, {"time": rx.Column(part=part)}, **free)
        assert released["time"].to_pylist() == expected
    frame = pd.DataFrame({"id": [1, 2], "time": pd.to_datetime(times).tz_localize("Europe/Berlin")})
    assert list(rx.release(frame, {"time": rx.Column(part=part)}, **free)["time"]) == expected


def test_dates_of_times_are_declared() -> None:
    table = pa.table({"id": [1, 2], "time": pa.array(["2026-01-31T23:59:59", None]).cast(pa.timestamp("us"))})
    pa_parquet.write_table(table, "times.parquet")
    words = ["release", "times.parquet", "out.parquet", "--id", "id", "--column", "time", "--epsilon", "60"]
    words += ["--key", "key", "--no-ledger", "--part", "date", "--nulls", "never"]
    done = CliRunner().invoke(app, [*words, "--values", "2026-01-31,2026-02-01"])
    assert done.exit_code == 0, done.exception
    assert pa_parquet.read_table("out.parquet")["time"].to_pylist() == ["2026-01-31", "never"]
    assert isinstance(CliRunner().invoke(app, words).exception, ValuesError)
    with refused(DeriveError, says="this is not a time", row=2):
        column = {"time": rx.Column(part="hour")}
        other = pa.table({"id": [1, 2], "time": ["2026-01-31T23:59:59", "half past seven"]})
        rx.release(other, column, id="id", epsilon=1, key="key", release="r", ledger=None)


PENGUINS = """id,species,sex,mass
1,Adelie,male,3750
2,Gentoo,NA,NA
3,Adelie,female,
4,Gentoo,male,5700
"""
COMMON = ["release", "penguins.csv", "out.parquet", "--id", "id", "--epsilon", "60", "--key", "key", "--no-ledger"]


def command(*words: str) -> Any:
    done = CliRunner().invoke(app, [*COMMON, *words])
    return done.exception if done.exit_code else {
        name: column for name, column in pa_parquet.read_table("out.parquet").to_pydict().items() if name != "id"
    }  # fmt: skip


def test_values_and_numbers_of_one_table_with_texts_for_what_is_missing() -> None:
    Path("penguins.csv").write_text(PENGUINS)
    words = ["--column", "species", "--column", "sex", "--column", "mass", "--values", "species=Adelie,Gentoo"]
    words += ["--values", "sex=female,male", "--nulls", "sex=unknown", "--range", "0", "3750", "--clip", "--missing"]
    assert command(*words, "--missing-as", "NA") == {
        "species": ["Adelie", "Gentoo", "Adelie", "Gentoo"],
        "sex": ["male", "unknown", "female", "male"],
        "mass": ["3750", "missing", "missing", "3750"],
    }


def test_what_is_said_once_is_of_one_column() -> None:
    """A range that fits one column of numbers would clip another one to nothing, and be paid for."""
    Path("penguins.csv").write_text(PENGUINS)
    two = ["--column", "species", "--column", "sex", "--column", "mass"]
    assert isinstance(command(*two, "--values", "species=Adelie,Gentoo", "--range", "0", "1"), ValuesError)
    assert isinstance(command(*two, "--values", "species=Adelie,Gentoo", "--bins", "1"), ValuesError)
    both = [
        "--column",
        "species",
        "--column",
        "sex",
        "--values",
        "species=Adelie,Gentoo",
        "--values",
        "sex=female,male",
    ]
    assert isinstance(command(*both, "--nulls", "unknown"), ValuesError)
    assert isinstance(command(*both, "--clip"), ValuesError)
    wrong = command(*both, "--values", "Species=Adelie")
    assert "write species=... or sex=..." in str(wrong)
