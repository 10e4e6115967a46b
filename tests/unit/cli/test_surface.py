"""What every command has in common: completion in a real shell, whole help, hints, --quiet, --verbose, variables."""

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

import relaxdp as rx
from relaxdp.cli.main import app
from relaxdp.errors import KeyFileError, LedgerAccessError, OptionError, RelaxdpError, SecondLedgerError

SCRIPTS = Path(sys.executable).parent


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    rx.Key.from_bytes(bytes(range(32))).save(tmp_path / "key")
    pa_parquet.write_table(pa.table({"person": [1, 2, 3], "city": ["a", "b", "a"]}), tmp_path / "in.parquet")
    return tmp_path


def run(*words: str, **options: Any) -> Any:
    return CliRunner().invoke(app, words, **options)


RELEASE = ("release", "in.parquet", "out.parquet", "--id", "person", "--column", "city", "--values", "a,b",
           "--epsilon", "1", "--yes", "--budget", "2")  # fmt: skip


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
    lines = ("relaxdp rel", "relaxdp budget ra", "relaxdp release --plan", "relaxdp release --engine sp")
    shown = subprocess.run(
        ["bash", "--norc", "-c", ASK], input="\n".join(lines) + "\n", capture_output=True, text=True, check=True,
        env={**os.environ, "PATH": f"{SCRIPTS}:{os.environ['PATH']}"}, timeout=PATIENCE,
    )  # fmt: skip
    assert shown.stderr == ""
    assert shown.stdout.splitlines() == ["release relax", "raise", "--planned-epsilon", "spark"]


# Help.


def every_command() -> Iterator[tuple[str, ...]]:
    yield from commands(typer.main.get_command(app))


def test_help_fits_and_is_whole_at_80_columns() -> None:
    for words in every_command():
        shown = run(*words, "--help", env={"COLUMNS": "80"}, terminal_width=80).output
        assert max(map(len, shown.splitlines())) <= 80, words
        assert "..." not in shown.partition("\n")[2], words
        assert not re.search(r"<(int|str|float|path|file|list|tuple)", shown), f"{words} shows a type of Python"


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        (["relase"], "'release'"), (["budget", "rise"], "'raise'"), (["--verison"], "'--version'"),
        (["release", "--eplison", "1"], "'--epsilon'"), (["budget", "show", "--jsn"], "'--json'"),
    ],
)  # fmt: skip
def test_a_typing_mistake_is_answered_with_what_was_meant(words: list[str], meant: str) -> None:
    shown = run(*words)
    assert shown.exit_code == 2
    assert f"Did you mean {meant}" in shown.output


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


def test_no_color_is_heeded() -> None:
    words = ("plan", "--half-width", "0.05", "--objects", "100000", "--values", "3")
    assert COLOUR.search(terminal(*words))
    assert not COLOUR.search(terminal(*words, NO_COLOR="1"))


def test_quiet_leaves_results_and_refusals(place: Path) -> None:
    first = run(*RELEASE, "--key", "key", "--quiet")
    assert (first.exit_code, first.output) == (0, "")
    assert run("keygen", "other", "-q").output == ""
    assert "spent" in run("budget", "show", "--key", "key", "--quiet").output
    refused = run(*RELEASE, "--key", "key", "--quiet")
    assert "exists already" in str(refused.exception)
    assert json.loads(run("budget", "show", "--key", "key", "--json", "-q").stdout)["spent"] == "1"


def test_quiet_shows_no_progress(place: Path) -> None:
    assert run(*RELEASE, "--key", "key").exit_code == 0
    assert "Counting" in terminal("estimate", "out.parquet")
    assert "Counting" not in terminal("estimate", "out.parquet", "--quiet")


def test_verbose_says_more_and_beside_the_results(place: Path) -> None:
    shown = run(*RELEASE, "--key", "key", "--json", "--verbose")
    json.loads(shown.stdout)
    assert re.fullmatch(r"relaxdp \S+, drawn by \w+\ntook [\d.]+ s\n", shown.stderr)
    again = run(*RELEASE, "--key", "none", "-v")
    assert "refused: key_file_error, path='none'" in again.stderr
    both = run(*RELEASE, "--key", "key", "-q", "-v")
    assert both.exception is not None
    assert "exclude each other" in str(both.exception)


# Variables, and what to do next.


def test_variables_name_the_key_file_and_the_ledger(place: Path) -> None:
    named = {"RELAXDP_KEY": "key", "RELAXDP_LEDGER": "ledger.db"}
    assert run(*RELEASE, env=named).exit_code == 0
    assert (place / "ledger.db").exists()
    assert not (place / "key.ledger").exists()
    assert json.loads(run("budget", "show", "--json", env=named).stdout)["spent"] == "1"


@pytest.mark.parametrize("words", [RELEASE, ("budget", "show"), ("budget", "raise", "3", "--reason", "more")])
def test_a_key_in_the_variable_of_its_file_is_refused_and_not_shown(place: Path, words: tuple[str, ...]) -> None:
    for content in ((place / "key").read_text(), (place / "key").read_text().splitlines()[1]):
        shown = run(*words, "-v", env={"RELAXDP_KEY": content})
        assert isinstance(shown.exception, KeyFileError)
        assert "looks like the key itself" in str(shown.exception)
        assert bytes(range(8)).hex() not in f"{shown.output}{shown.exception}{shown.exception.fields}"


def test_every_command_that_takes_a_key_takes_it_from_all_sources() -> None:
    keyed = {" ".join(words): run(*words, "--help").output for words in every_command()}
    keyed = {words: shown for words, shown in keyed.items() if re.search(r"--key\b(?!-)", shown)}
    assert set(keyed) >= {"release", "relax", "budget show", "rappor encode", "rappor relax", "market join"}
    assert all("--key-command COMMAND" in shown for shown in keyed.values())


def test_a_key_from_a_command_releases_and_names_its_ledger(place: Path) -> None:
    """A key in no file has no ledger beside it; that it has spent is noticed by its mark all the same."""
    problem = run(*RELEASE, "--key-command", "cat key").exception
    assert isinstance(problem, LedgerAccessError)
    assert problem.message == (
        "this key comes from no file beside which a ledger could lie. --ledger names one. Nothing was released."
    )
    assert run(*RELEASE, "--key-command", "cat key", "--ledger", "ledger.db").exit_code == 0
    (place / "out.parquet").rename(place / "first.parquet")
    assert run(*RELEASE, env={"RELAXDP_KEY_COMMAND": "cat key", "RELAXDP_LEDGER": "ledger.db"}).exit_code == 0
    assert (place / "out.parquet").read_bytes() == (place / "first.parquet").read_bytes()
    (place / "out.parquet").unlink()
    for key in (("--key", "key"), ("--key-command", "cat key")):
        assert isinstance(run(*RELEASE, *key, "--ledger", "second.db").exception, SecondLedgerError)
    problem = run("budget", "show", "--key-command", "cat key").exception
    assert isinstance(problem, LedgerAccessError)
    assert problem.fields["ledgers"] == [str(place / "ledger.db")]


def test_what_stands_in_the_command_counts_more_than_a_variable(place: Path) -> None:
    command, file = ("--key-command", "cat key"), ("--key", "key")
    ledger = {"RELAXDP_LEDGER": "ledger.db"}
    dry = (*RELEASE, "--dry-run")
    assert run(*dry, *command, env={"RELAXDP_KEY": "none", **ledger}).exit_code == 0
    assert run(*dry, *file, env={"RELAXDP_KEY_COMMAND": "false", **ledger}).exit_code == 0
    assert run(*dry, env={"RELAXDP_KEY_COMMAND": "cat key", **ledger}).exit_code == 0
    both = {"RELAXDP_KEY_COMMAND": "cat key", "RELAXDP_KEY": "key", **ledger}
    for words, variables in (((*command, *file), ledger), ((), both)):
        assert "exclude each other" in str(run(*dry, *words, env=variables).exception)
    none = run(*dry).exception
    assert isinstance(none, OptionError)
    assert "say which key: --key names its file" in none.message


def test_a_budget_that_is_exceeded_names_the_command_that_raises_it(place: Path) -> None:
    assert run(*RELEASE, "--key", "key").exit_code == 0
    words = [{"1": "2.5", "out.parquet": "more.parquet"}.get(word, word) for word in RELEASE[:-2]]
    refused = run(*words, "--key", "key").exception
    assert isinstance(refused, RelaxdpError)
    larger = run(*words, "--key", "key", "--budget", "4").exception
    assert "`relaxdp budget raise 4 --reason WHY`" in str(larger)
    command = re.search(r"`relaxdp (budget raise .*) WHY`", refused.message)
    assert command is not None
    assert run(*command[1].split(), "they agreed", "--key", "key").exit_code == 0
    assert run(*words, "--key", "key").exit_code == 0
