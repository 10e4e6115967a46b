"""Columns of any library become Arrow arrays once, at the entrance, and ids are read out of Arrow arrays."""

from __future__ import annotations

from collections.abc import Sequence, Sized
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from relaxdp.errors import ColumnError, IdError, RelaxdpError
from relaxdp.sampling.kernel.c_library import Texts, get_kernel
from relaxdp.sampling.keyed_stream import (
    BYTES,
    CHUNK,
    NO_BYTES,
    NO_OFFSETS,
    TEXT,
    UUID,
    Ids,
    get_value_kind,
    is_missing,
    is_utf8_encodable,
    warn_not_nfc,
)

_NOT_ASCII = np.uint8(0x80)

_RULE = "The ids are of different kinds. All ids must be whole numbers, or all text, bytes or UUIDs."
_TYPE = "An id must be a whole number, text, bytes or a UUID, not {type}."
_FLOAT = "An id must not be a floating-point number. Its digits depend on how it was read or rounded."
_TOO_LARGE = "An id is too large. The whole numbers of an id column must fit into 64 bits, signed or unsigned."
_AS_TEXT = "Convert the ids to text, such as df['patient'].astype(str)."
_AS_INTEGER = "Convert the ids to whole numbers. In pandas, df['patient'].astype('Int64') keeps missing ids missing."


def to_arrow(column: Any) -> pa.Array:
    """Return a list, NumPy array, pandas or polars series as one Arrow array. Dictionaries are kept.

    Whatever is missing in a list (None, NaN, NaT) is null. No exception shows a value, nor does its context.
    """
    return _convert_column(column, ColumnError)


def ids_to_arrow(column: Any) -> pa.Array:
    """Return a column of ids as one Arrow array, without a dictionary."""
    return decode_dictionary(_convert_column(column, IdError))


def _convert_column(column: Any, error: type[RelaxdpError]) -> pa.Array:
    if isinstance(column, pa.Array):
        return replace_string_views(column)
    if isinstance(column, pa.ChunkedArray):
        return replace_string_views(column.combine_chunks())
    library = type(column).__module__.partition(".")[0]
    if library == "pandas" and not hasattr(column, "iloc") and hasattr(column, "to_series"):
        column = column.to_series()
    is_other = isinstance(column, str | bytes | set | dict | type) or not hasattr(column, "__len__")
    if getattr(column, "ndim", 1) != 1 or is_other:
        raise ColumnError(
            "The column must be a list, an array or a series of one dimension, not {type}.",
            hint='Pass one column, such as df["age"] or [34, 51].',
            type=type(column).__name__,
        )
    if isinstance(column, np.ma.MaskedArray):
        raise ColumnError(
            "The column is a masked array. The values behind its mask would be released.",
            hint="Replace masked values with column.filled(...), or drop them with column.compressed().",
        )
    if isinstance(column, np.ndarray):
        found = _convert_numpy(column)
    elif library == "polars":
        # The Arrow form of a polars column of Python objects is their addresses.
        found = _convert_objects(column.to_list()) if str(column.dtype) == "Object" else column.to_arrow()
    elif library == "pandas" and column.dtype != object:
        found = _try_pyarrow(column, from_pandas=True)
    else:
        found = _convert_objects(list(column))
    if found is None:
        raise _make_conversion_error(column, error)
    return replace_string_views(found.combine_chunks() if isinstance(found, pa.ChunkedArray) else found)


def replace_string_views(array: Any) -> Any:
    """Return an array or a column of views as text or bytes with offsets."""
    if pa.types.is_string_view(array.type):
        return array.cast(pa.large_string())
    return array.cast(pa.large_binary()) if pa.types.is_binary_view(array.type) else array


def _convert_numpy(column: NDArray[Any]) -> pa.Array | None:
    if not column.dtype.isnative:
        column = column.astype(column.dtype.newbyteorder("="))
    if column.dtype.kind in "US" and len(column):
        letters = get_code_points(column)
        if column.dtype.kind == "U" and (found := _make_ascii_array(letters)) is not None:
            return found
        nul = letters == 0
        if (nul[:, :-1] & ~nul[:, 1:]).any():  # Arrow would cut the text at its first NUL
            return _convert_objects(column.tolist())
    if column.dtype.kind in "OT":
        return _convert_objects(column.tolist())
    return _try_pyarrow(column.astype(np.float64) if column.dtype == np.longdouble else column)


def _convert_objects(items: Sequence[Any]) -> pa.Array | None:
    """Return Python objects of one kind; None for others."""
    examples = {type(item): item for item in items}
    if not {str, int, bytes}.issuperset(examples):
        items = [None if is_missing(item) else item for item in items]
        examples = {type(item): item for item in items if item is not None}
    kinds = {get_value_kind(example) for example in examples.values()}
    if kinds == {"integer"}:
        return _convert_integers(items)
    if kinds == {"text"}:
        if not all(is_utf8_encodable(item) for item in items if item):
            return None
        return _make_text_or_bytes_array(pa.large_string(), items, [(item or "").encode() for item in items])
    if kinds == {"bytes"}:
        return _make_text_or_bytes_array(pa.large_binary(), items, [item or b"" for item in items])
    if kinds == {"uuid"}:
        data = b"".join(bytes(16) if item is None else item.bytes for item in items)
        return pa.ExtensionArray.from_storage(pa.uuid(), _make_array_from_buffers(pa.binary(16), items, data))
    if kinds <= {"integer", "number"} and kinds:
        is_exact = all(abs(int(item)) <= 2**53 for item in items if isinstance(item, int | np.integer))
        return _make_number_array(pa.float64(), items) if is_exact else None
    return _try_pyarrow(items) if len(examples) <= 1 else None


def _convert_integers(items: Sequence[Any]) -> pa.Array | None:
    known = [int(item) for item in items if item is not None]
    low, high = min(known), max(known)
    if low < -(2**63) or high >= 2**64 or (low < 0 and high >= 2**63):  # NumPy 1 would wrap them around
        return None
    return _make_number_array(pa.uint64() if high >= 2**63 else pa.int64(), items)


# `pa.array` of Python objects, and `Array.to_numpy`, import pandas where it is installed, which takes 0.4 seconds.


def _make_number_array(arrow_type: pa.DataType, items: Sequence[Any]) -> pa.Array | None:
    try:
        numbers = np.array([0 if item is None else item for item in items], arrow_type.to_pandas_dtype())
    except (OverflowError, TypeError, ValueError):
        return None
    return _make_array_from_buffers(arrow_type, items, numbers)


def _make_text_or_bytes_array(arrow_type: pa.DataType, items: Sequence[Any], payloads: Sequence[bytes]) -> pa.Array:
    offsets = np.zeros(len(items) + 1, np.int64)
    np.cumsum([len(each) for each in payloads], out=offsets[1:])
    return _make_array_from_buffers(arrow_type, items, offsets, b"".join(payloads))


def _make_array_from_buffers(arrow_type: pa.DataType, items: Sequence[Any], *data: Any) -> pa.Array:
    present = np.array([item is not None for item in items])
    validity = None if present.all() else pa.py_buffer(np.packbits(present, bitorder="little"))
    return pa.Array.from_buffers(arrow_type, len(items), [validity, *map(pa.py_buffer, data)])


def decode_dictionary(array: pa.Array) -> pa.Array:
    """Return an array without a dictionary."""
    return array.dictionary_decode() if pa.types.is_dictionary(array.type) else array


def find_row(mask: pa.Array, *, is_set: bool = True) -> int:
    """Return the first row, from 1 on, in which a mask is set; 0 if it is set in no row."""
    return int(pc.index(mask, is_set).as_py()) + 1


def check_lengths(**columns: Sized) -> None:
    """Reject two columns of different lengths. The message names them as the arguments do."""
    (one, rows), (other, other_rows) = ((name.replace("_", " "), len(column)) for name, column in columns.items())
    if rows != other_rows:
        raise ColumnError(
            "The number of {one} is {rows:,}, and the number of {other} is {other_rows:,}. They must be equal.",
            hint="Pass two columns of the same table, in the same order.",
            rows=rows,
            one=one,
            other_rows=other_rows,
            other=other,
        )


def to_numpy(array: pa.Array) -> NDArray[Any]:
    """Return the numbers of an Arrow array, which has no nulls, as a NumPy array."""
    kind = np.dtype(array.type.to_pandas_dtype())
    if not len(array):
        return np.empty(0, kind)
    return np.frombuffer(array.buffers()[1], kind, len(array), array.offset * kind.itemsize)


def _try_pyarrow(items: Any, *, from_pandas: bool = False) -> Any | None:
    """Return an Arrow array, or None: an exception's context would carry a true value along."""
    try:
        return pa.array(items, from_pandas=from_pandas)
    except (pa.ArrowException, UnicodeError, TypeError, ValueError, OverflowError):
        return None


def _make_conversion_error(column: Any, error: type[RelaxdpError]) -> RelaxdpError:
    """Return why a column has no Arrow form."""
    items = column.tolist() if hasattr(column, "tolist") else list(column)
    kinds = [get_value_kind(item) for item in items]
    if all(kind == "text" for kind in kinds):
        return error(
            "A text contains half of a character (a lone surrogate), so it has no UTF-8 form.",
            hint="Read the column again with the right character encoding, such as UTF-8.",
        )
    cells = zip(range(len(items)), items, kinds, strict=True)
    present = [(row, item, kind) for row, item, kind in cells if not is_missing(item)]
    strange = next((item for _, item, kind in present if kind is None), None)
    if error is IdError:
        if strange is not None:
            return error(_TYPE, hint=_AS_TEXT, type=type(strange).__name__)
        if any(kind == "number" for _, _, kind in present):
            return error(_FLOAT, hint=_AS_INTEGER)
        return error(_TOO_LARGE if {kind for *_, kind in present} == {"integer"} else _RULE, hint=_AS_TEXT)
    other = next((row for row, item, _ in present if type(item) is not type(present[0][1])), None)
    return error(
        "The values of the column are not of one kind. Use whole numbers, numbers, text, bytes or UUIDs only.",
        hint="Convert the column to one type, such as df['age'].astype(str).",
        row=None if other is None else other + 1,
    )


def get_code_points(column: NDArray[Any]) -> NDArray[Any]:
    """Return the code points of NumPy's text, or the bytes of its bytes, a row for each; NULs end a row."""
    unit: type[np.unsignedinteger] = np.uint32 if column.dtype.kind == "U" else np.uint8
    return np.ascontiguousarray(column).view(unit).reshape(len(column), -1)


def _make_ascii_array(letters: NDArray[Any]) -> pa.Array | None:
    """Return NumPy's text as an Arrow array, several times faster than Arrow itself; None where it is not ASCII.

    NumPy pads with NULs, so the letters of all texts are what is not a NUL.
    """
    kernel = get_kernel()
    found = None if kernel is None or not letters.size else kernel.find_ascii_letters(letters)
    if found is None:
        return None
    offsets, data = found
    return pa.LargeStringArray.from_buffers(len(letters), pa.py_buffer(offsets), pa.py_buffer(data))


def read_ids(array: pa.Array, first_row: int) -> Ids:
    """Return the ids of an Arrow array, or reject it. `first_row` is for messages."""
    if array.null_count:
        row = first_row + find_row(pc.is_null(array))
        raise IdError("The id is missing.", hint="Remove rows without an id, or give each row an id.", row=row)
    kind = array.type
    if pa.types.is_integer(kind):
        return Ids.from_integers(to_numpy(array))
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return _read_text_ids(array, "text", TEXT)
    if getattr(kind, "extension_name", None) == "arrow.uuid":
        payload = b"".join(array.storage.to_pylist())
        return Ids("uuid", UUID, None, np.arange(0, len(payload) + 1, 16), np.frombuffer(payload, np.uint8))
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_fixed_size_binary(kind):
        return _read_text_ids(array.cast(pa.large_binary()), "bytes", BYTES)
    if pa.types.is_null(kind) and not len(array):
        return Ids.from_integers(np.empty(0, np.int64))
    is_float = pa.types.is_floating(kind)
    raise IdError(_FLOAT if is_float else _TYPE, hint=_AS_INTEGER if is_float else _AS_TEXT, type=kind)


def _read_text_ids(array: pa.Array, kind: str, tag: int) -> Ids:
    """Return ids that are text or bytes, from Arrow's memory. Text that is not ASCII is checked."""
    if not len(array):
        return Ids(kind, tag, None, NO_OFFSETS, NO_BYTES)
    offsets, data = get_text_buffers(array)
    offsets = offsets.astype(np.int64, copy=False)
    first, last = int(offsets[0]), int(offsets[-1])
    data = data[first:last] if last > first else NO_BYTES
    if tag == TEXT and np.bitwise_or.reduce(data) & _NOT_ASCII:
        _check_utf8(array)
    return Ids(kind, tag, None, offsets - first, data)


def get_text_buffers(array: pa.Array) -> Texts:
    """Return the buffers of an array of text or bytes, which is not empty: offsets, and the letters of all."""
    is_narrow = pa.types.is_string(array.type) or pa.types.is_binary(array.type)
    _, offsets, data = array.buffers()
    ends: NDArray[np.signedinteger] = np.frombuffer(offsets, np.int32 if is_narrow else np.int64)
    letters = np.frombuffer(data, np.uint8) if data is not None and data.size else NO_BYTES
    return ends[array.offset : array.offset + len(array) + 1], letters


def _check_utf8(array: pa.Array) -> None:
    try:
        array.validate(full=True)
    except pa.ArrowInvalid:
        raise IdError(
            "An id is not valid UTF-8.", hint="Pass the ids as bytes, or write the column again as UTF-8."
        ) from None
    if not pc.utf8_normalize(array, "NFC").equals(array):
        warn_not_nfc()


def reject_duplicate_ids(ids: pa.Array) -> None:
    """Raise an error where an id occurs twice."""
    row = _find_duplicate_row(ids) if len(ids) > 1 else None
    if row is not None:
        raise IdError(
            "The id occurs in an earlier row. Two people with the same id would show whether their answers are equal.",
            hint='Use one row per id. In pandas, df.drop_duplicates("patient") keeps the first row of each.',
            row=row + 1,
        )


def _find_duplicate_row(ids: pa.Array) -> int | None:
    ids = getattr(ids, "storage", ids)  # pyarrow compares the bytes of a UUID, not the UUID
    ids = ids.cast(pa.large_binary()) if pa.types.is_fixed_size_binary(ids.type) else ids
    if _is_ascending(ids):
        return None
    if pa.types.is_integer(ids.type):
        numbers = to_numpy(ids)
        return None if _has_distinct_hashes(numbers) else _find_duplicate_number(numbers)
    if _has_distinct_hashes(get_text_buffers(ids)) or len(pc.unique(ids)) == len(ids):
        return None
    return _find_duplicate_number(pc.dictionary_encode(ids).indices.to_numpy())


def _is_ascending(ids: pa.Array) -> bool:
    parts = (ids[start : start + CHUNK + 1] for start in range(0, len(ids) - 1, CHUNK))
    return all(pc.all(pc.less(part[:-1], part[1:])).as_py() for part in parts)


def _has_distinct_hashes(ids: NDArray[np.integer] | Texts) -> bool:
    kernel = get_kernel()
    return kernel is not None and kernel.are_distinct(ids)


def _find_duplicate_number(numbers: NDArray[Any]) -> int | None:
    order = np.argsort(numbers, kind="stable")
    repeated = order[1:][numbers[order[1:]] == numbers[order[:-1]]]
    return int(repeated.min()) if repeated.size else None
