"""The part of the adapter for the reproduction of the paper, the auditor and the proofs."""

from __future__ import annotations

import csv
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.golden.driver import KINDS

ROOT = Path(__file__).parents[2]
VERDICTS = {"not refuted": "within the claim", "flagged, as it must be": "flagged"}
# Cases about things that have no lasting name: they must be as expected, but are not recorded.
PASSING = ("peer", "market", "a new name", "bridge", "stream without the truth")


def reproduce(folder: Path, seed: int) -> tuple[dict[str, str], dict[str, list[list[Any]]]]:
    """Return the verdict of every claim of the paper, and the tables of data."""
    answer = json.loads(_run("reproduce", "--out", str(folder), "--seed", str(seed), "--json"))
    verdicts = {claim["name"]: claim["verdict"] for claim in answer["claims"]}
    tables = {file.stem: _read_csv(file) for file in sorted((folder / "data").glob("*.csv"))}
    return verdicts, tables


def audit(trials: int, seed: int) -> tuple[dict[str, str], int]:
    """Return the verdict of every case with a lasting name, and how many other cases were as expected.

    The command fails where any case is not as expected.
    """
    findings = json.loads(_run("audit", "--trials", str(trials), "--seed", str(seed), "--json"))["findings"]
    assert all(finding["as_expected"] for finding in findings)
    named = [each for each in findings if not any(word in f"{each['group']} {each['mechanism']}" for word in PASSING)]
    others = [each for each in findings if each not in named]
    return {_name_of(each["mechanism"]): VERDICTS[each["verdict"]] for each in named}, len(others)


def check_proofs() -> None:
    """Check the proofs, and that they assume nothing."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.docs.machine_proofs"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def _run(*words: str) -> str:
    command = [sys.executable, "-m", "relaxdp", *words]
    done = subprocess.run(command, env=os.environ | {"NO_COLOR": "1"}, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def _name_of(case: str) -> str:
    """Return the name of a case with the field's names of mechanisms."""
    first, comma, rest = case.partition(",")
    kinds = {**KINDS, "numeric-missing": "numeric with missing numbers", "bloom": "RAPPOR"}
    return f"{kinds.get(first, first)}{comma}{rest}"


def _read_csv(file: Path) -> list[list[Any]]:
    with file.open(newline="", encoding="utf-8") as lines:
        _, *rows = csv.reader(lines)
    return [[_number(cell) for cell in row] for row in rows]


def _number(cell: str) -> Any:
    try:
        return float(cell)
    except ValueError:
        return cell
