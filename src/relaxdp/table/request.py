"""What is to be released: which columns of which table, as what, at which level, for whom."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa

from relaxdp.draw.key import Key
from relaxdp.draw.stream import PathId
from relaxdp.encode.declared import DeclaredEncoding, kind_in_words
from relaxdp.encode.numeric import NumericEncoding
from relaxdp.encode.protocol import Encoding
from relaxdp.errors import DeriveError, ObjectIdError, UnknownColumnError, ValuesError
from relaxdp.front import Mechanism, Numeric
from relaxdp.law.level import Level
from relaxdp.ledger.paths import Sampler
from relaxdp.table.column_names import ColumnNames
from relaxdp.table.derive import Nulls, Texts, is_spelled
from relaxdp.table.description import ColumnDescription, FileDescription
from relaxdp.table.plain import plain_type

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
    return ColumnDescription(
        path=each.path,
        encoding=encoding.name,
        epsilon=each.level.epsilon,
        threshold=each.level.threshold,
        id_type=id_type,
        key_fingerprint=key_fingerprint,
        sampler=sampler,
        values=None if numeric else tuple(encoding.labels),
        range=(float(encoding.labels[0]), float(encoding.labels[1])) if numeric else None,
        function=_function_name(encoding),
        options=encoding.options,
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
