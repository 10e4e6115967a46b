"""Shares of values from counts at one level: estimate, errors, intervals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from relaxdp.encodings.protocol import Joint
from relaxdp.errors import CountsError
from relaxdp.estimation import special
from relaxdp.estimation.result import About, Floats, Result, check_about, questions_of
from relaxdp.estimation.shrinkage import expected_shares
from relaxdp.estimation.simplex import likelihood_shares, nearest_shares
from relaxdp.estimation.tails import binomial_interval, truths_interval
from relaxdp.law.support import Support

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
    objects: int
    support: Support
    epsilon: Decimal | None = None
    joint: Joint = "exclusive"
    """How the supports of two values go together, given the truths: a matter of the encoding."""

    @property
    def questions(self) -> int:
        """One for each value, except that two categorical shares are one question."""
        return questions_of(len(self.labels), exclusive=self.joint == "exclusive")

    @property
    def value(self) -> Floats:
        """The unbiased estimate of every share: P^-1 H of the paper, in closed form."""
        return np.asarray(self.support.debias(self.counts / self.objects))

    def standard_error(self, about: About = "objects") -> Floats:
        """Return the standard errors.

        About "objects": how far the estimate is from the share among *these* objects; only the noise is random (the
        paper's variance). About "population": also counts that these objects are a random sample of a larger one.
        The unknown shares in the formulas are the estimated ones, pulled into 0 .. 1.
        """
        check_about(about)
        variance = report_variance(self._pulled, self._hit, self._noise, about)
        return np.asarray(np.sqrt(variance / self.objects) / self._gain)

    def covariance(self, places: Sequence[int] | None = None) -> Floats:
        """Return the covariance of the estimates about these objects (the paper's last appendix), in closed form.

        `places` picks values by their position; with many values the full matrix would not fit anywhere.

        Where a report is one value, estimates of two values are negatively correlated; bits and hashed values are not
        correlated at all.

        Claim: equals P^-1 Cov(H) P^-1; tests/exact/estimation/test_estimators.py. Bits and hashes:
        tests/exact/encodings/test_encodings.py.
        """
        chosen = slice(None) if places is None else np.asarray(places)
        if self.joint == "exclusive":
            return categorical_covariance(self.objects * self._pulled[chosen], self.objects, self.support)
        if self.joint == "independent":
            return np.diag(self.standard_error()[chosen] ** 2)
        raise CountsError("how the estimates of two values go together is not known for this encoding.")

    def ends(self, tail: float, about: About) -> tuple[Floats, Floats]:
        """Return the ends of the intervals before they are cut at 0 and 1, around the estimate on both sides.

        That is what a difference, or a sum over levels, has to be made from. They depend on the count alone, and
        among many values few counts are distinct.
        """
        distinct, where = np.unique(self.counts, return_inverse=True)
        value = self.support.debias(distinct / self.objects)
        # No share lies below 0 or above 1: there the noise alone says how far the estimate may have fallen.
        reach = [
            (0.5 + special.ndtri(1 - tail) * np.sqrt(self.objects * chance * (1 - chance)))
            / (self.objects * self._gain)
            for chance in (self._noise, self._hit)
        ]
        if about == "population":
            low, high = (self.support.debias(end) for end in binomial_interval(distinct, self.objects, tail))
            low = np.where(value > 1, np.minimum(low, value - reach[1]), low)
            high = np.where(value < 0, np.maximum(high, value + reach[0]), high)
            return low[where], high[where]
        low, high = (
            end / self.objects for end in truths_interval(distinct, self.objects, self._hit, self._noise, tail)
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
            return expected_shares(self.value, self.std_error**2)
        if method == "nearest":
            return nearest_shares(self.value)
        if method != "likelihood":
            raise CountsError("the method is 'expected', 'nearest' or 'likelihood', not {method!r}.", method=method)
        silent = None if self.joint == "exclusive" else [self.objects - self.counts]
        return likelihood_shares([self.counts], [self.support], silent)

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
    def _pulled(self) -> Floats:
        return np.clip(self.value, 0, 1)


def report_variance(share: Any, hit: Any, noise: Any, about: About) -> Any:
    """Return the variance of one object's support of a value that a `share` of objects have, exact or as floats."""
    if about == "population":
        chance = noise + (hit - noise) * share
        return chance * (1 - chance)
    return share * hit * (1 - hit) + (1 - share) * noise * (1 - noise)


def categorical_covariance(truths: Floats, objects: int, support: Support) -> Floats:
    """Return the covariance of categorical estimates, given how many objects have each of the chosen values."""
    hit, noise, gain = float(support.hit), float(support.noise), float(support.gain)
    own = truths[:, None] + truths[None, :]
    matrix = -(own * hit * noise + (objects - own) * noise * noise)
    np.fill_diagonal(matrix, truths * hit * (1 - hit) + (objects - truths) * noise * (1 - noise))
    return matrix / (objects * gain) ** 2


def check_counts(counts: Any, size: int, objects: int | None = None) -> NDArray[np.int64]:
    """Return counts as integers, or refuse what cannot be counts of reports, of `objects` if that is known."""
    array = np.asarray(counts)
    if array.ndim != 1 or len(array) != size:
        raise CountsError(
            "there must be {values} counts, one for each declared value, not {counts}.", values=size, counts=array.size
        )
    whole = array.dtype.kind in "iu" or (array.dtype.kind == "f" and bool(np.all(array == np.rint(array))))
    if not whole or not np.all(np.isfinite(array)):
        raise CountsError("counts must be whole numbers.")
    if np.any(array < 0):
        raise CountsError("counts must not be negative.")
    if objects is None and array.sum() == 0:
        raise CountsError("there are no reports to estimate from.")
    if objects is not None and (not isinstance(objects, int | np.integer) or objects < 1 or np.any(array > objects)):
        raise CountsError("a value is supported by at most as many reports as there are.")
    return array.astype(np.int64)
