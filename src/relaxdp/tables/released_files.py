"""Open released files and data frames whose reports are counted in one estimate, and check that they fit together."""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from operator import attrgetter
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.compute as pc

from relaxdp.errors import ColumnError, EstimationError, MetadataError, TableFileError
from relaxdp.mechanisms.base import Mechanism
from relaxdp.mechanisms.bloom import Bloom
from relaxdp.tables.data_frames import DataFrameReader
from relaxdp.tables.files import BATCH_ROWS, TableFile, TableFormat, open_released_file
from relaxdp.tables.metadata import (
    ColumnDescription,
    FileDescription,
    read_frame_description,
    require_description,
    require_same_description,
)
from relaxdp.tables.table_columns import ColumnNames, get_id_type, get_storage_column, suggest_name
from relaxdp.theory.epsilon import format_epsilon

PartRows = Sequence[tuple[FileDescription, int]]
# The levels of an individual are bits of one word, which shows an id that occurs twice at one level.
MAX_LEVELS = 63


def require_unchanged_rows(tables: Sequence[tuple[str, PartRows]]) -> None:
    """Reject tables that lost or gained rows. Each has a name, and the description and number of rows of its parts.

    The description of a part states the rows of this part, or of a whole table whose other parts are here too.
    """
    together: Counter[str] = Counter()
    for _, parts in tables:
        for description, rows in parts:
            together[description.dumps()] += rows
    for name, parts in tables:
        known = [(each, rows) for each, rows in parts if each.rows is not None]
        if any(each.rows not in (rows, together[each.dumps()]) for each, rows in known):
            raise make_changed_rows_error(name, _compute_stated_row_count(known), sum(rows for _, rows in known))


def make_changed_rows_error(name: str, released_rows: int, rows: int) -> MetadataError:
    """Return the error about a table that had another number of rows when it was released."""
    return MetadataError(
        "{name} had {released_rows:,} rows when it was released, and has {rows:,} now. Estimates from rows that were "
        "selected by their reports are wrong.",
        hint=(
            "Pass all released rows, and use by= (--by NAME) for groups. If you selected rows without looking at "
            "reports, pass description=rx.description(data) (--description {name})."
        ),
        name=name,
        released_rows=released_rows,
        rows=rows,
    )


def _compute_stated_row_count(parts: PartRows) -> int:
    """Return the stated rows of a folder: the sum over its parts, unless each part states those of the whole."""
    stated = [each.rows or 0 for each, _ in parts]
    is_split = len(set(stated)) == 1 and sum(rows for _, rows in parts) <= stated[0]
    return stated[0] if is_split else sum(stated)


class DescribedSource(Protocol):
    """A released file or data frame with its description."""

    @property
    def path(self) -> Path:
        """The name in messages."""

    @property
    def description(self) -> FileDescription:
        """The description of its released columns."""


@dataclass(frozen=True, slots=True)
class CountedColumn:
    """A released column that is counted: its mechanism, all its levels, and its name in each file."""

    description: ColumnDescription
    mechanism: Mechanism
    names: list[str | None]
    """The column's name in each file; None where a file does not have it."""
    levels: dict[int, Decimal]
    """Threshold and epsilon of every level, ascending."""

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

    def list_part_rows(self) -> list[tuple[FileDescription, int]]:
        """Return the description and the number of rows of each part that states how many were released."""
        return [(each, table.count_rows()) for each, table in self.parts if each.rows is not None]

    def find_released_column(self, column_name: str | None) -> str:
        """Return the released column with this name, or the only one where no name is given."""
        names = list(self.description.columns)
        if column_name is None and len(names) == 1:
            return names[0]
        if column_name is None:
            raise ColumnError(
                "{path!r} has several released columns ({listed}).",
                hint="Pass column= (--column NAME).",
                path=str(self.path),
                listed=", ".join(map(repr, names[:12])),
            )
        found = self.description.find_column(column_name)
        if found is None:
            raise self._make_unknown_column_error(column_name, names)
        return found

    def find_crosstab_columns(self, column_name: str | None, crosstab: str) -> tuple[str | None, str | None]:
        """Return the names of both columns of a crosstab, None for a column that is in another file."""
        names = list(self.description.columns)
        second = self.description.find_column(crosstab)
        remaining = [name for name in names if name != second]
        first = None if column_name is None else self.description.find_column(column_name)
        if column_name is None and remaining:
            first = remaining[0] if len(remaining) == 1 else self.find_released_column(None)
        if first is None and second is None:
            raise self._make_unknown_column_error(crosstab if column_name is None else column_name, names)
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
                "{path!r} has no pass-through column {column!r}.",
                hint="{suggestion}",
                suggestion=hint.strip() or "Release it with passthrough=.",
                path=str(self.path),
                column=name,
            )

    def _make_unknown_column_error(self, name: str, names: list[str]) -> ColumnError:
        # Names in a description were released, so they may be shown.
        return ColumnError(
            "{path!r} has no released column {column!r}.",
            hint="{nearest}",
            path=str(self.path),
            nearest=suggest_name(name, names),
            column=name,
        )

    def make_relation_sql(self, connection: Any, view: str, columns: dict[str, str]) -> str:
        """Return SQL for columns under new names. DuckDB reads Parquet files itself, and other tables through Arrow."""
        folded = [name.casefold() for name in self.table.schema.names]
        paths = [str(file.absolute()) for file in self.table.files]
        # DuckDB ignores the case of names, and reads these characters of a path as a pattern.
        is_readable = len(set(folded)) == len(folded) and not set("*?[{") & set("".join(map(str, self.table.files)))
        if self.table.format is TableFormat.PARQUET and is_readable:
            selected = ", ".join(f"{quote_identifier(name)} AS {alias}" for alias, name in columns.items())
            listed = ", ".join("'" + path.replace("'", "''") + "'" for path in paths)
            return f"(SELECT {selected} FROM read_parquet([{listed}], hive_partitioning = false))"  # noqa: S608
        schema = pa.schema(
            [(alias, get_comparable_type(self.table.schema.field(name).type)) for alias, name in columns.items()]
        )
        batches = _rename_batches(self.table.batches(list(columns.values())), columns, schema)
        connection.register(view, pa.RecordBatchReader.from_batches(schema, batches))
        return view


def open_released_files(paths: Sequence[Path], descriptions: Sequence[Path] = ()) -> list[ReleasedFile]:
    """Open files that are counted in one estimate; `descriptions` are files whose metadata replaces theirs."""
    if descriptions and len(descriptions) != len(paths):
        raise MetadataError(
            "There are {files} files and {descriptions} descriptions, but each file needs one description.",
            hint="Pass description= (--description FILE) once for each file, in the same order.",
            files=len(paths),
            descriptions=len(descriptions),
        )
    seen = set()
    for path in paths:
        if path.absolute() in seen:
            raise MetadataError(
                "{path!r} is named twice, so its individuals would count twice.",
                hint="Name each file once.",
                path=str(path),
            )
        seen.add(path.absolute())
    given: Sequence[Path | None] = descriptions or [None] * len(paths)
    return [_open_file(*each) for each in zip(paths, given, strict=True)]


def _open_file(path: Path, description_path: Path | None) -> ReleasedFile:
    has_given = description_path is not None
    is_read = True
    try:
        if description_path is None:
            table, description = open_released_file(path)
        else:
            table, description = _open_with_description(path, description_path)
        file = ReleasedFile(path, table, description, has_given_description=has_given)
        for part_path in table.files:
            part = TableFile(part_path) if len(table.files) > 1 else table
            own = part.read_description()
            known = require_same_description(description, own, repr(str(part_path))) if has_given else own
            is_same = part is table or _has_same_types(table, part, description)
            if known is None or known != description or not is_same:
                raise MetadataError(
                    "{part!r} has another release, level or other columns than the first file of the folder.",
                    hint="Keep only files of one release and level in a folder.",
                    part=str(part_path),
                )
            file.parts.append((known, part))
    except (OSError, UnicodeError, csv.Error) as problem:
        if isinstance(problem, TableFileError):
            raise
        is_read = False
    if not is_read:  # raised outside, so that no context shows the content of the file
        raise TableFileError(
            "{path!r} or its metadata cannot be read.",
            hint="Check that the file is complete and that you may read it.",
            path=str(path),
        )
    for name in (description.id_column, *description.columns):
        if table.schema.names.count(name) != 1:
            raise MetadataError(
                "The metadata of {path!r} names columns that the file does not have.",
                hint="Pass the file as it was released.",
                path=str(path),
            )
    return file


def _open_with_description(path: Path, description_path: Path) -> tuple[TableFile, FileDescription]:
    """Open a file with the description of another file. The number of its rows is not checked."""
    table, whole = TableFile(path), open_released_file(description_path)[1]
    columns = {name: column for name, column in whole.columns.items() if name in table.schema.names}
    if not columns:
        raise MetadataError(
            "{path!r} has none of the released columns in its description {description!r}.",
            hint="Pass the description of this file.",
            path=str(path),
            description=str(description_path),
        )
    return table, replace(whole, columns=columns, rows=None)


def _has_same_types(table: TableFile, part: TableFile, description: FileDescription) -> bool:
    return all(
        name in table.schema.names
        and name in part.schema.names
        and table.schema.field(name).type == part.schema.field(name).type
        for name in (description.id_column, *description.columns)
    )


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


def make_counted_column(files: Sequence[DescribedSource], names: Sequence[str | None]) -> CountedColumn:
    """Return the column under these names in the files, or reject files of different releases or columns."""
    found = [(file, file.description.columns[name]) for file, name in zip(files, names, strict=True) if name]
    first_file, first = found[0]
    levels = {}
    for file, description in found:
        for field_name, words in _PATH_FIELDS.items():
            if attrgetter(field_name)(description) != attrgetter(field_name)(first):
                raise MetadataError(
                    "{file!r} has {words} than {first_file!r}. One estimate uses files of one release and column.",
                    hint="Estimate the files separately, or compare them with rx.compare (relaxdp compare).",
                    file=str(file.path),
                    words=words,
                    first_file=str(first_file.path),
                )
        mechanism = description.mechanism()
        if mechanism.name != description.encoding:
            raise MetadataError(
                "Unknown mechanism {mechanism!r} in the metadata.",
                hint="Install the version of relaxdp that released the file.",
                mechanism=description.encoding,
            )
        if isinstance(mechanism, Bloom):
            raise MetadataError(
                "{file!r} holds RAPPOR reports.", hint="Run `relaxdp rappor decode {file}`.", file=str(file.path)
            )
        level = mechanism.level(description.epsilon)
        if level.threshold != description.threshold:
            raise MetadataError(
                "The metadata of {file!r} is contradictory: its threshold is not that of epsilon {epsilon}.",
                hint="Use an undamaged copy of the file.",
                file=str(file.path),
                epsilon=format_epsilon(description.epsilon),
            )
        levels[level.threshold] = level.epsilon
    if len(levels) > MAX_LEVELS:
        raise MetadataError(
            "The files have {levels} different levels. The maximum for one estimate is {maximum}.",
            hint="Pass fewer files.",
            maximum=MAX_LEVELS,
            levels=len(levels),
        )
    return CountedColumn(first, first.mechanism(), list(names), dict(sorted(levels.items())))


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
            "{rows!r} and {columns!r} are the same answers of one release, so their noise is not independent.",
            hint="Choose two different columns.",
            rows=rows.name,
            columns=columns.name,
        )
    if one.id_type != two.id_type:
        raise MetadataError(
            "The ids of {rows!r} and {columns!r} are of different types.",
            hint="Release both columns from one table.",
            rows=rows.name,
            columns=columns.name,
        )


def get_comparable_type(kind: Any) -> Any:
    """Return a type without a dictionary and with one spelling of text and bytes."""
    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    if pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        return pa.string()
    if pa.types.is_large_binary(kind) or pa.types.is_fixed_size_binary(kind) or pa.types.is_binary_view(kind):
        return pa.binary()
    return kind


def _rename_batches(batches: Iterator[Any], columns: dict[str, str], schema: Any) -> Iterator[Any]:
    for batch in batches:
        arrays = [batch.column(name).cast(schema.field(alias).type) for alias, name in columns.items()]
        yield pa.RecordBatch.from_arrays(arrays, schema=schema)


def quote_identifier(name: str) -> str:
    """Return a column's name as SQL takes it."""
    return '"' + name.replace('"', '""') + '"'


# Data frames.


class InMemoryTable(TableFile):
    """A data frame with the methods of a file: Arrow columns that are counted, and the names of all others."""

    def __init__(self, name: str, names: ColumnNames, table: pa.Table) -> None:
        self.path, self.format, self.rows, self.files = Path(name), TableFormat.FRAME, table.num_rows, []
        self._table, self.names = table, names
        unread = [(each, pa.null()) for each in names.usable_names if each not in table.column_names]
        self.schema = pa.schema([*table.schema, *(pa.field(*each) for each in unread)])

    def batches(self, columns: Sequence[str]) -> Generator[Any]:
        """Return the rows of some columns as record batches."""
        yield from self._table.select(list(dict.fromkeys(columns))).to_batches(BATCH_ROWS)


def open_frames(
    frames: Sequence[Any], descriptions: Sequence[FileDescription | None], column_names: list[str]
) -> list[ReleasedFile]:
    """Read these columns of data frames, or reject frames that have other rows than they were released with."""
    if len({id(frame) for frame in frames}) < len(frames):
        raise MetadataError(
            "A data frame is in the list twice, so its individuals would count twice.",
            hint="Pass each data frame once.",
        )
    names = [f"frame {number}" for number in range(1, len(frames) + 1)] if len(frames) > 1 else ["the frame"]
    files = [
        _open_frame(*each, column_names, needs_ids=len(frames) > 1)
        for each in zip(names, frames, descriptions, strict=True)
    ]
    require_unchanged_rows([(str(file.path), file.list_part_rows()) for file in files])
    return files


def _open_frame(
    name: str, native: Any, given: FileDescription | None, column_names: list[str], *, needs_ids: bool
) -> ReleasedFile:
    frame = DataFrameReader(native)
    own = read_frame_description(native)
    whole = given or own or require_description(native)
    columns = {each: column for each, column in whole.columns.items() if each in frame.names}
    if not columns:
        raise MetadataError(
            "{name} has none of the released columns in its description.",
            hint="Pass the data frame as it was released.",
            name=name,
        )
    description = require_same_description(replace(whole, columns=columns), own, name)
    id_column = description.id_column
    if needs_ids and id_column not in frame.names:
        raise ColumnError(
            "{name} has no id column {column!r}, which is needed to count each individual once.",
            hint="Keep the column {column!r} in the data frame.",
            name=name,
            column=id_column,
        )
    reads_ids = id_column in frame.names and (needs_ids or given is not None)
    chosen = [each for each in frame.names if each in columns or each in column_names]
    chosen = list(dict.fromkeys([*chosen, id_column] if reads_ids else chosen))
    frame.read_columns(chosen)
    table = frame.to_arrow(chosen)
    if reads_ids:
        _require_unique_ids(name, description, table.column(id_column))
    loaded = InMemoryTable(name, frame.all_names, table)
    return ReleasedFile(Path(name), loaded, description, parts=[(description, loaded)])


def _require_unique_ids(name: str, description: FileDescription, ids: pa.ChunkedArray) -> None:
    expected = next(iter(description.columns.values())).id_type
    if expected and get_id_type(ids.type) != expected:
        raise MetadataError(
            "The ids of {name} are not of the type {expected!r} in its description.",
            hint="Convert the id column to the type {expected!r}.",
            name=name,
            expected=expected,
        )
    if pc.count_distinct(get_storage_column(ids), mode="all").as_py() < len(ids):
        raise EstimationError(
            "An id occurs twice in {name}, or is missing. Each individual counts once.",
            hint="Remove duplicate rows and rows without an id.",
            name=name,
        )
