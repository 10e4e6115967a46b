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

from relaxdp.estimation import frequency, tails
from relaxdp.estimation.frequency import Frequency


@pytest.mark.parametrize(
    ("grid", "least"), [(replace(SMALL, objects=(50,)), 100), pytest.param(SMALL, 200, marks=pytest.mark.long)]
)
def test_small_grid(grid: Grid, least: int) -> None:
    points = list(all_points(grid))
    assert len(points) > least
    assert [f"{point.coverage:.4f} {point.kind}: {point.where}" for point in points if not point.holds] == []
    assert max(point.width for point in points if point.width is not None) <= WIDEST
    assert "| one value, about the objects |" in page(points, grid)


def test_values_that_are_shown_because_they_are_the_largest() -> None:
    """300 answers that are equally frequent, 30,000 devices at epsilon 2, and the 20 largest of them."""
    values, objects, runs = 300, 30_000, 60
    rng, support = np.random.default_rng(20261116), support_of(values, "2")
    alone, chosen = [], []
    for counts in draw_counts(rng, np.full(values, objects // values), support, "objects", runs):
        found = Frequency(range(values), counts, objects, support)
        shown = found.largest(20)
        (low, high), ends = shown.interval(), found.interval()
        chosen.append((low <= 1 / values) & (1 / values <= high))
        low, high = (end[list(shown.labels)] for end in ends)
        alone.append((low <= 1 / values) & (1 / values <= high))
    assert np.mean(alone) < 0.75  # intervals that know nothing of the choice: one in three misses, and says 95 %
    assert np.mean(chosen) >= 0.99
    assert np.mean(np.all(chosen, axis=1)) >= 0.95 - 4 * np.sqrt(0.95 * 0.05 / runs)


def test_intervals_that_are_a_tenth_too_short_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    right = tails.truths_interval

    def short(count: object, objects: int, hit: float, noise: float, tail: float) -> object:
        return right(count, objects, hit, noise, 2 * tail)

    monkeypatch.setattr(frequency, "truths_interval", short)
    assert not all(point.holds for point in single_values(SMALL))
