"""Count the reports of released files with DuckDB, within a memory limit and on disk where the ids do not fit.

Files of one release may hold the same individuals at different levels. Each individual counts once, at its highest
level, because a report at a lower level adds nothing. DuckDB turns a report that is a declared value into its code and
counts equal codes. Packed reports are bytes that hardly repeat, so their mechanism counts them, batch by batch.
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
from relaxdp.mechanisms.report_arrays import (
    Codes,
    count_report_column,
    get_code_dtype,
    get_report_width,
    read_report_column,
)
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
    """The counts of one released column, for each group or for all individuals."""

    axis: CountedColumn
    groups: list[tuple[str | None, Counts]]

    @property
    def n(self) -> int:
        """The number of individuals."""
        return sum(counts.n for _, counts in self.groups)

    @property
    def levels(self) -> dict[str, int]:
        """The number of individuals at each epsilon, in ascending order."""
        texts = [format_epsilon(epsilon) for epsilon in self.axis.levels.values()]
        found = {text: sum(counts.levels.get(text, 0) for _, counts in self.groups) for text in texts}
        return {text: n for text, n in found.items() if n}


@dataclass(frozen=True, slots=True)
class CrosstabCounts:
    """The counts of two released columns of the same individuals: a crosstab for every pair of levels."""

    rows: CountedColumn
    columns: CountedColumn
    tables: dict[tuple[str, str], Crosstab]

    @property
    def n(self) -> int:
        """The number of individuals with a report in both columns."""
        return sum(table.n for table in self.tables.values())

    def estimate(self, method: Method = "average") -> Result:
        """Return one estimate from all pairs of levels. The methods are those of `Counts.estimate`."""
        return combine_tables(list(self.tables.values()), method)


def open_unchanged_files(paths: Sequence[Path], descriptions: Sequence[Path] = ()) -> list[ReleasedFile]:
    """Open files to be counted, or reject files that have other rows than they were released with."""
    files = open_released_files(paths, descriptions)
    require_unchanged_rows([(repr(str(file.path)), file.list_part_rows()) for file in files])
    return files


def count_column(
    files: list[ReleasedFile], *, column: str | None = None, by: str | None = None, memory_limit: str = MEMORY_LIMIT
) -> ColumnCounts:
    """Count a released column of open files, for each value of the pass-through column `by` if it is given."""
    counted = make_counted_column(files, [file.find_released_column(column) for file in files])
    if by is not None:
        for file in files:
            file.require_passthrough_column(by)
    with _open_counting_database(files, memory_limit) as connection:
        _require_unique_ids(connection, files)
        names = [None] if by is None else _list_groups(connection, files, by)
        groups = [(name, Counts(counted.mechanism)) for name in names]
        for group, level, reports, n in _read_counted_reports(connection, files, [counted], by, len(groups)):
            if is_packed(counted):
                counts, total = count_reports(counted.mechanism, reports, counted.name)
            else:
                codes = reports.to_numpy()
                counts, total = _sum_by_code(codes, n, len(counted.labels)), int(n.sum())
            groups[group][1].add_counts(counts, epsilon=list(counted.levels.values())[level], n=total)
    return ColumnCounts(counted, groups)


def count_crosstab(
    files: list[ReleasedFile], *, column: str | None = None, crosstab: str, memory_limit: str = MEMORY_LIMIT
) -> CrosstabCounts:
    """Count two released columns of open files together. They may be in different files with the same ids."""
    names = [file.find_crosstab_columns(column, crosstab) for file in files]
    for place, name in enumerate((column, crosstab)):
        if not any(pair[place] for pair in names):
            raise ColumnError(
                "A crosstab needs two released columns, and there is no {missing}.",
                hint="Pass crosstab= with the name of another released column.",
                missing=f"column {name!r}" if name else f"other column than {crosstab!r}",
            )
    rows, columns = (make_counted_column(files, [pair[place] for pair in names]) for place in (0, 1))
    require_crosstab_columns(rows, columns)
    cells: dict[tuple[int, int], Any] = {}
    with _open_counting_database(files, memory_limit) as connection:
        _require_unique_ids(connection, files)
        if is_packed(rows) or is_packed(columns):
            for row, column_level, *reports, _ in _read_counted_reports(connection, files, [rows, columns], None, 1):
                joint = cells.setdefault((row, column_level), PairCounts(rows.mechanism, columns.mechanism))
                for start in range(0, len(reports[0]), joint.step):
                    parts = [each.slice(start, joint.step) for each in reports]
                    joint.add(_read_codes(rows, parts[0]), _read_codes(columns, parts[1]))
        else:
            shape = len(rows.labels), len(columns.labels)
            for row, column_level, *reports, n in _read_counted_reports(connection, files, [rows, columns], None, 1):
                places = np.ravel_multi_index([each.to_numpy() for each in reports], shape)
                counts = _sum_by_code(places, n, shape[0] * shape[1]).reshape(shape)
                cells[row, column_level] = cells.get((row, column_level), 0) + counts
    return CrosstabCounts(rows, columns, _make_crosstabs(rows, columns, cells))


def _make_crosstabs(
    rows: CountedColumn, columns: CountedColumn, cells: dict[tuple[int, int], Any]
) -> dict[tuple[str, str], Crosstab]:
    tables = {}
    for places, counted in sorted(cells.items(), key=lambda item: item[0]):
        (row_level, row_epsilon), (column_level, column_epsilon) = (
            list(column.levels.items())[place] for column, place in zip((rows, columns), places, strict=True)
        )
        supports = (
            rows.mechanism.compute_support(compute_retention(row_level)),
            columns.mechanism.compute_support(compute_retention(column_level)),
        )
        names, epsilons = (rows.name, columns.name), (row_epsilon, column_epsilon)
        tables[format_epsilon(row_epsilon), format_epsilon(column_epsilon)] = (
            counted.make_crosstab(*supports, names, epsilons)
            if isinstance(counted, PairCounts)
            else Crosstab(
                rows=rows.labels,
                columns=columns.labels,
                counts=counted,
                row_support=supports[0],
                column_support=supports[1],
                names=names,
                epsilons=epsilons,
            )
        )
    return tables


def is_packed(column: CountedColumn) -> bool:
    """Tell whether the reports of a column are packed bytes and not declared values."""
    return get_report_width(column.mechanism) is not None


def _sum_by_code(codes: Any, n: Integers, size: int) -> Integers:
    return np.bincount(codes, n, minlength=size).astype(np.int64)


def _read_codes(column: CountedColumn, reports: Any) -> tuple[Codes, Words | None]:
    """Return codes and seeds of packed reports, or of reports that are codes already."""
    if not is_packed(column):
        return reports.to_numpy().astype(get_code_dtype(column.mechanism.alphabet))[:, None], None
    try:
        return read_report_column(column.mechanism, reports)
    except EstimationError:
        raise _make_changed_report_error(column.name) from None


def count_reports(mechanism: Mechanism, reports: Any, column_name: str) -> tuple[Any, int]:
    """Return the counts of reports and their number, or reject reports that the mechanism cannot have drawn."""
    try:
        return count_report_column(mechanism, reports)
    except EstimationError:
        raise _make_changed_report_error(column_name) from None


def _make_changed_report_error(column_name: str) -> EstimationError:
    return EstimationError(
        "A report in {name!r} is not possible for the declared values. It was changed after its release.",
        hint="Pass the file as it was released.",
        name=column_name,
    )


def split_by(batch: Any, names: Sequence[str]) -> Iterator[tuple[tuple[Any, ...], Any]]:
    """Yield each combination of values in some columns of a batch, with the rows that have it."""
    table = pa.Table.from_batches([batch])
    for values in table.select(names).group_by(names).aggregate([]).to_pylist():
        chosen: Any = True
        for name, value in values.items():
            same = pc.is_null(table[name]) if value is None else pc.fill_null(pc.equal(table[name], value), False)
            chosen = pc.and_(same, chosen)
        yield tuple(values.values()), table.filter(chosen)


# From files to levels and reports, in SQL.


def _read_counted_reports(
    connection: Any, files: list[ReleasedFile], columns: list[CountedColumn], by: str | None, groups: int
) -> Iterator[tuple[Any, ...]]:
    """Yield the positions of group and level, the reports of each individual at its highest level, and their numbers.

    With two columns it yields the positions of both levels, and the reports of individuals that have both. A report is
    packed bytes or a code.
    """
    has_codes = not any(map(is_packed, columns))
    cells = groups * int(np.prod([len(each.labels) * len(each.levels) for each in columns]))
    if has_codes and cells > MAX_CELLS and (len(columns) > 1 or by is not None):
        raise EstimationError(
            "The table would have {cells:,} cells. The maximum is {maximum:,}.",
            hint="Choose columns with fewer values.",
            cells=cells,
            maximum=MAX_CELLS,
        )
    for place, column in enumerate(columns):
        if not is_packed(column):
            _register_declared_values(connection, place, column)
    relation = connection.sql(_make_counting_sql(connection, files, columns, by, groups))
    # An error of DuckDB that comes through a reader of Arrow may quote a row, and is not replaced.
    batches = relation.to_arrow_table().to_batches() if has_codes else relation.to_arrow_reader(BATCH_ROWS)
    keys = ["kept", "level0"] if len(columns) == 1 else ["level0", "level1"]
    totals: dict[str, int] = {}
    has_pairs = False
    for batch in batches:
        for name in batch.schema.names[batch.schema.get_field_index("n") :]:
            totals[name] = totals.get(name, 0) + (pc.sum(batch.column(name)).as_py() or 0)
        if any(total for name, total in totals.items() if name.startswith(("missing", "undeclared", "repeated"))):
            continue  # the rows are rejected below, once all of them are counted
        for places, rows in split_by(batch, keys):
            if None not in places:
                has_pairs = True
                reports = [rows[f"report{place}"].combine_chunks() for place in range(len(columns))]
                yield *places, *reports, rows["n"].to_numpy().astype(np.int64)
    if totals:
        _require_valid_rows(columns, totals)
    if not totals.get("n"):
        raise EstimationError(
            "{named} no rows, so there is nothing to estimate.",
            hint="Check that you pass the released files.",
            named=f"{str(files[0].path)!r} has" if len(files) == 1 else "The files have",
        )
    if not has_pairs:
        raise EstimationError(
            "No individual has a report in both columns, so there is nothing to estimate.",
            hint="Pass columns of the same individuals.",
        )


def _require_valid_rows(columns: list[CountedColumn], totals: dict[str, int]) -> None:
    """Reject missing ids, reports that are not declared values, and ids that occur twice at one level."""
    if totals["missing"]:
        raise EstimationError(
            "An id is missing, or of another type than the metadata states.", hint="Pass the file as it was released."
        )
    for place, column in enumerate(columns):
        undeclared, repeated = totals[f"undeclared{place}"], totals[f"repeated{place}"]
        if undeclared and is_packed(column):
            raise _make_changed_report_error(column.name)
        if undeclared:
            raise EstimationError(
                "{undeclared:,} of {total:,} {verb} not one of the {values:,} declared values of {column!r}. The file "
                "was changed after its release.",
                hint="Pass the file as it was released.",
                total=totals[f"rows{place}"],
                verb="reports are" if undeclared > 1 else "report is",
                values=len(column.labels),
                column=column.name,
                undeclared=undeclared,
            )
        if repeated:
            raise EstimationError(
                "{repeated:,} {verb} in more than one row of the same level. Each individual counts once.",
                hint="Remove duplicate rows, and pass each file once.",
                repeated=repeated,
                verb="ids occur" if repeated > 1 else "id occurs",
            )


def _make_counting_sql(
    connection: Any, files: list[ReleasedFile], columns: list[CountedColumn], by: str | None, groups: int
) -> str:
    """Return SQL for group, levels and reports, how many individuals have them, and how many invalid rows there are."""
    places, has_codes = range(len(columns)), not any(map(is_packed, columns))
    rows = " UNION ALL ".join(_make_rows_sql(connection, *each, files, columns, by) for each in enumerate(files))
    fields = ["kept", *(f"level{place}, report{place}" for place in places)]
    names = ["n", "missing", *(f"{name}{place}" for place in places for name in ("rows", "undeclared", "repeated"))]
    if len(files) == 1:
        checks = ["0 AS missing", *(f"n AS rows{p}, n * (report{p} IS NULL)::BIGINT AS undeclared{p}, "
                                    f"0 AS repeated{p}" for p in places)]  # fmt: skip
        individuals = f"SELECT {', '.join([*fields, 'n', *checks])} FROM ({rows})"  # noqa: S608
    else:
        best, unpacked, checks = [], [], ["1 AS n", "(id IS NULL)::BIGINT AS missing"]
        for p, column in enumerate(columns):
            if is_packed(column):
                best.append(f"arg_max({{'kept': kept, 'level': level{p}, 'report': report{p}}}, level{p}) AS best{p}")
                unpacked.append(f"best{p}.kept AS kept{p}, best{p}.level AS level{p}, best{p}.report AS report{p}")
            else:
                # One integer with the level on top: a state of a fixed size, which DuckDB can move to disk.
                labels, size = len(column.labels), groups * len(column.labels)
                best.append(f"max(level{p}::BIGINT * {size} + kept * {labels} + report{p}) AS best{p}")
                unpacked.append(
                    f"best{p} % {size} // {labels} AS kept{p}, best{p} // {size} AS level{p}, "
                    f"best{p} % {labels} AS report{p}"
                )
            # An id that occurs twice at one level has more rows than different levels.
            repeated = f"count(level{p}) > coalesce(bit_count(bit_or(1::UBIGINT << level{p})), 0)"
            undeclared = f"count(level{p}) - count(report{p})"
            checks.append(f"count(level{p}) AS rows{p}, {undeclared} AS undeclared{p}")
            checks.append(f"({repeated})::BIGINT AS repeated{p}")
        grouped = f"SELECT {', '.join([*best, *checks])} FROM ({rows}) GROUP BY id"  # noqa: S608
        listed = ", ".join(["kept0 AS kept", *fields[1:], *names])
        individuals = f"SELECT {listed} FROM (SELECT {', '.join(unpacked)}, * FROM ({grouped}))"  # noqa: S608
    if not has_codes:
        return individuals
    sums = ", ".join(f"sum({name})::BIGINT AS {name}" for name in names)
    keys = ", ".join(fields)
    return f"SELECT {keys}, {sums} FROM ({individuals}) GROUP BY {keys}"  # noqa: S608


def _make_rows_sql(
    connection: Any,
    number: int,
    file: ReleasedFile,
    files: list[ReleasedFile],
    columns: list[CountedColumn],
    by: str | None,
) -> str:
    """Return SQL for the rows of one file: id, group, and for each column the level and the report or its code."""
    is_alone = len(files) == 1
    names = {place: str(column.names[number]) for place, column in enumerate(columns) if column.names[number]}
    selected = {f"report{place}": name for place, name in names.items()}
    selected |= {} if by is None else {"kept": by}
    selected |= {} if is_alone else {"id": file.description.id_column}
    source, n = file.make_relation_sql(connection, f"file{number}", selected), "1"
    if is_alone and not any(map(is_packed, columns)):  # equal reports are counted before they are compared with values
        source, n = f"(SELECT {', '.join(selected)}, count(*) AS n FROM {source} GROUP BY ALL)", "source.n"  # noqa: S608
    fields = [f"{'0' if is_alone else make_id_sql(file)} AS id, {n} AS n"]
    fields.append(f"{'0' if by is None else 'groups.code'}::BIGINT AS kept")
    joins = [] if by is None else ["LEFT JOIN groups ON CAST(source.kept AS VARCHAR) IS NOT DISTINCT FROM groups.name"]
    for place, column in enumerate(columns):
        report_type = "BLOB" if is_packed(column) else "BIGINT"
        if place not in names:
            fields.append(f"NULL::INTEGER AS level{place}, NULL::{report_type} AS report{place}")
            continue
        level = list(column.levels).index(file.description.columns[names[place]].threshold)
        report = f"source.report{place}"
        if is_packed(column):
            report = _make_packed_report_sql(column, file, names[place], report)
        else:
            joins.append(_make_declared_join_sql(column, file, number, place, report))
            report = f"declared{place}.code"
        fields.append(f"{level}::INTEGER AS level{place}, {report}::{report_type} AS report{place}")
    return f"SELECT {', '.join(fields)} FROM {source} AS source {' '.join(joins)}"  # noqa: S608


def _list_groups(connection: Any, files: list[ReleasedFile], by: str) -> list[str | None]:
    """Return the values of a pass-through column in their natural order, and register their positions as a table."""
    sources = [file.make_relation_sql(connection, f"groups{number}", {"kept": by}) for number, file in enumerate(files)]
    kept = " UNION ALL ".join(f"SELECT DISTINCT kept::VARCHAR AS kept FROM {source}" for source in sources)  # noqa: S608
    query = f"SELECT DISTINCT kept FROM ({kept}) LIMIT {MAX_GROUPS + 1}"  # noqa: S608
    found = [name for (name,) in connection.execute(query).fetchall()]
    if len(found) > MAX_GROUPS:
        raise make_too_many_groups_error(by)
    groups = sorted(found, key=_make_natural_key) or [None]
    table = pa.table({"name": pa.array(groups, pa.string()), "code": pa.array(range(len(groups)), pa.int64())})
    connection.register("groups", table)
    return groups


def make_too_many_groups_error(by: str | None) -> EstimationError:
    """Return the error about a pass-through column with too many values."""
    return EstimationError(
        "The column {by!r} has more than {maximum:,} groups.",
        hint="Pass a column with fewer values as by= (--by NAME).",
        by=by,
        maximum=MAX_GROUPS,
    )


def _make_natural_key(name: str | None) -> tuple[int, float, str]:
    """Return a sort key: numbers by size, then text, then a missing value."""
    if name is None:
        return (2, 0.0, "")
    try:
        return (0, float(name), name) if float(name) == float(name) else (1, 0.0, name)
    except ValueError:
        return (1, 0.0, name)


def _get_label_kind(column: CountedColumn) -> str:
    return str(next(get_value_kind(label) for label in column.labels if label is not None))


def _register_declared_values(connection: Any, place: int, column: CountedColumn) -> None:
    """Make a view of the declared values and their codes, in the type that reports are compared in."""
    kind, labels = _get_label_kind(column), list(column.labels)
    if kind == "integer":
        is_wide = max(label for label in labels if label is not None) >= 2**63
        values = pa.array(labels, pa.uint64() if is_wide else pa.int64())
    else:
        values = pa.array([label and str(label) for label in labels] if kind == "uuid" else labels)
    connection.register(f"labels{place}", pa.table({"value": values, "code": pa.array(range(len(labels)), pa.int64())}))
    value = "CAST(value AS UUID)" if kind == "uuid" else "value"
    connection.execute(f"CREATE VIEW declared{place} AS SELECT {value} AS value, code FROM labels{place}")  # noqa: S608


_TYPE_TESTS = {
    "text": pa.types.is_string,
    "integer": pa.types.is_integer,
    "number": pa.types.is_floating,
    "bytes": pa.types.is_binary,
    "uuid": lambda kind: getattr(kind, "extension_name", None) == "arrow.uuid",
}
_CASTS_FROM_TEXT = {
    "text": "{}",
    "integer": "TRY_CAST({} AS HUGEINT)",
    "number": "TRY_CAST({} AS DOUBLE)",
    "bytes": "encode({})",
    "uuid": "TRY_CAST({} AS UUID)",
}


def _make_declared_join_sql(column: CountedColumn, file: ReleasedFile, number: int, place: int, sql: str) -> str:
    """Return SQL that joins reports with the declared values. A null report is the value None, if that is declared."""
    value = f"declared{place}.value"
    if None not in column.labels:
        return f"LEFT JOIN declared{place} ON {_make_report_sql(column, file, number, sql)} = {value}"
    if _get_label_kind(column) == "number" and file.table.format is not TableFormat.CSV:
        sql = f"nullif({sql}, 'nan'::DOUBLE)"
    report = _make_report_sql(column, file, number, sql)
    # A text that is no value is null after its conversion, but it is not a missing report.
    return f"LEFT JOIN declared{place} ON {report} IS NOT DISTINCT FROM {value} AND ({sql} IS NULL) = ({value} IS NULL)"


def _make_report_sql(column: CountedColumn, file: ReleasedFile, number: int, sql: str) -> str:
    """Return SQL for a report as a value. In CSV, where everything is text, it is converted."""
    kind, name = _get_label_kind(column), str(column.names[number])
    found = get_comparable_type(file.table.schema.field(name).type)
    if file.table.format is TableFormat.CSV:
        return _CASTS_FROM_TEXT[kind].format(sql)
    if pa.types.is_null(found) and None in column.labels:
        return "NULL"
    if not _TYPE_TESTS[kind](found):
        raise MetadataError(
            "The column {name!r} of {file!r} is of type {found}, which does not fit its declared values.",
            hint="Pass the file as it was released.",
            name=name,
            file=str(file.path),
            found=found,
        )
    return sql


def _make_packed_report_sql(column: CountedColumn, file: ReleasedFile, name: str, sql: str) -> str:
    """Return SQL for a packed report, which is hexadecimal text in CSV."""
    if file.table.format is TableFormat.CSV:
        return f"unhex({sql})"
    found = file.table.schema.field(name).type
    width = get_report_width(column.mechanism)
    if not (pa.types.is_binary(found) or found == pa.binary(width) or pa.types.is_large_binary(found)):
        raise MetadataError(
            "The column {name!r} of {file!r} is of type {found}. Its reports must be bytes.",
            hint="Pass the file as it was released.",
            name=name,
            file=str(file.path),
            found=found,
        )
    return sql


def make_id_sql(file: ReleasedFile) -> str:
    """Return SQL for the id as a value. In CSV it is converted from text."""
    id_type = next(iter(file.description.columns.values())).id_type
    if id_type in _CASTS_FROM_TEXT and file.table.format is TableFormat.CSV:
        return _CASTS_FROM_TEXT[id_type].format("source.id")
    return "source.id"


def _require_unique_ids(connection: Any, files: Sequence[ReleasedFile]) -> None:
    """Reject repeated ids in a single file with a given description. Several files are checked while counting."""
    if len(files) > 1 or not files[0].has_given_description:
        return
    source = files[0].make_relation_sql(connection, "ids", {"id": files[0].description.id_column})
    ids = f"SELECT {make_id_sql(files[0])} AS id, count(*) AS times FROM {source} AS source GROUP BY ALL"  # noqa: S608
    repeated = "coalesce(max(times), 0) > 1 OR count(id) < count(*)"
    ((is_repeated,),) = connection.execute(f"SELECT {repeated} FROM ({ids})").fetchall()  # noqa: S608
    if is_repeated:
        raise EstimationError(
            "An id occurs twice in {path!r}, or is missing. Each individual counts once.",
            hint="Remove duplicate rows and rows without an id.",
            path=str(files[0].path),
        )


def _open_counting_database(files: Sequence[ReleasedFile], memory_limit: str) -> AbstractContextManager[Any]:
    named = repr(str(files[0].path)) if len(files) == 1 else "One of the files"
    return open_database(
        memory_limit,
        TableFileError(
            "{named} is damaged or incomplete, or its ids or reports have another type than its metadata states.",
            hint="Pass the file as it was released.",
            named=named,
        ),
        out_of_memory_error=TableFileError(
            "Counting needs more memory or disk space than is available. The memory limit is {memory}.",
            hint="Free some disk space (TMPDIR names the folder of temporary files), or pass fewer files.",
            memory=memory_limit,
        ),
    )
