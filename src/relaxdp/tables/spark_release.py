"""Spark DataFrames in and out: workers draw and seal, the driver compares keyed tags and charges.

Rows are shuffled into ranges of ids and sorted, so that a repeated id is noticed within one task. A task may run again,
twice at once, or on another machine: every attempt draws the same reports. It returns the released rows, sealed chunks
of what they were drawn from, and keyed tags of ids and rows. The driver never sees a clear row of the table, and no
key is part of a task: workers read it from the file that vault.toml names.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from relaxdp import errors
from relaxdp.errors import ArgumentError, IdError, KeyFileError, RelaxdpError, SparkError, TableFileError
from relaxdp.ledger.account import ColumnState
from relaxdp.ledger.events import SnapshotSummary
from relaxdp.mechanisms.bloom import Bloom
from relaxdp.mechanisms.keyed_reports import RowTagger
from relaxdp.sampling.keys import Key
from relaxdp.tables.metadata import METADATA_KEY, read_frame_description
from relaxdp.tables.release_plan import DrawingPlan, ReleasePlan, StagedRelease
from relaxdp.tables.snapshot import ChunkKind, PartSealer, Snapshot, StagedSnapshot, TrueRows, normalize_ids
from relaxdp.tables.snapshot_comparison import (
    finish_column_snapshot,
    merge_rows,
    normalize_spelling,
    reject_changed_values,
    reject_respelled_ids,
)
from relaxdp.tables.table_columns import ColumnNames, get_plain_type, remove_hidden_values
from relaxdp.tables.table_source import IdOrderCheck, NotAscendingError, make_repeated_ids_error, resize_batches
from relaxdp.tables.transaction import Stager

BATCH_ROWS = 1 << 16
_PIECE = 1 << 20
_PLACE, _NUMBER, _CONTENT = "relaxdp_place", "relaxdp_number", "relaxdp_content"
_SUMMARY, _TAGS = -1, -2
"""What a row without reports holds in place of the number of a column."""


class SparkSource:
    """A Spark DataFrame as a source."""

    library = "spark"
    label = "the data frame"
    rows: int | None = None

    def __init__(self, frame: Any) -> None:
        from pyspark.sql.pandas.types import to_arrow_schema  # noqa: PLC0415
        from pyspark.sql.types import StructType  # noqa: PLC0415

        self.native = frame
        with replace_spark_errors():
            described = frame.schema
        fields = []
        for field in described.fields:
            try:
                fields += to_arrow_schema(StructType([field]))
            except Exception:
                raise ArgumentError(
                    "The column {column!r} has type {type}, which cannot be exchanged between Spark and Arrow.",
                    hint="Convert the column to text.",
                    column=field.name,
                    type=field.dataType.simpleString(),
                ) from None
        schema = pa.schema(fields)
        # Spark has no unsigned numbers: those of 64 bits arrive as decimals.
        self.types: ColumnTypes = {each.name: pa.uint64() for each in schema if each.type == UNSIGNED}
        self.schema = pa.schema([(each.name, self.types.get(each.name, each.type)) for each in schema])
        self.names = ColumnNames.from_frame(schema.names)
        self.report_description = read_frame_description(frame)


@dataclass(frozen=True, slots=True, kw_only=True)
class SparkTask(DrawingPlan):
    """The task of a Spark worker. It contains the name of the file with the key, not the key itself."""

    key_file: str
    key_fingerprint: str
    types: ColumnTypes

    def load_key(self) -> Key:
        """Return the key that this worker has."""
        try:
            key = Key.load_from_vault(self.key_file)
        except KeyFileError as problem:
            raise KeyFileError(
                "A Spark worker cannot load the key of the vault. {problem}",
                hint="Put the vault's key on every worker, and name the file in vault.toml: [key] worker_file.",
                problem=problem.sentence,
            ) from None
        if key.fingerprint != self.key_fingerprint:
            raise KeyFileError(
                "The file {key_file!r} on a Spark worker holds the key with the fingerprint {given}; expected {known}.",
                hint="Copy the key of the vault to this file on every worker.",
                key_file=self.key_file,
                given=key.fingerprint,
                known=self.key_fingerprint,
            )
        return key


def draw_partition(task: SparkTask, batches: Iterator[Any], schema: Any) -> Iterator[Any]:
    """Return the released rows of one partition, then rows that hold sealed chunks, tags and a summary.

    A rejection is written into the summary instead of being raised: another attempt would be rejected as well. Of what
    else is raised only the type is named, because messages of libraries quote rows and Spark keeps logs.
    """
    from pyspark import TaskContext  # noqa: PLC0415 (a worker has it)

    context = TaskContext.get()
    summary: dict[str, Any] = {"partition": 0 if context is None else context.partitionId(), "rows": 0}
    extra: list[tuple[int, bytes]] = []
    failure = ""
    try:
        for released in _draw_rows(task, batches, extra):
            summary["rows"] += released.num_rows
            yield _add_missing_columns(released, schema)
            yield from _pack_extra_rows(extra, summary["partition"], schema)
    except RelaxdpError as problem:
        summary |= {"error": type(problem).__name__, "sentence": problem.template, "hint": problem.hint_template}
        summary["fields"] = problem.fields
    except Exception as problem:
        failure = type(problem).__name__
    if failure:
        raise SparkError("A Spark worker raised {failure}.", hint="Look at the log of the worker.", failure=failure)
    yield from _pack_extra_rows([*extra, (_SUMMARY, json.dumps(summary).encode())], summary["partition"], schema)


def _draw_rows(task: SparkTask, batches: Iterator[Any], extra_rows: list[tuple[int, bytes]]) -> Iterator[Any]:
    key, order, first_row, number = task.load_key(), IdOrderCheck(), 0, 0
    parts: list[PartSealer] = []
    taggers = [RowTagger(key, each.mechanism, each.path) for each in task.columns]
    for small in resize_batches(batches, BATCH_ROWS):  # those of Spark are small
        batch = task.read_batch(restore_types(small, task.types))
        try:
            order.check(batch.ids)
        except NotAscendingError:
            raise make_repeated_ids_error((), SparkSource.label) from None
        if not parts:  # an empty partition has no parts
            parts = [_start_part(key, place, each, extra_rows) for place, each in enumerate(task.describe_snapshots())]
        drawn = task.draw_batch(key, batch, first_row, number, parts)
        for part, chunk in zip(parts, drawn.sealed, strict=True):
            part.write(chunk)
        ids = drawn.rows[0].ids
        tags = [taggers[0].tag_ids(ids)]
        if pa.types.is_large_string(ids.type):
            tags.append(taggers[0].tag_ids(normalize_spelling(ids)))
        tags += [tagger.tag_rows(ids, rows.values) for tagger, rows in zip(taggers, drawn.rows, strict=True)]
        extra_rows.append((_TAGS, np.stack(tags).astype("<u8").tobytes()))
        yield drawn.released
        first_row, number = first_row + len(batch.ids), number + 1
    for part in parts:
        part.close()


def _start_part(key: Key, index: int, description: dict[str, Any], extra_rows: list[tuple[int, bytes]]) -> PartSealer:
    def keep(content: bytes) -> None:
        for start in range(0, len(content), _PIECE):
            extra_rows.append((index, content[start : start + _PIECE]))

    return PartSealer(keep, key, description)


def _add_missing_columns(batch: Any, schema: Any) -> Any:
    arrays = [remove_hidden_values(each).cast(field.type) for each, field in zip(batch.columns, schema, strict=False)]
    nothing = [pa.nulls(batch.num_rows, field.type) for field in list(schema)[-3:]]
    return pa.RecordBatch.from_arrays([*arrays, *nothing], schema=schema)


def _pack_extra_rows(extra_rows: list[tuple[int, bytes]], partition: int, schema: Any) -> Iterator[Any]:
    """Pack extra rows, which hold no report, into batches, and empty their list."""
    for place, content in extra_rows:
        nothing = [pa.nulls(1, each.type) for each in list(schema)[:-3]]
        # Spark keeps the order of rows within a partition, and their number says which partition it is.
        told = [pa.array([place], pa.int32()), pa.array([partition], pa.int32()), pa.array([content], pa.binary())]
        yield pa.RecordBatch.from_arrays([*nothing, *told], schema=schema)
    extra_rows.clear()


class SparkStager(Stager):
    """Lets workers draw a Spark DataFrame into another one. It is computed once, and kept on the executors."""

    def __init__(self, plan: ReleasePlan, source: SparkSource) -> None:
        key_file = plan.vault.worker_key_file
        if key_file is None:
            raise KeyFileError(
                "Spark's workers need a file with the vault's key, and this vault reads it from a command.",
                hint="Put the key on every worker, and name the file in vault.toml: [key] worker_file.",
            )
        if any(isinstance(each.mechanism, Bloom) for each in plan.columns):
            raise ArgumentError(
                "A RAPPOR column cannot be released from a Spark DataFrame.",
                hint="Write the columns to Parquet, and run `relaxdp rappor encode` on the file.",
            )
        super().__init__(plan)
        self._source = source
        fields = [(each.name, get_spark_type(each.type)) for each in plan.schema]
        extra = [(_PLACE, pa.int32()), (_NUMBER, pa.int32()), (_CONTENT, pa.binary())]
        self._schema = pa.schema([*fields, *extra])
        self._task = SparkTask(
            columns=plan.columns,
            id_column=plan.id_column,
            passthrough=plan.passthrough,
            schema=plan.schema,
            key_file=key_file,
            key_fingerprint=plan.vault.key.fingerprint,
            types=source.types,
        )

    def stage_release(self) -> StagedRelease:
        """Let the workers draw, receive what they sealed, and compare their tags with all rows released before."""
        from pyspark.sql.pandas.types import from_arrow_schema  # noqa: PLC0415

        task, schema = self._task, self._schema
        with replace_spark_errors():
            spark_schema = from_arrow_schema(schema, prefer_timestamp_ntz=True)
            rows = self._source.native.select(*(quote_spark_name(name) for name in task.input_columns))
            by = quote_spark_name(task.id_column)
            ordered = rows.repartitionByRange(by).sortWithinPartitions(by)
            drawn = ordered.mapInArrow(lambda batches: draw_partition(task, batches, schema), spark_schema)
            self._drawn = drawn.localCheckpoint()  # computed now, and never again
            extra = self._drawn.where(self._drawn[_PLACE].isNotNull()).select(_NUMBER, _PLACE, _CONTENT)
            count, received = _collect_task_results(extra.toLocalIterator())
        if not count:
            raise TableFileError("The table has no rows.", hint="Check the query that made it.")
        self._rows = count
        return self._seal_columns(count, received)

    def _seal_columns(self, n_rows: int, received: dict[int, list[bytes]]) -> StagedRelease:
        plan = self.plan
        first_type = normalize_ids(pa.array([], plan.schema.field(plan.id_column).type)).type
        tags = _TableTags(received.get(_TAGS, []), len(plan.columns), has_folded=pa.types.is_large_string(first_type))
        columns, changes = [], [(0, 0)]
        for place, column in enumerate(plan.columns):
            staged, known = self._stage_snapshot(received[place]), column.state
            if known is None:
                columns.append(SnapshotSummary(staged.close(), len(tags.ids), 0, 0, 0))
                continue
            joined, left, absent = self._compare(known, place, tags, staged)
            columns.append(finish_column_snapshot(plan, known, staged, n_joined=joined, n_absent=absent))
            changes.append((joined, left))
        digest = self._stage_snapshot(received[len(plan.columns)]).close() if plan.passthrough else None
        joined, left = map(max, zip(*changes, strict=True))
        return StagedRelease(n_rows, tuple(columns), digest, joined, left)

    def _stage_snapshot(self, contents: list[bytes]) -> StagedSnapshot:
        staged = self.start_snapshot()
        for content in contents:
            staged.append(content)
        return staged

    def _compare(
        self, state: ColumnState, column_index: int, tags: _TableTags, staged: StagedSnapshot
    ) -> tuple[int, int, int]:
        """Compare the tags of the table with those of the snapshot, and keep the known rows that are absent.

        Return how many rows joined, left since the last release, and are absent of all known ones.
        """
        plan, key = self.plan, self.plan.vault.key
        column = plan.columns[column_index]
        old = Snapshot(plan.vault.snapshots, state.snapshot, key)
        # Ids have one tag for all columns.
        own, first = (RowTagger(key, each.mechanism, each.path) for each in (column, plan.columns[0]))
        is_joined = np.ones(len(tags.ids), dtype=bool)
        absent: list[TrueRows] = []
        left = 0
        for kind, rows in old.read_all_rows():
            places, is_there = tags.find_rows(first.tag_ids(rows.ids))
            changed = own.tag_rows(rows.ids, rows.values)[is_there] != tags.rows[column_index][places[is_there]]
            if changed.any():
                reject_changed_values(plan, column)
            is_joined[places[is_there]] = False
            gone = np.flatnonzero(~is_there)
            left += len(gone) if kind is ChunkKind.PRESENT else 0
            absent += [rows.take(gone)] if len(gone) else []
        gone_rows = merge_rows(absent)
        if gone_rows is not None:  # in the order of their ids, as every run of a snapshot
            part = staged.start_part(plan.describe_snapshots()[column_index])
            for number, start in enumerate(range(0, len(gone_rows), BATCH_ROWS)):
                part.write(part.seal_rows(ChunkKind.LEFT, number, gone_rows.slice(start, BATCH_ROWS)))
            part.close()
        if tags.folded is not None and is_joined.any():
            new = tags.folded[is_joined]
            reject_respelled_ids(plan, old, lambda ids: bool(np.isin(first.tag_ids(ids), new).any()))
        return int(np.count_nonzero(is_joined)), left, sum(map(len, absent))

    def hand_over(self) -> None:
        """Hand over the DataFrame of reports, whose columns describe themselves."""
        from pyspark.sql import functions  # noqa: PLC0415

        with replace_spark_errors():
            rows = self._drawn.where(self._drawn[_PLACE].isNull()).drop(_PLACE, _NUMBER, _CONTENT)
            described = replace(self.plan.description, rows=self._rows)
            columns = []
            for name in rows.columns:
                column = functions.col(quote_spark_name(name))
                if name in described.columns:
                    one = replace(described, columns={name: described.columns[name]})
                    column = column.alias(name, metadata={METADATA_KEY.decode(): one.to_json()})
                columns.append(column)
            self.table = rows.select(*columns)


def _collect_task_results(rows: Iterable[Any]) -> tuple[int, dict[int, list[bytes]]]:
    """Return how many rows the tasks drew, and by place what they sealed and tagged, in the order of the ids.

    The first rejection is raised as what it was on the worker.
    """
    count, parts, rejections = 0, dict[int, list[tuple[int, bytes]]](), list[dict[str, Any]]()
    for partition, place, content in rows:
        if place == _SUMMARY:
            summary = json.loads(bytes(content))
            count += summary["rows"]
            rejections += [summary] if "error" in summary else []
        else:
            parts.setdefault(place, []).append((partition, bytes(content)))
    if rejections:
        first = min(rejections, key=lambda each: each["partition"])
        kind = getattr(errors, first["error"], SparkError)
        raise kind(first["sentence"], hint=first["hint"], **first["fields"] | {"counted": "by id"})
    for contents in parts.values():
        contents.sort(key=lambda each: each[0])  # stable within a partition
    return count, {place: [content for _, content in contents] for place, contents in parts.items()}


class _TableTags:
    """The keyed tags of all rows of a table: of ids, of folded ids, and of the rows of each column."""

    def __init__(self, pieces: list[bytes], columns: int, *, has_folded: bool) -> None:
        kinds = 1 + has_folded + columns
        arrays = [np.frombuffer(piece, "<u8").reshape(kinds, -1) for piece in pieces]
        whole = np.concatenate(arrays, axis=1) if arrays else np.empty((kinds, 0), np.uint64)
        self.ids: NDArray[np.uint64] = whole[0]
        self.folded = whole[1] if has_folded else None
        self.rows = whole[1 + has_folded :]
        self._order = np.argsort(self.ids, kind="stable")
        self._sorted = self.ids[self._order]

    def find_rows(self, ids: NDArray[np.uint64]) -> tuple[NDArray[np.intp], NDArray[np.bool_]]:
        """Return where tagged ids are in the table, and whether they are there."""
        places = np.minimum(np.searchsorted(self._sorted, ids), len(self._sorted) - 1)
        return self._order[places], np.asarray(self._sorted[places] == ids)


ColumnTypes = Mapping[str, Any]
"""The own types of those columns that Spark hands over as others."""

UNSIGNED = pa.decimal128(20, 0)
"""What Spark makes of unsigned 64-bit numbers."""
_NEAREST = {pa.uint8(): pa.int16(), pa.uint16(): pa.int32(), pa.uint32(): pa.int64(), pa.uint64(): UNSIGNED}


def get_spark_type(arrow_type: Any) -> Any:
    """Return the nearest type that Spark has: no dictionaries, and bytes of any width."""
    arrow_type = get_plain_type(arrow_type)
    if arrow_type == pa.uuid() or pa.types.is_fixed_size_binary(arrow_type):
        return pa.binary()
    return _NEAREST.get(arrow_type, arrow_type)


def restore_types(batch: Any, types: ColumnTypes) -> Any:
    """Return a batch of Spark with the original types of its columns."""
    for place, name in enumerate(batch.schema.names):
        kind = types.get(name)
        if kind is None or batch.schema.field(place).type == kind:
            continue
        with suppress(pa.ArrowException):  # Its own message quotes the number.
            column = batch.column(place).cast(getattr(kind, "storage_type", kind))
            if isinstance(kind, pa.BaseExtensionType):
                column = pa.ExtensionArray.from_storage(kind, column)
            batch = batch.set_column(place, name, column)
            continue
        raise IdError(
            "Ids of type decimal(20,0) are read as unsigned 64-bit numbers. An id is negative or too large.",
            hint="Convert the ids to text.",
        )
    return batch


def quote_spark_name(name: str) -> str:
    """Return a column's name as Spark takes it."""
    return "`" + name.replace("`", "``") + "`"


_NO_UUIDS = "FIXED_LEN_BYTE_ARRAY (UUID)"
"""What Spark calls a column that it does not read without being told its schema."""


@contextmanager
def replace_spark_errors() -> Iterator[None]:
    """Replace what Spark raises by one sentence: its own text has pages, and may show plans, paths and cells."""
    with _keep_cells_out_of_logs():
        try:
            yield
        except Exception as problem:
            is_gone = isinstance(problem, ConnectionError)
            if not is_gone and type(problem).__module__.partition(".")[0] not in ("pyspark", "py4j"):
                raise
            kind = "UUID" if _NO_UUIDS in str(problem) else type(problem).__name__
        else:
            return
    what = {
        "UUID": "reads UUIDs only from a file, or a folder of files, whose path is on this machine",
        "AnalysisException": "could not read the table: it is not there, or is not Parquet",
        "PythonException": "gave up on a task that failed",
    }.get(kind, "stopped before the work was done")
    hint = "Look at the log of Spark. Its workers (PYSPARK_PYTHON) need the same version of relaxdp as the driver."
    error = SparkError("Spark {what}.", hint=hint, what=what)
    try:
        raise error
    finally:
        # What Spark raised would come along, and it quotes cells.
        error.__context__ = None


@contextmanager
def _keep_cells_out_of_logs() -> Iterator[None]:
    """Keep pyspark from logging what it raises: the text quotes the cell that an expression could not take."""
    with ExitStack() as stack:
        with suppress(ImportError):  # before Spark 4 nothing is logged
            from pyspark.logger import PySparkLogger  # noqa: PLC0415

            for kind in ("DataFrame", "SQL"):
                logger, reject = PySparkLogger.getLogger(f"{kind}QueryContextLogger"), lambda _: False
                logger.addFilter(reject)
                stack.callback(logger.removeFilter, reject)
        stack.enter_context(warnings.catch_warnings())
        # pyspark warns of pandas 3, which it only needs for functions that are not used here.
        warnings.filterwarnings("ignore", category=FutureWarning, module="pyspark")
        warnings.filterwarnings("ignore", message=".*pandas >= 3.*")
        yield
