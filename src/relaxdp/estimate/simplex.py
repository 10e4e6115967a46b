"""Shares that are not negative and sum to 1: the nearest ones, and the likeliest ones at any mix of levels."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from relaxdp.law.support import Support

Floats = NDArray[np.float64]


def nearest_shares(shares: Floats) -> Floats:
    """Return the point of the simplex that is nearest to `shares`: subtract one number from all, cut at 0."""
    falling = np.sort(shares)[::-1]
    excess = (np.cumsum(falling) - 1) / np.arange(1, len(shares) + 1)
    cut: float = excess[np.flatnonzero(falling > excess)[-1]]
    return np.maximum(shares - cut, 0)


def likelihood_shares(counts: Sequence[NDArray[np.int64]], supports: Sequence[Support]) -> Floats:
    """Return the shares that make the counts of all levels likeliest.

    At the maximum there is one price with sum over levels of count * gain / (noise + gain * share) = price for every
    value that has a share, and at most that for the others. For a given price each share is the root of its own
    falling function, and the shares' sum falls as the price grows: two nested searches, whatever the number of values.
    """
    gains = np.array([float(support.gain) for support in supports])[:, None]
    noises = np.array([float(support.noise) for support in supports])[:, None]
    table = np.array(counts, dtype=float)
    # Values with equal counts have equal shares.
    distinct, where = np.unique(table, axis=1, return_inverse=True)
    weights = np.bincount(where.reshape(-1), minlength=distinct.shape[1])
    low, high = 0.0, float((distinct * gains / noises).sum(axis=0).max())
    for _ in range(100):
        price = (low + high) / 2
        if (weights * _shares_at(price, distinct, gains, noises)).sum() > 1:
            low = price
        else:
            high = price
    shares = _shares_at(high, distinct, gains, noises)
    shares /= (weights * shares).sum()
    return np.asarray(shares[where.reshape(-1)])


def _shares_at(price: float, counts: Floats, gains: Floats, noises: Floats) -> Floats:
    """Return the share of each value at a price: Newton's method from the left, where it cannot overshoot.

    sum of count * gain / (noise + gain * share) is convex and falling in the share, so the steps only grow it.
    """
    shares = np.zeros(counts.shape[1])
    for _ in range(100):
        bottoms = noises + gains * shares
        surplus = (counts * gains / bottoms).sum(axis=0) - price
        slope = (counts * gains**2 / bottoms**2).sum(axis=0)
        with np.errstate(divide="ignore", invalid="ignore"):
            step = np.where((surplus > 0) & (slope > 0), surplus / slope, 0.0)
        shares = np.minimum(shares + step, 2.0)
        if step.max() < 1e-15:
            break
    return shares
