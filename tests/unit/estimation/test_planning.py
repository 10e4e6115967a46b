"""Planning against the intervals themselves: what is promised before a release is what comes after it."""

from __future__ import annotations

from decimal import Context, Decimal
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import binom
from tests.refusals import refused

import relaxdp as rx
from relaxdp.errors import EpsilonError, EstimationError, PlanError
from relaxdp.estimation.frequency import Frequency
from relaxdp.estimation.mechanism_choice import (
    compute_categorical_support,
    compute_debiased_variance,
    rank_mechanisms,
)
from relaxdp.estimation.planning import PlanOptions, find_epsilon, find_margin, find_n, plan_levels
from relaxdp.estimation.result import About, compute_tail_probability
from relaxdp.mechanisms.registry import create_mechanism, get_short_name

ABOUTS: tuple[About, ...] = ("sample", "population")
ASKED: list[PlanOptions] = [
    {},
    {"share": 0.1},
    {"about": "population"},
    {"about": "population", "share": 0.3, "confidence_level": 0.99},
    {"simultaneous": True},
]


def every_interval(
    objects: int, values: int, epsilon: str, tail: float, about: About
) -> tuple[NDArray[np.float64], ...]:
    """The ends of the real intervals for every count that there can be."""
    support = compute_categorical_support(epsilon, values)
    counts = np.arange(objects + 1)
    return Frequency(range(objects + 1), counts, objects, support).compute_unclipped_interval(tail, about)


def count_law(objects: int, truths: int, values: int, epsilon: str, about: About) -> NDArray[np.float64]:
    support = compute_categorical_support(epsilon, values)
    hit, noise = float(support.hit), float(support.noise)
    if about == "population":
        chance = noise + (hit - noise) * truths / objects
        return np.asarray(binom.pmf(np.arange(objects + 1), objects, chance))
    supporting = binom.pmf(np.arange(truths + 1), truths, hit)
    others = binom.pmf(np.arange(objects - truths + 1), objects - truths, noise)
    return np.convolve(supporting, others)


@pytest.mark.parametrize("about", ABOUTS)
@pytest.mark.parametrize(("values", "epsilon"), [(2, "0.5"), (2, "2"), (3, "1"), (5, "4"), (52, "4"), (300, "5")])
@pytest.mark.parametrize("share", [0.3, 0.5])
def test_margin_is_that_of_the_intervals(about: About, values: int, epsilon: str, share: float) -> None:
    """The mean over all counts, with their exact probabilities, of the half-width that comes out."""
    objects = 2000
    low, high = every_interval(objects, values, epsilon, 0.025, about)
    law = count_law(objects, round(share * objects), values, epsilon, about)
    planned = find_margin(n=objects, planned_values=values, epsilon=epsilon, share=share, about=about)
    assert planned == pytest.approx(law @ (high - low) / 2, rel=0.02)


@pytest.mark.parametrize("about", ABOUTS)
@pytest.mark.parametrize("values", [2, 5, 52])
@pytest.mark.parametrize("epsilon", ["0.3", "1", "2", "4", "6"])
def test_without_a_share_no_interval_is_wider(about: About, values: int, epsilon: str) -> None:
    for objects, slack in [(100, 1.06), (1000, 1.01)]:
        low, high = (np.clip(end, 0, 1) for end in every_interval(objects, values, epsilon, 0.025, about))
        worst = find_margin(n=objects, planned_values=values, epsilon=epsilon, about=about)
        assert ((high - low) / 2).max() <= slack * worst
        shares = [
            find_margin(n=objects, planned_values=values, epsilon=epsilon, about=about, share=share)
            for share in np.linspace(0, 1, 201)
        ]
        assert max(shares) == pytest.approx(worst, rel=1e-3)
        assert max(shares) <= worst * (1 + 1e-12)


def test_simultaneous_and_other_confidence_levels() -> None:
    levels: list[PlanOptions] = [{"share": 0.5, "simultaneous": True}, {"share": 0.5, "confidence_level": 0.8}]
    for asked in levels:
        tail = compute_tail_probability(asked.get("confidence_level", 0.95), 4 if "simultaneous" in asked else 1)
        low, high = every_interval(4000, 4, "1", tail, "sample")
        middle = round(
            4000 * float(compute_categorical_support("1", 4).noise + compute_categorical_support("1", 4).gain / 2)
        )
        planned = find_margin(n=4000, planned_values=4, epsilon=1, **asked)
        assert planned == pytest.approx((high - low)[middle] / 2, rel=0.01)


def test_share_variance_is_that_of_the_estimate() -> None:
    support = compute_categorical_support("1.3", 4)
    estimate = Frequency(range(4), np.array([500, 300, 200, 0]), 1000, support)
    shares = np.clip(estimate.value, 0, 1)
    for about in ABOUTS:
        variances = [compute_debiased_variance(support, share, about) / 1000 for share in shares]
        assert np.sqrt(variances) == pytest.approx(estimate.compute_std_error(about), rel=1e-12)


@pytest.mark.parametrize("asked", ASKED)
@pytest.mark.parametrize(("objects", "values"), [(1000, 2), (100_000, 5), (10**9, 1000)])
@pytest.mark.parametrize("wanted", [0.04, 0.2, 0.49])
def test_epsilon_for_is_the_smallest(asked: PlanOptions, objects: int, values: int, wanted: float) -> None:
    epsilon = find_epsilon(wanted, n=objects, planned_values=values, **asked)
    assert len(epsilon.as_tuple().digits) <= 4
    assert find_margin(n=objects, planned_values=values, epsilon=epsilon, **asked) <= wanted
    below = Context(prec=4).next_minus(epsilon)
    assert find_margin(n=objects, planned_values=values, epsilon=below, **asked) > wanted


@pytest.mark.parametrize("asked", ASKED)
@pytest.mark.parametrize(("epsilon", "values"), [("0.01", 2), ("1", 5), ("6", 1000), ("60", 2)])
@pytest.mark.parametrize("wanted", [0.0003, 0.01, 0.4])
def test_objects_for_is_the_smallest(asked: PlanOptions, epsilon: str, values: int, wanted: float) -> None:
    objects = find_n(wanted, epsilon=epsilon, planned_values=values, **asked)
    assert find_margin(n=objects, planned_values=values, epsilon=epsilon, **asked) <= wanted
    if objects > 1:
        assert find_margin(n=objects - 1, planned_values=values, epsilon=epsilon, **asked) > wanted


def test_some_plans_cannot_be_met() -> None:
    with refused(PlanError, margin=0.03, n=1000, says="even without noise") as caught:
        find_epsilon(0.03, n=1000, planned_values=5, about="population")
    assert caught.value.message.endswith(
        ": even without noise, the margin is 0.0315. Plan for more individuals, or for a margin above 0.0315."
    )
    assert caught.value.fields["least_margin"] == pytest.approx(1.96 * 0.5 / 1000**0.5 + 0.0005, rel=1e-4)
    assert find_epsilon(0.0316, n=1000, planned_values=5, about="population") > 5
    with refused(PlanError, least_margin=pytest.approx(0.005)):  # half a report of 100
        find_epsilon(0.004, n=100, planned_values=5)


def test_extremes_are_planned_or_refused_at_once() -> None:
    with refused(PlanError, margin=0.001, epsilon="0.000000001"):
        find_n(0.001, epsilon="1e-9", planned_values=2)
    almost = find_n(0.4, epsilon="2e-7", planned_values=2)
    assert find_margin(n=almost, planned_values=2, epsilon="2e-7") <= 0.4
    tiny = find_epsilon(0.49, n=10**15, planned_values=2)
    assert find_margin(n=10**15, planned_values=2, epsilon=tiny) <= 0.49
    large = find_epsilon(0.00051, n=1000, planned_values=2**32)
    assert find_margin(n=1000, planned_values=2**32, epsilon=large) <= 0.00051


def test_nothing_is_wider_than_knowing_nothing() -> None:
    assert find_margin(n=1, planned_values=100, epsilon="0.001") == 0.5


def test_steps() -> None:
    found = plan_levels(["0.1", 1, 2], n=100_000, planned_values=5, margin=0.012, share=0.2)
    assert [step.epsilon for step in found] == [Decimal("0.1"), 1, 2]
    assert [step.is_precise for step in found] == [False, True, True]
    assert found[1].margin == find_margin(n=100_000, planned_values=5, epsilon=1, share=0.2)
    assert {step.is_precise for step in plan_levels([1, 2], n=10, planned_values=2)} == {None}
    assert plan_levels(["0.001"], n=1, planned_values=2)[0].margin == 0.5


def test_mistakes() -> None:
    for wanted in (0, -0.1, 0.5, 2, float("nan")):
        with refused(PlanError, name="margin", high=0.5, example="a margin such as margin=0.01"):
            find_epsilon(wanted, n=100, planned_values=2)
        with refused(PlanError, name="margin"):
            find_n(wanted, epsilon=1, planned_values=2)
        with refused(PlanError, name="margin"):
            plan_levels([1], n=100, planned_values=2, margin=wanted)
    for objects in (0, -5, 10.5, 10**15 + 1):
        with refused(PlanError, name="n"):
            find_margin(n=objects, planned_values=2, epsilon=1)  # type: ignore[arg-type]
    with refused(PlanError, name="values", given="1"):
        find_margin(n=10, planned_values=1, epsilon=1)
    with refused(PlanError, name="share", given="1.5"):
        find_margin(n=10, planned_values=2, epsilon=1, share=1.5)
    with refused(EstimationError, name="confidence_level", given="95"):
        find_margin(n=10, planned_values=2, epsilon=1, confidence_level=95)
    with refused(EstimationError, about="everything"):
        find_margin(n=10, planned_values=2, epsilon=1, about="everything")  # type: ignore[arg-type]
    with pytest.raises(EpsilonError):
        find_margin(n=10, planned_values=2, epsilon=0)


# Every encoding, and pairs.


def simulated(mechanism: Any, objects: int, epsilon: int, share: float, rng: Any) -> float:
    """The half-width of the interval of one value, from counts as the law makes them."""
    counts = rx.Counts(mechanism)
    encoding = mechanism
    support = encoding.compute_noise_and_gain(encoding.level(epsilon).retention)
    truths = np.array([share, *np.full(len(encoding.labels) - 1, (1 - share) / (len(encoding.labels) - 1))])
    if encoding.joint == "exclusive":
        found = rng.multinomial(objects, float(support.noise) + float(support.gain) * truths)
    else:
        found = rng.binomial(objects, float(support.noise) + float(support.gain) * truths)
    counts.add_counts(found, epsilon=epsilon, n=objects)
    low, high = counts.estimate().interval()
    return float((np.atleast_1d(high) - np.atleast_1d(low))[0] / 2)


@pytest.mark.parametrize("epsilon", [1, 3])
@pytest.mark.parametrize("encoding", ["categorical", "unary-optimised", "unary-symmetric", "local-hash", "numeric"])
def test_plans_of_every_encoding_are_as_wide_as_the_intervals(encoding: str, epsilon: int) -> None:
    rng, objects = np.random.default_rng(3), 50_000
    declared: Any = {"range": (0, 1)} if encoding == "numeric" else {"values": range(8)}
    mechanism = create_mechanism(encoding, epsilon=epsilon if encoding == "local-hash" else None, **declared)
    share = 0.5 if encoding == "numeric" else 0.3
    known: Any = {} if encoding == "numeric" else {"share": share}
    planned = rx.plan(values=mechanism, n=objects, epsilon=epsilon, **known).margin
    widths = [simulated(mechanism, objects, epsilon, share, rng) for _ in range(20)]
    assert planned == pytest.approx(np.mean(widths), rel=0.05)
    if encoding != "numeric":  # a number of values and a name plan the same
        assert rx.plan(values=8, mechanism=encoding, n=objects, epsilon=epsilon, **known).margin == planned


@pytest.mark.parametrize("encoding", ["categorical", "unary-optimised"])
def test_a_pair_of_values(encoding: str) -> None:
    """At worst: no cell of a table is wider by more than 5 percent, and the widest one is not much narrower."""
    planned = rx.plan(values=4, crosstab=3, mechanism=encoding, n=20_000, epsilon=2).margin
    assert planned is not None
    key, ids = rx.Key.from_bytes(bytes(range(32))), np.arange(20_000)
    mechanisms = [create_mechanism(encoding, values=range(size)) for size in (4, 3)]
    widest = []
    for truths in (np.zeros(20_000, int), ids % 3, ids % 2):
        reports = [
            each.release(truths, ids, key=key, epsilon=2, name="r", column=f"{place}")
            for place, each in enumerate(mechanisms)
        ]
        pairs = rx.crosstab(mechanisms[0], reports[0], mechanisms[1], reports[1], row_epsilon=2, column_epsilon=2)
        low, high = pairs.compute_unclipped_interval(0.025, "sample")
        widest.append(float(np.max(high - low)) / 2)
    assert 0.9 * planned <= max(widest) <= 1.05 * planned


def test_the_mechanism_is_the_best_one_unless_it_is_stated() -> None:
    made = rx.plan(values=700, n=100_000, epsilon=1)
    assert made.mechanism == get_short_name(rank_mechanisms(700, 1).best) == "olh"
    found = rx.plan(values=700, n=100_000, margin=0.02)
    assert found.mechanism == "olh"
    assert found.margin is not None
    assert found.margin <= 0.02
    table = rx.plan(values=30, n=10_000)
    assert [level.mechanism for level in table.levels if level.epsilon in (1, 4)] == ["oue", "k-ary"]
    # A schedule is one path: its mechanism is that of its last level.
    schedule = rx.plan(values=30, n=10_000, schedule=[1, 4])
    assert {level.mechanism for level in schedule.levels} == {"k-ary"}
