"""The Spark engine: a table of any size -> the same reports as anywhere else, checked and charged as anywhere else.

Rows are shuffled into ranges of ids and sorted, so equal ids meet in one task and a repeated one is seen there. Every
task says what it has drawn; the driver adds that up, charges the ledger, and only then hands anything over.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from relaxdp.draw.private_file import sync_folder
from relaxdp.encodings.release import add_texts
from relaxdp.errors import KeyFileError, TableChangedError, TableFileError
from relaxdp.ledger.entries import Entry
from relaxdp.ledger.ledger import Charge
from relaxdp.ledger.payer import Payer
from relaxdp.publication.derive import ColumnNames
from relaxdp.publication.description import METADATA_KEY, FileDescription
from relaxdp.publication.request import Planned, ReleaseRequest, id_type_of
from relaxdp.publication.staging import aside_folder, put_in_place
from relaxdp.publication.transaction import Drawing, Plan, Progress, Seen, Staged
from relaxdp.table.formats import Input
from relaxdp.table.frame_release import refuse_released_frame
from relaxdp.table.growing import Growth, TagWriter, changed_meanwhile
from relaxdp.table.release import refuse_rowless, refuse_taken
from relaxdp.table.spark.session import spark_sentences, watched
from relaxdp.table.spark.types import (
    UNSIGNED,
    Types,
    has_uuids,
    own_schema,
    spark_schema,
    spark_type,
    types_of,
    unreadable,
)
from relaxdp.table.spark.worker import (
    TAGS,
    SparkTask,
    Summary,
    file_and_summary,
    rows_and_summary,
    summary_alone,
    tags_and_summary,
)

_SUMMARY = "summary string"
_PLACE = "relaxdp_summary"
_FETCHED = 1 << 19
"""So many tags, of 16 bytes each, are fetched at once."""


class SparkInput:
    """A table that Spark reads, and its schema."""

    def __init__(self, session: Any, source: str) -> None:
        schema, reader = _schema_here(source), session.read
        if has_uuids(schema):  # Spark takes them for bytes where it is told to, and else refuses the whole file
            reader = reader.schema(spark_schema(pa.schema([(each.name, spark_type(each.type)) for each in schema])))
        with spark_sentences():
            self._take(reader.parquet(source), types_of(schema))
        self.names = ColumnNames(self.schema.names)

    @classmethod
    def of_frame(cls, frame: Any) -> SparkInput:
        """Return a data frame as a table; its names may be data."""
        made = cls.__new__(cls)
        made._take(frame, {})
        made.names = ColumnNames.of_frame(made.schema.names)
        return made

    def _take(self, frame: Any, types: Types) -> None:
        self.frame, self.types = frame, types
        self.schema = own_schema(_arrow_schema(frame), types)


class SparkDrawing(Drawing):
    """A Spark data frame, drawn by the workers."""

    def __init__(
        self,
        frame: Any,
        request: ReleaseRequest,
        *,
        names: ColumnNames | None = None,
        types: Types | None = None,
        worker_key: str | None = None,
        partitions: int | None = None,
    ) -> None:
        """Release `frame`; its workers read the key from `worker_key`, by default where the driver read it.

        `names` are those of its columns where they are known to be names, and not the first row of a table; `types` are
        those of a file's columns that Spark hands over as others.
        """
        source = worker_key or request.key.source
        if source is None:
            raise KeyFileError(
                "on Spark the key must come from a file that every worker can read, Key.load(path): a key in "
                "a task's description would end up in logs."
            )
        self._frame, self.request = frame, request
        self._key_file, self._partitions = str(source), partitions
        schema = _arrow_schema(frame)
        request.check_columns(names or ColumnNames.of_frame(schema.names))
        self._types = dict(types or {})
        if schema.field(request.id_column).type == UNSIGNED:
            self._types[request.id_column] = pa.uint64()
        self.schema = own_schema(schema, self._types)
        request.check_kinds(self.schema)
        refuse_released_frame(frame, [each.column for each in request.columns])
        self.id_type = id_type_of(self.schema.field(request.id_column).type)
        self._growth = Growth()

    @contextmanager
    def held(self, payer: Payer | None) -> Iterator[None]:
        """Hold the tags of a growing table; the rows are held by the executors."""
        with self._growth.held():
            yield

    def look(self, entries: Sequence[Entry], payer: Payer) -> list[Seen]:
        """Let the workers draw, and keep nothing but the fingerprints; of a growing table the tags of the rows."""
        if payer.growing is not None:
            return self._growth.look(entries, payer, self.request.planned(), self._tag, os.cpu_count() or 1)
        return self._seen(self._summaries(self.request.planned(), _looking))

    def _summaries(self, columns: Sequence[Planned], work: Callable[[SparkTask], Any]) -> list[Summary]:
        with spark_sentences():
            rows = self._ordered().mapInArrow(work(self._task(columns)), _SUMMARY).collect()
        return Summary.loads_all(row[0] for row in rows)

    def _task(self, columns: Sequence[Planned]) -> SparkTask:
        return SparkTask.of(self.request, columns, self._key_file, self._types)

    def _tag(self, writers: Sequence[TagWriter]) -> Sequence[str]:
        """Let the workers tag their rows, and fetch the tags part by part: all of them are too many for the driver.

        Through a shuffle, so that they are made all at once and wait on the workers' disks.
        """
        task, told = self._task(self.request.planned()), []
        rows, sums = [0] * len(writers), [0] * len(writers)
        parts = self._count() * len(writers) // _FETCHED + 1
        with spark_sentences():
            tagged = self._mapped(_tagging(task), TAGS).repartition(parts).rdd
            for part in range(tagged.getNumPartitions()):
                # One by one: Java would keep all parts of Spark's own iterator over them until it stops.
                found = tagged.context.runJob(tagged, list, [part])
                told += [row[-1] for row in found if row[-1] is not None]
                for place, writer in enumerate(writers):
                    cells = [row for row in found if row[0] == place]
                    id_tags, row_tags = (np.frombuffer(b"".join(row[each] for row in cells), "<u8") for each in (1, 2))
                    writer.write(id_tags, row_tags)
                    rows[place] += len(row_tags)
                    sums[place] = (sums[place] + int(row_tags.sum(dtype=np.uint64))) % 2**64
        prints = [str(each.fingerprint) for each in self._seen(Summary.loads_all(told))]
        # A worker that was lost is replaced, and what it had tagged is read again.
        fetched = [f"{count}:{total:016x}" for count, total in zip(rows, sums, strict=True)]
        if fetched != [each[:-16] for each in prints]:
            raise changed_meanwhile()
        return prints

    def _mapped(self, work: Any, schema: str) -> Any:
        """Let a worker see all rows once, in any order."""
        return self._selected().mapInArrow(work, schema)

    def _selected(self) -> Any:
        return self._frame.select(*(quoted(name) for name in self.request.input_columns()))

    def _ordered(self) -> Any:
        rows = self._selected()
        by = quoted(self.request.id_column)
        ranges = (
            rows.repartitionByRange(by) if self._partitions is None else rows.repartitionByRange(self._partitions, by)
        )
        return ranges.sortWithinPartitions(by)

    def _count(self) -> int:
        """Return how many rows there are."""
        with spark_sentences():
            return int(self._frame.count())

    def _seen(self, summaries: Sequence[Summary]) -> list[Seen]:
        columns = range(len(self.request.columns))
        return [Seen(add_texts(each.prints[column] for each in summaries if each.prints)) for column in columns]


class SparkFolderDrawing(SparkDrawing):
    """A folder of Parquet files, in the order of the ids, as durable and as atomic as a file of the local engine.

    The folder must be one that the driver and all workers see under the same name.
    """

    seals: ClassVar[bool] = True

    def __init__(
        self, frame: Any, request: ReleaseRequest, target: Path, *, progress: Progress | None = None, **options: Any
    ) -> None:
        super().__init__(frame, request, **options)
        self._said, self._progress = target, progress
        self._target = target.absolute()  # workers have another working folder
        self._place = self._target

    def refuse_taken(self, quoted: Callable[[], list[Charge]]) -> None:
        """Refuse a folder that is there already."""
        refuse_taken(self._said, quoted, what="folder")

    @contextmanager
    def held(self, payer: Payer | None) -> Iterator[None]:
        """Hold a folder beside the target, into which the workers write."""
        with (
            super().held(payer),
            aside_folder(self._target) as self._place,
            watched(self._frame.sparkSession, self._progress),
        ):
            yield

    def stage(self, plan: Plan) -> Staged:
        """Let the workers write, and gather the files of the attempts that count."""
        # Every part says the rows of the whole, so that a part is not taken for it.
        description = replace(plan.description, rows=self._count())
        to_file = partial(_to_file, str(self._place), description.dumps(), plan.snapshot is not None)
        summaries = self._summaries(plan.columns, to_file)
        refuse_rowless(sum(each.rows for each in summaries))
        _check_rows(summaries, description)
        whole = self._place / "whole"
        gather(self._place, whole, summaries)
        kept = None
        if plan.snapshot is not None:
            kept = plan.snapshot.join([self._place / each.sealed for each in summaries if each.sealed is not None])
        rows, seen = sum(each.rows for each in summaries), self._growth.checked(self._seen(summaries))
        return Staged(rows, seen, whole, snapshot=kept)

    def publish(self, plan: Plan, staged: Staged) -> None:
        """Give the folder its name."""
        put_in_place(staged.content, self._target)


class SparkFrameDrawing(SparkDrawing):
    """A Spark data frame of reports: the one thing that cannot appear atomically.

    It is computed and kept on the executors before the ledger is charged, and never computed anew: a source that
    changes later must not change what was released. It goes to the checkpoint folder, if there is one, only when
    it is charged: files would stay there after a refusal. Its columns describe themselves, also in Spark's files.
    """

    def stage(self, plan: Plan) -> Staged:
        """Materialise the reports on the executors."""
        fields = self.request.output_schema(self.schema)
        schema = pa.schema([*((field.name, spark_type(field.type)) for field in fields), (_PLACE, pa.string())])
        with spark_sentences():
            drawn = self._ordered().mapInArrow(_with_rows(self._task(plan.columns), schema), spark_schema(schema))
            kept = drawn.localCheckpoint()
            rows = kept.where(kept[_PLACE].isNotNull()).select(_PLACE).collect()
        summaries = Summary.loads_all(row[0] for row in rows)
        refuse_rowless(sum(each.rows for each in summaries))
        return Staged(sum(each.rows for each in summaries), self._growth.checked(self._seen(summaries)), kept)

    def publish(self, plan: Plan, staged: Staged) -> Any:
        """Return what was materialised."""
        kept = staged.content
        with spark_sentences():
            released = kept.where(kept[_PLACE].isNull()).drop(_PLACE)
            if _has_checkpoint_folder(self._frame.sparkSession):
                released = released.checkpoint()
        return _described(released, plan.description, staged.rows)


def _check_rows(summaries: Sequence[Summary], description: FileDescription) -> None:
    rows = sum(each.rows for each in summaries)
    if rows != description.rows:
        raise TableChangedError(
            "the table changed while it was read: it had {before:,} rows, and then {rows:,}.",
            before=description.rows,
            rows=rows,
        )


def _to_file(folder: str, description: str, seals: bool, task: SparkTask) -> Any:
    return lambda batches: file_and_summary(task, folder, description, seals, batches)


def _with_rows(task: SparkTask, schema: Any) -> Any:
    return lambda batches: rows_and_summary(task, schema, batches)


def _looking(task: SparkTask) -> Any:
    return lambda batches: summary_alone(task, batches)


def _tagging(task: SparkTask) -> Any:
    return lambda batches: tags_and_summary(task, batches)


def gather(place: Path, whole: Path, summaries: Sequence[Summary]) -> None:
    """Move the files of the attempts that count into one folder; those of other attempts stay, and go with the rest."""
    whole.mkdir()
    files = [each.file for each in summaries if each.file is not None]
    for number, file in enumerate(files):
        (place / file).rename(whole / f"part-{number:05d}.parquet")
    sync_folder(whole)


def _schema_here(source: str) -> Any:
    """Return the schema of a table that lies here as its files tell it; that of an address is Spark's alone."""
    path = Path(source)
    try:
        return Input(path).schema if path.exists() else pa.schema([])
    except TableFileError:  # a folder that only Spark takes for a table
        return pa.schema([])


def _arrow_schema(frame: Any) -> Any:
    from pyspark.sql.pandas.types import to_arrow_schema  # noqa: PLC0415

    with spark_sentences():
        schema = frame.schema
    try:
        return to_arrow_schema(schema)
    except Exception:
        raise unreadable() from None


def _has_checkpoint_folder(session: Any) -> bool:
    try:
        return bool(session.sparkContext._jsc.sc().getCheckpointDir().nonEmpty())
    except Exception:
        return False


def _described(frame: Any, description: FileDescription, rows: int) -> Any:
    """Return the frame with the description of every released column in Spark's own column metadata."""
    from pyspark.sql import functions  # noqa: PLC0415

    columns = []
    for name in frame.columns:
        column = functions.col(quoted(name))
        if name in description.columns:
            one = FileDescription(description.id_column, {name: description.columns[name]}, rows=rows)
            column = column.alias(name, metadata={METADATA_KEY.decode(): one.dumps()})
        columns.append(column)
    return frame.select(*columns)


def quoted(name: str) -> str:
    """Return a column's name as Spark takes it."""
    return "`" + name.replace("`", "``") + "`"
