"""Rows that were chosen: metadata outlives a choice, and one that looked at reports makes every estimate wrong."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from relaxdp.errors import DescriptionError
from relaxdp.table.description import FileDescription

Parts = Sequence[tuple[FileDescription, int]]


def check_rows(tables: Sequence[tuple[str, Parts]]) -> None:
    """Refuse tables that lost or gained rows; each has a name, and for its parts what they say and have.

    Every part has the rows that it says, or is a part of a table that has them and whose other parts are here too.
    """
    together: Counter[str] = Counter()
    for _, parts in tables:
        for description, rows in parts:
            together[description.dumps()] += rows
    for name, parts in tables:
        known = [(each, rows) for each, rows in parts if each.rows is not None]
        if any(each.rows not in (rows, together[each.dumps()]) for each, rows in known):
            raise rows_changed(name, _said(known), sum(rows for _, rows in known))


def rows_changed(name: str, said: int, rows: int) -> DescriptionError:
    """Return the refusal of a table that had other rows."""
    return DescriptionError(
        "{name} had {released_rows:,} rows when it was released, and has {rows:,} now. Which rows stay must "
        "not depend on their reports, or every estimate is wrong.",
        remedy="chosen_rows",
        name=name,
        released_rows=said,
        rows=rows,
    )


def _said(parts: Parts) -> int:
    """Return how many rows a folder says that it has: each part its own, or all of them those of the whole."""
    said = [each.rows or 0 for each, _ in parts]
    is_split = len(set(said)) == 1 and sum(rows for _, rows in parts) <= said[0]
    return said[0] if is_split else sum(said)
