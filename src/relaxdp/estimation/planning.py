"""Planning: how precise an answer will be, before anything is released, from the noise alone.

Nothing here looks at reports. That is why a plan, and a stop that follows from it, leave every interval as honest as it
was: the level at which one stops is known beforehand.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from decimal import ROUND_CEILING, Context, Decimal
from math import ceil, exp, isfinite, log, sqrt
from typing import Self, TypedDict, Unpack

from relaxdp.errors import PlanError
from relaxdp.estimation import special
from relaxdp.estimation.result import About, check_about, questions_of, tail_of
from relaxdp.estimation.sides import Planned, Side
from relaxdp.estimation.spreads import Spread, pair_spread, spread_of
from relaxdp.lazy import scipy
from relaxdp.theory.epsilon import Epsilon, as_epsilon, epsilon_text

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
            epsilon=epsilon_text(exact),
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
