"""Amplification by shuffling: the epsilon of reports that are published without ids, in random order or as estimates.

Every bound follows from one picture. To tell two true values of one individual apart, only reports count that support
the one or the other. Other individuals send both kinds too, whatever their true values are, and reports that support
neither. Suppose that the public knows which of the others sent one of these three kinds by chance alone. Then the only
thing left to see is the number of each kind. (The clones of Feldman et al. 2021 and 2023 and of Wang et al. 2023; the
blanket of Balle et al. 2019 if every report is a value itself.) If the individual's own report supports neither, it is
hidden only by others' reports that do so as well. To leave these out would be wrong by little for many individuals and
by much for few, as the exact test shows.

For two values more is known: the others' true values hide in the total as well, and all data sets can be enumerated.

All rounding makes the bound larger: fewer clones, larger odds, and of every tail the safe side.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from decimal import ROUND_CEILING, Context, Decimal
from fractions import Fraction
from functools import partial
from math import comb

import numpy as np
from numpy.typing import NDArray

from relaxdp.errors import PlanError
from relaxdp.estimation.planning import DIGITS, MAX_N, PlannedMechanism, PlannedValues
from relaxdp.estimation.result import check_between, check_whole_number
from relaxdp.lazy_imports import scipy
from relaxdp.mechanisms.base import Mechanism
from relaxdp.mechanisms.bloom import Bloom
from relaxdp.mechanisms.categorical import Unary
from relaxdp.mechanisms.local_hash import UNEVEN, LocalHash
from relaxdp.mechanisms.registry import get_mechanism_title
from relaxdp.theory.epsilon import MAX_DIGITS, Epsilon, as_epsilon, compute_nonzero_threshold, format_epsilon
from relaxdp.theory.randomized_response import CloneProbabilities, compute_retention

__all__ = ["ShufflingBound", "compute_bound", "compute_default_delta"]
Floats = NDArray[np.float64]

_SLACK = 1e-9
"""An upper limit of the relative error of every sum, product and tail; tests/exact/estimation/test_shuffling.py
compares them with fractions. It is added if that makes a bound larger, and subtracted otherwise."""
_ROUND = 1e-12
"""The same limit for a few operations."""
_CUT = 1e-6
"""The part of delta for everything outside of all windows."""
_POINTS, _ROWS, _COLUMNS = 4096, 32, 128
"""The numbers of totals that are computed one by one. More are put into blocks, and the worst of a block counts."""
_NEAR = 0.005
"""If two true values are almost as far apart as epsilon allows, reports that support neither count as seen."""
_MAX_CLONES = 1e7
_MAX_VARIANCE = 4e6
"""More individuals than that are not counted: a bound for fewer individuals holds for more."""
_MAX_AMPLIFIED_EPSILON = 40
"""At a larger epsilon a clone is rarer than one in 10^17, so that shuffling gains nothing."""


@dataclass(frozen=True, slots=True)
class ReportBounds:
    """Bounds on how much a report reveals."""

    epsilon: float
    distance: Fraction = Fraction(1)
    """The largest total variation distance between the reports of two true values."""
    clones: CloneProbabilities | None = None
    bit: Fraction | None = None
    """The retention of a report that is one of two values."""

    @property
    def has_tight_clones(self) -> bool:
        """Whether the clone probabilities are as tight as epsilon: nearly all of a report is in them, with its odds."""
        odds = Fraction(math.exp(self.epsilon) + _ROUND)
        if self.clones is None or self.clones.own > self.clones.clone * odds:
            return False
        return self.clones.own + self.clones.clone + self.clones.neither > Fraction(99, 100)


def compute_smallest_epsilon(report_bounds: ReportBounds, n: int, delta: float) -> float:
    """Return the smallest epsilon that is known to hold for one publication of the reports of n individuals."""
    if n == 1 or report_bounds.epsilon > _MAX_AMPLIFIED_EPSILON:
        return report_bounds.epsilon
    found = report_bounds.epsilon
    if report_bounds.bit is not None and float((1 - report_bounds.bit**2) / 4) * n < 3 * _MAX_VARIANCE:
        found = min(found, _compute_epsilon_of_two_values(n, float(report_bounds.bit), delta))
    if (clones := report_bounds.clones) is not None:
        found = _compute_epsilon_of_clones([RoundedCloneProbabilities.from_exact(clones)], n, delta, found)
        if report_bounds.has_tight_clones:
            return found
    candidates = iterate_clone_probabilities(report_bounds.epsilon, float(report_bounds.distance))
    return _compute_epsilon_of_clones(candidates, n, delta, found)


@dataclass(frozen=True, slots=True)
class RoundedCloneProbabilities:
    """Clone probabilities in floats: those that a report supports one of two true values, or neither."""

    informative: float
    """The probability that the individual's own report supports one of both true values."""
    lean: float
    """The probability, minus one half, that it then supports the individual's own."""
    clone: float
    neither: float

    @classmethod
    def from_exact(cls, clones: CloneProbabilities) -> RoundedCloneProbabilities:
        """Return exact clone probabilities in floats, rounded so that they hide less."""
        either = clones.own + clones.clone
        return cls(
            1.0 if not clones.neither else float(either / (either + clones.neither)),
            float((clones.own - clones.clone) / (2 * either)) * (1 + _ROUND),
            float(clones.clone) * (1 - _ROUND),
            float(clones.neither) * (1 - _ROUND),
        )


def iterate_clone_probabilities(epsilon: float, distance: float) -> Iterator[RoundedCloneProbabilities]:
    """Yield clone probabilities: for any two true values at most this distance apart, one of them is worse.

    Two distributions P and Q within e^epsilon of each other and a distance d apart are mixtures. With
    c = d / (e^epsilon - 1) they have e^epsilon c and c of the reports that are likelier with P and with Q, and one
    rest. A third distribution is everywhere at least e^-epsilon of the larger of P and Q: c of both and e^-epsilon of
    the rest. The closer two true values are, the less tells them apart, but the fewer clones there are. So there are
    blocks of distances. In a block the largest c counts for all, with parts of the rest added to both sides, which
    leaves less of it to hide in. In the first block there is too little of the rest, which counts as seen.
    """
    more = math.expm1(epsilon) * (1 + _ROUND)  # the odds, less one
    lean, most = more / (2 * (2 + more)), 1 / (2 + more)
    clone = min(distance * (1 + _ROUND) / more, most)
    if clone > (1 - _NEAR) * most:
        clone = (1 - _NEAR) * most
        yield RoundedCloneProbabilities(1.0, lean, clone, 0.0)
    while clone > 0:
        either = clone * (2 + more)
        rest = (1 - either) / (1 + more)
        width = min(clone, rest * (1 + more) / (2 * more))
        neither = (rest - width * more / (1 + more)) * (1 - _ROUND)
        yield RoundedCloneProbabilities(either, lean, clone * (1 - _ROUND), neither)
        clone -= width


def _compute_epsilon_of_clones(
    candidates: Iterable[RoundedCloneProbabilities], n: int, delta: float, maximum: float
) -> float:
    """Return the smallest epsilon that holds for all candidates, or `maximum` if that is not smaller."""
    found = 0.0
    for clones in candidates:
        counted = min(n, math.ceil(_MAX_CLONES / clones.clone))
        compute_delta = SupportTotals.from_clone_probabilities(clones, counted, _CUT * delta).compute_delta
        if compute_delta(maximum) > delta:
            return maximum
        found = bisect_epsilon(compute_delta, delta, found, maximum)
    return found


def bisect_epsilon(compute_delta: Callable[[float], float], delta: float, low: float, high: float) -> float:
    """Return about the smallest epsilon from `low` to `high` whose delta is at most `delta`."""
    if low >= high or compute_delta(low) <= delta:
        return low
    while high - low > 1e-5 * high:
        middle = (low + high) / 2
        low, high = (low, middle) if compute_delta(middle) <= delta else (middle, high)
    return high


@dataclass(frozen=True, slots=True)
class SupportTotals:
    """The distribution of how many reports support one of two true values: blocks of totals, each with its worst."""

    probabilities: Floats
    clones: Floats
    """The fewest clones in a block."""
    lean: Floats
    """The probability, minus one half, that a report that is no clone supports the own true value."""
    outside: float

    @classmethod
    def from_clone_probabilities(cls, clones: RoundedCloneProbabilities, n: int, tail: float) -> SupportTotals:
        """Return the distribution of the total of the clones of all others and of the individual's own report.

        First, the number of others that send a clone or a report that supports neither; the public may know it. Then,
        the number of clones among these. Fewer of either kind hide less, so in each block the fewest count.
        """
        hidden = 2 * clones.clone + clones.neither
        low, high = _compute_binomial_window(n - 1, hidden, tail)
        law = _compute_binomial_probabilities(n - 1, hidden, low, high)
        step = -(-len(law) // (_POINTS if clones.informative == 1 else _ROWS))
        parts = [
            cls._compute_blocks(clones, low + first, float(law[first : first + step].sum()), tail)
            for first in range(0, len(law), step)
        ]
        probabilities, fewest, lean = (np.concatenate(each) for each in zip(*parts, strict=True))
        return cls(probabilities, fewest, lean, 2 * tail)

    @staticmethod
    def _compute_blocks(
        clones: RoundedCloneProbabilities, n_others: int, probability: float, tail: float
    ) -> tuple[Floats, Floats, Floats]:
        """Return the blocks of totals if this number of others send a clone or a report that supports neither."""
        if clones.informative == 1:
            return np.array([probability]), np.array([float(n_others)]), np.array([clones.lean])
        share = 2 * clones.clone / (2 * clones.clone + clones.neither)
        low, high = _compute_binomial_window(n_others, share, tail)
        law = np.zeros(high - low + 3)
        law[1:-1] = _compute_binomial_probabilities(n_others, share, low, high)
        total = np.arange(low, high + 2, dtype=np.float64)
        # The ratio of the probabilities of two adjacent numbers of clones is known in closed form.
        ratio = (n_others + 1 - total) / np.maximum(total, 1) * (2 * clones.clone / clones.neither)
        own = np.where(total > 0, clones.informative / (clones.informative + (1 - clones.informative) * ratio), 0.0)
        first = np.arange(0, len(total), step := -(-len(total) // _COLUMNS))
        last = np.minimum(first + step, len(total)) - 1
        probabilities = np.add.reduceat(clones.informative * law[:-1] + (1 - clones.informative) * law[1:], first)
        return (probability * probabilities, np.maximum(total[first] - 1, 0), clones.lean * own[last] * (1 + _ROUND))

    def compute_delta(self, epsilon: float) -> float:
        """Return an upper bound of the delta at an epsilon.

        The public sees how many of t reports support one true value. Of these, t - 1 are clones, which are fair coins.
        The last one supports the individual's own true value with probability 1/2 + `lean`.
        """
        more, lean = math.expm1(epsilon), self.lean
        gained = 2 * lean - more * (0.5 - lean)
        lost = 2 * lean + more * (0.5 + lean)
        with np.errstate(divide="ignore", invalid="ignore"):
            least = np.ceil((self.clones + 1) * (lost / (2 * lean * (2 + more))))
        least = np.where(gained > 0, least, np.inf)
        more_heads, heads = (_compute_coin_tail(self.clones, count) for count in (least - 1, least))
        found = gained * more_heads * (1 + _SLACK) - lost * heads * (1 - _SLACK)
        positive = np.where(gained > 0, np.maximum(found, 0), 0)
        return float(np.dot(self.probabilities, positive)) * (1 + 2 * _SLACK) + self.outside


def _compute_coin_tail(trials: Floats, minimum: Floats) -> Floats:
    """Return the probabilities that fair coins show at least `minimum` heads in `trials`."""
    inside = (minimum >= 1) & (minimum <= trials)
    heads, tails = np.where(inside, minimum, 1), np.where(inside, trials - minimum + 1, 1)
    return np.where(inside, scipy.special.betainc(heads, tails, 0.5), minimum < 1)


def _compute_epsilon_of_two_values(n: int, retention: float, delta: float) -> float:
    """Return the epsilon of randomized response with two values, over all data sets and all totals.

    The public sees how many reported a one. If `ones` of the others have the true value one, epsilon must reach the
    odds of a total of at least j, less delta. A data set with fewer ones and fewer zeros is worse, because others can
    only hide the individual. So a block of data sets is as bad as the one with the fewest of both.
    """
    flip = (1 - retention) / 2 * (1 - _ROUND)
    others = min(n, math.ceil(_MAX_VARIANCE / (flip * (1 - flip)))) - 1
    outside = _CUT * delta
    wide = others * flip > _MAX_VARIANCE / 100
    step = max(1, others // (32 if wide else 400))
    odds = 1.0
    for ones in range(0, others + 1, step):
        zeros = max(0, others - ones - step + 1)
        odds = max(odds, _compute_odds_of_totals(ones, zeros, flip, delta, outside))
    return math.log(odds) * (1 + _ROUND)


def _compute_odds_of_totals(ones: int, zeros: int, flip: float, delta: float, tail: float) -> float:
    """Return the largest odds of any total, less delta, if `ones` and `zeros` others have these true values."""
    windows = [_compute_binomial_window(n, flip, tail) for n in (ones, zeros)]
    kept, turned = (_compute_binomial_probabilities(n, flip, *w) for n, w in zip((ones, zeros), windows, strict=True))
    law, error = _convolve(kept[::-1], turned)  # of the total of all others inside of the windows
    above = np.cumsum(law[::-1])[::-1]
    above = np.append(above[1:], 0.0)  # a total above j, where the others' total is j
    spread = (len(law) + 1) * error
    hit = ((1 - flip) * law + above) * (1 + _SLACK) + 2 * tail + spread - delta
    miss = (flip * law + above) * (1 - _SLACK) - spread
    counted = hit > 0
    if not counted.any():
        return 1.0
    if (miss[counted] <= 0).any():
        return math.inf
    return float(np.max(hit[counted] / miss[counted]))


def _convolve(first: Floats, second: Floats) -> tuple[Floats, float]:
    """Convolve two distributions: return that of the sum, and the largest absolute error of each probability."""
    if len(first) * len(second) <= 4_000_000:
        return np.convolve(first, second), 0.0
    size = len(first) + len(second) - 1
    fast = 1 << (size - 1).bit_length()
    law = np.fft.irfft(np.fft.rfft(first, fast) * np.fft.rfft(second, fast), fast)[:size]
    return np.maximum(law, 0), 1e-14 * float(np.linalg.norm(first) * np.linalg.norm(second))


def _compute_binomial_window(trials: int, probability: float, tail: float) -> tuple[int, int]:
    """Return an interval that a binomial count leaves with a small probability only (Bernstein's inequality)."""
    bits = math.log(2 / tail)
    reach = bits / 3 + math.sqrt(bits**2 / 9 + 2 * trials * probability * (1 - probability) * bits)
    mean = trials * probability
    return max(0, math.floor(mean - reach)), min(trials, math.ceil(mean + reach))


def _compute_binomial_probabilities(trials: int, probability: float, low: int, high: int) -> Floats:
    """Return the probabilities of all counts in a window, given that the count is inside: never below the true ones.

    From the likeliest count outwards every probability is a product with the one before. The logarithm of a factorial
    would not have enough digits for many trials.
    """
    top = min(max(int((trials + 1) * probability), low), high)
    odds = probability / (1 - probability)
    up = np.arange(top, high, dtype=np.float64)
    down = np.arange(top, low, -1, dtype=np.float64)
    rising = np.cumprod((trials - up) / (up + 1) * odds)
    falling = np.cumprod(down / ((trials - down + 1) * odds))
    probabilities = np.concatenate([falling[::-1], [1.0], rising])
    return np.asarray(probabilities / probabilities.sum())


@dataclass(frozen=True, slots=True)
class ShufflingBound:
    """The largest privacy loss of an individual towards the public from publications of a closed group."""

    epsilon: Decimal
    """Rounded up. Never more than that of the reports."""
    delta: float
    """The probability of a larger loss: keep it far below 1/n."""
    n: int
    """The number of individuals in the smallest published group."""
    report_epsilon: Decimal
    """The epsilon of the reports: the privacy loss towards everyone who receives them with ids."""
    basis: str
    """What is used of the reports' distribution: a mechanism, or only that every report keeps its epsilon."""
    publications: int = 1
    """The number of publications, each with its own noise, that are paid together."""

    assumes = (
        "The group is closed: no one joins, leaves or is withdrawn between one publication and the next.",
        "All individuals in it reported at the same level, or each level is a separate group.",
        "The publication is an estimate, or reports without ids in random order. No one can link a seed or a cohort to "
        "an individual.",
        "No one is in two published groups of one question. If groups overlap, n is the size of their smallest "
        "intersection or difference.",
        "Publications of other questions, or at other dates, about the same individuals add up.",
        "All other individuals drew their reports as the mechanism demands, and do not reveal them.",
    )
    """The conditions of the bound. If one fails, the privacy loss is that of the reports."""

    def __str__(self) -> str:
        several = self.publications > 1
        many = f"{self.publications:,} publications, each with its own noise," if several else "one publication"
        verb, each = ("cost", " each time") if several else ("costs", "")
        return (
            f"Towards the public, {many} of a closed group of {self.n:,} {verb} each of them at most epsilon "
            f"{format_epsilon(self.epsilon)} at delta {self.delta:g}; the reports themselves cost epsilon "
            f"{format_epsilon(self.report_epsilon)}{each} ({self.basis})."
        )


def compute_bound(
    epsilon: Epsilon | Iterable[Epsilon],
    *,
    n: int | Iterable[int],
    delta: float | None = None,
    values: PlannedValues | None = None,
    mechanism: str | None = None,
    publications: int = 1,
) -> ShufflingBound:
    """Return the privacy loss of publishing the reports of a closed group in random order, or an estimate from them.

    Files with ids, live results and overlapping groups have no such bound. For these it is the epsilon of the reports.
    Publishing one group on one path several times costs as much as once.

    Args:
        epsilon: The epsilon of the last level, or those of all levels. The largest one counts, because older reports
            follow from newer ones. If you choose a level after looking at reports, pass the largest planned one.
        n: The number of individuals that are published together, or of every published group. The smallest one counts.
        delta: The probability of a larger loss. The default is 1e-6, or less for many individuals: at most 1 / (10 n).
        values: The number of possible answers, or the mechanism. Without it the bound holds for all reports that keep
            their epsilon.
        mechanism: The name of the mechanism for a number of values, k-ary randomized response by default.
        publications: The number of publications with their own noise, such as the dates of a series. They compose.

    Returns:
        The bound, with its conditions in `assumes`.

    Raises:
        PlanError: `n`, `delta`, `values` or `publications` is out of range, or `values` is missing for a `mechanism`.
        EpsilonError: An epsilon is not a positive number.

    Claim: never below the exact delta of any data set, for up to six individuals with two values and four with three;
    tests/exact/estimation/test_shuffling.py.

    Example:
        >>> print(compute_bound(4, n=100_000, delta=1e-6, values=2).epsilon)
        0.08482
    """
    last = _parse_last_level(epsilon)
    smallest = _parse_smallest_group(n)
    delta = compute_default_delta(smallest) if delta is None else float(delta)
    check_between(PlanError, "delta", delta, 0, 1, "a small number such as delta=1e-6")
    check_whole_number(PlanError, "publications", publications, 1, MAX_N, "publications=1 for a single publication")
    basis, report = _describe_and_bound_reports(values, mechanism, last)
    found = _compose_publications(partial(compute_smallest_epsilon, report, smallest), delta, publications)
    sequential = Context(prec=MAX_DIGITS, rounding=ROUND_CEILING).multiply(last, Decimal(publications))
    rounded = Context(prec=DIGITS, rounding=ROUND_CEILING).create_decimal_from_float(found * (1 + 1e-9))
    total = as_epsilon(min(rounded, sequential), allow_zero=True)
    return ShufflingBound(total, delta, smallest, last, basis, publications)


def _parse_last_level(epsilon: Epsilon | Iterable[Epsilon]) -> Decimal:
    levels = [epsilon] if isinstance(epsilon, str) or not isinstance(epsilon, Iterable) else list(epsilon)
    if not levels:
        raise PlanError("`epsilon` is an empty list.", hint="Pass a level such as 1, or several such as [0.5, 1].")
    return max(as_epsilon(level) for level in levels)


def _parse_smallest_group(n: int | Iterable[int]) -> int:
    sizes = list(n) if isinstance(n, Iterable) else [n]
    if not sizes or not all(type(size) is int and 1 <= size <= MAX_N for size in sizes):
        raise PlanError(
            "`n` must be a whole number of individuals from 1 to 10^15, or a list with the number of each group.",
            hint="Pass n=10_000, or n=[10_000, 8_500].",
        )
    return min(sizes)


def compute_default_delta(n: int) -> float:
    """Return the largest power of ten that is at most 1 / (10 n) and at most 10^-6."""
    return 10.0 ** -max(6, math.ceil(math.log10(n)) + 1)


def _describe_and_bound_reports(
    values: PlannedValues | None, name: str | None, last_epsilon: Decimal
) -> tuple[str, ReportBounds]:
    """Return a text for `ShufflingBound.basis`, and the bounds of a report."""
    if values is None:
        if name is not None:
            raise PlanError("`mechanism` needs `values`, the number of values.", hint="Add values=, such as values=3.")
        return "whatever the reports are", ReportBounds(float(last_epsilon))
    reports = PlannedMechanism(values, name).plan_reports(last_epsilon)
    mechanism = reports.mechanism
    clones: CloneProbabilities | None
    if mechanism is None:
        retention = compute_retention(compute_nonzero_threshold(last_epsilon, reports.n_values))
        distance, clones = retention, CloneProbabilities.from_one_symbol(retention, reports.n_values)
        is_bit = reports.n_values == 2
    else:
        retention = mechanism.level(last_epsilon).retention
        distance = compute_total_variation_bound(mechanism, retention)
        clones = compute_clone_probabilities(mechanism, retention)
        is_bit = mechanism.alphabet == 2 and mechanism.symbols == 1 and not mechanism.seeded
    title = get_mechanism_title("categorical" if mechanism is None else mechanism.name)
    bounds = ReportBounds(float(last_epsilon), distance, clones, retention if is_bit else None)
    return f"{values:,} values, {title}" if isinstance(values, int) else title, bounds


def compute_total_variation_bound(mechanism: Mechanism, retention: Fraction) -> Fraction:
    """Return a bound on the total variation between the reports of two true values.

    A symbol that was not kept has the same distribution for all true values, and so has a seed. For several symbols
    1 is always safe.
    """
    if isinstance(mechanism, Unary):  # all of it is in one of the two bits being set alone
        return mechanism.compute_noise_and_gain(retention).gain
    if isinstance(mechanism, Bloom):  # how many of the bits in which two words can differ agree with one of them
        bits, same = mechanism.shape.max_differing_bits, (1 + retention) / 2
        probabilities = [comb(bits, agree) * same**agree * (1 - same) ** (bits - agree) for agree in range(bits + 1)]
        differences = (one - other for one, other in zip(probabilities, probabilities[::-1], strict=True))
        return sum((max(difference, Fraction(0)) for difference in differences), Fraction(0))
    return retention if mechanism.symbols == 1 else Fraction(1)


def compute_clone_probabilities(mechanism: Mechanism, retention: Fraction) -> CloneProbabilities | None:
    """Return the clone probabilities of a report, if they are known. A true value may be a mixture of symbols."""
    if isinstance(mechanism, Unary):  # one of two bits is set alone, or none is; both set reveal nothing
        support = mechanism.compute_noise_and_gain(retention)
        hit, noise = support.hit, support.noise
        return CloneProbabilities(own=hit * (1 - noise), clone=(1 - hit) * noise, neither=(1 - hit) * (1 - noise))
    if isinstance(mechanism, LocalHash):  # the seeds that separate two values: all but 1/g, and a little
        separating = 1 - Fraction(1, mechanism.alphabet) - UNEVEN
        return CloneProbabilities.from_one_symbol(retention, mechanism.alphabet, separating)
    if mechanism.symbols > 1 or mechanism.seeded:
        return None
    return CloneProbabilities.from_one_symbol(retention, mechanism.alphabet)


def _compose_publications(compute_epsilon: Callable[[float], float], delta: float, publications: int) -> float:
    """Return the epsilon of several publications: by sequential composition, or by advanced composition if smaller.

    Advanced: k (e, d) are (k e tanh(e/2) + e sqrt(2 k ln(1/d')), k d + d'), Kairouz, Oh and Viswanath 2015.
    """
    if publications == 1:
        return compute_epsilon(delta)
    one = compute_epsilon(delta / (2 * publications))
    advanced = publications * one * math.tanh(one / 2) + one * math.sqrt(2 * publications * math.log(2 / delta))
    return min(publications * compute_epsilon(delta / publications), advanced)
