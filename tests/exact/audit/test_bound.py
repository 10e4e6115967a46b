"""The auditor's bound, summed exactly over the binomial; its rules of guessing, all of them, in fractions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from scipy.stats import beta, binom
from tests.exact.audit.test_attacks import independent_law, relaxed_law
from tests.exact.enumeration import Law as Chances

from relaxdp.audit.attacks import IndependentReportsDistribution, NoisySamplesDistribution, RelaxedReportsDistribution
from relaxdp.audit.guessing_rules import (
    FIRST,
    NO_GUESS,
    SECOND,
    ColumnBinning,
    ProductBinning,
    compute_epsilon_lower_bound,
    derive_optimal_rule,
    learn_rule,
)
from relaxdp.theory.randomized_response import compute_odds

EPSILONS = (0.05, 0.2, 1.0, 4.0, 9.0)
Bound = Callable[[np.ndarray, int, float], np.ndarray]


def false_alarms(bound: Bound, error: float) -> float:
    """How often the bound exceeds epsilon, at worst, where guesses are as good as they can be."""
    worst = 0.0
    for epsilon, guessed in product(EPSILONS, (1, 7, 100, 3000)):
        right = np.arange(guessed + 1)
        chance = 1 / (1 + np.exp(-epsilon))
        exceeds = bound(right, guessed, error) > epsilon
        worst = max(worst, float(binom.pmf(right[exceeds], guessed, chance).sum()))
    return worst


@pytest.mark.parametrize("error", [0.1, 1e-3, 1e-6])
def test_the_bound_keeps_its_confidence(error: float) -> None:
    assert 0.5 * error < false_alarms(compute_epsilon_lower_bound, error) <= error


def test_wrong_bounds_do_not() -> None:
    def one_more(right: np.ndarray, guessed: int, error: float) -> np.ndarray:
        return compute_epsilon_lower_bound(np.minimum(right + 1, guessed), guessed, error)

    def normal(right: np.ndarray, guessed: int, error: float) -> np.ndarray:
        share = right / guessed
        low = np.clip(share - 3.09 * np.sqrt(share * (1 - share) / guessed), 0.5, 1 - 1e-12)
        return np.asarray(np.log(low / (1 - low)))

    assert false_alarms(one_more, 1e-3) > 1e-3
    assert false_alarms(normal, 1e-3) > 1e-3


def test_clopper_pearson_as_scipy_has_it() -> None:
    for right, guessed in ((9, 9), (730_000, 1_000_000), (9_820_000, 10_000_000)):
        low = beta.ppf(0.01, right, guessed - right + 1)
        expected = float(np.log(low / (1 - low)))
        assert float(compute_epsilon_lower_bound(right, guessed, 0.01)) == pytest.approx(expected, rel=1e-9)
    assert compute_epsilon_lower_bound([0, 0, 5, 50], [0, 10, 9, 100], 0.1).tolist() == [0, 0, 0, 0]


def best_odds(laws: Sequence[Chances], transcripts: list[tuple[int, ...]]) -> Fraction:
    """The odds of the best of all rules: guess the first truth, guess the second, or pass, for each transcript."""
    best = Fraction(0)
    for rule in product((NO_GUESS, FIRST, SECOND), repeat=len(transcripts)):
        right = wrong = Fraction(0)
        for guess, transcript in zip(rule, transcripts, strict=True):
            if guess != NO_GUESS:
                right += laws[int(guess - FIRST)].get(transcript, Fraction(0))
                wrong += laws[int(SECOND - guess)].get(transcript, Fraction(0))
        if right:
            assert wrong, "no transcript of a private mechanism proves a truth"
            best = max(best, right / wrong)
    return best


def test_no_rule_of_guessing_exceeds_epsilon_and_the_best_reaches_it() -> None:
    levels = (Fraction(1, 4), Fraction(2, 5))
    transcripts = list(product(range(2), repeat=2))
    assert best_odds(relaxed_law(2, levels), transcripts) == compute_odds(levels[1], 2)
    both = compute_odds(levels[0], 2) * compute_odds(levels[1], 2)
    assert best_odds(independent_law(2, levels), transcripts) == both > compute_odds(levels[1], 2)


@pytest.mark.parametrize("values", [2, 3])
def test_the_rule_of_a_law_is_the_best(values: int) -> None:
    levels = ("0.5", "1", "2")
    relaxed = derive_optimal_rule(
        RelaxedReportsDistribution.from_epsilons(levels, n_values=values), 3, (0, 1), 10**6, 1e-4
    )
    assert relaxed is not None
    digits = ProductBinning([ColumnBinning(place, 0, values) for place in range(3)], "all").list_cell_bins()
    # Where the last report is one of the two truths it is guessed, elsewhere nothing is known.
    expected = np.where(digits[:, 2] < 2, digits[:, 2] + 1, 0)
    assert relaxed.table[expected > 0].tolist() == expected[expected > 0].tolist()
    independent = derive_optimal_rule(
        IndependentReportsDistribution.from_epsilons(["1", "1"], n_values=2), 2, (0, 1), 10**6, 1e-4
    )
    assert independent is not None
    assert independent.table.tolist() == [1, 0, 0, 2]
    assert 1.95 < independent.expected_bound < 2
    noisy = derive_optimal_rule(
        NoisySamplesDistribution.from_epsilons(epsilon_alpha=1, epsilon_beta="0.5", n_samples=10),
        10,
        (0, 1),
        10**6,
        1e-4,
    )
    assert noisy is not None
    assert 0.9 < noisy.expected_bound < 0.98433
    assert (
        derive_optimal_rule(RelaxedReportsDistribution.from_epsilons(["1"] * 30, n_values=2), 30, (0, 1), 10**6, 1e-4)
        is None
    )


def test_a_rule_learned_from_exact_counts_is_the_best() -> None:
    law = independent_law(2, (Fraction(1, 3), Fraction(1, 2)))
    counts = np.array([[float(law[truth][pair]) * 1e6 for pair in product(range(2), repeat=2)] for truth in range(2)])
    view = ProductBinning([ColumnBinning(place, 0, 2) for place in range(2)], "all columns")
    rule = learn_rule(view, (0, 1), counts, counts, 1e-4)
    assert rule.table.tolist() == [1, 0, 0, 2]
    assert rule.expected_bound == pytest.approx(float(np.log(6)), rel=0.01)
    rows = np.array([[0, 0], [0, 1], [1, 1], [1, 1]], dtype=np.uint8)
    assert rule.count_guesses(rows, np.array([0, 1, 1, 0], dtype=np.uint8)) == (2, 3)
