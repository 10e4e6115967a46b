"""`relaxdp relax` and `relaxdp budget series`: nothing that is said is ignored; and who is told how a table changed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pa_parquet
import pytest
from typer.testing import CliRunner

import relaxdp as rx
from relaxdp.cli import release as command
from relaxdp.cli.main import app
from relaxdp.errors import OptionError, TableChangedError

ROWS = 60


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    rx.Key.generate().save("key")
    return tmp_path


def write(answers: list[str], ages: list[float], first: int = 0) -> None:
    ids = list(range(first, first + len(answers)))
    pa_parquet.write_table(pa.table({"id": ids, "answer": answers, "age": ages}), "in.parquet")


def run(*words: str) -> Any:
    return CliRunner().invoke(app, list(words))


def release(out: str, *words: str, epsilon: str = "0.5") -> Any:
    said = ["--column", "answer", "--column", "age", "--values", "answer=flu,none", "--range", "0", "100"]
    return run("release", "in.parquet", out, "--id", "id", "--epsilon", epsilon, "--key", "key", "--yes", *said, *words)


@pytest.mark.parametrize("is_somebody_there", [True, False])
def test_how_a_table_changed_is_told_to_a_person_alone(
    place: Path, monkeypatch: pytest.MonkeyPatch, is_somebody_there: bool
) -> None:
    write(["flu", "none"] * (ROWS // 2), [20.0] * ROWS)
    assert release("0.5.parquet", "--budget", "9").exit_code == 0
    write(["none", "none"] * (ROWS // 2), [20.0] * (ROWS - 1) + [21.0], first=2)
    monkeypatch.setattr(command, "is_interactive", lambda: is_somebody_there)
    refused = release("1.parquet", epsilon="1")
    assert isinstance(refused.exception, TableChangedError)
    told = refused.output + refused.exception.message + repr(refused.exception.fields)
    assert ("29 rows changed, 2 joined, 2 left" in told) == is_somebody_there
    assert ("0 rows changed, 2 joined, 2 left" in told) == is_somebody_there
    assert ("for your eyes" in told) == is_somebody_there
    assert not Path("1.parquet").exists()


@pytest.mark.parametrize("is_somebody_there", [True, False])
def test_how_many_rows_of_a_growing_table_changed_is_told_to_a_person_alone(
    place: Path, monkeypatch: pytest.MonkeyPatch, is_somebody_there: bool
) -> None:
    write(["flu", "none"] * (ROWS // 2), [20.0] * ROWS)
    assert release("0.5.parquet", "--budget", "9", "--growing").exit_code == 0
    write(["none", "none"] * (ROWS // 2), [20.0] * ROWS)
    monkeypatch.setattr(command, "is_interactive", lambda: is_somebody_there)
    refused = release("1.parquet", "--growing", epsilon="1")
    assert isinstance(refused.exception, TableChangedError)
    assert "30" not in refused.exception.message + repr(refused.exception.fields) + repr(refused.exception)
    assert ("30 rows changed. That is for your eyes" in refused.output) == is_somebody_there


ALONE = {
    "--id": "id", "--old-epsilon": "0.5", "--release": "in", "--keep": "age", "--values": "flu,none",
    "--values-file": "values", "--bins": "1,2", "--map": "map.csv", "--nulls": "none", "--missing-as": "NA",
    "--separator": ";", "--budget": "9", "--new-ledger": "why",
}  # fmt: skip


def test_a_snapshot_takes_no_options_of_a_table(place: Path) -> None:
    for option, what in ALONE.items():
        refused = run("relax", "in", "1.parquet", "--epsilon", "1", "--key", "key", option, what)
        assert isinstance(refused.exception, OptionError), option
        assert option in refused.exception.message


def test_what_declares_nothing_is_not_said_to_a_series(place: Path) -> None:
    declared = ["budget", "series", "wages", "--key", "key"]
    assert run(*declared, "--dates", "2026,2027", "--each", "1", "--budget", "3").exit_code == 0
    for more in (["--budget", "4"], ["--reason", "why"]):
        assert isinstance(run(*declared, *more).exception, OptionError)
    assert "pays 2 for one column, of a budget of 3" in run(*declared).output


def test_a_series_shows_what_was_forced_too(place: Path) -> None:
    declared = ["budget", "series", "in", "--key", "key"]
    assert run(*declared, "--dates", "2026", "--each", "1", "--budget", "9").exit_code == 0
    for number, forced in enumerate(([], ["--force"])):
        write(["flu", "none"][:: 1 - 2 * number] * (ROWS // 2), [20.0] * ROWS)
        assert release(f"{number}.parquet", "--date", "2026", *forced, epsilon="0.25").exit_code == 0
    (shown,) = json.loads(run(*declared, "--json").output)["dates"]
    assert shown["columns"] == {"answer": "0.5", "age": "0.25"}
    assert "answer for 0.5" in run(*declared).output
