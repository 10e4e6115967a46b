"""Bits and hashes: measured errors are what the theory says, and beat the categorical response where they should.

Seeded, with a stated false-alarm rate; every check of a variance must also reject the one of an epsilon 5 % off.
"""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import pytest
from numpy.typing import NDArray

import relaxdp as rx
from relaxdp.estimation.frequency import Frequency
from relaxdp.estimation.mechanism_choice import compute_debiased_variance, rank_mechanisms
from relaxdp.hazmat import SeededEntropy
from relaxdp.mechanisms import local_hash
from relaxdp.mechanisms.bridged_columns import draw_bridged_column, make_noiseless_column
from relaxdp.mechanisms.registry import create_mechanism
from relaxdp.theory.randomized_response import NOISE, TRUTH, compute_retention

OBJECTS, RUNS = 400, 300


def errors(name: str, values: int, epsilon: str, seed: int) -> NDArray[np.float64]:
    """The errors of the shares of rare values in many runs; all objects have one of the first two values."""
    mechanism, entropy = create_mechanism(name, values=range(values), epsilon=epsilon), SeededEntropy(seed)
    encoding, keep = mechanism, compute_retention(mechanism.threshold(Decimal(epsilon)))
    truths, found = np.arange(OBJECTS) % 2, []
    for _ in range(RUNS):
        kept = make_noiseless_column(encoding, truths, entropy=entropy)  # fresh coins and seeds
        reports = draw_bridged_column(
            encoding, NOISE, keep, TRUTH, lower_reports=None, upper_reports=kept, entropy=entropy
        )
        found.append(mechanism.estimate(reports, epsilon=epsilon).value[2:])
    return np.array(found)


def expected_variance(name: str, values: int, epsilon: str) -> float:
    """The theory's, times the number of objects, as `rank_mechanisms` says."""
    choices = rank_mechanisms(values, epsilon).mechanisms
    return next(each.std_error**2 for each in choices if each.name == name)


@pytest.mark.parametrize("epsilon", ["0.5", "1"])
@pytest.mark.parametrize("name", ["unary-symmetric", "unary-optimised", "local-hash"])
def test_measured_variance(name: str, epsilon: str) -> None:
    """30,000 squared errors have a mean within 0.8 % (one standard error); 5 % is six of them: 1e-9."""
    values = 102
    found = errors(name, values, epsilon, seed=7)
    assert found.size == 30_000
    variance = float((found**2).mean()) * OBJECTS
    assert abs(found.mean()) * np.sqrt(found.size) < 6 * found.std()
    assert abs(variance / expected_variance(name, values, epsilon) - 1) < 0.05
    off = str(Decimal(epsilon) * Decimal("1.05"))
    assert abs(variance / expected_variance(name, values, off) - 1) > 0.05
    categorical = errors("categorical", values, epsilon, seed=8)
    assert values > 3 * np.exp(float(epsilon)) + 2
    assert variance < 0.8 * float((categorical**2).mean()) * OBJECTS


@pytest.mark.parametrize("name", ["unary-optimised", "local-hash"])
def test_theory(name: str) -> None:
    """4 e^eps / (e^eps - 1)^2 for optimised bits; hashes come near it, because a number of buckets is whole."""
    for epsilon in ("0.1", "0.5", "1", "2", "3"):
        power = np.exp(float(epsilon))
        assert expected_variance(name, 1000, epsilon) == pytest.approx(4 * power / (power - 1) ** 2, rel=0.03)


@pytest.mark.parametrize("epsilon", ["0.5", "1", "2", "3"])
def test_where_bits_begin_to_pay(epsilon: str) -> None:
    """Categorical is better up to m = 3 e^eps + 2, and optimised bits beyond."""
    edge = 3 * np.exp(float(epsilon)) + 2
    for values, better in ((int(edge), "categorical"), (int(edge) + 2, "unary-optimised")):
        choices = {each.name: each.std_error for each in rank_mechanisms(values, epsilon).mechanisms}
        assert min(("categorical", "unary-optimised"), key=choices.__getitem__) == better


def test_values_that_share_a_bucket_do_not_move_together() -> None:
    """Three values in one bucket, of 400,000 seeds: 1/g^2, six standard errors. A plain line would fail."""
    seeds, count = np.random.default_rng(3).integers(0, 2**64, 400_000, dtype=np.uint64), 8
    limit = 6 * np.sqrt(1 / count**2 / len(seeds))

    def together(where: NDArray[np.uint64]) -> float:
        found = local_hash.compute_hash_buckets(seeds[:, None], where, count)
        return float(np.mean((found[:, 0] == found[:, 1]) & (found[:, 0] == found[:, 2])))

    for triple in ((0, 1, 2), (10, 20, 30), (5, 6, 7), (0, 1, 1000), (3, 4, 6)):
        index = np.array(triple, dtype=np.uint64)
        assert abs(together(local_hash.compute_hash_points(index)) - 1 / count**2) < limit
    assert together(np.array([0, 1, 2], dtype=np.uint64)) - 1 / count**2 > 10 * limit


@pytest.mark.parametrize("name", ["unary-optimised", "local-hash"])
def test_covariance_is_diagonal(name: str) -> None:
    found = errors(name, 12, "1", seed=9)
    correlations = np.asarray(np.corrcoef(found.T))[np.triu_indices(found.shape[1], 1)]
    assert np.abs(correlations).max() < 6 / np.sqrt(RUNS)
    mechanism = create_mechanism(name, values=range(12), epsilon=1)
    entropy = SeededEntropy(1)
    kept = make_noiseless_column(mechanism, np.arange(400) % 12, entropy=entropy)
    keep = compute_retention(mechanism.threshold(Decimal(1)))
    reports = draw_bridged_column(
        mechanism, NOISE, keep, TRUTH, lower_reports=None, upper_reports=kept, entropy=entropy
    )
    estimate = mechanism.estimate(reports, epsilon=1)
    assert isinstance(estimate, Frequency)
    matrix = estimate.covariance()
    assert np.array_equal(matrix, np.diag(estimate.std_error**2))
    assert estimate.covariance([3, 5]).shape == (2, 2)


@pytest.mark.parametrize("names", [("unary-optimised", "categorical"), ("local-hash", "unary-symmetric")])
def test_two_way_tables(names: tuple[str, str]) -> None:
    """The errors of all cells of many tables have the variance that is stated: within 10 %, five standard errors."""
    rng, objects, runs = np.random.default_rng(11), 2000, 250
    mechanisms = [create_mechanism(name, values=list("abcde"), epsilon=2) for name in names]
    truths = [rng.integers(0, 5, objects), rng.integers(0, 2, objects)]
    letters = np.array(list("abcde"))
    shares = np.zeros((5, 5))
    np.add.at(shares, (truths[0], truths[1]), 1 / objects)
    entropy, scores = SeededEntropy(12), []
    for _ in range(runs):
        reports = []
        for mechanism, truth in zip(mechanisms, truths, strict=True):
            keep = compute_retention(mechanism.threshold(Decimal(2)))
            kept = make_noiseless_column(mechanism, letters[truth], entropy=entropy)
            reports.append(
                draw_bridged_column(
                    mechanism, NOISE, keep, TRUTH, lower_reports=None, upper_reports=kept, entropy=entropy
                )
            )
        table = rx.crosstab(mechanisms[0], reports[0], mechanisms[1], reports[1], row_epsilon=2, column_epsilon=2)
        assert table.n == objects
        scores.append((table.value - shares.reshape(-1)) / table.compute_std_error())
    z = np.array(scores)
    assert abs(z.mean()) < 6 / np.sqrt(z.size)
    assert abs((z**2).mean() - 1) < 0.1


def test_support_variance_of_the_estimate() -> None:
    for name in ("unary-symmetric", "unary-optimised", "local-hash"):
        encoding = create_mechanism(name, values=range(20), epsilon=1)
        support = encoding.compute_noise_and_gain(compute_retention(encoding.threshold(Decimal(1))))
        assert compute_debiased_variance(support, 0.0) == pytest.approx(expected_variance(name, 20, "1"))
