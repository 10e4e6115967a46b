"""Prices: exact, rounded up, never falling, never changed while on sale; and no way around them."""

from __future__ import annotations

import random
from collections.abc import Sequence
from decimal import Context, Decimal, localcontext
from fractions import Fraction
from functools import lru_cache, partial
from itertools import chain, combinations, combinations_with_replacement, pairwise, product
from typing import Any

import pytest

from relaxdp.errors import EpsilonError
from relaxdp.market.prices import (
    MOST_LETTERS,
    MOST_POINT,
    MOST_PRICE,
    PriceCurve,
    PriceFormula,
    PricePoints,
    arbitrage,
    prices_from_json,
    prices_of,
)
from relaxdp.server_errors import PriceError
from relaxdp.theory.epsilon import as_epsilon, compute_threshold
from relaxdp.theory.privacy_loss import compute_transcript_probability
from relaxdp.theory.randomized_response import compute_odds, compute_retention

HALF = Fraction(1, 2)
Table = Sequence[tuple[str, int]]


def at(curve: PriceCurve, epsilon: str, keep: Fraction = HALF) -> int:
    return curve.price(Decimal(epsilon), keep)


def line_value(points: Table, epsilon: Fraction) -> Fraction | None:
    """The price before rounding, written a second time: the point on the line through both neighbours."""
    known = [(Fraction(text), Fraction(price)) for text, price in points]
    if epsilon > known[-1][0]:
        return None
    if epsilon <= known[0][0]:
        return known[0][1]
    for (left, low), (right, high) in pairwise(known):
        if left <= epsilon <= right:
            return (low * (right - epsilon) + high * (epsilon - left)) / (right - left)
    raise AssertionError


# Points.


def test_points() -> None:
    curve = prices_of([("0.1", 10), ("1", 100), ("3", 101)], None)
    assert [at(curve, text) for text in ("0.1", "0.5", "1", "3")] == [10, 50, 100, 101]
    assert [at(curve, text) for text in ("1e-90", "0.05", "0.0999999")] == [10, 10, 10]
    assert [at(curve, text) for text in ("1.0000001", "2", "2.9999999")] == [101, 101, 101]
    assert at(curve, "0." + "1" + 50 * "0" + "1") == 11  # the smallest step above a whole price is rounded up
    assert at(curve, "0.10") == at(curve, "1e-1") == 10
    assert (curve.reaches(Decimal(3)), curve.reaches(Decimal("3.0000000000000000000000000001"))) == (True, False)


def test_the_retention_does_not_change_a_price_of_points() -> None:
    curve = prices_of([("0.1", 10), ("1", 100)], None)
    assert {at(curve, "0.33", Fraction(part, 7)) for part in range(7)} == {33}


def test_above_the_last_point_there_is_no_price() -> None:
    curve = prices_of([("0.1", 10), ("1.50", 100)], None)
    with pytest.raises(PriceError) as caught:
        at(curve, "2.0")
    assert caught.value.fields == {"last": "1.5", "epsilon": "2"}
    assert not curve.reaches(Decimal(2))


def test_one_point_is_one_price() -> None:
    curve = prices_of([("2", 7)], None)
    assert [at(curve, "0.0001"), at(curve, "2")] == [7, 7]
    assert not curve.reaches(Decimal("2.1"))


def test_lines_between_random_points_are_exact() -> None:
    dice = random.Random("price points")
    for _ in range(200):
        epsilons = sorted({dice.randrange(1, 10**6) for _ in range(dice.randrange(1, 8))})
        prices = sorted(dice.randrange(MOST_POINT + 1) for _ in epsilons)
        points = [(str(Decimal(e).scaleb(-5)), price) for e, price in zip(epsilons, prices, strict=True)]
        curve = prices_of(points, None)
        asked = sorted({dice.randrange(1, epsilons[-1] + 1) for _ in range(20)} | {epsilons[-1]})
        found = []
        for epsilon in asked:
            exact = line_value(points, Fraction(epsilon, 10**5))
            assert exact is not None
            found.append(curve.price(Decimal(epsilon).scaleb(-5), HALF))
            assert found[-1] - 1 < exact <= found[-1]
        assert found == sorted(found)
        assert arbitrage(partial(curve.price, keep=HALF), [Decimal(text) for text, _ in points]) is None


@pytest.mark.parametrize(
    ("points", "sentence"),
    [
        ([], "1 to 1000 points"),
        ([(str(number), number) for number in range(1, 1002)], "1 to 1000 points"),
        ([(str(number), number) for number in range(1, 10**5)], "1 to 1000 points"),
        ([("1", 5), ("1", 5)], "must ascend: 1 follows 1"),
        ([("1", 5), ("1.0", 6)], "must ascend: 1 follows 1"),
        ([("1", 5), ("2", 6), ("1.5", 7)], "must ascend: 1.5 follows 2"),
        ([("1", 5), ("2", 7), ("3", 6)], "must not fall: epsilon 2 costs 7 and epsilon 3 costs 6"),
        ([("0", 5)], "^Epsilon must be greater than 0"),
        ([("1", 5), ("-2", 6)], "^Epsilon must be greater than 0"),
        ([("inf", 5)], "^Epsilon must be finite"),
        ([("NaN", 5)], "^Epsilon must be finite"),
        ([("one", 5)], "^Epsilon must be a number"),
        ([("1" * 61, 5)], "^Epsilon has too many digits"),
        ([("1", 5), ("0." + 78 * "0" + "1", 6)], "price point 2: epsilon has at most 80 letters"),
        ([(0.1, 5)], "price point 1 is no pair"),
        ([(1, 5)], "price point 1 is no pair"),
        ([(Decimal(1), 5)], "price point 1 is no pair"),
        ([("1",)], "price point 1 is no pair"),
        ([("1", 5, 6)], "price point 1 is no pair"),
        (["15"], "price point 1 is no pair"),
        ([("1", 5), None], "price point 2 is no pair"),
        ([("1", 5.0)], r"whole number from 0 to 1000000000000\."),
        ([("1", True)], "whole number"),
        ([("1", "5")], "whole number"),
        ([("1", None)], "whole number"),
        ([("1", -1)], "whole number"),
        ([("1", MOST_POINT + 1)], "whole number"),
        ("15", "list of pairs"),
        ({"1": 5}, "list of pairs"),
        (7, "list of pairs"),
    ],
)
def test_points_that_are_none(points: Any, sentence: str) -> None:
    with pytest.raises(PriceError, match=sentence):
        prices_of(points, None)


def test_a_point_without_an_epsilon_is_named_by_its_place() -> None:
    with pytest.raises(PriceError) as caught:
        prices_of([("1", 5), ("-2", 6)], None)
    assert caught.value.fields == {"point": 2, "epsilon": "'-2'"}


def test_the_limits_of_points_are_within() -> None:
    assert at(prices_of([("1", 0), ("2", MOST_POINT)], None), "2") == MOST_POINT
    thousand = prices_of([(str(number), number) for number in range(1, 1001)], None)
    assert at(thousand, "999.5") == 1000
    smallest = "0." + 77 * "0" + "1"
    assert prices_of([(smallest, 5)], None).to_json() == {"points": [[smallest, 5]]}


def test_points_may_be_tuples_or_lists() -> None:
    assert prices_of((("1", 5), ("2", 6)), None) == prices_from_json({"points": [["1", 5], ["2", 6]]})


# Formulas.


@pytest.mark.parametrize(
    ("formula", "normal"),
    [
        ("10", "10"),
        ("0", "0"),
        ("0.0*epsilon + 0", "0"),
        ("  10+90*epsilon  ", "10 + 90*epsilon"),
        ("90 * epsilon + 10", "10 + 90*epsilon"),
        ("1*epsilon ^ 2 + 0.50*precision + 3*epsilon^9", "1*epsilon^2 + 3*epsilon^9 + 0.5*precision"),
        ("1+1+1 + 2*epsilon + 0.25*epsilon", "3 + 2.25*epsilon"),
        ("007.100", "7.1"),
        ("0.1 + 0.2", "0.3"),
        ("999999999999999.999999999999999*epsilon", "999999999999999.999999999999999*epsilon"),
        ("0.000000000000001*precision", "0.000000000000001*precision"),
        ("100 + 1000*epsilon", "100 + 1000*epsilon"),
    ],
)
def test_normal_form(formula: str, normal: str) -> None:
    curve = prices_of(None, formula)
    assert curve.to_json() == {"formula": normal}
    assert prices_from_json(curve.to_json()) == curve
    assert prices_of(None, normal).to_json() == {"formula": normal}


def test_the_longest_normal_form_can_be_read_back() -> None:
    number = "9" * 15 + "." + "9" * 15
    formula = PriceFormula((Fraction(number),) * 10, Fraction(number))
    text = formula.to_json()["formula"]
    assert 400 < len(text) <= MOST_LETTERS
    assert prices_of(None, text) == formula
    assert prices_of(None, "1" + " " * (MOST_LETTERS - 1)) == prices_of(None, "1")


def test_a_formula_that_lacks_a_power_is_not_written_as_another_one() -> None:
    lacking = PriceFormula((Fraction(10),), Fraction(100))  # its precision would be written as epsilon
    with pytest.raises(ValueError, match="shorter|longer"):
        lacking.to_json()


@pytest.mark.parametrize(
    ("formula", "sentence"),
    [
        ("", "^the price formula is empty"),
        ("   ", "^the price formula is empty"),
        ("1" + " " * MOST_LETTERS, "at most 500 characters"),
        ("+".join(["1"] * 251), "at most 500 characters"),
        ("-1", "term 1 .* minus sign"),
        ("10 + -90*epsilon", "term 2 .* minus sign"),
        ("10 - epsilon", "term 1 .* minus sign"),
        ("10 +", "term 2 .* is empty"),
        ("+ 10", "term 1 .* is empty"),
        ("1 + + 1", "term 2 .* is empty"),
        ("1*retention", "term 1 .* something else"),
        ("1*Epsilon", "term 1 .* something else"),
        ("1*eps", "term 1 .* something else"),
        ("1e3", "term 1 .* something else"),
        ("inf", "term 1 .* something else"),
        ("nan*epsilon", "term 1 .* something else"),
        ("(1)", "term 1 .* something else"),
        ("1/3", "term 1 .* something else"),
        ("1,5", "term 1 .* something else"),
        ("1\t+ 1", "term 1 .* something else"),
        ("1\n", "term 1 .* something else"),
        ("\u0663", "term 1 .* something else"),
        ("1_000", "term 1 .* something else"),
        ("__import__('os')", "term 1 .* something else"),
        ("epsilon", "term 1 .* is not a number"),
        ("precision", "term 1 .* is not a number"),
        ("epsilon*2", "term 1 .* is not a number"),
        ("2epsilon", "term 1 .* is not a number"),
        ("2 epsilon", "term 1 .* is not a number"),
        ("2*epsilon*epsilon", "term 1 .* is not a number"),
        ("2*epsilon*precision", "term 1 .* is not a number"),
        ("2*precision^2", "term 1 .* is not a number"),
        ("2^2", "term 1 .* is not a number"),
        ("2**epsilon", "term 1 .* is not a number"),
        ("2*epsilon^", "term 1 .* is not a number"),
        ("2*epsilon^2.5", "term 1 .* is not a number"),
        ("2*epsilon^2^2", "term 1 .* is not a number"),
        ("1 0", "term 1 .* is not a number"),
        (".5", "term 1 .* is not a number"),
        ("5.", "term 1 .* is not a number"),
        ("1.2.3", "term 1 .* is not a number"),
        *((f"1 + 2*epsilon^{power}", "term 2 .* exponent") for power in ("0", "1", "10", "23", "99", "02", "9" * 90)),
        ("1" * 16, "term 1 .* more than 15 digits"),
        ("0." + "1" * 16, "term 1 .* more than 15 digits"),
        ("9" * 400, "term 1 .* more than 15 digits"),
        ("999999999999999*epsilon + 1*epsilon", "the sum of those before the same power"),
        (7, "^the price formula is empty"),
        (b"10", "^the price formula is empty"),
    ],
)
def test_formulas_that_are_none(formula: Any, sentence: str) -> None:
    with pytest.raises(PriceError, match=sentence) as caught:
        prices_of(None, formula)
    assert len(caught.value.message) < 300
    assert "import" not in caught.value.message


def test_a_formula_is_exact_and_rounded_up() -> None:
    curve = prices_of(None, "10 + 90*epsilon + 0.5*epsilon^3 + 100*precision")
    assert at(curve, "2", HALF) == 10 + 180 + 4 + 25
    assert at(curve, "2", Fraction(0)) == 194
    assert at(curve, "2", Fraction(1, 10**40)) == 195
    assert at(prices_of(None, "0.1*epsilon + 0.2*epsilon"), "10") == 3  # as floats it would be above 3, and cost 4
    assert at(prices_of(None, "1*epsilon^9"), "1." + 30 * "0" + "1") == 2
    dice = random.Random("price formulas")
    context = Context(prec=900)
    for _ in range(100):
        numbers = [Decimal(dice.randrange(10**8)).scaleb(-4) for _ in range(11)]
        names = ["", "*epsilon", *(f"*epsilon^{power}" for power in range(2, 10)), "*precision"]
        terms = [f"{number:f}{name}" for number, name in zip(numbers, names, strict=True)]
        dice.shuffle(terms)
        curve = prices_of(None, "+".join(terms))
        epsilon, keep = Decimal(dice.randrange(1, 5000)).scaleb(-3), Decimal(dice.randrange(1 << 20)) / (1 << 20)
        exact = context.multiply(numbers[10], context.power(keep, 2))
        for power in range(10):
            exact = context.add(exact, context.multiply(numbers[power], context.power(epsilon, power)))
        assert curve.price(epsilon, Fraction(keep)) == int(exact.to_integral_value("ROUND_CEILING", context))


def test_a_formula_does_not_fall_at_the_realised_retentions() -> None:
    curve = prices_of(None, "0.3*epsilon + 7*epsilon^2 + 1000*precision")
    levels = [Decimal(step).scaleb(-2) for step in range(1, 600)]

    def price(epsilon: Decimal) -> int:
        return curve.price(epsilon, compute_retention(compute_threshold(epsilon, 5)))

    prices = [price(level) for level in levels]
    assert prices == sorted(prices)
    assert prices[-1] > prices[0]
    assert arbitrage(price, levels) is None


def test_no_price_is_above_the_bound() -> None:
    curve = prices_of(None, "999999999999999 + 1*precision")
    assert (curve.reaches(Decimal(1)), at(curve, "1", Fraction(1, 9))) == (True, MOST_PRICE)
    above = prices_of(None, "999999999999999 + 1.1*precision")
    assert not above.reaches(Decimal(1))
    with pytest.raises(PriceError, match="at most 1000000000000000 credits"):
        at(above, "1", Fraction(0))  # whether there is a price does not hang on the retention
    steep = prices_of(None, "1*epsilon^9")
    assert at(steep, "46") == 46**9
    with pytest.raises(PriceError, match="exceeds it at epsilon 47."):
        at(steep, "47")
    with pytest.raises(PriceError, match="exceeds it"):
        at(steep, "9" * 60)


# Both.


CURVES = [prices_of([("0.1", 10), ("1", 100)], None), prices_of(None, "10 + 90*epsilon")]


@pytest.mark.parametrize("curve", CURVES)
def test_floats_never_enter(curve: PriceCurve) -> None:
    epsilons: list[Any] = [0.5, 1, "0.5", True, None]
    for wrong in epsilons:
        with pytest.raises(PriceError, match="exact decimal epsilon"):
            curve.price(wrong, HALF)
        with pytest.raises(PriceError, match="exact decimal epsilon"):
            curve.reaches(wrong)
    keeps: list[Any] = [0.5, 1, "1/2", Fraction(1), Fraction(-1, 2), Fraction(2)]
    for wrong in keeps:
        with pytest.raises(ValueError, match="a retention is a fraction"):
            curve.price(Decimal("0.5"), wrong)


@pytest.mark.parametrize("curve", CURVES)
@pytest.mark.parametrize("wrong", ["0", "-0", "-1", "NaN", "sNaN", "Infinity", "1e-101", "1e60"])
def test_an_epsilon_that_is_none(curve: PriceCurve, wrong: str) -> None:
    for ask in (lambda: curve.price(Decimal(wrong), HALF), lambda: curve.extended_by(curve, Decimal(wrong))):
        with pytest.raises(EpsilonError):
            ask()


@pytest.mark.parametrize("curve", CURVES)
def test_the_callers_decimal_context_changes_nothing(curve: PriceCurve) -> None:
    epsilon = Decimal("0.123456789012345678901234567891")
    expected = (curve.price(epsilon, HALF), curve.to_json())
    with localcontext(Context(prec=1)):
        assert (curve.price(epsilon, HALF), curve.to_json()) == expected
        assert prices_from_json(curve.to_json()) == curve


def test_reading_back() -> None:
    curve = prices_of([("0.10", 10), ("1e2", 100)], None)
    assert curve.to_json() == {"points": [["0.1", 10], ["100", 100]]}
    assert prices_from_json(curve.to_json()) == curve
    wrong: list[Any] = [
        None, [], "10", 7, {}, {"points": None}, {"formula": None}, {"points": [["1", 5]], "formula": "5"},
        {"points": [["1", 5]], "formula": None}, {"formula": "5", "more": 1}, {"Formula": "5"}, {1: 2},
    ]  # fmt: skip
    for written in wrong:
        with pytest.raises(PriceError, match="either points or a formula"):
            prices_from_json(written)
    for neither in ((None, None), ([("1", 5)], "5")):
        with pytest.raises(PriceError, match="either points or a formula"):
            prices_of(*neither)


# Extending.


def accepted(old: PriceCurve, new: PriceCurve, upto: str | None) -> bool:
    try:
        assert old.extended_by(new, None if upto is None else Decimal(upto)) is new
    except PriceError:
        return False
    return True


def test_what_a_changed_price_is_told() -> None:
    with pytest.raises(PriceError) as caught:
        CURVES[0].extended_by(CURVES[1], Decimal("0.50"))
    assert caught.value.fields == {"upto": "0.5"}


def test_extending_points() -> None:
    old = prices_of([("0.1", 10), ("1", 100)], None)
    assert accepted(old, old, "1")
    assert accepted(old, prices_of([("0.1", 10), ("1", 100), ("2", 100)], None), "1")
    assert accepted(old, prices_of([("0.1", 10), ("0.5", 50), ("1", 100)], None), "1")  # a point on the line
    assert accepted(old, prices_of([("0.05", 10), ("0.1", 10), ("1", 100)], None), "1")
    assert accepted(old, prices_of([("0.1", 10), ("0.5", 50), ("1", 60)], None), "0.5")
    assert not accepted(old, prices_of([("0.1", 10), ("0.5", 50), ("1", 60)], None), "0.51")
    assert not accepted(old, prices_of([("0.1", 10), ("0.5", 51), ("1", 100)], None), "1")
    assert not accepted(old, prices_of([("0.05", 9), ("0.1", 10), ("1", 100)], None), "1")
    assert not accepted(old, prices_of([("0.1", 10), ("0.5", 50)], None), "0.6")  # it would end below what is on sale
    assert accepted(old, prices_of([("0.1", 10), ("1", 100), ("4", 900)], None), "3")  # above 1 nothing had a price
    assert accepted(old, prices_of([("0.1", 10), ("2", 200)], None), "3")  # the last line goes on as it was
    assert not accepted(old, prices_of([("2", 100)], None), "1")


def test_before_the_first_sale_prices_are_free() -> None:
    old = prices_of([("0.1", 10), ("1", 100)], None)
    assert accepted(old, prices_of([("1", 1)], None), None)
    assert accepted(old, CURVES[1], None)


def test_a_formula_stays() -> None:
    old = prices_of(None, "10 + 90*epsilon")
    assert accepted(old, prices_of(None, "90.0*epsilon+10"), "1")
    assert not accepted(old, prices_of(None, "10 + 90*epsilon + 0.1*precision"), "1")
    assert not accepted(old, prices_of([("0.1", 19), ("1", 100)], None), "1")
    assert not accepted(prices_of([("0.1", 19), ("1", 100)], None), old, "1")


def test_extending_agrees_with_a_look_at_every_half() -> None:
    """All tables of up to 3 points at 1, 2, 3: between halves nothing can bend, so halves see every difference."""
    tables = [
        [(str(epsilon), price) for epsilon, price in zip(epsilons, prices, strict=True)]
        for size in (1, 2, 3)
        for epsilons in combinations((1, 2, 3), size)
        for prices in combinations_with_replacement(range(3), size)
    ]
    outcomes = set()
    for old, new in product(tables, repeat=2):
        for halves in range(1, 9):
            end = min(Fraction(halves, 2), Fraction(old[-1][0]))
            places = [Fraction(half, 2) for half in range(1, 9) if Fraction(half, 2) <= end]
            same = all(line_value(old, place) == line_value(new, place) for place in places)
            assert accepted(prices_of(old, None), prices_of(new, None), str(Decimal(halves) / 2)) == same
            outcomes.add(same)
    assert outcomes == {True, False}


# No way around a price.

KEEPS = [Fraction(part, 5) for part in (1, 2, 3, 4)]
VALUES = 3
Pool = frozenset[int]


@lru_cache
def told(pool: Pool) -> Fraction:
    """The greatest odds between two truths, over all reports that a pool of levels can hold: what it tells."""
    levels = sorted(pool)
    keeps = [KEEPS[level] for level in levels]
    greatest = Fraction(0)
    for reports in product(range(VALUES), repeat=len(levels)):
        chances = [compute_transcript_probability(VALUES, keeps, reports, truth=truth) for truth in range(VALUES)]
        assert min(chances) > 0
        greatest = max(greatest, max(chances) / min(chances))
    return greatest


def test_a_pool_tells_what_its_best_level_tells() -> None:
    for size in (1, 2, 3, 4):
        for pool in combinations(range(4), size):
            assert told(frozenset(pool)) == compute_odds(KEEPS[max(pool)], VALUES)


def paid(steps: Sequence[int], prices: Sequence[int], *, gives_back: bool) -> int:
    """What one person pays for a first level and its upgrades, who gets credits back where prices fall, or does not."""
    differences = [prices[new] - prices[old] for old, new in pairwise(steps)]
    return prices[steps[0]] + sum(difference if gives_back else max(0, difference) for difference in differences)


def groups(levels: int) -> list[tuple[tuple[int, ...], ...]]:
    """Every group of up to 3 people, each of whom buys one level and upgrades it in any steps."""
    histories = list(chain.from_iterable(combinations(range(levels), size) for size in range(1, levels + 1)))
    return list(chain.from_iterable(combinations_with_replacement(histories, people) for people in (1, 2, 3)))


@pytest.mark.parametrize("levels", [1, 2, 3, 4])
@pytest.mark.parametrize("gives_back", [True, False])
def test_arbitrage_agrees_with_all_combinations_of_purchases(levels: int, gives_back: bool) -> None:
    pools = [(group, told(frozenset(chain.from_iterable(group)))) for group in groups(levels)]
    names = [Decimal(level + 1) / 2 for level in range(levels)]
    falling = 0
    for prices in product(range(4), repeat=levels):
        costs: dict[Fraction, int] = {}  # the cheapest way to be told this much
        spent: dict[tuple[int, ...], int] = {}
        for group, tells in pools:
            cost = 0
            for steps in group:
                if steps not in spent:
                    spent[steps] = paid(steps, prices, gives_back=gives_back)
                cost += spent[steps]
            costs[tells] = min(cost, costs.get(tells, cost))
        undercut = {
            target
            for target in range(levels)
            if min(cost for tells, cost in costs.items() if tells >= compute_odds(KEEPS[target], VALUES))
            < prices[target]
        }
        found = arbitrage(dict(zip(names, prices, strict=True)).__getitem__, names[::-1])
        assert (found is not None) == bool(undercut)
        assert (found is not None) == (list(prices) != sorted(prices))
        if found is not None:
            falling += 1
            lower, higher = (names.index(level) for level in found)
            assert lower < higher
            assert prices[higher] < prices[lower]
            assert lower in undercut
    assert falling == 4**levels - {1: 4, 2: 10, 3: 20, 4: 35}[levels]


def test_arbitrage_at_its_edges() -> None:
    assert arbitrage(lambda _: 5, []) is None
    assert arbitrage(lambda _: 5, [Decimal(1), Decimal("1.0")]) is None
    assert arbitrage(lambda _: 0, [Decimal(1), Decimal(2)]) is None
    with pytest.raises(PriceError, match="zero or more"):
        arbitrage(lambda _: -1, [Decimal(1)])
    with pytest.raises(PriceError, match="zero or more"):
        arbitrage({Decimal(1): -1, Decimal(2): 5}.__getitem__, [Decimal(1), Decimal(2)])
    with pytest.raises(PriceError, match="exact decimal"):
        arbitrage(lambda _: 1, [0.5])  # type: ignore[list-item]


def test_a_falling_curve_cannot_be_made_by_another_door() -> None:
    with pytest.raises(PriceError, match="must not fall"):
        PricePoints(((as_epsilon("1"), 5), (as_epsilon("2"), 4)))
    with pytest.raises(PriceError, match="digits"):
        PriceFormula((Fraction(-1), *[Fraction(0)] * 9), Fraction(0))
    with pytest.raises(PriceError, match="digits"):
        PriceFormula((Fraction(0),) * 10, Fraction(1, 3))
