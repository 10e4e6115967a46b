"""Sales that a restored database has forgotten are made again: the journal says which, and proves them the same."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from relaxdp.draw.key import Key
from relaxdp.errors import MarketClosedError, RelaxdpError
from relaxdp.market.journal import Journal, Sold
from relaxdp.market.keys import journal_folder, key_file
from relaxdp.market.market import Market
from relaxdp.service.database import Database
from relaxdp.service.prepare import existing
from relaxdp.service.settings import Settings


@dataclass(frozen=True, slots=True)
class Again:
    """A forgotten sale, and why it could not be made again; None where it was."""

    listing: str
    sold: Sold
    problem: str | None


def forgotten_sales(settings: Settings) -> list[tuple[str, Sold]]:
    """Return what the journal knows and the database does not; nothing where there is no market."""
    database = Database(settings.database)
    try:
        file = key_file(settings, database)
        if file is None:
            return []
        with database.reading() as connection:
            return Journal(journal_folder(settings, file)).forgotten(connection)
    finally:
        database.close()


def recover(settings: Settings) -> Iterator[Again]:
    """Make forgotten sales again, in their order, for the buyers who made them.

    Whatever was not delivered or paid in again yet stops its listing, and no other: then the rest is made at the next
    call. What is in the way is said, and nothing is sold that is not, byte for byte, what was sold.
    """
    with existing(settings.database, "Nothing was done.") as database:
        file = key_file(settings, database)
        if file is None:
            raise MarketClosedError("the market's key is needed: name it with --market-key. Nothing was done.")
        market = Market(database, Key.load(file), journal=Journal(journal_folder(settings, file)))
        market.check_key()
        yield from _again(market)


def _again(market: Market) -> Iterator[Again]:
    assert market.journal is not None  # noqa: S101
    with market.reading() as connection:
        lost = market.journal.forgotten(connection)
    stopped: set[str] = set()
    for listing, sold in lost:
        problem = "an earlier sale of this listing was not made" if listing in stopped else None
        if problem is None:
            try:
                market.buy(sold.buyer, listing, sold.epsilon, upgrade=sold.upgrade)
            except RelaxdpError as found:
                problem = found.message
                stopped.add(listing)
        yield Again(listing, sold, problem)
