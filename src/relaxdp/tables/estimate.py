"""Estimates from what was released: files, data frames of every library, and `Release` objects."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import ExitStack
from typing import Any

from relaxdp.errors import CountsError, refusing
from relaxdp.estimation.counts import Method
from relaxdp.estimation.groups import Groups
from relaxdp.law.epsilon import Epsilon
from relaxdp.mechanisms import Mechanism
from relaxdp.remedies import IN_PYTHON
from relaxdp.tables.columns import check_name
from relaxdp.tables.counting import PairTally, Tally, count_pairs
from relaxdp.tables.counting import count as count_files
from relaxdp.tables.files import fetch_file
from relaxdp.tables.frame_estimate import estimate_frames, told
from relaxdp.tables.frame_metadata import description_of
from relaxdp.tables.frames import as_text, by_text
from relaxdp.tables.metadata import FileDescription

FileName = str | os.PathLike[str]


@refusing("", IN_PYTHON)
def estimate(
    source: Any,
    column: str | int | None = None,
    *,
    by: str | int | None = None,
    cross: str | int | None = None,
    method: Method = "average",
    description: Any = None,
    mechanism: Mechanism | None = None,
    epsilon: Epsilon | None = None,
) -> Any:
    """Estimate shares or a mean from released data, with confidence intervals.

    Args:
        source: a `Release`, a released file or data frame, or a list of them that holds one release at several levels.
            Each individual counts once, at its highest level.
        column: the released column, where there are several.
        by: a pass-through column, for an estimate of each of its groups.
        cross: a second released column, for a crosstab.
        method: "average" or "precision", see `Counts.estimate`. They differ where individuals have different levels.
        description: the data as it was released; for a list, a list. Pass it for data that has lost its description,
            or whose rows were chosen without looking at reports. Data that describes itself cannot be overruled.
        mechanism: the mechanism of a data frame without a description, together with `epsilon`.
        epsilon: the level of that data frame.

    Returns:
        An estimate with `.value`, `.std_error`, `.interval(0.95)`, `.to_frame()` and `.plot()`; with `by`, a dictionary
        of them.

    Example:
        >>> import pyarrow as pa, relaxdp as rx
        >>> reports = pa.table({"person": range(1000), "smokes": ["no"] * 700 + ["yes"] * 300})
        >>> found = estimate(reports, "smokes", mechanism=rx.Categorical(["no", "yes"]), epsilon=2)
        >>> found.value.round(3).tolist(), [ends.round(3).tolist() for ends in found.interval(0.95)]
        ([0.763, 0.237], [[0.736, 0.21], [0.79, 0.264]])
    """
    tables = [_unwrap(each) for each in (source if isinstance(source, list | tuple) else [source])]
    texts = {id(table): _name_by_text(table) for table in tables}  # a frame that is named twice stays one
    numbers, tables = any(found for _, found in texts.values()), [texts[id(table)][0] for table in tables]
    wanted: list[Any] = [as_text(name) if numbers else name for name in (column, by, cross)]
    for name in wanted:
        if name is not None:
            check_name(name)
    which, group, second = wanted
    description = [_unwrap(each) for each in description] if isinstance(description, list) else _unwrap(description)
    if tables and all(map(_is_file, tables)):
        if mechanism is not None or epsilon is not None:
            raise CountsError(
                "`mechanism` and `epsilon` are only valid for data frames.",
                hint="Pass description= with a file that describes itself.",
            )
        counted: Any = count(tables, which, by=group, cross=second, description=description)
        if second is not None:
            return counted.estimate(method)
        found = {name: counts.estimate(method) for name, counts in counted.groups}
        return Groups(group, found) if group is not None else found[None]
    said = told(len(tables), which, description, mechanism, epsilon)
    if tables and all(map(_is_spark, tables)):
        from relaxdp.tables.spark_estimate import estimate_spark  # noqa: PLC0415 (Spark may be missing)

        if second is not None:
            raise CountsError(
                "A crosstab of Spark DataFrames is not supported.", hint="Write them to Parquet, and pass the path."
            )
        return estimate_spark(tables, said, column=which, by=group, method=method)
    return estimate_frames(tables, said, column=which, by=group, cross=second, method=method)


@refusing("", IN_PYTHON)
def count(
    files: FileName | Sequence[FileName],
    column: str | None = None,
    *,
    by: str | None = None,
    cross: str | None = None,
    description: FileName | Sequence[FileName] | None = (),
) -> Tally | PairTally:
    """Count released files, by group and level: everything is estimated from these counts.

    Counts of disjoint individuals may be merged, so that parts of a release can be counted where they are.

    Args:
        files: a released file, or several.
        column: the released column, where there are several.
        by: a pass-through column, for the counts of each group.
        cross: a second released column, for a crosstab.
        description: the file as it was released, for files without a description or with chosen rows.
    """
    if by is not None and cross is not None:
        raise CountsError("`by` and `cross` cannot be combined.", hint="Pass one of them.", option="by")
    with ExitStack() as stack:
        paths, told = (
            [stack.enter_context(fetch_file(each)) for each in _listed(some)] for some in (files, description)
        )
        if cross is not None:
            return count_pairs(paths, column=column, cross=cross, told=told)
        return count_files(paths, column=column, by=by, told=told)


@refusing("", IN_PYTHON)
def description(source: Any) -> FileDescription:
    """Return what released data states about itself: values, levels, release and key.

    Args:
        source: a `Release`, a released file or a data frame.
    """
    return description_of(_unwrap(source))


def _unwrap(source: Any) -> Any:
    """Return the file or frame of a `Release`."""
    from relaxdp.tables.released import Release  # noqa: PLC0415 (only what releases something needs it)

    if not isinstance(source, Release):
        return source
    return source.output if source.output is not None else source.to_frame()


def _listed(files: FileName | Sequence[FileName] | None) -> list[Any]:
    return [files] if _is_file(files) else list(files or ())  # type: ignore[arg-type]


def _is_file(source: Any) -> bool:
    return isinstance(source, str | os.PathLike)


def _is_spark(frame: Any) -> bool:
    return type(frame).__module__.startswith("pyspark.sql")


def _name_by_text(source: Any) -> tuple[Any, dict[str, int]]:
    return (source, {}) if _is_file(source) or _is_spark(source) else by_text(source)
