"""Means of numbers from rounded reports, and a variance from two means. Intervals include the kept rounding."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from relaxdp.errors import EstimationError
from relaxdp.estimation.frequency import Frequency, WeightedSum
from relaxdp.estimation.result import About, BoundedMean, Floats, Result, check_about
from relaxdp.lazy_imports import scipy
from relaxdp.mechanisms.base import MeanWeights


@dataclass(frozen=True, eq=False, repr=False)
class Mean(BoundedMean):
    """An estimated mean of numbers in [low, high], from the share of reports that are the upper end.

    The estimate is low + (high - low) * share. (The paper prints low + high * share, which is biased unless low is 0.)
    Every report is a bit with its own chance, noise included; the interval is the exact one of a binomial, which is
    conservative where those chances differ. It therefore covers the kept rounding, about these individuals as well as
    about the population: relaxing further shrinks the noise of the response but never the rounding's.
    """

    shares: Result
    mean_weights: MeanWeights

    @property
    def source_results(self) -> Sequence[Result]:
        return (self.shares,)

    @property
    def value(self) -> Floats:
        return self.scale_to_range(self.shares.value[1])

    def compute_std_error(self, about: About = "sample") -> Floats:
        """Return the standard error, rounding included; an upper bound about these individuals."""
        check_about(about)
        return np.asarray((self.maximum - self.minimum) * self.shares.compute_std_error("population")[1])

    def compute_unclipped_interval(self, tail_probability: float, about: About) -> tuple[Floats, Floats]:
        low, high = self.shares.compute_unclipped_interval(tail_probability, "population")
        return self.scale_to_range(low[1]), self.scale_to_range(high[1])


@dataclass(frozen=True, eq=False, repr=False)
class NonMissingMean(BoundedMean):
    """The estimated mean of the numbers that are there, where some are missing: a ratio of two debiased sums.

    Let t be the mean's place in its range, and L(t) the mean of every object's debiased weight, which is 0 for what is
    missing, -t for the lower end and 1 - t for the upper one: L is 0 at the true t. The interval holds every t whose
    L is not farther from 0 than noise takes it, with the variance that L has if t is true (a score test), half a report
    included. Chances that differ among individuals make it conservative, so it covers the kept rounding.

    Claim: coverage of 94.5 % or more; tests/statistical/estimation/test_missing.py.
    """

    parts: Sequence[Frequency]
    weights: Sequence[float]
    mean_weights: MeanWeights
    has_totals = False

    @property
    def source_results(self) -> Sequence[Result]:
        return self.parts

    @property
    def shares(self) -> Result:
        """The shares of missing numbers, and of those that were rounded down and up."""
        return self.parts[0] if len(self.parts) == 1 else WeightedSum(self.parts, self.weights)

    @property
    def missing(self) -> Result:
        """The share of numbers that are missing."""
        return self.shares.select_rows([self.mean_weights.absent])

    @property
    def value(self) -> Floats:
        """The estimate, a single number; where the reports tell of no number that is there, the middle of the range."""
        _, low, high = self.shares.value
        return self.scale_to_range(high / (low + high) if low + high > 0 else 0.5)

    def compute_std_error(self, about: About = "sample") -> Floats:
        """Return the standard error, rounding included; an upper bound about these individuals."""
        check_about(about)
        _, low, high = self.shares.value
        position = np.array([(float(self.value) - self.minimum) / (self.maximum - self.minimum)])
        present_share = max(low + high, np.finfo(float).tiny)
        error = min(1.0, float(self._compute_score_std_error(position)[0]) / present_share)
        return np.asarray((self.maximum - self.minimum) * error)

    def compute_unclipped_interval(self, tail_probability: float, about: About) -> tuple[Floats, Floats]:
        _, low, high = self.shares.value
        quantile = -float(scipy.special.ndtri(tail_probability))
        step = sum(0.5 * each / (part.effective_n * float(part.support.gain)) for each, part in self._weighted_parts)
        if low + high <= 0:  # as far as anybody can tell there is no number of which this could be the mean
            return self.scale_to_range(0), self.scale_to_range(1)
        middle = float(np.clip(high / (low + high), 0, 1))

        def keep_possible(positions: Floats) -> Floats:
            distance = np.abs(high - positions * (low + high))
            return np.asarray(positions[distance <= quantile * self._compute_score_std_error(positions) + step])

        # What is possible need not be one piece, so all places are looked at: roughly, then closely beside the ends.
        found = np.append(keep_possible(np.linspace(0, 1, _GRID_SIZE)), middle)
        below, above = (
            np.clip(np.linspace(end - 1 / _GRID_SIZE, end + 1 / _GRID_SIZE, _GRID_SIZE), 0, 1)
            for end in (found.min(), found.max())
        )
        ends = np.concatenate([found, keep_possible(below), keep_possible(above)])
        return self.scale_to_range(ends.min()), self.scale_to_range(ends.max())

    def _compute_score_std_error(self, positions: Floats) -> Floats:
        """Return the standard error of the score L if the mean were at each of these positions in its range."""
        present_share = float(np.clip(1 - self.shares.value[0], 0, 1))
        variance = np.zeros(len(positions))
        for weight, part in self._weighted_parts:
            noise, gain = float(part.support.noise), float(part.support.gain)
            each = compute_score_variance(positions, present_share, noise, gain)
            if part.is_weighted:  # heavy individuals may be others than most: their reports show how much they vary
                _, low, high = part.squared_weight_rates
                center = noise * (1 - 2 * positions)
                none = (1 - low - high) * center**2
                seen = low * (positions + center) ** 2 + high * (1 - positions - center) ** 2 + none
                each = np.maximum(each, seen / gain**2)
            variance += weight**2 * each / part.effective_n
        return np.sqrt(variance)

    @property
    def _weighted_parts(self) -> list[tuple[float, Frequency]]:
        return list(zip(self.weights, self.parts, strict=True))


_GRID_SIZE = 1_001


def compute_score_variance(positions: Floats, present_share: float, noise: float, gain: float) -> Floats:
    """Return the variance of one individual's score, its debiased weight, for positions of the mean in 0 .. 1.

    >>> float(compute_score_variance(np.array([0.5]), 1.0, 0.0, 1.0)[0])
    0.25
    """
    lower, upper = noise + gain * present_share * (1 - positions), noise + gain * present_share * positions
    second = positions**2 * lower + (1 - positions) ** 2 * upper
    return np.asarray((second - (noise * (1 - 2 * positions)) ** 2) / gain**2)


@dataclass(frozen=True, eq=False, repr=False)
class Variance(Result):
    """A variance from the means of x and of x^2, two attributes whose privacy costs add up."""

    is_share = False
    labels = ("variance",)
    mean: Result
    mean_of_square: Result
    maximum: float = np.inf

    @property
    def source_results(self) -> Sequence[Result]:
        """The mean of x, from the same individuals as that of the squares."""
        return (self.mean,)

    @property
    def value(self) -> Floats:
        """The mean of the squares minus the square of the mean, corrected for that mean's own error."""
        return np.asarray(self.mean_of_square.value - self.mean.value**2 + self.mean.compute_std_error() ** 2)

    def compute_std_error(self, about: About = "sample") -> Floats:
        slope = 2 * self.mean.value * self.mean.compute_std_error(about)
        return np.asarray(np.hypot(self.mean_of_square.compute_std_error(about), slope))

    def compute_unclipped_interval(self, tail_probability: float, about: About) -> tuple[Floats, Floats]:
        """Return ends that hold whenever both means lie in their intervals, each with half of the error."""
        low, high = self.mean.compute_unclipped_interval(tail_probability / 2, about)
        square_low, square_high = self.mean_of_square.compute_unclipped_interval(tail_probability / 2, about)
        minimum = np.where((low < 0) & (high > 0), 0.0, np.minimum(low**2, high**2))
        return np.asarray(square_low - np.maximum(low**2, high**2)), np.asarray(square_high - minimum)


def variance(mean: Result, mean_of_square: Result) -> Variance:
    """Estimate the variance of x from the means of x and of x^2, which were released as two columns.

    Args:
        mean: The estimated mean of x.
        mean_of_square: The estimated mean of x^2.

    Returns:
        The variance, with an interval.

    Raises:
        EstimationError: One of the two is not a mean.

    Example:
        >>> from relaxdp import Numeric
        >>> ages, squares = Numeric(0, 10), Numeric(0, 100)  # of a column x, and of a column that holds x * x
        >>> mean = ages.estimate([0.0] * 500 + [10.0] * 500, epsilon=2)
        >>> mean_of_square = squares.estimate([0.0] * 600 + [100.0] * 400, epsilon=2)
        >>> round(float(variance(mean, mean_of_square)), 2)
        11.91
    """
    for each in (mean, mean_of_square):
        if not isinstance(each, Result) or tuple(each.labels) != ("mean",):
            raise EstimationError(
                "`variance` expects two estimated means, of x and of x * x, got {type}.",
                hint="Release x and x * x as columns with rx.Numeric, and estimate each: rx.estimate(release, 'x').",
                type="shares" if isinstance(each, Result) else type(each).__name__,
            )
    return Variance(mean, mean_of_square)
