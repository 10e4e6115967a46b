"""Sales: what one would be, or the one sentence why it cannot be; and a sale of a release, all in one commit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from sqlalchemy import Connection

from relaxdp.market import accounts, listings, purchases
from relaxdp.market.accounts import MarketAccount, next_number, time_text
from relaxdp.market.goods import Goods, draw_level, keep_file, level_file, read_file, read_level
from relaxdp.market.levels import Neighbours, level_on, neighbours
from relaxdp.market.listings import KeptFile, StoredListing
from relaxdp.market.purchases import OWNED, StoredPurchase, receipt_of
from relaxdp.market.receipts import Signer
from relaxdp.market.schema import PURCHASES
from relaxdp.sampling.keys import Key
from relaxdp.server_errors import (
    CreditsError,
    ListingStateError,
    NotAuthorisedError,
    NotOwnedError,
    OwnedAlreadyError,
    PriceChangedError,
)
from relaxdp.theory.epsilon import Epsilon, as_epsilon
from relaxdp.theory.randomized_response import Level


@dataclass(frozen=True, slots=True)
class LevelOffer:
    """A level of a listing as it could be sold now: how many objects, and what all of them cost together."""

    listing: StoredListing
    level: Level
    price: int
    objects: int
    each: int = 0
    """What one object of a pool costs."""

    @property
    def half_width(self) -> float | None:
        """How precise an estimate from it will be, at worst."""
        return self.listing.half_width(self.level, self.objects)


@dataclass(frozen=True, slots=True)
class Deal:
    """An offer to one buyer, who may own a lower level already."""

    offer: LevelOffer
    due: int
    owned: StoredPurchase | None

    @property
    def is_owned(self) -> bool:
        """Whether the buyer has exactly this level already."""
        return self.owned is not None and self.owned.level == self.offer.level


def level_of(listing: StoredListing, epsilon: Epsilon, authorised: Level | None) -> Level:
    """Return the level on sale that an epsilon means, or refuse what is not on sale."""
    if listing.state != "open":
        raise ListingStateError("this listing is {state} and sells nothing now.", state=listing.state)
    if authorised is None:
        raise NotAuthorisedError("nobody has joined this pool yet.")
    return level_on(listing.grid, as_epsilon(epsilon), listing.encoding, authorised)


def release_offer(listing: StoredListing, epsilon: Epsilon, authorised: Level | None) -> LevelOffer:
    """Return the offer of a release: all of its objects, for one price."""
    level = level_of(listing, epsilon, authorised)
    return LevelOffer(listing, level, listing.price(level), listing.objects)


def check(deal: Deal, buyer: MarketAccount, *, upgrade: bool, most: int | None) -> None:
    """Refuse a deal that cannot be made; what is owned already is no deal, and is not refused."""
    owned, offer = deal.owned, deal.offer
    if upgrade and owned is None:
        raise NotOwnedError(
            "{buyer} owns nothing of {listing!r}, so there is nothing to upgrade: buy it.",
            buyer=buyer.name,
            listing=offer.listing.id,
        )
    if deal.is_owned:
        return
    if owned is not None and owned.level > offer.level:
        raise OwnedAlreadyError(
            "{buyer} owns {listing!r} at epsilon {owned} (purchase {purchase}), which tells more than {epsilon}.",
            buyer=buyer.name,
            listing=offer.listing.id,
            purchase=owned.number,
            epsilon=offer.level,
            owned=str(owned.level),
        )
    if owned is not None and not upgrade:
        raise OwnedAlreadyError(
            "{buyer} owns {listing!r} at epsilon {owned}: an upgrade to {epsilon} costs the difference, "
            "{due:,} credits.",
            buyer=buyer.name,
            listing=offer.listing.id,
            epsilon=offer.level,
            owned=str(owned.level),
            due=deal.due,
        )
    if most is not None and deal.due > most:
        raise PriceChangedError(
            "{due:,} credits are due, which is more than the {most:,} that you are ready to pay.",
            due=deal.due,
            most=most,
        )
    if buyer.balance < deal.due:
        raise CreditsError(
            "{account} has {balance:,} credits, and {due:,} are due.",
            account=buyer.name,
            balance=buyer.balance,
            due=deal.due,
        )


@dataclass(frozen=True, slots=True)
class Order:
    """What a buyer asks for."""

    buyer: str
    listing: str
    epsilon: Epsilon
    upgrade: bool
    most: int | None


@dataclass(frozen=True, slots=True)
class Sale:
    """A sale of a release as one transaction sees it: all that it depends on, looked up once."""

    deal: Deal
    levels: Mapping[Level, KeptFile]

    @property
    def between(self) -> Neighbours | None:
        """What its level has to be drawn from; None where it is out already."""
        return None if self.deal.is_owned else neighbours(self.deal.offer.level, self.levels)


@dataclass(frozen=True, slots=True)
class Wanted:
    """A level that is to be drawn: between which levels, and the files of those."""

    offer: LevelOffer
    between: Neighbours
    files: Mapping[Level, bytes]


@dataclass(frozen=True, slots=True)
class Drawn:
    """A level that was drawn and not kept yet: a file, and the neighbours that it comes from."""

    between: Neighbours
    file: bytes


def release_deal(
    connection: Connection, listing: StoredListing, buyer: MarketAccount, epsilon: Epsilon, authorised: Level | None
) -> Deal:
    """Return what a level of a release means to a buyer: an upgrade costs the difference."""
    offer = release_offer(listing, epsilon, authorised)
    owned = purchases.owned(connection, listing, buyer.number)
    return Deal(offer, offer.price - (0 if owned is None else owned.price), owned)


def agree(connection: Connection, order: Order, listing: StoredListing, buyer: MarketAccount) -> Sale:
    """Return the sale that an order asks for, or refuse what cannot be made."""
    levels = listings.levels_of(connection, listing)
    most = max((kept.level for kept in levels.values() if kept.delivered), default=None)
    deal = release_deal(connection, listing, buyer, order.epsilon, most)
    check(deal, buyer, upgrade=order.upgrade, most=order.most)
    return Sale(deal, levels)


def prepare(connection: Connection, sale: Sale) -> Wanted | None:
    """Return what the level of a sale is drawn from, taken out of a snapshot; None where it is out already.

    The draw itself takes a while, so it is made after the snapshot was left, and before anybody holds the market.
    Whether the neighbours are still the nearest ones is seen when it is kept.
    """
    between = sale.between
    if between is None:
        return None
    files = {
        end: read_file(connection, sale.levels[end].digest) for end in (between.lower, between.upper) if end is not None
    }
    return Wanted(sale.deal.offer, between, files)


def draw(wanted: Wanted | None, key: Key) -> Drawn | None:
    """Draw a level between its nearest neighbours; None where none is wanted."""
    if wanted is None:
        return None
    between, offer = wanted.between, wanted.offer

    def at(level: Level) -> Goods:
        return read_level(wanted.files[level], offer.listing, level)

    lower = None if between.lower is None else at(between.lower)
    goods = draw_level(key, offer.listing.id, offer.level, lower=lower, upper=at(between.upper))
    return Drawn(between, level_file(goods))


def sell(
    connection: Connection, sale: Sale, buyer: MarketAccount, drawn: Drawn | None, signer: Signer, now: float
) -> tuple[StoredPurchase, bool] | None:
    """Keep the level, take and give the credits, and sign: all of it or nothing. The market is held.

    Also say whether the purchase is new: what is owned already is not charged again. None says that another level was
    kept meanwhile between the neighbours: then the draw is made again from the new ones. What was drawn before has not
    left this process.
    """
    deal, listing, between = sale.deal, sale.deal.offer.listing, sale.between
    if deal.is_owned and deal.owned is not None:
        return deal.owned, False
    if between is None:
        digest = sale.levels[deal.offer.level].digest
    elif drawn is None or drawn.between != between:
        return None
    else:
        digest = keep_file(connection, drawn.file)
        listings.keep_level(connection, listing, KeptFile(deal.offer.level, between, digest))
    purchase = record(connection, deal, buyer, digest, signer, now)
    assert listing.seller is not None  # noqa: S101
    pay(connection, purchase, {listing.seller: deal.due})
    return purchase, True


def record(
    connection: Connection, deal: Deal, buyer: MarketAccount, digest: str, signer: Signer, now: float
) -> StoredPurchase:
    """Write a purchase down, with the signature of its receipt."""
    offer, owned = deal.offer, deal.owned
    before = purchases.newest(connection, offer.listing)
    unsigned = StoredPurchase(
        number=next_number(connection, PURCHASES),
        listing=offer.listing,
        buyer=buyer.number,
        level=offer.level,
        price=offer.price,
        paid=deal.due,
        objects=offer.objects,
        digest=digest,
        state=OWNED,
        previous=None if owned is None else owned.number,
        issued=time_text(now),
        signature="",
        place=0 if before is None else before.place + 1,
        history=purchases.history_of(offer.listing, before, offer.level, digest),
    )
    signed = signer.sign(receipt_of(unsigned, buyer, signer.fingerprint))
    purchase = replace(unsigned, signature=signed.signature)
    purchases.keep(connection, purchase)
    return purchase


def pay(connection: Connection, purchase: StoredPurchase, shares: Mapping[int, int]) -> None:
    """Move what was paid from the buyer to whoever earned it."""
    what = "bought" if purchase.previous is None else "upgraded"
    accounts.post(
        connection,
        {purchase.buyer: -sum(shares.values()), **shares},
        reason=f"{what} {purchase.listing.id} at {purchase.level}",
        issued=purchase.issued,
        purchase=purchase.number,
    )
