"""What a person says about a column that is to be released, and the request that this makes."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any, Protocol

from relaxdp.draw.key import is_key_text
from relaxdp.encodings.declared import CategoricalEncoding, DeclaredEncoding
from relaxdp.encodings.numeric import MissingNumericEncoding
from relaxdp.encodings.registry import encoding_named
from relaxdp.errors import DeriveError, EncodingError, ValuesError
from relaxdp.ledger.entries import PathFacts
from relaxdp.mechanisms import Mechanism, mechanism
from relaxdp.publication.derive import (
    Bins,
    ColumnNames,
    MissingAs,
    Nulls,
    Numbers,
    PartOfTime,
    Texts,
    TimePart,
    ValueMap,
    declared_values,
)
from relaxdp.publication.request import ColumnRequest, Derivation

_MOST_GUESSED = Decimal(4)
_LEAST = Decimal("0.001")  # so few values that they are categorical at this epsilon are so at every one


class Declarable(Protocol):
    """A table about which something is declared."""

    schema: Any
    names: ColumnNames


@dataclass(frozen=True, slots=True)
class Opening:
    """What decides how a path is encoded where nobody says: never a truth."""

    planned: Decimal | None
    """The last epsilon that is planned, as far as anybody can tell; None where no ledger remembers the choice."""
    is_said: bool = False
    """Whether a person said it."""
    opened: PathFacts | None = None
    """What its path was opened with, where it goes on."""
    alone: str | None = None
    """The only encoding that can be meant here, if there is one."""
    is_unknown: bool = False
    """Whether it may have been encoded before and nobody can tell how: the ledger is gone, or cannot be read."""
    has_ledger: bool = True
    """Whether a ledger will remember the choice."""
    epsilon: Decimal = Decimal(0)
    """The level that is released now."""

    def planned_for(self, declared: Mapping[str, Any]) -> Decimal | None:
        """Return the last epsilon for which a new path of what is declared is encoded.

        A large budget that nobody means to spend on one column would make the window of numbers so narrow that early
        levels tell nothing, for a gain that is small beyond an epsilon of 4. Whoever means it says it.
        """
        if self.planned is None or self.is_said or "range" not in declared:
            return self.planned
        return min(self.planned, max(self.epsilon, _MOST_GUESSED))


@dataclass(frozen=True, slots=True)
class Column:
    """What is said about a column that is to be released, where a mechanism alone does not say it.

    Exactly one of values, range, bins and map says what its truth can be.

    >>> Column(bins=[18, 65], nulls="not told").labels
    ['below 18', '18 to 65', '65 or more', 'not told']
    """

    values: Sequence[Any] | None = None
    """The declared values; as text also those of a column of whole numbers."""
    range: tuple[float, float] | None = None
    """Numbers from a lower to a higher one, for means and quantiles."""
    clip: bool = False
    """Numbers outside of the range are put into it."""
    missing: bool = False
    """Numbers in a range may be missing: that is a report of its own, and the mean is that of the others."""
    bins: Sequence[float] | None = None
    """Numbers become bins with these edges."""
    part: TimePart | None = None
    """Times become their date, of which values are declared, or their hour, weekday or month."""
    map: str | os.PathLike[str] | Mapping[str, str] | None = None
    """What each value becomes: a dictionary, or a CSV file of two columns."""
    nulls: str | None = None
    """A missing value becomes this one, which is added to the declared values."""
    missing_as: Sequence[str] = ()
    """Texts that stand for a missing value, like NA; an empty field of a CSV file is missing anyway."""
    encoding: str | None = None
    """None goes on as the path was opened, and opens one with the best encoding for the last planned epsilon."""
    options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def labels(self) -> list[Any]:
        """The declared values."""
        found: Sequence[Any] = self.values or ()
        if self.bins is not None:
            found = Bins(tuple(self.bins)).labels
        elif self.map is not None:
            found = ValueMap.of(self.map).labels
        elif self.part is not None:
            found = PartOfTime(self.part).labels or found
        return self._with_nulls(found)

    def request(self, name: str, table: Declarable, opening: Opening) -> ColumnRequest:
        """Return the request; values are never read from the data."""
        given = [self.values, self.range, self.bins, self.map]
        if self.part not in (None, "date"):
            given.append(PartOfTime(self.part).labels)
        if sum(way is not None for way in given) != 1:
            raise ValuesError(
                "say what {column!r} can be: its values, a range, bins or a map (one of them). Values are not read "
                "from the data, which would betray them.",
                remedy="say_values",
                column=name,
            )
        table.names.check(name)
        if self.range is not None:
            if self.nulls is not None:
                raise DeriveError("numbers in a range have no value for what is missing.", remedy="missing_number")
            numbers = {"range": self.range, "clip": self.clip, "missing": self.missing}
            return self._encoded(name, opening, [*self._holes(), Numbers()], **numbers)
        if self.clip or self.missing:
            raise DeriveError(
                "{column!r} has declared values: only numbers in a range are clipped, and missing without a value.",
                remedy="missing_value",
                column=name,
            )
        derivations: list[Derivation] = [Texts()]
        values = self.labels
        if self.bins is not None:
            derivations = [Bins(tuple(self.bins))]
        elif self.map is not None:
            derivations = [ValueMap.of(self.map)]
        elif self.part is not None:
            derivations = [PartOfTime(self.part)]
        elif self.values is not None:
            values = self._with_nulls(declared_values(self.values, table.schema.field(name).type))
        if self.nulls is not None:
            derivations.append(Nulls(self.nulls))
        return self._encoded(name, opening, [*self._holes(), *derivations], values=values)

    def _encoded(
        self, name: str, opening: Opening, derivations: Sequence[Derivation], **declared: Any
    ) -> ColumnRequest:
        """Return the request with an encoding: that of the path, the one that was said, or the best one."""
        opened, planned, auto = opening.opened, opening.planned_for(declared), self.encoding in (None, "auto")
        said = planned if opening.is_said else None
        goes_on = opened is not None and (auto or self.encoding == opened.encoding)
        if opened is not None and "range" in declared:
            goes_on &= declared["missing"] == (opened.encoding == MissingNumericEncoding.name)
        # Where the path was opened with something else, the ledger will refuse it.
        if opened is not None and goes_on and encoding_named(opened.encoding).domain in declared:
            going_on = mechanism(**declared, encoding=opened.encoding, **opened.options)
            best = None if self.encoding is None or planned is None else _best(planned, declared)
            return ColumnRequest(name, going_on, derivations, said, overruled=best if best != opened.encoding else None)
        named = opening.alone if auto else self.encoding
        if named is not None:
            chosen = mechanism(**declared, encoding=named, epsilon=planned, **self.options)
            return ColumnRequest(name, chosen, derivations, said)
        if opening.is_unknown and _is_open(declared):
            raise EncodingError(
                "no ledger can tell how this column was encoded before, and another encoding is another path: say the "
                "one that the released files name.",
                remedy="say_encoding",
            )
        if planned is None and self.encoding == "auto" and not declared.get("missing"):
            raise EncodingError(
                "without a ledger nobody remembers which encoding a path was opened with, so that it is chosen for "
                "the last epsilon that is planned.",
                remedy="planned_epsilon",
            )
        # Without a ledger the choice would follow each epsilon, and nobody would notice that a path was opened twice;
        # nor that numbers, which were always rounded before there was a choice, are places now.
        if planned is None or ("range" in declared and self.encoding is None and not opening.has_ledger):
            planned, plain = None, "categorical" if "values" in declared else "auto"
            chosen = mechanism(**declared, encoding=plain, **self.options)
        else:
            chosen = mechanism(**declared, encoding="auto", epsilon=planned, **self.options)
        return ColumnRequest(name, chosen, derivations, said, chosen_for=None if declared.get("missing") else planned)

    def _holes(self) -> list[Derivation]:
        return [MissingAs(tuple(self.missing_as))] if self.missing_as else []

    def _with_nulls(self, values: Sequence[Any]) -> list[Any]:
        if self.nulls is None:
            return list(values)
        texts = [str(value) for value in values]
        return texts if self.nulls in texts else [*texts, self.nulls]


Said = Mechanism | Column | Sequence[Any]


def _is_open(declared: Mapping[str, Any]) -> bool:
    """Tell whether there is anything to choose."""
    if "range" in declared:
        return not declared["missing"]
    return _best(_LEAST, declared) != CategoricalEncoding.name


def _best(planned: Decimal, declared: Mapping[str, Any]) -> str:
    return mechanism(**declared, encoding="auto", epsilon=planned).encoding.name


def requested(name: Any, said: Said, table: Declarable, opening: Opening) -> ColumnRequest:
    """Return the request for one column, of which a mechanism, a list of values or a `Column` is said."""
    if isinstance(said, Mechanism):
        # Numbers may be written as text, and true, false and dates are declared as text.
        planned = opening.planned if opening.is_said else None
        return ColumnRequest(name, said, [Numbers() if said.encoding.domain == "range" else Texts()], planned)
    if not isinstance(said, Column):
        said = Column(values=DeclaredEncoding.listed(said))
    return said.request(name, table, opening)


def values_from_file(path: Path) -> list[str]:
    """Return declared values from a text file, one a line, in order; empty lines do not count."""
    try:
        text = path.read_text("utf-8-sig")
    except (OSError, UnicodeDecodeError):
        raise ValuesError("the values file {path!r} cannot be read as text.", path=str(path)) from None
    if is_key_text(text):
        raise ValuesError("{path!r} is a key file, and no list of values.", path=str(path))
    lines: dict[str, int] = {}
    for number, line in enumerate(text.split("\n"), 1):
        value = line.rstrip("\r")
        if value and lines.setdefault(value, number) != number:  # not shown: it may be another file than was meant
            raise ValuesError(
                "line {number:,} of {path!r} is the value of line {line:,} again.",
                number=number,
                path=str(path),
                line=lines[value],
            )
    return list(filter(None, lines))
