"""Answers from places: intervals of the mean, of quantiles and of shares hold as often as they say."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import relaxdp as rx
from relaxdp.estimation.counts import Counts

NUMBERS: dict[str, Callable[[Any, int], Any]] = {
    "at an end": lambda rng, objects: np.zeros(objects),
    "one number": lambda rng, objects: np.full(objects, 0.04),
    "at both ends": lambda rng, objects: (rng.random(objects) < 0.3) * 1.0,
    "uniform": lambda rng, objects: rng.random(objects),
    "skewed": lambda rng, objects: rng.beta(2, 5, objects),
    "mixed": lambda rng, objects: np.where(rng.random(objects) < 0.5, 0.3, rng.beta(8, 2, objects)),
}
MEANS = [(50, 8, "at both ends"), (50, 2, "at an end"), (1_000, 2, "at both ends"), (1_000, 4, "skewed")]
SOME = [(300, 2, "one number"), (2_000, 4, "mixed")]
ALL = [(objects, epsilon, kind) for objects in (300, 20_000) for epsilon in (0.5, 2, 4) for kind in NUMBERS]
QUANTILES = (0.1, 0.5, 0.75)
PARTS = ((0.02, 0.1), (0.2, 0.35), (0.5, 1.0))


def estimate(rng: Any, numbers: Any, epsilon: float) -> Any:
    """What reports of these numbers say, each drawn as the encoding's law is."""
    wave = rx.Wave(0, 1, epsilon=epsilon)
    encoding, objects = wave.encoding, len(numbers)
    places = numbers * (encoding.bins - 1)
    places = np.floor(places) + (rng.random(objects) < places % 1) + rng.integers(0, encoding.window, objects)
    is_noise = rng.random(objects) >= float(encoding.level(epsilon).retention)
    reports = np.where(is_noise, rng.integers(0, encoding.alphabet, objects), places).astype(int)
    counts = Counts(wave)
    counts.add_counts(np.bincount(reports, minlength=encoding.alphabet), epsilon=epsilon)
    return counts.estimate()


def means_held(point: tuple[int, float, str], runs: int) -> tuple[float, float]:
    """How often the interval about these objects, and that about the population, held the mean."""
    objects, epsilon, kind = point
    rng = np.random.default_rng(17)
    truth, held = NUMBERS[kind](rng, 1_000_000).mean(), np.zeros(2)
    for _ in range(runs):
        numbers = NUMBERS[kind](rng, objects)
        found = estimate(rng, numbers, epsilon)
        for place, (about, mean) in enumerate((("objects", numbers.mean()), ("population", truth))):
            low, high = found.interval(about=about)
            held[place] += low - 1e-9 <= mean <= high + 1e-9
    return held[0] / runs, held[1] / runs


@pytest.mark.parametrize("point", MEANS, ids=str)
def test_intervals_of_means_hold(point: tuple[int, float, str]) -> None:
    assert min(means_held(point, 400)) >= 0.95 - 3 * np.sqrt(0.95 * 0.05 / 400)


@pytest.mark.long
@pytest.mark.parametrize("point", ALL, ids=str)
def test_intervals_of_means_hold_on_a_grid(point: tuple[int, float, str]) -> None:
    assert min(means_held(point, 2_000)) >= 0.945 - 4 * np.sqrt(0.95 * 0.05 / 2_000)


def test_about_these_objects_their_own_spread_does_not_count() -> None:
    """At epsilon 4 the noise of a place is small against numbers that lie at both ends."""
    rng = np.random.default_rng(19)
    numbers = NUMBERS["at both ends"](rng, 5_000)
    found = [estimate(rng, numbers, 4) for _ in range(200)]
    errors = np.array([float(each.value) for each in found]) - numbers.mean()
    assert errors.std() == pytest.approx(float(found[0].std_error), rel=0.2)  # four standard errors of a deviation
    assert float(found[0].standard_error("population")) > 1.5 * float(found[0].std_error)


def answers_held(point: tuple[int, float, str], runs: int) -> Any:
    """How often the intervals of quantiles and of shares held, about these objects."""
    objects, epsilon, kind = point
    rng = np.random.default_rng(23)
    held = np.zeros(len(QUANTILES) + len(PARTS))
    for _ in range(runs):
        numbers = NUMBERS[kind](rng, objects)
        found = estimate(rng, numbers, epsilon)
        low, high = found.quantile(QUANTILES).interval()
        truth = np.quantile(numbers, QUANTILES, method="inverted_cdf")
        held[: len(QUANTILES)] += (low - 1e-9 <= truth) & (truth <= high + 1e-9)
        for place, (start, stop) in enumerate(PARTS, len(QUANTILES)):
            (low,), (high,) = found.share(start, stop).interval()
            share = np.mean((numbers >= start) & (numbers <= stop))
            held[place] += low - 1e-9 <= share <= high + 1e-9
    return held / runs


@pytest.mark.parametrize("point", SOME, ids=str)
def test_intervals_of_quantiles_and_shares_hold(point: tuple[int, float, str]) -> None:
    assert min(answers_held(point, 20)) >= 0.95 - 3 * np.sqrt(0.95 * 0.05 / 20)


@pytest.mark.long
@pytest.mark.parametrize("point", ALL, ids=str)
def test_intervals_of_quantiles_and_shares_hold_on_a_grid(point: tuple[int, float, str]) -> None:
    assert min(answers_held(point, 200)) >= 0.945 - 4 * np.sqrt(0.95 * 0.05 / 200)
