"""Where released rows are written: a file (Parquet, CSV or TSV) that appears when it is charged, or memory."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import IO, Any

import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.ipc as pa_ipc

from relaxdp.errors import TableFileError, replace_os_error
from relaxdp.mechanisms.report_arrays import format_bits, read_packed_matrix
from relaxdp.tables.atomic_files import make_unfinished_file, move_to_target
from relaxdp.tables.files import FileKind, TableFormat, get_file_kind, get_sidecar_path
from relaxdp.tables.metadata import METADATA_KEY, FileDescription, make_parquet_metadata, open_parquet_writer


class ReleaseWriter:
    """Writes released rows to a file in a temporary place; the file gets its own name later.

    It states its number of rows, unless the description does: then the file is a part of a table with that number.
    """

    def __init__(self, place: Path, kind: FileKind, schema: Any, description: FileDescription) -> None:
        self._description, self._rows, self._is_closed = description, 0, False
        self._is_text = kind.format is TableFormat.CSV
        self.schema = schema.with_metadata(None)
        self._file = place.open("w+b")
        try:
            if self._is_text:
                self._start_text(kind)
            else:
                self._writer: Any = open_parquet_writer(self._file, self.schema, description.id_column)
        except BaseException:
            self.close_unfinished()
            raise

    def _start_text(self, kind: FileKind) -> None:
        self._sink = _UnclosableFile(self._file)
        self._text: Any = pa.PythonFile(self._sink, mode="w")
        if kind.compression is not None:
            self._text = pa.CompressedOutputStream(self._text, kind.compression)
        # Of bytes only packed reports become text: an id must be read back as the id that it is.
        packed, columns = pa.types.is_fixed_size_binary, self._description.columns
        is_text = {each.name for each in self.schema if each.name in columns and packed(each.type)}
        is_text |= {each.name for each in self.schema if each.type == pa.uuid()}
        types = [(each.name, pa.string() if each.name in is_text else each.type) for each in self.schema]
        self._text_schema = pa.schema(types)
        with suppress(pa.ArrowInvalid):
            options = pa_csv.WriteOptions(delimiter=kind.separator)
            self._writer = pa_csv.CSVWriter(self._text, self._text_schema, write_options=options)
            return
        raise TableFileError(
            "A pass-through column is of a type that CSV cannot hold.", hint="Choose an output that ends in .parquet."
        )

    def write(self, batch: Any) -> None:
        """Write one batch."""
        self._rows += batch.num_rows
        if not self._is_text:
            self._writer.write_batch(batch)
            return
        with suppress(pa.ArrowInvalid):  # It may quote a row, and must not come along as a context.
            columns = [
                column if column.type == field.type else self._format_column(field.name, column)
                for field, column in zip(self._text_schema, batch.columns, strict=True)
            ]
            self._writer.write_batch(pa.RecordBatch.from_arrays(columns, schema=self._text_schema))
            return
        raise TableFileError(
            "A column contains binary data, which CSV cannot hold.", hint="Choose an output that ends in .parquet."
        )

    def _format_column(self, name: str, column: Any) -> Any:
        if column.type == pa.uuid():
            return pa.array([None if cell is None else str(cell) for cell in column.to_pylist()], pa.string())
        return format_reports(column, self._description.columns[name].n_bits_as_text)

    def close(self) -> None:
        """Write what is left and the description, and wait for the disk."""
        if not self._is_text:
            self._writer.add_key_value_metadata(make_parquet_metadata(self.schema, self.description))
        self._writer.close()
        if self._is_text:
            self._text.close()
        self._is_closed = True
        self._file.flush()
        os.fsync(self._file.fileno())

    @property
    def description(self) -> FileDescription:
        """The description of the file, with the number of rows so far."""
        rows = self._description.rows
        return replace(self._description, rows=self._rows if rows is None else rows)

    def close_unfinished(self) -> None:
        """Close the file, finished or not; an unfinished one is about to be removed."""
        with suppress(Exception):  # Arrow's writers would complain later that their file is gone
            if not self._is_closed:  # one of Arrow files would write its foot again
                if self._is_text:
                    self._sink.discard_writes()
                    self._text.close()
                self._writer.close()
        with suppress(OSError):  # a full disk refuses the last bytes here too
            self._file.close()


def format_reports(column: Any, n_bits_as_text: int | None) -> Any:
    """Return packed reports as hexadecimal digits; those of RAPPOR as bits, the highest first."""
    if n_bits_as_text is not None:
        return pa.array(format_bits(read_packed_matrix(column, column.type.byte_width), n_bits_as_text), pa.string())
    return pa.array([None if cell is None else cell.hex() for cell in column.to_pylist()], pa.string())


class _UnclosableFile:
    """A file that streams of Arrow write to and do not close: it is made durable after them."""

    closed = False

    def __init__(self, file: IO[bytes]) -> None:
        self.write: Callable[[Any], int] = file.write
        self.flush = file.flush

    def close(self) -> None:
        """Leave it open."""

    def discard_writes(self) -> None:
        """Discard what streams write from now on: they hold rows back, and would complain when they are deleted."""
        self.write = len


class MemorySink:
    """Keeps released rows as an Arrow table."""

    target: Path | None = None

    def __init__(self) -> None:
        self._batches: list[Any] = []
        self.table: Any = None

    @contextmanager
    def open(self, schema: Any, description: FileDescription) -> Iterator[None]:
        """Start over; rows are written within."""
        self._batches, self._schema, self._description = [], schema, description
        yield

    def write(self, batch: Any) -> None:
        """Keep one batch."""
        self._batches.append(batch)

    def finish(self) -> None:
        """Make the whole table, so that nothing can fail after the charge."""
        # Copied, because a slice of the caller's columns would carry the rest of them along.
        buffer = pa.BufferOutputStream()
        with pa_ipc.new_stream(buffer, self._schema) as writer:
            for batch in self._batches:
                writer.write_batch(batch)
        with pa_ipc.open_stream(buffer.getvalue()) as reader:
            table = reader.read_all().unify_dictionaries().combine_chunks()
        said = replace(self._description, rows=table.num_rows)
        self.table = table.replace_schema_metadata({METADATA_KEY: said.to_json()})

    def publish(self) -> None:
        """Do nothing: the caller takes the table."""


class FileSink:
    """Writes released rows next to the target, and renames the file when it is paid for."""

    table = None

    def __init__(self, target: Path) -> None:
        """Reject a target that cannot become a released file."""
        self.target = target
        if target.is_dir():
            raise TableFileError(
                "The output {path!r} is a folder.", hint="Name a file in it, such as {example!r}.", path=str(target),
                example=str(target / "out.parquet"),
            )  # fmt: skip
        self._kind = get_file_kind(target)
        _reject_existing(target)
        if not target.absolute().parent.is_dir():
            raise TableFileError(
                "The folder of the output {path!r} does not exist.",
                hint="Create the folder, or choose another output.",
                path=str(target),
            )

    @contextmanager
    def open(self, schema: Any, description: FileDescription) -> Iterator[None]:
        """Hold a place next to the target, in which rows are written until they are published."""
        sidecar = get_sidecar_path(self.target)
        # A release that was killed may have come so far as to its description: the same release finishes it.
        is_ours = sidecar.is_file() and description.equals_json(sidecar.read_bytes())
        if self._kind.format is TableFormat.CSV and not is_ours:
            _reject_existing(sidecar)
        with make_unfinished_file(self.target) as self._place, self._replace_os_errors():
            self._output = ReleaseWriter(self._place, self._kind, schema, description)
            try:
                yield
            finally:
                self._output.close_unfinished()

    def write(self, batch: Any) -> None:
        """Write one batch."""
        with self._replace_os_errors():
            self._output.write(batch)

    def finish(self) -> None:
        """Make the file durable, under a temporary name."""
        with self._replace_os_errors():
            self._output.close()

    def publish(self) -> None:
        """Give the file its name. The description of a text file comes first: none is ever without one."""
        with self._replace_os_errors():
            if self._kind.format is not TableFormat.CSV:
                move_to_target(self._place, self.target)
                return
            sidecar = get_sidecar_path(self.target)
            sidecar.unlink(missing_ok=True)
            with make_unfinished_file(sidecar) as place:
                with place.open("w", encoding="utf-8") as file:
                    file.write(self._output.description.to_json())
                    file.flush()
                    os.fsync(file.fileno())
                move_to_target(place, sidecar)
            try:
                move_to_target(self._place, self.target)
            finally:
                if not os.path.lexists(self.target):
                    sidecar.unlink(missing_ok=True)

    def _replace_os_errors(self) -> AbstractContextManager[None]:
        hint = "Free some space, or choose another output."
        return replace_os_error(
            TableFileError, "The output {path!r} cannot be written: {why}.", hint=hint, path=str(self.target)
        )


def _reject_existing(path: Path) -> None:
    if os.path.lexists(path):
        raise TableFileError(
            "The output {path!r} already exists.",
            hint="Choose another output, or remove the file. Releasing the same level again costs nothing.",
            path=str(path),
        )
