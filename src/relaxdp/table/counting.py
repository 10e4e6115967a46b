"""Counts of released columns: DuckDB reads, joins and counts, so that neither rows nor ids pass through Python.

One file is one plain `group by`. Several files of the same path may hold the same objects at different levels: then
each object counts once, at its highest level, because a lower report of it adds nothing. That needs the ids, which
DuckDB groups within a memory limit, on disk where they do not fit. Names from a file are quoted where they enter SQL.
"""

from __future__ import annotations

import csv
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from decimal import Decimal
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from relaxdp.draw.canonical import kind_of
from relaxdp.errors import CountsError, DescriptionError, MixedFilesError, TableFileError, UnknownColumnError
from relaxdp.estimate.combined import Combined
from relaxdp.estimate.counts import Counts, Method
from relaxdp.estimate.cross import CrossTable
from relaxdp.estimate.result import Result
from relaxdp.front import Mechanism
from relaxdp.law.epsilon import epsilon_text
from relaxdp.law.threshold import retention
from relaxdp.table.description import ColumnDescription, FileDescription
from relaxdp.table.formats import Format, Input, files_of, released

MEMORY_LIMIT = "1GB"
MOST_GROUPS = 1_000
MOST_CELLS = 10_000_000
# The levels of an object are bits of one word, so that an id that stands twice at one level is seen.
MOST_LEVELS = 63

Integers = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Axis:
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
        return self.mechanism.encoding.labels


@dataclass(frozen=True, slots=True)
class Tally:
    """The counts of one released column: one entry for every group, or a single one where no groups were asked for."""

    axis: Axis
    groups: list[tuple[str | None, Counts]]

    @property
    def objects(self) -> int:
        """How many objects were counted."""
        return sum(counts.objects for _, counts in self.groups)

    @property
    def levels(self) -> dict[str, int]:
        """How many objects stand at each epsilon, ascending."""
        texts = [epsilon_text(epsilon) for epsilon in self.axis.levels.values()]
        found = {text: sum(counts.levels.get(text, 0) for _, counts in self.groups) for text in texts}
        return {text: objects for text, objects in found.items() if objects}


@dataclass(frozen=True, slots=True)
class PairTally:
    """The counts of two released columns of the same objects: a two-way table for every pair of levels."""

    rows: Axis
    columns: Axis
    tables: dict[tuple[str, str], CrossTable]

    @property
    def objects(self) -> int:
        """How many objects have a report in both columns."""
        return sum(table.objects for table in self.tables.values())

    def estimate(self, method: Method = "average") -> Result:
        """Return one estimate from all pairs of levels; the methods are those of `Counts.estimate`."""
        parts = list(self.tables.values())
        if len(parts) == 1:
            return parts[0]
        weights = [part.objects / (_noise(part) if method == "precision" else 1.0) for part in parts]
        return Combined(parts, [weight / sum(weights) for weight in weights])


def count(
    paths: Sequence[Path], *, column: str | None = None, by: str | None = None, memory_limit: str = MEMORY_LIMIT
) -> Tally:
    """Count a released column of one or many files, for each value of the kept column `by` if one is named."""
    files = _open_all(paths)
    axis = _axis(files, [file.released_name(column) for file in files])
    if by is not None:
        for file in files:
            file.check_kept(by)
    with _database(paths, memory_limit) as connection:
        cells = _Cells(connection, files, [axis], by)
    table = cells.table(len(cells.groups), len(axis.levels), len(axis.labels))
    return Tally(axis, [(group, _counts(axis, part)) for group, part in zip(cells.groups, table, strict=True)])


def count_pairs(
    paths: Sequence[Path], *, column: str | None = None, cross: str, memory_limit: str = MEMORY_LIMIT
) -> PairTally:
    """Count the pairs of two released columns. They may stand in different files: the ids bring them together."""
    files = _open_all(paths)
    names = [file.pair_names(column, cross) for file in files]
    for place, wanted in enumerate((column, cross)):
        if not any(pair[place] for pair in names):
            what = f"column {wanted!r}" if wanted else f"other column than {cross!r}"
            raise UnknownColumnError(f"a two-way table needs two released columns: there is no {what}.")
    rows, columns = (_axis(files, [pair[place] for pair in names]) for place in (0, 1))
    _check_pair(rows, columns)
    with _database(paths, memory_limit) as connection:
        cells = _Cells(connection, files, [rows, columns], None)
    table = cells.table(1, len(rows.levels), len(rows.labels), len(columns.levels), len(columns.labels))[0]
    tables = {}
    for one, (row_level, row_epsilon) in enumerate(rows.levels.items()):
        for two, (column_level, column_epsilon) in enumerate(columns.levels.items()):
            counts = table[one, :, two, :]
            if counts.any():
                tables[epsilon_text(row_epsilon), epsilon_text(column_epsilon)] = CrossTable(
                    rows=rows.labels,
                    columns=columns.labels,
                    counts=counts,
                    row_support=rows.mechanism.encoding.support(retention(row_level)),
                    column_support=columns.mechanism.encoding.support(retention(column_level)),
                )
    return PairTally(rows, columns, tables)


def _counts(axis: Axis, levels: Integers) -> Counts:
    counts = Counts(axis.mechanism)
    for epsilon, level in zip(axis.levels.values(), levels, strict=True):
        if level.any():
            counts.add_counts(level, epsilon=epsilon)
    return counts


def _noise(table: CrossTable) -> float:
    """Return the variance of one object's product where it has neither value: what the noise alone makes of it."""
    supports = (table.row_support, table.column_support)
    rows, columns = (support.noise * (1 - support.noise) / support.gain**2 for support in supports)
    return float(rows * columns)


# Which files, and which of their columns.


@dataclass(frozen=True, slots=True)
class _File:
    path: Path
    table: Input
    description: FileDescription
    parts: list[Path] = field(default_factory=list)

    def released_name(self, wanted: str | None) -> str:
        """Return the name of the released column that is meant."""
        names = list(self.description.columns)
        if wanted is None and len(names) == 1:
            return names[0]
        if wanted is None:
            listed = ", ".join(map(repr, names[:12]))
            raise UnknownColumnError(f"{str(self.path)!r} has several released columns ({listed}): pick one.")
        if wanted not in names:
            raise self._unknown(wanted, names, "released column")
        return wanted

    def pair_names(self, wanted: str | None, cross: str) -> tuple[str | None, str | None]:
        """Return the names of both columns, None for one that stands in another file."""
        names = list(self.description.columns)
        others = [name for name in names if name != cross]
        first = wanted if wanted in names else None
        if wanted is None and others:
            first = others[0] if len(others) == 1 else self.released_name(None)
        second = cross if cross in names else None
        if first is None and second is None:
            raise self._unknown(cross if wanted is None else wanted, names, "released column")
        return first, second

    def check_kept(self, name: str) -> None:
        """Refuse what cannot make groups: a column that is not there, a released one, the ids."""
        if name in self.description.columns:
            raise UnknownColumnError(
                f"{name!r} is a released column: a group of its reports is not a group of objects. "
                "Two released columns make a two-way table (--cross)."
            )
        if name == self.description.id_column:
            raise UnknownColumnError(f"{name!r} holds the ids: every object would be a group of its own.")
        if name not in self.table.schema.names:
            kept = set(self.table.schema.names) - {self.description.id_column, *self.description.columns}
            raise self._unknown(name, sorted(kept), "kept column")

    def _unknown(self, name: str, names: list[str], what: str) -> UnknownColumnError:
        near = get_close_matches(name, names, 1)
        if near:
            hint = f" Did you mean {near[0]!r}?"
        else:
            hint = f" It has: {', '.join(map(repr, names[:12]))}." if names else ""
        return UnknownColumnError(f"{str(self.path)!r} has no {what} {name!r}.{hint}", column=name)

    def relation(self, connection: Any, view: str, columns: dict[str, str]) -> str:
        """Return SQL for some columns under other names. DuckDB reads Parquet itself, and what Arrow reads as Arrow."""
        folded = [name.casefold() for name in self.table.schema.names]
        # DuckDB does not tell names by case, and takes these letters of a path for a pattern.
        plain = len(set(folded)) == len(folded) and not set("*?[{") & set("".join(map(str, self.parts)))
        if self.table.format is Format.PARQUET and plain:
            listed = ", ".join(f"{_identifier(name)} AS {alias}" for alias, name in columns.items())
            files = ", ".join("'" + str(part.absolute()).replace("'", "''") + "'" for part in self.parts)
            return f"(SELECT {listed} FROM read_parquet([{files}], hive_partitioning = false))"  # noqa: S608
        schema = pa.schema(
            [(alias, _plain_type(self.table.schema.field(name).type)) for alias, name in columns.items()]
        )
        batches = _renamed(self.table.batches(list(columns.values())), columns, schema)
        connection.register(view, pa.RecordBatchReader.from_batches(schema, batches))
        return view


def _open_all(paths: Sequence[Path]) -> list[_File]:
    seen = set()
    for path in paths:
        if path.absolute() in seen:
            raise MixedFilesError(f"{str(path)!r} is named twice: its objects would count twice.")
        seen.add(path.absolute())
    return [_open(path) for path in paths]


def _open(path: Path) -> _File:
    """Open a released file and check that it is what its description says."""
    sentence = None
    try:
        table, description = released(path)
        file = _File(path, table, description, files_of(path))
        for part in file.parts[1:]:
            other = Input(part)
            if other.description() != description or not _same_types(table, other, description):
                raise MixedFilesError(f"{str(part)!r} is not of the same release, level and columns as the first file.")
    except (OSError, UnicodeError, csv.Error) as problem:
        if isinstance(problem, TableFileError):
            raise
        sentence = f"{str(path)!r} or its description cannot be read."
    if sentence is not None:  # raised outside, so that no context shows what the file holds
        raise TableFileError(sentence, path=str(path))
    for name in (description.id_column, *description.columns):
        if table.schema.names.count(name) != 1:
            raise DescriptionError(f"the description of {str(path)!r} speaks of other columns than the file has.")
    return file


def _same_types(table: Input, other: Input, description: FileDescription) -> bool:
    names = (description.id_column, *description.columns)
    return all(
        name in table.schema.names
        and name in other.schema.names
        and table.schema.field(name).type == other.schema.field(name).type
        for name in names
    )


_PATH = {
    "release": "another release",
    "attribute": "another attribute",
    "encoding": "another encoding",
    "values": "other values",
    "range": "another range",
    "function": "another function",
    "key_fingerprint": "another key",
    "id_type": "another kind of ids",
}


def _axis(files: list[_File], names: list[str | None]) -> Axis:
    """Return the column that stands in all these files, or refuse files that do not continue each other's paths."""
    found = [(file, file.description.columns[name]) for file, name in zip(files, names, strict=True) if name]
    first_file, first = found[0]
    levels = {}
    for file, description in found:
        for part, words in _PATH.items():
            if getattr(description, part) != getattr(first, part):
                raise MixedFilesError(
                    f"{str(file.path)!r} holds {words} than {str(first_file.path)!r}: "
                    "only files of one path are counted together."
                )
        mechanism = description.mechanism()
        if mechanism.encoding.name != description.encoding:
            raise DescriptionError(f"the encoding {description.encoding!r} is not known to this version.")
        if mechanism.encoding.threshold(description.epsilon) != description.threshold:
            raise DescriptionError(
                f"the description of {str(file.path)!r} contradicts itself: its threshold is not that of "
                f"epsilon {epsilon_text(description.epsilon)}."
            )
        levels[description.threshold] = description.epsilon
    if len(levels) > MOST_LEVELS:
        raise MixedFilesError(f"at most {MOST_LEVELS} levels are counted together, not {len(levels)}.")
    return Axis(first, first.mechanism(), names, dict(sorted(levels.items())))


def _check_pair(rows: Axis, columns: Axis) -> None:
    for axis in (rows, columns):
        if axis.description.values is None:
            raise CountsError(f"a two-way table is of columns with declared values; {axis.name!r} holds numbers.")
    one, two = rows.description, columns.description
    if (one.release, one.attribute, one.key_fingerprint) == (two.release, two.attribute, two.key_fingerprint):
        raise MixedFilesError(
            f"{rows.name!r} and {columns.name!r} are the same answers: their noise is not independent."
        )
    if one.id_type != two.id_type:
        raise MixedFilesError(f"the ids of {rows.name!r} and of {columns.name!r} are of different kinds.")


# What is asked of DuckDB.


class _Cells:
    """How many objects there are in each cell: a group, and for each column a level and a value, all by position."""

    def __init__(self, connection: Any, files: list[_File], axes: list[Axis], by: str | None) -> None:
        self._connection, self._files, self._axes, self._by = connection, files, axes, by
        self.groups: list[str | None] = [None]
        for number, axis in enumerate(axes):
            connection.register(f"labels{number}", _label_table(axis))
            value = "CAST(value AS UUID)" if _kind(axis) == "uuid" else "value"
            declared = f"SELECT {value} AS value, code FROM labels{number}"  # noqa: S608
            connection.execute(f"CREATE VIEW declared{number} AS {declared}")
        self._group, *self._places, self._objects = self._one() if len(files) == 1 else self._many()

    def table(self, *shape: int) -> Integers:
        """Return the objects of all cells, the empty ones too."""
        size = int(np.prod(shape))
        flat = np.ravel_multi_index((self._group, *self._places), shape)
        return np.bincount(flat, self._objects, minlength=size).astype(np.int64).reshape(shape)

    def _one(self) -> list[Integers]:
        """Count a single file by its reports, without looking at an id."""
        file = self._files[0]
        numbers = range(len(self._axes))
        columns = {f"report{number}": self._axes[number].names[0] or "" for number in numbers}
        columns |= {"kept": self._by} if self._by is not None else {}
        source = file.relation(self._connection, "file0", columns)
        counted = f"SELECT {', '.join(columns)}, count(*) AS objects FROM {source} GROUP BY ALL"  # noqa: S608
        if self._by is not None:
            self._connection.execute(f"CREATE TEMP TABLE counted AS {counted}")
            self._name_groups("SELECT kept FROM counted")
            counted = "SELECT * FROM counted"
        self._check_size()
        group, join = self._group_join("counted.kept")
        codes = ", ".join(f"declared{number}.code" for number in numbers)
        joins = " ".join(
            f"LEFT JOIN declared{number} ON {_report(self._axes[number], file, 0, f'counted.report{number}')} "
            f"= declared{number}.value"
            for number in numbers
        )
        found = self._connection.execute(
            f"SELECT {group}, {codes}, counted.objects FROM ({counted}) AS counted {joins} {join}"  # noqa: S608
        ).fetchnumpy()
        group_codes, *codes_found, objects = found.values()
        if not len(objects):
            raise CountsError(f"{str(file.path)!r} has no rows: there is nothing to estimate.")
        for axis, each in zip(self._axes, codes_found, strict=True):
            undeclared = np.ma.getmaskarray(each)
            _refuse_undeclared(axis, int(objects[undeclared].sum()), int(objects.sum()))
        places = [each for code in codes_found for each in (np.zeros(len(objects), np.int64), code)]
        return [np.asarray(each, dtype=np.int64) for each in (group_codes, *places, objects)]

    def _many(self) -> list[Integers]:
        """Count every object once, at its highest level.

        Level, group and value of a report are packed into one integer, the level on top, so that the largest one is
        the report that counts: states of a fixed size, which go to disk where there are too many of them.
        """
        if self._by is not None:
            kept = [
                file.relation(self._connection, f"kept{n}", {"kept": self._by}) for n, file in enumerate(self._files)
            ]
            distinct = [f"SELECT DISTINCT kept::VARCHAR AS kept FROM {each}" for each in kept]  # noqa: S608
            self._name_groups(" UNION ALL ".join(distinct))
        self._check_size()
        reports = " UNION ALL ".join(self._packed(number, file) for number, file in enumerate(self._files))
        numbers = range(len(self._axes))
        each = ", ".join(
            f"max(packed{n}) AS best{n}, count(place{n}) AS rows{n}, count(packed{n}) AS known{n}, "
            f"coalesce(bit_count(bit_or(1::UBIGINT << place{n})), 0) AS levels{n}"
            for n in numbers
        )
        best = ", ".join(f"best{n}" for n in numbers)
        sums = ", ".join(
            f"sum(rows{n})::BIGINT, sum(rows{n} - known{n})::BIGINT, count(*) FILTER (rows{n} > levels{n})"
            for n in numbers
        )
        found = self._connection.execute(
            f"WITH reports AS ({reports}), objects AS (SELECT id, {each} FROM reports GROUP BY id) "  # noqa: S608
            f"SELECT {best}, count(*), count(*) FILTER (id IS NULL), {sums} FROM objects GROUP BY {best}"
        ).fetchnumpy()
        columns, axes = list(found.values()), len(self._axes)
        bests, (objects, missing), sums_found = columns[:axes], columns[axes : axes + 2], columns[axes + 2 :]
        if not len(objects):
            raise CountsError("the files have no rows: there is nothing to estimate.")
        if missing.sum():
            raise CountsError("the id of a row is missing, or of another kind than the description says.")
        for place, axis in enumerate(self._axes):
            rows, undeclared, repeated = (int(each.sum()) for each in sums_found[3 * place : 3 * place + 3])
            _refuse_undeclared(axis, undeclared, rows)
            if repeated:
                verb = "ids stand" if repeated > 1 else "id stands"
                raise CountsError(
                    f"{repeated:,} {verb} in more than one row at the same level. "
                    "One id is one object: within a file, and among files of one level, it stands once."
                )
        both = ~np.logical_or.reduce([np.ma.getmaskarray(each) for each in bests])
        if not both.any():
            raise CountsError("no object has a report in both columns: there is nothing to estimate.")
        return [*self._unpacked([np.asarray(each[both], dtype=np.int64) for each in bests]), objects[both]]

    def _packed(self, number: int, file: _File) -> str:
        """Return SQL for the reports of one file: the id, and for each column the level and the packed report."""
        columns = {"id": file.description.id_column}
        axes = [(place, axis, axis.names[number]) for place, axis in enumerate(self._axes)]
        columns |= {f"report{place}": name for place, _, name in axes if name}
        columns |= {"kept": self._by} if self._by is not None else {}
        source = file.relation(self._connection, f"file{number}", columns)
        group, join = self._group_join("source.kept")
        parts, joins = [], [join]
        for place, axis, name in axes:
            if name is None:
                parts.append(f"NULL::INTEGER AS place{place}, NULL::BIGINT AS packed{place}")
                continue
            level = list(axis.levels).index(file.description.columns[name].threshold)
            upper = f"{level * len(self.groups)}::BIGINT + {group}" if place == 0 else f"{level}::BIGINT"
            parts.append(
                f"{level} AS place{place}, ({upper}) * {len(axis.labels)} + declared{place}.code AS packed{place}"
            )
            report = _report(axis, file, number, f"source.report{place}")
            joins.append(f"LEFT JOIN declared{place} ON {report} = declared{place}.value")
        return f"SELECT {_id(file)} AS id, {', '.join(parts)} FROM {source} AS source {' '.join(joins)}"  # noqa: S608

    def _unpacked(self, bests: list[Integers]) -> list[Integers]:
        places: list[Integers] = []
        group = np.zeros(len(bests[0]), np.int64)
        for number, (axis, best) in enumerate(zip(self._axes, bests, strict=True)):
            upper, code = np.divmod(best, len(axis.labels))
            if number == 0:
                upper, group = np.divmod(upper, len(self.groups))
            places += [upper, code]
        return [group, *places]

    def _name_groups(self, kept: str) -> None:
        """Give every group a number, in an order that people expect."""
        distinct = f"SELECT DISTINCT CAST(kept AS VARCHAR) AS name FROM ({kept})"  # noqa: S608
        found = [name for (name,) in self._connection.execute(f"{distinct} LIMIT {MOST_GROUPS + 1}").fetchall()]
        if len(found) > MOST_GROUPS:
            raise CountsError(f"the column {self._by!r} makes more than {MOST_GROUPS:,} groups.")
        self.groups = sorted(found, key=_natural) or [None]
        names = pa.array(self.groups, pa.string())
        self._connection.register("groups", pa.table({"name": names, "code": pa.array(range(len(names)), pa.int64())}))

    def _group_join(self, kept: str) -> tuple[str, str]:
        if self._by is None:
            return "0::BIGINT", ""
        return "groups.code", f"LEFT JOIN groups ON CAST({kept} AS VARCHAR) IS NOT DISTINCT FROM groups.name"

    def _check_size(self) -> None:
        cells = len(self.groups)
        for axis in self._axes:
            cells *= len(axis.labels) * len(axis.levels)
        if cells > MOST_CELLS and (len(self._axes) > 1 or self._by is not None):
            raise CountsError(f"the table would have {cells:,} cells, and at most {MOST_CELLS:,} are counted.")


def _refuse_undeclared(axis: Axis, undeclared: int, total: int) -> None:
    if undeclared:
        verb = "reports are" if undeclared > 1 else "report is"
        raise CountsError(
            f"{undeclared:,} of {total:,} {verb} not one of the {len(axis.labels):,} declared values of {axis.name!r}: "
            "the file was changed after its release.",
            undeclared=undeclared,
        )


def _natural(name: str | None) -> tuple[int, float, str]:
    """Sort numbers by size, then text, then what is missing."""
    if name is None:
        return (2, 0.0, "")
    try:
        return (0, float(name), name) if float(name) == float(name) else (1, 0.0, name)
    except ValueError:
        return (1, 0.0, name)


def _kind(axis: Axis) -> str:
    return str(kind_of(axis.labels[0]))


def _label_table(axis: Axis) -> Any:
    """Return the declared values with their positions, in the type that reports are compared in."""
    kind, labels = _kind(axis), list(axis.labels)
    if kind == "integer":
        values = pa.array(labels, pa.uint64() if max(labels) >= 2**63 else pa.int64())
    else:
        values = pa.array([str(label) for label in labels] if kind == "uuid" else labels)
    return pa.table({"value": values, "code": pa.array(range(len(labels)), pa.int64())})


_TESTS = {
    "text": pa.types.is_string,
    "integer": pa.types.is_integer,
    "number": pa.types.is_floating,
    "bytes": pa.types.is_binary,
    "uuid": lambda kind: getattr(kind, "extension_name", None) == "arrow.uuid",
}
_FROM_TEXT = {
    "text": "{}",
    "integer": "TRY_CAST({} AS HUGEINT)",
    "number": "TRY_CAST({} AS DOUBLE)",
    "bytes": "encode({})",
    "uuid": "TRY_CAST({} AS UUID)",
}


def _report(axis: Axis, file: _File, number: int, sql: str) -> str:
    """Return SQL for a report as a value. A number is not its text, except in CSV, where everything is text."""
    kind, name = _kind(axis), str(axis.names[number])
    found = _plain_type(file.table.schema.field(name).type)
    if file.table.format is Format.CSV:
        return _FROM_TEXT[kind].format(sql)
    if not _TESTS[kind](found):
        raise DescriptionError(
            f"the column {name!r} of {str(file.path)!r} is of type {found}, and its declared values are not."
        )
    return sql


def _id(file: _File) -> str:
    id_type = next(iter(file.description.columns.values())).id_type
    if file.table.format is Format.CSV and id_type in _FROM_TEXT:
        return _FROM_TEXT[id_type].format("source.id")
    return "source.id"


def _plain_type(kind: Any) -> Any:
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


def _identifier(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


@contextmanager
def _database(paths: Sequence[Path], memory_limit: str) -> Iterator[Any]:
    """Open DuckDB in memory, with a folder for what does not fit. Its messages quote rows, so none of them is shown."""
    import duckdb  # noqa: PLC0415

    named = repr(str(paths[0])) if len(paths) == 1 else "one of the files"
    sentence = ""
    with tempfile.TemporaryDirectory(prefix="relaxdp-") as folder:
        settings: dict[str, str | bool | int | float | list[str]] = {
            "memory_limit": memory_limit,
            "temp_directory": folder,
            "preserve_insertion_order": False,
            "autoinstall_known_extensions": False,
            "autoload_known_extensions": False,
            "python_enable_replacements": False,
        }
        with duckdb.connect(":memory:", config=settings) as connection:
            try:
                yield connection
            except duckdb.InterruptException:
                raise KeyboardInterrupt from None
            except duckdb.OutOfMemoryException:
                sentence = f"counting takes more memory or disk than there is ({memory_limit} of memory are used)."
            except duckdb.Error:
                sentence = f"{named} is damaged, cut off, or has ids or reports of another type than it says."
    if sentence:
        raise TableFileError(sentence) from None
