"""A release of a data frame: all is drawn in memory, the ledger is charged durably, then the frame is returned."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from relaxdp.draw.repeats import refuse_repeats
from relaxdp.errors import DescriptionError, ObjectIdError, UnknownColumnError
from relaxdp.ledger.entries import Entry
from relaxdp.ledger.payer import Payer
from relaxdp.publication.derive import check_name
from relaxdp.publication.plain import plain_type
from relaxdp.publication.request import Planned, ReleaseRequest, check_columns, id_type_of
from relaxdp.publication.transaction import Drawing, Plan, Seen, Staged
from relaxdp.table.engine import Engine
from relaxdp.table.formats import BATCH_ROWS
from relaxdp.table.frame_description import describe, said_by
from relaxdp.table.frame_kinds import Frame
from relaxdp.table.order import IdOrder, NotAscendingError
from relaxdp.table.release import no_truth, refuse_rowless, reports_among
from relaxdp.table.snapshots import KeptInMemory


class FrameTable:
    """A data frame of which some columns are to be released: they are read once, and are what is drawn from."""

    def __init__(self, native: Any, id_column: str, released: Sequence[str], keep: Sequence[str]) -> None:
        """Take the columns out of the frame, or refuse what cannot be released."""
        self.frame = Frame(native)
        self.names = self.frame.all_names
        check_name(id_column)
        if id_column in self.frame.index_names and id_column not in self.frame.names:
            raise UnknownColumnError(
                "{column!r} is the index, not a column: release frame.reset_index().", column=id_column
            )
        check_columns(self.names, id_column, released, keep)
        refuse_released_frame(native, released)
        self.frame.load([id_column, *released, *keep])
        refuse_rowless(self.frame.rows)
        self.arrow = self.frame.arrow([id_column, *released])
        self.schema = self.arrow.schema


class FrameDrawing(Drawing):
    """A data frame to a data frame of the same kind.

    Rows are drawn in the order in which they are given, so that a sentence names the row as its owner sees it.
    """

    seals: ClassVar[bool] = True

    def __init__(self, table: FrameTable, request: ReleaseRequest, threads: int) -> None:
        self._frame, self._table = table.frame, table.arrow
        self._keep, self._threads = request.keep, threads
        self.request = replace(request, keep=())  # what is kept need not pass through Arrow
        self.id_type = _id_type(self.request, self._table)
        self.request.check_kinds(self._table.schema)

    @contextmanager
    def held(self, payer: Payer | None) -> Iterator[None]:
        """Hold nothing: it is staged in memory."""
        yield

    def look(self, entries: Sequence[Entry], payer: Payer) -> list[Seen]:
        """Draw in memory, and keep nothing but the fingerprints."""
        return self._draw(self.request.planned())[1]

    def stage(self, plan: Plan) -> Staged:
        """Make the whole frame: after the charge nothing is left to fail."""
        part, kept = plan.part(), KeptInMemory()
        reports, seen = self._draw(plan.columns, None if part is None else kept)
        order = id_order(self._table.column(self.request.id_column))
        beside = [self.request.id_column, *self._keep]
        names = [self.request.id_column, *reports.column_names, *self._keep]
        made = self._frame.released(order, beside, reports, names)
        digest = None if part is None else kept.close(part, order)
        return Staged(len(order), seen, describe(made, replace(plan.description, rows=len(order))), snapshot=digest)

    def publish(self, plan: Plan, staged: Staged) -> Any:
        """Return the frame."""
        return staged.content

    def _draw(self, columns: Sequence[Planned], kept: KeptInMemory | None = None) -> tuple[pa.Table, list[Seen]]:
        """Return the reports in the order of the rows, and what they tell of the table."""
        engine = Engine(self.request, self._table.schema, columns, kept)
        names = [each.request.column for each in columns]
        drawn = engine.run(self._table.to_batches(BATCH_ROWS), self._threads, lambda _: None, ordered=False)
        schema = pa.schema([engine.schema.field(name) for name in names])
        reports = pa.Table.from_batches((batch.select(names) for batch in drawn), schema)
        return reports.unify_dictionaries().combine_chunks(), engine.seen()


def refuse_released_frame(native: Any, columns: Sequence[str]) -> None:
    """Refuse to take the reports of a released frame for the truth, as `refuse_reports` does for files."""
    try:
        names = reports_among(said_by(native), columns)
    except DescriptionError:
        names = list(columns)
    if names:
        raise no_truth(f"{names[0]!r} of the frame")


def _id_type(request: ReleaseRequest, table: pa.Table) -> str:
    kind = plain_type(table.schema.field(request.id_column).type)
    if pa.types.is_floating(kind):
        raise ObjectIdError(
            "the ids are floating-point numbers, which have no exact identity. In pandas, a column of whole numbers "
            'becomes one where an id is missing; .astype("Int64") makes whole numbers of it again.',
            kind=kind,
        )
    return id_type_of(kind)


def id_order(ids: pa.ChunkedArray) -> NDArray[np.int64]:
    """Return the rows in the order of their ids. None of them is missing; repeated ones are refused."""
    chunks = [getattr(chunk, "storage", chunk) for chunk in ids.chunks]  # pyarrow orders the bytes of a UUID, not it
    chunks = [chunk.dictionary_decode() if pa.types.is_dictionary(chunk.type) else chunk for chunk in chunks]
    try:
        check = IdOrder()
        for chunk in chunks:
            check.check(chunk)
        return np.arange(len(ids))
    except NotAscendingError:
        column = pa.chunked_array(chunks)
    order = pc.sort_indices(column)
    ordered = column.take(order).combine_chunks()
    if pc.any(pc.equal(ordered[1:], ordered[:-1])).as_py():
        refuse_repeats(column)
    return np.asarray(order.to_numpy(), dtype=np.int64)
