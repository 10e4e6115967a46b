"""Every mutant of what decides privacy is killed by a test, or is named as equivalent (`make mutants`).

Given names of modules, only those are tried, and only their lines of docs/mutants.md change.
"""

from __future__ import annotations

import resource
import sys
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import takewhile
from pathlib import Path
from tempfile import NamedTemporaryFile, TemporaryDirectory

from tests.mutation.mutants import Mutant, mutants_of
from tests.mutation.targets import TARGETS
from tests.mutation.trial import ROOT, SOURCE, Trials, prepare

EQUIVALENTS = Path(__file__).with_name("equivalents.toml")
PAGE = ROOT / "docs" / "mutants.md"

_HEAD = """\
# Mutants

`make mutants` plants one small mistake at a time into the modules that decide privacy without touching the
world: another comparison, another sign, a constant that is one off, a condition that is turned around or left out, a
statement (above all a refusal) that is missing, a maximum for a minimum, a rounding to the wrong side. Then it runs the
tests that should notice, until the first one does. It fails if a mutant survives that is not named below, and also if
one that is named is killed now or exists no more. [Why it is our own tool](decisions/0007-mutants.md).

A mutant is killed if a test fails, and times out if it takes more than three times as long as all of them do. What only
tells people something is not mutated: texts, the arguments of what is raised, `__str__` and `__repr__`, annotations,
decorators. Seconds are of one processor. All of `theory/` and `sampling/` is tried, and the rules of `ledger/` and
`market/`.

| module | mutants | killed | timed out | equivalent | seconds |
|---|---|---|---|---|---|"""
_EQUIVALENT = """\
## Equivalent mutants

Those that no test can kill, or that should not be killed, each with the reason (`tests/mutation/equivalents.toml`)."""

Key = tuple[str, str, str, str]


@dataclass
class Result:
    """What became of the mutants of one module."""

    module: str
    mutants: int = 0
    killed: int = 0
    timed_out: int = 0
    equivalent: int = 0
    seconds: float = 0.0
    problems: list[str] = field(default_factory=list)

    def tell(self, problem: str) -> None:
        """Note and print a problem at once: the whole takes a while."""
        self.problems.append(problem)
        print(f"{self.module}: {problem}", flush=True)

    def line(self) -> str:
        """Return its line of the page."""
        cells = (self.mutants, self.killed, self.timed_out, self.equivalent, round(self.seconds))
        return f"| `{self.module}` | " + " | ".join(f"{cell:,}" for cell in cells) + " |"


def read_equivalents(path: Path = EQUIVALENTS) -> dict[Key, str]:
    """Return the mutants that no test can kill, each with its reason."""
    return {
        (entry["module"], entry["where"], entry["before"], after): entry["reason"]
        for entry in tomllib.loads(path.read_text())["equivalent"]
        for after in entry["after"]
    }


def run_module(module: str, equivalents: dict[Key, str]) -> Result:
    """Try all mutants of one module. Those that are named as equivalent are tried too: a test may notice them now."""
    path, result, before = SOURCE / module, Result(module), _seconds()
    source = path.read_text("utf-8")
    expected = {key for key in equivalents if key[0] == module}
    with NamedTemporaryFile(suffix=".log") as log:
        trials = Trials(module, source, TARGETS[module], Path(log.name))
        mutants = list(mutants_of(module, source, str(path)))
        outcomes = trials.run([mutant.code for mutant in mutants])
        if next(outcomes) != "survived":
            print(Path(log.name).read_text("utf-8")[-5000:])
            result.tell("the tests do not pass without a mutant")
            return result
        for mutant, outcome in zip(mutants, outcomes, strict=True):
            _count(result, mutant, outcome, named=mutant.key in expected)
            expected.discard(mutant.key)
    for key in sorted(expected):
        result.tell(f"no such mutant any more: {_shown(key)}")
    result.seconds = _seconds() - before
    return result


def _seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _count(result: Result, mutant: Mutant, outcome: str, *, named: bool) -> None:
    result.mutants += 1
    if outcome == "survived" and named:
        result.equivalent += 1
    elif outcome in ("survived", "never imported"):
        result.tell(f"{outcome}: {_shown(mutant.key)}")
    else:
        result.killed += outcome == "killed"
        result.timed_out += outcome == "timed out"
        if named:
            result.tell(f"named as equivalent, and {outcome}: {_shown(mutant.key)}")


def _shown(key: Key) -> str:
    _, where, before, after = key
    return f"\n  where = {where!r}\n  before = '''{before}'''\n  after = ['''{after}''']"


def write_page(results: Sequence[Result], equivalents: dict[Key, str], page: Path = PAGE) -> None:
    """Write the page. What was not tried now keeps the line that it has."""
    old = page.read_text("utf-8").splitlines() if page.exists() else []
    lines = {module: line for module in TARGETS for line in old if line.startswith(f"| `{module}` |")}
    lines |= {result.module: result.line() for result in results}
    table = [lines[module] for module in TARGETS if module in lines]
    sums = [sum(int(line.split("|")[column].replace(",", "")) for line in table) for column in range(2, 7)]
    total = "| all | " + " | ".join(f"{each:,}" for each in sums) + " |"
    grouped: dict[tuple[str, str, str, str], list[str]] = {}
    for (module, where, before, after), reason in equivalents.items():
        grouped.setdefault((module, where, before, reason), []).append(after)
    told = []
    for module in TARGETS:
        of_module = [(key, afters) for key, afters in grouped.items() if key[0] == module]
        told += ["", f"### `{module}`", ""] if of_module else []
        for (_, where, before, reason), afters in of_module:
            others = ", ".join(dict.fromkeys(_difference(before, after) for after in afters))
            told.append(f"- {f'`{where}`, ' if where else ''}`{before}`, {others}: {reason}")
    page.write_text("\n".join([_HEAD, *table, total, "", _EQUIVALENT, *told, ""]), "utf-8")


def _difference(before: str, after: str) -> str:
    """Return the words in which two lines differ, with those beside them."""
    if after.startswith("pass"):
        return "left out"
    old, new = before.split(" "), after.partition("  # place")[0].split(" ")
    start = _alike(old, new)
    end = _alike(old[start:][::-1], new[start:][::-1])
    first, last = max(start - 1, 0), max(end - 1, 0)
    shown = [" ".join(words[first : len(words) - last]) for words in (old, new)]
    return f"`{shown[0]}` as `{shown[1]}`"


def _alike(one: Sequence[str], other: Sequence[str]) -> int:
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))


def main(names: Sequence[str]) -> int:
    """Try the modules named, or all. The page has only those that are without a problem."""
    equivalents, problems = read_equivalents(), 0
    with TemporaryDirectory(prefix="mutants-") as folder:
        prepare(Path(folder))
        for module in names or TARGETS:
            result = run_module(module, equivalents)
            print(result.line(), flush=True)
            problems += len(result.problems)
            if not result.problems:
                write_page([result], equivalents)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
