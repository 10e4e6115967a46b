"""Means of numbers of which some are missing: intervals hold as often as they say, as wide as planned."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import relaxdp as rx
from relaxdp.estimation.counts import Counts
from relaxdp.estimation.mean import NonMissingMean

SOME = [(50, 2, 0.3, 0.1), (200, 4, 0.0, 0.1), (1_000, 4, 0.3, 0.02), (10_000, 1, 0.8, 0.5), (200_000, 0.5, 0.0, 0.5)]
ALL = list(itertools.product((50, 1_000, 100_000), (0.5, 1, 4), (0.0, 0.3, 0.8), (0.0, 0.02, 0.5, 0.9)))
NUMBERS = rx.Numeric(10, 20, missing=True)


def reports(rng: Any, runs: int, objects: int, epsilon: float, missing: float, place: float) -> Any:
    """Counts of reports where all numbers that are there are one number: then the rounding has the largest spread."""
    gone = round(objects * missing)
    keep = float(NUMBERS.level(epsilon).retention)
    noise = np.full(3, (1 - keep) / 3)
    there = noise + keep * np.array([0, 1 - place, place])
    return rng.multinomial(gone, noise + np.array([keep, 0, 0]), runs) + rng.multinomial(objects - gone, there, runs)


def estimate(counts: Any, epsilon: float) -> NonMissingMean:
    collected = Counts(NUMBERS)
    collected.add_counts(counts, epsilon=epsilon)
    result = collected.estimate()
    assert isinstance(result, NonMissingMean)
    return result


def covered(point: tuple[int, float, float, float], runs: int) -> float:
    _, epsilon, _, place = point
    found = reports(np.random.default_rng(7), runs, *point)
    rows, times = np.unique(found, axis=0, return_counts=True)
    held = 0
    for row, number in zip(rows, times, strict=True):
        low, high = estimate(row, epsilon).interval()
        held += int(number) * bool(low - 1e-6 <= 10 + 10 * place <= high + 1e-6)
    return held / runs


@pytest.mark.long
@pytest.mark.parametrize("point", SOME, ids=str)
def test_intervals_hold(point: tuple[int, float, float, float]) -> None:
    assert covered(point, 2_000) >= 0.95 - 3 * np.sqrt(0.95 * 0.05 / 2_000)


@pytest.mark.long
@pytest.mark.parametrize("point", ALL, ids=str)
def test_intervals_hold_on_a_grid(point: tuple[int, float, float, float]) -> None:
    assert covered(point, 2_000) >= 0.95 - 4 * np.sqrt(0.95 * 0.05 / 2_000)


def test_levels_together_and_the_share_that_is_missing() -> None:
    rng, held, gone = np.random.default_rng(3), 0, 0
    for _ in range(300):
        collected = Counts(NUMBERS)
        for objects, epsilon in ((3_000, 0.5), (2_000, 2.0)):
            collected.add_counts(reports(rng, 1, objects, epsilon, 0.25, 0.4)[0], epsilon=epsilon)
        result: Any = collected.estimate()
        low, high = result.interval()
        held += bool(low <= 14 <= high)
        (below,), (above,) = result.missing.interval()
        gone += bool(below <= 0.25 <= above)
    assert min(held, gone) >= 300 * (0.95 - 3 * np.sqrt(0.95 * 0.05 / 300))


@pytest.mark.parametrize(("epsilon", "missing"), [(1, 0.0), (2, 0.5), (3, 0.2)])
def test_plans_are_as_wide_as_the_intervals(epsilon: float, missing: float) -> None:
    """In the middle, where the error is largest unless there is little but noise."""
    planned = rx.plan(values=NUMBERS, n=20_000, epsilon=epsilon, share=missing).margin
    rows = reports(np.random.default_rng(5), 50, 20_000, epsilon, missing, 0.5)
    widths = [np.subtract(*estimate(row, epsilon).interval()[::-1]) / 2 for row in rows]
    assert planned == pytest.approx(np.mean(widths), rel=0.05)


def test_nothing_is_there() -> None:
    result = estimate([1_000, 0, 0], 4)
    low, high = result.interval()
    assert (float(low), float(high)) == (10, 20)
    assert "mean" in repr(result)
