"""Rows in id order: sorted input streams straight through, other input is sorted by DuckDB, which spills to disk.

The order of rows can betray true values (a table sorted by diagnosis), so rows leave in id order. Strictly
ascending ids also prove that none is repeated, and let two tables of the same people be compared as they are read.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Generator, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager, suppress
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from relaxdp.errors import IdError, RelaxdpError, TableFileError
from relaxdp.lazy_imports import duckdb
from relaxdp.tables.files import BATCH_ROWS, Format, Input, list_files
from relaxdp.tables.interrupts import interruptible, is_interrupt
from relaxdp.tables.plain import plain, plain_type
from relaxdp.tables.staging import temporary_folder

MEMORY = "600MB"
_AHEAD = 3


@contextmanager
def open_database(
    memory: str, failed: RelaxdpError, *, full: RelaxdpError | None = None, threads: int | None = None
) -> Iterator[Any]:
    """Open DuckDB in memory, with a private folder for rows that do not fit there.

    Its messages may quote a row: `failed` is raised in their place, or `full` where memory or disk did not suffice.
    """
    problem = None
    with temporary_folder() as folder:
        settings: dict[str, str | bool | int | float | list[str]] = {
            "memory_limit": memory,
            "temp_directory": str(folder),
            "preserve_insertion_order": False,
            "autoinstall_known_extensions": False,
            "autoload_known_extensions": False,
            "python_enable_replacements": False,
        }
        if threads is not None:
            settings["threads"] = threads
        with duckdb.connect(":memory:", config=settings) as connection, interruptible(connection):
            try:
                # A bar would be drawn into what a program reads. A notebook without ipywidgets rejects the setting.
                with suppress(duckdb.InvalidInputException):
                    connection.execute("SET enable_progress_bar = false")
                yield connection
            except duckdb.InterruptException:
                raise
            except duckdb.Error as error:
                problem = full if full is not None and isinstance(error, duckdb.OutOfMemoryException) else failed
    if problem is not None:
        try:
            raise problem from None
        finally:
            problem.__context__ = None  # DuckDB's own error, which the caller's block is still handling


class NotAscendingError(Exception):
    """The input is not sorted by id; it has to be read again through a sort."""


def repeated_id() -> IdError:
    """Return the error about rows that do not ascend even after a sort."""
    return IdError(
        "An id occurs in two rows. Two people under one id would show whether their answers are equal.",
        hint="Release one row per individual. If this is not the column of the ids, name that one.",
    )


class IdOrder:
    """Checks, batch after batch, that ids ascend; in a sorted table they do, unless one is repeated."""

    def __init__(self, is_sorted: bool = False) -> None:
        self._last: Any = None
        self._is_sorted = is_sorted
        self._rows = 0

    def check(self, ids: Any) -> None:
        """Raise `NotAscendingError`, or in a sorted table `repeated_id`, for an id not larger than the one before."""
        if not len(ids):
            return
        if ids.null_count:
            row = self._rows + pc.index(pc.is_null(ids), True).as_py() + 1
            raise IdError("The id is missing.", hint="Remove the row, or fill in the id.", row=row)
        ids = get_storage(ids)  # UUIDs are ordered by their bytes
        first = ids[0]
        try:
            rises = self._last is None or pc.less(self._last, first).as_py()
            ascending = rises and pc.all(pc.less(ids[:-1], ids[1:]), min_count=0).as_py()
        except pa.ArrowException:
            raise IdError("The ids cannot be ordered.", hint="Use whole numbers, text or UUIDs.") from None
        if not ascending:
            raise repeated_id() if self._is_sorted else NotAscendingError
        self._last, self._rows = ids[len(ids) - 1], self._rows + len(ids)

    def find_repeated(self, ids: Any) -> Any:
        """Return the first of sorted ids that is equal to the one before."""
        before = (
            ids[:-1] if self._last is None else pa.concat_arrays([pa.array([self._last.as_py()], ids.type), ids[:-1]])
        )
        return ids[len(ids) - len(before) + pc.index(pc.equal(before, ids[-len(before) :]), True).as_py()]


def get_storage(column: Any) -> Any:
    """Return the bytes of UUIDs, which Arrow cannot compare, and other columns as they are."""
    if isinstance(column, pa.ChunkedArray) and isinstance(column.type, pa.BaseExtensionType):
        return pa.chunked_array([chunk.storage for chunk in column.chunks], column.type.storage_type)
    return getattr(column, "storage", column)


def sorted_batches(table: Input, columns: Sequence[str], id_column: str, threads: int | None = None) -> Generator[Any]:
    """Return the rows of some columns in id order, sorted by DuckDB."""
    wanted = list(dict.fromkeys(columns))
    table.check_files(wanted)
    failed = TableFileError(
        "{table!r} could not be sorted by its ids.",
        hint="Check that the file is complete, and that the disk has room for another copy of it.",
        table=str(table.path),
    )
    with open_database(MEMORY, failed, threads=threads) as connection:
        relation = _relation(connection, table, wanted)
        query = f"SELECT * FROM {relation} ORDER BY c{wanted.index(id_column)}"  # noqa: S608 (quoted names)
        reader = connection.sql(query).to_arrow_reader(BATCH_ROWS)
        while (batch := _read_next(reader, failed)) is not None:
            yield _restore_types(batch.rename_columns(wanted), table.schema)


def _read_next(reader: Any, failed: RelaxdpError) -> Any | None:
    """Return the next batch, None after the last. Arrow passes an error of DuckDB on as its own, with a row in it."""
    try:
        return next(reader, None)
    except (OSError, pa.ArrowException) as problem:
        if is_interrupt(problem):
            raise
    raise failed


def _relation(connection: Any, table: Input, columns: list[str]) -> str:
    """Return SQL for these columns under the names c0, c1, ...: DuckDB does not tell names by case.

    It also reads some characters of a path as a pattern, and folders like `diagnosis=flu` as a column.
    """
    files = [str(file) for file in list_files(table.path)]
    folded = [name.casefold() for name in table.schema.names]
    kinds = [table.schema.field(name).type for name in columns]
    extended = any(isinstance(kind, pa.BaseExtensionType) for kind in kinds)
    readable = not extended and len(set(folded)) == len(folded) and not set("*?[{") & set("".join(files))
    if table.format is Format.PARQUET and readable:
        names = ", ".join(f"{_quote_name(name)} AS c{place}" for place, name in enumerate(columns))
        listed = ", ".join(map(quote_text, files))
        return f"(SELECT {names} FROM read_parquet([{listed}], hive_partitioning = false))"  # noqa: S608
    # Plain, because DuckDB takes the numbers of some dictionaries for the values.
    kinds = [plain_type(kind) for kind in kinds]
    schema = pa.schema([(f"c{place}", getattr(kind, "storage_type", kind)) for place, kind in enumerate(kinds)])
    batches = (
        pa.RecordBatch.from_arrays([get_storage(plain(column)) for column in each.columns], schema=schema)
        for each in _select(table, columns)
    )
    connection.register("relaxdp_input", pa.RecordBatchReader.from_batches(schema, batches))
    return "relaxdp_input"


def _restore_types(batch: Any, schema: Any) -> Any:
    """Return columns of extended types as what they were: DuckDB would make text of a UUID, which is another id."""
    for place, name in enumerate(batch.schema.names):
        kind = plain_type(schema.field(name).type)
        if isinstance(kind, pa.BaseExtensionType):
            storage = batch.column(place).cast(kind.storage_type)
            batch = batch.set_column(place, name, pa.ExtensionArray.from_storage(kind, storage))
    return batch


def _select(table: Input, columns: list[str]) -> Generator[Any]:
    for batch in table.batches(columns):
        yield batch.select(columns)


def _quote_name(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def quote_text(text: str) -> str:
    """Return text as SQL writes it."""
    return "'" + text.replace("'", "''") + "'"


def cut_batches(batches: Iterable[Any], rows: int = BATCH_ROWS) -> Iterator[Any]:
    """Return the same rows in batches of a fixed number of rows; only the last one is smaller.

    Batches of a text file end where a block of text ends, so that their lengths depend on true values. Row groups of
    released files and chunks of snapshots must not.
    """
    waiting: list[Any] = []
    count = 0
    for batch in batches:
        while batch.num_rows:
            part = batch.slice(0, rows - count)
            batch, count = batch.slice(part.num_rows), count + part.num_rows  # noqa: PLW2901 (the rest of it)
            waiting.append(part)
            if count == rows:
                yield _join_batches(waiting)
                waiting, count = [], 0
    if waiting:
        yield _join_batches(waiting)


def _join_batches(parts: list[Any]) -> Any:
    if len(parts) == 1:
        return parts[0]
    columns = [
        pa.concat_arrays([_decode(part.column(place)) for part in parts]) for place in range(parts[0].num_columns)
    ]
    return pa.RecordBatch.from_arrays(columns, names=parts[0].schema.names)


def _decode(column: Any) -> Any:
    """Return a column without a dictionary: two parts may have different ones."""
    return column.dictionary_decode() if pa.types.is_dictionary(column.type) else column


def read_ahead(batches: Generator[Any]) -> Generator[Any]:
    """Return the batches, read by a separate thread where there is more than one core, a few ahead.

    Otherwise the thread that writes would read in between, and a second core would wait for it.
    """
    if os.cpu_count() == 1:
        yield from batches
        return
    with ThreadPoolExecutor(1) as reader, closing(batches):
        try:
            read = deque(reader.submit(next, batches, None) for _ in range(_AHEAD))
            while (batch := read.popleft().result()) is not None:
                read.append(reader.submit(next, batches, None))
                yield batch
        finally:
            reader.shutdown(cancel_futures=True)  # so that nothing reads while it is closed
