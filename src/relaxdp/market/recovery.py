"""Sales that a restored database has forgotten are made again: the journal says which, and proves them the same."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

from relaxdp.errors import RelaxdpError, add_consequence
from relaxdp.market import accounts, listings, purchases
from relaxdp.market.accounts import OPERATOR
from relaxdp.market.journal import Forgotten, Journal, Sold
from relaxdp.market.keys import begin_journal, check_journal, journal_folder, key_file
from relaxdp.market.market import Market
from relaxdp.sampling.keys import Key
from relaxdp.server_errors import ForgottenSalesError, MarketClosedError
from relaxdp.service.maintenance import existing
from relaxdp.service.settings import Settings
from relaxdp.storage.database import Database

_REFUNDED = "refunded before, as the journal tells"


@dataclass(frozen=True, slots=True)
class Again:
    """A forgotten sale, and why it could not be made again; None where it was."""

    forgotten: Forgotten
    problem: str | None


def forgotten_sales(settings: Settings) -> list[Forgotten]:
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

    Whatever was not delivered or paid in again yet stops its path, and no other: then the rest is made at the next
    call. What is in the way is said, and nothing is sold that is not, byte for byte, what was sold.
    """
    with _market(settings, begin=False) as market:
        assert market.journal is not None  # noqa: S101
        with market.reading() as connection:
            lost = market.journal.forgotten(connection)
        stopped: set[str] = set()
        for each in lost:
            problem = "an earlier sale of it was not made" if each.path in stopped else _make(market, each)
            if problem is not None:
                stopped.add(each.path)
            yield Again(each, problem)


def begin_anew(settings: Settings) -> int:
    """Begin a journal that was lost, from the database; return of how many listings. It must not be a restored copy."""
    with _market(settings, begin=True) as market, market.reading() as connection:
        found = [listing for listing in listings.everything(connection, OPERATOR) if listing.path is not None]
        for listing in found:
            market.write_down(connection, listing)
    return len(found)


def _make(market: Market, forgotten: Forgotten) -> str | None:
    """Make one sale again, and return what was in the way."""
    sold = forgotten.sold
    if sold is None:
        return "its line is damaged"
    try:
        with market.reading() as connection:
            listing = listings.find(connection, sold.listing)
            owned = purchases.owned(connection, listing, accounts.named(connection, sold.buyer).number)
        if listing.path != forgotten.path:
            return "the listing of this name is of another release, or closed: list and deliver the right one again"
        if owned is not None and not sold.upgrade:  # nobody buys what they own: it was refunded in between
            market.refund(OPERATOR, owned.number, _REFUNDED)
        market.buy(sold.buyer, sold.listing, sold.epsilon, upgrade=owned is not None and sold.upgrade)
    except ForgottenSalesError:
        return _other_file(sold)
    except RelaxdpError as found:
        return found.message
    return None


def _other_file(sold: Sold) -> str:
    return (
        "it would be another file than the one that was sold: what was delivered, or who is in the pool, is not what "
        f"it was then, or the versions are not ({sold.writer})"
    )


@contextmanager
def _market(settings: Settings, *, begin: bool) -> Iterator[Market]:
    with ExitStack() as opened:
        with add_consequence("Nothing was done."):
            database = opened.enter_context(existing(settings.database))
            file = key_file(settings, database)
            if file is None:
                raise MarketClosedError("the market's key is needed: name it with --market-key.")
            key, folder = Key.load(file), journal_folder(settings, file)
            market = Market(database, key, journal=Journal(folder))
            market.check_key()
            (begin_journal if begin else check_journal)(folder, key)
        yield market
