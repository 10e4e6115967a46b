"""The command line: help texts are documented as they are, errors are one sentence with exit status 2."""

from __future__ import annotations

import re
from typing import Any

import pytest
import typer
from tests.docs.help_page import PAGE, commands, help_page
from typer.testing import CliRunner

from relaxdp.cli.main import app, main
from relaxdp.errors import EpsilonError

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


def test_version_and_demo() -> None:
    assert re.fullmatch(r"relaxdp \d\S*\n", RUNNER.invoke(app, ["--version"]).output)
    shown = RUNNER.invoke(app, ["demo", "--objects", "20000"])
    assert shown.exit_code == 0, shown.output
    assert "the same reports" in shown.output
    assert "Total privacy loss of everybody: 2 (the last level), not 3.6 (the sum)." in shown.output


def test_a_mistake_is_one_sentence(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def fail() -> None:
        raise EpsilonError("epsilon must be greater than 0, not -1.")

    monkeypatch.setattr("relaxdp.cli.main.app", fail)
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    assert capsys.readouterr().err == "epsilon must be greater than 0, not -1.\n"
