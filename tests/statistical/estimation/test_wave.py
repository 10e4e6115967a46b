"""Answers from places: intervals of the mean, of quantiles and of shares hold as often as they say."""

from __future__ import annotations

import numpy as np
import pytest
from tests.statistical.estimation.wave_coverage import NUMBERS, Where, answers_held, estimate, means_held, points_of

MEANS: list[Where] = [
    (50, (8,), "at both ends"),
    (50, (2,), "at an end"),
    (1_000, (2,), "at both ends"),
    (1_000, (1, 4), "skewed"),
]
SOME: list[Where] = [(300, (2,), "one number"), (2_000, (1, 4), "mixed")]
ALL: list[Where] = [
    (objects, epsilons, kind) for objects in (300, 20_000) for epsilons in ((0.5,), (2,), (4,)) for kind in NUMBERS
]


@pytest.mark.parametrize("where", MEANS, ids=str)
def test_intervals_of_means_hold(where: Where) -> None:
    assert min(means_held(where, 400)) >= 0.95 - 3 * np.sqrt(0.95 * 0.05 / 400)


@pytest.mark.parametrize("where", SOME, ids=str)
def test_intervals_of_quantiles_and_shares_hold(where: Where) -> None:
    assert answers_held(where, 20).min() >= 0.95 - 3 * np.sqrt(0.95 * 0.05 / 20)


@pytest.mark.long
@pytest.mark.parametrize("where", ALL, ids=str)
def test_intervals_hold_on_a_grid(where: Where) -> None:
    points = points_of(where, 800)
    assert [f"{point.coverage:.3f} {point.kind}: {point.where}" for point in points if not point.holds] == []


def test_about_these_objects_their_own_spread_does_not_count() -> None:
    """At epsilon 4 the noise of a place is small against numbers that lie at both ends."""
    rng = np.random.default_rng(19)
    numbers = NUMBERS["at both ends"](rng, 5_000)
    found = [estimate(rng, numbers, (4,)) for _ in range(200)]
    errors = np.array([float(each.value) for each in found]) - numbers.mean()
    assert errors.std() == pytest.approx(float(found[0].std_error), rel=0.2)  # four standard errors of a deviation
    assert float(found[0].standard_error("population")) > 1.5 * float(found[0].std_error)
