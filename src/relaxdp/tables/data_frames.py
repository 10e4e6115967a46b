"""Data frames of every library: read once, as Arrow columns, and made of released rows.

Narwhals knows the libraries. It leaves to us: columns of Python objects, whose kind must be exact; UUIDs of DuckDB,
which its Arrow form writes as text; and anything else with `__arrow_c_stream__`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa

from relaxdp.errors import ColumnError, RelaxdpError
from relaxdp.lazy_imports import duckdb, pandas, polars
from relaxdp.lazy_imports import narwhals as nw
from relaxdp.sampling.arrow_columns import replace_string_views
from relaxdp.sampling.keyed_stream import get_value_kind, is_missing
from relaxdp.tables.files import BATCH_ROWS
from relaxdp.tables.interrupts import is_interrupt
from relaxdp.tables.metadata import FileDescription, parse_description, read_frame_description
from relaxdp.tables.table_columns import ColumnNames

_HINT = "Pass a pandas, polars or pyarrow frame, a DuckDB relation, or the path of a file."


def rename_columns_to_text(frame: Any) -> tuple[Any, dict[str, int]]:
    """Return a pandas frame whose columns are named by text, and what those were that were named by numbers.

    Column 3 is "3" in a release, unless the frame has both.
    """
    if not (type(frame).__module__.startswith("pandas") and hasattr(frame, "columns")):
        return frame, {}
    numbers = {str(name): name for name in frame.columns if type(name) is int}
    if not numbers or any(text in frame.columns for text in numbers):
        return frame, {}
    index = sys.modules["pandas"].Index  # objects, because pandas' own text cannot hold half a letter
    return frame.set_axis(index([convert_name_to_text(name) for name in frame.columns], dtype=object), axis=1), numbers


def convert_name_to_text(name: Any) -> Any:
    """Return a column's name as text, where it is a whole number."""
    return str(name) if type(name) is int else name


class DataFrameReader:
    """A data frame of any library. Lazy ones are executed once, so that all columns are of the same rows."""

    def __init__(self, native: Any) -> None:
        self.native = native
        frame, self.numbers = rename_columns_to_text(native)
        self._reader: Any = None
        self._rows: Any = None
        self._types: dict[str, Any] = {}
        self._found: Any = _try_convert_to_narwhals(frame)
        place = "column_names" if hasattr(native, "column_names") else "columns"
        is_polars = hasattr(native, "collect_schema")
        own = None if is_polars else return_none_on_error(lambda: list(getattr(native, place)))
        if own is not None and len(set(own)) < len(own):
            raise ColumnError("Two columns of the data frame have the same name.", hint="Give them different names.")
        if self._found is None:
            self._reader = return_none_on_error(lambda: pa.RecordBatchReader.from_stream(native))
            if self._reader is None:
                raise ColumnError("Expected a data frame, got {type}.", hint=_HINT, type=type(native).__name__)
            self.library, self.rows, names = "pyarrow", None, self._reader.schema.names
        else:
            names = return_none_on_error(lambda: self._found.collect_schema().names())
            if names is None:
                raise ColumnError(
                    "The names of the columns of the data frame cannot be read.",
                    hint="If it comes from a database, check that the connection is open.",
                )
            is_lazy, self.library = issubclass(type(self._found), nw.LazyFrame), str(self._found.implementation)
            self.library += "-lazy" if is_lazy and self.library == "polars" else ""
            self.rows = None if is_lazy else len(self._found)
        index = list(native.index.names) if self.library == "pandas" else []
        shown = ColumnNames.from_frame([self.numbers.get(name, name) for name in names], index)
        self.all_names = replace(shown, names=names)
        self.names = self.all_names.usable_names

    @property
    def report_description(self) -> FileDescription | None:
        """The description of the reports in the frame, if relaxdp released it."""
        own = getattr(self.native, "description", None)  # of a `Release`
        if isinstance(own, FileDescription):
            return own
        if self._reader is not None:
            return parse_description(self._reader.schema.metadata or {})
        return read_frame_description(self.native)

    def get_arrow_type(self, name: str) -> Any:
        """Return the type of a column as Arrow has it, without executing what is lazy."""
        if name not in self._types:
            self._types[name] = self._find_type(name)
        return self._types[name]

    def _find_type(self, name: str) -> Any:
        if self._rows is not None or self.library not in ("duckdb", "polars-lazy"):
            return self._reader.schema.field(name).type if self._reader is not None else self._convert_column(name).type
        if self.library == "duckdb":
            made = return_none_on_error(lambda: _read_relation(self.native.limit(0), [name]))
        else:
            made = return_none_on_error(lambda: polars.DataFrame(schema=self.native.select(name).collect_schema()))
        if made is None:
            raise _make_unreadable_error(name, "")
        return _convert_series(nw.from_native(made).get_column(name)).type  # type: ignore[union-attr]

    def read_columns(self, columns: Sequence[str]) -> None:
        """Read these columns, and execute what is lazy."""
        if self._reader is not None:
            rows = return_none_on_error(lambda: nw.from_native(_read_stream(self._reader, columns)))
        elif self.library == "duckdb":
            rows = return_none_on_error(lambda: nw.from_native(_read_relation(self.native, columns)))
        elif self.library == "polars-lazy":
            rows = return_none_on_error(lambda: self._found.select(*columns).collect())
        else:
            rows = self._found.select(*columns)
        if rows is None:  # raised here, because the reason may quote a row
            raise ColumnError(
                "The lazy data frame cannot be executed.",
                hint="Execute it yourself, such as with frame.collect(), to see why. Then pass the result.",
            )
        self._rows, self.rows = rows, len(rows)

    def to_arrow(self, columns: Sequence[str]) -> pa.Table:
        """Return columns that were read as an Arrow table, without a copy where that is possible."""
        return pa.table({name: self._convert_column(name) for name in columns})

    def _convert_column(self, name: str) -> pa.ChunkedArray:
        rows = self._found if self._rows is None else self._rows
        series = rows.get_column(name)
        found = return_none_on_error(lambda: _convert_series(series))
        if found is None:
            raise _make_unreadable_error(name, type(series.dtype).__name__)
        return found


def _try_convert_to_narwhals(native: Any) -> Any | None:
    """Convert a data frame to that of narwhals; None for anything else, which may be a stream."""
    found: Any = None if native is None else return_none_on_error(lambda: nw.from_native(native, pass_through=True))
    if not issubclass(type(found), nw.LazyFrame | nw.DataFrame):
        return None
    is_known = issubclass(type(found), nw.DataFrame) or str(found.implementation) in ("polars", "duckdb")
    return found if is_known else None


def _make_unreadable_error(name: str, kind: str) -> ColumnError:
    return ColumnError(
        "The column {name!r} holds values of several types, or of a type that cannot be released{kind}.",
        hint="Convert the column to whole numbers, numbers, text, bytes or UUIDs, such as df[{name!r}].astype(str).",
        name=name,
        kind=f" ({kind})" if kind else "",
    )


def return_none_on_error(work: Callable[[], Any]) -> Any | None:
    """Return what the work returns, and None on an error, whose message would quote cells."""
    try:
        return work()
    except (MemoryError, RelaxdpError):
        raise
    except Exception as problem:
        if is_interrupt(problem):
            raise KeyboardInterrupt from None
        return None


# Columns as Arrow.


def _convert_series(series: Any) -> pa.ChunkedArray | None:
    native = series.to_native()
    if series.dtype == nw.Object or str(getattr(native, "dtype", "")) == "object":
        array = _convert_objects(series.to_list())
    else:
        array = native if isinstance(native, pa.ChunkedArray) else series.to_arrow()
    if array is None:
        return None
    # Arrow cannot sort or take text and bytes in the form of views.
    return replace_string_views(array if isinstance(array, pa.ChunkedArray) else pa.chunked_array([array]))


def _convert_objects(items: list[Any]) -> pa.Array | None:
    """Convert Python objects to an Arrow array of their one kind; Arrow itself would make bytes of text and bytes."""
    examples = {type(item): item for item in items if not is_missing(item)}.values()
    kinds = {"boolean" if isinstance(item, bool) else get_value_kind(item) for item in examples}
    if kinds == {"uuid"}:
        storage = pa.array([None if is_missing(item) else item.bytes for item in items], pa.binary(16))
        return pa.ExtensionArray.from_storage(pa.uuid(), storage)
    if kinds == {"integer"}:
        largest = max(int(item) for item in items if not is_missing(item))
        return pa.array(items, pa.uint64() if largest >= 2**63 else pa.int64(), from_pandas=True)
    if len(kinds) > 1 and kinds != {"integer", "number"}:
        return None
    return pa.array(items, from_pandas=True)


def _read_stream(reader: Any, columns: Sequence[str]) -> pa.Table:
    names = list(columns)
    schema = pa.schema([reader.schema.field(name) for name in names])
    return pa.Table.from_batches((batch.select(names) for batch in reader), schema)


# DuckDB.


_RELATION_SQL = {"HUGEINT": "CAST({} AS BIGINT)", "UUID": "unhex(replace(CAST({} AS VARCHAR), '-', ''))"}
"""Columns of DuckDB of which Arrow would get something else: text of a UUID, and decimals of a sum."""


def open_relation(relation: Any, positions: Sequence[int]) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
    """Open a DuckDB relation: return schema and rows of some columns, by their positions, as names may repeat."""
    kinds = [str(relation.types[place]) for place in positions]
    listed = [
        f"{_RELATION_SQL.get(kind, '{}').format(f'#{place + 1}')} AS c{place}"
        for place, kind in zip(positions, kinds, strict=True)
    ]
    reader = relation.project(", ".join(listed)).to_arrow_reader(BATCH_ROWS)
    types = [pa.uuid() if kind == "UUID" else each.type for kind, each in zip(kinds, reader.schema, strict=True)]
    schema = pa.schema([(relation.columns[place], kind) for place, kind in zip(positions, types, strict=True)])

    def convert(column: Any, kind: str) -> Any:
        return pa.ExtensionArray.from_storage(pa.uuid(), column.cast(pa.binary(16))) if kind == "UUID" else column

    return schema, (
        pa.RecordBatch.from_arrays(list(map(convert, batch.columns, kinds)), schema=schema) for batch in reader
    )


def _read_relation(relation: Any, columns: Sequence[str]) -> pa.Table:
    schema, batches = open_relation(relation, [relation.columns.index(name) for name in columns])
    return pa.Table.from_batches(batches, schema)


# Released rows in the library of the data.


def convert_table(table: pa.Table, library: str, template: Any = None) -> Any:
    """Convert released rows to a frame of a library, like the one of which `make_template` made the template."""
    if library == "pandas":
        return _convert_to_pandas(table, template)
    if library in ("polars", "polars-lazy"):
        made: Any = polars.from_arrow(table)
        for name in (field.name for field in table.schema if field.type == pa.uuid()):
            # Polars has no such type; they came as objects.
            made = made.with_columns(polars.Series(name, table[name].to_pylist(), dtype=polars.Object))
        return made.lazy() if library == "polars-lazy" else made
    if library == "duckdb":
        return _make_relation(None, table) if template is None else template
    if library in ("pyarrow", "file"):
        return table
    return nw.from_arrow(table, backend=nw.Implementation.from_string(library)).to_native()  # type: ignore[arg-type]


def make_template(library: str, frame: Any, table: Any) -> Any:
    """Return the template of a frame for `convert_table`, without its rows, since releases carry no true values."""
    if library == "duckdb":  # a relation of the same connection, with the released rows
        return None if table is None else _make_relation(frame, table)
    if library != "pandas" or frame is None:
        return None
    # Of categories, which are values of people, only the word remains; of all others the type.
    kinds = [object if isinstance(kind, pandas.CategoricalDtype) else kind for kind in frame.dtypes]
    empty = pandas.DataFrame({place: pandas.Series([], dtype=kind) for place, kind in enumerate(kinds)})
    return empty.set_axis(frame.columns.copy(deep=True), axis=1)


def _convert_to_pandas(table: pa.Table, template: Any) -> Any:
    """Return a pandas frame. Columns of nullable types keep them; whole numbers never become floating-point ones."""
    frame, numbers = rename_columns_to_text(template)
    known = {} if template is None else dict(frame.dtypes.items())
    made = {}
    for name, column in zip(table.column_names, table.columns, strict=True):
        # Packed reports are bytes, also those of a column of text.
        kind = None if pa.types.is_fixed_size_binary(column.type) else known.get(name)
        is_integer = pa.types.is_integer(column.type)
        if kind is not None and hasattr(kind, "__from_arrow__") and not isinstance(kind, pandas.CategoricalDtype):
            kind = type(kind)(column.type) if hasattr(kind, "pyarrow_dtype") else kind
            made[name] = pandas.Series(kind.__from_arrow__(column))
        elif is_integer and column.null_count:
            made[name] = pandas.Series(pandas.Int64Dtype().__from_arrow__(column.cast(pa.int64())))
        else:
            made[name] = column.to_pandas()
    result = pandas.DataFrame(made)
    return result.rename(columns=numbers) if numbers else result


def _make_relation(relation: Any, _relaxdp_released_rows: pa.Table) -> Any:
    """Return a DuckDB relation of released rows, in the connection of another relation; it finds them by name."""
    if relation is not None:
        try:
            return relation.query("_relaxdp_unused", "SELECT * FROM _relaxdp_released_rows")
        except duckdb.Error:  # a connection that is closed, or may not look at Python's names
            pass
    return duckdb.from_arrow(_relaxdp_released_rows)
