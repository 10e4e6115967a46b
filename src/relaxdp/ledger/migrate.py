"""The versions of the schema, and the way from each to the next (alembic, without its command line)."""

from __future__ import annotations

from pathlib import Path
from threading import Lock
from typing import Any

from sqlalchemy import Connection, inspect, text

VERSION_TABLE = "ledger_version"
VERSIONS = ("0001",)
MIGRATIONS = Path(__file__).parent / "migrations"

_LOCK = Lock()  # alembic keeps what it works on in a global name


def version_of(connection: Connection, *, table: str = VERSION_TABLE) -> str | None:
    """Return which version a database has; None where there is no ledger in it, or what else `table` stands for."""
    if not inspect(connection).has_table(table):
        return None
    return connection.execute(text(f"SELECT version_num FROM {table}")).scalar()  # noqa: S608


def migrate(
    connection: Connection, *, folder: Path = MIGRATIONS, table: str = VERSION_TABLE, last: str = VERSIONS[-1]
) -> None:
    """Bring a database to the last version, within the transaction of the caller, who also holds it."""
    # Most calls find the schema as it should be; only those that do not wait for alembic.
    from alembic.config import Config  # noqa: PLC0415
    from alembic.runtime.environment import EnvironmentContext  # noqa: PLC0415
    from alembic.script import ScriptDirectory  # noqa: PLC0415

    script = ScriptDirectory(folder)

    def steps(revision: Any, context: object) -> Any:
        return script._upgrade_revs(last, revision)

    with _LOCK, EnvironmentContext(Config(), script, fn=steps) as environment:
        environment.configure(connection=connection, transactional_ddl=True, version_table=table)
        with environment.begin_transaction():
            environment.run_migrations()
