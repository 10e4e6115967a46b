"""Rows that are records of single values, in JSON lines and Excel sheets: the kinds of their columns, and batches.

Nothing is converted: text stays text, and 17 a number. Only whoever looked at all rows knows the kind of a column.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, time
from itertools import islice
from pathlib import Path
from typing import IO, Any
from uuid import UUID

import pyarrow as pa

from relaxdp.errors import MissingPartError, RelaxdpError, TableDamagedError, TableFileError

CHUNK = 1 << 14
Record = dict[str, Any]
_MIDNIGHT = time()


@dataclass(slots=True)
class _Seen:
    """What was seen of one column."""

    kinds: set[type] = field(default_factory=set)
    least: int = 0
    most: int = 0
    has_time: bool = False

    def add(self, values: Iterable[Any]) -> None:
        there = [value for value in values if value is not None]
        self.kinds |= set(map(type, there))
        if int in self.kinds:
            whole = [value for value in there if type(value) is int]
            self.least, self.most = min(self.least, *whole, 0), max(self.most, *whole, 0)
        if datetime in self.kinds:
            self.has_time |= any(value.time() != _MIDNIGHT for value in there if type(value) is datetime)

    def type(self) -> Any | None:
        """Return the one type that all values have; None where there are several, or none that a table has."""
        if self.kinds == {int}:
            if self.least < -(2**63) or self.most >= 2**64 or (self.least < 0 and self.most >= 2**63):
                return None
            return pa.uint64() if self.most >= 2**63 else pa.int64()
        if self.kinds <= {int, float}:
            return pa.float64() if self.kinds else pa.null()
        if self.kinds == {datetime}:
            return pa.timestamp("us") if self.has_time else pa.date32()
        only = next(iter(self.kinds)) if len(self.kinds) == 1 else None
        return {str: pa.string(), bool: pa.bool_(), date: pa.date32()}.get(only) if only is not None else None


class Records:
    """A table of records that is read anew for every look at it."""

    def __init__(self, path: Path, read: Callable[[], Iterator[Record]]) -> None:
        """Look at every row once."""
        self._path, self._read, self.rows = path, read, 0
        seen: dict[str, _Seen] = {}
        for chunk in self._chunks():
            self.rows += len(chunk)
            for name in dict.fromkeys(name for row in chunk for name in row):
                seen.setdefault(name, _Seen()).add(row.get(name) for row in chunk)
        if not seen:
            raise TableFileError("{path!r} is empty.", path=str(path))
        types = {name: each.type() for name, each in seen.items()}
        self._mixed = {name for name, kind in types.items() if kind is None}
        self.schema = pa.schema([(name, pa.string() if kind is None else kind) for name, kind in types.items()])

    def _chunks(self) -> Iterator[list[Record]]:
        rows = self._read()
        while chunk := list(islice(rows, CHUNK)):
            yield chunk

    def batches(self, columns: Sequence[str]) -> Iterator[Any]:
        """Return the rows of some columns, in order."""
        for name in columns:
            if name in self._mixed:
                raise TableFileError(
                    "{column!r} of {path!r} holds values of several kinds, or of one that no column has.",
                    column=name,
                    path=str(self._path),
                )
        schema = pa.schema([self.schema.field(name) for name in columns])
        for chunk in self._chunks():
            arrays = [pa.array([row.get(each.name) for row in chunk], each.type) for each in schema]
            yield pa.RecordBatch.from_arrays(arrays, schema=schema)


def json_records(text: IO[str]) -> Iterator[Record]:
    """Return the records of JSON lines; a line that is none is named by its row, and not shown."""
    row = 0
    for line in text:
        if line.isspace():
            continue
        row += 1
        found = _json_object(line)
        if found is None:
            raise TableFileError("it is not a JSON object whose names stand once.", row=row)
        yield found


def _json_object(line: str) -> Record | None:
    """Return a record, or None: the exception would bring the line along."""
    try:
        found = _DECODER.decode(line)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def _no_number(name: str) -> None:
    raise ValueError(name)


def _once(pairs: list[tuple[str, Any]]) -> Record:
    """Return a record whose names stand once: readers differ in which of two values they take."""
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError
    return found


_DECODER = json.JSONDecoder(parse_constant=_no_number, object_pairs_hook=_once)


def json_text(batch: Any, packed: set[str]) -> str | None:
    """Return the lines of a batch, packed reports in hexadecimal digits; None where something has no JSON."""
    try:
        rows = [{name: _plain(value, name in packed) for name, value in row.items()} for row in batch.to_pylist()]
        return "".join(f"{json.dumps(row, ensure_ascii=False, allow_nan=False)}\n" for row in rows)
    except (ValueError, TypeError):
        return None


def _plain(value: Any, is_packed: bool) -> Any:
    if isinstance(value, bytes):
        return value.hex() if is_packed else value.decode()
    return value.isoformat() if isinstance(value, date | time) else str(value) if isinstance(value, UUID) else value


def excel_records(path: Path) -> list[Record]:
    """Return the records of the only sheet of an Excel file, whose first row are names."""
    try:
        import openpyxl  # noqa: PLC0415 (an extra)
    except ImportError:
        raise MissingPartError("Excel files need openpyxl: pip install 'relaxdp[excel]'.") from None
    rows: list[tuple[Any, ...]] | None = None
    try:
        book = openpyxl.load_workbook(path, read_only=True, data_only=True)
        try:
            sheets = [sheet for sheet in book.worksheets if sheet.sheet_state == "visible"]
            if len(sheets) != 1:
                raise TableFileError(
                    "{path!r} has {sheets} sheets: a table is the only one of its file.",
                    path=str(path),
                    sheets=len(sheets),
                )
            rows = [row for row in sheets[0].iter_rows(values_only=True) if any(cell is not None for cell in row)]
        finally:
            book.close()
    except (OSError, RelaxdpError):
        raise
    except Exception:  # noqa: S110 (its parsers raise whatever they like, and may quote cells)
        pass
    if rows is None:
        raise TableDamagedError("{path!r} is damaged, cut off or of another kind than its ending says.", path=str(path))
    names = list(rows[0]) if rows else []
    while names and names[-1] is None:
        names.pop()
    if not names or not all(isinstance(name, str) for name in names) or len(set(names)) < len(names):
        raise TableFileError("the first row of {path!r} must be names of columns, each once.", path=str(path))
    return [dict(zip(names, row, strict=False)) for row in rows[1:]]
