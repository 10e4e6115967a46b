"""Files that are read, batch by batch: Parquet, folders of Parquet files, CSV and TSV."""

from __future__ import annotations

import contextlib
import csv
import io
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, TextIO

import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pa_parquet

from relaxdp.errors import DescriptionError, RelaxdpError, TableDamagedError, TableFileError
from relaxdp.publication.derive import ColumnNames
from relaxdp.publication.description import METADATA_KEY, FileDescription, description_in
from relaxdp.table.kinds import Format, Kind, files_of, kind_of, separator_of, sidecars_of

BATCH_ROWS = 1 << 18


def _stream(path: Path, kind: Kind) -> Any:
    return pa.input_stream(str(path), compression=kind.compression)


@contextmanager
def opened_text(path: Path, kind: Kind) -> Iterator[TextIO]:
    """Open a text file, compressed or not; a mark of the order of bytes does not count."""
    with _stream(path, kind) as stream, io.TextIOWrapper(stream, encoding="utf-8-sig", newline="") as text:
        yield text


def _header(path: Path, kind: Kind) -> list[str] | None:
    with opened_text(path, kind) as text:
        # Blank lines do not count, here as below.
        return next(filter(None, csv.reader(text, delimiter=kind.separator)), None)


def rows_of(path: Path, kind: Kind) -> int:
    """Return how many rows a file has that we wrote, whatever it is called; a text may have line breaks."""
    if kind.format is Format.PARQUET:
        return int(pa_parquet.read_metadata(path).num_rows)
    header = _header(path, kind) or []
    parsing = pa_csv.ParseOptions(newlines_in_values=True, delimiter=kind.separator)
    options = pa_csv.ConvertOptions(
        column_types={name: pa.string() for name in header}, include_columns=header[:1], check_utf8=False
    )
    with (
        _stream(path, kind) as stream,
        pa_csv.open_csv(stream, parse_options=parsing, convert_options=options) as reader,
    ):
        return sum(batch.num_rows for batch in reader)


class Input:
    """A table to be read: its schema, how many rows (where the format says so), and its batches."""

    def __init__(self, path: Path, separator: str | None = None) -> None:
        """Open a table by its name. What separates its fields is said by its ending, or by a person."""
        self.path = path
        with _sentences(path):  # a folder may not be readable
            self.kind, self._files = kind_of(path), files_of(path)
        self.format = self.kind.format
        if separator is not None:
            self.kind = replace(self.kind, separator=separator_of(path, self.format, separator))
        with _sentences(path):
            self.schema = self._schema(self._files[0])
            self.rows = self._count()
        is_csv = self.format is Format.CSV
        self.names = ColumnNames(self.schema.names, f"the first line of {str(path)!r}" if is_csv else None)

    def _schema(self, file: Path) -> Any:
        if self.format is Format.PARQUET:
            return pa_parquet.read_schema(file)
        header = _header(file, self.kind)
        if not header:
            raise TableFileError("{path!r} is empty.", path=str(file))
        # Every column as text: a type that is guessed from the first rows would make 17 of "017".
        return pa.schema([(name, pa.string()) for name in header])

    def _count(self) -> int | None:
        if self.format is Format.PARQUET:
            return sum(int(pa_parquet.read_metadata(file).num_rows) for file in self._files)
        return None

    def counted(self) -> int:
        """Return how many rows there are, by reading the table where its format does not say so."""
        if self.rows is None:
            with contextlib.closing(self.batches(self.schema.names[:1])) as batches:
                self.rows = sum(batch.num_rows for batch in batches)
        return self.rows

    def batches(self, columns: Sequence[str]) -> Generator[Any]:
        """Return the rows of some columns as record batches, in order."""
        wanted = list(dict.fromkeys(columns))
        with _sentences(self.path):
            for file in self._files:
                yield from self._file_batches(file, wanted)

    def _file_batches(self, file: Path, columns: list[str]) -> Iterator[Any]:
        if self.format is Format.PARQUET:
            # Without pre-buffering, which would hold the whole file: memory must not grow with the table.
            with pa_parquet.ParquetFile(file, pre_buffer=False) as parquet:
                if not self._same_types(parquet.schema_arrow, columns):
                    raise TableFileError("{path!r} has other columns than the first file.", path=str(file))
                yield from parquet.iter_batches(BATCH_ROWS, columns=columns)
        else:
            types = {name: pa.string() for name in self.schema.names}
            # Only an empty field is missing; texts such as NA or null are texts.
            options = pa_csv.ConvertOptions(
                column_types=types, include_columns=columns, strings_can_be_null=True, null_values=[""],
                quoted_strings_can_be_null=False,
            )  # fmt: skip
            parsing = pa_csv.ParseOptions(delimiter=self.kind.separator)
            with (
                _stream(file, self.kind) as stream,
                pa_csv.open_csv(stream, parse_options=parsing, convert_options=options) as reader,
            ):
                yield from reader

    def ragged(self) -> tuple[int, int] | None:
        """Return the first row of CSV with more or fewer fields than the header, and how many fields that has.

        It is counted without the header and without empty lines; None if every row fits.
        """
        if self.format is not Format.CSV:
            return None
        try:
            with opened_text(self._files[0], self.kind) as text:
                rows = (row for row in csv.reader(text, delimiter=self.kind.separator) if row)
                fields = len(next(rows, []))
                return next(((number, fields) for number, row in enumerate(rows, 1) if len(row) != fields), None)
        except (OSError, UnicodeDecodeError, csv.Error):
            return None

    def _same_types(self, schema: Any, columns: list[str]) -> bool:
        return all(name in schema.names and schema.field(name).type == self.schema.field(name).type for name in columns)

    def described_by(self) -> Path | None:
        """Return the file that describes a CSV file."""
        return next((beside for beside in sidecars_of(self.path) if beside.exists()), None)

    def description(self) -> FileDescription | None:
        """Return what the file says about itself, None where it is not a released one."""
        if self.format is Format.CSV:
            beside = self.described_by()
            return None if beside is None else FileDescription.loads(beside.read_text("utf-8"))
        metadata = self.schema.metadata or {}
        if METADATA_KEY in metadata:
            return description_in(metadata)
        # Polars puts it elsewhere; and a folder may hold reports beside truths.
        each = (description_in((pa_parquet.read_metadata(file).metadata or {}) | metadata) for file in self._files)
        return next((found for found in each if found is not None), None)


def released(path: Path) -> tuple[Input, FileDescription]:
    """Open a released file; a file that does not describe itself is refused."""
    table = Input(path)
    description = table.description()
    if description is None:
        raise DescriptionError(
            "{path!r} is not a file that relaxdp released, or was rewritten since: it does not describe itself.",
            remedy="description",
            path=str(path),
        )
    return table, description


class _sentences:  # noqa: N801 (used as a statement)
    """Turn what goes wrong with a file into one sentence that shows nothing of its content."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: Any, problem: BaseException | None, trace: Any) -> None:
        error, path = None, str(self._path)
        if isinstance(problem, RelaxdpError):
            return
        if isinstance(problem, FileNotFoundError):
            error = TableFileError("there is no file {path!r}.", path=path)
        elif isinstance(problem, UnicodeError):
            error = TableFileError("{path!r} is not text in UTF-8.", path=path)
        # Arrow calls what it cannot decode an error of input, too; one of the system has a number.
        elif isinstance(problem, pa.ArrowException | csv.Error) or (
            isinstance(problem, OSError) and problem.errno is None
        ):
            error = TableDamagedError(
                "{path!r} is damaged, cut off or of another kind than its ending says.", path=path
            )
        elif isinstance(problem, OSError):
            error = TableFileError("{path!r} cannot be read: {why}.", path=path, why=problem.strerror)
        if error is not None:
            # Raised anew and without a context: Arrow's messages quote the content of a row.
            try:
                raise error from None
            finally:
                error.__context__ = None


@contextmanager
def row_named(table: Input) -> Iterator[None]:
    """Let the refusal of a damaged CSV file name the row, where it is damaged in this way."""
    try:
        yield
    except TableDamagedError:
        found = table.ragged()
        if found is None:
            raise
        row, fields = found
        raise TableFileError(
            "it has not as many fields as the header, which has {fields}.", fields=fields, row=row
        ) from None
