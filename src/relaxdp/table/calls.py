"""Tables: `release`, `relax_reports`, `estimate` and what they need, for files and data frames, under one ledger.

What is slow to import (databases, narwhals, Spark) is imported when a table is there.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from datetime import date
from pathlib import Path
from typing import Any, Literal, get_args

from relaxdp.draw.key import Key
from relaxdp.encodings.declared import CategoricalEncoding
from relaxdp.errors import CountsError, OptionError, refusing
from relaxdp.estimation.counts import Method
from relaxdp.estimation.groups import Groups
from relaxdp.law.epsilon import Epsilon, as_epsilon
from relaxdp.ledger.entries import Subject
from relaxdp.ledger.ledger import Ledger
from relaxdp.ledger.payer import Payer
from relaxdp.mechanisms import Mechanism
from relaxdp.publication.column import Column
from relaxdp.publication.derive import check_name
from relaxdp.publication.description import FileDescription
from relaxdp.publication.transaction import Progress
from relaxdp.remedies import IN_PYTHON
from relaxdp.table.algorithm1 import Algorithm1Drawing
from relaxdp.table.arriving import arrived
from relaxdp.table.asked import (
    BESIDE_KEY,
    Asked,
    FileName,
    Place,
    Released,
    Where,
    carried_out,
    loaded,
    opened_ledger,
    place_of_snapshots,
)
from relaxdp.table.counting import PairTally, Tally, count_pairs
from relaxdp.table.counting import count as counted
from relaxdp.table.frame_description import description_of
from relaxdp.table.frame_estimate import estimate_frames, told
from relaxdp.table.frame_kinds import as_text, by_text
from relaxdp.table.kinds import is_file, is_spark
from relaxdp.table.snapshots import Changes, changes_since, drawing_of, released_states, snapshot_of

__all__ = ["BESIDE_KEY", "Released", "count", "description", "estimate", "relax", "relax_reports", "release"]

Engine = Literal["local", "spark"]
FrameKind = Literal["pyarrow", "pandas", "polars"]


@refusing("Nothing was released.", IN_PYTHON)
def release(
    source: Any,
    columns: Mapping[Any, Mechanism | Column | Sequence[Any]],
    *,
    id: str | int,
    epsilon: Epsilon,
    key: Key | FileName,
    to: FileName | None = None,
    release: str | None = None,
    ledger: FileName | Ledger | Place | None = BESIDE_KEY,
    population: str = "everyone",
    budget: Epsilon | None = None,
    keep: Sequence[str | int] = (),
    again: bool = False,
    force: bool = False,
    growing: bool = False,
    planned_epsilon: Epsilon | None = None,
    date: str = "",
    as_of: date | str | None = None,
    snapshots: FileName | bool = True,
    accept: bool = False,
    reason: str = "",
    new_ledger: str = "",
    dry_run: bool = False,
    threads: int | None = None,
    engine: Engine = "local",
    master: str | None = None,
    worker_key: str | None = None,
    partitions: int | None = None,
    separator: str | None = None,
    progress: Progress | None = None,
) -> Any:
    """Release columns of a table at a level: the ids, the reports, and what is to be kept, in the order of the ids.

    A data frame gives one of the same kind; a file goes to the file `to`, and `Released` is returned. Index,
    attributes, metadata and dictionaries of the input do not go along: these could betray an answer.

    The ledger is charged before anything is handed over. The same call again gives the same reports and costs nothing,
    a larger epsilon costs the difference, and a smaller one, another key, other values, a changed table or an overdrawn
    budget are refused. What is released is kept beside the ledger, ids and truths and nothing else, sealed with the
    key: so `relax` goes on from it when the table has changed.

    Args:
        source: a data frame (pandas, polars, pyarrow, Spark), or a file or its address: Parquet, CSV, TSV, a
            folder of Parquet files.
        columns: what each column is: a mechanism, a list of its values, or a `Column` (bins, a map, missing values).
        id: the column that tells the objects apart. No two rows have the same.
        epsilon: the level, more than 0.
        key: the key, or its file.
        to: the file that is written, where the source is one.
        release: the name of the release, which is part of every path. Left out, the name of the source's file.
        ledger: a file, a database's URL or an open `Ledger`; None says that nobody keeps account.
        population: whom the ledger charges.
        budget: the first budget of the population. Later ones are raised by `Ledger.raise_budget`.
        keep: columns that go along as they are.
        again: let a level that is lower than the last be drawn again, which costs nothing.
        force: open a new path where going on is refused. It adds up for everybody.
        growing: let rows join and leave, in files and on Spark; those are not kept beside the ledger.
        planned_epsilon: the last level that is planned, for which a new path is encoded; else the rest of the budget.
        date: makes it one of the dated releases of a series, each with its own path (`Ledger.declare_series`).
        as_of: which day the table was, as the files say it; by default that of the first release. Not with `growing`.
        snapshots: another folder for what is kept, or False.
        accept: release what costs something and tells next to nothing, which is refused otherwise.
        reason: why, for the ledger's history.
        new_ledger: why a key that has spent elsewhere begins another ledger.
        dry_run: return what it would cost, from the ledger alone.
        threads: how many; as many as the machine has processors.
        engine: "spark" reads and writes folders of Parquet files. Spark's data frames need no word.
        master: the address of Spark's master.
        worker_key: where the workers find the key's file, if not where `key` was loaded from.
        partitions: into how many parts Spark sorts the rows.
        separator: what separates the fields of CSV, where the ending does not say it.
        progress: called with the rows that are done, and with all of them where that is known.

    Raises:
        RelaxdpError: nothing was released. The kinds and their ways out are in `rx.errors`.

    >>> import pyarrow as pa
    >>> table = pa.table({"person": [18, 17], "diagnosis": ["flu", "covid"]})
    >>> released = release(
    ...     table, {"diagnosis": ["flu", "covid", "none"]}, id="person", epsilon=0.5,
    ...     key=Key.from_bytes(bytes(range(32))), release="survey-2026", ledger=None,
    ... )
    >>> released.column("person").to_pylist(), released.column("diagnosis").to_pylist()
    ([17, 18], ['covid', 'flu'])
    """
    source, numbers = _by_text(source)
    named: Any = (columns, id, keep)
    if numbers:
        kept = [keep] if isinstance(keep, str | int) else keep
        named = ({as_text(name): each for name, each in columns.items()}, as_text(id), [as_text(each) for each in kept])
    asked = Asked.of(source, named[0], named[1], epsilon, planned_epsilon, key, release, named[2], date, as_of)
    spark: dict[str, Any] = {"master": master, "worker_key": worker_key, "partitions": partitions}
    said = {name: each for name, each in spark.items() if each is not None}
    where = Where.of(source, to, engine, said, separator)
    if growing and where.target is None and not where.is_spark:
        raise OptionError("rows that join and leave are looked after in files and on Spark.", option="growing")
    if growing and as_of is not None:
        raise OptionError(
            "a growing table cannot have an as-of date. Its rows come from different days. Leave the date out.",
            option="as_of",
        )
    keeps_nothing = ledger is None or growing or (where.is_spark and where.target is None)
    if keeps_nothing and not isinstance(snapshots, bool):
        raise OptionError(
            "nothing is kept without a ledger, of rows that join and leave, nor of Spark's data frames.",
            option="snapshots",
        )
    agreed: Any = {"again": again, "force": force, "new_ledger": new_ledger, "accept": accept}
    agreed |= {"growing": growing, "snapshots": snapshots}
    with (
        where.opened(asked, threads or os.cpu_count() or 1, progress) as (table, make),
        asked.paying(ledger, population, budget, reason, **agreed) as paid,
    ):
        drawing = make(asked.requested(table, paid, to=None if where.is_spark else where.target))
        done = carried_out(drawing, paid.payer, paid.known, where.target, dry_run=dry_run)
        return done.set_axis([numbers.get(name, name) for name in done.columns], axis=1) if numbers else done


@refusing("Nothing was released.", IN_PYTHON)
def relax(
    release: str,
    *,
    epsilon: Epsilon,
    key: Key | FileName,
    to: FileName | None = None,
    columns: Sequence[str] | None = None,
    date: str = "",
    frame: FrameKind = "pyarrow",
    ledger: FileName | Ledger | Place = BESIDE_KEY,
    population: str = "everyone",
    snapshots: FileName | None = None,
    again: bool = False,
    accept: bool = False,
    reason: str = "",
    dry_run: bool = False,
    threads: int | None = None,
    progress: Progress | None = None,
) -> Any:
    """Release what was released before at a larger epsilon, from its snapshot: the table is not needed any more.

    It costs the difference, and gives the very reports that the table would give, as it was on the day of the first
    release. They go to the file `to`, or come as a data frame of the kind `frame`. `columns` are all that were released
    together, `date` is that of a dated release, and `snapshots` the folder, where the first release named one. Columns
    that were kept are not in a snapshot, which holds ids and truths: they stand in the files that were released. All
    other arguments are those of `release`.
    """
    own, target = loaded(key), None if to is None else Path(to)
    if frame not in get_args(FrameKind):
        raise OptionError("a data frame is one of {kinds}.", option="frame", kinds=", ".join(get_args(FrameKind)))
    with opened_ledger(ledger, own) as book:
        known = book.account(Subject.population(population))
        states = released_states(known, release, date, columns)
        folder = place_of_snapshots(True if snapshots is None else snapshots, book, own)
        options: Any = {"frame": frame, "threads": threads or os.cpu_count() or 1, "progress": progress}
        drawing = drawing_of(states, folder, own, as_epsilon(epsilon), target, **options)
        payer = Payer(book, known.subject, None, reason or f"relaxed {release}", again=again, accept=accept)
        return carried_out(drawing, payer, known, target, dry_run=dry_run)


@refusing("Nothing was released.", IN_PYTHON)
def relax_reports(
    source: FileName,
    columns: Mapping[str, Mechanism | Column | Sequence[Any]],
    *,
    reports: FileName,
    to: FileName,
    id: str,
    epsilon: Epsilon,
    key: Key | FileName,
    reports_epsilon: Epsilon | None = None,
    release: str | None = None,
    ledger: FileName | Ledger | Place = BESIDE_KEY,
    population: str = "everyone",
    budget: Epsilon | None = None,
    keep: Sequence[str] = (),
    accept: bool = False,
    reason: str = "",
    new_ledger: str = "",
    dry_run: bool = False,
    threads: int | None = None,
    separator: str | None = None,
    progress: Progress | None = None,
) -> Released:
    """Relax the reports in a file by the paper's Algorithm 1: fresh randomness, so each level is drawn once.

    `source` is the table that the reports are of, with the same ids, and `reports` holds plain randomized responses of
    one column at a lower level, which the file says itself or `reports_epsilon` does. The keyed path, if the reports
    are of one, is closed by it. After a crash the same call finishes what was charged; after a success it is refused.
    All other arguments are those of `release`.
    """
    asked = Asked.of(source, columns, id, epsilon, None, key, release, keep)
    where = Where.of(source, to, "local", {}, separator)
    last = None if reports_epsilon is None else as_epsilon(reports_epsilon)
    options: Any = {"last_epsilon": last, "threads": threads or os.cpu_count() or 1, "progress": progress}
    with (
        where.opened(asked, 1, None) as (table, _),
        asked.paying(ledger, population, budget, reason, new_ledger=new_ledger, accept=accept) as paid,
    ):
        request = asked.requested(table, paid, to=where.target, alone=CategoricalEncoding.name)
        drawing = Algorithm1Drawing(request, Path(reports), table=table, **options)
        outcome: Released = carried_out(drawing, paid.payer, paid.known, where.target, dry_run=dry_run)
        return outcome


def changes(
    source: FileName,
    columns: Mapping[str, Any],
    *,
    id: str,
    epsilon: Epsilon,
    key: Key | FileName,
    to: FileName,
    release: str | None,
    date: str,
    ledger: FileName | Place,
    population: str,
    snapshots: FileName | bool,
    separator: str | None,
) -> list[Changes]:
    """Return how each column of a table differs from its snapshot. These are truths, for the eyes of who holds them."""
    asked = Asked.of(source, columns, id, epsilon, None, key, release, (), date)
    where = Where.of(source, to, "local", {}, separator)
    with (
        where.opened(asked, 1, None) as (table, _),
        asked.paying(ledger, population, None, "", snapshots=snapshots) as paid,
    ):
        request = asked.requested(table, paid)
        states = [state for state in paid.opened.values() if state is not None]
        folder = None if paid.payer is None else paid.payer.snapshots
        return [changes_since(request, table, state, snapshot_of([state], folder, asked.key)) for state in states]


@refusing("", IN_PYTHON)
def estimate(
    source: Any,
    column: str | int | None = None,
    *,
    by: str | int | None = None,
    cross: str | int | None = None,
    method: Method = "average",
    description: Any = None,
    mechanism: Mechanism | None = None,
    epsilon: Epsilon | None = None,
) -> Any:
    """Return what a released table says: an estimate, or a dictionary of them for the groups of a kept column `by`.

    It has `.value`, `.std_error`, `.interval(0.95)`, `.to_frame()` and `.plot()`, see `Result`; print shows a table.

    Args:
        source: a data frame or a file, or a list of either that holds the same release at several levels: each object
            counts once, at its highest.
        column: which released column, where there are several.
        by: a kept column, for an estimate of each of its groups.
        cross: a second released column, for a two-way table.
        method: "average" or "precision", see `Counts.estimate`. They differ where objects stand at different levels.
        description: the table as it was released; for a list, a list. Give it for a table that has lost its
            description, or whose rows were chosen without a look at reports. A table's own description cannot be
            replaced.
        mechanism: that of a frame, in the place of a description, together with `epsilon`.
        epsilon: the level of a frame.

    >>> import pyarrow as pa, relaxdp as rx
    >>> reports = pa.table({"person": range(1000), "smokes": ["no"] * 700 + ["yes"] * 300})
    >>> found = estimate(reports, "smokes", mechanism=rx.Categorical(["no", "yes"]), epsilon=2)
    >>> found.value.round(3).tolist(), [ends.round(3).tolist() for ends in found.interval(0.95)]
    ([0.763, 0.237], [[0.736, 0.21], [0.79, 0.264]])
    """
    tables = list(source) if isinstance(source, list | tuple) else [source]
    texts = {id(table): _by_text(table) for table in tables}  # a frame that is named twice stays one
    numbers, tables = any(found for _, found in texts.values()), [texts[id(table)][0] for table in tables]
    wanted: list[Any] = [as_text(name) if numbers else name for name in (column, by, cross)]
    for name in wanted:
        if name is not None:
            check_name(name)
    which, group, second = wanted
    if tables and all(map(is_file, tables)):
        if mechanism is not None or epsilon is not None:
            raise CountsError("a file that does not say what it holds is described by one that does.")
        counted: Any = count(tables, which, by=group, cross=second, description=description)
        if second is not None:
            return counted.estimate(method)
        found = {name: counts.estimate(method) for name, counts in counted.groups}
        return Groups(group, found) if group is not None else found[None]
    said = told(len(tables), which, description, mechanism, epsilon)
    if tables and all(map(is_spark, tables)):
        from relaxdp.table.spark.estimate import estimate_spark  # noqa: PLC0415 (Spark may be missing)

        if second is not None:
            raise CountsError("a two-way table is not offered on Spark: write the frame, and read it as a file.")
        return estimate_spark(tables, said, column=which, by=group, method=method)
    return estimate_frames(tables, said, column=which, by=group, cross=second, method=method)


@refusing("", IN_PYTHON)
def count(
    files: FileName | Sequence[FileName],
    column: str | None = None,
    *,
    by: str | None = None,
    cross: str | None = None,
    description: FileName | Sequence[FileName] = (),
) -> Tally | PairTally:
    """Return the counts of released files, from which everything is estimated: by group, and for each level.

    `files`, `column`, `by`, `cross` and `description` are what `estimate` takes. Counts of disjoint objects may be
    merged, so that parts of a release can be counted where they lie.
    """
    if by is not None and cross is not None:
        raise CountsError("groups of a two-way table are not offered.", option="by")
    with ExitStack() as stack:
        paths, told = ([stack.enter_context(arrived(each)) for each in _listed(some)] for some in (files, description))
        if cross is not None:
            return count_pairs(paths, column=column, cross=cross, told=told)
        return counted(paths, column=column, by=by, told=told)


def _listed(files: FileName | Sequence[FileName] | None) -> list[Any]:
    return [files] if is_file(files) else list(files or ())  # type: ignore[arg-type]


@refusing("", IN_PYTHON)
def description(source: Any) -> FileDescription:
    """Return what `source`, a released frame or file, says about itself: values, levels, release and key.

    It is what `estimate` asks for where a frame was joined, filtered or read back and does not say it any more.
    """
    return description_of(source)


def _by_text(source: Any) -> tuple[Any, dict[str, int]]:
    return (source, {}) if is_file(source) or is_spark(source) else by_text(source)
