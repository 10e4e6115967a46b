"""Engines that know no URL, so that neither they nor their exceptions can show one."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

from sqlalchemy import Connection, Engine, create_engine, event


def sqlite_engine(path: Path, *, pragmas: Sequence[str], timeout: float, **pool: Any) -> Engine:
    """Return the engine of a file that is there. Transactions begin by a statement, at which writers wait."""

    def connect() -> sqlite3.Connection:
        # `mode=rw`: a file that was deleted under us is an error, not a new and empty one.
        made = sqlite3.connect(
            f"{path.as_uri()}?mode=rw", uri=True, timeout=timeout, isolation_level=None, check_same_thread=False
        )
        try:
            for pragma in pragmas:
                made.execute(f"PRAGMA {pragma}")
        except BaseException:
            made.close()
            raise
        return made

    engine = create_engine("sqlite://", creator=connect, hide_parameters=True, **pool)

    @event.listens_for(engine, "begin")
    def begin(connection: Connection) -> None:
        immediate = connection.get_execution_options().get("immediate", False)
        connection.exec_driver_sql("BEGIN IMMEDIATE" if immediate else "BEGIN")

    return engine


def postgres_engine(parameters: dict[str, Any], *, settings: str = "", **pool: Any) -> Engine:
    """Return the engine of a database, each of whose connections begins with these settings."""
    import psycopg  # noqa: PLC0415 (files do not need it)

    def connect() -> psycopg.Connection[Any]:
        # Nothing is prepared: that would tie a transaction to its connection, and poolers in between share those.
        made = psycopg.connect(**parameters, prepare_threshold=None)
        if settings:
            made.execute(settings.encode())
            made.commit()
        return made

    return create_engine(
        "postgresql+psycopg://", creator=connect, hide_parameters=True, use_native_hstore=False, **pool
    )


def unfit(connection: Connection) -> Literal["fsync", "encoding"] | None:
    """Return why a PostgreSQL server is not to be trusted with anything: it would forget, or cannot hold every name."""
    query = "SELECT current_setting('fsync'), current_setting('server_encoding')"
    syncs, encoding = connection.exec_driver_sql(query).one()
    return "fsync" if syncs != "on" else "encoding" if encoding != "UTF8" else None
