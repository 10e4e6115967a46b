"""What people see of the market: everybody, a buyer, a seller."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Context, Decimal
from functools import lru_cache

import msgspec
from msgspec import UNSET
from sqlalchemy import Connection

from relaxdp.market import accounts, listings, pools, purchases, wire
from relaxdp.market.levels import better_than
from relaxdp.market.listings import KeptLevel, StoredListing
from relaxdp.market.pools import Standing
from relaxdp.market.purchases import StoredPurchase
from relaxdp.market.sales import Deal
from relaxdp.tables.metadata import ColumnDescription, encode_json_value
from relaxdp.theory.epsilon import format_epsilon
from relaxdp.theory.randomized_response import Level

ENCODER = msgspec.json.Encoder()


def encoding_view(described: ColumnDescription) -> wire.Encoding:
    """Return what everybody may know of an encoding."""
    values = UNSET if described.values is None else [encode_json_value(value) for value in described.values]
    ends = UNSET if described.range is None else described.range
    return wire.Encoding(described.encoding, dict(described.options), values, ends)


def listing_view(connection: Connection, listing: StoredListing) -> wire.Listing:
    """Return a listing with its levels: what each would cost and tell. A draft does not know what it would tell."""
    standing = pools.standing_of(connection, listing) if listing.kind == "pool" else None
    most = _authorised(connection, listing, standing)
    seller = None if listing.seller is None else accounts.numbered(connection, listing.seller).name
    return wire.Listing(
        id=listing.id,
        kind=listing.kind,
        title=listing.title,
        details=listing.details,
        question=listing.question,
        suggested=None if listing.suggested is None else format_epsilon(listing.suggested),
        seller=seller,
        state=listing.state,  # type: ignore[arg-type]
        encoding=None if listing.described is None else encoding_view(listing.described),
        objects=listing.objects,
        authorised=None if most is None else str(most),
        prices=wire.Prices(**listing.prices.to_json()),
        levels=[] if listing.described is None else list(_levels(_Offered(listing, most, standing))),
    )


def _authorised(connection: Connection, listing: StoredListing, standing: Standing | None) -> Level | None:
    return listings.authorised(connection, listing) if standing is None else standing.authorised


@dataclass(frozen=True, slots=True)
class _Offered:
    """What the offer of all levels depends on. Two are equal where their offers are: so an offer is computed once."""

    listing: StoredListing
    most: Level | None
    standing: Standing | None

    @property
    def _key(self) -> tuple[object, ...]:
        return self.listing.terms, self.listing.objects, self.most, self.standing

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Offered) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)


@lru_cache(maxsize=4096)
def _levels(offered: _Offered) -> tuple[wire.OfferedLevel, ...]:
    listing, most, standing = offered.listing, offered.most, offered.standing
    levels: list[wire.OfferedLevel] = []
    for epsilon in listing.grid:
        level = listing.encoding.level(epsilon)
        price = listing.price(level)
        each, objects, available = None, listing.objects, most is not None and level <= most
        if standing is not None:
            each, objects = price, standing.willing(level, price)
            price, available = each * objects, objects > 0
        half_width = listing.half_width(level, objects)
        levels.append(wire.OfferedLevel(str(level), price, each, objects, half_width, available, None))
    places = better_than(
        [(each.price, each.half_width) if each.available and each.half_width is not None else None for each in levels]
    )
    return tuple(
        level if place is None else msgspec.structs.replace(level, better=levels[place].epsilon)
        for level, place in zip(levels, places, strict=True)
    )


def quote_view(deal: Deal) -> wire.Quote:
    """Return what a level costs."""
    offer = deal.offer
    return wire.Quote(
        listing=offer.listing.id,
        **offer.level.to_dict(),
        price=offer.price,
        due=0 if deal.is_owned else max(0, deal.due),  # whoever owns more has paid for less
        owned=None if deal.owned is None else str(deal.owned.level),
        objects=offer.objects,
        half_width=offer.half_width,
    )


def purchase_views(connection: Connection, found: Sequence[StoredPurchase]) -> list[wire.Purchase]:
    """Return what a buyer got; the levels of each listing are looked at once."""
    own = {purchase.listing.number: purchase.listing for purchase in found}
    most = {number: _most(connection, listing) for number, listing in own.items()}
    return [_purchase_view(each, most[each.listing.number]) for each in found]


def purchase_view(connection: Connection, purchase: StoredPurchase, *, new: bool = False) -> wire.Purchase:
    """Return what a buyer got, and how far an upgrade may go now."""
    return _purchase_view(purchase, _most(connection, purchase.listing), new=new)


def _most(connection: Connection, listing: StoredListing) -> Level | None:
    standing = pools.standing_of(connection, listing) if listing.kind == "pool" else None
    return _authorised(connection, listing, standing)


def _purchase_view(purchase: StoredPurchase, most: Level | None, *, new: bool = False) -> wire.Purchase:
    return wire.Purchase(
        number=purchase.number,
        listing=purchase.listing.id,
        title=purchase.listing.title,
        **purchase.level.to_dict(),
        retention=str(purchase.level.retention),
        price=purchase.price,
        paid=purchase.paid,
        objects=purchase.objects,
        half_width=purchase.listing.half_width(purchase.level, purchase.objects),
        digest=purchase.digest,
        state=purchase.state,  # type: ignore[arg-type]
        previous=purchase.previous,
        issued=purchase.issued,
        authorised=None if most is None else str(most),
        new=new,
    )


def seller_view(connection: Connection, listing: StoredListing, account: int) -> wire.SellerListing:
    """Return a listing as its seller, or one member of a pool, sees it: income against privacy loss.

    Against buyers the loss is the largest epsilon that was sold, refunded or not; against the platform, which holds
    what was delivered, it is the largest epsilon delivered.
    """
    levels: Mapping[Level, KeptLevel]
    if listing.kind == "pool":
        (member,) = pools.members_of(connection, listing, account)
        sold, levels, minimum = purchases.with_member(connection, listing, account), member.levels, member.minimum
    else:
        sold, levels, minimum = purchases.of_listing(connection, listing), listings.levels_of(connection, listing), None
    delivered = sorted(kept.level for kept in levels.values() if kept.delivered)
    loss_buyers = max((purchase.level.epsilon for purchase in sold), default=Decimal(0))
    loss_platform = max((level.epsilon for level in delivered), default=Decimal(0))
    earned = accounts.earned(connection, account, listing.number)
    left = None if listing.budget is None else format_epsilon(Context(prec=80).subtract(listing.budget, loss_platform))
    return wire.SellerListing(
        listing=listing_view(connection, listing),
        budget=None if listing.budget is None else format_epsilon(listing.budget),
        delivered=[wire.DeliveredLevel(**level.to_dict()) for level in delivered],
        sold=_sold(sold, levels, earned),
        buyers=len({purchase.buyer for purchase in sold}),
        income=sum(earned.values()),
        loss_buyers=format_epsilon(loss_buyers),
        loss_platform=format_epsilon(loss_platform),
        left=left,
        minimum=minimum,
    )


def _sold(
    sold: Sequence[StoredPurchase], levels: Mapping[Level, KeptLevel], earned: Mapping[int, int]
) -> list[wire.SoldLevel]:
    found = []
    for level in sorted({purchase.level for purchase in sold}):
        buyers = {purchase.buyer for purchase in sold if purchase.level == level}
        kept, drawn_from = levels[level], None
        if kept.between is not None:
            lower, upper = kept.between.lower, kept.between.upper
            drawn_from = (None if lower is None else str(lower), str(upper))
        found.append(wire.SoldLevel(str(kept.level), len(buyers), earned.get(level.threshold, 0), drawn_from))
    return found
