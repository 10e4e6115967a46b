"""The first schema: subjects, paths, events."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None


def upgrade() -> None:
    """Create the tables."""
    number = sa.BigInteger().with_variant(sa.Integer, "sqlite")
    op.create_table(
        "ledger_subject",
        sa.Column("subject_kind", sa.Text, primary_key=True),
        sa.Column("subject_name", sa.Text, primary_key=True),
        sa.Column("budget", sa.Text, nullable=False),
    )
    op.create_table(
        "ledger_path",
        sa.Column("subject_kind", sa.Text, primary_key=True),
        sa.Column("subject_name", sa.Text, primary_key=True),
        sa.Column("release", sa.Text, primary_key=True),
        sa.Column("attribute", sa.Text, primary_key=True),
        sa.Column("date", sa.Text, primary_key=True),
        sa.Column("epoch", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("encoding", sa.Text, nullable=False),
        sa.Column("params", sa.Text, nullable=False),
        sa.Column("key_fingerprint", sa.Text, nullable=False),
        sa.Column("id_type", sa.Text, nullable=False),
        sa.Column("table_fingerprint", sa.Text),
        sa.Column("growing", sa.Boolean, nullable=False),
        sa.Column("sampler", sa.Text, nullable=False),
        sa.Column("as_of", sa.Text),
        sa.Column("largest", sa.Text, nullable=False),
        sa.Column("digest", sa.Text),
        sa.Column("snapshot", sa.Text),
    )
    op.create_table(
        "ledger_event",
        sa.Column("number", number, primary_key=True, autoincrement=False),
        sa.Column("time", sa.Text, nullable=False),
        sa.Column("event", sa.Text, nullable=False),
        sa.Column("subject_kind", sa.Text, nullable=False),
        sa.Column("subject_name", sa.Text, nullable=False),
        sa.Column("release", sa.Text),
        sa.Column("attribute", sa.Text),
        sa.Column("date", sa.Text),
        sa.Column("epoch", sa.Integer),
        sa.Column("encoding", sa.Text),
        sa.Column("params", sa.Text),
        sa.Column("key_fingerprint", sa.Text),
        sa.Column("id_type", sa.Text),
        sa.Column("table_fingerprint", sa.Text),
        sa.Column("growing", sa.Boolean),
        sa.Column("sampler", sa.Text),
        sa.Column("as_of", sa.Text),
        sa.Column("digest", sa.Text),
        sa.Column("snapshot", sa.Text),
        sa.Column("epsilon", sa.Text),
        sa.Column("cost", sa.Text),
        sa.Column("previous", sa.Text),
        sa.Column("budget", sa.Text),
        sa.Column("reason", sa.Text, nullable=False),
        sqlite_autoincrement=True,
    )
    op.create_index("ledger_event_subject", "ledger_event", ["subject_kind", "subject_name"])
