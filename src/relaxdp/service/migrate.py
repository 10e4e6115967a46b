"""The versions of the service's schema, and the way from each to the next (alembic, without its command line)."""

from __future__ import annotations

from pathlib import Path

from sqlalchemy import Connection

from relaxdp.ledger import store as ledger

VERSION_TABLE = "service_version"
VERSIONS = ("0001_collector", "0002_market")
MIGRATIONS = Path(__file__).parent / "migrations"

_CREATION = f"SELECT pg_advisory_xact_lock({int.from_bytes(b'relaxsrv')})"


def hold_creation(connection: Connection) -> None:
    """Let processes that start at once create the schema one after the other; SQLite's writers wait anyway."""
    if connection.dialect.name == "postgresql":
        connection.exec_driver_sql(_CREATION)


def version_of(connection: Connection) -> str | None:
    """Return which version a database has; None where there is no service in it."""
    return ledger.version_of(connection, table=VERSION_TABLE)


def migrate(connection: Connection) -> None:
    """Bring a database to the last version, within the transaction of the caller, who also holds it."""
    ledger.migrate(connection, folder=MIGRATIONS, table=VERSION_TABLE, last=VERSIONS[-1])
