"""Between rows and objects: reading an account, and writing events together with what they change."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Connection,
    Index,
    Integer,
    MetaData,
    RowMapping,
    Table,
    Text,
    func,
    insert,
    select,
    update,
)

from relaxdp.draw.stream import PathId
from relaxdp.law.epsilon import epsilon_text
from relaxdp.ledger.account import Account, PathState, from_text
from relaxdp.ledger.entries import PathFacts, Sampler, Subject
from relaxdp.ledger.events import (
    BegunAnew,
    BudgetRaised,
    BudgetSet,
    DateDeclared,
    Event,
    LevelReleased,
    PathOpened,
)

METADATA = MetaData()


def _subject() -> list[Column[str]]:
    return [Column("subject_kind", Text, primary_key=True), Column("subject_name", Text, primary_key=True)]


SUBJECTS = Table("ledger_subject", METADATA, *_subject(), Column("budget", Text, nullable=False))

PATHS = Table(
    "ledger_path",
    METADATA,
    *_subject(),
    Column("release", Text, primary_key=True),
    Column("attribute", Text, primary_key=True),
    Column("date", Text, primary_key=True),
    Column("epoch", Integer, primary_key=True, autoincrement=False),
    Column("encoding", Text, nullable=False),
    Column("params", Text, nullable=False),
    Column("key_fingerprint", Text, nullable=False),
    Column("id_type", Text, nullable=False),
    Column("table_fingerprint", Text),
    Column("growing", Boolean, nullable=False),
    Column("sampler", Text, nullable=False),
    Column("as_of", Text),
    Column("largest", Text, nullable=False),
    Column("digest", Text),
    Column("snapshot", Text),
)

# Append-only: each store refuses to change or delete what happened. The numbers are counted by us and not by the
# database, 1, 2, 3, ..., while the ledger is held: a sequence would leave gaps, and a gap is an event that is gone.
EVENTS = Table(
    "ledger_event",
    METADATA,
    Column("number", BigInteger().with_variant(Integer, "sqlite"), primary_key=True, autoincrement=False),
    Column("time", Text, nullable=False),
    Column("event", Text, nullable=False),
    Column("subject_kind", Text, nullable=False),
    Column("subject_name", Text, nullable=False),
    Column("release", Text),
    Column("attribute", Text),
    Column("date", Text),
    Column("epoch", Integer),
    Column("encoding", Text),
    Column("params", Text),
    Column("key_fingerprint", Text),
    Column("id_type", Text),
    Column("table_fingerprint", Text),
    Column("growing", Boolean),
    Column("sampler", Text),
    Column("as_of", Text),
    Column("digest", Text),
    Column("snapshot", Text),
    Column("epsilon", Text),
    Column("cost", Text),
    Column("previous", Text),
    Column("budget", Text),
    Column("reason", Text, nullable=False),
    Index("ledger_event_subject", "subject_kind", "subject_name"),
    sqlite_autoincrement=True,
)


def read_subjects(connection: Connection) -> list[Subject]:
    """Return all subjects, in the order of their names."""
    found = connection.execute(select(SUBJECTS.c.subject_kind, SUBJECTS.c.subject_name))
    return sorted(Subject(kind, name) for kind, name in found)


def read_account(connection: Connection, subject: Subject) -> Account:
    """Return the account of a subject; an empty one for a subject of whom nothing is known."""
    budgets = connection.execute(select(SUBJECTS.c.budget).where(*_of(SUBJECTS, subject)))
    budget = budgets.scalar_one_or_none()
    paths = [
        PathState(_path(row), _facts(row), from_text(row["largest"]), row["digest"], row["snapshot"])
        for row in connection.execute(select(PATHS).where(*_of(PATHS, subject))).mappings()
    ]
    paths.sort(key=lambda state: state.path)
    account = Account(subject, None if budget is None else from_text(budget), tuple(paths))
    declared = select(EVENTS).where(*_of(EVENTS, subject), EVENTS.c.event == DateDeclared.__name__)
    for row in connection.execute(declared.order_by(EVENTS.c.number)).mappings():
        account = account.after(_event(row))
    return account


def read_events(connection: Connection, subject: Subject | None) -> list[Event]:
    """Return what happened, in order."""
    query = select(EVENTS).order_by(EVENTS.c.number)
    if subject is not None:
        query = query.where(*_of(EVENTS, subject))
    return [_event(row) for row in connection.execute(query).mappings()]


def knows_key(connection: Connection, fingerprint: str) -> bool:
    """Return whether any path was ever opened with a key."""
    query = select(PATHS.c.epoch).where(PATHS.c.key_fingerprint == fingerprint).limit(1)
    return connection.execute(query).first() is not None


def read_digests(connection: Connection) -> set[str]:
    """Return the digests of all files whose reports were charged and cannot be drawn again."""
    return set(connection.execute(select(EVENTS.c.digest).where(EVENTS.c.digest.is_not(None))).scalars())


def read_snapshots(connection: Connection) -> set[str]:
    """Return the digests of the snapshots that paths were released from."""
    return set(connection.execute(select(PATHS.c.snapshot).where(PATHS.c.snapshot.is_not(None))).scalars())


def last_number(connection: Connection) -> int:
    """Return the number of the last event, 0 before the first."""
    return connection.execute(select(func.max(EVENTS.c.number))).scalar() or 0


def is_gapless(connection: Connection) -> bool:
    """Return whether the events are numbered 1, 2, 3, ...: none is missing but, perhaps, the last ones."""
    least, most, count = connection.execute(
        select(func.min(EVENTS.c.number), func.max(EVENTS.c.number), func.count())
    ).one()
    return count == 0 or (least, most) == (1, count)


def write(connection: Connection, before: Account, after: Account, events: Iterable[Event]) -> None:
    """Append events, and bring the rows of the account from `before` to `after`."""
    for number, event in enumerate(events, start=last_number(connection) + 1):
        columns = {"number": number, **_subject_columns(event.subject), **_columns(event)}
        connection.execute(insert(EVENTS).values(**columns))
    who = _subject_columns(after.subject)
    if after.budget is not None and after.budget != before.budget:
        budget = epsilon_text(after.budget)
        if before.budget is None:
            connection.execute(insert(SUBJECTS).values(**who, budget=budget))
        else:
            connection.execute(update(SUBJECTS).where(*_of(SUBJECTS, after.subject)).values(budget=budget))
    for state in after.paths:
        old = before.at(state.path)
        read = {"largest": epsilon_text(state.largest), "digest": state.digest, "snapshot": state.snapshot}
        content = {**asdict(state.facts), **read}
        name = asdict(state.path)
        if old is None:
            connection.execute(insert(PATHS).values(**who, **name, **content))
        elif old != state:
            here = [PATHS.c[column] == value for column, value in name.items()]
            connection.execute(update(PATHS).where(*_of(PATHS, after.subject), *here).values(**content))


def _of(table: Any, subject: Subject) -> list[Any]:
    return [table.c.subject_kind == subject.kind, table.c.subject_name == subject.name]


def _subject_columns(subject: Subject) -> dict[str, Any]:
    return {"subject_kind": subject.kind, "subject_name": subject.name}


def _columns(event: Event) -> dict[str, Any]:
    """Return an event's own columns. Times are text in UTC, the same in every store."""
    time = event.time.astimezone(UTC).isoformat(timespec="microseconds")
    common: dict[str, Any] = {"event": type(event).__name__, "time": time, "reason": event.reason}
    if isinstance(event, BudgetSet):
        return {**common, "budget": epsilon_text(event.budget)}
    if isinstance(event, BudgetRaised):
        return {**common, "budget": epsilon_text(event.budget), "previous": epsilon_text(event.previous)}
    if isinstance(event, BegunAnew):
        return {**common, "key_fingerprint": event.key_fingerprint}
    if isinstance(event, DateDeclared):
        return {**common, "release": event.release, "date": event.date, "budget": epsilon_text(event.budget)}
    common |= asdict(event.path)
    if isinstance(event, PathOpened):
        return {**common, **asdict(event.facts)}
    amounts = {"epsilon": epsilon_text(event.epsilon), "cost": epsilon_text(event.cost)}
    kept = {"digest": event.digest, "snapshot": event.snapshot}
    return {**common, **amounts, **kept, "table_fingerprint": event.table_fingerprint}


def _event(row: RowMapping) -> Event:
    subject, reason = Subject(row["subject_kind"], row["subject_name"]), row["reason"]
    time = datetime.fromisoformat(row["time"])
    match row["event"]:
        case "BudgetSet":
            return BudgetSet(subject, time, from_text(row["budget"]), reason)
        case "BudgetRaised":
            return BudgetRaised(subject, time, from_text(row["previous"]), from_text(row["budget"]), reason)
        case "BegunAnew":
            return BegunAnew(subject, time, row["key_fingerprint"], reason)
        case "DateDeclared":
            return DateDeclared(subject, time, row["release"], row["date"], from_text(row["budget"]), reason)
        case "PathOpened":
            return PathOpened(subject, time, _path(row), _facts(row), reason)
        case "LevelReleased":
            level, cost = from_text(row["epsilon"]), from_text(row["cost"])
            kept = row["table_fingerprint"], reason, row["digest"], row["snapshot"]
            return LevelReleased(subject, time, _path(row), level, cost, *kept)
    raise ValueError("an event is of an unknown kind")


def _path(row: RowMapping) -> PathId:
    return PathId(row["release"], row["attribute"], row["epoch"], row["date"])


def _facts(row: RowMapping) -> PathFacts:
    return PathFacts(
        encoding=row["encoding"],
        params=row["params"],
        key_fingerprint=row["key_fingerprint"],
        id_type=row["id_type"],
        table_fingerprint=row["table_fingerprint"],
        growing=row["growing"],
        sampler=Sampler(row["sampler"]),
        as_of=row["as_of"],
    )
