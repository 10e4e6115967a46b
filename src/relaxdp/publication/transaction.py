"""A publication: plan, draw, stage, charge, publish. The order that makes every release safe stands here, once.

Files, data frames, Spark, Algorithm 1 and RAPPOR say how they draw, where they stage and how they hand over; none of
them charges. What fails before the charge costs nothing and nothing has left. Killed after it, the ledger shows a
level that never appeared, and the same release again hands over exactly what was paid for.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, replace
from decimal import Decimal
from pathlib import Path
from typing import Any, ClassVar

from relaxdp.errors import LedgerUncertainError, OptionError, RelaxdpError, refusing
from relaxdp.ledger.account import Account, PathState
from relaxdp.ledger.entries import Entry, PathFacts, Sampler
from relaxdp.ledger.ledger import Charge
from relaxdp.ledger.payer import Payer
from relaxdp.ledger.rules import already_drawn, differs
from relaxdp.publication.description import FileDescription
from relaxdp.publication.outlook import refuse_worthless
from relaxdp.publication.request import Planned, ReleaseRequest
from relaxdp.publication.snapshot import PartWriter, rebuilt
from relaxdp.publication.snapshot_folder import Snapshot, find, making

Progress = Callable[[int, int | None], None]


@dataclass(frozen=True, slots=True)
class Seen:
    """What is known of the whole table under one column; nothing before anybody has looked at its rows."""

    fingerprint: str | None = None
    changed: bool = False
    """Where rows may join and leave: whether one that was released is another now."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What is to be drawn, on which paths and at which levels, and what the result will say about itself."""

    columns: tuple[Planned, ...]
    description: FileDescription
    snapshot: Snapshot | None = None
    """Where what is drawn from is sealed, if it is."""

    def part(self) -> PartWriter | None:
        """Begin the only part of the snapshot, if there is one."""
        if self.snapshot is None:
            return None
        return self.snapshot.part(self.description, [each.encoding for each in self.columns])


@dataclass(frozen=True, slots=True)
class Staged:
    """What was drawn and has not left: whole, and as durable as it will be."""

    rows: int
    seen: Sequence[Seen]
    """The table that it was drawn from, for each column."""
    content: Any = None
    """What is handed over: a file or folder under a name that nobody knows, or a frame."""
    digest: str | None = None
    """Of a file that cannot be drawn again."""
    snapshot: str | None = None
    """The digest of the snapshot, where one was made."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a release did: how many rows left, what each column cost (nothing without a ledger), and the result."""

    rows: int
    charges: list[Charge]
    result: Any = None
    snapshot: Path | None = None
    """Where what was released is kept, if it was kept now."""


class Drawing(ABC):
    """A source, a drawer and a sink: everything that differs between releases."""

    sampler: ClassVar[Sampler] = Sampler.PATH
    seals: ClassVar[bool] = False
    """Whether it can seal what it draws from, so that the next level needs no table."""
    request: ReleaseRequest
    id_type: str
    last_epsilon: Decimal | None = None
    """The level of the reports that this is drawn from; None on the keyed path."""
    is_faster_locally: bool = False
    """Whether the local engine would do the same in less time."""

    @property
    def repeatable(self) -> bool:
        """Whether drawing again gives the same reports. What is not repeatable is staged durably, and then kept."""
        return self.sampler is Sampler.PATH

    @abstractmethod
    def held(self, payer: Payer | None) -> AbstractContextManager[None]:
        """Hold the place where it is staged, until the publication is over; what is left there is removed."""

    def refuse_taken(self, quoted: Callable[[], list[Charge]]) -> None:  # noqa: B027 (a frame takes no place)
        """Refuse a target that is there already, before anything else is done."""

    @abstractmethod
    def look(self, entries: Sequence[Entry], payer: Payer) -> Sequence[Seen]:
        """Read the whole table, and release nothing of it. `entries` are what will be charged, as far as is known."""

    def check_known(self, known: Account | None) -> None:  # noqa: B027
        """Refuse what does not go on with what the ledger knows, beyond the ledger's own rules; None without one."""

    def sweep(self, payer: Payer) -> None:  # noqa: B027
        """Remove what earlier runs staged durably and were not charged for."""

    def describe(self, columns: Sequence[Planned]) -> FileDescription:
        """Return what the result will say about itself."""
        return self.request.description(self.id_type, columns, self.sampler)

    @abstractmethod
    def stage(self, plan: Plan) -> Staged:
        """Draw everything, to where nobody looks."""

    def resume(self, digest: str) -> Staged | None:
        """Return what an earlier run staged and was charged for; None where it is gone."""
        raise NotImplementedError

    @abstractmethod
    def publish(self, plan: Plan, staged: Staged) -> Any:
        """Hand over what was staged. It is paid for."""


@refusing("Nothing was released.")
def publish(drawing: Drawing, payer: Payer | None, known: Account | None = None) -> Outcome:
    """Release something. On the keyed path the same call again gives the identical reports and charges nothing.

    `known` is the account, where the caller has just looked at it.

    Claim: nothing is drawn twice, charged twice or left unpaid, wherever a run is killed;
    tests/faults/table/test_publication.py.
    """
    columns = drawing.request.planned()
    if payer is None:
        return _unpaid(drawing, columns)
    known = payer.look() if known is None or known.subject != payer.subject else known
    drawing.check_known(known)
    drawing.refuse_taken(lambda: _quoted(drawing, columns, payer, known))
    drawing.sweep(payer)
    drawn = None if drawing.repeatable else _drawn_before(drawing, columns[0], known)
    if drawn is not None:
        return _finished(drawing, columns, drawn, payer, known)
    with drawing.held(payer), ExitStack() as stack:
        plan, quoted = _plan(drawing, columns, payer, known)
        snapshot = stack.enter_context(_sealing(drawing, plan, payer, known))
        plan = replace(plan, snapshot=snapshot)
        staged = drawing.stage(plan)
        if not payer.accept:
            refuse_worthless(plan.columns, quoted, staged.rows)
        if snapshot is not None and staged.snapshot is not None:
            snapshot.keep(staged.snapshot)
        try:
            charges = payer.charge(_entries(drawing, plan.columns, payer, staged))
        except LedgerUncertainError as problem:
            if snapshot is not None:
                snapshot.settle()
            problem.consequence = "Nothing was released, and running it again charges nothing twice."
            raise
        if snapshot is not None:
            snapshot.settle()
            snapshot.sweep()
        try:
            kept = None if snapshot is None else snapshot.place
            return Outcome(staged.rows, charges, drawing.publish(plan, staged), kept)
        except RelaxdpError as problem:
            problem.consequence = "It is charged, and was not handed over: the same release again costs nothing."
            raise


@refusing("Nothing was released.")
def quote(drawing: Drawing, payer: Payer, known: Account | None = None) -> list[Charge]:
    """Return what a release would cost, from the ledger alone. No row is read."""
    known = payer.look() if known is None else known
    drawing.check_known(known)
    return _quoted(drawing, drawing.request.planned(), payer, known)


def _unpaid(drawing: Drawing, columns: Sequence[Planned]) -> Outcome:
    """Release without a ledger: somebody else keeps account, or nobody does."""
    drawing.check_known(None)
    drawing.refuse_taken(list)
    with drawing.held(None):
        columns = tuple(replace(each, as_of=drawing.request.as_of) for each in columns)
        plan = Plan(columns, drawing.describe(columns))
        staged = drawing.stage(plan)
        return Outcome(staged.rows, [], drawing.publish(plan, staged))


@contextmanager
def _sealing(drawing: Drawing, plan: Plan, payer: Payer, known: Account) -> Iterator[Snapshot | None]:
    """Make a snapshot where one is wanted, and the ledger names none that is there. Rows that come and go have none."""
    folder = payer.snapshots
    is_rebuilt = all(rebuilt(each) is not None for each in plan.description.columns.values())
    if folder is None or payer.growing is not None or not drawing.seals or not is_rebuilt:
        yield None
        return
    states = [known.at(each.path) for each in plan.columns]
    kept = [None if state is None or state.snapshot is None else find(folder, state.snapshot) for state in states]
    if all(kept):
        yield None
    else:
        paths = [each.path for each in plan.columns]
        with making(folder, drawing.request.key, paths, str(payer.subject), payer.ledger) as snapshot:
            yield snapshot


def _plan(drawing: Drawing, columns: Sequence[Planned], payer: Payer, known: Account) -> tuple[Plan, list[Charge]]:
    """Decide which epoch of each path is drawn, before anything is.

    Where a change may be forced, whether the table changed decides the epoch, so the table is looked at first; so it is
    where rows may join. What is refused whatever the rows say is refused before that.
    """
    unseen = Staged(0, [Seen()] * len(columns))
    entries = _entries(drawing, columns, payer, unseen)
    charges: list[Charge] = [] if payer.force else payer.quote(entries, known)
    if payer.force or payer.growing is not None:
        seen = drawing.look(entries, payer)
        charges = payer.quote(_entries(drawing, columns, payer, replace(unseen, seen=seen)), known)
    drawn = tuple(
        replace(each, path=charge.path, as_of=_as_of(drawing.request, payer, known.at(charge.path)))
        for each, charge in zip(columns, charges, strict=True)
    )
    return Plan(drawn, drawing.describe(drawn)), charges


def _as_of(request: ReleaseRequest, payer: Payer, state: PathState | None) -> str | None:
    """Return the day whose table it is: that of the first release, as the ledger remembers it."""
    said = request.as_of
    if payer.growing is not None:  # rows come and go: it is of no single day
        return said
    if state is None:
        return said or payer.ledger.today()
    if said is not None and state.facts.as_of is not None and said != state.facts.as_of:
        raise OptionError(
            "{path} is of the table as of {known}, and a path is of one table.",
            option="as_of",
            path=state.path,
            known=state.facts.as_of,
        )
    return state.facts.as_of


def _quoted(drawing: Drawing, columns: Sequence[Planned], payer: Payer, known: Account) -> list[Charge]:
    return payer.quote(_entries(drawing, columns, payer, Staged(0, [Seen()] * len(columns))), known)


def _entries(drawing: Drawing, columns: Sequence[Planned], payer: Payer, staged: Staged) -> list[Entry]:
    """Return what the ledger is told of every column."""
    found = []
    for each, table in zip(columns, staged.seen, strict=True):
        facts = PathFacts(
            encoding=each.encoding.name,
            params=each.encoding.params.hex(),
            key_fingerprint=drawing.request.key.fingerprint,
            id_type=drawing.id_type,
            table_fingerprint=table.fingerprint,
            growing=payer.growing is not None,
            sampler=drawing.sampler,
            as_of=each.as_of,
        )
        kept = staged.digest, table.changed, staged.snapshot
        found.append(Entry(each.path, facts, each.level.epsilon, drawing.last_epsilon, *kept))
    return found


def _drawn_before(drawing: Drawing, column: Planned, known: Account) -> PathState | None:
    """Return the path whose level was drawn and charged before, and may not be drawn again."""
    state = known.last_epoch(column.path)
    if state is None or state.facts.sampler is not drawing.sampler or state.largest != column.level.epsilon:
        return None
    return state


def _finished(drawing: Drawing, columns: Sequence[Planned], drawn: PathState, payer: Payer, known: Account) -> Outcome:
    """Hand over what an earlier run drew and paid for, if it is still there. Nothing is drawn."""
    (entry,) = _entries(drawing, columns, payer, Staged(0, [Seen()]))
    problem = differs(drawn, entry)
    if problem is not None:  # what it says about itself would not be what was paid for
        raise problem
    staged = None if drawn.digest is None else drawing.resume(drawn.digest)
    if staged is None:
        raise already_drawn(drawn.path, drawn.largest)
    paid = tuple(replace(each, path=drawn.path, as_of=drawn.facts.as_of) for each in columns)
    result = drawing.publish(Plan(paid, drawing.describe(paid)), staged)
    balance = known.balance()
    nothing = Charge(drawn.path, Decimal(0), drawn.largest, balance.spent, balance.spent, balance.budget, False)
    return Outcome(staged.rows, [nothing], result)
