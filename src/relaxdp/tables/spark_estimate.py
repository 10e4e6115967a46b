"""Estimates from Spark data frames that were released: workers count, and only counts come to the driver."""

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
from relaxdp.tables.counting import count_reports, split
from relaxdp.tables.metadata import METADATA_KEY, FileDescription, merge_column_descriptions, require_same_description
from relaxdp.tables.released_files import CountedColumn, make_changed_rows_error, make_counted_column
from relaxdp.tables.spark_release import quote_spark_name, replace_spark_errors
from relaxdp.tables.table_columns import ColumnNames

MOST_GROUPS = 1_000
# What a worker says of one group at one level: how many objects, how many support each value, and why not.
_COUNTED = pa.schema(
    [("kept", pa.string()), ("level", pa.int32()), ("objects", pa.int64()), ("counts", pa.list_(pa.int64())),
     ("refusal", pa.string())]
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class SparkReleased:
    """A released Spark frame and what it says about itself, in the place of a file."""

    path: Path
    frame: Any
    description: FileDescription

    def name(self, wanted: str | None) -> str:
        """Return the released column that is meant."""
        names = [each for each in self.description.columns if each in self.frame.columns]
        if wanted is None and len(names) == 1:
            return names[0]
        if wanted is None:
            raise ColumnError(
                "{path} has {columns} released columns.",
                hint="Pass column= (--column NAME).",
                path=self.path,
                columns=len(names),
            )
        found = self.description.find_column(wanted)
        if found not in names:
            hint = ColumnNames.from_frame(self.frame.columns).format_hint(wanted, names)
            raise ColumnError(
                "{path} has no released column {column!r}.",
                hint="{suggestion}",
                suggestion=hint.strip(),
                path=self.path,
                column=wanted,
            )
        return str(found)


def read_spark_metadata(frame: Any) -> FileDescription | None:
    """Return what the columns of a Spark frame say about themselves."""
    texts = {field.name: field.metadata.get(METADATA_KEY.decode()) for field in frame.schema.fields}
    parts = {name: FileDescription.loads(text) for name, text in texts.items() if text}
    return merge_column_descriptions(parts) if parts else None


def estimate_spark(
    frames: Sequence[Any], said: Sequence[FileDescription | None], *, column: str | None, by: str | None, method: Method
) -> Result | GroupedResults:
    """Return the estimate from Spark frames of one path: each object counts once, at its highest level."""
    names = ["the frame"] if len(frames) == 1 else [f"frame {number}" for number in range(1, len(frames) + 1)]
    files = [_opened(name, frame, told) for name, frame, told in zip(names, frames, said, strict=True)]
    axis = make_counted_column(files, [file.name(column) for file in files])
    work = _counting(axis.mechanism, axis.name)
    # As with other frames: what a person describes may have been joined since, so that rows stand there twice.
    ids = len(files) > 1 or (said[0] is not None and files[0].description.id_column in files[0].frame.columns)
    with replace_spark_errors():
        rows = _highest(_reports(files, axis, by, ids=True)) if ids else _reports(files, axis, by, ids=False)
        found = rows.mapInArrow(work, from_arrow_schema(_COUNTED)).collect()
    groups: dict[str | None, Counts] = {}
    levels = list(axis.levels.values())
    for kept, level, objects, counts, refusal in sorted(found, key=lambda row: (row[0] is None, row[0] or "")):
        if refusal is not None:
            raise EstimationError("{refusal}", refusal=refusal)
        group = groups.setdefault(kept, Counts(axis.mechanism))
        group.add_counts(np.array(counts), epsilon=levels[level], n=objects)
    _check_rows(files, sum(group.n for group in groups.values()))
    if len(groups) > MOST_GROUPS:
        raise EstimationError(
            "The column {by!r} has more than {most:,} groups.",
            hint="Group by a column with fewer values.",
            by=by,
            most=MOST_GROUPS,
        )
    estimates = {group: counts.estimate(method) for group, counts in groups.items()}
    return GroupedResults(by, estimates) if by is not None else estimates[None]


def _opened(name: str, frame: Any, told: FileDescription | None) -> SparkReleased:
    own = read_spark_metadata(frame)
    said = told or own
    if said is None:
        raise MetadataError(
            "{name} does not say what it holds.",
            hint="Pass description=, the data as it was released, or mechanism= and epsilon=.",
            name=name,
        )
    columns = {each: column for each, column in said.columns.items() if each in frame.columns}
    require_same_description(replace(said, columns=columns), own, name)
    return SparkReleased(Path(name), frame, said)


def _reports(files: Sequence[SparkReleased], axis: CountedColumn, by: str | None, *, ids: bool) -> Any:
    """Return id (where ids are looked at), level, report and group of all rows."""
    places = {threshold: place for place, threshold in enumerate(axis.levels)}
    parts = []
    for file, name in zip(files, axis.names, strict=True):
        for needed in (by, file.description.id_column if ids else None):
            if needed is not None and (needed not in file.frame.columns or needed in file.description.columns):
                raise ColumnError(
                    "{file} has no column {column!r}.",
                    hint="Release it with passthrough=, and pass the data frame as it was released.",
                    file=file.path,
                    column=needed,
                )
        level = places[file.description.columns[str(name)].threshold]
        who = functions.col(quote_spark_name(file.description.id_column)) if ids else functions.lit(0)
        kept = functions.lit(None) if by is None else functions.col(quote_spark_name(by))
        parts.append(
            file.frame.select(
                who.alias("id"),
                functions.lit(level).alias("level"),
                functions.col(quote_spark_name(str(name))).alias("report"),
                kept.cast("string").alias("kept"),
            )
        )
    return reduce(lambda one, two: one.unionByName(two), parts)


def _highest(rows: Any) -> Any:
    """Return every object once; an id that stands twice at one level, or is missing, becomes a level that is none."""
    repeated = functions.col("id").isNull() | (functions.count("level") != functions.count_distinct("level"))
    best = functions.max_by(functions.struct("level", "report", "kept"), "level").alias("best")
    found = rows.groupBy("id").agg(best, repeated.alias("repeated"))
    level = functions.when(functions.col("repeated"), -1).otherwise(functions.col("best.level")).alias("level")
    return found.select("id", level, "best.report", "best.kept")


def _check_rows(files: Sequence[SparkReleased], objects: int) -> None:
    """Refuse frames that lost or gained rows: metadata outlives a filter, and a filter by reports biases them."""
    released = files[0].description.rows
    if not objects:
        raise EstimationError(
            "The data frame has no rows, so there is nothing to estimate.",
            hint="Pass the data frame as it was released.",
        )
    if len(files) == 1 and released is not None and released != objects:
        raise make_changed_rows_error("the frame", released, objects)


def _counting(mechanism: Mechanism, name: str) -> Any:
    return lambda batches: _count(mechanism, name, batches)


def _count(mechanism: Mechanism, name: str, batches: Iterator[Any]) -> Iterator[Any]:
    """Count the reports of one partition by group and level."""
    found: dict[tuple[str | None, int], tuple[int, NDArray[np.int64]]] = {}
    refusal = None
    for batch in batches:
        for kept, level, reports in split(batch):
            if level < 0:
                refusal = "an id stands twice at one level, or is missing: one id is one object, and counts once."
                continue
            try:
                counts, objects = count_reports(mechanism, reports, name)
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
    yield pa.RecordBatch.from_pylist(rows, schema=_COUNTED)
