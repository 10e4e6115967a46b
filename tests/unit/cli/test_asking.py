"""The way in: what was not said is asked for at a terminal, and never in a pipe."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pa_parquet
import pytest
from tests.patience import PATIENCE

import relaxdp as rx

ROWS = 3_000


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    rx.Key.from_bytes(bytes(range(32))).save("key")
    table = {"id": range(ROWS), "ill": ["flu", "none"] * (ROWS // 2), "age": [float(n % 90) for n in range(ROWS)]}
    pa_parquet.write_table(pa.table(table), "in.parquet")
    return tmp_path


def talk(*words: str, typed: str) -> tuple[int, str]:
    """Run `relaxdp release` at a terminal at which somebody has typed some lines; return what was said there."""
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "relaxdp", "release", *words]
    environment = {**os.environ, "TERM": "dumb", "COLUMNS": "300"}
    os.write(ours, typed.encode())
    with subprocess.Popen(command, stdin=theirs, stdout=subprocess.PIPE, stderr=theirs, env=environment) as process:
        assert process.stdout is not None
        printed = process.stdout.read().decode()
        status = process.wait(PATIENCE)
    os.close(theirs)
    said = os.read(ours, 100_000).decode()
    os.close(ours)
    return status, said.replace("\r\n", "\n") + printed


def test_everything_is_asked_for_and_the_command_is_shown() -> None:
    answers = ["in.parquet", "out.parquet", "ill", "id", "1", "key", "v", "flu,none", "2", "y"]
    status, said = talk(typed="\n".join(answers) + "\n")
    assert status == 0, said
    assert "The table has: id, ill, age" in said
    command = "release in.parquet out.parquet --column ill --id id --epsilon 1 --key key --values flu,none --budget 2"
    assert f"This is the same as:\n  relaxdp {command}" in said
    assert "It costs 1; then 1 of the budget 2 are spent, for good." in said
    assert "released 'ill' of 3,000 rows at epsilon 1" in said
    status, said = talk(*command.replace("out", "again").split()[1:], typed="")
    assert (status, "cost 0;" in said, "This is the same as" in said) == (0, True, False)  # it is that command


def test_who_does_not_go_on_pays_nothing() -> None:
    common = ("in.parquet", "out.parquet", "--id", "id", "--epsilon", "1", "--key", "key", "--budget", "2")
    status, said = talk(*common, "--column", "age", typed="n\n0\n120\ny\nn\nn\n")
    assert status == 1, said
    assert "--range 0 120 --clip" in said
    assert not Path("out.parquet").exists()
    assert not Path("key.ledger").exists()


def test_columns_that_may_be_data_are_not_shown() -> None:
    Path("in.csv").write_text("4711,flu\n4712,none\n")
    status, said = talk("in.csv", "out.csv", "--epsilon", "1", "--key", "key", typed="ill\nid\nv\nflu,none\n")
    assert status == 2
    assert "4711" not in said
    assert "The table has" not in said


def test_a_pipe_is_never_asked() -> None:
    command = [sys.executable, "-m", "relaxdp", "release", "in.parquet", "out.parquet", "--column", "ill"]
    done = subprocess.run(command, input="id\n1\nkey\n", capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert "Missing option '--id'" in done.stderr
    whole = [*command, "--id", "id", "--epsilon", "1", "--key", "key"]
    done = subprocess.run(whole, input="v\nflu,none\n", capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "say what 'ill' can be" in done.stderr


def test_a_shell_that_completes_a_line_is_not_asked() -> None:
    """It runs the command with the person's terminal, and waits for it."""
    ours, theirs = pty.openpty()
    asked = {"_RELAXDP_COMPLETE": "complete_bash", "COMP_WORDS": "relaxdp release in.parquet --col", "COMP_CWORD": "3"}
    command = [str(Path(sys.executable).with_name("relaxdp"))]
    done = subprocess.run(
        command, stdin=theirs, stdout=subprocess.PIPE, stderr=theirs, env={**os.environ, **asked}, timeout=PATIENCE,
        check=False,
    )  # fmt: skip
    os.close(theirs)
    os.close(ours)
    assert b"--column" in done.stdout


def test_a_release_without_a_ledger_is_shown_and_asked_about_too() -> None:
    words = ("in.parquet", "out.parquet", "--id", "id", "--epsilon", "1", "--key", "key", "--column", "ill")
    status, said = talk(*words, "--no-ledger", typed="v\nflu,none\nn\n")
    assert (status, "relaxdp release in.parquet" in said, Path("out.parquet").exists()) == (1, True, False)
