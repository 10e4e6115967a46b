"""Routes of buyers: buy, upgrade, what one owns, its file and its receipt; and refunds by whoever sold it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from functools import partial
from itertools import count

from sqlalchemy import Connection
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from relaxdp.errors import EpsilonError
from relaxdp.market import purchases, views, wire
from relaxdp.market.accounts import MarketAccount
from relaxdp.market.context import PARQUET, Room, answer
from relaxdp.market.goods import length_of, part_of
from relaxdp.market.purchases import StoredPurchase
from relaxdp.market.told import told_by
from relaxdp.server_errors import (
    CreditsError,
    ForgottenSalesError,
    ListingStateError,
    MarketError,
    NotAuthorisedError,
    NotOwnedError,
    OwnedAlreadyError,
    PriceChangedError,
    UnknownLevelError,
    UnknownListingError,
    UnknownPurchaseError,
    WrongRoleError,
)
from relaxdp.service.limits import decode, decoder_of, read_body
from relaxdp.service.operations import Operation

_ORDER, _REFUND = decoder_of(wire.OrderRequest), decoder_of(wire.RefundRequest)
_MOST_DIGITS = 9


class BuyerRoutes:
    """What buyers ask for."""

    def __init__(self, room: Room) -> None:
        self._room = room

    async def buy(self, request: Request) -> Response:
        """Buy a level; one that is owned already is not charged again."""
        return await self._sold(request, upgrade=False)

    async def upgrade(self, request: Request) -> Response:
        """Buy a higher level of what is owned, for the difference."""
        return await self._sold(request, upgrade=True)

    async def list_purchases(self, request: Request) -> Response:
        """List what one bought."""
        buyer = await self._room.access.role(request, "buyer")

        def work(connection: Connection) -> list[wire.Purchase]:
            found = purchases.of_buyer(connection, buyer.number)
            for listing in {each.listing.number: each.listing for each in found}.values():
                self._room.market.write_down(connection, listing)  # digests tell of files, if they are small
            return views.purchase_views(connection, found)

        return answer(wire.Purchases(await self._room.resources.read(work), buyer.balance))

    async def show_receipt(self, request: Request) -> Response:
        """Show the signed receipt of a purchase."""
        buyer, number = await self._room.access.role(request, "buyer"), _number(request)
        signed = await self._room.resources.compute(lambda: self._room.market.receipt(buyer, number))
        return answer(signed.to_json())

    async def download(self, request: Request) -> Response:
        """Hand out the file of a purchase: the very bytes that its receipt names."""
        buyer, number = await self._room.access.role(request, "buyer"), _number(request)
        digest, length = await self._room.resources.read(lambda connection: self._goods(connection, buyer, number))
        headers = {
            "content-length": str(length),
            "content-disposition": f'attachment; filename="purchase-{number}.parquet"',
            "cache-control": "no-store",
            "accept-ranges": "none",  # a part of it would have another digest than the receipt says
        }
        parts = () if request.method == "HEAD" else self._parts(digest)
        return StreamingResponse(parts, media_type=PARQUET, headers=headers)

    async def show_told(self, request: Request) -> Response:
        """Show what a purchase tells, from the reports that were bought."""
        buyer, number = await self._room.access.role(request, "buyer"), _number(request)

        def work(connection: Connection) -> wire.Told:
            return told_by(connection, self._handed_out(connection, buyer, number))

        return answer(await self._room.resources.read(work))

    async def refund(self, request: Request) -> Response:
        """Give back what was paid; the privacy does not come back."""
        who, number = await self._room.access.somebody(request), _number(request)
        if who.role == "buyer":
            who.check("seller")
        asked = decode(await read_body(request, self._room.resources.limits), _REFUND)
        done = await self._room.resources.perform(lambda: self._room.market.refund(who, number, asked.reason))
        return await self._shown(done, new=False, status=200)

    async def _sold(self, request: Request, *, upgrade: bool) -> Response:
        buyer = await self._room.access.role(request, "buyer")
        asked = decode(await read_body(request, self._room.resources.limits), _ORDER)
        name = request.path_params["id"]
        purchase, new = await self._room.resources.perform(
            lambda: self._room.market.buy(buyer.name, name, asked.epsilon, most=asked.most, upgrade=upgrade)
        )
        return await self._shown(purchase, new=new, status=201 if new else 200)

    async def _shown(self, purchase: StoredPurchase, *, new: bool, status: int) -> Response:
        view = await self._room.resources.read(lambda connection: views.purchase_view(connection, purchase, new=new))
        return answer(view, status)

    async def _parts(self, digest: str) -> AsyncIterator[bytes]:
        """Read part after part. A kept file never changes, so no snapshot is held while a client reads slowly."""
        for place in count():
            part = await self._room.resources.read(partial(part_of, digest=digest, place=place))
            if part is None:
                return
            yield part

    def _goods(self, connection: Connection, buyer: MarketAccount, number: int) -> tuple[str, int]:
        purchase = self._handed_out(connection, buyer, number)
        return purchase.digest, length_of(connection, purchase.digest)

    def _handed_out(self, connection: Connection, buyer: MarketAccount, number: int) -> StoredPurchase:
        """Return a purchase whose reports its buyer may see now: it was written down before."""
        purchase = self._room.market.purchase_of(connection, buyer, number)
        if purchase.state == purchases.REFUNDED:
            raise ListingStateError("this purchase was refunded, and is not handed out again.")
        self._room.market.write_down(connection, purchase.listing)
        return purchase

    def operations(self) -> list[Operation]:
        """Return what the routes are."""
        path, own = "/v1/market/listings/{id}", "/v1/market/purchases/{number}"
        refusals = (
            UnknownListingError, ListingStateError, NotAuthorisedError, NotOwnedError,
            OwnedAlreadyError, CreditsError, PriceChangedError, EpsilonError, UnknownLevelError, ForgottenSalesError,
        )  # fmt: skip
        return [
            Operation("POST", f"{path}/buy", self.buy, "Buy a level; one that is owned is not charged again.",
                      wire.OrderRequest, wire.Purchase, status=201, also=(200,), security="buyer", problems=refusals,
                      nothing="Nothing was sold."),
            Operation("POST", f"{path}/upgrade", self.upgrade, "Buy a higher level, for the difference.",
                      wire.OrderRequest, wire.Purchase, status=201, also=(200,), security="buyer", problems=refusals,
                      nothing="Nothing was sold."),
            Operation("GET", "/v1/market/purchases", self.list_purchases, "List what one bought.",
                      answer=wire.Purchases, security="buyer", problems=(ForgottenSalesError,)),
            Operation("GET", f"{own}/receipt", self.show_receipt, "Show the signed receipt of a purchase.",
                      answer=wire.SignedReceipt, security="buyer",
                      problems=(UnknownPurchaseError, ForgottenSalesError)),
            Operation("GET", f"{own}/data", self.download, "Hand out the file of a purchase.", media_type=PARQUET,
                      security="buyer", nothing="Nothing was handed out.",
                      problems=(UnknownPurchaseError, ListingStateError, ForgottenSalesError)),
            Operation("GET", f"{own}/told", self.show_told, "Show what a purchase tells, with intervals.",
                      answer=wire.Told, security="buyer",
                      problems=(UnknownPurchaseError, ListingStateError, ForgottenSalesError, MarketError)),
            Operation("POST", f"{own}/refund", self.refund, "Give back what was paid for a purchase.",
                      wire.RefundRequest, wire.Purchase, security="account", nothing="Nothing was refunded.",
                      problems=(UnknownPurchaseError, ListingStateError, CreditsError, WrongRoleError)),
        ]  # fmt: skip


def _number(request: Request) -> int:
    text = request.path_params["number"]
    if not text.isascii() or not text.isdigit() or len(text) > _MOST_DIGITS:
        raise UnknownPurchaseError("there is no purchase with this number for you.")
    return int(text)
