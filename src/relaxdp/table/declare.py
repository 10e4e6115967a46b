"""From what a person declares about columns to the requests that the engine carries out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from relaxdp.errors import DeriveError, ValuesError
from relaxdp.front import Categorical, Mechanism, Numeric
from relaxdp.table.derive import Bins, Nulls, Numbers, ValueMap, declared_values
from relaxdp.table.formats import Input
from relaxdp.table.request import ColumnRequest, Derivation

_MOST_PUBLIC = 100_000


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

    def request(self, table: Input) -> ColumnRequest:
        """Return the request; values are never read from the data unless they are said to be public."""
        given = [self.values, self.range, self.bins, self.map]
        if sum(way is not None for way in given) + self.public != 1:
            raise ValuesError(
                f"say what {self.column!r} can be: its values, a range, bins or a map (one of them). Values are not "
                "read from the data, which would betray them, unless you say that they are public."
            )
        derivations: list[Derivation] = []
        mechanism: Mechanism
        if self.range is not None:
            if self.nulls is not None:
                raise DeriveError("numbers in a range have no value for what is missing: such rows are refused.")
            mechanism, derivations = Numeric(*self.range), [Numbers()]
        elif self.bins is not None:
            bins = Bins(tuple(self.bins))
            mechanism, derivations = Categorical(self._with_nulls(bins.labels)), [bins]
        elif self.map is not None:
            value_map = ValueMap.read(self.map)
            mechanism, derivations = Categorical(self._with_nulls(value_map.labels)), [value_map]
        else:
            kind = table.schema.field(self.column).type if self.column in table.schema.names else pa.string()
            texts = self.values if self.values is not None else None
            values = declared_values(texts, kind) if texts is not None else _public_values(table, self.column)
            mechanism = Categorical(self._with_nulls(values))
        if self.nulls is not None:
            derivations.append(Nulls(self.nulls))
        return ColumnRequest(self.column, mechanism, derivations)

    def _with_nulls(self, values: Sequence[Any]) -> list[Any]:
        if self.nulls is None:
            return list(values)
        texts = [str(value) for value in values]
        return texts if self.nulls in texts else [*texts, self.nulls]


def values_from_file(path: Path) -> list[str]:
    """Return declared values from a text file, one a line, in order; empty lines do not count."""
    try:
        lines = [line.rstrip("\r") for line in path.read_text("utf-8-sig").split("\n")]
    except (OSError, UnicodeDecodeError):
        raise ValuesError(f"the values file {str(path)!r} cannot be read as text.") from None
    return [line for line in lines if line]


def _public_values(table: Input, column: str) -> list[Any]:
    found: set[Any] = set()
    if column in table.schema.names:
        for batch in table.batches([column]):
            found |= set(pc.unique(batch.column(0).drop_null()).to_pylist())
            if len(found) > _MOST_PUBLIC:
                raise ValuesError(
                    f"{column!r} has more than {_MOST_PUBLIC:,} different values. Declare them, or use bins."
                )
    return sorted(found)
