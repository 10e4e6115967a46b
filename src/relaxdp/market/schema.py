"""The tables of the market. A level is kept as its threshold, in 20 digits, so that text sorts as numbers do."""

from __future__ import annotations

from sqlalchemy import BigInteger, Boolean, Column, Integer, LargeBinary, Table, Text, UniqueConstraint

from relaxdp.service.schema import METADATA


def _number(name: str = "number") -> Column[int]:
    return Column(name, Integer, primary_key=True, autoincrement=False)


def _level() -> Column[str]:
    return Column("threshold", Text, primary_key=True)


# One row: which key this market was opened with, and the key that its receipts are checked with.
SETUP = Table(
    "market_setup",
    METADATA,
    Column("key_fingerprint", Text, primary_key=True),
    Column("public_key", LargeBinary, nullable=False),
)

# The row of the account that credits come from has no token. A balance is the sum of its entries.
ACCOUNTS = Table(
    "market_account",
    METADATA,
    _number(),
    Column("name", Text, nullable=False, unique=True),
    Column("role", Text, nullable=False),
    Column("digest", LargeBinary, unique=True),
    Column("balance", BigInteger, nullable=False),
)

# `path` names what is sold, so that one path is not sold in two places, where each would draw for itself. A draft has
# none yet, and a release that ended before anything was sold has none any more.
LISTINGS = Table(
    "market_listing",
    METADATA,
    _number(),
    Column("id", Text, nullable=False, unique=True),
    Column("kind", Text, nullable=False),
    Column("seller", Integer),
    Column("title", Text, nullable=False),
    Column("state", Text, nullable=False),
    Column("prices", Text, nullable=False),
    Column("grid", Text, nullable=False),
    Column("details", Text, nullable=False),
    Column("question", Text),
    Column("suggested", Text),
    Column("budget", Text),
    Column("path", Text, unique=True),
    Column("described", Text),
    Column("id_column", Text),
    Column("objects", BigInteger, nullable=False),
)

# A level of a release: delivered by its seller, or drawn from the two others that are named here, and kept.
LEVELS = Table(
    "market_level",
    METADATA,
    _number("listing"),
    _level(),
    Column("epsilon", Text, nullable=False),
    Column("delivered", Boolean, nullable=False),
    Column("lower", Text),
    Column("upper", Text),
    Column("digest", Text, nullable=False),
)

FILES = Table(
    "market_file",
    METADATA,
    Column("digest", Text, primary_key=True),
    Column("part", Integer, primary_key=True, autoincrement=False),
    Column("content", LargeBinary, nullable=False),
)

MEMBERS = Table(
    "market_member",
    METADATA,
    _number("listing"),
    _number("account"),
    Column("pseudonym", Text, nullable=False, unique=True),
    Column("minimum", BigInteger, nullable=False),
)

MEMBER_LEVELS = Table(
    "market_member_level",
    METADATA,
    _number("listing"),
    _number("account"),
    _level(),
    Column("epsilon", Text, nullable=False),
    Column("delivered", Boolean, nullable=False),
    Column("lower", Text),
    Column("upper", Text),
    Column("report", LargeBinary, nullable=False),
)

# The `place` of a purchase is among those of its listing, and its `history` a digest of all of them up to this one.
PURCHASES = Table(
    "market_purchase",
    METADATA,
    _number(),
    Column("listing", Integer, nullable=False),
    Column("buyer", Integer, nullable=False, index=True),
    Column("epsilon", Text, nullable=False),
    Column("threshold", Text, nullable=False),
    Column("price", BigInteger, nullable=False),
    Column("paid", BigInteger, nullable=False),
    Column("objects", BigInteger, nullable=False),
    Column("digest", Text, nullable=False),
    Column("state", Text, nullable=False),
    Column("previous", Integer),
    Column("issued", Text, nullable=False),
    Column("signature", Text, nullable=False),
    Column("place", Integer, nullable=False),
    Column("history", Text, nullable=False),
    UniqueConstraint("listing", "place"),
)

# Whose report is in a purchase from a pool, and what it cost.
PURCHASE_MEMBERS = Table(
    "market_purchase_member",
    METADATA,
    _number("purchase"),
    _number("account"),
    Column("price", BigInteger, nullable=False),
)

# The lines of a transaction add up to nothing.
ENTRIES = Table(
    "market_entry",
    METADATA,
    _number("transaction"),
    _number("account"),
    Column("amount", BigInteger, nullable=False),
    Column("reason", Text, nullable=False),
    Column("purchase", Integer, index=True),
    Column("issued", Text, nullable=False),
)
