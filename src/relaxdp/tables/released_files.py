"""Released files that are counted together: opening them, and what they must have in common."""

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
from relaxdp.tables.data_frames import DataFrameReader
from relaxdp.tables.files import BATCH_ROWS, TableFile, TableFormat, list_table_files, open_released_file
from relaxdp.tables.metadata import (
    ColumnDescription,
    FileDescription,
    read_frame_description,
    require_description,
    require_same_description,
)
from relaxdp.tables.table_columns import ColumnNames, get_id_type, suggest_name
from relaxdp.theory.epsilon import format_epsilon

Parts = Sequence[tuple[FileDescription, int]]


def require_unchanged_rows(tables: Sequence[tuple[str, Parts]]) -> None:
    """Refuse tables that lost or gained rows; each has a name, and for its parts what they say and have.

    Every part has the rows that it says, or is a part of a table that has them and whose other parts are here too.
    """
    together: Counter[str] = Counter()
    for _, parts in tables:
        for description, rows in parts:
            together[description.dumps()] += rows
    for name, parts in tables:
        known = [(each, rows) for each, rows in parts if each.rows is not None]
        if any(each.rows not in (rows, together[each.dumps()]) for each, rows in known):
            raise make_changed_rows_error(name, _said(known), sum(rows for _, rows in known))


def make_changed_rows_error(name: str, said: int, rows: int) -> MetadataError:
    """Return the refusal of a table that had other rows."""
    return MetadataError(
        "{name} had {released_rows:,} rows when it was released, and has {rows:,} now. Which rows stay must "
        "not depend on their reports, or every estimate is wrong.",
        hint=(
            "Group by a pass-through column with by= (--by NAME). If rows were chosen without looking at reports, pass "
            "description=rx.description(data) (--description {name})."
        ),
        name=name,
        released_rows=said,
        rows=rows,
    )


def _said(parts: Parts) -> int:
    """Return how many rows a folder says that it has: each part its own, or all of them those of the whole."""
    said = [each.rows or 0 for each, _ in parts]
    is_split = len(set(said)) == 1 and sum(rows for _, rows in parts) <= said[0]
    return said[0] if is_split else sum(said)


# The levels of an object are bits of one word, so that an id that stands twice at one level is seen.
MOST_LEVELS = 63


class Described(Protocol):
    """Something that was released and says what it holds: a file, or a frame in the place of one."""

    @property
    def path(self) -> Path:
        """What it is called in messages."""

    @property
    def description(self) -> FileDescription:
        """What it says about itself."""


@dataclass(frozen=True, slots=True)
class CountedColumn:
    """One released column: what its description says, the levels it stands at, and its name in every file."""

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
    """One released file and what it says about itself."""

    path: Path
    table: TableFile
    description: FileDescription
    parts: list[Path] = field(default_factory=list)
    said: list[tuple[FileDescription, TableFile]] = field(default_factory=list)
    """What each part says about itself."""
    is_told: bool = False
    """Whether a person said what it holds, so that nobody knows what became of its rows."""

    def counted(self) -> list[tuple[FileDescription, int]]:
        """Return what each part says about itself, and how many rows it has. Where it says none, none are counted."""
        return [(each, table.count_rows()) for each, table in self.said if each.rows is not None]

    def find_released_column(self, wanted: str | None) -> str:
        """Return the name of the released column that is meant."""
        names = list(self.description.columns)
        if wanted is None and len(names) == 1:
            return names[0]
        if wanted is None:
            listed = ", ".join(map(repr, names[:12]))
            raise ColumnError(
                "{path!r} has several released columns ({listed}).",
                hint="Pass column= (--column NAME).",
                path=str(self.path),
                listed=listed,
            )
        found = self.description.find_column(wanted)
        if found is None:
            raise self._no_released(wanted, names)
        return found

    def find_crosstab_columns(self, wanted: str | None, crosstab: str) -> tuple[str | None, str | None]:
        """Return the names of both columns, None for one that stands in another file."""
        names = list(self.description.columns)
        second = self.description.find_column(crosstab)
        others = [name for name in names if name != second]
        first = None if wanted is None else self.description.find_column(wanted)
        if wanted is None and others:
            first = others[0] if len(others) == 1 else self.find_released_column(None)
        if first is None and second is None:
            raise self._no_released(crosstab if wanted is None else wanted, names)
        return first, second

    def require_passthrough_column(self, name: str) -> None:
        """Refuse what cannot make groups: a column that is not there, a released one, the ids."""
        if name in self.description.columns:
            raise ColumnError(
                "{name!r} is a released column: a group of its reports is not a group of objects. Two "
                "released columns make a two-way table.",
                hint="Pass the second column as crosstab= (--crosstab NAME).",
                name=name,
            )
        if name == self.description.id_column:
            raise ColumnError(
                "{name!r} is the id column, so each individual would be a separate group.",
                hint="Group by a pass-through column.",
                name=name,
            )
        if name not in self.table.schema.names:
            kept = set(self.table.schema.names) - {self.description.id_column, *self.description.columns}
            hint = self.table.names.hint(name, sorted(kept))
            raise ColumnError(
                "{path!r} has no pass-through column {column!r}.",
                hint="{suggestion}",
                suggestion=hint.strip() or "Release it with passthrough=.",
                path=str(self.path),
                column=name,
            )

    def _no_released(self, name: str, names: list[str]) -> ColumnError:
        """Return the refusal; the names of a description are what somebody released, and may be shown."""
        return ColumnError(
            "{path!r} has no released column {column!r}.",
            hint="{nearest}",
            path=str(self.path),
            nearest=suggest_name(name, names),
            column=name,
        )

    def relation(self, connection: Any, view: str, columns: dict[str, str]) -> str:
        """Return SQL for some columns under other names. DuckDB reads Parquet itself, and what Arrow reads as Arrow."""
        folded = [name.casefold() for name in self.table.schema.names]
        # DuckDB does not tell names by case, and takes these letters of a path for a pattern.
        plain = len(set(folded)) == len(folded) and not set("*?[{") & set("".join(map(str, self.parts)))
        if self.table.format is TableFormat.PARQUET and plain:
            listed = ", ".join(f"{identifier(name)} AS {alias}" for alias, name in columns.items())
            files = ", ".join("'" + str(part.absolute()).replace("'", "''") + "'" for part in self.parts)
            return f"(SELECT {listed} FROM read_parquet([{files}], hive_partitioning = false))"  # noqa: S608
        schema = pa.schema(
            [(alias, get_comparable_type(self.table.schema.field(name).type)) for alias, name in columns.items()]
        )
        batches = _renamed(self.table.batches(list(columns.values())), columns, schema)
        connection.register(view, pa.RecordBatchReader.from_batches(schema, batches))
        return view


def open_released_files(paths: Sequence[Path], told: Sequence[Path] = ()) -> list[ReleasedFile]:
    """Open files that are to be counted together; `told` are files that say what they hold instead of themselves."""
    if told and len(told) != len(paths):
        raise MetadataError(
            "Several files need one description each.",
            hint="Pass description= (--description FILE) once for each file, in the same order.",
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
    sources: Sequence[Path | None] = told or [None] * len(paths)
    return [_open(path, source) for path, source in zip(paths, sources, strict=True)]


def _open(path: Path, told: Path | None) -> ReleasedFile:
    """Open a released file and check that it is what its description, or that of `told`, says."""
    is_read = True
    try:
        table, description = open_released_file(path) if told is None else _described_as(path, told)
        file = ReleasedFile(path, table, description, list_table_files(path), is_told=told is not None)
        for part in file.parts:
            other = TableFile(part) if len(file.parts) > 1 else table
            own = other.description()
            its = own if told is None else require_same_description(description, own, repr(str(part)))
            if its is None or its != description or not (other is table or _same_types(table, other, description)):
                raise MetadataError(
                    "{part!r} has another release, level or other columns than the first file of the folder.",
                    hint="Put files of one release into a folder.",
                    part=str(part),
                )
            file.said.append((its, other))
    except (OSError, UnicodeError, csv.Error) as problem:
        if isinstance(problem, TableFileError):
            raise
        is_read = False
    if not is_read:  # raised outside, so that no context shows what the file holds
        raise TableFileError(
            "{path!r} or its metadata cannot be read.", hint="Check the file, and that you may read it.", path=str(path)
        )
    for name in (description.id_column, *description.columns):
        if table.schema.names.count(name) != 1:
            raise MetadataError(
                "The metadata of {path!r} names columns that the file does not have.",
                hint="Pass the file as it was released.",
                path=str(path),
            )
    return file


def _described_as(path: Path, told: Path) -> tuple[TableFile, FileDescription]:
    """Open a file of which another one says what it holds: it says nothing itself, or not of the rows that it has."""
    table, whole = TableFile(path), open_released_file(told)[1]
    columns = {name: column for name, column in whole.columns.items() if name in table.schema.names}
    if not columns:
        raise MetadataError(
            "{path!r} has none of the released columns in its description.",
            hint="Pass the description of this file.",
            path=str(path),
        )
    return table, replace(whole, columns=columns, rows=None)


def _same_types(table: TableFile, other: TableFile, description: FileDescription) -> bool:
    names = (description.id_column, *description.columns)
    return all(
        name in table.schema.names
        and name in other.schema.names
        and table.schema.field(name).type == other.schema.field(name).type
        for name in names
    )


_PATH = {
    "path.release": "another release",
    "path.attribute": "another attribute",
    "encoding": "another encoding",
    "values": "other values",
    "range": "another range",
    "clip": "numbers that were clipped, or not",
    "options": "other options of its encoding",
    "key_fingerprint": "another key",
    "id_type": "another kind of ids",
}


def make_counted_column(files: Sequence[Described], names: Sequence[str | None]) -> CountedColumn:
    """Return the column that stands in all these files, or refuse files that do not continue each other's paths."""
    found = [(file, file.description.columns[name]) for file, name in zip(files, names, strict=True) if name]
    first_file, first = found[0]
    levels = {}
    for file, description in found:
        for part, words in _PATH.items():
            if attrgetter(part)(description) != attrgetter(part)(first):
                raise MetadataError(
                    "{file!r} has {words} than {first_file!r}. Only files of one release and column are "
                    "counted together.",
                    hint="Estimate the files separately.",
                    file=str(file.path),
                    words=words,
                    first_file=str(first_file.path),
                )
        mechanism = description.mechanism()
        if mechanism.name != description.encoding:
            raise MetadataError(
                "Unknown mechanism {encoding!r} in the metadata.",
                hint="Install the version of relaxdp that released the file.",
                encoding=description.encoding,
            )
        if mechanism.domain == "words":
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
    if len(levels) > MOST_LEVELS:
        raise MetadataError(
            "There are {levels} levels. At most {most} can be counted together.",
            hint="Count fewer files at once.",
            most=MOST_LEVELS,
            levels=len(levels),
        )
    return CountedColumn(first, first.mechanism(), list(names), dict(sorted(levels.items())))


def require_crosstab_columns(rows: CountedColumn, columns: CountedColumn) -> None:
    """Refuse two columns that cannot be the sides of a table."""
    for axis in (rows, columns):
        if axis.mechanism.measure is not None:
            raise EstimationError(
                "A crosstab needs columns with declared values, and {column!r} contains numbers.",
                hint="Choose another column.",
                column=axis.name,
            )
    one, two = rows.description, columns.description
    if (one.path, one.key_fingerprint) == (two.path, two.key_fingerprint):
        raise MetadataError(
            "{rows!r} and {columns!r} are the same answers, so their noise is not independent.",
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


def _renamed(batches: Iterator[Any], columns: dict[str, str], schema: Any) -> Iterator[Any]:
    for batch in batches:
        arrays = [batch.column(name).cast(schema.field(alias).type) for alias, name in columns.items()]
        yield pa.RecordBatch.from_arrays(arrays, schema=schema)


def identifier(name: str) -> str:
    """Return a column's name as SQL takes it."""
    return '"' + name.replace('"', '""') + '"'


# Frames in the place of files.


class InMemoryTable(TableFile):
    """A frame in the place of a file: the columns that are counted as Arrow has them, and the names of the others."""

    def __init__(self, name: str, names: ColumnNames, table: pa.Table) -> None:
        self.path, self.format, self.rows, self._files = Path(name), TableFormat.FRAME, table.num_rows, []
        self._table, self.names = table, names
        others = [(each, pa.null()) for each in names.usable_names if each not in table.column_names]
        self.schema = pa.schema([*table.schema, *(pa.field(*each) for each in others)])

    def batches(self, columns: Sequence[str]) -> Generator[Any]:
        """Return the rows of some columns as record batches."""
        yield from self._table.select(list(dict.fromkeys(columns))).to_batches(BATCH_ROWS)


def open_frames(
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
        _open_frame(name, native, told, wanted, ids=ids)
        for name, native, told in zip(names, natives, said, strict=True)
    ]
    require_unchanged_rows([(str(file.path), file.counted()) for file in files])
    return files


def _open_frame(name: str, native: Any, told: FileDescription | None, wanted: list[str], *, ids: bool) -> ReleasedFile:
    frame = DataFrameReader(native)
    own = read_frame_description(native)
    said = told or own or require_description(native)  # the last of which refuses
    columns = {each: column for each, column in said.columns.items() if each in frame.names}
    if not columns:
        raise MetadataError(
            "{name} has none of the columns of its description.",
            hint="Pass the data frame as it was released.",
            name=name,
        )
    known = require_same_description(replace(said, columns=columns), own, name)
    needed = [each for each in frame.names if each in columns or each in wanted]
    has_ids = known.id_column in frame.names
    if ids and not has_ids:
        raise ColumnError(
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
    counted = InMemoryTable(name, frame.all_names, table)
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
