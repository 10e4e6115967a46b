"""Rows in id order: sorted input streams straight through, other input is sorted out of core.

The order of rows can betray the truth (a table sorted by diagnosis), so rows leave in the order of their ids. Strictly
ascending ids also prove that none is repeated, and let two tables of the same people be read side by side.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from relaxdp.errors import ObjectIdError, RelaxdpError, TableFileError
from relaxdp.publication.plain import plain, plain_type
from relaxdp.table.database import open_database
from relaxdp.table.formats import BATCH_ROWS, Input
from relaxdp.table.kinds import Format, files_of

_MEMORY = "600MB"


class NotAscendingError(Exception):
    """The input is not sorted by id; it has to be read again through a sort."""


def repeated_id() -> ObjectIdError:
    """Return the refusal of rows that do not ascend even after a sort."""
    return ObjectIdError(
        "an id occurs in two rows. One id is one object: two people under one id would show whether their "
        "answers are equal.",
        remedy="id",
    )


@contextmanager
def counted_by_id(after_a_sort: bool = True) -> Iterator[None]:
    """Let refusals say that a row is counted in the order of the ids, where that is not the order of the file."""
    try:
        yield
    except RelaxdpError as problem:
        if after_a_sort:
            problem.fields["counted"] = "by id"
        raise


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
            raise ObjectIdError("the id is missing.", row=row)
        ids = _stored(ids)  # UUIDs are ordered by their bytes
        first = ids[0]
        try:
            rises = self._last is None or pc.less(self._last, first).as_py()
            ascending = rises and pc.all(pc.less(ids[:-1], ids[1:]), min_count=0).as_py()
        except pa.ArrowException:
            raise ObjectIdError("the ids cannot be ordered: use whole numbers, text, bytes or UUIDs.") from None
        if not ascending:
            raise repeated_id() if self._is_sorted else NotAscendingError
        self._last, self._rows = ids[len(ids) - 1], self._rows + len(ids)


def sorted_batches(table: Input, columns: Sequence[str], id_column: str, threads: int) -> Generator[Any]:
    """Return the rows of some columns in id order, sorted by DuckDB, which spills to disk."""
    wanted = list(dict.fromkeys(columns))
    failed = TableFileError("{table!r} could not be sorted: it is damaged, or the disk is full.", table=str(table.path))
    with open_database(_MEMORY, failed, threads=threads) as connection:
        relation = _relation(connection, table, wanted)
        query = f"SELECT * FROM {relation} ORDER BY c{wanted.index(id_column)}"  # noqa: S608 (quoted names)
        for batch in connection.sql(query).to_arrow_reader(BATCH_ROWS):
            yield _as_it_was(batch.rename_columns(wanted), table.schema)


def _relation(connection: Any, table: Input, columns: list[str]) -> str:
    """Return SQL for these columns under the names c0, c1, ...: DuckDB does not tell names by case.

    It also takes some letters of a path for a pattern, and folders like `diagnosis=flu` for a column.
    """
    files = [str(file) for file in files_of(table.path)]
    folded = [name.casefold() for name in table.schema.names]
    kinds = [table.schema.field(name).type for name in columns]
    extended = any(isinstance(kind, pa.BaseExtensionType) for kind in kinds)
    readable = not extended and len(set(folded)) == len(folded) and not set("*?[{") & set("".join(files))
    if table.format is Format.PARQUET and readable:
        names = ", ".join(f"{_quoted(name)} AS c{place}" for place, name in enumerate(columns))
        listed = ", ".join("'" + file.replace("'", "''") + "'" for file in files)
        return f"(SELECT {names} FROM read_parquet([{listed}], hive_partitioning = false))"  # noqa: S608
    # Plain, because DuckDB takes the numbers of some dictionaries for the values.
    kinds = [plain_type(kind) for kind in kinds]
    schema = pa.schema([(f"c{place}", getattr(kind, "storage_type", kind)) for place, kind in enumerate(kinds)])
    batches = (
        pa.RecordBatch.from_arrays([_stored(plain(column)) for column in each.columns], schema=schema)
        for each in _selected(table, columns)
    )
    connection.register("relaxdp_input", pa.RecordBatchReader.from_batches(schema, batches))
    return "relaxdp_input"


def _as_it_was(batch: Any, schema: Any) -> Any:
    """Return columns of extended types as what they were: DuckDB would make text of a UUID, which is another id."""
    for place, name in enumerate(batch.schema.names):
        kind = plain_type(schema.field(name).type)
        if isinstance(kind, pa.BaseExtensionType):
            storage = batch.column(place).cast(kind.storage_type)
            batch = batch.set_column(place, name, pa.ExtensionArray.from_storage(kind, storage))
    return batch


def _stored(column: Any) -> Any:
    return getattr(column, "storage", column)


def _selected(table: Input, columns: list[str]) -> Generator[Any]:
    for batch in table.batches(columns):
        yield batch.select(columns)


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


_OTHERS = "the last reports are of other ids than the table: both must have the same ids, each of them once."


@dataclass(frozen=True, slots=True)
class Rows(Iterator[Any]):
    """The rows of a table in id order, batch by batch; whoever counts them wants to know whether they were sorted."""

    batches: Generator[Any]
    were_sorted: bool

    def __next__(self) -> Any:
        return next(self.batches)

    def close(self) -> None:
        """Stop reading."""
        self.batches.close()


def in_order(table: Input, columns: list[str], id_column: str, threads: int) -> Rows:
    """Return the rows of a table in id order. Its ids are read once before, to see whether a sort is needed."""
    order = IdOrder()
    try:
        for batch in table.batches([id_column]):
            order.check(plain(batch.column(0)))
    except NotAscendingError:
        return Rows(sorted_batches(table, columns, id_column, threads), were_sorted=True)
    return Rows(table.batches(columns), were_sorted=False)


def paired(first: Iterator[Any], first_id: str, second: Iterator[Any], second_id: str) -> Iterator[tuple[Any, Any]]:
    """Return parts of equal length of both tables, with equal ids row by row; anything else is refused."""
    order, here, there = IdOrder(is_sorted=True), _Rest(first), _Rest(second)
    while True:
        count = min(here.rows(), there.rows())
        if not count:
            if here.rows() or there.rows():
                raise TableFileError(_OTHERS)
            return
        mine, other = here.take(count), there.take(count)
        ids = plain(mine.column(first_id))
        order.check(ids)
        if not _equal(ids, plain(other.column(second_id))):
            raise TableFileError(_OTHERS)
        yield mine, other


class _Rest:
    """What is left of a stream of batches."""

    def __init__(self, batches: Iterator[Any]) -> None:
        self._batches, self._batch = batches, None

    def rows(self) -> int:
        """Return how many rows are at hand; 0 only at the end."""
        while self._batch is None or not self._batch.num_rows:
            self._batch = next(self._batches, None)
            if self._batch is None:
                return 0
        return int(self._batch.num_rows)

    def take(self, count: int) -> Any:
        """Return that many of the rows at hand."""
        batch: Any = self._batch
        self._batch = batch.slice(count)
        return batch.slice(0, count)


def _equal(ids: Any, others: Any) -> bool:
    try:
        return bool(ids.equals(others if others.type == ids.type else others.cast(ids.type)))
    except pa.ArrowException:
        return False
