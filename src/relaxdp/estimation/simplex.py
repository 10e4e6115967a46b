"""Shares that are not negative and sum to 1: the nearest ones, and the likeliest ones at any mix of levels.

By hand: SciPy has no projection onto a simplex.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from relaxdp.theory.randomized_response import Support

Floats = NDArray[np.float64]

_LEAST = 2.0**-66
"""Less than any chance that a report is silent: floats may round that chance to 0."""


def nearest_shares(shares: Floats) -> Floats:
    """Return the point of the simplex that is nearest to `shares`: subtract one number from all, cut at 0."""
    falling = np.sort(shares)[::-1]
    excess = (np.cumsum(falling) - 1) / np.arange(1, len(shares) + 1)
    cut: float = excess[np.flatnonzero(falling > excess)[-1]]
    return np.maximum(shares - cut, 0)


def likelihood_shares(
    counts: Sequence[NDArray[np.int64]],
    supports: Sequence[Support],
    silent: Sequence[NDArray[np.int64]] | None = None,
) -> Floats:
    """Return the shares that make the counts of all levels likeliest.

    Where a report may support several values, `silent` says how many reports do not support each value, and every
    value's count is taken as a binomial of its own.

    At the maximum there is one price that the slope of the likelihood has for every value with a share, and at most
    that for the others. For a given price each share is the root of its own falling function, and the shares' sum falls
    as the price grows: two nested searches, whatever the number of values.
    """
    gains = np.array([float(support.gain) for support in supports])[:, None]
    noises = np.array([float(support.noise) for support in supports])[:, None]
    table = np.array([*counts, *(silent or [])], dtype=float)
    # Values with equal counts have equal shares.
    distinct, where = np.unique(table, axis=1, return_inverse=True)
    weights = np.bincount(where.reshape(-1), minlength=distinct.shape[1])
    low, high = 0.0, float(_slope(0.0, distinct, gains, noises).max())
    shares_at = _shares_at
    if silent is not None:
        low, shares_at = float(_slope(1.0, distinct, gains, noises).min()), _binomial_shares_at
    for _ in range(100):
        price = (low + high) / 2
        if (weights * shares_at(price, distinct, gains, noises)).sum() > 1:
            low = price
        else:
            high = price
    shares = shares_at(high, distinct, gains, noises)
    shares /= (weights * shares).sum()
    return np.asarray(shares[where.reshape(-1)])


def _slope(shares: Floats | float, counts: Floats, gains: Floats, noises: Floats) -> Floats:
    """Return how much likelier the counts become with each share; rows after the levels' are silent counts."""
    chances = noises + gains * shares
    slope = counts[: len(gains)] * gains / chances
    if len(counts) > len(gains):
        slope = slope - counts[len(gains) :] * gains / np.maximum(1 - chances, _LEAST)
    return np.asarray(slope.sum(axis=0))


def _binomial_shares_at(price: float, counts: Floats, gains: Floats, noises: Floats) -> Floats:
    """Return the share of each value at a price, where silent reports count as well: by halving."""
    low, high = np.zeros(counts.shape[1]), np.ones(counts.shape[1])
    for _ in range(60):
        middle = (low + high) / 2
        above = _slope(middle, counts, gains, noises) > price
        low, high = np.where(above, middle, low), np.where(above, high, middle)
    return low


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
