"""The small grid of interval coverage, and that the judge would notice intervals that are too short."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from tests.statistical.estimation.interval_coverage import (
    SMALL,
    WIDEST,
    Grid,
    all_points,
    draw_counts,
    page,
    single_values,
    support_of,
)

from relaxdp import Counts, Numeric, compare
from relaxdp.estimation import frequency
from relaxdp.estimation.frequency import Frequency

pytestmark = pytest.mark.long


@pytest.mark.parametrize(
    ("grid", "least"), [(replace(SMALL, objects=(50,)), 100), pytest.param(SMALL, 200, marks=pytest.mark.long)]
)
def test_small_grid(grid: Grid, least: int) -> None:
    points = list(all_points(grid))
    assert len(points) > least
    assert [f"{point.coverage:.4f} {point.kind}: {point.where}" for point in points if not point.holds] == []
    assert max(point.width for point in points if point.width is not None) <= WIDEST
    assert "| one value, about the sample |" in page(points, grid)


def test_values_that_are_shown_because_they_are_the_largest() -> None:
    """300 answers that are equally frequent, 30,000 devices at epsilon 2, and the 20 largest of them."""
    values, objects, runs = 300, 30_000, 60
    rng, support = np.random.default_rng(20261116), support_of(values, "2")
    alone, chosen = [], []
    for counts in draw_counts(rng, np.full(values, objects // values), support, "sample", runs):
        found = Frequency(range(values), counts, objects, support)
        shown = found.largest(20)
        (low, high), ends = shown.interval(), found.interval()
        chosen.append((low <= 1 / values) & (1 / values <= high))
        low, high = (end[list(shown.labels)] for end in ends)
        alone.append((low <= 1 / values) & (1 / values <= high))
    assert np.mean(alone) < 0.75  # intervals that know nothing of the choice: one in three misses, and says 95 %
    assert np.mean(chosen) >= 0.99
    assert np.mean(np.all(chosen, axis=1)) >= 0.95 - 4 * np.sqrt(0.95 * 0.05 / runs)


def test_the_change_of_a_mean_where_numbers_are_missing() -> None:
    """Some individuals have a number at one date alone; all truths are what they are, the noise is drawn."""
    runs, objects = 400, 500
    rng = np.random.default_rng(20261118)
    ages = Numeric(0, 100, missing=True)
    keep = float(ages.level("2").retention)
    places = np.stack([rng.uniform(0.2, 0.7, objects), np.zeros(objects)])
    places[1] = np.clip(places[0] + rng.normal(0.05, 0.1, objects), 0, 1)
    gone = rng.random((2, objects)) < [[0.1], [0.2]]
    truths = [100 * place[~lost].mean() for place, lost in zip(places, gone, strict=True)]
    held = []
    for _ in range(runs):
        kept = np.where(gone, 0, 1 + (rng.random((2, objects)) < places))
        told = np.where(rng.random((2, objects)) < keep, kept, rng.integers(0, 3, (2, objects)))
        counts, found = [Counts(ages), Counts(ages)], [np.bincount(each, minlength=3) for each in told]
        for side, each in zip(counts, found, strict=True):
            side.add_counts(each, epsilon="2")
        low, high = compare(counts[0].estimate(), counts[1].estimate()).interval()
        held.append(low <= truths[1] - truths[0] <= high)
    assert np.mean(held) >= 0.945 - 4 * np.sqrt(0.95 * 0.05 / runs)


def test_intervals_that_are_a_tenth_too_short_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    right = frequency.compute_true_count_interval

    def short(count: object, objects: int, hit: float, noise: float, tail: float) -> object:
        return right(count, objects, hit, noise, 2 * tail)

    monkeypatch.setattr(frequency, "compute_true_count_interval", short)
    assert not all(point.holds for point in single_values(SMALL))
