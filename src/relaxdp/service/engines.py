"""Engines of both databases: connections whose commits are on disk before they return."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Engine, create_engine, event
from sqlalchemy.pool import QueuePool

from relaxdp.service.address import PostgresAddress, SqliteAddress

# `secure_delete` overwrites what is deleted: a report that was withdrawn is not left in a free page.
_PRAGMAS = (
    "journal_mode = WAL", "synchronous = FULL", "fullfsync = ON", "secure_delete = ON", "temp_store = MEMORY",
    "cache_size = -65536", "wal_autocheckpoint = 4000",
)  # fmt: skip

# Whatever the server, the database or the user have as defaults: a commit is on disk, and on synchronous replicas if
# there are any, before it returns; waiting for a lock ends; a worker that vanished does not hold a campaign for long.
_SETTINGS = (
    "SELECT set_config('lock_timeout', '30s', false), "
    "set_config('idle_in_transaction_session_timeout', '60s', false), "
    "set_config('synchronous_commit', "
    "CASE current_setting('synchronous_commit') WHEN 'remote_apply' THEN 'remote_apply' ELSE 'on' END, false)"
)

READING = {"isolation_level": "REPEATABLE READ", "postgresql_readonly": True}
WRITING = {"isolation_level": "READ COMMITTED", "postgresql_readonly": False}


def engine_of(address: SqliteAddress | PostgresAddress, *, timeout: float, connections: int) -> Engine:
    """Return an engine that knows no URL, so that neither it nor its exceptions can show one."""
    if isinstance(address, SqliteAddress):
        return _sqlite(address.path, timeout, connections)
    return _postgres(address.parameters, connections)


def _sqlite(path: Path, timeout: float, connections: int) -> Engine:
    def connect() -> sqlite3.Connection:
        made = sqlite3.connect(
            f"{path.as_uri()}?mode=rw", uri=True, timeout=timeout, isolation_level=None, check_same_thread=False
        )
        try:
            for pragma in _PRAGMAS:
                made.execute(f"PRAGMA {pragma}")
        except BaseException:
            made.close()
            raise
        return made

    engine = create_engine(
        "sqlite://", creator=connect, poolclass=QueuePool, pool_size=connections, max_overflow=connections,
        hide_parameters=True,
    )  # fmt: skip

    @event.listens_for(engine, "begin")
    def begin(connection: Connection) -> None:
        immediate = connection.get_execution_options().get("immediate", False)
        connection.exec_driver_sql("BEGIN IMMEDIATE" if immediate else "BEGIN")

    return engine


def _postgres(parameters: dict[str, Any], connections: int) -> Engine:
    import psycopg  # noqa: PLC0415

    def connect() -> psycopg.Connection[Any]:
        # Nothing is prepared: that would tie a transaction to its connection, and poolers in between share those.
        made = psycopg.connect(**parameters, prepare_threshold=None)
        made.execute(_SETTINGS)
        made.commit()
        return made

    return create_engine(
        "postgresql+psycopg://", creator=connect, poolclass=QueuePool, pool_size=connections,
        max_overflow=connections, pool_pre_ping=True, hide_parameters=True, use_native_hstore=False,
    )  # fmt: skip
