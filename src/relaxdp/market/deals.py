"""What a sale would be: the level, its price, what is due, or the one sentence why it cannot be."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

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
from relaxdp.market.accounts import Account
from relaxdp.market.grid import level_on
from relaxdp.market.listings import Listing
from relaxdp.market.purchases import Purchase

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
