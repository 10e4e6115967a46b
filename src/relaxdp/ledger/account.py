"""The account of one subject: what its events add up to, exactly. A pure fold, without a store or a clock."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from decimal import Context, Decimal, Inexact, InvalidOperation

from relaxdp.draw.stream import PathId
from relaxdp.errors import BudgetError, EpsilonError, UnknownSubjectError
from relaxdp.law.epsilon import Epsilon, as_epsilon, plain
from relaxdp.ledger.entries import PathFacts, Subject
from relaxdp.ledger.events import (
    BegunAnew,
    BudgetRaised,
    BudgetSet,
    DateDeclared,
    Event,
    LevelReleased,
    PathOpened,
)

ZERO = Decimal(0)

# An epsilon has at most 60 digits before and 160 behind the point, so no ledger comes near this; if one did, the
# trap would stop it: an amount is never rounded.
_EXACT = Context(prec=1000, Emin=-999999, Emax=999999, capitals=1, clamp=0, traps=[Inexact, InvalidOperation])
_PLAIN = re.compile(r"[0-9]+(\.[0-9]+)?", re.ASCII)


def total(amounts: Iterable[Decimal]) -> Decimal:
    """Return the exact sum, in plain spelling.

    >>> total([Decimal("0.1")] * 3)
    Decimal('0.3')
    """
    result = ZERO
    for amount in amounts:
        result = _EXACT.add(result, amount)
    return plain(result)


def difference(larger: Decimal, smaller: Decimal) -> Decimal:
    """Return the exact difference, in plain spelling.

    >>> difference(Decimal("0.50"), Decimal("0.1")), difference(Decimal("0.5"), Decimal("0.5"))
    (Decimal('0.4'), Decimal('0'))
    """
    return plain(_EXACT.subtract(larger, smaller))


def from_text(text: str) -> Decimal:
    """Return an amount as the ledger wrote it; anything else is a `ValueError`, because it did not write it."""
    if not _PLAIN.fullmatch(text):
        raise ValueError("this is not an amount")
    return Decimal(text)


def as_budget(written: Epsilon) -> Decimal:
    """Return a budget as an exact, positive, finite number: there is no unlimited one."""
    try:
        return as_epsilon(written)
    except EpsilonError as problem:
        raise BudgetError("a budget must be a positive number, written like 2.5.", **problem.fields) from None


@dataclass(frozen=True, slots=True)
class PathState:
    """One path: what it was opened with, and the largest epsilon that was read from it, which is its cost."""

    path: PathId
    facts: PathFacts
    largest: Decimal = ZERO
    digest: str | None = None
    """Of the file that holds the reports at the largest level, where those cannot be drawn again."""
    snapshot: str | None = None
    """Of the sealed copy of what the path is drawn from, where one was made."""


@dataclass(frozen=True, slots=True, order=True)
class DatedBudget:
    """What each column of one date of a series may cost."""

    release: str
    date: str
    budget: Decimal


@dataclass(frozen=True, slots=True)
class Balance:
    """What a subject may spend, has spent and has left, and on which paths."""

    subject: Subject
    budget: Decimal
    spent: Decimal
    left: Decimal
    paths: tuple[PathState, ...]


@dataclass(frozen=True, slots=True)
class Account:
    """The budget of a subject and all its paths, in the order of their names.

    Claim: a path costs the largest epsilon read from it, and the paths of a subject add up (a transcript reveals no
    more than its highest level; independent paths compose); tests/contract/ledger/test_ledger.py.
    """

    subject: Subject
    budget: Decimal | None = None
    paths: tuple[PathState, ...] = ()
    dates: tuple[DatedBudget, ...] = ()
    """The declared dates of series, in the order of their names."""

    @property
    def spent(self) -> Decimal:
        """The sum over the paths of the largest epsilon of each."""
        return total(path.largest for path in self.paths)

    @property
    def left(self) -> Decimal:
        """What may still be spent."""
        return ZERO if self.budget is None else difference(self.budget, self.spent)

    def balance(self) -> Balance:
        """Return the account as a caller sees it. A name that is unknown must not look like one that spent nothing."""
        if self.budget is None:
            raise UnknownSubjectError("{subject} is not in this ledger.", subject=str(self.subject))
        return Balance(self.subject, self.budget, self.spent, self.left, self.paths)

    def series(self, release: str) -> tuple[DatedBudget, ...]:
        """Return the declared dates of a release; none where it is no series."""
        return tuple(each for each in self.dates if each.release == release)

    def last_epoch(self, path: PathId) -> PathState | None:
        """Return what goes on under the names of a path: earlier epochs were given up and stay as they are."""
        known = [state for state in self.paths if replace(state.path, epoch=path.epoch) == path]
        return max(known, key=lambda state: state.path.epoch, default=None)

    def at(self, path: PathId) -> PathState | None:
        """Return the state of one path; None where nothing was read from it."""
        return next((state for state in self.paths if state.path == path), None)

    def after(self, event: Event) -> Account:
        """Return the account after one more event.

        A path that began without a table's fingerprint learns it from the first level that has one. A path that is
        opened again goes on with other facts, and with what was read from it.
        """
        if isinstance(event, BegunAnew):
            return self
        if isinstance(event, BudgetSet | BudgetRaised):
            return replace(self, budget=event.budget)
        if isinstance(event, DateDeclared):
            dates = [each for each in self.dates if (each.release, each.date) != (event.release, event.date)]
            dates.append(DatedBudget(event.release, event.date, event.budget))
            return replace(self, dates=tuple(sorted(dates)))
        if isinstance(event, PathOpened):
            known = self.at(event.path)
            return self._with(PathState(event.path, event.facts, ZERO if known is None else known.largest))
        old = self.at(event.path)
        if old is None:
            raise ValueError("a level was released from a path that was never opened")
        facts = replace(old.facts, table_fingerprint=event.table_fingerprint or old.facts.table_fingerprint)
        is_higher = event.epsilon > old.largest
        largest, digest = (event.epsilon, event.digest) if is_higher else (old.largest, old.digest)
        snapshot = event.snapshot or old.snapshot
        return self._with(replace(old, facts=facts, largest=largest, digest=digest, snapshot=snapshot))

    def _with(self, changed: PathState) -> Account:
        others = [state for state in self.paths if state.path != changed.path]
        return replace(self, paths=tuple(sorted([*others, changed], key=lambda state: state.path)))


def add_up(events: Iterable[Event]) -> dict[Subject, Account]:
    """Return the accounts that events add up to; a `ValueError` where they cannot have happened like that."""
    accounts: dict[Subject, Account] = {}
    for event in events:
        before = accounts.get(event.subject, Account(event.subject))
        after = before.after(event)
        if after.budget is None or after.spent > after.budget:
            raise ValueError(f"{event.subject} has spent more than the budget")
        if isinstance(event, LevelReleased) and event.cost != difference(after.spent, before.spent):
            raise ValueError(f"a release of {event.subject} was charged with another cost than it had")
        accounts[event.subject] = after
    return accounts
