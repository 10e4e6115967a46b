"""Weighted shares, means and totals: intervals hold as often as they say, and the variance is the measured one."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import relaxdp as rx
from relaxdp.estimation.frequency import compute_support_variance
from relaxdp.estimation.result import About
from relaxdp.estimation.totals import Totals
from relaxdp.estimation.weights import WeightedCounts, WeightedFrequency

MECHANISMS: dict[str, rx.Mechanism] = {
    "k-ary 2": rx.Categorical(["a", "b"]),
    "k-ary 5": rx.Categorical(list("abcde")),
    "OUE": rx.Unary(list("abcde")),
    "numeric": rx.Numeric(0, 1),
}
WEIGHTS = ("equal", "uniform", "heavy", "correlated")
Point = tuple[str, str, float, int, float]
ALL: list[Point] = list(itertools.product(MECHANISMS, WEIGHTS, (0.5, 1, 3), (20, 100, 1_000), (0.02, 0.3)))
SOME: list[Point] = [
    ("k-ary 2", "heavy", 1, 100, 0.3),
    ("k-ary 2", "equal", 3, 1_000, 0.02),
    ("k-ary 5", "correlated", 3, 100, 0.3),
    ("k-ary 5", "uniform", 0.5, 1_000, 0.3),
    ("OUE", "correlated", 3, 1_000, 0.3),
    ("OUE", "heavy", 3, 20, 0.3),
    ("numeric", "correlated", 1, 1_000, 0.3),
    ("numeric", "heavy", 3, 100, 0.02),
]


def draw_weights(kind: str, rng: Any, truths: Any) -> Any:
    if kind == "equal":
        return np.ones(truths.shape)
    if kind == "uniform":
        return rng.uniform(0.5, 2, truths.shape)
    if kind == "heavy":
        return rng.lognormal(0, 1, truths.shape)
    return rng.uniform(0.5, 1.5, truths.shape) * (1 + 3 * truths)


def draw_truths(mechanism: str, rng: Any, share: float, shape: Any) -> Any:
    """Truths are 0 or 1, and numbers have this mean."""
    if mechanism == "numeric":
        return rng.beta(2 * share, 2 * (1 - share), shape)
    return (rng.random(shape) < share).astype(float)


def compute_population(point: Point) -> tuple[float, float]:
    """Return the weighted share and the mean weight in the population."""
    name, kind, _, _, share = point
    mean, square = share, share * (1 - share) / 3 + share**2 if name == "numeric" else share
    if kind != "correlated":
        return mean, {"equal": 1.0, "uniform": 1.25, "heavy": float(np.exp(0.5))}[kind]
    return (mean + 3 * square) / (1 + 3 * mean), 1 + 3 * mean


def get_chances(name: str, epsilon: float) -> Any:
    mechanism = MECHANISMS[name]
    return mechanism.compute_noise_and_gain(mechanism.level(epsilon).retention)


def make_frequency(weights: Any, supports: Any, chances: Any) -> WeightedFrequency:
    """All runs side by side, as if they were values."""
    sums: Any = weights.sum(-1), (weights**2).sum(-1)
    counts, squares = (weights * supports).sum(-1), (weights**2 * supports).sum(-1)
    size = supports.shape[-1]
    return WeightedFrequency(["x"], counts, size, chances, squared_counts=squares, weight_sums=sums)


def measure_coverage(point: Point, about: About, runs: int, *, totals: bool = False) -> float:
    """Return how often the interval holds the truth: of fixed individuals, or of random ones."""
    name, kind, epsilon, n, share = point
    rng, chances = np.random.default_rng(7), get_chances(name, epsilon)
    truths = draw_truths(name, rng, share, (1 if about == "sample" else runs, n))
    weights = draw_weights(kind, rng, truths)
    supports = rng.random((runs, n)) < float(chances.noise) + float(chances.gain) * truths
    found: Any = make_frequency(np.broadcast_to(weights, supports.shape), supports, chances)
    truth, mean_weight = compute_population(point)
    if about == "sample":
        truth, mean_weight = float((weights * truths).sum() / weights.sum()), float(weights.mean())
    if totals:
        found, truth = Totals(found), n * truth * mean_weight
    low, high = found.interval(about="population" if name == "numeric" else about)
    return float(np.mean((low <= truth) & (truth <= high)))


def require_coverage(point: Point, about: About, runs: int, least: float = 0.94, *, totals: bool = False) -> None:
    found = measure_coverage(point, about, runs, totals=totals)
    assert found >= least - 3 * np.sqrt(0.95 * 0.05 / runs), (point, found)
    if point[3] >= 1_000:  # with few individuals, and of rare values, an interval is cut at 0 and holds more often
        assert found <= 0.99 + 0.01 * (point[4] < 0.1), (point, found)


@pytest.mark.parametrize("about", ["sample", "population"])
@pytest.mark.parametrize("point", SOME, ids=str)
def test_intervals_of_shares_hold(point: Point, about: About) -> None:
    require_coverage(point, about, 1_000)


@pytest.mark.parametrize("point", SOME, ids=str)
def test_intervals_of_totals_hold(point: Point) -> None:
    require_coverage(point, "population", 1_000, totals=True)


@pytest.mark.long
@pytest.mark.parametrize("about", ["sample", "population"])
@pytest.mark.parametrize("point", ALL, ids=str)
def test_intervals_of_shares_hold_on_a_grid(point: Point, about: About) -> None:
    require_coverage(point, about, 2_000)


@pytest.mark.long
@pytest.mark.parametrize("point", ALL, ids=str)
def test_intervals_of_totals_hold_on_a_grid(point: Point) -> None:
    require_coverage(point, "population", 2_000, 0.935, totals=True)


def simulate_shares(weights: Any, truths: Any, chances: Any, runs: int) -> tuple[Any, Any]:
    """Return estimates of many runs, and the variance that each states."""
    rng, values, variances = np.random.default_rng(11), [], []
    for _ in range(runs // 1_000):
        supports = rng.random((1_000, len(truths))) < float(chances.noise) + float(chances.gain) * truths
        found = make_frequency(np.broadcast_to(weights, supports.shape), supports, chances)
        values.append(found.value)
        variances.append(found.compute_std_error() ** 2)
    return np.concatenate(values), np.concatenate(variances)


@pytest.mark.parametrize("kind", WEIGHTS)
def test_the_variance_is_that_of_100_000_draws(kind: str) -> None:
    rng, chances = np.random.default_rng(5), get_chances("OUE", 3)
    truths = draw_truths("OUE", rng, 0.3, 200)
    weights = draw_weights(kind, rng, truths)
    values, variances = simulate_shares(weights, truths, chances, 100_000)
    assert np.mean(values) == pytest.approx((weights * truths).sum() / weights.sum(), abs=1.5e-3)
    assert np.mean(variances) / np.var(values) == pytest.approx(1, abs=0.02)


def test_an_effective_sample_size_alone_is_not_the_variance() -> None:
    """Kish's number assumes that weights and values are independent. Here heavy individuals have the value."""
    rng, chances = np.random.default_rng(5), get_chances("OUE", 3)
    truths = draw_truths("OUE", rng, 0.1, 200)
    weights = draw_weights("correlated", rng, truths)
    values, variances = simulate_shares(weights, truths, chances, 100_000)
    share, size = (weights * truths).sum() / weights.sum(), weights.sum() ** 2 / (weights**2).sum()
    hit, noise = float(chances.hit), float(chances.noise)
    kish = compute_support_variance(share, hit, noise, "sample") / size / float(chances.gain) ** 2
    assert np.mean(variances) / np.var(values) == pytest.approx(1, abs=0.02)
    assert kish / np.var(values) < 0.85


def estimate_numbers(mechanism: Any, numbers: Any, weights: Any, epsilon: float, run: int) -> Any:
    key = rx.Key.from_bytes(run.to_bytes(32, "big"))
    where: Any = {"key": key, "epsilon": epsilon, "name": "s", "column": "c"}
    reports = mechanism.release(numbers, np.arange(len(numbers)), **where)
    codes = mechanism.read_label_column(pa.array(reports))[:, 0]
    counts = WeightedCounts(mechanism)
    counts.add_weighted(mechanism.level(epsilon), len(codes), codes, [weights, weights**2])
    return counts.estimate()


def measure_mean_coverage(mechanism: Any, about: About, n: int, epsilon: float, runs: int, *, totals: bool) -> float:
    """Heavy individuals have large numbers; every fifth number is missing, if numbers may be missing."""
    rng, held = np.random.default_rng(9), 0
    has_gaps = mechanism.mean_weights.absent is not None
    numbers = weights = np.zeros(0)
    for run in range(runs):
        if run == 0 or about == "population":
            numbers = 10 * rng.beta(1, 2, n)
            weights = rng.uniform(0.5, 1.5, n) * (1 + numbers / 5)
        is_missing = has_gaps & (np.arange(n) % 5 == 0)
        cells: Any = [None if gone else number for number, gone in zip(numbers, is_missing, strict=True)]
        found = estimate_numbers(mechanism, cells, weights, epsilon, run)
        # E(x) = 10 / 3 and E(x^2) = 50 / 3.
        truth = (10 / 3 + 50 / 15) / (1 + 10 / 15)
        if about == "sample":
            truth = float(np.average(numbers[~is_missing], weights=weights[~is_missing]))
        if totals:
            found, truth = found.totals(), truth * (weights.sum() if about == "sample" else n * (1 + 10 / 15))
        low, high = found.interval(about=about)
        held += bool(low <= truth <= high)
    return held / runs


MEANS = {
    "square wave": (rx.SquareWave(0, 10, epsilon=2), False),
    "total of a square wave": (rx.SquareWave(0, 10, epsilon=2), True),
    "numbers": (rx.Numeric(0, 10), False),
    "total of numbers": (rx.Numeric(0, 10), True),
    "missing numbers": (rx.Numeric(0, 10, missing=True), False),
}


@pytest.mark.long
@pytest.mark.parametrize("about", ["sample", "population"])
@pytest.mark.parametrize(("n", "epsilon"), [(100, 2), (1_000, 0.5), (1_000, 3)])
@pytest.mark.parametrize("kind", MEANS)
def test_intervals_of_means_hold(kind: str, n: int, epsilon: float, about: About) -> None:
    mechanism, totals = MEANS[kind]
    found = measure_mean_coverage(mechanism, about, n, epsilon, 500, totals=totals)
    assert found >= 0.94 - 3 * np.sqrt(0.95 * 0.05 / 500), found
