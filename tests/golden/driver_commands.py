"""The part of the adapter that calls commands, in this process or in a separate one."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.golden.driver import ABOUT, ENCODINGS, KINDS, Mechanism, Released, read_table
from typer.testing import CliRunner

import relaxdp as rx
from relaxdp.cli.main import app
from relaxdp.errors import RelaxdpError

BUDGET = re.compile(r"budget (?:set to|raised from \S+ to) (\S+)")
RELEASED = re.compile(r": released '(.+)' of release '(.+)' at (\S+) for (\S+)")


class CommandRejectedError(Exception):
    """A command in a separate process ended with status 2."""


def run(*words: str, state: Path, separate_process: bool = False) -> str:
    """Return what a command prints to standard output; its rejection is raised."""
    environment = {"XDG_STATE_HOME": str(state), "NO_COLOR": "1", "COLUMNS": "200"}
    if separate_process:
        command = [sys.executable, "-m", "relaxdp", *words]
        done = subprocess.run(command, env=os.environ | environment, capture_output=True, text=True, check=False)
        if done.returncode == 2:
            raise CommandRejectedError(done.stderr)
        assert done.returncode == 0, done.stderr
        return done.stdout
    result = CliRunner(env=environment).invoke(app, list(words))
    if isinstance(result.exception, RelaxdpError):
        raise result.exception
    assert result.exit_code == 0, (result.output, result.exception)
    return result.stdout


class CommandHolder:
    """Releases columns of files under one key and one budget, by commands."""

    separate_process = False
    """Whether every command runs in a separate process."""

    def __init__(self, folder: Path, *, key: bytes, budget: str) -> None:
        folder.mkdir(parents=True)
        self._key, self._state = folder / "key", folder / "state"
        rx.Key.from_bytes(key).save(self._key)
        self._first_budget: list[str] = ["--budget", budget]

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
        words = ["release", str(data), str(output), "--id", id, "--epsilon", epsilon, "--again", *self._first_budget]
        words += _declare(columns)
        words += [] if name is None else ["--release", name]
        words += [word for column in passthrough for word in ("--keep", column)]
        words += [] if planned_epsilon is None else ["--planned-epsilon", planned_epsilon]
        costs = self._costs(*words)
        self._first_budget = []
        return _read(output, costs, id, passthrough)

    def quote(
        self, data: Path, columns: Mapping[str, Mechanism | Sequence[str]], *, id: str, epsilon: str, output: Path
    ) -> dict[str, str]:
        """Return what a release would cost; nothing is released."""
        words = ["release", str(data), str(output), "--id", id, "--epsilon", epsilon, *_declare(columns)]
        return self._costs(*words, "--dry-run", *self._first_budget)

    def relax(self, name: str, epsilon: str, *, id: str, output: Path, columns: Sequence[str] = ()) -> Released:
        """Release at another level without the table."""
        words = ["relax", name, str(output), "--epsilon", epsilon, "--again"]
        costs = self._costs(*words, *(word for column in columns for word in ("--column", column)))
        return _read(output, costs, id)

    def back_up(self, file: Path) -> None:
        """Copy the account and everything that the next level needs, without the key."""
        self._run("backup", str(file))

    @classmethod
    def restore(cls, folder: Path, backup: Path, *, key: bytes, released: Sequence[Path] = ()) -> CommandHolder:
        """Return a data holder that goes on from a backup; the account must know all released files that are named."""
        holder = cls(folder, key=key, budget="")
        holder._first_budget = []
        shutil.copytree(backup, folder, dirs_exist_ok=True)
        holder.check(released)
        return holder

    def check(self, released: Sequence[Path]) -> None:
        """Compare the account with released files."""
        self._run("budget", "check", *map(str, released))

    def raise_budget(self, budget: str, *, reason: str) -> None:
        """Raise the budget."""
        self._run("budget", "raise", budget, "--reason", reason)

    def account(self) -> dict[str, Any]:
        """Return the budget, the epsilon spent, the rest, and the level of each released column."""
        found = json.loads(self._run("budget", "show", "--json"))
        levels = {f"{path['release']}: {path['attribute']}": path["epsilon"] for path in found["paths"]}
        return {"budget": found["budget"], "spent": found["spent"], "remaining": found["left"], "levels": levels}

    def history(self) -> list[list[str]]:
        """Return every event that changed the account, oldest first."""
        lines: list[list[str]] = []
        for line in self._run("budget", "history").splitlines():
            if budget := BUDGET.search(line):
                lines.append(["budget", budget[1]])
            elif event := RELEASED.search(line):
                lines.append(["release", event[2], event[1], event[3], event[4]])
        return lines

    def _costs(self, *words: str) -> dict[str, str]:
        answer = json.loads(self._run(*words, "--json"))
        return {column: each["cost"] for column, each in answer["columns"].items()}

    def _run(self, *words: str) -> str:
        return run(*words, "--key", str(self._key), state=self._state, separate_process=self.separate_process)


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
    words = ["estimate", *map(str, files), "--json", "--confidence", str(confidence), "--about", ABOUT[about], *options]
    for option, name in (("--column", column), ("--by", by), ("--cross", crosstab)):
        words += [] if name is None else [option, name]
    found = json.loads(run(*words, state=state, separate_process=separate_process))
    return {str(group["group"] or "all"): _table(group["estimates"]) for group in found["groups"]}


def plan(*options: str, state: Path) -> dict[str, Any]:
    """Return epsilon, number of individuals and margin of error, or the margin at each level of a schedule."""
    found = json.loads(run("plan", *options, "--json", state=state))
    if "steps" in found:
        return {"steps": [[step["epsilon"], step["half_width"]] for step in found["steps"]], "stop": found["stop_at"]}
    kind = KINDS[found["encoding"].partition(":")[0]]
    return {"epsilon": found["epsilon"], "n": found["objects"], "margin": found["half_width"], "mechanism": kind}


def _declare(columns: Mapping[str, Mechanism | Sequence[str]]) -> list[str]:
    """Return the options that declare columns, all of which have one mechanism."""
    words: list[str] = []
    for name, declared in columns.items():
        words += ["--column", name]
        if not isinstance(declared, Mechanism):
            words += ["--values", f"{name}={','.join(declared)}"]
            continue
        options = ",".join(f"{option}={value}" for option, value in declared.options.items())
        kind = "numeric-missing" if declared.missing else ENCODINGS[declared.kind]
        if "--encoding" not in words:
            words += ["--encoding", f"{kind}:{options}" if options else kind]
        if declared.ends is None:
            words += ["--values", f"{name}={','.join(map(str, declared.values))}"]
        else:
            words += ["--range", *map(str, declared.ends)]
            words += ["--clip"] if declared.clip else []
            words += ["--missing"] if declared.missing else []
    return words


def _read(file: Path, costs: dict[str, str], id: str, passthrough: Sequence[str] = ()) -> Released:
    found = read_table(file)
    kept = {each: found[each] for each in passthrough}
    return Released(found[id], {column: found[column] for column in costs}, costs, kept, file)


def _table(rows: list[dict[str, Any]]) -> dict[str, list[Any]]:
    labels = [row["value"] if row["cross_value"] is None else [row["value"], row["cross_value"]] for row in rows]
    numbers = {name: [row[name] for row in rows] for name in ("estimate", "std_error", "low", "high")}
    return {"labels": labels, **numbers} if len(rows) > 1 else numbers
