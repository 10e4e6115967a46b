"""A level: an epsilon, and the threshold that realises it under one encoding."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import total_ordering

from relaxdp.errors import OtherEncodingError
from relaxdp.law.epsilon import epsilon_text
from relaxdp.law.threshold import retention

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

    @property
    def retention(self) -> Fraction:
        """The exact probability with which a symbol is kept on purpose."""
        return retention(self.threshold)

    def to_json(self) -> dict[str, str]:
        """Return the level as it travels: two texts, so that nothing is rounded. `Encoding.level` reads it."""
        return {"epsilon": epsilon_text(self.epsilon), "threshold": str(self.threshold)}

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
