"""Estimators and covariances equal the paper's matrices, and are unbiased exactly: enumerated in rationals."""

from __future__ import annotations

import itertools
from fractions import Fraction as F
from math import prod

import numpy as np
import pytest

from relaxdp.estimation.crosstab import Crosstab
from relaxdp.estimation.frequency import Frequency, compute_categorical_covariance, compute_support_variance
from relaxdp.theory.epsilon import compute_threshold
from relaxdp.theory.randomized_response import (
    SupportProbabilities,
    compute_next_report_distribution,
    compute_report_distribution,
    compute_retention,
)


def support_of(values: int, epsilon: str) -> SupportProbabilities:
    return SupportProbabilities.from_one_symbol(compute_retention(compute_threshold(epsilon, values)), values)


def matrix(values: int, epsilon: str) -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
    keep = compute_retention(compute_threshold(epsilon, values))
    return np.array(
        [[float(p) for p in compute_report_distribution(values, keep, truth=truth)] for truth in range(values)]
    ).T


@pytest.mark.parametrize("values", range(2, 9))
@pytest.mark.parametrize("epsilon", ["0.1", "1", "4"])
def test_estimate_is_the_inverse_matrix(values: int, epsilon: str) -> None:
    counts = np.random.default_rng(values).integers(1, 1000, values)
    estimate = Frequency(range(values), counts, int(counts.sum()), support_of(values, epsilon))
    brute = np.linalg.solve(matrix(values, epsilon), counts / counts.sum())
    assert np.abs(estimate.value - brute).max() < 1e-12 / float(support_of(values, epsilon).gain)
    assert abs(estimate.value.sum() - 1) < 1e-10


@pytest.mark.parametrize("values", range(2, 9))
@pytest.mark.parametrize("epsilon", ["0.1", "1", "4"])
def test_covariance_is_the_appendix(values: int, epsilon: str) -> None:
    """Cov(H) = sum over objects of Cov(Y | x), then P^-1 Cov(H) P^-1 / n^2, by brute force."""
    truths = np.random.default_rng(values).integers(0, 50, values)
    objects, law = int(truths.sum()), matrix(values, epsilon)
    cov_h = sum(k * (np.diag(law[:, x]) - np.outer(law[:, x], law[:, x])) for x, k in enumerate(truths))
    inverse = np.linalg.inv(law)
    brute = inverse @ cov_h @ inverse.T / objects**2
    ours = compute_categorical_covariance(truths.astype(float), objects, support_of(values, epsilon))
    assert np.abs(ours - brute).max() < 1e-12 * np.abs(brute).max() * 100
    sup = support_of(values, epsilon)
    single = compute_support_variance(truths / objects, float(sup.hit), float(sup.noise), "sample")
    assert np.allclose(np.diag(ours), single / objects / float(sup.gain) ** 2, rtol=1e-10)


def test_unbiased_exactly() -> None:
    """All reports of four objects with three values: the mean of the estimate is the share, in rationals."""
    values, keep, truths = 3, F(2, 7), (0, 0, 2, 1)
    sup = SupportProbabilities(noise=(1 - keep) / values, gain=keep)
    laws = [compute_report_distribution(values, keep, truth=truth) for truth in truths]
    expected = [F(0)] * values
    for reports in itertools.product(range(values), repeat=4):
        chance = prod((law[report] for law, report in zip(laws, reports, strict=True)), start=F(1))
        for value in range(values):
            expected[value] += chance * sup.debias(F(reports.count(value), 4))
    assert expected == [F(truths.count(value), 4) for value in range(values)]


def mixed_expectation(level_law: dict[int, dict[F, F]], truths: list[int], method: str, values: int = 2) -> F:
    """The exact mean of the pooled share of value 1, where each object's level is random given its truth."""
    total = F(0)
    for levels in itertools.product(*(level_law[truth] for truth in truths)):
        level_chance = prod((level_law[t][level] for t, level in zip(truths, levels, strict=True)), start=F(1))
        for reports in itertools.product(range(values), repeat=len(truths)):
            chance = level_chance * prod(
                (
                    compute_report_distribution(values, lv, truth=t)[r]
                    for t, lv, r in zip(truths, levels, reports, strict=True)
                ),
                start=F(1),
            )
            weights = [F(1) if method == "average" else precision(level, values) for level in levels]
            debiased = [
                SupportProbabilities(noise=(1 - level) / values, gain=level).debias(F(int(report == 1)))
                for level, report in zip(levels, reports, strict=True)
            ]
            total += chance * sum(w * d for w, d in zip(weights, debiased, strict=True)) / sum(weights)
    return total


def precision(level: F, values: int) -> F:
    noise = (1 - level) / values
    return level**2 / (noise * (1 - noise))


def test_levels_that_depend_on_the_truth() -> None:
    """Ones stop early more often than zeros: averaging stays unbiased, precision weights do not."""
    low, high = F(1, 5), F(4, 5)
    depends = {0: {low: F(1, 4), high: F(3, 4)}, 1: {low: F(3, 4), high: F(1, 4)}}
    alike = {0: {low: F(1, 2), high: F(1, 2)}, 1: {low: F(1, 2), high: F(1, 2)}}
    truths = [0, 1, 1]
    assert mixed_expectation(depends, truths, "average") == F(2, 3)
    assert mixed_expectation(depends, truths, "precision") < F(1, 2)
    assert mixed_expectation(alike, truths, "average") == mixed_expectation(alike, truths, "precision") == F(2, 3)


def test_levels_that_depend_on_ones_own_reports_bias_everything() -> None:
    """Relaxing only those whose first report was 0, from odds 2 to 5: a truth of 1 is estimated as 25/16 on average."""
    first, second = F(1, 3), F(2, 3)  # odds 2 and 5 with two values

    def debiased(level: F, report: int) -> F:
        value: F = SupportProbabilities(noise=(1 - level) / 2, gain=level).debias(F(report))
        return value

    mean = F(0)
    for report, chance in enumerate(compute_report_distribution(2, first, truth=1)):
        if report == 1:
            mean += chance * debiased(first, 1)
        else:
            following = compute_next_report_distribution(2, first, second, truth=1, last_report=0)
            mean += chance * sum(step * debiased(second, after) for after, step in enumerate(following))
    assert mean == F(25, 16)


def test_cross_table_is_unbiased_exactly() -> None:
    """All pairs of reports of two objects: the mean of the debiased table is the table of truths."""
    rows, columns, truths = 2, 3, [(0, 2), (1, 1)]
    row_keep, column_keep = F(1, 3), F(1, 2)
    row_support = SupportProbabilities(noise=(1 - row_keep) / rows, gain=row_keep)
    column_support = SupportProbabilities(noise=(1 - column_keep) / columns, gain=column_keep)
    mean = np.zeros((rows, columns))
    cells = list(itertools.product(range(rows), range(columns)))
    for pairs in itertools.product(cells, repeat=2):
        chance = prod(
            (
                compute_report_distribution(rows, row_keep, truth=a)[r]
                * compute_report_distribution(columns, column_keep, truth=b)[c]
                for (a, b), (r, c) in zip(truths, pairs, strict=True)
            ),
            start=F(1),
        )
        counts = np.zeros((rows, columns), dtype=np.int64)
        for r, c in pairs:
            counts[r, c] += 1
        mean += float(chance) * Crosstab(range(rows), range(columns), counts, row_support, column_support).table
    expected = np.zeros((rows, columns))
    for a, b in truths:
        expected[a, b] += 0.5
    assert np.allclose(mean, expected, atol=1e-12)


def test_cross_variance_by_brute_force() -> None:
    """The variance of one object's product of debiased indicators, enumerated, about objects and population."""
    row_support, column_support = support_of(3, "1"), support_of(2, "0.5")
    shares = np.array([[0.2, 0.1], [0.3, 0.05], [0.25, 0.1]])
    rows, columns = matrix(3, "1"), matrix(2, "0.5")
    counts = np.rint(1e9 * (rows @ shares @ columns.T)).astype(np.int64)
    table = Crosstab(range(3), range(2), counts, row_support, column_support)
    inverse_rows, inverse_columns = np.linalg.inv(rows), np.linalg.inv(columns)
    for a, b in itertools.product(range(3), range(2)):
        product = np.outer(inverse_rows[a], inverse_columns[b])
        moments = [(rows @ shares @ columns.T * product**power).sum() for power in (1, 2)]
        population = moments[1] - moments[0] ** 2
        given = moments[1] - shares[a, b]
        place = a * 2 + b
        assert np.isclose(table.compute_std_error("population")[place] ** 2 * table.n, population, rtol=1e-5)
        assert np.isclose(table.compute_std_error("sample")[place] ** 2 * table.n, given, rtol=1e-5)
