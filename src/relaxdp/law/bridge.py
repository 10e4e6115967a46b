"""The law of one report, and the bridge: the law of a report between two known ones.

Relaxing and blurring are its two special cases. A bridge from noise (a lower retention of 0) is a blur of the upper
report. A bridge to the truth (an upper retention of 1) is the relaxation of the lower report, that is Algorithm 1 of
the paper. So one law, and one sampler, serve all.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction


def report_law(values: int, keep: Fraction, *, truth: int) -> list[Fraction]:
    """Return the law of a report with retention `keep`: the truth, or else a uniform draw from all values.

    This is the randomized response of the paper with odds 1 + values * keep / (1 - keep).

    Claim: equals e^eps / (e^eps + m - 1) and 1 / (e^eps + m - 1); tests/exact/law/test_laws.py.

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


TRUTH = Fraction(1)  # the truth is a report with full retention
NOISE = Fraction(0)


@dataclass(frozen=True, slots=True)
class Mixture:
    """A law in the form in which it is drawn: take the upper report, or the lower one, or any value uniformly."""

    to_upper: Fraction
    to_lower: Fraction
    redraw: Fraction

    def probability(self, values: int, value: int, *, lower: int, upper: int) -> Fraction:
        """Return the probability of one value."""
        return self.redraw / values + (value == upper) * self.to_upper + (value == lower) * self.to_lower

    def law(self, values: int, *, lower: int, upper: int) -> list[Fraction]:
        """Return the probability of every value."""
        return [self.probability(values, value, lower=lower, upper=upper) for value in range(values)]


def bridge_mixture(values: int, lower: Fraction, middle: Fraction, upper: Fraction, *, agree: bool) -> Mixture:
    """Return the bridge's law at retention `middle`, for ends that show the same value (`agree`) or different ones.

    By Bayes the law is proportional to blur(middle / upper)[v | upper report] * blur(lower / middle)[lower report | v].
    Multiplied out, each factor is "keep, or draw uniformly", so the product is a mixture of the two ends and of noise.

    Claim: equals the product of the two blurs, normalised; tests/exact/law/test_laws.py.
    """
    if not 0 <= lower <= middle <= upper <= 1:
        raise ValueError("a bridge needs 0 <= lower <= middle <= upper <= 1")
    above, below = blur_ratio(middle, upper), blur_ratio(lower, middle)
    only_above, only_below, neither = above * (1 - below), below * (1 - above), (1 - above) * (1 - below)
    both = values * above * below if agree else Fraction(0)
    total = both + only_above + only_below + neither
    if total == 0:
        raise ValueError("there is no bridge between different reports at equal levels")
    if agree:  # both ends are one value, so it does not matter which of them a draw goes to
        return Mixture((both + only_above + only_below) / total, Fraction(0), neither / total)
    return Mixture(only_above / total, only_below / total, neither / total)


def bridge_law(
    values: int, lower: Fraction, middle: Fraction, upper: Fraction, *, lower_report: int, upper_report: int
) -> list[Fraction]:
    """Return the law of a report at `middle` between two known reports, without the truth.

    Whoever holds the upper report can serve every lower level, as long as each new level is drawn from its two
    nearest neighbours among all levels that are out.

    >>> bridge_law(2, Fraction(1, 4), Fraction(1, 2), Fraction(3, 4), lower_report=0, upper_report=1)
    [Fraction(3, 8), Fraction(5, 8)]
    """
    mixture = bridge_mixture(values, lower, middle, upper, agree=lower_report == upper_report)
    return mixture.law(values, lower=lower_report, upper=upper_report)


def next_report_law(values: int, old: Fraction, new: Fraction, *, truth: int, last: int) -> list[Fraction]:
    """Return the law of the next report, given the truth and the last report: one step of Algorithm 1.

    `old` and `new` are retentions. We pretend that the new report came first and was then blurred into `last`.
    The blur never sees the truth, so both reports together reveal no more than the new one alone.

    Claim: equals p_aa, p_ba, p_bb of the paper; checked exactly in tests/exact/law/test_laws.py.
    """
    return bridge_law(values, old, new, TRUTH, lower_report=last, upper_report=truth)
