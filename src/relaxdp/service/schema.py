"""The tables that every service has: tokens and duties."""

from __future__ import annotations

from sqlalchemy import Column, Double, LargeBinary, MetaData, Table, Text

METADATA = MetaData()

TOKENS = Table(
    "service_token", METADATA, Column("role", Text, primary_key=True), Column("digest", LargeBinary, nullable=False)
)

LEASES = Table(
    "service_lease",
    METADATA,
    Column("duty", Text, primary_key=True),
    Column("holder", Text, nullable=False),
    Column("until", Double, nullable=False),
)
