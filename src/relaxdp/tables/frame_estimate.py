"""Estimates from released frames: they are counted as files are, by DuckDB, which reads their Arrow form."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from relaxdp.errors import EstimationError, MetadataError, UnknownColumnError
from relaxdp.estimation.counts import Method, check_mechanism
from relaxdp.estimation.groups import Groups
from relaxdp.estimation.result import Result
from relaxdp.mechanisms.base import Mechanism
from relaxdp.sampling.stream import PathId
from relaxdp.tables.columns import ColumnNames, get_id_type
from relaxdp.tables.counting import count_opened, count_opened_pairs
from relaxdp.tables.files import BATCH_ROWS, Format, Input
from relaxdp.tables.frame_metadata import description_of, said_by, vouched
from relaxdp.tables.frames import Frame
from relaxdp.tables.metadata import ColumnDescription, FileDescription, check_given
from relaxdp.tables.released_files import ReleasedFile, check_rows
from relaxdp.theory.epsilon import Epsilon


class FrameInput(Input):
    """A frame in the place of a file: the columns that are counted as Arrow has them, and the names of the others."""

    def __init__(self, name: str, names: ColumnNames, table: pa.Table) -> None:
        self.path, self.format, self.rows, self._files = Path(name), Format.FRAME, table.num_rows, []
        self._table, self.names = table, names
        others = [(each, pa.null()) for each in names.usable if each not in table.column_names]
        self.schema = pa.schema([*table.schema, *(pa.field(*each) for each in others)])

    def batches(self, columns: Sequence[str]) -> Generator[Any]:
        """Return the rows of some columns as record batches."""
        yield from self._table.select(list(dict.fromkeys(columns))).to_batches(BATCH_ROWS)


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
        return [None if each is None else vouched(each) for each in given]
    if mechanism is None or epsilon is None or column is None or description is not None or frames > 1:
        raise MetadataError(
            "`mechanism` and `epsilon` describe one column of one data frame.",
            hint="Pass all three: rx.estimate(frame, 'diagnosis', mechanism=rx.Categorical([...]), epsilon=1).",
        )
    check_mechanism(mechanism)
    level = mechanism.level(epsilon)
    return [FileDescription("", {column: ColumnDescription.of(mechanism, level, path=PathId("", column))})]


def estimate_frames(
    natives: Sequence[Any],
    said: Sequence[FileDescription | None],
    *,
    column: str | None,
    by: str | None,
    crosstab: str | None,
    method: Method,
) -> Result | Groups:
    """Return the estimate from frames, of which `said` is what a person said about them instead of themselves."""
    wanted = [name for name in (column, by, crosstab) if name is not None]
    files = _open_frames(natives, said, wanted)
    if crosstab is not None:
        return count_opened_pairs(files, column=column, crosstab=crosstab).estimate(method)
    groups = count_opened(files, column=column, by=by).groups
    found = {group: counts.estimate(method) for group, counts in groups}
    return Groups(by, found) if by is not None else found[None]


def _open_frames(
    natives: Sequence[Any], said: Sequence[FileDescription | None], wanted: list[str]
) -> list[ReleasedFile]:
    """Open frames in the place of files, or reject those that have other rows than they were released with."""
    if len({id(native) for native in natives}) < len(natives):
        raise MetadataError(
            "A data frame is in the list twice, so its rows would count twice.", hint="Pass each data frame once."
        )
    ids = len(natives) > 1
    names = [f"frame {number}" for number in range(1, len(natives) + 1)] if ids else ["the frame"]
    files = [
        _opened(name, native, told, wanted, ids=ids) for name, native, told in zip(names, natives, said, strict=True)
    ]
    check_rows([(str(file.path), file.counted()) for file in files])
    return files


def _opened(name: str, native: Any, told: FileDescription | None, wanted: list[str], *, ids: bool) -> ReleasedFile:
    frame = Frame(native)
    own = said_by(native)
    said = told or own or description_of(native)  # the last of which refuses
    columns = {each: column for each, column in said.columns.items() if each in frame.names}
    if not columns:
        raise MetadataError(
            "{name} has none of the columns of its description.",
            hint="Pass the data frame as it was released.",
            name=name,
        )
    known = check_given(replace(said, columns=columns), own, name)
    needed = [each for each in frame.names if each in columns or each in wanted]
    has_ids = known.id_column in frame.names
    if ids and not has_ids:
        raise UnknownColumnError(
            "{name} has no id column {column!r}, which is needed to count each individual once.",
            hint="Keep the column {column!r} in the data frame.",
            name=name,
            column=known.id_column,
        )
    look_at_ids = has_ids and (ids or told is not None)
    needed += [known.id_column] if look_at_ids else []
    frame.load(list(dict.fromkeys(needed)))
    table = frame.arrow(list(dict.fromkeys(needed)))
    if look_at_ids:
        _check_ids(name, known, table.column(known.id_column))
    counted = FrameInput(name, frame.all_names, table)
    return ReleasedFile(Path(name), counted, known, said=[(known, counted)])


def _check_ids(name: str, known: FileDescription, ids: pa.ChunkedArray) -> None:
    expected = next(iter(known.columns.values())).id_type
    if expected and get_id_type(ids.type) != expected:
        raise MetadataError(
            "The ids of {name} are not of the type {expected!r} of its description.",
            hint="Convert them to {expected!r}.",
            name=name,
            expected=expected,
        )
    column = ids if not hasattr(ids.type, "storage_type") else pa.chunked_array([each.storage for each in ids.chunks])
    if pc.count_distinct(column, mode="all").as_py() < len(column):
        raise EstimationError(
            "An id occurs twice in {name}, or is missing. Each individual counts once.",
            hint="Remove duplicate rows.",
            name=name,
        )
