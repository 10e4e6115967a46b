"""The small grid of interval coverage, and that the judge would notice intervals that are too short."""

from __future__ import annotations

import pytest
from tests.statistical.interval_coverage import SMALL, WIDEST, all_points, page, single_values

from relaxdp.estimate import frequency, tails


def test_small_grid() -> None:
    points = list(all_points(SMALL))
    assert len(points) > 200
    assert [f"{point.coverage:.4f} {point.kind}: {point.where}" for point in points if not point.holds] == []
    assert max(point.width for point in points if point.width is not None) <= WIDEST
    assert "| one value, about the objects |" in page(points, SMALL)


def test_intervals_that_are_a_tenth_too_short_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    right = tails.truths_interval

    def short(count: object, objects: int, hit: float, noise: float, tail: float) -> object:
        return right(count, objects, hit, noise, 2 * tail)

    monkeypatch.setattr(frequency, "truths_interval", short)
    assert not all(point.holds for point in single_values(SMALL))
