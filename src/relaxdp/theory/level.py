"""Levels: an epsilon and its threshold as one type, and the guarantee of a threshold."""

from __future__ import annotations

from dataclasses import dataclass, field
from decimal import ROUND_CEILING, Decimal
from fractions import Fraction
from functools import total_ordering

from relaxdp.errors import LevelError
from relaxdp.theory.epsilon import ONE, format_epsilon, make_decimal_context


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
                "Levels of different mechanisms cannot be compared. A threshold has a meaning only "
                "within its mechanism.",
                hint="Compare their epsilons: a.epsilon < b.epsilon.",
            )
        return other.threshold

    def __str__(self) -> str:
        return format_epsilon(self.epsilon)

    def __repr__(self) -> str:
        return f"<relaxdp.Level {self} of {self.scale[0]}>"
