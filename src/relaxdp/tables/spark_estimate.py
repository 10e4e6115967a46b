"""Count reports of released Spark data frames: workers count, and only counts come to the driver."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import reduce
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import functions
from pyspark.sql.pandas.types import from_arrow_schema

from relaxdp.errors import EstimationError
from relaxdp.estimation.counts import Counts
from relaxdp.mechanisms.base import Mechanism
from relaxdp.mechanisms.report_arrays import count_report_column
from relaxdp.tables.counting import (
    ColumnCounts,
    iterate_groups,
    make_changed_report_error,
    make_no_rows_error,
    sort_groups,
)
from relaxdp.tables.metadata import FileDescription
from relaxdp.tables.released_files import (
    CountedColumn,
    InMemoryTable,
    ReleasedFile,
    describe_frame,
    label_frames,
    make_changed_rows_error,
    make_counted_column,
)
from relaxdp.tables.spark_release import quote_spark_name, replace_spark_errors
from relaxdp.tables.table_columns import ColumnNames

# A row for each group and level of a partition: how many reports there are, and how many support each value. `counts`
# is null for reports that the mechanism cannot have drawn, and for ids that are missing or repeated (level -1).
_COUNT_SCHEMA = pa.schema(
    [("kept", pa.string()), ("level", pa.int32()), ("n", pa.int64()), ("counts", pa.list_(pa.int64()))]
)


def count_spark_column(
    frames: Sequence[Any], descriptions: Sequence[FileDescription | None], *, column: str | None, by: str | None
) -> ColumnCounts:
    """Count a column of Spark frames of one release: each individual counts once, at its highest level."""
    files = [
        _describe_spark_frame(*each, needs_ids=len(frames) > 1)
        for each in zip(label_frames(len(frames)), frames, descriptions, strict=True)
    ]
    counted = make_counted_column(files, [file.find_released_column(column) for file in files])
    if by is not None:
        for file in files:
            file.require_passthrough_column(by)
    # As with other frames: after a join, rows with a given description may occur twice.
    has_ids = len(files) > 1 or files[0].has_given_description
    with replace_spark_errors():
        rows = _select_reports(frames, files, counted, by, has_ids=has_ids)
        rows = _keep_highest_level(rows) if has_ids else rows
        mechanism, schema = counted.mechanism, from_arrow_schema(_COUNT_SCHEMA)
        found = rows.mapInArrow(lambda batches: _count_partition(mechanism, batches), schema).collect()
    if any(level < 0 for _, level, _, _ in found):
        raise EstimationError(
            "An id is missing, or occurs in more than one row of the same level. Each individual counts once.",
            hint="Remove duplicate rows and rows without an id.",
        )
    if any(counts is None for _, _, _, counts in found):
        raise make_changed_report_error(counted.name)
    groups = {name: Counts(counted.mechanism) for name in sort_groups(list({kept for kept, *_ in found}), by)}
    for kept, level, n, counts in found:
        groups[kept].add_counts(counts, epsilon=counted.levels[level].epsilon, n=n)
    total, released = sum(group.n for group in groups.values()), files[0].description.rows
    if not total:
        raise make_no_rows_error(files)
    # Metadata outlives a filter, and a filter by reports biases estimates.
    if len(files) == 1 and released is not None and released != total:
        raise make_changed_rows_error(files[0].label, released, total)
    return ColumnCounts(counted, list(groups.items()))


def _describe_spark_frame(label: str, frame: Any, given: FileDescription | None, *, needs_ids: bool) -> ReleasedFile:
    description = describe_frame(label, frame, frame.columns, given, needs_ids=needs_ids)
    if any(each.level_column is not None for each in description.columns.values()):
        raise EstimationError(
            "{name} has rows at different levels, which Spark DataFrames do not support.",
            hint="Pass the released Parquet file, such as rx.estimate('patients.parquet').",
            name=label,
        )
    has_given = given is not None and description.id_column in frame.columns
    table = InMemoryTable(label, ColumnNames.from_frame(frame.columns), pa.table({}))
    return ReleasedFile(Path(label), table, description, has_given_description=has_given)


def _select_reports(
    frames: Sequence[Any], files: Sequence[ReleasedFile], column: CountedColumn, by: str | None, *, has_ids: bool
) -> Any:
    """Return id (or 0), level, report and group of all rows."""
    thresholds = [level.threshold for level in column.levels]
    parts = []
    for frame, file, name in zip(frames, files, map(str, column.names), strict=True):
        id_column, threshold = file.description.id_column, file.description.columns[name].threshold
        parts.append(
            frame.select(
                (functions.col(quote_spark_name(id_column)) if has_ids else functions.lit(0)).alias("id"),
                functions.lit(thresholds.index(threshold)).alias("level"),
                functions.col(quote_spark_name(name)).alias("report"),
                (functions.lit(None) if by is None else functions.col(quote_spark_name(by)))
                .cast("string")
                .alias("kept"),
            )
        )
    return reduce(lambda one, two: one.unionByName(two), parts)


def _keep_highest_level(rows: Any) -> Any:
    """Keep the highest level of each id. An id that is missing, or occurs twice at one level, gets the level -1."""
    repeated = functions.col("id").isNull() | (functions.count("level") != functions.count_distinct("level"))
    best = functions.max_by(functions.struct("level", "report", "kept"), "level").alias("best")
    found = rows.groupBy("id").agg(best, repeated.alias("repeated"))
    level = functions.when(functions.col("repeated"), -1).otherwise(functions.col("best.level")).alias("level")
    return found.select("id", level, "best.report", "best.kept")


def _count_partition(mechanism: Mechanism, batches: Iterator[Any]) -> Iterator[Any]:
    """Count the reports of one partition by group and level."""
    found: dict[tuple[str | None, int], Any] = {}
    rejected = []
    for batch in batches:
        for (kept, level), rows in iterate_groups(pa.Table.from_batches([batch]), ["kept", "level"]):
            counts = None
            if level >= 0:
                with suppress(EstimationError):
                    counts, n = count_report_column(mechanism, rows["report"].combine_chunks())
            if counts is None:
                rejected = [{"kept": None, "level": level, "n": 0, "counts": None}]
            else:
                before = found.get((kept, level), (0, 0))
                found[kept, level] = before[0] + n, before[1] + counts
    rows = [
        {"kept": kept, "level": level, "n": n, "counts": counts.tolist()}
        for (kept, level), (n, counts) in found.items()
    ]
    yield pa.RecordBatch.from_pylist(rejected or rows, schema=_COUNT_SCHEMA)
