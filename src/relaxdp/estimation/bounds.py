"""What share of the numbers some bins have at least, and at most, by the places that were reported.

Every place of every level gets a weight, such that a report of a number in one of these bins weighs at most one on
average, and any other at most nothing. Then the mean weight of all reports is an estimate that lies below the share of
the bins, whatever the distribution is: nothing is assumed of it, and the interval is that of a mean (a score test). By
duality, the best weights are those that tell a guess of the distribution from the nearest one with a smaller share,
which is a least-squares problem without negative shares.

The guess is a beta distribution with the estimated mean and variance. Its two numbers are all that the weights take
from the reports; weights that were chosen with more freedom would find their chance excesses (this is what is wrong
with a ratio of likelihoods here: where all numbers were one number, its intervals held less often than they said).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from relaxdp.estimation import special
from relaxdp.estimation.places import Bins, Floats, Places
from relaxdp.lazy_imports import scipy

_UNIFORM = 0.02
"""How much of the guess is spread over all bins: a place that it holds impossible would weigh too much."""
_COLUMNS = 128
"""Among about so many bins the nearest distribution is looked for; weights are checked with all of them."""
_TRIES = 7
_FITTED = 0.9
"""By how much the error on each side is less than what is asked for, since the guess is made from the same reports."""
_ROUNDS, _CLOSE, _SMALL = 60, 1e-6, 1e-12
_HEAVY = 1e3
"""The weight of what has to hold, among squares that sum to about one."""


@dataclass(frozen=True, eq=False)
class Bounds:
    """The bounds of shares of bins, by the counts of places at some levels.

    Claim: each holds as often as it says, whatever the distribution is; tests/statistical/estimation/test_wave.py.
    """

    places: Places

    def least(self, within: Bins, tail: float) -> float:
        """Return what these bins have at least, apart from an error of this probability."""
        if within.all() or not within.any():
            return float(within.all())
        quantile = -float(special.ndtri(_FITTED * tail)) / math.sqrt(self._n)
        nearest = self._nearest(within, quantile)
        weights = self.weights(within, nearest, quantile)
        mean, square = float(self._seen @ weights), float(self._seen @ weights**2)
        variance = max(square - mean**2, float(nearest @ weights**2 - (nearest @ weights) ** 2), 0.0)
        low = mean - quantile * math.sqrt(variance)
        # Few reports may show nothing of what is outside. So the variance is also that of the reports with so much
        # moved to one bin outside, the worst, that the bound is their mean; it is found where both agree.
        means, squares = (self.places.means(each * self._parts)[~within] for each in (weights, weights**2))
        for _ in range(_ROUNDS):
            moved = np.clip((mean - low) / np.maximum(mean - means, _SMALL), 0, 1)
            spread = (1 - moved) * square + moved * squares - ((1 - moved) * mean + moved * means) ** 2
            lower = mean - quantile * math.sqrt(max(variance, float(spread.max())))
            if lower > low - _CLOSE:
                break
            low = lower
        return max(0.0, low)

    def most(self, within: Bins, tail: float) -> float:
        """Return what these bins have at most, apart from an error of this probability."""
        return 1.0 - self.least(~within, tail)

    def _nearest(self, within: Bins, far: float) -> Floats:
        """Return the chances of all places with a smaller share of these bins, about so far from those of the guess."""
        columns = self._columns(within)
        whole = less = float(self.guess @ within)
        found, distance = self._with_share(within, columns, 0.0)
        power = 1.0
        for _ in range(_TRIES):
            if 0.9 * far < distance < 1.1 * far or (less == whole and distance < far):
                break
            # How far it is grows about like a power of how much less the share is.
            before, nearer = (less, distance), less * (far / distance) ** (1 / power)
            less = min(whole, nearer)
            found, distance = self._with_share(within, columns, whole - less)
            if less != before[0] and distance != before[1]:
                power = float(np.clip(np.log(distance / before[1]) / np.log(less / before[0]), 1, 4))
        return found

    def _with_share(self, within: Bins, columns: Floats, share: float) -> tuple[Floats, float]:
        """Return the chances nearest to the guess where these bins have this share, and how far away they are."""
        roots = np.sqrt(self._guessed)
        chosen = within[self._chosen(within)]
        rows = [columns / roots[:, None], np.full(len(chosen), _HEAVY), _HEAVY * chosen]
        ends = np.concatenate([roots, [_HEAVY, _HEAVY * share]])
        shares, _ = scipy.optimize.nnls(np.vstack(rows), ends, maxiter=50 * len(chosen))
        chances = columns @ shares
        return chances, float(np.sqrt((((chances - self._guessed) / roots) ** 2).sum()))

    def weights(self, within: Bins, nearest: Floats, quantile: float) -> Floats:
        """Return weights of all places, by what tells two distributions apart: the best ones if the guess is right.

        Claim: on average at most one for a number in these bins, and nothing for others, whatever is told apart;
        tests/unit/estimation/test_bounds.py.
        """
        tells = (self._guessed - nearest) / self._guessed
        means = self.places.means(tells * self._parts)
        centre = float(self._guessed @ tells)
        error = quantile * np.sqrt(max(0.0, float(self._guessed @ tells**2) - centre**2))
        spread = float(np.ptp(means))
        if spread == 0:
            return np.zeros(len(tells))
        scales = np.linspace(0.2, 1.5, 53) / spread
        rest = (within - scales[:, None] * means).min(axis=1)
        best = int(np.argmax(scales * (centre - error) + rest))
        return np.asarray(scales[best] * tells + rest[best])

    @cached_property
    def _grid(self) -> NDArray[np.intp]:
        """Bins close enough to one another to stand for all."""
        window, bins = self.places.window, self.places.bins
        step = max(1, min(window // 4, bins // _COLUMNS))
        step = 1 << (step.bit_length() - 1)  # as the window is, so that windows of these bins end at those of others
        return np.append(np.arange(0, bins - 1, step), bins - 1)

    def _chosen(self, within: Bins) -> NDArray[np.intp]:
        """Return these bins, and those at the ends of a part."""
        ends = np.flatnonzero(np.diff(within))
        return np.unique(np.concatenate([self._grid, ends, ends + 1]))

    def _columns(self, within: Bins) -> Floats:
        return self.places.columns(self._chosen(within)) * self._parts[:, None]

    @cached_property
    def _n(self) -> float:
        return float(self.places.counts.sum())

    @cached_property
    def _parts(self) -> Floats:
        """The part of its level in all reports, for each place of each level."""
        levels = self.places.counts.sum(axis=1) / self._n
        return np.repeat(levels, self.places.counts.shape[1])

    @cached_property
    def _seen(self) -> Floats:
        return self.places.counts.reshape(-1) / self._n

    @cached_property
    def _guessed(self) -> Floats:
        """The chances of all places by the guess."""
        return np.asarray(self.places.chances(self.guess).reshape(-1) * self._parts)

    @cached_property
    def guess(self) -> Floats:
        """The shares of the bins in a beta distribution with the estimated mean and variance."""
        bins = self.places.bins
        mean, variance, _ = self.places.moments()
        within = float(np.clip((mean + (bins - 1) / 2) / (bins - 1), 0.5 / bins, 1 - 0.5 / bins))
        most = within * (1 - within)
        size = most / float(np.clip(variance / (bins - 1) ** 2, (0.5 / bins) ** 2, 0.95 * most)) - 1
        edges = np.clip((np.arange(bins + 1) - 0.5) / (bins - 1), 0, 1)
        shares = np.diff(special.betainc(within * size, (1 - within) * size, edges))
        shares = (1 - _UNIFORM) * shares + _UNIFORM / bins
        # Each share goes to the bins of the grid on its two sides, or else nothing on the grid would be near the guess.
        grid, guess = self._grid, np.zeros(bins)
        after = np.clip(np.searchsorted(grid, np.arange(bins), side="right"), 1, len(grid) - 1)
        parts = (np.arange(bins) - grid[after - 1]) / (grid[after] - grid[after - 1])
        np.add.at(guess, grid[after - 1], (1 - parts) * shares)
        np.add.at(guess, grid[after], parts * shares)
        return guess
