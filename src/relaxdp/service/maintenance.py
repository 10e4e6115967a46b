"""A service's database: prepared, backed up and restored."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from relaxdp.errors import add_consequence
from relaxdp.sampling.private_file import sync_folder
from relaxdp.server_errors import ServiceError
from relaxdp.service.limits import networks_of
from relaxdp.service.schema import SCHEMA
from relaxdp.service.settings import Settings
from relaxdp.service.tokens import make_operator_token
from relaxdp.storage.address import SqliteAddress
from relaxdp.storage.database import Database, address_of, check_file


@add_consequence("Nothing was started.")
def prepare(settings: Settings, token_file: Path | None = None) -> str | None:
    """Return the operator's token where it is new; it is in `token_file` already, where one was named."""
    networks_of(settings.trusted_proxies)
    for path in (settings.certificate, settings.certificate_key):
        if path is not None and not path.is_file():
            raise ServiceError("there is no file {path!r}.", path=str(path))
    database = Database(settings.database)
    try:
        database.prepare(SCHEMA)
        return make_operator_token(database, token_file, replace=False)
    finally:
        database.close()


@add_consequence("No token was made.")
def renew_token(url: str, token_file: Path | None = None) -> str:
    """Replace the operator's token and return the new one; it is in `token_file` already, where one was named.

    A service must be there: a mistyped address would make a database, and a token that opens nothing.
    """
    with existing(url) as database:
        return str(make_operator_token(database, token_file, replace=True))


@contextmanager
def existing(url: str) -> Iterator[Database]:
    """Open the database of a service that is there already, or refuse."""
    database = Database(url)
    try:
        if isinstance(database.address, SqliteAddress):
            if not database.address.path.is_file():
                raise ServiceError("there is no database {database!r}.", database=database.address.name)
            check_file(database.address.path)
        with database.reading() as connection:
            version = SCHEMA.read_version(connection)
        if version is None:
            raise ServiceError("the database {database!r} holds no service.", database=database.address.name)
        database.prepare(SCHEMA)
        yield database
    finally:
        database.close()


@add_consequence("Nothing was written.")
def back_up(url: str, target: Path) -> None:
    """Write a consistent copy of the database, also while the service runs. An existing file is replaced whole."""
    _copy(_file_of(url), target)


@add_consequence("Nothing was restored.")
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
            new.execute(f"SELECT version_num FROM {SCHEMA.table}")  # noqa: S608
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
