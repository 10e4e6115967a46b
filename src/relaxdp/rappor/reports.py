"""Files of RAPPOR reports: what they say about themselves, and how they are read."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from relaxdp.encodings.bits import check_padding, unpack_bits
from relaxdp.encodings.packed import packed_matrix
from relaxdp.errors import CountsError, DescriptionError, LevelMismatchError, RapporError, TableFileError
from relaxdp.publication.description import METADATA_KEY, ColumnDescription, FileDescription
from relaxdp.rappor.encoding import BloomEncoding
from relaxdp.rappor.files import read_text
from relaxdp.rappor.filter import BloomShape
from relaxdp.table.formats import Input, opened_text
from relaxdp.table.kinds import Format, format_of, sidecar_of

CLIENT, COHORT, REPORT = "client", "cohort", "report"


@dataclass(frozen=True, slots=True)
class ReportsDescription(FileDescription):
    """What a file of reports says about itself: the level, and the numbers of bits, hashes and cohorts."""

    shape: BloomShape

    @classmethod
    def make(cls, column: ColumnDescription, shape: BloomShape) -> ReportsDescription:
        """Return the description of reports with this level and this shape."""
        return cls(CLIENT, {REPORT: column}, shape)

    @property
    def report(self) -> ColumnDescription:
        """The description of the only released column."""
        return self.columns[REPORT]

    def dumps(self) -> str:
        """Return the description as one JSON text."""
        shape = {"bits": self.shape.bits, "hashes": self.shape.hashes, "cohorts": self.shape.cohorts}
        return json.dumps({"id": CLIENT, "columns": {REPORT: {**self.report.to_json(), "options": shape}}})

    @classmethod
    def of(cls, path: Path) -> ReportsDescription | None:
        """Return what a file says about itself; None where it says nothing, or is no file of reports."""
        if format_of(path) is Format.CSV:
            sidecar = sidecar_of(path)
            text: str | bytes | None = read_text(sidecar, "description") if sidecar.exists() else None
        else:
            text = (Input(path).schema.metadata or {}).get(METADATA_KEY)
        if text is None:
            return None
        try:
            content = json.loads(text)["columns"][REPORT]
            options = content["options"]
            shape = BloomShape(bits=options["bits"], hashes=options["hashes"], cohorts=options["cohorts"])
        except (ValueError, KeyError, TypeError):
            raise DescriptionError(
                "the description of {path!r} is not that of RAPPOR reports.", path=str(path)
            ) from None
        found = cls.make(ColumnDescription.from_json(content), shape)
        try:
            BloomEncoding(shape).level(found.report.epsilon, found.report.threshold)
        except LevelMismatchError:
            raise DescriptionError("{path!r} says a level and a threshold that do not agree.", path=str(path)) from None
        return found


def report_batches(path: Path, shape: BloomShape) -> Iterator[tuple[Any, NDArray[np.int64], NDArray[np.uint8]]]:
    """Return batches of a file of reports with their cohorts and bits (bit 0 first), or refuse what does not fit."""
    table, first_row, where = Input(path), 0, f"{str(path)!r}, "
    with _ragged(table), closing(table.batches((CLIENT, COHORT, REPORT))) as batches:
        for batch in batches:
            cohorts = _cohorts(batch.column(COHORT), shape, first_row, where)
            if batch.column(CLIENT).null_count:
                row = first_row + pc.index(pc.is_null(batch.column(CLIENT)), True).as_py() + 1
                raise RapporError("{where}row {row:,}: the client is missing.", where=where, row=row)
            yield batch, cohorts, bits_of_reports(batch.column(REPORT), shape, first_row, where)
            first_row += batch.num_rows


@contextmanager
def _ragged(table: Input) -> Iterator[None]:
    """Say which line of a CSV file has more or fewer fields than its header, where it cannot be read."""
    try:
        yield
    except TableFileError:
        if table.format is Format.CSV:
            with opened_text(table.path, table.kind) as text:
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
