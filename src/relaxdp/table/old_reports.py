"""Reports that are to be relaxed: a file that says its own level, or one whose level is said."""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path

from relaxdp.errors import DescriptionError, LevelError, OptionError, PathChangedError, UnknownColumnError
from relaxdp.front import Categorical
from relaxdp.law.epsilon import epsilon_text
from relaxdp.ledger.account import PathState
from relaxdp.ledger.step import stepped
from relaxdp.table.description import ColumnDescription
from relaxdp.table.formats import Input
from relaxdp.table.request import TableRequest, id_type_of

_NOTHING = "Nothing was released."
_EPOCH = re.compile(r" \(epoch \d+\)$")


@dataclass(frozen=True, slots=True)
class OldReports:
    """A table of plain randomized responses, and its level. The threshold is what the step is computed from."""

    table: Input
    id_column: str
    epsilon: Decimal
    threshold: int
    described: ColumnDescription | None

    @classmethod
    def open(cls, request: TableRequest, path: Path, epsilon: Decimal | None, id_type: str) -> OldReports:
        """Open the file, or refuse it: it must hold the same values under the same name, at a lower level."""
        if len(request.columns) != 1 or not isinstance(request.columns[0].mechanism, Categorical):
            raise OptionError(f"--last relaxes one column of declared values at a time. {_NOTHING}")
        column, encoding = request.columns[0].column, request.columns[0].mechanism.encoding
        table = Input(path)
        file = table.description()
        described = None if file is None else file.columns.get(column)
        id_column = request.id_column if file is None else file.id_column
        for name in (id_column, column):
            if name not in table.schema.names:
                raise UnknownColumnError(f"{str(path)!r} has no column {name!r}. {_NOTHING}", column=name)
        if id_type_of(table.schema.field(id_column).type) != id_type:
            raise PathChangedError(f"the ids of {str(path)!r} are of another type than those of the table. {_NOTHING}")
        if described is None:
            if epsilon is None:
                raise OptionError(f"{str(path)!r} does not say its level: --last-epsilon must say it. {_NOTHING}")
            level, threshold = epsilon, encoding.threshold(epsilon)
        else:
            if epsilon is not None:
                raise OptionError(f"{str(path)!r} says its level itself: --last-epsilon is not for it. {_NOTHING}")
            if stepped(described.encoding) != stepped(encoding.name):
                raise PathChangedError(f"{str(path)!r} holds no plain randomized responses. {_NOTHING}")
            if described.mechanism().encoding.params != encoding.params:
                raise PathChangedError(f"{str(path)!r} has other values, or in another order. {_NOTHING}")
            level, threshold = described.epsilon, described.threshold
            if not 0 < threshold <= encoding.threshold(level):
                raise DescriptionError(f"{str(path)!r} says a level and a threshold that do not agree. {_NOTHING}")
        if encoding.threshold(request.epsilon) <= threshold:
            raise LevelError(
                f"epsilon may only grow: the last reports are at {epsilon_text(level)} and "
                f"{epsilon_text(request.epsilon)} was asked for. {_NOTHING}",
                previous=epsilon_text(level),
                epsilon=epsilon_text(request.epsilon),
            )
        return cls(table, id_column, level, threshold, described)

    def check_path(self, request: TableRequest, name: str, state: PathState | None) -> None:
        """Refuse a file of another path: under another name, what it has cost already would not be seen."""
        if self.described is None:
            return
        given, column = (self.described.release, self.described.attribute), request.columns[0].column
        if given[0] != name and (_EPOCH.sub("", given[0]), given[1]) == (request.release, column):
            raise PathChangedError(
                f"the last reports are of {given[0]!r}, and since --force the path is at {name!r}: --last goes on from "
                f"its reports only. {_NOTHING}",
                release=given[0],
                attribute=given[1],
            )
        if given != (name, column):
            raise PathChangedError(
                f"the last reports are {given[1]!r} of release {given[0]!r}, and must go on under that name: --release "
                f"says which. {_NOTHING}",
                release=given[0],
                attribute=given[1],
            )
        if state is not None and self.described.key_fingerprint != state.facts.key_fingerprint:
            raise PathChangedError(f"the last reports were made with another key than the path. {_NOTHING}")
