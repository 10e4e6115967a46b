"""Reports that are to be relaxed: a file that says its own level, or one whose level is said."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path

from relaxdp.draw.stream import PathId
from relaxdp.encodings.protocol import Encoding
from relaxdp.errors import (
    DescriptionError,
    LevelError,
    LevelMismatchError,
    OptionError,
    PathChangedError,
    UnknownColumnError,
)
from relaxdp.law.epsilon import epsilon_text
from relaxdp.law.level import Level
from relaxdp.ledger.account import Account
from relaxdp.mechanisms import Categorical
from relaxdp.table.description import ColumnDescription
from relaxdp.table.formats import Input
from relaxdp.table.request import TableRequest, id_type_of


@dataclass(frozen=True, slots=True)
class OldReports:
    """A table of plain randomized responses, and its level. The threshold is what the step is computed from."""

    table: Input
    id_column: str
    level: Level
    described: ColumnDescription | None

    @classmethod
    def open(cls, request: TableRequest, path: Path, epsilon: Decimal | None, id_type: str) -> OldReports:
        """Open the file, or refuse it: it must hold the same values under the same name, at a lower level."""
        if len(request.columns) != 1 or not isinstance(request.columns[0].mechanism, Categorical):
            raise OptionError("Algorithm 1 goes on from one column of declared values at a time.")
        column, encoding = request.columns[0].column, request.columns[0].mechanism.encoding
        table = Input(path)
        file = table.description()
        described = None if file is None else file.columns.get(column)
        id_column = request.id_column if file is None else file.id_column
        for name in (id_column, column):
            if name not in table.schema.names:
                raise UnknownColumnError("{path!r} has no column {column!r}.", path=str(path), column=name)
        if id_type_of(table.schema.field(id_column).type) != id_type:
            raise PathChangedError("the ids of {path!r} are of another type than those of the table.", path=str(path))
        if described is None:
            if epsilon is None:
                raise OptionError("{path!r} does not say its level.", remedy="last_epsilon", path=str(path))
            level = encoding.level(epsilon)
        else:
            if epsilon is not None:
                raise OptionError("{path!r} says its level itself: none is to be given.", path=str(path))
            if described.encoding != encoding.name:
                raise PathChangedError("{path!r} holds no plain randomized responses.", path=str(path))
            if described.mechanism().encoding.params != encoding.params:
                raise PathChangedError("{path!r} has other values, or in another order.", path=str(path))
            level = _level(encoding, described, path)
        if encoding.level(request.epsilon) <= level:
            raise LevelError(
                "epsilon may only grow: the last reports are at {previous} and {epsilon} was asked for.",
                previous=str(level),
                epsilon=epsilon_text(request.epsilon),
            )
        return cls(table, id_column, level, described)

    def check_path(self, request: TableRequest, known: Account) -> None:
        """Refuse a file of another path: under another name, what it has cost already would not be seen."""
        if self.described is None:
            return
        given, name = self.described.path, PathId(request.release, request.columns[0].column)
        state = known.last_epoch(name.release, name.attribute)
        here = name if state is None else state.path
        if (given.release, given.attribute) != (name.release, name.attribute):
            raise PathChangedError(
                "the last reports are {given}, and must go on under that name.",
                remedy="release",
                given=given,
                release=given.release,
                attribute=given.attribute,
            )
        if given != here:
            raise PathChangedError(
                "the last reports are {given}, and since a new path was forced it is {here}: only its reports go on.",
                given=given,
                here=here,
                release=given.release,
                attribute=given.attribute,
                epoch=given.epoch,
            )
        if state is not None and self.described.key_fingerprint != state.facts.key_fingerprint:
            raise PathChangedError("the last reports were made with another key than the path.")


def _level(encoding: Encoding, described: ColumnDescription, path: Path) -> Level:
    try:
        return encoding.level(described.epsilon, described.threshold)
    except LevelMismatchError:
        raise DescriptionError("{path!r} says a level and a threshold that do not agree.", path=str(path)) from None
