"""The bounds of a share hold for every distribution, since the weights that make them do."""

from __future__ import annotations

import numpy as np
import pytest

from relaxdp.estimation.distribution_fit import QuantileTests, ShareBounds, SquareWaveCounts
from relaxdp.mechanisms.square_wave import SquareWave

RNG = np.random.default_rng(29)


def expected(shares: np.ndarray, window: int, *epsilons: float, objects: float = 1e6) -> SquareWaveCounts:
    """As many reports of each place as are expected of these shares."""
    encoding = SquareWave(0, 1, bins=len(shares), window=window)
    keeps = np.array([float(encoding.level(epsilon).retention) for epsilon in epsilons])
    empty = SquareWaveCounts(np.zeros((len(keeps), encoding.alphabet)), keeps, window)
    return SquareWaveCounts(objects / len(keeps) * empty.compute_place_probabilities(shares), keeps, window)


@pytest.mark.parametrize(("bins", "window", "epsilons"), [(3, 1, (8,)), (64, 16, (0.5, 4)), (300, 128, (1,))])
def test_weights_are_below_the_share_whatever_they_tell_apart(bins: int, window: int, epsilons: tuple[float]) -> None:
    """For a number in any bin, and so for every distribution; here for what chance would tell apart."""
    given = expected(RNG.dirichlet(np.ones(bins)), window, *epsilons)
    columns = given.compute_place_probabilities_by_bin(np.arange(bins)) / len(epsilons)
    for first in range(0, bins - 1, max(1, bins // 7)):
        within = (np.arange(bins) >= first) & (np.arange(bins) < first + 1 + bins // 5)
        other = RNG.dirichlet(np.ones(given.counts.size))
        weights = ShareBounds(given).compute_place_weights(within, other, 0.01)
        assert np.all(columns.T @ weights <= within + 1e-9)


@pytest.mark.parametrize("shape", [(2, 5), (0.3, 0.3), (40, 3)])
@pytest.mark.parametrize("epsilons", [(2,), (0.5, 4)])
def test_bounds_are_beside_the_share(shape: tuple[float, float], epsilons: tuple[float, ...]) -> None:
    """With so many reports they are close to it, on both sides, and closer with more of them."""
    numbers = RNG.beta(*shape, 100_000)
    shares = np.bincount(np.rint(numbers * 63).astype(int), minlength=64) / len(numbers)
    within = (np.arange(64) >= 20) & (np.arange(64) < 45)
    share, widths = shares @ within, []
    for objects in (1e4, 1e6, 1e8):
        bounds = ShareBounds(expected(shares, 16, *epsilons, objects=objects))
        low, high = bounds.compute_lower_bound(within, 0.025), bounds.compute_upper_bound(within, 0.025)
        assert 0 <= low <= share <= high <= 1
        assert bounds.compute_lower_bound(within, 0.001) <= low
        assert bounds.compute_lower_bound(~within, 0.025) == pytest.approx(1 - high)
        widths.append(high - low)
    assert widths == sorted(widths, reverse=True)
    assert widths[-1] < 0.1


@pytest.mark.parametrize(("objects", "window", "most"), [(20, 1, 0.16), (100, 1, 0.033), (30, 4, 0.11)])
def test_what_no_report_shows_is_still_possible(objects: int, window: int, most: float) -> None:
    """One bin that nobody seems to be in, where noise is rare: the exact bound of a binomial is not far below."""
    shares = np.zeros(64)
    shares[[50, 52]] = 0.5
    given = expected(shares, window, 8, objects=objects)
    within = np.arange(64) == 29
    assert ShareBounds(given).compute_upper_bound(within, 0.025) >= most


@pytest.mark.parametrize(("bins", "window", "epsilons"), [(3, 1, (8,)), (64, 16, (0.5, 4)), (300, 128, (1,))])
def test_reports_without_chance_reject_no_true_quantile(bins: int, window: int, epsilons: tuple[float]) -> None:
    """Of numbers anywhere between bins, few or many: the weights are at most what the hypothesis allows."""
    for count in (1, 2, 5, 400):
        numbers, parts = np.sort(RNG.random(count)) * (bins - 1), RNG.dirichlet(np.ones(count))
        before, shares = np.minimum(numbers.astype(int), bins - 2), np.zeros(bins)
        np.add.at(shares, before, parts * (before + 1 - numbers))
        np.add.at(shares, before + 1, parts * (numbers - before))
        tests = QuantileTests(expected(shares, window, *epsilons))
        for probability in (0.05, 0.5, 0.8):
            quantile = float(numbers[np.searchsorted(np.cumsum(parts), probability)])
            assert tests.compute_p_value(quantile, probability, is_above=False) >= 0.5
            assert tests.compute_p_value(quantile, 1 - probability, is_above=True) >= 0.5


def test_numbers_far_from_a_quantile_are_rejected() -> None:
    """The closer to it the more reports there are, up to the bin and a half that rounding hides."""
    reached = []
    for objects in (1e3, 1e5, 1e8):
        tests = QuantileTests(expected(np.full(64, 1 / 64), 4, 4, objects=objects))
        steps = np.arange(0, 31.5, 0.25)
        reached.append(max(each for each in steps if tests.compute_p_value(each, 0.5, is_above=False) < 0.05))
        above = min(each for each in 63 - steps if tests.compute_p_value(each, 0.5, is_above=True) < 0.05)
        assert above == pytest.approx(63 - reached[-1], abs=0.25)
    assert reached[0] < reached[1] <= reached[2]
    assert 30 <= reached[2] < 30.5


def test_all_bins_and_none() -> None:
    bounds = ShareBounds(expected(np.full(8, 1 / 8), 2, 1))
    every = np.ones(8, np.bool_)
    assert (bounds.compute_lower_bound(every, 0.025), bounds.compute_upper_bound(every, 0.025)) == (1, 1)
    assert (bounds.compute_lower_bound(~every, 0.025), bounds.compute_upper_bound(~every, 0.025)) == (0, 0)
