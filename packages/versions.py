"""Run the core of the tests with other versions of Python and of what relaxdp stands on; write docs/versions.md.

Everything is the newest that pip finds and that a case allows, in an environment of its own in build/versions. PYTHONS
names the interpreters (else python3.11 and newer are looked for on the PATH); a server of PostgreSQL meets the last of
them. What is not to be had is left out, and the page keeps what it said of it before.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from packages import postgres

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "versions.md"
FRAMES = (
    "tests/unit/tables/test_frames.py",
    "tests/unit/tables/test_table_source.py",
    "tests/unit/tables/test_wrong_calls.py",
)
SPARK = ("tests/spark/test_spark.py",)
SERVER = ("tests/contract", *(f"tests/unit/{package}" for package in ("market", "service")))
# It asks distutils which pandas is there, and leaves it to Python to close its sockets.
OLD_SPARK = ("ignore:distutils Version classes:DeprecationWarning", "ignore::pytest.PytestUnraisableExceptionWarning")
TOOLS = (
    "pytest>=8.2",
    "pytest-xdist>=3.6",
    "hypothesis>=6.100",
    "mpmath>=1.3",
    "sympy>=1.12",
    "polars>=1.0",
    "httptools",
    "jsonschema-rs",
)
EXTRAS = "decode,plot,postgres,server"


@dataclass(frozen=True)
class Case:
    """What is tested, with which packages beside the newest ones, and what of it a page shows.

    `server` is the PostgreSQL that the tests meet, if that is the question; `allows` are warnings that are no failure.
    """

    tests: Sequence[str]
    needs: Sequence[str]
    shows: Sequence[str]
    chosen: str = "not long"
    server: str = ""
    allows: Sequence[str] = ()


NEWEST = ("numpy", "pyarrow", "duckdb", "pandas")
CASES = {
    "drawing": Case(
        ["tests/exact/theory", "tests/exact/sampling", "tests/unit/theory", "tests/unit/sampling"],
        ["pandas>=3"],
        NEWEST,
    ),
    "mechanisms": Case(["tests/exact/mechanisms", "tests/unit/mechanisms"], ["pandas>=3"], NEWEST),
    "tables": Case(["tests/unit/tables"], ["pandas>=3"], NEWEST),
    "estimation": Case(["tests/exact/estimation", "tests/unit/estimation"], ["pandas>=3"], NEWEST),
    "accounts": Case(["tests/unit/ledger"], ["pandas>=3"], NEWEST),
    "the rest of what is exact": Case(
        [f"tests/exact/{package}" for package in ("audit", "collector", "market", "paper", "rappor")],
        ["pandas>=3"],
        NEWEST,
    ),
    "pandas 2": Case(FRAMES, ["pandas<3"], ("pandas", "numpy")),
    "Spark 4": Case(SPARK, ["pandas>=3", "pyspark>=4"], ("pyspark", "pandas")),
    "Spark 3.5": Case(SPARK, ["pandas<3", "pyspark==3.5.*", "setuptools"], ("pyspark", "pandas"), allows=OLD_SPARK),
}
for _major in ("15", "16", "17", "18"):
    _met: Any = {"needs": ["pandas>=3"], "shows": ("psycopg", "sqlalchemy"), "server": _major}
    CASES[f"PostgreSQL {_major}"] = Case(SERVER, **_met, chosen="postgres")
    CASES[f"PostgreSQL {_major}, faults"] = Case(["tests/faults"], **_met, chosen="postgres and not long")


def pythons() -> list[str]:
    """Return the interpreters that are there."""
    named = os.environ.get("PYTHONS", "").split()
    return named or [found for minor in range(11, 20) if (found := shutil.which(f"python3.{minor}"))]


def ask(python: Path | str, program: str) -> str:
    """Return what a program prints."""
    done = subprocess.run([python, "-c", program], capture_output=True, text=True, check=True)
    return done.stdout.strip()


def environment(python: str, case: Case) -> Path:
    """Make an environment for what a case needs, and return its interpreter."""
    version = ask(python, "import sys; print('%d.%d' % sys.version_info[:2])")
    folder = (
        ROOT
        / "build"
        / "versions"
        / "-".join([version, *(re.sub("[>=*]", "", need).replace("<", "-before-") for need in case.needs)])
    )
    inside = folder / "bin" / "python"
    make, line = [python, "-m", "venv"], [str(inside), "-m", "pip", "install", "--quiet", "--prefer-binary"]
    if uv := shutil.which("uv", path=f"{Path(sys.executable).parent}:{os.environ['PATH']}"):  # several times as fast
        make, line = [uv, "venv", "--quiet", "--python", python], [uv, "pip", "install", "--quiet", "--python", line[0]]
    if not inside.exists():
        subprocess.run([*make, folder], check=True)
    line += ["-e", f"{ROOT}[{EXTRAS}]", *TOOLS, *case.needs]
    done = subprocess.run(line, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError((done.stderr.strip().splitlines() or ["?"])[-1][:160])
    return inside


def run(python: Path, name: str) -> str:
    """Run the tests of a case, and return what pytest says at the end; the rest is kept in its environment."""
    case, world = CASES[name], dict(os.environ)
    if case.server:  # the tests take the one on the path
        world["PATH"] = f"{postgres.programs(case.server)}:{world['PATH']}"
        world.pop("DATABASE_URL", None)
    line = [str(python), "-m", "pytest", "-q", "-rfEs", "-m", case.chosen, "-n", "2", "--dist", "worksteal"]
    # There is no plugin to leave out here, nor the fuzzer, which is a run of its own (make fuzz).
    line += ["-p", "no:cacheprovider", "-o", "addopts=--strict-markers --import-mode=importlib", "-k", "not test_fuzz"]
    line += [word for each in case.allows for word in ("-W", each)]
    done = subprocess.run([*line, *case.tests], cwd=ROOT, env=world, capture_output=True, text=True, check=False)
    (python.parents[1] / f"{name}.log").write_text(done.stdout + done.stderr, "utf-8")
    for row in done.stdout.splitlines():
        if row.startswith(("FAILED", "ERROR", "SKIPPED")):
            print("   ", row[:200], flush=True)
    last = [row for row in done.stdout.splitlines() if re.search(r"\d (passed|failed|error)", row)]
    return re.sub(r" in [\d.]+s.*", "", last[-1]).strip("= ") if last else "could not be run"


def versions(python: Path, names: Sequence[str]) -> str:
    """Return the versions of what a case is about."""
    program = "import importlib.metadata as m, json, sys; print(json.dumps([m.version(n) for n in sys.argv[1:]]))"
    found = json.loads(subprocess.run([python, "-c", program, *names], capture_output=True, check=True).stdout)
    return ", ".join(f"{name} {version}" for name, version in zip(names, found, strict=True))


def write(row: tuple[str, str, str, str]) -> None:
    """Put a row into the table of the page, in the place of the one about the same things."""
    before, table, after = re.split(r"(?<=\|---\|---\|---\|---\|\n)((?:\|.*\n)*)", PAGE.read_text("utf-8"), maxsplit=1)
    rows = [tuple(each.strip() for each in line.strip("|").split("|")) for line in table.splitlines()]
    kept = [each for each in rows if each[:2] != row[:2]]
    text = "".join(f"| {' | '.join(each)} |\n" for each in sorted([*kept, row], key=order))
    PAGE.write_text(before + text + after, "utf-8")


def order(row: tuple[str, ...]) -> tuple[int, list[int]]:
    """Sort by what was tested, then by the version of Python, as numbers."""
    return list(CASES).index(row[1]), [int(each) for each in row[0].split(".")]


def main() -> None:
    """Run all cases with every interpreter, or those that are named."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--case", action="append", choices=list(CASES), help="only this one; may be repeated")
    asked = parser.parse_args()
    found = pythons()
    for python in found:
        version = ask(python, "import platform; print(platform.python_version())")
        for name in asked.case or CASES:
            case = CASES[name]
            if case.server and python != found[-1]:
                continue
            try:
                server = f", server {postgres.version(postgres.programs(case.server))}" if case.server else ""
                inside = environment(python, case)
                shown, result = versions(inside, case.shows) + server, run(inside, name)
            except postgres.MissingServerError as problem:
                print(f"{name}: {problem}", flush=True)
                continue
            except RuntimeError as problem:
                shown, result = "", f"cannot be installed: {problem}"
            print(f"Python {version}, {name} ({shown}): {result}", flush=True)
            write((version, name, shown, result))


if __name__ == "__main__":
    main()
