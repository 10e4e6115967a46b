"""Data frames of every kind: read once, as Arrow columns, and given back as the kind that they were.

Narwhals knows the kinds. What it leaves to us: columns of Python objects, whose kind must be exact; UUIDs of DuckDB,
which its Arrow form writes as text; and that no index, attribute, dictionary or metadata of the input goes along.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from copy import deepcopy
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from relaxdp.draw.canonical import is_missing, kind_of
from relaxdp.errors import ColumnError, RelaxdpError
from relaxdp.lazy import duckdb
from relaxdp.lazy import narwhals as nw
from relaxdp.publication.derive import ColumnNames
from relaxdp.publication.plain import plain
from relaxdp.table.interrupts import is_interrupt

_VALUES = {
    bool, int, float, complex, str, bytes, type(None), Decimal, UUID, date, datetime, time, timedelta,
}  # fmt: skip
KINDS = "pandas, polars (also lazy), pyarrow tables and DuckDB relations"


def by_text(frame: Any) -> tuple[Any, dict[str, int]]:
    """Return a pandas frame whose columns are called by text, and what those were that were called by numbers.

    A path is named by text: column 3 is "3" there, unless the frame has both.
    """
    if not (type(frame).__module__.startswith("pandas") and hasattr(frame, "columns")):
        return frame, {}
    numbers = {str(name): name for name in frame.columns if type(name) is int}
    if not numbers or any(text in frame.columns for text in numbers):
        return frame, {}
    index = sys.modules["pandas"].Index  # as objects below: pandas' own text has no half letters
    return frame.set_axis(index([as_text(name) for name in frame.columns], dtype=object), axis=1), numbers


def as_text(name: Any) -> Any:
    """Return a column's name as text, where it is a whole number."""
    return str(name) if type(name) is int else name


class Frame:
    """A data frame of any kind. Lazy ones are carried out once, so that what is drawn is what was looked at."""

    def __init__(self, native: Any) -> None:
        found: Any = None if native is None else quietly(lambda: nw.from_native(native, pass_through=True))
        self.is_lazy = issubclass(type(found), nw.LazyFrame)
        if native is None or (found is not None and not issubclass(type(found), nw.LazyFrame | nw.DataFrame)):
            raise ColumnError(
                "a {type} is not a data frame that is known here: {kinds}.", type=type(native).__name__, kinds=KINDS
            )
        names = quietly(lambda: found.collect_schema().names())
        if names is None:
            own = quietly(lambda: list(native.column_names if hasattr(native, "column_names") else native.columns))
            if own is not None and len(set(own)) < len(own):
                raise ColumnError("two columns of the frame have one name: give them different names.")
            raise ColumnError("the frame cannot be read. Is the connection closed that it came from?")
        self.is_duckdb = str(found.implementation) == "duckdb"
        if self.is_lazy and not self.is_duckdb and not found.implementation.is_polars():
            raise ColumnError(
                "a lazy {type} is not a data frame that is known here: {kinds}.",
                type=type(native).__name__,
                kinds=KINDS,
            )
        self._native, self._found = native, found
        self._rows: Any = None
        self.all_names = ColumnNames.of_frame(names)
        self.names = self.all_names.usable

    @property
    def index_names(self) -> list[Any]:
        """The names of a pandas index: an id that is looked for may stand there."""
        return list(self._native.index.names) if self._found.implementation.is_pandas() else []

    def load(self, columns: Sequence[str]) -> None:
        """Read these columns, and carry out what is lazy."""
        if self.is_duckdb:
            rows = quietly(lambda: _duckdb_rows(self._native, columns))
        elif self.is_lazy:
            rows = quietly(lambda: self._found.select(*columns).collect())
        else:
            rows = self._found.select(*columns)
            rows = nw.from_native(_without_views(rows.to_native())) if rows.implementation.is_pyarrow() else rows
        if rows is None:  # raised here, because the reason may quote a row
            raise ColumnError("the lazy frame cannot be carried out; carry it out yourself to see why.")
        self._rows = rows

    @property
    def rows(self) -> int:
        """How many rows were read."""
        return len(self._rows)

    def arrow(self, columns: Sequence[str]) -> pa.Table:
        """Return columns as Arrow has them, without a copy where that is possible."""
        return pa.table({name: self._arrow(name) for name in columns})

    def _arrow(self, name: str) -> pa.ChunkedArray:
        series = self._rows.get_column(name)
        found = quietly(lambda: _arrow(series))
        if found is None:
            raise ColumnError(
                "the column {name!r} ({type}) cannot be read as one kind of values: whole numbers, numbers, "
                "text, bytes or UUIDs.",
                name=name,
                type=type(series.dtype).__name__,
            )
        return found

    def released(self, order: NDArray[np.int64], kept: Sequence[str], reports: pa.Table, names: Sequence[str]) -> Any:
        """Return a frame of the same kind: `kept` columns and reports, rows in this order, columns in that of `names`.

        Columns are copied even where their order is right: a released frame shares no memory with the input.
        """
        rows = self._rows.select(*kept)
        for each in rows.iter_columns():
            kind = type(getattr(each.to_native(), "dtype", None))
            if each.implementation.is_pandas() and kind.__module__.split(".")[0] not in ("pandas", "numpy"):
                raise ColumnError(
                    "The pass-through column {name!r} has the type {type}, which may hold more than it shows. Convert "
                    "it to text, numbers or dates.",
                    name=each.name,
                    type=kind.__name__,
                )
        if not all(_are_values(each.to_list()) for each in rows.iter_columns() if _is_objects(each)):
            raise ColumnError(
                "a kept column holds Python objects that may carry more than they show: keep text, numbers or "
                "dates that are made of them."
            )
        result = quietly(lambda: self._released(rows, order, reports, names))
        if result is None:
            raise ColumnError("a kept column is of a type that cannot be put into another order.")
        return result

    def _released(self, rows: Any, order: NDArray[np.int64], reports: pa.Table, names: Sequence[str]) -> Any:
        kept = [_copied(each, order).to_frame() for each in rows.iter_columns()]
        drawn = nw.from_arrow(reports.take(order), backend=rows.implementation)
        result = nw.concat([*kept, drawn], how="horizontal").select(*names).to_native()
        if self.is_duckdb:
            return _relation(self._native, result)
        return result.lazy() if self.is_lazy else result


def quietly(work: Callable[[], Any]) -> Any | None:
    """Return what the work returns, None where it fails: the libraries' own messages quote what a cell holds."""
    try:
        return work()
    except (MemoryError, RelaxdpError):
        raise
    except Exception as problem:
        if is_interrupt(problem):
            raise KeyboardInterrupt from None
        return None


# Columns as Arrow.


def _arrow(series: Any) -> pa.ChunkedArray | None:

    native = series.to_native()
    if _is_objects(series):
        array = _objects(series.to_list())
    else:
        array = native if isinstance(native, pa.ChunkedArray) else series.to_arrow()
    if array is None:
        return None
    return _without_view(array if isinstance(array, pa.ChunkedArray) else pa.chunked_array([array]))


def _without_view(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return text and bytes in the form that Arrow can sort and take."""
    if pa.types.is_string_view(column.type):
        return column.cast(pa.large_string())
    return column.cast(pa.large_binary()) if pa.types.is_binary_view(column.type) else column


def _without_views(table: pa.Table) -> pa.Table:
    columns = [_without_view(column) for column in table.columns]
    return pa.table(dict(zip(table.column_names, columns, strict=True)))  # and without metadata, of fields too


def _objects(items: list[Any]) -> pa.Array | None:
    """Return Python objects as an Arrow array of their one kind; Arrow itself would make bytes of text and bytes."""
    examples = {type(item): item for item in items if not is_missing(item)}.values()
    kinds = {kind_of(item) for item in examples}
    if kinds == {"uuid"}:
        storage = pa.array([None if is_missing(item) else item.bytes for item in items], pa.binary(16))
        return pa.ExtensionArray.from_storage(pa.uuid(), storage)
    if kinds == {"integer"}:
        largest = max(int(item) for item in items if not is_missing(item))
        return pa.array(items, pa.uint64() if largest >= 2**63 else pa.int64(), from_pandas=True)
    if len(kinds) > 1 and kinds != {"integer", "number"}:
        return None
    return pa.array(items, from_pandas=True)


def _is_objects(series: Any) -> bool:
    return bool(series.dtype == nw.Object or str(getattr(series.to_native(), "dtype", "")) == "object")


def _are_values(items: Iterable[Any]) -> bool:
    """Tell whether Python objects are values and nothing else: others have attributes, or categories."""
    examples: dict[type, Any] = {}
    for item in items:
        if isinstance(item, list | tuple | set | frozenset | dict | np.ndarray):
            inside = [*item.keys(), *item.values()] if isinstance(item, dict) else list(item)
            if type(item).__module__ not in ("builtins", "numpy") or not _are_values(inside):
                return False
        else:
            examples[type(item)] = item
    return all(
        kind in _VALUES or isinstance(item, np.generic) or kind.__module__.startswith("pandas._libs")
        for kind, item in examples.items()
    )


def _copied(series: Any, order: NDArray[np.int64]) -> Any:
    """Return the values of a column in this order, in memory that is not the input's and holds nothing else."""
    native, name = series.to_native(), series.name
    if _is_objects(series):
        items = [deepcopy(item) for item in series[order].to_list()]
        return nw.new_series(name, items, nw.Object(), backend=series.implementation)
    if series.implementation.is_pandas():
        kind = native.dtype
        if hasattr(kind, "__from_arrow__"):
            column = plain(pa.chunked_array(pa.array(native.array))).take(order)
            kind = type(kind)(column.type) if hasattr(kind, "pyarrow_dtype") else kind
            return nw.from_native(type(native)(kind.__from_arrow__(column), name=name), series_only=True)
        if series.dtype not in (nw.Categorical, nw.Enum):
            made = native.take(order).reset_index(drop=True).copy(deep=True)
            return nw.from_native(made, series_only=True)
    column = plain(_arrow(series)).take(order)
    return nw.from_arrow(pa.table({name: column}), backend=series.implementation).get_column(name)


# DuckDB.


def _duckdb_rows(relation: Any, columns: Sequence[str]) -> Any:
    kinds = dict(zip(relation.columns, map(str, relation.types), strict=True))
    listed = [_selected(name, kinds[name]) for name in columns]
    table = relation.project(", ".join(listed)).to_arrow_table()
    for place, name in enumerate(columns):
        if kinds[name] == "UUID":
            table = table.set_column(place, name, _uuids(table.column(place)))
    return nw.from_native(table)


def _selected(name: str, kind: str) -> str:
    quoted = '"' + name.replace('"', '""') + '"'
    return f"unhex(replace(CAST({quoted} AS VARCHAR), '-', '')) AS {quoted}" if kind == "UUID" else quoted


def _uuids(column: pa.ChunkedArray) -> pa.ChunkedArray:
    chunks = [pa.ExtensionArray.from_storage(pa.uuid(), chunk.cast(pa.binary(16))) for chunk in column.chunks]
    return pa.chunked_array(chunks, pa.uuid())


def _relation(relation: Any, _relaxdp_released_rows: pa.Table) -> Any:
    """Return a relation of the same connection, which finds the table by the name that it has here."""
    try:
        return relation.query("_relaxdp_unused", "SELECT * FROM _relaxdp_released_rows")
    except duckdb.CatalogException:  # a connection that may not look at Python's names
        return duckdb.from_arrow(_relaxdp_released_rows)
