"""The mechanism of a column for which only its values or its range are declared.

A mechanism is fixed by the first release of a column, and the column may be relaxed later. So the choice looks at all
levels from now to the last one that the budget allows. Nothing here looks at a true value.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Context, Decimal
from functools import partial
from math import sqrt
from typing import Any

from relaxdp.estimation.advice import ALIKE, mean_error, planned_support
from relaxdp.estimation.spreads import share_variance
from relaxdp.mechanisms.base import Mechanism
from relaxdp.mechanisms.categorical import Categorical
from relaxdp.mechanisms.declared import require_list
from relaxdp.mechanisms.local_hash import LocalHash, best_buckets
from relaxdp.mechanisms.numeric import Numeric
from relaxdp.mechanisms.packed import packed_width
from relaxdp.mechanisms.square_wave import SquareWave
from relaxdp.mechanisms.unary import Unary
from relaxdp.theory.epsilon import epsilon_text
from relaxdp.theory.response import Support

MAX_LEVEL = Decimal(4)
"""Levels above it are planned for only where the first release is there already, or where it is the planned one."""
FEW_VALUES = 5
"""Up to so many values k-ary randomized response is the best mechanism at every epsilon."""
WINDOWS = tuple(1 << power for power in range(11))
"""The windows that a square wave can have."""
_SHARES = (0.0, 0.5)
_LEVELS = 12
_MAX_BUCKETS_TRIED = 64


@dataclass(frozen=True, slots=True)
class NumberRange:
    """Numbers from `low` to `high`, of which some may be missing or outside."""

    low: float
    high: float
    clip: bool = False
    missing: bool = False

    def matches(self, mechanism: Any) -> bool:
        """Return whether a mechanism has this range."""
        return mechanism.domain == "range" and (mechanism.low, mechanism.high, mechanism.clip) == (
            self.low, self.high, self.clip,
        ) and (mechanism.name == "numeric-missing") == self.missing  # fmt: skip


@dataclass(frozen=True, slots=True)
class Choice:
    """A mechanism, and why it was chosen."""

    mechanism: Mechanism
    why: str


@dataclass(frozen=True, slots=True)
class _Candidate:
    """A mechanism that may be chosen, the size of its reports, and its standard errors at a level."""

    create: Callable[[], Mechanism]
    report_bytes: int
    errors_at: Callable[[Decimal], list[float]]


def choose_mechanism(
    declared: Sequence[Any] | NumberRange,
    *,
    epsilon: Decimal,
    remaining_share: Decimal,
    planned_epsilon: Decimal | None,
) -> Choice:
    """Return the mechanism whose margins of error are never far from the best ones, at any level that may follow.

    The largest ratio of its margin of error to that of the best mechanism at a level is the smallest one. It is taken
    over a value that no row has and a value that half of the rows have; for numbers, over the mean at worst. Of ratios
    within two percent, the smallest reports win.

    Args:
        declared: The values, None among them for a missing category; or the range of numbers.
        epsilon: The level of the first release.
        remaining_share: The part of the remaining budget that this column may use later.
        planned_epsilon: The last level, which then decides alone.

    Claim: no other candidate is better, by closed formulas and by simulation; tests/unit/tables/test_choose.py.

    >>> choice = choose_mechanism(
    ...     list(range(30)), epsilon=Decimal("0.1"), remaining_share=Decimal("1.9"), planned_epsilon=None
    ... )
    >>> choice.mechanism, choice.why
    (<Unary of 30>, 'best from epsilon 0.1 to 2')
    """
    levels = _levels(epsilon, remaining_share, planned_epsilon)
    if isinstance(declared, NumberRange):
        if declared.missing:
            found = Numeric(declared.low, declared.high, clip=declared.clip, missing=True)
            return Choice(found, "the only one for numbers that may be missing")
        candidates = list(_number_candidates(declared))
    else:
        values = list(require_list(declared))
        if len(values) <= FEW_VALUES:
            return Choice(Categorical(values), f"best for up to {FEW_VALUES} values")
        candidates = list(_value_candidates(values, levels[-1]))
    ratios = _worst_ratios(candidates, levels)
    alike = [place for place, ratio in enumerate(ratios) if ratio <= ALIKE * min(ratios)]
    best = min(alike, key=lambda place: (candidates[place].report_bytes, ratios[place]))
    return Choice(candidates[best].create(), _reason(levels, planned_epsilon))


def _levels(epsilon: Decimal, remaining_share: Decimal, planned_epsilon: Decimal | None) -> list[Decimal]:
    """Return the levels that are looked at: both ends exactly, and a geometric grid between them."""
    if planned_epsilon is not None:
        return [planned_epsilon]
    last = min(epsilon + remaining_share, MAX_LEVEL)
    if last <= epsilon:
        return [epsilon]
    step, context = float(last / epsilon) ** (1 / (_LEVELS - 1)), Context(prec=6)
    between = (context.create_decimal_from_float(float(epsilon) * step**place) for place in range(1, _LEVELS - 1))
    return [epsilon, *(level for level in between if epsilon < level < last), last]


def _reason(levels: list[Decimal], planned_epsilon: Decimal | None) -> str:
    first, last = epsilon_text(levels[0]), epsilon_text(levels[-1])
    if len(levels) > 1:
        return f"best from epsilon {first} to {last}"
    return f"best at epsilon {first}" if planned_epsilon is None else f"best at the planned epsilon {first}"


def _worst_ratios(candidates: list[_Candidate], levels: list[Decimal]) -> list[float]:
    """Return for each candidate the largest ratio of its error to the smallest error of all, over all levels."""
    worst = [1.0] * len(candidates)
    for level in levels:
        errors = [candidate.errors_at(level) for candidate in candidates]
        least = [min(each) for each in zip(*errors, strict=True)]
        for place, own in enumerate(errors):
            worst[place] = max(worst[place], *(error / best for error, best in zip(own, least, strict=True)))
    return worst


def _value_candidates(values: list[Any], last: Decimal) -> Iterator[_Candidate]:
    """Return k-ary randomized response, OUE, and OLH with different numbers of buckets."""
    size = len(values)
    for name, create in (("categorical", Categorical), ("unary-optimised", Unary)):
        _, report_bytes = planned_support(name, size, last)
        yield _Candidate(partial(create, values), report_bytes, partial(_planned_errors, name, size))
    for buckets in _bucket_numbers(best_buckets(last)):
        # A report supports a value with the same probability however many others there are.
        example = LocalHash(range(2), buckets=buckets)
        create_hash = partial(LocalHash, values, buckets=buckets)
        yield _Candidate(create_hash, packed_width(example), partial(_share_errors_at, example))


def _bucket_numbers(most: int) -> list[int]:
    """Return numbers of buckets from 2 to the best one for a rare value. Fewer are better for a frequent value."""
    if most <= _MAX_BUCKETS_TRIED:
        return list(range(2, most + 1))
    step = (most / 2) ** (1 / _MAX_BUCKETS_TRIED)
    return sorted({round(2 * step**place) for place in range(_MAX_BUCKETS_TRIED + 1)})


def _planned_errors(name: str, size: int, level: Decimal) -> list[float]:
    support, _ = planned_support(name, size, level)
    return _share_errors(support)


def _share_errors_at(mechanism: LocalHash, level: Decimal) -> list[float]:
    return _share_errors(mechanism.support(mechanism.level(level).retention))


def _share_errors(support: Support) -> list[float]:
    return [sqrt(share_variance(support, share)) for share in _SHARES]


def _number_candidates(numbers: NumberRange) -> Iterator[_Candidate]:
    """Return the rounding to an end of the range, and the square wave with every window."""
    ends = (numbers.low, numbers.high)
    creators: list[Callable[[], Mechanism]] = [partial(Numeric, *ends, clip=numbers.clip)]
    creators += [partial(SquareWave, *ends, window=window, clip=numbers.clip) for window in WINDOWS]
    for create in creators:
        example = create()
        yield _Candidate(create, packed_width(example), partial(_mean_errors_at, example))


def _mean_errors_at(mechanism: Mechanism, level: Decimal) -> list[float]:
    return [mean_error(mechanism, level)]
