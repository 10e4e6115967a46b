"""What a publication costs: never below the exact delta of any data set, enumerated in fractions."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from decimal import ROUND_FLOOR, Context, Decimal
from fractions import Fraction as F
from itertools import combinations_with_replacement, permutations, product
from math import comb
from typing import Any

import numpy as np
import pytest
from tests.exact.enumeration import compute_transcript_distribution

import relaxdp as rx
from relaxdp.estimation import shuffling
from relaxdp.estimation.shuffling import compute_clone_probabilities as cover_reports
from relaxdp.estimation.shuffling import compute_total_variation_bound
from relaxdp.mechanisms.base import Mechanism
from relaxdp.mechanisms.bloom import Bloom, BloomShape
from relaxdp.mechanisms.local_hash import LocalHash
from relaxdp.mechanisms.registry import create_mechanism
from relaxdp.theory.epsilon import compute_nonzero_threshold
from relaxdp.theory.randomized_response import CloneProbabilities, compute_retention

Law = dict[Any, F]
EXACT = Context(prec=60)
DELTAS = (0.05, 1e-3, 1e-6)


def response(epsilon: str, values: int) -> list[Law]:
    """The law of a categorical report of each truth, at the retention that is really used."""
    keep = compute_retention(compute_nonzero_threshold(epsilon, values))
    return [{r: (1 - keep) / values + (keep if r == truth else 0) for r in range(values)} for truth in range(values)]


def shuffled_law(laws: Sequence[Law]) -> Law:
    """The law of all reports without their order: how often each occurs."""
    found: Law = {(): F(1)}
    for law in laws:
        longer: Law = defaultdict(F)
        for (many, chance), (report, own) in product(found.items(), law.items()):
            if own:
                longer[tuple(sorted((*many, report), key=repr))] += chance * own
        found = longer
    return found


def delta_of(one: Law, other: Law, epsilon: Decimal) -> F:
    """The exact delta of two laws."""
    power = F(EXACT.exp(epsilon))
    return sum((max(chance - power * other.get(seen, F(0)), F(0)) for seen, chance in one.items()), F(0))


def neighbours(laws: Sequence[Law], objects: int) -> Iterator[tuple[Law, Law]]:
    """What is seen of all data sets that differ in the truth of one object."""
    for others in combinations_with_replacement(laws, objects - 1):
        seen = [shuffled_law([law, *others]) for law in laws]
        yield from permutations(seen, 2)


def worst_delta(pairs: Sequence[tuple[Law, Law]], epsilon: Decimal) -> F:
    return max(delta_of(one, other, epsilon) for one, other in pairs)


CASES = [(values, objects, epsilon) for values, most in ((2, 6), (3, 4)) for objects in range(1, most + 1)
         for epsilon in ("0.5", "1.5", "4")]  # fmt: skip


@pytest.fixture(scope="module")
def exact() -> dict[tuple[int, int, str], list[tuple[Law, Law]]]:
    return {
        (values, objects, epsilon): list(neighbours(response(epsilon, values), objects))
        for values, objects, epsilon in CASES
    }


def fails(exact: dict[Any, Any], more: int = 0) -> list[tuple[int, int, str, float]]:
    """The cases in which a bound of so many objects, or of more than there are, is exceeded."""
    return [
        (values, objects, epsilon, delta)
        for values, objects, epsilon in CASES
        for delta in DELTAS
        if worst_delta(
            exact[values, objects, epsilon],
            rx.shuffling.compute_bound(epsilon, n=objects + more, delta=delta, values=values).epsilon,
        )
        > F(delta)
    ]


def test_no_data_set_exceeds_the_bound(exact: dict[Any, Any]) -> None:
    assert not fails(exact)


def test_one_object_less_than_was_said_would_be_seen(exact: dict[Any, Any]) -> None:
    assert len(fails(exact, more=1)) > 10


def test_rounding_down_would_be_seen(exact: dict[Any, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shuffling, "ROUND_CEILING", ROUND_FLOOR)
    assert len(fails(exact)) > 10


def test_what_speaks_for_neither_must_hide_too(exact: dict[Any, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """As if all that is no clone hid it: the bound of others, which is exceeded where few objects report."""
    of = shuffling.RoundedCloneProbabilities.from_exact

    def mutant(cover: CloneProbabilities) -> shuffling.RoundedCloneProbabilities:
        hidden = of(cover)
        return hidden if hidden.informative == 1 else replace(hidden, neither=(1 - 2 * hidden.clone) * (1 - 1e-9))

    monkeypatch.setattr(shuffling.RoundedCloneProbabilities, "from_exact", mutant)
    failed = fails(exact)
    assert (3, 2, "1.5", 1e-3) in failed
    assert {values for values, *_ in failed} == {3}


@pytest.mark.parametrize("values", [2, 3])
def test_the_bound_is_reached(exact: dict[Any, Any], values: int) -> None:
    """Nothing is given away: one in the last digit less, and a data set exceeds it."""
    for objects, delta in product((2, 3, 4), (0.05, 1e-3)):
        found = rx.shuffling.compute_bound("1.5", n=objects, delta=delta, values=values).epsilon
        if found < Decimal("1.5"):
            assert worst_delta(exact[values, objects, "1.5"], found * Decimal("0.998")) > F(delta)


def rows_of(encoding: Mechanism, keep: F) -> list[Law]:
    """The law of a row of bits, of each truth, from the chances of a bit."""
    support, values = encoding.compute_noise_and_gain(keep), len(encoding.labels)
    laws = []
    for truth in range(values):
        ones = [support.hit if place == truth else support.noise for place in range(values)]
        laws.append({row: _product(ones, row) for row in product((0, 1), repeat=values)})
    return laws


def _product(ones: Sequence[F], row: Sequence[int]) -> F:
    chance = F(1)
    for one, bit in zip(ones, row, strict=True):
        chance *= one if bit else 1 - one
    return chance


def hashes_of(keep: F, values: int, buckets: int) -> list[Law]:
    """The law of seed and bucket, where the seeds are all functions from values to buckets."""
    seeds = list(product(range(buckets), repeat=values))
    return [
        {(seed, b): ((1 - keep) / buckets + (keep if seed[truth] == b else 0)) / len(seeds)
         for seed, b in product(seeds, range(buckets))}
        for truth in range(values)
    ]  # fmt: skip


def filters_of(keep: F, sets: Sequence[Sequence[int]]) -> list[Law]:
    """The law of the bits of Bloom filters."""
    same, other = (1 + keep) / 2, (1 - keep) / 2
    return [
        {row: _product([same if bit else other for bit in truth], row) for row in product((0, 1), repeat=len(truth))}
        for truth in sets
    ]


def variation(one: Law, other: Law) -> F:
    return sum((abs(one[seen] - other[seen]) for seen in one), F(0)) / 2


@pytest.mark.parametrize("name", ["unary-symmetric", "unary-optimised", "local-hash", "bloom"])
def test_bits_and_hashes(name: str) -> None:
    mechanism: Any
    if name == "bloom":
        mechanism = Bloom(BloomShape(bits=4, hashes=2, cohorts=1))
    else:
        mechanism = (
            rx.LocalHash(["a", "b"], buckets=3)
            if "hash" in name
            else create_mechanism(name, values=["a", "b", "c"], epsilon=2)
        )
    encoding = mechanism
    keep = encoding.level(2).retention
    laws = {
        "local-hash": lambda: hashes_of(keep, 2, 3),
        "bloom": lambda: filters_of(keep, [(1, 1, 0, 0), (0, 0, 1, 1), (1, 0, 1, 0)]),
    }.get(name, lambda: rows_of(encoding, keep))()
    farthest = max(variation(one, other) for one, other in permutations(laws, 2))
    if name == "local-hash":  # some seeds hash both values into one bucket
        assert compute_total_variation_bound(encoding, keep) * (1 - F(1, 3)) == farthest
    else:
        assert compute_total_variation_bound(encoding, keep) == farthest
    objects = 2 if name in ("local-hash", "bloom") else 3
    pairs = list(neighbours(laws, objects))
    for delta in DELTAS:
        found = rx.shuffling.compute_bound(2, n=objects, delta=delta, values=mechanism)
        assert worst_delta(pairs, found.epsilon) <= F(delta)
        assert found.epsilon <= rx.shuffling.compute_bound(2, n=objects, delta=delta).epsilon


def covers(cover: CloneProbabilities, laws: Sequence[Law]) -> bool:
    """Whether any two laws are what the cover says, and all of them have as much of it as it says.

    What speaks for one of two truths is what is likelier with it; of the rest, as much as all laws have of it.
    """
    for one, other in permutations(laws, 2):
        told = {seen: (one[seen] - other[seen]) / (cover.own - cover.clone) for seen in one}
        for_one, for_other = ({seen: max(sign * part, F(0)) for seen, part in told.items()} for sign in (1, -1))
        if sum(for_one.values()) != 1:
            return False
        rest = {seen: one[seen] - cover.own * for_one[seen] - cover.clone * for_other[seen] for seen in one}
        least = {s: min(law[s] - cover.clone * (for_one[s] + for_other[s]) for law in laws) for s in one}
        if min(rest.values()) < 0 or min(least.values()) < 0:
            return False
        if sum(min(rest[seen], least[seen]) for seen in one) < cover.neither:
            return False
    return True


def test_covers() -> None:
    keep = F(2, 5)
    for name in ("unary-symmetric", "unary-optimised"):
        encoding = create_mechanism(name, values=["a", "b", "c"])
        cover = cover_reports(encoding, keep)
        assert cover is not None
        assert covers(cover, rows_of(encoding, keep))
        assert not covers(replace(cover, clone=cover.clone * F(11, 10)), rows_of(encoding, keep))
        assert not covers(replace(cover, neither=cover.neither + F(1, 2)), rows_of(encoding, keep))
    laws = [{r: (1 - keep) / 4 + (keep if r == truth else 0) for r in range(4)} for truth in range(4)]
    assert CloneProbabilities.from_one_symbol(keep, 4) == CloneProbabilities(
        own=F(11, 20), clone=F(3, 20), neither=F(6, 20)
    )
    assert CloneProbabilities.from_one_symbol(keep, 4, F(1, 2)) == CloneProbabilities(
        own=F(11, 40), clone=F(3, 40), neither=F(6, 40)
    )
    assert covers(CloneProbabilities.from_one_symbol(keep, 4), laws)
    assert not covers(CloneProbabilities.from_one_symbol(keep, 3), laws)
    for buckets in (2, 3):  # of all functions, one in so many hashes both values into one bucket
        share = 1 - F(1, buckets)
        assert covers(CloneProbabilities.from_one_symbol(keep, buckets, share), hashes_of(keep, 3, buckets))
        hashed = cover_reports(LocalHash(["a", "b", "c"], buckets=buckets), keep)
        assert hashed is not None
        exact = CloneProbabilities.from_one_symbol(keep, buckets, share)
        assert exact.clone * (1 - F(1, 10**8)) < hashed.clone < exact.clone


@pytest.mark.parametrize("name", ["categorical", "numeric", "wave", "numeric-missing"])
def test_a_single_symbol_is_as_far_apart_as_it_is_kept(name: str) -> None:
    encoding = create_mechanism(
        name, **({"values": ["a", "b"]} if name == "categorical" else {"range": (0.0, 1.0)}), epsilon=2
    )
    assert compute_total_variation_bound(encoding, F(1, 3)) == F(1, 3)


def test_whatever_the_reports_are() -> None:
    """Channels of three truths and four reports, drawn at random: all keep their own epsilon."""
    generator = np.random.default_rng(5)
    for _ in range(30):
        weights = generator.choice([1, 2, 4, 7], size=(3, 4)).tolist()
        laws = [{report: F(one, sum(row)) for report, one in enumerate(row)} for row in weights]
        odds = max(one[report] / other[report] for one, other in permutations(laws, 2) for report in one)
        if odds == 1:
            continue
        epsilon = EXACT.next_plus(EXACT.ln(Decimal(odds.numerator) / Decimal(odds.denominator)))
        pairs = list(neighbours(laws, 3))
        for delta in (0.05, 1e-3):
            found = rx.shuffling.compute_bound(round(epsilon + Decimal("1e-12"), 12), n=3, delta=delta)
            assert worst_delta(pairs, found.epsilon) <= F(delta)


@pytest.mark.parametrize("values", [2, 3])
def test_all_levels_together_cost_the_last_one(values: int) -> None:
    """Rows of all reports in random order, and also every level in an order of its own."""
    said = ("0.5", "1", "2") if values == 2 else ("0.5", "2")
    levels = [compute_retention(compute_nonzero_threshold(epsilon, values)) for epsilon in said]
    laws = [compute_transcript_distribution(values, levels, truth) for truth in range(values)]
    last = response("2", values)
    for others in combinations_with_replacement(range(values), 2):
        rows = [shuffled_law([laws[truth], *(laws[other] for other in others)]) for truth in (0, 1)]
        ends = [shuffled_law([last[truth], *(last[other] for other in others)]) for truth in (0, 1)]
        apart = [_each_level_sorted(law) for law in rows]
        for epsilon in (Decimal("0.3"), Decimal("0.9"), Decimal("1.5")):
            assert delta_of(rows[0], rows[1], epsilon) == delta_of(ends[0], ends[1], epsilon)
            assert delta_of(apart[0], apart[1], epsilon) <= delta_of(ends[0], ends[1], epsilon)
    assert rx.shuffling.compute_bound(said, n=3, delta=1e-3, values=values) == rx.shuffling.compute_bound(
        2, n=3, delta=1e-3, values=values
    )


def _each_level_sorted(law: Law) -> Law:
    found: Law = defaultdict(F)
    for rows, chance in law.items():
        found[tuple(tuple(sorted(level)) for level in zip(*rows, strict=True))] += chance
    return found


def test_groups_that_overlap_do_not_compose() -> None:
    """Everybody, and everybody but one: the difference is the one's report. No bound is offered for it."""
    laws, delta = response("4", 2), 0.001
    composed = 2 * rx.shuffling.compute_bound(4, n=2_000, delta=delta / 2, values=2).epsilon
    assert composed < Decimal("3.9")  # as if two such publications were two of their own
    assert delta_of(laws[0], laws[1], composed) > F(delta)  # but together they are the bare report


def test_other_questions_about_the_same_objects_add_up() -> None:
    """A survey of two questions, both published: neither bound holds for both together, and their sum does."""
    laws, delta = response("1.5", 2), 0.05
    one = rx.shuffling.compute_bound("1.5", n=3, delta=delta, values=2)
    seen = [shuffled_law([laws[truth], laws[0], laws[1]]) for truth in (0, 1)]
    both = [{(a, b): p * q for (a, p), (b, q) in product(law.items(), repeat=2)} for law in seen]
    assert delta_of(both[0], both[1], one.epsilon) > F(2 * delta)
    assert delta_of(both[0], both[1], 2 * one.epsilon) <= F(2 * delta)
    two = rx.shuffling.compute_bound("1.5", n=3, delta=2 * delta, values=2, publications=2)
    assert delta_of(both[0], both[1], two.epsilon) <= F(2 * delta)
    assert any("other questions" in each for each in one.assumes)


def test_one_object_alone_has_no_bound() -> None:
    assert rx.shuffling.compute_bound(2, n=1, values=2).epsilon == 2


def tail(trials: int, least: int) -> F:
    return F(sum(comb(trials, heads) for heads in range(least, trials + 1)), 2**trials)


def test_tails_and_chances_are_right_to_the_stated_part() -> None:
    for trials in (1, 7, 900):
        for least in {0, 1, trials // 2, int(trials / 2 + 3 * trials**0.5), trials, trials + 1}:
            if 0 < tail(trials, least) < F(1e-290):  # smaller than floats are; so is what it stands for
                continue
            found = float(shuffling._compute_coin_tail(np.array([float(trials)]), np.array([float(least)]))[0])
            assert abs(F(found) - tail(trials, least)) <= F(shuffling._SLACK) / 100 * tail(trials, least)
    for trials, chance in ((1, F(1, 3)), (40, F(1, 7)), (1_500, F(1, 50))):
        low, high = shuffling._compute_binomial_window(trials, float(chance), 1e-12)
        law = shuffling._compute_binomial_probabilities(trials, float(chance), low, high)
        truths = [comb(trials, x) * chance**x * (1 - chance) ** (trials - x) for x in range(low, high + 1)]
        assert 1 - sum(truths) <= F(1e-12)
        for one, truth in zip(law.tolist(), truths, strict=True):
            assert truth * (1 - F(shuffling._SLACK) / 100) <= F(one) <= truth * (1 + F(shuffling._SLACK) / 100)


def test_two_ways_to_a_tail_agree_where_fractions_cannot_go() -> None:
    for trials in (10**5, 10**7, 10**9):
        low, high = shuffling._compute_binomial_window(trials, 0.5, 1e-30)
        law = shuffling._compute_binomial_probabilities(trials, 0.5, low, high)
        for deviations in (0.5, 3, 5, 7):
            least = int(trials / 2 + deviations * trials**0.5 / 2)
            found = float(shuffling._compute_coin_tail(np.array([float(trials)]), np.array([float(least)]))[0])
            assert found == pytest.approx(law[least - low :].sum(), rel=shuffling._SLACK / 3)


def test_a_long_sum_is_as_good_as_a_short_one() -> None:
    generator = np.random.default_rng(1)
    first, second = generator.random(3_000), generator.random(2_500)
    first, second = first / first.sum(), second / second.sum()
    law, error = shuffling._convolve(first, second)
    assert error > 0
    assert np.abs(law - np.convolve(first, second)).max() < error / 10
    assert shuffling._convolve(first[:10], second[:10])[1] == 0
