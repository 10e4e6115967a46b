"""The table that every service has, and the version of all tables in its database."""

from __future__ import annotations

from sqlalchemy import Column, LargeBinary, MetaData, Table, Text

from relaxdp.storage.database import Schema

METADATA = MetaData()
SCHEMA = Schema(METADATA, "service_version", version=3)
"""Importing the `schema` module of collector or market adds its tables."""

TOKENS = Table(
    "service_token", METADATA, Column("role", Text, primary_key=True), Column("digest", LargeBinary, nullable=False)
)
