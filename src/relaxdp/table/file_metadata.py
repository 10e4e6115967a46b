"""Descriptions inside files whose rows are counted while they are written, so that they are known only at the end."""

from __future__ import annotations

import base64
import struct
from dataclasses import replace
from typing import IO, Any

from relaxdp.table.description import METADATA_KEY, FileDescription

_MOST_ROWS = 2**63
_MARK = len(b"ARROW1\0\0")


def parquet_metadata(schema: Any, description: FileDescription) -> dict[str, bytes]:
    """Return what a Parquet writer is given before it is closed.

    The description stands twice in a file: by itself, and in the schema that Arrow keeps there for its own readers.
    Only what is in the latter comes back with a table, and goes on from there into other files.

    Claim: the file is what a writer makes that knows all this before; tests/unit/test_file_rows.py.
    """
    text = description.dumps().encode()
    whole = schema.with_metadata({METADATA_KEY: text})
    return {METADATA_KEY.decode(): text, "ARROW:schema": base64.b64encode(whole.serialize())}


def padded(description: FileDescription) -> bytes:
    """Return the description with so many blanks behind it that it is equally long for any number of rows."""
    longest = len(replace(description, rows=_MOST_ROWS).dumps().encode())
    return description.dumps().encode().ljust(longest)


def fill_in(file: IO[bytes], before: bytes, after: bytes) -> None:
    """Write over the description of an Arrow file, which stands in the schema at its head and in that of its foot."""
    file.seek(_MARK)
    _, length = struct.unpack("<ii", file.read(8))
    _write_over(file, _MARK + 8, length, before, after)
    end = file.seek(-10, 2)
    (length,) = struct.unpack("<i", file.read(4))
    _write_over(file, end - length, length, before, after)
    file.seek(0, 2)


def _write_over(file: IO[bytes], start: int, length: int, before: bytes, after: bytes) -> None:
    file.seek(start)
    file.seek(start + file.read(length).index(before))
    file.write(after)
