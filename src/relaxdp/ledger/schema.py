"""The tables of the ledger, the same in every store. Amounts are text, so that no store rounds them."""

from __future__ import annotations

from sqlalchemy import BigInteger, Boolean, Column, Index, Integer, MetaData, Table, Text

METADATA = MetaData()


def _subject() -> list[Column[str]]:
    return [Column("subject_kind", Text, primary_key=True), Column("subject_name", Text, primary_key=True)]


SUBJECTS = Table("ledger_subject", METADATA, *_subject(), Column("budget", Text, nullable=False))

PATHS = Table(
    "ledger_path",
    METADATA,
    *_subject(),
    Column("release", Text, primary_key=True),
    Column("attribute", Text, primary_key=True),
    Column("epoch", Integer, primary_key=True, autoincrement=False),
    Column("encoding", Text, nullable=False),
    Column("params", Text, nullable=False),
    Column("key_fingerprint", Text, nullable=False),
    Column("id_type", Text, nullable=False),
    Column("table_fingerprint", Text),
    Column("growing", Boolean, nullable=False),
    Column("sampler", Text, nullable=False),
    Column("largest", Text, nullable=False),
    Column("digest", Text),
)

# Append-only: each store refuses to change or delete what happened. The numbers are counted by us and not by the
# database, 1, 2, 3, ..., while the ledger is held: a sequence would leave gaps, and a gap is an event that is gone.
EVENTS = Table(
    "ledger_event",
    METADATA,
    Column("number", BigInteger().with_variant(Integer, "sqlite"), primary_key=True, autoincrement=False),
    Column("time", Text, nullable=False),
    Column("event", Text, nullable=False),
    Column("subject_kind", Text, nullable=False),
    Column("subject_name", Text, nullable=False),
    Column("release", Text),
    Column("attribute", Text),
    Column("epoch", Integer),
    Column("encoding", Text),
    Column("params", Text),
    Column("key_fingerprint", Text),
    Column("id_type", Text),
    Column("table_fingerprint", Text),
    Column("growing", Boolean),
    Column("sampler", Text),
    Column("digest", Text),
    Column("epsilon", Text),
    Column("cost", Text),
    Column("previous", Text),
    Column("budget", Text),
    Column("reason", Text, nullable=False),
    Index("ledger_event_subject", "subject_kind", "subject_name"),
    sqlite_autoincrement=True,
)
