"""Packed reports: bytes of a fixed width, for encodings whose reports are no labels. One format for files and wires.

Bits: that of value i is bit i % 8 (the lowest first) of byte i // 8. What is left of the last byte is zero, and a
report in which it is not is refused. A seed goes first, as eight bytes; a code takes as many whole bytes as the
alphabet needs, the lowest first.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from relaxdp.draw.columns import as_column, column_slice
from relaxdp.draw.stream import Words
from relaxdp.encodings.bits import check_padding, count_bits, pack_bits, unpack_bits
from relaxdp.encodings.protocol import BATCH, Codes, Encoding, Packed
from relaxdp.errors import CountsError


class PackedEncoding(Encoding):
    """An encoding whose reports travel as `report_width` bytes each."""

    report_width: int

    @abstractmethod
    def pack(self, codes: Codes, seeds: Words | None = None) -> Packed:
        """Return reports as bytes of shape (objects, report_width)."""

    @abstractmethod
    def unpack(self, packed: Packed) -> tuple[Codes, Words | None]:
        """Return codes and seeds, or refuse bytes that no report can have."""

    def reports(self, codes: Codes, seeds: Words | None = None) -> list[bytes]:
        """Return each report as `bytes`."""
        return [row.tobytes() for row in self.pack(codes, seeds)]

    @property
    def report_type(self) -> Any:
        """Bytes of a fixed width."""
        return pa.binary(self.report_width)

    def column(self, codes: Codes, seeds: Words | None = None) -> Any:
        """Return the packed reports as one Arrow array."""
        return packed_array(self.pack(codes, seeds))

    def codes(self, column: Any) -> Codes:
        """Return the codes of a column of packed reports."""
        return self.read(column)[0]

    def read(self, column: Any) -> tuple[Codes, Words | None]:
        """Return codes and seeds of a column of packed reports."""
        return self.unpack(packed_matrix(column, self.report_width))

    def count_reports(self, column: Any) -> tuple[NDArray[np.int64], int]:
        """Return the counts of a column of packed reports, and how many there are; a piece at a time."""
        column = column if is_matrix(column) else as_column(column)
        counts = np.zeros(len(self.labels), dtype=np.int64)
        step = max(1, BATCH // self.report_width)
        for start in range(0, len(column), step):
            counts += self.count_packed(
                packed_matrix(column_slice(column, start, start + step), self.report_width, start)
            )
        return counts, len(column)


class BitEncoding(PackedEncoding):
    """An encoding whose symbols are bits, each of which supports a value, or a place, of its own."""

    def pack(self, codes: Codes, seeds: Words | None = None) -> Packed:
        """Return eight bits to a byte, the lowest first."""
        return pack_bits(codes)

    def unpack(self, packed: Packed) -> tuple[Codes, None]:
        """Return the bits of each report."""
        check_padding(packed, self.symbols)
        return unpack_bits(packed, self.symbols), None

    def is_report(self, packed: bytes) -> bool:
        """Tell whether what is left of the last byte is zero."""
        return not packed[-1] >> (8 - -self.symbols % 8)

    def supports(self, codes: Codes, seeds: Words | None = None) -> NDArray[np.bool_]:
        """Return the bits themselves."""
        return codes.astype(np.bool_)

    def count_packed(self, packed: Packed) -> NDArray[np.int64]:
        """Return how many reports have each bit set, without unpacking them."""
        check_padding(packed, self.symbols)
        return count_bits(packed, self.symbols)


def packed_array(packed: Packed) -> Any:
    """Return rows of bytes as an Arrow array of fixed-width bytes, without a copy."""
    rows = np.ascontiguousarray(packed)
    kind = pa.binary(packed.shape[1])
    return pa.FixedSizeBinaryArray.from_buffers(kind, len(rows), [None, pa.py_buffer(rows)])


def is_matrix(column: Any) -> bool:
    """Tell whether a column is a matrix of bytes, one row per report, as NumPy holds packed reports."""
    return isinstance(column, np.ndarray) and column.ndim == 2 and column.dtype == np.uint8


def packed_matrix(column: Any, width: int, first_row: int = 0) -> Packed:
    """Return a column of packed reports as bytes of shape (objects, width), without a copy where that is possible.

    A matrix of bytes, fixed-width or other bytes of Arrow, pandas and polars, or a list of `bytes`.
    """
    if is_matrix(column):
        if column.shape[1] != width:
            raise _wrong(width)
        return np.asarray(column)
    column = as_column(column)
    if isinstance(column, np.ndarray) and column.dtype.kind in "SV":
        if column.dtype.itemsize != width:
            raise _wrong(width)
        return np.ascontiguousarray(column).view(np.uint8).reshape(len(column), width)
    array = _as_binary(column)
    if array is None:
        raise _wrong(width)
    if array.null_count:
        row = first_row + int(np.argmax(array.is_null().to_numpy(zero_copy_only=False))) + 1
        raise CountsError("the report is missing.", row=row)
    if pa.types.is_fixed_size_binary(array.type):
        if array.type.byte_width != width:
            raise _wrong(width)
        data, first = array.buffers()[1], array.offset * width
    else:
        offsets = np.frombuffer(array.buffers()[1], np.int64)[array.offset : array.offset + len(array) + 1]
        odd = np.flatnonzero(np.diff(offsets) != width)
        if odd.size:
            raise _wrong(width, first_row + int(odd[0]) + 1)
        data, first = array.buffers()[2], int(offsets[0])
    if not len(array):
        return np.empty((0, width), dtype=np.uint8)
    return np.frombuffer(data, dtype=np.uint8)[first : first + len(array) * width].reshape(len(array), width)


def _as_binary(column: Any) -> Any | None:
    """Return Arrow bytes, of fixed width or with 64-bit offsets; None for anything else."""
    try:
        if hasattr(column, "to_arrow"):  # polars
            column = column.to_arrow()
        if not isinstance(column, pa.Array | pa.ChunkedArray):
            column = pa.array(column, from_pandas=hasattr(column, "iloc"))
        if isinstance(column, pa.ChunkedArray):
            column = column.combine_chunks()
        if pa.types.is_dictionary(column.type):
            column = column.dictionary_decode()
        if pa.types.is_fixed_size_binary(column.type):
            return column
        if pa.types.is_binary(column.type) or pa.types.is_large_binary(column.type):
            return column.cast(pa.large_binary())
        return column.cast(pa.large_binary()) if pa.types.is_binary_view(column.type) or not len(column) else None
    except (pa.ArrowException, TypeError, ValueError):
        return None


def _wrong(width: int, row: int | None = None) -> CountsError:
    return CountsError("a report of this encoding is {width} bytes, and this is something else.", width=width, row=row)
