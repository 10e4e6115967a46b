"""`relaxdp release --engine spark`, as people call it: what it says and refuses, and what a kill leaves."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pa_parquet
import pytest
from tests.conftest import require
from tests.patience import PATIENCE, until
from typer.testing import CliRunner

from relaxdp import Key
from relaxdp.cli.main import app
from relaxdp.cli.render import FASTER_LOCALLY

pytestmark = pytest.mark.long

ROWS = 1_000


@pytest.fixture
def place(tmp_path: Path) -> Path:
    require("java")
    table = pa.table({"id": range(ROWS), "answer": [["no", "yes"][row % 2] for row in range(ROWS)]})
    pa_parquet.write_table(table, tmp_path / "in.parquet")
    Key.generate().save(tmp_path / "key")
    return tmp_path


def arguments(*more: str, target: str = "out") -> list[str]:
    release = ["release", "in.parquet", target, "--column", "answer", "--id", "id", "--values", "no,yes"]
    return [*release, "--key", "key", "--engine", "spark", "--budget", "3", "--epsilon", "1", *more]


def command(place: Path, *words: str, **environment: str) -> tuple[int, str, str]:
    done = subprocess.run(
        [sys.executable, "-m", "relaxdp", *words],
        cwd=place,
        env={**os.environ, "TMPDIR": str(place.parent), **environment},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    return done.returncode, done.stdout, done.stderr


def is_released(place: Path, output: str) -> None:
    assert output.splitlines() == [
        "released 'answer' of 1,000 rows at epsilon 1 to out (a new path)",
        "'answer' as categorical, the best for epsilon 3: its shares to within 0.061",
        "cost 1; spent 1 of the budget 3, 2 left",
        "kept in key.ledger.snapshots, sealed with the key; to relax it without the table:",
        "  relaxdp relax in OUT.parquet --column answer --key key --epsilon NUMBER",
    ]
    names = ["in.parquet", "key", "key.ledger", "key.ledger.begun", "key.ledger.snapshots", "out"]
    assert [file.name for file in sorted(place.iterdir())] == names
    assert [file.name for file in sorted((place / "out").iterdir())] == [f"part-0000{n}.parquet" for n in range(3)]


@pytest.mark.filterwarnings("ignore::FutureWarning:pyspark")
def test_a_release(spark: Any, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the session that runs already: Java takes longer to start than all else."""
    monkeypatch.chdir(place)
    words = [str(place / word) if word == "in.parquet" else word for word in arguments("--partitions", "3")]
    done = CliRunner().invoke(app, words)  # Java's own working folder is another one
    assert (done.exit_code, done.stderr) == (0, FASTER_LOCALLY + "\n")
    is_released(place, done.stdout)
    assert CliRunner().invoke(app, [*words, "--dry-run"]).stderr == FASTER_LOCALLY + "\n"
    assert CliRunner().invoke(app, [*words, "--dry-run", "--json"]).stderr == ""


@pytest.mark.filterwarnings("ignore::FutureWarning:pyspark")
@pytest.mark.parametrize("master", ["local[2,4]", "spark://head:7077"])
def test_only_what_would_be_faster_here_is_said_to_be(
    spark: Any, place: Path, monkeypatch: pytest.MonkeyPatch, master: str
) -> None:
    """Neither of a table that has to be sorted, nor on a cluster, which has more cores than this machine."""
    monkeypatch.chdir(place)
    monkeypatch.setattr(spark.sparkContext, "master", master)
    if master.startswith("local"):
        table = pa_parquet.read_table("in.parquet")
        pa_parquet.write_table(table.take([*range(0, ROWS, 2), *range(1, ROWS, 2)]), "in.parquet", row_group_size=100)
    words = [str(place / word) if word == "in.parquet" else word for word in arguments("--dry-run")]
    done = CliRunner().invoke(app, words)
    assert (done.exit_code, done.stderr) == (0, "")


def test_a_release_and_a_kill(place: Path) -> None:
    """A killed driver leaves an unfinished folder and no charge; the next run sweeps it and releases."""
    killed = subprocess.Popen(
        [sys.executable, "-m", "relaxdp", *arguments("--master", "local[2,4]", "--partitions", "3")],
        cwd=place,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    until(lambda: list(place.glob(".out.*")))
    os.killpg(killed.pid, signal.SIGKILL)  # Java and its workers too
    killed.wait()
    assert list(place.glob(".out.*-unfinished"))
    status, output, errors = command(place, *arguments("--master", "local[2,4]", "--partitions", "3"))
    assert (status, errors) == (0, FASTER_LOCALLY + "\n")
    is_released(place, output)


@pytest.mark.parametrize(
    ("words", "environment", "sentence"),
    [
        ((), {"PATH": "/nowhere", "JAVA_HOME": ""}, "Spark needs Java 17 or newer, and it is not on the PATH."),
        ((), {"JAVA_HOME": "/nowhere"}, "Spark needs Java 17 or newer, and JAVA_HOME does not lead to it."),
        (("--master", "nonsense"), {}, "Spark could not start at nonsense"),
        (
            ("--engine", "local", "--master", "local"),
            {},
            "this is for Spark: master. --engine spark chooses it.",
        ),
    ],
)
def test_bad_input_is_one_sentence(
    place: Path, words: tuple[str, ...], environment: dict[str, str], sentence: str
) -> None:
    status, output, errors = command(place, *arguments(*words), **environment)
    assert (status, output) == (2, "")
    assert errors.startswith(sentence)
    assert errors.count("\n") == 1
    assert "Nothing was released." in errors


def test_a_table_that_spark_cannot_read(place: Path) -> None:
    (place / "in.parquet").unlink()
    status, _, errors = command(place, *arguments("--master", "local[1]"))
    assert status == 2
    assert errors.startswith("Spark could not read the table: it is not there, or is not Parquet. Spark's log: ")
    assert errors.endswith(" Nothing was released.\n")
    (place / "in.csv").write_text("id,answer\n1,no\n")
    words = [word.replace("in.parquet", "in.csv") for word in arguments()]
    assert command(place, *words)[2] == "the Spark engine reads Parquet. Nothing was released.\n"
