"""Tables: `release`, `relax_reports`, `estimate` and what they need, for files and data frames, under one ledger.

What is slow to import (databases, narwhals, Spark) is imported when a table is there.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from decimal import ROUND_FLOOR, Context, Decimal
from enum import Enum
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from relaxdp.draw.key import Key, as_key
from relaxdp.encodings.declared import CategoricalEncoding
from relaxdp.errors import CountsError, OptionError, ValuesError, refusing
from relaxdp.estimation.counts import Method
from relaxdp.estimation.groups import Groups
from relaxdp.law.epsilon import Epsilon, as_epsilon
from relaxdp.mechanisms import Mechanism
from relaxdp.remedies import IN_PYTHON
from relaxdp.table.frame_kinds import as_text, by_text

if TYPE_CHECKING:
    from relaxdp.ledger.account import Account, PathState
    from relaxdp.ledger.entries import PathFacts
    from relaxdp.ledger.ledger import Charge, Ledger
    from relaxdp.ledger.payer import Payer
    from relaxdp.publication.description import FileDescription
    from relaxdp.publication.outlook import Outlook
    from relaxdp.publication.request import Column, Declarable, ReleaseRequest
    from relaxdp.publication.transaction import Drawing, Progress
    from relaxdp.table.counting import PairTally, Tally

FileName = str | os.PathLike[str]
Engine = Literal["local", "spark"]


class _Place(Enum):
    """Where a ledger lies, if nobody says."""

    BESIDE_KEY = "beside the key's file"


BESIDE_KEY = _Place.BESIDE_KEY
_DIGITS = Context(prec=4, rounding=ROUND_FLOOR)  # of an epsilon that nothing is charged by: encodings are chosen for it


@dataclass(frozen=True, slots=True)
class Released:
    """What became of a release to a file, or what would become of it."""

    release: str
    columns: tuple[str, ...]
    epsilon: Decimal
    to: Path | None
    rows: int | None
    """How many rows were released; None where it was a dry run."""
    charges: tuple[Charge, ...]
    """What each column cost; none where nobody keeps account."""
    outlooks: tuple[Outlook, ...] = ()
    """How each column is encoded, why so, and how precise what is estimated of it will be."""
    is_faster_locally: bool = False
    """Whether Spark ran on this machine over a table whose ids ascend: there the local engine takes less time."""


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
    ledger: FileName | Ledger | _Place | None = BESIDE_KEY,
    population: str = "everyone",
    budget: Epsilon | None = None,
    keep: Sequence[str | int] = (),
    again: bool = False,
    force: bool = False,
    growing: bool = False,
    planned_epsilon: Epsilon | None = None,
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

    A data frame gives one of the same kind; a file (Parquet, CSV and TSV, JSON lines, Arrow IPC, a folder of files,
    Excel, or the address of one) goes to the file `to`, and `Released` is returned. `separator` is what separates the
    fields of CSV, where the ending does not say it. A column is said to be a mechanism, a list of its values, or a
    `Column` (bins, a map, missing values, values that are public). Index, attributes, metadata and dictionaries of the
    input do not go along: these could betray an answer.

    The ledger is charged before anything is handed over: the one beside the key's file, another file, a database's URL
    or an open `Ledger`; None says that nobody keeps account. The same call again gives the same reports and costs
    nothing, a larger epsilon costs the difference (a smaller one is refused, unless `again`), and another key, other
    values, a changed table or an overdrawn budget are refused. So is what would be paid for and tell next to nothing,
    unless `accept`; `planned_epsilon` is the last level that is planned, for which a new path is encoded (else the rest
    of the budget). `force` opens a new path in spite of it, `growing` lets rows of a file, or on Spark, join and leave,
    `new_ledger` says why a key that has spent elsewhere begins another ledger. With `dry_run` what it would cost is
    returned, from the ledger alone.

    `engine="spark"` reads and writes folders of Parquet files; Spark's data frames need no word. There the workers read
    the key themselves, from the file that `key` was loaded from or from `worker_key`.

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
    asked = _Asked.of(source, named[0], named[1], epsilon, planned_epsilon, key, release, named[2])
    spark: dict[str, Any] = {"master": master, "worker_key": worker_key, "partitions": partitions}
    said = {name: each for name, each in spark.items() if each is not None}
    where = _Where.of(source, to, engine, said, separator)
    if growing and where.target is None and not where.is_spark:
        raise OptionError("rows that join and leave are looked after in files and on Spark.", option="growing")
    agreed = {"again": again, "force": force, "new_ledger": new_ledger, "accept": accept}
    with (
        where.opened(asked, threads or os.cpu_count() or 1, progress) as (table, make),
        asked.paying(ledger, population, budget, reason, growing=growing, **agreed) as paid,
    ):
        done = asked.carried_out(table, make, paid, where.target, dry_run=dry_run)
        return done.set_axis([numbers.get(name, name) for name in done.columns], axis=1) if numbers else done


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
    ledger: FileName | Ledger | _Place = BESIDE_KEY,
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
    """
    from relaxdp.table.algorithm1 import Algorithm1Drawing  # noqa: PLC0415

    asked = _Asked.of(source, columns, id, epsilon, None, key, release, keep)
    where = _Where.of(source, to, "local", {}, separator)
    last = None if reports_epsilon is None else as_epsilon(reports_epsilon)
    options: Any = {"last_epsilon": last, "threads": threads or os.cpu_count() or 1, "progress": progress}
    with (
        where.opened(asked, 1, None) as (table, _),
        asked.paying(ledger, population, budget, reason, new_ledger=new_ledger, accept=accept) as paid,
    ):

        def make(request: ReleaseRequest) -> Drawing:
            return Algorithm1Drawing(where.from_file(request, table), Path(reports), table=table, **options)

        plain = CategoricalEncoding.name
        outcome: Released = asked.carried_out(table, make, paid, where.target, dry_run=dry_run, alone=plain)
        return outcome


@dataclass(frozen=True, slots=True)
class _Paid:
    """Who pays, how the account stood before, and the paths that go on."""

    payer: Payer | None
    known: Account | None
    opened: Mapping[str, PathState | None]
    remembered: Mapping[str, PathFacts] | None
    """How columns were encoded before, for others too; None where nobody can tell."""


@dataclass(frozen=True, slots=True)
class _Asked:
    """What is to be released, wherever the table lies."""

    columns: Mapping[str, Any]
    id_column: str
    epsilon: Decimal
    planned: Decimal | None
    """The last epsilon that is planned, where it was said."""
    key: Key
    release: str
    is_named: bool
    """Whether a person said how the release is called; else it is called like its file."""
    keep: tuple[str, ...]

    @classmethod
    def of(
        cls,
        source: Any,
        columns: Any,
        id: str,
        epsilon: Epsilon,
        planned: Epsilon | None,
        key: Key | FileName,
        release: str | None,
        keep: Sequence[str],
    ) -> _Asked:
        """Take what was said, or refuse what makes no sense."""
        if not isinstance(columns, Mapping) or not columns or not all(isinstance(name, str) for name in columns):
            raise ValuesError("say what each column can be.", remedy="columns")
        if hasattr(keep, "dtype") and hasattr(keep, "to_list") and type(keep).__name__ != "Index":
            raise ValuesError("what is kept is a list of names, and this is a column.", option="keep")  # of data
        exact = as_epsilon(epsilon)
        if release is None and not _is_file(source):
            raise OptionError("a release of a data frame needs a name.", remedy="release", option="release")
        return cls(
            columns,
            id,
            exact,
            None if planned is None else as_epsilon(planned),
            Key.load(key) if isinstance(key, str | os.PathLike) else as_key(key),
            _name_of(source) if release is None else release,
            release is not None,
            (keep,) if isinstance(keep, str) else tuple(keep),
        )

    @contextmanager
    def paying(
        self,
        ledger: FileName | Ledger | _Place | None,
        population: str,
        budget: Epsilon | None,
        reason: str,
        *,
        growing: bool = False,
        **agreed: Any,
    ) -> Iterator[_Paid]:
        """Open a ledger by its place, for one release; one that is open already stays open."""
        from relaxdp.ledger.entries import Subject  # noqa: PLC0415
        from relaxdp.ledger.ledger import Ledger  # noqa: PLC0415
        from relaxdp.ledger.payer import Payer, ledger_beside, ledger_of, refuse_other_name  # noqa: PLC0415
        from relaxdp.table.growing import tags_folder  # noqa: PLC0415

        if ledger is None:
            if growing:
                raise OptionError("tags of the rows lie beside the ledger, so it takes one.", option="growing")
            yield _Paid(None, None, {}, self._remembered_beside())
            return
        with ExitStack() as stack:
            place = ledger_beside(self.key) if isinstance(ledger, _Place) else ledger
            book = place if isinstance(place, Ledger) else stack.enter_context(Ledger.open(place))
            tags = None
            if growing:
                beside = Path(book.address) if "://" not in book.address else None
                if beside is None and self.key.source is not None:  # a database has no folder beside it; the key has
                    beside = ledger_of(self.key.source)
                if beside is None:
                    raise OptionError("tags of the rows need a place: this key comes from no file.", option="growing")
                tags = tags_folder(beside)
            subject = Subject.population(population)
            known = book.account(subject)
            opened = {name: known.last_epoch(self.release, name) for name in self.columns}
            if not self.is_named:
                refuse_other_name(known, self.release, list(self.columns))
            payer = Payer(book, subject, budget, reason or f"release of {self.release}", growing=tags, **agreed)
            is_new = any(state is None for state in opened.values())
            yield _Paid(payer, known, opened, self._remembered(book) if is_new else {})

    def _remembered_beside(self) -> dict[str, PathFacts] | None:
        """Return what the ledger beside the key remembers; None where there is one that cannot be read."""
        from relaxdp.errors import LedgerError  # noqa: PLC0415
        from relaxdp.ledger.ledger import Ledger  # noqa: PLC0415
        from relaxdp.ledger.payer import ledger_of  # noqa: PLC0415

        place = None if self.key.source is None else ledger_of(self.key.source)
        if place is None or not place.exists():
            return {}
        try:
            with Ledger.open(place, create=False) as beside:
                return self._remembered(beside)
        except LedgerError:
            return None

    def _remembered(self, book: Ledger) -> dict[str, PathFacts]:
        """Return how columns were encoded by this key under this release, for whomever it was charged.

        Encoded in another way they would take another path, whose cost adds up where no ledger sees it. So somebody
        who releases without a ledger goes on as the one beside the key remembers.
        """
        found = {}
        for subject in (each for each in book.subjects() if each.kind == "population"):  # tables are of these
            account = book.account(subject)
            for name in self.columns:
                state = account.last_epoch(self.release, name)
                if state is not None and state.facts.key_fingerprint == self.key.fingerprint:
                    found[name] = state.facts
        return found

    def carried_out(
        self,
        table: Declarable,
        make: Callable[[ReleaseRequest], Drawing],
        paid: _Paid,
        target: Path | None,
        *,
        dry_run: bool,
        alone: str | None = None,
    ) -> Any:
        """Release, or say what it would cost; `alone` is the only encoding that can be meant."""
        from relaxdp.publication.outlook import outlook_of  # noqa: PLC0415
        from relaxdp.publication.request import Opening, ReleaseRequest, requested  # noqa: PLC0415
        from relaxdp.publication.transaction import publish, quote  # noqa: PLC0415

        columns, planned = [], self._planned(paid)
        for name, said in self.columns.items():
            state, payer = paid.opened.get(name), paid.payer
            opened = (paid.remembered or {}).get(name) if state is None else state.facts
            begun_anew = payer is not None and bool(payer.new_ledger)
            is_unknown = opened is None and (begun_anew or paid.remembered is None)
            may_differ = state is None or (payer is not None and payer.force)
            opening = Opening(planned, self.planned is not None, opened, alone, may_differ, is_unknown)
            columns.append(requested(name, said, table, opening))
        request = ReleaseRequest(
            id_column=self.id_column,
            columns=columns,
            epsilon=self.epsilon,
            key=self.key,
            release=self.release,
            keep=self.keep,
        )
        drawing, names = make(request), tuple(self.columns)
        if dry_run:
            if paid.payer is None:
                raise OptionError("what it would cost is asked of the ledger, so it takes one.", option="dry_run")
            rows, charges = None, quote(drawing, paid.payer, paid.known)
        else:
            outcome = publish(drawing, paid.payer, paid.known)
            rows, charges = outcome.rows, outcome.charges
            if target is None:
                return outcome.result
        outlooks = tuple(outlook_of(each, rows) for each in request.planned())
        return Released(
            self.release, names, self.epsilon, target, rows, tuple(charges), outlooks, drawing.is_faster_locally
        )

    def _planned(self, paid: _Paid) -> Decimal | None:
        """Return the last epsilon that new paths are for: what was said, else what is left of the budget."""
        from relaxdp.ledger.account import as_budget  # noqa: PLC0415

        if self.planned is not None or paid.payer is None:
            return self.planned
        budget = paid.known.budget if paid.known is not None else None
        if budget is None:
            budget = None if paid.payer.budget is None else as_budget(paid.payer.budget)
        if budget is None or paid.known is None:
            return self.epsilon
        return max(self.epsilon, _DIGITS.plus(budget - paid.known.spent))


@dataclass(frozen=True, slots=True)
class _Where:
    """Where a table lies and where what is released of it goes: from file to file, or from frame to frame."""

    source: Any
    target: Path | None
    is_spark: bool
    spark: dict[str, Any]
    separator: str | None

    @classmethod
    def of(cls, source: Any, to: FileName | None, engine: str, spark: dict[str, Any], separator: str | None) -> _Where:
        """Take what was said, or refuse what makes no sense."""
        if engine not in ("local", "spark"):
            raise OptionError("there is no engine {engine!r}: rows are drawn locally or by Spark.", engine=engine)
        is_file, is_frame_of_spark = _is_file(source), _is_spark(source)
        if is_file and to is None:
            raise OptionError("what is released of a file goes to a file.", remedy="to", option="to")
        if not is_file and to is not None:
            raise OptionError("what is released of a data frame is one, and is not written.", option="to")
        if spark and engine != "spark" and not is_frame_of_spark:
            raise OptionError("this is for Spark: {options}.", remedy="engine", options=", ".join(spark))
        is_spark = engine == "spark" or is_frame_of_spark
        if separator is not None and (is_spark or not is_file):
            raise OptionError("fields are separated in files, which the local engine reads.", option="separator")
        if isinstance(to, str) and "://" in to and not is_spark:
            raise OptionError("what is released goes to a file that lies here, and to no address.", option="to")
        return cls(source, None if to is None else Path(to), is_spark, spark, separator)

    @contextmanager
    def opened(
        self, asked: _Asked, threads: int, progress: Progress | None
    ) -> Iterator[tuple[Any, Callable[[ReleaseRequest], Drawing]]]:
        """Open the table, and give what draws from it."""
        if self.target is None:
            yield self._frame(asked, threads)
        elif self.is_spark:
            from relaxdp.table.spark.session import SparkPlace  # noqa: PLC0415

            place = SparkPlace(os.fspath(self.source), self.target, **self.spark)
            with place.logged():
                yield place.table, partial(place.drawing, progress=progress)
        else:
            from relaxdp.table.arriving import arrived  # noqa: PLC0415
            from relaxdp.table.formats import Input, row_named  # noqa: PLC0415
            from relaxdp.table.release import TableDrawing, check_ending  # noqa: PLC0415

            check_ending(self.target)
            with arrived(self.source) as file:
                table = Input(file, self.separator)
                options: Any = {"threads": threads, "progress": progress, "table": table}
                with row_named(table):
                    yield table, lambda request: TableDrawing(self.from_file(request, table), **options)

    def from_file(self, request: ReleaseRequest, table: Any) -> Any:
        """Return a request from one file to another."""
        from relaxdp.publication.request import TableRequest  # noqa: PLC0415

        assert self.target is not None  # noqa: S101
        return TableRequest.between(request, table.path, self.target)

    def _frame(self, asked: _Asked, threads: int) -> tuple[Any, Callable[[ReleaseRequest], Drawing]]:
        if self.is_spark:
            from relaxdp.table.spark.release import SparkFrameDrawing, SparkInput  # noqa: PLC0415

            options = {name: each for name, each in self.spark.items() if name != "master"}
            return SparkInput.of_frame(self.source), lambda request: SparkFrameDrawing(self.source, request, **options)
        from relaxdp.table.frame_release import FrameDrawing, FrameTable  # noqa: PLC0415

        table = FrameTable(self.source, asked.id_column, list(asked.columns), asked.keep)
        return table, lambda request: FrameDrawing(table, request, threads)


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

    The table is a data frame or a file, or a list of either that holds the same release at several levels: each object
    counts once, at its highest. `cross` is a second released column, for a two-way table. A released table knows its
    values and level; where it was changed since, say `description` (what it came from; for a list, a list), or of a
    frame `mechanism` and `epsilon`.
    """
    from relaxdp.publication.derive import check_name  # noqa: PLC0415

    tables = list(source) if isinstance(source, list | tuple) else [source]
    texts = {id(table): _by_text(table) for table in tables}  # a frame that is named twice stays one
    numbers, tables = any(found for _, found in texts.values()), [texts[id(table)][0] for table in tables]
    wanted: list[Any] = [as_text(name) if numbers else name for name in (column, by, cross)]
    for name in wanted:
        if name is not None:
            check_name(name)
    which, group, second = wanted
    if tables and all(map(_is_file, tables)):
        if mechanism is not None or epsilon is not None:
            raise CountsError("a file that does not say what it holds is described by one that does.")
        counted: Any = count(tables, which, by=group, cross=second, description=description)
        if second is not None:
            return counted.estimate(method)
        found = {name: counts.estimate(method) for name, counts in counted.groups}
        return Groups(group, found) if group is not None else found[None]
    from relaxdp.table.frame_estimate import estimate_frames, told  # noqa: PLC0415

    said = told(len(tables), which, description, mechanism, epsilon)
    if tables and all(map(_is_spark, tables)):
        from relaxdp.table.spark.estimate import estimate_spark  # noqa: PLC0415

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
    """Return the counts of released files, from which everything is estimated: by group, and for each level."""
    from relaxdp.table.arriving import arrived  # noqa: PLC0415
    from relaxdp.table.counting import count as counted  # noqa: PLC0415
    from relaxdp.table.counting import count_pairs  # noqa: PLC0415

    if by is not None and cross is not None:
        raise CountsError("groups of a two-way table are not offered.", option="by")
    with ExitStack() as stack:
        paths, told = ([stack.enter_context(arrived(each)) for each in _listed(some)] for some in (files, description))
        if cross is not None:
            return count_pairs(paths, column=column, cross=cross, told=told)
        return counted(paths, column=column, by=by, told=told)


def _listed(files: FileName | Sequence[FileName] | None) -> list[Any]:
    return [files] if _is_file(files) else list(files or ())  # type: ignore[arg-type]


def _name_of(source: FileName) -> str:
    from relaxdp.table.arriving import is_address, name_of  # noqa: PLC0415
    from relaxdp.table.kinds import stem_of  # noqa: PLC0415

    return stem_of(Path(name_of(str(source)) if is_address(source) else source))


@refusing("", IN_PYTHON)
def description(source: Any) -> FileDescription:
    """Return what a released frame, or a released file, says about itself: values, levels, release and key.

    It is what `estimate` asks for where a frame was joined, filtered or read back and does not say it any more.
    """
    from relaxdp.table.frame_description import description_of  # noqa: PLC0415

    return description_of(source)


def _by_text(source: Any) -> tuple[Any, dict[str, int]]:
    return (source, {}) if _is_file(source) or _is_spark(source) else by_text(source)


def _is_file(source: Any) -> bool:
    return isinstance(source, str | os.PathLike)


def _is_spark(frame: Any) -> bool:
    return type(frame).__module__.startswith("pyspark.sql")
