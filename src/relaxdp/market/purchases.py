"""Purchases in the database: who owns which level, what was paid for it, and the signature of its receipt."""

from __future__ import annotations

from dataclasses import dataclass, fields
from hashlib import sha256
from typing import Any

from sqlalchemy import Connection, Row, insert, select, update

from relaxdp.market import listings
from relaxdp.market.accounts import MarketAccount
from relaxdp.market.listings import StoredListing, level_columns
from relaxdp.market.receipts import Receipt
from relaxdp.market.schema import PURCHASE_MEMBERS, PURCHASES
from relaxdp.server_errors import UnknownPurchaseError
from relaxdp.theory.randomized_response import Level

OWNED, UPGRADED, REFUNDED = "owned", "upgraded", "refunded"


@dataclass(frozen=True, slots=True)
class StoredPurchase:
    """What a buyer got: a level of a listing, as a file. `price` is that of the level, `paid` what was due for it."""

    number: int
    listing: StoredListing
    buyer: int
    level: Level
    price: int
    paid: int
    objects: int
    digest: str
    state: str
    previous: int | None
    issued: str
    signature: str
    place: int
    history: str


def receipt_of(purchase: StoredPurchase, buyer: MarketAccount, market: str) -> Receipt:
    """Return what is signed."""
    return Receipt(
        version=1,
        number=purchase.number,
        listing=purchase.listing.id,
        buyer=buyer.name,
        **purchase.level.to_dict(),
        retention=str(purchase.level.retention),
        price=purchase.price,
        paid=purchase.paid,
        objects=purchase.objects,
        digest=purchase.digest,
        previous=purchase.previous,
        issued=purchase.issued,
        market=market,
    )


def keep(connection: Connection, purchase: StoredPurchase) -> None:
    """Write a purchase down; the one that it upgrades is owned no more."""
    row = {field.name: getattr(purchase, field.name) for field in fields(purchase) if field.name != "level"}
    row |= {"listing": purchase.listing.number, **level_columns(purchase.level)}
    connection.execute(insert(PURCHASES).values(**row))
    if purchase.previous is not None:
        set_state(connection, purchase.previous, UPGRADED)


def set_state(connection: Connection, number: int, state: str) -> None:
    """Say what became of a purchase."""
    connection.execute(update(PURCHASES).where(PURCHASES.c.number == number).values(state=state))


def find(connection: Connection, number: int) -> StoredPurchase:
    """Return a purchase by its number."""
    row = connection.execute(select(PURCHASES).where(PURCHASES.c.number == number)).first()
    if row is None:
        raise unknown()
    return _purchase(row, listings.numbered(connection, row.listing))


def unknown() -> UnknownPurchaseError:
    """Return the refusal of a number that is nobody's, or somebody else's: who asks shall not learn which."""
    return UnknownPurchaseError("there is no purchase with this number for you.")


def owned(connection: Connection, listing: StoredListing, buyer: int) -> StoredPurchase | None:
    """Return what a buyer owns of a listing now."""
    table = PURCHASES.c
    row = connection.execute(
        select(PURCHASES).where(table.listing == listing.number, table.buyer == buyer, table.state == OWNED)
    ).first()
    return None if row is None else _purchase(row, listing)


def newest(connection: Connection, listing: StoredListing) -> StoredPurchase | None:
    """Return the last purchase of a listing."""
    query = select(PURCHASES).where(PURCHASES.c.listing == listing.number).order_by(PURCHASES.c.place.desc()).limit(1)
    row = connection.execute(query).first()
    return None if row is None else _purchase(row, listing)


def history_of(listing: StoredListing, before: StoredPurchase | None, level: Level, digest: str) -> str:
    """Return what stands for all sales of a listing up to one: which levels, with which files, in which order."""
    begin = listing.id if before is None else before.history
    return sha256(f"{begin} {level.threshold} {digest}".encode()).hexdigest()


def of_buyer(connection: Connection, buyer: int) -> list[StoredPurchase]:
    """Return everything that somebody bought, the newest first; each listing is looked up once."""
    query = select(PURCHASES).where(PURCHASES.c.buyer == buyer).order_by(PURCHASES.c.number.desc())
    rows = connection.execute(query).all()
    known = {number: listings.numbered(connection, number) for number in {row.listing for row in rows}}
    return [_purchase(row, known[row.listing]) for row in rows]


def of_listing(connection: Connection, listing: StoredListing) -> list[StoredPurchase]:
    """Return everything that was sold of a listing, in order."""
    query = select(PURCHASES).where(PURCHASES.c.listing == listing.number).order_by(PURCHASES.c.number)
    return [_purchase(row, listing) for row in connection.execute(query)]


def chain(connection: Connection, purchase: StoredPurchase) -> list[StoredPurchase]:
    """Return a purchase and all that it upgraded, the newest first."""
    found = [purchase]
    while found[-1].previous is not None:
        row = connection.execute(select(PURCHASES).where(PURCHASES.c.number == found[-1].previous)).one()
        found.append(_purchase(row, purchase.listing))
    return found


def keep_members(connection: Connection, number: int, accounts: list[int], price: int) -> None:
    """Write down whose reports are in a purchase from a pool, and what each of them costs."""
    rows = [{"purchase": number, "account": account, "price": price} for account in accounts]
    connection.execute(insert(PURCHASE_MEMBERS), rows)


def members_of(connection: Connection, number: int) -> dict[int, int]:
    """Return whose reports are in a purchase, and what each of them costs."""
    table = PURCHASE_MEMBERS.c
    return {
        account: int(price)
        for account, price in connection.execute(select(table.account, table.price).where(table.purchase == number))
    }


def with_member(connection: Connection, listing: StoredListing, account: int) -> list[StoredPurchase]:
    """Return the purchases from a pool that contain somebody's report."""
    query = (
        select(PURCHASES)
        .join(PURCHASE_MEMBERS, PURCHASE_MEMBERS.c.purchase == PURCHASES.c.number)
        .where(PURCHASES.c.listing == listing.number, PURCHASE_MEMBERS.c.account == account)
        .order_by(PURCHASES.c.number)
    )
    return [_purchase(row, listing) for row in connection.execute(query)]


def _purchase(row: Row[Any], listing: StoredListing) -> StoredPurchase:
    return StoredPurchase(
        number=row.number,
        listing=listing,
        buyer=row.buyer,
        level=listing.level(row),
        price=int(row.price),
        paid=int(row.paid),
        objects=int(row.objects),
        digest=row.digest,
        state=row.state,
        previous=row.previous,
        issued=row.issued,
        signature=row.signature,
        place=row.place,
        history=row.history,
    )
