"""The part of the adapter that calls commands, in this process or in a separate one."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.golden.driver import KINDS, Mechanism, Released, read_table
from typer.testing import CliRunner

import relaxdp as rx
from relaxdp.cli.main import app
from relaxdp.errors import OldVaultError, RelaxdpError
from relaxdp.mechanisms.registry import parse_mechanism_name

MECHANISMS = {"k-ary": "k-ary", "OUE": "oue", "SUE": "sue", "OLH": "olh", "numeric": "numeric", "square wave": "wave"}


class CommandRejectedError(Exception):
    """A command in a separate process ended with status 2."""


def run(*words: str, state: Path, separate_process: bool = False, status: int = 0) -> str:
    """Return what a command prints to standard output; its rejection is raised. It may end with `status` as well."""
    environment = {"XDG_STATE_HOME": str(state), "NO_COLOR": "1", "COLUMNS": "200"}
    if separate_process:
        command = [sys.executable, "-m", "relaxdp", *words]
        done = subprocess.run(command, env=os.environ | environment, capture_output=True, text=True, check=False)
        if done.returncode == 2:
            raise CommandRejectedError(done.stderr)
        assert done.returncode in (0, status), done.stderr
        return done.stdout
    result = CliRunner(env=environment).invoke(app, list(words))
    if isinstance(result.exception, RelaxdpError):
        raise result.exception
    assert result.exit_code in (0, status), (result.output, result.exception)
    return result.stdout


def create_vault(path: Path, *, key: bytes, budget: str, state: Path) -> None:
    """Create a vault with a given key, which a command prints."""
    key_file = path.with_name("key")
    rx.Key.from_bytes(key).save(key_file)
    run("init", str(path), "--budget", budget, "--key-command", f"cat {shlex.quote(str(key_file))}", state=state)


class CommandHolder:
    """Releases columns of files under one key and one budget, by commands."""

    separate_process = False
    """Whether every command runs in a separate process."""

    def __init__(self, folder: Path, *, key: bytes, budget: str) -> None:
        folder.mkdir(parents=True)
        self._vault, self._state = folder / "study.vault", folder / "state"
        create_vault(self._vault, key=key, budget=budget, state=self._state)

    def release(
        self,
        data: Path,
        columns: Mapping[str, Mechanism | Sequence[str]],
        *,
        id: str,
        epsilon: str,
        output: Path,
        name: str | None = None,
        passthrough: Sequence[str] = (),
        planned_epsilon: str | None = None,
    ) -> Released:
        """Release columns of a file to another file; the name defaults to the stem of the file."""
        words = ["release", str(data), str(output), "--id", id, "--epsilon", epsilon, *_declare(columns)]
        words += [] if name is None else ["--name", name]
        words += [word for column in passthrough for word in ("--passthrough", column)]
        words += [] if planned_epsilon is None else ["--planned-epsilon", planned_epsilon]
        return self._released(*words, output=output, id=id, passthrough=passthrough)

    def quote(
        self, data: Path, columns: Mapping[str, Mechanism | Sequence[str]], *, id: str, epsilon: str, output: Path
    ) -> dict[str, str]:
        """Return what a release would cost; nothing is released."""
        words = ["release", str(data), str(output), "--id", id, "--epsilon", epsilon, *_declare(columns), "--dry-run"]
        return {column: each["cost"] for column, each in self._read_columns(*words).items()}

    def relax(self, name: str, epsilon: str, *, id: str, output: Path, columns: Sequence[str] = ()) -> Released:
        """Release at another level without the table."""
        words = ["relax", name, str(output), "--epsilon", epsilon]
        words += [word for column in columns for word in ("--column", column)]
        return self._released(*words, output=output, id=id)

    def back_up(self, folder: Path) -> None:
        """Copy the account and everything that the next level needs, without the key."""
        self._run("backup", str(folder))

    @classmethod
    def restore(cls, folder: Path, backup: Path, *, key: bytes, released: Sequence[Path] = ()) -> CommandHolder:
        """Return a data holder that goes on from a backup; the account must know all released files that are named.

        The settings in the backup name the command that prints the key.
        """
        holder = cls.__new__(cls)
        holder._vault, holder._state = folder / "study.vault", folder / "state"
        shutil.copytree(backup, holder._vault)
        holder.check(released, "--adopt", "restored from a backup")
        return holder

    def check(self, released: Sequence[Path], *options: str) -> None:
        """Compare the account with released files."""
        problems = json.loads(self._run("check", *map(str, released), "--json", *options, status=1))["problems"]
        behind = ("newer or another copy", "which this vault has never charged")
        assert all(any(words in problem for words in behind) for problem in problems)
        if problems:
            raise OldVaultError(problems[0])

    def raise_budget(self, budget: str, *, reason: str) -> None:
        """Raise the budget."""
        self._run("budget", "raise", budget, "--reason", reason)

    def account(self) -> dict[str, Any]:
        """Return the budget, the epsilon spent, the rest, and the level of each released column."""
        found = json.loads(self._run("budget", "--json"))
        levels = {f"{each['name']}: {each['column']}": each["epsilon"] for each in found["releases"]}
        return {**{name: found[name] for name in ("budget", "spent", "remaining")}, "levels": levels}

    def history(self) -> list[list[str]]:
        """Return every event that changed the account, oldest first."""
        lines: list[list[str]] = []
        for event in json.loads(self._run("budget", "history", "--json"))["events"]:
            lines += [["budget", event["budget"]]] if "budget" in event else []
            charged = (each for each in event.get("columns", ()) if each["cost"] != "0")
            lines += [["release", event["name"], each["column"], each["epsilon"], each["cost"]] for each in charged]
        return lines

    def _released(self, *words: str, output: Path, id: str, passthrough: Sequence[str] = ()) -> Released:
        columns = self._read_columns(*words)
        found = read_table(output)
        reports = {column: found[each["output"]] for column, each in columns.items()}
        costs = {column: each["cost"] for column, each in columns.items()}
        return Released(found[id], reports, costs, {each: found[each] for each in passthrough}, output)

    def _read_columns(self, *words: str) -> dict[str, Any]:
        columns: dict[str, Any] = json.loads(self._run(*words, "--json"))["columns"]
        return columns

    def _run(self, *words: str, status: int = 0) -> str:
        where: Any = {"state": self._state, "separate_process": self.separate_process, "status": status}
        return run(*words, "--vault", str(self._vault), **where)


def estimate(
    files: Sequence[Path],
    *options: str,
    column: str | None = None,
    by: str | None = None,
    crosstab: str | None = None,
    confidence: float = 0.95,
    about: str = "sample",
    state: Path,
    separate_process: bool = False,
) -> dict[str, dict[str, list[Any]]]:
    """Return the estimate of each group by the command; without groups the only one is called "all"."""
    words = [
        "estimate",
        *map(str, files),
        "--json",
        "--confidence-level",
        str(confidence),
        "--about",
        about,
        *options,
    ]
    for option, name in (("--column", column), ("--by", by), ("--crosstab", crosstab)):
        words += [] if name is None else [option, name]
    found = json.loads(run(*words, state=state, separate_process=separate_process))
    return {str(group["group"] or "all"): _table(group["estimates"]) for group in found["groups"]}


def plan(*options: str, state: Path) -> dict[str, Any]:
    """Return epsilon, number of individuals and margin of error, or the margin at each level of a schedule."""
    found = json.loads(run("plan", *options, "--json", state=state))
    if "steps" in found:
        return {"steps": [[step["epsilon"], step["margin"]] for step in found["steps"]], "stop": found["stop_at"]}
    kind = KINDS[parse_mechanism_name(found["mechanism"].partition(":")[0])]
    return {"epsilon": found["epsilon"], "n": found["n"], "margin": found["margin"], "mechanism": kind}


def _declare(columns: Mapping[str, Mechanism | Sequence[str]]) -> list[str]:
    """Return the options that declare columns."""
    words: list[str] = []
    for name, declared in columns.items():
        if not isinstance(declared, Mechanism):
            words += ["--column", f"{name}={','.join(declared)}"]
            continue
        options = ",".join(f"{option}={value}" for option, value in declared.options.items())
        kind = MECHANISMS[declared.kind]
        words += ["--mechanism", f"{name}={kind}:{options}" if options else f"{name}={kind}"]
        if declared.ends is None:
            words += ["--column", f"{name}={','.join(map(str, declared.values))}"]
        else:
            words += ["--column", f"{name}={declared.ends[0]}..{declared.ends[1]}"]
            words += ["--clip", name] if declared.clip else []
            words += ["--missing", name] if declared.missing else []
    return words


def _table(rows: list[dict[str, Any]]) -> dict[str, list[Any]]:
    labels = [row["value"] if row["crosstab_value"] is None else [row["value"], row["crosstab_value"]] for row in rows]
    numbers = {name: [row[name] for row in rows] for name in ("estimate", "std_error", "low", "high")}
    return {"labels": labels, **numbers} if len(rows) > 1 else numbers
