"""Estimates from what was released: files, data frames of every library, and `Release` objects."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import ExitStack
from typing import Any, overload

from relaxdp.errors import EstimationError, MetadataError, on_error
from relaxdp.estimation.counts import Method, check_mechanism
from relaxdp.estimation.result import GroupedResults, Result, get_frame_library
from relaxdp.mechanisms.base import Mechanism
from relaxdp.sampling.keyed_stream import PathId
from relaxdp.tables.counting import ColumnCounts, CrosstabCounts, count_open_crosstab, count_open_files, count_pairs
from relaxdp.tables.counting import count as count_files
from relaxdp.tables.data_frames import convert_name_to_text, rename_columns_to_text
from relaxdp.tables.files import fetch_file
from relaxdp.tables.metadata import (
    ColumnDescription,
    FileDescription,
    require_description,
    require_description_without_rows,
)
from relaxdp.tables.released_files import open_frames
from relaxdp.tables.table_columns import check_name
from relaxdp.theory.epsilon import Epsilon

FileName = str | os.PathLike[str]


@overload
def estimate(
    source: Any,
    column: str | int | None = None,
    *,
    by: None = None,
    crosstab: str | int | None = None,
    method: Method = "average",
    description: Any = None,
    mechanism: Mechanism | None = None,
    epsilon: Epsilon | None = None,
) -> Result: ...
@overload
def estimate(
    source: Any, column: str | int | None = None, *, by: str | int, method: Method = "average", description: Any = None
) -> GroupedResults: ...
@on_error("")
def estimate(
    source: Any,
    column: str | int | None = None,
    *,
    by: str | int | None = None,
    crosstab: str | int | None = None,
    method: Method = "average",
    description: Any = None,
    mechanism: Mechanism | None = None,
    epsilon: Epsilon | None = None,
) -> Result | GroupedResults:
    """Estimate shares or a mean from released data, with confidence intervals.

    Args:
        source: A `Release`, a released file or data frame, or a list of them that holds one release at several levels.
            Each individual counts once, at its highest level.
        column: The released column, where there are several.
        by: A pass-through column, for an estimate of each of its groups.
        crosstab: A second released column, for a crosstab.
        method: "average" or "precision", see `Counts.estimate`. They differ where individuals have different levels.
        description: The data as it was released; for a list, a list. Pass it for data that has lost its description,
            or whose rows were chosen without looking at reports. Data that describes itself cannot be overruled.
        mechanism: The mechanism of a data frame without a description, together with `epsilon`.
        epsilon: The level of that data frame.

    Returns:
        A result: `result["flu"]` is one value, and `.value`, `.std_error`, `.interval(0.95)`, `.n`, `.to_frame()` and
        `.plot()` are of all. `to_frame()` returns the library of `source`. With `by`, a dictionary of results.

    Raises:
        MetadataError: The data does not state what it holds, or has other rows than were released.
        ColumnError: The data has no such column, or several and none was named.
        EstimationError: The arguments exclude each other, or there is nothing to estimate from.

    Example:
        >>> import pyarrow as pa, relaxdp as rx
        >>> reports = pa.table({"person": range(1000), "smokes": ["no"] * 700 + ["yes"] * 300})
        >>> found = estimate(reports, "smokes", mechanism=rx.Categorical(["no", "yes"]), epsilon=2)
        >>> print(found)
        value  estimate  95 % confidence interval
        no       0.7626  [0.7358, 0.7899]
        yes      0.2374  [0.2101, 0.2642]
        n = 1,000, epsilon = 2. Intervals are about these individuals.
        >>> round(float(found["yes"]), 3), found.n, found.epsilon
        (0.237, 1000, Decimal('2'))
    """
    sources = list(source) if isinstance(source, list | tuple) else [source]
    if not sources:
        raise EstimationError("The list of data is empty.", hint="Pass a Release, a released file or a data frame.")
    if by is not None and crosstab is not None:
        raise EstimationError("`by` and `crosstab` cannot be combined.", hint="Pass one of them.", option="by")
    found = _estimate(sources, column, by, crosstab, method, description, mechanism, epsilon)
    library = getattr(sources[0], "library", None)  # of a `Release`
    for result in found.values() if isinstance(found, GroupedResults) else [found]:
        result.set_library(library if library in ("pandas", "polars") else get_frame_library(sources[0]))
    return found


def _estimate(
    sources: list[Any],
    column: Any,
    by: Any,
    crosstab: Any,
    method: Method,
    description: Any,
    mechanism: Any,
    epsilon: Any,
) -> Result | GroupedResults:
    tables = [_unwrap(each) for each in sources]
    texts = {id(table): _name_by_text(table) for table in tables}  # a frame that is named twice stays one
    numbers, tables = any(found for _, found in texts.values()), [texts[id(table)][0] for table in tables]
    wanted: list[Any] = [convert_name_to_text(name) if numbers else name for name in (column, by, crosstab)]
    for name in wanted:
        if name is not None:
            check_name(name)
    which, group, second = wanted
    description = [_unwrap(each) for each in description] if isinstance(description, list) else _unwrap(description)
    if all(map(_is_file, tables)):
        if mechanism is not None or epsilon is not None:
            raise EstimationError(
                "`mechanism` and `epsilon` are only valid for data frames.",
                hint="Pass description= with a file that describes itself.",
            )
        counted: Any = count(tables, which, by=group, crosstab=second, description=description)
        if second is not None:
            return counted.estimate(method)  # type: ignore[no-any-return]
        found = {name: counts.estimate(method) for name, counts in counted.groups}
        return GroupedResults(group, found) if group is not None else found[None]
    said = told(len(tables), which, description, mechanism, epsilon)
    if all(map(_is_spark, tables)):
        from relaxdp.tables.spark_estimate import estimate_spark  # noqa: PLC0415 (Spark may be missing)

        if second is not None:
            raise EstimationError(
                "A crosstab of Spark DataFrames is not supported.", hint="Write them to Parquet, and pass the path."
            )
        return estimate_spark(tables, said, column=which, by=group, method=method)
    return estimate_frames(tables, said, column=which, by=group, crosstab=second, method=method)


def told(
    frames: int, column: str | None, description: Any, mechanism: Mechanism | None, epsilon: Epsilon | None
) -> list[FileDescription | None]:
    """Return what a person says about each frame, None where the frame says it itself."""
    if mechanism is None and epsilon is None:
        given = list(description) if isinstance(description, list | tuple) else [description] * frames
        if len(given) != frames or (frames > 1 and description is not None and given[0] is description):
            raise MetadataError(
                "Several data frames need a description each.",
                hint="Pass a list: description=[first_release, second_release].",
            )
        return [None if each is None else require_description_without_rows(each) for each in given]
    if mechanism is None or epsilon is None or column is None or description is not None or frames > 1:
        raise MetadataError(
            "`mechanism` and `epsilon` describe one column of one data frame.",
            hint="Pass all three: rx.estimate(frame, 'diagnosis', mechanism=rx.Categorical([...]), epsilon=1).",
        )
    check_mechanism(mechanism)
    level = mechanism.level(epsilon)
    return [FileDescription("", {column: ColumnDescription.from_level(mechanism, level, path=PathId("", column))})]


def estimate_frames(
    natives: Sequence[Any],
    said: Sequence[FileDescription | None],
    *,
    column: str | None,
    by: str | None,
    crosstab: str | None,
    method: Method,
) -> Result | GroupedResults:
    """Return the estimate from frames, of which `said` is what a person said about them instead of themselves."""
    wanted = [name for name in (column, by, crosstab) if name is not None]
    files = open_frames(natives, said, wanted)
    if crosstab is not None:
        return count_open_crosstab(files, column=column, crosstab=crosstab).estimate(method)
    groups = count_open_files(files, column=column, by=by).groups
    found = {group: counts.estimate(method) for group, counts in groups}
    return GroupedResults(by, found) if by is not None else found[None]


def count(
    files: FileName | Sequence[FileName],
    column: str | None = None,
    *,
    by: str | None = None,
    crosstab: str | None = None,
    description: FileName | Sequence[FileName] | None = (),
) -> ColumnCounts | CrosstabCounts:
    """Count released files, by group and level: everything is estimated from these counts.

    Counts of disjoint individuals may be merged, so that parts of a release can be counted where they are.

    Args:
        files: A released file or a `Release` that wrote one, or several.
        column: The released column, where there are several.
        by: A pass-through column, for the counts of each group.
        crosstab: A second released column, for a crosstab.
        description: The file as it was released, for files without a description or with chosen rows.

    Returns:
        The counts. `groups` has a `Counts` for each group, and a crosstab has `tables`.

    Raises:
        EstimationError: `files` are not files.
        TableFileError: A file is missing or cannot be read.
    """
    if by is not None and crosstab is not None:
        raise EstimationError("`by` and `crosstab` cannot be combined.", hint="Pass one of them.", option="by")
    with ExitStack() as stack:
        paths, told = (
            [stack.enter_context(fetch_file(each)) for each in _list_files(some)] for some in (files, description)
        )
        if crosstab is not None:
            return count_pairs(paths, column=column, crosstab=crosstab, told=told)
        return count_files(paths, column=column, by=by, told=told)


def description(source: Any) -> FileDescription:
    """Return what released data states about itself: values, levels, release and key.

    Args:
        source: A `Release`, a released file or a data frame.

    Returns:
        The description. Pass it to `estimate` as `description` for rows that were chosen without looking at reports.

    Raises:
        MetadataError: The data has no description.
    """
    return require_description(_unwrap(source))


def _unwrap(source: Any) -> Any:
    """Return the file or frame of a `Release`."""
    from relaxdp.tables.release_result import Release  # noqa: PLC0415 (only what releases something needs it)

    if not isinstance(source, Release):
        return source
    return source.output if source.output is not None else source.to_frame()


def _list_files(files: Any) -> list[Any]:
    """Return files as a list."""
    several = list(files) if isinstance(files, list | tuple) else [] if files is None else [files]
    listed = [_unwrap(each) for each in several]
    for each in listed:
        if not _is_file(each):
            raise EstimationError(
                "Expected the path of a released file (str or Path), got {type}.",
                hint="Use rx.estimate for data frames, or release with output='out.parquet'.",
                type=type(each).__name__,
            )
    return listed


def _is_file(source: Any) -> bool:
    return isinstance(source, str | os.PathLike)


def _is_spark(frame: Any) -> bool:
    return type(frame).__module__.startswith("pyspark.sql")


def _name_by_text(source: Any) -> tuple[Any, dict[str, int]]:
    return (source, {}) if _is_file(source) or _is_spark(source) else rename_columns_to_text(source)
