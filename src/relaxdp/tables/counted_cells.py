"""Cells: how many objects have which reports at which levels, counted by DuckDB."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from relaxdp.errors import EstimationError, MetadataError, TableFileError
from relaxdp.sampling.canonical import get_value_kind
from relaxdp.tables.files import Format
from relaxdp.tables.released_files import Axis, ReleasedFile, comparable_type
from relaxdp.tables.sorting import open_database

MOST_GROUPS = 1_000
MOST_CELLS = 10_000_000

Integers = NDArray[np.int64]


# What is asked of DuckDB.


class Cells:
    """The number of ids in each cell: a group, and for each column a level and a value, all by position.

    With two columns, only ids that have a report in both are counted.
    """

    def __init__(self, connection: Any, files: list[ReleasedFile], axes: list[Axis], by: str | None) -> None:
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
        source = file.relation(self._connection, "file0", columns)
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
                file.relation(self._connection, f"kept{n}", {"kept": self._by}) for n, file in enumerate(self._files)
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
        source = file.relation(self._connection, f"file{number}", columns)
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
        found = [name for (name,) in self._connection.execute(f"{distinct} LIMIT {MOST_GROUPS + 1}").fetchall()]
        if len(found) > MOST_GROUPS:
            raise EstimationError(
                "The column {by!r} has more than {most:,} groups.",
                hint="Group by a column with fewer values.",
                by=self._by,
                most=MOST_GROUPS,
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
        if cells > MOST_CELLS and (len(self._axes) > 1 or self._by is not None):
            raise EstimationError(
                "The table would have {cells:,} cells. At most {most:,} can be counted.",
                hint="Choose columns with fewer values.",
                cells=cells,
                most=MOST_CELLS,
            )


def declare(connection: Any, number: int, axis: Axis) -> None:
    """Make the declared values of a column and their codes a view of this number."""
    connection.register(f"labels{number}", _label_table(axis))
    value = "CAST(value AS UUID)" if _kind(axis) == "uuid" else "value"
    declared = f"SELECT {value} AS value, code FROM labels{number}"  # noqa: S608
    connection.execute(f"CREATE VIEW declared{number} AS {declared}")


def check_ids(connection: Any, files: Sequence[ReleasedFile]) -> None:
    """Refuse a file that a person described and that has an object twice; among several files that is seen anyway."""
    if len(files) > 1 or not files[0].is_told:
        return
    source = files[0].relation(connection, "ids", {"id": files[0].description.id_column})
    ids = f"SELECT {id_sql(files[0])} AS id, count(*) AS times FROM {source} AS source GROUP BY ALL"  # noqa: S608
    wrong = "coalesce(max(times), 0) > 1 OR count(id) < count(*)"
    ((is_wrong,),) = connection.execute(f"SELECT {wrong} FROM ({ids})").fetchall()  # noqa: S608
    if is_wrong:
        raise EstimationError(
            "An id occurs twice in {path!r}, or is missing. Each individual counts once.",
            hint="Remove duplicate rows.",
            path=str(files[0].path),
        )


def refuse_undeclared(axis: Axis, undeclared: int, total: int) -> None:
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


def _kind(axis: Axis) -> str:
    return str(next(get_value_kind(label) for label in axis.labels if label is not None))


def _label_table(axis: Axis) -> Any:
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


def join_declared(axis: Axis, file: ReleasedFile, number: int, place: int, sql: str) -> str:
    """Return SQL that joins a report with its declared value. A null is None where that is declared, else nothing."""
    value = f"declared{place}.value"
    if None not in axis.labels:
        return f"LEFT JOIN declared{place} ON {_report_sql(axis, file, number, sql)} = {value}"
    if _kind(axis) == "number" and file.table.format is not Format.CSV:
        sql = f"nullif({sql}, 'nan'::DOUBLE)"
    report = _report_sql(axis, file, number, sql)
    # A text that is no value is null after its conversion, but it is not a missing report.
    return f"LEFT JOIN declared{place} ON {report} IS NOT DISTINCT FROM {value} AND ({sql} IS NULL) = ({value} IS NULL)"


def _report_sql(axis: Axis, file: ReleasedFile, number: int, sql: str) -> str:
    """Return SQL for a report as a value. A number is not its text, except where a file has nothing but text for it."""
    kind, name = _kind(axis), str(axis.names[number])
    found = comparable_type(file.table.schema.field(name).type)
    if file.table.format is Format.CSV:
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
    if id_type in _FROM_TEXT and file.table.format is Format.CSV:
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
        full=TableFileError(
            "Counting needs more memory or disk than is available ({memory} of memory are used).",
            hint="Free some disk space, or count fewer files at once.",
            memory=memory_limit,
        ),
    )
