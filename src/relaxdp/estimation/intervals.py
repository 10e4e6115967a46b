"""Tail probabilities of a count of supporting reports, and the intervals that come from inverting them.

Of `n` individuals, `true_count` support a value with probability `hit`, the others with probability `noise`. The count
is a sum of two binomials. Its saddlepoint is the root of a quadratic, so its tails cost the same for ten individuals as
for ten million. With all individuals alike (`hit` = `noise`) it is one binomial, whose tails are scipy's.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from relaxdp.lazy_imports import scipy

Floats = NDArray[np.float64]

_NEAR = 1e-10
"""How far from its place an end may be, as a share of the individuals."""
_SMOOTH = 2.0
"""The least standard deviation of a count whose tails have no steps."""
_STEPS = 12  # many more than it takes
_ALMOST = 1 - 2.0**-53


def compute_lower_tail(count: Floats, true_count: Floats, n: float, hit: float, noise: float) -> Floats:
    """Return P(C <= count) by the Lugannani-Rice formula with a continuity correction; exact at count 0."""
    return _compute_tail(np.asarray(count, float) + 0.5, true_count, n, hit, noise, at_most=True)


def compute_upper_tail(count: Floats, true_count: Floats, n: float, hit: float, noise: float) -> Floats:
    """Return P(C >= count)."""
    return _compute_tail(np.asarray(count, float) - 0.5, true_count, n, hit, noise, at_most=False)


def _compute_tail(cutoff: Floats, true_count: Floats, n: float, hit: float, noise: float, *, at_most: bool) -> Floats:
    false_count = n - true_count
    mean = true_count * hit + false_count * noise
    variance = true_count * hit * (1 - hit) + false_count * noise * (1 - noise)
    inside = np.clip(cutoff, 0.25, n - 0.25)
    x = _find_saddlepoint(inside, true_count, false_count, hit, noise)
    t = np.log(x)
    cumulant = scipy.special.xlog1py(true_count, hit * (x - 1)) + scipy.special.xlog1py(false_count, noise * (x - 1))
    tilted_hit, tilted_noise = hit * x / (1 - hit + hit * x), noise * x / (1 - noise + noise * x)
    curvature = true_count * tilted_hit * (1 - tilted_hit) + false_count * tilted_noise * (1 - tilted_noise)
    with np.errstate(divide="ignore", invalid="ignore"):
        w = np.sign(t) * np.sqrt(2 * np.maximum(t * inside - cumulant, 0))
        u = 2 * np.sinh(t / 2) * np.sqrt(curvature)
        correction = np.exp(-w * w / 2) / np.sqrt(2 * np.pi) * (1 / w - 1 / u)
    near = np.abs(inside - mean) < 1e-4 * np.sqrt(variance)  # there 1/w - 1/u cancels; the normal tail is enough
    w = np.where(near, (inside - mean) / np.sqrt(np.maximum(variance, 1e-300)), w)
    correction = np.where(near, 0.0, correction)
    tail = scipy.special.ndtr(w) + correction if at_most else scipy.special.ndtr(-w) - correction
    # No report supports the value, or all do: closed forms, and nothing beyond the ends.
    none = np.exp(true_count * scipy.special.log1p(-hit) + false_count * scipy.special.log1p(-noise))
    every = np.exp(true_count * np.log(hit) + false_count * np.log(noise))
    if at_most:
        tail = np.where(cutoff < 1, none, np.where(cutoff > n - 1, 1 - every, tail))
        tail = np.where(cutoff < 0, 0.0, np.where(cutoff > n, 1.0, tail))
    else:
        tail = np.where(cutoff > n - 1, every, np.where(cutoff < 1, 1 - none, tail))
        tail = np.where(cutoff > n, 0.0, np.where(cutoff < 0, 1.0, tail))
    return np.clip(tail, 0.0, 1.0)


def _find_saddlepoint(count: Floats, true_count: Floats, false_count: Floats, hit: float, noise: float) -> Floats:
    """Return the x = e^t > 0 with true_count hit x/(1-hit+hit x) + false_count noise x/(1-noise+noise x) = count."""
    miss, silent = 1 - hit, 1 - noise
    a = (true_count + false_count - count) * hit * noise
    b = true_count * hit * silent + false_count * noise * miss - count * (hit * silent + noise * miss)
    c = count * miss * silent
    root = np.sqrt(b * b + 4 * a * c)
    # Of the two forms of the positive root, the one without cancellation.
    with np.errstate(divide="ignore", invalid="ignore"):
        x = np.where(b > 0, 2 * c / (b + root), (root - b) / (2 * a))
    return np.asarray(x, float)


def compute_true_count_interval(count: Any, n: int, hit: float, noise: float, tail: float) -> tuple[Floats, Floats]:
    """Return the minimum and maximum number of true values for which `count` is not too rare: each tail above `tail`.

    Both tails are monotone in this number, so the bounds are where they cross `tail` (as real numbers from 0 to `n`).

    Claim: the same ends as by bisection; tests/exact/estimation/test_intervals.py.
    """
    counts = np.asarray(count, float)
    hit = min(hit, _ALMOST)  # at a very large epsilon the number that is nearest to it is 1, and has no logarithm
    low = _find_min_true_count(
        lambda seen, k: compute_upper_tail(seen, k, n, hit, noise), counts, tail, n,
        *_guess_min_count(counts - 0.5, n, hit, noise, tail),
    )  # fmt: skip
    # The same from the other end: how many individuals do not have the value, given how many reports do not support it.
    high = n - _find_min_true_count(
        lambda seen, k: compute_lower_tail(seen, n - k, n, hit, noise), counts, tail, n,
        *_guess_min_count(n - counts - 0.5, n, 1 - noise, 1 - hit, tail),
    )  # fmt: skip
    return low, high


def _guess_min_count(cutoff: Floats, n: int, hit: float, noise: float, tail: float) -> tuple[Floats, Floats, float]:
    """Return the least number of truths if the count were normal, the count's standard deviation there, and the gain.

    It is the smaller root of (away - gain k)^2 = quantile^2 variance, with a variance that is linear in k.
    """
    quantile, gain, silent = scipy.special.ndtri(tail), hit - noise, noise * (1 - noise)
    growth, away = hit * (1 - hit) - silent, cutoff - n * noise
    half = gain * away + quantile**2 * growth / 2
    spread = np.maximum(half**2 - gain**2 * (away**2 - quantile**2 * n * silent), 0)
    end = np.clip((half - np.sqrt(spread)) / gain**2, 0, n)
    return end, np.sqrt(n * silent + growth * end), gain


def _find_min_true_count(
    compute_tail: Any, counts: Floats, tail: float, n: int, start: Floats, deviation: Floats, gain: float
) -> Floats:
    """Return the least k in [0, n] with `compute_tail(counts, k)` > `tail`, which is monotone; rounded outwards (down).

    In normal quantiles the chance is nearly a straight line: a few steps of the secant method lead from the end of a
    normal law to the place. Then it is looked at whether the place is there; where it is not, and where the count
    hardly varies, so that the chance is a staircase, bisection finds it.
    """

    def compute_shortfall(k: Floats) -> Floats:
        return np.asarray(
            scipy.special.ndtri(tail) - scipy.special.ndtri(np.clip(compute_tail(counts, k), 1e-300, 1 - 1e-16))
        )

    near, place, left = _NEAR * n, start, compute_shortfall(start)
    step = left * deviation / gain
    for _ in range(_STEPS):
        following = np.clip(place + step, 0, n)
        rest = compute_shortfall(following)
        with np.errstate(divide="ignore", invalid="ignore"):
            step = np.where(rest == left, 0.0, rest * (following - place) / (left - rest))
        place, left = following, rest
        if np.all(np.abs(step) < near / 4):
            break
    below, above = np.clip(place - near / 2, 0, n), np.clip(place + near / 2, 0, n)
    is_enough = compute_tail(counts, above) > tail
    is_there = ((below == 0) | (compute_tail(counts, below) <= tail)) & (is_enough | (above == n))
    found = np.where(is_enough, below, n)
    lost = ~is_there | (deviation < _SMOOTH)
    if np.any(lost):
        found[lost] = _bisect_least_number(lambda k: compute_tail(counts[lost], k) > tail, (int(lost.sum()),), n)
    return found


def _bisect_least_number(is_enough: Any, shape: tuple[int, ...], maximum: int) -> Floats:
    """Return the least k in [0, n] with `is_enough(k)`, which is monotone; rounded outwards (down)."""
    low, high = np.zeros(shape), np.full(shape, float(maximum))
    at_zero = is_enough(low)
    for _ in range(60):
        middle = (low + high) / 2
        above = is_enough(middle)
        high, low = np.where(above, middle, high), np.where(above, low, middle)
    return np.where(at_zero, 0.0, low)


def compute_binomial_interval(count: Any, n: int, tail: float) -> tuple[Floats, Floats]:
    """Return the exact (Clopper-Pearson) interval of a binomial probability."""
    counts = np.asarray(count, float)
    with np.errstate(invalid="ignore"):
        low = np.where(counts > 0, scipy.special.betaincinv(np.maximum(counts, 1), n - counts + 1, tail), 0.0)
        high = np.where(counts < n, scipy.special.betaincinv(counts + 1, np.maximum(n - counts, 1), 1 - tail), 1.0)
    return low, high
