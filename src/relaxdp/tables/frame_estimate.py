"""Estimates from released frames: they are counted as files are, by DuckDB, which reads their Arrow form."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from relaxdp.draw.stream import PathId
from relaxdp.errors import CountsError, DescriptionError, MixedFilesError, UnknownColumnError
from relaxdp.estimation.counts import Method
from relaxdp.estimation.groups import Groups
from relaxdp.law.epsilon import Epsilon
from relaxdp.mechanisms import Mechanism
from relaxdp.tables.columns import ColumnNames, get_id_type
from relaxdp.tables.counting import count_opened, count_opened_pairs
from relaxdp.tables.files import BATCH_ROWS, Format, Input
from relaxdp.tables.frame_metadata import description_of, said_by, vouched
from relaxdp.tables.frames import Frame
from relaxdp.tables.metadata import ColumnDescription, FileDescription, check_given
from relaxdp.tables.released_files import ReleasedFile, check_rows


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
            raise DescriptionError("several frames have several levels: give a list with a description for each.")
        return [None if each is None else vouched(each) for each in given]
    if mechanism is None or epsilon is None or column is None or description is not None or frames > 1:
        raise DescriptionError(
            "mechanism= and epsilon= go together, with the column's name and one frame; otherwise say description=."
        )
    level = mechanism.encoding.level(epsilon)
    return [FileDescription("", {column: ColumnDescription.of(mechanism.encoding, level, path=PathId("", column))})]


def estimate_frames(
    natives: Sequence[Any],
    said: Sequence[FileDescription | None],
    *,
    column: str | None,
    by: str | None,
    cross: str | None,
    method: Method,
) -> Any:
    """Return the estimate from frames, of which `said` is what a person said about them instead of themselves."""
    if not natives:
        raise CountsError("there is no frame: there is nothing to estimate.")
    if by is not None and cross is not None:
        raise CountsError("groups of a two-way table are not offered.", option="by")
    wanted = [name for name in (column, by, cross) if name is not None]
    files = _open_frames(natives, said, wanted)
    if cross is not None:
        return count_opened_pairs(files, column=column, cross=cross).estimate(method)
    groups = count_opened(files, column=column, by=by).groups
    found = {group: counts.estimate(method) for group, counts in groups}
    return Groups(by, found) if by is not None else found[None]


def _open_frames(
    natives: Sequence[Any], said: Sequence[FileDescription | None], wanted: list[str]
) -> list[ReleasedFile]:
    """Open frames in the place of files, or reject those that have other rows than they were released with."""
    if len({id(native) for native in natives}) < len(natives):
        raise MixedFilesError("a frame is named twice: its objects would count twice.")
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
        raise DescriptionError("{name} has none of the released columns that its description speaks of.", name=name)
    known = check_given(replace(said, columns=columns), own, name)
    needed = [each for each in frame.names if each in columns or each in wanted]
    has_ids = known.id_column in frame.names
    if ids and not has_ids:
        raise UnknownColumnError(
            "{name} does not have its ids ({column!r}): it takes them to count an object once.",
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
        raise DescriptionError(
            "the ids of {name} are not of the kind {expected!r} that its description says.",
            name=name,
            expected=expected,
        )
    column = ids if not hasattr(ids.type, "storage_type") else pa.chunked_array([each.storage for each in ids.chunks])
    if pc.count_distinct(column, mode="all").as_py() < len(column):
        raise CountsError(
            "an id stands in two rows of {name}, or is missing: one id is one object, and counts once.", name=name
        )
