"""From what a person declares about columns to the requests that the engine carries out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa

from relaxdp.draw.key import is_key_text
from relaxdp.errors import DeriveError, ValuesError
from relaxdp.front import Mechanism, Numeric, mechanism
from relaxdp.table.column_names import ColumnNames
from relaxdp.table.derive import Bins, Nulls, Numbers, Texts, ValueMap, declared_values, is_spelled
from relaxdp.table.plain import plain_type
from relaxdp.table.request import ColumnRequest, Derivation

_MOST_PUBLIC = 100_000


class Declarable(Protocol):
    """A table about which something is declared."""

    schema: Any
    names: ColumnNames

    def distinct(self, column: str, most: int) -> set[Any]:
        """Return the different values of a column, or more than `most` of them where there are more."""
        ...


@dataclass(frozen=True, slots=True)
class Declaration:
    """What is said about one column. Exactly one of values, public, range, bins and map says what its truth can be."""

    column: str
    values: Sequence[str] | None = None
    public: bool = False
    range: tuple[float, float] | None = None
    bins: Sequence[float] | None = None
    map: Path | None = None
    nulls: str | None = None
    encoding: str = "categorical"
    """How declared values are encoded; "auto" takes the best for `planned`, the last epsilon that is planned."""
    planned: Decimal | None = None
    options: Mapping[str, Any] = field(default_factory=dict)

    def request(self, table: Declarable) -> ColumnRequest:
        """Return the request; values are never read from the data unless they are said to be public."""
        given = [self.values, self.range, self.bins, self.map]
        if sum(way is not None for way in given) + self.public != 1:
            raise ValuesError(
                f"say what {self.column!r} can be: its values, a range, bins or a map (one of them). Values are not "
                "read from the data, which would betray them, unless you say that they are public."
            )
        table.names.check(self.column)
        derivations: list[Derivation] = []
        made: Mechanism
        if self.range is not None:
            if self.nulls is not None:
                raise DeriveError(
                    "numbers in a range have no value for what is missing: use --bins with --nulls, which makes "
                    "classes of numbers and one of what is missing. Nothing was released."
                )
            made, derivations = Numeric(*self.range), [Numbers()]
        elif self.bins is not None:
            bins = Bins(tuple(self.bins))
            made, derivations = self._mechanism(self._with_nulls(bins.labels)), [bins]
        elif self.map is not None:
            value_map = ValueMap.read(self.map)
            made, derivations = self._mechanism(self._with_nulls(value_map.labels)), [value_map]
        else:
            kind = table.schema.field(self.column).type
            values = _public_values(table, self.column) if self.values is None else declared_values(self.values, kind)
            made = self._mechanism(self._with_nulls(values))
            derivations = [Texts()] if is_spelled(kind) else []
        if self.nulls is not None:
            derivations.append(Nulls(self.nulls))
        return ColumnRequest(self.column, made, derivations)

    def _mechanism(self, values: Sequence[Any]) -> Mechanism:
        return mechanism(values, encoding=self.encoding, epsilon=self.planned, **self.options)

    def _with_nulls(self, values: Sequence[Any]) -> list[Any]:
        if self.nulls is None:
            return list(values)
        texts = [str(value) for value in values]
        return texts if self.nulls in texts else [*texts, self.nulls]


def values_from_text(text: str) -> list[str]:
    """Return declared values from a text like a,b,c; what looks like a mistake is refused, a file takes it as it is."""
    values = text.split(",")
    for value in values:
        if value[:1] == '"' or value[-1:] == '"':
            raise ValuesError(
                f"--values is cut at every comma and takes quotation marks as they are, so that {value!r} would be one "
                "of the values. --values-file FILE takes such values, one a line. Nothing was released."
            )
        if value != value.strip():
            without = ",".join(each.strip() for each in values)
            raise ValuesError(
                f"--values would declare {value!r}, with a blank at its end: write {without} without blanks. "
                "--values-file FILE takes values as they are, one a line. Nothing was released."
            )
    return values


def values_from_file(path: Path) -> list[str]:
    """Return declared values from a text file, one a line, in order; empty lines do not count."""
    try:
        text = path.read_text("utf-8-sig")
    except (OSError, UnicodeDecodeError):
        raise ValuesError(f"the values file {str(path)!r} cannot be read as text.") from None
    if is_key_text(text):
        raise ValuesError(f"{str(path)!r} is a key file, and no list of values. Nothing was released.")
    lines: dict[str, int] = {}
    for number, line in enumerate(text.split("\n"), 1):
        value = line.rstrip("\r")
        if value and lines.setdefault(value, number) != number:  # not shown: it may be another file than was meant
            raise ValuesError(
                f"line {number:,} of {str(path)!r} is the value of line {lines[value]:,} again. Nothing was released."
            )
    return list(filter(None, lines))


def _public_values(table: Declarable, column: str) -> list[Any]:
    kind = plain_type(table.schema.field(column).type)
    if pa.types.is_temporal(kind) and not is_spelled(kind):
        raise ValuesError(
            f"{column!r} is of type {kind}, of which no values can be declared: release a column of dates or text that "
            "is made from it. Nothing was released."
        )
    if pa.types.is_nested(kind):
        raise ValuesError(
            f"{column!r} holds lists, structs or maps, of which no values can be declared: release a column of text or "
            "numbers that is made from it. Nothing was released."
        )
    found = table.distinct(column, _MOST_PUBLIC)
    if len(found) > _MOST_PUBLIC:
        raise ValuesError(f"{column!r} has more than {_MOST_PUBLIC:,} different values. Declare them, or use bins.")
    ordered = sorted(found)
    return pa.array(ordered, kind).cast(pa.string()).to_pylist() if is_spelled(kind) else ordered
