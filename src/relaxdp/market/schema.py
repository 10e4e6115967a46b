"""The tables of the market and its rules: what was delivered is never changed, whatever the code does.

A level is stored as its threshold, in 20 digits, so that text sorts as numbers do.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import (
    DDL,
    CheckConstraint,
    Column,
    ForeignKeyConstraint,
    Index,
    Integer,
    LargeBinary,
    Table,
    Text,
    UniqueConstraint,
    event,
)

from relaxdp.service.schema import METADATA

MAX_LEVELS = 100


def _text(name: str, **options: Any) -> Column[str]:
    return Column(name, Text, nullable=False, **options)


# One row: the key that signs receipts. A copy of the database has it too, so a restored market signs as before.
SETUP = Table("market_setup", METADATA, Column("signing_key", LargeBinary, nullable=False))

MEMBERS = Table(
    "market_member",
    METADATA,
    _text("name", primary_key=True),
    _text("role"),
    Column("digest", LargeBinary, nullable=False, unique=True),
    CheckConstraint("role IN ('seller', 'buyer')"),
)

# `path` is the digest of the key fingerprint, the release, the attribute and the mechanism. A seller lists it once.
LISTINGS = Table(
    "market_listing",
    METADATA,
    _text("id", primary_key=True),
    _text("kind"),
    _text("seller"),
    _text("path"),
    _text("description"),
    _text("column"),
    _text("id_column"),
    _text("title"),
    _text("about"),
    _text("currency"),
    _text("approval"),
    _text("limits"),
    UniqueConstraint("seller", "path"),
    CheckConstraint("kind IN ('release', 'pool')"),
    CheckConstraint("approval IN ('seller', 'automatic')"),
)

# A level of a release has the digest of its file. The files of a pool are made for each order.
LEVELS = Table(
    "market_level",
    METADATA,
    _text("listing", primary_key=True),
    _text("threshold", primary_key=True),
    _text("epsilon"),
    _text("price"),
    Column("place", Integer, nullable=False),
    _text("rows"),
    Column("digest", Text),
    UniqueConstraint("listing", "place"),
    ForeignKeyConstraint(["listing"], ["market_listing.id"]),
    CheckConstraint(f"place BETWEEN 1 AND {MAX_LEVELS}"),
)

FILES = Table(
    "market_file",
    METADATA,
    _text("digest", primary_key=True),
    Column("part", Integer, primary_key=True, autoincrement=False),
    Column("content", LargeBinary, nullable=False),
)

ORDERS = Table(
    "market_order",
    METADATA,
    _text("id", primary_key=True),
    _text("listing"),
    _text("threshold"),
    _text("buyer"),
    _text("state"),
    _text("price"),
    _text("due"),
    Column("previous", Text),
    _text("requested"),
    Column("digest", Text),
    Column("receipt", Text),
    Column("signature", Text),
    ForeignKeyConstraint(["listing", "threshold"], ["market_level.listing", "market_level.threshold"]),
    CheckConstraint("state IN ('requested', 'approved', 'withdrawn')"),
    CheckConstraint("(state = 'approved') = (signature IS NOT NULL)"),
    CheckConstraint("(signature IS NULL) = (receipt IS NULL) AND (signature IS NULL) = (digest IS NULL)"),
)
# A buyer has one open request for a listing, and one approved order for a level.
_IS_REQUESTED, _IS_APPROVED = ORDERS.c.state == "requested", ORDERS.c.state == "approved"
Index(
    "market_order_requested",
    ORDERS.c.listing,
    ORDERS.c.buyer,
    unique=True,
    sqlite_where=_IS_REQUESTED,
    postgresql_where=_IS_REQUESTED,
)
Index(
    "market_order_approved",
    ORDERS.c.listing,
    ORDERS.c.buyer,
    ORDERS.c.threshold,
    unique=True,
    sqlite_where=_IS_APPROVED,
    postgresql_where=_IS_APPROVED,
)

# The reports of the members of pools: one for each member and level. `row` is the id that buyers see.
POOL_REPORTS = Table(
    "market_pool_report",
    METADATA,
    _text("listing", primary_key=True),
    _text("member", primary_key=True),
    _text("threshold", primary_key=True),
    _text("row"),
    Column("report", LargeBinary, nullable=False),
    ForeignKeyConstraint(["listing", "threshold"], ["market_level.listing", "market_level.threshold"]),
)

# A restored database may hold a withdrawal of an order that was approved. Its receipt then approves it again.
_SAME = ("id", "listing", "threshold", "buyer", "price", "due", "requested")
_CHANGES = " OR ".join(
    ["NEW.state <> 'approved'", "COALESCE(NEW.previous, '') <> COALESCE(OLD.previous, '')"]
    + [f"NEW.{each} <> OLD.{each}" for each in _SAME]
)
_KEPT = {
    "market_setup": ("UPDATE", ""),
    "market_level": ("UPDATE", ""),
    "market_file": ("UPDATE", ""),
    "market_pool_report": ("UPDATE", ""),
    "market_listing": ('UPDATE OF id, kind, seller, path, description, "column", id_column, currency, limits', ""),
    "market_order": ("UPDATE", f"WHEN (OLD.state = 'approved' OR (OLD.state = 'withdrawn' AND ({_CHANGES})))"),
}
"""Rows that are never changed, in whole or in these columns, or from a state on. None of them is ever deleted."""


def _declare_trigger(dialect: str, statement: str) -> None:
    make_ddl: Any = DDL  # which has no types
    event.listen(METADATA, "after_create", make_ddl(statement).execute_if(dialect=dialect))


def _declare_triggers() -> None:
    function = (
        "CREATE FUNCTION market_keep() RETURNS trigger LANGUAGE plpgsql AS "
        "$$ BEGIN RAISE EXCEPTION 'what the market delivered is not changed'; END $$"
    )
    _declare_trigger("postgresql", function)
    for table, (update, condition) in _KEPT.items():
        for number, (what, when) in enumerate([(update, condition), ("DELETE", "")]):
            head = f"CREATE TRIGGER {table}_kept_{number} BEFORE {what} ON {table} FOR EACH ROW {when}"
            failure = "SELECT RAISE(ABORT, 'what the market delivered is not changed')"
            _declare_trigger("sqlite", f"{head} BEGIN {failure}; END")
            _declare_trigger("postgresql", f"{head} EXECUTE FUNCTION market_keep()")
        head = f"CREATE TRIGGER {table}_kept BEFORE TRUNCATE ON {table}"
        _declare_trigger("postgresql", f"{head} EXECUTE FUNCTION market_keep()")


_declare_triggers()
