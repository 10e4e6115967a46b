"""Thresholds: the largest one that an epsilon allows, rounded to the private side."""

from __future__ import annotations

from decimal import ROUND_FLOOR, ROUND_HALF_EVEN, Context, Decimal
from fractions import Fraction
from functools import lru_cache
from math import ceil

from relaxdp.errors import EpsilonError
from relaxdp.law.epsilon import Epsilon, as_epsilon, epsilon_text

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
