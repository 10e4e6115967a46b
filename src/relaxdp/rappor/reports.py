"""RAPPOR reports: made by one device, and read from files."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from decimal import Decimal
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from relaxdp.errors import EstimationError, LevelError, MetadataError, RapporError, TableFileError
from relaxdp.mechanisms.bloom import Bloom, BloomShape, draw_cohorts
from relaxdp.mechanisms.keyed_reports import ReportPath
from relaxdp.mechanisms.report_arrays import check_padding, read_packed_matrix, unpack_bits
from relaxdp.sampling.keyed_stream import PathId
from relaxdp.sampling.keys import Key
from relaxdp.tables.files import TableFile, TableFormat, get_sidecar_path, open_text_file
from relaxdp.tables.metadata import FileDescription
from relaxdp.theory.epsilon import Epsilon, as_epsilon, format_epsilon


class RapporReport(NamedTuple):
    """A report: the cohort of the device, the bits as text (the highest first, as in RAPPOR's files), and the level."""

    cohort: int
    bits: str
    epsilon: Decimal


class RapporDevice:
    """A device that reports its word at growing levels, at its own pace and up to its own limit.

    All its reports together cost the largest epsilon among them. The `repr` shows neither word nor key.

    Args:
        shape: Bits, hashes and cohorts of the Bloom filter.
        word: The true value; true or false if the shape has one bit.
        key: The secret key of the device.
        device_id: The id from which the device's cohort is drawn.
        release: The name of the release; another name is another path, whose cost adds up.
        attribute: The name of the attribute that the word belongs to.
        limit: The largest epsilon that the device will ever report at. Set it before the word is known.

    >>> shape = BloomShape(bits=16, hashes=2, cohorts=64)
    >>> device = RapporDevice(
    ...     shape, "cheese", key=Key.from_bytes(bytes(range(32))), device_id="d-1",
    ...     release="words-2026", attribute="word", limit=6,
    ... )
    >>> [report.bits for report in device.iterate_reports([2, 4, 6])]
    ['1111101001000101', '0111100000011111', '0000001000001110']
    >>> device.get_report(7)
    Traceback (most recent call last):
    relaxdp.errors.LevelError: Epsilon 7 is above 6, the limit of this device. Request a report at 6 or less.
    """

    def __init__(
        self,
        shape: BloomShape,
        word: str | bool,
        *,
        key: Key,
        device_id: object,
        release: str,
        attribute: str,
        limit: Epsilon | None = None,
    ) -> None:
        ids = [device_id]
        path = PathId(release, attribute)
        self.cohort = int(draw_cohorts(shape, ids, key=key, path=path)[0])
        """Public, and drawn from the id alone."""
        self.limit = None if limit is None else as_epsilon(limit)
        self._shape = shape
        self._bloom = Bloom(shape, self.cohort)
        self._path = ReportPath(self._bloom, word, key=key, object_id=device_id, path=path)

    def get_report(self, epsilon: Epsilon) -> RapporReport:
        """Return the report at the epsilon of a whole report. The same epsilon gives the same report again.

        Raises:
            LevelError: Epsilon is above the limit of the device.
        """
        level = self._bloom.level(epsilon)
        exact = level.epsilon
        if self.limit is not None and exact > self.limit:
            raise LevelError(
                "Epsilon {epsilon} is above {limit}, the limit of this device.",
                hint="Request a report at {limit} or less.",
                limit=format_epsilon(self.limit),
                epsilon=format_epsilon(exact),
            )
        return RapporReport(self.cohort, "".join(map(str, reversed(self._path.draw_codes(level)[0]))), exact)

    def iterate_reports(self, schedule: Iterable[Epsilon]) -> Iterator[RapporReport]:
        """Yield a report for every level of a schedule, up to the limit."""
        for level in map(as_epsilon, schedule):
            if self.limit is not None and level > self.limit:
                return
            yield self.get_report(level)

    def __reduce__(self) -> NoReturn:
        raise TypeError("A RapporDevice cannot be pickled, because it contains the true word.")

    def __repr__(self) -> str:
        return f"<Device in cohort {self.cohort}>"


_ENCODED_FILE_HINT = "Pass a file that `relaxdp rappor encode` or `relaxdp rappor relax` wrote."
_PARAMETERS_HINT = "Pass the parameter file with which the reports were made: --params params.csv."

CLIENT, COHORT, REPORT = "client", "cohort", "report"


def read_report_description(path: Path, shape: BloomShape) -> FileDescription:
    """Return the metadata of a file of reports, or reject a file of other parameters or without a level."""
    table = TableFile(path)
    description = table.read_description()
    stated = None if description is None else description.columns.get(REPORT)
    expected = [COHORT, REPORT, *([] if description is None else [description.id_column])]
    missing = [name for name in expected if name not in table.schema.names]
    if missing:
        raise RapporError(
            "The file {path!r} does not contain RAPPOR reports: the column {column!r} is missing.",
            hint=_ENCODED_FILE_HINT,
            path=str(path),
            column=missing[0],
        )
    if description is None or stated is None or stated.encoding != Bloom.name:
        raise MetadataError(
            "The file {path!r} does not state the epsilon of its reports.",
            hint="Pass a file that `relaxdp rappor encode` or `relaxdp rappor relax` wrote. Keep "
            "{sidecar!r} next to a CSV file.",
            path=str(path),
            sidecar=get_sidecar_path(path).name,
        )
    mechanism: Any = stated.mechanism()
    if mechanism.shape != shape:
        raise RapporError(
            "The reports in {file!r} were made with the parameters {found}, but the parameter file has {shape}.",
            hint=_PARAMETERS_HINT,
            file=str(path),
            found=mechanism.shape,
            shape=shape,
        )
    try:
        mechanism.level(stated.epsilon, stated.threshold)
    except LevelError:
        raise MetadataError(
            "The metadata of the file {path!r} is damaged: its epsilon and its threshold contradict each other.",
            hint="Write the file again: `relaxdp rappor relax NAME OUT --epsilon EPSILON`.",
            path=str(path),
        ) from None
    return description


def read_report_batches(
    path: Path, id_column: str, shape: BloomShape
) -> Iterator[tuple[Any, NDArray[np.int64], NDArray[np.uint8]]]:
    """Yield the ids, cohorts and bits (bit 0 first) of a file of reports, batch by batch."""
    table, first_row = TableFile(path), 0
    with _locate_ragged_csv_line(table), closing(table.batches((id_column, COHORT, REPORT))) as batches:
        for batch in batches:
            cohorts, ids = _read_cohorts(batch.column(COHORT), shape, first_row, path), batch.column(id_column)
            if ids.null_count:
                row = first_row + pc.index(pc.is_null(ids), True).as_py() + 1
                raise RapporError(
                    "Row {row:,} of {path!r}: the id of the client is missing.",
                    hint="Remove rows without an id.",
                    path=str(path),
                    row=row,
                )
            yield ids, cohorts, _read_bits(batch.column(REPORT), shape, first_row, path)
            first_row += batch.num_rows


@contextmanager
def _locate_ragged_csv_line(table: TableFile) -> Iterator[None]:
    """Replace an error of the CSV reader by one with the line that has more or fewer fields than the header."""
    try:
        yield
    except TableFileError:
        if table.format is TableFormat.CSV:
            with open_text_file(table.path, table.kind) as text:
                reader = csv.reader(text, delimiter=table.kind.separator)
                for row in reader:
                    if row and len(row) != len(table.schema.names):
                        raise RapporError(
                            "Line {line:,} of {table!r} has {found} fields, and the header has {columns}.",
                            hint="Correct or remove the line, or write the file again with `relaxdp rappor relax`.",
                            table=str(table.path),
                            line=reader.line_num,
                            columns=len(table.schema.names),
                            found=len(row),
                        ) from None
        raise


def _read_cohorts(column: Any, shape: BloomShape, first_row: int, path: Path) -> NDArray[np.int64]:
    if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
        whole = pc.fill_null(pc.match_substring_regex(column, "^[0-9]{1,9}$"), False)
        numbers = column.cast(pa.int64()) if pc.all(whole, min_count=0).as_py() else None
    else:
        whole = pc.is_valid(column)
        numbers = column.cast(pa.int64()) if pa.types.is_integer(column.type) else None
    if numbers is None or numbers.null_count:
        row = first_row + max(0, pc.index(whole, False).as_py()) + 1
        raise RapporError(
            "Row {row:,} of {path!r}: the cohort is missing or not a whole number.",
            hint=_ENCODED_FILE_HINT,
            path=str(path),
            row=row,
        )
    cohorts = np.asarray(numbers.to_numpy(zero_copy_only=False), dtype=np.int64)
    outside = (cohorts < 0) | (cohorts >= shape.cohorts)
    if outside.any():
        row = int(np.argmax(outside))
        raise RapporError(
            "Row {row:,} of {path!r}: the cohort must be from 0 to {last}, not {cohort}.",
            hint=_PARAMETERS_HINT,
            path=str(path),
            last=shape.cohorts - 1,
            cohort=cohorts[row],
            row=first_row + row + 1,
        )
    return cohorts


def _read_bits(column: Any, shape: BloomShape, first_row: int, path: Path) -> NDArray[np.uint8]:
    """Return the bits of packed reports, or of text with the highest bit first, as (reports, bits)."""
    if pa.types.is_fixed_size_binary(column.type) or pa.types.is_binary(column.type):
        try:
            packed = read_packed_matrix(column, -(-shape.bits // 8))
            check_padding(packed, shape.bits)
        except EstimationError:
            raise RapporError(
                "The reports in {path!r} do not have {bits} bits, as the parameters (k = {bits}) require.",
                hint=_PARAMETERS_HINT,
                path=str(path),
                bits=shape.bits,
            ) from None
        return unpack_bits(packed, shape.bits)
    lengths = pc.fill_null(pc.binary_length(column), 0).to_numpy(zero_copy_only=False)
    if (lengths != shape.bits).any():
        row = int(np.argmax(lengths != shape.bits))
        raise RapporError(
            "Row {row:,} of {path!r}: the report has {length} bits, and the parameters have k = {bits}.",
            hint=_PARAMETERS_HINT,
            path=str(path),
            length=lengths[row],
            bits=shape.bits,
            row=first_row + row + 1,
        )
    letters = np.frombuffer("".join(column.to_pylist()).encode(), dtype=np.uint8)
    wrong = np.flatnonzero((letters != 48) & (letters != 49))
    if len(wrong):  # Lengths were compared in bytes, so all reports have equally many characters.
        row = first_row + int(wrong[0]) // shape.bits + 1
        raise RapporError(
            "Row {row:,} of {path!r}: the report has other characters than 0 and 1.",
            hint=_ENCODED_FILE_HINT,
            path=str(path),
            row=row,
        )
    return np.ascontiguousarray((letters - 48).reshape(len(column), shape.bits)[:, ::-1])
