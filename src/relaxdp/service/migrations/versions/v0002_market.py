"""The first schema of the market: its key, accounts and entries, listings, levels, files, members, purchases."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0002_market"
down_revision = "0001_collector"


def _number(name: str = "number") -> sa.Column[int]:
    return sa.Column(name, sa.Integer, primary_key=True, autoincrement=False)


def _text(name: str, **options: Any) -> sa.Column[str]:
    return sa.Column(name, sa.Text, nullable=False, **options)


def _amount(name: str) -> sa.Column[int]:
    return sa.Column(name, sa.BigInteger, nullable=False)


def _drawn() -> list[sa.Column[Any]]:
    """Return the columns of a level that tell where it comes from."""
    return [
        _text("epsilon"),
        sa.Column("delivered", sa.Boolean, nullable=False),
        sa.Column("lower", sa.Text),
        sa.Column("upper", sa.Text),
    ]


def upgrade() -> None:
    """Create the tables."""
    op.create_table(
        "market_setup",
        _text("key_fingerprint", primary_key=True),
        sa.Column("public_key", sa.LargeBinary, nullable=False),
    )
    op.create_table(
        "market_account",
        _number(),
        _text("name", unique=True),
        _text("role"),
        sa.Column("digest", sa.LargeBinary, unique=True),
        _amount("balance"),
    )
    op.create_table(
        "market_listing",
        _number(),
        _text("id", unique=True),
        _text("kind"),
        sa.Column("seller", sa.Integer),
        _text("title"),
        _text("state"),
        _text("prices"),
        _text("grid"),
        _text("details"),
        sa.Column("question", sa.Text),
        sa.Column("suggested", sa.Text),
        sa.Column("budget", sa.Text),
        sa.Column("path", sa.Text, unique=True),
        sa.Column("described", sa.Text),
        sa.Column("id_column", sa.Text),
        _amount("objects"),
    )
    op.create_table(
        "market_level", _number("listing"), _text("threshold", primary_key=True), *_drawn(), _text("digest")
    )
    op.create_table(
        "market_file",
        _text("digest", primary_key=True),
        _number("part"),
        sa.Column("content", sa.LargeBinary, nullable=False),
    )
    op.create_table(
        "market_member", _number("listing"), _number("account"), _text("pseudonym", unique=True), _amount("minimum")
    )
    op.create_table(
        "market_member_level",
        _number("listing"),
        _number("account"),
        _text("threshold", primary_key=True),
        *_drawn(),
        sa.Column("report", sa.LargeBinary, nullable=False),
    )
    op.create_table(
        "market_purchase",
        _number(),
        sa.Column("listing", sa.Integer, nullable=False),
        sa.Column("buyer", sa.Integer, nullable=False, index=True),
        _text("epsilon"),
        _text("threshold"),
        _amount("price"),
        _amount("paid"),
        _amount("objects"),
        _text("digest"),
        _text("state"),
        sa.Column("previous", sa.Integer),
        _text("issued"),
        _text("signature"),
        sa.Column("place", sa.Integer, nullable=False),
        _text("history"),
        sa.UniqueConstraint("listing", "place"),
    )
    op.create_table("market_purchase_member", _number("purchase"), _number("account"), _amount("price"))
    op.create_table(
        "market_entry",
        _number("transaction"),
        _number("account"),
        _amount("amount"),
        _text("reason"),
        sa.Column("purchase", sa.Integer, index=True),
        _text("issued"),
    )
