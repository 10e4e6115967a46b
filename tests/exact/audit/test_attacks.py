"""The attacks by enumeration of all transcripts: no randomness, errors as fractions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import partial
from itertools import product
from math import log, prod
from typing import Any

import numpy as np
import pytest
from tests.exact.enumeration import Law as Chances
from tests.exact.enumeration import compute_transcript_distribution
from tests.refusals import refused

from relaxdp.audit.attacks import (
    ATTACKS,
    Guesses,
    IndependentReportsDistribution,
    NoisySamplesDistribution,
    RelaxedReportsDistribution,
    TranscriptDistribution,
    compute_error_probabilities,
    compute_error_rate,
    compute_error_rates,
    compute_minimum_error_rate,
    compute_retentions,
    guess_by_frequency,
    guess_by_maximum_likelihood,
    guess_last_report,
)
from relaxdp.errors import ArgumentError
from relaxdp.estimation.schedules import compute_noisy_sampling_epsilon
from relaxdp.theory.privacy_loss import compute_transcript_probability
from relaxdp.theory.randomized_response import compute_odds, compute_report_distribution

EPSILONS = ("0.3", "0.9", "1.6")


def all_transcripts(values: int, reports: int) -> np.ndarray:
    return np.array(list(product(range(values), repeat=reports)))


def relaxed_law(values: int, levels: Sequence[Fraction]) -> list[Chances]:
    return [compute_transcript_distribution(values, levels, truth) for truth in range(values)]


def independent_law(values: int, levels: Sequence[Fraction]) -> list[Chances]:
    def afresh(values: int, old: Fraction, new: Fraction, *, truth: int, last_report: int) -> list[Fraction]:
        return compute_report_distribution(values, new, truth=truth)

    return [compute_transcript_distribution(values, levels, truth, afresh) for truth in range(values)]


def exact_error(laws: Sequence[Chances], reports: int, attack: Callable[[np.ndarray], Guesses]) -> Fraction:
    """The error rate of an attack on truths with equal shares, ties broken uniformly."""
    values, transcripts = len(laws), all_transcripts(len(laws), reports)
    mask, wrong = attack(transcripts), Fraction(0)
    for row, transcript in enumerate(map(tuple, transcripts.tolist())):
        for truth, law in enumerate(laws):
            hit = Fraction(int(mask[row, truth]), int(mask[row].sum()))
            wrong += law.get(transcript, Fraction(0)) * (1 - hit)
    return wrong / values


def _guess_report(values: int, place: int, rows: np.ndarray) -> Guesses:
    return guess_last_report(rows[:, : place + 1], n_values=values)


def bayes_error(laws: Sequence[Chances]) -> Fraction:
    """The least error rate that any attack whatsoever can have."""
    best = sum(max(law.get(t, Fraction(0)) for law in laws) for t in {t for law in laws for t in law})
    return 1 - Fraction(best) / len(laws)


@pytest.mark.parametrize("values", [2, 3, 4])
def test_no_attack_on_a_relaxed_transcript_beats_the_last_output(values: int) -> None:
    law = RelaxedReportsDistribution.from_epsilons(EPSILONS, n_values=values)
    laws = relaxed_law(values, law.retentions)
    least = Fraction(values - 1) / (compute_odds(law.retentions[-1], values) + values - 1)
    error = {
        name: exact_error(laws, 3, lambda rows, attack=attack: attack(rows, law, EPSILONS))  # type: ignore[misc]
        for name, attack in ATTACKS.items()
    }
    assert error["last output"] == error["maximum likelihood"] == bayes_error(laws) == least
    assert float(least) == pytest.approx(compute_minimum_error_rate(values, EPSILONS[-1]), rel=1e-15)
    assert error["highest frequency"] > least
    assert error["weighted highest frequency"] >= least
    for place in range(2):  # an earlier report alone is worth less
        attack = partial(_guess_report, values, place)
        assert exact_error(laws, 3, attack) > least


@pytest.mark.parametrize("values", [2, 3, 4])
def test_independent_reports_are_beaten(values: int) -> None:
    """The mistake that relaxation avoids: then all attacks together know more than the last output."""
    epsilons = ("0.5", "0.9", "1")  # two earlier reports that agree outweigh the last one
    law = IndependentReportsDistribution.from_epsilons(epsilons, n_values=values)
    laws = independent_law(values, law.retentions)
    last = exact_error(laws, 3, lambda rows: guess_last_report(rows, n_values=values))
    likeliest = exact_error(laws, 3, lambda rows: guess_by_maximum_likelihood(rows, law))
    weighted = exact_error(laws, 3, lambda rows: guess_by_frequency(rows, n_values=values, weights=epsilons))
    # The log odds of independent reports add up, so the sum of epsilons is the likelihood.
    assert weighted == likeliest == bayes_error(laws)
    assert likeliest < last
    again = IndependentReportsDistribution.from_epsilons(["1", "1", "1"], n_values=values)
    laws = independent_law(values, again.retentions)
    least = Fraction(values - 1) / (compute_odds(again.retentions[-1], values) + values - 1)
    for attack in (
        lambda rows: guess_by_maximum_likelihood(rows, again),
        lambda rows: guess_by_frequency(rows, n_values=values),
    ):
        assert exact_error(laws, 3, attack) < least


@pytest.mark.parametrize(("values", "reports"), [(2, 4), (3, 3), (5, 2)])
def test_likelihoods_are_those_of_the_law(values: int, reports: int) -> None:
    levels = compute_retentions(("0.3", "0.3", "0.9", "2.5")[:reports], values)
    rows = all_transcripts(values, reports)
    for law, laws in (
        (RelaxedReportsDistribution(values, levels), relaxed_law(values, levels)),
        (IndependentReportsDistribution(values, levels), independent_law(values, levels)),
    ):
        assert isinstance(law, RelaxedReportsDistribution | IndependentReportsDistribution)
        logarithms = law.compute_log_likelihoods(rows)
        for row, transcript in enumerate(map(tuple, rows.tolist())):
            for truth in range(values):
                exact = laws[truth].get(transcript, Fraction(0))
                if isinstance(law, RelaxedReportsDistribution):
                    assert exact == compute_transcript_probability(values, levels, transcript, truth=truth)
                assert logarithms[row, truth] == (pytest.approx(log(exact), abs=1e-12) if exact else -np.inf)


def noisy_law(law: NoisySamplesDistribution) -> list[Chances]:
    laws = []
    for truth in range(law.n_values):
        kept = compute_report_distribution(law.n_values, law.permanent, truth=truth)
        sampled = [
            compute_report_distribution(law.n_values, law.sample, truth=permanent) for permanent in range(law.n_values)
        ]
        chances = {}
        for transcript in product(range(law.n_values), repeat=law.samples):
            chances[transcript] = sum(
                (kept[b] * prod([sampled[b][s] for s in transcript], start=Fraction(1)) for b in range(law.n_values)),
                Fraction(0),
            )
        laws.append(chances)
    return laws


@pytest.mark.parametrize(("values", "samples"), [(2, 4), (2, 5), (3, 3)])
def test_noisy_samples(values: int, samples: int) -> None:
    law = NoisySamplesDistribution.from_epsilons(
        epsilon_alpha=1, epsilon_beta="0.5", n_samples=samples, n_values=values
    )
    laws = noisy_law(law)
    rows = all_transcripts(values, samples)
    exact = [[float(laws[truth][tuple(row)]) for truth in range(values)] for row in rows.tolist()]
    assert law.compute_log_likelihoods(rows) == pytest.approx(np.log(exact), abs=1e-12)
    best = bayes_error(laws)
    assert exact_error(laws, samples, lambda rows: guess_by_maximum_likelihood(rows, law)) == best
    assert exact_error(laws, samples, lambda rows: guess_by_frequency(rows, n_values=values)) == best
    assert exact_error(laws, samples, lambda rows: guess_last_report(rows, n_values=values)) > best
    if values == 2:
        guarantee = compute_noisy_sampling_epsilon(epsilon_alpha=1, epsilon_beta="0.5", samples=samples)
        assert best > compute_minimum_error_rate(2, guarantee)


def test_the_papers_minimum() -> None:
    guarantee = compute_noisy_sampling_epsilon(epsilon_alpha=1, epsilon_beta="0.5", samples=10)
    assert round(compute_minimum_error_rate(2, guarantee), 4) == 0.2720
    assert compute_minimum_error_rate(5, 0) == pytest.approx(0.8)
    assert 0 < compute_minimum_error_rate(2, 700) < 1e-300


def test_ties_are_broken_uniformly() -> None:
    rows = np.array([[0, 1], [1, 1]])
    mask = guess_by_frequency(rows, n_values=3)
    assert mask.tolist() == [[True, True, False], [False, True, False]]
    assert compute_error_probabilities(mask, np.array([0, 0])).tolist() == [0.5, 1.0]
    assert compute_error_rate(mask, np.array([2, 1])) == 0.5
    # Weights that are equal on paper, though not as floats: 0.1 + 0.2 against 0.3.
    tied = guess_by_frequency(np.array([[0, 0, 1]]), n_values=2, weights=["0.1", "0.2", "0.3"])
    assert tied.tolist() == [[True, True]]


def test_error_rates_names_all_four() -> None:
    law: TranscriptDistribution = RelaxedReportsDistribution.from_epsilons(EPSILONS, n_values=2)
    rows = np.array([[0, 0, 1], [1, 1, 1]], dtype=np.uint8)
    rates = compute_error_rates(rows, np.array([1, 1]), law, EPSILONS)
    assert list(rates) == ["last output", "maximum likelihood", "highest frequency", "weighted highest frequency"]
    assert rates["last output"] == 0
    assert rates["highest frequency"] == 0.5


def test_refusals() -> None:
    law = RelaxedReportsDistribution.from_epsilons(EPSILONS, n_values=2)
    shapeless: dict[str, Any] = {"says": "rows: individuals, columns: reports"}
    for rows, fields in (
        (np.zeros(3, int), shapeless),
        (np.zeros((1, 3)), shapeless),
        (np.zeros((1, 2), int), {"reports": 2, "levels": 3}),
        (np.full((1, 3), 2), {"last": 1}),
        (np.full((1, 3), -1), {"last": 1}),
    ):
        with refused(ArgumentError, **fields):
            guess_by_maximum_likelihood(rows, law)
    with refused(ArgumentError, says="A row of the transcripts is impossible"):
        guess_by_maximum_likelihood(np.array([[0, 1]]), RelaxedReportsDistribution.from_epsilons([1, 1], n_values=2))
