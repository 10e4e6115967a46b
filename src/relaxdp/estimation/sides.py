"""What is planned: an answer of so many values, numbers in a range, or whatever a mechanism answers."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from functools import cache, cached_property

from relaxdp.errors import PlanError
from relaxdp.estimation.advice import VALUE_MECHANISMS, rank_mechanisms, rank_number_mechanisms
from relaxdp.estimation.spreads import categorical_support
from relaxdp.mechanisms.base import Measure, Mechanism
from relaxdp.mechanisms.registry import create_mechanism
from relaxdp.mechanisms.square_wave import BINS, SquareWave
from relaxdp.theory.epsilon import MAX_VALUES
from relaxdp.theory.response import Support


@dataclass(frozen=True)
class Numbers:
    """Numbers in a range whose encoding is still open, or known by its name."""

    low: float
    high: float
    bins: int = BINS

    def __post_init__(self) -> None:
        """Refuse what is no range, and what are no bins."""
        self.encoded("numeric", Decimal(1))
        self.encoded("wave", Decimal(1))

    def encoded(self, name: str, last: Decimal) -> Mechanism:
        """Return the encoding of this name, for a last epsilon."""
        return _of_numbers(name, self.low, self.high, self.bins if name == SquareWave.name else None, last)

    @cached_property
    def measure(self) -> Measure | None:
        """What is answered: a mean within the range."""
        return self.encoded("numeric", Decimal(1)).measure


@cache
def _of_numbers(name: str, low: float, high: float, bins: int | None, last: Decimal) -> Mechanism:
    return create_mechanism(name, range=(low, high), options={} if bins is None else {"bins": bins}, epsilon=last)


Planned = int | Numbers | Mechanism
"""How many values a categorical answer can have, numbers in a range, or the mechanism that will release it."""


class Side:
    """One column that is planned: so many values, however they are encoded, or what a mechanism answers."""

    def __init__(self, of: Planned, encoding: str | None) -> None:
        self.numbers = of if isinstance(of, Numbers) else None
        self.encoding: Mechanism | None = None if isinstance(of, int | Numbers) else of
        self.values = of if isinstance(of, int) else 2 if isinstance(of, Numbers) else len(of.labels)
        if not 2 <= self.values <= MAX_VALUES:
            raise PlanError(
                "The number of values must be from 2 to 2**32, not {values}.",
                hint="Pass the number of possible answers, such as values=3.",
                values=self.values,
            )
        if self.encoding is not None and encoding not in (None, "auto"):
            raise PlanError(
                "`values` is a mechanism already, so no other one can be named.",
                hint="Pass the number of values, such as values=3, to name a mechanism.",
            )
        self.name = encoding or ("categorical" if self.numbers is None else "auto")

    @property
    def measure(self) -> Measure | None:
        """What is answered is a mean; None where it is shares."""
        if self.numbers is not None:
            return self.numbers.measure
        return None if self.encoding is None else self.encoding.measure

    def named_at(self, epsilon: Decimal) -> str | None:
        """Return the encoding that is chosen for a last epsilon; None where it was not left open."""
        if self.encoding is not None or self.name != "auto":
            return None
        return (rank_mechanisms(self.values, epsilon) if self.numbers is None else rank_number_mechanisms(epsilon)).best

    def encoded(self, last: Decimal) -> Mechanism | None:
        """Return the encoding for a last epsilon; None for a number of values."""
        return self.encoding if self.numbers is None else self.numbers.encoded(self.named_at(last) or self.name, last)

    def support(self, level: Decimal, last: Decimal) -> Support:
        """Return the chances of a report at a level, where the encoding is that of the last epsilon."""
        fixed = self.encoded(last)
        if fixed is not None:
            return fixed.support(fixed.level(level).retention)
        name = self.named_at(last) or self.name
        if name == "categorical":
            return categorical_support(level, self.values)
        encoding = made_for(name, self.values, last)
        return encoding.support(encoding.level(level).retention)


@cache
def made_for(name: str, values: int, last: Decimal) -> Mechanism:
    """Return an encoding of so many values, or of fewer that are as good."""
    # Bits and hashes support a value with the same chances however many others there are.
    few = min(values, _FEW) if name in VALUE_MECHANISMS else values
    return create_mechanism(name, values=range(few), epsilon=last)


_FEW = 64
