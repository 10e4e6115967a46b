"""Thresholds round to the private side; checked with independent high-precision arithmetic (mpmath)."""

from __future__ import annotations

import decimal
import random
from decimal import Decimal
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from tests.exact.enumeration import compute_realised_epsilon
from tests.refusals import refused

from relaxdp.errors import EpsilonError
from relaxdp.theory.epsilon import (
    ONE,
    as_epsilon,
    compute_nonzero_threshold,
    compute_split_threshold,
    compute_threshold,
    format_epsilon,
)
from relaxdp.theory.randomized_response import compute_log_rounded_up, compute_odds, compute_retention

mpmath.mp.prec = 600


def mpf(number: Decimal | Fraction | int) -> mpmath.mpf:
    exact = Fraction(number)
    return mpmath.mpf(exact.numerator) / exact.denominator


def guarantee(level: int, values: int) -> mpmath.mpf:
    return mpmath.log1p(mpmath.mpf(values) * level / (ONE - level))


def check_private(level: int, epsilon: Decimal, values: int) -> None:
    """The realised epsilon is at most the asked one, and no larger threshold would be."""
    assert guarantee(level, values) <= mpf(epsilon)
    assert level + 1 == ONE or guarantee(level + 1, values) > mpf(epsilon)


def cases() -> list[tuple[Decimal, int]]:
    rng = random.Random(20260101)
    found = []
    for place in range(4000):
        values = rng.choice([2, 3, 4, 5, 10, 52, 1000, 10**6, 2**32])
        digits = rng.randint(1, 25)
        found.append(
            (
                Decimal(rng.randint(1, 10**digits)).scaleb(
                    (rng.randint(-22, 1) if place % 2 else rng.randint(-4, 0)) - digits + 1
                ),
                values,
            )
        )
    return [(epsilon, values) for epsilon, values in found if epsilon]


def test_thousands_of_random_levels() -> None:
    close = 0
    for epsilon, values in cases():
        level = compute_threshold(epsilon, values)
        assert 0 <= level < ONE
        check_private(level, epsilon, values)
        keep = compute_retention(level)
        if Fraction(1, 10**6) < keep < 1 - Fraction(1, 10**6):
            assert abs(guarantee(level, values) / mpf(epsilon) - 1) < mpmath.mpf("1e-12")
            close += 1
    assert close > 1000


def test_a_fraction_in_the_place_of_the_number_of_values() -> None:
    """Where a truth is spread over w of D places, D / w stands there; a whole one means what it always meant."""
    for values in (Fraction(3, 2), Fraction(4, 3), Fraction(72, 64), Fraction(2**32 - 1, 7), Fraction(2**32)):
        for epsilon in map(Decimal, ("0.003", "0.5", "1", "2.7", "11", "46.2", "60")):
            level = compute_threshold(epsilon, values)
            assert guarantee_of(level, values) <= mpf(epsilon)
            assert level + 1 == ONE or guarantee_of(level + 1, values) > mpf(epsilon)
    assert (
        compute_threshold("1.5", Fraction(7)) == compute_threshold("1.5", 7) < compute_threshold("1.5", Fraction(27, 4))
    )
    for none in (Fraction(1), Fraction(1, 2), Fraction(0), Fraction(-3, 2), 2**32 + Fraction(1, 9)):
        with pytest.raises(ValueError, match="number of values"):
            compute_threshold(1, none)


def guarantee_of(level: int, values: Fraction) -> mpmath.mpf:
    return mpmath.log1p(mpf(values * level / (ONE - level)))


def test_boundaries() -> None:
    top = mpmath.log1p(2 * (mpmath.mpf(2) ** 64 - 1))  # 45.05...: from here on all levels share the largest threshold
    assert compute_threshold(Decimal(mpmath.nstr(top - mpmath.mpf("1e-30"), 45)), 2) == ONE - 2
    assert compute_threshold(Decimal(mpmath.nstr(top + mpmath.mpf("1e-30"), 45)), 2) == ONE - 1
    for step, level in [("-1e-56", ONE - 2), ("1e-56", ONE - 1)]:  # so close that 40 digits of e^eps cannot tell
        assert compute_threshold(Decimal(mpmath.nstr(top + mpmath.mpf(step), 58)), 2) == level
    for huge in ("46", "120", "1e9", "1e59"):
        assert compute_threshold(huge, 2) == ONE - 1
    for values in (2, 2**32):
        least = mpmath.log1p(mpmath.mpf(values) / (ONE - 1))  # the epsilon of threshold 1
        assert compute_threshold(Decimal(mpmath.nstr(least * (1 + mpmath.mpf("1e-30")), 45)), values) == 1
        assert compute_threshold(Decimal(mpmath.nstr(least * (1 - mpmath.mpf("1e-30")), 45)), values) == 0
        assert compute_threshold("1e-99", values) == 0
    assert compute_threshold(0, 2) == 0


def test_the_callers_decimal_context_changes_nothing() -> None:
    expected = compute_threshold("0.1", 3)
    with decimal.localcontext() as context:
        context.prec = 3
        context.rounding = decimal.ROUND_UP
        context.traps[decimal.Inexact] = True
        context.Emax = 10
        assert compute_threshold("0.1", 3) == expected == 624783968716559440
        assert as_epsilon(Decimal("0.12345678901234567890")) == Decimal("0.1234567890123456789")


def test_realised_epsilon_is_rounded_up() -> None:
    for epsilon, values in cases()[:500]:
        level = compute_threshold(epsilon, values)
        shown = compute_realised_epsilon(level, values)
        assert mpf(shown) >= guarantee(level, values)
        assert level == 0 or mpf(shown) <= guarantee(level, values) * (1 + mpmath.mpf("1e-30"))
    assert compute_odds(compute_retention(ONE - 1), 2) == 1 + 2 * (ONE - 1)
    assert compute_log_rounded_up(Fraction(10**30 + 1, 10**30)) > 0
    for shown in (compute_realised_epsilon(compute_threshold(1, 3), 3), compute_log_rounded_up(Fraction(3))):
        assert len(shown.as_tuple().digits) == 40


@pytest.mark.parametrize("level", [-1, ONE, ONE + 1])
def test_neither_the_bare_truth_nor_less_than_nothing_is_a_retention(level: int) -> None:
    with pytest.raises(ValueError, match="A threshold must be"):
        compute_retention(level)
    with pytest.raises(ValueError, match="A retention must be"):
        compute_odds(Fraction(level, ONE), 2)


def test_mutants_are_caught() -> None:
    epsilon, values = Decimal("0.5"), 3
    check_private(compute_threshold(epsilon, values), epsilon, values)
    for wrong in (compute_threshold(epsilon, values) + 1, compute_threshold(epsilon, values) - 1):
        with pytest.raises(AssertionError):
            check_private(wrong, epsilon, values)
    rounded = round(
        float(compute_retention(compute_threshold("120", 2))) * ONE
    )  # what plain floats make of it: the bare truth
    assert rounded == ONE


@pytest.mark.parametrize("written", [0, -1, "0", "-0.5", "-0", 0.0, -0.0])
def test_not_positive(written: object) -> None:
    with refused(EpsilonError, says="Epsilon must be greater than 0, not"):
        compute_nonzero_threshold(written, 2)  # type: ignore[arg-type]


@pytest.mark.parametrize("written", [float("nan"), float("inf"), "-inf", "sNaN", Decimal("Infinity")])
def test_not_finite(written: object) -> None:
    with refused(EpsilonError, says="Epsilon must be finite, not"):
        compute_nonzero_threshold(written, 2)  # type: ignore[arg-type]


@pytest.mark.parametrize("written", [True, None, "one", "", "1_0", "١", 1j, [1], b"1"])
def test_not_a_number(written: object) -> None:
    with refused(EpsilonError, says="Epsilon must be a number such as 0.5"):
        compute_nonzero_threshold(written, 2)  # type: ignore[arg-type]


@pytest.mark.parametrize("written", ["1e-19", "1e-30", "1e-101", "1e-999999"])
def test_too_small(written: str) -> None:
    with refused(EpsilonError, says="too small"):
        compute_nonzero_threshold(written, 2)


@pytest.mark.parametrize("written", ["1" * 61, "1e60", "1e999999", "0." + "1" * 61])
def test_too_many_digits(written: str) -> None:
    with refused(EpsilonError, most=60, says="Epsilon has too many digits"):
        compute_nonzero_threshold(written, 2)


def test_the_longest_epsilons_and_their_one_spelling() -> None:
    for written in ("1" * 60, "0." + "1" * 60, "9" * 30 + "." + "9" * 30, "1e59", "1e-100", "1.5e-100"):
        assert as_epsilon(written) == Decimal(written)
    assert [as_epsilon(whole) for whole in (1000, 10**60 - 1)] == [1000, 10**60 - 1]
    for huge in (10**60, 11**60, 10**5000):
        with refused(EpsilonError, most=60, says="Epsilon has too many digits"):
            as_epsilon(huge)
    with refused(EpsilonError, says="too small"):
        as_epsilon("9e-101")
    for zero in ("0", "0.00", "-0", "0e-200", "0e9"):
        assert repr(as_epsilon(zero, allow_zero=True)) == "Decimal('0')"
    for written, plain in [
        ("100", "100"),
        ("100.0", "100"),
        ("1.10", "1.1"),
        ("0.010", "0.01"),
        ("5.", "5"),
        (" 2 ", "2"),
    ]:
        assert str(as_epsilon(written)) == format_epsilon(Decimal(written.strip())) == plain


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        ("abcdefghijklmnopqrst", "'abcdefghijklmnopqrst'"),
        ("abcdefghijklmnopqrstu", "'abcdefgh...'"),
        (-(10**40) + 1, "-" + "9" * 40),
        (-(10**40), "a huge number"),
        (Decimal("-1." + "2" * 50), "-1." + "2" * 37),
        (float("nan"), "nan"),
        (2j, "2j"),
        (bytes(32), "a bytes"),
    ],
)
def test_only_the_beginning_of_what_was_written_is_shown(written: object, shown: str) -> None:
    """It may be a key in the wrong place."""
    with pytest.raises(EpsilonError) as found:
        as_epsilon(written)  # type: ignore[arg-type]
    assert found.value.fields == {"epsilon": shown}
    assert found.value.sentence.endswith(f", not {shown}.")


def test_float32_is_refused_and_float64_is_what_it_prints() -> None:
    with refused(EpsilonError, says="Epsilon must be a number"):
        as_epsilon(np.float32(0.1))  # type: ignore[arg-type]
    assert as_epsilon(np.float64(0.1)) == as_epsilon(0.1) == Decimal("0.1")
    assert as_epsilon(np.int64(2)) == 2  # type: ignore[arg-type]


@pytest.mark.parametrize("values", [0, 1, -3, 2**32 + 1, True, 2.0])
def test_number_of_values(values: object) -> None:
    with pytest.raises(ValueError, match="The number of values must be"):
        compute_threshold(1, values)  # type: ignore[arg-type]


@pytest.mark.parametrize("parts", [1, 2, 3, 4, 7, 32])
def test_shared_levels(parts: int) -> None:
    """Each of `parts` symbols gets its part of epsilon, rounded to the private side however many digits it has."""
    for epsilon, values in cases()[: 4000 // parts : 7]:
        asked = as_epsilon(epsilon)
        try:
            level = compute_split_threshold(asked, values, parts=parts)
        except EpsilonError:
            assert guarantee(1, values) * parts > mpf(asked)
            continue
        assert guarantee(level, values) * parts <= mpf(asked)
        assert level + 1 == ONE or guarantee(level + 1, values) * parts > mpf(asked)
    longest = Decimal("0." + "7" * 60)
    assert compute_split_threshold(longest, 2, parts=2) == compute_threshold(Decimal("0.3" + "8" * 40), 2)


def test_a_part_of_epsilon_is_rounded_down_and_must_tell_something(monkeypatch: pytest.MonkeyPatch) -> None:
    with refused(EpsilonError, parts=2):
        compute_split_threshold("1e-19", 2, parts=2)
    with pytest.raises(ValueError, match="The number of values must be"):
        compute_split_threshold(1, 1, parts=2)
    asked: list[Decimal] = []

    def note(exact: Decimal, values: int) -> int:
        asked.append(exact)
        return 1

    monkeypatch.setitem(compute_split_threshold.__globals__, "_compute_threshold_of_decimal", note)
    for epsilon, parts in [("1", 3), ("2", 7), ("0." + "7" * 60, 9)]:
        compute_split_threshold(epsilon, 2, parts=parts)
        assert Fraction(asked[-1]) * parts < Fraction(epsilon) < Fraction(asked[-1]) * parts * (1 + Fraction(1, 10**90))
