"""The tables that every service has, tokens and duties; and the versions of all tables in its database."""

from __future__ import annotations

from pathlib import Path

from sqlalchemy import Column, Double, LargeBinary, MetaData, Table, Text

from relaxdp.storage.database import Schema

METADATA = MetaData()
SCHEMA = Schema("service_version", ("0001_collector", "0002_market"), Path(__file__).parent / "migrations")

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
