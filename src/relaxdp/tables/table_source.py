"""Tables to release from: data frames and files, read once, in the order of their ids.

The order of rows can betray true values, so every source gives its rows in id order. Ids that ascend stream through;
others are sorted, a data frame in memory and a file by DuckDB with a limit on memory.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from relaxdp.errors import ArgumentError, IdError, MetadataError
from relaxdp.sampling.arrow_columns import decode_dictionary, to_numpy
from relaxdp.tables.data_frames import DataFrameReader
from relaxdp.tables.duckdb_queries import query_to_temporary_file, sort_batches
from relaxdp.tables.files import (
    BATCH_ROWS,
    TableFile,
    TableFormat,
    fetch_file,
    get_address_name,
    get_file_kind,
    get_stem,
    is_cloud_address,
    is_path,
    read_description,
)
from relaxdp.tables.metadata import FileDescription, is_spark_frame
from relaxdp.tables.table_columns import ColumnNames, get_storage_column, remove_hidden_values


class TableSource(ABC):
    """A source of rows: a table with its columns, and its rows in the order of their ids."""

    names: ColumnNames
    """All names; `require_column` rejects one that the table does not have."""
    schema: Any
    """The types as Arrow has them: `schema.field(name).type`, `schema.names`."""
    rows: int | None
    """The number of rows, where it is known before they are read."""
    library: str
    """pandas, polars, polars-lazy, pyarrow, duckdb, or file."""
    native: Any = None
    """The data frame itself."""
    default_name: str | None = None
    """A name for the release: that of the file, without its ending."""
    label: str = "the data frame"
    """The table in a message."""
    report_description: FileDescription | None
    """What the table says about itself, if relaxdp released it."""

    @abstractmethod
    def batches(self, columns: Sequence[str], id_column: str) -> AbstractContextManager[Iterator[Any]]:
        """Give the rows once, as record batches with strictly ascending ids.

        Raises:
            NotAscendingError: the ids do not ascend. Call `sort_from_now_on`, and start over.
            IdError: an id is missing or repeated.
        """

    @abstractmethod
    def read_sample(self, columns: Sequence[str]) -> Generator[Any]:
        """Return rows in any order, unless that would use up the table."""

    def sort_from_now_on(self) -> None:  # noqa: B027 (a data frame is sorted as it is read)
        """Let `batches` give the rows through a sort from now on."""

    def find_original_row(self, row: int) -> int | None:
        """Return the number of a row as the caller counts it; None where that is not known.

        Args:
            row: its number in id order, from 1.
        """
        return row


@contextmanager
def open_source(data: Any, *, sql: str | None = None) -> Iterator[Any]:
    """Open a table to release from.

    Args:
        data: a data frame, anything with `__arrow_c_stream__`, the path of a file or folder, or an address.
        sql: one SELECT that shapes a file. `input` is its rows, `getvariable('input')` its path.
    """
    if not is_path(data):
        if sql is not None:
            raise ArgumentError(
                "`sql` is only valid for files, and a data frame was passed.",
                hint='Shape the data frame first, and pass the result, such as duckdb.sql("SELECT ... FROM frame").',
                option="sql",
            )
        if is_spark_frame(data):
            from relaxdp.tables.spark_release import SparkSource  # noqa: PLC0415 (Spark may be missing)

            yield SparkSource(data)
        else:
            yield FrameSource(data)
        return
    name = get_address_name(data) if is_cloud_address(data) else Path(data).name
    with ExitStack() as stack:
        path = stack.enter_context(fetch_file(data))
        reports = read_description(path)
        if sql is None:
            yield FileSource(TableFile(path), repr(name), get_stem(Path(name)), reports)
            return
        if reports is not None:
            raise MetadataError(
                "{name!r} was released by relaxdp. Its values are noisy reports, so it cannot be released again.",
                hint="Name the table with the true values. To raise the epsilon of a release, run `relaxdp relax`.",
                name=name,
            )
        table = TableFile(stack.enter_context(query_to_temporary_file(sql, path)))
        if get_file_kind(path).format is TableFormat.CSV:
            table.names = ColumnNames(table.schema.names, "the result of the query")
        yield FileSource(table, "the result of the query", get_stem(Path(name)))


# Files.


class FileSource(TableSource):
    """A table in a file: batches stream through, with flat memory."""

    library = "file"

    def __init__(
        self, table: TableFile, label: str, default_name: str | None = None, reports: FileDescription | None = None
    ) -> None:
        self._table, self.label, self.default_name, self.report_description = table, label, default_name, reports
        self.names, self.schema, self.rows = table.names, table.schema, table.rows
        self._is_sorted = False

    @contextmanager
    def batches(self, columns: Sequence[str], id_column: str) -> Iterator[Iterator[Any]]:
        if self._is_sorted:
            rows = self._check_ids(sort_batches(self._table, columns, id_column), id_column)
        else:
            rows = read_batches_ahead(self._check_ids(self._table.batches(columns), id_column))
        with closing(rows):
            yield rows

    def read_sample(self, columns: Sequence[str]) -> Generator[Any]:
        return self._table.batches(columns)

    def sort_from_now_on(self) -> None:
        self._is_sorted = True

    def find_original_row(self, row: int) -> int | None:
        return None if self._is_sorted else row

    def _check_ids(self, batches: Generator[Any], id_column: str) -> Generator[Any]:
        order, value = IdOrderCheck(), None
        with closing(batches):
            for batch in batches:
                ids = get_storage_column(remove_hidden_values(batch.column(id_column)))
                if ids.null_count:
                    rows = self._find_rows(id_column, 1, pc.is_null)  # a sort puts them last
                    raise make_missing_id_error(rows[0] if rows else None, self.label)
                try:
                    order.check(ids)
                except NotAscendingError:
                    if not self._is_sorted:
                        raise
                    value = order.find_repeated(ids)
                    break
                yield batch
        if value is not None:
            rows = self._find_rows(id_column, 2, lambda ids: pc.equal(ids, value.cast(ids.type)))
            raise make_repeated_ids_error(rows, self.label)

    def _find_rows(self, id_column: str, count: int, is_wanted: Callable[[Any], Any]) -> list[int]:
        """Return the numbers of the first rows with such an id, as the file has them."""
        first, found = 1, list[int]()
        for batch in self._table.batches([id_column]):
            ids = get_storage_column(remove_hidden_values(batch.column(0)))
            found += [first + int(place) for place in pc.indices_nonzero(is_wanted(ids)).to_pylist()]
            if len(found) >= count:
                break
            first += batch.num_rows
        return found


def make_missing_id_error(row: int | None, label: str) -> IdError:
    """Return the error about a row without an id."""
    where = "A row" if row is None else f"Row {row:,}"
    return IdError(
        "{where} of {label} has no id.",
        hint="Give each row its own id, or leave out rows without one.",
        where=where,
        label=label,
    )


def make_repeated_ids_error(rows: Sequence[int], label: str) -> IdError:
    """Return the error about rows with the same id."""
    where = f"Rows {rows[0]:,} and {rows[1]:,}" if len(rows) > 1 else "Two rows"
    return IdError(
        "{where} of {label} have the same id. Two people under one id would show whether their answers are equal.",
        hint="Keep one row per individual. If the ids are in another column, name that one with id= (--id NAME).",
        where=where,
        label=label,
    )


# Data frames.


class _FrameSchema:
    """The schema of a frame. A type is found when it is asked for: a column of objects must be read for that."""

    def __init__(self, frame: DataFrameReader) -> None:
        self._frame, self.names, self.metadata = frame, frame.names, None

    def field(self, name: str) -> pa.Field:
        """Return the field of a column: its name and type."""
        return pa.field(name, self._frame.get_arrow_type(name))


class FrameSource(TableSource):
    """A data frame: its columns are read once, into memory."""

    def __init__(self, data: Any) -> None:
        self._frame = frame = DataFrameReader(data)
        self.native, self.library, self.rows = frame.native, frame.library, frame.rows
        self.names, self.report_description = frame.all_names, frame.report_description
        self.schema = _FrameSchema(frame)
        self._table: pa.Table | None = None
        self._order: NDArray[np.int64] | None = None

    @contextmanager
    def batches(self, columns: Sequence[str], id_column: str) -> Iterator[Iterator[Any]]:
        wanted = list(dict.fromkeys(columns))
        if self._table is None:
            self._frame.read_columns(wanted)
            self._table, self.rows = self._frame.to_arrow(wanted), self._frame.rows
        table = self._table.select(wanted)
        self._order = compute_id_order(table.column(id_column), self.label)
        yield _split_into_batches(table, self._order)

    def read_sample(self, columns: Sequence[str]) -> Generator[Any]:
        if self.rows is not None:  # a stream or a query is not read twice
            yield from self._frame.to_arrow(list(dict.fromkeys(columns))).to_batches(BATCH_ROWS)

    def find_original_row(self, row: int) -> int | None:
        return row if self._order is None else int(self._order[row - 1]) + 1


def compute_id_order(ids: pa.ChunkedArray, label: str) -> NDArray[np.int64] | None:
    """Return the order of the rows by id, None where they are in it. A missing or repeated id is rejected."""
    ids = get_storage_column(remove_hidden_values(ids))
    if ids.null_count:
        raise make_missing_id_error(pc.index(ids.is_null(), True).as_py() + 1, label)
    check = IdOrderCheck()
    with suppress(NotAscendingError):
        for chunk in ids.chunks:
            check.check(chunk)
        return None
    order = _sort_ids(ids)
    ordered = ids.take(order)
    is_repeated = pc.equal(ordered[1:], ordered[:-1])
    if pc.any(is_repeated).as_py():  # which takes much less time than to look for the place
        rows = pc.indices_nonzero(pc.equal(ids, ordered[pc.index(is_repeated, True).as_py()]))
        raise make_repeated_ids_error([row + 1 for row in rows[:2].to_pylist()], label)
    return order


def _sort_ids(ids: pa.ChunkedArray) -> NDArray[np.int64]:
    if pa.types.is_integer(ids.type):  # several times as fast as Arrow, where the processor has AVX2
        return np.argsort(to_numpy(ids.combine_chunks()))
    return np.asarray(pc.sort_indices(ids).to_numpy().astype(np.int64))


def _split_into_batches(table: pa.Table, order: NDArray[np.int64] | None) -> Iterator[Any]:
    if order is None:
        yield from table.to_batches(BATCH_ROWS)
        return
    table = table.combine_chunks()
    for first in range(0, len(order), BATCH_ROWS):
        yield from table.take(order[first : first + BATCH_ROWS]).combine_chunks().to_batches()


_AHEAD = 3


class NotAscendingError(Exception):
    """The input is not sorted by id; it has to be read again through a sort."""


class IdOrderCheck:
    """Checks, batch after batch, that ids ascend; in a sorted table they do, unless one is repeated."""

    def __init__(self) -> None:
        self._last: Any = None
        self._rows = 0

    def check(self, ids: Any) -> None:
        """Raise `NotAscendingError` for an id that is not larger than the one before."""
        if not len(ids):
            return
        if ids.null_count:
            row = self._rows + pc.index(pc.is_null(ids), True).as_py() + 1
            raise IdError("The id is missing.", hint="Remove the row, or fill in the id.", row=row)
        ids = get_storage_column(ids)  # UUIDs are ordered by their bytes
        first = ids[0]
        try:
            rises = self._last is None or pc.less(self._last, first).as_py()
            ascending = rises and pc.all(pc.less(ids[:-1], ids[1:]), min_count=0).as_py()
        except pa.ArrowException:
            raise IdError(
                "The ids are of a type that cannot be sorted.", hint="Convert them to whole numbers, text or UUIDs."
            ) from None
        if not ascending:
            raise NotAscendingError
        self._last, self._rows = ids[len(ids) - 1], self._rows + len(ids)

    def find_repeated(self, ids: Any) -> Any:
        """Return the first of sorted ids that is equal to the one before."""
        before = (
            ids[:-1] if self._last is None else pa.concat_arrays([pa.array([self._last.as_py()], ids.type), ids[:-1]])
        )
        return ids[len(ids) - len(before) + pc.index(pc.equal(before, ids[-len(before) :]), True).as_py()]


def resize_batches(batches: Iterable[Any], batch_rows: int = BATCH_ROWS) -> Iterator[Any]:
    """Resize batches to a fixed number of rows; only the last one is smaller.

    Batches of a text file end where a block of text ends, so that their lengths depend on true values. Row groups of
    released files and chunks of snapshots must not.
    """
    waiting: list[Any] = []
    count = 0
    for batch in batches:
        while batch.num_rows:
            part = batch.slice(0, batch_rows - count)
            batch, count = batch.slice(part.num_rows), count + part.num_rows  # noqa: PLW2901 (the rest of it)
            waiting.append(part)
            if count == batch_rows:
                yield _join_batches(waiting)
                waiting, count = [], 0
    if waiting:
        yield _join_batches(waiting)


def _join_batches(parts: list[Any]) -> Any:
    if len(parts) == 1:
        return parts[0]
    columns = [
        pa.concat_arrays([decode_dictionary(part.column(place)) for part in parts])
        for place in range(parts[0].num_columns)
    ]
    return pa.RecordBatch.from_arrays(columns, names=parts[0].schema.names)


def read_batches_ahead(batches: Generator[Any]) -> Generator[Any]:
    """Return the batches, read by a separate thread, a few ahead: the thread that writes need not wait for them."""
    with ThreadPoolExecutor(1) as reader, closing(batches):
        try:
            read = deque(reader.submit(next, batches, None) for _ in range(_AHEAD))
            while (batch := read.popleft().result()) is not None:
                read.append(reader.submit(next, batches, None))
                yield batch
        finally:
            reader.shutdown(cancel_futures=True)  # so that nothing reads while it is closed
