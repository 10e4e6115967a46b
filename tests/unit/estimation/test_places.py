"""The likeliest distribution behind places is the likeliest one, and what is asked of it is what it is made of."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.refusals import refused

import relaxdp as rx
from relaxdp.errors import EstimationError
from relaxdp.estimation.distribution import Distribution
from relaxdp.estimation.distribution_fit import SquareWaveCounts, fit_likeliest_shares, fit_smooth_shares
from relaxdp.mechanisms.square_wave import SquareWave

NEAR = 0.01
RNG = np.random.default_rng(11)


def places(
    objects: int = 5_000, bins: int = 32, window: int = 8, epsilons: tuple[float, ...] = (2,)
) -> SquareWaveCounts:
    encoding = SquareWave(0, 1, bins=bins, window=window)
    keeps = np.array([float(encoding.level(epsilon).retention) for epsilon in epsilons])
    empty = SquareWaveCounts(np.zeros((len(keeps), encoding.alphabet)), keeps, window)
    numbers = RNG.beta(2, 5, 2_000) * (bins - 1)
    shares = np.bincount(np.rint(numbers).astype(int), minlength=bins) / len(numbers)
    return SquareWaveCounts(
        RNG.multinomial(objects, empty.compute_place_probabilities(shares)).astype(float), keeps, window
    )


@pytest.mark.parametrize("epsilons", [(2,), (0.5, 4)])
def test_nothing_is_likelier(epsilons: tuple[float, ...]) -> None:
    """Not the steps of plain expectation-maximisation, and not a mixture with any distribution."""
    given = places(epsilons=epsilons)
    shares, found = fit_likeliest_shares(given)
    assert shares.min() >= 0
    assert shares.sum() == pytest.approx(1)
    assert found == pytest.approx(given.compute_log_likelihood(shares))
    slope = given.compute_gradient(shares)
    assert slope.max() - slope @ shares < NEAR
    climbing = np.full(given.bin_count, 1 / given.bin_count)
    for _ in range(3_000):
        climbing = climbing * given.compute_gradient(climbing) / given.counts.sum()
    assert given.compute_log_likelihood(climbing) <= found + NEAR


def test_chances_are_those_of_the_encoding() -> None:
    given = places(epsilons=(0.5, 4))
    columns = given.compute_place_probabilities_by_bin(np.arange(given.bin_count))
    shares = RNG.dirichlet(np.ones(given.bin_count))
    assert np.allclose(columns @ shares, given.compute_place_probabilities(shares).reshape(-1))
    assert np.allclose(columns.reshape(2, -1, given.bin_count).sum(axis=1), 1)
    assert np.allclose(
        columns.T @ (given.counts / given.compute_place_probabilities(shares)).reshape(-1),
        given.compute_gradient(shares),
    )
    for level, keep in enumerate(given.retentions):
        size = given.counts.shape[1]
        law = np.full(size, (1 - keep) / size)
        law[3 : 3 + given.window] += keep / given.window
        assert np.allclose(columns.reshape(2, size, -1)[level, :, 3], law)


def test_smooth_shares() -> None:
    given = places(objects=50_000)
    shares = fit_smooth_shares(given)
    assert shares.min() >= 0
    assert shares.sum() == pytest.approx(1)
    uniform = np.ones(given.bin_count)
    uniform[[0, -1]] = 0.5
    flat = SquareWaveCounts(
        50_000 * given.compute_place_probabilities(uniform / uniform.sum()), given.retentions, given.window
    )
    assert np.allclose(fit_smooth_shares(flat), uniform / uniform.sum(), atol=1e-3)  # also at the ends
    assert np.abs(np.diff(shares)).sum() < np.abs(np.diff(fit_likeliest_shares(given)[0])).sum()


def answered(objects: int = 20_000, epsilons: tuple[float, ...] = (3,)) -> tuple[Any, Any]:
    wave = rx.SquareWave(0, 100, epsilon=3)
    numbers = 100 * RNG.beta(2, 5, objects)
    counts = rx.Counts(wave)
    key, ids = rx.Key.from_bytes(bytes(range(32))), np.arange(objects)
    for number, epsilon in enumerate(epsilons):
        part = slice(number, None, len(epsilons))
        counts.add(
            wave.release(numbers[part], ids[part], key=key, epsilon=epsilon, name="r", column="a"),
            epsilon=epsilon,
        )
    return counts.estimate(), numbers


@pytest.mark.parametrize("epsilons", [(3,), (1, 3)])
def test_all_answers(epsilons: tuple[float, ...]) -> None:
    """Each near the truth, inside its interval, and the interval inside the range."""
    found, numbers = answered(epsilons=epsilons)
    assert isinstance(found, Distribution)
    low, high = found.interval(0.999999)
    assert low < numbers.mean() < high < low + 15
    assert found.mean.value == found.value
    asked = (0.1, 0.5, 0.9)
    quantiles = found.quantile(asked)
    low, high = quantiles.interval(0.9999)
    truth = np.quantile(numbers, asked)
    assert np.all((low <= truth) & (truth <= high) & (low <= quantiles.value) & (quantiles.value <= high))
    assert quantiles.labels == ["quantile 0.1", "median", "quantile 0.9"]
    assert quantiles.to_arrow().column_names == ["value", "estimate", "std_error", "low", "high"]
    part = found.share(18, 30)
    (low,), (high,) = part.interval(0.9999)
    share = np.mean((numbers >= 18) & (numbers <= 30))
    assert 0 <= low <= min(share, part.value[0]) <= max(share, part.value[0]) <= high <= 1
    assert found.share(0, 100).value == 1
    (low,), (high,) = found.share(0, 100).interval()
    assert (low, high) == (1, 1)
    (low,), (high,) = found.variance.interval(0.9999)
    assert 0 <= low <= numbers.var() <= high <= 50**2
    assert found.variance.value == pytest.approx(numbers.var(), rel=0.2)
    for smooth in (True, False):
        shares = found.histogram(smooth=smooth)
        assert len(shares) == len(found.points) == 64
        assert shares @ found.points == pytest.approx(numbers.mean(), abs=3)
    assert "median" in repr(found.quantile(0.5))
    assert "at least 95 %" in repr(found.quantile(0.5))
    assert "at least 95 %" in found.quantile(0.5)._repr_html_()
    assert "18 to 30" in repr(part)


def test_the_picture() -> None:
    found, _ = answered(2_000)
    axes = found.plot()
    assert axes.get_xlim() == (0, 100)
    assert "mean" in axes.get_xlabel()


def test_what_is_refused() -> None:
    found, _ = answered(100)
    for wrong in (0, 1, 1.5, [], [0.5, float("nan")]):
        with refused(EstimationError, says="above 0 and below 1"):
            found.quantile(wrong)
    for low, high in ((30, 18), (-1, 5), (5, 101), (5, 5)):
        with refused(EstimationError, low=0, high=100, says="must be below `high`"):
            found.share(low, high)
