"""Files of keyed row tags: what a growing table has shown so far, in the order of the tags, and joined on disk.

A file holds two 64-bit tags of every row, one of its id and one of its id and truth; no id, no truth and no order of
rows can be read from it. Two ids share a tag with a chance of about 7e-5 at 50 million rows: a false alarm, no leak.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Generator
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pa_parquet

from relaxdp.draw.private_file import sync_folder
from relaxdp.draw.stream import Words
from relaxdp.errors import TableFileError
from relaxdp.table.formats import BATCH_ROWS
from relaxdp.table.interrupts import interruptible
from relaxdp.table.order import repeated_id
from relaxdp.table.temporary import temporary_folder

_SCHEMA = pa.schema([("id_tag", pa.uint64()), ("row_tag", pa.uint64())])
_MEMORY = "400MB"


class TagWriter:
    """Writes tags to a file that only its owner can read, and knows the digest of what it wrote."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file = os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb")
        self._writer: Any = pa_parquet.ParquetWriter(self._file, _SCHEMA, compression="none", use_dictionary=False)
        self._digest = _Digest()

    def write(self, id_tags: Words, row_tags: Words) -> None:
        """Append rows."""
        self._writer.write_batch(pa.RecordBatch.from_arrays([pa.array(id_tags), pa.array(row_tags)], schema=_SCHEMA))
        self._digest.add(id_tags, row_tags)

    def close(self) -> str:
        """Wait for the disk, and return the digest."""
        self._writer.close()
        self._file.flush()
        os.fsync(self._file.fileno())
        self._file.close()
        sync_folder(self.path.parent)
        return self._digest.text()

    def abandon(self) -> None:
        """Remove the file if it is still under its name."""
        with contextlib.suppress(Exception):  # Arrow's writer would complain later that its file is gone
            self._writer.close()
        self._file.close()
        self.path.unlink(missing_ok=True)


def digest_of(path: Path) -> str | None:
    """Return the digest of a file of tags; None where it is missing or damaged."""
    digest = _Digest()
    try:
        with pa_parquet.ParquetFile(path, pre_buffer=False) as file:
            for number in range(file.num_row_groups):  # one at a time: an iterator would read the whole file ahead
                for batch in file.read_row_group(number).to_batches():
                    digest.add(*_arrays(batch))
    except (OSError, pa.ArrowException):
        return None
    return digest.text()


def merge(old: Path | None, fresh: Path, into: TagWriter, threads: int) -> int:
    """Write all rows of both files in the order of their tags; return how many ids have another row than before."""
    changed, last = 0, None
    for batch in _together(old, fresh, threads):
        # The last row of the batch before stands in front, so that pairs across a border are seen too.
        carried = 0 if last is None else 1
        columns = batch if last is None else [np.concatenate(pair) for pair in zip(last, batch, strict=True)]
        ids, rows, is_fresh = columns
        same = ids[1:] == ids[:-1]
        if (same & is_fresh[1:] & is_fresh[:-1]).any():
            raise repeated_id()
        changed += int(np.count_nonzero(same & (rows[1:] != rows[:-1])))
        first = np.concatenate([[True], ~same])
        first[:carried] = False
        into.write(ids[first], rows[first])
        last = [column[-1:] for column in columns]
    return changed


def _together(old: Path | None, fresh: Path, threads: int) -> Generator[list[Any]]:
    """Return the rows of both files in the order of the tags, sorted by DuckDB, which spills to disk."""
    import duckdb  # noqa: PLC0415 (only where tables grow)

    with (
        temporary_folder() as spill,
        interruptible(),
        contextlib.closing(duckdb.connect()) as database,
    ):
        try:
            database.execute("SET enable_progress_bar = false")
            database.execute("SET memory_limit = ?", [_MEMORY])
            database.execute("SET temp_directory = ?", [str(spill)])
            database.execute("SET threads = ?", [threads])
            parts = [(fresh, True)] if old is None else [(old, False), (fresh, True)]
            query = " UNION ALL ".join(_part(*part) for part in parts) + " ORDER BY id_tag, fresh"
            for batch in database.sql(query).to_arrow_reader(BATCH_ROWS):
                yield _arrays(batch)
        except duckdb.InterruptException:
            raise
        except duckdb.Error:
            raise TableFileError("the tags of the rows could not be joined: the disk may be full.") from None


def _part(path: Path, fresh: bool) -> str:
    name = str(path).replace("'", "''")
    return f"SELECT id_tag, row_tag, {fresh} AS fresh FROM read_parquet('{name}')"  # noqa: S608 (quoted name)


def _arrays(batch: Any) -> list[Any]:
    return [column.to_numpy(zero_copy_only=False) for column in batch.columns]


class _Digest:
    """SHA-256 of the tags in their order, whatever the file around them looks like, and their number."""

    def __init__(self) -> None:
        self._hash, self._rows = sha256(), 0

    def add(self, id_tags: Words, row_tags: Words) -> None:
        pairs = np.stack([id_tags, row_tags], axis=1).astype("<u8")
        self._hash.update(pairs.tobytes())
        self._rows += len(pairs)

    def text(self) -> str:
        return f"{self._rows}:{self._hash.hexdigest()[:32]}"
