"""The first schema of the service and the collector: tokens, duties; campaigns, their reports and counts."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001_collector"
down_revision = None


def upgrade() -> None:
    """Create the tables."""
    op.create_table(
        "service_token",
        sa.Column("role", sa.Text, primary_key=True),
        sa.Column("digest", sa.LargeBinary, nullable=False),
    )
    op.create_table(
        "service_lease",
        sa.Column("duty", sa.Text, primary_key=True),
        sa.Column("holder", sa.Text, nullable=False),
        sa.Column("until", sa.Double, nullable=False),
    )
    op.create_table(
        "collector_campaign",
        sa.Column("number", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("id", sa.Text, nullable=False, unique=True),
        sa.Column("definition", sa.Text, nullable=False),
        sa.Column("survey", sa.Text),
    )
    op.create_table(
        "collector_survey",
        sa.Column("name", sa.Text, primary_key=True),
        sa.Column("definition", sa.Text, nullable=False),
    )
    op.create_table(
        "collector_state",
        sa.Column("campaign", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("state", sa.Text, nullable=False),
        sa.Column("open_level", sa.Integer),
        sa.Column("version", sa.BigInteger, nullable=False),
        sa.Column("devices", sa.LargeBinary, nullable=False),
        sa.Column("differing", sa.BigInteger, nullable=False),
        sa.Column("reduced", sa.Boolean, nullable=False),
        sa.Column("reports", sa.LargeBinary, nullable=False),
    )
    op.create_table(
        "collector_report",
        sa.Column("campaign", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("device_digest", sa.LargeBinary, primary_key=True),
        sa.Column("level", sa.SmallInteger, primary_key=True, autoincrement=False),
        sa.Column("report", sa.LargeBinary, nullable=False),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "collector_count",
        sa.Column("campaign", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("level", sa.SmallInteger, primary_key=True, autoincrement=False),
        sa.Column("moved", sa.SmallInteger, primary_key=True, autoincrement=False),
        sa.Column("part", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("counts", sa.LargeBinary, nullable=False),
    )
    op.create_table(
        "collector_pair",
        sa.Column("campaign", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("older", sa.SmallInteger, primary_key=True, autoincrement=False),
        sa.Column("newer", sa.SmallInteger, primary_key=True, autoincrement=False),
        sa.Column("moved", sa.SmallInteger, primary_key=True, autoincrement=False),
        sa.Column("counts", sa.LargeBinary, nullable=False),
    )
    op.create_table(
        "collector_joint",
        sa.Column("row_campaign", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("column_campaign", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("row_level", sa.SmallInteger, primary_key=True, autoincrement=False),
        sa.Column("column_level", sa.SmallInteger, primary_key=True, autoincrement=False),
        sa.Column("counts", sa.LargeBinary, nullable=False),
    )
    op.create_table(
        "collector_publication",
        sa.Column("campaign", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("counts", sa.LargeBinary, nullable=False),
        sa.Column("content", sa.LargeBinary),
    )
    op.create_table(
        "collector_invitation",
        sa.Column("campaign", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("digest", sa.LargeBinary, primary_key=True),
        sa.Column("used", sa.Boolean, nullable=False),
        sqlite_with_rowid=False,
    )
