"""Sales: what one would be, or the one sentence why it cannot be; and a sale of a release, all in one commit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

from sqlalchemy import Connection

from relaxdp.draw.key import Key
from relaxdp.errors import (
    CreditsError,
    ListingStateError,
    NotAuthorisedError,
    NotOwnedError,
    OwnedAlreadyError,
    PriceChangedError,
)
from relaxdp.law.epsilon import epsilon_text
from relaxdp.law.threshold import ONE
from relaxdp.market import accounts, listings, purchases
from relaxdp.market.accounts import Account
from relaxdp.market.goods import draw_level, read_level, write_level
from relaxdp.market.levels import Neighbours, level_on, neighbours
from relaxdp.market.listings import Level, Listing
from relaxdp.market.purchases import OWNED, Purchase, receipt_of
from relaxdp.market.receipts import Signer
from relaxdp.market.schema import PURCHASES
from relaxdp.market.store import digest_of, keep_file, next_number, time_text, write_file

_NOTHING = "Nothing was sold."


@dataclass(frozen=True, slots=True)
class Offer:
    """A level of a listing as it could be sold now: how many objects, and what all of them cost together."""

    listing: Listing
    epsilon: Decimal
    threshold: int
    price: int
    objects: int
    each: int = 0
    """What one object of a pool costs."""

    @property
    def half_width(self) -> float | None:
        """How precise an estimate from it will be, at worst."""
        return self.listing.half_width(self.epsilon, self.objects)


@dataclass(frozen=True, slots=True)
class Deal:
    """An offer to one buyer, who may own a lower level already."""

    offer: Offer
    due: int
    owned: Purchase | None

    @property
    def is_owned(self) -> bool:
        """Whether the buyer has exactly this level already."""
        return self.owned is not None and self.owned.threshold == self.offer.threshold


def level_of(listing: Listing, epsilon: Decimal, authorised: Decimal | None) -> tuple[Decimal, int]:
    """Return the level on sale that an epsilon means, and its threshold, or refuse what is not on sale.

    Levels are compared by their thresholds: another name of the same one is no more than what was delivered.
    """
    if listing.state != "open":
        raise ListingStateError(f"this listing is {listing.state} and sells nothing now. {_NOTHING}")
    if authorised is None:
        raise NotAuthorisedError(f"nobody has joined this pool yet. {_NOTHING}")
    encoding = listing.encoding
    if epsilon > authorised and encoding.threshold(epsilon) > encoding.threshold(authorised):
        most = epsilon_text(authorised)
        raise NotAuthorisedError(
            f"epsilon {epsilon_text(epsilon)} is more than the seller has authorised, which is {most}. {_NOTHING}",
            epsilon=epsilon_text(epsilon),
            authorised=most,
        )
    return level_on(listing.grid, epsilon, encoding, _NOTHING)


def release_offer(listing: Listing, epsilon: Decimal, authorised: Decimal | None) -> Offer:
    """Return the offer of a release: all of its objects, for one price."""
    level, threshold = level_of(listing, epsilon, authorised)
    price = listing.prices.price(level, Fraction(threshold, ONE))
    return Offer(listing, level, threshold, price, listing.objects)


def check(deal: Deal, buyer: Account, *, upgrade: bool, most: int | None) -> None:
    """Refuse a deal that cannot be made; what is owned already is no deal, and is not refused."""
    owned, offer = deal.owned, deal.offer
    if upgrade and owned is None:
        raise NotOwnedError(
            f"{buyer.name} owns nothing of {offer.listing.id!r}, so there is nothing to upgrade: buy it. {_NOTHING}"
        )
    if deal.is_owned:
        return
    if owned is not None and owned.threshold > offer.threshold:
        raise OwnedAlreadyError(
            f"{buyer.name} owns {offer.listing.id!r} at epsilon {epsilon_text(owned.epsilon)} (purchase "
            f"{owned.number}), which tells more than {epsilon_text(offer.epsilon)}. {_NOTHING}",
            owned=epsilon_text(owned.epsilon),
        )
    if owned is not None and not upgrade:
        raise OwnedAlreadyError(
            f"{buyer.name} owns {offer.listing.id!r} at epsilon {epsilon_text(owned.epsilon)}: an upgrade to "
            f"{epsilon_text(offer.epsilon)} costs the difference, {deal.due:,} credits. {_NOTHING}",
            owned=epsilon_text(owned.epsilon),
            due=deal.due,
        )
    if most is not None and deal.due > most:
        raise PriceChangedError(
            f"{deal.due:,} credits are due, which is more than the {most:,} that you are ready to pay. {_NOTHING}",
            due=deal.due,
            most=most,
        )
    if buyer.balance < deal.due:
        raise CreditsError(
            f"{buyer.name} has {buyer.balance:,} credits, and {deal.due:,} are due. {_NOTHING}",
            balance=buyer.balance,
            due=deal.due,
        )


@dataclass(frozen=True, slots=True)
class Order:
    """What a buyer asks for."""

    buyer: str
    listing: str
    epsilon: Decimal
    upgrade: bool
    most: int | None


@dataclass(frozen=True, slots=True)
class Drawn:
    """A level that was drawn and not kept yet: a file, and the neighbours that it comes from."""

    between: Neighbours
    path: Path
    digest: str


@dataclass(frozen=True, slots=True)
class Wanted:
    """A level that is to be drawn: between which levels, and where their files lie."""

    offer: Offer
    between: Neighbours
    files: Mapping[int, Path]


def authorised(levels: Mapping[int, Level]) -> Decimal | None:
    """Return the largest epsilon that was delivered."""
    return max((level.epsilon for level in levels.values() if level.delivered), default=None)


def release_deal(connection: Connection, listing: Listing, buyer: Account, epsilon: Decimal) -> Deal:
    """Return what a level of a release means to a buyer: an upgrade costs the difference."""
    offer = release_offer(listing, epsilon, authorised(listings.levels_of(connection, listing)))
    owned = purchases.owned(connection, listing, buyer.number)
    return Deal(offer, offer.price - (0 if owned is None else owned.price), owned)


def prepare(connection: Connection, order: Order, folder: Path) -> Wanted | None:
    """Return what the level that an order needs is drawn from, taken out of a snapshot; None where it is out already.

    The draw itself takes a while, so it is made after the snapshot was left, and before anybody holds the market.
    Whether the neighbours are still the nearest ones is seen when it is kept.
    """
    listing, buyer = listings.find(connection, order.listing), accounts.named(connection, order.buyer)
    deal = release_deal(connection, listing, buyer, order.epsilon)
    check(deal, buyer, upgrade=order.upgrade, most=order.most)
    levels = listings.levels_of(connection, listing)
    between = None if deal.is_owned else neighbours(deal.offer.threshold, levels)
    if between is None:
        return None
    files = {
        end: write_file(connection, levels[end].digest, folder / f"{end}.parquet")
        for end in (between.lower, between.upper)
        if end is not None
    }
    return Wanted(deal.offer, between, files)


def draw(wanted: Wanted | None, key: Key, folder: Path) -> Drawn | None:
    """Draw a level between its nearest neighbours; None where none is wanted."""
    if wanted is None:
        return None
    between, offer, path = wanted.between, wanted.offer, folder / "drawn.parquet"
    lower = None if between.lower is None else read_level(wanted.files[between.lower])
    upper = read_level(wanted.files[between.upper])
    write_level(draw_level(key, offer.listing.id, offer.epsilon, offer.threshold, lower=lower, upper=upper), path)
    return Drawn(between, path, digest_of(path))


def sell(connection: Connection, order: Order, drawn: Drawn | None, signer: Signer, now: float) -> Purchase | None:
    """Keep the level, take and give the credits, and sign: all of it or nothing. The market is held.

    None says that another level was kept meanwhile between the neighbours: then the draw is made again from the new
    ones. What was drawn before has not left this process.
    """
    listing, buyer = listings.find(connection, order.listing), accounts.named(connection, order.buyer)
    deal = release_deal(connection, listing, buyer, order.epsilon)
    check(deal, buyer, upgrade=order.upgrade, most=order.most)
    if deal.is_owned:
        return deal.owned
    offer, levels = deal.offer, listings.levels_of(connection, listing)
    between = neighbours(offer.threshold, levels)
    if between is not None:
        if drawn is None or drawn.between != between:
            return None
        keep_file(connection, drawn.path, drawn.digest)
        level = Level(offer.threshold, offer.epsilon, False, between.lower, between.upper, drawn.digest)
        listings.keep_level(connection, listing, level)
        digest = drawn.digest
    else:
        digest = levels[offer.threshold].digest
    purchase = record(connection, deal, buyer, digest, signer, now)
    assert listing.seller is not None  # noqa: S101
    pay(connection, purchase, listing, {listing.seller: deal.due})
    return purchase


def record(connection: Connection, deal: Deal, buyer: Account, digest: str, signer: Signer, now: float) -> Purchase:
    """Write a purchase down, with the signature of its receipt."""
    offer, owned = deal.offer, deal.owned
    before = purchases.newest(connection, offer.listing.number)
    unsigned = Purchase(
        number=next_number(connection, PURCHASES),
        listing=offer.listing.number,
        buyer=buyer.number,
        epsilon=offer.epsilon,
        threshold=offer.threshold,
        price=offer.price,
        paid=deal.due,
        objects=offer.objects,
        digest=digest,
        state=OWNED,
        previous=None if owned is None else owned.number,
        issued=time_text(now),
        signature="",
        place=0 if before is None else before.place + 1,
        history=purchases.history_of(offer.listing, before, offer.threshold, digest),
    )
    signed = signer.sign(receipt_of(unsigned, offer.listing, buyer, signer.fingerprint))
    purchase = replace(unsigned, signature=signed.signature)
    purchases.keep(connection, purchase)
    return purchase


def pay(connection: Connection, purchase: Purchase, listing: Listing, shares: Mapping[int, int]) -> None:
    """Move what was paid from the buyer to whoever earned it."""
    what = "bought" if purchase.previous is None else "upgraded"
    accounts.post(
        connection,
        {purchase.buyer: -sum(shares.values()), **shares},
        reason=f"{what} {listing.id} at {epsilon_text(purchase.epsilon)}",
        issued=purchase.issued,
        purchase=purchase.number,
    )
