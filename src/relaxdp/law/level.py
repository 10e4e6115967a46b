"""Levels: an epsilon and its threshold as one type, the retention that it is, and what it guarantees."""

from __future__ import annotations

from dataclasses import dataclass, field
from decimal import ROUND_CEILING, Decimal
from fractions import Fraction
from functools import total_ordering

from relaxdp.errors import OtherEncodingError
from relaxdp.law.epsilon import ONE, epsilon_text, private_context


def retention(level: int) -> Fraction:
    """Return the exact probability with which a report at threshold `level` is the truth kept on purpose."""
    if not 0 <= level < ONE:
        raise ValueError(f"a threshold lies in 0 .. 2**64 - 1, not {level}")
    return Fraction(level, ONE)


def odds(keep: Fraction, values: int | Fraction) -> Fraction:
    """Return e^epsilon of a report with retention `keep`: how much likelier the truth is than any other value.

    (Where a truth is spread over w of D places, D / w stands in the place of the number of values, as in `threshold`.)

    >>> odds(Fraction(1, 2), 2)
    Fraction(3, 1)
    """
    if not 0 <= keep < 1:
        raise ValueError(f"a retention lies in [0, 1), not {keep}")
    return 1 + values * keep / (1 - keep)


def realised_epsilon(level: int, values: int, *, digits: int = 40) -> Decimal:
    """Return the guarantee that a threshold really gives, rounded up in its last digit (the private side)."""
    return log_up(odds(retention(level), values), digits=digits)


def log_up(ratio: Fraction, *, digits: int = 40) -> Decimal:
    """Return a decimal number that is at least the natural logarithm of `ratio` >= 1, and closer than 10^(2 - digits).

    >>> log_up(Fraction(1)), round(log_up(Fraction(3)), 6)
    (Decimal('0'), Decimal('1.098612'))
    """
    if ratio == 1:
        return Decimal(0)
    context = private_context(digits + 10 + len(str(ratio.denominator)), rounding=ROUND_CEILING)
    quotient = context.divide(Decimal(ratio.numerator), Decimal(ratio.denominator))
    logarithm = context.next_plus(context.ln(quotient))
    return private_context(digits, rounding=ROUND_CEILING).plus(logarithm)


Scale = tuple[str, bytes]


@total_ordering
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Level:
    """How much a report tells. Only `Encoding.level` makes one, because the threshold depends on the encoding.

    Levels are equal, and ordered, by their threshold: two epsilons with one threshold give the same reports. Those of
    two encodings are not comparable, and comparing them is an error.
    """

    epsilon: Decimal
    threshold: int
    scale: Scale
    """Name and parameters of the encoding."""
    retention: Fraction = field(init=False)
    """The exact probability with which a symbol is kept on purpose."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "retention", retention(self.threshold))

    def to_json(self) -> dict[str, str]:
        """Return the level as it travels: two texts, so that nothing is rounded. `Encoding.level` reads it."""
        return {"epsilon": str(self), "threshold": str(self.threshold)}

    def __eq__(self, other: object) -> bool:
        return self._same(other) == self.threshold if isinstance(other, Level) else NotImplemented

    def __lt__(self, other: Level) -> bool:
        return self.threshold < self._same(other) if isinstance(other, Level) else NotImplemented

    def __hash__(self) -> int:
        return hash((self.scale, self.threshold))

    def _same(self, other: Level) -> int:
        if other.scale != self.scale:
            raise OtherEncodingError("levels of two encodings cannot be compared.")
        return other.threshold

    def __str__(self) -> str:
        return epsilon_text(self.epsilon)

    def __repr__(self) -> str:
        return f"<relaxdp.Level {self} of {self.scale[0]}>"
