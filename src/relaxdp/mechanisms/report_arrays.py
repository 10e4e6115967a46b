"""Reports as arrays: bytes of a fixed width, Arrow columns, and the caller's kind of container; and their counts.

Bits: that of value i is bit i % 8 (the lowest first) of byte i // 8. The rest of the last byte is zero, and a report in
which it is not is rejected. A seed goes first, as eight bytes. A code takes as many whole bytes as the alphabet needs,
the lowest first.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from relaxdp.errors import EstimationError
from relaxdp.lazy_imports import pandas as pd
from relaxdp.lazy_imports import polars as pl
from relaxdp.sampling.arrow_columns import decode_dictionary, find_row, to_arrow
from relaxdp.sampling.kernel.c_library import get_kernel
from relaxdp.sampling.keyed_stream import Words

if TYPE_CHECKING:
    from relaxdp.mechanisms.base import Mechanism

GIVE_REPORTS = "Pass the column of reports as it was released, and the mechanism that made these reports."

Codes = NDArray[np.unsignedinteger]
Packed = NDArray[np.uint8]
ReportPart = tuple[Codes, Words | None]
"""The codes and the seeds of some individuals."""

SEED_BYTES = 8
BATCH = 1 << 20
"""So many symbols, or supported values, at a time that an array of them stays in the processor's cache."""
_PIECE = 1 << 17


def get_code_dtype(alphabet: int) -> np.dtype[np.unsignedinteger]:
    """Return the smallest unsigned type that holds every code."""
    return np.min_scalar_type(alphabet - 1)


def count_code_bytes(alphabet: int) -> int:
    """Return how many whole bytes a code needs."""
    return ((alphabet - 1).bit_length() + 7) // 8


def get_report_width(mechanism: Mechanism) -> int | None:
    """Return how many bytes a packed report has; None where a report is a label, and its code the label's place."""
    if mechanism.symbols > 1:
        return -(-mechanism.symbols // 8)
    if mechanism.seeded:
        return SEED_BYTES + count_code_bytes(mechanism.alphabet)
    return None if len(mechanism.labels) == mechanism.alphabet else count_code_bytes(mechanism.alphabet)


def get_packed_width(mechanism: Mechanism) -> int:
    """Return how many bytes a report has where it is stored: labels are stored as codes of one, two or four bytes."""
    return get_report_width(mechanism) or get_code_dtype(mechanism.alphabet).itemsize


def pack_reports(mechanism: Mechanism, codes: Codes, seeds: Words | None = None) -> Packed:
    """Pack reports as bytes of shape (individuals, get_packed_width)."""
    if mechanism.symbols > 1:
        return pack_bits(codes)
    packed = np.empty((len(codes), get_packed_width(mechanism)), dtype=np.uint8)
    first = 0
    if mechanism.seeded:
        assert seeds is not None  # noqa: S101 (every report of such a mechanism has one)
        first = SEED_BYTES
        packed[:, :first] = np.ascontiguousarray(seeds, "<u8").view(np.uint8).reshape(-1, SEED_BYTES)
    packed[:, first:] = codes.astype("<u8").view(np.uint8).reshape(-1, 8)[:, : packed.shape[1] - first]
    return packed


def unpack_reports(mechanism: Mechanism, packed: Packed) -> tuple[Codes, Words | None]:
    """Unpack reports to codes and seeds, or reject bytes that are not a report."""
    if mechanism.symbols > 1:
        check_zero_padding(packed, mechanism.symbols)
        return unpack_bits(packed, mechanism.symbols), None
    first = SEED_BYTES if mechanism.seeded else 0
    wide = np.zeros((len(packed), 8), dtype=np.uint8)
    wide[:, : packed.shape[1] - first] = packed[:, first:]
    codes = wide.view("<u8")
    if len(packed) and int(codes.max()) >= mechanism.alphabet:
        row = int(np.argmax(codes >= mechanism.alphabet)) + 1
        raise EstimationError(
            "The report cannot come from this mechanism, which has only {alphabet:,} possible reports.",
            hint=GIVE_REPORTS,
            alphabet=mechanism.alphabet,
            row=row,
        )
    seeds = np.ascontiguousarray(packed[:, :first]).view("<u8")[:, 0].astype(np.uint64) if mechanism.seeded else None
    return codes.astype(get_code_dtype(mechanism.alphabet)), seeds


def count_packed_reports(mechanism: Mechanism, packed: Packed) -> NDArray[np.int64]:
    """Return how many packed reports support each value. Bits are counted without unpacking them."""
    if mechanism.symbols > 1:
        check_zero_padding(packed, mechanism.symbols)
        return count_bits(packed, mechanism.symbols)
    return count_supported_labels(mechanism, *unpack_reports(mechanism, packed))


def get_report_arrow_type(mechanism: Mechanism) -> pa.DataType:
    """Return the Arrow type of a column of reports."""
    return make_report_column(mechanism, np.empty((0, mechanism.symbols), np.uint8), np.empty(0, np.uint64)).type


def make_report_column(mechanism: Mechanism, codes: Codes, seeds: Words | None = None) -> pa.Array:
    """Return reports as an Arrow array, from codes of shape (individuals, symbols)."""
    if get_report_width(mechanism) is not None:
        return make_arrow_from_packed(pack_reports(mechanism, codes, seeds))
    if mechanism.mean_weights is None:
        return make_label_array(mechanism.labels, codes[:, 0])
    kind = pa.int16() if isinstance(mechanism.labels, range) else None
    return pa.array(mechanism.labels, kind).take(pa.array(codes[:, 0]))


def join_report_parts(mechanism: Mechanism, parts: Iterable[ReportPart]) -> pa.Array:
    """Return codes and seeds of several parts as one Arrow array of reports."""
    columns = [make_report_column(mechanism, *part) for part in parts]
    return pa.concat_arrays(columns) if columns else pa.array([], get_report_arrow_type(mechanism))


def make_report_list(mechanism: Mechanism, codes: Codes, seeds: Words | None = None) -> list[Any]:
    """Return reports as Python objects."""
    if get_report_width(mechanism) is None:
        return [mechanism.labels[code] for code in codes[:, 0].tolist()]
    return [row.tobytes() for row in pack_reports(mechanism, codes, seeds)]


def make_report_container(mechanism: Mechanism, template: Any, n: int, parts: Iterable[ReportPart]) -> Any:
    """Return n reports in the kind of container that `template` is. Of a NumPy array, packed ones are rows of bytes."""
    library, labels, width = type(template).__module__.partition(".")[0], mechanism.labels, get_report_width(mechanism)
    if width is None:
        codes = _join_codes(parts, n)
        if isinstance(template, np.ndarray):
            return _make_numpy_labels(template.dtype, labels, codes)
        if library not in ("pyarrow", "polars", "pandas"):
            return [labels[code] for code in codes.tolist()]
        array = make_label_array(labels, codes)
        array = array.dictionary_decode() if pa.types.is_floating(array.type.value_type) else array
    else:
        array = join_report_parts(mechanism, parts)
        if isinstance(template, np.ndarray):
            return read_packed_matrix(array, width)
    if library == "polars":
        return pl.Series(template.name, array)
    if library == "pandas":
        index, name = getattr(template, "index", None), getattr(template, "name", None)
        return pd.Series(_make_pandas_array(array), index=index, name=name)
    return array if library == "pyarrow" else array.to_pylist()


def _join_codes(parts: Iterable[ReportPart], n: int) -> Codes:
    """Return the codes of all parts. Each goes to its place at once, so that they are never in memory twice."""
    codes, done = np.empty(0, np.uint8), 0
    for part, _ in parts:
        codes = codes if done else np.empty(n, part.dtype)
        codes[done : done + len(part)] = part[:, 0]
        done += len(part)
    return codes


def _make_pandas_array(array: pa.Array) -> Any:
    if pa.types.is_dictionary(array.type):
        places = array.indices.fill_null(-1).to_numpy()
        return pd.Categorical.from_codes(places, categories=array.dictionary.to_pylist())
    if pa.types.is_floating(array.type):
        return array.to_numpy(zero_copy_only=False)
    return pd.array(array, dtype=pd.ArrowDtype(array.type))


def _make_numpy_labels(dtype: np.dtype[Any], labels: Sequence[Any], codes: Codes) -> Any:
    """Return the labels in the column's own type if they fit, else in a type that keeps them whole."""
    if codes.dtype == dtype and list(labels) == list(range(len(labels))):
        return codes  # coded data: the codes are the values
    if dtype.kind == "f" and all(isinstance(label, float) or label is None for label in labels):
        return np.array(labels, dtype=float)[codes]  # in which None is NaN
    if dtype.kind in "iu" and all(isinstance(label, int) for label in labels):
        limits = np.iinfo(dtype)
        if limits.min <= min(labels) and max(labels) <= limits.max:
            return np.array(labels, dtype=dtype)[codes]
    ends_in_nul = any(isinstance(label, str | bytes) and label[-1:] in ("\0", b"\0") for label in labels)
    return np.array(labels, dtype=object if dtype.kind == "O" or ends_in_nul else None)[codes]


def read_report_column(mechanism: Mechanism, column: Any) -> tuple[Codes, Words | None]:
    """Return codes and seeds of a column of reports: the inverse of `make_report_column`."""
    width = get_report_width(mechanism)
    if width is None:
        return mechanism.read_label_column(column), None
    return unpack_reports(mechanism, read_packed_matrix(column, width))


def make_sliceable_reports(mechanism: Mechanism, column: Any) -> Any:
    """Return a column of reports in a form that can be read in slices: an Arrow array, or a matrix of bytes."""
    width = get_report_width(mechanism)
    return to_arrow(column) if width is None else read_packed_matrix(column, width)


def count_report_column(mechanism: Mechanism, column: Any) -> tuple[NDArray[np.int64], int]:
    """Count the reports of a column, a piece at a time: return how many support each value, and how many there are."""
    width, column = get_report_width(mechanism), make_sliceable_reports(mechanism, column)
    counts = np.zeros(len(mechanism.labels), dtype=np.int64)
    step = max(1, BATCH // (width or 1))
    for start in range(0, len(column), step):
        part = column[start : start + step]
        if width is None:
            counts += count_supported_labels(mechanism, mechanism.read_label_column(part))
        else:
            counts += count_packed_reports(mechanism, part)
    return counts, len(column)


def count_supported_labels(mechanism: Mechanism, codes: Codes, seeds: Words | None = None) -> NDArray[np.int64]:
    """Count for each label the reports that support it; counts of disjoint groups may be added."""
    if mechanism.joint == "exclusive" and mechanism.symbols == 1:
        return count_codes(codes[:, 0], mechanism.alphabet)
    counts = np.zeros(len(mechanism.labels), dtype=np.int64)
    step = max(1, _PIECE // len(mechanism.labels))
    for start in range(0, len(codes), step):
        part = slice(start, start + step)
        found = mechanism.find_supported_labels(codes[part], None if seeds is None else seeds[part])
        counts += np.count_nonzero(found, axis=0)
    return counts


def make_arrow_from_packed(packed: Packed) -> Any:
    """Return rows of bytes as an Arrow array of fixed-width bytes, without a copy."""
    rows = np.ascontiguousarray(packed)
    kind = pa.binary(packed.shape[1])
    return pa.FixedSizeBinaryArray.from_buffers(kind, len(rows), [None, pa.py_buffer(rows)])


def read_packed_matrix(column: Any, width: int) -> Packed:
    """Return a column of packed reports as bytes of shape (individuals, width), without a copy where that is possible.

    A matrix of bytes, or a column of bytes in any container.
    """
    if isinstance(column, np.ndarray) and column.ndim == 2 and column.dtype == np.uint8:
        if column.shape[1] != width:
            raise _make_width_error(width)
        return np.asarray(column)
    if isinstance(column, np.ndarray) and column.dtype.kind in "SV":  # of which Arrow would cut NULs at the end
        if column.dtype.itemsize != width:
            raise _make_width_error(width)
        return np.ascontiguousarray(column).view(np.uint8).reshape(len(column), width)
    array = decode_dictionary(to_arrow(column))
    if array.null_count:
        row = find_row(pc.is_null(array))
        raise EstimationError("The report is missing.", hint="Remove rows without a report.", row=row)
    if pa.types.is_binary(array.type) or pa.types.is_large_binary(array.type):
        if row := find_row(pc.equal(pc.binary_length(array), width), is_set=False):
            raise _make_width_error(width, row)
        array = array.cast(pa.binary(width))
    if not len(array):
        return np.empty((0, width), dtype=np.uint8)
    if array.type != pa.binary(width):
        raise _make_width_error(width)
    return np.frombuffer(array.buffers()[1], np.uint8).reshape(-1, width)[array.offset : array.offset + len(array)]


def _make_width_error(width: int, row: int | None = None) -> EstimationError:
    return EstimationError("A report of this mechanism must be {width} bytes.", hint=GIVE_REPORTS, width=width, row=row)


def count_codes(codes: NDArray[np.integer], n_codes: int) -> NDArray[np.int64]:
    """Count how often each of the codes 0 .. n_codes - 1 occurs; `ValueError` where a code is outside.

    `np.bincount` first turns its whole input into 64-bit integers; piece by piece that copy never leaves the cache.
    """
    # A signed byte below 0 would pass as one from 128 on: those must be outside.
    is_byte = codes.dtype == np.uint8 or (codes.dtype == np.int8 and n_codes <= 128)
    kernel = get_kernel() if is_byte and n_codes <= 256 and codes.flags.c_contiguous else None
    if kernel is not None:
        counts = kernel.count_codes(codes.view(np.uint8), n_codes)
        if counts is None:
            raise ValueError("A code is outside of the alphabet.")
        return counts
    piece = max(_PIECE, 4 * n_codes)  # with very many values, fewer and longer pieces
    counts = np.zeros(n_codes, dtype=np.int64)
    for start in range(0, len(codes), piece):
        part = np.bincount(codes[start : start + piece])
        if len(part) > n_codes:
            raise ValueError("A code is outside of the alphabet.")
        counts[: len(part)] += part
    return counts


# So many rows can be added up in bytes before one could overflow.
_ROWS = 255
# A row of so many bytes is long enough for its sums to be fast, and 255 of them stay in the cache.
_LONG = 512


def pack_bits(bits: NDArray[np.unsignedinteger]) -> Packed:
    """Pack rows of bits into bytes, the lowest bit first."""
    return np.packbits(bits.astype(np.uint8, copy=False), axis=1, bitorder="little")


def unpack_bits(packed: Packed, n_bits: int) -> Packed:
    """Unpack the first `n_bits` bits of each row."""
    return np.unpackbits(packed, axis=1, count=n_bits, bitorder="little")


def format_bits(packed: Packed, n_bits: int) -> list[str]:
    """Format packed reports as text, the highest bit first.

    >>> format_bits(np.array([[1], [6]], dtype=np.uint8), 4)
    ['0001', '0110']
    """
    letters = unpack_bits(packed, n_bits)[:, ::-1] + ord("0")
    return [row.tobytes().decode("ascii") for row in letters]


def check_zero_padding(packed: Packed, n_bits: int) -> None:
    """Reject rows that have a bit set beyond the first `n_bits`: they belong to another mechanism."""
    if n_bits % 8 and packed.size and int(np.bitwise_or.reduce(packed[:, -1])) >> n_bits % 8:
        row = int(np.argmax(packed[:, -1] >> np.uint8(n_bits % 8) != 0)) + 1
        raise EstimationError(
            "The report has more bits than the {bits} of this mechanism, so another mechanism made it.",
            hint=GIVE_REPORTS,
            bits=n_bits,
            row=row,
        )


def count_bits(packed: Packed, n_bits: int) -> NDArray[np.int64]:
    """Count in how many rows each of the first `n_bits` bits is set.

    Short rows are counted side by side, so that the sums run over long ones.
    """
    together = -(-_LONG // packed.shape[1])
    whole = len(packed) // together * together
    rows = packed[:whole].reshape(-1, together * packed.shape[1])
    totals = np.zeros(8 * rows.shape[1], dtype=np.int64)
    for start in range(0, len(rows), _ROWS):
        totals += unpack_bits(rows[start : start + _ROWS], len(totals)).sum(axis=0, dtype=np.uint8)
    left = unpack_bits(packed[whole:], n_bits).sum(axis=0, dtype=np.int64)
    return np.asarray(totals.reshape(together, -1).sum(axis=0)[:n_bits] + left)


def make_label_dictionary(labels: Sequence[Any]) -> pa.Array:
    """Return the dictionary of an Arrow column of labels: all labels but None."""
    present = [label for label in labels if label is not None]
    wide = isinstance(present[0], int) and max(present) >= 2**63
    return pa.array(present, pa.uint64() if wide else None)


def make_label_array(labels: Sequence[Any], codes: NDArray[np.integer]) -> pa.Array:
    """Return `labels[codes]` as an Arrow array with all labels as its dictionary. None is a null of the column.

    It is not an entry of the dictionary, because neither Parquet nor pandas takes a null there.
    """
    dictionary, size = make_label_dictionary(labels), len(labels)
    kind = np.int8 if size <= 2**7 else np.int16 if size <= 2**15 else np.int32
    # As they are, if they are as wide: a code of an alphabet of this size has no sign.
    codes = codes.view(kind) if codes.dtype.itemsize == np.dtype(kind).itemsize else codes.astype(kind)
    if len(dictionary) == size:
        return pa.DictionaryArray.from_arrays(pa.array(codes), dictionary)
    missing = list(labels).index(None)
    places = codes - (codes > missing)
    return pa.DictionaryArray.from_arrays(pa.array(places, mask=codes == missing), dictionary)
