"""Versions of a schema, and the steps from one to the next (alembic)."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import Any

from sqlalchemy import Connection, inspect, text

_LOCK = Lock()  # alembic keeps what it works on in a global name


@dataclass(frozen=True, slots=True)
class Schema:
    """The tables of one owner: in which table their version stands, which versions there are, and the steps."""

    table: str
    versions: tuple[str, ...]
    folder: Path

    @property
    def last(self) -> str:
        """The version that is used."""
        return self.versions[-1]

    def version_of(self, connection: Connection) -> str | None:
        """Return which version a database has; None where these tables are not in it."""
        if not inspect(connection).has_table(self.table):
            return None
        return connection.execute(text(f"SELECT version_num FROM {self.table}")).scalar()  # noqa: S608

    def migrate(self, connection: Connection) -> None:
        """Bring a database to the last version, within the transaction of the caller, who also holds it."""
        # Most calls find the schema as it should be; only those that do not wait for alembic.
        from alembic.config import Config  # noqa: PLC0415
        from alembic.runtime.environment import EnvironmentContext  # noqa: PLC0415
        from alembic.script import ScriptDirectory  # noqa: PLC0415

        script = ScriptDirectory(self.folder)

        def steps(revision: Any, context: object) -> Any:
            return script._upgrade_revs(self.last, revision)

        with _LOCK, EnvironmentContext(Config(), script, fn=steps) as environment:
            environment.configure(connection=connection, transactional_ddl=True, version_table=self.table)
            with environment.begin_transaction():
                environment.run_migrations()
