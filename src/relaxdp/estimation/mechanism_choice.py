"""Choose the mechanism of a column: the variance of each per report, a ranking, and the best one.

Everything is computed from the mechanism alone, before anything is released. Nothing here looks at a true value.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Context, Decimal
from functools import cache, partial
from itertools import product
from math import sqrt
from operator import itemgetter
from typing import Any

import numpy as np

from relaxdp.errors import PlanError
from relaxdp.estimation.crosstab import PairSamplingDistribution
from relaxdp.estimation.frequency import compute_precision, compute_support_variance
from relaxdp.estimation.mean import compute_score_variance
from relaxdp.estimation.result import About, check_whole_number
from relaxdp.mechanisms.base import MeanWeights, Mechanism
from relaxdp.mechanisms.categorical import Categorical, Unary
from relaxdp.mechanisms.declared_values import require_ordered_values
from relaxdp.mechanisms.local_hash import LocalHash, choose_bucket_count
from relaxdp.mechanisms.numeric import Numeric, RangeMechanism
from relaxdp.mechanisms.registry import create_mechanism
from relaxdp.mechanisms.report_arrays import count_code_bytes, get_packed_width
from relaxdp.mechanisms.square_wave import SquareWave
from relaxdp.theory.epsilon import MAX_VALUES, Epsilon, as_epsilon, compute_nonzero_threshold, format_epsilon
from relaxdp.theory.randomized_response import SupportProbabilities, compute_retention


@dataclass(frozen=True, slots=True)
class VariancePerReport:
    """The variance that one report at one level adds to an estimate, in the worst case."""

    variance: float
    half_step: float
    """Half the step between two possible estimates, because counts are whole numbers."""
    precision: float
    """The inverse variance of the noise alone, whatever the answer is: the weight of a level among several."""


def compute_variance_per_report(
    support: SupportProbabilities, about: About, share: float | None = None, mean_weights: MeanWeights | None = None
) -> VariancePerReport:
    """Return the variance that one report adds to the share of a value, or with `mean_weights` to the mean.

    Without a `share`, any share is possible and the largest variance counts. The interval of a mean covers all
    randomness between true value and report. If numbers are rounded to an end of the range, that is everything, so the
    interval always holds for the population.
    """
    noise, gain, precision = float(support.noise), float(support.gain), float(compute_precision(support))
    if mean_weights is None:
        if share is not None:
            shares = [share]
        elif about == "population":  # a report varies most if its probability is closest to one half
            shares = [min(1.0, max(0.0, (0.5 - noise) / gain))]
        else:  # the variance is linear in the share, so it is largest at 0 or at 1
            shares = [0.0, 1.0]
        variance = max(compute_debiased_variance(support, each, about) for each in shares)
        return VariancePerReport(variance, 0.5 / gain, precision)
    half = (mean_weights.maximum - mean_weights.minimum) / 2
    if mean_weights.absent is not None:
        present = 1.0 if share is None else max(1.0 - share, 1e-9)
        variance = 4 * float(compute_score_variance(np.linspace(0, 1, 201), present, noise, gain).max()) / present**2
        return VariancePerReport(variance * half**2, half / gain / present, precision)
    if mean_weights.window is not None:
        bins = len(mean_weights.weights) - mean_weights.window
        variance = compute_square_wave_variance(mean_weights, gain, about)
        return VariancePerReport(variance * half**2, half / bins / gain, precision)
    # A report is the lower or the upper end. It varies most if both are equally likely.
    return VariancePerReport((half / gain) ** 2, half / gain, precision)


def compute_categorical_support(epsilon: Epsilon, n_values: int) -> SupportProbabilities:
    """Return the support probabilities of k-ary randomized response, at the retention that is really used."""
    retention = compute_retention(compute_nonzero_threshold(epsilon, n_values))
    return SupportProbabilities.from_one_symbol(retention, n_values)


def compute_debiased_variance(support: SupportProbabilities, share: float, about: About = "sample") -> float:
    """Return the variance of one debiased report of a value that a `share` of individuals have."""
    variance = compute_support_variance(share, float(support.hit), float(support.noise), about)
    return float(variance) / float(support.gain) ** 2


def compute_square_wave_variance(
    mean_weights: MeanWeights, retention: float, about: About = "sample", distance_from_middle: float = 1.0
) -> float:
    """Return the variance that one report of a square wave adds to the mean, in squares of half the range.

    All numbers are at `distance_from_middle` of the range, in halves of it. The default, 1 (an end), is the worst case:
    there noise and numbers are farthest apart. For a population with numbers at both ends, their own variance is added.

    Claim: measured variances are within 3 % of it; tests/statistical/estimation/test_number_plans.py.
    """
    assert mean_weights.window is not None  # noqa: S101 (callers have a square wave)
    places, window = len(mean_weights.weights), mean_weights.window
    half_range = (places - window) / 2
    distance = distance_from_middle * half_range
    variance = retention * (distance**2 + (window**2 - 1) / 12 + 1 / 4) + (1 - retention) * (places**2 - 1) / 12
    if about == "sample":
        variance -= (retention * distance) ** 2
    return variance / (retention * half_range) ** 2


def compute_pair_variance_per_report(
    row_support: SupportProbabilities, column_support: SupportProbabilities, about: About, share: float | None
) -> VariancePerReport:
    """Return the variance that one pair of reports adds to the share of a pair of values, in the worst case."""
    grid = np.linspace(0, 1, 5)
    pair_shares = grid if share is None else np.array([share])
    row, column, pair = (each.reshape(-1) for each in np.meshgrid(grid, grid, pair_shares))
    row, column = np.maximum(row, pair), np.maximum(column, pair)
    pair = np.maximum(pair, row + column - 1)
    with np.errstate(divide="ignore", invalid="ignore"):  # the skewness where nothing varies
        estimate = PairSamplingDistribution(row, column, row_support, column_support, 1, about)
        deviation, _ = estimate.compute_deviation_and_skewness(pair)
    precision = float(compute_precision(row_support) * compute_precision(column_support))
    gain = float(row_support.gain * column_support.gain)
    return VariancePerReport(float(deviation.max()) ** 2, 0.5 / gain, precision)


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
        return self.mechanisms[0].name

    def __str__(self) -> str:
        lines = [
            f"{'numbers' if self.values is None else f'{self.values:,} values'}, epsilon {self.epsilon}",
            f"{'mechanism':<16} {'error x sqrt(n)':>15} {'bytes':>8}",
        ]
        lines += [f"{each.name:<16} {each.std_error:>15.3f} {each.bytes_per_report:>8,}" for each in self.mechanisms]
        return "\n".join(lines)

    __repr__ = __str__


def rank_mechanisms(n_values: int, epsilon: Epsilon) -> MechanismRanking:
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
    check_whole_number(PlanError, "values", n_values, 2, MAX_VALUES, "the number of values, such as len(values)")
    exact = as_epsilon(epsilon)
    return _rank(n_values, exact, {name: plan_reports(name, n_values, exact) for name in VALUE_MECHANISMS}, 0.0)


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
    made = {name: create_mechanism(name, range=(-1, 1), epsilon=exact) for name in NUMBER_MECHANISMS}
    return _rank(None, exact, {name: PlannedReports(mechanism) for name, mechanism in made.items()}, None)


def _rank(
    n_values: int | None, epsilon: Decimal, reports: Mapping[str, PlannedReports], share: float | None
) -> MechanismRanking:
    errors = [(name, one.compute_report_std_error(epsilon, share), one.report_bytes) for name, one in reports.items()]
    ranked = [RankedMechanism(*each) for each in sorted(errors, key=itemgetter(1))]
    similar = [each for each in ranked if each.std_error <= SIMILAR_ERROR_RATIO * ranked[0].std_error]
    best = min(similar, key=lambda each: each.bytes_per_report)
    return MechanismRanking(n_values, format_epsilon(epsilon), [best, *(each for each in ranked if each is not best)])


@dataclass(frozen=True, slots=True)
class PlannedReports:
    """The reports of a mechanism at any level. Its values need not be listed, so that millions of them take no time."""

    mechanism: Mechanism | None
    """The mechanism, or one with fewer values whose reports have the same probabilities; None for k-ary responses."""
    n_values: int = 0

    @property
    def mean_weights(self) -> MeanWeights | None:
        return None if self.mechanism is None else self.mechanism.mean_weights

    @property
    def report_bytes(self) -> int:
        if self.mechanism is None:
            return count_code_bytes(self.n_values)
        return -(-self.n_values // 8) if isinstance(self.mechanism, Unary) else get_packed_width(self.mechanism)

    def compute_noise_and_gain(self, level: Decimal) -> SupportProbabilities:
        if self.mechanism is None:
            return compute_categorical_support(level, self.n_values)
        return self.mechanism.compute_noise_and_gain(self.mechanism.level(level).retention)

    def compute_variance_per_report(self, level: Decimal, about: About, share: float | None) -> VariancePerReport:
        """Return the variance that one report adds to a share, or to a mean."""
        return compute_variance_per_report(self.compute_noise_and_gain(level), about, share, self.mean_weights)

    def compute_report_std_error(self, level: Decimal, share: float | None) -> float:
        """Return the standard error of one report: that of n reports times the square root of n."""
        return sqrt(self.compute_variance_per_report(level, "sample", share).variance)


@cache
def plan_reports(mechanism_name: str, n_values: int, last_epsilon: Decimal) -> PlannedReports:
    """Return the reports of a mechanism for a number of values and a last planned epsilon."""
    if mechanism_name == Categorical.name:
        return PlannedReports(None, n_values)
    # Bits and hashes support a value with the same probability, however many other values there are.
    few = 2 if mechanism_name in VALUE_MECHANISMS else n_values
    return PlannedReports(create_mechanism(mechanism_name, values=range(few), epsilon=last_epsilon), n_values)


# The choice for a column. The first release fixes its mechanism, and the column may be relaxed later. So the choice
# considers all levels from the first one to the last one that the budget allows.

MAX_LEVEL = Decimal(4)
"""The choice considers larger levels only if the first or the planned epsilon is larger."""
FEW_VALUES = 5
"""Up to this number of values k-ary randomized response is the best mechanism at every epsilon."""
WINDOWS = tuple(1 << power for power in range(11))
"""The windows that a square wave can have."""
_SHARES: tuple[float | None, ...] = (0.0, 0.5)
_WORST_MEAN: tuple[float | None, ...] = (None,)
_LEVELS = 12
_MAX_BUCKETS_TRIED = 64
_Candidate = tuple[Callable[[], Mechanism], PlannedReports]


@dataclass(frozen=True, slots=True)
class NumberRange:
    """The declared range of a column of numbers, some of which may be missing or outside."""

    low: float
    high: float
    clip: bool = False
    missing: bool = False

    def is_range_of(self, mechanism: Any) -> bool:
        return isinstance(mechanism, RangeMechanism) and (mechanism.low, mechanism.high, mechanism.clip) == (
            self.low, self.high, self.clip,
        ) and (mechanism.name == "numeric-missing") == self.missing  # fmt: skip


@dataclass(frozen=True, slots=True)
class MechanismChoice:
    """A mechanism, and the reason why it was chosen."""

    mechanism: Mechanism
    reason: str


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
        candidates, shares = _list_number_candidates(declared), _WORST_MEAN
    else:
        values = list(require_ordered_values(declared))
        if len(values) <= FEW_VALUES:
            return MechanismChoice(Categorical(values), f"best for up to {FEW_VALUES} values")
        candidates, shares = _list_value_candidates(values, levels[-1]), _SHARES
    ratios = _compute_largest_error_ratios([reports for _, reports in candidates], levels, shares)
    similar = [index for index, ratio in enumerate(ratios) if ratio <= SIMILAR_ERROR_RATIO * min(ratios)]
    best = min(similar, key=lambda index: (candidates[index][1].report_bytes, ratios[index]))
    return MechanismChoice(candidates[best][0](), _format_reason(levels, planned_epsilon))


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


def _compute_largest_error_ratios(
    candidates: list[PlannedReports], levels: list[Decimal], shares: Sequence[float | None]
) -> list[float]:
    """Return for each candidate the largest ratio of its error to the smallest error of all, over levels and shares."""
    largest = [1.0] * len(candidates)
    for level, share in product(levels, shares):
        errors = [candidate.compute_report_std_error(level, share) for candidate in candidates]
        largest = [max(ratio, error / min(errors)) for ratio, error in zip(largest, errors, strict=True)]
    return largest


def _list_value_candidates(values: list[Any], last_level: Decimal) -> list[_Candidate]:
    """Return the candidates for values: k-ary randomized response, OUE, and OLH with different numbers of buckets."""
    found: list[_Candidate] = [
        (partial(create, values), plan_reports(name, len(values), last_level))
        for name, create in (("categorical", Categorical), ("unary-optimised", Unary))
    ]
    for buckets in _list_bucket_numbers(choose_bucket_count(last_level)):
        # A report supports a value with the same probability however many others there are.
        reports = PlannedReports(LocalHash(range(2), buckets=buckets))
        found.append((partial(LocalHash, values, buckets=buckets), reports))
    return found


def _list_bucket_numbers(maximum: int) -> list[int]:
    """Return numbers of buckets from 2 to the best one for a rare value. Fewer are better for a frequent value."""
    if maximum <= _MAX_BUCKETS_TRIED:
        return list(range(2, maximum + 1))
    factor = (maximum / 2) ** (1 / _MAX_BUCKETS_TRIED)
    return sorted({round(2 * factor**index) for index in range(_MAX_BUCKETS_TRIED + 1)})


def _list_number_candidates(bounds: NumberRange) -> list[_Candidate]:
    """Return the candidates for numbers: randomized rounding, and the square wave with every window."""
    create: list[Callable[[], Mechanism]] = [partial(Numeric, bounds.low, bounds.high, clip=bounds.clip)]
    create += [partial(SquareWave, bounds.low, bounds.high, window=window, clip=bounds.clip) for window in WINDOWS]
    return [(each, PlannedReports(each())) for each in create]
