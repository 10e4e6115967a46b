"""The law of a mean of products of two debiased indicators, and the intervals that come from inverting it.

A cell of a two-way table is such a mean, over objects. Its law is that of a sum of many small jumps, lopsided where few
reports support the cell; a gamma law with the same first three moments has its tails, with one report as with many, so
nothing changes at any number of reports.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from relaxdp.estimation import special
from relaxdp.estimation.result import About, Floats
from relaxdp.theory.randomized_response import Support

# Nearer to symmetry than this the gamma law is the normal one, and its shape too large to compute with.
_SYMMETRIC = 1e-5
_STEPS = 100  # many more than it takes


@dataclass(frozen=True, eq=False)
class ProductLaw:
    """The law of the estimated share of a pair of values, for every share that it may have in truth.

    `rows` and `columns` are the estimated shares of the two values, each within 0 .. 1.
    """

    rows: Floats
    columns: Floats
    row_support: Support
    column_support: Support
    n: int
    about: About

    def ends(self, value: Floats, tail: float) -> tuple[Floats, Floats]:
        """Return the shares at which an estimate so large, and one so small, has the chance `tail`.

        Half a report in the cell is the continuity correction. Beyond 0 and 1, where no share lies, the ends go on with
        the law that there is at 0 and at 1.
        """
        half = 0.5 / (self.n * float(self.row_support.gain * self.column_support.gain))
        return self._end(value - half, tail, upper=True), self._end(value + half, tail, upper=False)

    def _end(self, seen: Floats, tail: float, *, upper: bool) -> Floats:
        """Return the share below (above) which an estimate as large (small) as the one that was seen is too rare."""
        below, above = (seen - self._quantile(np.full(seen.shape, share), tail, upper=upper) for share in (0.0, 1.0))
        ends = np.where(below < 0, below, above)
        inside = (below >= 0) & (above <= 1)
        some = replace(self, rows=self.rows[inside], columns=self.columns[inside])
        sign = 1.0 if upper else -1.0  # a larger share makes a large estimate likelier, and a small one rarer
        ends[inside] = _root(
            lambda share: sign * (some._rareness(seen[inside], share, upper=upper) - special.ndtri(tail)), inside.sum()
        )
        return ends

    def _rareness(self, seen: Floats, share: Floats, *, upper: bool) -> Floats:
        """Return the chance of an estimate at least (at most) as large as the one that was seen, in normal steps."""
        deviation, lopsided = self.moments(share)
        steps = (seen - share) / deviation
        steps, shape = np.where(lopsided < 0, -steps, steps), 4 / np.maximum(np.abs(lopsided), _SYMMETRIC) ** 2
        point = np.maximum(shape + np.sqrt(shape) * steps, 0)
        of_upper = (lopsided >= 0) == upper
        chance = np.empty(seen.shape)
        chance[of_upper] = special.gammaincc(shape[of_upper], point[of_upper])
        chance[~of_upper] = special.gammainc(shape[~of_upper], point[~of_upper])
        found = special.ndtri(np.clip(chance, 1e-300, 1 - 1e-16))
        return np.where(np.abs(lopsided) < _SYMMETRIC, np.where(of_upper, -steps, steps), found)

    def _quantile(self, share: Floats, tail: float, *, upper: bool) -> Floats:
        """Return how far above (below) the share the estimate is with the chance `tail`."""
        deviation, lopsided = self.moments(share)
        shape = 4 / np.maximum(np.abs(lopsided), _SYMMETRIC) ** 2
        of_upper = (lopsided >= 0) == upper
        point = np.where(of_upper, special.gammainccinv(shape, tail), special.gammaincinv(shape, tail))
        steps = (point - shape) / np.sqrt(shape)
        steps = np.where(
            np.abs(lopsided) < _SYMMETRIC, np.where(of_upper, -special.ndtri(tail), special.ndtri(tail)), steps
        )
        return np.asarray(deviation * np.where(lopsided < 0, -steps, steps))

    def moments(self, share: Floats) -> tuple[Floats, Floats]:
        """Return the standard deviation and the skewness of the estimate.

        Given the truths the two factors are independent, so their moments multiply. Their means are 1 for an object
        that has the value and 0 for another.
        """
        kinds = self._kinds(share)
        second, third = (
            [row * column for row in _raw(self.row_support, order) for column in _raw(self.column_support, order)]
            for order in (2, 3)
        )
        if self.about == "sample":  # every kind of object around its own mean
            second[0], third[0] = second[0] - 1, third[0] - 3 * second[0] + 2
        variance, skew = np.tensordot([second, third], kinds, axes=1)
        if self.about == "population":
            variance, skew = variance - share**2, skew - 3 * share * variance + 2 * share**3
        return np.sqrt(variance / self.n), np.asarray(skew / variance**1.5 / np.sqrt(self.n))

    def _kinds(self, share: Floats) -> Floats:
        """Return the shares of objects with both values, the row's only, the column's only and neither.

        The estimated margins may contradict a share: they give way to it as little as possible.
        """
        row, column = np.maximum(self.rows - share, 0), np.maximum(self.columns - share, 0)
        room = np.minimum(1, (1 - share) / np.maximum(row + column, 1e-300))
        row, column = row * room, column * room
        return np.stack([share, row, column, np.maximum(1 - share - row - column, 0)])


def _root(function: Callable[[Floats], Floats], size: int) -> Floats:
    """Return where a function that grows is 0, between 0 and 1: false position, faster by the rule of Illinois."""
    low, high = np.zeros(size), np.ones(size)
    at_low, at_high = function(low), function(high)
    found, last = low, np.full(size, 0)
    for _ in range(_STEPS):
        found = np.clip(low - at_low * (high - low) / np.maximum(at_high - at_low, 1e-300), low, high)
        at = function(found)
        if np.all((np.abs(at) < 1e-7) | (high - low < 1e-12)):
            break
        side = np.where(at < 0, -1, 1)
        again = np.where(side == last, 0.5, 1.0)  # an end that stays twice would hold the others back
        at_low, at_high = np.where(side < 0, at, again * at_low), np.where(side < 0, again * at_high, at)
        low, high, last = np.where(side < 0, found, low), np.where(side < 0, high, found), side
    return found


def _raw(support: Support, order: int) -> tuple[float, float]:
    """Return the mean of a power of a debiased indicator, for objects that have the value and for others."""
    noise, gain = float(support.noise), float(support.gain)
    hit, miss = ((1 - noise) / gain) ** order, (-noise / gain) ** order
    chances = float(support.hit), noise
    return chances[0] * hit + (1 - chances[0]) * miss, chances[1] * hit + (1 - chances[1]) * miss
