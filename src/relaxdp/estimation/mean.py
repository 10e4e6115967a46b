"""Means: sums of labels' shares with weights, and a variance from two of them. Intervals include what is kept."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from relaxdp.encodings.protocol import Measure
from relaxdp.estimation import special
from relaxdp.estimation.combined import Combined
from relaxdp.estimation.frequency import Frequency
from relaxdp.estimation.result import About, Result, check_about

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False, repr=False)
class Mean(Result):
    """An estimated mean of numbers in [low, high], from the share of reports that are the upper end.

    The estimate is low + (high - low) * share. (The paper prints low + high * share, which is biased unless low is 0.)
    Every report is a bit with its own chance, noise included; the interval is the exact one of a binomial, which is
    conservative where those chances differ. It therefore covers the kept rounding, about these objects as well as
    about the population: relaxing further shrinks the noise of the response but never the rounding's.
    """

    shares: Result
    least: float
    most: float

    @property
    def labels(self) -> Sequence[Any]:  # type: ignore[override]
        """One row."""
        return ("mean",)

    @property
    def value(self) -> Floats:
        """The unbiased estimate, a single number."""
        return self._number(self.shares.value)

    def standard_error(self, about: About = "objects") -> Floats:
        """Return the standard error, rounding included; an upper bound about these objects."""
        check_about(about)
        return np.asarray((self.most - self.least) * self.shares.standard_error("population")[1])

    def ends(self, tail: float, about: About) -> tuple[Floats, Floats]:
        """Return the ends before they are cut at the range."""
        low, high = self.shares.ends(tail, "population")
        return self._number(low), self._number(high)

    def _number(self, shares: Floats) -> Floats:
        return np.asarray(self.least + (self.most - self.least) * shares[1])


@dataclass(frozen=True, eq=False, repr=False)
class WeightedMean(Result):
    """An estimated mean from reports of one level that are one of many labels, each of which counts for its weight.

    The error is that of the reports' own spread, so it covers whatever is random between a truth and its report.
    """

    shares: Frequency
    weights: tuple[float, ...]
    least: float
    most: float

    @property
    def labels(self) -> Sequence[Any]:  # type: ignore[override]
        """One row."""
        return ("mean",)

    @property
    def value(self) -> Floats:
        """The unbiased estimate: the weights times the unbiased shares."""
        return np.asarray(self.shares.value @ np.array(self.weights))

    def standard_error(self, about: About = "objects") -> Floats:
        """Return the standard error; an upper bound about these objects."""
        check_about(about)
        shares = self.shares.counts / self.shares.objects
        spread = shares @ np.square(self.weights) - (shares @ np.array(self.weights)) ** 2
        return np.asarray(np.sqrt(spread / max(1, self.shares.objects - 1)) / float(self.shares.support.gain))

    def ends(self, tail: float, about: About) -> tuple[Floats, Floats]:
        """Return the ends before they are cut at the range, by Student's law."""
        if self.shares.objects < 2:
            return np.asarray(-np.inf), np.asarray(np.inf)
        reach = -special.stdtrit(self.shares.objects - 1, tail) * self.standard_error(about)
        return np.asarray(self.value - reach), np.asarray(self.value + reach)


def answer(measure: Measure | None, parts: Sequence[Frequency], weights: Sequence[float]) -> Result:
    """Return what the shares at some levels say together: they themselves, or the mean that they stand for."""
    if measure is not None and len(measure.weights) > 2:
        means = [WeightedMean(part, measure.weights, measure.least, measure.most) for part in parts]
        return means[0] if len(means) == 1 else Combined(means, weights, least=measure.least, most=measure.most)
    shares = parts[0] if len(parts) == 1 else Combined(parts, weights)
    return shares if measure is None else Mean(shares, *measure.weights)


@dataclass(frozen=True, eq=False, repr=False)
class Variance(Result):
    """A variance from the means of x and of x^2, two attributes whose privacy costs add up."""

    mean: Mean
    mean_of_square: Mean
    most: float = np.inf

    @property
    def labels(self) -> Sequence[Any]:  # type: ignore[override]
        """One row."""
        return ("variance",)

    @property
    def value(self) -> Floats:
        """The mean of the squares minus the square of the mean, corrected for that mean's own error."""
        return np.asarray(self.mean_of_square.value - self.mean.value**2 + self.mean.standard_error() ** 2)

    def standard_error(self, about: About = "objects") -> Floats:
        """Return the standard error, to first order."""
        slope = 2 * self.mean.value * self.mean.standard_error(about)
        return np.asarray(np.hypot(self.mean_of_square.standard_error(about), slope))

    def ends(self, tail: float, about: About) -> tuple[Floats, Floats]:
        """Return ends that hold whenever both means lie in their intervals, each with half of the error."""
        low, high = self.mean.ends(tail / 2, about)
        square_low, square_high = self.mean_of_square.ends(tail / 2, about)
        least = np.where((low < 0) & (high > 0), 0.0, np.minimum(low**2, high**2))
        return np.asarray(square_low - np.maximum(low**2, high**2)), np.asarray(square_high - least)


def variance(mean: Mean, mean_of_square: Mean) -> Variance:
    """Return the variance of x from the estimated means of x and of x^2."""
    return Variance(mean, mean_of_square)
