"""Shares that are not negative and sum to 1: expected, nearest and likeliest ones.

By hand: SciPy has no projection onto a simplex.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from relaxdp.lazy_imports import scipy
from relaxdp.theory.randomized_response import SupportProbabilities

Floats = NDArray[np.float64]

_MIN_CHANCE = 2.0**-66
"""Less than any chance that a report does not support a value: floats may round that chance to 0."""
_STEPS = 60
"""Of the search for the law of shares; each makes the estimates likelier, and the last ones hardly move a share."""
_TINY = 1e-12
"""The least weight of a scale, so that a mean of 1/m can be reached; also the least standard error and share."""


def compute_nearest_shares(shares: Floats) -> Floats:
    """Return the point of the simplex that is nearest to `shares`: subtract one number from all, cut at 0."""
    falling = np.sort(shares)[::-1]
    excess = (np.cumsum(falling) - 1) / np.arange(1, len(shares) + 1)
    cut: float = excess[np.flatnonzero(falling > excess)[-1]]
    return np.maximum(shares - cut, 0)


def compute_likeliest_shares(
    counts: Sequence[NDArray[np.int64]],
    supports: Sequence[SupportProbabilities],
    unsupported: Sequence[NDArray[np.int64]] | None = None,
) -> Floats:
    """Return the shares that make the counts of all levels likeliest.

    Where a report may support several values, `unsupported` has the number of reports that do not support each value.
    The counts of the values are then treated as independent binomials.

    At the maximum the slope of the likelihood is one multiplier for every value with a share, and at most that for the
    others. For a given multiplier each share is the root of a falling function, and the sum of the shares falls as the
    multiplier grows: two nested searches, for any number of values.
    """
    gains = np.array([float(support.gain) for support in supports])[:, None]
    noises = np.array([float(support.noise) for support in supports])[:, None]
    table = np.array([*counts, *(unsupported or [])], dtype=float)
    # Values with equal counts have equal shares.
    distinct, where = np.unique(table, axis=1, return_inverse=True)
    weights = np.bincount(where.reshape(-1), minlength=distinct.shape[1])
    low, high = 0.0, float(_compute_gradient(0.0, distinct, gains, noises).max())
    shares_at = _find_shares
    if unsupported is not None:
        low, shares_at = float(_compute_gradient(1.0, distinct, gains, noises).min()), _find_binomial_shares
    for _ in range(100):
        multiplier = (low + high) / 2
        if (weights * shares_at(multiplier, distinct, gains, noises)).sum() > 1:
            low = multiplier
        else:
            high = multiplier
    shares = shares_at(high, distinct, gains, noises)
    shares /= (weights * shares).sum()
    return np.asarray(shares[where.reshape(-1)])


def _compute_gradient(shares: Floats | float, counts: Floats, gains: Floats, noises: Floats) -> Floats:
    """Return how much likelier the counts become with each share; rows after the levels' are unsupported counts."""
    chances = noises + gains * shares
    slope = counts[: len(gains)] * gains / chances
    if len(counts) > len(gains):
        slope = slope - counts[len(gains) :] * gains / np.maximum(1 - chances, _MIN_CHANCE)
    return np.asarray(slope.sum(axis=0))


def _find_binomial_shares(multiplier: float, counts: Floats, gains: Floats, noises: Floats) -> Floats:
    """Return the share of each value at a multiplier, where unsupported reports count as well: by halving."""
    low, high = np.zeros(counts.shape[1]), np.ones(counts.shape[1])
    for _ in range(60):
        middle = (low + high) / 2
        above = _compute_gradient(middle, counts, gains, noises) > multiplier
        low, high = np.where(above, middle, low), np.where(above, high, middle)
    return low


def _find_shares(multiplier: float, counts: Floats, gains: Floats, noises: Floats) -> Floats:
    """Return the share of each value at a multiplier: Newton's method from the left, where it cannot overshoot.

    sum of count * gain / (noise + gain * share) is convex and falling in the share, so the steps only grow it.
    """
    shares = np.zeros(counts.shape[1])
    for _ in range(100):
        bottoms = noises + gains * shares
        surplus = (counts * gains / bottoms).sum(axis=0) - multiplier
        slope = (counts * gains**2 / bottoms**2).sum(axis=0)
        with np.errstate(divide="ignore", invalid="ignore"):
            step = np.where((surplus > 0) & (slope > 0), surplus / slope, 0.0)
        shares = np.minimum(shares + step, 2.0)
        if step.max() < 1e-15:
            break
    return shares


def compute_expected_shares(value: Floats, variance: Floats) -> Floats:
    """Return consistent shares from unbiased estimates and their variances: an empirical Bayes estimate.

    The shares are thought of as draws from one law with a falling density, of which only the mean is known: 1/m, as
    they sum to 1. The law is a mixture of exponential laws with the scales 1, 1/2, 1/4 ... 1/(4m), and its weights are
    those that make the estimates likeliest. Each share is then what it is expected to be, given its own estimate; the
    nearest consistent shares to that are returned.

    Where noise is small nothing is left to expect, and these are the nearest shares to the estimates. Where noise is
    all there is, no estimate stands out, and the shares are nearly equal. Nothing has to be chosen.

    Claim: mostly ahead of its rivals, and where not; docs/consistent.md.
    """
    if len(value) == 1:
        return np.ones(1)
    # The noise of the sum is known, because the sum is, and no share is above 1.
    level = np.minimum(value + (1 - value.sum()) / len(value), 1)
    # Values with equal estimates have equal shares, and among many values few estimates are distinct.
    distinct, where, repeats = np.unique(np.stack([level, variance]), axis=1, return_inverse=True, return_counts=True)
    scales = 0.5 ** np.arange(np.ceil(np.log2(4 * len(value))) + 1)
    logs, means = _compute_posterior_means(distinct[0][:, None], distinct[1][:, None], scales)
    likely = np.exp(logs - logs.max(axis=1, keepdims=True))
    weights = np.full(len(scales), 1 / len(scales))
    for _ in range(_STEPS):
        weights = _constrain_mean(
            repeats @ _compute_scale_probabilities(likely, weights) / len(value), scales, 1 / len(value)
        )
    return compute_nearest_shares(
        (_compute_scale_probabilities(likely, weights) * means).sum(axis=1)[where.reshape(-1)]
    )


def _compute_posterior_means(value: Floats, variance: Floats, scales: Floats) -> tuple[Floats, Floats]:
    """Return, for shares from an exponential law, the logarithm of an estimate's density and the mean given it.

    A count has a longer tail above than below. A normal law has that tail, nearly, if its variance is that of a share
    one third of the way from the one that is thought of to the one that is estimated. Variances grow in a straight
    line with the share, and the least of them belongs to a share of 0.
    """
    reached = np.minimum(scales / np.maximum(value, _TINY), 1)
    least = variance.min()
    deviation = np.maximum(np.sqrt(least + (variance - least) * (1 + 2 * reached) / 3), _TINY)
    # Given the estimate, the share is normal with this mean, in standard deviations, and cut at 0.
    middle = value / deviation - deviation / scales
    tail = scipy.special.erfcx(-np.minimum(middle, 0) / np.sqrt(2))
    logs = np.where(
        middle < 0,
        np.log(tail / 2) - (value / deviation) ** 2 / 2,
        scipy.special.log_ndtr(middle) - value / scales + (deviation / scales) ** 2 / 2,
    )
    above = np.sqrt(2 / np.pi) * np.where(
        middle < 0,
        1 / tail,
        np.exp(-(np.maximum(middle, 0) ** 2) / 2 - scipy.special.log_ndtr(np.maximum(middle, 0))) / 2,
    )
    # Far below 0 the difference of two large numbers is lost, and its limit is known.
    means = deviation * np.where(middle < -1e3, -1 / np.minimum(middle, -1e3), middle + above)
    return logs - np.log(scales), means


def _compute_scale_probabilities(likely: Floats, weights: Floats) -> Floats:
    """Return how likely each estimate is to come from each scale."""
    parts = likely * weights
    return np.asarray(parts / parts.sum(axis=1, keepdims=True))


def _constrain_mean(weights: Floats, scales: Floats, mean: float) -> Floats:
    """Return the likeliest weights with the known mean, where `weights` would be the likeliest ones without it."""
    weights = np.maximum(weights, _TINY)
    away = scales - mean
    rise = weights * away
    low, high = (end * (1 - 1e-14) for end in (-1 / away.max(), -1 / away.min()))
    multiplier = scipy.optimize.brentq(
        lambda multiplier: (rise / (1 + multiplier * away)).sum(), low, high, xtol=1e-9, rtol=1e-9
    )
    weights = weights / (1 + multiplier * away)
    return np.asarray(weights / weights.sum())
