"""Keep the project from growing: compare its size with the budget in `tools/size_budget.toml`.

python -m tools.size_budget            fail where a figure exceeds its budget, or is far below it
python -m tools.size_budget --lower    lower every budget to today's figure; never raises one
python -m tools.size_budget --show     print the table and succeed

Measured for each part of the source: all lines, code lines (without blank lines, comments and docstrings), files, and
exception classes, wherever they are defined. The budget file assigns every source file to exactly one part.
"""

from __future__ import annotations

import argparse
import ast
import inspect
import re
import sys
import tomllib
from collections import Counter
from collections.abc import Iterator, Sequence
from fnmatch import fnmatch
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).parents[1]
BUDGET = Path("tools", "size_budget.toml")
SLACK = 0.02
"""How far a figure may be below its budget, as a fraction of the budget."""
RAISING = "Raising a budget needs a decision record in docs/decisions that states what was worth it."
LOWERING = "Lower the budget: python -m tools.size_budget --lower"


class BudgetFileError(Exception):
    """The budget file does not describe the project."""


class Figure(NamedTuple):
    """One measured number, with its budget and aim where it has them."""

    name: str
    now: int
    budget: int | None = None
    aim: int | None = None

    def describe_problem(self) -> str | None:
        """Return what is wrong with the figure, or None."""
        if self.budget is None:
            return None
        if self.now > self.budget:
            return f"{self.name}: {self.now:,} exceeds the budget of {self.budget:,} by {self.now - self.budget:,}."
        if self.now < self.budget * (1 - SLACK):
            return f"{self.name}: {self.now:,} is {self.budget - self.now:,} below the budget of {self.budget:,}."
        return None


def measure_file(text: str, suffix: str) -> Counter[str]:
    """Count lines, and in Python also code lines and exception classes."""
    lines = text.splitlines()
    found = Counter({"files": 1, "lines": len(lines)})
    if suffix != ".py":
        return found
    documentation: set[int] = set()
    literals: set[int] = set()
    found["error classes"] = 0
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            documentation |= get_lines(node)  # A string that stands alone documents what it is next to.
        elif isinstance(node, ast.Constant | ast.JoinedStr):
            literals |= get_lines(node)  # A line inside of a string may begin with '#'.
        elif isinstance(node, ast.ClassDef):
            found["error classes"] += is_exception_class(node)
    code = {
        number
        for number, line in enumerate(lines, 1)
        if line.strip() and (number in literals or not line.lstrip().startswith("#"))
    }
    found["code lines"] = len(code - documentation)
    return found


def get_lines(node: Any) -> set[int]:
    """Return the numbers of the lines of a statement or expression."""
    return set(range(node.lineno, node.end_lineno + 1))


def is_exception_class(node: ast.ClassDef) -> bool:
    """Tell whether a class inherits from a class that is called an error, an exception or a warning."""
    return any(ast.unparse(base).endswith(("Error", "Exception", "Warning")) for base in node.bases)


def list_files(folder: Path, ignored: Sequence[str]) -> Iterator[tuple[str, Path]]:
    """Yield every file below a folder that is not ignored, with its name relative to the folder."""
    for file in sorted(folder.rglob("*")):
        name = file.relative_to(folder).as_posix()
        if file.is_file() and not any(fnmatch(name, pattern) for pattern in ignored):
            yield name, file


def measure_parts(root: Path, settings: dict[str, Any]) -> dict[str, Counter[str]]:
    """Measure every part of the source, and fail for a file that belongs to no part or to several."""
    parts: dict[str, dict[str, list[str]]] = settings["parts"]
    found: dict[str, Counter[str]] = {part: Counter(lines=0, files=0) for part in parts}
    problems = []
    for folder in sorted({folder for patterns in parts.values() for folder in patterns}):
        for name, file in list_files(root / folder, settings["ignored"]):
            owners = [part for part in parts if any(fnmatch(name, each) for each in parts[part].get(folder, ()))]
            if len(owners) == 1:
                found[owners[0]].update(measure_file(file.read_text("utf-8"), file.suffix))
            else:
                problems.append(f"{folder}/{name} belongs to {' and '.join(owners) or 'no part'}.")
    if problems:
        raise BudgetFileError("\n".join([*problems, f"Assign each file to exactly one part in {BUDGET}."]))
    return found


def measure_folders(root: Path, settings: dict[str, Any]) -> dict[str, Counter[str]]:
    """Count the lines and files of folders without a budget: one pattern of files each, such as `tests/*.py`."""
    found: dict[str, Counter[str]] = {name: Counter() for name in settings["without_budget"]}
    for name, pattern in settings["without_budget"].items():
        folder, _, ending = pattern.partition("/")
        for place, file in list_files(root / folder, settings["ignored"]):
            if fnmatch(place, ending):
                found[name].update(measure_file(file.read_text("utf-8"), suffix=""))
    return found


def count_interface(target: str) -> int:
    """Count a list's names, a function's parameters, or the options of a command: `module:app command`."""
    place, _, command = target.partition(" ")
    module, _, path = place.partition(":")
    found: Any = import_module(module)
    for name in path.split("."):
        found = getattr(found, name)
    if command:
        return count_options(found, command)
    names = found if isinstance(found, list) else [*inspect.signature(found).parameters]
    return len(names) - ("self" in names)


def count_options(app: Any, name: str) -> int:
    """Count the options that the help text of a command shows, `--help` among them."""
    import typer  # noqa: PLC0415 (a project without commands needs no typer)

    command: Any = typer.main.get_group(app).commands[name]
    return sum(each.param_type_name == "option" for each in command.get_params(typer.Context(command)))


def measure_project(root: Path, settings: dict[str, Any]) -> list[Figure]:
    """Return all figures: those with a budget in the order of the budget file, then the others."""
    parts = measure_parts(root, settings)
    together = Counter({"error classes": 0})
    for found in parts.values():
        together.update(found if "code lines" in found else {})
    parts |= {"Python together": together, **measure_folders(root, settings)}
    now = {f"{part}: {measure}": number for part, found in parts.items() for measure, number in found.items()}
    now |= {name: count_interface(target) for name, target in settings["interface"].items()}
    limits = settings["figures"]
    if unknown := [name for name in limits if name not in now]:
        raise BudgetFileError(f"{BUDGET} limits {', '.join(map(repr, unknown))}, which nothing measures.")
    limited = [Figure(name, now[name], limit["budget"], limit.get("aim")) for name, limit in limits.items()]
    return limited + [Figure(name, number) for name, number in now.items() if name not in limits]


def format_table(figures: Sequence[Figure]) -> str:
    """Return the figures as a table; the last ones have no budget."""
    width = max(len(each.name) for each in figures)
    lines = [f"{'':{width}}{'now':>9}{'budget':>9}{'aim':>9}"]
    for name, *numbers in figures:
        cells = ["" if number is None else f"{number:,}" for number in numbers]
        lines.append(f"{name:{width}}{''.join(f'{cell:>9}' for cell in cells)}".rstrip())
    return "\n".join(lines)


def lower_budgets(text: str, figures: Sequence[Figure]) -> str:
    """Return the text of the budget file with every budget that is above its figure lowered to it."""
    for each in figures:
        if each.budget is not None and each.now < each.budget:
            pattern = rf'^("{re.escape(each.name)}" = \{{ budget = )[\d_]+'
            text, changed = re.subn(pattern, rf"\g<1>{each.now:_}", text, flags=re.MULTILINE)
            if changed != 1:
                raise BudgetFileError(f'Write this budget on one line: "{each.name}" = {{ budget = {each.now:_} }}')
    return text


def main(arguments: Sequence[str] | None = None, root: Path = ROOT) -> int:
    """Print the table and every problem; return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tools.size_budget", description="Check the size budget.")
    mode = parser.add_mutually_exclusive_group()
    mode.add_argument("--lower", action="store_true", help="lower every budget to today's figure; never raise one")
    mode.add_argument("--show", action="store_true", help="print the table and succeed")
    chosen = parser.parse_args(arguments)
    file = root / BUDGET
    try:
        figures = measure_project(root, tomllib.loads(file.read_text("utf-8")))
        if chosen.lower:
            file.write_text(lower_budgets(file.read_text("utf-8"), figures), "utf-8")
            figures = measure_project(root, tomllib.loads(file.read_text("utf-8")))
    except BudgetFileError as problem:
        print(problem, file=sys.stderr)
        return 1
    print(format_table(figures))
    if chosen.show:
        return 0
    problems = [(each, found) for each in figures if (found := each.describe_problem())]
    for _, found in problems:
        print(found, file=sys.stderr)
    if any(each.now > (each.budget or 0) for each, _ in problems):
        print(RAISING, file=sys.stderr)
    if any(each.now < (each.budget or 0) for each, _ in problems):
        print(LOWERING, file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT / "src"))
    sys.exit(main())
