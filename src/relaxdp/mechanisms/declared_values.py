"""Mechanisms for answers out of a list of declared values: the list, and the place of each answer in it."""

from __future__ import annotations

import struct
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence, Set
from decimal import Decimal
from functools import cached_property
from hashlib import sha256
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from relaxdp.errors import UndeclaredValueError, ValuesError, hide_secret_keys
from relaxdp.mechanisms.base import Mechanism, TrueValues
from relaxdp.sampling.arrow_columns import find_row, get_text_buffers, to_arrow, to_numpy
from relaxdp.sampling.kernel.c_library import get_kernel
from relaxdp.sampling.keyed_stream import Words, encode_declared_value, get_value_kind, is_missing
from relaxdp.theory.epsilon import Epsilon

if TYPE_CHECKING:
    from relaxdp.estimation.frequency import Frequency

_MAX_SHOWN = 8
_LONGEST_SHOWN = 31

# Hints for columns of another type than that of the declared values.
_DECLARE_RANGE = "Declare a range: rx.Numeric(0, 120), or --column age=0..120."
_DECLARE_TEXT = "Declare text: 'true' and 'false' for booleans, '2026-01-31' for dates."
_CONVERT = "Declare the values with the type of the column, or convert the column."
HINTS = {
    "true and false": "Declare the values 'true' and 'false' (--column NAME=true,false).",
    "dates": "Convert the column to text, and declare dates such as '2026-01-31'.",
    "numbers": _DECLARE_RANGE,
    "decimals": _DECLARE_RANGE,
}

# Names of the types of columns.
_TYPE_NAMES: tuple[tuple[Any, str], ...] = (
    (pa.types.is_boolean, "true and false"),
    (pa.types.is_integer, "whole numbers"),
    (pa.types.is_floating, "numbers"),
    (pa.types.is_decimal, "decimals"),
    (pa.types.is_date, "dates"),
    (lambda kind: pa.types.is_timestamp(kind) or pa.types.is_time(kind), "times"),
    (lambda kind: pa.types.is_string(kind) or pa.types.is_large_string(kind), "text"),
)

_TYPE_TESTS: dict[str, Callable[[pa.DataType], bool]] = {
    "integer": pa.types.is_integer,
    "text": lambda kind: pa.types.is_string(kind) or pa.types.is_large_string(kind),
    "bytes": lambda kind: (
        pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_fixed_size_binary(kind)
    ),
    "number": pa.types.is_float64,
    "uuid": lambda kind: False,
}
"""By the kind of declared values: which Arrow columns can contain them."""


class DeclaredMechanism(Mechanism):
    """A mechanism for values that are declared beforehand, in an order that is part of the path.

    None among them is the missing category: whatever is missing in a column has that value.
    """

    if TYPE_CHECKING:

        def estimate(self, reports: Any, *, epsilon: Epsilon) -> Frequency: ...

    def __init__(self, values: Sequence[Hashable]) -> None:
        self.values = tuple(_convert_to_python_scalar(value) for value in require_ordered_values(values))
        self.kind, encoded = _check_values(self.values)
        self.digest = sha256(struct.pack("<Q", len(self.values)) + b"".join(encoded)).digest()
        self._index = {value: index for index, value in enumerate(self.values)}
        self.missing = self._index.get(None)
        """The place of None among the values; None where whatever is missing is rejected."""
        # 0, 1, 2, ... as values are their own indices: the common case of data that is coded already.
        self.is_coded = self.kind == "integer" and self.values == tuple(range(len(self.values)))

    @property
    def labels(self) -> Sequence[Hashable]:
        return self.values

    @property
    def params(self) -> bytes:
        return self.digest

    def read_true_values(self, column: Any, first_row: int = 0) -> TrueValues:
        return TrueValues(self.find_value_indices(to_arrow(column), first_row))

    def find_value_indices(self, column: pa.Array, first_row: int = 0) -> Words:
        """Return the index of each value of a column, or reject it."""
        if self.is_coded and pa.types.is_integer(column.type) and not column.null_count:
            numbers = to_numpy(column)
            if len(numbers) and (int(numbers.min()) < 0 or int(numbers.max()) >= len(self.values)):
                outside = (numbers < 0) | (numbers >= len(self.values))
                raise self._make_undeclared_error(first_row + int(np.argmax(outside)))
            return np.asarray(numbers, dtype=np.uint64)
        found = self._find_column_indices(column)
        if found is None and column.null_count == len(column):
            raise self._make_undeclared_error(first_row, missing=True)
        if found is None:
            what = describe_column_type(column.type)
            raise UndeclaredValueError(
                "The column contains {kind}, and the {values} declared values are of kind {declared_kind!r}."
                if what
                else "The column has another type than the {values} declared values, which are of kind "
                "{declared_kind!r}.",
                hint=HINTS.get(what, _CONVERT),
                values=len(self.values),
                declared_kind=self.kind,
                kind=what,
            )
        if found.null_count:
            row = find_row(pc.is_null(found)) - 1
            raise self._make_undeclared_error(first_row + row, missing=column[row].as_py() is None)
        return to_numpy(found).astype(np.uint64, copy=False)

    def _find_column_indices(self, column: pa.Array) -> pa.Array | None:
        """Return indices, or None for another kind of column: an exception's context would carry a true value along."""
        try:
            if not pa.types.is_dictionary(column.type):
                return self._find_array_indices(column)
            places, codes = self._find_array_indices(column.dictionary), column.indices
            numbers = None if places.null_count or codes.null_count or not len(codes) else to_numpy(codes)
            # Arrow takes twice as long, because it gives its memory back to the system each time. NumPy does not reject
            # an index of 2^64 - 1: it takes the last entry.
            if numbers is not None and numbers.min() >= 0 and numbers.max() < len(places):
                return _make_index_array(to_numpy(places).astype(np.uint64, copy=False).take(numbers))
            found = pc.take(places, codes)
            return found if self.missing is None else pc.if_else(pc.is_valid(column.indices), found, self.missing)
        except (pa.ArrowException, UnicodeError, TypeError):
            return None

    def _find_array_indices(self, array: pa.Array) -> pa.Array:
        """Return the index of every element, null where it is not declared. A number is not its text."""
        if (found := self._find_text_indices(array)) is not None:
            return _make_index_array(found)
        if self.missing is not None:
            if pa.types.is_floating(array.type):
                array = pc.if_else(pc.is_nan(array), None, array)
            if array.null_count == len(array):  # of any type: pandas makes numbers of a column without values
                return pa.repeat(pa.scalar(self.missing, pa.int64()), len(array))
            if self.kind == "integer" and pa.types.is_floating(array.type):  # pandas' whole numbers with gaps
                array = array.cast(pa.int64())
        if not len(array):
            return pa.array([], pa.int64())
        kind, has_wide_values = array.type, pa.types.is_uint64(self._value_array.type)
        if self.kind == "uuid" and getattr(kind, "extension_name", None) == "arrow.uuid":
            return pa.array([self._index.get(each) for each in array.to_pylist()], type=pa.int64())
        if self.kind == "integer" and pa.types.is_integer(kind) and (has_wide_values or pa.types.is_uint64(kind)):
            return pa.array([self._index.get(number) for number in array.to_pylist()], type=pa.int64())
        if not _TYPE_TESTS[self.kind](kind):
            raise TypeError
        if kind != self._value_array.type:
            array = array.cast(self._value_array.type)
        if self.kind == "number":
            array = pc.add(array, 0.0)  # -0.0 is 0.0
        return pc.index_in(array, value_set=self._value_array)

    def _find_text_indices(self, array: pa.Array) -> Words | None:
        """Return the index of every text or bytes, by the compiled path; None where Arrow must look."""
        kernel, is_fixed = get_kernel(), pa.types.is_fixed_size_binary(array.type)
        if kernel is None or self.kind not in ("text", "bytes") or is_fixed or not _TYPE_TESTS[self.kind](array.type):
            return None
        # A null has no bytes, so it would be taken for the empty text.
        if not len(array) or array.null_count or self._value_array.null_count:
            return None
        return kernel.find_labels(get_text_buffers(self._value_array), get_text_buffers(array))

    @cached_property
    def _value_array(self) -> pa.Array:
        return to_arrow(self.values)

    def _make_undeclared_error(self, row: int, *, missing: bool = False) -> UndeclaredValueError:
        if missing:
            return UndeclaredValueError(
                "The {what} is missing. None is not one of the {values} declared values.",
                hint="Declare None too, such as ['flu', None] (--missing NAME). None is then one more category.",
                what="value",
                row=row + 1,
                values=len(self.values),
                missing=True,
            )
        return UndeclaredValueError(
            "The {what} is not one of the {values} declared values. Declared: {declared}.",
            hint="Declare all values. For numbers of a range, pass rx.Numeric(0, 120) (--column NAME=0..120)."
            if self.kind == "integer" and len(self.values) == 2
            else "Declare every value that can occur, spelled as in the table.",
            what="value",
            row=row + 1,
            values=len(self.values),
            declared=_format_values(self.values),
        )

    def __repr__(self) -> str:
        name, size, rest = type(self).__name__, len(self.values), self._format_repr_options()
        return f"{name}({list(self.values)!r}{rest})" if size <= 10 else f"<{name} of {size}{rest}>"

    def _format_repr_options(self) -> str:
        return ""


def _make_index_array(indices: Words) -> pa.Array:
    return pa.Array.from_buffers(pa.uint64(), len(indices), [None, pa.py_buffer(indices)])  # `pa.array` imports pandas


def require_ordered_values(values: Any) -> Sequence[Any]:
    """Return values that have an order, or reject others, such as a set."""
    if isinstance(values, str | bytes | Set | Mapping | type) or not isinstance(values, Iterable):
        raise ValuesError(
            "The values must be a list in a fixed order, not {type}: the order decides which reports are drawn.",
            hint="Pass a list such as ['flu', 'covid', 'none'].",
            type=type(values).__name__,
        )
    return values if isinstance(values, Sequence) else list(values)


def describe_column_type(arrow_type: pa.DataType) -> str:
    """Describe an Arrow type for people, or return an empty text."""
    arrow_type = arrow_type.value_type if pa.types.is_dictionary(arrow_type) else arrow_type
    return next((words for test, words in _TYPE_NAMES if test(arrow_type)), "")


def _format_values(values: Sequence[Any]) -> str:
    """Format the first declared values, which are public, so that blanks and quotation marks are seen."""
    texts = [hide_secret_keys(repr(value)) for value in values[:_MAX_SHOWN]]  # before they are cut
    texts = [text if len(text) <= _LONGEST_SHOWN + 3 else f"{text[:_LONGEST_SHOWN]}...{text[-1]}" for text in texts]
    rest = len(values) - len(texts)
    return ", ".join(texts) + (f" and {rest:,} more" if rest else "")


def _convert_to_python_scalar(value: Any) -> Any:
    """Convert NumPy's scalars to Python's and -0.0 to 0.0, so that equal values are one value."""
    value = value.item() if isinstance(value, np.generic) else value
    return value + 0.0 if isinstance(value, float) else value


def _check_values(values: Sequence[Any]) -> tuple[str, list[bytes]]:
    """Check declared values, and return their kind and their canonical bytes."""
    if len(values) < 2:
        raise ValuesError(
            "The list of values is too short: it has {values}. At least two values must be declared.",
            hint="List every value that can occur, such as ['flu', 'covid', 'none'].",
            values=len(values),
        )
    present = [value for value in values if value is not None]
    strange = next((value for value in present if is_missing(value) or get_value_kind(value) is None), None)
    if is_missing(strange) and strange is not None:
        raise ValuesError(
            "A declared value is a missing value of type {type}. Only None is accepted: it stands for NaN and NaT too.",
            hint="Declare None instead, such as ['flu', 'covid', None].",
            type=type(strange).__name__,
        )
    if strange is not None:
        raise ValuesError(
            "A declared value is of type {type}. Expected numbers, text, bytes or UUIDs.",
            hint=_DECLARE_RANGE if isinstance(strange, Decimal) else _DECLARE_TEXT,
            type=type(strange).__name__,
        )
    kinds = {str(get_value_kind(value)) for value in present}
    if len(kinds) > 1:
        raise ValuesError(
            "The declared values are of different kinds: {kinds}. All must be of one kind.",
            hint="Write all of them as text, or all of them as numbers.",
            kinds=", ".join(sorted(kinds)),
        )
    if kinds == {"integer"} and min(present) < 0 and max(present) >= 2**63:
        raise ValuesError(
            "A declared value is too large. Whole numbers must fit into 64 bits, all signed or all unsigned.",
            hint="Declare the values as text.",
        )
    try:
        encoded = [encode_declared_value(value) for value in values]
    except ValueError as problem:
        raise ValuesError(
            "A declared value cannot be used: {problem}.", hint='Declare it as text, such as "12".', problem=problem
        ) from None
    seen: set[bytes] = set()
    for value, data in zip(values, encoded, strict=True):
        if data in seen:  # declared values are public
            raise ValuesError("The value {value!r} is declared twice.", hint="Declare {value!r} once.", value=value)
        seen.add(data)
    return kinds.pop(), encoded
