"""Counts of released columns: DuckDB reads, joins and counts, so that neither rows nor ids pass through Python.

One file is one plain `group by`. Several files of the same path may hold the same objects at different levels: then
each object counts once, at its highest level, because a lower report of it adds nothing. That needs the ids, which
DuckDB groups within a memory limit, on disk where they do not fit. Names from a file are quoted where they enter SQL.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from relaxdp.errors import ColumnError, EstimationError, MetadataError, TableFileError
from relaxdp.estimation.counts import Counts, Method
from relaxdp.estimation.crosstab import Crosstab, PairCounts, combine_tables
from relaxdp.estimation.result import Result
from relaxdp.mechanisms.base import Mechanism
from relaxdp.mechanisms.report_arrays import Codes, code_dtype
from relaxdp.sampling.canonical_encoding import get_value_kind
from relaxdp.sampling.keyed_stream import Words
from relaxdp.tables.duckdb_queries import open_database
from relaxdp.tables.files import BATCH_ROWS, TableFormat
from relaxdp.tables.released_files import (
    CountedColumn,
    ReleasedFile,
    get_comparable_type,
    make_counted_column,
    open_released_files,
    require_crosstab_columns,
    require_unchanged_rows,
)
from relaxdp.theory.epsilon import format_epsilon
from relaxdp.theory.level import compute_retention

MEMORY_LIMIT = "1GB"
MAX_GROUPS = 1_000
MAX_CELLS = 10_000_000

Integers = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class ColumnCounts:
    """The counts of one released column: one entry for every group, or a single one where no groups were asked for."""

    axis: CountedColumn
    groups: list[tuple[str | None, Counts]]

    @property
    def n(self) -> int:
        """How many objects were counted."""
        return sum(counts.n for _, counts in self.groups)

    @property
    def levels(self) -> dict[str, int]:
        """How many objects stand at each epsilon, ascending."""
        texts = [format_epsilon(epsilon) for epsilon in self.axis.levels.values()]
        found = {text: sum(counts.levels.get(text, 0) for _, counts in self.groups) for text in texts}
        return {text: objects for text, objects in found.items() if objects}


@dataclass(frozen=True, slots=True)
class CrosstabCounts:
    """The counts of two released columns of the same objects: a two-way table for every pair of levels."""

    rows: CountedColumn
    columns: CountedColumn
    tables: dict[tuple[str, str], Crosstab]

    @property
    def n(self) -> int:
        """How many objects have a report in both columns."""
        return sum(table.n for table in self.tables.values())

    def estimate(self, method: Method = "average") -> Result:
        """Return one estimate from all pairs of levels; the methods are those of `Counts.estimate`."""
        return combine_tables(list(self.tables.values()), method)


def count(
    paths: Sequence[Path],
    *,
    column: str | None = None,
    by: str | None = None,
    told: Sequence[Path] = (),
    memory_limit: str = MEMORY_LIMIT,
) -> ColumnCounts:
    """Count a released column of one or many files, for each value of the kept column `by` if one is named.

    `told` are released files, one for each, that say what the files hold: a person vouches for the rows.
    """
    return count_open_files(_whole_files(paths, told), column=column, by=by, memory_limit=memory_limit)


def count_open_files(
    files: list[ReleasedFile], *, column: str | None = None, by: str | None = None, memory_limit: str = MEMORY_LIMIT
) -> ColumnCounts:
    """Count files that are open, or frames in their place."""
    axis = make_counted_column(files, [file.find_released_column(column) for file in files])
    if by is not None:
        for file in files:
            file.require_passthrough_column(by)
    with database([file.path for file in files], memory_limit) as connection:
        check_ids(connection, files)
        if is_packed(axis):
            return ColumnCounts(axis, count_packed(connection, files, axis, by))
        cells = Cells(connection, files, [axis], by)
    table = cells.table(len(cells.groups), len(axis.levels), len(axis.labels))
    return ColumnCounts(axis, [(group, _counts(axis, part)) for group, part in zip(cells.groups, table, strict=True)])


def count_pairs(
    paths: Sequence[Path],
    *,
    column: str | None = None,
    crosstab: str,
    told: Sequence[Path] = (),
    memory_limit: str = MEMORY_LIMIT,
) -> CrosstabCounts:
    """Count the pairs of two released columns. They may stand in different files: the ids bring them together."""
    return count_open_crosstab(_whole_files(paths, told), column=column, crosstab=crosstab, memory_limit=memory_limit)


def count_open_crosstab(
    files: list[ReleasedFile], *, column: str | None = None, crosstab: str, memory_limit: str = MEMORY_LIMIT
) -> CrosstabCounts:
    """Count the pairs of files that are open, or of frames in their place."""
    names = [file.find_crosstab_columns(column, crosstab) for file in files]
    for place, wanted in enumerate((column, crosstab)):
        if not any(pair[place] for pair in names):
            what = f"column {wanted!r}" if wanted else f"other column than {crosstab!r}"
            raise ColumnError(
                "A crosstab needs two released columns, and there is no {what}.",
                hint="Pass crosstab= with the name of another released column.",
                what=what,
            )
    rows, columns = (make_counted_column(files, [pair[place] for pair in names]) for place in (0, 1))
    require_crosstab_columns(rows, columns)
    with database([file.path for file in files], memory_limit) as connection:
        check_ids(connection, files)
        if is_packed(rows) or is_packed(columns):
            return CrosstabCounts(rows, columns, count_packed_pairs(connection, files, rows, columns))
        cells = Cells(connection, files, [rows, columns], None)
    table = cells.table(1, len(rows.levels), len(rows.labels), len(columns.levels), len(columns.labels))[0]
    tables = {}
    for one, (row_level, row_epsilon) in enumerate(rows.levels.items()):
        for two, (column_level, column_epsilon) in enumerate(columns.levels.items()):
            counts = table[one, :, two, :]
            if counts.any():
                tables[format_epsilon(row_epsilon), format_epsilon(column_epsilon)] = Crosstab(
                    rows=rows.labels,
                    columns=columns.labels,
                    counts=counts,
                    row_support=rows.mechanism.support(compute_retention(row_level)),
                    column_support=columns.mechanism.support(compute_retention(column_level)),
                    names=(rows.name, columns.name),
                    epsilons=(row_epsilon, column_epsilon),
                )
    return CrosstabCounts(rows, columns, tables)


def _whole_files(paths: Sequence[Path], told: Sequence[Path]) -> list[ReleasedFile]:
    """Open files, or refuse those that have other rows than they were released with."""
    files = open_released_files(paths, told)
    require_unchanged_rows([(repr(str(file.path)), file.list_part_rows()) for file in files])
    return files


def _counts(axis: CountedColumn, levels: Integers) -> Counts:
    counts = Counts(axis.mechanism)
    for epsilon, level in zip(axis.levels.values(), levels, strict=True):
        if level.any():
            counts.add_counts(level, epsilon=epsilon)
    return counts


# What is asked of DuckDB.


class Cells:
    """The number of ids in each cell: a group, and for each column a level and a value, all by position.

    With two columns, only ids that have a report in both are counted.
    """

    def __init__(self, connection: Any, files: list[ReleasedFile], axes: list[CountedColumn], by: str | None) -> None:
        self._connection, self._files, self._axes, self._by = connection, files, axes, by
        self.groups: list[str | None] = [None]
        for number, axis in enumerate(axes):
            declare(connection, number, axis)
        self._group, *self._places, self._objects = self._one() if len(files) == 1 else self._many()

    def table(self, *shape: int) -> Integers:
        """Return the number of ids in each cell, including empty cells."""
        size = int(np.prod(shape))
        flat = np.ravel_multi_index((self._group, *self._places), shape)
        return np.bincount(flat, self._objects, minlength=size).astype(np.int64).reshape(shape)

    def _one(self) -> list[Integers]:
        """Count a single file by its reports, without looking at an id."""
        file = self._files[0]
        numbers = range(len(self._axes))
        columns = {f"report{number}": self._axes[number].names[0] or "" for number in numbers}
        columns |= {"kept": self._by} if self._by is not None else {}
        source = file.make_relation_sql(self._connection, "file0", columns)
        counted = f"SELECT {', '.join(columns)}, count(*) AS objects FROM {source} GROUP BY ALL"  # noqa: S608
        if self._by is not None:
            self._connection.execute(f"CREATE TEMP TABLE counted AS {counted}")
            self._name_groups("SELECT kept FROM counted")
            counted = "SELECT * FROM counted"
        self._check_size()
        group, join = self._group_join("counted.kept")
        codes = ", ".join(f"declared{number}.code" for number in numbers)
        joins = " ".join(
            join_declared(self._axes[number], file, 0, number, f"counted.report{number}") for number in numbers
        )
        found = self._connection.execute(
            f"SELECT {group}, {codes}, counted.objects FROM ({counted}) AS counted {joins} {join}"  # noqa: S608
        ).fetchnumpy()
        group_codes, *codes_found, objects = found.values()
        if not len(objects):
            raise EstimationError(
                "{file!r} has no rows, so there is nothing to estimate.",
                hint="Check that this is the released file.",
                file=str(file.path),
            )
        for axis, each in zip(self._axes, codes_found, strict=True):
            undeclared = np.ma.getmaskarray(each)
            refuse_undeclared(axis, int(objects[undeclared].sum()), int(objects.sum()))
        places = [each for code in codes_found for each in (np.zeros(len(objects), np.int64), code)]
        return [np.asarray(each, dtype=np.int64) for each in (group_codes, *places, objects)]

    def _many(self) -> list[Integers]:
        """Count every object once, at its highest level.

        Level, group and value of a report are packed into one integer, the level on top, so that the largest one is
        the report that counts: states of a fixed size, which go to disk where there are too many of them.
        """
        if self._by is not None:
            kept = [
                file.make_relation_sql(self._connection, f"kept{n}", {"kept": self._by})
                for n, file in enumerate(self._files)
            ]
            distinct = [f"SELECT DISTINCT kept::VARCHAR AS kept FROM {each}" for each in kept]  # noqa: S608
            self._name_groups(" UNION ALL ".join(distinct))
        self._check_size()
        found = self._connection.execute(self._highest()).fetchnumpy()
        columns, axes = list(found.values()), len(self._axes)
        bests, (objects, missing), sums_found = columns[:axes], columns[axes : axes + 2], columns[axes + 2 :]
        if not len(objects):
            raise EstimationError(
                "The files have no rows, so there is nothing to estimate.",
                hint="Check that these are the released files.",
            )
        if missing.sum():
            raise EstimationError(
                "An id is missing, or of another type than the metadata states.",
                hint="Pass the file as it was released.",
            )
        for place, axis in enumerate(self._axes):
            rows, undeclared, repeated = (int(each.sum()) for each in sums_found[3 * place : 3 * place + 3])
            refuse_undeclared(axis, undeclared, rows)
            if repeated:
                verb = "ids occur" if repeated > 1 else "id occurs"
                raise EstimationError(
                    "{repeated:,} {verb} in more than one row of the same level. Each individual counts once.",
                    hint="Remove duplicate rows, and pass each file once.",
                    repeated=repeated,
                    verb=verb,
                )
        both = ~np.logical_or.reduce([np.ma.getmaskarray(each) for each in bests])
        if not both.any():
            raise EstimationError(
                "No individual has a report in both columns, so there is nothing to estimate.",
                hint="Pass columns of the same individuals.",
            )
        return [*self._unpacked([np.asarray(each[both], dtype=np.int64) for each in bests]), objects[both]]

    def _highest(self) -> str:
        """Return SQL for the highest reports, how many objects have each, and what rows there are that must not be."""
        reports = " UNION ALL ".join(self._packed(number, file) for number, file in enumerate(self._files))
        numbers = range(len(self._axes))
        each = ", ".join(
            f"max(packed{n}) AS best{n}, count(place{n}) AS rows{n}, count(packed{n}) AS known{n}, "
            f"{repeated_sql(f'place{n}')} AS repeated{n}"
            for n in numbers
        )
        best = ", ".join(f"best{n}" for n in numbers)
        sums = ", ".join(
            f"sum(rows{n})::BIGINT, sum(rows{n} - known{n})::BIGINT, count(*) FILTER (repeated{n})" for n in numbers
        )
        return (
            f"WITH reports AS ({reports}), objects AS (SELECT id, {each} FROM reports GROUP BY id) "  # noqa: S608
            f"SELECT {best}, count(*), count(*) FILTER (id IS NULL), {sums} FROM objects GROUP BY {best}"
        )

    def _packed(self, number: int, file: ReleasedFile) -> str:
        """Return SQL for the reports of one file: the id, and for each column the level and the packed report."""
        columns = {"id": file.description.id_column}
        axes = [(place, axis, axis.names[number]) for place, axis in enumerate(self._axes)]
        columns |= {f"report{place}": name for place, _, name in axes if name}
        columns |= {"kept": self._by} if self._by is not None else {}
        source = file.make_relation_sql(self._connection, f"file{number}", columns)
        group, join = self._group_join("source.kept")
        parts, joins = [], [join]
        for place, axis, name in axes:
            if name is None:
                parts.append(f"NULL::INTEGER AS place{place}, NULL::BIGINT AS packed{place}")
                continue
            level = list(axis.levels).index(file.description.columns[name].threshold)
            upper = f"{level * len(self.groups)}::BIGINT + {group}" if place == 0 else f"{level}::BIGINT"
            parts.append(
                f"{level} AS place{place}, ({upper}) * {len(axis.labels)} + declared{place}.code AS packed{place}"
            )
            joins.append(join_declared(axis, file, number, place, f"source.report{place}"))
        return f"SELECT {id_sql(file)} AS id, {', '.join(parts)} FROM {source} AS source {' '.join(joins)}"  # noqa: S608

    def _unpacked(self, bests: list[Integers]) -> list[Integers]:
        places: list[Integers] = []
        group = np.zeros(len(bests[0]), np.int64)
        for number, (axis, best) in enumerate(zip(self._axes, bests, strict=True)):
            upper, code = np.divmod(best, len(axis.labels))
            if number == 0:
                upper, group = np.divmod(upper, len(self.groups))
            places += [upper, code]
        return [group, *places]

    def _name_groups(self, kept: str) -> None:
        """Give every group a number, in an order that people expect."""
        distinct = f"SELECT DISTINCT CAST(kept AS VARCHAR) AS name FROM ({kept})"  # noqa: S608
        found = [name for (name,) in self._connection.execute(f"{distinct} LIMIT {MAX_GROUPS + 1}").fetchall()]
        if len(found) > MAX_GROUPS:
            raise EstimationError(
                "The column {by!r} has more than {most:,} groups.",
                hint="Group by a column with fewer values.",
                by=self._by,
                most=MAX_GROUPS,
            )
        self.groups = sorted(found, key=_natural) or [None]
        names = pa.array(self.groups, pa.string())
        self._connection.register("groups", pa.table({"name": names, "code": pa.array(range(len(names)), pa.int64())}))

    def _group_join(self, kept: str) -> tuple[str, str]:
        if self._by is None:
            return "0::BIGINT", ""
        return "groups.code", f"LEFT JOIN groups ON CAST({kept} AS VARCHAR) IS NOT DISTINCT FROM groups.name"

    def _check_size(self) -> None:
        cells = len(self.groups)
        for axis in self._axes:
            cells *= len(axis.labels) * len(axis.levels)
        if cells > MAX_CELLS and (len(self._axes) > 1 or self._by is not None):
            raise EstimationError(
                "The table would have {cells:,} cells. At most {most:,} can be counted.",
                hint="Choose columns with fewer values.",
                cells=cells,
                most=MAX_CELLS,
            )


def declare(connection: Any, number: int, axis: CountedColumn) -> None:
    """Make the declared values of a column and their codes a view of this number."""
    connection.register(f"labels{number}", _label_table(axis))
    value = "CAST(value AS UUID)" if _kind(axis) == "uuid" else "value"
    declared = f"SELECT {value} AS value, code FROM labels{number}"  # noqa: S608
    connection.execute(f"CREATE VIEW declared{number} AS {declared}")


def check_ids(connection: Any, files: Sequence[ReleasedFile]) -> None:
    """Refuse a file that a person described and that has an object twice; among several files that is seen anyway."""
    if len(files) > 1 or not files[0].has_given_description:
        return
    source = files[0].make_relation_sql(connection, "ids", {"id": files[0].description.id_column})
    ids = f"SELECT {id_sql(files[0])} AS id, count(*) AS times FROM {source} AS source GROUP BY ALL"  # noqa: S608
    wrong = "coalesce(max(times), 0) > 1 OR count(id) < count(*)"
    ((is_wrong,),) = connection.execute(f"SELECT {wrong} FROM ({ids})").fetchall()  # noqa: S608
    if is_wrong:
        raise EstimationError(
            "An id occurs twice in {path!r}, or is missing. Each individual counts once.",
            hint="Remove duplicate rows.",
            path=str(files[0].path),
        )


def refuse_undeclared(axis: CountedColumn, undeclared: int, total: int) -> None:
    """Refuse reports that are no declared values."""
    if undeclared:
        verb = "reports are" if undeclared > 1 else "report is"
        raise EstimationError(
            "{undeclared:,} of {total:,} {verb} not one of the {values:,} declared values of "
            "{column!r}. The file was changed after its release.",
            hint="Pass the file as it was released.",
            total=total,
            verb=verb,
            values=len(axis.labels),
            column=axis.name,
            undeclared=undeclared,
        )


def _natural(name: str | None) -> tuple[int, float, str]:
    """Sort numbers by size, then text, then what is missing."""
    if name is None:
        return (2, 0.0, "")
    try:
        return (0, float(name), name) if float(name) == float(name) else (1, 0.0, name)
    except ValueError:
        return (1, 0.0, name)


def _kind(axis: CountedColumn) -> str:
    return str(next(get_value_kind(label) for label in axis.labels if label is not None))


def _label_table(axis: CountedColumn) -> Any:
    """Return the declared values with their positions, in the type that reports are compared in."""
    kind, labels = _kind(axis), list(axis.labels)
    if kind == "integer":
        is_wide = max(label for label in labels if label is not None) >= 2**63
        values = pa.array(labels, pa.uint64() if is_wide else pa.int64())
    else:
        values = pa.array([label and str(label) for label in labels] if kind == "uuid" else labels)
    return pa.table({"value": values, "code": pa.array(range(len(labels)), pa.int64())})


_TESTS = {
    "text": pa.types.is_string,
    "integer": pa.types.is_integer,
    "number": pa.types.is_floating,
    "bytes": pa.types.is_binary,
    "uuid": lambda kind: getattr(kind, "extension_name", None) == "arrow.uuid",
}
_FROM_TEXT = {
    "text": "{}",
    "integer": "TRY_CAST({} AS HUGEINT)",
    "number": "TRY_CAST({} AS DOUBLE)",
    "bytes": "encode({})",
    "uuid": "TRY_CAST({} AS UUID)",
}


def join_declared(axis: CountedColumn, file: ReleasedFile, number: int, place: int, sql: str) -> str:
    """Return SQL that joins a report with its declared value. A null is None where that is declared, else nothing."""
    value = f"declared{place}.value"
    if None not in axis.labels:
        return f"LEFT JOIN declared{place} ON {_report_sql(axis, file, number, sql)} = {value}"
    if _kind(axis) == "number" and file.table.format is not TableFormat.CSV:
        sql = f"nullif({sql}, 'nan'::DOUBLE)"
    report = _report_sql(axis, file, number, sql)
    # A text that is no value is null after its conversion, but it is not a missing report.
    return f"LEFT JOIN declared{place} ON {report} IS NOT DISTINCT FROM {value} AND ({sql} IS NULL) = ({value} IS NULL)"


def _report_sql(axis: CountedColumn, file: ReleasedFile, number: int, sql: str) -> str:
    """Return SQL for a report as a value. A number is not its text, except where a file has nothing but text for it."""
    kind, name = _kind(axis), str(axis.names[number])
    found = get_comparable_type(file.table.schema.field(name).type)
    if file.table.format is TableFormat.CSV:
        return _FROM_TEXT[kind].format(sql)
    if pa.types.is_null(found) and None in axis.labels:
        return "NULL"
    if not _TESTS[kind](found):
        raise MetadataError(
            "The column {name!r} of {file!r} is of type {found}, which does not fit its declared values.",
            hint="Pass the file as it was released.",
            name=name,
            file=str(file.path),
            found=found,
        )
    return sql


def repeated_sql(level: str) -> str:
    """Return SQL for whether one of the ids that rows are grouped by stands in two rows at the same level."""
    return f"count({level}) > coalesce(bit_count(bit_or(1::UBIGINT << {level})), 0)"


def id_sql(file: ReleasedFile) -> str:
    """Return SQL for an id as the value that it is, in CSV too."""
    id_type = next(iter(file.description.columns.values())).id_type
    if id_type in _FROM_TEXT and file.table.format is TableFormat.CSV:
        return _FROM_TEXT[id_type].format("source.id")
    return "source.id"


def database(paths: Sequence[Path], memory_limit: str) -> AbstractContextManager[Any]:
    """Open DuckDB for counting these files."""
    named = repr(str(paths[0])) if len(paths) == 1 else "one of the files"
    return open_database(
        memory_limit,
        TableFileError(
            "{named} is damaged or cut off, or its ids or reports have another type than its metadata states.",
            hint="Pass the file as it was released.",
            named=named,
        ),
        out_of_memory_error=TableFileError(
            "Counting needs more memory or disk than is available ({memory} of memory are used).",
            hint="Free some disk space, or count fewer files at once.",
            memory=memory_limit,
        ),
    )


def is_packed(axis: CountedColumn) -> bool:
    """Tell whether reports of this column are bytes to be added up, and not values to be grouped."""
    return axis.mechanism.report_width is not None


def count_packed(
    connection: Any, files: list[ReleasedFile], axis: CountedColumn, by: str | None
) -> list[tuple[str | None, Counts]]:
    """Return the counts of every group, each object at its highest level."""
    levels = list(axis.levels.values())
    groups: dict[str | None, Counts] = {}
    for batch in _rows(connection, files, [axis], by):
        for kept, level, reports in split(batch.rename_columns(["kept", "level", "report"])):
            if level < 0:
                raise _repeated()
            counts, n = count_reports(axis.mechanism, reports, axis.name)
            group = groups.setdefault(kept, Counts(axis.mechanism))
            group.add_counts(counts, epsilon=levels[level], n=n)
        if len(groups) > MAX_GROUPS:
            raise EstimationError(
                "The column {by!r} has more than {most:,} groups.",
                hint="Group by a column with fewer values.",
                by=by,
                most=MAX_GROUPS,
            )
    if not groups:
        raise EstimationError(
            "There are no rows, so there is nothing to estimate.", hint="Check that these are the released files."
        )
    return sorted(groups.items(), key=lambda item: (item[0] is None, item[0] or ""))


def count_packed_pairs(
    connection: Any, files: list[ReleasedFile], rows: CountedColumn, columns: CountedColumn
) -> dict[tuple[str, str], Crosstab]:
    """Return a two-way table for every pair of levels, of the objects that have a report in both columns."""
    axes = (rows, columns)
    counted: dict[tuple[int, int], PairCounts] = {}
    for levels, same in _pairs_by_level(connection, files, axes):
        joint = counted.setdefault(levels, PairCounts(*(axis.mechanism for axis in axes)))
        for start in range(0, same.num_rows, joint.step):
            part = same.slice(start, joint.step)
            joint.add(*(_read_reports(axis, part[f"report{n}"].combine_chunks()) for n, axis in enumerate(axes)))
    if not counted:
        raise EstimationError(
            "No individual has a report in both columns, so there is nothing to estimate.",
            hint="Pass columns of the same individuals.",
        )
    found = {}
    for places, joint in sorted(counted.items()):
        (row, row_epsilon), (column, column_epsilon) = (
            list(axis.levels.items())[place] for axis, place in zip(axes, places, strict=True)
        )
        pair = rows.mechanism.support(compute_retention(row)), columns.mechanism.support(compute_retention(column))
        epsilons = (row_epsilon, column_epsilon)
        found[format_epsilon(row_epsilon), format_epsilon(column_epsilon)] = joint.make_crosstab(
            *pair, (rows.name, columns.name), epsilons
        )
    return found


def _pairs_by_level(
    connection: Any, files: list[ReleasedFile], axes: tuple[CountedColumn, CountedColumn]
) -> Iterator[tuple[tuple[int, int], Any]]:
    """Return batch by batch the reports of both columns, by the pair of their levels, each object at its highest."""
    for number, axis in enumerate(axes):
        if not is_packed(axis):
            declare(connection, number, axis)
    for batch in _rows(connection, files, axes):
        table = pa.Table.from_batches([batch])
        for each in table.select(["level0", "level1"]).group_by(["level0", "level1"]).aggregate([]).to_pylist():
            levels = each["level0"], each["level1"]
            if levels[0] < 0:
                raise _repeated()
            yield (
                levels,
                table.filter(pc.and_(*(pc.equal(table[f"level{n}"], level) for n, level in enumerate(levels)))),
            )


def _read_reports(axis: CountedColumn, reports: Any) -> tuple[Codes, Words | None]:
    """Return codes and seeds: of packed reports, or of values that are codes already."""
    mechanism = axis.mechanism
    if not is_packed(axis):
        refuse_undeclared(axis, reports.null_count, len(reports))
        return reports.to_numpy(zero_copy_only=False).astype(code_dtype(mechanism.alphabet))[:, None], None
    try:
        return mechanism.read(reports)
    except EstimationError:
        raise _changed(axis.name) from None


def split(batch: Any) -> Iterator[tuple[str | None, int, Any]]:
    """Return the reports of every group and level in a batch with the columns kept, level and report."""
    table = pa.Table.from_batches([batch])
    for pair in table.select(["kept", "level"]).group_by(["kept", "level"]).aggregate([]).to_pylist():
        kept, level = pair["kept"], pair["level"]
        same = pc.is_null(table["kept"]) if kept is None else pc.equal(table["kept"], kept)
        chosen = pc.and_(pc.fill_null(same, False), pc.equal(table["level"], level))
        yield kept, level, table.filter(chosen)["report"].combine_chunks()


def count_reports(mechanism: Mechanism, reports: Any, name: str) -> tuple[Any, int]:
    """Return the counts of packed reports; those that the encoding cannot have made are refused."""
    try:
        return mechanism.count_reports(reports)
    except EstimationError:
        raise _changed(name) from None


def _changed(name: str) -> EstimationError:
    return EstimationError(
        "A report in {name!r} is not possible for the declared values. It was changed after its release.",
        hint="Pass the file as it was released.",
        name=name,
    )


def _repeated() -> EstimationError:
    return EstimationError(
        "An id is missing, or occurs in more than one row of the same level. Each individual counts once.",
        hint="Remove duplicate rows, and pass each file once.",
    )


def _rows(
    connection: Any, files: list[ReleasedFile], axes: Sequence[CountedColumn], by: str | None = None
) -> Iterator[Any]:
    """Return batches of the group, and of the level and the report of each column, for every object that has them all.

    The first level is -1 where an id does not stand once at each level. A report is packed bytes, or the code of its
    value. It is one query, because what Arrow reads can be read once. The best row is taken as a whole: column by
    column DuckDB would pass over what is missing there, and take it from a lower level.
    """
    parts, numbers = [], range(len(axes))
    for number, file in enumerate(files):
        names = {place: axis.names[number] for place, axis in enumerate(axes) if axis.names[number]}
        wanted = {f"report{place}": str(name) for place, name in names.items()}
        wanted |= {"kept": by} if by is not None else {}
        wanted |= {"id": file.description.id_column} if len(files) > 1 else {}
        source = file.make_relation_sql(connection, f"file{number}", wanted)
        chosen = [f"{id_sql(file) if len(files) > 1 else '0'} AS id"]
        chosen.append(f"{'NULL' if by is None else 'source.kept'}::VARCHAR AS kept")
        joins = []
        for place, axis in enumerate(axes):
            kind = "BLOB" if is_packed(axis) else "BIGINT"
            if place not in names:
                chosen.append(f"NULL::INTEGER AS level{place}, NULL::{kind} AS report{place}")
                continue
            level = list(axis.levels).index(file.description.columns[str(names[place])].threshold)
            report = f"source.report{place}"
            if is_packed(axis):
                report = _report(axis, file, str(names[place]), report)
            else:
                joins.append(join_declared(axis, file, number, place, report))
                report = f"declared{place}.code"
            chosen.append(f"{level} AS level{place}, {report}::{kind} AS report{place}")
        parts.append(f"SELECT {', '.join(chosen)} FROM {source} AS source {' '.join(joins)}")  # noqa: S608
    reports = " UNION ALL ".join(parts)
    columns = ", ".join(f"level{n}, report{n}" for n in numbers)
    query = f"SELECT kept, {columns} FROM ({reports})"  # noqa: S608
    if len(files) > 1:
        best = ", ".join(
            f"arg_max({{'kept': kept, 'level': level{n}, 'report': report{n}}}, level{n}) AS best{n}, "
            f"{repeated_sql(f'level{n}')} AS repeated{n}"
            for n in numbers
        )
        wrong = " OR ".join(["id IS NULL", *(f"repeated{n}" for n in numbers)])
        levels = [f"CASE WHEN {wrong} THEN -1 ELSE best0.level END", *(f"best{n}.level" for n in numbers[1:])]
        columns = ", ".join(f"{level} AS level{n}, best{n}.report AS report{n}" for n, level in enumerate(levels))
        query = (
            f"SELECT best0.kept AS kept, {columns} FROM (SELECT id, {best} FROM ({reports}) GROUP BY id) "  # noqa: S608
            f"WHERE {wrong} OR ({' AND '.join(f'best{n} IS NOT NULL' for n in numbers)})"
        )
    yield from connection.sql(query).to_arrow_reader(BATCH_ROWS)


def _report(axis: CountedColumn, file: ReleasedFile, name: str, sql: str) -> str:
    """Return SQL for a packed report. In text it is written in hexadecimal digits."""
    if file.table.format is TableFormat.CSV:
        return f"unhex({sql})"
    kind = file.table.schema.field(name).type
    width = axis.mechanism.report_width
    if not (pa.types.is_binary(kind) or kind == pa.binary(width) or pa.types.is_large_binary(kind)):
        raise MetadataError(
            "The column {name!r} of {file!r} is of type {kind}. Its reports must be bytes.",
            hint="Pass the file as it was released.",
            name=name,
            file=str(file.path),
            kind=kind,
        )
    return sql
