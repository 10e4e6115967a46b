"""The versions of the service's schema, and the way from each to the next (alembic, without its command line)."""

from __future__ import annotations

from pathlib import Path
from threading import Lock
from typing import Any

from sqlalchemy import Connection, inspect, text

VERSION_TABLE = "service_version"
VERSIONS = ("0001",)
MIGRATIONS = Path(__file__).parent / "migrations"

_LOCK = Lock()  # alembic keeps what it works on in a global name
_CREATION = f"SELECT pg_advisory_xact_lock({int.from_bytes(b'relaxsrv')})"


def hold_creation(connection: Connection) -> None:
    """Let processes that start at once create the schema one after the other; SQLite's writers wait anyway."""
    if connection.dialect.name == "postgresql":
        connection.exec_driver_sql(_CREATION)


def version_of(connection: Connection) -> str | None:
    """Return which version a database has; None where there is no service in it."""
    if not inspect(connection).has_table(VERSION_TABLE):
        return None
    return connection.execute(text(f"SELECT version_num FROM {VERSION_TABLE}")).scalar()  # noqa: S608


def migrate(connection: Connection) -> None:
    """Bring a database to the last version, within the transaction of the caller, who also holds it."""
    from alembic.config import Config  # noqa: PLC0415
    from alembic.runtime.environment import EnvironmentContext  # noqa: PLC0415
    from alembic.script import ScriptDirectory  # noqa: PLC0415

    script = ScriptDirectory(MIGRATIONS)

    def steps(revision: Any, context: object) -> Any:
        return script._upgrade_revs(VERSIONS[-1], revision)

    with _LOCK, EnvironmentContext(Config(), script, fn=steps) as environment:
        environment.configure(connection=connection, transactional_ddl=True, version_table=VERSION_TABLE)
        with environment.begin_transaction():
            environment.run_migrations()
