"""Columns that leave as they are, with the values of their rows and nothing else.

A dictionary names the values of people who are not here, and the order of its entries can tell the truths of those who
are; metadata of a field inside a struct, or of an extension, may say anything; and the buffers of a column with nulls
keep the values that were there before they were masked. So each of these is rebuilt, at any depth.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from relaxdp.errors import ColumnError

# Extensions that say nothing but their name, or a word of a fixed list.
_KNOWN = ("arrow.uuid", "arrow.json", "arrow.bool8", "pandas.interval", "pandas.period")


def plain_type(kind: Any) -> Any:
    """Return the type of a column that `plain` has been through."""
    if pa.types.is_dictionary(kind) or pa.types.is_run_end_encoded(kind):
        return plain_type(kind.value_type)
    if isinstance(kind, pa.BaseExtensionType):
        return kind if kind.extension_name in _KNOWN else plain_type(kind.storage_type)
    if pa.types.is_string_view(kind):
        return pa.large_string()
    if pa.types.is_binary_view(kind):
        return pa.large_binary()
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(each.name, plain_type(each.type)) for each in kind])
    if pa.types.is_map(kind):
        return pa.map_(plain_type(kind.key_type), plain_type(kind.item_type))
    if pa.types.is_fixed_size_list(kind):
        return pa.list_(plain_type(kind.value_type), kind.list_size)
    if pa.types.is_large_list(kind) or pa.types.is_large_list_view(kind):
        return pa.large_list(plain_type(kind.value_type))
    if pa.types.is_list(kind) or pa.types.is_list_view(kind):
        return pa.list_(plain_type(kind.value_type))
    if pa.types.is_union(kind):
        raise ColumnError(
            "Columns of a union type cannot be released: they keep values of types that a row does not have.",
            hint="Convert the column to one type, such as text.",
        )
    return kind


def plain(column: Any) -> Any:
    """Return a column with the same values, and nothing else in its type or its buffers."""
    if isinstance(column, pa.ChunkedArray):
        return pa.chunked_array([plain(chunk) for chunk in column.chunks], plain_type(column.type))
    kind, plain_kind = column.type, plain_type(column.type)
    if pa.types.is_dictionary(kind):
        return plain(column.dictionary_decode())
    if pa.types.is_run_end_encoded(kind):
        return plain(pc.run_end_decode(column))
    if isinstance(kind, pa.BaseExtensionType):
        storage = plain(column.storage)
        return storage if plain_kind != kind else pa.ExtensionArray.from_storage(kind, storage)
    if not pa.types.is_nested(kind):
        column = column if plain_kind == kind else column.cast(plain_kind)
        # Dropping the nulls drops the values under them.
        return column.drop_null().take(_places(column)) if column.null_count else column
    mask = column.is_null()
    if pa.types.is_struct(kind):
        # Flattened, so that nothing stays in a field where the whole struct is missing.
        children = [plain(child) for child in column.flatten()]
        return pa.StructArray.from_arrays(children, fields=list(plain_kind), mask=mask)
    if pa.types.is_fixed_size_list(kind):
        values = plain(column.flatten()).take(_places(column, kind.list_size))
        return pa.FixedSizeListArray.from_arrays(values, type=plain_kind, mask=mask)
    if pa.types.is_map(kind):
        return _plain_map(column, plain_kind)
    lengths = pc.fill_null(pc.list_value_length(column), 0)
    made = pa.LargeListArray if pa.types.is_large_list(plain_kind) else pa.ListArray
    return made.from_arrays(_offsets(lengths), plain(column.flatten()), type=plain_kind, mask=mask)


def plain_batch(columns: Sequence[Any], schema: Any) -> Any:
    """Return a batch of columns that are plain, each as its type in the schema: a sort may give it another one."""
    try:
        return pa.RecordBatch.from_arrays(columns, schema=schema)
    except pa.ArrowException:
        pass
    raise ColumnError("A pass-through column does not survive a sort.", hint="Convert it to text.")  # no context


def _plain_map(column: Any, plain_kind: Any) -> Any:
    """Rebuild a map. Arrow flattens lists by itself, but not maps: entries of one that is missing stay behind."""
    offsets, there = np.asarray(column.offsets), column.is_valid().to_numpy(zero_copy_only=False)
    chosen = pa.array(np.repeat(there, np.diff(offsets)))
    keys, items = (
        plain(each[offsets[0] : offsets[-1]].filter(chosen)) if len(column) else plain(each[:0])
        for each in (column.keys, column.items)
    )
    return pa.MapArray.from_arrays(
        _offsets(np.diff(offsets) * there), keys, items, type=plain_kind, mask=column.is_null()
    )


def _offsets(lengths: Any) -> Any:
    return np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)


def _places(column: Any, size: int = 1) -> Any:
    """Return where each row, or each element of lists of one size, is found among those that are not missing."""
    there = np.repeat(column.is_valid().to_numpy(zero_copy_only=False), size)
    return pa.array(np.cumsum(there) - 1, mask=~there)
