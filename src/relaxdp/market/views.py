"""Listings, orders and sales as they travel over HTTP."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from decimal import Decimal

from sqlalchemy import Connection

from relaxdp.ledger.events import add_amounts
from relaxdp.market import listings, orders, wire
from relaxdp.market.listings import Listing
from relaxdp.market.members import Member
from relaxdp.market.orders import APPROVED, REQUESTED, Order
from relaxdp.theory.epsilon import format_epsilon

_PATH_FIELDS = ("encoding", "values", "range", "clip", "options")


def view_listing(connection: Connection, listing: Listing, member: Member | None) -> wire.ListingView:
    """Return a listing. A buyer sees what is due for each level; before the order nothing depends on a report."""
    levels = listings.list_levels(connection, listing)
    # The digest of a level that is not delivered would confirm a guess of its reports.
    shows_digests = member is not None and member.role == "seller" and member.name == listing.seller
    owned = None
    if member is not None and member.role == "buyer":
        owned = orders.find_owned(orders.list_orders(connection, buyer=member.name, listing=listing))
    offers = listings.make_offers(listing, levels)
    recommended = listings.recommend_level(offers)
    shown = []
    for level, offer in zip(levels, offers, strict=True):
        is_higher = owned is None or level.level > owned.level
        due = orders.compute_due(level, owned) if is_higher else Decimal(0)
        shown.append(
            wire.OfferView(
                str(level.level), str(level.level.threshold), str(level.price), str(due), sum(level.rows.values()),
                dict(level.rows), offer.margin, offer.is_useful, offer.is_dominated,
                level.digest if shows_digests else None,
            )
        )  # fmt: skip
    described = listing.description.to_dict()
    return wire.ListingView(
        id=listing.id, kind=listing.kind, title=listing.title, about=listing.about, seller=listing.seller,  # type: ignore[arg-type]
        release=listing.description.path.release, column=listing.description.path.attribute,
        currency=listing.currency, approval=listing.approval,  # type: ignore[arg-type]
        mechanism={name: described[name] for name in _PATH_FIELDS if name in described}, levels=shown,
        recommended=None if recommended is None else str(recommended),
        owned=None if owned is None else str(owned.level),
    )  # fmt: skip


def view_order(order: Order, *, is_new: bool = False) -> wire.OrderView:
    """Return an order."""
    listing = order.listing
    return wire.OrderView(
        order.id, listing.id, listing.title, listing.seller, order.buyer, str(order.level), str(order.price),
        str(order.due), listing.currency, order.state, order.previous, order.requested, order.digest, is_new,  # type: ignore[arg-type]
    )  # fmt: skip


def view_sales(connection: Connection, own: Sequence[Listing]) -> wire.Sales:
    """Return what was sold at most of each column, and the sums over the columns of one vault."""
    columns = []
    sums: defaultdict[str, list[tuple[Decimal, Decimal]]] = defaultdict(list)
    for listing in own:
        ordered = orders.list_orders(connection, listing=listing)
        buyers = Counter(each.level for each in ordered if each.state == APPROVED)
        held = max((each.level.epsilon for each in listings.list_levels(connection, listing)), default=Decimal(0))
        largest = max((level.epsilon for level in buyers), default=Decimal(0))
        fingerprint = listing.description.key_fingerprint
        sums[fingerprint].append((largest, held))
        columns.append(
            wire.ColumnSales(
                listing.id, listing.description.path.release, listing.description.path.attribute, fingerprint,
                [wire.SoldLevel(str(level), n) for level, n in sorted(buyers.items())], _format(largest), _format(held),
                sum(each.state == REQUESTED for each in ordered),
            )
        )  # fmt: skip
    vaults = [
        wire.VaultSales(name, *(_format(add_amounts(amounts)) for amounts in zip(*found, strict=True)))
        for name, found in sorted(sums.items())
    ]
    return wire.Sales(columns, vaults)


def _format(amount: Decimal) -> str:
    return format_epsilon(amount) if amount else "0"
