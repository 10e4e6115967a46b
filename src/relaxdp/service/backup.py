"""Backup and restore of a service's SQLite file. PostgreSQL has its own tools for that."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import tempfile
from pathlib import Path

from relaxdp.draw.private_file import sync_folder
from relaxdp.errors import ServiceError, refusing
from relaxdp.service.address import SqliteAddress, address_of
from relaxdp.service.migrate import VERSION_TABLE


@refusing("Nothing was written.")
def back_up(url: str, target: Path) -> None:
    """Write a consistent copy of the database, also while the service runs. An existing file is replaced whole."""
    _copy(_file_of(url), target)


@refusing("Nothing was restored.")
def restore(source: Path, url: str) -> None:
    """Make a database from a copy. There must be none yet: what is there is never overwritten."""
    target = _file_of(url)
    if any(Path(f"{target}{suffix}").exists() for suffix in ("", "-wal")):
        raise ServiceError("{path!r} exists already. Move it away first.", path=str(target))
    _copy(source, target)


def _file_of(url: str) -> Path:
    address = address_of(url)
    if not isinstance(address, SqliteAddress):
        raise ServiceError("a PostgreSQL database is backed up and restored with pg_dump and pg_restore.")
    return address.path


def _copy(source: Path, target: Path) -> None:
    if not source.is_file():
        raise ServiceError("there is no database {path!r}.", path=str(source))
    made: Path | None = None
    try:
        descriptor, name = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)  # mode 0600
        os.close(descriptor)
        made = Path(name)
        with (
            contextlib.closing(sqlite3.connect(f"{source.absolute().as_uri()}?mode=ro", uri=True)) as old,
            contextlib.closing(sqlite3.connect(made)) as new,
        ):
            old.backup(new)
            new.execute(f"SELECT version_num FROM {VERSION_TABLE}")  # noqa: S608
            whole = new.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        if not whole:
            raise sqlite3.DatabaseError
        with made.open("rb") as file:
            os.fsync(file.fileno())
        made.replace(target)
        sync_folder(target.parent)
    except sqlite3.Error:
        raise ServiceError("{path!r} is damaged, or no database of a service.", path=str(source)) from None
    except OSError as problem:
        raise ServiceError("{path!r} cannot be written: {why}.", path=str(target), why=problem.strerror) from None
    finally:
        for suffix in ("", "-wal", "-shm", "-journal") if made else ():
            Path(f"{made}{suffix}").unlink(missing_ok=True)
