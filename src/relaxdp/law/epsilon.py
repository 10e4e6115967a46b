"""Epsilon as a person wrote it, an exact decimal number and never a binary float; and the threshold that it allows."""

from __future__ import annotations

from decimal import ROUND_FLOOR, ROUND_HALF_EVEN, Context, Decimal, InvalidOperation
from fractions import Fraction
from functools import lru_cache
from math import ceil
from typing import Any

from relaxdp.errors import EpsilonError, without_keys

Epsilon = Decimal | int | str | float

# More digits than anybody writes by hand; these bound the work that a hostile string can cause.
MOST_DIGITS = 60
LEAST_EXPONENT = -100
_HINT = "Write a number between 0.01 and 10, such as 0.5."


def as_epsilon(written: Epsilon, *, zero: bool = False) -> Decimal:
    """Return `written` as an exact, positive `Decimal`; zero only where `zero` allows it.

    A float means the shortest decimal number that prints as it, which is what the person typed: 0.1 is one tenth.
    A float32 does not print as what was typed, so it is refused instead of guessed at.

    >>> as_epsilon(0.1), as_epsilon("2.50"), as_epsilon(1)
    (Decimal('0.1'), Decimal('2.5'), Decimal('1'))
    """
    number = _as_decimal(written)
    if number is None:
        raise EpsilonError(
            "epsilon must be a number such as 0.5 or '0.5', not {epsilon}.", hint=_HINT, epsilon=_shown(written)
        )
    if not number.is_finite():
        raise EpsilonError("epsilon must be finite, not {epsilon}.", hint=_HINT, epsilon=_shown(written))
    if number < 0 or (number == 0 and not zero):
        raise EpsilonError(
            "epsilon must be zero or more, not {epsilon}."
            if zero
            else "epsilon must be greater than 0, not {epsilon}.",
            hint=_HINT,
            epsilon=_shown(written),
        )
    if len(number.as_tuple().digits) > MOST_DIGITS or number.adjusted() >= MOST_DIGITS:
        raise EpsilonError(
            "epsilon must have at most {most} digits.", hint=_HINT, most=MOST_DIGITS, epsilon=_shown(written)
        )
    if number.adjusted() < LEAST_EXPONENT and number != 0:
        raise EpsilonError("epsilon {epsilon} is too small to be realised.", hint=_HINT, epsilon=_shown(written))
    return plain(number)


def epsilon_text(epsilon: Decimal) -> str:
    """Return the one spelling of an epsilon that files and ledgers use: 2.50 and 2.5 are the same level.

    >>> epsilon_text(as_epsilon("2.50")), epsilon_text(as_epsilon(100))
    ('2.5', '100')
    """
    return f"{plain(epsilon):f}"


def _as_decimal(written: Any) -> Decimal | None:
    if isinstance(written, bool):
        return None
    if isinstance(written, Decimal):
        return written
    if isinstance(written, float):  # includes numpy.float64, whose repr is not a number
        return Decimal(repr(float(written)))
    if isinstance(written, str):
        try:
            return Decimal(written.strip()) if written.isascii() and "_" not in written else None
        except InvalidOperation:
            return None
    try:
        whole = written.__index__()  # int and NumPy's integers, but not numpy.float32
    except (AttributeError, TypeError):
        return None
    return Decimal(whole) if abs(whole) < 10**MOST_DIGITS else Decimal((0, (1,), MOST_DIGITS))


def plain(number: Decimal) -> Decimal:
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


def _shown(written: Any) -> str:
    """Return what was written, briefly, and only if it can be a number: a key in the wrong place is not echoed."""
    if isinstance(written, str):
        if len(written) > 20:
            return "a long text" if without_keys(written) != written else repr(written[:8] + "...")
        return repr(written)
    if isinstance(written, Decimal | float | complex):
        return str(written)[:40]
    if isinstance(written, int):
        return str(written) if abs(written) < 10**40 else "a huge number"
    return f"a {type(written).__name__}"


ONE = 1 << 64
MOST_VALUES = 1 << 32


def threshold(epsilon: Epsilon, values: int | Fraction) -> int:
    """Return the largest threshold T, out of ONE, whose retention T / ONE does not exceed that of `epsilon`.

    The exact retention is expm1(epsilon) / (expm1(epsilon) + values). (Where a truth is spread over w of D places at
    random, D / w stands in the place of the number of values: a fraction.) Rounding it down means that the realised
    guarantee is never larger than what was asked for. T is never ONE, which would be the bare truth, and 0 for
    an epsilon too small to be told from silence.

    Claim: the realised epsilon is at most the asked one, and T + 1 would exceed it; checked with independent
    high-precision arithmetic in tests/exact/law/test_threshold.py.

    >>> threshold(1, 2)
    8524556932045589908
    """
    check_values(values)
    return _threshold(as_epsilon(epsilon, zero=True), values)


@lru_cache(maxsize=4096)
def _threshold(exact: Decimal, values: int | Fraction) -> int:
    # Two cut-offs keep the working precision small whatever was written. Below 10^-21 the retention is under 2^-64;
    # above ln(values) + 46 it is over 1 - 2^-64, because e^46 > 2^66. (Only comparisons: those ignore the context.)
    if exact < Decimal("1e-21"):
        return 0
    if exact > 46 + ceil(values).bit_length():
        return ONE - 1
    precision = 40
    while True:
        low, high = (_threshold_of_exponential(power, values) for power in _exp_enclosure(exact, precision))
        if low == high:
            return low
        # e^eps is transcendental, so ONE * values / (e^eps - 1 + values) is never an integer and this ends.
        precision *= 2


def release_threshold(epsilon: Epsilon, values: int | Fraction) -> int:
    """Return the threshold of a level that is to be released, which must tell at least something.

    >>> release_threshold(0.5, 2) == threshold(0.5, 2)
    True
    """
    exact = as_epsilon(epsilon)
    level = threshold(exact, values)
    if level == 0:
        raise EpsilonError(
            "epsilon {epsilon} is too small to be realised with {values} values: the report would be pure noise.",
            hint=_HINT,
            epsilon=epsilon_text(exact),
            values=values if isinstance(values, int) else str(values),
        )
    return level


def shared_threshold(epsilon: Epsilon, values: int, *, parts: int) -> int:
    """Return the threshold of each symbol of a report in which two truths differ in up to `parts` symbols.

    Every symbol gets an equal part of epsilon: the odds of independent symbols multiply. A part that is no decimal
    number is rounded down in its 100th digit, the private side.

    Claim: the odds to the power of `parts` do not exceed e^epsilon, and T + 1 would; tests/exact/law/test_threshold.py.

    >>> shared_threshold(2, 2, parts=2) == threshold(1, 2)
    True
    """
    check_values(values)
    exact = as_epsilon(epsilon)
    level = _threshold(private_context(100, rounding=ROUND_FLOOR).divide(exact, Decimal(parts)), values)
    if level == 0:
        raise EpsilonError(
            "epsilon {epsilon} is too small to be realised in {parts} parts: the report would be pure noise.",
            hint=_HINT,
            epsilon=epsilon_text(exact),
            parts=parts,
        )
    return level


def check_values(values: int | Fraction) -> None:
    """Refuse a number of values that is not an alphabet."""
    if isinstance(values, Fraction) and 1 < values <= MOST_VALUES:
        return
    if isinstance(values, bool) or not isinstance(values, int) or not 2 <= values <= MOST_VALUES:
        raise ValueError(f"the number of values must be a whole number from 2 to 2**32, not {values!r}")


def _threshold_of_exponential(power: Decimal, values: int | Fraction) -> int:
    noise: Fraction = ONE * values / (Fraction(power) - 1 + values)
    return ONE - ceil(noise)


def _exp_enclosure(exponent: Decimal, precision: int) -> tuple[Decimal, Decimal]:
    """Return two decimals around e^exponent. `exp` rounds half-even whatever the context says, so step outwards."""
    context = private_context(precision)
    power = context.exp(exponent)
    return context.next_minus(power), context.next_plus(power)


def private_context(precision: int, rounding: str = ROUND_HALF_EVEN) -> Context:
    """Return a private context, so that nothing a caller did to the global one changes a threshold."""
    return Context(prec=precision, rounding=rounding, Emin=-999999, Emax=999999, capitals=1, clamp=0, traps=[])
