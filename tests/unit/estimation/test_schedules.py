"""Schedules: exact levels that never fall, rounded to the private side."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, datetime
from decimal import Decimal, localcontext
from fractions import Fraction
from itertools import pairwise

import pytest
from tests.refusals import refused

from relaxdp.errors import EpsilonError, PlanError
from relaxdp.estimation.planning import find_margin
from relaxdp.estimation.schedules import (
    _MAX_STEPS,
    ByDate,
    Explicit,
    Geometric,
    Linear,
    NoisySampling,
    Schedule,
    UntilPrecise,
    compute_noisy_sampling_epsilon,
)


def texts(schedule: Schedule) -> list[str]:
    return [str(level) for level in schedule]


def test_explicit() -> None:
    assert texts(Explicit([0.1, "0.50", 1, Decimal(2)])) == ["0.1", "0.5", "1", "2"]
    assert texts(Explicit(["0.5", "0.5"])) == ["0.5", "0.5"]  # the same level again costs nothing


def test_linear() -> None:
    assert texts(Linear("0.1", 1, 10)) == ["0.1", "0.2", "0.3", "0.4", "0.5", "0.6", "0.7", "0.8", "0.9", "1"]
    assert texts(Linear(1, 2, 4)) == ["1", "1.33333", "1.66666", "2"]
    assert texts(Linear("0.5", 3, 2)) == ["0.5", "3"]


def test_geometric() -> None:
    assert texts(Geometric("0.1", "3.2", 6)) == ["0.1", "0.2", "0.4", "0.8", "1.6", "3.2"]
    assert texts(Geometric(1, 2, 3)) == ["1", "1.41421", "2"]


@pytest.mark.parametrize("kind", [Linear, Geometric])
@pytest.mark.parametrize(
    ("first", "last", "steps"), [("0.1", "7", 13), ("0.000123", "45", 50), ("1.23456789", "1.2345679", 5)]
)
def test_levels_are_rounded_down_and_ends_are_kept(
    kind: Callable[..., Schedule], first: str, last: str, steps: int
) -> None:
    levels = list(kind(first, last, steps))
    low, high = Decimal(first), Decimal(last)
    assert (len(levels), levels[0], levels[-1]) == (steps, low, high)
    for place, level in enumerate(levels):
        ratio, turns = Fraction(place, steps - 1), steps - 1
        # Without a root: a geometric level to the power of the turns is first^(turns - place) * last^place.
        wanted, found = Fraction(low) + ratio * Fraction(high - low), Fraction(level)
        if kind is Geometric:
            wanted, found = Fraction(low) ** (turns - place) * Fraction(high) ** place, Fraction(level) ** turns
        assert found <= wanted
        if 0 < place < turns and level != low:
            assert len(level.as_tuple().digits) <= 6
    assert all(old <= new for old, new in pairwise(levels))


def test_noisy_sampling() -> None:
    levels = list(NoisySampling(epsilon_alpha=1, epsilon_beta="0.5", samples=100))
    assert len(levels) == 100
    assert str(levels[9]) == "0.984325"
    for samples, level in enumerate(levels, 1):
        guarantee = compute_noisy_sampling_epsilon(epsilon_alpha=1, epsilon_beta="0.5", samples=samples)
        assert 0 < guarantee - level <= Decimal("1.1e-6")
    assert levels[-1] == Decimal("0.999999")  # the limit, epsilon_alpha, is never reached


@pytest.mark.parametrize("schedule", [Linear(1, 2, 4), Geometric("0.1", 7, 9), NoisySampling("1.25", "0.5", 5)])
def test_a_callers_decimal_context_changes_nothing(schedule: Schedule) -> None:
    levels = list(schedule)
    with localcontext(prec=3):
        assert list(schedule) == levels


def test_by_date() -> None:
    schedule = ByDate({date(2026, 7, 1): 1, date(2026, 1, 1): "0.25", date(2027, 1, 1): 1})
    assert texts(schedule) == ["0.25", "1", "1"]
    assert schedule.get_level(date(2025, 12, 31)) is None
    assert schedule.get_level(date(2026, 1, 1)) == Decimal("0.25")
    assert schedule.get_level(date(2026, 6, 30)) == Decimal("0.25")
    assert schedule.get_level(date(2026, 7, 1)) == 1
    assert schedule.get_level(date(2099, 1, 1)) == 1


def test_until_precise() -> None:
    levels = Linear("0.1", 3, 30)
    until = UntilPrecise(levels, margin=0.05, n=5000, values=4)
    widths = [find_margin(n=5000, planned_values=4, epsilon=level) for level in until]
    assert widths[-1] <= 0.05 < widths[-2]
    assert list(until) == list(levels)[: len(widths)]
    assert until.is_reached
    stricter = UntilPrecise(levels, margin=0.05, n=5000, values=4, simultaneous=True, about="population")
    assert list(stricter)[-1] > list(until)[-1]


def test_until_precise_may_not_be_reached() -> None:
    until = UntilPrecise(Explicit([1, 2]), margin=0.001, n=100, values=2)
    assert texts(until) == ["1", "2"]
    assert not until.is_reached


def test_until_precise_by_date_keeps_the_order() -> None:
    dated = ByDate({date(2026, 1, 1): "0.5", date(2027, 1, 1): 1, date(2028, 1, 1): 4})
    assert texts(UntilPrecise(dated, margin=0.02, n=100_000, values=3)) == ["0.5"]


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: Explicit([]), "The schedule has no level."),
        (lambda: ByDate({}), "The schedule has no level."),
        (lambda: Explicit([1, "0.5"]), "The schedule decreases from 1 to 0.5. A released report cannot"),
        (lambda: ByDate({date(2026, 1, 1): 1, date(2026, 1, 2): 0.5}), "The schedule decreases from 1 to 0.5"),
        (lambda: Linear(2, 1, 3), "The schedule decreases from 2 to 1"),
        (lambda: Geometric(2, 1, 3), "The schedule decreases from 2 to 1"),
        (lambda: Linear(1, 2, 0), "`steps` must be a whole number from 2 to 10,000, not 0."),
        (
            lambda: Geometric(1, 2, 1),
            "`steps` must be a whole number from 2 to 10,000, not 1.",
        ),
        (lambda: Linear(1, 2, _MAX_STEPS + 1), "not 10001."),
        (
            lambda: NoisySampling(1, 1, 0),
            "`samples` must be a whole number from 1 to 10,000, not 0.",
        ),
        (lambda: ByDate({datetime(2026, 1, 1): 1}), "Expected a date without a time"),
        (lambda: ByDate({"2026-01-01": 1}), "Expected a date without a time"),  # type: ignore[dict-item]
    ],
)
def test_mistakes_are_refused_when_made(make: Callable[[], Schedule], sentence: str) -> None:
    with pytest.raises(PlanError) as caught:
        make()
    assert sentence in caught.value.message


def test_other_mistakes() -> None:
    with refused(EpsilonError, says="greater than 0"):
        Linear(0, 1, 3)
    with refused(PlanError, name="margin"):
        UntilPrecise(Explicit([1]), margin=0, n=10, values=2)
    with refused(PlanError, name="n"):
        UntilPrecise(Explicit([1]), margin=0.1, n=0, values=2)
    with refused(PlanError, day="2026-01-01"):
        ByDate({date(2026, 1, 1): 1}).get_level("2026-01-01")  # type: ignore[arg-type]
