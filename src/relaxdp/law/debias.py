"""Debiasing: from shares of reports to shares of truths, in closed form (the paper's P^-1 H without a matrix)."""

from __future__ import annotations

from typing import Any


def debias(share: Any, keep: Any, values: int) -> Any:
    """Return the unbiased share of truths behind a share of reports with retention `keep`.

    E[share] = keep * truth + (1 - keep) / values, solved for the truth. Works on fractions, floats and arrays.

    >>> from fractions import Fraction
    >>> debias(Fraction(1, 2), Fraction(1, 2), 3)
    Fraction(2, 3)
    """
    return (share - (1 - keep) / values) / keep
