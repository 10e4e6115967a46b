"""Answers out of a list of declared values: what all such encodings share, and the categorical one."""

from __future__ import annotations

import struct
from collections.abc import Hashable, Iterable, Mapping, Sequence, Set
from decimal import Decimal
from fractions import Fraction
from hashlib import sha256
from typing import Any
from unicodedata import normalize

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from relaxdp.draw.canonical import canonical_declared, is_missing, kind_of
from relaxdp.draw.columns import as_arrow, as_column, as_objects, column_slice, is_objects
from relaxdp.draw.stream import Words
from relaxdp.encodings.bits import histogram
from relaxdp.encodings.containers import dictionary_array, label_array
from relaxdp.encodings.protocol import Codes, Encoding, Joint, Permanent, Truths, code_dtype, whole_bytes
from relaxdp.encodings.registry import register
from relaxdp.errors import CountsError, UndeclaredValueError, ValuesError, without_keys
from relaxdp.law.epsilon import release_threshold
from relaxdp.law.level import retention
from relaxdp.law.support import Support

_MOST_SHOWN = 8

# What helps where a column holds something else than what was declared.
REMEDIES = {"true and false": "booleans", "dates": "dates", "numbers": "numbers", "decimals": "numbers"}
_LONGEST_SHOWN = 31

# What a column of another kind than the declared values holds, in words.
_IN_WORDS: tuple[tuple[Any, str], ...] = (
    (pa.types.is_boolean, "true and false"),
    (pa.types.is_integer, "whole numbers"),
    (pa.types.is_floating, "numbers"),
    (pa.types.is_decimal, "decimals"),
    (pa.types.is_date, "dates"),
    (lambda kind: pa.types.is_timestamp(kind) or pa.types.is_time(kind), "times"),
    (lambda kind: pa.types.is_string(kind) or pa.types.is_large_string(kind), "text"),
)


class DeclaredEncoding(Encoding):
    """An encoding of values that are declared beforehand, in an order that is part of the path.

    None among them is the missing category: whatever is missing in a column has that value.
    """

    def __init__(self, values: Sequence[Hashable]) -> None:
        """Declare the values, which are public."""
        self.values = tuple(_plain(value) for value in self.listed(values))
        self.kind, encoded = _check(self.values)
        self.digest = sha256(struct.pack("<Q", len(self.values)) + b"".join(encoded)).digest()
        self._index = {value: index for index, value in enumerate(self.values)}
        self.missing = self._index.get(None)
        """The place of None among the values; None where whatever is missing is rejected."""
        # 0, 1, 2, ... as values are their own indices: the common case of data that is coded already.
        self._is_range = self.kind == "integer" and self.values == tuple(range(len(self.values)))

    @staticmethod
    def listed(values: Sequence[Hashable]) -> Sequence[Hashable]:
        """Return values in an order, or refuse what has none."""
        if isinstance(values, str | bytes | Set | Mapping | type) or not isinstance(values, Iterable):
            raise ValuesError(
                "the values must be a list: their order is part of the path.",
                hint="Pass a list such as ['flu', 'covid', 'none'].",
            )
        return values

    @property
    def labels(self) -> Sequence[Hashable]:
        """The declared values."""
        return self.values

    @property
    def present_values(self) -> tuple[Any, ...]:
        """The declared values without None."""
        return tuple(value for value in self.values if value is not None)

    @property
    def declared(self) -> dict[str, Any]:
        """The values."""
        return {"values": self.values}

    @property
    def params(self) -> bytes:
        """The digest of the ordered values."""
        return self.digest

    def truths(self, column: Any, first_row: int = 0) -> Truths:
        """Return the indices of the values in a column."""
        return Truths(self._indices(column, first_row))

    def _indices(self, column: Any, first_row: int) -> Words:
        if self._is_range and isinstance(column, np.ndarray) and column.dtype.kind in "iu":
            if len(column) and (int(column.min()) < 0 or int(column.max()) >= len(self.values)):
                outside = (column < 0) | (column >= len(self.values))
                raise self._undeclared(first_row + int(np.argmax(outside)))
            return column.astype(np.uint64)
        column = as_objects(column)
        if is_objects(column):
            return self._indices_of_objects(list(column), first_row)
        found = self._find_all(column)
        if found is None:
            what = kind_in_words(column)
            raise UndeclaredValueError(
                "The column holds {kind}, and the {values} declared values are of kind {declared_kind}.",
                hint="" if what in REMEDIES else "Declare the values as the column has them, or convert the column.",
                remedy=REMEDIES.get(what, ""),
                values=len(self.values),
                declared_kind=self.kind,
                kind=what or "values of another kind",
            )
        if found.null_count:
            row = pc.index(pc.is_null(found), True).as_py()
            raise self._undeclared(first_row + row, missing=_is_missing(column, row))
        return np.asarray(found.to_numpy(zero_copy_only=False), dtype=np.uint64)

    def _find_all(self, column: Any) -> pa.Array | None:
        """Return indices, or None for another kind of column: an exception's context would carry a truth along."""
        try:
            if not (isinstance(column, pa.Array) and pa.types.is_dictionary(column.type)):
                return self._find(as_arrow(column))
            found = pc.take(self._find(as_arrow(column.dictionary)), column.indices)
            return found if self.missing is None else pc.if_else(pc.is_valid(column.indices), found, self.missing)
        except (pa.ArrowException, UnicodeError, TypeError):
            return None

    def _find(self, array: pa.Array) -> pa.Array:
        """Return the index of every element, null where it is not declared. A number is not its text."""
        if self.missing is not None:
            if pa.types.is_floating(array.type):
                array = pc.if_else(pc.is_nan(array), None, array)
            if array.null_count == len(array):  # of any type: pandas makes numbers of a column without values
                return pa.repeat(pa.scalar(self.missing, pa.int64()), len(array))
            if self.kind == "integer" and pa.types.is_floating(array.type):  # pandas' whole numbers with gaps
                array = array.cast(pa.int64())
        if not _arrow_kind_is(array.type, self.kind):
            raise TypeError
        if self.kind == "number":
            array = pc.add(array.cast(pa.float64()), 0.0)  # -0.0 is 0.0
        if self.kind == "integer":
            if pa.types.is_uint64(array.type) or max(self.present_values) >= 2**63:
                return pa.array([self._index.get(number) for number in array.to_pylist()], type=pa.int64())
            array = array.cast(pa.int64())
        return pc.index_in(array, value_set=pa.array(self.values, type=array.type))

    def _indices_of_objects(self, items: list[Any], first_row: int) -> Words:
        indices = np.empty(len(items), dtype=np.uint64)
        for row, item in enumerate(items):
            index = self._index.get(_plain(item)) if kind_of(item) == self.kind else None
            if index is None:
                index = self.missing if is_missing(item) else None
            if index is None:
                raise self._undeclared(first_row + row, missing=is_missing(item))
            indices[row] = index
        return indices

    def answer_in(self, text: str) -> Any:
        """Return the one value that is written like this; two spellings of a letter are one."""
        wanted = normalize("NFC", text.strip())
        same = [value for value in self.present_values if str(value).strip() == wanted]
        if len(same) != 1:
            raise self._no_answer()
        return same[0]

    def _answer(self, given: Any) -> Any:
        return self.values[int(self.truths([given]).index[0])]

    def _no_answer(self) -> UndeclaredValueError:
        return UndeclaredValueError(
            "the answer is not one of the {values:,} values that can be chosen.", values=len(self.values)
        )

    def _undeclared(self, row: int, *, missing: bool = False) -> UndeclaredValueError:
        if missing:
            return UndeclaredValueError(
                "the {what} is missing, which is not one of the {values} declared values.",
                hint="Declare None among the values (--missing NAME): a missing value is then a separate category.",
                what="value",
                row=row + 1,
                values=len(self.values),
                missing=True,
            )
        return UndeclaredValueError(
            "the {what} is not one of the {values} declared values. Declared: {declared}.",
            hint="Declare every value that can occur, spelled as in the table.",
            what="value",
            row=row + 1,
            values=len(self.values),
            declared=_shown(self.values),
        )


def _shown(values: Sequence[Any]) -> str:
    """Return the first declared values, which are public, so that blanks and quotation marks are seen."""
    texts = [without_keys(repr(value)) for value in values[:_MOST_SHOWN]]  # before they are cut
    texts = [text if len(text) <= _LONGEST_SHOWN + 3 else f"{text[:_LONGEST_SHOWN]}...{text[-1]}" for text in texts]
    rest = len(values) - len(texts)
    return ", ".join(texts) + (f" and {rest:,} more" if rest else "")


def kind_in_words(column: Any) -> str:
    """Return what a column or an Arrow type holds; nothing where there is no word for it."""
    try:
        kind = column if isinstance(column, pa.DataType) else as_arrow(column_slice(column, 0, 1)).type
    except (pa.ArrowException, UnicodeError, TypeError):
        return ""
    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    return next((words for test, words in _IN_WORDS if test(kind)), "")


def _is_missing(column: Any, row: int) -> bool:
    part = as_arrow(column_slice(column, row, row + 1))
    return bool(part.null_count)


def _plain(value: Any) -> Any:
    """Return NumPy's scalars as Python's and -0.0 as 0.0, so that equal values are one value."""
    value = value.item() if isinstance(value, np.generic) else value
    return value + 0.0 if isinstance(value, float) else value


def _check(values: Sequence[Any]) -> tuple[str, list[bytes]]:
    if len(values) < 2:
        raise ValuesError(
            "at least two values must be declared, not {values}.",
            hint="List every value that can occur, such as ['flu', 'covid', 'none'].",
            values=len(values),
        )
    kinds = {kind_of(value) for value in values if value is not None}
    if None in kinds or any(is_missing(value) for value in values if value is not None):
        strange = next(value for value in values if value is not None and (kind_of(value) is None or is_missing(value)))
        if is_missing(strange):
            raise ValuesError(
                "The missing category is declared as {type}.",
                hint="Declare it as None: a null, NaN or NaT in the column is then that value.",
                type=type(strange).__name__,
            )
        raise ValuesError(
            "A value of type {type} cannot be declared.",
            hint="Declare text, whole numbers, numbers, bytes or UUIDs: 'true' and 'false', dates like '2026-01-31'.",
            remedy="numbers" if isinstance(strange, Decimal) else "",
            type=type(strange).__name__,
        )
    if len(kinds) > 1:
        raise ValuesError(
            "the declared values must be of one kind: whole numbers, text, bytes, UUIDs or numbers (true and "
            "false as 'true' and 'false', dates as text like '2026-01-31').",
            hint="Write all of them as text, or all of them as numbers.",
        )
    whole = [value for value in values if kinds == {"integer"} and value is not None]
    if whole and min(whole) < 0 and max(whole) >= 2**63:
        raise ValuesError("Whole numbers as values must fit into 64 bits.", hint="Declare them as text.")
    try:
        encoded = [canonical_declared(value) for value in values]
    except ValueError as problem:
        raise ValuesError(
            "A value cannot be used: {problem}.", hint="Declare it as plain text.", problem=problem
        ) from None
    seen: dict[bytes, Any] = {}
    for value, data in zip(values, encoded, strict=True):
        if data in seen:
            # Declared values are public.
            raise ValuesError("the value {value!r} is declared twice.", hint="Declare it once.", value=value)
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


@register
class CategoricalEncoding(DeclaredEncoding):
    """The truth is the index of a declared value, and so is the report."""

    name = "categorical"
    meaning = "the report is one of the answers"
    symbols = 1
    joint: Joint = "exclusive"
    goes_on_from_reports = True

    def __init__(self, values: Sequence[Hashable]) -> None:
        """Declare the values, in an order that is part of the path. They are public."""
        super().__init__(values)
        self.alphabet = len(self.values)

    @classmethod
    def planned_support(cls, values: int, epsilon: Decimal) -> tuple[Support, int]:
        """Return how a randomized response over so many values would do."""
        keep = retention(release_threshold(epsilon, values))
        return Support.of_one_symbol(keep, values), whole_bytes(values)

    def threshold(self, epsilon: Decimal) -> int:
        """Return the threshold of the one symbol."""
        return release_threshold(epsilon, self.alphabet)

    def symbol_truth(self, truths: Truths, symbol: int, permanent: Permanent) -> Words:
        """Return the index itself."""
        return truths.index

    def reports(self, codes: Codes, seeds: Words | None = None) -> list[Hashable]:
        """Return the declared values that the codes stand for."""
        return [self.values[code] for code in codes[:, 0].tolist()]

    @property
    def report_type(self) -> Any:
        """A dictionary of all declared values, whether they occur or not."""
        size = len(self.values)
        index = pa.int8() if size <= 2**7 else pa.int16() if size <= 2**15 else pa.int32()
        return pa.dictionary(index, label_array(self.values).type)

    def column(self, codes: Codes, seeds: Words | None = None) -> Any:
        """Return the codes with the declared values as their dictionary; None is a null."""
        kind = self.report_type.index_type.to_pandas_dtype()
        return dictionary_array(self.values, codes[:, 0].astype(kind, copy=False))

    def supports(self, codes: Codes, seeds: Words | None = None) -> NDArray[np.bool_]:
        """Return which value each report is."""
        return np.asarray(codes[:, :1] == np.arange(self.alphabet))

    def count(self, codes: Codes, seeds: Words | None = None) -> NDArray[np.int64]:
        """Return how often each value was reported."""
        return histogram(codes[:, 0], self.alphabet)

    def codes(self, column: Any) -> Codes:
        """Return the indices of reported values."""
        if isinstance(column, pa.DictionaryArray) and column.dictionary.equals(label_array(self.values)):
            found = column.indices  # a column that we made is coded already
            are_places = pc.less(found.cast(pa.uint64(), safe=False), len(column.dictionary))
            if self.missing is None and not found.null_count and pc.all(are_places).as_py():
                return np.asarray(found.to_numpy()[:, None], code_dtype(self.alphabet))
            if self.missing is not None and pc.all(are_places, min_count=0).as_py():
                places = np.asarray(found.fill_null(0).to_numpy(), np.int64)
                codes = np.where(found.is_null(), self.missing, places + (places >= self.missing))
                return codes.astype(code_dtype(self.alphabet))[:, None]
        try:
            return self._indices(as_column(column), 0)[:, None].astype(code_dtype(self.alphabet))
        except UndeclaredValueError as problem:
            raise CountsError(problem.template, **{**problem.fields, "what": "report"}) from None

    def count_reports(self, column: Any) -> tuple[NDArray[np.int64], int]:
        """Return how often each value was reported. Coded columns are counted as they are, without a copy."""
        column = as_column(column)
        if isinstance(column, pa.ChunkedArray):
            counts = sum((self.count_reports(chunk)[0] for chunk in column.chunks), np.zeros(self.alphabet, np.int64))
        elif self._is_range and isinstance(column, np.ndarray) and column.dtype.kind in "iu":
            try:
                counts = histogram(column, self.alphabet)
            except ValueError:
                raise CountsError(
                    "a report is not one of the {alphabet} declared values.", alphabet=self.alphabet
                ) from None
        elif isinstance(column, pa.DictionaryArray) and (self.missing is not None or not column.null_count):
            counts = self._count_dictionary(column)
        else:
            return super().count_reports(column)
        return counts, len(column)

    def _count_dictionary(self, column: pa.DictionaryArray) -> NDArray[np.int64]:
        """Count the entries of the dictionary, then give each entry to its value; unused entries may be anything."""
        entries = histogram(column.indices.drop_null().to_numpy(), len(column.dictionary))
        used = np.flatnonzero(entries)
        counts = np.zeros(self.alphabet, np.int64)
        if self.missing is not None:
            counts[self.missing] = column.null_count
        np.add.at(counts, self.codes(column.dictionary.take(pa.array(used)))[:, 0], entries[used])
        return counts

    def support(self, keep: Fraction) -> Support:
        """Return the chances that a report is a given value."""
        return Support.of_one_symbol(keep, self.alphabet)
