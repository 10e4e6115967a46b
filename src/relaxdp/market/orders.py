"""Orders: a buyer requests a level, the seller (or the listing itself) approves, and the receipt is signed."""

from __future__ import annotations

import json
import secrets
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

from sqlalchemy import Connection, Row, insert, select, update

from relaxdp.market import listings, pools
from relaxdp.market.listings import ListedLevel, Listing
from relaxdp.market.members import OPERATOR, Member
from relaxdp.market.receipts import VERSION, Receipt, SignedReceipt, Signer, verify_receipt
from relaxdp.market.schema import ORDERS
from relaxdp.server_errors import OrderStateError, ReceiptError, UnknownLevelError, UnknownOrderError
from relaxdp.theory.epsilon import Epsilon
from relaxdp.theory.randomized_response import Level

REQUESTED, APPROVED, WITHDRAWN = "requested", "approved", "withdrawn"


@dataclass(frozen=True, slots=True)
class Order:
    """A level that a buyer ordered."""

    id: str
    listing: Listing
    level: Level
    buyer: str
    state: str
    price: Decimal
    due: Decimal
    previous: str | None
    requested: str
    digest: str | None
    """Of the delivered file; None before the approval."""
    signed: SignedReceipt | None


def find_order(connection: Connection, order_id: str, member: Member) -> Order:
    """Return an order of a buyer, or of a seller's listing; others are as unknown as missing ones."""
    query = select(ORDERS).where(ORDERS.c.id == order_id)
    row = None if "\0" in order_id else connection.execute(query).first()
    order = None if row is None else _read_order(connection, row)
    if order is None or member.name not in (order.buyer, order.listing.seller or OPERATOR.name):
        raise UnknownOrderError(
            "You have no order {order!r}.", hint="List your orders: relaxdp market orders.", order=order_id
        )
    return order


def list_orders(connection: Connection, *, buyer: str | None = None, listing: Listing | None = None) -> list[Order]:
    """Return the orders of a buyer, of a listing, or both, the newest first."""
    query = select(ORDERS).order_by(ORDERS.c.requested.desc(), ORDERS.c.id)
    query = query if buyer is None else query.where(ORDERS.c.buyer == buyer)
    query = query if listing is None else query.where(ORDERS.c.listing == listing.id)
    return [_read_order(connection, row) for row in connection.execute(query)]


def _read_order(connection: Connection, row: Row[Any]) -> Order:
    listing = listings.find_listing(connection, row.listing)
    signed = None
    if row.receipt is not None:
        signed = SignedReceipt(Receipt(**json.loads(row.receipt)), row.signature)
    level = find_stored_level(connection, listing, row.threshold)
    return Order(
        row.id, listing, level.level, row.buyer, row.state, Decimal(row.price), Decimal(row.due), row.previous,
        row.requested, row.digest, signed,
    )  # fmt: skip


def find_stored_level(connection: Connection, listing: Listing, threshold: str) -> ListedLevel:
    """Return a level by the text that tables have of it."""
    return next(each for each in listings.list_levels(connection, listing) if each.key == threshold)


def find_owned(orders: list[Order]) -> Order | None:
    """Return the approved order at the highest level."""
    approved = [each for each in orders if each.state == APPROVED]
    return max(approved, key=lambda each: each.level) if approved else None


def request_order(
    connection: Connection, listing: Listing, buyer: str, epsilon: Epsilon, *, upgrade: bool, signer: Signer, now: float
) -> tuple[Order, bool]:
    """Return the order of a level, and whether it is new: the same request again changes nothing."""
    wanted = listings.find_level(connection, listing, epsilon)
    own = list_orders(connection, buyer=buyer, listing=listing)
    for each in own:
        if each.level == wanted.level and each.state != WITHDRAWN:
            return each, False
        if each.state == REQUESTED:
            raise OrderStateError(
                "You have already requested epsilon {epsilon} of {listing!r}.",
                hint="Wait for the seller's approval, or withdraw it: relaxdp market withdraw {order}.",
                epsilon=each.level,
                listing=listing.id,
                order=each.id,
            )
    owned = find_owned(own)
    due = compute_due(wanted, owned)
    _check_upgrade(listing, wanted, owned, due, upgrade=upgrade)
    order_id = secrets.token_hex(5)
    connection.execute(
        insert(ORDERS).values(
            id=order_id, listing=listing.id, threshold=wanted.key, buyer=buyer, state=REQUESTED,
            price=str(wanted.price), due=str(due), previous=None if owned is None else owned.id,
            requested=format_time(now),
        )
    )  # fmt: skip
    order = find_order(connection, order_id, Member(buyer, "buyer"))
    if listing.approval == "automatic":
        return approve_order(connection, order, signer, now), True
    return order, True


def compute_due(level: ListedLevel, owned: Order | None) -> Decimal:
    """Return the price of a level for a buyer: an upgrade costs the difference, which is not negative."""
    return max(Decimal(0), level.price - (Decimal(0) if owned is None else owned.price))


def _check_upgrade(listing: Listing, wanted: ListedLevel, owned: Order | None, due: Decimal, *, upgrade: bool) -> None:
    known: dict[str, Any] = {"epsilon": wanted.level, "listing": listing.id}
    if owned is None:
        if upgrade:
            raise OrderStateError(
                "You have no level of {listing!r}, so there is nothing to upgrade.",
                hint="Order it: relaxdp market order {listing} --epsilon {epsilon}.",
                **known,
            )
        return
    known |= {"owned": owned.level, "order": owned.id}
    if owned.level > wanted.level:
        raise OrderStateError(
            "You have epsilon {owned} of {listing!r}, which is more accurate than {epsilon}.",
            hint="Download it: relaxdp market download {order} FILE.",
            **known,
        )
    if not upgrade:
        raise OrderStateError(
            "You have epsilon {owned} of {listing!r}. An upgrade to {epsilon} costs the difference, {due} {currency}.",
            hint="Upgrade it: relaxdp market upgrade {listing} --epsilon {epsilon}.",
            due=due,
            currency=listing.currency,
            **known,
        )


def approve_order(connection: Connection, order: Order, signer: Signer, now: float) -> Order:
    """Approve a request: sign its receipt, and for a pool make its file. An approved order stays as it is."""
    if order.state == APPROVED:
        return order
    _require_requested(order)
    listing, level = order.listing, find_stored_level(connection, order.listing, f"{order.level.threshold:020d}")
    digest, rows = level.digest, sum(level.rows.values())
    if digest is None:
        prepared = pools.assemble_level(connection, listing, level.level)
        digest, rows = prepared.digest, len(prepared.reports.ids)
        listings.keep_file(connection, digest, prepared.content)
    receipt = Receipt(
        version=VERSION, market=signer.fingerprint, order=order.id, listing=listing.id, seller=listing.seller,
        buyer=order.buyer, release=listing.description.path.release, column=listing.description.path.attribute,
        epsilon=str(level.level), threshold=str(level.level.threshold), rows=rows, digest=digest,
        price=str(order.price), due=str(order.due), currency=listing.currency, previous=order.previous,
        issued=format_time(now),
    )  # fmt: skip
    signed = signer.sign(receipt)
    _change(
        connection,
        order,
        state=APPROVED,
        digest=digest,
        receipt=json.dumps(asdict(receipt)),
        signature=signed.signature,
    )
    return find_order(connection, order.id, Member(order.buyer, "buyer"))


def withdraw_order(connection: Connection, order: Order) -> Order:
    """Withdraw a request, as its buyer or its seller. Nothing was delivered of it."""
    if order.state != WITHDRAWN:
        _require_requested(order)
        _change(connection, order, state=WITHDRAWN)
    return find_order(connection, order.id, Member(order.buyer, "buyer"))


def _require_requested(order: Order) -> None:
    if order.state != REQUESTED:
        raise OrderStateError(
            "The order {order!r} is {state}, so it cannot change any more.",
            hint="List your orders: relaxdp market orders.",
            order=order.id,
            state=order.state,
        )


def _change(connection: Connection, order: Order, **values: Any) -> None:
    connection.execute(update(ORDERS).where(ORDERS.c.id == order.id).values(**values))


def restore_order(connection: Connection, signed: SignedReceipt, buyer: str, signer: Signer) -> Order:
    """Store an order again that a restored database has lost, from the receipt that its buyer kept."""
    receipt = verify_receipt(signed, signer.public_key)
    if receipt.buyer != buyer:
        raise ReceiptError("The receipt belongs to another buyer.", hint="Use the token of the buyer it names.")
    listing = listings.find_listing(connection, receipt.listing)
    own = list_orders(connection, buyer=buyer, listing=listing)
    stored = next((each for each in own if each.id == receipt.order), None)  # perhaps as it was before its approval
    is_taken = stored is None and connection.execute(select(ORDERS.c.id).where(ORDERS.c.id == receipt.order)).first()
    if is_taken or (listing.seller, listing.currency) != (receipt.seller, receipt.currency):
        raise ReceiptError(
            "The listing {listing!r} or the order {order} is not the one that the receipt names.",
            hint="Ask the operator. Your downloaded file and receipt stay valid.",
            listing=listing.id,
            order=receipt.order,
        )
    level = listing.parse_level(receipt.epsilon)
    known = [each for each in own if each.state == APPROVED and each.level == level]
    if not known:
        listed = _find_restored_level(connection, listing, receipt)
        prepared = None if listed.digest else pools.assemble_level(connection, listing, level)
        if (listed.digest if prepared is None else prepared.digest) != receipt.digest:
            raise ReceiptError(
                "Epsilon {epsilon} of {listing!r} has other ids or reports now than when the receipt was issued.",
                hint="Ask the seller to publish the release as it was. Your downloaded file and receipt stay valid.",
                epsilon=receipt.epsilon,
                listing=listing.id,
            )
        if prepared is not None:
            listings.keep_file(connection, prepared.digest, prepared.content)
        for each in own:
            # Open requests were priced without the restored order. The buyer can order again.
            if each.state == REQUESTED:
                _change(connection, each, state=WITHDRAWN)
        approved = {
            "state": APPROVED, "digest": receipt.digest, "receipt": json.dumps(asdict(receipt)),
            "signature": signed.signature,
        }  # fmt: skip
        if stored is not None:
            _change(connection, stored, **approved)
        else:
            connection.execute(
                insert(ORDERS).values(
                    id=receipt.order, listing=listing.id, threshold=listed.key, buyer=buyer, price=receipt.price,
                    due=receipt.due, previous=receipt.previous, requested=receipt.issued, **approved,
                )
            )  # fmt: skip
    return known[0] if known else find_order(connection, receipt.order, Member(buyer, "buyer"))


def _find_restored_level(connection: Connection, listing: Listing, receipt: Receipt) -> ListedLevel:
    try:
        return listings.find_level(connection, listing, receipt.epsilon)
    except UnknownLevelError:
        raise UnknownLevelError(
            "The listing {listing!r} does not sell epsilon {epsilon} now.",
            hint="Ask the seller to publish this level again, and then restore the order.",
            listing=listing.id,
            epsilon=receipt.epsilon,
        ) from None


def format_time(now: float) -> str:
    """Return a time as text that sorts.

    >>> format_time(0.25)
    '1970-01-01T00:00:00.250000Z'
    """
    return datetime.fromtimestamp(now, UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
