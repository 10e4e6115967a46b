"""Levels: between which ones a new one is drawn, and which ones a listing sells."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from itertools import permutations, product
from typing import Any

import pytest

import relaxdp as rx
from relaxdp.errors import EpsilonError, RelaxdpError
from relaxdp.market.levels import (
    Grid,
    Neighbours,
    better_than,
    check_delivery,
    check_digits,
    check_priced,
    extended,
    grown,
    level_on,
    neighbours,
    of_pool,
    round_levels,
    stated,
)
from relaxdp.market.prices import prices_of
from relaxdp.server_errors import DeliveryError, MarketError, NotAuthorisedError, PriceError, UnknownLevelError
from relaxdp.theory.epsilon import Epsilon, format_epsilon
from relaxdp.theory.randomized_response import Level

THREE = rx.Categorical(["flu", "covid", "none"])
LINEAR = prices_of(None, "10*epsilon")
TO_THREE = prices_of([("0.4", 10), ("3", 90)], None)


def grid_of(*levels: str) -> Grid:
    return tuple(Decimal(level) for level in levels)


def texts(levels: Any) -> list[str]:
    return [format_epsilon(level) for level in levels]


def steps(step: str, first: int, last: int) -> list[str]:
    return [format_epsilon(Decimal(step) * number) for number in range(first, last + 1)]


def at(epsilon: Epsilon) -> Level:
    return THREE.level(epsilon)


def test_what_no_level_should_be_preferred_to() -> None:
    """Of all small offers: who names a better one names one that costs no more, tells no less, and has no better."""
    kinds = [None, *((price, width) for price in (1, 2, 3) for width in (0.1, 0.2))]
    for offers in product(kinds, repeat=3):
        found = better_than(offers)
        for offer, place in zip(offers, found, strict=True):
            others = [] if offer is None else [each for each in offers if each is not None and each != offer]
            behind = [each for each in others if offer is not None and each[0] <= offer[0] and each[1] <= offer[1]]
            assert (place is None) == (behind == [])
            if place is not None:
                assert offers[place] in behind
                assert found[place] is None


def refused(problem: type[RelaxdpError], act: Callable[[], object]) -> dict[str, Any]:
    with pytest.raises(problem) as found:
        act()
    return found.value.fields


# Between which levels a new one is drawn.


@pytest.mark.parametrize("out", list(permutations([2, 7, 9])), ids=str)
def test_a_level_is_drawn_between_its_nearest_neighbours(out: tuple[int, ...]) -> None:
    """In whatever order they came out."""
    found = [neighbours(at(wanted), map(at, out)) for wanted in range(1, 10)]
    blur, low, high = Neighbours(None, at(2)), Neighbours(at(2), at(7)), Neighbours(at(7), at(9))
    assert found == [blur, None, low, low, low, low, None, high, None]


def test_nothing_is_drawn_above_what_was_delivered() -> None:
    refused(NotAuthorisedError, lambda: neighbours(at(10), map(at, [2, 7, 9])))
    refused(NotAuthorisedError, lambda: neighbours(at(1), []))


@pytest.mark.parametrize("level", [1, 5, 6, 9])
def test_a_delivery_at_or_below_another_is_refused(level: int) -> None:
    """One of the delivered levels above it is enough, and not only the last one that came."""
    for delivered in ([at(5), at(9)], [at(9), at(5)]):
        refused(DeliveryError, lambda: check_delivery(at(level), delivered))  # noqa: B023
        check_delivery(at(10), delivered)
    check_delivery(at(level), [])


# Which levels a listing sells.


def test_stated_levels() -> None:
    assert texts(stated(["1", 0.25, Decimal("0.50"), "1.0"], LINEAR)) == ["0.25", "0.5", "1"]
    hundred = steps("0.01", 1, 100)
    assert texts(stated([*hundred, "0.50"], LINEAR)) == hundred
    for wrong in ([], [*hundred, "2"]):
        assert refused(MarketError, lambda: stated(wrong, LINEAR)) == {"most": 100}  # noqa: B023


def test_levels_that_nobody_would_type() -> None:
    seventeen = "0." + "1" * 17
    check_digits(Decimal(seventeen))
    assert texts(stated([seventeen], LINEAR)) == [seventeen]
    refused(EpsilonError, lambda: check_digits(Decimal(seventeen + "1")))
    refused(EpsilonError, lambda: stated(["0.05", seventeen + "1", "1"], LINEAR))


def test_prices_reach_the_last_level() -> None:
    check_priced((), TO_THREE)
    check_priced(grid_of("0.1", "1", "3"), TO_THREE)
    for levels in (grid_of("3.1"), grid_of("1", "2", "3.1")):
        assert refused(PriceError, lambda: check_priced(levels, TO_THREE)) == {"epsilon": "3.1"}  # noqa: B023
    refused(PriceError, lambda: stated(["1", "3.1"], TO_THREE))


@pytest.mark.parametrize(
    ("top", "expected"),
    [
        ("2", steps("0.1", 1, 20)),
        ("2.1", [*steps("0.25", 1, 8), "2.1"]),
        ("5", steps("0.25", 1, 20)),
        ("5.1", [*steps("0.5", 1, 10), "5.1"]),
        ("10", steps("0.5", 1, 20)),
        ("10.1", [*steps("1", 1, 10), "10.1"]),
        ("20", steps("1", 1, 20)),
        ("0.03", steps("0.0025", 1, 12)),
    ],
)
def test_round_levels(top: str, expected: list[str]) -> None:
    """Ten to twenty equal steps, or one more where the last is shorter."""
    assert texts(round_levels(Decimal(top), LINEAR)) == expected


def test_round_levels_begin_at_the_first_point_and_hold_the_others() -> None:
    prices = prices_of([("0.5", 1), ("0.65", 2), ("0.7" + "1" * 16, 3), ("0.8" + "1" * 17, 4), ("1.1", 5)], None)
    inside = ["0.5", "0.6", "0.65", "0.7", "0.7" + "1" * 16]
    assert texts(round_levels(Decimal("1.1"), prices)) == [*inside, *steps("0.1", 8, 11)]
    assert texts(round_levels(Decimal("1.05"), prices)) == [*inside, *steps("0.1", 8, 10), "1.05"]


@pytest.mark.parametrize(("points", "levels"), [(80, 100), (81, 20)])
def test_points_that_are_too_many_for_levels(points: int, levels: int) -> None:
    """Then only the round ones are levels. The first point is one of the steps, and so is the last."""
    between = [(f"0.1{number:03}", number) for number in range(1, points + 1)]
    prices = prices_of([("0.1", 0), *between, ("2", 100)], None)
    found = round_levels(Decimal(2), prices)
    assert len(found) == levels
    assert {*steps("0.1", 1, 20)} <= {*texts(found)}


def test_levels_of_a_pool() -> None:
    assert texts(of_pool(["1", "0.5"], LINEAR, THREE)) == ["0.5", "1"]
    assert texts(of_pool(None, TO_THREE, THREE)) == ["0.4", *steps("0.25", 2, 12)]
    assert texts(of_pool(None, prices_of([("1", 1), ("2", 2), ("4", 4)], None), THREE)) == steps("0.25", 4, 16)
    refused(MarketError, lambda: of_pool(None, LINEAR, THREE))
    refused(PriceError, lambda: of_pool(["4"], TO_THREE, THREE))


def test_a_pool_has_one_level_for_each_threshold() -> None:
    """The least of those that give the same reports; what tells nothing is none."""
    assert texts(of_pool(["60", "1e-30", "50", "1"], LINEAR, THREE)) == ["1", "50"]
    refused(MarketError, lambda: of_pool(["1e-30", "1e-29"], LINEAR, THREE))


def test_a_first_delivery_makes_round_levels() -> None:
    assert texts(grown((), at("0.9"), LINEAR, THREE)) == steps("0.05", 1, 18)
    assert texts(grown((), at("0.9"), TO_THREE, THREE)) == steps("0.05", 8, 18)


@pytest.mark.parametrize(
    ("delivered", "expected"),
    [
        ("0.65", ["0.5", "0.6", "0.65", "1"]),  # below the last level nothing else is added
        ("1", ["0.5", "0.6", "1"]),
        ("1.15", ["0.5", "0.6", "1", "1.1", "1.15"]),
        ("2", ["0.5", "0.6", "1", *steps("0.1", 11, 20)]),
    ],
)
def test_levels_grow_with_a_delivery(delivered: str, expected: list[str]) -> None:
    assert texts(grown(grid_of("0.5", "0.6", "1"), at(delivered), LINEAR, THREE)) == expected


def test_a_delivery_gives_a_level_its_name() -> None:
    assert at(50) == at(70)
    assert texts(grown(grid_of("1", "50"), at(70), LINEAR, THREE)) == ["1", "70"]
    near = "0.50000000000000000000001"
    assert texts(grown(grid_of("0.5", "1"), at(near), LINEAR, THREE)) == [near, "1"]


@pytest.mark.parametrize(
    ("count", "added"),
    [(90, steps("0.1", 11, 20)), (91, ["2"]), (99, ["2"])],
)
def test_a_delivery_where_there_is_little_room(count: int, added: list[str]) -> None:
    """Round levels come between if all of them have room; the delivery needs only its own."""
    grid = grid_of(*steps("0.01", 101 - count, 100))
    assert texts(grown(grid, at(2), LINEAR, THREE)) == [*texts(grid), *added]


def test_a_delivery_where_there_is_no_room() -> None:
    hundred = grid_of(*steps("0.01", 1, 100))
    assert grown(hundred, at("0.5"), LINEAR, THREE) == hundred
    for wrong in ("0.505", "2"):
        assert refused(DeliveryError, lambda: grown(hundred, at(wrong), LINEAR, THREE)) == {"most": 100}  # noqa: B023


def test_levels_are_added_above_what_was_delivered() -> None:
    grid, delivered = grid_of("0.5", "1"), at(2)
    assert texts(extended(grid, ["3", "2.5", "0.5"], LINEAR, delivered, THREE)) == ["0.5", "1", "2.5", "3"]
    assert texts(extended(grid, ["0.7"], LINEAR, None, None)) == ["0.5", "0.7", "1"]
    for wrong in (["2"], ["0.7"], ["1.9", "3"]):
        fields = refused(MarketError, lambda: extended(grid, wrong, LINEAR, delivered, THREE))  # noqa: B023
        assert fields == {"delivered": "2"}
    refused(PriceError, lambda: extended(grid, ["4"], TO_THREE, delivered, THREE))
    refused(PriceError, lambda: extended(grid_of("4"), ["3"], TO_THREE, delivered, THREE))
    hundred = grid_of(*steps("0.01", 1, 100))
    refused(MarketError, lambda: extended(hundred, ["2"], LINEAR, at(1), THREE))


def test_added_levels_with_one_threshold_are_one_as_soon_as_it_is_known() -> None:
    grid, more = grid_of("1"), ["50", "60"]
    assert texts(extended(grid, more, LINEAR, at(1), THREE)) == ["1", "50"]
    assert texts(extended(grid, more, LINEAR, None, None)) == ["1", "50", "60"]


@pytest.mark.parametrize(
    ("asked", "level"),
    [
        ("0.5", "0.5"),
        ("1", "1"),
        ("2", "2"),
        ("1.00000000000000000000001", "1"),
        ("0.99999999999999999999999", "1"),
        ("2.00000000000000000000001", "2"),
        ("0.49999999999999999999999", "0.5"),
    ],
)
def test_what_an_epsilon_means(asked: str, level: str) -> None:
    found = level_on(grid_of("0.5", "1", "2"), Decimal(asked), THREE)
    assert (found, str(found)) == (at(level), level)


@pytest.mark.parametrize(
    ("asked", "below", "above"),
    [("0.7", "0.5", "1"), ("1.5", "1", "2"), ("0.3", None, "0.5"), ("1e-30", None, "0.5"), ("3", "2", None)],
)
def test_what_an_epsilon_does_not_mean(asked: str, below: str | None, above: str | None) -> None:
    """Both neighbours are told, or the one that there is."""
    with pytest.raises(UnknownLevelError) as found:
        level_on(grid_of("0.5", "1", "2"), Decimal(asked), THREE)
    assert found.value.fields == {"epsilon": format_epsilon(Decimal(asked)), "below": below, "above": above}
    near = f"nearest are {below} and {above}." if below and above else f"nearest is {below or above}."
    assert found.value.message.endswith(near)


@pytest.mark.parametrize("asked", ["1.5", "2", "3"])
def test_what_is_more_than_authorised_is_no_level_whether_it_is_on_sale_or_not(asked: str) -> None:
    with pytest.raises(NotAuthorisedError) as found:
        level_on(grid_of("0.5", "1", "2"), Decimal(asked), THREE, at("1"))
    assert found.value.fields == {"epsilon": asked, "authorised": "1"}


@pytest.mark.parametrize("asked", ["0.5", "1", "1.00000000000000000000001"])
def test_what_is_authorised_by_whichever_name(asked: str) -> None:
    """Another name of the delivered level is no more than that; and a delivered level may tell less than its name."""
    delivered = at("1")
    for authorised in (delivered, THREE.level("1", delivered.threshold - 1)):
        if asked in ("0.5", "1") or authorised == delivered:
            found = level_on(grid_of("0.5", "1", "2"), Decimal(asked), THREE, authorised)
            assert found == at("0.5" if asked == "0.5" else "1")


def test_what_tells_nothing_is_not_the_level_that_tells_nothing() -> None:
    """A draft may state a level that these values cannot tell from noise: it has no threshold to be sold at."""
    refused(UnknownLevelError, lambda: level_on(grid_of("1e-30", "1"), Decimal("1e-30"), THREE))
    refused(UnknownLevelError, lambda: level_on(grid_of("1e-30", "1"), Decimal("1e-30"), THREE, at("1")))
