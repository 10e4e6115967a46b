"""Shares of values from counts: estimates, errors and intervals at one level, and combined over several levels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from relaxdp.errors import EstimationError
from relaxdp.estimation.consistency import compute_expected_shares, compute_likeliest_shares, compute_nearest_shares
from relaxdp.estimation.intervals import compute_binomial_interval, compute_true_count_interval
from relaxdp.estimation.result import UNKNOWN, About, DerivedResult, Floats, Result, check_about, count_comparisons
from relaxdp.lazy_imports import scipy
from relaxdp.mechanisms.base import Joint
from relaxdp.theory.epsilon import format_epsilon
from relaxdp.theory.randomized_response import SupportProbabilities

_ROUNDING = 1e-12
"""How near to 0 or 1 bisection leaves an end that lies there."""


@dataclass(frozen=True, eq=False, repr=False)
class Frequency(Result):
    """Estimated shares of the declared values among some objects, all at one level.

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

    @property
    def levels(self) -> dict[str, int]:
        """The one level, with all individuals."""
        return {UNKNOWN if self.epsilon is None else format_epsilon(self.epsilon): self.individuals}

    @property
    def comparison_count(self) -> int:
        """One for each value, except that two categorical shares are one question."""
        return count_comparisons(len(self.labels), exclusive=self.joint == "exclusive")

    @property
    def value(self) -> Floats:
        """The unbiased estimate of every share: P^-1 H of the paper, in closed form."""
        return np.asarray(self.support.debias(self.counts / self.individuals))

    def compute_std_error(self, about: About = "sample") -> Floats:
        """Return the standard errors.

        About "sample": how far the estimate is from the share among *these* objects; only the noise is random (the
        paper's variance). About "population": also counts that these objects are a random sample of a larger one.
        The unknown shares in the formulas are the estimated ones, pulled into 0 .. 1.
        """
        check_about(about)
        variance = compute_report_variance(self._clipped_shares, self._hit, self._noise, about)
        return np.asarray(np.sqrt(variance / self.individuals) / self._gain)

    def covariance(self, indexes: Sequence[int] | None = None) -> Floats:
        """Return the covariance of the estimates about these objects (the paper's last appendix), in closed form.

        `indexes` picks values by their position; with many values the full matrix would not fit anywhere.

        Where a report is one value, estimates of two values are negatively correlated; bits and hashed values are not
        correlated at all.

        Claim: equals P^-1 Cov(H) P^-1; tests/exact/estimation/test_estimators.py. Bits and hashes:
        tests/exact/mechanisms/test_mechanisms.py.
        """
        chosen = slice(None) if indexes is None else np.asarray(indexes)
        if self.joint == "exclusive":
            return compute_categorical_covariance(
                self.individuals * self._clipped_shares[chosen], self.individuals, self.support
            )
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
        # No share lies below 0 or above 1: there the noise alone says how far the estimate may have fallen.
        reach = [
            (0.5 + scipy.special.ndtri(1 - tail) * np.sqrt(self.individuals * chance * (1 - chance)))
            / (self.individuals * self._gain)
            for chance in (self._noise, self._hit)
        ]
        if about == "population":
            low, high = (
                self.support.debias(end) for end in compute_binomial_interval(distinct, self.individuals, tail)
            )
            low = np.where(value > 1, np.minimum(low, value - reach[1]), low)
            high = np.where(value < 0, np.maximum(high, value + reach[0]), high)
            return low[where], high[where]
        low, high = (
            end / self.individuals
            for end in compute_true_count_interval(distinct, self.individuals, self._hit, self._noise, tail)
        )
        none, every = high <= _ROUNDING, low >= 1 - _ROUNDING
        low = np.where(low <= 0, np.minimum(low, value - reach[0]), np.minimum(low, value))
        high = np.where(high >= 1, np.maximum(high, value + reach[1]), np.maximum(high, value))
        low = np.where(every, np.maximum(1, value - reach[1]), low)
        high = np.where(none, np.minimum(0, value + reach[0]), high)
        return low[where], high[where]

    def consistent(self, method: Literal["expected", "nearest", "likelihood"] = "expected") -> Floats:
        """Return shares that are not negative and sum to 1: less error, at the price of some bias.

        "expected": what each share is expected to be, given its estimate, its noise and all other estimates; where
        noise is small, the same as "nearest", the closest point to the unbiased estimate. "likelihood": the likeliest
        shares (where a report may support several values, as if the counts of values were independent).
        """
        if method == "expected":
            return compute_expected_shares(self.value, self.std_error**2)
        if method == "nearest":
            return compute_nearest_shares(self.value)
        if method != "likelihood":
            raise EstimationError(
                "Unknown method {method!r}: expected 'expected', 'nearest' or 'likelihood'.",
                hint="Pass method='expected'.",
                method=method,
            )
        silent = None if self.joint == "exclusive" else [self.individuals - self.counts]
        return compute_likeliest_shares([self.counts], [self.support], silent)

    @cached_property
    def _gain(self) -> float:
        return float(self.support.gain)

    @cached_property
    def _noise(self) -> float:
        return float(self.support.noise)

    @cached_property
    def _hit(self) -> float:
        return float(self.support.hit)

    @cached_property
    def _clipped_shares(self) -> Floats:
        return np.clip(self.value, 0, 1)


@dataclass(frozen=True, eq=False, repr=False)
class WeightedSum(DerivedResult):
    """A weighted sum of independent estimates, row by row.

    Its interval adds the squared distances from each part's estimate to the end of its interval (the method of
    variance estimates recovery). It keeps the asymmetry of the parts, and one part keeps its own interval.
    """

    parts: Sequence[Result]
    weights: Sequence[float]
    minimum: float = 0.0
    maximum: float = 1.0

    @property
    def sources(self) -> Sequence[Result]:
        """The parts."""
        return self.parts

    @property
    def value(self) -> Floats:
        """The weighted sum of the parts' estimates."""
        return np.asarray(sum(weight * part.value for weight, part in self._weighted_parts))

    def compute_std_error(self, about: About = "sample") -> Floats:
        """Return the standard errors of independent parts, added in squares."""
        check_about(about)
        return np.asarray(
            np.sqrt(sum((weight * part.compute_std_error(about)) ** 2 for weight, part in self._weighted_parts))
        )

    def compute_unclipped_interval(self, tail: float, about: About) -> tuple[Floats, Floats]:
        """Return the ends before they are cut."""
        below: Any = 0.0
        above: Any = 0.0
        for weight, part in self._weighted_parts:
            low, high = part.compute_unclipped_interval(tail, about)
            below = below + (weight * (part.value - low)) ** 2
            above = above + (weight * (high - part.value)) ** 2
        return self.value - np.sqrt(below), self.value + np.sqrt(above)

    def consistent(self) -> Floats:
        """Return shares that are not negative and sum to 1: less error, at the price of some bias."""
        if not self.is_share:
            return super().consistent()
        return compute_expected_shares(self.value, self.std_error**2)

    @property
    def _weighted_parts(self) -> list[tuple[float, Result]]:
        return list(zip(self.weights, self.parts, strict=True))


def compute_report_variance(share: Any, hit: Any, noise: Any, about: About) -> Any:
    """Return the variance of one object's support of a value that a `share` of objects have, exact or as floats."""
    if about == "population":
        chance = noise + (hit - noise) * share
        return chance * (1 - chance)
    return share * hit * (1 - hit) + (1 - share) * noise * (1 - noise)


def compute_categorical_covariance(truths: Floats, individuals: int, support: SupportProbabilities) -> Floats:
    """Return the covariance of categorical estimates, given how many objects have each of the chosen values."""
    hit, noise, gain = float(support.hit), float(support.noise), float(support.gain)
    own = truths[:, None] + truths[None, :]
    matrix = -(own * hit * noise + (individuals - own) * noise * noise)
    np.fill_diagonal(matrix, truths * hit * (1 - hit) + (individuals - truths) * noise * (1 - noise))
    return matrix / (individuals * gain) ** 2


def order_counts(counts: Any, labels: Sequence[Any]) -> Any:
    """Return counts in the order of the labels, where they state theirs: a mapping, or a pandas series with an index.

    >>> order_counts({"yes": 2}, ["no", "yes"])
    [0, 2]
    """
    index = getattr(counts, "index", None) if type(counts).__module__.startswith("pandas") else None
    if index is not None and (type(index).__name__ != "RangeIndex" or set(index) <= set(labels)):
        counts = counts.to_dict()
    if not isinstance(counts, Mapping):
        return counts
    if set(counts) - set(labels):
        raise EstimationError(
            "The counts have {unknown:,} values that are not declared.",
            hint="Count only declared values: {listed}.",
            unknown=len(set(counts) - set(labels)),
            listed=", ".join(map(repr, list(labels)[:12])),
        )
    return [counts.get(label, 0) for label in labels]


def check_counts(counts: Any, size: int, individuals: int | None = None) -> NDArray[np.int64]:
    """Return counts as integers, or reject what cannot be counts of reports, of `individuals` if that is known."""
    array = np.asarray(counts)
    if array.ndim != 1 or len(array) != size:
        raise EstimationError(
            "Expected {values:,} counts, one for each declared value, got {counts:,}.",
            hint="Pass a list in the order of the declared values, or a mapping such as {{'flu': 10, 'none': 20}}.",
            values=size,
            counts=array.size,
        )
    whole = array.dtype.kind in "iu" or (array.dtype.kind == "f" and bool(np.all(array == np.rint(array))))
    if not whole or not np.all(np.isfinite(array)) or np.any(array < 0):
        raise EstimationError("Counts must be whole numbers, at least 0.", hint="Pass a list such as [10, 20].")
    if individuals is None and array.sum() == 0:
        raise EstimationError(
            "All counts are 0, so there is nothing to estimate.", hint="Add the counts of some reports."
        )
    if individuals is not None and (
        not isinstance(individuals, int | np.integer) or individuals < 1 or np.any(array > individuals)
    ):
        raise EstimationError(
            "A count is larger than `n`, or `n` is not a whole number.",
            hint="Pass the number of all reports as n=.",
        )
    return array.astype(np.int64)
