"""Consistent shares at the points that decide between methods. Seeded; all methods see the same estimates."""

from __future__ import annotations

import numpy as np
import pytest
from tests.statistical.estimation.consistent_shares import PAGE, RUNS, Place, measure, truths

NAMES = ("nearest", "clip and normalise", "expected")


@pytest.mark.parametrize("truth", truths(100))
def test_where_noise_dominates_they_are_as_good_as_clipped_ones(truth: str) -> None:
    nearest, clipped, expected = measure(Place("categorical", 100, "1", 1000, truth), 60, NAMES)[:, 0]
    assert expected < 1.1 * clipped
    if truth in ("equal", "Zipf"):
        assert nearest > 2.5 * clipped  # so that the comparison could fail


@pytest.mark.long
@pytest.mark.parametrize("place", [(2, "1", 10_000), (5, "2", 10_000), (20, "4", 10_000), (100, "4", 100_000)], ids=str)
@pytest.mark.parametrize("encoding", ["categorical", "unary-optimised"])
def test_where_noise_is_small_they_are_as_good_as_the_nearest(encoding: str, place: tuple[int, str, int]) -> None:
    for truth in truths(place[0]):
        nearest, expected = measure(Place(encoding, *place, truth), 20, ("nearest", "expected"))[:, 0]
        assert expected < 1.05 * nearest


def test_between_the_two_few_heavy_values_are_kept() -> None:
    """Clipping and normalising takes from the heavy values, here ten times the squared error of the nearest shares."""
    nearest, clipped, expected = measure(Place("unary-optimised", 100, "1", 10_000, "heavy"), 20, NAMES)[:, 0]
    assert clipped > 5 * nearest
    assert expected < 0.6 * nearest


def test_the_page_is_of_this_grid() -> None:
    written = PAGE.read_text("utf-8")
    for truth in truths(2):
        assert f"| m = 1,000, {truth} |" in written
    shown = next(
        line for line in written.splitlines() if line.startswith("| one value, m = 100, eps 1, n = 1,000, Zipf")
    )
    found = np.array([float(cell) for cell in shown.split("|")[2:-1]])
    measured = measure(Place("categorical", 100, "1", 1000, "Zipf"), RUNS)[:, 0]
    assert np.allclose(found, measured, rtol=0.06)
