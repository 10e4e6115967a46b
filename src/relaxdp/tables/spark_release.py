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
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from relaxdp import errors
from relaxdp.errors import ArgumentError, IdError, KeyFileError, RelaxdpError, SparkError, TableFileError
from relaxdp.mechanisms.bloom import Bloom
from relaxdp.mechanisms.keyed_reports import RowTagger
from relaxdp.sampling.keys import Key
from relaxdp.tables.metadata import METADATA_KEY, FileDescription, read_spark_description
from relaxdp.tables.release_plan import PlannedColumn, ReleasePlan, SealedColumn, StagedRelease
from relaxdp.tables.snapshot import (
    ChunkKind,
    PartWriter,
    Snapshot,
    StagedSnapshot,
    TrueRows,
    merge_rows,
    normalize_ids,
)
from relaxdp.tables.table_columns import ColumnNames, get_plain_type, make_record_batch, remove_hidden_values
from relaxdp.tables.table_source import IdOrderCheck, NotAscendingError, make_repeated_id_error, resize_batches
from relaxdp.tables.transaction import (
    make_passthrough_batch,
    normalize_spelling,
    reject_changed_values,
    reject_respelled_ids,
    seal_column,
)

BATCH_ROWS = 1 << 16
_PIECE = 1 << 20
_PLACE, _NUMBER, _CONTENT = "relaxdp_place", "relaxdp_number", "relaxdp_content"
_SUMMARY, _TAGS, _PASSTHROUGH = -1, -2, -3
"""What a row without reports holds in place of the number of a column."""


class SparkSource:
    """A Spark DataFrame as a source."""

    library = "spark"
    label = "the data frame"
    rows: int | None = None

    def __init__(self, frame: Any) -> None:
        from pyspark.sql.pandas.types import to_arrow_schema  # noqa: PLC0415

        self.native = frame
        with replace_spark_errors():
            described = frame.schema
        try:
            schema = to_arrow_schema(described)
        except Exception:
            raise make_unsupported_type_error() from None
        # Spark has no unsigned numbers: those of 64 bits arrive as decimals.
        self.types: ColumnTypes = {each.name: pa.uint64() for each in schema if each.type == UNSIGNED}
        self.schema = restore_schema(schema, self.types)
        self.names = ColumnNames.from_frame(schema.names)
        self.report_description = read_spark_description(frame)

    def get_original_row(self, row: int) -> int | None:
        """Return None: rows of a Spark DataFrame have no order."""
        return None


@dataclass(frozen=True, slots=True)
class SparkTask:
    """The task of a worker. The key is not part of it, only the file in which the worker finds it."""

    columns: tuple[PlannedColumn, ...]
    id_column: str
    passthrough: tuple[str, ...]
    names: tuple[str, ...]
    """The released columns of the output."""
    descriptions: tuple[dict[str, Any], ...]
    key_file: str
    key_fingerprint: str
    types: ColumnTypes
    schema: Any
    """The output without the columns of this module."""

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
                "The file {key_file!r} on a Spark worker holds the key {given}; expected {known}.",
                hint="Copy the key of the vault to this file on every worker.",
                key_file=self.key_file,
                given=key.fingerprint,
                known=self.key_fingerprint,
            )
        return key


@dataclass(frozen=True, slots=True)
class _KeyHolder:
    """What a column needs of a vault to draw."""

    key: Key


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
        raise SparkError("A Spark task failed with {failure}.", hint="Look at the log of the worker.", failure=failure)
    yield from _pack_extra_rows([*extra, (_SUMMARY, json.dumps(summary).encode())], summary["partition"], schema)


def _draw_rows(task: SparkTask, batches: Iterator[Any], extra: list[tuple[int, bytes]]) -> Iterator[Any]:
    key, order, first_row, number = task.load_key(), IdOrderCheck(), 0, 0
    holder: Any = _KeyHolder(key)
    parts: list[PartWriter] = []
    tags = [RowTagger(key, each.mechanism, each.path) for each in task.columns]
    for batch in _join_batches(task, batches):
        if not parts:  # an empty partition has no parts
            parts = [_start_part(key, place, each, extra) for place, each in enumerate(task.descriptions)]
            kept = _start_part(key, _PASSTHROUGH, {}, extra) if task.passthrough else None
        ids = remove_hidden_values(batch.column(task.id_column))
        try:
            order.check(ids)
        except NotAscendingError:
            raise make_repeated_id_error() from None
        same, arrays, row_tags = normalize_ids(ids), [ids], []
        for place, (each, part) in enumerate(zip(task.columns, parts, strict=True)):
            reports, values = each.draw(holder, batch.column(each.column), ids, first_row)
            arrays += reports
            part.write(part.seal_rows(ChunkKind.PRESENT, number, TrueRows(same, values)))
            row_tags.append(tags[place].tag_rows(same, values))
        through = [remove_hidden_values(batch.column(name)) for name in task.passthrough]
        released = make_record_batch([*arrays, *through], task.schema)
        if kept is not None:
            sealed = make_passthrough_batch(released, same, task.passthrough)
            kept.write(kept.seal_batch(ChunkKind.PASSTHROUGH, number, sealed))
        id_tags = [tags[0].tag_ids(same)]
        if pa.types.is_large_string(same.type):
            id_tags.append(tags[0].tag_ids(normalize_spelling(same)))
        extra.append((_TAGS, np.stack([*id_tags, *row_tags]).astype("<u8").tobytes()))
        yield released
        first_row, number = first_row + batch.num_rows, number + 1
    for part in parts:
        part.close()
    if parts and kept is not None:
        kept.close()


def _start_part(key: Key, place: int, description: dict[str, Any], extra: list[tuple[int, bytes]]) -> PartWriter:
    def keep(content: bytes) -> None:
        for start in range(0, len(content), _PIECE):
            extra.append((place, content[start : start + _PIECE]))

    return PartWriter(keep, key, description)


def _join_batches(task: SparkTask, batches: Iterator[Any]) -> Iterator[Any]:
    """Return batches that are large enough to draw at once, with their own types. Those of Spark are small."""
    for batch in resize_batches(batches, BATCH_ROWS):
        yield restore_types(batch, task.types)


def _add_missing_columns(batch: Any, schema: Any) -> Any:
    arrays = [remove_hidden_values(each).cast(field.type) for each, field in zip(batch.columns, schema, strict=False)]
    nothing = [pa.nulls(batch.num_rows, field.type) for field in list(schema)[-3:]]
    return pa.RecordBatch.from_arrays([*arrays, *nothing], schema=schema)


def _pack_extra_rows(extra: list[tuple[int, bytes]], partition: int, schema: Any) -> Iterator[Any]:
    """Return rows that hold no report, and forget them here."""
    for place, content in extra:
        nothing = [pa.nulls(1, each.type) for each in list(schema)[:-3]]
        # Spark keeps the order of rows within a partition, and their number says which partition it is.
        told = [pa.array([place], pa.int32()), pa.array([partition], pa.int32()), pa.array([content], pa.binary())]
        yield pa.RecordBatch.from_arrays([*nothing, *told], schema=schema)
    extra.clear()


@dataclass(slots=True)
class _TaskResults:
    """What the tasks returned: sealed chunks in the order of the ids, and tags."""

    rows: int = 0
    sealed: dict[int, list[bytes]] = field(default_factory=dict)
    tags: list[bytes] = field(default_factory=list)


class SparkStager:
    """Lets workers draw a Spark DataFrame into another one. It is computed once, and kept on the executors."""

    target = None

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
                hint="Write the columns to Parquet and release the file.",
            )
        self._plan, self._source, self._snapshots = plan, source, list[StagedSnapshot]()
        self.table: Any = None
        fields = [(each.name, get_spark_type(each.type)) for each in plan.schema]
        extra = [(_PLACE, pa.int32()), (_NUMBER, pa.int32()), (_CONTENT, pa.binary())]
        self._schema = pa.schema([*fields, *extra])
        self._task = SparkTask(
            plan.columns,
            plan.id_column,
            plan.passthrough,
            tuple(each.make_fields()[-1].name for each in plan.columns),
            tuple(plan.describe_snapshot(each) for each in plan.columns),
            key_file,
            plan.vault.key.fingerprint,
            source.types,
            plan.schema,
        )

    @contextmanager
    def open(self) -> Iterator[SparkStager]:
        """Do nothing: the rows stay on the executors."""
        yield self

    def stage(self) -> StagedRelease:
        """Let the workers draw, receive what they sealed, and compare their tags with all rows released before."""
        plan, task, schema = self._plan, self._task, self._schema
        names = [plan.id_column, *(each.column for each in plan.columns), *plan.passthrough]
        with replace_spark_errors():
            rows = self._source.native.select(*(quote_spark_name(name) for name in names))
            by = quote_spark_name(plan.id_column)
            ordered = rows.repartitionByRange(by).sortWithinPartitions(by)
            drawn = ordered.mapInArrow(lambda batches: draw_partition(task, batches, schema), make_spark_schema(schema))
            self._drawn = drawn.localCheckpoint()  # computed now, and never again
            extra = self._drawn.where(self._drawn[_PLACE].isNotNull()).select(_NUMBER, _PLACE, _CONTENT)
            received = _collect_task_results(extra.toLocalIterator())
        if not received.rows:
            raise TableFileError("The table has no rows.", hint="Check the query that made it.")
        return self._seal(received)

    def _seal(self, received: _TaskResults) -> StagedRelease:
        plan = self._plan
        first_type = normalize_ids(pa.array([], plan.schema.field(plan.id_column).type)).type
        tags = _TableTags(received.tags, len(plan.columns), has_folded=pa.types.is_large_string(first_type))
        columns, joined, left = [], 0, 0
        for place, each in enumerate(plan.columns):
            staged = StagedSnapshot(plan.vault.snapshots, plan.vault.key)
            self._snapshots.append(staged)
            for content in received.sealed[place]:
                staged.append(content)
            sealed, changes = self._compare(each, place, tags, staged)
            columns.append(sealed)
            joined, left = max(joined, changes[0]), max(left, changes[1])
        digest = None
        if plan.passthrough:
            kept = StagedSnapshot(plan.vault.snapshots, plan.vault.key)
            self._snapshots.append(kept)
            for content in received.sealed[_PASSTHROUGH]:
                kept.append(content)
            digest = kept.close()
        return StagedRelease(received.rows, tuple(columns), digest, joined, left)

    def _compare(
        self, column: PlannedColumn, place: int, tags: _TableTags, staged: StagedSnapshot
    ) -> tuple[SealedColumn, tuple[int, int]]:
        """Compare the tags of the table with those of the snapshot, and keep the known rows that are absent."""
        plan, known, vault = self._plan, column.state, self._plan.vault
        if known is None:
            return SealedColumn(staged.close(), len(tags.ids), 0, 0, 0), (0, 0)
        old = Snapshot(vault.snapshots, known.snapshot, vault.key)
        own = RowTagger(vault.key, column.mechanism, column.path)
        first = RowTagger(
            vault.key, plan.columns[0].mechanism, plan.columns[0].path
        )  # ids have one tag for all columns
        is_joined = np.ones(len(tags.ids), dtype=bool)
        absent: list[TrueRows] = []
        left = 0
        for kind in (ChunkKind.PRESENT, ChunkKind.LEFT):
            for rows in old.read_rows(kind):
                places, is_there = tags.find(first.tag_ids(rows.ids))
                changed = own.tag_rows(rows.ids, rows.values)[is_there] != tags.rows[place][places[is_there]]
                if changed.any():
                    reject_changed_values(plan.request.name, column.column)
                is_joined[places[is_there]] = False
                gone = np.flatnonzero(~is_there)
                left += len(gone) if kind is ChunkKind.PRESENT else 0
                absent += [rows.take(gone)] if len(gone) else []
        gone_rows = merge_rows(absent)
        if gone_rows is not None:  # in the order of their ids, as every run of a snapshot
            part = staged.start_part(plan.describe_snapshot(column))
            for number, start in enumerate(range(0, len(gone_rows), BATCH_ROWS)):
                some = gone_rows.slice(start, min(start + BATCH_ROWS, len(gone_rows)))
                part.write(part.seal_rows(ChunkKind.LEFT, number, some))
            part.close()
        if tags.folded is not None and is_joined.any():
            new = tags.folded[is_joined]
            for kind in (ChunkKind.PRESENT, ChunkKind.LEFT):
                for rows in old.read_rows(kind):
                    if np.isin(first.tag_ids(normalize_spelling(rows.ids)), new).any():
                        reject_respelled_ids(plan.request.name)
        joined = int(np.count_nonzero(is_joined))
        sealed = seal_column(plan, known, staged, joined=joined, absent=sum(map(len, absent)))
        return sealed, (joined, left)

    def publish(self) -> None:
        """Make the DataFrame of reports, whose columns describe themselves."""
        from pyspark.sql import functions  # noqa: PLC0415

        with replace_spark_errors():
            rows = self._drawn.where(self._drawn[_PLACE].isNull()).drop(_PLACE, _NUMBER, _CONTENT)
            described = self._plan.description
            columns = []
            for name in rows.columns:
                column = functions.col(quote_spark_name(name))
                if name in described.columns:
                    one = FileDescription(described.id_column, {name: described.columns[name]}, head=described.head)
                    column = column.alias(name, metadata={METADATA_KEY.decode(): one.dumps()})
                columns.append(column)
            self.table = rows.select(*columns)

    def discard(self) -> None:
        """Remove what was sealed."""
        for staged in self._snapshots:
            staged.discard()


def _collect_task_results(rows: Iterable[Any]) -> _TaskResults:
    """Put together what the tasks returned; the first rejection is raised as what it was on the worker."""
    received, parts, rejections = _TaskResults(), dict[int, list[tuple[int, bytes]]](), list[dict[str, Any]]()
    for partition, place, content in rows:
        if place == _SUMMARY:
            summary = json.loads(bytes(content))
            received.rows += summary["rows"]
            rejections += [summary] if "error" in summary else []
        else:
            parts.setdefault(place, []).append((partition, bytes(content)))
    if rejections:
        first = min(rejections, key=lambda each: each["partition"])
        kind = getattr(errors, first["error"], SparkError)
        raise kind(first["sentence"], hint=first["hint"], **first["fields"] | {"counted": "by id"})
    for place, contents in parts.items():
        ordered = [content for _, content in sorted(contents, key=lambda each: each[0])]  # stable within a partition
        if place == _TAGS:
            received.tags = ordered
        else:
            received.sealed[place] = ordered
    return received


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

    def find(self, ids: NDArray[np.uint64]) -> tuple[NDArray[np.intp], NDArray[np.bool_]]:
        """Return where tagged ids are in the table, and whether they are there."""
        places = np.minimum(np.searchsorted(self._sorted, ids), len(self._sorted) - 1)
        return self._order[places], np.asarray(self._sorted[places] == ids)


ColumnTypes = Mapping[str, Any]
"""The own types of those columns that Spark hands over as others."""

UNSIGNED = pa.decimal128(20, 0)
"""What Spark makes of unsigned 64-bit numbers."""
_NEAREST = {pa.uint8(): pa.int16(), pa.uint16(): pa.int32(), pa.uint32(): pa.int64(), pa.uint64(): UNSIGNED}


def get_spark_type(kind: Any) -> Any:
    """Return the nearest type that Spark has: no dictionaries, and bytes of any width."""
    kind = get_plain_type(kind)
    if _is_uuid(kind) or pa.types.is_fixed_size_binary(kind):
        return pa.binary()
    return _NEAREST.get(kind, kind)


def make_spark_schema(schema: Any) -> Any:
    """Return Spark's own words for columns of types that it has."""
    from pyspark.sql.pandas.types import from_arrow_schema  # noqa: PLC0415

    try:
        return from_arrow_schema(schema, prefer_timestamp_ntz=True)
    except Exception:
        raise make_unsupported_type_error() from None


def make_unsupported_type_error() -> ArgumentError:
    """Return the error about a column that Spark and Arrow cannot exchange."""
    return ArgumentError(
        "The table has a column of a type that cannot be exchanged between Spark and Arrow.",
        hint="Convert the column to text.",
    )


def restore_schema(schema: Any, types: ColumnTypes) -> Any:
    """Return a schema of Spark with the original types of the columns."""
    return pa.schema([(field.name, types.get(field.name, field.type)) for field in schema])


def restore_types(batch: Any, types: ColumnTypes) -> Any:
    """Return a batch of Spark with the original types of its columns."""
    for place, name in enumerate(batch.schema.names):
        kind = types.get(name)
        if kind is not None and batch.schema.field(place).type != kind:
            column = _restore_column_type(batch.column(place), kind)
            if column is None:  # raised here, because Arrow's own message quotes the number
                raise IdError(
                    "Ids of type decimal(20,0) are read as unsigned 64-bit numbers. An id is negative or too large.",
                    hint="Convert the ids to text.",
                )
            batch = batch.set_column(place, name, column)
    return batch


def _restore_column_type(column: Any, kind: Any) -> Any | None:
    try:
        column = column.cast(getattr(kind, "storage_type", kind))
    except pa.ArrowException:
        return None
    return pa.ExtensionArray.from_storage(kind, column) if isinstance(kind, pa.BaseExtensionType) else column


def _is_uuid(kind: Any) -> bool:
    return getattr(kind, "extension_name", None) == "arrow.uuid"


def quote_spark_name(name: str) -> str:
    """Return a column's name as Spark takes it."""
    return "`" + name.replace("`", "``") + "`"


_NO_UUIDS = "FIXED_LEN_BYTE_ARRAY (UUID)"
"""What Spark calls a column that it does not read without being told its schema."""


@contextmanager
def replace_spark_errors() -> Iterator[None]:
    """Replace what Spark raises by one sentence: its own text has pages, and may show plans, paths and cells."""
    with _mute_warnings():
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
def _mute_query_logs() -> Iterator[None]:
    """Keep pyspark from logging what it raises: the text quotes the cell that an expression could not take."""
    try:
        from pyspark.logger import PySparkLogger  # noqa: PLC0415
    except ImportError:  # before Spark 4 nothing is logged
        yield
        return
    loggers = [PySparkLogger.getLogger(f"{kind}QueryContextLogger") for kind in ("DataFrame", "SQL")]

    def nothing(_: Any) -> bool:
        return False

    for logger in loggers:
        logger.addFilter(nothing)
    try:
        yield
    finally:
        for logger in loggers:
            logger.removeFilter(nothing)


@contextmanager
def _mute_warnings() -> Iterator[None]:
    with warnings.catch_warnings(), _mute_query_logs():
        # pyspark warns of pandas 3, which it only needs for functions that are not used here.
        warnings.filterwarnings("ignore", category=FutureWarning, module="pyspark")
        warnings.filterwarnings("ignore", message=".*pandas >= 3.*")
        yield
