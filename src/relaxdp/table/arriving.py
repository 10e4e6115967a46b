"""Tables that do not lie here: an address is fetched into a private folder, and read like any other file.

A table is read more than once (it is looked at, checked against the path's fingerprint, perhaps sorted), and all looks
must see the same rows. What is fetched is as secret as what a sort spills, and is kept and swept like that.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import unquote, urlsplit

import pyarrow as pa

from relaxdp.errors import TableFileError
from relaxdp.lazy import LazyModule
from relaxdp.publication.staging import temporary_folder
from relaxdp.table.kinds import SIDECAR, Format, format_of, sidecar_of

_PIECE = 1 << 20
fs = LazyModule("pyarrow.fs")  # few tables lie elsewhere


def is_address(source: object) -> bool:
    """Tell whether this is the address of a table that lies elsewhere."""
    return isinstance(source, str) and "://" in source


def name_of(source: str) -> str:
    """Return the last part of an address, without what may be a secret in it.

    >>> name_of("s3://name:secret@bucket/patients.parquet?region=eu-central-1")
    'patients.parquet'
    """
    name = PurePosixPath(unquote(urlsplit(source).path)).name  # what is quoted may be a slash
    return "" if name == ".." else name


@contextmanager
def arrived(source: Any) -> Iterator[Path]:
    """Give the place of a table: where it lies, or where it was fetched to."""
    if not is_address(source):
        yield Path(source)
        return
    with temporary_folder() as folder:
        place = folder / (name_of(source) or "table")
        is_csv = format_of(place) is Format.CSV
        if not _fetch(source, place):
            raise TableFileError(
                "{name!r} cannot be read from its {scheme} address. Those of s3, gs, abfss, hdfs and file are read, if "
                "the file is there and may be read.",
                name=place.name,
                scheme=urlsplit(source).scheme,
            )
        if is_csv:
            address, mark, query = source.partition("?")
            beside = f"{address}{SIDECAR}{mark}{query}"
            if not _fetch(beside, sidecar_of(place)) and not _is_absent(beside):
                raise TableFileError(
                    "whether {name!r} has a description beside it cannot be seen, and reports are no truth.",
                    name=place.name,
                )
        yield place


def _fetch(source: str, place: Path) -> bool:
    """Copy a file; False where that cannot be: messages of file systems quote addresses, and secrets in them."""
    with suppress(OSError, ValueError, pa.ArrowException):
        system, path = fs.FileSystem.from_uri(source)
        with system.open_input_stream(path, compression=None) as stream, place.open("xb") as file:
            shutil.copyfileobj(stream, file, _PIECE)
        return True
    return False  # what was begun lies in a folder that is removed


def _is_absent(source: str) -> bool:
    """Tell whether a file is surely not there: one that may not be read is there."""
    with suppress(OSError, ValueError, pa.ArrowException):
        system, path = fs.FileSystem.from_uri(source)
        return bool(system.get_file_info(path).type == fs.FileType.NotFound)
    return False
