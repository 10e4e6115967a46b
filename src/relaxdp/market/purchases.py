"""Purchases in the database: who owns which level, what was paid for it, and the signature of its receipt."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from decimal import Decimal
from fractions import Fraction
from hashlib import sha256
from typing import Any

from sqlalchemy import Connection, Row, insert, select, update

from relaxdp.errors import UnknownPurchaseError
from relaxdp.law.epsilon import epsilon_text
from relaxdp.law.threshold import ONE
from relaxdp.market.accounts import Account
from relaxdp.market.listings import Listing
from relaxdp.market.receipts import Receipt
from relaxdp.market.schema import PURCHASE_MEMBERS, PURCHASES
from relaxdp.market.store import level_text

OWNED, UPGRADED, REFUNDED = "owned", "upgraded", "refunded"


@dataclass(frozen=True, slots=True)
class Purchase:
    """What a buyer got: a level of a listing, as a file. `price` is that of the level, `paid` what was due for it."""

    number: int
    listing: int
    buyer: int
    epsilon: Decimal
    threshold: int
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

    @property
    def retention(self) -> Fraction:
        """The exact retention of what was bought."""
        return Fraction(self.threshold, ONE)


def receipt_of(purchase: Purchase, listing: Listing, buyer: Account, market: str) -> Receipt:
    """Return what is signed."""
    return Receipt(
        version=1,
        number=purchase.number,
        listing=listing.id,
        buyer=buyer.name,
        epsilon=epsilon_text(purchase.epsilon),
        threshold=str(purchase.threshold),
        retention=str(purchase.retention),
        price=purchase.price,
        paid=purchase.paid,
        objects=purchase.objects,
        digest=purchase.digest,
        previous=purchase.previous,
        issued=purchase.issued,
        market=market,
    )


def keep(connection: Connection, purchase: Purchase) -> None:
    """Write a purchase down; the one that it upgrades is owned no more."""
    row = asdict(purchase) | {"epsilon": epsilon_text(purchase.epsilon), "threshold": level_text(purchase.threshold)}
    connection.execute(insert(PURCHASES).values(**row))
    if purchase.previous is not None:
        set_state(connection, purchase.previous, UPGRADED)


def set_state(connection: Connection, number: int, state: str) -> None:
    """Say what became of a purchase."""
    connection.execute(update(PURCHASES).where(PURCHASES.c.number == number).values(state=state))


def find(connection: Connection, number: int) -> Purchase:
    """Return a purchase by its number."""
    row = connection.execute(select(PURCHASES).where(PURCHASES.c.number == number)).first()
    if row is None:
        raise unknown()
    return _purchase(row)


def unknown() -> UnknownPurchaseError:
    """Return the refusal of a number that is nobody's, or somebody else's: who asks shall not learn which."""
    return UnknownPurchaseError("there is no purchase with this number for you. Nothing was done.")


def owned(connection: Connection, listing: Listing, buyer: int) -> Purchase | None:
    """Return what a buyer owns of a listing now."""
    table = PURCHASES.c
    row = connection.execute(
        select(PURCHASES).where(table.listing == listing.number, table.buyer == buyer, table.state == OWNED)
    ).first()
    return None if row is None else _purchase(row)


def newest(connection: Connection, listing: int) -> Purchase | None:
    """Return the last purchase of a listing."""
    query = select(PURCHASES).where(PURCHASES.c.listing == listing).order_by(PURCHASES.c.place.desc()).limit(1)
    row = connection.execute(query).first()
    return None if row is None else _purchase(row)


def history_of(listing: Listing, before: Purchase | None, threshold: int, digest: str) -> str:
    """Return what stands for all sales of a listing up to one: which levels, with which files, in which order."""
    return sha256(f"{listing.id if before is None else before.history} {threshold} {digest}".encode()).hexdigest()


def of_buyer(connection: Connection, buyer: int) -> list[Purchase]:
    """Return everything that somebody bought, the newest first."""
    query = select(PURCHASES).where(PURCHASES.c.buyer == buyer).order_by(PURCHASES.c.number.desc())
    return [_purchase(row) for row in connection.execute(query)]


def of_listing(connection: Connection, listing: Listing) -> list[Purchase]:
    """Return everything that was sold of a listing, in order."""
    query = select(PURCHASES).where(PURCHASES.c.listing == listing.number).order_by(PURCHASES.c.number)
    return [_purchase(row) for row in connection.execute(query)]


def chain(connection: Connection, purchase: Purchase) -> list[Purchase]:
    """Return a purchase and all that it upgraded, the newest first."""
    found = [purchase]
    while found[-1].previous is not None:
        found.append(find(connection, found[-1].previous))
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


def with_member(connection: Connection, listing: Listing, account: int) -> list[Purchase]:
    """Return the purchases from a pool that contain somebody's report."""
    query = (
        select(PURCHASES)
        .join(PURCHASE_MEMBERS, PURCHASE_MEMBERS.c.purchase == PURCHASES.c.number)
        .where(PURCHASES.c.listing == listing.number, PURCHASE_MEMBERS.c.account == account)
        .order_by(PURCHASES.c.number)
    )
    return [_purchase(row) for row in connection.execute(query)]


def _purchase(row: Row[Any]) -> Purchase:
    return Purchase(
        number=row.number,
        listing=row.listing,
        buyer=row.buyer,
        epsilon=Decimal(row.epsilon),
        threshold=int(row.threshold),
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
