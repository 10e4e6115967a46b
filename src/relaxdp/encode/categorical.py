"""Categorical: one symbol, one of m declared values. The randomized response of the paper."""

from __future__ import annotations

import struct
from collections.abc import Hashable, Mapping, Sequence, Set
from decimal import Decimal
from fractions import Fraction
from hashlib import sha256
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from relaxdp.draw.blocks import Words
from relaxdp.draw.canonical import canonical, kind_of
from relaxdp.draw.columns import as_arrow, as_column, as_objects, column_slice, is_objects
from relaxdp.encode.histogram import histogram
from relaxdp.encode.protocol import Codes, Encoding, Permanent, Truths
from relaxdp.encode.registry import register
from relaxdp.errors import CountsError, UndeclaredValueError, ValuesError
from relaxdp.law.support import Support
from relaxdp.law.threshold import release_threshold

_COUNT_CHUNK = 1 << 20
_NOTHING = " Nothing was released."


@register
class CategoricalEncoding(Encoding):
    """The truth is the index of a declared value, and so is the report."""

    name = "categorical"
    symbols = 1

    def __init__(self, values: Sequence[Hashable]) -> None:
        """Declare the values, in an order that is part of the path. They are public."""
        if isinstance(values, str | bytes | Set | Mapping):
            raise ValuesError("the values must be a list: their order is part of the path.")
        self.values = tuple(_plain(value) for value in values)
        self.kind, encoded = _check(self.values)
        self.alphabet = len(self.values)
        self._params = sha256(struct.pack("<Q", self.alphabet) + b"".join(encoded)).digest()
        self._index = {value: index for index, value in enumerate(self.values)}
        # 0, 1, 2, ... as values are their own indices: the common case of data that is coded already.
        self._is_range = self.kind == "integer" and self.values == tuple(range(self.alphabet))

    @property
    def labels(self) -> Sequence[Hashable]:
        """The declared values."""
        return self.values

    @property
    def params(self) -> bytes:
        """The digest of the ordered values."""
        return self._params

    def threshold(self, epsilon: Decimal) -> int:
        """Return the threshold of the one symbol."""
        return release_threshold(epsilon, self.alphabet)

    def truths(self, column: Any, first_row: int = 0) -> Truths:
        """Return the indices of the values in a column."""
        return Truths(self._indices(column, first_row))

    def symbol_truth(self, truths: Truths, symbol: int, permanent: Permanent) -> Words:
        """Return the index itself."""
        return truths.index

    def reports(self, codes: Codes) -> list[Hashable]:
        """Return the declared values that the codes stand for."""
        return [self.values[code] for code in codes[:, 0].tolist()]

    def count(self, codes: Codes) -> NDArray[np.int64]:
        """Return how often each value was reported."""
        return histogram(codes[:, 0], self.alphabet)

    def codes(self, column: Any) -> Codes:
        """Return the indices of reported values."""
        try:
            return self._indices(as_column(column), 0)[:, None].astype(np.min_scalar_type(self.alphabet - 1))
        except UndeclaredValueError as problem:
            raise CountsError(problem.message.replace("the value", "the report").removesuffix(_NOTHING)) from None

    def count_reports(self, column: Any) -> tuple[NDArray[np.int64], int]:
        """Return how often each value was reported. Coded columns are counted as they are, without a copy."""
        column = as_column(column)
        if isinstance(column, pa.ChunkedArray):
            counts = sum((self.count_reports(chunk)[0] for chunk in column.chunks), np.zeros(self.alphabet, np.int64))
        elif self._is_range and isinstance(column, np.ndarray) and column.dtype.kind in "iu":
            try:
                counts = histogram(column, self.alphabet)
            except ValueError:
                raise CountsError(f"a report is not one of the {self.alphabet} declared values.") from None
        elif isinstance(column, pa.DictionaryArray) and not column.null_count:
            counts = self._count_dictionary(column)
        else:
            counts = np.zeros(self.alphabet, np.int64)
            for start in range(0, len(column), _COUNT_CHUNK):
                counts += self.count(self.codes(column_slice(column, start, start + _COUNT_CHUNK)))
        return counts, len(column)

    def _count_dictionary(self, column: pa.DictionaryArray) -> NDArray[np.int64]:
        """Count the entries of the dictionary, then give each entry to its value; unused entries may be anything."""
        entries = histogram(column.indices.to_numpy(), len(column.dictionary))
        used = np.flatnonzero(entries)
        counts = np.zeros(self.alphabet, np.int64)
        np.add.at(counts, self.codes(column.dictionary.take(pa.array(used)))[:, 0], entries[used])
        return counts

    def support(self, keep: Fraction) -> Support:
        """Return the chances that a report is a given value."""
        return Support.of_one_symbol(keep, self.alphabet)

    def _indices(self, column: Any, first_row: int) -> Words:
        if self._is_range and isinstance(column, np.ndarray) and column.dtype.kind in "iu":
            outside = (column < 0) | (column >= self.alphabet)
            if outside.any():
                raise self._undeclared(first_row + int(np.argmax(outside)))
            return column.astype(np.uint64)
        column = as_objects(column)
        if is_objects(column):
            return self._indices_of_objects(list(column), first_row)
        found = self._find_all(column)
        if found is None:
            raise UndeclaredValueError(
                f"the values cannot be compared with the {self.alphabet} declared ones, which are of kind "
                f"{self.kind}.{_NOTHING}"
            )
        if found.null_count:
            row = pc.index(pc.is_null(found), True).as_py()
            raise self._undeclared(first_row + row, missing=_is_missing(column, row))
        return np.asarray(found.to_numpy(zero_copy_only=False), dtype=np.uint64)

    def _find_all(self, column: Any) -> pa.Array | None:
        """Return indices, or None for another kind of column: an exception's context would carry a truth along."""
        try:
            if isinstance(column, pa.Array) and pa.types.is_dictionary(column.type):
                return pc.take(self._find(as_arrow(column.dictionary)), column.indices)
            return self._find(as_arrow(column))
        except (pa.ArrowException, UnicodeError, TypeError):
            return None

    def _find(self, array: pa.Array) -> pa.Array:
        """Return the index of every element, null where it is not declared. A number is not its text."""
        if not _arrow_kind_is(array.type, self.kind):
            raise TypeError
        if self.kind == "number":
            array = pc.add(array.cast(pa.float64()), 0.0)  # -0.0 is 0.0
        if self.kind == "integer":
            if pa.types.is_uint64(array.type) or max(self.values) >= 2**63:
                return pa.array([self._index.get(number) for number in array.to_pylist()], type=pa.int64())
            array = array.cast(pa.int64())
        return pc.index_in(array, value_set=pa.array(self.values, type=array.type))

    def _indices_of_objects(self, items: list[Any], first_row: int) -> Words:
        indices = np.empty(len(items), dtype=np.uint64)
        for row, item in enumerate(items):
            index = self._index.get(_plain(item)) if kind_of(item) == self.kind else None
            if index is None:
                raise self._undeclared(first_row + row, missing=item is None or item != item)  # noqa: PLR0124 (NaN)
            indices[row] = index
        return indices

    def _undeclared(self, row: int, *, missing: bool = False) -> UndeclaredValueError:
        what = "is missing, which" if missing else "is"
        is_not = "is not" if missing else "not"
        return UndeclaredValueError(
            f"row {row + 1:,}: the value {what} {is_not} one of the {self.alphabet} declared values.{_NOTHING}",
            row=row + 1,
            values=self.alphabet,
        )


def _is_missing(column: Any, row: int) -> bool:
    part = as_arrow(column_slice(column, row, row + 1))
    return bool(part.null_count)


def _plain(value: Any) -> Any:
    """Return NumPy's scalars as Python's and -0.0 as 0.0, so that equal values are one value."""
    value = value.item() if isinstance(value, np.generic) else value
    return value + 0.0 if isinstance(value, float) else value


def _check(values: Sequence[Any]) -> tuple[str, list[bytes]]:
    if len(values) < 2:
        raise ValuesError(f"at least two values must be declared, not {len(values)}.", values=len(values))
    kinds = {kind_of(value) for value in values}
    if len(kinds) != 1 or None in kinds:
        raise ValuesError(
            "the declared values must be of one kind: whole numbers, text, bytes, UUIDs or numbers "
            "(write true and false as 'yes' and 'no', or as 1 and 0)."
        )
    if kinds == {"integer"} and min(values) < 0 and max(values) >= 2**63:
        raise ValuesError("whole numbers as values must fit into 64 bits, signed or unsigned.")
    try:
        encoded = [canonical(value) for value in values]
    except ValueError as problem:
        raise ValuesError(f"a declared value is not usable: {problem}.") from None
    seen: dict[bytes, Any] = {}
    for value, data in zip(values, encoded, strict=True):
        if data in seen:
            raise ValuesError(f"the value {value!r} is declared twice.", value=value)  # declared values are public
        seen[data] = value
    return str(kinds.pop()), encoded


def _arrow_kind_is(kind: pa.DataType, wanted: str) -> bool:
    tests = {
        "integer": pa.types.is_integer,
        "text": pa.types.is_large_string,
        "bytes": lambda each: pa.types.is_large_binary(each) or pa.types.is_fixed_size_binary(each),
        "number": pa.types.is_float64,
    }
    return wanted in tests and bool(tests[wanted](kind))
