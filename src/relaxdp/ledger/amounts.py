"""Sums and differences of epsilon, exact whatever the caller did to the decimal context, and their one spelling."""

from __future__ import annotations

import re
from collections.abc import Iterable
from decimal import Context, Decimal, Inexact, InvalidOperation

from relaxdp.errors import BudgetError, EpsilonError
from relaxdp.law.epsilon import Epsilon, as_epsilon, epsilon_text

ZERO = Decimal(0)

# An epsilon has at most 60 digits before and 160 behind the point, so no ledger comes near this; if one did, the
# trap would stop it: an amount is never rounded.
_EXACT = Context(prec=1000, Emin=-999999, Emax=999999, capitals=1, clamp=0, traps=[Inexact, InvalidOperation])
_PLAIN = re.compile(r"[0-9]+(\.[0-9]+)?", re.ASCII)


def total(amounts: Iterable[Decimal]) -> Decimal:
    """Return the exact sum, in plain spelling.

    >>> total([Decimal("0.1")] * 3)
    Decimal('0.3')
    """
    result = ZERO
    for amount in amounts:
        result = _EXACT.add(result, amount)
    return Decimal(epsilon_text(result))


def difference(larger: Decimal, smaller: Decimal) -> Decimal:
    """Return the exact difference, in plain spelling.

    >>> difference(Decimal("0.50"), Decimal("0.1")), difference(Decimal("0.5"), Decimal("0.5"))
    (Decimal('0.4'), Decimal('0'))
    """
    return Decimal(epsilon_text(_EXACT.subtract(larger, smaller)))


def from_text(text: str) -> Decimal:
    """Return an amount as the ledger wrote it; anything else is a `ValueError`, because it did not write it."""
    if not _PLAIN.fullmatch(text):
        raise ValueError("this is not an amount")
    return Decimal(text)


def as_budget(written: Epsilon) -> Decimal:
    """Return a budget as an exact, positive, finite number: there is no unlimited one."""
    try:
        return as_epsilon(written)
    except EpsilonError as problem:
        sentence = problem.message.replace("epsilon", "a budget", 1)
        raise BudgetError(f"{sentence} Nothing was changed.", **problem.fields) from None
