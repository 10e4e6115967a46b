"""The tool that plants mistakes: which it plants and which not, and that it tells a survivor from a dead one."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from tests.mutation.mutants import mutants_of
from tests.mutation.run import EQUIVALENTS, Result, read_equivalents, write_page
from tests.mutation.targets import TARGETS
from tests.mutation.trial import ROOT, SOURCE, changed_functions

SAMPLE = '''
"""A docstring."""
LEAST: int = [3 for _ in "x"][0]

class Thing:
    def __repr__(self) -> str:
        return "x" * 3

    def rule(self, a: int | None, b: int = 1) -> int:
        if a is not None and a < b:
            raise ValueError(f"{a + b} is too small" + "!")
        self.seen = a
        return -max(a, b) | {*b}
'''


CONSTANTS = [
    *(f"[{number} for _ in 'x'][0]" for number in (2, 4)),
    *(f"[3 for _ in 'x'][{place}]" for place in (-1, 1)),
]


def changes(source: str) -> set[tuple[str, str]]:
    return {(mutant.where, mutant.after) for mutant in mutants_of("sample.py", source, "sample.py")}


def test_every_kind_of_mistake_and_nothing_that_is_only_read() -> None:
    rule = {
        *(f"if a is not None and a {other} b:" for other in ("<=", ">=")),
        "if a is None and a < b:",
        "if a is not None or a < b:",
        "if a is not None:",
        "if a < b:",
        "if not (a is not None and a < b):",
        "pass",
        *(f"def rule(self, a: int | None, b: int={default}) -> int:" for default in (0, 2)),
        "return max(a, b) | {*b}",
        "return -min(a, b) | {*b}",
        "return -max(a, b) & {*b}",
        "return -max(a, b)",
        "return {*b}",
        "pass  # place 2",
    }
    expected = {("", f"LEAST: int = {made}") for made in CONSTANTS} | {("Thing.rule", after) for after in rule}
    assert changes(SAMPLE) == expected - {("Thing.rule", "pass  # place 2")}


def test_equal_mistakes_in_equal_lines_have_names_of_their_own() -> None:
    assert changes("def f():\n    g(1)\n    g(1)\n") >= {
        ("f", "g(2)"),
        ("f", "g(2)  # place 2"),
        ("f", "pass  # place 2"),
    }


def test_what_the_import_computes_is_told_from_what_functions_do() -> None:
    clean = compile(SAMPLE, "sample.py", "exec")
    for mutant in mutants_of("sample.py", SAMPLE, "sample.py"):
        changed = changed_functions(clean, mutant.code)
        assert (changed is None) == (mutant.after.startswith(("LEAST", "def")))
        assert changed is None or [old.co_name for old in changed] == ["rule"]


@pytest.mark.long
def test_a_mutant_is_killed_or_survives_or_never_ends(tmp_path: Path) -> None:
    """On one of our rules, with a test of one side of it only, in a process in which nothing is imported yet."""
    work = f"""
from pathlib import Path
from tests.mutation.trial import Trials, prepare
folder, path = Path({str(tmp_path)!r}), Path({str(SOURCE / "theory" / "randomized_response.py")!r})
prepare(folder, heavy=())
source = path.read_text()
trials = Trials("theory/randomized_response.py", source, [str(path), str(folder / "test_it.py")], folder / "log")
wrong = [
    ("lower_retention > upper_retention", "lower_retention < upper_retention"),
    ("A blur only lowers", "no"),
    ("lower_retention / upper_retention", "lower_retention * upper_retention"),
    ("if lower_retention >", "while lower_retention: lower_retention += 1\\n    if lower_retention >"),
    ("Fraction(1) if", "Fraction(2) if"),
    ("import Fraction", "import Fractions"),
]
assert all(old in source for old, _ in wrong)
codes = [compile(source.replace(*each), "x", "exec", dont_inherit=True) for each in wrong]
print(*trials.run(codes), sep=", ")
"""
    (tmp_path / "test_it.py").write_text(
        "from fractions import Fraction as F\n"
        "from relaxdp.theory.randomized_response import compute_blur_retention\n"
        "def test_it():\n    assert compute_blur_retention(F(1, 3), F(1, 2)) == F(2, 3)\n"
    )
    done = subprocess.run([sys.executable, "-c", work], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.stderr == ""
    assert done.stdout.strip() == "survived, killed, survived, killed, timed out, survived, killed"


def test_equivalents_name_modules_that_are_tried_and_have_reasons() -> None:
    entries = tomllib.loads(EQUIVALENTS.read_text("utf-8"))["equivalent"]
    assert len(read_equivalents()) == sum(len(entry["after"]) for entry in entries)
    for entry in entries:
        assert entry["module"] in TARGETS
        assert entry["before"] not in entry["after"]
        assert len(entry["reason"]) > 10


def test_the_page_keeps_the_lines_of_what_was_not_tried(tmp_path: Path) -> None:
    page, response = tmp_path / "mutants.md", "theory/randomized_response.py"
    write_page([Result("theory/epsilon.py", 13, 12, 0, 1, 1.2), Result(response, 2, 1, 1)], {}, page)
    write_page(
        [Result("theory/epsilon.py", 14, 14)], {("theory/epsilon.py", "f", "a < b", "a <= b"): "never equal"}, page
    )
    text = page.read_text("utf-8")
    assert f"| `{response}` | 2 | 1 | 1 | 0 | 0 |\n| `theory/epsilon.py` | 14 | 14 | 0 | 0 | 0 |\n| all | 16 |" in text
    assert "### `theory/epsilon.py`\n\n- `f`, `a < b`, `a < b` as `a <= b`: never equal\n" in text
