"""What a release would cost, and why it may be refused. Pure: the same answer for a dry run and for the real one."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal

from relaxdp.errors import (
    BudgetError,
    BudgetExceededError,
    BudgetMissingError,
    IdTypeError,
    LevelError,
    NothingChangedError,
    PathChangedError,
    TableChangedError,
    ValuesChangedError,
    WrongKeyError,
)
from relaxdp.law.epsilon import Epsilon, as_epsilon, epsilon_text
from relaxdp.ledger.account import Account, PathState
from relaxdp.ledger.amounts import difference, total
from relaxdp.ledger.events import BudgetSet, Event, LevelReleased, PathOpened
from relaxdp.ledger.paths import PathFacts, PathIdentity

Request = tuple[PathIdentity, PathFacts, Epsilon]

FORCING = "--force (in Python, force=True) opens a new path"


@dataclass(frozen=True, slots=True)
class Charge:
    """What a release costs, on which epoch of its path it is, and how the account stands before and after it."""

    identity: PathIdentity
    cost: Decimal
    epoch: int
    previous: Decimal | None
    """The largest epsilon that was read from the path before; None on a new path."""
    spent_before: Decimal
    spent_after: Decimal
    budget: Decimal
    is_new_path: bool


@dataclass(frozen=True, slots=True)
class Decision:
    """What is to be written down, and the account after it."""

    account: Account
    events: tuple[Event, ...]
    charges: tuple[Charge, ...]


def decide(
    account: Account,
    requests: Sequence[Request],
    *,
    again: bool,
    force: bool,
    budget: Decimal | None,
    reason: str,
    time: datetime,
    changed: Collection[PathIdentity] = (),
) -> Decision:
    """Return what several releases cost together; if one of them is refused, all are.

    `force` opens a new path where something differs, and only there; it is refused where nothing does. `changed` names
    growing paths with rows that are no longer what they were, which fingerprints cannot tell.
    """
    events: list[Event] = first_budget(account, budget, reason, time)
    for event in events:
        account = account.after(event)
    if force and not any(differs(account.path(name), facts, name in changed) for name, facts, _ in requests):
        raise NothingChangedError(
            "nothing differs from what was released before, so no new path is opened. Nothing was released. "
            "Without --force (in Python, force=True) the path goes on."
        )
    before, charges = account, []
    for identity, facts, epsilon in requests:
        problem = differs(account.path(identity), facts, identity in changed)
        charge, happened = _one(account, identity, facts, as_epsilon(epsilon), problem, again, force, reason, time)
        for event in happened:
            account = account.after(event)
        events += happened
        charges.append(charge)
    # Compared once, with what was left before: what the first columns cost is needed now, and not gone already.
    needed = total(charge.cost for charge in charges)
    if needed > before.left:
        raise exceeded(before, needed)
    return Decision(account, tuple(events), tuple(charges))


def first_budget(account: Account, budget: Decimal | None, reason: str, time: datetime) -> list[Event]:
    """Return the first budget of a subject as an event, or refuse one that differs from what is set."""
    if account.budget is None:
        if budget is None:
            raise BudgetMissingError(
                f"{account.subject} has no budget yet: the first release needs a budget, like --budget 2 (in Python, "
                "budget=2). Nothing was released.",
                subject=str(account.subject),
            )
        return [BudgetSet(account.subject, time, budget, reason or "the first release")]
    if budget is not None and budget != account.budget:
        raise BudgetError(
            f"{account.subject} has a budget of {epsilon_text(account.budget)} already, and "
            f"{epsilon_text(budget)} was asked for. A release does not change it. Nothing was released.",
            subject=str(account.subject),
            budget=epsilon_text(account.budget),
            asked=epsilon_text(budget),
        )
    return []


def _one(
    account: Account,
    identity: PathIdentity,
    facts: PathFacts,
    epsilon: Decimal,
    problem: PathChangedError | None,
    again: bool,
    force: bool,
    reason: str,
    time: datetime,
) -> tuple[Charge, list[Event]]:
    path, subject = account.path(identity), account.subject
    if problem is not None and not force:
        raise problem
    is_new = path is None or problem is not None
    epoch = 1 if path is None else path.epoch + is_new
    previous = None if path is None or is_new else path.largest
    if previous is not None and epsilon < previous and not again:
        raise LevelError(
            f"epsilon may only grow: {identity} is at {epsilon_text(previous)} and {epsilon_text(epsilon)} was asked "
            "for. A report cannot be taken back; --again (in Python, again=True) re-issues a lower level, which costs "
            "nothing. Nothing was released.",
            release=identity.release,
            attribute=identity.attribute,
            previous=epsilon_text(previous),
            epsilon=epsilon_text(epsilon),
        )
    largest = epsilon if previous is None else max(previous, epsilon)
    cost = largest if previous is None else difference(largest, previous)
    events: list[Event] = [PathOpened(subject, time, identity, epoch, facts, reason)] if is_new else []
    events.append(LevelReleased(subject, time, identity, epoch, epsilon, cost, facts.table_fingerprint, reason))
    after = account
    for event in events:
        after = after.after(event)
    assert account.budget is not None  # noqa: S101
    return Charge(identity, cost, epoch, previous, account.spent, after.spent, account.budget, is_new), events


def exceeded(account: Account, cost: Decimal) -> BudgetExceededError:
    """Return the refusal of what costs more than is left."""
    assert account.budget is not None  # noqa: S101
    left, budget, needed = epsilon_text(account.left), epsilon_text(account.budget), epsilon_text(cost)
    return BudgetExceededError(
        f"budget exceeded: {left} left of {budget}, this release needs {needed}. Nothing was released.",
        subject=str(account.subject),
        left=left,
        budget=budget,
        needed=needed,
    )


def differs(path: PathState | None, facts: PathFacts, changed: bool = False) -> PathChangedError | None:
    """Return the first thing that differs. The key comes first: another key changes the keyed fingerprint too."""
    if path is None:
        return None
    old = path.facts
    if facts.key_fingerprint != old.key_fingerprint:
        return _changed(WrongKeyError, path, "the key", old.key_fingerprint, facts.key_fingerprint)
    if facts.encoding != old.encoding:
        return _changed(ValuesChangedError, path, "the encoding", old.encoding, facts.encoding)
    if facts.params != old.params:
        what, give = _PARAMETERS.get(facts.encoding.partition(",")[0], _OF_VALUES)
        return _changed(ValuesChangedError, path, what, old.params[:16], facts.params[:16], give)
    if facts.id_type != old.id_type:
        return _changed(IdTypeError, path, "the type of the ids", old.id_type, facts.id_type)
    known, given_table = old.table_fingerprint, facts.table_fingerprint
    other = known is not None and given_table is not None and known != given_table
    if changed or (other and not old.growing):
        # Which rows changed is not known here, and must not be: it would be as telling as the change itself.
        what = "the table (its ids or their truths)"
        return _changed(TableChangedError, path, what, str(known), str(given_table), "")
    if facts.growing != old.growing:
        # Either way nobody would look at the rows: a growing table is known by its tags, another by its fingerprint.
        kinds = ("a table that does not grow", "a growing one")
        return _changed(PathChangedError, path, "whether rows may join", kinds[old.growing], kinds[facts.growing])
    return None


# What the digest of an encoding's parameters stands for, and what to do about another one: digests tell people nothing.
_OF_VALUES = (
    "the list of values (or their order)",
    ": give the same --values in the same order (in Python, the same mechanism)",
)
_PARAMETERS = {
    "numeric": ("the range of the numbers", ": give the same --range (in Python, the same mechanism)"),
    "bloom": ("the shape of the reports", ": give the same --params"),
    "local-hash": ("the list of values, their order or the number of buckets", _OF_VALUES[1]),
}


def _changed(
    error: type[PathChangedError], path: PathState, what: str, old: str, new: str, give: str | None = None
) -> PathChangedError:
    """Return the refusal; `give` is what it says in place of both, where they are digests."""
    differ = f": {old} is recorded, and this is {new}" if give is None else give
    return error(
        f"{what} is not what {path.identity} was released with{differ}. Nothing was released. {FORCING}, charged to "
        f"everyone in addition to the {epsilon_text(path.largest)} of the old one.",
        release=path.identity.release,
        attribute=path.identity.attribute,
        epoch=path.epoch,
        recorded=old,
        given=new,
    )
