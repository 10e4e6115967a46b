"""Which row of a CSV file has too many or too few fields: the reader says only that some row has."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from relaxdp.errors import TableFileError


@contextmanager
def row_named(source: Path) -> Iterator[None]:
    """Let the refusal of a damaged CSV file name the row, where it is damaged in this way."""
    try:
        yield
    except TableFileError as problem:
        found = _ragged(source) if source.suffix.lower() == ".csv" and "damaged" in problem.message else None
        if found is None:
            raise
        row, fields = found
        raise TableFileError(
            f"row {row:,}: it has not as many fields as the header, which has {fields}. Nothing was released.", row=row
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
