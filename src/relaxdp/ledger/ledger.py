"""The ledger: what has been spent, by whom, of which budget; durable before anything is released."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self

from relaxdp.draw.stream import PathId
from relaxdp.errors import (
    BudgetError,
    BudgetMissingError,
    EpsilonError,
    LedgerChangedError,
    PathNameError,
    SubjectError,
    refusing,
)
from relaxdp.law.epsilon import Epsilon, as_epsilon, epsilon_text
from relaxdp.lazy import LazyModule
from relaxdp.ledger.account import Account, Balance, add_up, as_budget
from relaxdp.ledger.entries import Entry, PathFacts, Subject, check_reason, check_text
from relaxdp.ledger.events import BegunAnew, BudgetRaised, BudgetSet, Event
from relaxdp.ledger.rules import Charge, Decision, decide, declared
from relaxdp.remedies import IN_PYTHON

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from relaxdp.ledger import rows
    from relaxdp.ledger import store as stores
else:  # SQLAlchemy is slow to import, and many programs open no ledger
    rows, stores = LazyModule("relaxdp.ledger.rows"), LazyModule("relaxdp.ledger.store")

__all__ = ["Balance", "Charge", "Ledger", "utc_now"]

Clock = Callable[[], datetime]


def utc_now() -> datetime:
    """Return the time of the system, in UTC."""
    return datetime.now(UTC)


class Ledger:
    """Events that were made durable, and the accounts that they add up to.

    Every charge is one transaction that looks, decides and writes while all other writers wait; it is on disk before
    the call returns. So many processes cannot spend the same budget twice, and a crash can only lose a charge whose
    release has not happened.

    Claim: never less than what was acknowledged, never overspent; tests/faults/ledger/test_faults.py.
    """

    def __init__(self, store: stores.Store, *, clock: Clock = utc_now) -> None:
        self._store, self._clock = store, clock
        self._seen = 0

    @classmethod
    def open(
        cls, where: str | os.PathLike[str], *, timeout: float = 30.0, create: bool = True, clock: Clock = utc_now
    ) -> Self:
        """Open a ledger by file name or database URL; a new one is begun unless `create` forbids it.

        A new file appears with the first thing that is written to it. `timeout` is how many seconds to wait for other
        processes.
        """
        store = stores.store_of(where, timeout=timeout)
        store.prepare(create=create)
        return cls(store, clock=clock)

    @refusing("Nothing was changed.")
    def set_budget(self, subject: Subject, budget: Epsilon, *, reason: str) -> None:
        """Set the first budget of a subject."""
        exact = as_budget(budget)
        check_reason(reason)
        with self._account(subject, writing=True) as (connection, account):
            if account.budget is not None:
                raise BudgetError(
                    "{subject} has a budget of {budget} already; it may only be raised.",
                    subject=str(subject),
                    budget=epsilon_text(account.budget),
                )
            event = BudgetSet(subject, self._now(), exact, reason)
            rows.write(connection, account, account.after(event), [event])

    @refusing("Nothing was changed.")
    def raise_budget(self, subject: Subject, budget: Epsilon, *, reason: str) -> None:
        """Raise a budget. It can never be lowered: what could be spent may have been promised already."""
        exact = as_budget(budget)
        check_reason(reason)
        with self._account(subject, writing=True) as (connection, account):
            old = account.budget
            if old is None or exact <= old:
                stands = "there is none yet" if old is None else f"it is {epsilon_text(old)}"
                raise BudgetError(
                    "the budget of {subject} may only be raised: {stands}, and {asked} was asked for.",
                    stands=stands,
                    subject=str(subject),
                    budget=None if old is None else epsilon_text(old),
                    asked=epsilon_text(exact),
                )
            event = BudgetRaised(subject, self._now(), old, exact, reason)
            rows.write(connection, account, account.after(event), [event])

    @refusing("Nothing was declared.", IN_PYTHON)
    def declare_series(
        self,
        subject: Subject,
        release: str,
        dates: Mapping[str, Epsilon],
        *,
        reason: str,
        budget: Epsilon | None = None,
    ) -> Account:
        """Declare dates of a release, like 2026 and 2027, and what each may cost a person: before the first of them.

        Every date is a path of its own, so that whoever is in all of them pays the sum, which the budget must hold;
        `budget` is the first one of a subject. More dates may follow, and what a date may cost can be raised.
        """
        check_reason(reason)
        check_text(release, "the name of a release", PathNameError)
        exact = {date: as_epsilon(each) for date, each in dates.items()}
        with self._account(subject, writing=True) as (connection, account):
            begun = None if budget is None else as_budget(budget)
            events, after = declared(account, release, exact, budget=begun, reason=reason, time=self._now()), account
            for event in events:
                after = after.after(event)
            rows.write(connection, account, after, events)
        return after

    def facts_of(
        self, paths: Sequence[PathId], key_fingerprint: str, known: Account | None = None
    ) -> dict[str, PathFacts]:
        """Return what paths of a release were opened with under a key, by attribute, for whomever they were charged.

        `known` is one of the accounts, where the caller has just looked at it.
        """
        found = {}
        for subject in (each for each in self.subjects() if each.kind == "population"):  # tables are of these
            account = known if known is not None and known.subject == subject else self.account(subject)
            for path in paths:
                state = account.last_epoch(path)
                if state is not None and state.facts.key_fingerprint == key_fingerprint:
                    found[path.attribute] = state.facts
        return found

    def quote(
        self,
        subject: Subject,
        path: PathId,
        facts: PathFacts,
        epsilon: Epsilon,
        *,
        again: bool = False,
        force: bool = False,
        budget: Epsilon | None = None,
    ) -> Charge:
        """Return what `charge` would do, or refuse as it would; nothing is written. Its path has the epoch to draw."""
        entry = Entry(path, facts, as_epsilon(epsilon))
        return self.quote_all(subject, [entry], again=again, force=force, budget=budget)[0]

    def quote_all(
        self,
        subject: Subject,
        entries: Sequence[Entry],
        *,
        again: bool = False,
        force: bool = False,
        budget: Epsilon | None = None,
        known: Account | None = None,
    ) -> list[Charge]:
        """Return what `charge_all` would do, or refuse as it would; nothing is written.

        `known` is the account, where the caller has just looked at it.
        """
        if known is not None and known.budget is not None:
            return list(self._decide(known, entries, again, force, budget, "").charges)
        with self._account(subject) as (_, account):
            return list(self._decide(account, entries, again, force, budget, "").charges)

    @refusing("Nothing was charged.", IN_PYTHON)
    def charge(
        self,
        subject: Subject,
        path: PathId,
        facts: PathFacts,
        epsilon: Epsilon,
        *,
        again: bool = False,
        force: bool = False,
        budget: Epsilon | None = None,
        reason: str = "",
    ) -> Charge:
        """Charge a release to its subject, durably, before it leaves.

        The same or, with `again`, a lower level costs nothing. `force` opens a new path where the key, the values,
        the type of the ids or the table differ; its cost adds up, and `path` is the one that its quote names. `budget`
        is for the first release of a subject.
        """
        entry = Entry(path, facts, as_epsilon(epsilon))
        return self.charge_all(subject, [entry], again=again, force=force, budget=budget, reason=reason)[0]

    def charge_all(
        self,
        subject: Subject,
        entries: Sequence[Entry],
        *,
        again: bool = False,
        force: bool = False,
        budget: Epsilon | None = None,
        reason: str = "",
        anew: str = "",
    ) -> list[Charge]:
        """Charge several releases together: all of them or none, in one transaction.

        Each was drawn on the epoch that its path names. Where that is not the one to go on with, nothing is charged.
        Algorithm 1 draws afresh, so the same step again is refused. `anew` says why a key that has spent elsewhere
        spends here too, see `spending`; it is recorded.
        """
        if reason:
            check_reason(reason)
        with self._account(subject, writing=True) as (connection, account):
            decision = self._decide(account, entries, again, force, budget, reason)
            if [entry.path for entry in entries] != [charge.path for charge in decision.charges]:
                raise LedgerChangedError(
                    "the ledger changed since the release was quoted: run it again.",
                    subject=str(subject),
                )
            events = list(decision.events)
            if anew:
                events.append(BegunAnew(subject, self._now(), entries[0].facts.key_fingerprint, anew))
            rows.write(connection, account, decision.account, events)
        return list(decision.charges)

    def account(self, subject: Subject) -> Account:
        """Return what the events of a subject add up to; an empty account where there are none."""
        with self._account(subject) as (_, account):
            return account

    def digests(self) -> set[str]:
        """Return the digests of all files whose reports were charged and cannot be drawn again."""
        with self._store.reading() as connection:
            return rows.read_digests(connection)

    def snapshots(self) -> set[str]:
        """Return the digests of the snapshots that paths were released from."""
        with self._store.reading() as connection:
            return rows.read_snapshots(connection)

    def balance(self, subject: Subject) -> Balance:
        """Return what a subject may spend, has spent, has left, and on which paths."""
        with self._account(subject) as (_, account):
            return account.balance()

    @property
    def address(self) -> str:
        """Where it is kept: a file, or a URL without its password."""
        return self._store.address()

    @property
    def entries(self) -> int:
        """How many events were ever recorded."""
        with self._store.reading() as connection:
            return rows.last_number(connection)

    def knows_key(self, fingerprint: str) -> bool:
        """Return whether anything was ever released here with a key."""
        with self._store.reading() as connection:
            return rows.knows_key(connection, fingerprint)

    def subjects(self) -> list[Subject]:
        """Return everybody who has a budget."""
        with self._store.reading() as connection, self._intact():
            return rows.read_subjects(connection)

    def history(self, subject: Subject | None = None) -> list[Event]:
        """Return what happened, to one subject or to all, in order."""
        with self._store.reading() as connection, self._intact():
            return rows.read_events(connection, subject)

    def verify(self) -> None:
        """Add up everything that ever happened, and refuse a ledger whose accounts say something else."""
        with self._store.reading() as connection, self._intact():
            if not rows.is_gapless(connection):
                raise ValueError("an event is missing")
            accounts = add_up(rows.read_events(connection, None))
            if set(accounts) != set(rows.read_subjects(connection)):
                raise ValueError("its events are about others than its accounts")
            for subject, account in accounts.items():
                if account != rows.read_account(connection, subject):
                    raise ValueError(f"the account of {subject} is not what its events add up to")

    @contextmanager
    def copied_to(self, target: Path) -> Iterator[None]:
        """Write a consistent copy to a new file; until the block ends, nothing can be charged."""
        with self._store.writing():
            self._store.copy_to(target)
            yield

    def close(self) -> None:
        """Let go of the ledger; it cannot be used afterwards."""
        self._store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _decide(
        self,
        account: Account,
        entries: Sequence[Entry],
        again: bool,
        force: bool,
        budget: Epsilon | None,
        reason: str,
    ) -> Decision:
        exact = None if budget is None else as_budget(budget)
        return decide(account, entries, again=again, force=force, budget=exact, reason=reason, time=self._now())

    @contextmanager
    def _account(self, subject: Subject, *, writing: bool = False) -> Iterator[tuple[Connection, Account]]:
        seen = self._seen  # before the transaction: other threads go on while this one looks
        with self._store.writing() if writing else self._store.reading() as connection:
            with self._intact():
                if rows.last_number(connection) < seen:
                    raise ValueError("it went back to an earlier state, as if a backup had been put in its place")
                account = rows.read_account(connection, subject)
            try:
                yield connection, account
            except BudgetMissingError as problem:
                if rows.last_number(connection):
                    raise
                raise self._never_begun(problem) from None
            number = rows.last_number(connection)
        self._seen = max(self._seen, number)

    def _never_begun(self, problem: BudgetMissingError) -> BudgetMissingError:
        """Return what to say where nothing ever happened: the ledger may be lost, and a new budget would hide that."""
        return BudgetMissingError(
            "{absence}. If this key has released before, restore it (docs/ledger.md); else begin it with a budget.",
            remedy=problem.remedy,
            absence=self._store.absence(),
            **problem.fields,
        )

    @contextmanager
    def _intact(self) -> Iterator[None]:
        """Turn what no ledger has written into one sentence."""
        try:
            yield
        except (SubjectError, PathNameError, EpsilonError):
            raise self._store.problem("a name or an amount in it cannot be read") from None
        except ValueError as problem:
            raise self._store.problem(str(problem)) from None

    def today(self) -> str:
        """Return the day by the ledger's clock, in UTC."""
        return self._now().date().isoformat()

    def _now(self) -> datetime:
        return self._clock().astimezone(UTC)
