"""Plans: two of n, epsilon and margin of error give the third, before anything is released."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from numbers import Integral, Real
from typing import Any, Literal

from relaxdp.errors import PlanError
from relaxdp.estimation.display import describe_risk, describe_short_risk, format_html, format_table
from relaxdp.estimation.planning import USUAL_LEVELS, PlanOptions, compute_steps, find_epsilon, find_n
from relaxdp.estimation.result import About
from relaxdp.estimation.sides import Numbers
from relaxdp.mechanisms.base import Mechanism
from relaxdp.mechanisms.square_wave import BINS
from relaxdp.theory.epsilon import Epsilon, as_epsilon, epsilon_text


@dataclass(frozen=True, slots=True)
class PlannedLevel:
    """One level of a plan."""

    epsilon: Decimal
    margin: float
    """The expected margin of error."""
    is_precise: bool | None
    """Whether that is at most the wanted margin; None where none was stated."""
    mechanism: str | None
    """The best mechanism, where you left it open."""


@dataclass(frozen=True, slots=True, repr=False)
class Plan:
    """A planned release, of one level or of several. It prints as a table with the risk at each level."""

    n: int
    """The number of individuals."""
    levels: tuple[PlannedLevel, ...]
    found: Literal["n", "epsilon", "margin"]
    """Which number was computed."""
    answers: int
    """The number of possible answers; 2 for numbers, which are in one half of their range or in the other."""
    confidence_level: float
    columns: int = 1
    """The number of planned columns, 2 for a crosstab. Their costs add up, and so does the risk."""

    @property
    def epsilon(self) -> Decimal | None:
        """The epsilon, if the plan has one level."""
        return self.levels[0].epsilon if len(self.levels) == 1 else None

    @property
    def margin(self) -> float | None:
        """The expected margin of error, if the plan has one level: of each share, or of the mean."""
        return self.levels[0].margin if len(self.levels) == 1 else None

    @property
    def mechanism(self) -> str | None:
        """The best mechanism, if the plan has one level and you left it open."""
        return self.levels[0].mechanism if len(self.levels) == 1 else None

    @property
    def first_precise(self) -> PlannedLevel | None:
        """The first level that is as precise as you asked for, if there is one."""
        return next((level for level in self.levels if level.is_precise), None)

    def _rows(self) -> tuple[list[str], list[list[str]]]:
        rows = [
            [
                f"{self.n:,}",
                epsilon_text(level.epsilon),
                f"\N{PLUS-MINUS SIGN}{level.margin:.3g}",
                describe_short_risk(self.columns * level.epsilon, self.answers),
                level.mechanism or "",
            ]
            for level in self.levels
        ]
        headings = ["n", "epsilon", "margin of error", "a guess is right", "mechanism"]
        width = 5 if any(row[4] for row in rows) else 4
        return headings[:width], [row[:width] for row in rows]

    def _notes(self) -> list[str]:
        notes = [f"Margins of {100 * self.confidence_level:g} % confidence intervals."]
        if len(self.levels) == 1:
            notes = [f"{notes[0]} Computed: {self.found}.", self._describe_risk(self.levels[0].epsilon)]
        return notes

    def _describe_risk(self, epsilon: Decimal) -> str:
        return describe_risk(self.columns * epsilon, self.answers, " of both columns" if self.columns > 1 else "")

    def __repr__(self) -> str:
        return "\n".join([format_table(*self._rows(), left=(4,)), *self._notes()])

    def _repr_html_(self) -> str:
        return format_html(*self._rows(), self._notes())


def plan(
    *,
    values: Any = None,
    range: Sequence[float] | None = None,
    n: int | None = None,
    epsilon: Epsilon | None = None,
    margin: float | None = None,
    schedule: Iterable[Epsilon] | None = None,
    share: float | None = None,
    confidence_level: float = 0.95,
    about: About = "sample",
    simultaneous: bool = False,
    mechanism: str | None = "auto",
    bins: int = BINS,
    crosstab: Any = None,
) -> Plan:
    """Plan a release: pass two of `n`, `epsilon` and `margin` and get the third.

    A plan follows from the noise alone and never looks at an answer. With `n` alone you get a table of common levels,
    and with `n` and a `schedule` a table of its levels.

    Args:
        values: The possible answers: their number, a list of them, or the mechanism that will release them.
        range: The ends of the range instead, for the mean of numbers.
        n: The number of individuals.
        epsilon: The level.
        margin: The margin of error: of a share, such as 0.01, or of the mean in the unit of the numbers.
        schedule: Several levels, such as `rx.schedules.Linear(0.5, 2, steps=4)`, instead of `epsilon`.
        share: The share that you expect. Without it, the plan holds for every share.
        confidence_level: The confidence level of the interval.
        about: "population" if the individuals are a random sample that the interval generalizes from.
        simultaneous: Plan intervals that hold for all values at once.
        mechanism: The name of a mechanism, or "auto" for the best one at the largest epsilon.
        bins: The number of bins of a square wave, for numbers.
        crosstab: The values of a second column, to plan a crosstab of both.

    Returns:
        The plan, which prints as a table and states the risk at each level.

    Raises:
        PlanError: The arguments do not fit together, or no epsilon or number of individuals reaches the margin.

    Example:
        >>> plan(values=["yes", "no"], n=100_000, margin=0.01)
              n  epsilon  margin of error  a guess is right  mechanism
        100,000   0.6113            ±0.01    at most 64.9 %  categorical
        Margins of 95 % confidence intervals. Computed: epsilon.
        Risk at epsilon 0.6113: a guess between two answers is right at most 64.9 % of the time, instead of 50 %.
        >>> plan(range=(0, 100), n=10_000, epsilon=4).mechanism
        'wave'
    """
    planned, answers = _read_answers(values, range, bins)
    size = None if n is None else _read_n(n)
    wanted = None if margin is None else _read_number(margin, "margin", "0.01")
    level = None if epsilon is None else as_epsilon(epsilon)
    asked: PlanOptions = {
        "share": None if share is None else _read_number(share, "share", "0.2"),
        "confidence_level": confidence_level,
        "about": about,
        "simultaneous": simultaneous,
        "encoding": mechanism,
        "crosstab": None if crosstab is None else _read_answers(crosstab, None, bins)[0],
    }
    found: Literal["n", "epsilon", "margin"] = "margin"
    given = [level is not None or schedule is not None, size is not None, wanted is not None]
    if level is not None and schedule is not None:
        raise PlanError("`epsilon` and `schedule` cannot be combined.", hint="Pass one of them.")
    if schedule is not None and size is None:
        raise PlanError("A schedule needs the number of individuals.", hint="Pass n= (--n), such as n=10_000.")
    if schedule is None and given.count(True) != 2 and given != [False, True, False]:
        raise PlanError(
            "Got {given} of `n`, `epsilon` and `margin`: two of them give the third.",
            hint="Pass two of margin= (--margin), n= (--n) and epsilon= (--epsilon), such as n=10_000 and epsilon=1.",
            given=("none", "one", "two", "all")[given.count(True)],
        )
    if size is None and wanted is not None and level is not None:
        found, size = "n", find_n(wanted, epsilon=level, values=planned, **asked)
    elif level is None and schedule is None and wanted is not None and size is not None:
        found, level = "epsilon", find_epsilon(wanted, n=size, values=planned, **asked)
    assert size is not None  # noqa: S101
    limit = wanted if schedule is not None else None
    if level is None and schedule is None:  # each with the best mechanism of its own
        rows = [row for each in USUAL_LEVELS for row in compute_steps([each], n=size, values=planned, **asked)]
    else:
        rows = compute_steps(_read_schedule(schedule, level), n=size, values=planned, margin=limit, **asked)
    levels = tuple(PlannedLevel(row.epsilon, row.margin, row.met, row.encoding) for row in rows)
    return Plan(size, levels, found, answers, confidence_level, 1 if crosstab is None else 2)


def _read_answers(values: Any, range: Any, bins: int) -> tuple[Any, int]:
    """Return what is planned, and the number of possible answers."""
    if (values is None) == (range is None):
        raise PlanError(
            "Pass either `values` or `range`.", hint="For example values=['flu', 'covid', 'none'], or range=(0, 120)."
        )
    if range is not None:
        if not isinstance(range, Sequence) or isinstance(range, str) or len(range) != 2:
            raise PlanError("`range` must be the two ends of the range.", hint="Pass range=(0, 120).")
        return Numbers(range[0], range[1], bins), 2
    if isinstance(values, Mechanism):
        return values, 2 if values.measure is not None else len(values.labels)
    if isinstance(values, Integral):
        return int(values), int(values)
    if isinstance(values, str | type) or not hasattr(values, "__len__"):
        raise PlanError(
            "Expected a number of values, a list of values or a mechanism, got {type}.",
            hint="Pass values=3, values=['flu', 'covid', 'none'] or values=rx.Numeric(0, 120).",
            type=values.__name__ if isinstance(values, type) else type(values).__name__,
        )
    return len(values), len(values)


def _read_n(n: Any) -> int:
    number = _read_number(n, "n", "10_000")
    if not number.is_integer():
        raise PlanError("`n` must be a whole number, not {n!r}.", hint="Pass a number such as n=10_000.", n=n)
    return int(n)


def _read_number(number: Any, name: str, example: str) -> float:
    if not isinstance(number, Real) or isinstance(number, bool):
        raise PlanError(
            "`{name}` must be a number, not {number!r}.",
            hint="Pass {name}={example}.",
            name=name,
            number=number,
            example=example,
        )
    return float(number)


def _read_schedule(schedule: Any, level: Decimal | None) -> list[Any]:
    if level is not None:
        return [level]
    if isinstance(schedule, str) or not isinstance(schedule, Iterable):
        raise PlanError(
            "`schedule` must be a list of levels or a schedule.",
            hint="Pass schedule=[0.5, 1, 2] or schedule=rx.schedules.Linear(0.5, 2, steps=4).",
        )
    return list(schedule)
