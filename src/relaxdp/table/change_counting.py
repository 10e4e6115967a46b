"""Counts of one released column at two dates: who was there at both, and how the reports of those go together.

DuckDB brings the ids together within its memory limit, as it does for levels and for two columns of one table.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from relaxdp.encodings.protocol import BATCH
from relaxdp.errors import MixedFilesError
from relaxdp.estimation.counts import Counts
from relaxdp.estimation.difference import Pairs
from relaxdp.estimation.result import Places
from relaxdp.publication.description import typed
from relaxdp.table.counted_cells import Cells, Integers, database
from relaxdp.table.counting import MEMORY_LIMIT, count_opened
from relaxdp.table.packed_counting import is_packed, pairs_by_level, read_reports
from relaxdp.table.released_files import Axis, ReleasedFile, axis_of


@dataclass(frozen=True, slots=True)
class ChangeTally:
    """The counts of two dates: of everybody, and of those who stayed, left and joined where ids were compared."""

    old: Axis
    new: Axis
    everybody: tuple[Counts, Counts]
    order: Places | None = None
    """Where each of the old values stands among the new ones, if they were declared in another order."""
    stayed: tuple[Counts, Counts] | None = None
    left: Counts | None = None
    joined: Counts | None = None
    pairs: list[Pairs] = field(default_factory=list)
    """How the reports of those who stayed go together."""


def axes_of(
    old: Sequence[ReleasedFile],
    new: Sequence[ReleasedFile],
    columns: tuple[str | None, str | None],
    *,
    is_other: bool = False,
) -> tuple[Axis, Axis]:
    """Return the column of both dates, or refuse what cannot be compared; `is_other` allows another attribute."""
    sides = [
        axis_of(side, [file.released_name(name) for file in side])
        for side, name in zip((old, new), columns, strict=True)
    ]
    one, two = (axis.description for axis in sides)
    names = {"old": str(old[0].path), "new": str(new[0].path)}
    if (one.path, one.key_fingerprint) == (two.path, two.key_fingerprint):
        raise MixedFilesError(
            "{old!r} and {new!r} are not two dates: both hold {path}. Levels of one path are the same answers, "
            "relaxed, so that their noise is not independent.",
            remedy="one_path",
            path=str(one.path),
            **names,
        )
    if one.path.attribute != two.path.attribute and not is_other:
        raise MixedFilesError(
            "{old!r} holds {old_attribute!r} and {new!r} holds {new_attribute!r}, which is another attribute.",
            remedy="new_column",
            old_attribute=one.path.attribute,
            new_attribute=two.path.attribute,
            **names,
        )
    if _declared(one) != _declared(two):
        what = "values" if one.range is None else "ranges of numbers"
        raise MixedFilesError(
            "{old!r} and {new!r} declare different {what}: what they say cannot be compared.", what=what, **names
        )
    return sides[0], sides[1]


def _declared(column: Any) -> Any:
    """Return what is declared, whatever its order is: kinds count, so that 1 is not '1'."""
    values = None if column.values is None else sorted(map(repr, map(typed, column.values)))
    return values, column.range, column.clip


def count_apart(
    old: list[ReleasedFile], new: list[ReleasedFile], axes: tuple[Axis, Axis], columns: tuple[str | None, str | None]
) -> ChangeTally:
    """Count two dates that have no object in common, or of whom nobody asks; no id is compared between them."""
    then, now = (count_opened(side, column=name).groups[0][1] for side, name in zip((old, new), columns, strict=True))
    return ChangeTally(*axes, (then, now), _order(axes))


def count_joined(
    old: list[ReleasedFile], new: list[ReleasedFile], axes: tuple[Axis, Axis], *, memory_limit: str = MEMORY_LIMIT
) -> ChangeTally:
    """Count those who stayed, left and joined. An id that is missing, or stands twice at one level, is refused."""
    if axes[0].description.id_type != axes[1].description.id_type:
        raise MixedFilesError(
            "the ids of {old!r} and of {new!r} are of different kinds: nobody can tell who was there at both dates.",
            remedy="independent",
            old=str(old[0].path),
            new=str(new[0].path),
        )
    files = [*old, *new]
    wide = (
        replace(axes[0], names=[*axes[0].names, *[None] * len(new)]),
        replace(axes[1], names=[*[None] * len(old), *axes[1].names]),
    )
    counted = _Counted(axes)
    with database([file.path for file in files], memory_limit) as connection:
        if is_packed(axes[0]) or is_packed(axes[1]):
            for levels, same in pairs_by_level(connection, files, wide, with_alone=True):
                counted.add_reports(levels, same)
        else:
            counted.add_cells(Cells(connection, files, list(wide), None, with_alone=True))
    return counted.tally()


class _Counted:
    """What is counted of two dates: who stayed, who left, who joined, and how reports go together."""

    def __init__(self, axes: tuple[Axis, Axis]) -> None:
        self._axes, self._order = axes, _order(axes)
        self._is_mean = axes[0].mechanism.encoding.measure is not None
        self._epsilons = [list(axis.levels.values()) for axis in axes]
        self._alone, self._stayed = ([Counts(axis.mechanism) for axis in axes] for _ in range(2))
        self._pairs: dict[tuple[int, int], list[Any]] = {}

    def add_cells(self, cells: Cells) -> None:
        """Add what DuckDB counted, where every report is one value."""
        sizes = [len(axis.labels) for axis in self._axes]
        for side, (levels, codes, objects) in enumerate(cells.alone or []):
            for level in np.unique(levels).tolist():
                mine = levels == level
                self._add_alone(side, level, _histogram(codes[mine], objects[mine], sizes[side]), objects[mine].sum())
        old_levels, old_codes, new_levels, new_codes, objects = cells.filled
        for pair in set(zip(old_levels.tolist(), new_levels.tolist(), strict=True)):
            mine = (old_levels == pair[0]) & (new_levels == pair[1])
            one, two, times = old_codes[mine], new_codes[mine], objects[mine]
            old, new = _histogram(one, times, sizes[0]), _histogram(two, times, sizes[1])
            if self._is_mean:
                both = _histogram(one * sizes[1] + two, times, sizes[0] * sizes[1]).reshape(sizes)
            else:
                same = (two if self._order is None else np.argsort(self._order)[two]) == one
                both = _histogram(one[same], times[same], sizes[0])
            self._add_pair(pair, int(times.sum()), old, new, both)

    def add_reports(self, levels: tuple[int | None, int | None], table: Any) -> None:
        """Add reports that may support several values; a level is None where there is no report."""
        step = max(1, BATCH // max(len(axis.labels) for axis in self._axes))  # so that it stays in the cache
        sides = [(n, level) for n, level in enumerate(levels) if level is not None]
        for start in range(0, table.num_rows, step):
            part = table.slice(start, step)
            held = []
            for n, _ in sides:
                reports = read_reports(self._axes[n], part[f"report{n}"].combine_chunks())
                held.append(self._axes[n].mechanism.encoding.supports(*reports))
            found = [np.count_nonzero(each, axis=0) for each in held]
            if len(sides) == 1:
                self._add_alone(*sides[0], found[0], part.num_rows)
                continue
            one, two = held
            if self._is_mean:  # whole numbers far below 2^24, so a product of 32-bit floats is exact
                both = (one.T.astype(np.float32) @ two.astype(np.float32)).astype(np.int64)
            else:
                both = np.count_nonzero(one & (two if self._order is None else two[:, self._order]), axis=0)
            self._add_pair((sides[0][1], sides[1][1]), part.num_rows, found[0], found[1], both)

    def _add_alone(self, side: int, level: int, found: Integers, objects: int) -> None:
        self._alone[side].add_counts(found, epsilon=self._epsilons[side][level], objects=int(objects))

    def _add_pair(self, pair: tuple[int, int], objects: int, old: Integers, new: Integers, both: Integers) -> None:
        for side, found in enumerate((old, new)):
            self._stayed[side].add_counts(found, epsilon=self._epsilons[side][pair[side]], objects=objects)
        before = self._pairs.get(pair, [0, 0, 0, 0])
        self._pairs[pair] = [one + two for one, two in zip(before, (objects, old, new, both), strict=True)]

    def tally(self) -> ChangeTally:
        """Return everything that was counted."""
        everybody = []
        for axis, *parts in zip(self._axes, self._stayed, self._alone, strict=True):
            everybody.append(Counts(axis.mechanism))
            for part in parts:
                everybody[-1].merge(part)
        left, joined = (counts if counts.objects else None for counts in self._alone)
        return ChangeTally(
            *self._axes,
            (everybody[0], everybody[1]),
            self._order,
            (self._stayed[0], self._stayed[1]) if self._pairs else None,
            left,
            joined,
            [
                Pairs((self._epsilons[0][one], self._epsilons[1][two]), *found)
                for (one, two), found in sorted(self._pairs.items())
            ],
        )


def _histogram(codes: Integers, objects: Integers, size: int) -> Integers:
    return np.bincount(codes, objects, minlength=size).astype(np.int64)


def _order(axes: tuple[Axis, Axis]) -> Places | None:
    """Return where the old values stand among the new ones; None where they are declared in the same order."""
    old, new = (list(axis.labels) for axis in axes)
    if axes[0].mechanism.encoding.measure is not None or old == new:
        return None
    places = {label: place for place, label in enumerate(new)}
    return np.array([places[label] for label in old], dtype=np.intp)
