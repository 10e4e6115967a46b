"""Schedules: at which levels to release, as plain objects. Iterate over one to get its epsilons, which never fall.

Levels are exact decimals. Those that are computed are rounded *down* to six significant digits, the private side; the
first and the last level that a person named stay as they are.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import MAX_EMAX, MIN_EMIN, ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from itertools import pairwise

from relaxdp.errors import PlanError
from relaxdp.estimation.planning import Step, compute_steps
from relaxdp.estimation.result import About
from relaxdp.theory.epsilon import MAX_DIGITS, Epsilon, as_epsilon, format_epsilon

DIGITS = 6
"""How many significant digits a computed level has."""
MOST_STEPS = 10_000
_DOWN = Context(prec=DIGITS, rounding=ROUND_FLOOR)
_WIDE = Context(prec=60)
_NEAREST = Context(prec=40)


class Schedule(ABC):
    """Levels that never fall. A mistake is refused when a schedule is made, not when it is used."""

    def __post_init__(self) -> None:
        if not tuple(self):
            raise PlanError("The schedule has no level.", hint="Pass at least one, such as [0.5, 1, 2].")

    @abstractmethod
    def __iter__(self) -> Iterator[Decimal]:
        """Return the levels, the lowest first."""


@dataclass(frozen=True)
class Explicit(Schedule):
    """The `levels` that a person wrote down, which may repeat and must not fall.

    >>> [str(level) for level in Explicit([0.1, "0.5", 1, 2])]
    ['0.1', '0.5', '1', '2']
    """

    levels: Sequence[Epsilon]

    def __iter__(self) -> Iterator[Decimal]:
        if isinstance(self.levels, str) or not isinstance(self.levels, Iterable):
            raise PlanError(
                "Expected a list of levels, got {type}.",
                hint="Pass a list such as [0.5, 1, 2].",
                type=type(self.levels).__name__,
            )
        return iter(_not_falling(self.levels))


@dataclass(frozen=True)
class Linear(Schedule):
    """`steps` levels from `first` to `last`, each larger than the one before by the same amount.

    >>> [str(level) for level in Linear("0.1", 1, steps=4)]
    ['0.1', '0.4', '0.7', '1']
    """

    first: Epsilon
    last: Epsilon
    steps: int

    def __iter__(self) -> Iterator[Decimal]:
        first, last = _ends(self.first, self.last, self.steps)
        yield first
        for step in range(1, self.steps - 1):
            level = Fraction(first) + (Fraction(last) - Fraction(first)) * Fraction(step, self.steps - 1)
            yield max(first, as_epsilon(_DOWN.divide(Decimal(level.numerator), Decimal(level.denominator))))
        yield last


@dataclass(frozen=True)
class Geometric(Schedule):
    """`steps` levels from `first` to `last`, each larger than the one before by the same factor.

    >>> [str(level) for level in Geometric("0.1", "0.8", steps=4)]
    ['0.1', '0.2', '0.4', '0.8']
    """

    first: Epsilon
    last: Epsilon
    steps: int

    def __iter__(self) -> Iterator[Decimal]:
        first, last = _ends(self.first, self.last, self.steps)
        yield first
        growth = _WIDE.ln(_WIDE.divide(last, first))
        for step in range(1, self.steps - 1):
            factor = _WIDE.exp(_WIDE.divide(_WIDE.multiply(growth, step), self.steps - 1))
            # To the nearest at 40 digits first: a level that is 0.4 must not become 0.399999 by the last of 60 digits.
            yield max(first, as_epsilon(_DOWN.plus(_NEAREST.multiply(first, factor))))
        yield last


@dataclass(frozen=True)
class NoisySampling(Schedule):
    """The guarantees of RAPPOR's noisy sampling after 1, 2, ... `samples` samples: the paper's eps_ns(K).

    Relaxing along it costs what the samples would cost, and is more precise at every step.

    >>> [str(level) for level in NoisySampling(epsilon_alpha=1, epsilon_beta="0.5", samples=3)]
    ['0.227336', '0.43378', '0.604812']
    """

    epsilon_alpha: Epsilon
    epsilon_beta: Epsilon
    samples: int

    def __iter__(self) -> Iterator[Decimal]:
        _check_steps(self.samples, least=1)
        for samples in range(1, self.samples + 1):
            guarantee = noisy_sampling_epsilon(
                epsilon_alpha=self.epsilon_alpha, epsilon_beta=self.epsilon_beta, samples=samples
            )
            # The guarantee was rounded up in its 40th digit and is never an exact decimal: one digit less is below it.
            yield as_epsilon(_DOWN.plus(_NEAREST.next_minus(guarantee)))


@dataclass(frozen=True)
class ByDate(Schedule):
    """`levels` that are allowed from a day on, for data that grow less sensitive with age.

    >>> schedule = ByDate({date(2026, 1, 1): "0.25", date(2026, 7, 1): 1})
    >>> schedule.at(date(2025, 12, 31)), schedule.at(date(2026, 3, 1)), schedule.at(date(2026, 7, 1))
    (None, Decimal('0.25'), Decimal('1'))
    """

    levels: Mapping[date, Epsilon]

    def __iter__(self) -> Iterator[Decimal]:
        return (level for _, level in self._dated())

    def at(self, today: date) -> Decimal | None:
        """Return the level that is allowed on a day, or None before the first day."""
        day = _day(today)
        return next((level for first_day, level in reversed(self._dated()) if first_day <= day), None)

    def _dated(self) -> list[tuple[date, Decimal]]:
        days = sorted(map(_day, self.levels))
        return list(zip(days, _not_falling(self.levels[day] for day in days), strict=True))


@dataclass(frozen=True)
class UntilPrecise(Schedule):
    """The levels of another schedule up to the first that is precise enough, whatever the answer turns out to be.

    `confidence_level`, `about` and `simultaneous` describe the interval whose margin of error is to be at most
    `margin`. Where the `schedule` stops depends on the number of individuals `n`, on the number of `values` and on
    epsilon, never on a report. So the interval after the stop covers as often as any other. A rule that looks at the
    estimate does not have that property.

    Claim: the coverage after the stop is at least 94.5 %, and what looking costs;
    tests/statistical/estimation/test_stopping.py.

    >>> until = UntilPrecise(Explicit([0.1, 0.5, 1, 2, 4]), margin=0.012, n=100_000, values=5)
    >>> [str(level) for level in until], until.reached
    (['0.1', '0.5', '1'], True)
    """

    schedule: Schedule
    margin: float
    n: int
    values: int
    confidence_level: float = 0.95
    about: About = "sample"
    simultaneous: bool = False

    def __iter__(self) -> Iterator[Decimal]:
        for step in self._steps():
            yield step.epsilon
            if step.met:
                return

    @property
    def reached(self) -> bool:
        """Whether a level is precise enough; if not, the other schedule ends too early."""
        return any(step.met for step in self._steps())

    def _steps(self) -> list[Step]:
        return compute_steps(
            self.schedule,
            margin=self.margin,
            n=self.n,
            values=self.values,
            confidence_level=self.confidence_level,
            about=self.about,
            simultaneous=self.simultaneous,
        )


def noisy_sampling_epsilon(*, epsilon_alpha: Epsilon, epsilon_beta: Epsilon, samples: int) -> Decimal:
    """Return the guarantee of one bit after `samples` noisy samples, to 40 digits, rounded up.

    It is below epsilon_alpha and below samples * epsilon_beta, and nears the smaller of the two.

    Claim: eps_ns(K) of the paper, and the greatest enumerated likelihood ratio;
    tests/unit/paper/test_baselines.py.

    >>> round(noisy_sampling_epsilon(epsilon_alpha=1, epsilon_beta=0.5, samples=10), 5)
    Decimal('0.98433')
    """
    wide = Context(prec=MAX_DIGITS, Emin=MIN_EMIN, Emax=MAX_EMAX, traps=[])
    kept, sampled = as_epsilon(epsilon_alpha), wide.multiply(as_epsilon(epsilon_beta), Decimal(samples))
    # The paper's (e^a e^Kb + 1) / (e^a + e^Kb), divided by the larger power so that nothing overflows.
    both = wide.exp(wide.add(kept, sampled).copy_negate())
    apart = wide.exp(wide.subtract(kept, sampled).copy_abs().copy_negate())
    correction = wide.subtract(wide.ln(wide.add(1, both)), wide.ln(wide.add(1, apart)))
    return Context(prec=40, rounding=ROUND_CEILING).plus(wide.add(min(kept, sampled), correction))


def _not_falling(levels: Iterable[Epsilon]) -> list[Decimal]:
    exact = [as_epsilon(level) for level in levels]
    for old, new in pairwise(exact):
        if new < old:
            raise PlanError(
                "The schedule falls from {old_epsilon} to {new_epsilon}. A report cannot be taken back.",
                hint="Sort the levels: the lowest first.",
                old_epsilon=format_epsilon(old),
                new_epsilon=format_epsilon(new),
            )
    return exact


def _ends(first: Epsilon, last: Epsilon, steps: int) -> list[Decimal]:
    _check_steps(steps, least=2)
    return _not_falling([first, last])


def _check_steps(steps: int, *, least: int) -> None:
    if not isinstance(steps, int) or not least <= steps <= MOST_STEPS:
        raise PlanError(
            "The number of steps must be a whole number from {least} to {most:,}, not {steps!r}.",
            hint="Pass a number such as 4.",
            least=least,
            most=MOST_STEPS,
            steps=steps,
        )


def _day(day: date) -> date:
    if not isinstance(day, date) or isinstance(day, datetime):
        raise PlanError(
            "Expected a date without a time, got {type}.",
            hint="Pass a mapping such as rx.schedules.ByDate({{date(2026, 1, 1): 0.5}}).",
            type=type(day).__name__,
            day=day,
        )
    return day
