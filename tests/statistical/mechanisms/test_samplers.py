"""Wiring of the fast samplers: seeded runs against the exact joint law, at a false-alarm rate of 1e-6 per check.

The laws themselves are decided in tests/exact. Every check here must also reject a law whose epsilon is 5 % off.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import chi2
from tests.exact.enumeration import compute_transcript_distribution

from relaxdp import Categorical, Key
from relaxdp.hazmat import SeededEntropy, bridge_once, relax_once
from relaxdp.theory.epsilon import as_epsilon, compute_threshold
from relaxdp.theory.randomized_response import NOISE, compute_retention

OBJECTS = 1_000_000
LEVELS = ("0.8", "2")
WRONG = ("0.8", "2.1")


def statistic(values: int, truth: int, reports: Sequence[NDArray[np.unsignedinteger]], levels: Sequence[str]) -> float:
    """Pearson's statistic of two levels of reports against the exact law of their transcripts."""
    law = compute_transcript_distribution(
        values, [compute_retention(compute_threshold(level, values)) for level in levels], truth
    )
    seen = np.bincount(reports[0].astype(int) * values + reports[1], minlength=values**2)
    expected = np.array([float(law[a, b]) for a in range(values) for b in range(values)]) * len(reports[0])
    assert expected.min() >= 1000
    return float(((seen - expected) ** 2 / expected).sum())


def judge(values: int, truth: int, reports: Sequence[NDArray[np.unsignedinteger]]) -> None:
    limit = chi2.isf(1e-6, values**2 - 1)
    assert statistic(values, truth, reports, LEVELS) < limit
    assert statistic(values, truth, reports, WRONG) > limit


@pytest.mark.parametrize("values", [2, 3, 5])
def test_keyed_path(values: int) -> None:
    answers, key = Categorical(range(values)), Key.from_bytes(bytes(range(32)))
    truth = np.full(OBJECTS, 1, np.uint8)
    reports = [
        answers.release(truth, np.arange(OBJECTS), key=key, epsilon=level, name="r", column="a") for level in LEVELS
    ]
    judge(values, 1, reports)


@pytest.mark.parametrize("values", [2, 3, 5])
def test_algorithm_1_blur_and_bridge(values: int) -> None:
    entropy, truth = SeededEntropy(values), np.full(OBJECTS, 1, np.uint8)
    low, high = (compute_retention(compute_threshold(level, values)) for level in LEVELS)
    first = relax_once(values, NOISE, low, truths=truth, last_reports=None, entropy=entropy)
    second = relax_once(values, low, high, truths=truth, last_reports=first, entropy=entropy)
    judge(values, 1, (first, second))
    blurred = bridge_once(values, NOISE, low, high, lower_reports=None, upper_reports=second, entropy=entropy)
    judge(values, 1, (blurred, second))
    lowest = compute_retention(compute_threshold("0.3", values))
    below = bridge_once(values, NOISE, lowest, low, lower_reports=None, upper_reports=first, entropy=entropy)
    between = bridge_once(values, lowest, low, high, lower_reports=below, upper_reports=second, entropy=entropy)
    judge(values, 1, (between, second))


def test_more_values_than_a_byte_holds() -> None:
    values, objects = 300, 3_000_000
    truth = np.full(objects, 299, np.uint16)
    keep = compute_retention(compute_threshold(as_epsilon(3), values))
    reports = relax_once(values, NOISE, keep, truths=truth, last_reports=None, entropy=SeededEntropy(9))
    counts = np.bincount(reports, minlength=values)
    for level, right in [("3", True), ("3.15", False)]:
        kept = float(compute_retention(compute_threshold(level, values)))
        expected = np.full(values, objects * (1 - kept) / values)
        expected[299] += objects * kept
        assert expected.min() >= 1000
        fits = ((counts - expected) ** 2 / expected).sum() < chi2.isf(1e-6, values - 1)
        assert fits == right
