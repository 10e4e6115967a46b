"""The command line: help texts are documented as they are, errors are one sentence with exit status 2."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import typer
from tests.docs.help_page import PAGE, commands, help_page
from tests.patience import PATIENCE
from typer.testing import CliRunner

from relaxdp.cli.main import app, main
from relaxdp.errors import EpsilonError, TableFileError

RUNNER = CliRunner()


def test_help_page_is_fresh() -> None:
    assert PAGE.read_text("utf-8") == help_page(), "run: python -m tests.docs.help_page"


def test_every_command_has_help() -> None:
    group: Any = typer.main.get_command(app)
    for words in commands(group):
        each = group
        for word in words:
            each = each.commands[word]
        assert each.help, words
        for option in each.params:
            assert getattr(option, "help", "x"), f"{words} {option.name}"


def test_version() -> None:
    assert re.fullmatch(
        r"relaxdp \d\S* \(drawn by (numpy|aesni|vaes|avx512|neon)\)\n", RUNNER.invoke(app, ["--version"]).output
    )


def test_demo(tmp_path: Path) -> None:
    shown = subprocess.run(
        [sys.executable, "-m", "relaxdp", "demo", "--out", str(tmp_path / "demo")],
        capture_output=True, text=True, timeout=PATIENCE, check=False,
    )  # fmt: skip
    assert shown.returncode == 0, shown.stderr
    for line in ("214,144 American men", "identical reports, and it cost nothing", "and 0 of 2 is left"):
        assert line in shown.stdout
    assert re.search(r"variance is 3\.[67] times larger", shown.stdout)
    assert (tmp_path / "demo" / "demo.png").stat().st_size > 10_000
    again = RUNNER.invoke(app, ["demo", "--out", str(tmp_path)])
    assert isinstance(again.exception, TableFileError)


def test_a_mistake_is_an_error_and_a_hint(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def fail() -> None:
        raise EpsilonError("epsilon must be greater than 0, not -1.", hint="Write 1.")

    monkeypatch.setattr("relaxdp.cli.main.app", fail)
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    assert capsys.readouterr().err == "Error: epsilon must be greater than 0, not -1.\nHint: Write 1.\n"
