"""Answers from places: intervals of the mean, of quantiles and of shares hold as often as they say."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.statistical.estimation.wave_coverage import (
    NUMBERS,
    QuantilesWhere,
    Where,
    answers_held,
    estimate,
    means_held,
    points_of,
    quantiles_held,
)

import relaxdp as rx
from relaxdp.estimation.compare import Change
from relaxdp.estimation.counts import Counts

MEANS: list[Where] = [
    (50, (8,), "at both ends"),
    (50, (2,), "at an end"),
    (1_000, (2,), "at both ends"),
    (1_000, (1, 4), "skewed"),
]
SOME: list[Where] = [(300, (2,), "one number"), (2_000, (1, 4), "mixed")]
MORE: list[Where] = [
    (300, (0.5,), "at both ends"),
    (300, (4,), "uniform"),
    (300, (0.5, 4), "one number"),
    (20_000, (0.5,), "skewed"),
    (20_000, (2,), "mixed"),
    (20_000, (4,), "at an end"),
]
"""`make coverage` has the whole grid."""


@pytest.mark.long
@pytest.mark.parametrize("where", MEANS, ids=str)
def test_intervals_of_means_hold(where: Where) -> None:
    assert min(means_held(where, 400)) >= 0.95 - 3 * np.sqrt(0.95 * 0.05 / 400)


@pytest.mark.long
@pytest.mark.parametrize("where", SOME, ids=str)
def test_intervals_of_shares_and_variances_hold(where: Where) -> None:
    assert answers_held(where, 20).min() >= 0.95 - 3 * np.sqrt(0.95 * 0.05 / 20)


@pytest.mark.long
@pytest.mark.parametrize(
    ("where", "widest"),
    [
        ((1_000, (0.5, 32), "uniform"), 45),
        ((1_000, (4, 16), "uniform"), 14),
        ((1_000, (2, 16), "bimodal"), 20),
        ((20_000, (0.5, 64), "heaped"), 20),
        ((20_000, (4, 4), "one number"), 1.3),
        ((100_000, (1, 32), "normal"), 4),
    ],
    ids=str,
)
def test_intervals_of_quantiles_hold(where: QuantilesWhere, widest: float) -> None:
    """With windows for both goals. The width of the median's is in bins, and about a tenth below the limit."""
    held, widths = quantiles_held(where, 200)
    assert held.min() >= 0.945 - 3 * np.sqrt(0.95 * 0.05 / 200)
    assert widths[2] < widest


@pytest.mark.long
@pytest.mark.parametrize("where", MORE, ids=str)
def test_intervals_hold_at_more_points(where: Where) -> None:
    points = points_of(where, 500)
    assert [f"{point.coverage:.3f} {point.kind}: {point.where}" for point in points if not point.holds] == []


def test_about_these_objects_their_own_spread_does_not_count() -> None:
    """At epsilon 4 the noise of a place is small against numbers that lie at both ends."""
    rng = np.random.default_rng(19)
    numbers = NUMBERS["at both ends"](rng, 5_000)
    found = [estimate(rng, numbers, (4,)) for _ in range(200)]
    errors = np.array([float(each.value) for each in found]) - numbers.mean()
    assert errors.std() == pytest.approx(float(found[0].std_error), rel=0.2)  # four standard errors of a deviation
    assert float(found[0].compute_std_error("population")) > 1.5 * float(found[0].std_error)


def changes_of_the_same_individuals(runs: int) -> tuple[Any, list[Change]]:
    """Numbers at two dates that hardly changed, and many times what their reports say of the change."""
    rng, wave = np.random.default_rng(29), rx.SquareWave(0, 1, epsilon=4)
    encoding, level = wave, wave.level(4)
    then = rng.random(2_000)
    numbers = np.stack([then, np.clip(then + rng.normal(0.02, 0.02, len(then)), 0, 1)])
    found = []
    for _ in range(runs):
        places = numbers * (encoding.bins - 1)
        places = np.floor(places) + (rng.random(places.shape) < places % 1)
        places += rng.integers(0, encoding.window, places.shape)
        is_noise = rng.random(places.shape) >= float(level.retention)
        told = np.where(is_noise, rng.integers(0, encoding.alphabet, places.shape), places).astype(int)
        counts, seen = [Counts(wave), Counts(wave)], [np.bincount(each, minlength=encoding.alphabet) for each in told]
        for side, each in zip(counts, seen, strict=True):
            side.add_counts(each, epsilon=4)
        found.append(rx.compare(counts[0].estimate(), counts[1].estimate()))
    return numbers, found


def test_changes_of_the_same_individuals_hold() -> None:
    """The noise of two dates is independent, however much their numbers have in common."""
    numbers, found = changes_of_the_same_individuals(200)
    truth, held = numbers[1].mean() - numbers[0].mean(), []
    for change in found:
        low, high = change.interval()
        held.append(low <= truth <= high)
    assert np.mean(held) >= 0.95 - 4 * np.sqrt(0.95 * 0.05 / 200)  # 73 % where the numbers' own spread is taken off
    medians = np.median(numbers, axis=1)
    for change in found[:10]:
        low, high = change.quantile(0.5).interval()
        assert low - 1e-9 <= medians[1] - medians[0] <= high + 1e-9
        wide = change.quantile(0.5).interval(about="population")
        assert wide[0] <= low
        assert wide[1] >= high
        low, high = change.share(0.25, 0.5).interval()
        shares = np.mean((numbers >= 0.25) & (numbers <= 0.5), axis=1)
        assert low <= shares[1] - shares[0] <= high
