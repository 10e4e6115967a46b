"""What is to be released: which columns of which table, as what, at which level."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa

from relaxdp.draw.key import Key
from relaxdp.draw.stream import PathId
from relaxdp.encodings.declared import REMEDIES, kind_in_words
from relaxdp.encodings.protocol import Encoding
from relaxdp.errors import DeriveError, ObjectIdError, UnknownColumnError, ValuesError
from relaxdp.law.level import Level
from relaxdp.ledger.entries import Sampler
from relaxdp.mechanisms import Mechanism
from relaxdp.publication.derive import ColumnNames, MissingAs, Nulls, Texts, is_spelled
from relaxdp.publication.description import ColumnDescription, FileDescription
from relaxdp.publication.plain import plain_type

Derivation = Callable[[Any, int], Any]


@dataclass(frozen=True, slots=True)
class ColumnRequest:
    """One column, how its truth is derived, and the mechanism that hides it. The attribute names its path."""

    column: str
    mechanism: Mechanism
    derivations: Sequence[Derivation] = ()
    planned: Decimal | None = None
    """The last epsilon that is planned, where a person said it."""
    chosen_for: Decimal | None = None
    """The epsilon for which the encoding was chosen; None where nobody left that open, or an old path goes on."""
    overruled: str | None = None
    """What would have been chosen, where "auto" was said and the path was opened with another encoding."""

    def check_kind(self, kind: Any) -> None:
        """Refuse true, false and dates whose declared values are not spelled as these become text.

        Said before any row is looked at; where a map stands between, the declared values are what it gives.
        """
        encoding = self.mechanism.encoding
        if encoding.domain != "values" or not is_spelled(kind) or not self._is_plain():
            return
        what, labels = kind_in_words(kind), encoding.labels
        if pa.types.is_boolean(plain_type(kind)):
            is_spelled_so, how = any(each in ("true", "false") for each in labels), "as 'true' and 'false'"
        else:
            is_spelled_so, how = any(_is_date(each) for each in labels), "like '2026-01-31'"
        if not is_spelled_so:
            raise ValuesError(
                "{column!r} holds {kind}, which are declared {how}.",
                remedy=REMEDIES.get(what, ""),
                column=self.column,
                how=how,
                kind=what,
            )

    def _is_plain(self) -> bool:
        return all(isinstance(derive, Texts | Nulls | MissingAs) for derive in self.derivations)

    def truth(self, column: Any, first_row: int) -> Any:
        """Return the truths of a part of the column."""
        derived = self._derived(column, first_row)
        if derived is None:  # raised here, because Arrow's own message may quote the row
            raise DeriveError("{column!r} is not of a type that this can be derived from.", column=self.column)
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
    as_of: str | None = None
    """The day whose table it is, where a ledger remembers it."""

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
    date: str = ""
    """Of a dated release."""
    as_of: str | None = None
    """The day whose table it is, where a person says it; else it is that of the first release."""

    def planned(self) -> tuple[Planned, ...]:
        """Return the paths of all columns, each in its first epoch, and their levels."""
        paths = (PathId(self.release, each.column, date=self.date) for each in self.columns)
        return tuple(
            Planned(each, path, each.mechanism.encoding.level(self.epsilon))
            for each, path in zip(self.columns, paths, strict=True)
        )

    def check_columns(self, names: ColumnNames) -> None:
        """Refuse names that the table does not have, or twice."""
        check_columns(names, self.id_column, [request.column for request in self.columns], self.keep)

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
            {
                each.request.column: ColumnDescription.of(
                    each.encoding,
                    each.level,
                    path=each.path,
                    id_type=id_type,
                    key_fingerprint=self.key.fingerprint,
                    sampler=sampler,
                    as_of=each.as_of,
                )
                for each in columns
            },
        )


def check_columns(names: ColumnNames, id_column: str, released: Sequence[str], keep: Sequence[str]) -> None:
    """Refuse names that a table does not have, or that are given twice."""
    for name in (id_column, *released, *keep):
        names.check(name)
    others = [*released, *keep]
    if id_column in others or len(set(others)) < len(others):
        raise UnknownColumnError("a column can be the id, released or kept, but only one of these, and once.")


def _is_date(value: object) -> bool:
    try:
        return isinstance(value, str) and date.fromisoformat(value).isoformat() == value
    except ValueError:
        return False


@dataclass(frozen=True, slots=True, kw_only=True)
class TableRequest(ReleaseRequest):
    """A release from one file to another."""

    source: Path
    target: Path

    @classmethod
    def between(cls, request: ReleaseRequest, source: Path, target: Path) -> TableRequest:
        """Return a request for what another one asks for, from this file to that one."""
        asked = {each.name: getattr(request, each.name) for each in fields(ReleaseRequest)}
        return cls(**asked, source=source, target=target)


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
    raise ObjectIdError("ids must be whole numbers, text, bytes or UUIDs; this column is of type {kind}.", kind=kind)
