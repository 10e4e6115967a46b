"""Estimate from released files, data frames of every library, and `Release` objects."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from typing import TYPE_CHECKING, Any, overload

from relaxdp.errors import EstimationError, MetadataError, add_consequence
from relaxdp.estimation.counts import Method, check_mechanism
from relaxdp.estimation.result import GroupedResults, Result, get_frame_library
from relaxdp.mechanisms.base import Mechanism
from relaxdp.sampling.keyed_stream import PathId
from relaxdp.tables.counting import ColumnCounts, CrosstabCounts, count_reports_of_files
from relaxdp.tables.data_frames import convert_name_to_text
from relaxdp.tables.files import fetch_file, is_path
from relaxdp.tables.metadata import ColumnDescription, FileDescription, is_spark_frame
from relaxdp.tables.released_files import open_frames, open_released_files, require_description
from relaxdp.tables.table_columns import check_column_name
from relaxdp.theory.epsilon import Epsilon

if TYPE_CHECKING:
    from relaxdp.tables.release_result import Release

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
    weights: str | int | None = None,
) -> Result: ...
@overload
def estimate(
    source: Any, column: str | int | None = None, *, by: str | int, method: Method = "average", description: Any = None,
    weights: str | int | None = None,
) -> GroupedResults: ...  # fmt: skip
@add_consequence("")
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
    weights: str | int | None = None,
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
        weights: A pass-through column of survey weights. An individual counts as much as its weight, 0 is allowed.

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
        raise EstimationError(
            "`source` is an empty list.", hint="Pass a Release, a released file, a data frame, or a list of them."
        )
    tables = [_unwrap_release(each) for each in sources]
    names: dict[str, Any] = {
        option: convert_name_to_text(name)
        for option, name in (("column", column), ("by", by), ("crosstab", crosstab), ("weights", weights))
    }
    given = [name for name in names.values() if name is not None]
    for name in given:
        check_column_name(name)
    if all(map(is_path, tables)):
        if mechanism is not None or epsilon is not None:
            raise EstimationError(
                "`mechanism` and `epsilon` are only valid for data frames, and `source` is a file.",
                hint="Leave them out. For a file without metadata pass description= with the file as it was released.",
            )
        counted: Any = count(tables, **names, description=description)
    else:
        descriptions = _list_given_descriptions(len(tables), names["column"], description, mechanism, epsilon)
        if all(map(is_spark_frame, tables)):
            from relaxdp.tables.spark_estimate import count_spark_column  # noqa: PLC0415 (Spark may be missing)

            if crosstab is not None or weights is not None:
                raise EstimationError(
                    "{what} of Spark DataFrames are not supported.",
                    what="Crosstabs" if weights is None else "Weights",
                    hint="Write the frame to Parquet with frame.write.parquet('FOLDER'), and pass the folder.",
                )
            counted = count_spark_column(tables, descriptions, column=names["column"], by=names["by"])
        else:
            opened = open_frames(tables, descriptions, given)
            counted = count_reports_of_files(opened, **names)
    found: dict[str | None, Result] = {group: counts.estimate(method) for group, counts in counted.groups}
    library = getattr(sources[0], "library", None)  # of a `Release`
    for result in found.values():
        result.set_frame_library(library if library in ("pandas", "polars") else get_frame_library(sources[0]))
    return found[None] if by is None else GroupedResults(names["by"], found)


def _list_given_descriptions(
    frames: int, column: str | None, description: Any, mechanism: Mechanism | None, epsilon: Epsilon | None
) -> list[FileDescription | None]:
    """Return the given descriptions, one per frame, and None for a frame that describes itself."""
    if mechanism is None and epsilon is None:
        given = list(description) if isinstance(description, list | tuple) else [description] * frames
        if len(given) != frames or (frames > 1 and description is not None and given[0] is description):
            raise MetadataError(
                "Each data frame needs its own description: expected {frames}, got {descriptions}.",
                hint="Pass a list: description=[first_release, second_release].",
                frames=frames,
                descriptions=len(description) if isinstance(description, list | tuple) else 1,
            )
        # The rows may have been chosen, without looking at their reports.
        return [
            None if each is None else replace(require_description(_unwrap_release(each)), rows=None) for each in given
        ]
    if mechanism is None or epsilon is None or column is None or description is not None or frames > 1:
        raise MetadataError(
            "`mechanism` and `epsilon` are only valid together with `column`, for a single data frame, and without "
            "`description`.",
            hint="Pass rx.estimate(frame, 'diagnosis', mechanism=rx.Categorical([...]), epsilon=1). For several data "
            "frames, pass the release of each: description=[first, second].",
        )
    check_mechanism(mechanism)
    level = mechanism.level(epsilon)
    return [FileDescription("", {column: ColumnDescription.from_level(mechanism, level, path=PathId("", column))})]


@overload
def count(
    files: FileName | Release | Sequence[FileName | Release],
    column: str | None = None,
    *,
    by: str | None = None,
    crosstab: None = None,
    description: FileName | Sequence[FileName] | None = None,
    weights: str | None = None,
) -> ColumnCounts: ...
@overload
def count(
    files: FileName | Release | Sequence[FileName | Release],
    column: str | None = None,
    *,
    by: str | None = None,
    crosstab: str,
    description: FileName | Sequence[FileName] | None = None,
) -> CrosstabCounts: ...
def count(
    files: FileName | Release | Sequence[FileName | Release],
    column: str | None = None,
    *,
    by: str | None = None,
    crosstab: str | None = None,
    description: FileName | Sequence[FileName] | None = None,
    weights: str | None = None,
) -> ColumnCounts | CrosstabCounts:
    """Count the reports of released files by group and level. All estimates follow from these counts.

    You can merge counts of different individuals, for parts of a release in different places.

    Args:
        files: A released file or a `Release` that wrote one, or several.
        column: The released column, where there are several.
        by: A pass-through column, for the counts of each group.
        crosstab: A second released column, for a crosstab.
        description: The file as it was released, for files without a description or with chosen rows.
        weights: A pass-through column of survey weights.

    Returns:
        The counts. `groups` has a `Counts` for each group, and with `crosstab` there are `tables`.

    Raises:
        EstimationError: `files` are not files, or there is nothing to count.
        MetadataError: A file has no description, or has other rows than were released.
        ColumnError: A file has no such column, or several and none was named.
        TableFileError: A file is missing or cannot be read.

    Example:
        >>> counted = count("patients.parquet", "diagnosis", by="region")  # doctest: +SKIP
        >>> {region: counts.n for region, counts in counted.groups}  # doctest: +SKIP
        {'north': 1200, 'south': 1800}
    """
    with ExitStack() as stack:
        paths, descriptions = (
            [stack.enter_context(fetch_file(each)) for each in _parse_files(some)] for some in (files, description)
        )
        opened = open_released_files(paths, descriptions)
        return count_reports_of_files(opened, column=column, by=by, crosstab=crosstab, weights=weights)


def _parse_files(files: Any) -> list[Any]:
    several = list(files) if isinstance(files, list | tuple) else [] if files is None else [files]
    found = [_unwrap_release(each) for each in several]
    for each in found:
        if not is_path(each):
            raise EstimationError(
                "Expected the path of a released file (str or Path), got {type}.",
                hint="Use rx.estimate for data frames, or release with output='out.parquet'.",
                type=type(each).__name__,
            )
    return found


def description(source: Any) -> FileDescription:
    """Return what released data states about itself: values, levels, release and key.

    Args:
        source: A `Release`, a released file or a data frame.

    Returns:
        The description. Pass it to `estimate` as `description` for rows that were chosen without looking at reports.

    Raises:
        MetadataError: The data has no description.

    Example:
        >>> found = description("patients.parquet")  # doctest: +SKIP
        >>> found.rows, found.columns["diagnosis"].epsilon  # doctest: +SKIP
        (3000, Decimal('0.1'))
    """
    return require_description(_unwrap_release(source))


def _unwrap_release(source: Any) -> Any:
    """Return the file or frame of a `Release`."""
    from relaxdp.tables.release_result import Release  # noqa: PLC0415 (only what releases something needs it)

    if not isinstance(source, Release):
        return source
    return source.output if source.output is not None else source.to_frame()
