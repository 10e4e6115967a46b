"""Two tables of the same people, side by side: both in id order, batch by batch, with flat memory."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from relaxdp.errors import TableFileError
from relaxdp.publication.plain import plain
from relaxdp.table.formats import Input
from relaxdp.table.order import IdOrder, NotAscendingError, repeated_id, sorted_batches

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
    order, here, there = IdOrder(), _Rest(first), _Rest(second)
    while True:
        count = min(here.rows(), there.rows())
        if not count:
            if here.rows() or there.rows():
                raise TableFileError(_OTHERS)
            return
        mine, other = here.take(count), there.take(count)
        ids = plain(mine.column(first_id))
        try:
            order.check(ids)
        except NotAscendingError:
            raise repeated_id() from None
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
