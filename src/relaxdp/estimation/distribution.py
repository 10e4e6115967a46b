"""The distribution of numbers from square wave reports: mean, quantiles and shares of a range, with intervals."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from relaxdp.errors import EstimationError
from relaxdp.estimation.distribution_fit import (
    QuantileTests,
    ShareBounds,
    SquareWaveCounts,
    fit_likeliest_shares,
    fit_smooth_shares,
)
from relaxdp.estimation.frequency import Frequency, WeightedSum
from relaxdp.estimation.result import About, BoundedMean, Floats, Result, check_about, inherit_from_source
from relaxdp.lazy_imports import scipy
from relaxdp.mechanisms.base import MeanWeights

AT_LEAST = "Intervals of quantiles cover at least {:g} %, mostly more: they assume nothing about the distribution."
_HALVINGS = 40
_STEPS_PER_BIN = 8
_NORMAL = 1.959963984540054
"""Half of a 95 % interval, in standard errors."""


@dataclass(frozen=True, eq=False, repr=False)
class SquareWaveMean(BoundedMean):
    """The mean of numbers from square wave reports of one level: a linear function of the mean of their places.

    A place is the bin and an offset with probability r, and anything else otherwise. So the variance of the noise is
    known, whatever the numbers are; only their own spread is estimated, and about these individuals it does not count,
    apart from the kept rounding. The interval holds every mean that is not farther from the estimate than noise takes
    it with the variance that there is if that mean is true (a score test).

    Claim: coverage of 94.5 % or more; tests/statistical/estimation/test_wave.py.
    """

    shares: Frequency
    mean_weights: MeanWeights
    window: int

    @property
    def source_results(self) -> Sequence[Result]:
        return (self.shares,)

    @property
    def value(self) -> Floats:
        return self._scale_to_range(self._centered_mean)

    def compute_std_error(self, about: About = "sample") -> Floats:
        check_about(about)
        return np.asarray(self._compute_error_in_bins(self._centered_mean, about) * self._bin_width)

    def compute_unclipped_interval(self, tail_probability: float, about: About) -> tuple[Floats, Floats]:
        n, noise = self.shares.effective_n, self.shares.effective_n * (1 - self._retention)
        quantile, jump = _compute_student_quantile(tail_probability, n, noise), 0.5 / (n * self._retention)
        ends = np.linspace(-self._max_bin_distance, self._max_bin_distance, 65)
        near, far = np.zeros(2), np.full(2, 2 * (quantile * self._compute_error_in_bins(ends, about).max() + jump))
        mean, sides = self._centered_mean, np.array([-1.0, 1.0])
        for _ in range(_HALVINGS):
            middle = (near + far) / 2
            is_within = middle <= quantile * self._compute_error_in_bins(mean + sides * middle, about) + jump
            near, far = np.where(is_within, middle, near), np.where(is_within, far, middle)
        low, high = mean + sides * far
        return self._scale_to_range(low), self._scale_to_range(high)

    @cached_property
    def _retention(self) -> float:
        return float(self.shares.support.gain)

    @cached_property
    def _place_count(self) -> int:
        return len(self.mean_weights.weights)

    @cached_property
    def _max_bin_distance(self) -> float:
        """The largest distance of a bin from the middle of all bins."""
        return (self._place_count - self.window) / 2

    @cached_property
    def _bin_width(self) -> float:
        return (self.maximum - self.minimum) / (2 * self._max_bin_distance)

    @cached_property
    def _centered_mean(self) -> float:
        """The estimated mean in bins, from the middle of all places, where noise has its mean."""
        return float(self._place_moments[0]) / self._retention

    @cached_property
    def _place_moments(self) -> Floats:
        """The means of the places' distances from their middle, and with squared weights, also of their squares."""
        distances = np.arange(self._place_count) - (self._place_count - 1) / 2
        powers = np.array([distances, distances**2])
        first = powers @ self.shares.counts / self.shares.size
        squared = powers @ self.shares.squared_weight_rates if self.shares.is_weighted else first
        return np.array([first[0], squared[1], squared[0]])

    def _compute_error_in_bins(self, mean: Any, about: About) -> Any:
        """Return the standard error in bins if `mean` were the true one."""
        keep, shift = self._retention, (self._place_moments[2] - self._place_moments[0]) / self._retention
        given = np.clip(mean, -self._max_bin_distance, self._max_bin_distance)
        mean = given + shift  # of the numbers, with squared weights
        # The second moment if all numbers were the mean: what is more in the reports is the numbers' own spread.
        window, noise = (self.window**2 - 1) / 12, (self._place_count**2 - 1) / 12
        minimum = keep * (mean**2 + window) + (1 - keep) * noise
        second = np.maximum(self._place_moments[1], minimum)
        if about == "sample":  # without that spread; a number between two bins has at most a quarter by its rounding
            second = second - keep * (second - minimum) + keep**2 / 4
        elif self.shares.is_weighted:
            return self._compute_weighted_error_in_bins(given, mean, second)
        return np.sqrt((second - (keep * mean) ** 2) / self.shares.effective_n) / keep

    def _compute_weighted_error_in_bins(self, mean: Any, squared_mean: Any, second: Any) -> Any:
        """Return the standard error in bins with weights, about the population: of a ratio, or of a total."""
        shares: Any = self.shares
        offset, n = -mean, np.inf
        if shares.total_offset is not None:
            offset, n = (self.minimum + self.maximum) / 2 / self._bin_width, shares.individuals
        spread = second / self._retention**2 + 2 * offset * squared_mean + offset**2
        variance = spread / shares.effective_n - (mean + offset) ** 2 / n
        return np.sqrt(np.maximum(variance, 0) * shares.bessel_correction)

    def _scale_to_range(self, centered: float) -> Floats:
        return np.asarray((self.minimum + self.maximum) / 2 + self._bin_width * centered)


@dataclass(frozen=True, eq=False, repr=False)
class Distribution(BoundedMean):
    """The estimated distribution of numbers from square wave reports. As a result, its value is their mean.

    Its value and its interval are those of the mean, and it has one row. Quantiles, shares of a part
    of the range and the distribution itself are the likeliest ones at all levels together: they assume levels that do
    not depend on the number.
    """

    parts: Sequence[Frequency]
    weights: Sequence[float]
    mean_weights: MeanWeights

    @property
    def source_results(self) -> Sequence[Result]:
        return self.parts

    @cached_property
    def mean(self) -> Result:
        """The mean, unbiased."""
        means = [SquareWaveMean(part, self.mean_weights, self._window_width) for part in self.parts]
        if len(means) == 1:
            return means[0]
        return WeightedSum(means, self.weights, minimum=self.minimum, maximum=self.maximum)

    @property
    def value(self) -> Floats:
        return self.mean.value

    def compute_std_error(self, about: About = "sample") -> Floats:
        return self.mean.compute_std_error(about)

    def compute_unclipped_interval(self, tail_probability: float, about: About) -> tuple[Floats, Floats]:
        return self.mean.compute_unclipped_interval(tail_probability, about)

    def quantile(self, probabilities: float | Sequence[float]) -> Quantiles:
        """Return the number below which this share of all numbers lies, or several of them; 0.5 is the median."""
        asked = np.atleast_1d(np.asarray(probabilities))
        if asked.dtype.kind not in "iuf" or not asked.size or not np.all((asked > 0) & (asked < 1)):
            raise EstimationError(
                "`probabilities` must be numbers above 0 and below 1.",
                hint="Pass 0.5 for the median, or [0.25, 0.5, 0.75] for quartiles.",
            )
        return Quantiles(self, tuple(asked.astype(np.float64).tolist()))

    @property
    def has_quantiles(self) -> bool:
        """Whether quantiles can be estimated: not with weights, which apply to the mean."""
        return not self.parts[0].is_weighted

    @property
    def quartiles(self) -> Quantiles:
        """The numbers below which a quarter, half and three quarters of all numbers lie."""
        return self.quantile((0.25, 0.5, 0.75))

    def share(self, low: float, high: float) -> RangeShare:
        """Return the share of the numbers from `low` to `high`."""
        if not self.minimum <= low < high <= self.maximum:
            raise EstimationError(
                "`low` must be below `high`, and both within the range {low:g} to {high:g}, not {given}.",
                hint="Pass two numbers such as share({low:g}, {high:g}).",
                low=self.minimum,
                high=self.maximum,
                given=f"{low} and {high}",
            )
        return RangeShare(self, float(low), float(high))

    @property
    def points(self) -> Floats:
        """The points of the histogram: the numbers to which others are rounded, at equal distances."""
        return np.linspace(self.minimum, self.maximum, self.wave_counts.bin_count)

    def histogram(self, *, smooth: bool = True) -> Floats:
        """Return the histogram: the share of each bin, without an interval.

        The likeliest shares stand on a few bins; `smooth` ones (EMS) are averaged with their neighbours on the way,
        which is nearer to the truth where numbers are spread, and farther where they are not.
        """
        return fit_smooth_shares(self.wave_counts) if smooth else self.likeliest_shares[0]

    @property
    def variance(self) -> DistributionVariance:
        return DistributionVariance(self)

    def plot(self, axes: Any = None, *, confidence_level: float = 0.95, about: About = "sample", **_: Any) -> Any:
        """Draw the smooth distribution, the mean and its interval; returns matplotlib's axes."""
        from relaxdp.estimation.plot import plot_distribution  # noqa: PLC0415

        if not self.has_quantiles:
            return super().plot(axes, confidence_level=confidence_level, about=about)
        low, high = self.interval(confidence_level, about=about)
        ends = (float(low), float(high))
        return plot_distribution(axes, self.points, self.histogram(), float(self.value), ends, confidence_level)

    @cached_property
    def wave_counts(self) -> SquareWaveCounts:
        if not self.has_quantiles:
            raise EstimationError(
                "With weights, only the mean of the square wave can be estimated, not quantiles and shares of a range.",
                hint="Leave out weights= (--weights), or release the numbers as groups with rx.Categorical.",
            )
        counts = np.array([part.counts for part in self.parts], dtype=np.float64)
        return SquareWaveCounts(counts, np.array([float(part.support.gain) for part in self.parts]), self._window_width)

    @cached_property
    def likeliest_shares(self) -> tuple[Floats, float]:
        """The likeliest shares of the bins, and the logarithm of their likelihood."""
        return fit_likeliest_shares(self.wave_counts)

    @cached_property
    def cumulative_shares(self) -> tuple[Floats, Floats]:
        """Numbers, and the likeliest cumulative share up to each; between them it is a line."""
        points = self.points
        between = (points[1:] + points[:-1]) / 2
        sums = np.cumsum(self.likeliest_shares[0])[:-1]
        return np.array([points[0], *between, points[-1]]), np.array([0.0, *np.clip(sums, 0, 1), 1.0])

    @cached_property
    def share_bounds(self) -> ShareBounds:
        return ShareBounds(self.wave_counts)

    @cached_property
    def quantile_tests(self) -> QuantileTests:
        return QuantileTests(self.wave_counts)

    @property
    def _window_width(self) -> int:
        window = self.mean_weights.window
        assert window is not None  # noqa: S101 (`combine_levels` checks it)
        return window


@dataclass(frozen=True, eq=False, repr=False)
class _DistributionStatistic(Result):
    """A statistic of a distribution, such as quantiles. Its standard error follows from its interval."""

    whole: Distribution

    @property
    def source_results(self) -> Sequence[Result]:
        return (self.whole,)

    def compute_std_error(self, about: About = "sample") -> Floats:
        """Return the standard error of a normal distribution whose 95 % interval is as wide."""
        low, high = self.compute_unclipped_interval(0.025, about)
        return np.asarray((high - low) / (2 * _NORMAL))


@dataclass(frozen=True, eq=False, repr=False)
class DistributionVariance(_DistributionStatistic):
    """The variance of a distribution of numbers.

    Rounding adds at most a quarter of a squared step to it, and a sixth where numbers are spread: which it is, places
    do not tell, so the interval holds both ends of that.

    Claim: coverage of 94.5 % or more, about the population and so about these individuals;
    tests/statistical/estimation/test_wave.py.
    """

    is_share = False
    labels = ("variance",)

    @property
    def maximum(self) -> float:  # type: ignore[override]
        """The largest possible variance: half of the numbers lie at each end of the range."""
        return float((self.whole.maximum - self.whole.minimum) ** 2 / 4)

    @property
    def value(self) -> Floats:
        """The unbiased estimate, but for rounding."""
        return np.array([(self._moments[1] - 1 / 6) * self._squared_bin_width])

    def compute_std_error(self, about: About = "sample") -> Floats:
        """Return the standard error: that in the reports, or what is to be expected where few of them show none."""
        check_about(about)
        places = self.whole.wave_counts
        expected = places.estimate_moments(places.compute_place_probabilities(self.whole.share_bounds.guessed_shares))
        return np.array([max(self._moments[2], expected[2]) * self._squared_bin_width])

    def compute_unclipped_interval(self, tail_probability: float, about: About) -> tuple[Floats, Floats]:
        counts = self.whole.wave_counts.counts.sum(axis=1)
        noise = float(counts @ (1 - self.whole.wave_counts.retentions))
        reach = _compute_student_quantile(tail_probability, float(counts.sum()), noise) * self.compute_std_error(about)
        middle = self._moments[1] * self._squared_bin_width
        return middle - self._squared_bin_width / 4 - reach, middle + reach

    @cached_property
    def _moments(self) -> tuple[float, float, float]:
        return self.whole.wave_counts.estimate_moments()

    @property
    def _squared_bin_width(self) -> float:
        points = self.whole.points
        return float((points[1] - points[0]) ** 2)


@dataclass(frozen=True, eq=False, repr=False)
class Quantiles(_DistributionStatistic):
    """Quantiles of a distribution of numbers.

    An interval has all numbers that can be the quantile whatever the distribution is. Distributions that differ within
    a window are hard to tell apart, so for most of them it covers more often than it says, and nothing narrower would
    cover often enough for the others.

    Claim: coverage of 94.5 % or more, about the population and so about these individuals;
    tests/statistical/estimation/test_wave.py.
    """

    is_share = False
    minimum, maximum = inherit_from_source("minimum"), inherit_from_source("maximum")
    probabilities: tuple[float, ...]

    @property
    def labels(self) -> Sequence[Any]:  # type: ignore[override]
        return ["median" if each == 0.5 else f"quantile {each:g}" for each in self.probabilities]

    @property
    def value(self) -> Floats:
        numbers, sums = self.whole.cumulative_shares
        return np.asarray(np.interp(self.probabilities, sums, numbers))

    def _describe_notes(self, shown: Result) -> list[str]:
        return [*super()._describe_notes(shown), AT_LEAST.format(95)]

    def compute_unclipped_interval(self, tail_probability: float, about: About) -> tuple[Floats, Floats]:
        check_about(about)
        asked = zip(self.value.tolist(), self.probabilities, strict=True)
        found = [self._compute_quantile_interval(value, each, tail_probability) for value, each in asked]
        return np.array([low for low, _ in found]), np.array([high for _, high in found])

    def _compute_quantile_interval(
        self, value: float, probability: float, tail_probability: float
    ) -> tuple[float, float]:
        """Return the interval of a quantile: from the estimate to each side, all numbers that no test rejects."""
        tests, last = self.whole.quantile_tests, self.whole.wave_counts.bin_count - 1
        middle = (value - self.minimum) / (self.maximum - self.minimum) * last

        def rejects_below(step: int) -> bool:
            return tests.compute_p_value(step / _STEPS_PER_BIN, probability, is_above=False) < 2 * tail_probability

        def rejects_above(step: int) -> bool:
            return (
                tests.compute_p_value(last - step / _STEPS_PER_BIN, 1 - probability, is_above=True)
                < 2 * tail_probability
            )

        below = _count_while(int(middle * _STEPS_PER_BIN), rejects_below)
        above = _count_while(int((last - middle) * _STEPS_PER_BIN), rejects_above)
        ends = max(below - 1, 0) / _STEPS_PER_BIN, last - max(above - 1, 0) / _STEPS_PER_BIN
        low, high = np.interp(ends, np.arange(last + 1), self.whole.points)
        return float(low), float(high)


@dataclass(frozen=True, eq=False, repr=False)
class RangeShare(_DistributionStatistic):
    """The share of numbers in a part of the range.

    A number near an end of the part may be rounded across it. So the lower end of the interval is that of the bins to
    which only numbers inside are rounded, and the upper one that of all bins to which a number inside may be.

    Claim: coverage of 94.5 % or more, about the population and so about these individuals;
    tests/statistical/estimation/test_wave.py.
    """

    low: float
    high: float

    @property
    def labels(self) -> Sequence[Any]:  # type: ignore[override]
        return (f"{self.low:g} to {self.high:g}",)

    @property
    def value(self) -> Floats:
        numbers, sums = self.whole.cumulative_shares
        start, stop = np.interp([self.low, self.high], numbers, sums)
        whole = (0.0 if self.low <= self.whole.minimum else start, 1.0 if self.high >= self.whole.maximum else stop)
        return np.array([whole[1] - whole[0]])

    def compute_unclipped_interval(self, tail_probability: float, about: About) -> tuple[Floats, Floats]:
        check_about(about)
        points = self.whole.points
        before, after = np.append(points[0], points[:-1]), np.append(points[1:], points[-1])
        inner = (before >= self.low) & (after <= self.high)
        outer = ((after > self.low) | (points >= self.low)) & ((before < self.high) | (points <= self.high))
        bounds, (value,) = self.whole.share_bounds, self.value
        # The bounds are not made of the likeliest shares, which may lie outside.
        low, high = (
            bounds.compute_lower_bound(inner, tail_probability),
            bounds.compute_upper_bound(outer, tail_probability),
        )
        return np.array([min(value, low)]), np.array([max(value, high)])


def _compute_student_quantile(tail_probability: float, n_reports: float, n_noise: float) -> float:
    """Return Student's quantile for a mean of `n_reports` reports, `n_noise` of which are noise, in standard errors.

    Few reports of noise, far from all others, have heavier tails than a normal law: those of a Student's law with the
    same fourth moment as so many uniform places.
    """
    return -float(scipy.special.stdtrit(max(1, min(n_reports - 1, 4 + 3.3 * n_noise)), tail_probability))


def _count_while(stop: int, is_true: Callable[[int], bool]) -> int:
    """Count the whole numbers from 0 to `stop` up to the first one for which `is_true` does not hold."""
    low, high = -1, stop
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if is_true(middle) else (low, middle)
    return high
