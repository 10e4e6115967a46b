"""Columns of a table: their names, which may be data, and their cells as the kind of value that was declared."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from difflib import get_close_matches
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from relaxdp.errors import ColumnError, IdError, ValuesError
from relaxdp.mechanisms.base import Mechanism
from relaxdp.mechanisms.bloom import Bloom
from relaxdp.mechanisms.declared_values import describe_column_type
from relaxdp.mechanisms.numeric import RangeMechanism
from relaxdp.sampling.arrow_columns import decode_dictionary
from relaxdp.sampling.keyed_stream import is_utf8_encodable

# A table with one column whose name contains one of these is probably split at another character.
_SEPARATORS = {";": "semicolons", "\t": "tabs", "|": "vertical bars"}
_MAX_SHOWN = 12
_DECIMAL_COMMA = re.compile(r"\s*[+-]?\d+,\d+\s*")


def suggest_read_csv(option: str) -> str:
    """Return a hint that shows how DuckDB reads a CSV file with this option, which is not a cell.

    >>> print(suggest_read_csv("decimal_separator=','"))
    Add --sql "FROM read_csv(getvariable('input'), decimal_separator=',')" to the command. In Python pass \
duckdb.sql("FROM read_csv('FILE', decimal_separator=',')").
    """
    return (
        f"Add --sql \"FROM read_csv(getvariable('input'), {option})\" to the command. In Python pass "
        f"duckdb.sql(\"FROM read_csv('FILE', {option})\")."
    )


@dataclass(frozen=True, slots=True)
class ColumnNames:
    """All column names of a table, and where to look at them if they may be data and are not shown."""

    names: Sequence[Any]
    seen_in: str | None = None
    """Where a person can look at names that may be data; None where they are a schema, and are shown."""
    index: Sequence[Any] = ()
    """The names of a pandas index, where a column may be looked for."""

    @classmethod
    def from_frame(cls, names: Sequence[Any], index: Sequence[Any] = ()) -> ColumnNames:
        """Return the names of a data frame. Numbers among them show that it may have no header."""
        is_typed = all(isinstance(name, str) for name in names)
        return cls(names, None if is_typed else "the data frame's own list of columns", index)

    @property
    def usable_names(self) -> list[str]:
        """The names that are text in UTF-8: pandas also has columns named by a number or by half a letter."""
        return [name for name in self.names if isinstance(name, str) and is_utf8_encodable(name)]

    def require_column(self, name: str, other_names: Sequence[str] = ()) -> None:
        """Reject a name that the table does not have, or has twice.

        Where one of the `other_names` is a column, the names are a header and can be shown.
        """
        check_column_name(name)
        times = self.usable_names.count(name)
        if times > 1:
            raise ColumnError(
                "The table has {times} columns named {column!r}.",
                hint="Give them different names.",
                times=times,
                column=name,
            )
        if times:
            return
        if name in self.index:
            raise ColumnError(
                "{column!r} is the index of the data frame, not a column.",
                hint="Pass frame.reset_index().",
                column=name,
            )
        first = self.names[0] if len(self.names) == 1 else None
        mark = next((mark for mark in _SEPARATORS if isinstance(first, str) and mark in first), None)
        if mark is not None:
            raise ColumnError(
                "The table has no column {column!r}: its fields seem to be separated by {mark}.",
                hint=suggest_read_csv(f"delim={mark!r}"),
                mark=_SEPARATORS[mark],
                column=name,
            )
        is_header = any(isinstance(other, str) and other in self.usable_names for other in other_names)
        raise ColumnError(
            "The table has no column {column!r}.",
            hint="{suggestion}",
            suggestion=suggest_name(name, self.usable_names)
            if is_header
            else self.format_hint(name, self.usable_names),
            column=name,
        )

    def format_hint(self, wanted: str, candidates: Sequence[str]) -> str:
        """Return a hint with the most similar of some column names, or all, unless they may be data."""
        if self.seen_in is None:
            return suggest_name(wanted, candidates)
        columns = f"{len(self.names):,} column{'' if len(self.names) == 1 else 's'}"
        return (
            f"The table has {columns}, whose names are not shown, because without a header they are data. Look at "
            f"{self.seen_in}."
        )


def check_column_name(name: object) -> None:
    """Reject a column name that is not text. It is not shown, because a whole column is passed by mistake, too."""
    if not isinstance(name, str):
        raise ColumnError(
            "Expected the name of a column (str), got {type}.",
            hint='Pass a name such as "patient".',
            type=type(name).__name__,
        )


def suggest_name(wanted: str, names: Sequence[str]) -> str:
    """Return a hint with the most similar of some names, or with all of them."""
    near = get_close_matches(wanted, names, 1)
    if near:
        return f"Did you mean {near[0]!r}?"
    more = f" and {len(names) - _MAX_SHOWN:,} more" if len(names) > _MAX_SHOWN else ""
    return f"Choose one of: {', '.join(map(repr, names[:_MAX_SHOWN]))}{more}." if names else ""


def check_columns(names: ColumnNames, id_column: str, released: Sequence[str], passthrough: Sequence[str]) -> None:
    """Reject names that a table does not have, or that are given twice."""
    wanted = (id_column, *released, *passthrough)
    for name in wanted:
        names.require_column(name, wanted)
    for name in wanted:
        if wanted.count(name) > 1:
            raise ColumnError(
                "The column {column!r} is named twice. A column is either the id, or released, or passed through.",
                hint="Name it in only one of id= (--id), columns= (--column) and passthrough= (--passthrough).",
                column=name,
            )


def get_id_type(arrow_type: Any) -> str:
    """Return the type of ids as files and ledgers record it: 17 and "17" are different people."""
    kind = get_plain_type(arrow_type)
    if pa.types.is_integer(kind):
        return "integer"
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return "text"
    if kind == pa.uuid():
        return "uuid"
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_fixed_size_binary(kind):
        return "bytes"
    hint = "Convert the ids to text, or name another column."
    if pa.types.is_floating(kind):
        hint = 'pandas makes such a column of whole numbers where an id is missing. Convert it with .astype("Int64").'
    elif pa.types.is_decimal(kind):
        hint = "In SQL convert the column with CAST(... AS BIGINT)."
    raise IdError(
        "The column of the ids is of type {kind}. Ids must be whole numbers, text, bytes or UUIDs.",
        hint=hint,
        kind=kind,
    )


def convert_declared_values(values: Sequence[Any], arrow_type: Any) -> tuple[Any, ...]:
    """Convert declared values to the kind of a column: texts to whole numbers for a column of them."""
    if not pa.types.is_integer(get_plain_type(arrow_type)):
        return tuple(values)
    try:
        return tuple(int(value) if isinstance(value, str) else value for value in values)
    except ValueError:
        pass
    raise ValuesError(
        "The column holds whole numbers, but a declared value is not a whole number.",
        hint="Declare whole numbers such as [0, 1, 2], or convert the column to text.",
    )


def convert_column_for_mechanism(column: Any, mechanism: Mechanism, first_row: int = 0, name: str = "") -> Any:
    """Convert cells to the kind of what is declared: text to numbers for a range; true, false and dates to text.

    A boolean column takes the values `true` and `false`, a date column those like `2026-01-31`: so text of this
    spelling and a typed column give the same reports.
    """
    if isinstance(mechanism, RangeMechanism):
        return convert_to_numbers(column, first_row, name)
    kind = get_plain_type(column.type)
    is_boolean = pa.types.is_boolean(kind)
    if isinstance(mechanism, Bloom) or not (is_boolean or pa.types.is_date(kind)):
        return column
    labels = [each for each in mechanism.labels if isinstance(each, str)]
    if not any(each in ("true", "false") if is_boolean else _is_iso_date(each) for each in labels):
        raise ValuesError(
            "{column} holds {kind}, but no declared value is of this type.",
            hint="Declare the values 'true' and 'false'." if is_boolean else "Declare dates such as '2026-01-31'.",
            column=repr(name) if name else "The column",
            kind=describe_column_type(kind),
        )
    return decode_dictionary(column).cast(pa.string())


def convert_to_numbers(column: Any, first_row: int, name: str = "") -> Any:
    """Convert a column to numbers; an error names the row, never its content."""
    column = decode_dictionary(column)
    if pa.types.is_integer(column.type) or pa.types.is_floating(column.type):
        return column
    numbers = _try_cast_to_float(column)
    if numbers is not None:
        return numbers
    row = next((row for row in range(len(column)) if _try_cast_to_float(column[row : row + 1]) is None), 0)
    cell = column[row].as_py()
    if isinstance(cell, str) and _DECIMAL_COMMA.fullmatch(cell):
        raise ValuesError(
            "The number has a decimal comma, so the column is read as text.",
            hint=suggest_read_csv("decimal_separator=','"),
            row=first_row + row + 1,
            column=name,
        )
    raise ValuesError(
        "The value is not a number, and the column was declared as a range of numbers.",
        hint="Declare a list of its values instead of a range, or convert the column to numbers.",
        row=first_row + row + 1,
        column=name,
    )


def _try_cast_to_float(column: Any) -> Any | None:
    try:
        return column.cast(pa.float64())
    except pa.ArrowException:
        return None


def _is_iso_date(value: str) -> bool:
    try:
        return date.fromisoformat(value).isoformat() == value
    except ValueError:
        return False


# Extensions that say nothing but their name, or a word of a fixed list.
_KNOWN = ("arrow.uuid", "arrow.json", "arrow.bool8", "pandas.interval", "pandas.period")


def get_plain_type(arrow_type: Any) -> Any:
    """Return the plain type of a column, which it has after `remove_hidden_values`."""
    if pa.types.is_dictionary(arrow_type) or pa.types.is_run_end_encoded(arrow_type):
        return get_plain_type(arrow_type.value_type)
    if isinstance(arrow_type, pa.BaseExtensionType):
        return arrow_type if arrow_type.extension_name in _KNOWN else get_plain_type(arrow_type.storage_type)
    if pa.types.is_string_view(arrow_type):
        return pa.large_string()
    if pa.types.is_binary_view(arrow_type):
        return pa.large_binary()
    if pa.types.is_struct(arrow_type):
        return pa.struct([pa.field(each.name, get_plain_type(each.type)) for each in arrow_type])
    if pa.types.is_map(arrow_type):
        return pa.map_(get_plain_type(arrow_type.key_type), get_plain_type(arrow_type.item_type))
    if pa.types.is_fixed_size_list(arrow_type):
        return pa.list_(get_plain_type(arrow_type.value_type), arrow_type.list_size)
    if pa.types.is_large_list(arrow_type) or pa.types.is_large_list_view(arrow_type):
        return pa.large_list(get_plain_type(arrow_type.value_type))
    if pa.types.is_list(arrow_type) or pa.types.is_list_view(arrow_type):
        return pa.list_(get_plain_type(arrow_type.value_type))
    if pa.types.is_union(arrow_type):
        raise ColumnError(
            "A column of an Arrow union type cannot be released: it may keep values that no row shows.",
            hint="Convert the column to one type, such as text.",
        )
    return arrow_type


def remove_hidden_values(column: Any) -> Any:
    """Remove values that are hidden in the type or the buffers of a column, and return the column."""
    if isinstance(column, pa.ChunkedArray):
        return pa.chunked_array([remove_hidden_values(chunk) for chunk in column.chunks], get_plain_type(column.type))
    kind, plain_kind = column.type, get_plain_type(column.type)
    if pa.types.is_dictionary(kind):
        return remove_hidden_values(column.dictionary_decode())
    if pa.types.is_run_end_encoded(kind):
        return remove_hidden_values(pc.run_end_decode(column))
    if isinstance(kind, pa.BaseExtensionType):
        storage = remove_hidden_values(column.storage)
        return storage if plain_kind != kind else pa.ExtensionArray.from_storage(kind, storage)
    if not pa.types.is_nested(kind):
        column = column if plain_kind == kind else column.cast(plain_kind)
        # Dropping the nulls drops the values under them.
        return column.drop_null().take(_compute_valid_positions(column)) if column.null_count else column
    mask = column.is_null()
    if pa.types.is_struct(kind):
        # Flattened, so that nothing stays in a field where the whole struct is missing.
        children = [remove_hidden_values(child) for child in column.flatten()]
        return pa.StructArray.from_arrays(children, fields=list(plain_kind), mask=mask)
    if pa.types.is_fixed_size_list(kind):
        values = remove_hidden_values(column.flatten()).take(_compute_valid_positions(column, kind.list_size))
        return pa.FixedSizeListArray.from_arrays(values, type=plain_kind, mask=mask)
    if pa.types.is_map(kind):
        return _rebuild_map(column, plain_kind)
    lengths = pc.fill_null(pc.list_value_length(column), 0)
    made = pa.LargeListArray if pa.types.is_large_list(plain_kind) else pa.ListArray
    values = remove_hidden_values(column.flatten())
    return made.from_arrays(_compute_offsets(lengths), values, type=plain_kind, mask=mask)


def make_record_batch(columns: Sequence[Any], schema: Any) -> Any:
    """Return a batch of columns that are plain, each as its type in the schema: a sort may give it another one."""
    try:
        return pa.RecordBatch.from_arrays(columns, schema=schema)
    except pa.ArrowException:
        found = [field for field, each in zip(schema, columns, strict=True) if field.type != each.type]
    raise ColumnError(
        "The rows are sorted by id, and the pass-through column {name!r} has a type that cannot be sorted: {type}.",
        hint="Convert the column {name!r} to text.",
        name=found[0].name if found else None,
        type=found[0].type if found else None,
    )  # no context


def _rebuild_map(column: Any, plain_kind: Any) -> Any:
    """Rebuild a map. Arrow flattens lists by itself, but not maps: entries of one that is missing stay behind."""
    offsets, there = np.asarray(column.offsets), column.is_valid().to_numpy(zero_copy_only=False)
    chosen = pa.array(np.repeat(there, np.diff(offsets)))
    keys, items = (
        remove_hidden_values(each[offsets[0] : offsets[-1]].filter(chosen))
        if len(column)
        else remove_hidden_values(each[:0])
        for each in (column.keys, column.items)
    )
    offsets = _compute_offsets(np.diff(offsets) * there)
    return pa.MapArray.from_arrays(offsets, keys, items, type=plain_kind, mask=column.is_null())


def _compute_offsets(lengths: Any) -> Any:
    return np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)


def _compute_valid_positions(column: Any, size: int = 1) -> Any:
    """Return the position of each row, or of each element of lists of one size, among those that are not missing."""
    there = np.repeat(column.is_valid().to_numpy(zero_copy_only=False), size)
    return pa.array(np.cumsum(there) - 1, mask=~there)


def get_storage_column(column: Any) -> Any:
    """Return the storage of a column: the bytes of UUIDs, which Arrow cannot compare, or else the column."""
    if isinstance(column, pa.ChunkedArray) and isinstance(column.type, pa.BaseExtensionType):
        return pa.chunked_array([chunk.storage for chunk in column.chunks], column.type.storage_type)
    return getattr(column, "storage", column)
