"""Sorted tables on Spark: where the statistics of Parquet show that ids ascend, tasks read the files themselves.

Nothing is shuffled, sorted or handed over by Java: each task takes row groups that follow one another. Statistics are
only a hint. Every task checks that its ids ascend, and the driver that those of the tasks do, by what was written.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow.parquet as pa_parquet

from relaxdp.errors import RelaxdpError
from relaxdp.publication.request import Planned, ReleaseRequest
from relaxdp.table.formats import BATCH_ROWS
from relaxdp.table.kinds import files_of
from relaxdp.table.order import NotAscendingError
from relaxdp.table.spark.release import SparkFolderDrawing
from relaxdp.table.spark.session import spark_sentences
from relaxdp.table.spark.worker import Summary

_TASKS_A_CORE = 2
"""More than one, so that no core waits for the slowest task, where there are so many rows that another is worth it."""
_WORTH_A_TASK = 5_000_000
"""Half a second of drawing; another task takes about a tenth of a second of Java's and Python's time."""


@dataclass(frozen=True, slots=True)
class Piece:
    """A row group, and the ids that it holds."""

    file: str
    group: int
    rows: int
    first: Any
    last: Any


Run = tuple[Piece, ...]


def ascending_pieces(source: str, id_column: str, columns: Sequence[str]) -> list[Piece] | None:
    """Return the row groups in the order of the ids; None where statistics do not show that they have one.

    Nor where a column is not in the files: Spark reads some from the names of folders.
    """
    path = Path(source)
    try:
        files = [str(file.absolute()) for file in files_of(path)] if path.exists() else []
        types = {_types(file) for file in files}
        if len(types) != 1 or not set(columns) <= {name for name, _ in types.pop()}:
            return None
        pieces = [piece for file in files for piece in _pieces(file, id_column)]
    except (OSError, RelaxdpError, ValueError):  # an address, or what only Spark takes for a table
        return None
    if not pieces or any(piece.first is None for piece in pieces):
        return None
    pieces.sort(key=lambda piece: piece.first)
    return pieces if _is_ascending(pieces) else None


def _types(file: str) -> tuple[tuple[str, str], ...]:
    return tuple((field.name, str(field.type)) for field in pa_parquet.read_schema(file))


def _is_ascending(pieces: Sequence[Piece]) -> bool:
    return all(one.last < other.first for one, other in pairwise(pieces))


def _pieces(file: str, id_column: str) -> Iterator[Piece]:
    footer = pa_parquet.read_metadata(file)
    place = footer.schema.names.index(id_column)  # a nested column has other names
    for group in range(footer.num_row_groups):
        part = footer.row_group(group)
        if part.num_rows:
            found = part.column(place).statistics
            known = found is not None and found.has_min_max
            yield Piece(file, group, part.num_rows, found.min if known else None, found.max if known else None)


def runs_of(pieces: Sequence[Piece], tasks: int) -> list[Run]:
    """Return runs of row groups, at most so many, of about equally many rows."""
    total, done = sum(piece.rows for piece in pieces), 0
    runs: list[Run] = []
    current: list[Piece] = []
    for piece in pieces:
        current.append(piece)
        done += piece.rows
        if done * tasks >= total * (len(runs) + 1):
            runs.append(tuple(current))
            current = []
    return runs if not current else [*runs, tuple(current)]


def tasks_for(rows: int, cores: int) -> int:
    """Return how many tasks are best where nobody says it."""
    return max(cores, min(_TASKS_A_CORE * cores, rows // _WORTH_A_TASK))


class SparkRunsDrawing(SparkFolderDrawing):
    """A sorted table to a folder; where it turns out not to be sorted after all, it is shuffled as any other."""

    def __init__(
        self, frame: Any, request: ReleaseRequest, target: Path, *, pieces: Sequence[Piece], **options: Any
    ) -> None:
        super().__init__(frame, request, target, **options)
        cores = frame.sparkSession.sparkContext.defaultParallelism
        tasks = self._partitions or tasks_for(sum(piece.rows for piece in pieces), cores)
        self._runs = runs_of(pieces, tasks)
        self._is_sorted = True

    def _summaries(self, columns: Sequence[Planned], work: Any) -> list[Summary]:
        if self._is_sorted:
            try:
                return self._read(columns, work)
            except NotAscendingError:
                self._is_sorted = False
        return super()._summaries(columns, work)

    def _read(self, columns: Sequence[Planned], work: Any) -> list[Summary]:
        """Let the workers read their own row groups."""
        task = replace(self._task(columns), is_sorted=False)
        with spark_sentences():
            rows = self._mapped(work(task), "summary string").collect()
        found = Summary.loads_all(row[0] for row in rows)
        self._check(found)
        return found

    def _mapped(self, work: Any, schema: str) -> Any:
        read = partial(_rows, self._runs, self.request.input_columns())
        numbers = self._frame.sparkSession.range(0, len(self._runs), 1, len(self._runs))
        return numbers.mapInArrow(_reading(read, work), schema)

    def _check(self, summaries: Sequence[Summary]) -> None:
        """Refuse to take tasks for sorted whose ids do not follow one another, whatever the source's statistics say."""
        files = [str(self._place / each.file) for each in summaries if each.file is not None]
        written = [piece for file in files for piece in _pieces(file, self.request.id_column)]
        if any(piece.first is None for piece in written) or not _is_ascending(written):
            raise NotAscendingError

    def _count(self) -> int:
        """Return what the footers say."""
        return sum(piece.rows for run in self._runs for piece in run) if self._is_sorted else super()._count()


def _reading(read: Any, work: Any) -> Any:
    return lambda numbers: work(read(numbers))


def _rows(runs: Sequence[Run], columns: Sequence[str], numbers: Iterator[Any]) -> Iterator[Any]:
    """Return the rows of the runs whose numbers a task was given: one."""
    for batch in numbers:
        for number in batch.column(0).to_pylist():
            for piece in runs[number]:
                with pa_parquet.ParquetFile(piece.file) as file:
                    yield from file.iter_batches(BATCH_ROWS, row_groups=[piece.group], columns=list(columns))
