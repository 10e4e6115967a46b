"""What was measured, as plain records: the suite makes them, the report shows them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from benchmarks.settings import Settings
from benchmarks.timing import Race, Ratio


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two contenders of one race, and how many times as fast the first is meant to be at least."""

    race: str
    contender: str
    rival: str
    ratio: Ratio
    target: float | None

    @property
    def met(self) -> bool | None:
        """Whether the target is met; None where there is none."""
        return None if self.target is None else self.ratio.median >= self.target


def compare(race: Race, contender: str, rival: str, target: float | None) -> Comparison:
    """Return how two contenders of a race did."""
    return Comparison(race.title, contender, rival, race.ratio(contender, rival), target)


@dataclass(frozen=True, slots=True)
class Memory:
    """The largest memory of one call beyond its inputs and its result, in bytes."""

    objects: int
    resident: int | None
    """What the process grew by, as the operating system sees it; None where it does not say."""
    allocated: int
    """What Python and NumPy asked for: exact, but blind to other libraries."""


@dataclass(frozen=True, slots=True)
class MemoryComparison:
    """The same call on few and on many objects."""

    what: str
    few: Memory
    many: Memory

    # A difference of a tenth of a byte per object is the noise of the operating system's pages, not a buffer.
    TOLERANCE: ClassVar[float] = 0.1

    @property
    def growth(self) -> float:
        """How many bytes each further object costs; the worse of the two ways to measure."""
        differences = [self.many.allocated - self.few.allocated]
        if self.few.resident is not None and self.many.resident is not None:
            differences.append(self.many.resident - self.few.resident)
        return max(differences) / (self.many.objects - self.few.objects)

    @property
    def met(self) -> bool:
        """Whether memory does not grow with the number of objects."""
        return self.growth <= self.TOLERANCE


@dataclass(frozen=True, slots=True)
class Results:
    """Everything that one run measured."""

    races: list[Race]
    comparisons: list[Comparison]
    memory: list[MemoryComparison]
    left_out: list[str]
    settings: Settings
    quick: bool
