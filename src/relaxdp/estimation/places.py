"""The likeliest distribution behind places: a number lies in a bin, and is spread evenly over a window of places.

By hand: the likelihood of a mixture is concave, and at its maximum few bins have a share. Newton's method on those
bins, each step a least-squares problem without negative shares, gets there in a few steps; and how far it still is
from the maximum is known at each of them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from relaxdp.lazy_imports import scipy

Floats = NDArray[np.float64]
Bins = NDArray[np.bool_]

_NEAR = 0.01
"""How far from the maximum the logarithm of the likelihood may be: what chance does to it is a hundred times that."""
_STEPS, _SMOOTHED = 100, 2_000
_SAME = 1e-7
_SMALL = 1e-9
"""A share that is none."""


@dataclass(frozen=True, eq=False)
class Places:
    """Counts of places at some levels, and what a report of a level is: its number's window, or anything."""

    counts: Floats
    """Of shape (levels, places)."""
    keeps: Floats
    """The retention of each level."""
    window: int

    @property
    def bins(self) -> int:
        """How many bins there are."""
        return int(self.counts.shape[1]) - self.window + 1

    def chances(self, shares: Floats) -> Floats:
        """Return the chance of each place at each level."""
        spread = np.convolve(shares, np.ones(self.window)) / self.window
        noise = (1 - self.keeps) * shares.sum() / self.counts.shape[1]
        return np.asarray(self.keeps[:, None] * spread + noise[:, None])

    def likelihood(self, shares: Floats) -> float:
        """Return the logarithm of the likelihood."""
        return float((self.counts * np.log(self.chances(shares))).sum())

    def slope(self, shares: Floats) -> Floats:
        """Return how much likelier the counts become with each share."""
        return self.means(self.counts / self.chances(shares))

    def means(self, weights: Floats) -> Floats:
        """Return what the weights of all places at all levels come to on average, for a number in each bin."""
        weights = weights.reshape(self.counts.shape)
        spread = np.convolve(self.keeps @ weights, np.ones(self.window), "valid") / self.window
        return np.asarray(spread + ((1 - self.keeps) / self.counts.shape[1]) @ weights.sum(axis=1))

    def moments(self, expected: Floats | None = None) -> tuple[float, float, float]:
        """Return the estimated mean of the bins, from the middle of all, their variance, and its standard error.

        Both estimates are linear in what each report says of its bin and of the square of that, so they are unbiased
        whatever the distribution is; the variance may come out negative. Its error is that of the reports' own spread,
        or of the chances of all places that are `expected`.
        """
        places = self.counts.shape[1]
        distances = np.arange(places) - (places - 1) / 2
        totals = self.counts.sum(axis=1)
        used = totals > 0
        keeps, totals = self.keeps[used, None], totals[used, None]
        chances = self.counts[used] / totals
        parts = totals * keeps**2 / (totals * keeps**2).sum()
        bins = distances / keeps
        squares = (distances**2 - (1 - keeps) * (places**2 - 1) / 12) / keeps - (self.window**2 - 1) / 12
        mean, second = (float((parts * chances * each).sum()) for each in (bins, squares))

        def error(each: Floats) -> float:
            """Return the squared standard error of the mean of what each place counts for."""
            likely = chances if expected is None else expected[used]
            spread = (likely * each**2).sum(axis=1) - (likely * each).sum(axis=1) ** 2
            return float((parts[:, 0] ** 2 * spread / totals[:, 0]).sum())

        return mean, second - mean**2 + error(bins), float(np.sqrt(error(squares - 2 * mean * bins)))

    def columns(self, chosen: NDArray[np.intp]) -> Floats:
        """Return the chances of all places at all levels, given each of some bins: (levels * places, bins)."""
        places = np.arange(self.counts.shape[1])[:, None]
        inside = (places >= chosen) & (places < chosen + self.window)
        noise = (1 - self.keeps) / self.counts.shape[1]
        whole = inside * (self.keeps / self.window)[:, None, None] + noise[:, None, None]
        return np.asarray(whole.reshape(-1, len(chosen)))


def likeliest(places: Places) -> tuple[Floats, float]:
    """Return the shares of the bins that make the counts likeliest, and the logarithm of that likelihood.

    Claim: no other shares are likelier by more than a hundredth in the logarithm; tests/unit/estimation/test_places.py.
    """
    shares = np.full(places.bins, 1 / places.bins)
    found = places.likelihood(shares)
    for _ in range(_STEPS):
        slope = places.slope(shares)
        if slope.max() - slope @ shares < _NEAR:  # it is concave: nothing is likelier by more than its slope promises
            break
        aim = _least_squares(places, shares, slope)
        step, better = 1.0, -np.inf
        while step > _SAME:
            better = places.likelihood(shares + step * (aim - shares))
            if better >= found:
                break
            step /= 2
        if better - found < _SAME:  # expectation-maximisation never goes down, and moves where Newton's method is stuck
            aim, step = shares * slope / (shares @ slope), 1.0
            better = places.likelihood(aim)
        shares, found = shares + step * (aim - shares), better
    return shares, found


def _least_squares(places: Places, shares: Floats, slope: Floats) -> Floats:
    """Return where the likelihood's second-order form is largest, among bins with a share and peaks of the slope."""
    padded = np.pad(slope, 1, constant_values=-np.inf)
    where = np.flatnonzero((shares > _SMALL) | ((slope >= padded[:-2]) & (slope >= padded[2:])))
    seen = places.counts.reshape(-1) > 0
    chances = places.chances(shares).reshape(-1)[seen]
    roots = np.sqrt(places.counts.reshape(-1)[seen])
    matrix = roots[:, None] * places.columns(where)[seen] / chances[:, None]
    heavy = 1e3 * np.sqrt(places.counts.sum())
    rows, ends = np.vstack([matrix, np.full(len(where), heavy)]), np.append(2 * roots, heavy)
    found, _ = scipy.optimize.nnls(rows, ends, maxiter=50 * len(where))
    result = np.zeros(len(shares))
    result[where] = found / found.sum()
    return result


def smoothed(places: Places) -> Floats:
    """Return a smooth distribution (EMS): steps of expectation-maximisation, each averaged with its neighbours.

    The likeliest one stands on a few bins. This one has less error where numbers are spread, and some bias.
    """
    shares, found = np.full(places.bins, 1 / places.bins), -np.inf
    widths = np.ones(places.bins)
    widths[[0, -1]] = 0.5  # a bin at an end has numbers on one side only, so it is the density that is smooth
    for _ in range(_SMOOTHED):
        edged = np.pad(shares * places.slope(shares) / widths, 1, mode="edge")
        shares = widths * (edged[:-2] / 4 + edged[1:-1] / 2 + edged[2:] / 4)
        shares /= shares.sum()
        better = places.likelihood(shares)
        if abs(better - found) < _NEAR:
            break
        found = better
    return np.asarray(shares)
