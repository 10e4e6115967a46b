"""The tests behind the verdicts. Each fails a correct program with a probability of at most RATE.

A check that looks at many levels or values at once divides RATE among them (Bonferroni), which holds however they
depend on each other. So the false-alarm rate of a whole run is at most RATE times the number of its random checks.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from relaxdp.paper.claims import ClaimCheck

RATE = 1e-6

Floats = NDArray[np.float64]


def exact(name: str, passed: object, detail: str) -> ClaimCheck:
    """Return a check of numbers that no chance entered."""
    return ClaimCheck(name, bool(passed), detail)


def means(name: str, samples: Floats, expected: Any, variance: Any) -> ClaimCheck:
    """Check the means of independent runs (the last axis) against what they should be, with a known variance."""
    deviations = np.abs(samples.mean(axis=-1) - expected) / np.sqrt(np.asarray(variance) / samples.shape[-1])
    worst = float(deviations.max())
    p_value = 2 * deviations.size * stats.norm.sf(worst)
    return _random(name, p_value, f"largest deviation of {deviations.size} means: {worst:.2f} standard errors")


def variances(name: str, samples: Floats, expected: Any, variance: Any) -> ClaimCheck:
    """Check the variances of nearly normal runs (the last axis), around a known mean."""
    runs = samples.shape[-1]
    ratios = ((samples - np.asarray(expected)[..., None]) ** 2).mean(axis=-1) / np.asarray(variance)
    tails = np.minimum(stats.chi2.sf(runs * ratios, runs), stats.chi2.cdf(runs * ratios, runs))
    spread = f"measured / theory of {ratios.size} variances: {ratios.min():.3f} to {ratios.max():.3f}"
    return _random(name, 2 * ratios.size * float(tails.min()), spread)


def rates(name: str, hits: Any, trials: int, expected: Any) -> ClaimCheck:
    """Check counts of independent events against their probabilities, two-sided."""
    seen, chance = np.asarray(hits), np.asarray(expected, dtype=np.float64)
    tails = np.minimum(stats.binom.cdf(seen, trials, chance), stats.binom.sf(seen - 1, trials, chance))
    worst = np.abs(seen / trials - chance).max()
    return _random(name, 2 * seen.size * float(tails.min()), f"largest difference of {seen.size} rates: {worst:.2g}")


def at_least(name: str, hits: Any, trials: int, least: float) -> ClaimCheck:
    """Check, one-sided, that no rate lies below a theoretical minimum: being above it is no mistake.

    A tie between k guesses counts as a part of an error. Such sums vary less than whole errors do, so that the tail of
    the binomial, with the count rounded up, is on the safe side.
    """
    seen = np.ceil(np.asarray(hits, dtype=np.float64))
    tails = stats.binom.cdf(seen, trials, least)
    detail = f"smallest of {seen.size} rates: {seen.min() / trials:.4f}, theoretical minimum {least:.4f}"
    return _random(name, seen.size * float(np.min(tails)), detail)


def histogram(name: str, seen: Sequence[int] | NDArray[np.int64], law: Sequence[float] | Floats) -> ClaimCheck:
    """Check counts of outcomes against a whole law (Pearson's statistic)."""
    counts, expected = np.asarray(seen), np.asarray(law, dtype=np.float64) * np.sum(seen)
    statistic = float(((counts - expected) ** 2 / expected).sum())
    freedom = len(counts) - 1
    detail = f"chi-square {statistic:.1f} with {freedom} degrees of freedom, least expected count {expected.min():,.0f}"
    return _random(name, float(stats.chi2.sf(statistic, freedom)), detail)


def larger_variance(name: str, larger: Floats, smaller: Floats, mean: float, expected_ratio: float) -> ClaimCheck:
    """Confirm that one of two sets of nearly normal runs has the larger variance: being unsure is failing.

    The false-alarm rate is that of missing a ratio as large as theory says.
    """
    runs, others = larger.size, smaller.size
    ratio = float(((larger - mean) ** 2).mean() / ((smaller - mean) ** 2).mean())
    limit = float(stats.f.isf(RATE, runs, others))
    miss = float(stats.f.cdf(limit / expected_ratio, runs, others))
    detail = f"ratio of variances {ratio:.3f}, more than {limit:.3f} is beyond chance (theory: {expected_ratio:.3f})"
    return ClaimCheck(name, ratio > limit, detail, miss)


def standard_errors(difference: float, variance: float, runs: int) -> float:
    """Return how many standard errors of a mean of `runs` a difference is."""
    return abs(difference) / sqrt(variance / runs)


def _random(name: str, p_value: float, detail: str) -> ClaimCheck:
    capped = min(1.0, float(p_value))
    return ClaimCheck(name, capped >= RATE, f"{detail}; p = {capped:.2g}", RATE)
