"""A witness in the database: triggers that write down in which order levels, purchases and refunds appeared.

The market's rows have no place in time. Those who change the market do so one at a time, so the order in which rows
are written is that in which they became true; and what was rolled back takes the witness's own line with it.
"""

from __future__ import annotations

from typing import NamedTuple

from tests.servers.ledgers import Place, SqlitePlace

# What happened to which table, in which columns the witness is interested, and when.
_SEEN = [
    ("level", "market_level", "INSERT", "NEW.listing, 0, NEW.threshold", ""),
    ("member", "market_member_level", "INSERT", "NEW.listing, NEW.account, NEW.threshold", ""),
    ("purchase", "market_purchase", "INSERT", "NEW.listing, NEW.number, NEW.threshold", ""),
    ("refund", "market_purchase", "UPDATE", "NEW.listing, NEW.number, NEW.threshold", "NEW.state = 'refunded'"),
]
# What is kept once and for good: nobody ever touches these rows again. Of a purchase only its state may change.
_FOR_GOOD = ["market_level", "market_member_level", "market_file", "market_entry", "market_purchase_member"]
_FIXED = [
    "listing", "buyer", "epsilon", "threshold", "price", "paid", "objects", "digest", "previous", "issued", "signature",
]  # fmt: skip


class Seen(NamedTuple):
    """One line of the witness. `one` is the account of a member, or the number of a purchase."""

    place: int
    kind: str
    listing: int
    one: int
    threshold: str


def place_witness(place: Place) -> None:
    """Let somebody watch, behind the market's back."""
    number = "INTEGER PRIMARY KEY AUTOINCREMENT" if isinstance(place, SqlitePlace) else "BIGSERIAL PRIMARY KEY"
    place.run(f"CREATE TABLE witness (place {number}, kind TEXT, listing INTEGER, one INTEGER, threshold TEXT)")
    triggers = list(_SEEN)
    for table in _FOR_GOOD:
        triggers += [("changed", table, event, "0, 0, NULL", "") for event in ("UPDATE", "DELETE")]
    same = " OR ".join(f"OLD.{column} IS DISTINCT FROM NEW.{column}" for column in _FIXED)
    triggers.append(("changed", "market_purchase", "UPDATE", "0, NEW.number, NULL", same))
    triggers.append(("changed", "market_purchase", "DELETE", "0, 0, NULL", ""))
    for name, (kind, table, event, columns, condition) in enumerate(triggers):
        insert = f"INSERT INTO witness (kind, listing, one, threshold) VALUES ('{kind}', {columns});"
        when = f"WHEN ({condition})" if condition else ""
        head = f"CREATE TRIGGER witness_{name} AFTER {event} ON {table} FOR EACH ROW {when}"
        if isinstance(place, SqlitePlace):
            place.run(f"{head.replace('IS DISTINCT FROM', 'IS NOT')} BEGIN {insert} END")
        else:
            place.run(
                f"CREATE FUNCTION witness_{name}() RETURNS trigger LANGUAGE plpgsql AS "
                f"$$ BEGIN {insert} RETURN NULL; END $$",
                f"{head} EXECUTE FUNCTION witness_{name}()",
            )
