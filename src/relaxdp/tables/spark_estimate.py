"""Estimate from released Spark data frames: workers count, and only counts come to the driver."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyspark.sql import functions
from pyspark.sql.pandas.types import from_arrow_schema

from relaxdp.errors import ColumnError, EstimationError, MetadataError
from relaxdp.estimation.counts import Counts, Method
from relaxdp.estimation.result import GroupedResults, Result
from relaxdp.mechanisms.base import Mechanism
from relaxdp.tables.counting import MAX_GROUPS, count_reports, make_too_many_groups_error, split_by
from relaxdp.tables.metadata import FileDescription, read_spark_description, require_same_description
from relaxdp.tables.released_files import CountedColumn, make_changed_rows_error, make_counted_column
from relaxdp.tables.spark_release import quote_spark_name, replace_spark_errors
from relaxdp.tables.table_columns import ColumnNames

# A row for each group and level of a partition: the number of reports, how many support each value, or an error.
_COUNT_SCHEMA = pa.schema(
    [("kept", pa.string()), ("level", pa.int32()), ("objects", pa.int64()), ("counts", pa.list_(pa.int64())),
     ("refusal", pa.string())]
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class ReleasedSparkFrame:
    """A released Spark frame with its description."""

    path: Path
    frame: Any
    description: FileDescription

    def find_released_column(self, column_name: str | None) -> str:
        """Return the released column with this name, or the only one where no name is given."""
        names = [each for each in self.description.columns if each in self.frame.columns]
        if column_name is None and len(names) == 1:
            return names[0]
        if column_name is None:
            raise ColumnError(
                "{path} has {columns} released columns, and `column` is not given.",
                hint="Pass column= (--column NAME).",
                path=self.path,
                columns=len(names),
            )
        found = self.description.find_column(column_name)
        if found not in names:
            hint = ColumnNames.from_frame(self.frame.columns).format_hint(column_name, names)
            raise ColumnError(
                "{path} has no released column {column!r}.",
                hint="{suggestion}",
                suggestion=hint.strip(),
                path=self.path,
                column=column_name,
            )
        return str(found)


def estimate_spark(
    frames: Sequence[Any],
    descriptions: Sequence[FileDescription | None],
    *,
    column: str | None,
    by: str | None,
    method: Method,
) -> Result | GroupedResults:
    """Estimate from Spark frames of one release: each individual counts once, at its highest level."""
    names = ["the frame"] if len(frames) == 1 else [f"frame {number}" for number in range(1, len(frames) + 1)]
    files = [_open_spark_frame(*each) for each in zip(names, frames, descriptions, strict=True)]
    counted_column = make_counted_column(files, [file.find_released_column(column) for file in files])
    count_partition = _make_partition_counter(counted_column.mechanism, counted_column.name)
    # As with other frames: after a join, rows with a given description may occur twice.
    ids = len(files) > 1 or (descriptions[0] is not None and files[0].description.id_column in files[0].frame.columns)
    with replace_spark_errors():
        rows = (
            _keep_highest_level(_select_reports(files, counted_column, by, ids=True))
            if ids
            else _select_reports(files, counted_column, by, ids=False)
        )
        found = rows.mapInArrow(count_partition, from_arrow_schema(_COUNT_SCHEMA)).collect()
    groups: dict[str | None, Counts] = {}
    levels = list(counted_column.levels.values())
    for kept, level, objects, counts, refusal in sorted(found, key=lambda row: (row[0] is None, row[0] or "")):
        if refusal is not None:
            raise EstimationError(
                "{refusal}", hint="Pass the data frames as they were released, without duplicate rows.", refusal=refusal
            )
        group = groups.setdefault(kept, Counts(counted_column.mechanism))
        group.add_counts(np.array(counts), epsilon=levels[level], n=objects)
    _require_unchanged_rows(files, sum(group.n for group in groups.values()))
    if len(groups) > MAX_GROUPS:
        raise make_too_many_groups_error(by)
    estimates = {group: counts.estimate(method) for group, counts in groups.items()}
    return GroupedResults(by, estimates) if by is not None else estimates[None]


def _open_spark_frame(name: str, frame: Any, given: FileDescription | None) -> ReleasedSparkFrame:
    own = read_spark_description(frame)
    description = given or own
    if description is None:
        raise MetadataError(
            "{name} has no description of its reports.",
            hint="Pass description= with the data as it was released, or mechanism= and epsilon=.",
            name=name,
        )
    columns = {each: column for each, column in description.columns.items() if each in frame.columns}
    require_same_description(replace(description, columns=columns), own, name)
    return ReleasedSparkFrame(Path(name), frame, description)


def _select_reports(files: Sequence[ReleasedSparkFrame], column: CountedColumn, by: str | None, *, ids: bool) -> Any:
    """Return id (or 0), level, report and group of all rows."""
    places = {threshold: place for place, threshold in enumerate(column.levels)}
    parts = []
    for file, name in zip(files, column.names, strict=True):
        for needed in (by, file.description.id_column if ids else None):
            if needed is not None and (needed not in file.frame.columns or needed in file.description.columns):
                raise ColumnError(
                    "{file} has no column {column!r}.",
                    hint="Release it with passthrough=, and pass the data frame as it was released.",
                    file=file.path,
                    column=needed,
                )
        level = places[file.description.columns[str(name)].threshold]
        id_value = functions.col(quote_spark_name(file.description.id_column)) if ids else functions.lit(0)
        kept = functions.lit(None) if by is None else functions.col(quote_spark_name(by))
        parts.append(
            file.frame.select(
                id_value.alias("id"),
                functions.lit(level).alias("level"),
                functions.col(quote_spark_name(str(name))).alias("report"),
                kept.cast("string").alias("kept"),
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


def _require_unchanged_rows(files: Sequence[ReleasedSparkFrame], objects: int) -> None:
    """Reject frames that lost or gained rows: metadata outlives a filter, and a filter by reports biases estimates."""
    released = files[0].description.rows
    if not objects:
        raise EstimationError(
            "The data frame has no rows, so there is nothing to estimate.",
            hint="Pass the data frame as it was released.",
        )
    if len(files) == 1 and released is not None and released != objects:
        raise make_changed_rows_error("the frame", released, objects)


def _make_partition_counter(mechanism: Mechanism, name: str) -> Any:
    return lambda batches: _count_partition(mechanism, name, batches)


def _count_partition(mechanism: Mechanism, name: str, batches: Iterator[Any]) -> Iterator[Any]:
    """Count the reports of one partition by group and level."""
    found: dict[tuple[str | None, int], tuple[int, NDArray[np.int64]]] = {}
    refusal = None
    for batch in batches:
        for (kept, level), rows in split_by(batch, ["kept", "level"]):
            if level < 0:
                refusal = (
                    "An id is missing, or occurs in more than one row of the same level. Each individual counts once."
                )
                continue
            try:
                counts, objects = count_reports(mechanism, rows["report"].combine_chunks(), name)
            except EstimationError as problem:
                refusal = problem.sentence
                continue
            before = found.get((kept, level), (0, np.zeros(len(counts), np.int64)))
            found[kept, level] = (before[0] + objects, before[1] + counts)
    rows = [
        {"kept": kept, "level": level, "objects": objects, "counts": counts.tolist(), "refusal": None}
        for (kept, level), (objects, counts) in found.items()
    ]
    if refusal is not None:
        rows = [{"kept": None, "level": 0, "objects": 0, "counts": [], "refusal": refusal}]
    yield pa.RecordBatch.from_pylist(rows, schema=_COUNT_SCHEMA)
