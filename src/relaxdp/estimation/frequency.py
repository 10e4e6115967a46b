"""Shares of values from counts: estimates, errors and intervals at one level, and combined over several levels."""

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
from relaxdp.estimation.intervals import compute_binomial_interval, compute_true_count_interval
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

    @property
    def levels(self) -> dict[str, int]:
        return {UNKNOWN if self.epsilon is None else format_epsilon(self.epsilon): self.individuals}

    @property
    def comparison_count(self) -> int:
        return count_comparisons(len(self.labels), exclusive=self.joint == "exclusive")

    @property
    def value(self) -> Floats:
        """The unbiased estimate of every share: P^-1 H of the paper, in closed form."""
        return np.asarray(self.support.debias(self.counts / self.individuals))

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
            "The covariance is unknown for this mechanism, because the symbols of its reports depend on each other.",
            hint="Use result.std_error, the standard error of each value.",
        )

    def compute_unclipped_interval(self, tail: float, about: About) -> tuple[Floats, Floats]:
        """Return the ends of the intervals before they are cut at 0 and 1, around the estimate on both sides.

        That is what a difference, or a sum over levels, has to be made from. They depend on the count alone, and
        among many values few counts are distinct.
        """
        distinct, where = np.unique(self.counts, return_inverse=True)
        value = self.support.debias(distinct / self.individuals)
        hit, noise = float(self.support.hit), float(self.support.noise)
        # No share lies below 0 or above 1: there the noise alone says how far the estimate may have fallen.
        chances = np.array([noise, hit])
        reach = 0.5 + scipy.special.ndtri(1 - tail) * np.sqrt(self.individuals * chances * (1 - chances))
        reach /= self.individuals * float(self.support.gain)
        if about == "population":
            low, high = map(self.support.debias, compute_binomial_interval(distinct, self.individuals, tail))
            low = np.where(value > 1, np.minimum(low, value - reach[1]), low)
            high = np.where(value < 0, np.maximum(high, value + reach[0]), high)
            return low[where], high[where]
        ends = compute_true_count_interval(distinct, self.individuals, hit, noise, tail)
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
        """The estimates and their weights."""

    @property
    def source_results(self) -> Sequence[Result]:
        return [part for _, part in self.weighted_parts]

    @property
    def value(self) -> Floats:
        return np.asarray(sum(weight * part.value for weight, part in self.weighted_parts))

    def compute_std_error(self, about: About = "sample") -> Floats:
        check_about(about)
        return np.sqrt(sum((weight * part.compute_std_error(about)) ** 2 for weight, part in self.weighted_parts))

    def compute_unclipped_interval(self, tail: float, about: About) -> tuple[Floats, Floats]:
        below, above = np.zeros(()), np.zeros(())
        for weight, part in self.weighted_parts:
            low, high = part.compute_unclipped_interval(tail, about)[:: 1 if weight > 0 else -1]
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
    """Return the variance of one object's support of a value that a `share` of individuals have, exact or as floats."""
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
