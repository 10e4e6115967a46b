"""The encodings of bits and hashes keep the guarantee of a whole report: all transcripts enumerated in rationals."""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Callable, Sequence
from fractions import Fraction as F
from functools import partial
from math import prod
from typing import Any

import mpmath
import numpy as np
import pytest
from tests.exact.enumeration import compute_transcript_distribution, path_law

from relaxdp.mechanisms import local_hash
from relaxdp.mechanisms.base import Mechanism, TrueValues
from relaxdp.mechanisms.categorical import Unary
from relaxdp.mechanisms.local_hash import LocalHash
from relaxdp.sampling.keyed_stream import Purpose, Words
from relaxdp.theory.epsilon import ONE, as_epsilon, compute_nonzero_threshold
from relaxdp.theory.randomized_response import SupportProbabilities, compute_odds, compute_retention

Report = tuple[int, ...]
Law = dict[tuple[Report, ...], F]  # the law of a transcript: one report per level
SymbolLaw = Callable[[int, Sequence[F], int], dict[tuple[int, ...], F]]
WORD = 8


class Kept:
    """Kept randomness that a test chooses."""

    def __init__(self, **words: int) -> None:
        self._words = words

    def draw_words(self, purpose: Purpose, symbol: Words | int = 0) -> Words:
        return np.array([self._words[purpose]], dtype=np.uint64)


def by_path(alphabet: int, levels: Sequence[F], truth: int) -> dict[tuple[int, ...], F]:
    return path_law(alphabet, [int(level * WORD) for level in levels], truth, one=WORD)


def by_chain(alphabet: int, levels: Sequence[F], truth: int) -> dict[tuple[int, ...], F]:
    return compute_transcript_distribution(alphabet, levels, truth)


def transcript_law(encoding: Mechanism, levels: Sequence[F], index: int, kept: Kept, symbol_law: SymbolLaw) -> Law:
    """The law of the reports at all levels, given what is kept: symbols are independent of one another."""
    truths = TrueValues(np.array([index], dtype=np.uint64))
    symbols = encoding.compute_true_symbols(truths, kept)[0].tolist()
    single = [symbol_law(encoding.alphabet, levels, symbol) for symbol in symbols]
    law: Law = {}
    for parts in itertools.product(*(each.items() for each in single)):
        reports = tuple(zip(*(readings for readings, _ in parts), strict=True))
        law[reports] = prod((chance for _, chance in parts), start=F(1))
    return law


def mixed(laws: Sequence[Law]) -> Law:
    """Equally likely laws, one of which is drawn and kept."""
    result: defaultdict[tuple[Report, ...], F] = defaultdict(F)
    for law in laws:
        for reports, chance in law.items():
            result[reports] += chance / len(laws)
    return dict(result)


def unary_laws(encoding: Mechanism, levels: Sequence[F], symbol_law: SymbolLaw = by_path) -> list[Law]:
    """The laws of all truths; the coin is fair, and is kept."""
    return [
        mixed([transcript_law(encoding, levels, index, Kept(coin=coin), symbol_law) for coin in (0, 1)])
        for index in range(len(encoding.labels))
    ]


def last_law(law: Law) -> dict[Report, F]:
    found: defaultdict[Report, F] = defaultdict(F)
    for reports, chance in law.items():
        found[reports[-1]] += chance
    return found


def check_guarantee(laws: Sequence[Law], most: F) -> None:
    """No transcript is likelier by more than `most` under another truth, and one reaches it."""
    reached = False
    for reports in {reports for law in laws for reports in law}:
        chances = [law.get(reports, F(0)) for law in laws]
        assert max(chances) <= most * min(chances)  # multiplied, not divided: a zero must fail
        reached |= max(chances) == most * min(chances)
    assert reached


def check_posterior(laws: Sequence[Law]) -> None:
    """All reports together say no more about the truth than the last one alone."""
    alone = [last_law(law) for law in laws]
    for reports in {reports for law in laws for reports in law}:
        for one, two in itertools.combinations(range(len(laws)), 2):
            assert laws[one].get(reports, F(0)) * alone[two][reports[-1]] == (
                laws[two].get(reports, F(0)) * alone[one][reports[-1]]
            )


def check_supports(laws: Sequence[Law], levels: Sequence[F], support: Callable[[F], SupportProbabilities]) -> None:
    """At every level, a bit is set with the chance that the estimator assumes; two bits are independent."""
    for index, law in enumerate(laws):
        assert sum(law.values()) == 1
        for place, level in enumerate(levels):
            sup = support(level)
            expected = [sup.hit if value == index else sup.noise for value in range(len(laws))]
            for value, other in itertools.combinations_with_replacement(range(len(laws)), 2):
                both = sum(chance for reports, chance in law.items() if reports[place][value] & reports[place][other])
                assert both == (expected[value] if value == other else expected[value] * expected[other])


LEVELS = [(F(3, 8),), (F(1, 8), F(5, 8)), (F(2, 8), F(2, 8)), (F(1, 8), F(4, 8), F(7, 8))]
ENCODINGS = [(partial(Unary, optimised=False), 2), (Unary, 1)]


@pytest.mark.parametrize(("kind", "power"), ENCODINGS)
@pytest.mark.parametrize("size", [2, 3])
def test_unary(kind: Any, power: int, size: int) -> None:
    encoding = kind(range(size))
    for levels in LEVELS:
        laws = unary_laws(encoding, levels)
        check_guarantee(laws, compute_odds(levels[-1], 2) ** power)
        check_posterior(laws)
        check_supports(laws, levels, encoding.compute_noise_and_gain)
        assert laws == unary_laws(encoding, levels, by_chain)


def test_a_coin_that_is_not_kept_is_caught() -> None:
    """An optimised bit with a fresh coin at every level: two levels together then tell more than the last."""
    encoding, levels = Unary(range(2)), (F(4, 8), F(6, 8))

    def independent(index: int) -> Law:
        single = []
        for level in levels:
            laws = [transcript_law(encoding, (level,), index, Kept(coin=coin), by_path) for coin in (0, 1)]
            single.append(mixed(laws))
        law: Law = {}
        for (low, one), (high, two) in itertools.product(single[0].items(), single[1].items()):
            law[low + high] = one * two
        return law

    with pytest.raises(AssertionError):
        check_guarantee([independent(index) for index in range(2)], compute_odds(levels[-1], 2))


def test_a_coin_that_changes_between_levels_is_caught() -> None:
    """The noise is one path, as it should be, but each level is read with a coin of its own."""
    encoding, levels = Unary(range(2)), (F(4, 8), F(6, 8))
    laws = []
    for index in range(2):
        bits = [by_path(2, levels, 0), by_path(2, levels, 1)]
        assert encoding.symbols == 2
        law: defaultdict[tuple[Report, ...], F] = defaultdict(F)
        for coins in itertools.product((0, 1), repeat=2):
            # The path's draws do not know the truth: it shows only where no draw stands at or above the threshold.
            own: defaultdict[tuple[int, ...], F] = defaultdict(F)
            for readings, chance in path_with_truths(levels, coins).items():
                own[readings] += chance
            for (mine, one), (other, two) in itertools.product(own.items(), bits[0].items()):
                pair = (mine, other) if index == 0 else (other, mine)
                law[tuple(zip(*pair, strict=True))] += one * two / 4
        laws.append(dict(law))
    with pytest.raises(AssertionError):
        check_guarantee(laws, compute_odds(levels[-1], 2))


def path_with_truths(levels: Sequence[F], truths: Sequence[int]) -> dict[tuple[int, ...], F]:
    """The law of a path's readings where each level has a truth of its own: 2 marks a reading of the truth."""
    marked = path_law_of_three(levels)
    law: defaultdict[tuple[int, ...], F] = defaultdict(F)
    for readings, chance in marked.items():
        law[tuple(truths[k] if reading == 2 else reading for k, reading in enumerate(readings))] += chance
    return dict(law)


def path_law_of_three(levels: Sequence[F]) -> dict[tuple[int, ...], F]:
    """Two drawn values and, as a third that is never drawn, the truth."""
    found: defaultdict[tuple[int, ...], F] = defaultdict(F)
    for readings, chance in path_law(2, [int(level * WORD) for level in levels], 2, one=WORD).items():
        found[readings] += chance
    return dict(found)


def test_bits_at_the_whole_epsilon_are_caught() -> None:
    """Symmetric bits with epsilon each, instead of half of it, cost twice the epsilon that was asked for."""
    encoding = Unary(range(2), optimised=False)
    level = F(5, 8)
    laws = unary_laws(encoding, (level,))
    with pytest.raises(AssertionError):
        check_guarantee(laws, compute_odds(level, 2))
    check_guarantee(laws, compute_odds(level, 2) ** 2)


@pytest.mark.parametrize("buckets", [2, 3, 4])
def test_local_hash(buckets: int) -> None:
    """Given any seed of a small prime a transcript is categorical; over all seeds a value is supported in 1/g."""
    bits, levels, size = 3, (F(1, 8), F(5, 8)), 3
    prime = 2**bits - 1
    seeds = np.array([a | b << 32 for a in range(prime) for b in range(prime)], dtype=np.uint64)
    table = local_hash.compute_hash_buckets(
        seeds[:, None], local_hash.compute_hash_points(np.arange(size, dtype=np.uint64), bits=bits), buckets, bits=bits
    )
    laws = {bucket: compute_transcript_distribution(buckets, levels, bucket) for bucket in range(buckets)}
    apart = False
    for row in table.tolist():
        given: list[Law] = [
            {tuple((each,) for each in reports): p for reports, p in laws[bucket].items()} for bucket in row
        ]
        if len(set(row)) > 1:
            apart = True
            check_guarantee(given, compute_odds(levels[-1], buckets))
            check_posterior(given)
        else:  # all truths in one bucket: this seed tells nothing at all
            assert given[0] == given[1] == given[2]
    assert apart
    sizes = [len([z for z in range(prime) if z * buckets // prime == bucket]) for bucket in range(buckets)]
    collide = F(sum(each * each for each in sizes), prime * prime)
    assert 0 <= collide - F(1, buckets) <= F(buckets, 4 * prime * prime)
    for index, value in itertools.product(range(size), repeat=2):
        supported = sum(
            (p for row in table.tolist() for (_, last), p in laws[row[index]].items() if last == row[value]), F(0)
        ) / len(seeds)
        keep = levels[-1]
        same = keep + (1 - keep) / buckets
        if index == value:
            assert supported == same
        else:  # kept and in the same bucket, or drawn anew into the value's bucket
            assert supported == keep * collide + (1 - keep) / buckets


def test_a_seed_that_knows_the_truth_is_caught() -> None:
    """If the seed depends on the truth, the seed alone tells it: here its lowest bit does."""
    levels, buckets = (F(5, 8),), 2
    laws = []
    for index in range(2):
        law: Law = {}
        seeds = [seed for seed in range(8) if seed % 2 == index]
        for seed in seeds:
            where = local_hash.compute_hash_points(np.array([index], np.uint64))
            bucket = int(local_hash.compute_hash_buckets(np.array([seed], np.uint64), where, buckets)[0])
            for (report,), chance in compute_transcript_distribution(buckets, levels, bucket).items():
                law[((seed, report),)] = chance / len(seeds)
        laws.append(law)
    with pytest.raises(AssertionError):
        check_guarantee(laws, compute_odds(levels[-1], buckets))


def test_supports_of_local_hash() -> None:
    encoding, keep = LocalHash(range(5), buckets=4), F(2, 7)
    support = encoding.compute_noise_and_gain(keep)
    assert support.hit == keep + (1 - keep) / 4
    assert support.noise == F(1, 4)
    assert support.debias(F(1, 2)) == (F(1, 2) - F(1, 4)) / (keep * F(3, 4))


@pytest.mark.parametrize(("kind", "power"), ENCODINGS)
@pytest.mark.parametrize("epsilon", ["0.001", "0.7", "1", "3.1", "41"])
def test_thresholds_of_whole_reports(kind: Any, power: int, epsilon: str) -> None:
    """The odds of a whole report stay at or below e^epsilon, and with the next threshold they would not."""
    level = kind(range(3)).threshold(as_epsilon(epsilon))
    with mpmath.workprec(600):
        asked = mpmath.mpf(epsilon)
        for threshold, exceeds in ((level, False), (level + 1, True)):
            ratio = compute_odds(F(threshold, ONE), 2) ** power
            realised = mpmath.log(mpmath.mpf(ratio.numerator) / ratio.denominator)
            assert (realised > asked) == exceeds


def test_the_wrong_threshold_of_symmetric_bits_is_caught() -> None:
    wrong = compute_nonzero_threshold("1", 2)  # the whole epsilon for each bit
    assert compute_odds(compute_retention(wrong), 2) ** 2 > F(3)  # e^1 is below 3, e^2 above it
