"""Planning: how precise an answer will be, before anything is released, from the noise alone.

Nothing here looks at reports. That is why a plan, and a stop that follows from it, leave every interval as honest as it
was: the level at which one stops is known beforehand.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from decimal import ROUND_CEILING, Context, Decimal
from math import ceil, exp, isfinite, log, sqrt
from typing import Literal, Self, TypedDict, Unpack

from relaxdp.encodings.wave import BINS
from relaxdp.errors import PlanError, refusing
from relaxdp.estimation import special
from relaxdp.estimation.result import About, check_about, questions_of, tail_of
from relaxdp.estimation.sides import Numbers, Planned, Side
from relaxdp.estimation.spreads import Spread, pair_spread, spread_of
from relaxdp.law.epsilon import Epsilon, as_epsilon, epsilon_text
from relaxdp.lazy import scipy
from relaxdp.remedies import IN_PYTHON

WIDEST = 0.5
"""An interval from 0 to 1: the half-width of knowing nothing."""
DIGITS = 4
"""How many significant digits a planned epsilon has."""
MOST_OBJECTS = 10**15
"""More than there are, and still exact in floats."""


USUAL = tuple(map(Decimal, ("0.1", "0.2", "0.5", "1", "2", "3", "4", "6")))
"""The levels of the table that is shown where nobody says an epsilon."""


class Asked(TypedDict, total=False):
    """Which interval is planned: the options of `Frequency.interval`, and what is known of the share."""

    share: float | None
    """The share that a value is expected to have. None plans for the worst: whatever it is, the interval will do."""
    confidence_level: float
    about: About
    simultaneous: bool
    encoding: str | None
    """How a number of values is encoded: by a name, "auto" for the best one at the last epsilon, None as they are."""
    cross: Planned | None
    """A second column of the same objects, at the same epsilon: then a pair of values of a two-way table is planned."""


@dataclass(frozen=True, slots=True)
class Step:
    """One level of a schedule, and how precise the answer will be there."""

    epsilon: Decimal
    half_width: float
    met: bool | None
    """Whether that is at most the wanted half-width; None where none was named."""
    encoding: str | None = None
    """The encoding that it is planned with, where it was left open."""


def half_width(*, objects: int, values: Planned, epsilon: Epsilon, **asked: Unpack[Asked]) -> float:
    """Return the half-width that `Frequency.interval` will have, before it is cut at 0 and 1; at most 0.5.

    That is a quantile times the standard error, plus half a report because counts are whole numbers. With `share` None
    it is the largest one for any share, so it is a function of the number of objects, of values and of epsilon alone.

    Claim: within 2 % of the mean half-width of the intervals with 2,000 objects; without a share, up to epsilon 6, no
    interval is wider by more than 1 % from 1,000 objects on (6 % from 100 on); tests/unit/estimation/test_planning.py.

    >>> round(half_width(objects=100_000, values=5, epsilon=1), 5)
    0.01191
    >>> round(half_width(objects=100_000, values=5, epsilon=1, share=0.1), 5)
    0.00903
    """
    _check_objects(objects)
    return _half_width(values, objects, as_epsilon(epsilon), asked)


def widest(values: Planned) -> float:
    """Return the half-width of knowing nothing: of shares 0.5, of a mean half its range."""
    return _Plan(values).widest


def epsilon_for(half_width: float, *, objects: int, values: Planned, **asked: Unpack[Asked]) -> Decimal:
    """Return the smallest epsilon, rounded up to four significant digits, that gives this half-width.

    >>> epsilon_for(0.01, objects=100_000, values=5)
    Decimal('1.174')
    """
    _check_objects(objects)
    plan = _Plan(values, **asked)
    plan.check_target(half_width)
    least, most = plan.possible_epsilons
    floor = plan.half_width(objects, Decimal(most))
    if floor > half_width:
        raise PlanError(
            "no epsilon gives a half-width of {half_width:g} with {objects:,} objects: even without noise it "
            "is {least_half_width:.3g}. More objects are needed.",
            half_width=half_width,
            objects=objects,
            least_half_width=floor,
        )
    # The half-width falls as epsilon grows, almost as a power of it: in logarithms the search is over in a few steps.
    root = scipy.optimize.brentq(
        lambda x: log(plan.half_width(objects, as_epsilon(exp(x))) / half_width), log(least), log(most)
    )
    context = Context(prec=DIGITS, rounding=ROUND_CEILING)
    epsilon = context.create_decimal_from_float(exp(root))
    while plan.half_width(objects, epsilon) > half_width:
        epsilon = context.next_plus(epsilon)
    return as_epsilon(epsilon)


def objects_for(half_width: float, *, epsilon: Epsilon, values: Planned, **asked: Unpack[Asked]) -> int:
    """Return the smallest number of objects that gives this half-width.

    >>> objects_for(0.01, epsilon=1, values=5)
    141860
    """
    plan, exact = _Plan(values, **asked), as_epsilon(epsilon)
    plan.check_target(half_width)
    # spread / sqrt(n) + step / n = half_width, solved for 1 / sqrt(n) in the form without cancellation.
    spread, step = plan.spread_and_step(exact)
    inverse_root = 2 * half_width / (spread + sqrt(spread**2 + 4 * step * half_width))
    if inverse_root**-2 > MOST_OBJECTS:
        raise PlanError(
            "no number of objects up to 10^15 gives a half-width of {half_width:g} at epsilon {epsilon}. A "
            "larger epsilon is needed.",
            half_width=half_width,
            epsilon=epsilon_text(exact),
        )
    objects = max(1, ceil(inverse_root**-2) - 1)
    while plan.half_width(objects, exact) > half_width:
        objects += 1
    return objects


def steps(
    schedule: Iterable[Epsilon],
    *,
    objects: int,
    values: Planned,
    half_width: float | None = None,
    **asked: Unpack[Asked],
) -> list[Step]:
    """Return how precise the answer will be at every level of a schedule, and where `half_width` is met.

    >>> [step.met for step in steps([0.1, 0.5, 1, 2], objects=100_000, values=5, half_width=0.012)]
    [False, False, True, True]
    """
    _check_objects(objects)
    levels = list(map(as_epsilon, schedule))
    plan = _Plan(values, **asked).planned_for(max(levels, default=None))
    if half_width is not None:
        plan.check_target(half_width)
    return [_step(plan, objects, level, half_width) for level in levels]


def _step(plan: _Plan, objects: int, level: Decimal, target: float | None) -> Step:
    width = min(plan.widest, plan.half_width(objects, level))
    return Step(level, width, None if target is None else width <= target, plan.encoding_at(level))


@dataclass(frozen=True, slots=True)
class Plan:
    """What a release will be good for: objects, epsilon and half-width, one of which was found from the others."""

    found: Literal["epsilon", "objects", "half_width", "steps"]
    objects: int
    epsilon: Decimal | None
    """None where it is that of a schedule, whose levels are the epsilons."""
    half_width: float | None
    """What is to be expected; None where it is that of a schedule."""
    steps: tuple[Step, ...] = ()
    encoding: str | None = None
    """The encoding that it is planned with, where it was left open."""

    @property
    def stop(self) -> Step | None:
        """The first step that is as precise as was asked for; None where none is, or nothing was."""
        return next((step for step in self.steps if step.met), None)


@refusing("", IN_PYTHON)
def plan(
    *,
    values: Planned | None = None,
    range: tuple[float, float] | None = None,
    bins: int = BINS,
    half_width: float | None = None,
    objects: int | None = None,
    epsilon: Epsilon | None = None,
    schedule: Iterable[Epsilon] | None = None,
    **asked: Unpack[Asked],
) -> Plan:
    """Return the third of half-width, objects and `epsilon` from the other two; of a schedule, every step.

    `values` is how many values an answer can have, or the mechanism of any other one; `range` are the ends of numbers,
    whose mean is planned, as waves of so many `bins` where those are best. A `half_width` is a share, as 0.01, or
    in the unit of the numbers. From the number of `objects` alone comes a table of the usual levels, and from a
    `schedule` one of its own. Plans never look at an answer. Which interval is meant is `asked` by the options of
    `Asked`: without a `share` it holds for every share, `encoding` is the best one unless it is said, and `cross` is
    the second column of a two-way table.

    >>> plan(values=2, half_width=0.01, objects=100_000).epsilon
    Decimal('0.6113')
    >>> [(str(step.epsilon), step.encoding) for step in plan(values=30, objects=10_000).steps[3:6]]
    [('1', 'unary-optimised'), ('2', 'unary-optimised'), ('3', 'categorical')]
    >>> ages = plan(range=(0, 100), objects=10_000, epsilon=4)
    >>> ages.encoding, round(ages.half_width, 2)
    ('wave', 0.4)
    """
    if (values is None) == (range is None):
        raise PlanError("say what can be answered: how many values there are, or a range of numbers.")
    if range is not None:
        values = Numbers(*range, bins)
    assert values is not None  # noqa: S101
    asked.setdefault("encoding", "auto")
    if schedule is None and objects is not None and epsilon is None and half_width is None:
        _check_objects(objects)
        every = _Plan(values, **asked)
        return Plan("steps", objects, None, None, tuple(_step(every, objects, level, None) for level in USUAL))
    if schedule is not None:
        if objects is None or epsilon is not None:
            raise PlanError(
                "a schedule is planned for a number of objects, and its levels are the epsilons.", remedy="schedule"
            )
        found = steps(schedule, objects=objects, values=values, half_width=half_width, **asked)
        return Plan("steps", objects, None, None, tuple(found))
    level = None if epsilon is None else as_epsilon(epsilon)
    which: Literal["epsilon", "objects", "half_width"]
    if half_width is not None and objects is not None and level is None:
        which, level = "epsilon", epsilon_for(half_width, objects=objects, values=values, **asked)
    elif half_width is not None and level is not None and objects is None:
        which, objects = "objects", objects_for(half_width, epsilon=level, values=values, **asked)
    elif objects is not None and level is not None and half_width is None:
        which = "half_width"
    else:
        raise PlanError("two of half-width, objects and epsilon give the third.", remedy="two_of_three")
    _check_objects(objects)
    width = _half_width(values, objects, level, asked)
    return Plan(which, objects, level, width, encoding=_Plan(values, **asked).encoding_at(level))


class _Plan:
    """An interval that is planned: of one of so many values, of what a mechanism answers, or of a pair of values."""

    def __init__(
        self,
        of: Planned,
        *,
        share: float | None = None,
        confidence_level: float = 0.95,
        about: About = "objects",
        simultaneous: bool = False,
        encoding: str | None = None,
        cross: Planned | None = None,
    ) -> None:
        self._side = Side(of, encoding)
        self._last: Decimal | None = None
        self._other = None if cross is None else Side(cross, encoding)
        self._measure = self._side.measure
        if self._other is not None and (self._measure or self._other.measure):
            raise PlanError("a two-way table is of columns with declared values.")
        has_share = self._measure is None or self._measure.absent is not None  # of those that are missing
        if share is not None and (not has_share or not 0 <= share <= 1):
            raise PlanError("a share lies in 0 .. 1, not {share}, and a mean has none.", share=share)
        check_about(about)
        exclusive = self._side.encoding is None or self._side.encoding.joint == "exclusive"
        values = self._side.values * (1 if self._other is None else self._other.values)
        questions = questions_of(values, exclusive=exclusive) if simultaneous and self._measure is None else 1
        self._quantile = -float(special.ndtri(tail_of(confidence_level, questions)))
        self._share, self._about = share, about

    def planned_for(self, last: Decimal | None) -> Self:
        """Return the plan with the encoding of this last epsilon at every level."""
        self._last = last
        return self

    def encoding_at(self, epsilon: Decimal) -> str | None:
        """Return the encoding that is chosen, where it was left open."""
        return self._side.named_at(self._last or epsilon)

    @property
    def widest(self) -> float:
        """The half-width of knowing nothing."""
        return WIDEST if self._measure is None else (self._measure.most - self._measure.least) / 2

    def check_target(self, half_width: float) -> None:
        """Refuse a half-width that no interval has."""
        if not (isfinite(half_width) and 0 < half_width < self.widest):
            raise PlanError(
                "a half-width lies between 0 and {widest:g}, like {example:g}; not {half_width}.",
                widest=self.widest,
                example=self.widest / 50,
                half_width=half_width,
            )

    def half_width(self, objects: int, epsilon: Decimal) -> float:
        spread, step = self.spread_and_step(epsilon)
        return spread / sqrt(objects) + step / objects

    def spread_and_step(self, epsilon: Decimal) -> tuple[float, float]:
        """Return what is divided by the root of the number of objects, and what by the number itself."""
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


def _half_width(values: Planned, objects: int, epsilon: Decimal, asked: Asked) -> float:
    plan = _Plan(values, **asked)
    return min(plan.widest, plan.half_width(objects, epsilon))


def _check_objects(objects: int) -> None:
    if not isinstance(objects, int) or not 1 <= objects <= MOST_OBJECTS:
        raise PlanError("the number of objects must be a whole number from 1 to 10^15, not {objects}.", objects=objects)
