"""Counts of reports that are packed bytes: no two need be alike, so they are not grouped but added up bit by bit.

DuckDB still reads, and finds the highest level of every object; the encoding counts, batch by batch.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from relaxdp.errors import EstimationError, MetadataError
from relaxdp.estimation.counts import Counts
from relaxdp.estimation.crosstab import Crosstab, JointCounts
from relaxdp.mechanisms.base import Mechanism
from relaxdp.mechanisms.packed import Codes, code_dtype
from relaxdp.sampling.stream import Words
from relaxdp.tables.counted_cells import declare, id_sql, join_declared, refuse_undeclared, repeated_sql
from relaxdp.tables.files import BATCH_ROWS, Format
from relaxdp.tables.released_files import Axis, ReleasedFile
from relaxdp.theory.epsilon import epsilon_text
from relaxdp.theory.level import retention

MOST_GROUPS = 1_000


def is_packed(axis: Axis) -> bool:
    """Tell whether reports of this column are bytes to be added up, and not values to be grouped."""
    return axis.mechanism.report_width is not None


def count_packed(
    connection: Any, files: list[ReleasedFile], axis: Axis, by: str | None
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
        if len(groups) > MOST_GROUPS:
            raise EstimationError(
                "The column {by!r} has more than {most:,} groups.",
                hint="Group by a column with fewer values.",
                by=by,
                most=MOST_GROUPS,
            )
    if not groups:
        raise EstimationError(
            "There are no rows, so there is nothing to estimate.", hint="Check that these are the released files."
        )
    return sorted(groups.items(), key=lambda item: (item[0] is None, item[0] or ""))


def count_packed_pairs(
    connection: Any, files: list[ReleasedFile], rows: Axis, columns: Axis
) -> dict[tuple[str, str], Crosstab]:
    """Return a two-way table for every pair of levels, of the objects that have a report in both columns."""
    axes = (rows, columns)
    counted: dict[tuple[int, int], JointCounts] = {}
    for levels, same in _pairs_by_level(connection, files, axes):
        joint = counted.setdefault(levels, JointCounts(*(axis.mechanism for axis in axes)))
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
        pair = rows.mechanism.support(retention(row)), columns.mechanism.support(retention(column))
        epsilons = (row_epsilon, column_epsilon)
        found[epsilon_text(row_epsilon), epsilon_text(column_epsilon)] = joint.table(
            *pair, (rows.name, columns.name), epsilons
        )
    return found


def _pairs_by_level(
    connection: Any, files: list[ReleasedFile], axes: tuple[Axis, Axis]
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


def _read_reports(axis: Axis, reports: Any) -> tuple[Codes, Words | None]:
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


def _rows(connection: Any, files: list[ReleasedFile], axes: Sequence[Axis], by: str | None = None) -> Iterator[Any]:
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
        source = file.relation(connection, f"file{number}", wanted)
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


def _report(axis: Axis, file: ReleasedFile, name: str, sql: str) -> str:
    """Return SQL for a packed report. In text it is written in hexadecimal digits."""
    if file.table.format is Format.CSV:
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
