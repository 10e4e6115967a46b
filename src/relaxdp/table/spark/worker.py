"""What one Spark task does: the rows of one partition, in id order -> released rows and a summary of them.

A task may run again, twice at once, or on another machine: reports are a pure function of the key and the row, so every
attempt draws the same ones. The summary travels with the rows of the attempt that counts, so that the driver adds up
exactly what it is about to hand over, which accumulators would not (they count failed attempts too).
"""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from itertools import chain
from operator import itemgetter
from pathlib import Path
from typing import Any

import pyarrow as pa

from relaxdp import errors
from relaxdp.draw.key import Key
from relaxdp.draw.stream import Words
from relaxdp.errors import KeyFileError, RelaxdpError, SparkError
from relaxdp.publication.description import FileDescription
from relaxdp.publication.plain import plain
from relaxdp.publication.request import Planned, ReleaseRequest
from relaxdp.publication.snapshot import PartWriter
from relaxdp.table.engine import Engine
from relaxdp.table.growing import Tagger
from relaxdp.table.kinds import Format, Kind
from relaxdp.table.order import NotAscendingError, repeated_id
from relaxdp.table.output import Output
from relaxdp.table.spark.types import Types, restored

BATCH_ROWS = 1 << 16
_UNSORTED = "unsorted"
_CELL = 1 << 12


@dataclass(frozen=True, slots=True)
class SparkTask:
    """What a worker is told. The key is not among it: only where the worker finds it, and which one it must be."""

    id_column: str
    columns: tuple[Planned, ...]
    epsilon: Decimal
    release: str
    keep: tuple[str, ...]
    key_file: str
    key_fingerprint: str
    types: Types
    is_sorted: bool = True
    """Whether Spark has sorted the rows: then ids that do not ascend are repeated ones."""

    @classmethod
    def of(cls, request: ReleaseRequest, columns: Sequence[Planned], key_file: str, types: Types) -> SparkTask:
        """Return the task of a request."""
        return cls(
            request.id_column,
            tuple(columns),
            request.epsilon,
            request.release,
            tuple(request.keep),
            key_file,
            request.key.fingerprint,
            types,
        )

    def request(self) -> ReleaseRequest:
        """Return the request again, with the key that this worker has."""
        try:
            key = Key.load(self.key_file)
        except KeyFileError as problem:
            raise KeyFileError("on a worker, {problem}", problem=problem.sentence) from None
        if key.fingerprint != self.key_fingerprint:
            raise KeyFileError(
                "on a worker, {key_file!r} holds the key {given} and not {known}.",
                key_file=self.key_file,
                given=key.fingerprint,
                known=self.key_fingerprint,
            )
        return ReleaseRequest(
            id_column=self.id_column,
            columns=[each.request for each in self.columns],
            epsilon=self.epsilon,
            key=key,
            release=self.release,
            keep=self.keep,
        )


@dataclass(slots=True)
class Summary:
    """What became of one partition: its rows and their fingerprints, the file they went to, or why there are none."""

    partition: int
    rows: int = 0
    prints: tuple[str, ...] = ()
    file: str | None = None
    sealed: str | None = None
    """The part of the snapshot that was written beside the file."""
    error: str | None = None
    sentence: str = ""
    remedy: str = ""
    fields: dict[str, Any] = field(default_factory=dict)
    """What a refusal is made of, to be raised again as what it was."""

    def dumps(self) -> str:
        """Return it as text."""
        done = [self.partition, self.rows, list(self.prints), self.file, self.sealed]
        return json.dumps([*done, self.error, self.sentence, self.remedy, self.fields])

    @classmethod
    def loads_all(cls, texts: Iterable[str]) -> list[Summary]:
        """Read the summaries of all tasks back, in order; the first refusal is raised as what it was on the worker."""
        found = []
        for partition, rows, prints, file, sealed, error, sentence, remedy, fields in sorted(
            map(json.loads, texts), key=itemgetter(0)
        ):
            if error == _UNSORTED:
                raise NotAscendingError
            if error is not None:
                kind = getattr(errors, error, SparkError)
                raise kind(sentence, remedy=remedy, **fields)
            found.append(cls(partition, rows, tuple(prints), file, sealed))
        return found


def released_rows(
    task: SparkTask, batches: Iterator[Any], summary: Summary, part: Callable[[Key], PartWriter] | None = None
) -> Iterator[Any]:
    """Return the released batches of one partition, fill in its summary, and seal what they are drawn from."""

    def rows() -> Iterator[Any]:
        request, larger = task.request(), _larger(task, batches)
        first = next(larger, None)
        if first is not None:
            sealed = None if part is None else part(request.key)
            engine = Engine(request, first.schema, task.columns, sealed)
            for batch in engine.run(chain([first], larger), 1, lambda _: None):
                summary.rows += batch.num_rows
                yield batch
            if sealed is not None:
                sealed.close()
            summary.prints = tuple(each.text() for each in engine.fingerprints)

    return _refusals_noted(task, rows(), summary)


def _refusals_noted(task: SparkTask, results: Iterator[Any], summary: Summary) -> Iterator[Any]:
    """Return what a task makes of its rows.

    What is refused is written into the summary instead of being raised: another attempt would be refused as well. What
    is raised is only named, because Arrow's messages quote rows and Spark's logs would keep them.
    """
    refusal: RelaxdpError | None = None
    failure = ""
    try:
        yield from results
    except NotAscendingError:
        refusal = repeated_id() if task.is_sorted else None
        summary.error = None if task.is_sorted else _UNSORTED
    except RelaxdpError as problem:
        refusal = problem
    except Exception as problem:
        failure = type(problem).__name__
    if failure:
        raise SparkError("a task failed: {failure}.", failure=failure)
    if refusal is not None:
        summary.error, summary.sentence = type(refusal).__name__, refusal.template
        summary.remedy, summary.fields = refusal.remedy, refusal.fields


def rows_and_summary(task: SparkTask, schema: Any, batches: Iterator[Any]) -> Iterator[Any]:
    """Return released batches with nothing in the last column of `schema`, then one row with only the summary there."""
    summary = _begin()
    for batch in released_rows(task, batches, summary):
        arrays = [plain(each).cast(field.type) for each, field in zip(batch.columns, schema, strict=False)]
        yield pa.RecordBatch.from_arrays([*arrays, pa.nulls(batch.num_rows, pa.string())], schema=schema)
    nothing = [pa.nulls(1, field.type) for field in list(schema)[:-1]]
    yield pa.RecordBatch.from_arrays([*nothing, pa.array([summary.dumps()])], schema=schema)


def summary_alone(task: SparkTask, batches: Iterator[Any]) -> Iterator[Any]:
    """Look at the rows of one partition without releasing any."""
    summary = _begin()
    for _ in released_rows(task, batches, summary):
        pass
    yield pa.RecordBatch.from_pydict({"summary": [summary.dumps()]})


TAGS = "place int, id_tags binary, row_tags binary, summary string"
_TAGS = pa.schema(
    [("place", pa.int32()), ("id_tags", pa.binary()), ("row_tags", pa.binary()), ("summary", pa.string())]
)


def tags_and_summary(task: SparkTask, batches: Iterator[Any]) -> Iterator[Any]:
    """Return the tags of the rows of one partition, many of them in one cell, and then the summary.

    Nothing is released of them, and their order does not matter.
    """
    summary = _begin()

    def tags() -> Iterator[Any]:
        tagger = Tagger(task.request(), task.columns)
        for batch in _larger(task, batches):
            summary.rows += batch.num_rows
            for place, pair in enumerate(tagger.tags(batch)):
                yield _cells(place, *pair)
        summary.prints = tagger.prints()

    yield from _refusals_noted(task, tags(), summary)
    yield pa.RecordBatch.from_pylist([{"summary": summary.dumps()}], schema=_TAGS)


def _cells(place: int, *tags: Words) -> Any:
    """Return the tags of one column; Java holds some rows at a time, so that these may not be too large."""
    starts = range(0, len(tags[0]), _CELL)
    cells = [[each[start : start + _CELL].astype("<u8").tobytes() for start in starts] for each in tags]
    arrays = [pa.array([place] * len(starts), pa.int32()), *map(pa.array, cells), pa.nulls(len(starts), pa.string())]
    return pa.RecordBatch.from_arrays(arrays, schema=_TAGS)


def file_and_summary(
    task: SparkTask, folder: str, description: str, seals: bool, batches: Iterator[Any]
) -> Iterator[Any]:
    """Write the released rows of one partition to a file of its own, make it durable, and return the summary.

    Every attempt has a file of its own, and the driver takes those of the attempts that count. A part of the snapshot,
    if one is made, lies beside it.
    """
    summary, output = _begin(), None
    target = str(Path(folder).parent)
    place = Path(folder) / f"part-{summary.partition:05d}-{secrets.token_hex(6)}.parquet"
    beside = place.with_suffix(".snapshot")
    part = None

    def begun(key: Key) -> PartWriter:
        nonlocal part
        part = os.fdopen(os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb")
        # Every part says the same, whatever it holds: together they are one snapshot.
        said = replace(FileDescription.loads(description), rows=None)
        return PartWriter(part, key, said, [each.encoding for each in task.columns])

    try:
        for batch in released_rows(task, batches, summary, begun if seals else None):
            if output is None:
                output = Output(place, Kind(Format.PARQUET), batch.schema, FileDescription.loads(description))
            output.write(batch)
        if output is not None:
            output.close()
            os.fsync(output.descriptor())
            summary.file, summary.sealed = place.name, beside.name if seals else None
    except OSError as problem:
        summary.error = "TableFileError"
        summary.sentence = (
            "a worker could not write to {path!r}: {why}. The folder must be one that all workers see under the same "
            "name."
        )
        summary.fields = {"path": target, "why": problem.strerror or "the disk may be full"}
    finally:
        if output is not None:
            output.abandon()
        if part is not None:
            part.close()
    yield pa.RecordBatch.from_pydict({"summary": [summary.dumps()]})


def _begin() -> Summary:
    from pyspark import TaskContext  # noqa: PLC0415 (a worker has it)

    context = TaskContext.get()
    return Summary(0 if context is None else context.partitionId())


def _larger(task: SparkTask, batches: Iterator[Any]) -> Iterator[Any]:
    """Return batches of a size that is worth drawing at once, as they are in the table; Spark's own are small."""
    waiting: list[Any] = []
    rows = 0
    for batch in batches:
        waiting.append(batch)
        rows += batch.num_rows
        if rows >= BATCH_ROWS:
            yield from _joined(task, waiting)
            waiting, rows = [], 0
    if rows:
        yield from _joined(task, waiting)


def _joined(task: SparkTask, batches: list[Any]) -> list[Any]:
    """Return one batch, or several where a column of text is too long for one."""
    together = pa.Table.from_batches(batches).combine_chunks().to_batches()
    return [restored(batch, task.types) for batch in together]
