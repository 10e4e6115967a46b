"""Support and debiasing: from shares of reports to shares of truths, in closed form (P^-1 H without a matrix).

And what hides a report among others.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any


@dataclass(frozen=True, slots=True)
class Cover:
    """What hides a report among others, for any two truths: the chances of those that tell them apart, and of others.

    With probability `own` a report speaks for its own truth of the two, with `clone` for the other one, with `neither`
    for none of both. Whatever else it is, is the same for both. Every other truth's reports speak for each of both with
    `clone` at least, and for none with `neither` at least.
    """

    own: Fraction
    clone: Fraction
    neither: Fraction

    @classmethod
    def of_one_symbol(cls, keep: Fraction, values: int, share: Fraction | int = 1) -> Cover:
        """Return the cover of a report that is one of `values` values itself, a `share` of which tell truths apart."""
        other = (1 - keep) / values
        return cls(own=(keep + other) * share, clone=other * share, neither=(values - 2) * other * share)


@dataclass(frozen=True, slots=True)
class Support:
    """With which probability a report supports a value: `noise` whatever the truth, and `gain` more if it is it."""

    noise: Fraction
    gain: Fraction

    @classmethod
    def of_one_symbol(cls, keep: Fraction, values: int) -> Support:
        """Return the support of a report that is one of `values` values itself, with retention `keep`."""
        return cls(noise=(1 - keep) / values, gain=keep)

    @property
    def hit(self) -> Fraction:
        """The probability that a report supports its own truth."""
        return self.noise + self.gain

    def debias(self, share: Any) -> Any:
        """Return the unbiased share of truths behind a share of supporting reports, exact or as an array of floats.

        E[share] = noise + gain * truth, solved for the truth.

        Claim: equals P^-1 H of the paper; tests/exact/estimation/test_estimators.py.

        >>> Support(noise=Fraction(1, 6), gain=Fraction(1, 2)).debias(Fraction(1, 2))
        Fraction(2, 3)
        """
        if isinstance(share, Fraction):
            return (share - self.noise) / self.gain
        return (share - float(self.noise)) / float(self.gain)
