"""Columns of a table in a file, released to a file: written aside, made durable, and renamed when they are paid for."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

from relaxdp.errors import DescriptionError, RelaxdpError, TableFileError
from relaxdp.ledger.entries import Entry
from relaxdp.ledger.ledger import Charge
from relaxdp.ledger.payer import Payer
from relaxdp.publication.description import FileDescription
from relaxdp.publication.request import TableRequest, id_type_of
from relaxdp.publication.staging import aside, put_in_place, refuse_existing
from relaxdp.publication.transaction import Drawing, Outcome, Plan, Progress, Seen, Staged, publish
from relaxdp.table.engine import Engine, read_ahead
from relaxdp.table.formats import Input
from relaxdp.table.growing import Growth, Tagger, TagWriter
from relaxdp.table.kinds import Format, format_of, kind_of, sidecar_of
from relaxdp.table.order import NotAscendingError, counted_by_id, repeated_id, sorted_batches
from relaxdp.table.output import Output


def refuse_reports(table: Input, columns: Iterable[str]) -> None:
    """Refuse to take the reports of a released file for the truth: their noise would be charged once more.

    Columns that were kept are what they were, and may be released. A description that cannot be read is one, too.
    """
    try:
        description = table.description()
    except (DescriptionError, OSError, UnicodeDecodeError):
        names = list(columns)
    else:
        names = reports_among(description, columns)
    if names:
        beside = table.described_by() if table.format is Format.CSV else None
        told = "" if beside is None else f" {beside.name} says so."
        raise no_truth(f"{names[0]!r} of {str(table.path)!r}", told)


def reports_among(description: FileDescription | None, columns: Iterable[str]) -> list[str]:
    """Return those of the columns that a description says to hold reports."""
    return [] if description is None else [name for name in columns if name in description.columns]


def no_truth(what: str, told: str = "") -> DescriptionError:
    """Return the refusal of reports as a truth."""
    return DescriptionError(
        "{what} was released by relaxdp, and holds reports instead of the truth.{told} To relax it, release "
        "the table that it was made from at a larger epsilon.",
        what=what,
        told=told,
    )


def refuse_rowless(rows: int) -> None:
    """Refuse a table without rows: it would be charged, and nobody would learn anything."""
    if not rows:
        raise TableFileError("the table has no rows.")


def check_ending(target: Path) -> None:
    """Refuse an output that is no file of a known kind."""
    if target.is_dir():
        raise TableFileError(
            "{path!r} is a folder, and one file is written: name a file in it, like {example!r}.",
            remedy="spark_folder",
            example=str(target / "out.parquet"),
            path=str(target),
        )
    try:
        format_of(target)
    except TableFileError:
        raise TableFileError(
            "{path!r}: the name of the output must end in .parquet, .csv or .tsv, because one file is written; of text "
            "also with .gz or .zst behind it.",
            remedy="spark_folder",
            path=str(target),
        ) from None


def refuse_taken(target: Path, quoted: Callable[[], list[Charge]], *, what: str = "file") -> None:
    """Refuse an output that exists, and say what else can be done: the same level again costs nothing."""
    if not os.path.lexists(target):
        return
    try:
        charges = quoted()
    except RelaxdpError:
        charges = []
    free = ": this level again costs nothing" if charges and not any(charge.cost for charge in charges) else ""
    raise TableFileError(
        "{path!r} exists already. Name another {what} or remove it{free}.",
        what=what,
        free=free,
        path=str(target),
    )


def other_description(sidecar: Path) -> TableFileError:
    """Return the refusal to write a text file beside the description of something else."""
    return TableFileError(
        "{path!r} exists already, and is the description of something else. Name another file or remove it.",
        path=str(sidecar),
    )


class FileDrawing(Drawing):
    """A table in a file, and a file that is to be made of it."""

    request: TableRequest
    table: Any
    columns: list[str]
    """The columns that are read."""

    def __init__(self, request: TableRequest, progress: Progress | None = None, table: Any = None) -> None:
        """Open the table, unless it is open; or refuse what cannot be released from it or written."""
        check_ending(request.target)
        self.request, self.table = request, table or Input(request.source)
        request.check_columns(self.table.names)
        request.check_kinds(self.table.schema)
        self.id_type = id_type_of(self.table.schema.field(request.id_column).type)
        self.columns = request.input_columns()
        self.check_truth()
        self._progress, self._done, self._place = progress, 0, request.target

    def check_truth(self) -> None:
        """Refuse a table that holds reports."""
        refuse_reports(self.table, [each.column for each in self.request.columns])

    def refuse_taken(self, quoted: Callable[[], list[Charge]]) -> None:
        """Refuse a file that is there already."""
        refuse_taken(self.request.target, quoted)

    @contextmanager
    def held(self, payer: Payer | None) -> Iterator[None]:
        """Hold a place beside the target."""
        with aside(self.request.target) as self._place:
            yield

    def write(self, plan: Plan, schema: Any, batches: Iterator[Any]) -> int:
        """Write released batches aside, wait for the disk, and return how many rows there were."""
        refuse_other(self.request, plan.description)
        output, rows = None, 0
        try:
            output = Output(self._place, kind_of(self.request.target), schema, plan.description)
            for batch in batches:
                output.write(batch)
                rows += batch.num_rows
            refuse_rowless(rows)
            output.close()
            os.fsync(output.descriptor())
        except OSError as problem:
            if isinstance(problem, TableFileError):
                raise
            raise TableFileError(
                "{target!r} cannot be written: {why}.",
                target=str(self.request.target),
                why=problem.strerror or "the disk may be full",
            ) from None
        finally:
            if output is not None:
                output.abandon()
        return rows

    def publish(self, plan: Plan, staged: Staged) -> None:
        """Put a finished file, and the description beside a text file, under their names."""
        # First, so that no file ever stands without its description; a run that was killed may have come so far.
        if format_of(self.request.target) is Format.CSV:
            _put_beside(self.request, replace(plan.description, rows=staged.rows))
        put_in_place(staged.content, self.request.target)

    def advance(self, rows: int | None) -> None:
        """Tell of a batch that is done, or, with None, of a new beginning."""
        self._done = 0 if rows is None else self._done + rows
        if self._progress is not None:
            self._progress(self._done, self.table.rows)


def _put_beside(request: TableRequest, description: FileDescription) -> None:
    """Write the description of a text file, also over one that a killed run left there, whose rows may be others."""
    sidecar, text = sidecar_of(request.target), description.dumps()
    if sidecar.exists() and sidecar.read_bytes() != text.encode():
        refuse_other(request, description)
        sidecar.unlink()
    if not sidecar.exists():
        with aside(sidecar) as beside:
            beside.write_text(text, "utf-8")
            put_in_place(beside, sidecar)


def refuse_other(request: TableRequest, description: FileDescription) -> None:
    """Refuse to write over a file, or beside a description of something else."""
    refuse_existing(request.target)
    sidecar = sidecar_of(request.target)
    if format_of(request.target) is not Format.CSV or not os.path.lexists(sidecar):
        return
    if not sidecar.is_file() or not description.is_said_by(sidecar.read_bytes()):
        raise other_description(sidecar)


class TableDrawing(FileDrawing):
    """A file to a file: in the order of the ids, on several cores, with flat memory."""

    seals: ClassVar[bool] = True

    def __init__(
        self,
        request: TableRequest,
        *,
        threads: int = 1,
        progress: Progress | None = None,
        table: Any = None,
    ) -> None:
        super().__init__(request, progress, table)
        self._threads = threads
        self._growth = Growth()

    @contextmanager
    def held(self, payer: Payer | None) -> Iterator[None]:
        """Hold a place beside the target, and the tags of a growing table."""
        with self._growth.held(), super().held(payer):
            yield

    def look(self, entries: Sequence[Entry], payer: Payer) -> list[Seen]:
        """Read the table once without releasing anything. The order of the rows does not matter here."""
        if payer.growing is not None:
            return self._growth.look(entries, payer, self.request.planned(), self._tag, self._threads)
        engine = Engine(self.request, self.table.schema, self.request.planned())
        batches = self.table.batches(self.columns)
        deque(engine.run(batches, self._threads, lambda _: None, ordered=False), maxlen=0)
        return engine.seen()

    def _tag(self, writers: Sequence[TagWriter]) -> tuple[str, ...]:
        """Tag all rows, in the order of the table."""
        tagger = Tagger(self.request, self.request.planned())
        for batch in self.table.batches(self.columns):
            for writer, tags in zip(writers, tagger.tags(batch), strict=True):
                writer.write(*tags)
        return tagger.prints()

    def stage(self, plan: Plan) -> Staged:
        """Write the released rows; where the input turns out not to be sorted by id, once more through a sort."""
        try:
            with closing(read_ahead(self.table.batches(self.columns), self._threads)) as batches:
                return self._stage(plan, batches)
        except NotAscendingError:
            self.advance(None)
        ordered = sorted_batches(self.table, self.columns, self.request.id_column, self._threads)
        try:
            with counted_by_id(), closing(ordered) as batches:
                return self._stage(plan, batches)
        except NotAscendingError:
            raise repeated_id() from None

    def _stage(self, plan: Plan, batches: Iterator[Any]) -> Staged:
        part = plan.part()
        engine = Engine(self.request, self.table.schema, plan.columns, part)
        rows = self.write(plan, engine.schema, engine.run(batches, self._threads, self.advance))
        kept = None if part is None else part.close()
        return Staged(rows, self._growth.checked(engine.seen()), self._place, snapshot=kept)


def release_table(
    request: TableRequest, payer: Payer | None, *, threads: int = 1, progress: Progress | None = None
) -> Outcome:
    """Release columns of a table. The same call again gives the identical reports and charges nothing."""
    return publish(TableDrawing(request, threads=threads, progress=progress), payer)
