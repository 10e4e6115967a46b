"""The choice of a mechanism: a ranking of all mechanisms at one level, and the best one over all levels of a column.

Nothing here looks at a true value.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Context, Decimal
from functools import partial
from math import sqrt
from typing import Any

from relaxdp.errors import PlanError
from relaxdp.estimation.report_variance import (
    compute_categorical_support,
    compute_share_variance,
    compute_variance_per_report,
)
from relaxdp.mechanisms.base import Mechanism
from relaxdp.mechanisms.categorical import Categorical
from relaxdp.mechanisms.declared import require_list
from relaxdp.mechanisms.local_hash import LocalHash, compute_best_buckets
from relaxdp.mechanisms.numeric import Numeric, RangeMechanism
from relaxdp.mechanisms.registry import create_mechanism
from relaxdp.mechanisms.report_arrays import count_code_bytes, get_packed_width
from relaxdp.mechanisms.square_wave import SquareWave
from relaxdp.mechanisms.unary import Unary
from relaxdp.theory.epsilon import MAX_VALUES, Epsilon, as_epsilon, format_epsilon
from relaxdp.theory.randomized_response import SupportProbabilities

VALUE_MECHANISMS = ("categorical", "unary-optimised", "unary-symmetric", "local-hash")
NUMBER_MECHANISMS = ("numeric", "wave")
"""The mechanisms from which "auto" chooses, for numbers without missing ones."""
SIMILAR_ERROR_RATIO = 1.02
"""Errors within two percent count as equal. Then the mechanism with the smaller reports is better."""


@dataclass(frozen=True, slots=True)
class RankedMechanism:
    """The expected error and the size of the reports of one mechanism."""

    name: str
    std_error: float
    """The standard error of a rare value's share, or of a mean in halves of its range, times the square root of n."""
    bytes_per_report: int


@dataclass(frozen=True, slots=True, repr=False)
class MechanismRanking:
    """All mechanisms for a number of values, or for numbers, at one level, the best one first. It prints as a table."""

    values: int | None
    """The number of values. None ranks the mechanisms for numbers."""
    epsilon: str
    mechanisms: Sequence[RankedMechanism]

    @property
    def best(self) -> str:
        """The name of the best mechanism."""
        return self.mechanisms[0].name

    def __str__(self) -> str:
        lines = [
            f"{'numbers' if self.values is None else f'{self.values:,} values'}, epsilon {self.epsilon}",
            f"{'mechanism':<16} {'error x sqrt(n)':>15} {'bytes':>8}",
        ]
        lines += [f"{each.name:<16} {each.std_error:>15.3f} {each.bytes_per_report:>8,}" for each in self.mechanisms]
        return "\n".join(lines)

    __repr__ = __str__


def rank_mechanisms(values: int, epsilon: Epsilon) -> MechanismRanking:
    """Rank all mechanisms for this number of values at `epsilon`, the last level that is planned.

    The error is that of a rare value, because most of many values are rare. K-ary randomized response is best for few
    values (below about 3 e^epsilon + 2), OUE for more, and local hashing for very many, because its reports stay short.

    Claim: measured variances are within 5 % of these; tests/statistical/mechanisms/test_mechanisms.py.

    >>> print(rank_mechanisms(1000, 1))
    1,000 values, epsilon 1
    mechanism        error x sqrt(n)    bytes
    local-hash                 1.921        9
    unary-optimised            1.919      125
    unary-symmetric            1.979      125
    categorical               18.410        2
    """
    if not isinstance(values, int) or not 2 <= values <= MAX_VALUES:
        raise PlanError(
            "The number of values must be a whole number from 2 to 2**32, got {type}.",
            hint="Pass the number of values, such as len(values).",
            type=type(values).__name__,
        )
    exact = as_epsilon(epsilon)
    ranked = []
    for name in VALUE_MECHANISMS:
        support, size = compute_support_and_bytes(name, values, exact)
        ranked.append(RankedMechanism(name, sqrt(compute_share_variance(support, 0.0)), size))
    return _sort_by_error(values, exact, ranked)


def rank_number_mechanisms(epsilon: Epsilon) -> MechanismRanking:
    """Rank the mechanisms for numbers in a range at `epsilon`, the last level that is planned.

    The error is that of the mean in the worst case, as in every plan. Randomized rounding is worst for numbers in the
    middle of the range, and the square wave for numbers at the ends. From an epsilon of about 1.3 on, the square wave
    has the smaller worst case. It also estimates the whole distribution.

    Claim: measured variances are within 3 % of these; tests/statistical/estimation/test_number_plans.py.

    >>> print(rank_number_mechanisms(2))
    numbers, epsilon 2
    mechanism        error x sqrt(n)    bytes
    wave                       1.052        1
    numeric                    1.313        1
    """
    exact = as_epsilon(epsilon)
    ranked = []
    for name in NUMBER_MECHANISMS:
        mechanism = create_mechanism(name, range=(-1, 1), epsilon=exact)
        ranked.append(RankedMechanism(name, compute_mean_error(mechanism, exact), get_packed_width(mechanism)))
    return _sort_by_error(None, exact, ranked)


def _sort_by_error(values: int | None, epsilon: Decimal, ranked: list[RankedMechanism]) -> MechanismRanking:
    ranked = sorted(ranked, key=lambda each: each.std_error)
    similar = [each for each in ranked if each.std_error <= SIMILAR_ERROR_RATIO * ranked[0].std_error]
    best = min(similar, key=lambda each: each.bytes_per_report)
    return MechanismRanking(values, format_epsilon(epsilon), [best, *(each for each in ranked if each is not best)])


def compute_support_and_bytes(name: str, values: int, epsilon: Decimal) -> tuple[SupportProbabilities, int]:
    """Return the probabilities and the bytes of a report of a mechanism for this number of values.

    It needs no list of values, so that it is fast for millions of them.
    """
    if name == "categorical":
        return compute_categorical_support(epsilon, values), count_code_bytes(values)
    # Bits and hashes support a value with the same probability, however many other values there are.
    mechanism = create_mechanism(name, values=range(2), epsilon=epsilon)
    size = get_packed_width(mechanism) if name == "local-hash" else -(-values // 8)
    return mechanism.compute_support(mechanism.level(epsilon).retention), size


def compute_mean_error(mechanism: Mechanism, epsilon: Decimal) -> float:
    """Return the largest standard error of a mean, in halves of its range, times the square root of n."""
    mean_weights = mechanism.mean_weights
    assert mean_weights is not None  # noqa: S101 (callers have a mechanism for numbers)
    noise = compute_variance_per_report(
        mechanism.compute_support(mechanism.level(epsilon).retention), "sample", mean_weights=mean_weights
    )
    return 2 * sqrt(noise.variance) / (mean_weights.maximum - mean_weights.minimum)


# The choice for a column. The first release fixes its mechanism, and the column may be relaxed later. So the choice
# considers all levels from the first one to the last one that the budget allows.

MAX_LEVEL = Decimal(4)
"""The choice considers larger levels only if the first or the planned epsilon is larger."""
FEW_VALUES = 5
"""Up to this number of values k-ary randomized response is the best mechanism at every epsilon."""
WINDOWS = tuple(1 << power for power in range(11))
"""The windows that a square wave can have."""
_SHARES = (0.0, 0.5)
_LEVELS = 12
_MAX_BUCKETS_TRIED = 64


@dataclass(frozen=True, slots=True)
class NumberRange:
    """The declared range of a column of numbers, some of which may be missing or outside."""

    low: float
    high: float
    clip: bool = False
    missing: bool = False

    def matches(self, mechanism: Any) -> bool:
        """Return whether a mechanism has this range."""
        return isinstance(mechanism, RangeMechanism) and (mechanism.low, mechanism.high, mechanism.clip) == (
            self.low, self.high, self.clip,
        ) and (mechanism.name == "numeric-missing") == self.missing  # fmt: skip


@dataclass(frozen=True, slots=True)
class MechanismChoice:
    """A mechanism, and the reason why it was chosen."""

    mechanism: Mechanism
    reason: str


@dataclass(frozen=True, slots=True)
class _Candidate:
    create: Callable[[], Mechanism]
    report_bytes: int
    compute_errors: Callable[[Decimal], list[float]]


def choose_mechanism(
    declared: Sequence[Any] | NumberRange,
    *,
    epsilon: Decimal,
    remaining_share: Decimal,
    planned_epsilon: Decimal | None,
) -> MechanismChoice:
    """Return the mechanism whose margins of error are never far from the best ones, at any level that may follow.

    At each level, a mechanism has a ratio of its margin of error to that of the best mechanism. The choice minimizes
    the largest ratio over all levels. For values, the ratio is taken for a value that no row has and for a value that
    half of the rows have. For numbers, it is taken for the worst mean. Among ratios within two percent, the smallest
    reports win.

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
    >>> choice.mechanism, choice.reason
    (<Unary of 30>, 'best from epsilon 0.1 to 2')
    """
    levels = _list_levels(epsilon, remaining_share, planned_epsilon)
    if isinstance(declared, NumberRange):
        if declared.missing:
            mechanism = Numeric(declared.low, declared.high, clip=declared.clip, missing=True)
            return MechanismChoice(mechanism, "the only one for numbers that may be missing")
        candidates = list(_make_number_candidates(declared))
    else:
        values = list(require_list(declared))
        if len(values) <= FEW_VALUES:
            return MechanismChoice(Categorical(values), f"best for up to {FEW_VALUES} values")
        candidates = list(_make_value_candidates(values, levels[-1]))
    ratios = _compute_largest_error_ratios(candidates, levels)
    similar = [index for index, ratio in enumerate(ratios) if ratio <= SIMILAR_ERROR_RATIO * min(ratios)]
    best = min(similar, key=lambda index: (candidates[index].report_bytes, ratios[index]))
    return MechanismChoice(candidates[best].create(), _format_reason(levels, planned_epsilon))


def _list_levels(epsilon: Decimal, remaining_share: Decimal, planned_epsilon: Decimal | None) -> list[Decimal]:
    """Return the levels to consider: the first and the last one exactly, and a geometric grid between them."""
    if planned_epsilon is not None:
        return [planned_epsilon]
    last = min(epsilon + remaining_share, MAX_LEVEL)
    if last <= epsilon:
        return [epsilon]
    factor, context = float(last / epsilon) ** (1 / (_LEVELS - 1)), Context(prec=6)
    between = (context.create_decimal_from_float(float(epsilon) * factor**index) for index in range(1, _LEVELS - 1))
    return [epsilon, *(level for level in between if epsilon < level < last), last]


def _format_reason(levels: list[Decimal], planned_epsilon: Decimal | None) -> str:
    first, last = format_epsilon(levels[0]), format_epsilon(levels[-1])
    if len(levels) > 1:
        return f"best from epsilon {first} to {last}"
    return f"best at epsilon {first}" if planned_epsilon is None else f"best at the planned epsilon {first}"


def _compute_largest_error_ratios(candidates: list[_Candidate], levels: list[Decimal]) -> list[float]:
    """Return for each candidate the largest ratio of its error to the smallest error of all, over all levels."""
    largest = [1.0] * len(candidates)
    for level in levels:
        errors = [candidate.compute_errors(level) for candidate in candidates]
        smallest = [min(each) for each in zip(*errors, strict=True)]
        for index, own in enumerate(errors):
            ratios = (error / best for error, best in zip(own, smallest, strict=True))
            largest[index] = max(largest[index], *ratios)
    return largest


def _make_value_candidates(values: list[Any], last_level: Decimal) -> Iterator[_Candidate]:
    """Yield k-ary randomized response, OUE, and OLH with different numbers of buckets."""
    size = len(values)
    for name, create in (("categorical", Categorical), ("unary-optimised", Unary)):
        _, report_bytes = compute_support_and_bytes(name, size, last_level)
        yield _Candidate(partial(create, values), report_bytes, partial(_compute_share_errors, name, size))
    for buckets in _list_bucket_numbers(compute_best_buckets(last_level)):
        # A report supports a value with the same probability however many others there are.
        example = LocalHash(range(2), buckets=buckets)
        create_hash = partial(LocalHash, values, buckets=buckets)
        yield _Candidate(create_hash, get_packed_width(example), partial(_compute_hash_errors, example))


def _list_bucket_numbers(maximum: int) -> list[int]:
    """Return numbers of buckets from 2 to the best one for a rare value. Fewer are better for a frequent value."""
    if maximum <= _MAX_BUCKETS_TRIED:
        return list(range(2, maximum + 1))
    factor = (maximum / 2) ** (1 / _MAX_BUCKETS_TRIED)
    return sorted({round(2 * factor**index) for index in range(_MAX_BUCKETS_TRIED + 1)})


def _compute_share_errors(name: str, values: int, level: Decimal) -> list[float]:
    support, _ = compute_support_and_bytes(name, values, level)
    return [sqrt(compute_share_variance(support, share)) for share in _SHARES]


def _compute_hash_errors(mechanism: LocalHash, level: Decimal) -> list[float]:
    support = mechanism.compute_support(mechanism.level(level).retention)
    return [sqrt(compute_share_variance(support, share)) for share in _SHARES]


def _make_number_candidates(numbers: NumberRange) -> Iterator[_Candidate]:
    """Yield randomized rounding, and the square wave with every window."""
    creators: list[Callable[[], Mechanism]] = [partial(Numeric, numbers.low, numbers.high, clip=numbers.clip)]
    creators += [partial(SquareWave, numbers.low, numbers.high, window=window, clip=numbers.clip) for window in WINDOWS]
    for create in creators:
        example = create()
        yield _Candidate(create, get_packed_width(example), partial(_compute_mean_errors, example))


def _compute_mean_errors(mechanism: Mechanism, level: Decimal) -> list[float]:
    return [compute_mean_error(mechanism, level)]
