"""Tails and intervals of counts, against exact sums of binomials and scipy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.stats import binom, binomtest, poisson_binom

from relaxdp.estimation import frequency
from relaxdp.estimation.frequency import (
    compute_binomial_interval,
    compute_lower_tail,
    compute_true_count_interval,
    compute_upper_tail,
)

CASES = [
    (50, 0, 0.9, 0.1), (50, 5, 0.6, 0.4), (50, 25, 0.98, 0.0002), (200, 3, 0.35, 0.0065), (1000, 10, 0.35, 0.0065),
    (1000, 990, 0.52, 0.48), (300, 300, 0.97, 0.01), (5000, 40, 0.02, 0.01),
]  # fmt: skip


def exact_lower(count: int, truths: int, objects: int, hit: float, noise: float) -> float:
    own = np.arange(truths + 1)
    return float((binom.pmf(own, truths, hit) * binom.cdf(count - own, objects - truths, noise)).sum())


@pytest.mark.parametrize(("objects", "truths", "hit", "noise"), CASES)
def test_tails(objects: int, truths: int, hit: float, noise: float) -> None:
    mean = truths * hit + (objects - truths) * noise
    spread = np.sqrt(truths * hit * (1 - hit) + (objects - truths) * noise * (1 - noise))
    counts = np.unique(np.clip(np.round(mean + spread * np.linspace(-4, 4, 33)), 0, objects))
    k = np.full(len(counts), float(truths))
    exact = np.array([exact_lower(int(count), truths, objects, hit, noise) for count in counts])
    assert np.abs(compute_lower_tail(counts, k, objects, hit, noise) - exact).max() < 0.015
    small = (exact > 1e-4) & (exact < 0.1)
    assert np.all(np.abs(compute_lower_tail(counts, k, objects, hit, noise)[small] / exact[small] - 1) < 0.04)
    above = 1 - np.array([exact_lower(int(count) - 1, truths, objects, hit, noise) for count in counts])
    small = (above > 1e-4) & (above < 0.1)
    assert np.all(np.abs(compute_upper_tail(counts, k, objects, hit, noise)[small] / above[small] - 1) < 0.12)


def test_scipy_agrees_on_the_law() -> None:
    law = poisson_binom([0.9] * 4 + [0.2] * 6)
    for count in range(11):
        assert abs(law.cdf(count) - exact_lower(count, 4, 10, 0.9, 0.2)) < 1e-12


def test_ends() -> None:
    low, high = compute_true_count_interval(np.array([0, 50]), 50, 0.9, 0.1, 0.025)
    assert low[0] == 0
    assert high[1] == 50
    assert np.all(low <= high)


@pytest.mark.parametrize(
    ("objects", "hit", "noise"),
    [
        (1, 0.6, 0.4), (10, 0.98, 0.0002), (50, 0.9, 0.1), (5000, 0.02, 0.01), (100_000, 0.2501, 0.25),
        (1_000_000, 0.35, 0.0065), (1_000_000, 1 - 1e-9, 1e-9), (1_000_000_000, 0.52, 0.48),
    ],
)  # fmt: skip
def test_ends_are_where_bisection_finds_them(objects: int, hit: float, noise: float) -> None:
    around = [mean + np.sqrt(mean) * np.linspace(-8, 8, 17) for mean in (objects * noise, objects * hit)]
    counts = np.unique(np.clip(np.round([*around, np.linspace(0, objects, 17)]), 0, objects))
    for tail in (0.4, 0.025, 1e-5, 1e-9):
        low, high = compute_true_count_interval(counts, objects, hit, noise, tail)
        least, fewest = np.zeros(len(counts)), np.zeros(len(counts))  # truths, and objects that are none
        step = float(objects)
        for _ in range(45):
            step /= 2
            least += step * (compute_upper_tail(counts, least + step, objects, hit, noise) <= tail)
            fewest += step * (compute_lower_tail(counts, objects - fewest - step, objects, hit, noise) <= tail)
        assert np.abs(low - least).max() < 2e-10 * objects
        assert np.abs(high - objects + fewest).max() < 2e-10 * objects


def test_few_steps_find_the_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    right, calls = frequency._compute_tail, []

    def counted(*numbers: Any, at_most: bool) -> Any:
        calls.append(numbers)
        return right(*numbers, at_most=at_most)

    monkeypatch.setattr(frequency, "_compute_tail", counted)
    compute_true_count_interval(np.arange(40_000, 60_000, 500), 100_000, 0.6, 0.4, 0.025)
    assert len(calls) <= 20  # bisection needs 122


def test_almost_no_noise() -> None:
    low, high = compute_true_count_interval(np.array([300, 700]), 1000, 1.0, 2.0**-64, 0.025)
    assert np.allclose(low, [299.5, 699.5])
    assert np.allclose(high, [300.5, 700.5])


@pytest.mark.parametrize("objects", [1, 10, 1000])
def test_binomial_interval_is_clopper_pearson(objects: int) -> None:
    counts = np.unique([0, 1, objects // 3, objects])
    low, high = compute_binomial_interval(counts, objects, 0.025)
    for place, count in enumerate(counts):
        expected = binomtest(int(count), objects).proportion_ci(0.95, "exact")
        assert np.isclose(low[place], expected.low)
        assert np.isclose(high[place], expected.high)
