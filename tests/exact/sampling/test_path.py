"""The path is exact: every word is fed, and the joint law over levels is the chain's."""

from __future__ import annotations

import itertools
from fractions import Fraction as F

import pytest
from tests.exact.checks import check_all, check_marginals
from tests.exact.enumeration import Accept, Law, Transcript, compute_transcript_distribution, path_law

from relaxdp.errors import MechanismError
from relaxdp.sampling.keyed_path import find_report, iterate_path_draws, reduce_word_pair


@pytest.mark.parametrize(
    ("values", "one", "places"),
    [(2, 16, (1, 3, 8, 15)), (3, 16, (3, 8, 13)), pytest.param(4, 8, (1, 3, 5, 7), marks=pytest.mark.long)],
)
def test_path_equals_chain(values: int, one: int, places: tuple[int, ...]) -> None:
    """Every transcript of four levels, equal levels included."""
    for thresholds in itertools.combinations_with_replacement(places, 4):
        levels = [F(threshold, one) for threshold in thresholds]
        laws = [path_law(values, thresholds, truth, one=one) for truth in range(values)]
        check_all(laws, values, levels)
        assert laws == [compute_transcript_distribution(values, levels, truth) for truth in range(values)]


@pytest.mark.parametrize(
    ("one", "values"),
    [(8, 5), pytest.param(16, 13, marks=pytest.mark.long), pytest.param(32, 7, marks=pytest.mark.long)],
)
def test_path_equals_chain_for_other_words(one: int, values: int) -> None:
    thresholds = (1, one // 3, one - 1)
    levels = [F(threshold, one) for threshold in thresholds]
    for truth in (0, values - 1):
        assert path_law(values, thresholds, truth, one=one) == compute_transcript_distribution(values, levels, truth)


def test_reading_order_does_not_matter() -> None:
    for order in itertools.permutations((2, 5, 11)):
        law = path_law(3, order, 1, one=16)
        sorted_law: Law = {}
        for reports, chance in law.items():
            key: Transcript = tuple(report for _, report in sorted(zip(order, reports, strict=True)))
            sorted_law[key] = sorted_law.get(key, F(0)) + chance
        assert sorted_law == path_law(3, (2, 5, 11), 1, one=16)


@pytest.mark.parametrize("values", [2, 3, 5, 6])
def test_accept_is_exactly_uniform(values: int) -> None:
    one = 16
    for bound in range(1, one + 1):
        hits = [reduce_word_pair(u, v, bound, values, base=one) for u in range(one) for v in range(one)]
        counts = {(r, v): hits.count((r, v)) for r in range(bound) for v in range(values)}
        assert len(set(counts.values())) == 1
        assert min(counts.values()) > 0
        assert len(hits) - hits.count(None) == sum(counts.values())


def test_the_whole_sampler_on_every_string_of_words() -> None:
    """`iterate_path_draws` and `find_report` together, on all strings of three pairs of 3-bit words.

    A string that is too short for an answer is unresolved: its mass bounds how far a probability may be off.
    """
    one, values, truth, thresholds = 8, 3, 1, (2, 5)
    resolved: dict[Transcript, int] = {}
    unresolved = 0
    pairs = list(itertools.product(range(one), range(one)))
    for words in itertools.product(pairs, repeat=3):
        draws = list(iterate_path_draws(words, values, base=one))
        if draws and draws[-1].position < min(thresholds):
            key = tuple(find_report(draws, threshold, truth=truth) for threshold in thresholds)
            resolved[key] = resolved.get(key, 0) + 1
        else:
            unresolved += 1
    total = len(pairs) ** 3
    for reports, chance in compute_transcript_distribution(values, [F(t, one) for t in thresholds], truth).items():
        assert F(resolved[reports], total) <= chance <= F(resolved[reports] + unresolved, total)
    assert sum(resolved.values()) + unresolved == total
    assert unresolved < total / 2


def one_too_high(u: int, v: int, bound: int, values: int, *, base: int) -> tuple[int, int] | None:
    """The next position may repeat the last one."""
    return reduce_word_pair(u, v, min(bound + 1, base), values, base=base)


def one_too_low(u: int, v: int, bound: int, values: int, *, base: int) -> tuple[int, int] | None:
    """The next position leaves out the highest place."""
    return reduce_word_pair(u, v, max(bound - 1, 1) if bound < base else base, values, base=base)


def modulo_bias(u: int, v: int, bound: int, values: int, *, base: int) -> tuple[int, int] | None:
    """Nothing is rejected."""
    return u % bound, v % values


@pytest.mark.parametrize("mutant", [one_too_high, one_too_low, modulo_bias])
def test_mutants_of_the_position_draw_are_caught(mutant: Accept) -> None:
    thresholds, one = (3, 8), 16

    def check(rule: Accept) -> None:
        levels = [F(threshold, one) for threshold in thresholds]
        laws = [path_law(3, thresholds, truth, one=one, rule=rule) for truth in range(3)]
        check_all(laws, 3, levels)

    check(reduce_word_pair)
    with pytest.raises((AssertionError, MechanismError)):
        check(mutant)


def test_mutant_strict_comparison_is_caught() -> None:
    """`<=` instead of `<` in reading the path keeps the truth too often: a threshold rounded up."""

    def read_up(thresholds: tuple[int, ...]) -> list[Law]:
        return [path_law(3, tuple(t + 1 for t in thresholds), truth, one=16) for truth in range(3)]

    with pytest.raises(AssertionError):
        check_marginals(read_up((3, 8)), 3, [F(3, 16), F(8, 16)])
