"""Plans: two of n, epsilon and margin of error give the third, before anything is released."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, Context, Decimal
from functools import cache, cached_property
from math import ceil, exp, isfinite, log, sqrt
from numbers import Integral, Real
from typing import Any, Literal, Self, TypedDict, Unpack

from relaxdp.errors import PlanError
from relaxdp.estimation.display import describe_risk, describe_short_risk, format_html, format_table
from relaxdp.estimation.mechanism_choice import VALUE_MECHANISMS, rank_mechanisms, rank_number_mechanisms
from relaxdp.estimation.report_variance import Spread, categorical_support, pair_spread, spread_of
from relaxdp.estimation.result import About, check_about, questions_of, tail_of
from relaxdp.lazy_imports import scipy
from relaxdp.mechanisms.base import Measure, Mechanism
from relaxdp.mechanisms.registry import create_mechanism
from relaxdp.mechanisms.square_wave import BINS, SquareWave
from relaxdp.theory.epsilon import MAX_VALUES, Epsilon, as_epsilon, format_epsilon
from relaxdp.theory.randomized_response import SupportProbabilities


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
                format_epsilon(level.epsilon),
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


@dataclass(frozen=True)
class Numbers:
    """Numbers in a range whose encoding is still open, or known by its name."""

    low: float
    high: float
    bins: int = BINS

    def __post_init__(self) -> None:
        """Refuse what is no range, and what are no bins."""
        self.encoded("numeric", Decimal(1))
        self.encoded("wave", Decimal(1))

    def encoded(self, name: str, last: Decimal) -> Mechanism:
        """Return the encoding of this name, for a last epsilon."""
        return _of_numbers(name, self.low, self.high, self.bins if name == SquareWave.name else None, last)

    @cached_property
    def measure(self) -> Measure | None:
        """What is answered: a mean within the range."""
        return self.encoded("numeric", Decimal(1)).measure


@cache
def _of_numbers(name: str, low: float, high: float, bins: int | None, last: Decimal) -> Mechanism:
    return create_mechanism(name, range=(low, high), options={} if bins is None else {"bins": bins}, epsilon=last)


Planned = int | Numbers | Mechanism
"""How many values a categorical answer can have, numbers in a range, or the mechanism that will release it."""


class Side:
    """One column that is planned: so many values, however they are encoded, or what a mechanism answers."""

    def __init__(self, of: Planned, encoding: str | None) -> None:
        self.numbers = of if isinstance(of, Numbers) else None
        self.encoding: Mechanism | None = None if isinstance(of, int | Numbers) else of
        self.values = of if isinstance(of, int) else 2 if isinstance(of, Numbers) else len(of.labels)
        if not 2 <= self.values <= MAX_VALUES:
            raise PlanError(
                "The number of values must be from 2 to 2**32, not {values}.",
                hint="Pass the number of possible answers, such as values=3.",
                values=self.values,
            )
        if self.encoding is not None and encoding not in (None, "auto"):
            raise PlanError(
                "`values` is a mechanism already, so no other one can be named.",
                hint="Pass the number of values, such as values=3, to name a mechanism.",
            )
        self.name = encoding or ("categorical" if self.numbers is None else "auto")

    @property
    def measure(self) -> Measure | None:
        """What is answered is a mean; None where it is shares."""
        if self.numbers is not None:
            return self.numbers.measure
        return None if self.encoding is None else self.encoding.measure

    def named_at(self, epsilon: Decimal) -> str | None:
        """Return the encoding that is chosen for a last epsilon; None where it was not left open."""
        if self.encoding is not None or self.name != "auto":
            return None
        return (rank_mechanisms(self.values, epsilon) if self.numbers is None else rank_number_mechanisms(epsilon)).best

    def encoded(self, last: Decimal) -> Mechanism | None:
        """Return the encoding for a last epsilon; None for a number of values."""
        return self.encoding if self.numbers is None else self.numbers.encoded(self.named_at(last) or self.name, last)

    def support(self, level: Decimal, last: Decimal) -> SupportProbabilities:
        """Return the chances of a report at a level, where the encoding is that of the last epsilon."""
        fixed = self.encoded(last)
        if fixed is not None:
            return fixed.support(fixed.level(level).retention)
        name = self.named_at(last) or self.name
        if name == "categorical":
            return categorical_support(level, self.values)
        encoding = made_for(name, self.values, last)
        return encoding.support(encoding.level(level).retention)


@cache
def made_for(name: str, values: int, last: Decimal) -> Mechanism:
    """Return an encoding of so many values, or of fewer that are as good."""
    # Bits and hashes support a value with the same chances however many others there are.
    few = min(values, _FEW) if name in VALUE_MECHANISMS else values
    return create_mechanism(name, values=range(few), epsilon=last)


_FEW = 64


MAX_MARGIN = 0.5
"""An interval from 0 to 1: the margin of knowing nothing."""
DIGITS = 4
"""How many significant digits a planned epsilon has."""
MAX_N = 10**15
"""More than there are, and still exact in floats."""


USUAL_LEVELS = tuple(map(Decimal, ("0.1", "0.2", "0.5", "1", "2", "3", "4", "6")))
"""The levels of the table that is shown where nobody says an epsilon."""


class PlanOptions(TypedDict, total=False):
    """Which interval is planned: the options of `Frequency.interval`, and what is known of the share."""

    share: float | None
    """The share that a value is expected to have. None plans for the worst: whatever it is, the interval will do."""
    confidence_level: float
    about: About
    simultaneous: bool
    encoding: str | None
    """How a number of values is encoded: by a name, "auto" for the best one at the last epsilon, None as they are."""
    crosstab: Planned | None
    """A second column of the same individuals: the plan is for a pair of values of a crosstab, both at this epsilon."""


@dataclass(frozen=True, slots=True)
class Step:
    """One level of a schedule, and how precise the answer will be there."""

    epsilon: Decimal
    margin: float
    met: bool | None
    """Whether that is at most the wanted margin; None where none was named."""
    encoding: str | None = None
    """The encoding that it is planned with, where it was left open."""


def find_margin(*, n: int, values: Planned, epsilon: Epsilon, **options: Unpack[PlanOptions]) -> float:
    """Return the margin that `Frequency.interval` will have, before it is cut at 0 and 1; at most 0.5.

    That is a quantile times the standard error, plus half a report because counts are whole numbers. With `share` None
    it is the largest one for any share, so it is a function of n, of the number of values and of epsilon alone.

    Claim: within 2 % of the mean margin of the intervals with 2,000 individuals; without a share, up to epsilon 6, no
    interval is wider by more than 1 % from n = 1,000 on (6 % from 100 on); tests/unit/estimation/test_planning.py.

    >>> round(find_margin(n=100_000, values=5, epsilon=1), 5)
    0.01191
    >>> round(find_margin(n=100_000, values=5, epsilon=1, share=0.1), 5)
    0.00903
    """
    _check_n(n)
    return _find_margin(values, n, as_epsilon(epsilon), options)


def compute_max_margin(values: Planned) -> float:
    """Return the margin of knowing nothing: of shares 0.5, of a mean half its range."""
    return _PlannedInterval(values).max_margin


def find_epsilon(margin: float, *, n: int, values: Planned, **options: Unpack[PlanOptions]) -> Decimal:
    """Return the smallest epsilon, rounded up to four significant digits, that gives this margin.

    >>> find_epsilon(0.01, n=100_000, values=5)
    Decimal('1.174')
    """
    _check_n(n)
    plan = _PlannedInterval(values, **options)
    plan.check_target(margin)
    least, most = plan.possible_epsilons
    floor = plan.compute_margin(n, Decimal(most))
    if floor > margin:
        raise PlanError(
            "No epsilon gives a margin of error of {margin:g} with {n:,} individuals: even without noise it is "
            "{least_margin:.3g}.",
            hint="Plan for more individuals, or a larger margin.",
            margin=margin,
            n=n,
            least_margin=floor,
        )
    # The margin falls as epsilon grows, almost as a power of it: in logarithms the search is over in a few steps.
    root = scipy.optimize.brentq(
        lambda x: log(plan.compute_margin(n, as_epsilon(exp(x))) / margin), log(least), log(most)
    )
    context = Context(prec=DIGITS, rounding=ROUND_CEILING)
    epsilon = context.create_decimal_from_float(exp(root))
    while plan.compute_margin(n, epsilon) > margin:
        epsilon = context.next_plus(epsilon)
    return as_epsilon(epsilon)


def find_n(margin: float, *, epsilon: Epsilon, values: Planned, **options: Unpack[PlanOptions]) -> int:
    """Return the smallest number of individuals that gives this margin.

    >>> find_n(0.01, epsilon=1, values=5)
    141860
    """
    plan, exact = _PlannedInterval(values, **options), as_epsilon(epsilon)
    plan.check_target(margin)
    # spread / sqrt(n) + step / n = margin, solved for 1 / sqrt(n) in the form without cancellation.
    spread, step = plan.spread_and_step(exact)
    inverse_root = 2 * margin / (spread + sqrt(spread**2 + 4 * step * margin))
    if inverse_root**-2 > MAX_N:
        raise PlanError(
            "No number of individuals up to 10^15 gives a margin of error of {margin:g} at epsilon {epsilon}.",
            hint="Plan for a larger epsilon, or a larger margin.",
            margin=margin,
            epsilon=format_epsilon(exact),
        )
    n = max(1, ceil(inverse_root**-2) - 1)
    while plan.compute_margin(n, exact) > margin:
        n += 1
    return n


def compute_steps(
    schedule: Iterable[Epsilon],
    *,
    n: int,
    values: Planned,
    margin: float | None = None,
    **options: Unpack[PlanOptions],
) -> list[Step]:
    """Return how precise the answer will be at every level of a schedule, and where `margin` is met.

    >>> [step.met for step in compute_steps([0.1, 0.5, 1, 2], n=100_000, values=5, margin=0.012)]
    [False, False, True, True]
    """
    _check_n(n)
    levels = list(map(as_epsilon, schedule))
    plan = _PlannedInterval(values, **options).planned_for(max(levels, default=None))
    if margin is not None:
        plan.check_target(margin)
    return [_step(plan, n, level, margin) for level in levels]


def _step(plan: _PlannedInterval, n: int, level: Decimal, target: float | None) -> Step:
    width = min(plan.max_margin, plan.compute_margin(n, level))
    return Step(level, width, None if target is None else width <= target, plan.encoding_at(level))


class _PlannedInterval:
    """An interval that is planned: of one of so many values, of what a mechanism answers, or of a pair of values."""

    def __init__(
        self,
        of: Planned,
        *,
        share: float | None = None,
        confidence_level: float = 0.95,
        about: About = "sample",
        simultaneous: bool = False,
        encoding: str | None = None,
        crosstab: Planned | None = None,
    ) -> None:
        self._side = Side(of, encoding)
        self._last: Decimal | None = None
        self._other = None if crosstab is None else Side(crosstab, encoding)
        self._measure = self._side.measure
        if self._other is not None and (self._measure or self._other.measure):
            raise PlanError(
                "A crosstab needs two columns with declared values.", hint="Pass crosstab= for values only."
            )
        has_share = self._measure is None or self._measure.absent is not None  # of those that are missing
        if share is not None and (not has_share or not 0 <= share <= 1):
            raise PlanError(
                "`share` must be between 0 and 1, not {share}, and a mean has none.",
                hint="Pass a share such as 0.2, or leave it out.",
                share=share,
            )
        check_about(about)
        exclusive = self._side.encoding is None or self._side.encoding.joint == "exclusive"
        values = self._side.values * (1 if self._other is None else self._other.values)
        questions = questions_of(values, exclusive=exclusive) if simultaneous and self._measure is None else 1
        self._quantile = -float(scipy.special.ndtri(tail_of(confidence_level, questions)))
        self._share, self._about = share, about

    def planned_for(self, last: Decimal | None) -> Self:
        """Return the plan with the encoding of this last epsilon at every level."""
        self._last = last
        return self

    def encoding_at(self, epsilon: Decimal) -> str | None:
        """Return the encoding that is chosen, where it was left open."""
        return self._side.named_at(self._last or epsilon)

    @property
    def max_margin(self) -> float:
        """The margin of knowing nothing."""
        return MAX_MARGIN if self._measure is None else (self._measure.most - self._measure.least) / 2

    def check_target(self, margin: float) -> None:
        """Reject a margin that no interval has."""
        if not (isfinite(margin) and 0 < margin < self.max_margin):
            raise PlanError(
                "The margin must lie between 0 and {max_margin:g}, not {margin}.",
                hint="Pass a margin such as {example:g}.",
                max_margin=self.max_margin,
                example=self.max_margin / 50,
                margin=margin,
            )

    def compute_margin(self, n: int, epsilon: Decimal) -> float:
        spread, step = self.spread_and_step(epsilon)
        return spread / sqrt(n) + step / n

    def spread_and_step(self, epsilon: Decimal) -> tuple[float, float]:
        """Return what is divided by the root of n, and what by the number itself."""
        found = self._spread(epsilon, self._last or epsilon)
        return self._quantile * sqrt(found.variance), found.step

    def _spread(self, level: Decimal, last: Decimal) -> Spread:
        support = self._side.support(level, last)
        if self._other is None:
            fixed = self._side.encoded(last)
            return spread_of(support, self._about, self._share, None if fixed is None else fixed.measure)
        return pair_spread(support, self._other.support(level, last), self._about, self._share)

    @property
    def possible_epsilons(self) -> tuple[float, int]:
        """Two epsilons between which all others lie that differ in their threshold and are not pure noise."""
        if self._side.numbers is not None:
            return 1e-6, 100
        if self._side.encoding is None:
            least, most = self._side.values * 1e-19, 46 + self._side.values.bit_length()
            return (least, most) if self._side.name == "categorical" else (1e-6, most)  # bits share an epsilon out
        alphabet = self._side.encoding.alphabet
        return alphabet * 1e-17, 2 * (46 + alphabet.bit_length())


def _find_margin(values: Planned, n: int, epsilon: Decimal, options: PlanOptions) -> float:
    plan = _PlannedInterval(values, **options)
    return min(plan.max_margin, plan.compute_margin(n, epsilon))


def _check_n(n: int) -> None:
    if not isinstance(n, int) or not 1 <= n <= MAX_N:
        raise PlanError(
            "n must be a whole number from 1 to 10^15, not {n}.",
            hint="Pass a number such as n=10_000 (--n 10000).",
            n=n,
        )
