"""Consistent shares: they are not negative and sum to 1.

By hand: SciPy has no projection onto a simplex.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from relaxdp.lazy_imports import scipy

Floats = NDArray[np.float64]

_STEPS = 60
"""Of the search for the law of shares; each makes the estimates likelier, and the last ones hardly move a share."""
_TINY = 1e-12
"""The least weight of a scale, so that a mean of 1/m can be reached; also the least standard error and share."""


def project_onto_simplex(shares: Floats) -> Floats:
    """Return the point of the simplex that is nearest to `shares`: subtract one number from all, cut at 0."""
    falling = np.sort(shares)[::-1]
    excess = (np.cumsum(falling) - 1) / np.arange(1, len(shares) + 1)
    cut: float = excess[np.flatnonzero(falling > excess)[-1]]
    return np.maximum(shares - cut, 0)


def compute_empirical_bayes_shares(estimates: Floats, variances: Floats) -> Floats:
    """Return consistent shares from unbiased estimates and their variances: an empirical Bayes estimate.

    The shares are treated as draws from one distribution with a falling density. Its mean is known: 1/m, because the
    shares sum to 1. It is a mixture of exponential distributions with the scales 1, 1/2, 1/4 ... 1/(4m), with the
    weights that make the estimates most likely. Each share is replaced by its expected value, given its own estimate.
    The function returns the consistent shares that are nearest to these.

    If noise is small, the result is nearest to the estimates. If there is only noise, the shares are nearly equal. The
    method has no parameter.

    Claim: mostly ahead of its rivals, and where not; docs/consistent.md.
    """
    if len(estimates) == 1:
        return np.ones(1)
    # The noise of the sum is known, because the sum is, and no share is above 1.
    level = np.minimum(estimates + (1 - estimates.sum()) / len(estimates), 1)
    # Values with equal estimates have equal shares, and among many values few estimates are distinct.
    distinct, where, repeats = np.unique(np.stack([level, variances]), axis=1, return_inverse=True, return_counts=True)
    scales = 0.5 ** np.arange(np.ceil(np.log2(4 * len(estimates))) + 1)
    logs, means = _compute_posteriors(distinct[0][:, None], distinct[1][:, None], scales)
    likely = np.exp(logs - logs.max(axis=1, keepdims=True))
    weights = np.full(len(scales), 1 / len(scales))
    for _ in range(_STEPS):
        averages = repeats @ _compute_scale_posteriors(likely, weights) / len(estimates)
        weights = _constrain_mean_of_weights(averages, scales, 1 / len(estimates))
    return project_onto_simplex((_compute_scale_posteriors(likely, weights) * means).sum(axis=1)[where.reshape(-1)])


def _compute_posteriors(estimates: Floats, variances: Floats, scales: Floats) -> tuple[Floats, Floats]:
    """Return the log density of each estimate and the posterior mean of its share, for each exponential prior.

    A count has a longer tail above than below. A normal law has that tail, nearly, if its variance is that of a share
    one third of the way from the one that is thought of to the one that is estimated. Variances grow in a straight
    line with the share, and the least of them belongs to a share of 0.
    """
    reached = np.minimum(scales / np.maximum(estimates, _TINY), 1)
    least = variances.min()
    deviation = np.maximum(np.sqrt(least + (variances - least) * (1 + 2 * reached) / 3), _TINY)
    # Given the estimate, the share is normal with this mean, in standard deviations, and cut at 0.
    middle = estimates / deviation - deviation / scales
    tail = scipy.special.erfcx(-np.minimum(middle, 0) / np.sqrt(2))
    logs = np.where(
        middle < 0,
        np.log(tail / 2) - (estimates / deviation) ** 2 / 2,
        scipy.special.log_ndtr(middle) - estimates / scales + (deviation / scales) ** 2 / 2,
    )
    above = np.sqrt(2 / np.pi) * np.where(
        middle < 0,
        1 / tail,
        np.exp(-(np.maximum(middle, 0) ** 2) / 2 - scipy.special.log_ndtr(np.maximum(middle, 0))) / 2,
    )
    # Far below 0 the difference of two large numbers is lost, and its limit is known.
    means = deviation * np.where(middle < -1e3, -1 / np.minimum(middle, -1e3), middle + above)
    return logs - np.log(scales), means


def _compute_scale_posteriors(likelihoods: Floats, weights: Floats) -> Floats:
    """Return the posterior probability of each scale, given each estimate."""
    parts = likelihoods * weights
    return np.asarray(parts / parts.sum(axis=1, keepdims=True))


def _constrain_mean_of_weights(weights: Floats, scales: Floats, mean: float) -> Floats:
    """Return the likeliest weights of scales with a known mean; without that constraint they would be `weights`."""
    weights = np.maximum(weights, _TINY)
    away = scales - mean
    rise = weights * away
    low, high = (end * (1 - 1e-14) for end in (-1 / away.max(), -1 / away.min()))
    multiplier = scipy.optimize.brentq(
        lambda multiplier: (rise / (1 + multiplier * away)).sum(), low, high, xtol=1e-9, rtol=1e-9
    )
    weights = weights / (1 + multiplier * away)
    return np.asarray(weights / weights.sum())
