"""Plans of releases: two of n, epsilon and margin of error give the third, before anything is released.

A plan follows from the noise alone and never looks at a report. So the intervals stay valid if you stop at a level that
a plan chose.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, Context, Decimal
from functools import cache
from math import exp, log, prod, sqrt
from numbers import Integral
from statistics import NormalDist
from typing import Any, Literal, TypedDict, Unpack

from relaxdp.errors import PlanError
from relaxdp.estimation.display import describe_risk, format_html_table, format_risk, format_table
from relaxdp.estimation.mechanism_choice import (
    NUMBER_MECHANISMS,
    PlannedReports,
    VariancePerReport,
    compute_pair_variance_per_report,
    plan_reports,
    rank_mechanisms,
    rank_number_mechanisms,
)
from relaxdp.estimation.result import (
    About,
    check_about,
    check_between,
    check_whole_number,
    compute_tail_probability,
    count_comparisons,
)
from relaxdp.lazy_imports import scipy
from relaxdp.mechanisms.base import Mechanism
from relaxdp.mechanisms.registry import create_mechanism, get_mechanism_title, get_short_name, parse_mechanism_name
from relaxdp.mechanisms.square_wave import BINS, SquareWave
from relaxdp.theory.epsilon import MAX_VALUES, Epsilon, as_epsilon, format_epsilon

DIGITS = 4
"""The number of significant digits of a planned epsilon."""
MAX_N = 10**15
"""Larger than every population, and still exact in floats."""
USUAL_LEVELS = tuple(map(Decimal, ("0.1", "0.2", "0.5", "1", "2", "3", "4", "6")))
"""The levels of the table for a plan without an epsilon."""


@dataclass(frozen=True, slots=True)
class PlannedLevel:
    """One level of a plan."""

    epsilon: Decimal
    margin: float
    """The expected margin of error."""
    is_precise: bool | None
    """Whether that is at most the wanted margin; None if you stated no margin."""
    mechanism: str | None = None
    """The best mechanism, where you left it open: the name that `mechanism=` takes."""


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
        """The best mechanism, if the plan has one level and you left it open: the name that `mechanism=` takes."""
        return self.levels[0].mechanism if len(self.levels) == 1 else None

    @property
    def first_precise_level(self) -> PlannedLevel | None:
        """The first level that is as precise as you asked for, if there is one."""
        return next((level for level in self.levels if level.is_precise), None)

    def _format_rows(self) -> tuple[list[str], list[list[str]]]:
        rows = [
            [
                f"{self.n:,}",
                format_epsilon(level.epsilon),
                f"\N{PLUS-MINUS SIGN}{level.margin:.3g}",
                format_risk(self.columns * level.epsilon, self.answers),
                get_mechanism_title(level.mechanism or ""),
            ]
            for level in self.levels
        ]
        headings = ["n", "epsilon", "margin of error", "a guess is right", "mechanism"]
        width = 5 if any(row[4] for row in rows) else 4
        return headings[:width], [row[:width] for row in rows]

    def _format_notes(self) -> list[str]:
        notes = [f"Margins of {100 * self.confidence_level:g} % confidence intervals."]
        if self.epsilon is not None:
            both = " of both columns" if self.columns > 1 else ""
            risk = describe_risk(self.columns * self.epsilon, self.answers, both)
            notes = [f"{notes[0]} Computed: {self.found}.", risk]
        return notes

    def __repr__(self) -> str:
        return "\n".join([format_table(*self._format_rows(), left=(4,)), *self._format_notes()])

    def _repr_html_(self) -> str:
        return format_html_table(*self._format_rows(), self._format_notes())


def plan(
    *,
    values: Mechanism | Sequence[Any] | int | None = None,
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
    crosstab: Mechanism | Sequence[Any] | int | None = None,
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
        100,000   0.6113            ±0.01    at most 64.9 %  k-ary randomized response
        Margins of 95 % confidence intervals. Computed: epsilon.
        Risk at epsilon 0.6113: a guess between two answers is right at most 64.9 % of the time, instead of 50 %.
        >>> plan(range=(0, 100), n=10_000, epsilon=4).mechanism
        'wave'
    """
    planned, answers = _parse_values(values, range, bins)
    size = None if n is None else _parse_n(n)
    level = None if epsilon is None else as_epsilon(epsilon)
    options: PlanOptions = {
        "share": share,
        "confidence_level": confidence_level,
        "about": about,
        "simultaneous": simultaneous,
        "mechanism": mechanism,
        "crosstab": None if crosstab is None else _parse_values(crosstab, None, bins)[0],
    }
    found: Literal["n", "epsilon", "margin"] = "margin"
    given = [level is not None or schedule is not None, size is not None, margin is not None]
    if level is not None and schedule is not None:
        raise PlanError(
            "`epsilon` and `schedule` cannot be combined.",
            hint="Pass epsilon=1 for one level, or schedule=[0.5, 1, 2] for several.",
        )
    if schedule is not None and size is None:
        raise PlanError("`schedule` needs `n`, the number of individuals.", hint="Pass n= (--n), such as n=10_000.")
    if schedule is None and given.count(True) != 2 and given != [False, True, False]:
        raise PlanError(
            "Expected two of `n`, `epsilon` and `margin`, from which the third is computed; got {given}.",
            hint="Pass two of margin= (--margin), n= (--n) and epsilon= (--epsilon), such as n=10_000 and epsilon=1.",
            given=("none", "one", "two", "all three")[given.count(True)],
        )
    if size is None and margin is not None and level is not None:
        found, size = "n", find_n(margin, epsilon=level, planned_values=planned, **options)
    elif level is None and schedule is None and margin is not None and size is not None:
        found, level = "epsilon", find_epsilon(margin, n=size, planned_values=planned, **options)
    assert size is not None  # noqa: S101
    if level is not None:
        levels = plan_levels([level], n=size, planned_values=planned, **options)
    elif schedule is not None:
        levels = plan_levels(_parse_schedule(schedule), n=size, planned_values=planned, margin=margin, **options)
    else:  # each level with its own best mechanism
        levels = [plan_levels([each], n=size, planned_values=planned, **options)[0] for each in USUAL_LEVELS]
    return Plan(size, tuple(levels), found, answers, confidence_level, 1 if crosstab is None else 2)


def _parse_values(values: Any, range: Any, bins: int) -> tuple[PlannedValues, int]:
    """Return the values or range to plan for, and the number of possible answers."""
    if (values is None) == (range is None):
        raise PlanError(
            "Expected either `values` or `range`, got {given}.",
            hint="Pass the possible answers, such as values=['flu', 'covid', 'none'], or range=(0, 120) for numbers.",
            given="neither" if values is None else "both",
        )
    if range is not None:
        if not isinstance(range, Sequence) or isinstance(range, str) or len(range) != 2:
            raise PlanError(
                "`range` must be two numbers, the smallest and the largest one.", hint="Pass range=(0, 120)."
            )
        return PlannedRange(range[0], range[1], bins), 2
    if isinstance(values, Mechanism):
        return values, 2 if values.mean_weights is not None else len(values.labels)
    if isinstance(values, Integral):
        return int(values), int(values)
    if isinstance(values, str | type) or not hasattr(values, "__len__"):
        raise PlanError(
            "`values` must be a number of values, a list of values or a mechanism, got {type}.",
            hint="Pass values=3, values=['flu', 'covid', 'none'] or values=rx.Numeric(0, 120).",
            type=values.__name__ if isinstance(values, type) else type(values).__name__,
        )
    return len(values), len(values)


def _parse_n(n: Any) -> int:
    n = int(n) if isinstance(n, float) and n.is_integer() else n
    check_whole_number(PlanError, "n", n, 1, MAX_N, "a number such as n=10_000 (--n 10000)")
    return int(n)


def _parse_schedule(schedule: Any) -> list[Any]:
    if isinstance(schedule, str) or not isinstance(schedule, Iterable):
        raise PlanError(
            "`schedule` must be a list of levels or one of rx.schedules, got {type}.",
            hint="Pass schedule=[0.5, 1, 2] or schedule=rx.schedules.Linear(0.5, 2, steps=4).",
            type=type(schedule).__name__,
        )
    return list(schedule)


class PlanOptions(TypedDict, total=False):
    """The options of a plan: its interval, its mechanism and its crosstab."""

    share: float | None
    """The share that a value is expected to have. None plans for the worst case."""
    confidence_level: float
    about: About
    simultaneous: bool
    mechanism: str | None
    """The mechanism for a number of values: a name, "auto" for the best one at the last epsilon, None for k-ary
    randomized response."""
    crosstab: PlannedValues | None
    """A second column of the same individuals: the plan is for a pair of values of a crosstab, both at this epsilon."""


def find_margin(*, n: int, planned_values: PlannedValues, epsilon: Epsilon, **options: Unpack[PlanOptions]) -> float:
    """Return the margin of error that `Frequency.interval` will have, before it is cut at 0 and 1; at most 0.5.

    That is a quantile times the standard error, plus half a report because counts are whole numbers. With `share` None
    it is the largest one for any share, so it is a function of n, of the number of values and of epsilon alone.

    Claim: within 2 % of the mean margin of the intervals with 2,000 individuals; without a share, up to epsilon 6, no
    interval is wider by more than 1 % from n = 1,000 on (6 % from 100 on); tests/unit/estimation/test_planning.py.

    >>> round(find_margin(n=100_000, planned_values=5, epsilon=1), 5)
    0.01191
    >>> round(find_margin(n=100_000, planned_values=5, epsilon=1, share=0.1), 5)
    0.00903
    """
    return plan_levels([epsilon], n=n, planned_values=planned_values, **options)[0].margin


def compute_max_margin(planned_values: PlannedValues) -> float:
    """Return the largest margin of error, that without any information: 0.5 for shares, half the range for a mean."""
    return _IntervalPlan(planned_values).max_margin


def find_epsilon(margin: float, *, n: int, planned_values: PlannedValues, **options: Unpack[PlanOptions]) -> Decimal:
    """Return the smallest epsilon, rounded up to four significant digits, that gives this margin.

    >>> find_epsilon(0.01, n=100_000, planned_values=5)
    Decimal('1.174')
    """
    plan, size = _IntervalPlan(planned_values, **options), _parse_n(n)
    plan.check_margin(margin)
    low, high = plan.column.epsilon_search_bounds
    if (least_margin := plan.compute_margin(size, Decimal(high))) > margin:
        raise PlanError(
            "No epsilon gives a margin of error of {margin:g} with {n:,} individuals: even without noise, the margin "
            "is {least_margin:.3g}.",
            hint="Plan for more individuals, or for a margin above {least_margin:.3g}.",
            margin=margin,
            n=n,
            least_margin=least_margin,
        )
    # The margin is almost a power of epsilon. In logarithms the search needs few steps.
    root = scipy.optimize.brentq(
        lambda x: log(plan.compute_margin(size, as_epsilon(exp(x))) / margin), log(low), log(high)
    )
    context = Context(prec=DIGITS, rounding=ROUND_CEILING)
    epsilon = context.create_decimal_from_float(exp(root))
    while plan.compute_margin(size, epsilon) > margin:
        epsilon = context.next_plus(epsilon)
    return as_epsilon(epsilon)


def find_n(margin: float, *, epsilon: Epsilon, planned_values: PlannedValues, **options: Unpack[PlanOptions]) -> int:
    """Return the smallest number of individuals that gives this margin.

    >>> find_n(0.01, epsilon=1, planned_values=5)
    141860
    """
    plan, exact = _IntervalPlan(planned_values, **options), as_epsilon(epsilon)
    plan.check_margin(margin)
    noise = plan.compute_variance_per_report(exact)
    n = bisect_left(range(MAX_N + 1), True, lo=1, key=lambda n: plan.compute_margin_from_variance(noise, n) <= margin)
    if n > MAX_N:
        raise PlanError(
            "No number of individuals up to 10^15 gives a margin of error of {margin:g} at epsilon {epsilon}.",
            hint="Pass a larger epsilon= (--epsilon), or a larger margin= (--margin).",
            margin=margin,
            epsilon=format_epsilon(exact),
        )
    return n


def plan_levels(
    schedule: Iterable[Epsilon],
    *,
    n: int,
    planned_values: PlannedValues,
    margin: float | None = None,
    **options: Unpack[PlanOptions],
) -> list[PlannedLevel]:
    """Return the expected margin of error at every level of a schedule, with the mechanism that is best at the last.

    >>> [level.is_precise for level in plan_levels([0.1, 0.5, 1, 2], n=100_000, planned_values=5, margin=0.012)]
    [False, False, True, True]
    """
    size, levels = _parse_n(n), list(map(as_epsilon, schedule))
    last = max(levels, default=None)
    plan = _IntervalPlan(planned_values, last, **options)
    if margin is not None:
        plan.check_margin(margin)
    name = None if last is None else plan.column.choose_name(last)
    name = None if name is None else get_short_name(name)
    margins = [min(plan.max_margin, plan.compute_margin(size, level)) for level in levels]
    return [
        PlannedLevel(level, expected, None if margin is None else expected <= margin, name)
        for level, expected in zip(levels, margins, strict=True)
    ]


@dataclass(frozen=True)
class PlannedRange:
    """A range of numbers whose mechanism is still open, or known by its name."""

    low: float
    high: float
    bins: int = BINS

    def __post_init__(self) -> None:
        for name in NUMBER_MECHANISMS:  # reject an invalid range or number of bins
            _create_range_mechanism(name, self, Decimal(1))


@cache
def _create_range_mechanism(name: str, bounds: PlannedRange, last_epsilon: Decimal) -> Mechanism:
    options = {"bins": bounds.bins} if name == SquareWave.name else {}
    return create_mechanism(name, range=(bounds.low, bounds.high), options=options, epsilon=last_epsilon)


PlannedValues = int | PlannedRange | Mechanism
"""The number of values of a categorical answer, a range of numbers, or the mechanism that will release them."""


class PlannedMechanism:
    """The mechanism of a planned column: a given one, one that is known by its name, or the best one."""

    def __init__(self, values: PlannedValues, name: str | None) -> None:
        self.values = values
        self.n_values = (
            values if isinstance(values, int) else 2 if isinstance(values, PlannedRange) else len(values.labels)
        )
        check_whole_number(PlanError, "values", self.n_values, 2, MAX_VALUES, "the number of answers, such as values=3")
        if isinstance(values, Mechanism) and name not in (None, "auto"):
            raise PlanError(
                "`values` is a mechanism already, but `mechanism` names one too: {name!r}.",
                hint="Leave out `mechanism`, or pass the number of values, such as values=3.",
                name=name,
            )
        self._name = parse_mechanism_name(name or "") or ("auto" if isinstance(values, PlannedRange) else "categorical")

    def choose_name(self, last_epsilon: Decimal) -> str | None:
        """Return the name of the best mechanism for a last epsilon; None if the mechanism was not left open."""
        if self._name != "auto" or isinstance(self.values, Mechanism):
            return None
        if isinstance(self.values, PlannedRange):
            return rank_number_mechanisms(last_epsilon).best
        return rank_mechanisms(self.values, last_epsilon).best

    def plan_reports(self, last_epsilon: Decimal) -> PlannedReports:
        if isinstance(self.values, Mechanism):
            return PlannedReports(self.values)
        name = self.choose_name(last_epsilon) or self._name
        if isinstance(self.values, PlannedRange):
            return PlannedReports(_create_range_mechanism(name, self.values, last_epsilon))
        return plan_reports(name, self.values, last_epsilon)

    @property
    def epsilon_search_bounds(self) -> tuple[float, int]:
        """The bounds of a search for epsilon: below them is pure noise, and above them the threshold stays the same."""
        if isinstance(self.values, PlannedRange):
            return 1e-6, 100
        if isinstance(self.values, Mechanism):
            return self.values.alphabet * 1e-17, 2 * (46 + self.values.alphabet.bit_length())
        # Bits share an epsilon, so their smallest one is larger.
        low = self.n_values * 1e-19 if self._name == "categorical" else 1e-6
        return low, 46 + self.n_values.bit_length()


class _IntervalPlan:
    """The expected margin of error of an interval: of a share, of a mean, or of the share of a pair of values."""

    def __init__(
        self,
        values: PlannedValues,
        last_epsilon: Decimal | None = None,
        *,
        share: float | None = None,
        confidence_level: float = 0.95,
        about: About = "sample",
        simultaneous: bool = False,
        mechanism: str | None = None,
        crosstab: PlannedValues | None = None,
    ) -> None:
        self.column = PlannedMechanism(values, mechanism)
        self._columns = [self.column, *([] if crosstab is None else [PlannedMechanism(crosstab, mechanism)])]
        self._last_epsilon = last_epsilon
        weights = [each.plan_reports(last_epsilon or Decimal(1)).mean_weights for each in self._columns]
        mean_weights = weights[0]
        if crosstab is not None and any(weights):
            raise PlanError(
                "A crosstab needs two columns with declared values, but a range of numbers is given for one of them.",
                hint="Pass how many values each column has: values=4, crosstab=3 (--values 4 --crosstab 3).",
            )
        has_share = mean_weights is None or mean_weights.absent is not None  # the share of missing numbers
        if share is not None and not has_share:
            raise PlanError("`share` is for values, not for a mean of numbers.", hint="Leave out share= (--share).")
        if share is not None and share not in (0, 1):
            check_between(PlanError, "share", share, 0, 1, "share=0.2, or leave it out to plan for the worst case")
        check_about(about)
        self.max_margin = 0.5 if mean_weights is None else (mean_weights.maximum - mean_weights.minimum) / 2
        """The margin of error without any information."""
        exclusive = not isinstance(values, Mechanism) or values.joint == "exclusive"
        n_values = prod(each.n_values for each in self._columns)
        questions = count_comparisons(n_values, exclusive=exclusive) if simultaneous and mean_weights is None else 1
        self._quantile = -NormalDist().inv_cdf(compute_tail_probability(confidence_level, questions))
        self._share, self._about = share, about

    def check_margin(self, margin: float) -> None:
        example = f"a margin such as margin={self.max_margin / 50:g}"
        check_between(PlanError, "margin", margin, 0, self.max_margin, example)

    def compute_margin(self, n: int, epsilon: Decimal) -> float:
        return self.compute_margin_from_variance(self.compute_variance_per_report(epsilon), n)

    def compute_margin_from_variance(self, report_variance: VariancePerReport, n: int) -> float:
        return self._quantile * sqrt(report_variance.variance) / sqrt(n) + report_variance.half_step / n

    def compute_variance_per_report(self, epsilon: Decimal) -> VariancePerReport:
        reports = [each.plan_reports(self._last_epsilon or epsilon) for each in self._columns]
        if len(reports) == 1:
            return reports[0].compute_variance_per_report(epsilon, self._about, self._share)
        rows, columns = (each.compute_noise_and_gain(epsilon) for each in reports)
        return compute_pair_variance_per_report(rows, columns, self._about, self._share)
