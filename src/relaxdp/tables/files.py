"""Tables in files: Parquet, folders of Parquet files, CSV and TSV, also compressed or at an address in the cloud.

An address is fetched into a private folder and read like any other file: a table may be read twice, to be sorted, and
both times the rows must be the same. The copy is as secret as the table, and is removed like what a sort spills.
"""

from __future__ import annotations

import csv
import io
import os
import shutil
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import unquote, urlsplit

import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pa_parquet

from relaxdp.errors import MetadataError, RelaxdpError, TableFileError
from relaxdp.lazy_imports import LazyModule
from relaxdp.tables.atomic_files import make_temporary_folder
from relaxdp.tables.metadata import FileDescription, parse_description
from relaxdp.tables.table_columns import ColumnNames, suggest_read_csv

BATCH_ROWS = 1 << 18
_FETCHED_BYTES = 1 << 20
fs = LazyModule("pyarrow.fs")  # few tables are at an address


# Names of files.


class TableFormat(StrEnum):
    """The format of a table: Parquet, CSV or a frame. A CSV file has its description in a separate file."""

    PARQUET = "parquet"
    CSV = "csv"
    FRAME = "frame"
    """A data frame in memory, as Arrow."""


@dataclass(frozen=True, slots=True)
class FileKind:
    """The kind of a file: its format, the separator of its fields, and its compression."""

    format: TableFormat
    separator: str = ","
    compression: str | None = None


_ENDINGS = {
    ".parquet": FileKind(TableFormat.PARQUET),
    ".pq": FileKind(TableFormat.PARQUET),
    ".csv": FileKind(TableFormat.CSV),
    ".tsv": FileKind(TableFormat.CSV, "\t"),
}
_COMPRESSED = {".gz": "gzip", ".zst": "zstd"}
SIDECAR = ".relaxdp.json"


def is_path(source: Any) -> bool:
    """Tell whether a table is a file or an address, and not a data frame."""
    return isinstance(source, str | os.PathLike)


def get_file_kind(path: Path) -> FileKind:
    """Return the kind that a file's ending stands for. A folder is one of Parquet files."""
    if path.is_dir():
        return _ENDINGS[".parquet"]
    compression = _COMPRESSED.get(path.suffix.lower())
    kind = _ENDINGS.get((path if compression is None else Path(path.stem)).suffix.lower())
    if kind is None or (compression is not None and kind.format is not TableFormat.CSV):
        raise TableFileError(
            "{path!r} does not end in .parquet, .csv or .tsv.",
            hint="Name a Parquet, CSV or TSV file (.csv and .tsv also with .gz or .zst), or a folder of Parquet files.",
            path=str(path),
        )
    return replace(kind, compression=compression)


def get_stem(path: Path) -> str:
    """Return the name of a file without its endings."""
    return Path(path.stem).stem if path.suffix.lower() in _COMPRESSED else path.stem


def list_table_files(path: Path) -> list[Path]:
    """Return the files of a table: itself, or the Parquet files of a folder in the order of their names."""
    if not path.is_dir():
        return [path]
    files = sorted(path.glob("*.parquet")) + sorted(path.glob("*.pq"))
    if not files:
        raise TableFileError(
            "The folder {path!r} has no Parquet files.",
            hint="Name a folder with files that end in .parquet, or a single file.",
            path=str(path),
        )
    return files


def get_sidecar_path(path: Path) -> Path:
    """Return the file that describes a CSV file."""
    return path.with_name(path.name + SIDECAR)


def list_sidecar_paths(path: Path) -> list[Path]:
    """Return files that may describe a CSV file, also if that was compressed or expanded since."""
    names = [path.name] if path.suffix.lower() not in _COMPRESSED else [path.name, path.stem]
    names += [] if len(names) > 1 else [path.name + ending for ending in _COMPRESSED]
    return [path.with_name(name + SIDECAR) for name in names]


# Reading.


def _open_stream(path: Path, kind: FileKind) -> Any:
    return pa.input_stream(str(path), compression=kind.compression)


class TableFile:
    """A table in a file: its schema, its number of rows (where the format records it), and its batches."""

    def __init__(self, path: Path) -> None:
        """Open a table by its name; its ending decides how it is read."""
        self.path = path
        with _replace_file_errors(path):  # a folder may not be readable
            self.kind, self.files = get_file_kind(path), list_table_files(path)
            self.format = self.kind.format
            self.schema = self._read_schema()
            self.rows = self._count_rows()
        is_csv = self.format is TableFormat.CSV
        self.names = ColumnNames(self.schema.names, f"the first line of {str(path)!r}" if is_csv else None)

    def _read_schema(self) -> Any:
        if self.format is TableFormat.PARQUET:
            return pa_parquet.read_schema(self.files[0])
        header = next(self._read_text_rows(), None)
        if header is None:
            raise TableFileError(
                "{path!r} is empty.", hint="Name a file with a header and at least one row.", path=str(self.path)
            )
        # Every column is text: a type guessed from the first rows would make 17 of "017".
        return pa.schema([(name, pa.string()) for name in header])

    def _read_text_rows(self) -> Iterator[list[str]]:
        """Return the header and the rows of a CSV file. Blank lines do not count, as in Arrow's reader."""
        with (
            _open_stream(self.path, self.kind) as stream,
            io.TextIOWrapper(stream, encoding="utf-8-sig", newline="") as text,
        ):
            yield from filter(None, csv.reader(text, delimiter=self.kind.separator))

    def _count_rows(self) -> int | None:
        if self.format is TableFormat.PARQUET:
            return sum(int(pa_parquet.read_metadata(file).num_rows) for file in self.files)
        return None

    def count_rows(self) -> int:
        """Return how many rows there are, by reading the table where its format does not record it."""
        if self.rows is None:
            with closing(self.batches(self.schema.names[:1])) as batches:
                self.rows = sum(batch.num_rows for batch in batches)
        return self.rows

    def batches(self, columns: Sequence[str]) -> Generator[Any]:
        """Return the rows of some columns as record batches, in order."""
        wanted = list(dict.fromkeys(columns))
        ragged = None
        try:
            with _replace_file_errors(self.path):
                for file in self.files:
                    yield from self._file_batches(file, wanted)
        except TableFileError:
            ragged = self._find_ragged_row()
            if ragged is None:
                raise
        if ragged is not None:  # raised here, without a context
            raise TableFileError(
                "Row {at:,} of {path!r} has more or fewer fields than the header, which has {fields}.",
                hint="Put text that contains the separator into double quotes.",
                at=ragged[0],
                fields=ragged[1],
                path=str(self.path),
            )

    def _file_batches(self, file: Path, columns: list[str]) -> Iterator[Any]:
        if self.format is TableFormat.PARQUET:
            # Without pre-buffering, which would hold the whole file: memory must not grow with the table.
            with pa_parquet.ParquetFile(file, pre_buffer=False) as parquet:
                self._require_same_types(file, parquet.schema_arrow, columns)
                yield from parquet.iter_batches(BATCH_ROWS, columns=columns)
        else:
            types = {name: pa.string() for name in self.schema.names}
            # Only an empty field is missing; texts such as NA or null are texts.
            options = pa_csv.ConvertOptions(
                column_types=types, include_columns=columns, strings_can_be_null=True, null_values=[""],
                quoted_strings_can_be_null=False,
            )  # fmt: skip
            parsing = pa_csv.ParseOptions(delimiter=self.kind.separator, newlines_in_values=True)
            with (
                _open_stream(file, self.kind) as stream,
                pa_csv.open_csv(stream, parse_options=parsing, convert_options=options) as reader,
            ):
                yield from reader

    def _find_ragged_row(self) -> tuple[int, int] | None:
        """Return the first row of CSV with more or fewer fields than the header, and how many fields that has."""
        if self.format is TableFormat.CSV:
            with suppress(OSError, UnicodeDecodeError, csv.Error):
                rows = self._read_text_rows()
                fields = len(next(rows, []))
                return next(((number, fields) for number, row in enumerate(rows, 1) if len(row) != fields), None)
        return None

    def require_same_columns(self, columns: Sequence[str]) -> None:
        """Reject a folder whose files do not have these columns with the same types."""
        with _replace_file_errors(self.path):
            for file in self.files if len(self.files) > 1 else ():
                self._require_same_types(file, pa_parquet.read_schema(file), columns)

    def _require_same_types(self, file: Path, schema: Any, columns: Sequence[str]) -> None:
        for name in columns:
            if name not in schema.names or schema.field(name).type != self.schema.field(name).type:
                raise TableFileError(
                    "{path!r} has no column {column!r}, or one of another type than the first file of the folder.",
                    hint="Write all files of the folder with the same columns and types.",
                    path=str(file),
                    column=name,
                )


def read_description(path: Path) -> FileDescription | None:
    """Return the description of a released file, None where it is not one. Its rows are not read."""
    problem = None
    with _replace_file_errors(path):
        path.stat()
        if get_file_kind(path).format is not TableFormat.CSV:
            # pandas, polars and Spark put it into places of their own; and a folder may hold reports in one file only.
            each = (parse_description(_read_metadata(file)) for file in list_table_files(path))
            return next((found for found in each if found is not None), None)
        try:
            sidecar = next((beside for beside in list_sidecar_paths(path) if beside.exists()), None)
            return None if sidecar is None else FileDescription.from_json(sidecar.read_text("utf-8"))
        except (OSError, UnicodeDecodeError):
            problem = MetadataError(
                "The file {sidecar!r} cannot be read. It states whether {path!r} contains true values or reports.",
                hint="Make {sidecar!r} readable. Delete it only if {path!r} contains true values.",
                path=str(path),
                sidecar=str(get_sidecar_path(path)),
            )
    raise problem


def _read_metadata(file: Path) -> dict[bytes, bytes]:
    metadata = pa_parquet.read_metadata(file)
    return dict(metadata.metadata or {}) | dict(metadata.schema.to_arrow_schema().metadata or {})


@contextmanager
def _replace_file_errors(path: Path) -> Iterator[None]:
    """Replace an error about a file by one that shows nothing of the content."""
    try:
        yield
    except Exception as problem:
        error = _replace_error(problem, str(path))
        if error is None:
            raise
    else:
        return
    # Raised without a context: Arrow's messages quote the content of a row.
    try:
        raise error from None
    finally:
        error.__context__ = None


def _replace_error(problem: BaseException, path: str) -> TableFileError | None:
    if isinstance(problem, RelaxdpError):
        return None
    if isinstance(problem, FileNotFoundError):
        return TableFileError("There is no file {path!r}.", hint="Check the name and the folder.", path=path)
    if isinstance(problem, UnicodeError) or (
        isinstance(problem, pa.ArrowInvalid) and "conversion error to string: invalid UTF8" in str(problem)[:100]
    ):
        return TableFileError(
            "{path!r} is not text in UTF-8.",
            hint="If it is Latin-1: " + suggest_read_csv("encoding='latin-1'"),
            path=path,
        )
    # Arrow raises OSError for what it cannot decode, too; one of the system has a number.
    is_damage = isinstance(problem, OSError) and problem.errno is None
    if is_damage or isinstance(problem, pa.ArrowException | csv.Error):
        return TableFileError(
            "{path!r} is damaged, cut off or not the kind of file that its ending stands for.",
            hint="Make the file again, or give it the right ending, such as .csv or .parquet.",
            path=path,
        )
    if isinstance(problem, OSError):
        return TableFileError(
            "{path!r} cannot be read: {why}.",
            hint="Check that the file exists and that you may read it.",
            path=path,
            why=problem.strerror,
        )
    return None


# Addresses.


def is_cloud_address(source: object) -> bool:
    """Tell whether this is the address of a table in a file system such as S3."""
    return isinstance(source, str) and "://" in source


def get_address_name(source: str) -> str:
    """Return the last part of an address, without what may be a secret in it.

    >>> get_address_name("s3://name:secret@bucket/patients.parquet?region=eu-central-1")
    'patients.parquet'
    """
    name = PurePosixPath(unquote(urlsplit(source).path)).name  # percent-encoding may hide a '/'
    return "" if name == ".." else name


@contextmanager
def fetch_file(source: Any) -> Iterator[Path]:
    """Fetch a table from an address to a private copy, and give its path; a local file has its own."""
    if not is_cloud_address(source):
        yield Path(source)
        return
    with make_temporary_folder() as folder:
        place = folder / (get_address_name(source) or "table")
        is_csv = get_file_kind(place).format is TableFormat.CSV
        if not _copy_from_address(source, place):
            raise TableFileError(
                "{name!r} cannot be read from its {scheme} address.",
                hint="Expected an address of s3, gs, abfss, hdfs or file. Check that the file exists, and that your "
                "credentials allow reading it.",
                name=place.name,
                scheme=urlsplit(source).scheme,
            )
        if is_csv:
            address, mark, query = source.partition("?")
            beside = f"{address}{SIDECAR}{mark}{query}"
            if not _copy_from_address(beside, get_sidecar_path(place)) and not _is_absent_at_address(beside):
                raise TableFileError(
                    "It is unknown whether there is a file {sidecar!r} next to {name!r}. That file would state whether "
                    "{name!r} contains true values or reports.",
                    hint="Allow your credentials to list the folder. Or copy {name!r} to this machine, together with "
                    "{sidecar!r} if there is one.",
                    name=place.name,
                    sidecar=get_sidecar_path(place).name,
                )
        yield place


def _copy_from_address(source: str, place: Path) -> bool:
    """Copy a file; False where that fails: messages of file systems quote addresses, and secrets in them."""
    with suppress(OSError, ValueError, pa.ArrowException):
        system, path = fs.FileSystem.from_uri(source)
        with system.open_input_stream(path, compression=None) as stream, place.open("xb") as file:
            shutil.copyfileobj(stream, file, _FETCHED_BYTES)
        return True
    return False  # a partial copy is in a folder that is removed


def _is_absent_at_address(source: str) -> bool:
    """Tell whether a file surely does not exist: one that may not be read does."""
    with suppress(OSError, ValueError, pa.ArrowException):
        system, path = fs.FileSystem.from_uri(source)
        return bool(system.get_file_info(path).type == fs.FileType.NotFound)
    return False
