"""The size budget counts what it says, fails in both directions, and only ever falls by itself."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from tools import size_budget

SETTINGS = """
ignored = ["*__pycache__/*", "built/*"]

[parts.library]
"src/made" = ["*.py"]
[parts.JavaScript]
"src/made" = ["web/*.js"]

[without_budget]
tests = "tests/*.py"

[interface]
"parameters of a call" = "bisect:bisect_left"

[figures]
"library: lines" = { budget = 100, aim = 50 }
"library: code lines" = { budget = 50 }
"library: files" = { budget = 2 }
"Python together: error classes" = { budget = 1 }
"parameters of a call" = { budget = 5, aim = 3 }
"""
MODULE = '''"""A docstring
of two lines."""

# A comment.
import json  # A comment after code does not hide the code.

LIMIT = 3
"""A string next to a constant documents it."""


class MadeError(json.JSONDecodeError):
    """Documented."""


def write() -> str:
    """Write."""
    return f"""
# This line is text {LIMIT},
and so is this one.
"""
'''
CODE_LINES = 8


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project whose two files have together 100 lines, 50 of them code."""
    (tmp_path / "tools").mkdir()
    (tmp_path / "tests").mkdir()
    (tmp_path / "src" / "made" / "built").mkdir(parents=True)
    (tmp_path / size_budget.BUDGET).write_text(SETTINGS)
    (tmp_path / "src" / "made" / "module.py").write_text(MODULE)
    blank, code = 100 - 50 - (len(MODULE.splitlines()) - CODE_LINES), 50 - CODE_LINES
    (tmp_path / "src" / "made" / "more.py").write_text("x = 1\n" * code + "\n" * blank)
    (tmp_path / "src" / "made" / "built" / "page.css").write_text("ignored\n")
    (tmp_path / "tests" / "test_it.py").write_text("x = 1\n" * 7)
    return tmp_path


def add(project: Path, text: str, name: str = "more.py") -> None:
    with (project / "src" / "made" / name).open("a") as file:
        file.write(text)


def replace_budget(project: Path, name: str, budget: int) -> None:
    file = project / size_budget.BUDGET
    file.write_text(re.sub(rf'("{name}" = \{{ budget = )\d+', rf"\g<1>{budget}", file.read_text()))


def read_budgets(project: Path) -> dict[str, int]:
    figures = tomllib.loads((project / size_budget.BUDGET).read_text())["figures"]
    return {name: limit["budget"] for name, limit in figures.items()}


def test_docstrings_comments_and_blank_lines_are_no_code() -> None:
    found = size_budget.measure_file(MODULE, ".py")
    expected = {"files": 1, "lines": len(MODULE.splitlines()), "code lines": CODE_LINES, "error classes": 1}
    assert found == expected


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("class A(Exception): ...", 1),
        ("class A(made.TableError, Mixin): ...", 1),
        ("def f():\n    class A(UserWarning): ...", 1),
        ("class ErrorTable(dict): ...\nclass B: ...", 0),
    ],
)
def test_exception_classes_count_wherever_they_are(text: str, count: int) -> None:
    assert size_budget.measure_file(text, ".py")["error classes"] == count


def test_figures_at_their_budget_pass(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert size_budget.main([], project) == 0
    shown = capsys.readouterr()
    assert re.search(r"^library: lines +100 +100 +50$", shown.out, re.MULTILINE)
    assert re.search(r"^parameters of a call +5 +5 +3$", shown.out, re.MULTILINE)
    assert re.search(r"^tests: lines +7$", shown.out, re.MULTILINE)
    assert shown.err == ""


@pytest.mark.parametrize(
    ("added", "file", "expected"),
    [
        ("# A comment.\n" * 3, "more.py", ["library: lines: 103 exceeds the budget of 100 by 3."]),
        ("class A(OSError): ...\n", "more.py", [
            "library: lines: 101 exceeds the budget of 100 by 1.",
            "library: code lines: 51 exceeds the budget of 50 by 1.",
            "Python together: error classes: 2 exceeds the budget of 1 by 1.",
        ]),
        ("", "third.py", ["library: files: 3 exceeds the budget of 2 by 1."]),
    ],
)  # fmt: skip
def test_growth_fails_and_names_the_rule(
    project: Path, capsys: pytest.CaptureFixture[str], added: str, file: str, expected: list[str]
) -> None:
    add(project, added, file)
    assert size_budget.main([], project) == 1
    assert capsys.readouterr().err.splitlines() == [*expected, size_budget.RAISING]


def test_an_interface_that_grew_fails(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    replace_budget(project, "parameters of a call", 4)
    assert size_budget.main([], project) == 1
    assert "parameters of a call: 5 exceeds the budget of 4 by 1." in capsys.readouterr().err


def test_a_figure_far_below_its_budget_fails(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    replace_budget(project, "library: lines", 102)
    assert size_budget.main([], project) == 0
    replace_budget(project, "library: lines", 103)
    capsys.readouterr()
    assert size_budget.main([], project) == 1
    expected = ["library: lines: 100 is 3 below the budget of 103.", size_budget.LOWERING]
    assert capsys.readouterr().err.splitlines() == expected


def test_lower_lowers_and_never_raises(project: Path) -> None:
    replace_budget(project, "library: lines", 1_000)
    replace_budget(project, "library: code lines", 40)
    before = read_budgets(project)
    assert size_budget.main(["--lower"], project) == 1  # The code lines still exceed their budget.
    assert read_budgets(project) == before | {"library: lines": 100}
    replace_budget(project, "library: code lines", 50)
    assert size_budget.main(["--lower"], project) == 0
    assert read_budgets(project) == before | {"library: lines": 100, "library: code lines": 50}


def test_lower_keeps_the_rest_of_the_file(project: Path) -> None:
    replace_budget(project, "library: lines", 12_345)
    assert size_budget.main(["--lower"], project) == 0
    assert (project / size_budget.BUDGET).read_text() == SETTINGS


def test_a_file_in_no_part_or_in_two_fails(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    add(project, "a {}\n", "style.css")
    assert size_budget.main(["--show"], project) == 1
    assert "src/made/style.css belongs to no part." in capsys.readouterr().err
    (project / "src" / "made" / "style.css").unlink()
    file = project / size_budget.BUDGET
    file.write_text(file.read_text().replace('["web/*.js"]', '["web/*.js", "more.py"]'))
    assert size_budget.main([], project) == 1
    assert "src/made/more.py belongs to library and JavaScript." in capsys.readouterr().err


def test_a_budget_that_nothing_measures_fails(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = project / size_budget.BUDGET
    file.write_text(file.read_text() + '"server: lines" = { budget = 1 }\n')
    assert size_budget.main([], project) == 1
    assert "'server: lines', which nothing measures" in capsys.readouterr().err


def test_show_prints_the_table_and_succeeds(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    replace_budget(project, "library: lines", 1)
    assert size_budget.main(["--show"], project) == 0
    assert re.search(r"^library: lines +100 +1 +50$", capsys.readouterr().out, re.MULTILINE)


def test_the_interface_is_counted_in_the_package() -> None:
    """One target of each kind; a method is counted without `self`."""
    assert size_budget.count_interface("bisect:bisect_left") == 5
    assert size_budget.count_interface("tests.tools.test_size_budget:NAMES") == 2
    assert size_budget.count_interface("pathlib:Path.read_text") == 2
    shown = size_budget.count_interface("relaxdp.cli.main:app backup")
    assert shown == 5  # --with-key, --vault, --quiet, --verbose and --help


NAMES = ["a", "b"]


def test_the_budget_file_limits_every_part_of_the_project() -> None:
    settings = tomllib.loads((size_budget.ROOT / size_budget.BUDGET).read_text("utf-8"))
    figures = settings["figures"]
    for part in ("library", "server", "research"):
        assert {f"{part}: {measure}" for measure in ("lines", "code lines", "files")} <= set(figures)
    assert set(settings["interface"]) <= set(figures)
    size_budget.measure_parts(size_budget.ROOT, settings)  # It raises for a file without a part.
