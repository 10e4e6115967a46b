"""Bloom filters on the path, in exact arithmetic: joint laws over levels, and the guarantee of 2 h bits."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from fractions import Fraction as F
from itertools import product
from math import prod

import numpy as np
import pytest
from tests.exact.enumeration import compute_transcript_distribution, path_law

from relaxdp.mechanisms.bloom import Bloom, BloomShape, compute_bit_threshold
from relaxdp.theory.randomized_response import (
    compute_log_rounded_up,
    compute_odds,
    compute_report_distribution,
    compute_retention,
)

Transcript = tuple[tuple[int, ...], ...]
LEVELS = [F(1, 4), F(1, 2)]
SMALL = BloomShape(bits=4, hashes=2, cohorts=3)


class _Nothing:
    """A Bloom filter draws nothing of its own but its cohort."""

    def draw_words(self, purpose: str, symbol: object = 0) -> np.ndarray:
        raise AssertionError(purpose)


def filter_of(shape: BloomShape, cohort: int, word: str) -> tuple[int, ...]:
    encoding = Bloom(shape, cohort)
    return tuple(encoding.compute_true_symbols(encoding.read_true_values([word]), _Nothing())[0].tolist())


def transcripts(bits: tuple[int, ...], levels: list[Fraction]) -> dict[Transcript, Fraction]:
    """The joint law of whole reports at all levels: bits are independent, each of them a chain."""
    laws = [compute_transcript_distribution(2, levels, bit) for bit in bits]
    return {
        tuple(zip(*per_bit, strict=True)): prod(
            (law[each] for law, each in zip(laws, per_bit, strict=True)), start=F(1)
        )
        for per_bit in product(*laws)
    }


def worst_ratio(first: dict[Transcript, Fraction], second: dict[Transcript, Fraction]) -> Fraction:
    assert first.keys() == second.keys()
    return max(first[each] / second[each] for each in first)


WORDS = [f"word {number}" for number in range(40)]


@pytest.mark.parametrize("shape", [SMALL, BloomShape(4, 1, 2), BloomShape(3, 2, 2)])
def test_the_guarantee_is_reached_and_not_exceeded(shape: BloomShape) -> None:
    """The worst pair of words differs in 2 h bits (or all, if there are fewer), and the whole transcript says that."""
    claimed = compute_odds(LEVELS[-1], 2) ** shape.max_differing_bits
    reached = F(1)
    for cohort in range(shape.cohorts):
        filters = {filter_of(shape, cohort, word) for word in WORDS}
        laws = {bits: transcripts(bits, LEVELS) for bits in filters}
        for first, second in product(filters, repeat=2):
            ratio = worst_ratio(laws[first], laws[second])
            assert ratio <= claimed
            reached = max(reached, ratio)
    assert reached == claimed


def test_mutant_that_counts_h_bits_is_caught() -> None:
    filters = sorted({filter_of(SMALL, 0, word) for word in WORDS})
    worst = max(
        worst_ratio(transcripts(first, LEVELS), transcripts(second, LEVELS))
        for first, second in product(filters, repeat=2)
    )
    assert worst > compute_odds(LEVELS[-1], 2) ** SMALL.hashes


def test_marginals_are_the_law_of_each_level() -> None:
    bits = filter_of(SMALL, 1, "word 3")
    joint = transcripts(bits, LEVELS)
    assert sum(joint.values()) == 1
    for place, level in enumerate(LEVELS):
        for report in product((0, 1), repeat=4):
            marginal = sum((chance for each, chance in joint.items() if each[place] == report), F(0))
            expected = prod(
                (
                    compute_report_distribution(2, level, truth=bit)[seen]
                    for bit, seen in zip(bits, report, strict=True)
                ),
                start=F(1),
            )
            assert marginal == expected


def test_the_last_report_says_all_that_the_transcript_says() -> None:
    """Collusion: the likelihood ratio of two words given everything equals that given the last report alone."""
    first, second = (transcripts(filter_of(SMALL, 0, word), LEVELS) for word in ("word 0", "word 1"))
    lasts: dict[tuple[int, ...], set[Fraction]] = {}
    for each in first:
        lasts.setdefault(each[-1], set()).add(first[each] / second[each])
    assert all(len(ratios) == 1 for ratios in lasts.values())


def test_each_bit_of_the_path_is_a_chain() -> None:
    """Words of four bits: the path of a bit, read at several thresholds, has the law of Algorithm 1."""
    for bit in (0, 1):
        assert path_law(2, (4, 8), bit, one=16) == compute_transcript_distribution(2, LEVELS, bit)


def test_thresholds_round_to_the_private_side() -> None:
    for shape in (SMALL, BloomShape(128, 2, 64), BloomShape(64, 3, 8), BloomShape(1, 1, 1), BloomShape(1000, 16, 4)):
        for epsilon in ("0.01", "1", "4.394449154672439", "37.5"):
            level = compute_bit_threshold(shape, epsilon)
            here, above = (
                compute_odds(compute_retention(each), 2) ** shape.max_differing_bits for each in (level, level + 1)
            )
            assert here < above
            assert compute_log_rounded_up(here) <= Decimal(epsilon) < compute_log_rounded_up(above)


def test_a_cohort_that_knew_the_word_would_be_caught() -> None:
    """The cohort is public: drawn from the word, it would tell words apart with certainty."""

    def with_cohort(cohorts: dict[str, int], word: str) -> dict[tuple[int, tuple[int, ...]], Fraction]:
        cohort = cohorts[word]
        bits = filter_of(SMALL, cohort, word)
        return {
            (cohort, report): prod(
                (
                    compute_report_distribution(2, LEVELS[-1], truth=bit)[seen]
                    for bit, seen in zip(bits, report, strict=True)
                ),
                start=F(1),
            )
            for report in product((0, 1), repeat=4)
        }

    claimed = compute_odds(LEVELS[-1], 2) ** SMALL.max_differing_bits
    for cohorts, fine in (({"a": 1, "b": 1}, True), ({"a": 1, "b": 2}, False)):
        first, second = (with_cohort(cohorts, word) for word in "ab")
        held = all(first.get(each, F(0)) <= claimed * second.get(each, F(0)) for each in first)
        assert held == fine
