"""Epsilon as a person wrote it, an exact decimal number and never a binary float; and the threshold that it allows."""

from __future__ import annotations

from decimal import ROUND_FLOOR, ROUND_HALF_EVEN, Context, Decimal, InvalidOperation
from fractions import Fraction
from functools import lru_cache
from math import ceil
from typing import Any

from relaxdp.errors import EpsilonError, ValuesError, hide_secret_keys

Epsilon = Decimal | int | str | float

# No one writes more digits by hand. The limits bound the work that a hostile string can cause.
MAX_DIGITS = 60
MIN_EXPONENT = -100
_HINT = "Write a number between 0.01 and 10, such as 0.5."


def as_epsilon(value: Epsilon, *, allow_zero: bool = False) -> Decimal:
    """Return an epsilon as an exact, positive `Decimal`; zero only where `allow_zero` allows it.

    A float means the shortest decimal number that prints as it, which is the number that was typed: 0.1 is one tenth.
    A float32 does not print as the number that was typed, so it is rejected.

    >>> as_epsilon(0.1), as_epsilon("2.50"), as_epsilon(1)
    (Decimal('0.1'), Decimal('2.5'), Decimal('1'))
    """
    number = _convert_to_decimal(value)
    if number is None:
        raise EpsilonError(
            "Epsilon must be a number such as 0.5 or '0.5', not {epsilon}.",
            hint=_HINT,
            epsilon=_describe_input(value),
        )
    if not number.is_finite():
        raise EpsilonError("Epsilon must be finite, not {epsilon}.", hint=_HINT, epsilon=_describe_input(value))
    if number < 0 or (number == 0 and not allow_zero):
        raise EpsilonError(
            "Epsilon must be 0 or more, not {epsilon}."
            if allow_zero
            else "Epsilon must be greater than 0, not {epsilon}.",
            hint=_HINT,
            epsilon=_describe_input(value),
        )
    if len(number.as_tuple().digits) > MAX_DIGITS or number.adjusted() >= MAX_DIGITS:
        raise EpsilonError(
            "Epsilon has too many digits: at most {most} are possible.",
            hint=_HINT,
            most=MAX_DIGITS,
            epsilon=_describe_input(value),
        )
    if number.adjusted() < MIN_EXPONENT and number != 0:
        raise EpsilonError(
            "Epsilon {epsilon} is too small. Every report would be pure noise.",
            hint=_HINT,
            epsilon=_describe_input(value),
        )
    return drop_trailing_zeros(number)


def format_epsilon(epsilon: Decimal) -> str:
    """Return the one spelling of an epsilon that files and ledgers use: 2.50 and 2.5 are the same level.

    >>> format_epsilon(as_epsilon("2.50")), format_epsilon(as_epsilon(100))
    ('2.5', '100')
    """
    return f"{drop_trailing_zeros(epsilon):f}"


def _convert_to_decimal(value: Any) -> Decimal | None:
    if isinstance(value, bool):
        return None
    if isinstance(value, Decimal):
        return value
    if isinstance(value, float):  # includes numpy.float64, whose repr is not a number
        return Decimal(repr(float(value)))
    if isinstance(value, str):
        try:
            return Decimal(value.strip()) if value.isascii() and "_" not in value else None
        except InvalidOperation:
            return None
    try:
        whole = value.__index__()  # int and NumPy's integers, but not numpy.float32
    except (AttributeError, TypeError):
        return None
    return Decimal(whole) if abs(whole) < 10**MAX_DIGITS else Decimal((0, (1,), MAX_DIGITS))


def drop_trailing_zeros(number: Decimal) -> Decimal:
    """Drop trailing zeros without rounding to the caller's decimal context and without an exponent such as 1E+2."""
    sign, digits, _ = number.as_tuple()
    exponent = number.adjusted() - len(digits) + 1
    significant = len(digits)
    while significant > 1 and digits[significant - 1] == 0 and exponent < 0:
        significant -= 1
        exponent += 1
    if digits[:significant] == (0,):
        return Decimal(0)
    return Decimal((sign, digits[:significant], exponent))


def _describe_input(value: Any) -> str:
    """Describe an input in a few characters, and only if it can be a number: it may be a key in the wrong place."""
    if isinstance(value, str):
        if len(value) > 20:
            return "a long text" if hide_secret_keys(value) != value else repr(value[:8] + "...")
        return repr(value)
    if isinstance(value, Decimal | float | complex):
        return str(value)[:40]
    if isinstance(value, int):
        return str(value) if abs(value) < 10**40 else "a huge number"
    return f"a {type(value).__name__}"


ONE = 1 << 64
MAX_VALUES = 1 << 32


def compute_threshold(epsilon: Epsilon, n_values: int | Fraction) -> int:
    """Return the largest threshold T, out of ONE, whose retention T / ONE does not exceed that of `epsilon`.

    The exact retention is expm1(epsilon) / (expm1(epsilon) + values). (Where a truth is spread over w of D places at
    random, the fraction D / w replaces the number of values.) The retention is rounded down, so the realised epsilon
    is never larger than the requested one. T is never ONE, which would be the true value itself. T is 0 for an
    epsilon that is too small to reveal anything.

    Claim: the realised epsilon is at most the requested one, and T + 1 would exceed it; checked with independent
    high-precision arithmetic in tests/exact/theory/test_threshold.py.

    >>> compute_threshold(1, 2)
    8524556932045589908
    """
    check_value_count(n_values)
    return _compute_threshold_of_decimal(as_epsilon(epsilon, allow_zero=True), n_values)


@lru_cache(maxsize=4096)
def _compute_threshold_of_decimal(epsilon: Decimal, n_values: int | Fraction) -> int:
    # Two cut-offs keep the working precision small whatever was written. Below 10^-21 the retention is under 2^-64;
    # above ln(values) + 46 it is over 1 - 2^-64, because e^46 > 2^66. (Only comparisons: those ignore the context.)
    if epsilon < Decimal("1e-21"):
        return 0
    if epsilon > 46 + ceil(n_values).bit_length():
        return ONE - 1
    precision = 40
    while True:
        low, high = (_round_down_threshold(power, n_values) for power in _compute_exp_bounds(epsilon, precision))
        if low == high:
            return low
        # e^eps is transcendental, so ONE * values / (e^eps - 1 + values) is never an integer and this ends.
        precision *= 2


def compute_nonzero_threshold(epsilon: Epsilon, n_values: int | Fraction) -> int:
    """Return the threshold of a level that is to be released, or reject an epsilon whose threshold is 0.

    >>> compute_nonzero_threshold(0.5, 2) == compute_threshold(0.5, 2)
    True
    """
    return compute_split_threshold(epsilon, n_values, parts=1)


def compute_split_threshold(epsilon: Epsilon, n_values: int | Fraction, *, parts: int) -> int:
    """Return the threshold of each symbol of a report in which two truths differ in up to `parts` symbols.

    Every symbol gets an equal part of epsilon: the odds of independent symbols multiply. A part that is not a decimal
    number is rounded down in its 100th digit, the private side.

    Claim: the odds to the power of `parts` do not exceed e^epsilon, and T + 1 would;
    tests/exact/theory/test_threshold.py.

    >>> compute_split_threshold(2, 2, parts=2) == compute_threshold(1, 2)
    True
    """
    check_value_count(n_values)
    exact = as_epsilon(epsilon)
    level = _compute_threshold_of_decimal(
        make_decimal_context(100, rounding=ROUND_FLOOR).divide(exact, Decimal(parts)), n_values
    )
    if level == 0:
        raise EpsilonError(
            "Epsilon {epsilon} is too small for {values} values. Every report would be pure noise."
            if parts == 1
            else "Epsilon {epsilon} is too small to be divided into {parts} parts. Every report would be pure noise.",
            hint=_HINT,
            epsilon=format_epsilon(exact),
            values=n_values if isinstance(n_values, int) else str(n_values),
            parts=parts,
        )
    return level


def check_value_count(n_values: int | Fraction) -> None:
    """Reject a number of values that is not a whole number from 2 to 2**32, or a fraction above 1."""
    if isinstance(n_values, Fraction) and 1 < n_values <= MAX_VALUES:
        return
    if isinstance(n_values, bool) or not isinstance(n_values, int) or not 2 <= n_values <= MAX_VALUES:
        raise ValuesError(
            "The number of values must be a whole number from 2 to 2**32, not {values}.",
            hint="Pass the number of values that can be reported, such as m=3.",
            values=_describe_input(n_values),
        )


def _round_down_threshold(exp_epsilon: Decimal, n_values: int | Fraction) -> int:
    noise: Fraction = ONE * n_values / (Fraction(exp_epsilon) - 1 + n_values)
    return ONE - ceil(noise)


def _compute_exp_bounds(exponent: Decimal, precision: int) -> tuple[Decimal, Decimal]:
    """Return two decimals around e^exponent. `exp` rounds half-even whatever the context says, so step outwards."""
    context = make_decimal_context(precision)
    power = context.exp(exponent)
    return context.next_minus(power), context.next_plus(power)


def make_decimal_context(precision: int, rounding: str = ROUND_HALF_EVEN) -> Context:
    """Return a private context, so that nothing a caller did to the global one changes a threshold."""
    return Context(prec=precision, rounding=rounding, Emin=-999999, Emax=999999, capitals=1, clamp=0, traps=[])
