"""Deliveries: a seller lists a release with its first level, and raises the authorised epsilon with relaxed ones."""

from __future__ import annotations

import json
from collections.abc import Iterable
from decimal import Decimal

from sqlalchemy import Connection

from relaxdp.errors import DeliveryError, ListingStateError, MarketError, PriceError, UnknownListingError
from relaxdp.law.epsilon import Epsilon, epsilon_text
from relaxdp.law.level import Level
from relaxdp.market import listings
from relaxdp.market.accounts import Account
from relaxdp.market.goods import Goods, check_fits, read_level
from relaxdp.market.levels import check_delivery, check_digits, check_priced, extended, grown
from relaxdp.market.listings import KeptFile, Listing
from relaxdp.market.prices import PriceCurve
from relaxdp.market.store import keep_file, read_file


def own(connection: Connection, listing_id: str, seller: Account) -> Listing:
    """Return a listing of a seller; somebody else's is as unknown as one that is not there."""
    listing = listings.find(connection, listing_id)
    if listing.seller != seller.number:
        raise UnknownListingError("{seller} has no listing with this id.", seller=seller.name)
    return listing


def deliver(connection: Connection, listing: Listing, goods: Goods, file: bytes) -> Listing:
    """Take a delivery, whose `level_file` was made before the market was held.

    What is sold was drawn below the levels that were delivered before. So a delivery lies above all of them, and is a
    relaxed release of the very same path; that the seller's key and truths are the same cannot be seen here.
    """
    described, level = goods.described, goods.level
    if listing.kind != "release":
        raise ListingStateError("a pool takes single reports, not releases.")
    if listing.state == "closed":
        raise ListingStateError("this listing is closed.")
    delivered = [kept for kept in listings.levels_of(connection, listing).values() if kept.delivered]
    _check_level(listing, level, max((kept.level for kept in delivered), default=None))
    if delivered:
        first = read_level(read_file(connection, delivered[0].digest), listing.encoding)
        check_fits(goods, first)
    check_delivery(level, (kept.level for kept in delivered))
    check_digits(level.epsilon)
    columns = {
        "path": listings.claim_path(connection, listing, described),
        "described": json.dumps(described.to_json()),
        "id_column": goods.id_column,
        "objects": len(goods.ids),
        "state": "open",
        "grid": listings.grid_text(grown(listing.grid, level, listing.prices, goods.encoding)),
    }
    listings.keep_level(connection, listing, KeptFile(level, None, keep_file(connection, file)))
    return listings.change(connection, listing, **columns)


def _check_level(listing: Listing, level: Level, before: Level | None) -> None:
    """Refuse a level by its epsilon: whether it is of the encoding that was delivered before is not known yet."""
    epsilon, shown = level.epsilon, str(level)
    if before is not None and epsilon <= before.epsilon:
        raise DeliveryError(
            "a delivery must lie above every delivered level: {delivered} was delivered, and this one is at {epsilon}.",
            delivered=str(before),
            epsilon=shown,
        )
    if listing.budget is not None and epsilon > listing.budget:
        raise DeliveryError(
            "the delivery is at epsilon {epsilon}, and the budget of this listing is {budget}.",
            budget=epsilon_text(listing.budget),
            epsilon=shown,
        )
    if not listing.prices.reaches(epsilon):
        raise PriceError("the prices do not reach epsilon {epsilon}: extend them first.", epsilon=shown)


def extend_prices(
    connection: Connection, listing: Listing, newer: PriceCurve, levels: Iterable[Epsilon] | None = None
) -> Listing:
    """Let prices reach further up, and state more levels there; what is on sale stays as it is."""
    most = listings.authorised(connection, listing)
    prices, grid = listing.prices.extended_by(newer, None if most is None else most.epsilon), listing.grid
    check_priced(grid, prices)
    if levels is not None:
        grid = extended(grid, levels, prices, most, None if listing.described is None else listing.encoding)
    return listings.change(connection, listing, prices=json.dumps(prices.to_json()), grid=listings.grid_text(grid))


def raise_budget(connection: Connection, listing: Listing, budget: Decimal) -> Listing:
    """Raise the budget; what was promised to its people is not taken back by lowering it."""
    if listing.budget is not None and budget <= listing.budget:
        raise MarketError(
            "a budget may only be raised: it is {budget}, and {asked} was asked for.",
            budget=epsilon_text(listing.budget),
            asked=epsilon_text(budget),
        )
    most = listings.authorised(connection, listing)
    if most is not None and budget < most.epsilon:
        raise MarketError(
            "epsilon {delivered} was delivered already, which is more than a budget of {asked}.",
            delivered=most,
            asked=epsilon_text(budget),
        )
    return listings.change(connection, listing, budget=epsilon_text(budget))


def close(connection: Connection, listing: Listing, *, sold: bool = False) -> Listing:
    """Sell no more, for good. What was bought stays bought; if anything was, the path stays taken.

    Of a release that ends before anything was sold, nothing ever left the platform to a buyer, and nothing ever will:
    so what all buyers of the next listing of its path learn is one path again, and it gives the path up. The platform
    holds what was delivered to both, and against it the seller's release is one keyed path, wherever its levels were
    delivered. `sold` says that something was sold which the database has forgotten. A pool keeps its path, which is
    named after an id that stays taken.
    """
    if listing.state == "closed":
        raise ListingStateError("this listing is closed already.")
    if listing.kind == "release" and not sold and not listings.anything_sold(connection, listing):
        return listings.change(connection, listing, state="closed", path=None)
    return listings.change(connection, listing, state="closed")
