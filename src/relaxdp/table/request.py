"""What is to be released: which columns of which table, as what, at which level; and how a person says so."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa

from relaxdp.draw.key import Key, is_key_text
from relaxdp.draw.stream import PathId
from relaxdp.encodings.declared import DeclaredEncoding, kind_in_words
from relaxdp.encodings.numeric import NumericEncoding
from relaxdp.encodings.protocol import Encoding
from relaxdp.errors import DeriveError, ObjectIdError, UnknownColumnError, ValuesError
from relaxdp.law.level import Level
from relaxdp.ledger.entries import Sampler
from relaxdp.mechanisms import Mechanism, Numeric, mechanism
from relaxdp.table.columns import Bins, ColumnNames, Nulls, Numbers, Texts, ValueMap, declared_values, is_spelled
from relaxdp.table.description import ColumnDescription, FileDescription
from relaxdp.table.plain import plain_type

# How a table that looks like one column of a strange name is taken apart.
_MARKS = {";": "semicolons", "\t": "tabs", "|": "vertical bars"}


Derivation = Callable[[Any, int], Any]


@dataclass(frozen=True, slots=True)
class ColumnRequest:
    """One column, how its truth is derived, and the mechanism that hides it. The attribute names its path."""

    column: str
    mechanism: Mechanism
    derivations: Sequence[Derivation] = ()

    def check_kind(self, kind: Any) -> None:
        """Refuse true, false and dates whose declared values are not spelled as these become text.

        Said before any row is looked at; where a map stands between, the declared values are what it gives.
        """
        encoding = self.mechanism.encoding
        if not isinstance(encoding, DeclaredEncoding) or not is_spelled(kind) or not self._is_plain():
            return
        what, labels = kind_in_words(kind), encoding.labels
        if pa.types.is_boolean(plain_type(kind)):
            is_spelled_so, how = any(each in ("true", "false") for each in labels), "as 'true' and 'false'"
        else:
            is_spelled_so, how = any(_is_date(each) for each in labels), "like '2026-01-31'"
        if not is_spelled_so:
            raise ValuesError(
                f"{self.column!r} holds {what}, which are declared {how}. Nothing was released.", kind=what
            )

    def _is_plain(self) -> bool:
        return all(isinstance(derive, Texts | Nulls) for derive in self.derivations)

    def truth(self, column: Any, first_row: int) -> Any:
        """Return the truths of a part of the column."""
        derived = self._derived(column, first_row)
        if derived is None:  # raised here, because Arrow's own message may quote the row
            raise DeriveError(f"{self.column!r} is not of a type that this can be derived from. Nothing was released.")
        return derived

    def _derived(self, column: Any, first_row: int) -> Any | None:
        try:
            for derive in self.derivations:
                column = derive(column, first_row)
        except pa.ArrowException:
            return None
        return column


@dataclass(frozen=True, slots=True)
class Planned:
    """One column, the path that is drawn, and the level."""

    request: ColumnRequest
    path: PathId
    level: Level

    @property
    def encoding(self) -> Encoding:
        """How its values become symbols."""
        return self.request.mechanism.encoding


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseRequest:
    """A release of columns, wherever they lie: files, data frames and Spark all ask for it like this."""

    id_column: str
    columns: Sequence[ColumnRequest]
    epsilon: Decimal
    key: Key
    release: str
    keep: Sequence[str] = ()

    def planned(self) -> tuple[Planned, ...]:
        """Return the paths of all columns, each in its first epoch, and their levels."""
        return tuple(
            Planned(each, PathId(self.release, each.column), each.mechanism.encoding.level(self.epsilon))
            for each in self.columns
        )

    def check_columns(self, names: ColumnNames) -> None:
        """Refuse names that the table does not have, or twice."""
        released = [request.column for request in self.columns]
        for name in (self.id_column, *released, *self.keep):
            names.check(name)
        repeated = {name for name in (self.id_column, *released, *self.keep) if [*released, *self.keep].count(name) > 1}
        if repeated or self.id_column in (*released, *self.keep):
            raise UnknownColumnError("a column can be the id, released or kept, but only one of these, and once.")

    def check_kinds(self, schema: Any) -> None:
        """Refuse values that cannot be those of their column."""
        for request in self.columns:
            request.check_kind(schema.field(request.column).type)

    def input_columns(self) -> list[str]:
        """Return the columns that are read."""
        return [self.id_column, *(request.column for request in self.columns), *self.keep]

    def output_schema(self, schema: Any) -> Any:
        """Return the columns that are written: ids, released ones, kept ones; nothing else of the input."""
        fields = [(self.id_column, plain_type(schema.field(self.id_column).type))]
        fields += [(request.column, request.mechanism.encoding.report_type) for request in self.columns]
        fields += [(name, plain_type(schema.field(name).type)) for name in self.keep]
        return pa.schema(fields)

    def description(self, id_type: str, columns: Sequence[Planned], sampler: Sampler = Sampler.PATH) -> FileDescription:
        """Return what the released file will say about itself."""
        return FileDescription(
            self.id_column,
            {each.request.column: _described(each, id_type, self.key.fingerprint, sampler) for each in columns},
        )


def _described(each: Planned, id_type: str, key_fingerprint: str, sampler: Sampler) -> ColumnDescription:
    encoding, numeric = each.encoding, isinstance(each.request.mechanism, Numeric)
    labels, options = encoding.labels, encoding.options
    return ColumnDescription(
        path=each.path,
        encoding=encoding.name,
        epsilon=each.level.epsilon,
        threshold=each.level.threshold,
        id_type=id_type,
        key_fingerprint=key_fingerprint,
        sampler=sampler,
        values=None if numeric else tuple(labels),
        range=(float(labels[0]), float(labels[1])) if numeric else None,
        function=_function_name(encoding),
        options=options,
    )


def _is_date(value: object) -> bool:
    try:
        return isinstance(value, str) and date.fromisoformat(value).isoformat() == value
    except ValueError:
        return False


def _function_name(encoding: Encoding) -> str | None:
    """Return the function whose mean is estimated, where numbers do not stand for themselves."""
    if not isinstance(encoding, NumericEncoding) or encoding.function_name == "identity":
        return None
    return encoding.function_name


@dataclass(frozen=True, slots=True, kw_only=True)
class TableRequest(ReleaseRequest):
    """A release from one file to another."""

    source: Path
    target: Path


def id_type_of(kind: Any) -> str:
    """Return the type of ids as files and ledgers record it: 17 and "17" are different people."""
    kind = plain_type(kind)
    if pa.types.is_integer(kind):
        return "integer"
    if pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        return "text"
    if getattr(kind, "extension_name", None) == "arrow.uuid":
        return "uuid"
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_fixed_size_binary(kind):
        return "bytes"
    raise ObjectIdError(f"ids must be whole numbers, text, bytes or UUIDs; this column is of type {kind}.")


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
