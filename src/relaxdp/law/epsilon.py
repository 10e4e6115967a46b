"""Epsilon as a person wrote it: an exact decimal number, never a binary float."""

from __future__ import annotations

from decimal import Decimal, InvalidOperation
from typing import Any

from relaxdp.errors import EpsilonError, without_keys

Epsilon = Decimal | int | str | float

# More digits than anybody writes by hand; these bound the work that a hostile string can cause.
MOST_DIGITS = 60
LEAST_EXPONENT = -100


def as_epsilon(written: Epsilon, *, zero: bool = False) -> Decimal:
    """Return `written` as an exact, positive `Decimal`; zero only where `zero` allows it.

    A float means the shortest decimal number that prints as it, which is what the person typed: 0.1 is one tenth.
    A float32 does not print as what was typed, so it is refused instead of guessed at.

    >>> as_epsilon(0.1), as_epsilon("2.50"), as_epsilon(1)
    (Decimal('0.1'), Decimal('2.5'), Decimal('1'))
    """
    number = _as_decimal(written)
    if number is None:
        raise EpsilonError("epsilon must be a number such as 0.5 or '0.5', not {epsilon}.", epsilon=_shown(written))
    if not number.is_finite():
        raise EpsilonError("epsilon must be finite, not {epsilon}.", epsilon=_shown(written))
    if number < 0 or (number == 0 and not zero):
        raise EpsilonError(
            "epsilon must be zero or more, not {epsilon}."
            if zero
            else "epsilon must be greater than 0, not {epsilon}.",
            epsilon=_shown(written),
        )
    if len(number.as_tuple().digits) > MOST_DIGITS or number.adjusted() >= MOST_DIGITS:
        raise EpsilonError("epsilon must have at most {most} digits.", most=MOST_DIGITS, epsilon=_shown(written))
    if number.adjusted() < LEAST_EXPONENT and number != 0:
        raise EpsilonError("epsilon {epsilon} is too small to be realised.", epsilon=_shown(written))
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
