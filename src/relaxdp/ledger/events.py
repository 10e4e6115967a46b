"""What happened: frozen events, in the order in which they happened. What they cost is said elsewhere."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Literal

from relaxdp.draw.stream import PathId
from relaxdp.law.epsilon import epsilon_text
from relaxdp.ledger.entries import PathFacts, Sampler, Subject


@dataclass(frozen=True, slots=True)
class _Event:
    """What all events have: who it is about, and when (UTC)."""

    subject: Subject
    time: datetime

    def _line(self, what: str, reason: str) -> str:
        because = f" ({reason})" if reason else ""
        return f"{self.time:%Y-%m-%d %H:%M:%S} {self.subject}: {what}{because}"


@dataclass(frozen=True, slots=True)
class BudgetSet(_Event):
    """The first budget of a subject."""

    budget: Decimal
    reason: str

    def __str__(self) -> str:
        return self._line(f"budget set to {epsilon_text(self.budget)}", self.reason)


@dataclass(frozen=True, slots=True)
class BudgetRaised(_Event):
    """A larger budget; by hand, by a date, by a sale: the reason says it."""

    previous: Decimal
    budget: Decimal
    reason: str

    def __str__(self) -> str:
        ends = f"from {epsilon_text(self.previous)} to {epsilon_text(self.budget)}"
        return self._line(f"budget raised {ends}", self.reason)


@dataclass(frozen=True, slots=True)
class PathOpened(_Event):
    """A path from which nothing was read yet, or one that goes on with Algorithm 1. An epoch above 1 was forced."""

    path: PathId
    facts: PathFacts
    reason: str = ""

    def __str__(self) -> str:
        is_step = self.facts.sampler is Sampler.ALGORITHM_1
        how = ", goes on with Algorithm 1" if is_step else ", forced" if self.path.epoch > 1 else ""
        return self._line(f"path opened for {self.path}{how}", self.reason)


@dataclass(frozen=True, slots=True)
class LevelReleased(_Event):
    """A level that was read from a path, and what that added to what is spent."""

    path: PathId
    epsilon: Decimal
    cost: Decimal
    table_fingerprint: str | None
    reason: str = ""
    digest: str | None = None
    """Of the file that holds what was drawn, where that cannot be drawn again."""
    snapshot: str | None = None
    """Of the sealed copy of what it was drawn from, where one was made."""

    @property
    def kind(self) -> Literal["released", "re-issued"]:
        """Whether it was a level above all before it, or one that cost nothing."""
        return "released" if self.cost else "re-issued"

    def __str__(self) -> str:
        comma = "," if self.path.epoch > 1 else ""
        level = f"at {epsilon_text(self.epsilon)} for {epsilon_text(self.cost)}"
        digest = f", sha256 {self.digest}" if self.digest else ""
        return self._line(f"{self.kind} {self.path}{comma} {level}{digest}", self.reason)


@dataclass(frozen=True, slots=True)
class DateDeclared(_Event):
    """A date of a series of releases, and what each of its columns may cost; or more than before."""

    release: str
    date: str
    budget: Decimal
    reason: str

    def __str__(self) -> str:
        return self._line(f"{self.date} of release {self.release!r} may cost {epsilon_text(self.budget)}", self.reason)


@dataclass(frozen=True, slots=True)
class BegunAnew(_Event):
    """A key that had spent elsewhere began to spend here too, on purpose: what is spent there has to be added."""

    key_fingerprint: str
    reason: str

    def __str__(self) -> str:
        return self._line(f"begun anew for the key {self.key_fingerprint}, which has spent elsewhere", self.reason)


Event = BegunAnew | DateDeclared | PathOpened | BudgetSet | BudgetRaised | LevelReleased
