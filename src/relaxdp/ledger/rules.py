"""What a release would cost, and why it may be refused. Pure: the same answer for a dry run and for the real one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from decimal import Decimal

from relaxdp.draw.stream import PathId
from relaxdp.encodings.registry import encoding_named
from relaxdp.errors import (
    BudgetError,
    BudgetExceededError,
    BudgetMissingError,
    DateError,
    IdTypeError,
    LevelError,
    NothingChangedError,
    PathChangedError,
    SamplerChangedError,
    TableChangedError,
    ValuesChangedError,
    WrongKeyError,
)
from relaxdp.law.epsilon import epsilon_text
from relaxdp.ledger.account import ZERO, Account, PathState, difference, total
from relaxdp.ledger.entries import Entry, PathFacts, Sampler
from relaxdp.ledger.events import BudgetSet, DateDeclared, Event, LevelReleased, PathOpened


@dataclass(frozen=True, slots=True)
class Charge:
    """What a release costs, on which path it is, and how the account stands before and after it."""

    path: PathId
    cost: Decimal
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
    entries: Sequence[Entry],
    *,
    again: bool,
    force: bool,
    budget: Decimal | None,
    reason: str,
    time: datetime,
) -> Decision:
    """Return what several releases cost together; if one of them is refused, all are.

    `force` opens a new path where something differs, and only there; it is refused where nothing does.
    """
    events: list[Event] = _first_budget(account, budget, reason, time)
    for event in events:
        account = account.after(event)
    for entry in entries:
        _refuse_undeclared(account, entry)
        _refuse_growing(_known(account, entry), entry)
    if force and not any(differs(_known(account, entry), entry) for entry in entries):
        raise NothingChangedError(
            "nothing differs from what was released before, so no new path is opened.", remedy="without_force"
        )
    before, charges = account, []
    for entry in entries:
        known = _known(account, entry)
        if entry.facts.sampler is Sampler.ALGORITHM_1:
            happened = _step(account, known, entry, reason, time)
        else:
            happened = _read(account, known, entry, again, force, reason, time)
        after = account
        for event in happened:
            after = after.after(event)
        _refuse_undeclared_cost(after, entry)
        charges.append(_charge(known, happened, account, after))
        events += happened
        account = after
    # Compared once, with what was left before: what the first columns cost is needed now, and not gone already.
    needed = total(charge.cost for charge in charges)
    if needed > before.left:
        raise _exceeded(before, needed)
    return Decision(account, tuple(events), tuple(charges))


def _known(account: Account, entry: Entry) -> PathState | None:
    return account.last_epoch(entry.path)


def _charge(known: PathState | None, happened: Sequence[Event], before: Account, after: Account) -> Charge:
    released = happened[-1]
    assert isinstance(released, LevelReleased)  # noqa: S101
    assert after.budget is not None  # noqa: S101
    is_new = known is None or known.path != released.path
    previous = None if known is None or is_new else known.largest
    cost = difference(after.spent, before.spent)
    return Charge(released.path, cost, previous, before.spent, after.spent, after.budget, is_new)


def _refuse_undeclared(account: Account, entry: Entry) -> None:
    """Refuse a date that was not declared; a series has no release without a date."""
    path, series = entry.path, account.series(entry.path.release)
    if not path.date and not series:
        return
    if not path.date:
        raise DateError(
            "{release!r} is a series of dated releases: say which date.",
            remedy="date",
            release=path.release,
            dates=", ".join(each.date for each in series),
        )
    if path.date not in {each.date for each in series}:
        raise DateError(
            "{date} was not declared as a date of {release!r}, so that nobody knows what all of them cost together.",
            remedy="series",
            release=path.release,
            date=path.date,
        )


def _refuse_undeclared_cost(account: Account, entry: Entry) -> None:
    """Refuse what makes a column cost more at a date than was declared: paths that were forced add up, too."""
    path = entry.path
    for each in account.series(path.release):
        epochs = (state for state in account.paths if replace(state.path, epoch=path.epoch) == path)
        cost = total(state.largest for state in epochs)
        if each.date == path.date and cost > each.budget:
            raise DateError(
                "{path} may cost {budget}, and would cost {epsilon}.",
                remedy="series_more",
                path=replace(path, epoch=1),
                release=path.release,
                date=path.date,
                budget=epsilon_text(each.budget),
                epsilon=epsilon_text(cost),
            )


def declared(
    account: Account,
    release: str,
    dates: Mapping[str, Decimal],
    *,
    budget: Decimal | None,
    reason: str,
    time: datetime,
) -> list[Event]:
    """Return what happens where dates of a series are declared; refuse what the budget could not pay.

    What a date may cost is never lowered, and a release without dates becomes no series. What was declared for other
    series is counted like what was spent.
    """
    begun = [] if budget is None else _first_budget(account, budget, reason, time)
    for event in begun:
        account = account.after(event)
    if any(state.path.release == release and not state.path.date for state in account.paths):
        raise DateError(
            "{release!r} was released without a date, and stays so: a series has another name.", release=release
        )
    if not dates or not all(dates):
        raise DateError("a series has one date at least, and none of them is empty.", release=release)
    known = {each.date: each.budget for each in account.series(release)}
    for date, cost in dates.items():
        PathId(release, "?", date=date)  # or it is refused
        if date in known and cost < known[date]:
            raise DateError(
                "{date} of {release!r} may cost {budget} already: that can be raised only.",
                release=release,
                date=date,
                budget=epsilon_text(known[date]),
            )
    promised = {(each.release, each.date): each.budget for each in account.dates}
    promised |= {(release, date): cost for date, cost in dates.items()}
    spent: dict[tuple[str, str], Decimal] = {}
    for state in account.paths:
        where = state.path.release, state.path.date
        spent[where] = total([spent.get(where, ZERO), state.largest])
    needed = total(max(promised.get(each, ZERO), spent.get(each, ZERO)) for each in {**promised, **spent})
    if account.budget is None or needed > account.budget:
        stands = "none" if account.budget is None else epsilon_text(account.budget)
        raise BudgetExceededError(
            "whoever is in all of them pays {needed}, and the budget of {subject} is {budget}.",
            remedy="raise_budget",
            subject=str(account.subject),
            needed=epsilon_text(needed),
            budget=stands,
            enough=epsilon_text(needed),
        )
    new = {date: cost for date, cost in dates.items() if known.get(date) != cost}
    return [*begun, *(DateDeclared(account.subject, time, release, date, cost, reason) for date, cost in new.items())]


def _refuse_growing(known: PathState | None, entry: Entry) -> None:
    """Refuse to go on with a growing path as if its table did not grow: nobody would look at its rows."""
    if known is not None and known.facts.growing and not entry.facts.growing:
        raise PathChangedError(
            "{path} was released as a growing table, and is continued as one only.",
            path=known.path,
            release=known.path.release,
            attribute=known.path.attribute,
        )


def _first_budget(account: Account, budget: Decimal | None, reason: str, time: datetime) -> list[Event]:
    """Return the first budget of a subject as an event, or refuse one that differs from what is set."""
    if account.budget is None:
        if budget is None:
            raise BudgetMissingError(
                "{subject} has no budget yet: the first release needs a budget.",
                remedy="budget",
                subject=str(account.subject),
            )
        return [BudgetSet(account.subject, time, budget, reason or "the first release")]
    if budget is not None and budget != account.budget:
        raise BudgetError(
            "{subject} has a budget of {budget} already, and {asked} was asked for. Only raising it changes it.",
            remedy="raise_budget" if budget > account.budget else "",
            subject=str(account.subject),
            budget=epsilon_text(account.budget),
            asked=epsilon_text(budget),
            enough=epsilon_text(budget),
        )
    return []


def _read(
    account: Account, known: PathState | None, entry: Entry, again: bool, force: bool, reason: str, time: datetime
) -> list[Event]:
    """Return what happens when a level is read from a keyed path."""
    problem, epsilon, facts = differs(known, entry), entry.epsilon, entry.facts
    if problem is not None and not force:
        raise problem
    is_new = known is None or problem is not None
    path = replace(entry.path, epoch=1 if known is None else known.path.epoch + is_new)
    previous = None if known is None or is_new else known.largest
    if previous is not None and epsilon < previous and not again:
        raise LevelError(
            "epsilon may only grow: {path} is at {previous} and {epsilon} was asked for. A report cannot be "
            "taken back.",
            remedy="again",
            path=path,
            release=path.release,
            attribute=path.attribute,
            previous=epsilon_text(previous),
            epsilon=epsilon_text(epsilon),
        )
    largest = epsilon if previous is None else max(previous, epsilon)
    cost = largest if previous is None else difference(largest, previous)
    events: list[Event] = [PathOpened(account.subject, time, path, facts, reason)] if is_new else []
    kept = facts.table_fingerprint, reason, None, entry.snapshot
    return [*events, LevelReleased(account.subject, time, path, epsilon, cost, *kept)]


def _step(account: Account, known: PathState | None, entry: Entry, reason: str, time: datetime) -> list[Event]:
    """Return what happens in a step of Algorithm 1: it is drawn afresh from the last reports, so once.

    The step must start at the highest level that was ever read: a step from a lower one would ignore what is out
    already. A keyed path is closed by it, because its own next level would be a second draw. A path that this ledger
    does not know yet is opened at the old level. The total is the new epsilon in any case.

    Claim: the reports before and after the step cost as much as the last one; tests/unit/table/test_algorithm1.py.
    """
    assert entry.last is not None  # noqa: S101
    subject, facts, old, epsilon = account.subject, entry.facts, entry.last, entry.epsilon
    if known is not None:
        _check_step(known, entry, old)
    if epsilon <= old:
        raise LevelError(
            "epsilon may only grow: the last reports are at {previous} and {epsilon} was asked for.",
            previous=epsilon_text(old),
            epsilon=epsilon_text(epsilon),
        )
    path = replace(entry.path, epoch=1) if known is None else known.path
    table, events = facts.table_fingerprint, list[Event]()
    if known is None or known.facts.sampler is not facts.sampler:
        events.append(PathOpened(subject, time, path, facts, reason))
    if known is None:
        events.append(LevelReleased(subject, time, path, old, old, table, reason))
    rest = difference(epsilon, old)
    return [*events, LevelReleased(subject, time, path, epsilon, rest, table, reason, entry.digest)]


def _check_step(known: PathState, entry: Entry, old: Decimal) -> None:
    # Only a keyed path of the same values may go over to Algorithm 1; everything else must be as it was.
    as_stepped = replace(known, facts=replace(known.facts, sampler=Sampler.ALGORITHM_1))
    problem = differs(as_stepped, entry)
    if problem is not None:
        raise problem
    if known.facts.sampler is Sampler.ALGORITHM_1 and known.largest == entry.epsilon:
        raise already_drawn(known.path, entry.epsilon)
    if known.largest != old:
        raise LevelError(
            "the step must start at the highest level that was released: {path} is at {largest}, and these reports "
            "are at {old}.",
            path=known.path,
            largest=epsilon_text(known.largest),
            old=epsilon_text(old),
        )


def already_drawn(path: PathId, epsilon: Decimal) -> LevelError:
    """Return the refusal of a second draw."""
    return LevelError(
        "{path} at {epsilon} was released already; a second draw at one level would break the guarantee.",
        path=path,
        release=path.release,
        attribute=path.attribute,
        epsilon=epsilon_text(epsilon),
    )


def _exceeded(account: Account, cost: Decimal) -> BudgetExceededError:
    """Return the refusal of what costs more than is left."""
    assert account.budget is not None  # noqa: S101
    left, budget, needed = epsilon_text(account.left), epsilon_text(account.budget), epsilon_text(cost)
    return BudgetExceededError(
        "budget exceeded: {left} left of {budget}, this release needs {needed}.",
        remedy="raise_budget",
        subject=str(account.subject),
        left=left,
        budget=budget,
        needed=needed,
        enough=epsilon_text(total((account.spent, cost))),
    )


def differs(known: PathState | None, entry: Entry) -> PathChangedError | None:
    """Return the first thing that differs. The key comes first: another key changes the keyed fingerprint too."""
    if known is None:
        return None
    old, facts = known.facts, entry.facts
    if facts.key_fingerprint != old.key_fingerprint:
        return _changed(WrongKeyError, known, facts, "the key", old.key_fingerprint, facts.key_fingerprint)
    if facts.encoding != old.encoding:
        return _changed(ValuesChangedError, known, facts, "the encoding", old.encoding, facts.encoding)
    if facts.params != old.params:
        # Digests tell people nothing: the encoding says what this one stands for, and what to do about another.
        of = encoding_named(facts.encoding).parameters
        return _changed(ValuesChangedError, known, facts, of.what, old.params[:16], facts.params[:16], of.remedy)
    if facts.sampler is not old.sampler:
        what, remedy = "the sampler (it went on with Algorithm 1)", "from_reports"
        return _changed(SamplerChangedError, known, facts, what, old.sampler.value, facts.sampler.value, remedy)
    if facts.id_type != old.id_type:
        what, where = "the type of the ids", "id"  # which stand in another column, if they are not of another table
        return _changed(IdTypeError, known, facts, what, old.id_type, facts.id_type, where, is_shown=True)
    table, given = old.table_fingerprint, facts.table_fingerprint
    other = table is not None and given is not None and table != given
    if entry.changed or (other and not old.growing):
        # Which rows changed is not known here, and must not be: it would be as telling as the change itself.
        what = "the table (its ids or their truths)"
        relaxing = "relax_dated" if known.path.date else "relax_old"
        ways = "id" if known.snapshot is None else f"{relaxing} id"
        return _changed(TableChangedError, known, facts, what, str(table), str(given), ways)
    if facts.growing != old.growing:
        # Either way nobody would look at the rows: a growing table is known by its tags, another by its fingerprint.
        kinds = ("a table that does not grow", "a growing one")
        what = "whether rows may join"
        return _changed(PathChangedError, known, facts, what, kinds[old.growing], kinds[facts.growing])
    return None


def _changed(
    error: type[PathChangedError],
    known: PathState,
    facts: PathFacts,
    what: str,
    old: str,
    new: str,
    remedy: str | None = None,
    *,
    is_shown: bool = False,
) -> PathChangedError:
    """Return the refusal. Digests are not shown: where there are such, there is a remedy of their own."""
    # With Algorithm 1 no new path can begin: it goes on from old reports.
    forcing = " force" if facts.sampler is Sampler.PATH else ""
    if forcing and error is TableChangedError:
        forcing = " force_or_date"
    return error(
        "{what} is not what {path} was released with: {recorded} is recorded, and this is {given}."
        if remedy is None or is_shown
        else "{what} is not what {path} was released with.",
        remedy=f"{remedy or ''}{forcing}".strip(),
        what=what,
        path=known.path,
        largest=epsilon_text(known.largest),
        release=known.path.release,
        attribute=known.path.attribute,
        epoch=known.path.epoch,
        date=known.path.date,
        as_of=known.facts.as_of or "that day",
        recorded=old,
        given=new,
    )
