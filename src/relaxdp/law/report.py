"""The law of one report, and of a blurred one: retention is the only parameter."""

from __future__ import annotations

from fractions import Fraction


def report_law(values: int, keep: Fraction, *, truth: int) -> list[Fraction]:
    """Return the law of a report with retention `keep`: the truth, or else a uniform draw from all values.

    This is the randomized response of the paper with odds 1 + values * keep / (1 - keep).

    Claim: equals e^eps / (e^eps + m - 1) and 1 / (e^eps + m - 1); tests/exact/test_laws.py.

    >>> report_law(3, Fraction(1, 2), truth=1)
    [Fraction(1, 6), Fraction(2, 3), Fraction(1, 6)]
    """
    noise = (1 - keep) / values
    return [noise + keep if value == truth else noise for value in range(values)]


def blur_ratio(lower: Fraction, upper: Fraction) -> Fraction:
    """Return with which probability a report at retention `upper` is kept when it is blurred down to `lower`.

    Retentions multiply. From zero to zero there is nothing to blur: the report stays as it is.
    """
    if lower > upper:
        raise ValueError("a blur goes down: the lower retention is larger than the upper one")
    return Fraction(1) if lower == upper else lower / upper


def blur_law(values: int, lower: Fraction, upper: Fraction, *, report: int) -> list[Fraction]:
    """Return the law of a report at retention `upper` after it was blurred to `lower`. The truth is not needed.

    >>> blur_law(2, Fraction(1, 4), Fraction(1, 2), report=0)
    [Fraction(3, 4), Fraction(1, 4)]
    """
    return report_law(values, blur_ratio(lower, upper), truth=report)
