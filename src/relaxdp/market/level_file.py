"""One level of a listing as a Parquet file: ids, reports and, where rows are at different levels, the level of each.

The digest of a level depends on its path, level, ids and reports only. Another program may write the rows again, in any
order, and the digest stays the same. So a receipt proves what was delivered, and a level is recognized when it is
published again.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from contextlib import closing
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pa_parquet

from relaxdp.errors import RelaxdpError
from relaxdp.mechanisms.base import Mechanism
from relaxdp.mechanisms.bloom import Bloom
from relaxdp.mechanisms.bridged_columns import iterate_slices
from relaxdp.mechanisms.registry import get_mechanism_arguments
from relaxdp.mechanisms.report_arrays import join_report_parts, read_report_column
from relaxdp.sampling.arrow_columns import decode_dictionary, read_ids
from relaxdp.server_errors import LevelFileError
from relaxdp.tables.files import BATCH_ROWS, FileKind, TableFile, TableFormat, read_description
from relaxdp.tables.metadata import ColumnDescription, FileDescription
from relaxdp.tables.release_output import ReleaseWriter
from relaxdp.tables.released_files import MAX_LEVELS as MAX_ROW_LEVELS
from relaxdp.tables.table_columns import get_id_type, get_storage_column, remove_hidden_values
from relaxdp.tables.table_source import IdOrderCheck, NotAscendingError
from relaxdp.theory.epsilon import format_epsilon
from relaxdp.theory.randomized_response import Level

MAX_ROWS = 50_000_000
MAX_BYTES = 2 << 30
MAX_LETTERS = 1_000
MAX_VALUES = 10_000
MAX_FOOTER_BYTES = 16 << 20
MAX_LIMITS = MAX_ROW_LEVELS - 1  # a file states its own level too
_SMALL_BATCH = 1 << 14
_HEADER = b"relaxdp market level 1\n"
_PUBLISH = "Publish from the vault: relaxdp market publish NAME --levels 0.5=60,1=160."


@dataclass(frozen=True, slots=True)
class LevelReports:
    """The reports of a column at one level of a listing. A row at a lower level than the listing's states it."""

    id_column: str
    column: str
    description: ColumnDescription
    ids: pa.Array
    reports: pa.Array
    row_epsilons: pa.Array | None = None
    """The level of each row as text; None where all rows are at the level itself."""

    @property
    def mechanism(self) -> Mechanism:
        """The mechanism of the reports."""
        return require_tradable_mechanism(self.description)

    @property
    def level(self) -> Level:
        """The level of the listing that this is."""
        return self.mechanism.level(self.description.epsilon)

    def count_rows(self) -> dict[str, int]:
        """Return the number of rows at each level."""
        if self.row_epsilons is None:
            return {format_epsilon(self.description.epsilon): len(self.ids)}
        return dict(Counter(decode_dictionary(self.row_epsilons).to_pylist()))


def require_tradable_mechanism(description: ColumnDescription) -> Mechanism:
    """Return the mechanism of a column, or reject one that a market does not trade."""
    try:
        mechanism = description.mechanism()
    except RelaxdpError:
        raise LevelFileError("The mechanism of the column is unknown, or its values do not fit it.") from None
    if isinstance(mechanism, Bloom) or mechanism.name != description.encoding or len(mechanism.labels) > MAX_VALUES:
        raise LevelFileError(
            "The column holds RAPPOR reports or more than {maximum:,} values, which a market does not trade.",
            maximum=MAX_VALUES,
        )
    return mechanism


def describe_path(description: ColumnDescription) -> ColumnDescription:
    """Return the description of a column without its level. It names the path."""
    mechanism = require_tradable_mechanism(description)
    names = (description.path.release, description.path.attribute, description.key_fingerprint, description.id_type)
    if not all(map(_is_plain_text, names)):
        raise LevelFileError("The name of the release, the column, the key or the type of the ids is not plain text.")
    bare = replace(description, level_column=None, row_epsilons=(), **get_mechanism_arguments(mechanism))
    lowest = mechanism.level(1)
    return replace(bare, epsilon=lowest.epsilon, threshold=lowest.threshold)


def _is_plain_text(name: object) -> bool:
    try:
        return isinstance(name, str) and "\0" not in name and len(name.encode()) <= MAX_LETTERS
    except UnicodeEncodeError:  # half of a letter
        return False


def compute_path_digest(description: ColumnDescription) -> str:
    """Return the digest that names a path: key fingerprint, release, attribute and mechanism."""
    text = json.dumps(describe_path(description).to_dict(), sort_keys=True, ensure_ascii=True)
    return sha256(_HEADER + text.encode("ascii")).hexdigest()


def compute_level_digest(level: LevelReports) -> str:
    """Return the digest of path, level, ids and reports, for rows in any order.

    Ids, levels of rows and reports are hashed column by column, in the order of the ids, as little-endian numbers.
    """
    mechanism, level = level.mechanism, _sort_rows(level)
    head = {
        "path": compute_path_digest(level.description),
        "threshold": str(level.level.threshold),
        "rows": len(level.ids),
    }
    streams = lengths, letters, thresholds, codes, seeds = [sha256() for _ in range(5)]
    known = {each: mechanism.level(each).threshold for each in level.count_rows()}
    for start, stop in iterate_slices(mechanism, len(level.ids)):
        part = slice(start, stop)
        ids = read_ids(level.ids[part], start)
        if ids.integers is None:
            lengths.update(np.diff(ids.offsets).astype("<i8").tobytes())
            letters.update(ids.data[ids.offsets[0] : ids.offsets[-1]].tobytes())
        else:  # the same number has the same bytes in every type; one from 2**63 on is told from a negative one
            is_unsigned = ids.integers.dtype.kind == "u"
            numbers = ids.integers.astype("<u8" if is_unsigned else "<i8")
            lengths.update((numbers >> 63 == 1).astype(np.uint8).tobytes() if is_unsigned else bytes(len(numbers)))
            letters.update(numbers.tobytes())
        if level.row_epsilons is None:
            thresholds.update(np.full(len(ids), level.level.threshold, "<u8").tobytes())
        else:
            stated = decode_dictionary(level.row_epsilons[part]).to_pylist()
            thresholds.update(np.array([known[each] for each in stated], "<u8").tobytes())
        found, words = read_report_column(mechanism, level.reports[part])
        codes.update(found.astype(found.dtype.newbyteorder("<")).tobytes())
        if words is not None:
            seeds.update(words.astype("<u8").tobytes())
    text = json.dumps({**head, "columns": [each.hexdigest() for each in streams]}, sort_keys=True)
    return sha256(_HEADER + text.encode("ascii")).hexdigest()


def _sort_rows(level: LevelReports) -> LevelReports:
    try:
        IdOrderCheck().check(level.ids)
    except NotAscendingError:
        order = pc.sort_indices(get_storage_column(level.ids))
    else:
        return level
    rows = None if level.row_epsilons is None else level.row_epsilons.take(order)
    return replace(level, ids=level.ids.take(order), reports=level.reports.take(order), row_epsilons=rows)


def write_level_file(level: LevelReports, path: Path) -> None:
    """Write a level as every released file is written: with its description, and with nothing else."""
    names, arrays = [level.id_column, level.column], [level.ids, level.reports]
    if level.row_epsilons is not None:
        names.append(str(level.description.level_column))
        arrays.append(level.row_epsilons)
    schema = pa.schema([pa.field(name, array.type) for name, array in zip(names, arrays, strict=True)])
    description = FileDescription(level.id_column, {level.column: level.description}, rows=len(level.ids))
    writer = ReleaseWriter(path, FileKind(TableFormat.PARQUET), schema, description)
    try:
        for start in range(0, len(level.ids), BATCH_ROWS):
            parts = [array[start : start + BATCH_ROWS] for array in arrays]
            writer.write(pa.RecordBatch.from_arrays(parts, schema=writer.schema))
        writer.close()
    finally:
        writer.close_unfinished()


def read_level_file(path: Path, *, is_sorted: bool = True) -> LevelReports:
    """Read the file of a level that a stranger may have made. Its reports are checked and written again."""
    _check_footer(path)
    try:
        table = TableFile(path)
        description = read_description(path)
    except RelaxdpError:
        raise _make_damage_error() from None
    if description is None or table.format is not TableFormat.PARQUET or len(description.columns) != 1:
        raise LevelFileError("The file is not that of one released column.", hint=_PUBLISH)
    ((column, described),) = description.columns.items()
    mechanism = require_tradable_mechanism(described)
    path_description = describe_path(described)
    names = [description.id_column, column, *([described.level_column] if described.level_column is not None else [])]
    if not all(map(_is_plain_text, names)) or sorted(table.schema.names) != sorted(names):
        raise LevelFileError("The file has other columns than ids, reports and the level of each row.", hint=_PUBLISH)
    arrays = _read_columns(path, table, names)
    ids, reports = arrays[0], _rewrite_reports(mechanism, arrays[1])
    _check_ids(ids, described, is_sorted=is_sorted)
    _check_levels(mechanism, described)
    row_epsilons = None if len(arrays) < 3 else _read_row_epsilons(arrays[2], described)
    own = replace(
        path_description,
        epsilon=described.epsilon,
        threshold=described.threshold,
        level_column=described.level_column,
        row_epsilons=described.row_epsilons,
    )
    return LevelReports(description.id_column, column, own, ids, reports, row_epsilons)


def _check_levels(mechanism: Mechanism, described: ColumnDescription) -> None:
    if len(described.row_epsilons) > MAX_LIMITS:
        raise LevelFileError("Rows have more than {maximum} different levels.", maximum=MAX_LIMITS)
    own, *others = (mechanism.level(each) for each in (described.epsilon, *described.row_epsilons))
    if own.threshold != described.threshold or any(each > own for each in others):
        raise LevelFileError("The levels of the file contradict each other: no row is above the level of the file.")


def _check_footer(path: Path) -> None:
    """Reject a footer that would take more memory than a file of that size should. Its length is in the last bytes."""
    try:
        with path.open("rb") as file:
            file.seek(-8, os.SEEK_END)
            length, mark = int.from_bytes(file.read(4), "little"), file.read()
    except OSError:
        raise _make_damage_error() from None
    if mark != b"PAR1":
        raise _make_damage_error()
    if length > MAX_FOOTER_BYTES:
        raise _make_size_error()


def _read_row_epsilons(column: pa.Array, described: ColumnDescription) -> pa.Array:
    texts = decode_dictionary(column)
    stated = pa.array([format_epsilon(each) for each in described.row_epsilons])
    if not pa.types.is_string(texts.type) or texts.null_count or not pc.all(pc.is_in(texts, stated)).as_py():
        raise LevelFileError("A row states a level that the description of the file does not list.")
    return texts.dictionary_encode()


def _check_ids(ids: pa.Array, described: ColumnDescription, *, is_sorted: bool) -> None:
    try:
        is_described = get_id_type(ids.type) == described.id_type
        IdOrderCheck().check(ids if is_sorted else ids.take(pc.sort_indices(get_storage_column(ids))))
    except NotAscendingError:
        raise LevelFileError("The rows are not in the order of their ids, or an id occurs twice.") from None
    except RelaxdpError as problem:
        raise LevelFileError(problem.template, **problem.fields) from None
    if not is_described:
        raise LevelFileError("The ids are of another type than the description of the file states.")


def _rewrite_reports(mechanism: Mechanism, column: pa.Array) -> pa.Array:
    """Return the reports in the mechanism's own type, or reject a value that is no report."""
    slices = iterate_slices(mechanism, len(column))
    try:
        return join_report_parts(mechanism, (read_report_column(mechanism, column[slice(*each)]) for each in slices))
    except (RelaxdpError, pa.ArrowException, ValueError, TypeError):
        pass
    raise LevelFileError("A value of the report column is not a report of its mechanism.")


def _read_columns(path: Path, table: TableFile, names: list[str]) -> list[pa.Array]:
    """Return whole columns of a file. A small file may unfold to more than fits into memory, and is rejected before."""
    if not 0 < (table.rows or 0) <= MAX_ROWS:
        raise LevelFileError(
            "The file has {rows:,} rows. A level has 1 to {maximum:,}.", rows=table.rows, maximum=MAX_ROWS
        )
    try:
        with pa_parquet.ParquetFile(path, pre_buffer=False, read_dictionary=names) as file:
            groups = range(file.metadata.num_row_groups)
            # The metadata of a single column is not read: where it is damaged, pyarrow ends the process.
            is_small = sum(max(file.metadata.row_group(each).total_byte_size, 0) for each in groups) <= MAX_BYTES
            if not is_small or any(
                _find_longest(column) > MAX_LETTERS
                for batch in file.iter_batches(_SMALL_BATCH, columns=names)
                for column in batch.columns
            ):
                raise _make_size_error()
        batches, size = [], 0
        with closing(table.batches(names)) as read:
            for batch in read:
                batches.append([remove_hidden_values(batch.column(name)) for name in names])
                size += sum(each.nbytes for each in batches[-1])
                if size > MAX_BYTES:
                    raise _make_size_error()
        columns = [pa.concat_arrays(parts) for parts in zip(*batches, strict=True)]
    except LevelFileError:
        raise
    except (pa.ArrowException, RelaxdpError, OSError, ValueError, LookupError):
        raise _make_damage_error() from None
    if not columns or len(columns[0]) != table.rows:
        raise _make_damage_error()
    return columns


def _find_longest(column: Any) -> int:
    """Return the length of the longest text or bytes of a column, without unfolding its dictionary."""
    values = column.dictionary if pa.types.is_dictionary(column.type) else getattr(column, "storage", column)
    kind = values.type
    if not len(values) or not (pa.types.is_binary(kind) or pa.types.is_string(kind) or pa.types.is_large_string(kind)):
        return 0
    return pc.max(pc.binary_length(values)).as_py() or 0


def _make_damage_error() -> LevelFileError:
    return LevelFileError("The file is damaged, or it is not a Parquet file that relaxdp released.", hint=_PUBLISH)


def _make_size_error() -> LevelFileError:
    return LevelFileError("The file is larger than a market accepts.", hint="Publish fewer rows, or shorter ids.")
