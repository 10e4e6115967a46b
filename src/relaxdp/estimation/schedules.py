"""Schedules of levels for gradual releases. Iterate over a schedule to get its epsilons, which never decrease.

Levels are exact decimals. Computed levels are rounded down to six significant digits, so that they never cost more. The
first and the last level stay as you state them.
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
from relaxdp.estimation.planning import PlannedLevel, plan_levels
from relaxdp.estimation.result import About, check_whole_number
from relaxdp.theory.epsilon import MAX_DIGITS, Epsilon, as_epsilon, format_epsilon

__all__ = [
    "ByDate",
    "Explicit",
    "Geometric",
    "Linear",
    "NoisySampling",
    "Schedule",
    "UntilPrecise",
    "compute_noisy_sampling_epsilon",
]
_DIGITS = 6
_MAX_STEPS = 10_000
_DOWN = Context(prec=_DIGITS, rounding=ROUND_FLOOR)
_WIDE = Context(prec=60)
_NEAREST = Context(prec=40)


class Schedule(ABC):
    """The levels of a gradual release, which never decrease. Iterate over it to get them.

    Creating a schedule with a mistake raises `PlanError`.
    """

    def __post_init__(self) -> None:
        if not tuple(self):
            raise PlanError("The schedule has no level.", hint="Pass at least one level, such as [0.5, 1, 2].")

    @abstractmethod
    def __iter__(self) -> Iterator[Decimal]:
        """Yield the levels, the smallest first."""


@dataclass(frozen=True)
class Explicit(Schedule):
    """A list of levels. They may repeat and must not decrease.

    Args:
        levels: The epsilons, the smallest first.

    Raises:
        PlanError: The list is empty, or a level is smaller than the one before.

    Example:
        >>> [str(level) for level in Explicit([0.1, "0.5", 1, 2])]
        ['0.1', '0.5', '1', '2']
    """

    levels: Sequence[Epsilon]

    def __iter__(self) -> Iterator[Decimal]:
        if isinstance(self.levels, str) or not isinstance(self.levels, Iterable):
            raise PlanError(
                "`levels` must be a list of epsilons, got {type}.",
                hint="Pass levels=[0.5, 1, 2].",
                type=type(self.levels).__name__,
            )
        return iter(_parse_ascending_levels(self.levels))


@dataclass(frozen=True)
class _SteppedSchedule(Schedule):
    first: Epsilon
    last: Epsilon
    steps: int

    def __iter__(self) -> Iterator[Decimal]:
        check_whole_number(PlanError, "steps", self.steps, 2, _MAX_STEPS, "a number of levels such as 4")
        first, last = _parse_ascending_levels([self.first, self.last])
        yield first
        for step in range(1, self.steps - 1):
            yield max(first, as_epsilon(self._compute_level(first, last, step)))
        yield last

    @abstractmethod
    def _compute_level(self, first: Decimal, last: Decimal, step: int) -> Decimal: ...


class Linear(_SteppedSchedule):
    """Levels from `first` to `last`, each larger than the one before by the same amount.

    Args:
        first: The first epsilon.
        last: The last epsilon, not smaller than the first.
        steps: The number of levels, from 2 to 10,000.

    Raises:
        PlanError: `last` is smaller than `first`, or `steps` is out of range.

    Example:
        >>> [str(level) for level in Linear("0.1", 1, steps=4)]
        ['0.1', '0.4', '0.7', '1']
    """

    def _compute_level(self, first: Decimal, last: Decimal, step: int) -> Decimal:
        level = Fraction(first) + (Fraction(last) - Fraction(first)) * Fraction(step, self.steps - 1)
        return _DOWN.divide(Decimal(level.numerator), Decimal(level.denominator))


class Geometric(_SteppedSchedule):
    """Levels from `first` to `last`, each larger than the one before by the same factor.

    Args:
        first: The first epsilon.
        last: The last epsilon, not smaller than the first.
        steps: The number of levels, from 2 to 10,000.

    Raises:
        PlanError: `last` is smaller than `first`, or `steps` is out of range.

    Example:
        >>> [str(level) for level in Geometric("0.1", "0.8", steps=4)]
        ['0.1', '0.2', '0.4', '0.8']
    """

    def _compute_level(self, first: Decimal, last: Decimal, step: int) -> Decimal:
        growth = _WIDE.ln(_WIDE.divide(last, first))
        factor = _WIDE.exp(_WIDE.divide(_WIDE.multiply(growth, step), self.steps - 1))
        # To the nearest at 40 digits first: a level that is 0.4 must not become 0.399999 by the last of 60 digits.
        return _DOWN.plus(_NEAREST.multiply(first, factor))


@dataclass(frozen=True)
class NoisySampling(Schedule):
    """The epsilons of RAPPOR's noisy sampling after 1, 2, ... `samples` samples: the paper's eps_ns(K).

    Relaxing along this schedule costs as much as the samples, and is more precise at every step.

    Args:
        epsilon_alpha: The epsilon of RAPPOR's permanent randomized response.
        epsilon_beta: The epsilon of its instantaneous randomized response.
        samples: The number of samples, from 1 to 10,000.

    Raises:
        PlanError: `samples` is out of range.

    Example:
        >>> [str(level) for level in NoisySampling(epsilon_alpha=1, epsilon_beta="0.5", samples=3)]
        ['0.227336', '0.43378', '0.604812']
    """

    epsilon_alpha: Epsilon
    epsilon_beta: Epsilon
    samples: int

    def __iter__(self) -> Iterator[Decimal]:
        check_whole_number(PlanError, "samples", self.samples, 1, _MAX_STEPS, "a number of samples such as 4")
        for samples in range(1, self.samples + 1):
            guarantee = compute_noisy_sampling_epsilon(
                epsilon_alpha=self.epsilon_alpha, epsilon_beta=self.epsilon_beta, samples=samples
            )
            # The guarantee was rounded up in its 40th digit and is never an exact decimal: one digit less is below it.
            yield as_epsilon(_DOWN.plus(_NEAREST.next_minus(guarantee)))


@dataclass(frozen=True)
class ByDate(Schedule):
    """Levels that are allowed from a date on, for data that grow less sensitive with age.

    Args:
        levels: For each date, the epsilon that is allowed from then on.

    Raises:
        PlanError: The mapping is empty, a key is not a date, or a later level is smaller than an earlier one.

    Example:
        >>> schedule = ByDate({date(2026, 1, 1): "0.25", date(2026, 7, 1): 1})
        >>> [schedule.get_level(date(2026, month, 1)) for month in (3, 7)]
        [Decimal('0.25'), Decimal('1')]
        >>> schedule.get_level(date(2025, 12, 31)) is None
        True
    """

    levels: Mapping[date, Epsilon]

    def __iter__(self) -> Iterator[Decimal]:
        return (level for _, level in self._sort_by_date())

    def get_level(self, day: date) -> Decimal | None:
        """Return the level that is allowed on a day, or None before the first one."""
        _check_date(day)
        return next((level for first_day, level in reversed(self._sort_by_date()) if first_day <= day), None)

    def _sort_by_date(self) -> list[tuple[date, Decimal]]:
        for day in self.levels:
            _check_date(day)
        days = sorted(self.levels)
        return list(zip(days, _parse_ascending_levels(self.levels[day] for day in days), strict=True))


@dataclass(frozen=True)
class UntilPrecise(Schedule):
    """The levels of another schedule, up to the first one that is precise enough.

    The schedule ends where the margin of error is at most `margin`. That depends on `n`, on the number of values and on
    epsilon, never on a report. So the interval after the last level covers as often as any other. A rule that looks at
    the estimate does not have that property.

    Args:
        schedule: The other schedule.
        margin: The margin of error that you want, of a share.
        n: The number of individuals.
        values: The number of possible answers.
        confidence_level: The confidence level of the interval.
        about: "population" if the individuals are a random sample that the interval generalizes from.
        simultaneous: Use intervals that hold for all values at once.

    Raises:
        PlanError: The margin is not between 0 and 0.5, or `n` or `values` is out of range.

    Claim: the coverage after the last level is at least 94.5 %, and what looking costs;
    tests/statistical/estimation/test_stopping.py.

    Example:
        >>> until = UntilPrecise(Explicit([0.1, 0.5, 1, 2, 4]), margin=0.012, n=100_000, values=5)
        >>> [str(level) for level in until], until.is_reached
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
        for level in self._plan_levels():
            yield level.epsilon
            if level.is_precise:
                return

    @property
    def is_reached(self) -> bool:
        """Whether a level is precise enough; if not, the other schedule ends too early."""
        return any(level.is_precise for level in self._plan_levels())

    def _plan_levels(self) -> list[PlannedLevel]:
        fields = dict(vars(self))
        return plan_levels(planned_values=fields.pop("values"), **fields)


def compute_noisy_sampling_epsilon(*, epsilon_alpha: Epsilon, epsilon_beta: Epsilon, samples: int) -> Decimal:
    """Return the epsilon of one bit after several samples of RAPPOR's noisy sampling.

    It is smaller than `epsilon_alpha` and than `samples * epsilon_beta`, and approaches the smaller of the two.

    Args:
        epsilon_alpha: The epsilon of RAPPOR's permanent randomized response.
        epsilon_beta: The epsilon of its instantaneous randomized response.
        samples: The number of samples.

    Returns:
        The epsilon to 40 digits, rounded up.

    Claim: eps_ns(K) of the paper, and the greatest enumerated likelihood ratio;
    tests/unit/paper/test_baselines.py.

    Example:
        >>> round(compute_noisy_sampling_epsilon(epsilon_alpha=1, epsilon_beta=0.5, samples=10), 5)
        Decimal('0.98433')
    """
    wide = Context(prec=MAX_DIGITS, Emin=MIN_EMIN, Emax=MAX_EMAX, traps=[])
    kept, sampled = as_epsilon(epsilon_alpha), wide.multiply(as_epsilon(epsilon_beta), Decimal(samples))
    # The paper's (e^a e^Kb + 1) / (e^a + e^Kb), divided by the larger power so that nothing overflows.
    both = wide.exp(wide.add(kept, sampled).copy_negate())
    apart = wide.exp(wide.subtract(kept, sampled).copy_abs().copy_negate())
    correction = wide.subtract(wide.ln(wide.add(1, both)), wide.ln(wide.add(1, apart)))
    return Context(prec=40, rounding=ROUND_CEILING).plus(wide.add(min(kept, sampled), correction))


def _parse_ascending_levels(levels: Iterable[Epsilon]) -> list[Decimal]:
    exact = [as_epsilon(level) for level in levels]
    for old, new in pairwise(exact):
        if new < old:
            raise PlanError(
                "The schedule decreases from {old_epsilon} to {new_epsilon}. A released report cannot be taken back.",
                hint="Sort the levels: the smallest first.",
                old_epsilon=format_epsilon(old),
                new_epsilon=format_epsilon(new),
            )
    return exact


def _check_date(day: date) -> None:
    if not isinstance(day, date) or isinstance(day, datetime):
        raise PlanError(
            "Expected a date without a time, got {type}.",
            hint="Pass a datetime.date, such as in rx.schedules.ByDate({{date(2026, 1, 1): 0.5}}).",
            type=type(day).__name__,
            day=day,
        )
