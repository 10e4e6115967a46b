"""Files in and out: Parquet (one file or a folder of them), CSV and Arrow IPC, batch by batch."""

from __future__ import annotations

import contextlib
import csv
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import IO, Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv
import pyarrow.ipc as pa_ipc
import pyarrow.parquet as pa_parquet

from relaxdp.errors import DescriptionError, RelaxdpError, TableDamagedError, TableFileError
from relaxdp.publication.derive import ColumnNames
from relaxdp.publication.description import (
    METADATA_KEY,
    FileDescription,
    description_in,
    fill_in,
    padded,
    parquet_metadata,
)

BATCH_ROWS = 1 << 18


class Format(StrEnum):
    """The kinds of files that are read and written."""

    PARQUET = "parquet"
    CSV = "csv"
    IPC = "ipc"


_ENDINGS = {
    ".parquet": Format.PARQUET,
    ".pq": Format.PARQUET,
    ".csv": Format.CSV,
    ".arrow": Format.IPC,
    ".feather": Format.IPC,
    ".ipc": Format.IPC,
}


def format_of(path: Path) -> Format:
    """Return the format that a file's ending, or a folder of Parquet files, stands for."""
    if path.is_dir():
        return Format.PARQUET
    try:
        return _ENDINGS[path.suffix.lower()]
    except KeyError:
        raise TableFileError(
            "{path!r}: the ending must be .parquet, .csv or .arrow, or the path a folder of Parquet files.",
            path=str(path),
        ) from None


def files_of(path: Path) -> list[Path]:
    """Return the files of a table: itself, or the Parquet files of a folder in the order of their names."""
    if not path.is_dir():
        return [path]
    files = sorted(path.glob("*.parquet")) + sorted(path.glob("*.pq"))
    if not files:
        raise TableFileError("the folder {path!r} has no Parquet files.", path=str(path))
    return files


def sidecar_of(path: Path) -> Path:
    """Return where the description of a CSV file lies."""
    return path.with_name(path.name + ".relaxdp.json")


def csv_rows(path: Path) -> int:
    """Return how many rows a CSV file has that we wrote, whatever it is called; a kept text may have line breaks."""
    with path.open(newline="", encoding="utf-8") as text:
        header = next(csv.reader(text))
    parsing = pa_csv.ParseOptions(newlines_in_values=True)
    options = pa_csv.ConvertOptions(
        column_types={name: pa.string() for name in header}, include_columns=header[:1], check_utf8=False
    )
    with pa_csv.open_csv(path, parse_options=parsing, convert_options=options) as reader:
        return sum(batch.num_rows for batch in reader)


def rows_of(path: Path, kind: Format) -> int:
    """Return how many rows a file has that we wrote, whatever it is called."""
    if kind is Format.CSV:
        return csv_rows(path)
    if kind is Format.PARQUET:
        return int(pa_parquet.read_metadata(path).num_rows)
    with pa_ipc.open_file(path) as reader:
        return sum(reader.get_batch(number).num_rows for number in range(reader.num_record_batches))


class Input:
    """A table to be read: its schema, how many rows (where the format says so), and its batches."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.format = format_of(path)
        self._files = files_of(path)
        with _sentences(path):
            self.schema = self._schema(self._files[0])
            self.rows = self._count()
        first_line = f"the first line of {str(path)!r}" if self.format is Format.CSV else None
        self.names = ColumnNames(self.schema.names, first_line)

    def _schema(self, file: Path) -> Any:
        if self.format is Format.PARQUET:
            return pa_parquet.read_schema(file)
        if self.format is Format.IPC:
            with pa_ipc.open_file(file) as reader:
                return reader.schema
        with file.open(newline="", encoding="utf-8-sig") as text:
            header = next(filter(None, csv.reader(text)), None)  # blank lines do not count, here as below
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
        with _sentences(self.path):
            for file in self._files:
                yield from self._file_batches(file, list(dict.fromkeys(columns)))

    def distinct(self, column: str, most: int) -> set[Any]:
        """Return the different values of a column, or more than `most` of them where there are more."""
        found: set[Any] = set()
        with contextlib.closing(self.batches([column])) as batches:
            for batch in batches:
                found |= set(pc.unique(batch.column(0).drop_null()).to_pylist())
                if len(found) > most:
                    break
        return found

    def _file_batches(self, file: Path, columns: list[str]) -> Iterator[Any]:
        if self.format is Format.PARQUET:
            # Without pre-buffering, which would hold the whole file: memory must not grow with the table.
            with pa_parquet.ParquetFile(file, pre_buffer=False) as parquet:
                if parquet.schema_arrow.field(columns[0]) is None or not self._same_types(
                    parquet.schema_arrow, columns
                ):
                    raise TableFileError("{path!r} has other columns than the first file.", path=str(file))
                yield from parquet.iter_batches(BATCH_ROWS, columns=columns)
        elif self.format is Format.IPC:
            with pa_ipc.open_file(file) as reader:
                for number in range(reader.num_record_batches):
                    batch = reader.get_batch(number).select(columns)
                    for start in range(0, batch.num_rows, BATCH_ROWS):
                        yield batch.slice(start, BATCH_ROWS)
        else:
            types = {name: pa.string() for name in self.schema.names}
            # Only an empty field is missing; texts such as NA or null are texts.
            options = pa_csv.ConvertOptions(
                column_types=types, include_columns=columns, strings_can_be_null=True, null_values=[""],
                quoted_strings_can_be_null=False,
            )  # fmt: skip
            with pa_csv.open_csv(file, convert_options=options) as reader:
                yield from reader

    def _same_types(self, schema: Any, columns: list[str]) -> bool:
        return all(name in schema.names and schema.field(name).type == self.schema.field(name).type for name in columns)

    def description(self) -> FileDescription | None:
        """Return what the file says about itself, None where it is not a released one."""
        if self.format is Format.CSV:
            sidecar = sidecar_of(self.path)
            return FileDescription.loads(sidecar.read_text("utf-8")) if sidecar.exists() else None
        metadata = self.schema.metadata or {}
        if METADATA_KEY not in metadata and self.format is Format.PARQUET:  # where polars puts it
            metadata = (pa_parquet.read_metadata(self._files[0]).metadata or {}) | metadata
        return description_in(metadata)


def released(path: Path) -> tuple[Input, FileDescription]:
    """Open a released file; a file that does not describe itself is refused."""
    table = Input(path)
    description = table.description()
    if description is None:
        raise DescriptionError(
            "{path!r} is not a file that relaxdp released: it does not describe itself.", path=str(path)
        )
    return table, description


class Output:
    """A released table being written to a temporary place; nothing is there under its own name until it is renamed.

    It says how many rows it holds, except where the description does: then it is a part of a table that has so many.
    """

    def __init__(self, place: Path | IO[bytes], kind: Format, schema: Any, description: FileDescription) -> None:
        self._kind, self._description, self._rows, self._is_closed = kind, description, 0, False
        self.schema = schema.with_metadata(None)
        self._file = place.open("w+b") if isinstance(place, Path) else place
        if kind is Format.PARQUET:
            self._writer: Any = pa_parquet.ParquetWriter(
                self._file, self.schema, compression="zstd", compression_level=1, store_schema=True,
                **_encodings(self.schema, description.id_column),
            )  # fmt: skip
        elif kind is Format.IPC:
            self._room = padded(replace(description, rows=0))
            self._writer = pa_ipc.new_file(self._file, schema.with_metadata({METADATA_KEY: self._room}))
        else:
            # Packed reports alone: an id must be read back as the id that it is.
            self._packed = {name for name in description.columns if _is_packed(self.schema, name)}
            texts = [(each.name, pa.string() if each.name in self._packed else each.type) for each in self.schema]
            self._written = pa.schema(texts)
            self._writer = pa_csv.CSVWriter(self._file, self._written)

    def write(self, batch: Any) -> None:
        """Write one batch."""
        self._rows += batch.num_rows
        if self._kind is not Format.CSV:
            self._writer.write_batch(batch)
        elif not self._write_text(batch):
            raise TableFileError(
                "ids or kept columns of bytes that are no text do not go into CSV: write Parquet or Arrow IPC."
            )

    def _write_text(self, batch: Any) -> bool:
        """Write one batch of CSV; False where that cannot be, because Arrow's own exception may quote a row."""
        try:
            self._writer.write_batch(_as_text(batch, self._packed, self._written))
        except pa.ArrowInvalid:
            return False
        return True

    def close(self) -> None:
        """Write what is left, and what the file says about itself. The caller makes the file durable."""
        if self._kind is Format.PARQUET:
            self._writer.add_key_value_metadata(parquet_metadata(self.schema, self._described))
        self._writer.close()
        self._is_closed = True
        if self._kind is Format.IPC:
            fill_in(self._file, self._room, padded(self._described))
        self._file.flush()

    @property
    def _described(self) -> FileDescription:
        rows = self._description.rows
        return replace(self._description, rows=self._rows if rows is None else rows)

    def descriptor(self) -> int:
        """Return the file's descriptor, to wait for the disk."""
        return self._file.fileno()

    def abandon(self) -> None:
        """Close the file, finished or not; an unfinished one is about to be removed."""
        with contextlib.suppress(Exception):  # Arrow's writers would complain later that their file is gone
            if not self._is_closed:  # one of Arrow files would write its foot again
                self._writer.close()
        with contextlib.suppress(OSError):  # a full disk refuses the last bytes here too
            self._file.close()


def _encodings(schema: Any, id_column: str) -> dict[str, Any]:
    """Return how Parquet writes the columns: no id occurs twice, so a dictionary of ids is nothing but work.

    Whole numbers that ascend are written as the small steps between them: a sixth of the size, read in half the time.
    """
    others = [each.name for each in schema if each.name != id_column]
    if id_column not in schema.names or not pa.types.is_integer(schema.field(id_column).type):
        return {"use_dictionary": others}
    return {"use_dictionary": others, "column_encoding": {id_column: "DELTA_BINARY_PACKED"}}


def _is_packed(schema: Any, name: str) -> bool:
    return name in schema.names and pa.types.is_fixed_size_binary(schema.field(name).type)


def _as_text(batch: Any, packed: set[str], schema: Any) -> Any:
    """Return a batch whose packed reports are hexadecimal digits."""
    columns = [
        pa.array([None if cell is None else cell.hex() for cell in column.to_pylist()], pa.string())
        if name in packed
        else column
        for name, column in zip(batch.schema.names, batch.columns, strict=True)
    ]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


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
        elif isinstance(problem, UnicodeDecodeError):
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
def row_named(source: Path) -> Iterator[None]:
    """Let the refusal of a damaged CSV file name the row, where it is damaged in this way."""
    try:
        yield
    except TableDamagedError:
        found = _ragged(source) if source.suffix.lower() == ".csv" else None
        if found is None:
            raise
        row, fields = found
        raise TableFileError(
            "it has not as many fields as the header, which has {fields}.", fields=fields, row=row
        ) from None


def _ragged(path: Path) -> tuple[int, int] | None:
    """Return the first such row, counted without the header and without empty lines, and the number of fields."""
    try:
        with path.open(newline="", encoding="utf-8-sig") as text:
            rows = (row for row in csv.reader(text) if row)
            fields = len(next(rows, []))
            return next(((number, fields) for number, row in enumerate(rows, 1) if len(row) != fields), None)
    except (OSError, UnicodeDecodeError, csv.Error):
        return None
