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
    """The kinds of files that are read and, except for Excel, written."""

    PARQUET = "parquet"
    CSV = "csv"
    JSONL = "jsonl"
    IPC = "ipc"
    EXCEL = "excel"

    @property
    def is_described_beside(self) -> bool:
        """Whether a description has no place in such a file, and lies beside it."""
        return self in (Format.CSV, Format.JSONL)


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
    ".jsonl": Kind(Format.JSONL),
    ".ndjson": Kind(Format.JSONL),
    ".arrow": Kind(Format.IPC),
    ".feather": Kind(Format.IPC),
    ".ipc": Kind(Format.IPC),
    ".xlsx": Kind(Format.EXCEL),
}
_COMPRESSED = {".gz": "gzip", ".zst": "zstd"}


def kind_of(path: Path) -> Kind:
    """Return the kind that a file's ending stands for, or those of the files in a folder."""
    if path.is_dir():
        return _kind_of_file(files_of(path)[0])
    return _kind_of_file(path)


def _kind_of_file(path: Path) -> Kind:
    kind = _ending_of(path)
    if kind is None:
        raise TableFileError(
            "{path!r}: the ending must be .parquet, .csv, .tsv, .jsonl, .arrow or .xlsx, of text also with .gz or .zst "
            "behind it, or the path a folder of such files.",
            path=str(path),
        )
    return kind


def _ending_of(path: Path) -> Kind | None:
    compression = _COMPRESSED.get(path.suffix.lower())
    if compression is None:
        return _ENDINGS.get(path.suffix.lower())
    inner = _ENDINGS.get(Path(path.stem).suffix.lower())
    return replace(inner, compression=compression) if inner is not None and inner.format.is_described_beside else None


def format_of(path: Path) -> Format:
    """Return the format that a file's ending, or those in a folder, stand for."""
    return kind_of(path).format


def stem_of(path: Path) -> str:
    """Return the name of a file without what says its kind."""
    return Path(path.stem).stem if path.suffix.lower() in _COMPRESSED else path.stem


def files_of(path: Path) -> list[Path]:
    """Return the files of a table: itself, or those of a folder in the order of their names.

    In a folder of Parquet files other files do not count; text files of a folder are all of one kind.
    """
    if not path.is_dir():
        return [path]
    files = sorted(path.glob("*.parquet")) + sorted(path.glob("*.pq"))
    if files:
        return files
    kinds = {file: _ending_of(file) for file in sorted(path.iterdir()) if not file.name.startswith(".")}
    texts = {file: kind for file, kind in kinds.items() if kind is not None and kind.format.is_described_beside}
    if len(set(texts.values())) > 1:
        raise TableFileError("the folder {path!r} has files of several kinds.", path=str(path))
    if not texts:
        raise TableFileError("the folder {path!r} has no Parquet, CSV or JSON lines files.", path=str(path))
    return list(texts)


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
