"""K-ary randomized response: levels, the distribution of a report at a level, and of one between two known ones.

The bridge has two special cases. From noise (a lower retention of 0) it is a blur of the upper report. To the truth (an
upper retention of 1) it is the relaxation of the lower report, that is Algorithm 1 of the paper. So one law, and one
sampler, serve all.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from decimal import ROUND_CEILING, Decimal
from fractions import Fraction
from functools import total_ordering
from typing import Any

from relaxdp.errors import LevelError
from relaxdp.theory.epsilon import (
    ONE,
    Epsilon,
    as_epsilon,
    compute_nonzero_threshold,
    compute_threshold,
    format_epsilon,
    make_decimal_context,
)


def compute_retention(threshold: int) -> Fraction:
    """Return the exact probability with which a report at `threshold` is the truth kept on purpose."""
    if not 0 <= threshold < ONE:
        raise ValueError(f"A threshold must be from 0 to 2**64 - 1, not {threshold}.")
    return Fraction(threshold, ONE)


def compute_odds(retention: Fraction, n_values: int | Fraction) -> Fraction:
    """Return e^epsilon of a report with this retention: how much likelier the truth is than any other value.

    (Where a truth is spread over w of D places, D / w replaces the number of values, as in `compute_threshold`.)

    >>> compute_odds(Fraction(1, 2), 2)
    Fraction(3, 1)
    """
    if not 0 <= retention < 1:
        raise ValueError(f"A retention must be in [0, 1), not {retention}.")
    return 1 + n_values * retention / (1 - retention)


def compute_log_rounded_up(ratio: Fraction, *, digits: int = 40) -> Decimal:
    """Return a decimal number that is at least the natural logarithm of `ratio` >= 1, and closer than 10^(2 - digits).

    >>> compute_log_rounded_up(Fraction(1)), round(compute_log_rounded_up(Fraction(3)), 6)
    (Decimal('0'), Decimal('1.098612'))
    """
    if ratio == 1:
        return Decimal(0)
    context = make_decimal_context(digits + 10 + len(str(ratio.denominator)), rounding=ROUND_CEILING)
    quotient = context.divide(Decimal(ratio.numerator), Decimal(ratio.denominator))
    logarithm = context.next_plus(context.ln(quotient))
    return make_decimal_context(digits, rounding=ROUND_CEILING).plus(logarithm)


Scale = tuple[str, bytes]


@total_ordering
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Level:
    """Hold an epsilon and its threshold for one mechanism. Create a level with `Mechanism.level`.

    Levels are equal, and ordered, by their threshold: two epsilons with the same threshold give the same reports.

    Args:
        epsilon: The epsilon as a decimal number.
        threshold: The threshold of every symbol, out of 2**64.
        scale: The name and the parameters of the mechanism.

    Raises:
        LevelError: Levels of different mechanisms are compared.

    Example:
        >>> from relaxdp import Categorical
        >>> answers = Categorical(["flu", "covid", "none"])
        >>> answers.level(0.1) < answers.level(0.5)
        True
    """

    epsilon: Decimal
    threshold: int
    scale: Scale
    """Name and parameters of the mechanism."""
    retention: Fraction = field(init=False)
    """The exact probability that a symbol is kept on purpose."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "retention", compute_retention(self.threshold))

    def to_dict(self) -> dict[str, str]:
        """Return the level as two texts, so that nothing is rounded. `Mechanism.level` accepts both."""
        return {"epsilon": str(self), "threshold": str(self.threshold)}

    def __eq__(self, other: object) -> bool:
        return self._require_same_mechanism(other) == self.threshold if isinstance(other, Level) else NotImplemented

    def __lt__(self, other: Level) -> bool:
        return self.threshold < self._require_same_mechanism(other) if isinstance(other, Level) else NotImplemented

    def __hash__(self) -> int:
        return hash((self.scale, self.threshold))

    def _require_same_mechanism(self, other: Level) -> int:
        if other.scale != self.scale:
            raise LevelError(
                "The two levels belong to different mechanisms or parameters, so they cannot be compared.",
                hint="Compare their epsilons: a.epsilon < b.epsilon.",
            )
        return other.threshold

    def __str__(self) -> str:
        return format_epsilon(self.epsilon)

    def __repr__(self) -> str:
        return f"<relaxdp.Level {self} of {self.scale[0]}>"


def compute_report_distribution(n_values: int, retention: Fraction, *, truth: int) -> list[Fraction]:
    """Return the distribution of a report: the truth with this retention, or else a uniform draw from all values.

    This is the randomized response of the paper with odds 1 + values * retention / (1 - retention).

    Claim: equals e^eps / (e^eps + m - 1) and 1 / (e^eps + m - 1); tests/exact/theory/test_laws.py.

    >>> compute_report_distribution(3, Fraction(1, 2), truth=1)
    [Fraction(1, 6), Fraction(2, 3), Fraction(1, 6)]
    """
    noise = (1 - retention) / n_values
    return [noise + retention if value == truth else noise for value in range(n_values)]


def compute_blur_retention(lower_retention: Fraction, upper_retention: Fraction) -> Fraction:
    """Return the retention of a blur: with which probability a report is kept when its retention is lowered.

    Retentions multiply. From zero to zero there is nothing to blur: the report stays as it is.
    """
    if lower_retention > upper_retention:
        raise ValueError("The lower retention is larger than the upper one. A blur only lowers a retention.")
    return Fraction(1) if lower_retention == upper_retention else lower_retention / upper_retention


TRUTH = Fraction(1)  # the truth is a report with full retention
NOISE = Fraction(0)


@dataclass(frozen=True, slots=True)
class BridgeMixture:
    """The mixture from which a bridge draws: the upper report, the lower one, or any value uniformly."""

    to_upper: Fraction
    to_lower: Fraction
    redraw: Fraction

    def compute_probability(self, n_values: int, value: int, *, lower_report: int, upper_report: int) -> Fraction:
        """Return the probability of one value."""
        kept = (value == upper_report) * self.to_upper + (value == lower_report) * self.to_lower
        return self.redraw / n_values + kept

    def compute_distribution(self, n_values: int, *, lower_report: int, upper_report: int) -> list[Fraction]:
        """Return the probability of every value."""
        reports = {"lower_report": lower_report, "upper_report": upper_report}
        return [self.compute_probability(n_values, value, **reports) for value in range(n_values)]


def compute_bridge_mixture(
    n_values: int, lower: Fraction, middle: Fraction, upper: Fraction, *, ends_agree: bool
) -> BridgeMixture:
    """Return the mixture of a report between two others, which show the same value (`ends_agree`) or different ones.

    By Bayes the law is proportional to blur(middle / upper)[v | upper report] * blur(lower / middle)[lower report | v].
    Multiplied out, each factor is "keep, or draw uniformly", so the product is a mixture of the two ends and of noise.

    Claim: equals the product of the two blurs, normalised; tests/exact/theory/test_laws.py.
    """
    if not 0 <= lower <= middle <= upper <= 1:
        raise ValueError("The retentions are not in order. Expected 0 <= lower <= middle <= upper <= 1.")
    above, below = (compute_blur_retention(middle, upper), compute_blur_retention(lower, middle))
    only_above, only_below, neither = above * (1 - below), below * (1 - above), (1 - above) * (1 - below)
    both = n_values * above * below if ends_agree else Fraction(0)
    total = both + only_above + only_below + neither
    if total == 0:
        raise ValueError("Different reports at equal levels have no bridge.")
    if ends_agree:  # both ends are one value, so it does not matter which of them a draw goes to
        return BridgeMixture((both + only_above + only_below) / total, Fraction(0), neither / total)
    return BridgeMixture(only_above / total, only_below / total, neither / total)


def compute_bridge_distribution(
    n_values: int, lower: Fraction, middle: Fraction, upper: Fraction, *, lower_report: int, upper_report: int
) -> list[Fraction]:
    """Return the distribution of a report between two known reports, without the truth.

    The holder of the upper report can release every lower level. Each new level must be drawn from its two nearest
    neighbours among all levels that were released.

    >>> compute_bridge_distribution(2, Fraction(1, 4), Fraction(1, 2), Fraction(3, 4), lower_report=0, upper_report=1)
    [Fraction(3, 8), Fraction(5, 8)]
    """
    mixture = compute_bridge_mixture(n_values, lower, middle, upper, ends_agree=lower_report == upper_report)
    return mixture.compute_distribution(n_values, lower_report=lower_report, upper_report=upper_report)


def compute_next_report_distribution(
    n_values: int, old_retention: Fraction, new_retention: Fraction, *, truth: int, last_report: int
) -> list[Fraction]:
    """Return the distribution of the next report, given the truth and the last one: a step of Algorithm 1.

    We pretend that the new report came first and was then blurred into the last one.
    The blur never sees the truth, so both reports together reveal no more than the new one alone.

    Claim: equals p_aa, p_ba, p_bb of the paper; checked exactly in tests/exact/theory/test_laws.py.
    """
    retentions = old_retention, new_retention, TRUTH
    return compute_bridge_distribution(n_values, *retentions, lower_report=last_report, upper_report=truth)


@dataclass(frozen=True, slots=True)
class CloneProbabilities:
    """The probabilities of clones of a report, for any two truths: the input of amplification by shuffling.

    A report supports its own truth of the two with probability `own`, the other one with `clone`, and neither of them
    with `neither`. The rest of its distribution is the same for both. Reports of all other truths support each of the
    two with `clone` at least, and neither with `neither` at least.
    """

    own: Fraction
    clone: Fraction
    neither: Fraction

    @classmethod
    def from_one_symbol(cls, retention: Fraction, n_values: int, share: Fraction | int = 1) -> CloneProbabilities:
        """Return those of a report that is one symbol, one of the values; a `share` of reports distinguish truths."""
        other = (1 - retention) / n_values
        return cls(own=(retention + other) * share, clone=other * share, neither=(n_values - 2) * other * share)


@dataclass(frozen=True, slots=True)
class SupportProbabilities:
    """The probability that a report supports a value: `noise` for every truth, plus `gain` if it is the truth."""

    noise: Fraction
    gain: Fraction

    @classmethod
    def from_one_symbol(cls, retention: Fraction, n_values: int) -> SupportProbabilities:
        """Return those of a report that is one symbol: one of the values itself."""
        return cls(noise=(1 - retention) / n_values, gain=retention)

    @property
    def hit(self) -> Fraction:
        """The probability of a hit: that a report supports its own truth."""
        return self.noise + self.gain

    def debias(self, supporting_share: Any) -> Any:
        """Return the unbiased share of truths behind a share of supporting reports, exact or as an array of floats.

        E[share] = noise + gain * truth, solved for the truth.

        Claim: equals P^-1 H of the paper; tests/exact/estimation/test_estimators.py.

        >>> SupportProbabilities(noise=Fraction(1, 6), gain=Fraction(1, 2)).debias(Fraction(1, 2))
        Fraction(2, 3)
        """
        if isinstance(supporting_share, Fraction):
            return (supporting_share - self.noise) / self.gain
        return (supporting_share - float(self.noise)) / float(self.gain)


@dataclass(frozen=True, slots=True)
class RelaxationLaw:
    """The probabilities of the next report, given the last one. The truth is a, another value is b.

    The first letter is the last report, the second letter the next one. The fields are exact fractions. Use `float()`
    or `print` to read them.
    """

    values: int
    p_aa: Fraction
    """The last report was the truth and the next one is too."""
    p_ba: Fraction
    """The last report was another value and the next one is the truth."""
    p_bb: Fraction
    """The last report was another value and the next one is the same."""

    def __str__(self) -> str:
        return (
            f"m = {self.values}: p_aa = {float(self.p_aa):.6f}, "
            f"p_ba = {float(self.p_ba):.6f}, p_bb = {float(self.p_bb):.6f}"
        )

    __repr__ = __str__


def relaxation_law(*, m: int, old_epsilon: Epsilon, new_epsilon: Epsilon) -> RelaxationLaw:
    """Compute the law of a relaxation from `old_epsilon` to `new_epsilon`: p_aa, p_ba and p_bb of the paper.

    The probabilities are those of the thresholds that are really used. They differ from the paper's real numbers by
    less than 2^-63.

    Claim: the tables of the paper's appendix to all printed digits; tests/exact/paper/test_tables.py.

    Args:
        m: The number of values, 2 or more.
        old_epsilon: The epsilon of the last report. With 0 the last report was pure noise.
        new_epsilon: The epsilon of the next report.

    Returns:
        The three probabilities as exact fractions.

    Raises:
        LevelError: `new_epsilon` is below `old_epsilon`.
        EpsilonError: An epsilon is not a number, is negative, or is too small.
        ValuesError: `m` is not a whole number from 2 to 2**32.

    Example:
        >>> relaxation_law(m=3, old_epsilon=0.1, new_epsilon=0.5)
        m = 3: p_aa = 0.584433, p_ba = 0.378607, p_bb = 0.391757
    """
    old, new = as_epsilon(old_epsilon, allow_zero=True), as_epsilon(new_epsilon)
    if new < old:
        raise LevelError(
            "A relaxation from {old_epsilon} to {new_epsilon} is not possible. Epsilon may only grow.",
            hint="Pass a new_epsilon of {old_epsilon} or more.",
            old_epsilon=format_epsilon(old),
            new_epsilon=format_epsilon(new),
        )
    levels = compute_retention(compute_threshold(old, m)), compute_retention(compute_nonzero_threshold(new, m))
    same, other = (compute_bridge_mixture(m, *levels, TRUTH, ends_agree=agree) for agree in (True, False))
    return RelaxationLaw(
        m,
        p_aa=same.compute_probability(m, 0, lower_report=0, upper_report=0),
        p_ba=other.compute_probability(m, 0, lower_report=1, upper_report=0),
        p_bb=other.compute_probability(m, 1, lower_report=1, upper_report=0),
    )
