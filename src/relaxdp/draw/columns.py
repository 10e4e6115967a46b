"""Columns of any kind, and ids out of them: lists, NumPy, pyarrow, pandas and polars in."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from relaxdp.draw.canonical import BYTES, TEXT, UUID, is_missing, kind_of, warn_not_composed
from relaxdp.draw.kernel.loaded import kernel
from relaxdp.draw.stream import NO_BYTES, NO_OFFSETS, Groups, Ids
from relaxdp.errors import ColumnError, ObjectIdError

_NOT_ASCII = np.uint8(0x80)

_RULE = "an id must be a whole number, text, bytes or a UUID, and all ids of one kind."
_TYPE = "an id must be a whole number, text, bytes or a UUID, and what is of type {type} is none of these."
_FLOAT = (
    "ids must not be floating-point numbers: they have no exact identity "
    '(in pandas, a column of whole numbers with gaps becomes one; .astype("Int64") makes whole numbers of it again).'
)
_TOO_LARGE = "whole-number ids of one column must fit into 64 bits, signed or unsigned."


def as_column(column: Any) -> Any:
    """Return a column that can be cut and counted, or refuse what is none. Nothing is copied that need not be."""
    if type(column).__module__.startswith("pandas") and not hasattr(column, "iloc"):
        column = column.to_series() if hasattr(column, "to_series") else column
    if str(getattr(column, "dtype", "")) == "Object" and hasattr(column, "to_list"):
        return column.to_list()  # polars: its Arrow form of Python objects is their addresses
    if (
        getattr(column, "ndim", 1) != 1
        or isinstance(column, str | bytes | set | dict | type)
        or not hasattr(column, "__len__")
    ):
        raise ColumnError("a column must be a list, an array or a series of one dimension.")
    if isinstance(column, np.ma.MaskedArray):
        raise ColumnError("masked arrays are not taken: what the mask hides would be released.")
    if isinstance(column, np.ndarray) and not column.dtype.isnative:
        return column.astype(column.dtype.newbyteorder("="))
    return column


def column_slice(column: Any, start: int, stop: int) -> Any:
    """Return rows [start, stop) of any kind of column. A pandas Series is cut by position, not by its labels."""
    return column.iloc[start:stop] if hasattr(column, "iloc") else column[start:stop]


def is_objects(part: Any) -> bool:
    """Tell whether a column holds Python objects one by one."""
    return isinstance(part, list | tuple) or (isinstance(part, np.ndarray) and part.dtype.kind in "OT")


def as_objects(part: Any) -> Any:
    """Return as Python objects what Arrow would not take whole: pandas' objects, NumPy's text with a NUL inside."""
    if hasattr(part, "iloc") and part.dtype == object:
        return part.to_numpy()
    if isinstance(part, np.ndarray) and part.dtype.kind in "US" and len(part):
        nul = code_points(part) == 0
        if (nul[:, :-1] & ~nul[:, 1:]).any():
            return part.tolist()  # Arrow would cut the text at its first NUL
    return part


def code_points(part: NDArray[Any]) -> NDArray[Any]:
    """Return the letters of NumPy's text, or the bytes of its bytes, one row for each; NULs end a row."""
    unit: type[np.unsignedinteger] = np.uint32 if part.dtype.kind == "U" else np.uint8
    return np.ascontiguousarray(part).view(unit).reshape(len(part), -1)


def as_arrow(part: Any, *, widen: bool = True) -> pa.Array:
    """Return a part of a column as one Arrow array, with few types left to meet.

    Dictionaries are resolved, and text and bytes get 64-bit offsets unless `widen` is off.
    """
    if hasattr(part, "to_arrow"):  # polars
        part = part.to_arrow()
    if not isinstance(part, pa.Array | pa.ChunkedArray):
        part = _ascii_array(part) or pa.array(part, from_pandas=hasattr(part, "iloc"))
    if isinstance(part, pa.ChunkedArray):
        part = part.combine_chunks()
    if pa.types.is_dictionary(part.type):
        part = part.dictionary_decode()
    if pa.types.is_string_view(part.type) or (widen and pa.types.is_string(part.type)):
        return part.cast(pa.large_string())
    if pa.types.is_binary_view(part.type) or (widen and pa.types.is_binary(part.type)):
        return part.cast(pa.large_binary())
    return part


def _ascii_array(part: Any) -> pa.Array | None:
    """Return NumPy's text as an Arrow array, several times faster than Arrow itself; None where it is not ASCII."""
    letters = _ascii_bytes(part)
    if letters is None:
        return None
    offsets, data = letters
    return pa.LargeStringArray.from_buffers(len(part), pa.py_buffer(offsets), pa.py_buffer(data))


def _ascii_bytes(part: Any) -> tuple[NDArray[np.int64], NDArray[np.uint8]] | None:
    """Return where each of NumPy's texts begins and ends, and their letters; None unless they are ASCII without a NUL.

    NumPy pads with NULs, so the letters of all texts are what is not a NUL.
    """
    if not isinstance(part, np.ndarray) or part.dtype.kind != "U" or not part.nbytes:
        return None
    letters = code_points(part)
    if (found := kernel()) is not None:
        return found.letters(letters)
    if letters.max() > 127:
        return None
    narrow = letters.astype(np.uint8)
    used = narrow != 0
    if (used[:, 1:] & ~used[:, :-1]).any():
        return None  # a NUL has a letter behind it
    offsets = np.zeros(len(part) + 1, dtype=np.int64)
    np.cumsum(np.count_nonzero(used, axis=1), out=offsets[1:])
    return offsets, narrow[used]


def id_blocks(part: Any, first_row: int) -> tuple[str, Groups]:
    """Return the kind of the ids and their canonical blocks. `first_row` is for messages."""
    ids = read_ids(part, first_row)
    return ids.kind, ids.groups()


def read_ids(part: Any, first_row: int) -> Ids:
    """Return the ids of a part of a column, or refuse it. `first_row` is for messages."""
    if isinstance(part, np.ndarray) and part.dtype.kind in "iu":
        return Ids.of_integers(part)
    if (letters := _ascii_bytes(part)) is not None:
        return Ids("text", TEXT, None, *letters)
    part = as_objects(part)
    if is_objects(part):
        return _ids_of_objects(list(part), first_row)
    try:
        array = as_arrow(part, widen=False)
    except (pa.ArrowException, UnicodeError, TypeError):
        raise ObjectIdError(_RULE) from None
    return _ids_of_arrow(array, first_row)


def _ids_of_objects(items: Sequence[Any], first_row: int) -> Ids:
    examples = {type(item): item for item in items}.values()
    kinds = {kind_of(item) for item in examples}
    if len(kinds) != 1 or not kinds <= {"integer", "text", "bytes", "uuid"}:
        raise _why_not_ids(items, first_row)
    kind = str(kinds.pop())
    if kind == "integer":
        return Ids.of_integers(_integers(items))
    if kind == "uuid":
        return _uuids(b"".join(item.bytes for item in items))
    if kind == "bytes":
        return _payloads(pa.array(items, type=pa.large_binary()), kind, BYTES)
    try:
        return _payloads(pa.array(items, type=pa.large_string()), kind, TEXT)
    except UnicodeError:
        raise ObjectIdError("an id has a lone surrogate, so it has no UTF-8 form.") from None


def _why_not_ids(items: Sequence[Any], first_row: int) -> ObjectIdError:
    for row, item in enumerate(items, first_row + 1):
        if is_missing(item):
            return _missing(row)
    strange = next((item for item in items if kind_of(item) is None), None)
    if strange is not None:
        return ObjectIdError(_TYPE, type=type(strange).__name__)
    return ObjectIdError(_FLOAT if any(kind_of(item) == "number" for item in items) else _RULE)


def _missing(row: int) -> ObjectIdError:
    return ObjectIdError("the id is missing.", row=row)


def _integers(items: Sequence[Any]) -> NDArray[Any]:
    numbers = [int(item) for item in items]
    try:
        return np.array(numbers, dtype=np.uint64 if max(numbers) >= 2**63 else np.int64)
    except OverflowError:
        raise ObjectIdError(_TOO_LARGE) from None


def _ids_of_arrow(array: pa.Array, first_row: int) -> Ids:
    if array.null_count:
        raise _missing(first_row + 1 + pc.index(pc.is_null(array), True).as_py())
    kind = array.type
    if pa.types.is_integer(kind):
        return Ids.of_integers(array.to_numpy(zero_copy_only=False))
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return _payloads(array, "text", TEXT)
    if getattr(kind, "extension_name", None) == "arrow.uuid":
        return _uuids(b"".join(array.storage.to_pylist()))
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_fixed_size_binary(kind):
        return _payloads(array.cast(pa.large_binary()), "bytes", BYTES)
    raise ObjectIdError(_FLOAT if pa.types.is_floating(kind) else _TYPE, type=kind)


def _uuids(payload: bytes) -> Ids:
    return Ids("uuid", UUID, None, np.arange(0, len(payload) + 1, 16), np.frombuffer(payload, np.uint8))


def _payloads(array: pa.Array, kind: str, tag: int) -> Ids:
    """Return text or bytes as they lie in Arrow's memory. Text that is not ASCII is checked."""
    if not len(array):
        return Ids(kind, tag, None, NO_OFFSETS, NO_BYTES)
    width = "<i4" if pa.types.is_string(array.type) else "<i8"
    offsets = np.frombuffer(array.buffers()[1], dtype=width)[array.offset : array.offset + len(array) + 1]
    offsets = offsets.astype(np.int64, copy=False)
    first, last = int(offsets[0]), int(offsets[-1])
    data = np.frombuffer(array.buffers()[2], dtype=np.uint8)[first:last] if last > first else NO_BYTES
    if tag == TEXT and np.bitwise_or.reduce(data) & _NOT_ASCII:
        _check_text(array)
    return Ids(kind, tag, None, offsets - first, data)


def _check_text(array: pa.Array) -> None:
    try:
        array.validate(full=True)
    except pa.ArrowInvalid:
        raise ObjectIdError("an id is not valid UTF-8.") from None
    if not pc.utf8_normalize(array, "NFC").equals(array):
        warn_not_composed()
