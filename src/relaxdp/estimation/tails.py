"""Tail probabilities of a count of supporting reports, and the intervals that come from inverting them.

Of `objects` objects, `truths` support a value with probability `hit` and the others with probability `noise`. The count
is a sum of two binomials. Its saddlepoint is the root of a quadratic, so its tails cost the same for ten objects as
for ten million. With all objects alike (`hit` = `noise`) it is one binomial, whose tails are scipy's.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from relaxdp.estimation import special

Floats = NDArray[np.float64]


def lower_tail(count: Floats, truths: Floats, objects: float, hit: float, noise: float) -> Floats:
    """Return P(C <= count) by the Lugannani-Rice formula with a continuity correction; exact at count 0."""
    return _tail(np.asarray(count, float) + 0.5, truths, objects, hit, noise, at_most=True)


def upper_tail(count: Floats, truths: Floats, objects: float, hit: float, noise: float) -> Floats:
    """Return P(C >= count)."""
    return _tail(np.asarray(count, float) - 0.5, truths, objects, hit, noise, at_most=False)


def _tail(cut: Floats, truths: Floats, objects: float, hit: float, noise: float, *, at_most: bool) -> Floats:
    others = objects - truths
    mean = truths * hit + others * noise
    variance = truths * hit * (1 - hit) + others * noise * (1 - noise)
    inside = np.clip(cut, 0.25, objects - 0.25)
    x = _saddlepoint(inside, truths, others, hit, noise)
    t = np.log(x)
    cumulant = special.xlog1py(truths, hit * (x - 1)) + special.xlog1py(others, noise * (x - 1))
    tilted_hit, tilted_noise = hit * x / (1 - hit + hit * x), noise * x / (1 - noise + noise * x)
    curvature = truths * tilted_hit * (1 - tilted_hit) + others * tilted_noise * (1 - tilted_noise)
    with np.errstate(divide="ignore", invalid="ignore"):
        w = np.sign(t) * np.sqrt(2 * np.maximum(t * inside - cumulant, 0))
        u = 2 * np.sinh(t / 2) * np.sqrt(curvature)
        correction = np.exp(-w * w / 2) / np.sqrt(2 * np.pi) * (1 / w - 1 / u)
    near = np.abs(inside - mean) < 1e-4 * np.sqrt(variance)  # there 1/w - 1/u cancels; the normal tail is enough
    w = np.where(near, (inside - mean) / np.sqrt(np.maximum(variance, 1e-300)), w)
    correction = np.where(near, 0.0, correction)
    tail = special.ndtr(w) + correction if at_most else special.ndtr(-w) - correction
    # No report supports the value, or all do: closed forms, and nothing beyond the ends.
    none = np.exp(truths * special.log1p(-hit) + others * special.log1p(-noise))
    every = np.exp(truths * np.log(hit) + others * np.log(noise))
    if at_most:
        tail = np.where(cut < 1, none, np.where(cut > objects - 1, 1 - every, tail))
        tail = np.where(cut < 0, 0.0, np.where(cut > objects, 1.0, tail))
    else:
        tail = np.where(cut > objects - 1, every, np.where(cut < 1, 1 - none, tail))
        tail = np.where(cut > objects, 0.0, np.where(cut < 0, 1.0, tail))
    return np.clip(tail, 0.0, 1.0)


def _saddlepoint(count: Floats, truths: Floats, others: Floats, hit: float, noise: float) -> Floats:
    """Return the x = e^t > 0 with truths hit x/(1-hit+hit x) + others noise x/(1-noise+noise x) = count."""
    miss, silent = 1 - hit, 1 - noise
    a = (truths + others - count) * hit * noise
    b = truths * hit * silent + others * noise * miss - count * (hit * silent + noise * miss)
    c = count * miss * silent
    root = np.sqrt(b * b + 4 * a * c)
    # Of the two forms of the positive root, the one without cancellation.
    with np.errstate(divide="ignore", invalid="ignore"):
        x = np.where(b > 0, 2 * c / (b + root), (root - b) / (2 * a))
    return np.asarray(x, float)


def truths_interval(count: Any, objects: int, hit: float, noise: float, tail: float) -> tuple[Floats, Floats]:
    """Return the least and greatest number of truths that make `count` not too rare: each tail above `tail`.

    Both tails are monotone in the number of truths, so bisection finds the ends (as real numbers, in 0 .. objects).
    """
    counts = np.asarray(count, float)
    low = _bisect(lambda k: upper_tail(counts, k, objects, hit, noise) > tail, counts.shape, objects)
    high = objects - _bisect(
        lambda k: lower_tail(counts, objects - k, objects, hit, noise) > tail, counts.shape, objects
    )
    return low, high


def _bisect(enough: Any, shape: tuple[int, ...], objects: int) -> Floats:
    """Return the least k in [0, objects] with `enough(k)`, which is monotone; rounded outwards (down)."""
    low, high = np.zeros(shape), np.full(shape, float(objects))
    at_zero = enough(low)
    for _ in range(60):
        middle = (low + high) / 2
        above = enough(middle)
        high, low = np.where(above, middle, high), np.where(above, low, middle)
    return np.where(at_zero, 0.0, low)


def binomial_interval(count: Any, objects: int, tail: float) -> tuple[Floats, Floats]:
    """Return the exact (Clopper-Pearson) interval of a binomial probability."""
    counts = np.asarray(count, float)
    with np.errstate(invalid="ignore"):
        low = np.where(counts > 0, special.betaincinv(np.maximum(counts, 1), objects - counts + 1, tail), 0.0)
        high = np.where(
            counts < objects, special.betaincinv(counts + 1, np.maximum(objects - counts, 1), 1 - tail), 1.0
        )
    return low, high
