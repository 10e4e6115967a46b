"""What a publication costs: the figures of others, bounds from below, and how it is said."""

from __future__ import annotations

import math
from decimal import Decimal

import numpy as np
import pytest
from tests.refusals import refused

import relaxdp as rx
from relaxdp.errors import EpsilonError, PlanError
from relaxdp.estimation.shuffling import (
    RoundedCloneProbabilities,
    SupportTotals,
    bisect_epsilon,
    iterate_clone_probabilities,
)

# What a public program says that computes the clones of Wang et al. 2023 numerically (20 halvings of the local epsilon)
# at delta 1e-6: of any report, of 100 values, and of hashes into so many buckets.
OTHERS = [
    (10_000, "0.1", 0.0027941, 0.0003105, 2, 0.0027941),
    (10_000, "1", 0.0432063, 0.0071841, 3, 0.0379982),
    (10_000, "3", 0.2260809, 0.0889521, 21, 0.1595278),
    (10_000, "4", 0.4108124, 0.2336960, 55, 0.2823143),
    (10_000, "5", 0.7421351, 0.5407000, 149, 0.4862977),
    (100_000, "1", 0.0124302, 0.0020075, 3, 0.0109177),
    (100_000, "4", 0.1181565, 0.0684319, 55, 0.0824395),
]


@pytest.mark.parametrize(("objects", "epsilon", "any_report", "values", "buckets", "hashes"), OTHERS)
def test_as_others_compute_it(
    objects: int, epsilon: str, any_report: float, values: float, buckets: int, hashes: float
) -> None:
    """Three points each. What they leave out, and few objects would need, costs at most three percent here."""
    mechanism = rx.LocalHash(range(100), buckets=buckets)
    ours = [
        rx.shuffling.compute_bound(epsilon, n=objects, delta=1e-6, **of)
        for of in ({}, {"values": 100}, {"values": mechanism})
    ]
    for found, theirs in zip(ours, (any_report, values, hashes), strict=True):
        assert 0.999 * theirs <= found.epsilon <= 1.03 * theirs


def test_the_published_figure_of_clones() -> None:
    """The first clones of Feldman et al. 2021, half as many: their program says from 0.16754 to 0.17279."""
    power = math.exp(4)
    cover = RoundedCloneProbabilities(
        informative=1.0, lean=(power - 1) / (power + 1) / 2, clone=1 / (2 * power), neither=0.0
    )
    found = bisect_epsilon(SupportTotals.from_clone_probabilities(cover, 100_000, 1e-12).compute_delta, 1e-6, 0, 4)
    assert 0.16753 < found < 0.17279
    assert rx.shuffling.compute_bound(4, n=100_000, delta=1e-6).epsilon == Decimal("0.1185")
    assert rx.shuffling.compute_bound(4, n=100_000, delta=1e-6, values=2).epsilon < Decimal("0.113")


@pytest.mark.parametrize("epsilon", [0.01, 1, 4, 9])
@pytest.mark.parametrize("part", [1, 0.5, 0.01])
def test_blocks_of_distances_leave_out_none_and_hide_in_no_more_than_there_is(epsilon: float, part: float) -> None:
    power = math.exp(epsilon)
    farthest = 1 / (power + 1)
    blocks = list(iterate_clone_probabilities(epsilon, part * (power - 1) / (power + 1)))
    if part == 1:
        first = blocks.pop(0)
        assert (first.informative, first.neither) == (1, 0)
        assert first.clone == pytest.approx(blocks[0].clone, rel=1e-9)  # fewer clones than any that it stands for
    assert blocks[0].clone == pytest.approx(part * farthest, rel=0.01)
    for block, nearer in zip(blocks, [*(each.clone for each in blocks[1:]), 0.0], strict=True):
        assert block.informative == pytest.approx(block.clone * (1 + power))
        rest = (1 - nearer * (1 + power)) / power  # of what speaks for neither, at the near end
        assert 0 < 2 * (block.clone - nearer) + block.neither <= rest * (1 + 1e-9)


@pytest.mark.parametrize("objects", [50, 1_000, 100_000])
@pytest.mark.parametrize("epsilon", [0.5, 2, 4])
def test_not_below_two_data_sets(objects: int, epsilon: float) -> None:
    """Everybody else says no, or a third value: the exact law of two such data sets, by another library's tails."""
    from scipy import stats  # noqa: PLC0415 (slow)

    flip, delta = 1 / (math.exp(epsilon) + 1), 1e-6
    others = stats.binom(objects - 1, flip)
    places = range(objects)
    least = 0.0
    for tail in (others.sf(places), others.cdf(places) - others.pmf(places)):  # they said yes; they said no
        own, other = (part * others.pmf(places) + tail for part in (1 - flip, flip))
        least = max(least, math.log(((own - delta)[own > delta] / other[own > delta]).max()))
    found = rx.shuffling.compute_bound(epsilon, n=objects, delta=delta, values=2)
    assert least <= found.epsilon
    assert objects < 100_000 or found.epsilon < 1.005 * least


@pytest.mark.parametrize("values", [3, 12])
def test_not_below_two_data_sets_of_more_values(values: int) -> None:
    """Everybody else has a third value: how many reports there are of the first two is all that differs."""
    from scipy import stats  # noqa: PLC0415 (slow)

    objects, epsilon, delta = 200, 2.0, 1e-4
    power = math.exp(epsilon)
    other = 1 / (power - 1 + values)
    rest = 1 - (power + 1) * other

    first, second = np.meshgrid(np.arange(100), np.arange(100), indexing="ij")
    counts = np.stack([first, second, objects - 1 - first - second], axis=-1)
    cells = np.zeros((101, 101))  # of the others; the first row and column are for totals that cannot be
    cells[1:, 1:] = stats.multinomial.pmf(counts, objects - 1, [other, other, 1 - 2 * other])
    one, two, neither = other * cells[:-1, 1:], other * cells[1:, :-1], rest * cells[1:, 1:]
    law, neighbour = power * one + two + neither, one + power * two + neither
    found = rx.shuffling.compute_bound(epsilon, n=objects, delta=delta, values=values).epsilon
    reached, near = (np.maximum(law - math.exp(part * float(found)) * neighbour, 0).sum() for part in (1, 0.9))
    assert reached <= delta < near


def test_more_objects_cost_less_and_more_epsilon_costs_more() -> None:
    for of in ({}, {"values": 2}, {"values": 200, "mechanism": "unary-optimised"}):
        found = [rx.shuffling.compute_bound(2, n=objects, delta=1e-6, **of).epsilon for objects in (1, 30, 10_000)]
        assert found == sorted(found, reverse=True)
        assert found[0] == 2
        risen = [rx.shuffling.compute_bound(epsilon, n=10_000, delta=1e-6, **of).epsilon for epsilon in ("0.5", 3, 60)]
        assert risen == sorted(risen)
        assert risen[-1] == 60


def test_the_smallest_group_and_the_last_level_count() -> None:
    one = rx.shuffling.compute_bound(2, n=900, delta=1e-6, values=4)
    assert rx.shuffling.compute_bound([0.5, 2, 1], n=[5_000, 900, 1_200], delta=1e-6, values=4) == one
    assert (one.n, str(one.report_epsilon)) == (900, "2")


def test_publications_with_noise_of_their_own_compose() -> None:
    one = rx.shuffling.compute_bound(1, n=50_000, delta=1e-7, values=2).epsilon
    two = rx.shuffling.compute_bound(1, n=50_000, delta=2e-7, values=2, publications=2).epsilon
    many = rx.shuffling.compute_bound(1, n=50_000, delta=1e-5, values=2, publications=100).epsilon
    assert two <= 2 * one * Decimal("1.001")
    assert many < 60 * one  # advanced composition
    assert (
        rx.shuffling.compute_bound(1, n=2, values=2, publications=3).epsilon == 3
    )  # never more than the reports add up to


def test_delta_is_small_beside_the_number_of_objects() -> None:
    assert rx.shuffling.compute_bound(1, n=50).delta == 1e-6
    assert rx.shuffling.compute_bound(1, n=10**7).delta == 1e-8


def test_very_many_objects_take_no_longer() -> None:
    assert (
        rx.shuffling.compute_bound(1, n=10**15, delta=1e-9).epsilon
        <= rx.shuffling.compute_bound(1, n=10**9, delta=1e-9).epsilon
    )


def test_what_it_says() -> None:
    found = rx.shuffling.compute_bound(4, n=100_000, delta=1e-6, values=2)
    assert str(found) == (
        "Towards the public, one publication of a closed group of 100,000 costs each of them at most epsilon 0.08482 "
        "at delta 1e-06; the reports themselves cost epsilon 4 (2 values, k-ary randomized response)."
    )
    several = rx.shuffling.compute_bound(4, n=100_000, delta=1e-6, values=2, publications=3)
    assert "3 publications, each with its own noise," in str(several)
    assert len(found.assumes) == 6


def test_refusals() -> None:
    with refused(PlanError):
        rx.shuffling.compute_bound([], n=10)
    with refused(EpsilonError):
        rx.shuffling.compute_bound(0, n=10)
    for objects in (0, 1.5, [], [5, 0], True):
        with refused(PlanError):
            rx.shuffling.compute_bound(1, n=objects)  # type: ignore[arg-type]
    for delta in (0, 1, -1e-6, math.nan):
        with refused(PlanError):
            rx.shuffling.compute_bound(1, n=10, delta=delta)
    with refused(PlanError):
        rx.shuffling.compute_bound(1, n=10, publications=0)
    with refused(PlanError, name="values", given="1"):
        rx.shuffling.compute_bound(1, n=10, values=1)
    with refused(PlanError):
        rx.shuffling.compute_bound(1, n=10, mechanism="unary-optimised")
    with refused(PlanError):
        rx.shuffling.compute_bound(1, n=10, values=rx.Categorical(["a", "b"]), mechanism="unary-optimised")
