"""Devices by the digests of their pseudonyms: whoever reads the database can no longer report or withdraw for them."""

from __future__ import annotations

from hashlib import sha256
from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"

# The formula as it was when this step was made: `read_device` of the collector's routes has it too.
_BEGIN = "relaxdp device\n{}\n"
_DIGEST = {
    "sqlite": "relaxdp_digest(:begin, device)",
    "postgresql": "substr(sha256(convert_to(:begin || encode(device, 'hex'), 'UTF8')), 1, 16)",
}


def _digest(begin: str, device: bytes) -> bytes:
    return sha256(f"{begin}{device.hex()}".encode()).digest()[:16]


def upgrade() -> None:
    """Write the rows anew and drop the old table: rows changed in place would leave the pseudonyms in the file.

    The column gets another name, so that a worker of an older version fails where it would store pseudonyms. Rows are
    written in the order of the digests, which tells nothing of the order in which they came.
    """
    connection = op.get_bind()
    dialect = connection.dialect.name
    if dialect == "sqlite":
        driver: Any = connection.connection.driver_connection
        driver.create_function("relaxdp_digest", 2, _digest, deterministic=True)
    op.create_table(
        "collector_report_new",
        sa.Column("campaign", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("device_digest", sa.LargeBinary, primary_key=True),
        sa.Column("level", sa.SmallInteger, primary_key=True, autoincrement=False),
        sa.Column("report", sa.LargeBinary, nullable=False),
        sqlite_with_rowid=False,
    )
    move = sa.text(
        "INSERT INTO collector_report_new (campaign, device_digest, level, report) "  # noqa: S608 (no words of others)
        f"SELECT campaign, {_DIGEST[dialect]}, level, report FROM collector_report WHERE campaign = :number "
        "ORDER BY 2, 3"
    )
    for number, name in connection.execute(sa.text("SELECT number, id FROM collector_campaign")).all():
        connection.execute(move, {"begin": _BEGIN.format(name), "number": number})
    op.drop_table("collector_report")
    op.rename_table("collector_report_new", "collector_report")
    if dialect == "postgresql":
        op.execute("ALTER INDEX collector_report_new_pkey RENAME TO collector_report_pkey")
