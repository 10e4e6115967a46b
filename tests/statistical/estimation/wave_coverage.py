"""How often the intervals of waves hold, by seeded simulation: means, quantiles, and shares of a part of the range.

Part of `make coverage`; the test suite runs a few points.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from typing import Any

import numpy as np
from tests.statistical.estimation.coverage_point import Point, simulated

import relaxdp as rx
from relaxdp.estimation.counts import Counts

NUMBERS: dict[str, Callable[[Any, int], Any]] = {
    "at an end": lambda rng, objects: np.zeros(objects),
    "one number": lambda rng, objects: np.full(objects, 0.04),
    "at both ends": lambda rng, objects: (rng.random(objects) < 0.3) * 1.0,
    "uniform": lambda rng, objects: rng.random(objects),
    "skewed": lambda rng, objects: rng.beta(2, 5, objects),
    "mixed": lambda rng, objects: np.where(rng.random(objects) < 0.5, 0.3, rng.beta(8, 2, objects)),
    "normal": lambda rng, objects: np.clip(rng.normal(0.5, 0.12, objects), 0, 1),
    "bimodal": lambda rng, objects: np.where(
        rng.random(objects) < 0.4, rng.beta(12, 36, objects), rng.beta(21, 9, objects)
    ),
    "heaped": lambda rng, objects: np.round(12 * rng.beta(3, 4, objects)) / 12,
}
QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
ABOUTS = ("sample", "population")
PARTS = ((0.02, 0.1), (0.2, 0.35), (0.5, 1.0))

Where = tuple[int, tuple[float, ...], str]
"""How many objects, the epsilons of their levels (with as many objects each), and what their numbers are like."""

OBJECTS, EPSILONS = (50, 300, 20_000), ((0.5,), (2.0,), (0.5, 4.0))
QuantilesWhere = tuple[int, tuple[float, int], str]
"""How many objects, the epsilon and the window, and what their numbers are like."""
WINDOWS = ((0.5, 32), (1.0, 32), (2.0, 16), (4.0, 4), (4.0, 16), (2.0, 32), (0.5, 64))
"""The best ones for the distribution and for the mean."""
QUANTILE_RUNS = 100
QUANTILE_GRID: Sequence[QuantilesWhere] = tuple(
    (objects, WINDOWS[(place + 2 * row) % len(WINDOWS)], kind)
    for place, kind in enumerate(NUMBERS)
    for row, objects in enumerate((50, 1_000, 10_000, 100_000))
)
FULL: Sequence[Where] = tuple(itertools.product(OBJECTS, EPSILONS, list(NUMBERS)[:6]))


def estimate(rng: Any, numbers: Any, epsilons: Sequence[float], window: int | None = None) -> Any:
    """What reports of these numbers say, each drawn as the encoding's law is, with the window for the last epsilon."""
    wave = rx.SquareWave(0, 1, epsilon=epsilons[-1]) if window is None else rx.SquareWave(0, 1, window=window)
    encoding, counts = wave, Counts(wave)
    for epsilon, own in zip(epsilons, np.array_split(numbers, len(epsilons)), strict=True):
        places, objects = own * (encoding.bins - 1), len(own)
        places = np.floor(places) + (rng.random(objects) < places % 1) + rng.integers(0, encoding.window, objects)
        is_noise = rng.random(objects) >= float(encoding.level(epsilon).retention)
        reports = np.where(is_noise, rng.integers(0, encoding.alphabet, objects), places).astype(int)
        counts.add_counts(np.bincount(reports, minlength=encoding.alphabet), epsilon=epsilon)
    return counts.estimate()


def means_held(where: Where, runs: int) -> tuple[float, float]:
    """How often the interval about these objects, and that about the population, held the mean."""
    objects, epsilons, kind = where
    rng = np.random.default_rng(17)
    truth, held = NUMBERS[kind](rng, 1_000_000).mean(), np.zeros(2)
    for _ in range(runs):
        numbers = NUMBERS[kind](rng, objects)
        found = estimate(rng, numbers, epsilons)
        for place, (about, mean) in enumerate((("sample", numbers.mean()), ("population", truth))):
            low, high = found.interval(about=about)
            held[place] += low - 1e-9 <= mean <= high + 1e-9
    return held[0] / runs, held[1] / runs


def answers(numbers: Any) -> Any:
    """The true shares and the variance of some numbers."""
    shares = [np.mean((numbers >= low) & (numbers <= high)) for low, high in PARTS]
    return np.array([*shares, np.var(numbers)])


def answers_held(where: Where, runs: int) -> Any:
    """How often the intervals of shares and of the variance held: about these objects, and about the population."""
    objects, epsilons, kind = where
    rng = np.random.default_rng(23)
    truth, held = answers(NUMBERS[kind](rng, 1_000_000)), np.zeros((2, len(PARTS) + 1))
    for _ in range(runs):
        numbers = NUMBERS[kind](rng, objects)
        found = estimate(rng, numbers, epsilons)
        asked = [*(found.share(low, high) for low, high in PARTS), found.variance]
        low, high = np.concatenate([each.interval() for each in asked], axis=1)
        held += [(low - 1e-9 <= each) & (each <= high + 1e-9) for each in (answers(numbers), truth)]
    return held / runs


def quantiles_held(where: QuantilesWhere, runs: int) -> tuple[Any, Any]:
    """How often the intervals of quantiles held, about these objects and the population, and median widths in bins."""
    objects, (epsilon, window), kind = where
    rng = np.random.default_rng(37)
    truth = np.quantile(NUMBERS[kind](rng, 1_000_000), QUANTILES, method="inverted_cdf")
    held, widths = np.zeros((2, len(QUANTILES))), []
    for _ in range(runs):
        numbers = NUMBERS[kind](rng, objects)
        low, high = estimate(rng, numbers, (epsilon,), window).quantile(QUANTILES).interval()
        own = np.quantile(numbers, QUANTILES, method="inverted_cdf")
        held += [(low - 1e-9 <= each) & (each <= high + 1e-9) for each in (own, truth)]
        widths.append(63 * (high - low))
    return held / runs, np.median(widths, axis=0)


def quantile_points(where: QuantilesWhere, runs: int) -> list[Point]:
    """The quantiles at one point of their grid."""
    objects, (epsilon, window), kind = where
    shown = f"n = {objects:,}, eps {epsilon:g}, window {window}, numbers {kind}"
    return [
        simulated(f"quantile of a wave, about the {about}", f"{shown}, quantile {each:g}", held, runs)
        for about, row in zip(ABOUTS, quantiles_held(where, runs)[0], strict=True)
        for each, held in zip(QUANTILES, row, strict=True)
    ]


def points_of(where: Where, runs: int) -> list[Point]:
    """All questions at one point of the grid; those that take long are asked in a fifth of the runs."""
    objects, epsilons, kind = where
    shown = f"n = {objects:,}, eps {' and '.join(f'{each:g}' for each in epsilons)}, numbers {kind}"
    few = max(runs // 5, 1)
    asked = [("share of a range, from a wave", f"{low:g} to {high:g}") for low, high in PARTS]
    asked += [("variance of a wave", "variance")]
    found = []
    for about, mean, rest in zip(ABOUTS, means_held(where, runs), answers_held(where, few), strict=True):
        found.append(simulated(f"mean of a wave, about the {about}", shown, mean, runs))
        for (what, which), held in zip(asked, rest, strict=True):
            found.append(simulated(f"{what}, about the {about}", f"{shown}, {which}", held, few))
    return found


def waves(grid: Sequence[Where], runs: int) -> Iterator[Point]:
    """All points of the grid, by as many processes as there are cores."""
    with ProcessPoolExecutor() as pool:
        for found in pool.map(points_of, grid, itertools.repeat(runs)):
            yield from found
        for found in pool.map(quantile_points, QUANTILE_GRID, itertools.repeat(QUANTILE_RUNS)):
            yield from found
