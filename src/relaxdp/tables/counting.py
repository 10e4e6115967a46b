"""Count the reports of released files with DuckDB, within a memory limit and on disk where the ids do not fit.

Files of one release may hold the same individuals at different levels. Each individual counts once, at its highest
level, because a report at a lower level adds nothing. DuckDB turns a report that is a declared value into its code and
counts equal codes. Packed reports are bytes that hardly repeat, so their mechanism counts them, batch by batch.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from relaxdp.errors import ColumnError, EstimationError, MetadataError, TableFileError
from relaxdp.estimation.counts import Counts, Method
from relaxdp.estimation.crosstab import Crosstab, PairSupportCounts, combine_crosstabs
from relaxdp.estimation.result import Result
from relaxdp.estimation.weights import WeightedCounts
from relaxdp.mechanisms.report_arrays import (
    Codes,
    count_codes,
    count_report_column,
    get_code_dtype,
    get_report_width,
    read_report_column,
)
from relaxdp.sampling.keyed_stream import Words, get_value_kind
from relaxdp.tables.duckdb_queries import make_relation_sql, open_database, replace_duckdb_errors
from relaxdp.tables.files import BATCH_ROWS, TableFile, TableFormat
from relaxdp.tables.metadata import ColumnDescription
from relaxdp.tables.released_files import (
    CountedColumn,
    ReleasedFile,
    make_counted_column,
    require_crosstab_columns,
    require_unchanged_rows,
)
from relaxdp.theory.epsilon import format_epsilon

MEMORY_LIMIT = "1GB"
MAX_GROUPS = 1_000
MAX_CELLS = 10_000_000
_WEIGHT_SUMS = ("w", "squared_weight", "invalid_weights")
_WEIGHT = "CASE WHEN TRY_CAST(weight AS DOUBLE) BETWEEN 0 AND 1e100 THEN TRY_CAST(weight AS DOUBLE) END"
_INVALID = ("missing", "undeclared", "repeated", "invalid")


@dataclass(frozen=True, slots=True)
class ColumnCounts:
    """Counts of one released column, for each group or for all individuals."""

    axis: CountedColumn
    groups: Sequence[tuple[str | None, Counts]]

    @property
    def n(self) -> int:
        """The number of individuals."""
        return sum(counts.n for _, counts in self.groups)


@dataclass(frozen=True, slots=True)
class CrosstabCounts:
    """Counts for the crosstab of two released columns of the same individuals: one for every pair of levels."""

    axis: CountedColumn
    tables: dict[tuple[str, str], Crosstab]

    @property
    def n(self) -> int:
        """The number of individuals with a report in both columns."""
        return sum(table.n for table in self.tables.values())

    @property
    def levels(self) -> dict[str, int]:
        """The number of individuals at each pair of levels, such as "0.5 and 1"."""
        return {" and ".join(levels): table.n for levels, table in self.tables.items()}

    @property
    def groups(self) -> Sequence[tuple[None, CrosstabCounts]]:
        """All individuals, as the only group."""
        return [(None, self)]

    def estimate(self, method: Method = "average") -> Result:
        """Return one estimate from all pairs of levels. The methods are those of `Counts.estimate`."""
        return combine_crosstabs(list(self.tables.values()), method)


def count_reports_of_files(
    files: list[ReleasedFile], *, column: str | None = None, by: str | None = None, crosstab: str | None = None,
    weights: str | None = None,
) -> ColumnCounts | CrosstabCounts:  # fmt: skip
    """Count the reports of open files or frames, or reject those that lost or gained rows since their release."""
    if crosstab is not None and (by is not None or weights is not None):
        used = "weights" if by is None else "by"
        raise EstimationError("`{option}` and `crosstab` cannot be combined.", hint="Pass one of them.", option=used)
    require_unchanged_rows(files)
    if crosstab is not None:
        return _count_crosstab(files, column, crosstab)
    return _count_column(files, column, by, weights)


def _count_column(files: list[ReleasedFile], column: str | None, by: str | None, weights: str | None) -> ColumnCounts:
    counted = make_counted_column(files, [file.find_released_column(column) for file in files])
    for file in files:
        if by is not None:
            file.require_passthrough_column(by)
        if weights is not None:
            file.require_weights_column(weights)
    with _open_counting_database(files) as connection:
        names = [None] if by is None else _list_groups(connection, files, by)
        groups = [(name, (WeightedCounts if weights else Counts)(counted.mechanism)) for name in names]
        read = {name: column for name, column in (("kept", by), ("weight", weights)) if column is not None}
        for group, level, reports, n, *sums in _read_counted_reports(connection, files, [counted], read, len(groups)):
            tally, used = groups[group][1], counted.levels[level]
            try:
                if isinstance(tally, WeightedCounts):
                    tally.add_weighted(used, int(n.sum()), reports, sums)
                    continue
                if is_packed(counted):
                    counts, total = count_report_column(counted.mechanism, reports)
                else:
                    counts, total = _sum_by_code(reports, n, len(counted.labels)), int(n.sum())
            except EstimationError:
                raise make_changed_report_error(counted.name) from None
            tally.add_counts(counts, epsilon=used.epsilon, n=total)
    return ColumnCounts(counted, groups)


def _count_crosstab(files: list[ReleasedFile], column: str | None, crosstab: str) -> CrosstabCounts:
    """Count two released columns together. They may be in different files with the same ids."""
    names = [file.find_crosstab_columns(column, crosstab) for file in files]
    for place, name in enumerate((column, crosstab)):
        if not any(pair[place] for pair in names):
            raise ColumnError(
                "A crosstab needs two released columns, and there is no {missing}.",
                hint="Pass the name of another released column as crosstab= (--crosstab NAME).",
                missing=f"column {name!r}" if name else f"other column than {crosstab!r}",
            )
    rows, columns = (make_counted_column(files, [pair[place] for pair in names]) for place in (0, 1))
    require_crosstab_columns(rows, columns)
    shape = len(rows.labels), len(columns.labels)
    pairs: dict[tuple[int, int], PairSupportCounts] = {}
    with _open_counting_database(files) as connection:
        for row_level, column_level, one, other, n in _read_counted_reports(connection, files, [rows, columns], {}):
            counted = pairs.setdefault((row_level, column_level), PairSupportCounts(rows.mechanism, columns.mechanism))
            if is_packed(rows) or is_packed(columns):
                for start in range(0, len(one), counted.step):
                    part = slice(start, start + counted.step)
                    counted.add_reports(_read_codes(rows, one[part]), _read_codes(columns, other[part]))
            else:
                codes = np.ravel_multi_index([one.to_numpy(), other.to_numpy()], shape)
                cells = _sum_by_code(codes, n, shape[0] * shape[1]).reshape(shape)
                counted.add_counts(np.concatenate([[n.sum()], cells.sum(axis=1), cells.sum(axis=0), cells.ravel()]))
    tables = {}
    for (row_level, column_level), counted in sorted(pairs.items(), key=lambda item: item[0]):
        one, other = rows.levels[row_level], columns.levels[column_level]
        supports = (
            rows.mechanism.compute_noise_and_gain(one.retention),
            columns.mechanism.compute_noise_and_gain(other.retention),
        )
        titles, epsilons = (rows.name, columns.name), (one.epsilon, other.epsilon)
        tables[str(one), str(other)] = counted.make_crosstab(*supports, titles, epsilons)
    return CrosstabCounts(rows, tables)


def is_packed(column: CountedColumn) -> bool:
    """Tell whether the reports of a column are packed bytes and not declared values."""
    return get_report_width(column.mechanism) is not None


def _sum_by_code(codes: Any, counts: Any, n_codes: int) -> Any:
    return np.bincount(codes, counts, minlength=n_codes).astype(np.int64)


def _read_codes(column: CountedColumn, reports: Any) -> tuple[Codes, Words | None]:
    """Read codes and seeds of packed reports, or of reports that are codes already."""
    if not is_packed(column):
        return reports.to_numpy().astype(get_code_dtype(column.mechanism.alphabet))[:, None], None
    try:
        return read_report_column(column.mechanism, reports)
    except EstimationError:
        raise make_changed_report_error(column.name) from None


def make_changed_report_error(column_name: str) -> EstimationError:
    """Return the error about a report that its mechanism cannot have drawn."""
    return EstimationError(
        "The column {name!r} was changed after its release: its mechanism cannot have made one of the reports.",
        hint="Pass the file as it was released.",
        name=column_name,
    )


def make_no_rows_error(files: Sequence[ReleasedFile]) -> EstimationError:
    """Return the error about tables without reports."""
    return EstimationError(
        "There are no rows to estimate from. {named} must have at least one.",
        hint="Check that you pass the data as it was released.",
        named=files[0].label if len(files) == 1 else "The files together",
    )


def iterate_groups(rows: pa.Table, names: Sequence[str]) -> Iterator[tuple[tuple[Any, ...], pa.Table]]:
    """Yield each combination of values in some columns, with the rows that have it."""
    for values in rows.select(names).group_by(names).aggregate([]).to_pylist():
        chosen: Any = True
        for name, value in values.items():
            same = pc.is_null(rows[name]) if value is None else pc.fill_null(pc.equal(rows[name], value), False)
            chosen = pc.and_(same, chosen)
        yield tuple(values.values()), rows.filter(chosen)


# From files to levels and reports, in SQL.


def _read_counted_reports(
    connection: Any, files: list[ReleasedFile], columns: list[CountedColumn], read: dict[str, str], groups: int = 1
) -> Iterator[tuple[Any, ...]]:
    """Yield the positions of group and level, the reports of each individual at its highest level, and their numbers.

    With weights it also yields the sums of the weights and of their squares. With two columns it yields the positions
    of both levels, and the reports of individuals that have both. A report is packed bytes or a code.
    """
    has_codes = not any(map(is_packed, columns))
    cells = groups * int(np.prod([len(each.labels) * len(each.levels) for each in columns]))
    if has_codes and cells > MAX_CELLS and (len(columns) > 1 or "kept" in read):
        raise EstimationError(
            "The table of all values, groups and levels would have {cells:,} cells. The maximum is {maximum:,}.",
            hint="Choose a column with fewer values for by= (--by) or crosstab= (--crosstab).",
            cells=cells,
            maximum=MAX_CELLS,
        )
    for place, column in enumerate(columns):
        if not is_packed(column):
            _create_declared_values_view(connection, place, column)
    relation = connection.sql(_make_counting_sql(connection, files, columns, read, groups))
    # Codes are one table, so all of them are checked before the first is counted. An error of DuckDB that came through
    # a reader of Arrow could quote a row, and would not be replaced.
    tables = (
        [relation.to_arrow_table()]
        if has_codes
        else (pa.Table.from_batches([batch]) for batch in relation.to_arrow_reader(BATCH_ROWS))
    )
    keys = ["kept", "level0"] if len(columns) == 1 else ["level0", "level1"]
    totals: Counter[str] = Counter()
    has_pairs = False
    for table in tables:
        for name in table.column_names[table.column_names.index("n") :]:
            totals[name] += pc.sum(table[name]).as_py() or 0
        if any(total for name, total in totals.items() if name.startswith(_INVALID)):
            continue  # the rows are rejected below, once all of them are counted
        for places, rows in iterate_groups(table, keys):
            if None not in places:
                has_pairs = True
                reports = [rows[f"report{place}"].combine_chunks() for place in range(len(columns))]
                sums = [rows[name].to_numpy() for name in _WEIGHT_SUMS[: 2 * ("weight" in read)]]
                yield *places, *reports, rows["n"].to_numpy().astype(np.int64), *sums
    _require_valid_rows(columns, totals)
    if totals["invalid_weights"]:
        raise EstimationError(
            "{rows:,} {verb} no weight, or one that is not a number from 0 to 1e100.",
            hint="Fill in the weights before the release. A weight of 0 leaves an individual out.",
            verb="row has" if totals["invalid_weights"] == 1 else "rows have",
            rows=int(totals["invalid_weights"]),
        )
    if not totals["n"]:
        raise make_no_rows_error(files)
    if not has_pairs:
        raise EstimationError(
            "No individual has a report in both columns, so there is nothing to estimate.",
            hint="Pass columns of the same individuals.",
        )


def _require_valid_rows(columns: list[CountedColumn], totals: Counter[str]) -> None:
    """Reject missing ids, reports that are not declared values, and ids that occur twice at one level."""
    if totals["missing"]:
        raise EstimationError(
            "An id is missing, or of another type than the metadata states.", hint="Pass the file as it was released."
        )
    for place, column in enumerate(columns):
        total, undeclared, repeated = (totals[f"{name}{place}"] for name in ("rows", "undeclared", "repeated"))
        if undeclared and is_packed(column):
            raise make_changed_report_error(column.name)
        if undeclared:
            raise EstimationError(
                "{undeclared:,} of {total:,} {verb} not one of the {values:,} declared values of {column!r}. The file "
                "was changed after its release.",
                hint="Pass the file as it was released.",
                total=total,
                verb=f"{'report' if total == 1 else 'reports'} {'is' if undeclared == 1 else 'are'}",
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
    connection: Any, files: list[ReleasedFile], columns: list[CountedColumn], read: dict[str, str], groups: int
) -> str:
    """Return SQL for group, levels and reports, how many individuals have them, and how many invalid rows there are."""
    places = range(len(columns))
    names = _WEIGHT_SUMS if "weight" in read else ()
    rows = " UNION ALL ".join(_make_rows_sql(connection, *each, files, columns, read) for each in enumerate(files))
    keys = ["kept", *(f"{name}{place}" for place in places for name in ("level", "report"))]
    sums = ["n", "missing", *(f"{name}{place}" for place in places for name in ("rows", "undeclared", "repeated"))]
    if len(files) == 1:
        checks = [f"n AS rows{p}, n * (report{p} IS NULL)::BIGINT AS undeclared{p}, 0 AS repeated{p}" for p in places]
        individuals = f"SELECT {', '.join([*keys, 'n', '0 AS missing', *checks, *names])} FROM ({rows})"  # noqa: S608
    else:
        individuals = (
            f"SELECT kept0 AS kept, {', '.join([*keys[1:], *sums, *names])} "  # noqa: S608
            f"FROM ({_make_highest_level_sql(rows, columns, groups, names)})"
        )
    if any(map(is_packed, columns)):
        return individuals
    summed = ", ".join([*(f"sum({name})::BIGINT AS {name}" for name in sums), *(f"sum({n}) AS {n}" for n in names)])
    return f"SELECT {', '.join(keys)}, {summed} FROM ({individuals}) GROUP BY {', '.join(keys)}"  # noqa: S608


def _make_highest_level_sql(rows: str, columns: list[CountedColumn], groups: int, weight_sums: Sequence[str]) -> str:
    """Return SQL for group, level and report of each id at its highest level, and for its invalid rows."""
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
        checks.append(f"count(level{p}) AS rows{p}, count(level{p}) - count(report{p}) AS undeclared{p}")
        checks.append(f"({repeated})::BIGINT AS repeated{p}")
    checks += [f"arg_max({name}, level0) AS {name}" for name in weight_sums]
    grouped = f"SELECT {', '.join([*best, *checks])} FROM ({rows}) GROUP BY id"  # noqa: S608
    return f"SELECT {', '.join(unpacked)}, * FROM ({grouped})"  # noqa: S608


def _make_rows_sql(
    connection: Any,
    number: int,
    file: ReleasedFile,
    files: list[ReleasedFile],
    columns: list[CountedColumn],
    read: dict[str, str],
) -> str:
    """Return SQL for the rows of one file: id, group, and for each column the level and the report or its code."""
    is_alone = len(files) == 1
    names = {place: str(column.names[number]) for place, column in enumerate(columns) if column.names[number]}
    selected = {f"report{place}": name for place, name in names.items()}
    selected |= {} if is_alone else {"id": file.description.id_column}
    described = {place: file.description.columns[name] for place, name in names.items()}
    selected |= {f"stated{place}": each.level_column for place, each in described.items() if each.level_column}
    view, n, sums = f"file{number}", "1", _WEIGHT_SUMS if "weight" in read else ()
    is_counted = is_alone and not any(map(is_packed, columns))  # equal reports, before they are compared with values
    if is_counted and not sums:
        source, n = _make_distinct_rows_sql(connection, view, file.table, selected | read), "source.n"
    else:
        source = make_relation_sql(connection, view, file.table, selected | read, _convert_to_comparable)
    if sums:
        source = f"(SELECT *, {_WEIGHT} AS w FROM {source})"  # noqa: S608
        source = f"(SELECT *, w * w AS squared_weight, (w IS NULL)::BIGINT AS invalid_weights FROM {source})"  # noqa: S608
    if is_counted and sums:
        keys = [*selected, *(name for name in read if name == "kept")]
        cells = [*keys, "count(*) AS n", *(f"sum({name}) AS {name}" for name in sums)]
        source, n = f"(SELECT {', '.join(cells)} FROM {source} GROUP BY {', '.join(keys)})", "source.n"  # noqa: S608
    fields = [f"{'0' if is_alone else _make_id_sql(file)} AS id, {n} AS n", *sums]
    fields.append(f"{'groups.code' if 'kept' in read else '0'}::BIGINT AS kept")
    join = "LEFT JOIN groups ON CAST(source.kept AS VARCHAR) IS NOT DISTINCT FROM groups.name"
    joins = [join] if "kept" in read else []
    for place, column in enumerate(columns):
        level, report, report_type = "NULL", "NULL", "BLOB" if is_packed(column) else "BIGINT"
        if place in names:
            level, is_stated = _make_level_sql(column, described[place], f"source.stated{place}")
            report = _make_report_sql(column, file, names[place], f"source.report{place}")
            if not is_packed(column):
                joins.append(_make_declared_join_sql(column, file, place, report))
                report = f"declared{place}.code"
            if described[place].level_column is not None:  # another level is counted as a report that is not possible
                report = f"CASE WHEN {is_stated} THEN {report} END"
        fields.append(f"{level}::INTEGER AS level{place}, {report}::{report_type} AS report{place}")
    return f"SELECT {', '.join(fields)} FROM {source} AS source {' '.join(joins)}"  # noqa: S608


def _make_level_sql(column: CountedColumn, description: ColumnDescription, stated: str) -> tuple[str, str]:
    """Return SQL for the position of a row's level, and for whether the row states a level of its file."""
    levels = [(each, column.levels.index(column.mechanism.level(each))) for each in description.epsilons]
    if description.level_column is None:
        return str(levels[0][1]), "TRUE"
    cases = (f"WHEN '{format_epsilon(epsilon)}' THEN {place}" for epsilon, place in levels)
    names = ", ".join(f"'{format_epsilon(epsilon)}'" for epsilon, _ in levels)
    text = f"CAST({stated} AS VARCHAR)"
    return f"CASE {text} {' '.join(cases)} ELSE 0 END", f"{text} IN ({names})"


def _make_distinct_rows_sql(connection: Any, view: str, table: TableFile, columns: Mapping[str, str]) -> str:
    """Return SQL for the distinct rows of some columns of a table, and as `n` how often each of them occurs."""
    (alias, name), *others = columns.items()
    kind = table.schema.field(name).type
    is_counted_here = pa.types.is_dictionary(kind) or get_comparable_type(kind) == pa.string()
    if others or not is_counted_here or table.format is not TableFormat.FRAME:
        source = make_relation_sql(connection, view, table, columns, _convert_to_comparable)
        return f"(SELECT {', '.join(columns)}, count(*) AS n FROM {source} GROUP BY ALL)"  # noqa: S608
    schema = pa.schema([(alias, get_comparable_type(kind)), ("n", pa.int64())])
    counts = (_count_dictionary_entries(batch.column(0), schema) for batch in table.batches([name]))
    connection.register(view, pa.RecordBatchReader.from_batches(schema, counts))
    return f"(FROM {view} WHERE n > 0)"


def _count_dictionary_entries(column: Any, schema: pa.Schema) -> pa.RecordBatch:
    """Count the rows of each dictionary entry, and those without one. DuckDB would need text of every row."""
    column = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
    indices = column.indices.drop_null().to_numpy()
    indices = indices.astype(np.int64) if indices.dtype == np.uint64 else indices  # which NumPy cannot count
    counts = count_codes(indices, len(column.dictionary))
    used = np.flatnonzero(counts)
    entries = _convert_to_comparable(column.dictionary.take(pa.array(used)))
    values = pa.concat_arrays([entries, pa.nulls(1, entries.type)])
    return pa.record_batch([values, pa.array([*counts[used], column.indices.null_count])], schema)


def _list_groups(connection: Any, files: list[ReleasedFile], by: str) -> list[str | None]:
    """Return the groups, the values of a pass-through column, in natural order, and register them as a table."""
    sources = [
        make_relation_sql(connection, f"groups{number}", file.table, {"kept": by}, _convert_to_comparable)
        for number, file in enumerate(files)
    ]
    kept = " UNION ALL ".join(f"SELECT DISTINCT kept::VARCHAR AS kept FROM {source}" for source in sources)  # noqa: S608
    query = f"SELECT DISTINCT kept FROM ({kept}) LIMIT {MAX_GROUPS + 1}"  # noqa: S608
    groups = sort_groups([name for (name,) in connection.execute(query).fetchall()], by) or [None]
    table = pa.table({"name": pa.array(groups, pa.string()), "code": pa.array(range(len(groups)), pa.int64())})
    connection.register("groups", table)
    return groups


def sort_groups(groups: Sequence[str | None], by: str | None) -> list[str | None]:
    """Return groups in their natural order: numbers by size, then text, then a missing value."""
    if len(groups) > MAX_GROUPS:
        raise EstimationError(
            "The column {by!r} has more than {maximum:,} groups.",
            hint="Pass a column with fewer values as by= (--by NAME).",
            by=by,
            maximum=MAX_GROUPS,
        )
    return sorted(groups, key=_make_group_sort_key)


def _make_group_sort_key(name: str | None) -> tuple[int, float, str]:
    if name is None:
        return (2, 0.0, "")
    try:
        number = float(name)
    except ValueError:
        number = float("nan")
    return (1, 0.0, name) if np.isnan(number) else (0, number, name)


def _get_label_kind(column: CountedColumn) -> str:
    return str(next(get_value_kind(label) for label in column.labels if label is not None))


def _create_declared_values_view(connection: Any, index: int, column: CountedColumn) -> None:
    """Make a view of the declared values and their codes, in the type that reports are compared in."""
    kind, labels = _get_label_kind(column), list(column.labels)
    if kind == "integer":
        is_wide = max(label for label in labels if label is not None) >= 2**63
        values = pa.array(labels, pa.uint64() if is_wide else pa.int64())
    else:
        values = pa.array([label and str(label) for label in labels] if kind == "uuid" else labels)
    connection.register(f"labels{index}", pa.table({"value": values, "code": pa.array(range(len(labels)), pa.int64())}))
    value = "CAST(value AS UUID)" if kind == "uuid" else "value"
    connection.execute(f"CREATE VIEW declared{index} AS SELECT {value} AS value, code FROM labels{index}")  # noqa: S608


_TYPE_TESTS = {
    "text": pa.types.is_string,
    "integer": pa.types.is_integer,
    "number": pa.types.is_floating,
    "bytes": pa.types.is_binary,
    "packed": pa.types.is_binary,
    "uuid": lambda kind: getattr(kind, "extension_name", None) == "arrow.uuid",
}
_CASTS_FROM_TEXT = {
    "text": "{}",
    "integer": "TRY_CAST({} AS HUGEINT)",
    "number": "TRY_CAST({} AS DOUBLE)",
    "bytes": "encode({})",
    "packed": "unhex({})",
    "uuid": "TRY_CAST({} AS UUID)",
}


def _make_report_sql(column: CountedColumn, file: ReleasedFile, name: str, sql: str) -> str:
    """Return SQL for a report as a value. In CSV, where everything is text, it is converted."""
    kind = "packed" if is_packed(column) else _get_label_kind(column)
    if file.table.format is TableFormat.CSV:
        return _CASTS_FROM_TEXT[kind].format(sql)
    found = get_comparable_type(file.table.schema.field(name).type)
    if pa.types.is_null(found) and None in column.labels:
        return "NULL"
    if not _TYPE_TESTS[kind](found):
        raise MetadataError(
            "The column {name!r} of {file!r} is of type {found}, which does not fit the values that were released.",
            hint="Pass the file as it was released.",
            name=name,
            file=str(file.path),
            found=found,
        )
    return f"nullif({sql}, 'nan'::DOUBLE)" if kind == "number" and None in column.labels else sql


def _make_declared_join_sql(column: CountedColumn, file: ReleasedFile, index: int, report: str) -> str:
    """Return SQL that joins reports with the declared values. A null report is the value None, if that is declared."""
    value = f"declared{index}.value"
    if None not in column.labels:
        return f"LEFT JOIN declared{index} ON {report} = {value}"
    # A text that is no value is null after its conversion, but it is not a missing report.
    original = f"source.report{index}" if file.table.format is TableFormat.CSV else report
    return (
        f"LEFT JOIN declared{index} ON {report} IS NOT DISTINCT FROM {value} "
        f"AND ({original} IS NULL) = ({value} IS NULL)"
    )


def _make_id_sql(file: ReleasedFile) -> str:
    """Return SQL for the id as a value. In CSV it is converted from text."""
    id_type = next(iter(file.description.columns.values())).id_type
    if id_type in _CASTS_FROM_TEXT and file.table.format is TableFormat.CSV:
        return _CASTS_FROM_TEXT[id_type].format("source.id")
    return "source.id"


def get_comparable_type(arrow_type: Any) -> Any:
    """Return a type without a dictionary and with one spelling of text and bytes."""
    arrow_type = arrow_type.value_type if pa.types.is_dictionary(arrow_type) else arrow_type
    if pa.types.is_large_string(arrow_type) or pa.types.is_string_view(arrow_type):
        return pa.string()
    tests = pa.types.is_large_binary, pa.types.is_fixed_size_binary, pa.types.is_binary_view
    if any(is_kind(arrow_type) for is_kind in tests):
        return pa.binary()
    return arrow_type


def _convert_to_comparable(column: Any) -> Any:
    return column.cast(get_comparable_type(column.type))


@contextmanager
def _open_counting_database(files: Sequence[ReleasedFile]) -> Iterator[Any]:
    """Open DuckDB, and reject repeated ids in a folder, or in a single file with a given description.

    Several files are checked while they are counted.
    """
    with (
        open_database(MEMORY_LIMIT, preserve_insertion_order=False) as connection,
        replace_duckdb_errors(partial(_make_counting_error, files)),
    ):
        if len(files) == 1 and (files[0].has_given_description or len(files[0].parts) > 1):
            _require_unique_ids(connection, files[0])
        yield connection


def _require_unique_ids(connection: Any, file: ReleasedFile) -> None:
    columns = {"id": file.description.id_column}
    source = make_relation_sql(connection, "ids", file.table, columns, _convert_to_comparable)
    ids = f"SELECT {_make_id_sql(file)} AS id, count(*) AS times FROM {source} AS source GROUP BY ALL"  # noqa: S608
    repeated = "coalesce(max(times), 0) > 1 OR count(id) < count(*)"
    ((is_repeated,),) = connection.execute(f"SELECT {repeated} FROM ({ids})").fetchall()  # noqa: S608
    if is_repeated:
        raise EstimationError(
            "An id occurs twice in {path!r}, or is missing. Each individual counts once.",
            hint="Remove duplicate rows and rows without an id.",
            path=str(file.path),
        )


def _make_counting_error(files: Sequence[ReleasedFile], is_disk_full: bool) -> TableFileError:
    if is_disk_full:
        return TableFileError(
            "Counting needs more memory or disk space than is available. The memory limit is {memory}.",
            hint="Free some disk space (TMPDIR names the folder of temporary files), or pass fewer files.",
            memory=MEMORY_LIMIT,
        )
    return TableFileError(
        "{named} is damaged or incomplete, or its ids or reports have another type than its metadata states.",
        hint="Pass the file as it was released.",
        named=files[0].label if len(files) == 1 else "One of the files",
    )
