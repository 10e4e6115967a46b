"""A release of a data frame: all is drawn in memory, the ledger is charged durably, then the frame is returned."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from relaxdp.draw.key import Key
from relaxdp.draw.repeats import refuse_repeats
from relaxdp.errors import DescriptionError, ObjectIdError, UnknownColumnError, ValuesError
from relaxdp.ledger.entries import Entry, Subject
from relaxdp.ledger.ledger import Ledger
from relaxdp.ledger.payer import Payer
from relaxdp.mechanisms import Mechanism, Numeric
from relaxdp.table.columns import Numbers, Texts, check_name, way_out
from relaxdp.table.engine import Engine
from relaxdp.table.formats import BATCH_ROWS
from relaxdp.table.frame_description import describe, said_by
from relaxdp.table.frame_kinds import Frame
from relaxdp.table.order import IdOrder, NotAscendingError
from relaxdp.table.plain import plain_type
from relaxdp.table.publication import Drawing, Plan, Seen, Staged
from relaxdp.table.release import no_truth, refuse_rowless, reports_among
from relaxdp.table.request import ColumnRequest, Planned, ReleaseRequest, id_type_of

VALUE_WAY_OUT = "fillna (fill_null in polars) makes it a value, which must be declared."
NUMBER_WAY_OUT = "Classes of numbers are declared values, and can have one for what is missing."


def requested(
    columns: Mapping[str, Mechanism], *, id: str, epsilon: Decimal, key: Key, release: str, keep: Sequence[str]
) -> ReleaseRequest:
    """Return the request for what is said about each column."""
    if not isinstance(columns, Mapping) or not columns:
        raise _say_columns()
    if hasattr(keep, "dtype") and hasattr(keep, "to_list") and type(keep).__name__ != "Index":
        raise ValuesError("keep= is a list of names, and this is a column. Nothing was released.")  # of data
    return ReleaseRequest(
        id_column=id,
        columns=[_column(name, mechanism) for name, mechanism in columns.items()],
        epsilon=epsilon,
        key=key,
        release=release,
        keep=[keep] if isinstance(keep, str) else list(keep),
    )


def _column(name: Any, mechanism: Any) -> ColumnRequest:
    if not isinstance(name, str) or not isinstance(mechanism, Mechanism):
        raise _say_columns()
    # Numbers may be written as text, and true, false and dates are declared as text, as in files.
    return ColumnRequest(name, mechanism, [Numbers() if isinstance(mechanism, Numeric) else Texts()])


def _say_columns() -> ValuesError:
    return ValuesError(
        "say what each column can be, like {'diagnosis': rx.Categorical([...]), 'age': rx.Numeric(0, 120)}. "
        "Nothing was released."
    )


@contextmanager
def payer_of(
    ledger: str | os.PathLike[str] | Ledger | None,
    population: str,
    budget: Any,
    reason: str,
    again: bool,
    force: bool,
    new_ledger: str,
) -> Iterator[Payer | None]:
    """Open a ledger by its place, for one release; one that is open already stays open."""
    if ledger is None:
        yield None
        return
    subject = Subject.population(population)
    reason = reason or "release of a data frame"
    if isinstance(ledger, Ledger):
        yield Payer(ledger, subject, budget, reason, again, force, new_ledger=new_ledger)
        return
    with Ledger.open(ledger) as book:
        yield Payer(book, subject, budget, reason, again, force, new_ledger=new_ledger)


class FrameDrawing(Drawing):
    """A data frame to a data frame of the same kind.

    Rows are drawn in the order in which they are given, so that a sentence names the row as its owner sees it.
    """

    def __init__(self, native: Any, request: ReleaseRequest, threads: int) -> None:
        """Take the columns out of the frame, or refuse what cannot be released."""
        self._frame = Frame(native)
        _check_columns(request, self._frame)
        refuse_released_frame(native, request)
        self._frame.load(request.input_columns())
        refuse_rowless(self._frame.rows)
        self._keep, self._threads = request.keep, threads
        self.request = replace(request, keep=())  # what is kept need not pass through Arrow
        self._table = self._frame.arrow(self.request.input_columns())
        self.id_type = _id_type(self.request, self._table)
        self.request.check_kinds(self._table.schema)

    @contextmanager
    def held(self, payer: Payer | None) -> Iterator[None]:
        """Hold nothing: it is staged in memory."""
        with way_out(value=VALUE_WAY_OUT, number=NUMBER_WAY_OUT):
            yield

    def look(self, entries: Sequence[Entry], payer: Payer) -> list[Seen]:
        """Draw in memory, and keep nothing but the fingerprints."""
        return self._draw(self.request.planned())[1]

    def stage(self, plan: Plan) -> Staged:
        """Make the whole frame: after the charge nothing is left to fail."""
        reports, seen = self._draw(plan.columns)
        order = id_order(self._table.column(self.request.id_column))
        kept = [self.request.id_column, *self._keep]
        names = [self.request.id_column, *reports.column_names, *self._keep]
        made = self._frame.released(order, kept, reports, names)
        return Staged(len(order), seen, describe(made, replace(plan.description, rows=len(order))))

    def publish(self, plan: Plan, staged: Staged) -> Any:
        """Return the frame."""
        return staged.content

    def _draw(self, columns: Sequence[Planned]) -> tuple[pa.Table, list[Seen]]:
        """Return the reports in the order of the rows, and what they tell of the table."""
        engine = Engine(self.request, self._table.schema, columns)
        names = [each.request.column for each in columns]
        drawn = engine.run(self._table.to_batches(BATCH_ROWS), self._threads, lambda _: None, ordered=False)
        schema = pa.schema([engine.schema.field(name) for name in names])
        reports = pa.Table.from_batches((batch.select(names) for batch in drawn), schema)
        return reports.unify_dictionaries().combine_chunks(), engine.seen()


def refuse_released_frame(native: Any, request: ReleaseRequest) -> None:
    """Refuse to take the reports of a released frame for the truth, as `refuse_reports` does for files."""
    columns = [each.column for each in request.columns]
    try:
        names = reports_among(said_by(native), columns)
    except DescriptionError:
        names = columns
    if names:
        raise no_truth(f"{names[0]!r} of the frame")


def _check_columns(request: ReleaseRequest, frame: Frame) -> None:
    check_name(request.id_column)
    if request.id_column in frame.index_names and request.id_column not in frame.names:
        raise UnknownColumnError(
            f"{request.id_column!r} is the index, not a column: release frame.reset_index(). Nothing was released.",
            column=request.id_column,
        )
    request.check_columns(frame.all_names)


def _id_type(request: ReleaseRequest, table: pa.Table) -> str:
    kind = plain_type(table.schema.field(request.id_column).type)
    if pa.types.is_floating(kind):
        raise ObjectIdError(
            f"the ids in {request.id_column!r} are floating-point numbers, which have no exact identity. In pandas, a "
            'column of whole numbers becomes one where an id is missing; .astype("Int64") makes whole '
            "numbers of it again. Nothing was released."
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
