"""Open released files and data frames whose reports are counted in one estimate, and check that they fit together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from operator import attrgetter
from pathlib import Path
from typing import Any

import pyarrow as pa

from relaxdp.errors import ColumnError, EstimationError, MetadataError
from relaxdp.mechanisms.base import Mechanism
from relaxdp.mechanisms.bloom import Bloom
from relaxdp.tables.data_frames import DataFrameReader
from relaxdp.tables.files import BATCH_ROWS, TableFile, TableFormat, is_path, read_description
from relaxdp.tables.metadata import ColumnDescription, FileDescription, read_frame_description, require_same_description
from relaxdp.tables.table_columns import ColumnNames, get_id_type, suggest_name
from relaxdp.theory.epsilon import format_epsilon
from relaxdp.theory.randomized_response import Level

# The levels of an individual are bits of one word, which shows an id that occurs twice at one level.
MAX_LEVELS = 63


@dataclass(frozen=True, slots=True)
class CountedColumn:
    """A released column that is counted: its mechanism, all its levels, and its name in each file."""

    description: ColumnDescription
    mechanism: Mechanism
    names: list[str | None]
    """The column's name in each file; None where a file does not have it."""
    levels: list[Level]
    """All levels, ascending."""

    @property
    def name(self) -> str:
        """The column's name in the first file that has it."""
        return next(name for name in self.names if name is not None)

    @property
    def labels(self) -> Sequence[Any]:
        """The values that are counted."""
        return self.mechanism.labels


@dataclass(frozen=True, slots=True)
class ReleasedFile:
    """A released file, folder or data frame with its description."""

    path: Path
    table: TableFile
    description: FileDescription
    parts: list[tuple[FileDescription, TableFile]] = field(default_factory=list)
    """Each file of a folder with its own description."""
    has_given_description: bool = False
    """Whether the caller passed the description, so that rows may have been removed or repeated."""

    @property
    def label(self) -> str:
        """The label of the file or the data frame in messages."""
        return str(self.path) if self.table.format is TableFormat.FRAME else repr(str(self.path))

    def find_released_column(self, column_name: str | None) -> str:
        """Return the released column with this name, or the only one where no name is given."""
        names = list(self.description.columns)
        if column_name is None and len(names) > 1:
            raise ColumnError(
                "{name} has several released columns ({listed}).",
                hint="Choose one, such as column={first!r} (--column NAME).",
                name=self.label,
                path=str(self.path),
                listed=", ".join(map(repr, names[:12])),
                first=names[0],
            )
        found = names[0] if column_name is None else self.description.find_column(column_name)
        if found is None:  # names in a description were released, so they may be shown
            raise ColumnError(
                "{name} has no released column {column!r}.",
                hint="{nearest}",
                name=self.label,
                path=str(self.path),
                nearest=suggest_name(column_name or "", names),
                column=column_name,
            )
        return found

    def find_crosstab_columns(self, column_name: str | None, crosstab: str) -> tuple[str | None, str | None]:
        """Return the names of both columns of a crosstab, None for a column that is in another file."""
        second = self.description.find_column(crosstab)
        first = None if column_name is None else self.description.find_column(column_name)
        if column_name is None and (remaining := [name for name in self.description.columns if name != second]):
            first = remaining[0] if len(remaining) == 1 else self.find_released_column(None)
        if first is None and second is None:
            self.find_released_column(column_name or crosstab)
        return first, second

    def require_passthrough_column(self, name: str) -> None:
        """Reject a column that cannot make groups: a missing column, a released column, the ids."""
        if name in self.description.columns:
            raise ColumnError(
                "{name!r} is a released column, so it cannot be used with by=. Its reports are noisy, and groups of "
                "reports are not groups of individuals.",
                hint="For a table of two released columns pass crosstab={name!r} (--crosstab {name}).",
                name=name,
            )
        if name == self.description.id_column:
            raise ColumnError(
                "{name!r} is the id column, so each individual would be a separate group.",
                hint="Pass the name of a pass-through column as by= (--by NAME).",
                name=name,
            )
        if name not in self.table.schema.names:
            kept = set(self.table.schema.names) - {self.description.id_column, *self.description.columns}
            hint = self.table.names.format_hint(name, sorted(kept))
            raise ColumnError(
                "{name} has no pass-through column {column!r}.",
                hint="{suggestion}",
                suggestion=hint.strip() or "Release it with passthrough=.",
                name=self.label,
                path=str(self.path),
                column=name,
            )

    def require_weights_column(self, name: str) -> None:
        """Reject a column that does not hold the true weights: a missing column, a released column, the ids, text."""
        if name in (self.description.id_column, *self.description.columns):
            raise ColumnError(
                "{name!r} is {what}, so its values are not survey weights.",
                hint="Pass a pass-through column of numbers as weights= (--weights NAME).",
                what="a released column with noisy reports" if name in self.description.columns else "the id column",
                name=name,
            )
        self.require_passthrough_column(name)
        found = self.table.schema.field(name).type
        is_number = pa.types.is_integer(found) or pa.types.is_floating(found) or pa.types.is_decimal(found)
        if self.table.format is not TableFormat.CSV and not is_number:
            raise ColumnError(
                "The weights column {name!r} is of type {found}, but weights must be numbers.",
                hint="Release the weights as numbers, or pass another column as weights= (--weights NAME).",
                name=name,
                found=found,
            )


def require_unchanged_rows(files: Sequence[ReleasedFile]) -> None:
    """Reject tables whose rows changed: those that lost or gained rows.

    The description of a part states the rows of this part, or of a whole table whose other parts are here too.
    """
    stated = {
        file.label: [(each, table.count_rows()) for each, table in file.parts if each.rows is not None]
        for file in files
    }
    together: Counter[str] = Counter()
    for description, rows in chain.from_iterable(stated.values()):
        together[description.to_json()] += rows
    for label, parts in stated.items():
        if any(each.rows not in (rows, together[each.to_json()]) for each, rows in parts):
            released, rows = [each.rows or 0 for each, _ in parts], sum(rows for _, rows in parts)
            # The parts of a folder may each state the rows of the whole.
            is_split = len(set(released)) == 1 and rows <= released[0]
            raise make_changed_rows_error(label, released[0] if is_split else sum(released), rows)


def make_changed_rows_error(label: str, released_rows: int, rows: int) -> MetadataError:
    """Return the error about a table that had another number of rows when it was released."""
    return MetadataError(
        "{name} had {released_rows:,} rows when it was released, and has {rows:,} now. Estimates are wrong if "
        "rows were chosen by their reports.",
        hint=(
            "Pass all released rows, and use by= (--by NAME) for groups. If you selected rows without looking at "
            "reports, pass description=rx.description(data){option}."
        ),
        name=label,
        option=f" (--description {label})" if label.startswith(("'", '"')) else "",
        released_rows=released_rows,
        rows=rows,
    )


def require_description(source: Any) -> FileDescription:
    """Return the description of a released frame or file, or reject data without one."""
    if isinstance(source, FileDescription):
        return source
    if is_path(source):
        return open_released_file(Path(source))[1]
    description = read_frame_description(source)
    if description is None:
        raise MetadataError(
            "The data frame has no description of its reports: relaxdp did not release it, it was changed, or its "
            "library (such as polars) does not keep metadata.",
            hint="Pass the path of the released file, or the Release itself. To pass this data frame, add one of them "
            "as description=, or add mechanism= and epsilon=.",
        )
    return description


def open_released_file(path: Path) -> tuple[TableFile, FileDescription]:
    """Open a released file; a file that does not describe itself is rejected."""
    table, description = TableFile(path), read_description(path)
    if description is None:
        raise MetadataError(
            "{path!r} has no metadata about its reports: relaxdp did not release it, or another program wrote it.",
            hint="Pass the file as it was released, or name the original with description= (--description FILE).",
            path=str(path),
        )
    return table, description


def open_released_files(paths: Sequence[Path], descriptions: Sequence[Path] = ()) -> list[ReleasedFile]:
    """Open files that are counted in one estimate; `descriptions` are files whose metadata replaces theirs."""
    if descriptions and len(descriptions) != len(paths):
        raise MetadataError(
            "There are {files} files and {descriptions} descriptions, but each file needs one description.",
            hint="Pass description= (--description FILE) once for each file, in the same order.",
            files=len(paths),
            descriptions=len(descriptions),
        )
    for path in paths:
        if sum(path.absolute() == each.absolute() for each in paths) > 1:
            raise MetadataError(
                "{path!r} is named twice, so its individuals would count twice.",
                hint="Name each file once.",
                path=str(path),
            )
    given: Sequence[Path | None] = descriptions or [None] * len(paths)
    return [_open_file(*each) for each in zip(paths, given, strict=True)]


def _open_file(path: Path, description_path: Path | None) -> ReleasedFile:
    if description_path is None:
        table, description = open_released_file(path)
    else:
        table, whole = TableFile(path), open_released_file(description_path)[1]
        columns = {name: column for name, column in whole.columns.items() if name in table.schema.names}
        description = replace(whole, columns=columns, rows=None)
        if not columns:
            raise MetadataError(
                "{path!r} has no column that {description!r} describes as released.",
                hint="Pass as description= (--description FILE) the released file that {path!r} was made from.",
                path=str(path),
                description=str(description_path),
            )
    stated = [each.level_column for each in description.columns.values() if each.level_column is not None]
    names = (description.id_column, *description.columns, *stated)
    if any(table.schema.names.count(name) != 1 for name in names):
        raise MetadataError(
            "The metadata of {path!r} names columns that the file does not have.",
            hint="Pass the file as it was released.",
            path=str(path),
        )
    table.require_same_columns(names)
    has_given = description_path is not None
    file = ReleasedFile(path, table, description, has_given_description=has_given)
    for part_path in table.files:
        own = read_description(part_path)
        known = require_same_description(description, own, repr(str(part_path))) if has_given else own
        if known is None or known != description:
            raise MetadataError(
                "{part!r} is of another release or level than the first file of the folder, or has other columns.",
                hint="Keep only files of one release and level in a folder.",
                part=str(part_path),
            )
        file.parts.append((known, TableFile(part_path) if len(table.files) > 1 else table))
    return file


_PATH_FIELDS = {
    "path.release": "another release",
    "path.attribute": "another attribute",
    "encoding": "another mechanism",
    "values": "other values",
    "range": "another range",
    "clip": "numbers that were clipped, or not",
    "options": "other options of its mechanism",
    "key_fingerprint": "another key",
    "id_type": "another kind of ids",
}


def make_counted_column(files: Sequence[ReleasedFile], names: Sequence[str | None]) -> CountedColumn:
    """Return the column under these names in the files, or reject files of different releases or columns."""
    found = [(file, file.description.columns[name]) for file, name in zip(files, names, strict=True) if name]
    first_file, first = found[0]
    levels: set[Level] = set()
    for file, description in found:
        for field_name, words in _PATH_FIELDS.items():
            if attrgetter(field_name)(description) != attrgetter(field_name)(first):
                raise MetadataError(
                    "{name} has {words} than {first_name}. One estimate uses files of one release and column.",
                    hint="Estimate the files separately, or compare them with rx.compare (relaxdp compare).",
                    name=file.label,
                    words=words,
                    first_name=first_file.label,
                )
        mechanism = description.mechanism()
        if isinstance(mechanism, Bloom):
            raise MetadataError(
                "{name} holds RAPPOR reports, which have their own command.",
                hint="Run `relaxdp rappor decode FILE --params params.csv --candidates words.txt`.",
                name=file.label,
            )
        level = mechanism.level(description.epsilon)
        if level.threshold != description.threshold:
            raise MetadataError(
                "{name} has contradictory metadata: its threshold (the noise) is not that of epsilon {epsilon}.",
                hint="Use an undamaged copy of the file.",
                name=file.label,
                epsilon=format_epsilon(description.epsilon),
            )
        levels.update(map(mechanism.level, description.epsilons))
    if len(levels) > MAX_LEVELS:
        raise MetadataError(
            "The files have {levels} different levels (epsilons). The maximum for one estimate is {maximum}.",
            hint="Pass the files of at most {maximum} levels.",
            maximum=MAX_LEVELS,
            levels=len(levels),
        )
    return CountedColumn(first, first.mechanism(), list(names), sorted(levels))


def require_crosstab_columns(rows: CountedColumn, columns: CountedColumn) -> None:
    """Reject two columns that cannot form a crosstab."""
    for axis in (rows, columns):
        if axis.mechanism.mean_weights is not None:
            raise EstimationError(
                "A crosstab needs columns with declared values, and {column!r} contains numbers of a range.",
                hint="Choose another column, or release the numbers as categories such as age groups.",
                column=axis.name,
            )
    one, two = rows.description, columns.description
    if (one.path, one.key_fingerprint) == (two.path, two.key_fingerprint):
        raise MetadataError(
            "A crosstab needs two different columns, and {rows!r} and {columns!r} hold the same answers.",
            hint="Name another column with crosstab= (--crosstab NAME).",
            rows=rows.name,
            columns=columns.name,
        )
    if one.id_type != two.id_type:
        raise MetadataError(
            "The ids of {rows!r} have type {row_ids!r}, but the ids of {columns!r} have type {column_ids!r}.",
            hint="Release both columns from one table, so that their ids have one type.",
            rows=rows.name,
            columns=columns.name,
            row_ids=one.id_type,
            column_ids=two.id_type,
        )


# Data frames.


class InMemoryTable(TableFile):
    """A table in memory with the methods of a file: Arrow columns that are counted, and the names of all others."""

    def __init__(self, name: str, names: ColumnNames, table: pa.Table) -> None:
        self.path, self.format, self.rows, self.files = Path(name), TableFormat.FRAME, table.num_rows, []
        self._table, self.names = table, names
        unread = [(each, pa.null()) for each in names.usable_names if each not in table.column_names]
        self.schema = pa.schema([*table.schema, *(pa.field(*each) for each in unread)])

    def batches(self, columns: Sequence[str]) -> Generator[Any]:
        yield from self._table.select(list(dict.fromkeys(columns))).to_batches(BATCH_ROWS)


def open_frames(
    frames: Sequence[Any], descriptions: Sequence[FileDescription | None], column_names: list[str]
) -> list[ReleasedFile]:
    """Read these columns of data frames. A description is None where the frame describes itself."""
    if len({id(frame) for frame in frames}) < len(frames):
        raise MetadataError(
            "A data frame is in the list twice, so its individuals would count twice.",
            hint="Pass each data frame once.",
        )
    return [
        _open_frame(*each, column_names, needs_ids=len(frames) > 1)
        for each in zip(label_frames(len(frames)), frames, descriptions, strict=True)
    ]


def label_frames(n_frames: int) -> list[str]:
    """Return the labels of data frames in messages."""
    return ["The data frame"] if n_frames == 1 else [f"Data frame {number}" for number in range(1, n_frames + 1)]


def describe_frame(
    label: str, native: Any, names: Sequence[str], given: FileDescription | None, *, needs_ids: bool
) -> FileDescription:
    """Return the description of a frame: the given one, unless it contradicts the frame's own."""
    own = read_frame_description(native)
    whole = given or own or require_description(native)
    columns = {each: column for each, column in whole.columns.items() if each in names}
    if not columns:
        raise MetadataError(
            "{name} contains none of the released columns that its metadata lists: they were removed or renamed.",
            hint="Pass the data frame as it was released.",
            name=label,
        )
    if needs_ids and whole.id_column not in names:
        raise ColumnError(
            "{name} has no id column {column!r}, which is needed to count each individual once.",
            hint="Keep the column {column!r} in the data frame.",
            name=label,
            column=whole.id_column,
        )
    stated = [each.level_column for each in columns.values() if each.level_column not in (None, *names)]
    if stated:
        raise ColumnError(
            "{name} has no column {column!r}, which states the level of each row.",
            hint="Keep the column {column!r} in the data frame.",
            name=label,
            column=stated[0],
        )
    return require_same_description(replace(whole, columns=columns), own, label)


def _open_frame(
    label: str, native: Any, given: FileDescription | None, column_names: list[str], *, needs_ids: bool
) -> ReleasedFile:
    frame = DataFrameReader(native)
    description = describe_frame(label, native, frame.names, given, needs_ids=needs_ids)
    id_column = description.id_column
    is_given = given is not None and id_column in frame.names
    reads_ids = needs_ids or is_given
    stated = [each.level_column for each in description.columns.values()]
    wanted = {*description.columns, *column_names, *stated, *([id_column] if reads_ids else [])}
    chosen = [each for each in frame.names if each in wanted]
    frame.read_columns(chosen)
    table = frame.to_arrow(chosen)
    id_type = next(iter(description.columns.values())).id_type
    if reads_ids and id_type and (found := get_id_type(table.schema.field(id_column).type)) != id_type:
        raise MetadataError(
            "{name} has ids of type {found!r}, but they were released as {expected!r}.",
            hint="Convert the id column to the type {expected!r}.",
            name=label,
            expected=id_type,
            found=found,
        )
    loaded = InMemoryTable(label, frame.all_names, table)
    return ReleasedFile(Path(label), loaded, description, [(description, loaded)], has_given_description=is_given)
