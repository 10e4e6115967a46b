"""The mean of a number, and its variance from two means, with intervals that include the kept rounding."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

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
