"""Exact arithmetic with epsilons and budgets. An amount is never rounded."""

from __future__ import annotations

import re
from collections.abc import Iterable
from decimal import Context, Decimal, Inexact, InvalidOperation

from relaxdp.errors import BudgetError, EpsilonError
from relaxdp.law.epsilon import Epsilon, as_epsilon, plain

ZERO = Decimal(0)

# An epsilon has at most 60 digits before and 160 after the point, so sums stay far below this precision. If one did
# not, the trap would raise instead of rounding.
_EXACT = Context(prec=1000, Emin=-999999, Emax=999999, capitals=1, clamp=0, traps=[Inexact, InvalidOperation])
_PLAIN = re.compile(r"[0-9]+(\.[0-9]+)?", re.ASCII)


def total(amounts: Iterable[Decimal]) -> Decimal:
    """Return the exact sum, without trailing zeros.

    >>> total([Decimal("0.1")] * 3)
    Decimal('0.3')
    """
    result = ZERO
    for amount in amounts:
        result = _EXACT.add(result, amount)
    return plain(result)


def difference(larger: Decimal, smaller: Decimal) -> Decimal:
    """Return the exact difference, without trailing zeros.

    >>> difference(Decimal("0.50"), Decimal("0.1")), difference(Decimal("0.5"), Decimal("0.5"))
    (Decimal('0.4'), Decimal('0'))
    """
    return plain(_EXACT.subtract(larger, smaller))


def from_text(text: str) -> Decimal:
    """Parse an amount such as '0.5', without sign or exponent; raise `ValueError` for any other text."""
    if not _PLAIN.fullmatch(text):
        raise ValueError("this is not an amount")
    return Decimal(text)


def as_budget(written: Epsilon) -> Decimal:
    """Return a budget as an exact, positive, finite number."""
    try:
        return as_epsilon(written)
    except EpsilonError as problem:
        raise BudgetError(
            "The budget must be a positive number.", hint="Write it like 2.5.", **problem.fields
        ) from None
