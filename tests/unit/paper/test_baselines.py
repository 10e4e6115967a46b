"""Noisy sampling and the split budget: every formula against an enumeration of all that can happen."""

from __future__ import annotations

from decimal import Context, Decimal
from fractions import Fraction
from itertools import product
from math import comb, log
from typing import Any

import numpy as np
import pytest

from relaxdp.estimation.mechanism_choice import compute_categorical_support
from relaxdp.estimation.schedules import compute_noisy_sampling_epsilon
from relaxdp.paper.baselines import (
    noisy_sampling_estimate,
    noisy_sampling_variance,
    relaxation_variance,
    split_budget,
    split_budget_estimate,
    split_budget_variance,
)
from relaxdp.theory.epsilon import compute_threshold
from relaxdp.theory.randomized_response import compute_report_distribution, compute_retention

LEVELS = ("0.1", "0.5", "1", "2")
ODDS = [(Fraction(3), Fraction(2), 1), (Fraction(3), Fraction(3, 2), 4), (Fraction(9, 8), Fraction(7), 7)]


def exact_log(odds: Fraction) -> Decimal:
    context = Context(prec=55)
    return context.ln(context.divide(Decimal(odds.numerator), Decimal(odds.denominator)))


def samples_law(alpha: Fraction, beta: Fraction, samples: int, *, truth: int) -> list[Fraction]:
    """The probability of every number of ones among the noisy samples of one object; alpha and beta are odds."""
    kept, right = alpha / (1 + alpha), beta / (1 + beta)
    law = [Fraction(0)] * (samples + 1)
    for permanent in (0, 1):
        chance = kept if permanent == truth else 1 - kept
        one = right if permanent else 1 - right
        for ones in range(samples + 1):
            law[ones] += chance * comb(samples, ones) * one**ones * (1 - one) ** (samples - ones)
    assert sum(law) == 1
    return law


@pytest.mark.parametrize(("alpha", "beta", "samples"), ODDS)
def test_guarantee_of_noisy_sampling_is_the_greatest_likelihood_ratio(
    alpha: Fraction, beta: Fraction, samples: int
) -> None:
    laws = [samples_law(alpha, beta, samples, truth=truth) for truth in (0, 1)]
    greatest = max(max(zero / one, one / zero) for zero, one in zip(*laws, strict=True))
    found = compute_noisy_sampling_epsilon(
        epsilon_alpha=exact_log(alpha), epsilon_beta=exact_log(beta), samples=samples
    )
    assert 0 <= found - exact_log(greatest) < Decimal("1e-38")  # rounded up, in the 40th digit


@pytest.mark.parametrize(("alpha", "beta", "samples"), ODDS)
@pytest.mark.parametrize("truth", [0, 1])
def test_estimate_from_noisy_samples(alpha: Fraction, beta: Fraction, samples: int, truth: int) -> None:
    law = samples_law(alpha, beta, samples, truth=truth)
    epsilons: dict[str, Any] = {"epsilon_alpha": exact_log(alpha), "epsilon_beta": exact_log(beta)}
    every = np.arange(samples + 1)[None, :]  # one object, and one bit for every number of ones
    estimates = noisy_sampling_estimate(every, samples=samples, **epsilons)
    chances = np.array([float(chance) for chance in law])
    assert chances @ estimates == pytest.approx(truth, abs=1e-12)
    variance = chances @ (estimates - truth) ** 2
    assert noisy_sampling_variance(samples=samples, **epsilons) == pytest.approx(variance, rel=1e-12)
    assert noisy_sampling_variance(samples=samples, objects=10, **epsilons) == pytest.approx(variance / 10, rel=1e-12)


def test_the_papers_final_formula() -> None:
    for alpha, beta, samples in [(0.7, 0.6, 3), (0.9, 0.55, 20)]:
        paper = beta * (1 - beta) / (samples * (1 - 2 * beta) ** 2 * (1 - 2 * alpha) ** 2)
        paper += alpha * (1 - alpha) / (1 - 2 * alpha) ** 2
        epsilons: dict[str, Any] = {"epsilon_alpha": log(alpha / (1 - alpha)), "epsilon_beta": log(beta / (1 - beta))}
        assert noisy_sampling_variance(samples=samples, **epsilons) == pytest.approx(paper, rel=1e-12)


def test_the_papers_experiment() -> None:
    guarantee = compute_noisy_sampling_epsilon(epsilon_alpha=1, epsilon_beta="0.5", samples=10)
    assert f"{guarantee:.5f}" == "0.98433"
    assert f"{noisy_sampling_variance(epsilon_alpha=1, epsilon_beta='0.5', samples=10):.3f}" == "2.755"
    assert f"{relaxation_variance([guarantee], values=2):.3f}" == "0.953"
    assert f"{1 / (1 + guarantee.exp()):.4f}" == "0.2720"  # the least error rate of any attack on one bit


def test_relaxation_is_never_worse_than_noisy_sampling() -> None:
    for samples in range(1, 30):
        epsilons: dict[str, Any] = {"epsilon_alpha": "1.5", "epsilon_beta": "0.3", "samples": samples}
        level = compute_noisy_sampling_epsilon(**epsilons)
        sampled = noisy_sampling_variance(**epsilons)
        relaxed = relaxation_variance([level], values=2)
        # One sample is a plain response with the same guarantee, so there the two agree.
        assert relaxed == pytest.approx(sampled, rel=1e-12) if samples == 1 else relaxed < sampled


def test_extreme_noisy_sampling() -> None:
    many = compute_noisy_sampling_epsilon(epsilon_alpha=1, epsilon_beta=1000, samples=1_000_000)
    assert 0 <= many - 1 < Decimal("1e-38")
    both = compute_noisy_sampling_epsilon(epsilon_alpha=10**30, epsilon_beta=10**30, samples=1)
    assert both == pytest.approx(10**30)
    tiny = compute_noisy_sampling_epsilon(epsilon_alpha="1e-6", epsilon_beta="1e-6", samples=1)
    assert float(tiny) == pytest.approx(5e-13, rel=1e-6)


@pytest.mark.parametrize("values", [2, 3, 5])
@pytest.mark.parametrize("levels", [("0.7",), ("0.1", "0.5"), ("0.3", "1", "3")])
def test_split_budget_by_enumeration(values: int, levels: tuple[str, ...]) -> None:
    """All reports of one object at all releases: the combination is unbiased and has the stated variance."""
    keeps = [compute_retention(compute_threshold(spent, values)) for spent in split_budget(levels)]
    laws = [compute_report_distribution(values, keep, truth=0) for keep in keeps]
    mean, square = np.zeros(values), np.zeros(values)
    for reports in product(range(values), repeat=len(levels)):
        chance = float(np.prod([float(law[report]) for law, report in zip(laws, reports, strict=True)]))
        estimate = split_budget_estimate(np.eye(values, dtype=int)[list(reports)], levels=levels)
        mean += chance * estimate
        square += chance * estimate**2
    assert mean == pytest.approx(np.eye(values)[0], abs=1e-9)
    variance = square - mean**2
    assert split_budget_variance(levels, values=values, share=1) == pytest.approx(variance[0], rel=1e-9)
    assert split_budget_variance(levels, values=values, share=0) == pytest.approx(variance[1], rel=1e-9)
    assert split_budget_variance(levels, values=values, objects=7) == pytest.approx(variance[1] / 7, rel=1e-9)


@pytest.mark.parametrize(("values", "ratio"), [(2, "3.65"), (5, "5.92"), (52, "10.30")])
def test_the_motivating_claim(values: int, ratio: str) -> None:
    """At the same guarantee the split budget is several times noisier, even though it is combined as well as can be."""
    split, relaxed = (variance(LEVELS, values=values) for variance in (split_budget_variance, relaxation_variance))
    assert f"{split / relaxed:.2f}" == ratio
    supports = [compute_categorical_support(spent, values) for spent in split_budget(LEVELS)]
    best = 1 / sum(part.gain**2 / (part.noise * (1 - part.noise)) for part in supports)
    assert split == pytest.approx(float(best), rel=1e-12)


def test_a_budget_that_is_not_split_is_the_same() -> None:
    assert split_budget_variance(["1.5"], values=7) == relaxation_variance(["1.5"], values=7)
    assert split_budget_variance(["1.5"], values=7, share=0.3) == relaxation_variance(
        ["0.1", "1.5"], values=7, share=0.3
    )
