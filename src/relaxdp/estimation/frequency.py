"""Shares of values from counts: estimates, errors and intervals at one level, and combined over several levels.

Intervals come from inverting the tails of a count of supporting reports. Of `n` individuals, `true_count` support a
value with probability `hit`, the others with probability `noise`. The count is a sum of two binomials. Its saddlepoint
is the root of a quadratic, so its tails cost the same for ten individuals as for ten million. With all individuals
alike (`hit` = `noise`) it is one binomial, whose tails are those of SciPy.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from relaxdp.errors import EstimationError
from relaxdp.estimation.result import (
    UNKNOWN,
    About,
    DerivedResult,
    Floats,
    Result,
    check_about,
    count_comparisons,
    inherit_from_source,
)
from relaxdp.lazy_imports import scipy
from relaxdp.mechanisms.base import Joint
from relaxdp.theory.epsilon import format_epsilon
from relaxdp.theory.randomized_response import SupportProbabilities

_ROUNDING = 1e-12
"""How near to 0 or 1 bisection leaves an end that lies there."""


@dataclass(frozen=True, eq=False, repr=False)
class Frequency(Result):
    """Estimated shares of the declared values among some individuals, all at one level.

    `value` is unbiased, so it may lie below 0 or above 1; `consistent` gives shares that are neither. Everything uses
    the retention that was realised, not the nominal one.
    """

    labels: Sequence[Any]
    counts: NDArray[np.int64]
    individuals: int
    support: SupportProbabilities
    epsilon: Decimal | None = None
    joint: Joint = "exclusive"
    """How the supports of two values go together, given the truths: a matter of the encoding."""
    sums_to_one = True
    is_weighted = False

    @property
    def levels(self) -> dict[str, int]:
        return {UNKNOWN if self.epsilon is None else format_epsilon(self.epsilon): self.individuals}

    @property
    def comparison_count(self) -> int:
        return count_comparisons(len(self.labels), exclusive=self.joint == "exclusive")

    @property
    def effective_n(self) -> float:
        """How many equally weighted individuals have the same noise."""
        return self.individuals

    @property
    def support_rates(self) -> Floats:
        """The support rate of each value: the share of reports that support it."""
        return np.asarray(self.counts / self.individuals)

    @property
    def squared_weight_rates(self) -> Floats:
        """The support rates with squared weights, which decide the variance."""
        return self.support_rates

    @property
    def value(self) -> Floats:
        """The unbiased estimate of every share: P^-1 H of the paper, in closed form."""
        return np.asarray(self.support.debias(self.support_rates))

    def compute_std_error(self, about: About = "sample") -> Floats:
        """Return the standard errors.

        About "sample": how far the estimate is from the share among *these* individuals; only the noise is random (the
        paper's variance). About "population": also counts that these individuals are a random sample of a larger one.
        The unknown shares in the formulas are the estimated ones, pulled into 0 .. 1.
        """
        check_about(about)
        hit, noise = float(self.support.hit), float(self.support.noise)
        variance = compute_support_variance(self._clipped_shares, hit, noise, about)
        return np.asarray(np.sqrt(variance / self.individuals) / float(self.support.gain))

    def covariance(self, indexes: Sequence[int] | None = None) -> Floats:
        """Return the covariance of the estimates about these individuals (the paper's last appendix), in closed form.

        `indexes` picks values by their position; with many values the full matrix would not fit anywhere.

        Where a report is one value, estimates of two values are negatively correlated; bits and hashed values are not
        correlated at all.

        Claim: equals P^-1 Cov(H) P^-1; tests/exact/estimation/test_estimators.py. Bits and hashes:
        tests/exact/mechanisms/test_mechanisms.py.
        """
        chosen = slice(None) if indexes is None else np.asarray(indexes)
        if self.joint == "exclusive":
            truths = self.individuals * self._clipped_shares[chosen]
            return compute_categorical_covariance(truths, self.individuals, self.support)
        if self.joint == "independent":
            return np.diag(self.compute_std_error()[chosen] ** 2)
        raise EstimationError(
            "The covariance is unknown: the mechanism does not state how the parts of one report depend on each other.",
            hint="Use result.std_error, the standard error of each value, or set `joint` in your own mechanism.",
        )

    def compute_unclipped_interval(self, tail_probability: float, about: About) -> tuple[Floats, Floats]:
        """Return the ends of the intervals before they are cut at 0 and 1, around the estimate on both sides.

        That is what a difference, or a sum over levels, has to be made from. They depend on the count alone, and
        among many values few counts are distinct.
        """
        distinct, where = np.unique(self.counts, return_inverse=True)
        value = self.support.debias(distinct / self.individuals)
        hit, noise = float(self.support.hit), float(self.support.noise)
        # No share lies below 0 or above 1: there the noise alone says how far the estimate may have fallen.
        chances = np.array([noise, hit])
        reach = 0.5 + scipy.special.ndtri(1 - tail_probability) * np.sqrt(self.individuals * chances * (1 - chances))
        reach /= self.individuals * float(self.support.gain)
        if about == "population":
            low, high = map(
                self.support.debias, compute_binomial_interval(distinct, self.individuals, tail_probability)
            )
            low = np.where(value > 1, np.minimum(low, value - reach[1]), low)
            high = np.where(value < 0, np.maximum(high, value + reach[0]), high)
            return low[where], high[where]
        ends = compute_true_count_interval(distinct, self.individuals, hit, noise, tail_probability)
        low, high = (end / self.individuals for end in ends)
        none, every = high <= _ROUNDING, low >= 1 - _ROUNDING
        low = np.where(low <= 0, np.minimum(low, value - reach[0]), np.minimum(low, value))
        high = np.where(high >= 1, np.maximum(high, value + reach[1]), np.maximum(high, value))
        low = np.where(every, np.maximum(1, value - reach[1]), low)
        high = np.where(none, np.minimum(0, value + reach[0]), high)
        return low[where], high[where]

    @property
    def _clipped_shares(self) -> Floats:
        return np.clip(self.value, 0, 1)


class LinearCombination(DerivedResult):
    """A linear combination of independent estimates, row by row.

    Its interval adds the squared distances from each part's estimate to the ends of its interval (the method of
    variance estimates recovery). It keeps the asymmetry of the parts, and one part keeps its own interval.
    """

    @property
    @abstractmethod
    def weighted_parts(self) -> Sequence[tuple[float, Result]]:
        """The parts, which are estimates, and their weights."""

    @property
    def source_results(self) -> Sequence[Result]:
        return [part for _, part in self.weighted_parts]

    @property
    def value(self) -> Floats:
        return np.asarray(sum(weight * part.value for weight, part in self.weighted_parts))

    def compute_std_error(self, about: About = "sample") -> Floats:
        check_about(about)
        return np.sqrt(sum((weight * part.compute_std_error(about)) ** 2 for weight, part in self.weighted_parts))

    def compute_unclipped_interval(self, tail_probability: float, about: About) -> tuple[Floats, Floats]:
        below, above = np.zeros(()), np.zeros(())
        for weight, part in self.weighted_parts:
            low, high = part.compute_unclipped_interval(tail_probability, about)[:: 1 if weight > 0 else -1]
            below = below + (weight * (part.value - low)) ** 2
            above = above + (weight * (high - part.value)) ** 2
        return self.value - np.sqrt(below), self.value + np.sqrt(above)


@dataclass(frozen=True, eq=False, repr=False)
class WeightedSum(LinearCombination):
    """A weighted sum of the estimates of several levels, or of parts of the individuals."""

    parts: Sequence[Result]
    weights: Sequence[float]
    minimum: float = 0.0
    maximum: float = 1.0
    sums_to_one = inherit_from_source("sums_to_one")

    @property
    def weighted_parts(self) -> Sequence[tuple[float, Result]]:
        return list(zip(self.weights, self.parts, strict=True))


def compute_support_variance(share: Any, hit: Any, noise: Any, about: About) -> Any:
    """Return the variance of one individual's support of a value with this `share`, exact or as floats."""
    if about == "population":
        chance = noise + (hit - noise) * share
        return chance * (1 - chance)
    return share * hit * (1 - hit) + (1 - share) * noise * (1 - noise)


def compute_precision(support: SupportProbabilities) -> Fraction:
    """Return the inverse variance of the noise in one debiased report: the weight of a level among several."""
    return support.gain**2 / (support.noise * (1 - support.noise))


def compute_categorical_covariance(truths: Floats, individuals: int, support: SupportProbabilities) -> Floats:
    """Return the covariance of categorical estimates, given how many individuals have each of the chosen values."""
    hit, noise, gain = float(support.hit), float(support.noise), float(support.gain)
    own = truths[:, None] + truths[None, :]
    matrix = -(own * hit * noise + (individuals - own) * noise * noise)
    np.fill_diagonal(matrix, truths * hit * (1 - hit) + (individuals - truths) * noise * (1 - noise))
    return matrix / (individuals * gain) ** 2


_NEAR = 1e-10
"""How far from its place an end may be, as a share of the individuals."""
_SMOOTH = 2.0
"""The least standard deviation of a count whose tails have no steps."""
_STEPS = 12  # many more than it takes
_ALMOST = 1 - 2.0**-53


def compute_lower_tail(count: Floats, true_count: Floats, n: float, hit: float, noise: float) -> Floats:
    """Return the lower tail, P(C <= count), by the Lugannani-Rice formula with a continuity correction."""
    return _compute_tail(np.asarray(count, float) + 0.5, true_count, n, hit, noise, at_most=True)


def compute_upper_tail(count: Floats, true_count: Floats, n: float, hit: float, noise: float) -> Floats:
    """Return the upper tail, P(C >= count)."""
    return _compute_tail(np.asarray(count, float) - 0.5, true_count, n, hit, noise, at_most=False)


def _compute_tail(cutoff: Floats, true_count: Floats, n: float, hit: float, noise: float, *, at_most: bool) -> Floats:
    false_count = n - true_count
    mean = true_count * hit + false_count * noise
    variance = true_count * hit * (1 - hit) + false_count * noise * (1 - noise)
    inside = np.clip(cutoff, 0.25, n - 0.25)
    x = _find_saddlepoint(inside, true_count, false_count, hit, noise)
    t = np.log(x)
    cumulant = scipy.special.xlog1py(true_count, hit * (x - 1)) + scipy.special.xlog1py(false_count, noise * (x - 1))
    tilted_hit, tilted_noise = hit * x / (1 - hit + hit * x), noise * x / (1 - noise + noise * x)
    curvature = true_count * tilted_hit * (1 - tilted_hit) + false_count * tilted_noise * (1 - tilted_noise)
    with np.errstate(divide="ignore", invalid="ignore"):
        w = np.sign(t) * np.sqrt(2 * np.maximum(t * inside - cumulant, 0))
        u = 2 * np.sinh(t / 2) * np.sqrt(curvature)
        correction = np.exp(-w * w / 2) / np.sqrt(2 * np.pi) * (1 / w - 1 / u)
    near = np.abs(inside - mean) < 1e-4 * np.sqrt(variance)  # there 1/w - 1/u cancels; the normal tail is enough
    w = np.where(near, (inside - mean) / np.sqrt(np.maximum(variance, 1e-300)), w)
    correction = np.where(near, 0.0, correction)
    tail = scipy.special.ndtr(w) + correction if at_most else scipy.special.ndtr(-w) - correction
    # No report supports the value, or all do: closed forms, and nothing beyond the ends.
    none = np.exp(true_count * scipy.special.log1p(-hit) + false_count * scipy.special.log1p(-noise))
    every = np.exp(true_count * np.log(hit) + false_count * np.log(noise))
    if at_most:
        tail = np.where(cutoff < 1, none, np.where(cutoff > n - 1, 1 - every, tail))
        tail = np.where(cutoff < 0, 0.0, np.where(cutoff > n, 1.0, tail))
    else:
        tail = np.where(cutoff > n - 1, every, np.where(cutoff < 1, 1 - none, tail))
        tail = np.where(cutoff > n, 0.0, np.where(cutoff < 0, 1.0, tail))
    return np.clip(tail, 0.0, 1.0)


def _find_saddlepoint(count: Floats, true_count: Floats, false_count: Floats, hit: float, noise: float) -> Floats:
    """Return the saddlepoint x: true_count hit x/(1-hit+hit x) + false_count noise x/(1-noise+noise x) = count."""
    miss, silent = 1 - hit, 1 - noise
    a = (true_count + false_count - count) * hit * noise
    b = true_count * hit * silent + false_count * noise * miss - count * (hit * silent + noise * miss)
    c = count * miss * silent
    root = np.sqrt(b * b + 4 * a * c)
    # Of the two forms of the positive root, the one without cancellation.
    with np.errstate(divide="ignore", invalid="ignore"):
        x = np.where(b > 0, 2 * c / (b + root), (root - b) / (2 * a))
    return np.asarray(x, float)


def compute_true_count_interval(count: Any, n: int, hit: float, noise: float, tail: float) -> tuple[Floats, Floats]:
    """Return the minimum and maximum true count for which the observed `count` is not too rare: tails above `tail`.

    Both tails are monotone in this number, so the bounds are where they cross `tail` (as real numbers from 0 to `n`).

    Claim: the same ends as by bisection; tests/exact/estimation/test_intervals.py.
    """
    counts = np.asarray(count, float)
    hit = min(hit, _ALMOST)  # at a very large epsilon the number that is nearest to it is 1, and has no logarithm
    low = _find_min_true_count(
        lambda seen, k: compute_upper_tail(seen, k, n, hit, noise), counts, tail, n,
        *_guess_min_count(counts - 0.5, n, hit, noise, tail),
    )  # fmt: skip
    # The same from the other end: how many individuals do not have the value, given how many reports do not support it.
    high = n - _find_min_true_count(
        lambda seen, k: compute_lower_tail(seen, n - k, n, hit, noise), counts, tail, n,
        *_guess_min_count(n - counts - 0.5, n, 1 - noise, 1 - hit, tail),
    )  # fmt: skip
    return low, high


def _guess_min_count(cutoff: Floats, n: int, hit: float, noise: float, tail: float) -> tuple[Floats, Floats, float]:
    """Return the minimum true count if counts were normal, the count's standard deviation there, and the gain.

    It is the smaller root of (away - gain k)^2 = quantile^2 variance, with a variance that is linear in k.
    """
    quantile, gain, silent = scipy.special.ndtri(tail), hit - noise, noise * (1 - noise)
    growth, away = hit * (1 - hit) - silent, cutoff - n * noise
    half = gain * away + quantile**2 * growth / 2
    spread = np.maximum(half**2 - gain**2 * (away**2 - quantile**2 * n * silent), 0)
    end = np.clip((half - np.sqrt(spread)) / gain**2, 0, n)
    return end, np.sqrt(n * silent + growth * end), gain


def _find_min_true_count(
    compute_tail: Any, counts: Floats, tail: float, n: int, start: Floats, deviation: Floats, gain: float
) -> Floats:
    """Return the minimum true count k in [0, n] with `compute_tail(counts, k)` > `tail`, rounded outwards (down).

    In normal quantiles the chance is nearly a straight line: a few steps of the secant method lead from the end of a
    normal law to the place. Then it is looked at whether the place is there; where it is not, and where the count
    hardly varies, so that the chance is a staircase, bisection finds it.
    """

    def compute_shortfall(k: Floats) -> Floats:
        found = np.clip(compute_tail(counts, k), 1e-300, 1 - 1e-16)
        return np.asarray(scipy.special.ndtri(tail) - scipy.special.ndtri(found))

    near, place, left = _NEAR * n, start, compute_shortfall(start)
    step = left * deviation / gain
    for _ in range(_STEPS):
        following = np.clip(place + step, 0, n)
        rest = compute_shortfall(following)
        with np.errstate(divide="ignore", invalid="ignore"):
            step = np.where(rest == left, 0.0, rest * (following - place) / (left - rest))
        place, left = following, rest
        if np.all(np.abs(step) < near / 4):
            break
    below, above = np.clip(place - near / 2, 0, n), np.clip(place + near / 2, 0, n)
    is_enough = compute_tail(counts, above) > tail
    is_there = ((below == 0) | (compute_tail(counts, below) <= tail)) & (is_enough | (above == n))
    found = np.where(is_enough, below, n)
    lost = ~is_there | (deviation < _SMOOTH)
    if np.any(lost):
        found[lost] = _bisect_least_number(lambda k: compute_tail(counts[lost], k) > tail, (int(lost.sum()),), n)
    return found


def _bisect_least_number(is_enough: Any, shape: tuple[int, ...], maximum: int) -> Floats:
    """Return by bisection the least k up to `maximum` with `is_enough(k)`, which is monotone; rounded down."""
    low, high = np.zeros(shape), np.full(shape, float(maximum))
    at_zero = is_enough(low)
    for _ in range(60):
        middle = (low + high) / 2
        above = is_enough(middle)
        high, low = np.where(above, middle, high), np.where(above, low, middle)
    return np.where(at_zero, 0.0, low)


def compute_binomial_interval(count: Any, n: int, tail: float) -> tuple[Floats, Floats]:
    """Return the exact (Clopper-Pearson) interval of a binomial probability."""
    counts = np.asarray(count, float)
    with np.errstate(invalid="ignore"):
        low = np.where(counts > 0, scipy.special.betaincinv(np.maximum(counts, 1), n - counts + 1, tail), 0.0)
        high = np.where(counts < n, scipy.special.betaincinv(counts + 1, np.maximum(n - counts, 1), 1 - tail), 1.0)
    return low, high
