"""Run the core of the tests with other versions of Python and of what relaxdp stands on; write docs/versions.md.

Everything is the newest that pip finds and that a case allows, in an environment of its own in build/versions. PYTHONS
names the interpreters (else python3.11 and newer are looked for on the PATH). What is not to be had is left out, and
the page keeps what it said of it before.
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

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "versions.md"
FRAMES = (
    "tests/unit/table/test_frames.py",
    "tests/unit/table/test_frame_mistakes.py",
    "tests/unit/table/test_calls.py",
)
SPARK = ("tests/spark/test_spark.py", "tests/spark/test_spark_types.py", "tests/spark/test_spark_growing.py")
LEDGER = ("tests/contract/ledger", "tests/unit/publication")
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
EXTRAS = "decode,device,excel,plot,postgres,server,shares"


@dataclass(frozen=True)
class Case:
    """What is tested, and with which packages beside the newest ones."""

    tests: Sequence[str]
    needs: Sequence[str]
    shows: Sequence[str]


NEWEST = ("numpy", "pyarrow", "duckdb", "pandas")
CASES = {
    "drawing": Case(["tests/exact/draw", "tests/exact/law", "tests/unit/draw"], ["pandas>=3"], NEWEST),
    "encodings": Case(
        ["tests/exact/encodings", "tests/unit/encodings", "tests/unit/mechanisms"], ["pandas>=3"], NEWEST
    ),
    "tables": Case(["tests/unit/table"], ["pandas>=3"], NEWEST),
    "estimation": Case(["tests/exact/estimation", "tests/unit/estimation"], ["pandas>=3"], NEWEST),
    "accounts": Case(["tests/unit/ledger"], ["pandas>=3"], NEWEST),
    "the rest of what is exact": Case(
        [f"tests/exact/{room}" for room in ("audit", "collector", "market", "paper", "rappor")], ["pandas>=3"], NEWEST
    ),
    "pandas 2": Case(FRAMES, ["pandas<3"], ("pandas", "numpy")),
    "Spark 4": Case(SPARK, ["pandas>=3", "pyspark>=4"], ("pyspark", "pandas")),
    "Spark 3.5": Case(SPARK, ["pandas<3", "pyspark==3.5.*", "setuptools"], ("pyspark", "pandas")),
    "PostgreSQL": Case(LEDGER, ["pandas>=3"], ("psycopg", "sqlalchemy")),
}


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
    folder = ROOT / "build" / "versions" / "-".join([version, *(re.sub("[^a-z0-9.]", "", need) for need in case.needs)])
    inside = folder / "bin" / "python"
    if not inside.exists():
        subprocess.run([python, "-m", "venv", folder], check=True)
    wanted = ["-e", f"{ROOT}[{EXTRAS}]", *TOOLS, *case.needs]
    line = [str(inside), "-m", "pip", "install", "--quiet", "--prefer-binary", *wanted]
    if uv := shutil.which("uv", path=f"{Path(sys.executable).parent}:{os.environ['PATH']}"):  # several times as fast
        line = [uv, "pip", "install", "--quiet", "--python", str(inside), *wanted]
    done = subprocess.run(line, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError((done.stderr.strip().splitlines() or ["?"])[-1][:160])
    return inside


def run(python: Path, case: Case) -> str:
    """Run the tests of a case, and return what pytest says at the end."""
    line = [
        str(python),
        "-m",
        "pytest",
        "-q",
        "-m",
        "not long",
        "-n",
        "2",
        "--dist",
        "worksteal",
        "-p",
        "no:cacheprovider",
    ]
    options = ["-o", "addopts=--strict-markers --import-mode=importlib"]  # there is no plugin to leave out here
    done = subprocess.run([*line, *options, *case.tests], cwd=ROOT, capture_output=True, text=True, check=False)
    for row in done.stdout.splitlines():
        if row.startswith(("FAILED", "ERROR")):
            print("   ", row[:200], flush=True)
    last = [row for row in done.stdout.splitlines() if re.search(r"\d (passed|failed|error)", row)]
    return re.sub(r" in [\d.]+s.*", "", last[-1]).strip("= ") if last else "could not be run"


def versions(python: Path, names: Sequence[str]) -> str:
    """Return the versions of what a case is about."""
    program = "import importlib.metadata as m, json, sys; print(json.dumps([m.version(n) for n in sys.argv[1:]]))"
    found = json.loads(subprocess.run([python, "-c", program, *names], capture_output=True, check=True).stdout)
    return ", ".join(f"{name} {version}" for name, version in zip(names, found, strict=True))


def server() -> str:
    """Return the version of the PostgreSQL that the tests meet: that of DATABASE_URL, or the newest one here."""
    if url := os.environ.get("DATABASE_URL"):
        done = subprocess.run(["psql", url, "-tAc", "SHOW server_version"], capture_output=True, text=True, check=False)
        return (done.stdout.split() or ["?"])[0]
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/postgres"), key=lambda each: int(each.parts[4]))
    if not found:
        return ""
    return subprocess.run([found[-1], "--version"], capture_output=True, text=True, check=True).stdout.split()[2]


def write(row: tuple[str, str, str, str]) -> None:
    """Put a row into the table of the page, in the place of the one about the same things."""
    before, table, after = re.split(r"(?<=\|---\|---\|---\|---\|\n)((?:\|.*\n)*)", PAGE.read_text("utf-8"), maxsplit=1)
    rows = [tuple(each.strip() for each in line.strip("|").split("|")) for line in table.splitlines()]
    kept = [each for each in rows if each[:2] != row[:2]]
    text = "".join(f"| {' | '.join(each)} |\n" for each in sorted([*kept, row], key=order))
    PAGE.write_text(before + text + after, "utf-8")


def order(row: tuple[str, ...]) -> tuple[object, ...]:
    """Sort by what was tested, then by version, as numbers."""
    names = list(CASES)
    place = next((i for i, name in enumerate(names) if row[1].startswith(name)), len(names))
    return place, [int(each) for each in re.findall(r"\d+", row[1])], [int(each) for each in re.findall(r"\d+", row[0])]


def main() -> None:
    """Run all cases with every interpreter, or those that are named."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--case", action="append", choices=list(CASES), help="only this one; may be repeated")
    asked = parser.parse_args()
    for python in pythons():
        version = ask(python, "import platform; print(platform.python_version())")
        for name in asked.case or CASES:
            case, about = CASES[name], name
            if name == "PostgreSQL":
                if not (found := server()):
                    continue
                about = f"{name} {found.split('.')[0]}"
            try:
                inside = environment(python, case)
                shown = versions(inside, case.shows) + (f", server {found}" if name == "PostgreSQL" else "")
                result = run(inside, case)
            except RuntimeError as problem:
                shown, result = "", f"cannot be installed: {problem}"
            print(f"Python {version}, {about} ({shown}): {result}", flush=True)
            write((version, about, shown, result))


if __name__ == "__main__":
    main()
