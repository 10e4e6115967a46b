"""A column of a table: its name, which may be data, and how its truth is derived from what stands there."""

from __future__ import annotations

import csv
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa
import pyarrow.compute as pc

from relaxdp.draw.canonical import has_utf8
from relaxdp.errors import DeriveError, UndeclaredValueError, UnknownColumnError

# How a table that looks like one column of a strange name is taken apart.
_MARKS = {";": "semicolons", "\t": "tabs", "|": "vertical bars"}


@dataclass(frozen=True, slots=True)
class ColumnNames:
    """All names of a table, also those that name no path, and where a person sees them if they are not shown."""

    names: Sequence[Any]
    seen_in: str | None = None
    """Where a person can look at names that may be data; None where they are a schema, and are shown."""

    @classmethod
    def of_frame(cls, names: Sequence[Any]) -> ColumnNames:
        """Return the names of a data frame of any kind."""
        return cls(names, "the frame's own list of columns")

    @property
    def usable(self) -> list[str]:
        """Those that can name a path: pandas has columns that are called by a number, or by half of a letter."""
        return [name for name in self.names if isinstance(name, str) and has_utf8(name)]

    def check(self, name: str) -> None:
        """Refuse a name that the table does not have, or has twice."""
        check_name(name)
        times = self.usable.count(name)
        if times > 1:
            raise UnknownColumnError(
                "the table has {times} columns named {column!r}: give them different names.",
                times=times,
                column=name,
            )
        if times:
            return
        first = self.names[0] if len(self.names) == 1 else None
        mark = next((mark for mark in _MARKS if isinstance(first, str) and mark in first), None)
        if mark is not None:
            raise UnknownColumnError(
                "the table has no column {column!r}: its fields seem to be separated by {mark}.",
                remedy="separator",
                mark=_MARKS[mark],
                column=name,
            )
        raise UnknownColumnError(
            "the table has no column {column!r}.{hint}", hint=self.hint(name, self.names), column=name
        )

    def hint(self, wanted: str, among: Sequence[str]) -> str:
        """Return what a refusal says of the columns that could be meant, which are some of these or all."""
        if self.seen_in is None:
            return nearest(wanted, among)
        columns = f"{len(self.names):,} column{'' if len(self.names) == 1 else 's'}"
        return (
            f" It has {columns}, whose names are not shown: those of a table without a header are data. Look at "
            f"{self.seen_in}."
        )


def check_name(name: object) -> None:
    """Refuse what is no name; it is not shown, because a whole column is given by mistake, too."""
    if not isinstance(name, str):
        raise UnknownColumnError(
            "a column is called by its name, which is text, and this is of type {type}.", type=type(name).__name__
        )


def nearest(wanted: str, names: Sequence[str]) -> str:
    """Return a hint at the nearest of names that may be shown, or at all of them."""
    near = get_close_matches(wanted, names, 1)
    if near:
        return f" Did you mean {near[0]!r}?"
    return f" It has: {', '.join(map(repr, names[:12]))}." if names else ""


Column = Any


@dataclass(frozen=True, slots=True)
class MissingAs:
    """A text like NA that stands for a missing value becomes one; other kinds of columns have no such text."""

    texts: tuple[str, ...]

    def __call__(self, column: Column, first_row: int) -> Column:
        """Make holes of these texts."""
        if pa.types.is_dictionary(column.type):
            column = column.dictionary_decode()
        if not (pa.types.is_string(column.type) or pa.types.is_large_string(column.type)):
            return column
        return pc.if_else(pc.is_in(column, pa.array(self.texts, column.type)), pa.scalar(None, column.type), column)


@dataclass(frozen=True, slots=True)
class Nulls:
    """A missing value becomes a declared value of its own."""

    value: str

    def __call__(self, column: Column, first_row: int) -> Column:
        """Fill the gaps; other kinds of columns than text have no such value."""
        if not pa.types.is_string(column.type) and not pa.types.is_large_string(column.type):
            column = column.cast(pa.string())
        return pc.fill_null(column, self.value)


@dataclass(frozen=True, slots=True)
class Bins:
    """A number becomes the bin that it falls into: below the first edge, between two edges, or from the last one on."""

    edges: tuple[float, ...]

    def __post_init__(self) -> None:
        if not self.edges or any(low >= high for low, high in pairwise(self.edges)):
            raise DeriveError("the edges of bins must be one or more growing numbers, like 18,30,65.")

    @property
    def labels(self) -> tuple[str, ...]:
        """The names of the bins, in order: these are the declared values."""
        between = [f"{low:g} to {high:g}" for low, high in pairwise(self.edges)]
        return (f"below {self.edges[0]:g}", *between, f"{self.edges[-1]:g} or more")

    def __call__(self, column: Column, first_row: int) -> Column:
        """Return the bins' names, as a dictionary."""
        numbers = as_numbers(column, first_row)
        if pa.types.is_floating(numbers.type):  # NaN is no small number: it is missing, and refused or declared as such
            numbers = pc.if_else(pc.is_nan(numbers), pa.scalar(None, numbers.type), numbers)
        place = pa.scalar(0, pa.int32())
        for edge in self.edges:
            place = pc.add(place, pc.cast(pc.greater_equal(numbers, edge), pa.int32()))
        return pa.DictionaryArray.from_arrays(place, pa.array(self.labels))


TimePart = Literal["date", "hour", "weekday", "month"]

_DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_MONTHS = (
    "January", "February", "March", "April", "May", "June",
    "July", "August", "September", "October", "November", "December",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class PartOfTime:
    """A time becomes its date (2026-01-31), or its hour (00 to 23), weekday or month, in its own time zone."""

    part: TimePart

    @property
    def labels(self) -> tuple[str, ...] | None:
        """What it can become, which everybody knows; None for dates, of which there are too many."""
        hours = tuple(f"{hour:02}" for hour in range(24))
        return {"date": None, "hour": hours, "weekday": _DAYS, "month": _MONTHS}[self.part]

    def __call__(self, column: Column, first_row: int) -> Column:
        """Return text; times may be written as ISO 8601 does."""
        if pa.types.is_dictionary(column.type):
            column = column.dictionary_decode()
        times = column if pa.types.is_timestamp(column.type) or pa.types.is_date(column.type) else _as_times(column)
        if times is None:
            row = next((row for row in range(len(column)) if _as_times(column[row : row + 1]) is None), 0)
            raise DeriveError("this is not a time.", row=first_row + row + 1)
        if self.part == "date":
            return pc.strftime(times, "%Y-%m-%d")
        if self.part == "hour" and pa.types.is_date(times.type):
            raise DeriveError("a date has no hour.")
        place = {
            "hour": pc.hour,
            "weekday": pc.day_of_week,
            "month": lambda each: pc.subtract(pc.month(each), 1),
        }[self.part](times)
        return pa.array(self.labels).take(place)


def _as_times(column: Column) -> Column | None:
    try:
        return column.cast(pa.timestamp("us"))
    except pa.ArrowException:
        return None


@dataclass(frozen=True, slots=True)
class ValueMap:
    """A value becomes another one, by a table of two columns; several may become the same."""

    pairs: tuple[tuple[str, str], ...]
    name: str = ""
    """Where the table was read from, for refusals."""

    @classmethod
    def read(cls, path: Path) -> ValueMap:
        """Read a CSV file of pairs, without a header."""
        try:
            with path.open(newline="", encoding="utf-8-sig") as file:
                rows = [tuple(row) for row in csv.reader(file) if row]
        except (OSError, UnicodeDecodeError):
            raise DeriveError("the map {path!r} cannot be read.", path=str(path)) from None
        if not rows or any(len(row) != 2 for row in rows):
            raise DeriveError("the map {path!r} must have two columns: value, what it becomes.", path=str(path))
        if len({row[0] for row in rows}) != len(rows):
            raise DeriveError("the map {path!r} names a value twice.", path=str(path))
        return cls(tuple((row[0], row[1]) for row in rows), str(path))

    @classmethod
    def of(cls, said: str | os.PathLike[str] | Mapping[str, str]) -> ValueMap:
        """Return the map of a dictionary or of a file."""
        if not isinstance(said, Mapping):
            return cls.read(Path(said))
        if not said or not all(isinstance(each, str) for pair in said.items() for each in pair):
            raise DeriveError("a map says of texts which texts they become.")
        return cls(tuple(said.items()))

    @property
    def labels(self) -> tuple[str, ...]:
        """What values become, in the order of the file: these are the declared values."""
        return tuple(dict.fromkeys(target for _, target in self.pairs))

    def __call__(self, column: Column, first_row: int) -> Column:
        """Return the mapped column. What was missing stays missing; a value that the map does not name is refused."""
        if pa.types.is_dictionary(column.type):
            column = column.dictionary_decode()
        sources = pa.array([source for source, _ in self.pairs])
        found = pc.index_in(column.cast(pa.string()), value_set=sources)
        unnamed = pc.and_(pc.is_valid(column), pc.is_null(found))
        row = pc.index(unnamed, True).as_py()
        if row >= 0:
            raise UndeclaredValueError(
                "the value is not in the map, where a column of true and false is written as true and false."
                if pa.types.is_boolean(column.type)
                else "the value is not in the map.",
                map=self.name,
                row=first_row + row + 1,
            )
        targets = pa.array([self.labels.index(target) for _, target in self.pairs], type=pa.int32())
        return pa.DictionaryArray.from_arrays(pc.take(targets, found), pa.array(self.labels))


@dataclass(frozen=True, slots=True)
class Numbers:
    """A column of text becomes numbers; one of numbers stays as it is."""

    def __call__(self, column: Column, first_row: int) -> Column:
        """Return numbers."""
        return as_numbers(column, first_row)


@dataclass(frozen=True, slots=True)
class Texts:
    """True, false and dates become text, as `true`, `false` and `2026-01-31`; other columns stay as they are.

    The values of such a column are declared like this, and it takes the path that text of this spelling takes.
    """

    def __call__(self, column: Column, first_row: int) -> Column:
        """Return text."""
        if not is_spelled(column.type):
            return column
        return (column.dictionary_decode() if pa.types.is_dictionary(column.type) else column).cast(pa.string())


def is_spelled(kind: Any) -> bool:
    """Tell whether a column of this type is released as text: it has no kind of value that is declared as it is."""
    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    return bool(pa.types.is_boolean(kind) or pa.types.is_date(kind))


def as_numbers(column: Column, first_row: int) -> Column:
    """Return a column as numbers; the sentence names the row, never its content."""
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if pa.types.is_integer(column.type) or pa.types.is_floating(column.type):
        return column
    numbers = _try_cast(column)
    if numbers is None:
        row = next((row for row in range(len(column)) if _try_cast(column[row : row + 1]) is None), 0)
        raise DeriveError("this is not a number.", row=first_row + row + 1)
    return numbers


def _try_cast(column: Column) -> Column | None:
    try:
        return column.cast(pa.float64())
    except pa.ArrowException:
        return None


def declared_values(values: Sequence[Any], kind: Any) -> tuple[Any, ...]:
    """Return declared values as the kind of a column: texts are whole numbers for a column of them."""
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    if not pa.types.is_integer(kind):
        return tuple(values)
    try:
        return tuple(int(value) if isinstance(value, str) else value for value in values)
    except ValueError:
        raise DeriveError("the column holds whole numbers, and so must the declared values.") from None
