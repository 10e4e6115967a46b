"""What a command says arrives whole, or it is said in one sentence that it did not: encodings, full disks, pipes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from tests.conftest import missing

import relaxdp as rx

VALUES = ["café", "naïve \u20ac", "\U0001f600"]
LOST = "Error: The output cannot be written: No space left on device.\nThe command itself was completed.\n"


ENCODINGS = ["ascii", *(pytest.param(each, marks=pytest.mark.long) for each in ("latin-1", "utf-8"))]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("streams")
    many = [f"value {number}" for number in range(500)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(folder / "state"))
        vault = rx.Vault.create(folder / "study.vault", budget=6)
        for name, values in {"out": VALUES, "many": many}.items():
            table = pa.table({"id": range(1500), "x": values * (1500 // len(values))})
            vault.release(table, {"x": values}, id="id", epsilon=3, name=name, output=folder / f"{name}.parquet")
    return folder


def run(place: Path, *words: str | bytes, encoding: str = "utf-8", **more: Any) -> subprocess.CompletedProcess[bytes]:
    environment = {**os.environ, "PYTHONIOENCODING": encoding, "COLUMNS": "100", "XDG_STATE_HOME": str(place / "state")}
    options: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **more}
    return subprocess.run([sys.executable, "-m", "relaxdp", *words], cwd=place, env=environment, check=False, **options)


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_every_encoding_takes_every_value(place: Path, encoding: str) -> None:
    told = run(place, "estimate", "out.parquet", encoding=encoding)
    assert (told.returncode, told.stderr) == (0, b"")
    text = told.stdout.decode(encoding)
    for value in VALUES:
        assert value.encode(encoding, "backslashreplace").decode(encoding) in text
    if encoding != "utf-8":
        assert "+---" in text  # a box of plain letters
        assert "\\u25" not in text  # and no bars


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_json_is_the_same_in_every_encoding(place: Path, encoding: str) -> None:
    told = run(place, "estimate", "out.parquet", "--json", encoding=encoding)
    assert (told.returncode, told.stderr) == (0, b"")
    assert _strings(json.loads(told.stdout.decode(encoding))) >= set(VALUES)


def _strings(found: Any) -> set[str]:
    if isinstance(found, dict):
        return set().union({*found}, *(_strings(each) for each in found.values()))
    if isinstance(found, list):
        return set().union(*(_strings(each) for each in found))
    return {found} if isinstance(found, str) else set()


def test_a_sentence_with_a_name_that_no_encoding_has(place: Path) -> None:
    """A file's name is bytes: what is no text in it is shown as an escape, on either stream."""
    told = run(place, "backup", b"\xff\xe9-copy", encoding="ascii")
    assert (told.returncode, told.stderr) == (0, b"")
    assert b"\\udcff\\udce9-copy" in told.stdout
    again = run(place, "backup", b"\xff\xe9-copy")
    assert again.returncode == 2
    assert b"\\udcff\\udce9-copy' already exists" in again.stderr


def test_who_chose_another_way_keeps_it(place: Path) -> None:
    told = run(place, "estimate", "out.parquet", encoding="ascii:replace")
    assert told.returncode == 0
    assert b"caf?" in told.stdout


FULL = Path("/dev/full")


@pytest.mark.parametrize(
    "words",
    [
        ("--version",),
        pytest.param(("--help",), marks=pytest.mark.long),
        pytest.param(("budget",), marks=pytest.mark.long),
        pytest.param(("estimate", "out.parquet", "--json"), marks=pytest.mark.long),
        ("estimate", "many.parquet", "--json"),  # more than a buffer holds
        pytest.param(("estimate", "many.parquet"), marks=pytest.mark.long),
    ],
)
def test_an_output_that_cannot_be_written(place: Path, words: tuple[str, ...]) -> None:
    if not FULL.exists():
        missing("/dev/full is not there")
    with FULL.open("wb") as full:
        told = run(place, *words, stdout=full)
    assert (told.returncode, told.stderr.decode()) == (1, LOST)


def test_a_mistake_is_a_mistake_where_nobody_can_be_told(place: Path) -> None:
    if not FULL.exists():
        missing("/dev/full is not there")
    with FULL.open("wb") as full:
        assert run(place, "budget", "--vault", "absent", stderr=full).returncode == 2
        assert run(place, "budget", "--vault", "absent", stderr=full, stdout=full).returncode == 2
        assert run(place, "estimate", "--nonsense", stderr=full).returncode == 2


@pytest.mark.long
def test_a_closed_pipe_is_silent(place: Path) -> None:
    for words in (("estimate", "many.parquet", "--json"), ("--version",), ("budget",)):
        reading, writing = os.pipe()
        os.close(reading)
        try:
            told = run(place, *words, stdout=writing)
        finally:
            os.close(writing)
        assert (told.returncode, told.stderr) == (1, b""), words


def test_no_output_at_all(place: Path) -> None:
    words = [sys.executable, "-m", "relaxdp", "--version"]
    told = subprocess.run(["/bin/sh", "-c", '"$@" >&-', "sh", *words], cwd=place, check=False, capture_output=True)
    assert b"Traceback" not in told.stderr


def test_another_problem_of_the_system_is_shown_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the output is fine, an error is not taken for one of the output."""
    from relaxdp.cli.main import main  # noqa: PLC0415

    def fail() -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("relaxdp.cli.main.app", fail)
    with pytest.raises(OSError, match="No space left"):
        main()
