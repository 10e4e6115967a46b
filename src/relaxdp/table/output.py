"""Released files, written batch by batch: Parquet, CSV and TSV."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import IO, Any

import pyarrow as pa
import pyarrow.csv as pa_csv

from relaxdp.errors import TableFileError
from relaxdp.publication.description import FileDescription, parquet_metadata, parquet_writer
from relaxdp.table.kinds import Format, Kind


class Output:
    """A released table being written to a temporary place; nothing is there under its own name until it is renamed.

    It says how many rows it holds, except where the description does: then it is a part of a table that has so many.
    """

    def __init__(self, place: Path, kind: Kind, schema: Any, description: FileDescription) -> None:
        self._description, self._rows, self._is_closed = description, 0, False
        self._is_text = kind.format is Format.CSV
        self.schema = schema.with_metadata(None)
        self._file = place.open("w+b")
        if not self._is_text:
            self._writer: Any = parquet_writer(self._file, self.schema, description.id_column)
            return
        # Packed reports alone: an id must be read back as the id that it is.
        self._packed = {name for name in description.columns if _is_packed(self.schema, name)}
        self._sink = _LeftOpen(self._file)
        self._text: Any = pa.PythonFile(self._sink, mode="w")
        if kind.compression is not None:
            self._text = pa.CompressedOutputStream(self._text, kind.compression)
        texts = [(each.name, pa.string() if each.name in self._packed else each.type) for each in self.schema]
        self._written = pa.schema(texts)
        options = pa_csv.WriteOptions(delimiter=kind.separator)
        self._writer = pa_csv.CSVWriter(self._text, self._written, write_options=options)

    def write(self, batch: Any) -> None:
        """Write one batch."""
        self._rows += batch.num_rows
        if not self._is_text:
            self._writer.write_batch(batch)
        elif not self._write_text(batch):
            raise TableFileError("ids or kept columns of bytes that are no text do not go into CSV: write Parquet.")

    def _write_text(self, batch: Any) -> bool:
        """Write one batch as text; False where that cannot be, because Arrow's own exception may quote a row."""
        try:
            self._writer.write_batch(_as_text(batch, self._packed, self._written))
        except pa.ArrowInvalid:
            return False
        return True

    def close(self) -> None:
        """Write what is left, and what the file says about itself. The caller makes the file durable."""
        if not self._is_text:
            self._writer.add_key_value_metadata(parquet_metadata(self.schema, self._described))
        self._writer.close()
        if self._is_text:
            self._text.close()
        self._is_closed = True
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
                if self._is_text:
                    self._sink.let_go()
                    self._text.close()
                self._writer.close()
        with contextlib.suppress(OSError):  # a full disk refuses the last bytes here too
            self._file.close()


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


class _LeftOpen:
    """A file that streams of Arrow write to and do not close: it is made durable after them."""

    closed = False

    def __init__(self, file: IO[bytes]) -> None:
        self.write: Callable[[Any], int] = file.write
        self.flush = file.flush

    def close(self) -> None:
        """Leave it open."""

    def let_go(self) -> None:
        """Take what streams still hold back, and write no more of it: they would complain to nobody in particular."""
        self.write = len
