"""The names of a table's columns: one that is asked for must be there, once; and not all names may be shown.

The first row of a CSV file without a header is somebody's data, and a data frame that was made from it has that row for
its names. So a refusal shows the names of a Parquet or Arrow file, which are a schema, and only counts all others.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

from relaxdp.draw.canonical import has_utf8
from relaxdp.errors import UnknownColumnError

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
                f"the table has {times} columns named {name!r}: give them different names. Nothing was released.",
                column=name,
            )
        if times:
            return
        first = self.names[0] if len(self.names) == 1 else None
        mark = next((mark for mark in _MARKS if isinstance(first, str) and mark in first), None)
        if mark is not None:
            raise UnknownColumnError(
                f"the table has no column {name!r}: its fields seem to be separated by {_MARKS[mark]}, and must be "
                "separated by commas. Nothing was released.",
                column=name,
            )
        raise UnknownColumnError(f"the table has no column {name!r}.{self.hint(name, self.names)}", column=name)

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
            f"a column is called by its name, which is text, and this is of type {type(name).__name__}. Nothing was "
            "released."
        )


def nearest(wanted: str, names: Sequence[str]) -> str:
    """Return a hint at the nearest of names that may be shown, or at all of them."""
    near = get_close_matches(wanted, names, 1)
    if near:
        return f" Did you mean {near[0]!r}?"
    return f" It has: {', '.join(map(repr, names[:12]))}." if names else ""
