"""What a claim of the paper is, what checking it gives, and the verdict that follows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from relaxdp.paper.lab import Lab


class Verdict(StrEnum):
    """What a program can say of a claim."""

    HOLDS = "holds"
    CORRECTED = "holds as corrected"
    FAILS = "does not hold"
    UNCHECKABLE = "not checkable here"


@dataclass(frozen=True, slots=True)
class ClaimCheck:
    """One thing that was tested, and how often a correct program would fail it by chance."""

    name: str
    passed: bool
    detail: str
    false_alarm: float = 0.0
    """0 where nothing is random: such a check compares exact numbers."""


@dataclass(frozen=True, slots=True)
class Data:
    """Numbers behind a claim, which become a CSV file."""

    columns: Sequence[str]
    rows: Sequence[Sequence[Any]]


@dataclass(frozen=True, slots=True)
class Picture:
    """A figure that is drawn when it is asked for; `draw` returns matplotlib's figure."""

    caption: str
    draw: Callable[[], Any]


@dataclass(frozen=True, slots=True)
class ClaimOutcome:
    """What was measured, by which test, and what there is to show for it."""

    measured: str
    test: str
    checks: Sequence[ClaimCheck]
    data: dict[str, Data] = field(default_factory=dict)
    pictures: dict[str, Picture] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Claim:
    """Something that the paper says, where it says it, and the function that checks it."""

    name: str
    title: str
    place: str
    statement: str
    check: Callable[[Lab], ClaimOutcome]
    correction: str | None = None
    """What must read differently for the claim to hold; None where it holds as printed."""
    unchecked: str | None = None
    """Why the claim cannot be checked here; what can be checked around it still is."""


@dataclass(frozen=True, slots=True)
class Judged:
    """A claim and what came of it."""

    claim: Claim
    outcome: ClaimOutcome

    @property
    def verdict(self) -> Verdict:
        """A failed check is a claim that does not hold, whatever else is known about it."""
        if not all(check.passed for check in self.outcome.checks):
            return Verdict.FAILS
        if self.claim.unchecked:
            return Verdict.UNCHECKABLE
        return Verdict.CORRECTED if self.claim.correction else Verdict.HOLDS

    @property
    def false_alarm(self) -> float:
        """How likely a correct program is to fail this claim, at most: the sum over its checks."""
        return sum(check.false_alarm for check in self.outcome.checks)
