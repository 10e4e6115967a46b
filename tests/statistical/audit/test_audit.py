"""The auditor at work: it reaches what is claimed, does not exceed it, and sees mistakes.

All runs are seeded. Bounds are made at a confidence of 1 - 1e-6, which is the false-alarm rate of each check that
nothing is violated; the chance that a mistake is missed, or a bound falls short, is at most 1e-6 as well, by the number
of standard errors that is noted where it matters. The long campaign is `make audit`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import binom

from relaxdp.audit.audit_cases import (
    AuditCase,
    list_faulty_cases,
    list_mechanism_cases,
    list_other_cases,
    list_relaxation_cases,
)
from relaxdp.audit.auditor import AuditResult, _AuditRun, audit
from relaxdp.audit.case_sources import RaisedThresholdCategorical
from relaxdp.audit.guessing_rules import GuessingRule
from relaxdp.audit.transcript_sources import KeyedPathSource, RelaxationSource
from relaxdp.hazmat import SeededEntropy, relax_once
from relaxdp.theory.epsilon import compute_threshold
from relaxdp.theory.randomized_response import NOISE, compute_retention

CONFIDENCE = 1 - 1e-6
Truths = NDArray[np.integer]


def judged(case: AuditCase, trials: int, seed: int = 20260701) -> AuditResult:
    assert case.source is not None
    return audit(
        case.source, case.true_values, claimed_epsilon=case.claimed_epsilon, trials=trials, confidence_level=CONFIDENCE,
        distribution=case.distribution, seed=seed,
    )  # fmt: skip


def of_name(cases: Callable[[], object]) -> list[object]:
    return [pytest.param(case, id=case.name) for case in cases()]  # type: ignore[attr-defined]


@pytest.mark.parametrize("case", of_name(list_relaxation_cases))
def test_relaxation_reaches_its_last_epsilon_and_no_more(case: AuditCase) -> None:
    trials = 1_000_000 if "Algorithm" in case.name else 300_000
    found = judged(case, trials)
    assert not found.is_violated
    epsilon = float(case.claimed_epsilon)
    chance = 1 / (1 + math.exp(-epsilon))
    margin = 10 / math.sqrt(trials * chance * (1 - chance))  # the bound's own 4.9 standard errors, and 5 for luck
    assert found.epsilon_lower_bound > epsilon - margin


@pytest.mark.parametrize("case", of_name(list_mechanism_cases))
def test_every_encoding_keeps_its_word(case: AuditCase) -> None:
    found = judged(case, 30_000 if "bloom" in case.name else 100_000)
    assert not found.is_violated
    assert found.share_of_claim > (0.75 if "bloom" in case.name else 0.85)


@pytest.mark.parametrize("case", of_name(list_other_cases))
def test_other_ways_out_keep_their_word(case: AuditCase) -> None:
    found = judged(case, 2_000 if case.maximum_trials else 100_000)
    assert not found.is_violated
    assert found.share_of_claim > (0.6 if case.maximum_trials else 0.75)


@pytest.mark.parametrize("case", of_name(list_faulty_cases))
def test_mistakes_are_seen(case: AuditCase) -> None:
    # One percent of the threshold at 0.5 is 11 standard errors of 20 million trials, and so it is at larger levels of
    # 5 million; for the others 200,000 trials are 15 and more.
    long = 20_000_000 if case.claimed_epsilon == "0.5" else 5_000_000
    found = judged(case, (case.minimum_trials and long) or 200_000)
    assert found.is_violated, found


def test_the_raised_threshold_is_seen_on_the_path_too() -> None:
    source = KeyedPathSource(RaisedThresholdCategorical(range(2), Fraction(1, 100)), ["4"])
    found = audit(source, [0, 1], claimed_epsilon=4, trials=2_000_000, confidence_level=CONFIDENCE, seed=1)
    assert found.is_violated
    right = RelaxationSource(RaisedThresholdCategorical(range(2), Fraction(0)), ["4"])
    assert not audit(
        right, [0, 1], claimed_epsilon=4, trials=2_000_000, confidence_level=CONFIDENCE, seed=1
    ).is_violated


def violations(audits: int) -> int:
    """How many small audits of a right mechanism, at 90 % and learned from samples alone, say that it is violated."""
    case = next(case for case in list_relaxation_cases() if case.name == "two values, ten levels up to 1, Algorithm 1")
    assert case.source is not None
    return sum(
        audit(case.source, [0, 1], claimed_epsilon=1, trials=2000, confidence_level=0.9, seed=seed).is_violated
        for seed in range(audits)
    )


@pytest.mark.long
def test_bounds_are_as_often_too_high_as_they_say(monkeypatch: pytest.MonkeyPatch) -> None:
    """More violations than this have a chance of 1e-6. An auditor that is judged on what it learned from has more."""
    limit = binom.isf(1e-6, 150, 0.1)
    assert violations(150) <= limit
    draw, count, kept = _AuditRun._draw_training_trials, GuessingRule.count_guesses, {}

    def draw_and_keep(self: _AuditRun) -> Any:
        kept[0] = draw(self)
        return kept[0]

    def count_on_kept(self: GuessingRule, transcripts: Any, is_second: Any) -> tuple[int, int]:
        index, learned = kept[0]
        return count(self, learned[: len(is_second)], index[: len(is_second)])

    monkeypatch.setattr(_AuditRun, "_draw_training_trials", draw_and_keep)
    monkeypatch.setattr(GuessingRule, "count_guesses", count_on_kept)
    assert violations(150) > limit


def test_a_seed_repeats_an_audit() -> None:
    case = next(case for case in list_relaxation_cases() if "Algorithm 1" in case.name)
    assert case.source is not None
    found = [audit(case.source, [0, 1], claimed_epsilon="0.2", trials=1_200_000, seed=seed) for seed in (1, 1, 2)]
    assert found[0] == found[1]
    assert found[0] != found[2]


@pytest.mark.parametrize(("draws", "is_violated"), [(1, False), (2, True)])
def test_too_many_transcripts_to_count(draws: int, is_violated: bool) -> None:
    """Thirty columns of which the truth is in some: a linear score finds it."""
    entropy, keep, generator = SeededEntropy(5), compute_retention(compute_threshold(1, 2)), np.random.default_rng(5)

    def mechanism(truths: Truths) -> Truths:
        columns = generator.integers(0, 2, (len(truths), 30), dtype=np.uint8)
        for place in range(draws):
            truth = truths.astype(np.uint8)
            columns[:, 7 + 3 * place] = relax_once(2, NOISE, keep, truths=truth, last_reports=None, entropy=entropy)
        return columns

    found = audit(mechanism, [0, 1], claimed_epsilon=1, trials=200_000, confidence_level=CONFIDENCE, seed=1)
    assert found.is_violated == is_violated
    assert found.epsilon_lower_bound > 0.93 * draws
    if is_violated:
        assert found.evidence == "a linear score of all columns"


@pytest.mark.parametrize(("scale", "is_violated"), [(1.0, False), (0.8, True)])
def test_real_numbers(scale: float, is_violated: bool) -> None:
    """Laplace noise on a bit: real numbers go into bins. A scale of 0.8 is an epsilon of 1.25."""
    generator = np.random.default_rng(6)
    found = audit(
        lambda truths: truths + generator.laplace(0, scale, len(truths)),
        [0, 1], claimed_epsilon=1, trials=300_000, confidence_level=CONFIDENCE, seed=1,
    )  # fmt: skip
    assert found.is_violated == is_violated
    assert 0.95 / scale < found.epsilon_lower_bound


def test_a_known_score_helps_where_learning_does_not() -> None:
    """The truth hides in the parity of 24 bits, which no linear score and no few columns show."""
    generator = np.random.default_rng(7)

    def mechanism(truths: Truths) -> Truths:
        bits = generator.integers(0, 2, (len(truths), 24), dtype=np.uint8)
        lie = generator.random(len(truths)) > 1 / (1 + math.exp(-2))
        bits[:, 0] = (bits[:, 1:].sum(axis=1) + truths + lie) % 2
        return bits

    def parity(rows: NDArray[np.uint8]) -> NDArray[np.unsignedinteger]:
        return np.asarray(rows.sum(axis=1, dtype=np.uint64) % np.uint64(2))

    blind = audit(mechanism, [0, 1], claimed_epsilon=1, trials=60_000, confidence_level=CONFIDENCE, seed=1)
    assert blind.epsilon_lower_bound < 0.2
    found = audit(
        mechanism, [0, 1], claimed_epsilon=1, trials=60_000, confidence_level=CONFIDENCE, seed=1, score=parity
    )
    assert found.is_violated
    assert found.evidence == "the given score"


def test_the_worst_pair_is_found() -> None:
    """Of five truths two are told apart better than claimed."""
    generator = np.random.default_rng(8)

    def mechanism(truths: Truths) -> Truths:
        epsilon = np.where(truths >= 3, 2.0, 0.5)
        lie = generator.random(len(truths)) > 1 / (1 + np.exp(-epsilon))
        return truths % 2 ^ lie

    found = audit(mechanism, range(5), claimed_epsilon=1, trials=100_000, confidence_level=CONFIDENCE, seed=1)
    assert found.is_violated
    assert found.pair == (3, 4)


def test_a_case_of_few_trials_is_not_enough() -> None:
    """With a hundredth of the trials a threshold 1 % too high hides: the numbers of trials are needed."""
    case = next(case for case in list_faulty_cases() if case.name == "threshold 1 % too high at 0.5")
    assert not judged(replace(case, minimum_trials=0), 200_000).is_violated
