"""Which kind a table is: a frame, or files, of which what an ending stands for is decided here and nowhere else."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import Any

from relaxdp.errors import TableFileError


def is_file(source: Any) -> bool:
    """Tell whether a table is a file, or the address of one, and no frame."""
    return isinstance(source, str | os.PathLike)


def is_spark(frame: Any) -> bool:
    """Tell whether a frame is Spark's."""
    return type(frame).__module__.startswith("pyspark.sql")


class Format(StrEnum):
    """The formats of tables. Parquet has a place for a description; that of a CSV file is in another file."""

    PARQUET = "parquet"
    CSV = "csv"
    FRAME = "frame"
    """A data frame in memory, as Arrow."""


@dataclass(frozen=True, slots=True)
class Kind:
    """The format of a file, what separates its fields, and how it is compressed."""

    format: Format
    separator: str = ","
    compression: str | None = None


_ENDINGS = {
    ".parquet": Kind(Format.PARQUET),
    ".pq": Kind(Format.PARQUET),
    ".csv": Kind(Format.CSV),
    ".tsv": Kind(Format.CSV, "\t"),
}
_COMPRESSED = {".gz": "gzip", ".zst": "zstd"}


def kind_of(path: Path) -> Kind:
    """Return the kind that a file's ending stands for. A folder is one of Parquet files."""
    if path.is_dir():
        return _ENDINGS[".parquet"]
    compression = _COMPRESSED.get(path.suffix.lower())
    kind = _ENDINGS.get((path if compression is None else Path(path.stem)).suffix.lower())
    if kind is None or (compression is not None and kind.format is not Format.CSV):
        raise TableFileError(
            "{path!r}: the ending must be .parquet, .csv or .tsv, of text also with .gz or .zst behind it, or the path "
            "a folder of Parquet files.",
            path=str(path),
        )
    return replace(kind, compression=compression)


def format_of(path: Path) -> Format:
    """Return the format that a file's ending stands for."""
    return kind_of(path).format


def stem_of(path: Path) -> str:
    """Return the name of a file without what says its kind."""
    return Path(path.stem).stem if path.suffix.lower() in _COMPRESSED else path.stem


def files_of(path: Path) -> list[Path]:
    """Return the files of a table: itself, or the Parquet files of a folder in the order of their names."""
    if not path.is_dir():
        return [path]
    files = sorted(path.glob("*.parquet")) + sorted(path.glob("*.pq"))
    if not files:
        raise TableFileError("the folder {path!r} has no Parquet files.", path=str(path))
    return files


SIDECAR = ".relaxdp.json"


def sidecar_of(path: Path) -> Path:
    """Return where the description of a text file lies."""
    return path.with_name(path.name + SIDECAR)


def sidecars_of(path: Path) -> list[Path]:
    """Return where the description of a text file may lie, also if the file was compressed or expanded since."""
    names = [path.name] if path.suffix.lower() not in _COMPRESSED else [path.name, path.stem]
    names += [] if len(names) > 1 else [path.name + ending for ending in _COMPRESSED]
    return [path.with_name(name + SIDECAR) for name in names]


def separator_of(path: Path, kind: Format, separator: str) -> str:
    """Return what separates the fields, or refuse what cannot."""
    if kind is not Format.CSV:
        raise TableFileError("{path!r} has no fields that something separates.", path=str(path))
    if len(separator) != 1 or not separator.isascii() or separator in '"\r\n' or separator.isalnum():
        raise TableFileError("fields are separated by one character, like ; or a tab, and not by a letter or a digit.")
    return separator
