"""`relaxdp compare`: the change between two released files, as `rx.compare` computes it."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from tests.released import release_to
from typer.testing import CliRunner

import relaxdp as rx
from relaxdp.cli.main import app
from relaxdp.errors import EstimationError, MetadataError

ROWS = 4_000
VALUES = ["flu", "covid", "none"]
AGES = rx.SquareWave(0, 100, epsilon=2, bins=32)


def write(path: Path, name: str, flu: float, *, epsilon: Any = 1, seed: int = 1, values: list[str] = VALUES) -> Path:
    rng = np.random.default_rng(seed)
    table = pa.table(
        {
            "id": np.arange(ROWS),
            "diagnosis": rng.choice(VALUES, ROWS, p=[flu, 0.1, 0.9 - flu]),
            "age": rng.uniform(0, 90, ROWS),
        }
    )
    mechanisms = {"diagnosis": rx.Categorical(values), "age": AGES}
    release_to(path, table, mechanisms, epsilon=epsilon, name=name)
    return path


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp("compare")
    return write(folder / "a.parquet", "2026", 0.2), write(folder / "b.parquet", "2027", 0.3, seed=2)


def run(*words: Any) -> str:
    shown = CliRunner().invoke(app, ["compare", *map(str, words)], env={"COLUMNS": "200"})
    assert shown.exit_code == 0, shown.exception
    return shown.stdout


def test_the_change_is_that_of_python(files: tuple[Path, Path]) -> None:
    found = json.loads(run(*files, "--column", "diagnosis", "--json", "--confidence-level", "0.9"))
    expected = rx.compare(*(rx.estimate(file, "diagnosis") for file in files))
    low, high = expected.interval(0.9)
    for name, column in {"change": expected.value, "low": low, "high": high, "old": expected.old.value}.items():
        assert [row[name] for row in found["changes"]] == pytest.approx(column.tolist())
    assert [row["value"] for row in found["changes"]] == VALUES
    assert (found["old"], found["new"]) == ({"release": "2026", "n": ROWS}, {"release": "2027", "n": ROWS})
    assert found["confidence_level"] == 0.9


def test_the_table_names_both_releases(files: tuple[Path, Path]) -> None:
    shown = run(*files, "--column", "diagnosis")
    assert "'diagnosis' from release '2026' to '2027', 4,000 and 4,000 individuals; 95 % intervals of each" in shown
    assert [line.split()[1] for line in shown.splitlines() if line.startswith("│")] == VALUES
    assert "points" in shown
    assert "These are the 1 of 3 rows that changed most." in run(*files, "--column", "diagnosis", "--top", "1")


def test_quantiles_csv_and_a_plot(files: tuple[Path, Path], tmp_path: Path) -> None:
    rows = list(csv.DictReader(io.StringIO(run(*files, "--column", "age", "--csv", "--quantiles", "0.1,0.5"))))
    assert [row["value"] for row in rows] == ["mean", "quantile 0.1", "median"]
    assert set(rows[0]) == {"value", "old", "new", "change", "std_error", "low", "high"}
    run(*files, "--column", "diagnosis", "--plot", tmp_path / "change.png")
    assert (tmp_path / "change.png").stat().st_size > 5_000


def test_two_levels_of_one_release_are_rejected(files: tuple[Path, Path], tmp_path: Path) -> None:
    higher = write(tmp_path / "higher.parquet", "2026", 0.2, epsilon=2)
    problem = CliRunner().invoke(app, ["compare", str(files[0]), str(higher), "--column", "diagnosis"]).exception
    assert isinstance(problem, MetadataError)
    assert "share noise" in problem.sentence
    assert problem.hint


def test_other_values_are_rejected(files: tuple[Path, Path], tmp_path: Path) -> None:
    other = write(tmp_path / "other.parquet", "other", 0.2, values=[*VALUES, "cold"])
    problem = CliRunner().invoke(app, ["compare", str(files[0]), str(other), "--column", "diagnosis"]).exception
    assert isinstance(problem, EstimationError)
