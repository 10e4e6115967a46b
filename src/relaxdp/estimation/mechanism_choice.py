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

from relaxdp.errors import PlanError
from relaxdp.estimation.report_variance import share_variance, spread_of
from relaxdp.mechanisms.base import Mechanism
from relaxdp.mechanisms.categorical import Categorical
from relaxdp.mechanisms.declared import require_list
from relaxdp.mechanisms.local_hash import LocalHash, best_buckets
from relaxdp.mechanisms.numeric import Numeric
from relaxdp.mechanisms.registry import create_mechanism
from relaxdp.mechanisms.report_arrays import packed_width, whole_bytes
from relaxdp.mechanisms.square_wave import SquareWave
from relaxdp.mechanisms.unary import Unary
from relaxdp.theory.epsilon import MAX_VALUES, Epsilon, as_epsilon, compute_nonzero_threshold, format_epsilon
from relaxdp.theory.level import compute_retention
from relaxdp.theory.randomized_response import SupportProbabilities

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
class MechanismChoice:
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
) -> MechanismChoice:
    """Return the mechanism whose margins of error are never far from the best ones, at any level that may follow.

    The largest ratio of its margin of error to that of the best mechanism at a level is the smallest one. It is taken
    over a value that no row has and a value that half of the rows have; for numbers, over the mean at worst. Of ratios
    within two percent, the smallest reports win.

    Args:
        declared: The values, None among them for a missing category; or the range of numbers.
        epsilon: The level of the first release.
        remaining_share: The part of the remaining budget that this column may use later.
        planned_epsilon: The last level, which then decides alone.

    Claim: no other candidate is better, by closed formulas and by simulation;
    tests/unit/estimation/test_mechanism_choice.py.

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
            return MechanismChoice(found, "the only one for numbers that may be missing")
        candidates = list(_number_candidates(declared))
    else:
        values = list(require_list(declared))
        if len(values) <= FEW_VALUES:
            return MechanismChoice(Categorical(values), f"best for up to {FEW_VALUES} values")
        candidates = list(_value_candidates(values, levels[-1]))
    ratios = _worst_ratios(candidates, levels)
    alike = [place for place, ratio in enumerate(ratios) if ratio <= ALIKE * min(ratios)]
    best = min(alike, key=lambda place: (candidates[place].report_bytes, ratios[place]))
    return MechanismChoice(candidates[best].create(), _reason(levels, planned_epsilon))


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
    first, last = format_epsilon(levels[0]), format_epsilon(levels[-1])
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


def _share_errors(support: SupportProbabilities) -> list[float]:
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


ALIKE = 1.02
"""Errors within two percent are alike: then the smaller report is the better one."""


@dataclass(frozen=True, slots=True)
class RankedMechanism:
    """One encoding: what its answers and its reports would be like."""

    encoding: str
    std_error: float
    """The standard error of a rare value's share, or of a mean in halves of its range, times the root of the number of
    objects."""
    bytes_per_report: int


@dataclass(frozen=True, slots=True, repr=False)
class MechanismRanking:
    """All encodings of a list of values, or of numbers, at one level, the best one first. `print` shows a table."""

    values: int | None
    """How many there are; None where numbers are asked for."""
    epsilon: str
    choices: Sequence[RankedMechanism]

    @property
    def best(self) -> str:
        """The name of the best encoding."""
        return self.choices[0].encoding

    def __str__(self) -> str:
        lines = [
            f"{'numbers' if self.values is None else f'{self.values:,} values'}, epsilon {self.epsilon}",
            f"{'encoding':<16} {'error x sqrt(n)':>15} {'bytes':>8}",
        ]
        lines += [f"{each.encoding:<16} {each.std_error:>15.3f} {each.bytes_per_report:>8,}" for each in self.choices]
        return "\n".join(lines)

    __repr__ = __str__


def rank_mechanisms(m: int, epsilon: Epsilon) -> MechanismRanking:
    """Return what each encoding of `m` values would give at `epsilon`, the last level that is planned.

    The error is that of a rare value, because where there are many values most of them are rare. Few values are best
    sent as they are (below about 3 e^epsilon + 2), more as bits, and very many as a hash, whose reports stay short.

    Claim: measured variances are within 5 % of these; tests/statistical/mechanisms/test_mechanisms.py.

    >>> print(rank_mechanisms(1000, 1))
    1,000 values, epsilon 1
    encoding         error x sqrt(n)    bytes
    local-hash                 1.921        9
    unary-optimised            1.919      125
    unary-symmetric            1.979      125
    categorical               18.410        2
    """
    if not isinstance(m, int) or not 2 <= m <= MAX_VALUES:
        raise PlanError(
            "The number of values must be a whole number from 2 to 2**32, got {type}.",
            hint="Pass the number of values, such as len(values).",
            type=type(m).__name__,
        )
    exact = as_epsilon(epsilon)
    choices = []
    for name in VALUE_MECHANISMS:
        support, size = planned_support(name, m, exact)
        choices.append(RankedMechanism(name, sqrt(share_variance(support, 0.0)), size))
    return _ranked(m, exact, choices)


NUMBER_ENCODINGS = ("numeric", "wave")
"""What "auto" chooses from, for numbers that are all there."""


def rank_number_mechanisms(epsilon: Epsilon) -> MechanismRanking:
    """Return what each encoding of numbers in a range would give at `epsilon`, the last level that is planned.

    The error is that of the mean at worst, wherever in their range the numbers lie: as in every plan. Rounded to an end
    they are told worst in the middle, and as places near them at the ends. From about 1.3 on the worst of places is the
    better one; and they tell the whole distribution.

    Claim: measured variances are within 3 % of these; tests/statistical/estimation/test_number_plans.py.

    >>> print(rank_number_mechanisms(2))
    numbers, epsilon 2
    encoding         error x sqrt(n)    bytes
    wave                       1.052        1
    numeric                    1.313        1
    """
    exact = as_epsilon(epsilon)
    choices = []
    for name in NUMBER_ENCODINGS:
        encoding = create_mechanism(name, range=(-1, 1), epsilon=exact)
        choices.append(RankedMechanism(name, mean_error(encoding, exact), packed_width(encoding)))
    return _ranked(None, exact, choices)


VALUE_MECHANISMS = ("categorical", "unary-optimised", "unary-symmetric", "local-hash")


def planned_support(name: str, values: int, epsilon: Decimal) -> tuple[SupportProbabilities, int]:
    """Return the support of a mechanism for so many values at a level, and the bytes of a report.

    No list of values is needed for it, so that it is fast for millions of them.
    """
    if name == "categorical":
        keep = compute_retention(compute_nonzero_threshold(epsilon, values))
        return SupportProbabilities.from_one_symbol(keep, values), whole_bytes(values)
    # Bits and hashes support a value with the same probability, however many other values there are.
    mechanism = create_mechanism(name, values=range(2), epsilon=None if name.startswith("unary") else epsilon)
    support = mechanism.support(mechanism.level(epsilon).retention)
    return support, packed_width(mechanism) if name == "local-hash" else -(-values // 8)


def mean_error(encoding: Mechanism, epsilon: Decimal) -> float:
    """Return the standard error of a mean at worst, in halves of its range, times the root of the number of objects."""
    measure = encoding.measure
    assert measure is not None  # noqa: S101 (whoever asks has numbers)
    spread = spread_of(encoding.support(encoding.level(epsilon).retention), "sample", measure=measure)
    return 2 * sqrt(spread.variance) / (measure.most - measure.least)


def _ranked(values: int | None, epsilon: Decimal, choices: list[RankedMechanism]) -> MechanismRanking:
    choices = sorted(choices, key=lambda each: each.std_error)
    alike = [each for each in choices if each.std_error <= ALIKE * choices[0].std_error]
    best = min(alike, key=lambda each: each.bytes_per_report)
    return MechanismRanking(values, format_epsilon(epsilon), [best, *(each for each in choices if each is not best)])
