"""Files of RAPPOR reports: what they say about themselves, and how they are read."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from relaxdp.encodings.bits import check_padding, unpack_bits
from relaxdp.encodings.packed import packed_matrix
from relaxdp.errors import CountsError, DescriptionError, LevelMismatchError, RapporError, TableFileError
from relaxdp.rappor.encoding import BloomEncoding
from relaxdp.rappor.filter import BloomShape
from relaxdp.tables.files import Format, Input, get_sidecar, open_text
from relaxdp.tables.metadata import FileDescription

CLIENT, COHORT, REPORT = "client", "cohort", "report"


def read_description(path: Path, shape: BloomShape) -> FileDescription:
    """Return what a file of reports states about itself; reject one of other parameters, or without a level."""
    table = Input(path)
    description = table.description()
    stated = None if description is None else description.columns.get(REPORT)
    wanted = [COHORT, REPORT, *([] if description is None else [description.id_column])]
    lacking = [name for name in wanted if name not in table.schema.names]
    if lacking:
        raise RapporError(
            "{path!r} holds no RAPPOR reports: it lacks the column {column!r}.",
            hint="Name a file that `relaxdp rappor encode` or `relaxdp rappor relax` wrote.",
            path=str(path),
            column=lacking[0],
        )
    if description is None or stated is None or stated.encoding != BloomEncoding.name:
        raise DescriptionError(
            "{path!r} does not state the level of its reports.",
            hint="Name a file that `relaxdp rappor encode` or `relaxdp rappor relax` wrote. The description of a CSV "
            "file is in {sidecar!r}.",
            path=str(path),
            sidecar=get_sidecar(path).name,
        )
    encoding: Any = stated.made_encoding()
    if encoding.shape != shape:
        raise RapporError(
            "The reports in {file!r} have {found}, and the parameters are {shape}.",
            hint="Pass the parameter file with which the reports were made.",
            file=str(path),
            found=encoding.shape,
            shape=shape,
        )
    try:
        encoding.level(stated.epsilon, stated.threshold)
    except LevelMismatchError:
        raise DescriptionError("{path!r} states a level and a threshold that differ.", path=str(path)) from None
    return description


def report_batches(
    path: Path, id_column: str, shape: BloomShape
) -> Iterator[tuple[Any, NDArray[np.int64], NDArray[np.uint8]]]:
    """Return the ids, cohorts and bits (bit 0 first) of a file of reports, batch by batch."""
    table, first_row, where = Input(path), 0, f"{str(path)!r}, "
    with _ragged(table), closing(table.batches((id_column, COHORT, REPORT))) as batches:
        for batch in batches:
            cohorts, ids = _cohorts(batch.column(COHORT), shape, first_row, where), batch.column(id_column)
            if ids.null_count:
                row = first_row + pc.index(pc.is_null(ids), True).as_py() + 1
                raise RapporError("{where}row {row:,}: the client is missing.", where=where, row=row)
            yield ids, cohorts, bits_of_reports(batch.column(REPORT), shape, first_row, where)
            first_row += batch.num_rows


@contextmanager
def _ragged(table: Input) -> Iterator[None]:
    """Say which line of a CSV file has more or fewer fields than its header, where it cannot be read."""
    try:
        yield
    except TableFileError:
        if table.format is Format.CSV:
            with open_text(table.path, table.kind) as text:
                reader = csv.reader(text, delimiter=table.kind.separator)
                for row in reader:
                    if row and len(row) != len(table.schema.names):
                        raise RapporError(
                            "{table!r}, line {line:,}: the header has {columns} fields, and this line {row}.",
                            table=str(table.path),
                            line=reader.line_num,
                            columns=len(table.schema.names),
                            row=len(row),
                        ) from None
        raise


def _cohorts(column: Any, shape: BloomShape, first_row: int, where: str) -> NDArray[np.int64]:
    if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
        whole = pc.fill_null(pc.match_substring_regex(column, "^[0-9]{1,9}$"), False)
        numbers = column.cast(pa.int64()) if pc.all(whole, min_count=0).as_py() else None
    else:
        whole = pc.is_valid(column)
        numbers = column.cast(pa.int64()) if pa.types.is_integer(column.type) else None
    if numbers is None or numbers.null_count:
        row = first_row + max(0, pc.index(whole, False).as_py()) + 1
        raise RapporError("{where}row {row:,}: the cohort is missing or not a whole number.", where=where, row=row)
    cohorts = np.asarray(numbers.to_numpy(zero_copy_only=False), dtype=np.int64)
    outside = (cohorts < 0) | (cohorts >= shape.cohorts)
    if outside.any():
        row = int(np.argmax(outside))
        raise RapporError(
            "{where}row {row:,}: cohorts go from 0 to {last}, and {cohort} is none of them.",
            where=where,
            last=shape.cohorts - 1,
            cohort=cohorts[row],
            row=first_row + row + 1,
        )
    return cohorts


def bits_of_reports(column: Any, shape: BloomShape, first_row: int = 0, where: str = "") -> NDArray[np.uint8]:
    """Return the bits of packed reports, or of text with the highest bit first, as (reports, bits).

    `where` stands in front of the row in an error: the file, if there may be several.
    """
    if pa.types.is_fixed_size_binary(column.type) or pa.types.is_binary(column.type):
        try:
            packed = packed_matrix(column, -(-shape.bits // 8), first_row)
            check_padding(packed, shape.bits)
        except CountsError:
            raise RapporError(
                "{where}the reports do not have the k = {bits} bits that the parameters say.",
                where=where,
                bits=shape.bits,
            ) from None
        return unpack_bits(packed, shape.bits)
    lengths = pc.fill_null(pc.binary_length(column), 0).to_numpy(zero_copy_only=False)
    if (lengths != shape.bits).any():
        row = int(np.argmax(lengths != shape.bits))
        raise RapporError(
            "{where}row {row:,}: the report has {length} bits, and the parameters say k = {bits}.",
            where=where,
            length=lengths[row],
            bits=shape.bits,
            row=first_row + row + 1,
        )
    letters = np.frombuffer("".join(column.to_pylist()).encode(), dtype=np.uint8)
    strange = np.flatnonzero((letters != 48) & (letters != 49))
    if len(strange):  # the lengths above are in bytes, so that all reports have equally many letters
        row = first_row + int(strange[0]) // shape.bits + 1
        raise RapporError("{where}row {row:,}: the report is not made of zeros and ones.", where=where, row=row)
    return np.ascontiguousarray((letters - 48).reshape(len(column), shape.bits)[:, ::-1])
