"""Counts of released columns: DuckDB reads, joins and counts, so that neither rows nor ids pass through Python.

One file is one plain `group by`. Several files of the same path may hold the same objects at different levels: then
each object counts once, at its highest level, because a lower report of it adds nothing. That needs the ids, which
DuckDB groups within a memory limit, on disk where they do not fit. Names from a file are quoted where they enter SQL.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from relaxdp.errors import UnknownColumnError
from relaxdp.estimation.counts import Counts, Method
from relaxdp.estimation.crosstab import Crosstab, pooled
from relaxdp.estimation.result import Result
from relaxdp.tables.counted_cells import Cells, Integers, check_ids, database
from relaxdp.tables.packed_counting import count_packed, count_packed_pairs, is_packed
from relaxdp.tables.released_files import Axis, ReleasedFile, axis_of, check_pair, check_rows, open_all
from relaxdp.theory.epsilon import epsilon_text
from relaxdp.theory.level import retention

MEMORY_LIMIT = "1GB"


@dataclass(frozen=True, slots=True)
class Tally:
    """The counts of one released column: one entry for every group, or a single one where no groups were asked for."""

    axis: Axis
    groups: list[tuple[str | None, Counts]]

    @property
    def objects(self) -> int:
        """How many objects were counted."""
        return sum(counts.n for _, counts in self.groups)

    @property
    def levels(self) -> dict[str, int]:
        """How many objects stand at each epsilon, ascending."""
        texts = [epsilon_text(epsilon) for epsilon in self.axis.levels.values()]
        found = {text: sum(counts.levels.get(text, 0) for _, counts in self.groups) for text in texts}
        return {text: objects for text, objects in found.items() if objects}


@dataclass(frozen=True, slots=True)
class PairTally:
    """The counts of two released columns of the same objects: a two-way table for every pair of levels."""

    rows: Axis
    columns: Axis
    tables: dict[tuple[str, str], Crosstab]

    @property
    def objects(self) -> int:
        """How many objects have a report in both columns."""
        return sum(table.n for table in self.tables.values())

    def estimate(self, method: Method = "average") -> Result:
        """Return one estimate from all pairs of levels; the methods are those of `Counts.estimate`."""
        return pooled(list(self.tables.values()), method)


def count(
    paths: Sequence[Path],
    *,
    column: str | None = None,
    by: str | None = None,
    told: Sequence[Path] = (),
    memory_limit: str = MEMORY_LIMIT,
) -> Tally:
    """Count a released column of one or many files, for each value of the kept column `by` if one is named.

    `told` are released files, one for each, that say what the files hold: a person vouches for the rows.
    """
    return count_opened(_whole_files(paths, told), column=column, by=by, memory_limit=memory_limit)


def count_opened(
    files: list[ReleasedFile], *, column: str | None = None, by: str | None = None, memory_limit: str = MEMORY_LIMIT
) -> Tally:
    """Count files that are open, or frames in their place."""
    axis = axis_of(files, [file.released_name(column) for file in files])
    if by is not None:
        for file in files:
            file.check_kept(by)
    with database([file.path for file in files], memory_limit) as connection:
        check_ids(connection, files)
        if is_packed(axis):
            return Tally(axis, count_packed(connection, files, axis, by))
        cells = Cells(connection, files, [axis], by)
    table = cells.table(len(cells.groups), len(axis.levels), len(axis.labels))
    return Tally(axis, [(group, _counts(axis, part)) for group, part in zip(cells.groups, table, strict=True)])


def count_pairs(
    paths: Sequence[Path],
    *,
    column: str | None = None,
    crosstab: str,
    told: Sequence[Path] = (),
    memory_limit: str = MEMORY_LIMIT,
) -> PairTally:
    """Count the pairs of two released columns. They may stand in different files: the ids bring them together."""
    return count_opened_pairs(_whole_files(paths, told), column=column, crosstab=crosstab, memory_limit=memory_limit)


def count_opened_pairs(
    files: list[ReleasedFile], *, column: str | None = None, crosstab: str, memory_limit: str = MEMORY_LIMIT
) -> PairTally:
    """Count the pairs of files that are open, or of frames in their place."""
    names = [file.pair_names(column, crosstab) for file in files]
    for place, wanted in enumerate((column, crosstab)):
        if not any(pair[place] for pair in names):
            what = f"column {wanted!r}" if wanted else f"other column than {crosstab!r}"
            raise UnknownColumnError(
                "A crosstab needs two released columns, and there is no {what}.",
                hint="Pass crosstab= with the name of another released column.",
                what=what,
            )
    rows, columns = (axis_of(files, [pair[place] for pair in names]) for place in (0, 1))
    check_pair(rows, columns)
    with database([file.path for file in files], memory_limit) as connection:
        check_ids(connection, files)
        if is_packed(rows) or is_packed(columns):
            return PairTally(rows, columns, count_packed_pairs(connection, files, rows, columns))
        cells = Cells(connection, files, [rows, columns], None)
    table = cells.table(1, len(rows.levels), len(rows.labels), len(columns.levels), len(columns.labels))[0]
    tables = {}
    for one, (row_level, row_epsilon) in enumerate(rows.levels.items()):
        for two, (column_level, column_epsilon) in enumerate(columns.levels.items()):
            counts = table[one, :, two, :]
            if counts.any():
                tables[epsilon_text(row_epsilon), epsilon_text(column_epsilon)] = Crosstab(
                    rows=rows.labels,
                    columns=columns.labels,
                    counts=counts,
                    row_support=rows.mechanism.support(retention(row_level)),
                    column_support=columns.mechanism.support(retention(column_level)),
                    names=(rows.name, columns.name),
                    epsilons=(row_epsilon, column_epsilon),
                )
    return PairTally(rows, columns, tables)


def _whole_files(paths: Sequence[Path], told: Sequence[Path]) -> list[ReleasedFile]:
    """Open files, or refuse those that have other rows than they were released with."""
    files = open_all(paths, told)
    check_rows([(repr(str(file.path)), file.counted()) for file in files])
    return files


def _counts(axis: Axis, levels: Integers) -> Counts:
    counts = Counts(axis.mechanism)
    for epsilon, level in zip(axis.levels.values(), levels, strict=True):
        if level.any():
            counts.add_counts(level, epsilon=epsilon)
    return counts
