"""What `relaxdp estimate` shows: at any width of a terminal, of very many values, and of reports that cannot be."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pa_parquet
import pytest
from rich.cells import cell_len
from tests.released import KEY, release_to
from typer.testing import CliRunner

import relaxdp as rx
from relaxdp.cli.main import app

ROWS = 2_000
LONG = ["a diagnosis with a rather long name", "covid", "none of all those that were asked for"]
TRUTH = np.random.default_rng(1).choice(LONG, ROWS, p=[0.3, 0.1, 0.6])
REPLACED = "\N{HORIZONTAL ELLIPSIS}"
# The groups are copies of a released column here.
pytestmark = pytest.mark.filterwarnings("ignore::relaxdp.errors.DeterminedColumnWarning")


def written(path: Path, columns: dict[str, Any], mechanisms: dict[str, Any], epsilon: Any = 1) -> Path:
    table = pa.table({"id": np.arange(len(next(iter(columns.values())))), **columns})
    passthrough = [name for name in columns if name not in mechanisms]
    release_to(path, table, mechanisms, epsilon=epsilon, passthrough=passthrough)
    return path


@pytest.fixture(scope="module")
def survey(tmp_path_factory: pytest.TempPathFactory) -> Path:
    homes = np.random.default_rng(2).choice(["north", "south"], ROWS)
    columns = {"diagnosis": TRUTH, "smoker": homes, "region": homes, "age": np.arange(ROWS) * 1_000.0}
    mechanisms = {
        "diagnosis": rx.Categorical(LONG),
        "smoker": rx.Categorical(["north", "south"]),
        "age": rx.Numeric(0, 2_000_000),
    }
    return written(tmp_path_factory.mktemp("shown") / "out.parquet", columns, mechanisms)


def run(*words: Any, width: int = 80) -> str:
    shown = CliRunner().invoke(app, ["estimate", *map(str, words)], env={"COLUMNS": str(width)})
    assert shown.exit_code == 0, shown.output
    return shown.output


def cells(shown: str) -> list[list[str]]:
    """The rows of a table; a heading may take several of them."""
    lines = [line for line in shown.splitlines() if line[:1] in ("│", "┃")]
    return [[cell.strip() for cell in line[1:-1].split(line[0])] for line in lines]


def labels(shown: str, column: int = 0) -> str:
    """All text of a column and its heading, which may be folded."""
    return "".join(row[column] for row in cells(shown))


# Narrow terminals.

QUESTIONS = {
    "shares": ["--column", "diagnosis"],
    "groups": ["--column", "diagnosis", "--by", "region"],
    "pairs": ["--column", "diagnosis", "--crosstab", "smoker"],
    "mean": ["--column", "age"],
}


@pytest.mark.parametrize(
    "width", [20, 47, 80, *[pytest.param(each, marks=pytest.mark.long) for each in (40, 50, 60, 200)]]
)
@pytest.mark.parametrize("question", QUESTIONS)
def test_numbers_are_never_cut_and_every_label_is_there(survey: Path, question: str, width: int) -> None:
    shown, wide = (run(survey, *QUESTIONS[question], width=each) for each in (width, 300))
    assert REPLACED not in shown
    numbers = [re.findall(r"-?[\d,]+\.\d+", line) for line in shown.splitlines() if line.startswith("│")]
    wanted = [re.findall(r"-?[\d,]+\.\d+", line) for line in wide.splitlines() if line.startswith("│")]
    assert [row for row in numbers if row] == wanted
    texts = 1 if question in ("shares", "mean") else 2
    for column in range(texts):
        assert labels(shown, column).replace(" ", "") == labels(wide, column).replace(" ", "")
        widths = [max(cell_len(row[column]) for row in cells(each)) for each in (shown, wide)]
        assert widths[0] >= min(5, widths[1])
    table = [line for line in shown.splitlines() if line[:1] in "│┃┏┡└├"]
    least = {"shares": 39, "groups": 48, "pairs": 48, "mean": 52}[question]
    assert max(map(cell_len, table)) <= max(width, least)


def test_bars_shrink_and_go_before_labels_do(survey: Path) -> None:
    bars, texts = [], []
    for width in range(300, 38, -12):
        rows = cells(run(survey, "--column", "diagnosis", width=width))
        bars.append(max((cell.count("█") for row in rows for cell in row[4:]), default=0))
        texts.append(max(len(row[0]) for row in rows))
    assert bars[0] == 24
    assert texts[0] == max(map(len, LONG))
    assert bars == sorted(bars, reverse=True)
    assert bars[-1] == 0
    assert texts[-1] >= 6
    # What was found: at 60 columns the labels were gone, and the bar had all of its 24.
    assert texts[(300 - 60) // 12] >= 20


def test_short_labels_keep_their_table_at_any_width(tmp_path: Path) -> None:
    truth = np.random.default_rng(1).choice(["a", "b"], ROWS)
    path = written(tmp_path / "out.parquet", {"x": truth}, {"x": rx.Categorical(["a", "b"])})
    for width in (40, 50, 60, 80):
        shown = run(path, width=width)
        assert [row[0] for row in cells(shown)] == ["value", "a", "b"]
        assert max(map(cell_len, shown.splitlines())) <= width


def test_headings_name_the_columns_of_a_pair(survey: Path) -> None:
    shown = run(survey, "--column", "diagnosis", "--crosstab", "smoker", width=120)
    assert cells(shown)[0][:2] == ["diagnosis", "smoker"]
    assert cells(run(survey, "--column", "diagnosis", "--by", "region"))[0][:2] == ["region", "value"]


# Very many values.


@pytest.mark.long
def test_the_largest_of_very_many_have_intervals_that_hold_for_all(tmp_path: Path) -> None:
    """The largest were chosen because noise helped them: intervals of single values miss nearly all of them here."""
    values, objects = 2_000, 40_000
    truth = np.arange(objects) % values
    path = written(tmp_path / "out.parquet", {"x": truth}, {"x": rx.Unary(list(range(values)))})
    share = 1 / values
    alone = json.loads(run(path, "--json"))
    assert alone["simultaneous"] is False
    largest = sorted(alone["groups"][0]["estimates"], key=lambda row: -row["estimate"])[:50]
    assert sum(not row["low"] <= share <= row["high"] for row in largest) > 40
    shown = run(path, "--plot", tmp_path / "x.svg", width=200)
    rows = cells(shown)[1:]
    assert [row[0] for row in rows] == [str(row["value"]) for row in largest]
    assert all(float(low) <= share <= float(high) for _, _, low, high, *_ in rows)
    assert "95 % intervals of all values at once" in shown
    assert "These are the largest 50 of 2,000 rows" in shown
    together = json.loads(run(path, "--json", "--simultaneous"))["groups"][0]["estimates"]
    ends = {str(row["value"]): (f"{row['low']:.4f}", f"{row['high']:.4f}") for row in together}
    assert all(ends[value] == (low, high) for value, _, low, high, *_ in rows)
    assert ", all values at once" in (tmp_path / "x.svg").read_text("utf-8")


def test_few_values_are_all_shown_each_with_its_own_interval(survey: Path) -> None:
    assert "95 % intervals of each value" in run(survey, "--column", "diagnosis", width=200)


# Estimates that noise took outside.


def test_what_is_below_what_can_be_told_is_said_and_has_a_bound(tmp_path: Path) -> None:
    truth = np.random.default_rng(5).choice(["a", "b"], ROWS)
    path = written(tmp_path / "out.parquet", {"x": truth}, {"x": rx.Categorical(list("abcdefgh"))})
    words = ("--confidence-level", "0.5")  # so that noise takes some of the values that nobody has farther than that
    found = json.loads(run(path, *words, "--json"))["groups"][0]["estimates"]
    below = [row["value"] for row in found if row["beyond"] == "below"]
    assert below
    assert all(row["high"] > 0.01 for row in found)
    assert {row["beyond"] for row in found} == {"below", None}
    shown = run(path, *words, width=300)
    assert [row[0] for row in cells(shown) if row[0].endswith(" *")] == [f"{value} *" for value in below]
    assert "* below what can be told at this level" in shown
    assert "what can be told" not in run(path, "--confidence-level", "0.999999", width=300)


# Reports that cannot be.

STRANGE = "do not look like reports at this level"


def test_reports_that_were_chosen_by_their_reports_are_told(survey: Path, tmp_path: Path) -> None:
    table = pa_parquet.read_table(survey)
    chosen = table.filter(pc.equal(table["diagnosis"].cast(pa.string()), "covid"))
    pa_parquet.write_table(chosen, tmp_path / "chosen.parquet")
    words = (tmp_path / "chosen.parquet", "--description", survey, "--column", "diagnosis")
    shown = run(*words, width=300)
    assert STRANGE in shown
    assert "Were rows chosen by their reports, or is the level mistaken?" in shown
    assert "the noise is larger than the answer" not in shown
    assert STRANGE in run(*words, "--consistent", width=300)
    result = CliRunner().invoke(app, ["estimate", *map(str, words), "--json"])
    assert json.loads(result.stdout)["groups"][0]["implausible"] is True
    assert STRANGE in result.stderr
    assert STRANGE in repr(rx.estimate(chosen, "diagnosis", description=table))


def test_a_mistaken_level_is_told(tmp_path: Path) -> None:
    """Reports at 3 that are said to be at 0.5: what is frequent becomes more than everything."""
    truth = np.random.default_rng(1).choice(["a", "b"], ROWS, p=[0.9, 0.1])
    path = written(tmp_path / "out.parquet", {"x": truth}, {"x": rx.Categorical(["a", "b"])}, 3)
    low = written(tmp_path / "low.parquet", {"x": truth}, {"x": rx.Categorical(["a", "b"])}, 0.5)
    bare = tmp_path / "bare.parquet"  # without the description that it could be checked against
    pa_parquet.write_table(pa_parquet.read_table(path).replace_schema_metadata(None), bare)
    assert STRANGE in run(bare, "--description", low, width=300)
    for honest in (path, low):
        assert STRANGE not in run(honest, width=300)


def test_noise_alone_is_never_told(survey: Path, tmp_path: Path) -> None:
    """Few reports at a low level lie far outside, and that is only noise; a mean, pairs and groups likewise."""
    truth = np.array(["a"] * 12)
    for epsilon in (0.01, 0.1, 1, 5):
        path = written(tmp_path / f"{epsilon}.parquet", {"x": truth}, {"x": rx.Categorical(list("abcdefgh"))}, epsilon)
        shown = run(path, width=300)
        assert STRANGE not in shown
    assert "the noise is larger than the answer" in run(tmp_path / "0.01.parquet", width=300)
    for question in QUESTIONS.values():
        assert STRANGE not in run(survey, *question, width=300)
        assert json.loads(run(survey, *question, "--json"))["groups"][0]["implausible"] is False


def test_a_mean_outside_its_range_is_told() -> None:
    ages = rx.Numeric(0, 120)
    assert ages.estimate([120.0] * 2_000, epsilon=1).has_impossible_estimates()
    assert not ages.estimate([120.0] * 20, epsilon=1).has_impossible_estimates()
    honest = ages.release([120.0] * 2_000, list(range(2_000)), key=KEY, epsilon=1, name="r", column="age")
    assert not ages.estimate(honest, epsilon=1).has_impossible_estimates()
    squares = rx.Numeric(0, 14_400)
    square = squares.estimate([each * 120 for each in honest], epsilon=1)
    assert not rx.variance(ages.estimate(honest, epsilon=1), square).has_impossible_estimates()


# Plots.


@pytest.mark.parametrize("values", [2, 3, 30])
def test_no_point_of_a_plot_lies_on_its_axis(values: int) -> None:
    answers = rx.Categorical(list(range(values)))
    axes = answers.estimate(list(range(values)) * 50, epsilon=1).plot()
    bottom, top = axes.get_ylim()
    assert bottom - (values - 1) >= 0.4  # the first value is on top, and half a row of room on both sides
    assert -top >= 0.4
