"""`relaxdp estimate --difference`: tables that a stranger reads, pictures, JSON, and a sentence for a mistake."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pa_parquet
import pytest
from rich.cells import cell_len
from tests.unit.cli.test_estimate import sentence
from typer.testing import CliRunner

import relaxdp as rx
from relaxdp.cli.main import app
from relaxdp.errors import CountsError

KEY = rx.Key.from_bytes(bytes(range(32)))
ROWS, LEFT, JOINED = 20_000, 3_000, 4_000
SOME = [f"city {number}" for number in range(80)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three years: a tenth begins to vote, a sixth leaves, others join."""
    place, rng = tmp_path_factory.mktemp("dates"), np.random.default_rng(3)
    ids, voted = np.arange(ROWS), np.where(rng.random(ROWS) < 0.4, "yes", "no")
    for year in (2026, 2027, 2028):
        table = {
            "id": ids,
            "voted": voted,
            "age": 20 + ids % 50 + 1.0 * year - 2026,
            "city": rng.choice(SOME, len(ids)),
        }
        columns = {"voted": rx.Categorical(["yes", "no"]), "age": rx.Numeric(0, 100), "city": rx.Categorical(SOME)}
        where: dict[str, Any] = {"id": "id", "key": KEY, "release": f"survey-{year}", "ledger": None}
        pa_parquet.write_table(rx.release(pa.table(table), columns, epsilon=3, **where), place / f"{year}.parquet")
        ids = np.concatenate([ids[LEFT:], ids[-1] + 1 + np.arange(JOINED)])
        voted = np.concatenate([voted[LEFT:], np.where(rng.random(JOINED) < 0.6, "yes", "no")])
        voted = np.where(rng.random(len(ids)) < 0.1, "yes", voted)
    return place


def files(folder: Path, years: int = 2) -> list[str]:
    return [str(folder / f"{2026 + number}.parquet") for number in range(years)]


def run(folder: Path, *words: Any, years: int = 2, width: int = 100) -> str:
    asked = ["estimate", *files(folder, years), "--difference", *map(str, words)]
    shown = CliRunner().invoke(app, asked, env={"COLUMNS": str(width)})
    assert shown.exit_code == 0, shown.output
    return shown.output


def test_a_stranger_reads_what_changed(folder: Path) -> None:
    shown = run(folder, "--column", "voted")
    found = rx.difference(folder / "2026.parquet", folder / "2027.parquet", column="voted")
    assert "2026: 20,000 objects at epsilon 3, release 'survey-2026'" in shown
    titles = [
        "The 17,000 who were there in 2026 and in 2027", "Everybody: 20,000 in 2026, 21,000 in 2027",
        "The 4,000 who joined, in 2027", "The 3,000 who left, in 2026",
    ]  # fmt: skip
    assert [line for line in shown.splitlines() if line in titles] == titles
    (row,) = [line for line in shown.splitlines() if "yes" in line][:1]
    cells = [cell.strip() for cell in row.strip("│").split("│")]
    low, high = (100 * end[0] for end in found.stayed.interval())
    old, new = 100 * found.stayed.old.value[0], 100 * found.stayed.new.value[0]
    assert cells == ["yes", f"{old:.1f} %", f"{new:.1f} %", f"{new - old:+.1f} points", f"{low:+.1f}", f"{high:+.1f}"]
    assert low > 0
    assert f"yes: {cells[1]} -> {cells[2]}, {cells[3]} ({cells[4]} to {cells[5]})" in repr(found)


def test_a_mean_is_no_percentage(folder: Path) -> None:
    shown = run(folder, "--column", "age")
    assert "mean of 'age' at 2 dates; 95 % intervals of the mean" in shown
    assert re.search(r"│ mean +│ +44\.\d+ +│ +4\d\.\d+ +│ +\+\d\.\d+ +│", shown)
    assert "%" not in shown.split("\n", 1)[1]


def test_quartiles_of_a_wave_stand_below_the_mean(tmp_path: Path) -> None:
    ages = rx.Wave(0, 100, epsilon=3)
    for year in (2026, 2027):
        table = pa.table({"id": range(3_000), "age": [20.0 + n % 50 + year - 2026 for n in range(3_000)]})
        where: dict[str, Any] = {"id": "id", "key": KEY, "release": f"survey-{year}", "ledger": None}
        pa_parquet.write_table(rx.release(table, {"age": ages}, epsilon=3, **where), tmp_path / f"{year}.parquet")
    shown = run(tmp_path)
    labels = re.findall(r"^│ (mean|quantile 0.25|median|quantile 0.75) +│", shown, re.M)
    assert labels == ["mean", "quantile 0.25", "median", "quantile 0.75"]
    assert "%" not in shown.split("\n", 1)[1]
    change = json.loads(run(tmp_path, "--json"))["steps"][0]["stayed"]
    assert [row["value"] for row in change["quartiles"]] == ["quantile 0.25", "median", "quantile 0.75"]
    assert all(row["low"] <= 1 <= row["high"] for row in [*change["rows"], *change["quartiles"]])
    found = rx.difference(*files(tmp_path))
    assert "median: " in repr(found)
    with pytest.raises(CountsError, match="released as waves"):
        rx.difference(
            rx.Numeric(0, 9).estimate([9.0], epsilon=1), rx.Numeric(0, 9).estimate([0.0], epsilon=1)
        ).quantile(0.5)


def test_two_estimates_of_means_are_no_percentages() -> None:
    old, new = (rx.Numeric(0, 100).estimate([0.0] * n + [100.0] * (100 - n), epsilon=2) for n in (50, 40))
    assert repr(rx.difference(old, new)).startswith("mean: 50.0 -> 63.1, +13.1 (")


def test_what_is_missing_is_said_beside_the_mean(tmp_path: Path) -> None:
    ages = rx.Numeric(0, 100, missing=True)
    for year in (2026, 2027):
        table = pa.table({"id": range(3_000), "age": [None if n % 5 == 0 else 40.0 for n in range(3_000)]})
        where: dict[str, Any] = {"id": "id", "key": KEY, "release": f"survey-{year}", "ledger": None}
        pa_parquet.write_table(rx.release(table, {"age": ages}, epsilon=3, **where), tmp_path / f"{year}.parquet")
    shown = run(tmp_path)
    assert re.search(r"^Missing: [\d.]+ % -> [\d.]+ %, [+-][\d.]+ points \([+-][\d.]+ to [+-][\d.]+\)\.$", shown, re.M)
    row = json.loads(run(tmp_path, "--json"))["steps"][0]["stayed"]["missing"]
    assert row.keys() == {"value", "old", "new", "change", "std_error", "low", "high"}
    assert row["low"] < 0 < row["high"]


def test_the_largest_of_many_hold_at_once(folder: Path) -> None:
    shown = run(folder, "--column", "city", "--top", "5")
    assert shown.count("These are the 5 of 80 values that changed most") == 2
    found = rx.difference(folder / "2026.parquet", folder / "2027.parquet", column="city").stayed
    chosen = found.largest(5)
    assert chosen.is_chosen
    assert list(np.abs(chosen.value)) == sorted(np.abs(found.value), reverse=True)[:5]
    assert np.array_equal(chosen.interval(), np.array(found.interval(simultaneous=True))[:, chosen.old.places])
    assert "A change whose interval holds 0 cannot be told from no change" in shown
    everything = json.loads(run(folder, "--column", "city", "--top", "5", "--json"))
    assert len(everything["steps"][0]["stayed"]["rows"]) == 80


def test_json_has_everything(folder: Path) -> None:
    asked = ["--column", "voted", "--about", "population", "--confidence", "0.9"]
    answer = json.loads(run(folder, *asked, "--json", years=3))
    assert [date["label"] for date in answer["dates"]] == ["2026", "2027", "2028"]
    assert answer["dates"][1]["levels"] == [{"epsilon": "3", "objects": 21_000}]
    assert [(step["from"], step["to"]) for step in answer["steps"]] == [("2026", "2027"), ("2027", "2028")]
    step = answer["steps"][0]
    assert [step[who]["objects"] for who in ("stayed", "joined", "left")] == [17_000, 4_000, 3_000]
    found = rx.difference(folder / "2026.parquet", folder / "2027.parquet", column="voted")
    low, high = found.stayed.interval(0.9, about="population")
    assert step["stayed"]["rows"][0] == {
        "value": "yes",
        "old": found.stayed.old.value[0],
        "new": found.stayed.new.value[0],
        "change": found.stayed.value[0],
        "std_error": found.stayed.standard_error("population")[0],
        "low": low[0],
        "high": high[0],
    }
    apart = json.loads(run(folder, *asked, "--json", "--independent"))
    assert apart.keys() == answer.keys()
    assert apart["steps"][0].keys() == step.keys()
    assert (apart["steps"][0]["joined_by_id"], apart["steps"][0]["stayed"]) == (False, None)


def test_pictures(folder: Path, tmp_path: Path) -> None:
    said = {}
    for years, column in ((2, "voted"), (3, "voted"), (3, "city"), (3, "age")):
        place = tmp_path / f"{years}-{column}.svg"
        run(folder, "--column", column, "--plot", place, years=years)
        said[years, column] = re.findall(r"<!-- (.*?) -->", place.read_text("utf-8"))
    assert "change in percentage points" in said[2, "voted"]
    assert {"2026", "2027", "2028", "yes", "no", "share in percent"} <= {*said[3, "voted"]}
    assert "the largest 8 of 80 values" in said[3, "city"]
    assert any("all values at once" in each for each in said[3, "city"])
    assert "mean" in said[3, "age"]


@pytest.mark.parametrize("width", [30, 60])
def test_numbers_are_never_cut(folder: Path, width: int) -> None:
    wide, narrow = (run(folder, "--column", "voted", width=each) for each in (200, width))
    numbers = re.compile(r"[+-]?\d+\.\d+")
    assert numbers.findall(wide) == numbers.findall(narrow)
    assert max(cell_len(line) for line in wide.splitlines()) <= 200


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--column", "voted", "--by", "city"], "without --by"),
        (["--column", "voted", "--cross", "city"], "without --cross"),
        (["--column", "voted", "--consistent"], "without --consistent"),
        (["--column", "voted", "--new-column", "city"], "declare different values"),
    ],
)
def test_what_is_not_offered(folder: Path, words: list[str], says: str) -> None:
    assert says in sentence(*files(folder), "--difference", *words)


def test_ways_out_are_options(folder: Path) -> None:
    (same,) = files(folder, 1)
    assert "takes two files or more" in sentence(same, "--difference", "--column", "voted")
    shown = sentence(same, same, "--difference", "--column", "voted")
    assert "are not two dates: both hold 'voted' of release 'survey-2026'" in shown
    assert "without --difference takes both" in shown
    assert "with --difference" in sentence(same, "--independent")


def test_a_notebook_shows_it(folder: Path) -> None:
    found = rx.difference(*(folder / f"{year}.parquet" for year in (2026, 2027, 2028)), column="voted")
    page = found[0]._repr_html_()
    assert page.count("<table>") == 4
    assert "the 17,000 who were there in 2026 and in 2027" in page
    assert "<th>2026</th><th>2027</th><th>change</th>" in page
    assert found._repr_html_().count("<table>") == 8
    frame = found[0].to_frame()
    assert list(frame) == [
        "who", "value", "old", "old_low", "old_high", "new", "new_low", "new_high",
        "change", "std_error", "low", "high",
    ]  # fmt: skip
    assert frame["who"].tolist() == [who for who in ("stayed", "everybody", "joined", "left") for _ in range(2)]
    assert frame.loc[frame["who"] == "joined", ["old", "change"]].isna().all(axis=None)
    assert list(found[0].stayed.to_frame())[:4] == ["value", "old", "new", "change"]
