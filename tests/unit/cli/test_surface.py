"""What every command has in common: completion in a real shell, whole help, hints, --quiet and --verbose."""

from __future__ import annotations

import json
import os
import pty
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pa_parquet
import pytest
import typer
from tests.docs.help_page import commands
from tests.patience import PATIENCE
from typer.testing import CliRunner

from relaxdp.cli.main import app, format_error
from relaxdp.errors import ArgumentError

SCRIPTS = Path(sys.executable).parent


RELEASE = ("release", "in.parquet", "out.parquet", "--id", "person", "--column", "city=a,b", "--epsilon", "1")


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    pa_parquet.write_table(pa.table({"person": range(1000), "city": ["a", "b"] * 500}), tmp_path / "in.parquet")
    assert run("init", "study.vault", "--budget", "2").exit_code == 0
    return tmp_path


def run(*words: str, **options: Any) -> Any:
    return CliRunner().invoke(app, words, **options)


# Completion.

ASK = r"""
eval "$(relaxdp --show-completion)"
while read -r -a COMP_WORDS; do
    COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
    $(complete -p relaxdp | sed 's/.*-F \([^ ]*\) .*/\1/') relaxdp
    echo "${COMPREPLY[@]}"
done
"""


def test_bash_completes_commands_options_and_choices() -> None:
    """Call the function of the completion script with the words and numbers that bash gives it."""
    lines = ("relaxdp rel", "relaxdp budget ra", "relaxdp release --plan", "relaxdp estimate --method pre")
    shown = subprocess.run(
        ["bash", "--norc", "-c", ASK], input="\n".join(lines) + "\n", capture_output=True, text=True, check=True,
        env={**os.environ, "PATH": f"{SCRIPTS}:{os.environ['PATH']}"}, timeout=PATIENCE,
    )  # fmt: skip
    assert shown.stderr == ""
    assert shown.stdout.splitlines() == ["release relax", "raise", "--planned-epsilon", "precision"]


# Help.


def every_command() -> Iterator[tuple[str, ...]]:
    yield from commands(typer.main.get_command(app))


def test_help_fits_and_is_whole_at_80_columns() -> None:
    for words in every_command():
        shown = run(*words, "--help", env={"COLUMNS": "80"}, terminal_width=80).output
        assert max(map(len, shown.splitlines())) <= 80, words
        assert "..." not in shown.partition("\n")[2], words
        assert not re.search(r"<(int|str|float|path|file|list|tuple)", shown), f"{words} shows a type of Python"


def test_commands_of_the_data_holder_come_first_and_have_an_example() -> None:
    shown = run("--help").output
    holder = [
        "init",
        "release",
        "relax",
        "estimate",
        "compare",
        "plan",
        "budget",
        "retire",
        "check",
        "backup",
        "rappor",
        "audit",
        "demo",
    ]
    listed = re.findall(r"^  ([a-z]+)  ", shown.partition("Commands:")[2], flags=re.MULTILINE)
    assert listed[: len(holder)] == holder
    assert shown.index("  demo ") < shown.index("Server:") < shown.index("  serve ")
    for words in every_command():
        if words and words[0] in holder and words not in (("rappor",), ("budget", "raise"), ("budget", "history")):
            assert f"Example:\n  relaxdp {' '.join(words)}" in run(*words, "--help").output


def test_the_release_command_has_at_most_20_options() -> None:
    command = typer.main.get_group(app).commands["release"]
    assert len([each for each in command.params if each.param_type_name == "option"]) <= 20


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        (["relase"], "'release'"), (["budget", "rise"], "'raise'"), (["--verison"], "'--version'"),
        (["release", "--eplison", "1"], "'--epsilon'"), (["budget", "history", "--jsn"], "'--json'"),
    ],
)  # fmt: skip
def test_a_typing_mistake_is_answered_with_what_was_meant(words: list[str], meant: str) -> None:
    problem = run(*words).exception
    assert isinstance(problem, ArgumentError)
    error, hint, *_ = format_error(problem).splitlines()
    assert error.startswith("Error: No such")
    assert hint.startswith(f"Hint: Did you mean {meant}")


# How much is said.


def terminal(*words: str, **variables: str) -> str:
    """Run a command in a terminal, and return what it shows there."""
    ours, theirs = pty.openpty()
    started = subprocess.Popen(
        [SCRIPTS / "relaxdp", *words], stdout=theirs, stderr=theirs, stdin=subprocess.DEVNULL,
        env={**os.environ, "TERM": "xterm-256color", **variables},
    )  # fmt: skip
    os.close(theirs)
    shown = b""
    while True:
        try:
            part = os.read(ours, 65536)
        except OSError:  # how Linux says that the other end is closed
            part = b""
        if not part:
            break
        shown += part
    os.close(ours)
    assert started.wait(PATIENCE) == 0
    return shown.decode()


COLOUR = re.compile(r"\x1b\[(?:[\d;]*;)?(?:3[0-7]|38|9[0-7])[\d;]*m")


def test_no_color_is_heeded(place: Path) -> None:
    assert run(*RELEASE).exit_code == 0
    assert COLOUR.search(terminal("estimate", "out.parquet"))
    assert not COLOUR.search(terminal("estimate", "out.parquet", NO_COLOR="1"))


def test_quiet_leaves_results_and_errors(place: Path) -> None:
    first = run(*RELEASE, "--quiet")
    assert (first.exit_code, first.output) == (0, "")
    assert run("init", "other.vault", "--budget", "1", "-q").output == ""
    assert "spent" in run("budget", "--vault", "study.vault", "--quiet").output
    assert "exists" in str(run(*RELEASE, "--vault", "study.vault", "--quiet").exception)


def test_quiet_shows_no_progress(place: Path) -> None:
    assert run(*RELEASE).exit_code == 0
    assert "Counting" in terminal("estimate", "out.parquet")
    assert "Counting" not in terminal("estimate", "out.parquet", "--quiet")


def test_verbose_says_more_and_beside_the_results(place: Path) -> None:
    shown = run(*RELEASE, "--json", "--verbose")
    json.loads(shown.stdout)
    assert re.fullmatch(r"relaxdp \S+, drawn by \w+\ntook [\d.]+ s\n", shown.stderr)
    again = run(*RELEASE, "--vault", "none", "-v")
    assert "rejected: vault_error, path='none'" in again.stderr
