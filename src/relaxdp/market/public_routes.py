"""Routes for everybody: listings, quotes, the market's public key, and receipts that are checked."""

from __future__ import annotations

from sqlalchemy import Connection, func, select
from sqlalchemy.exc import SQLAlchemyError
from starlette.requests import Request
from starlette.responses import Response

from relaxdp.errors import EpsilonError
from relaxdp.market import listings, views, wire
from relaxdp.market.context import Room, answer
from relaxdp.market.listings import StoredListing
from relaxdp.market.receipts import signed_of
from relaxdp.market.schema import LISTINGS
from relaxdp.server_errors import (
    ListingStateError,
    NotAuthorisedError,
    ReceiptForgedError,
    StorageUnavailableError,
    UnknownLevelError,
    UnknownListingError,
    UnknownPurchaseError,
    WrongTokenError,
)
from relaxdp.service.limits import decode, decoder_of, read_body
from relaxdp.service.observe import log_mistake
from relaxdp.service.operations import Operation, Query, read_queries

EPSILON = (
    Query("epsilon", {"type": "string", "maxLength": 80}, "The level, as decimal text like 0.5.", required=True),
)
_RECEIPT = decoder_of(wire.SignedReceipt)


class MarketPublicRoutes:
    """What everybody may ask; with a token, a quote is the buyer's own."""

    def __init__(self, room: Room) -> None:
        self._room = room

    async def show_market(self, request: Request) -> Response:
        """Show what receipts are checked with."""
        count = select(func.count()).select_from(LISTINGS).where(LISTINGS.c.state != "draft")
        found = await self._room.resources.read(lambda connection: connection.execute(count).scalar_one())
        signer = self._room.market.signer
        return answer(wire.About(signer.public_key.hex(), signer.fingerprint, int(found)))

    async def list_listings(self, request: Request) -> Response:
        """List what is for sale."""
        who = await self._room.access.anybody(request)

        def work(connection: Connection) -> list[wire.Listing]:
            found = [_view(connection, each) for each in listings.everything(connection, who)]
            return [each for each in found if each is not None]

        return answer(wire.Listings(await self._room.resources.look(work)))

    async def show_listing(self, request: Request) -> Response:
        """Show one listing with its levels."""
        who = await self._room.access.anybody(request)

        def work(connection: Connection) -> wire.Listing:
            listing = self._room.market.visible(connection, request.path_params["id"], who)
            return views.listing_view(connection, listing)

        return answer(await self._room.resources.look(work))

    async def show_quote(self, request: Request) -> Response:
        """Show what a level costs."""
        options: wire.QuoteOptions = read_queries(request, EPSILON, wire.QuoteOptions)
        who = await self._room.access.anybody(request)
        buyer = who.name if who is not None and who.role == "buyer" else None

        def work(connection: Connection) -> wire.Quote:
            found = self._room.market.quoted(connection, request.path_params["id"], options.epsilon, buyer)
            return views.quote_view(found)

        return answer(await self._room.resources.look(work))

    async def verify_receipt(self, request: Request) -> Response:
        """Check that this market signed a receipt."""
        sent = decode(await read_body(request, self._room.resources.limits), _RECEIPT)
        signed = signed_of({name: value for name, value in _fields(sent).items() if value is not None})
        _, purchase = await self._room.resources.compute(lambda: self._room.market.verified(signed))
        return answer(wire.Verified(True, purchase.state))  # type: ignore[arg-type]

    def operations(self) -> list[Operation]:
        """Return what the routes are."""
        unknown = (UnknownListingError, WrongTokenError)
        path = "/v1/market/listings"
        return [
            Operation("GET", "/v1/market", self.show_market, "Show what receipts are checked with.", answer=wire.About),
            Operation("GET", path, self.list_listings, "List what is for sale.", answer=wire.Listings,
                      problems=(WrongTokenError,)),
            Operation("GET", f"{path}/{{id}}", self.show_listing, "Show a listing and its levels.", answer=wire.Listing,
                      problems=unknown),
            Operation("GET", f"{path}/{{id}}/quote", self.show_quote, "Show what a level costs.", answer=wire.Quote,
                      queries=EPSILON, nothing="Nothing was sold.",
                      problems=(*unknown, NotAuthorisedError, UnknownLevelError, ListingStateError, EpsilonError)),
            Operation("POST", "/v1/market/receipts/verify", self.verify_receipt, "Check a receipt's signature.",
                      wire.SignedReceipt, wire.Verified, nothing="",
                      problems=(ReceiptForgedError, UnknownPurchaseError)),
        ]  # fmt: skip


def _view(connection: Connection, listing: StoredListing) -> wire.Listing | None:
    """Return a listing as everybody sees it; one that cannot be shown, which is our mistake, hides no other."""
    try:
        return views.listing_view(connection, listing)
    except (SQLAlchemyError, StorageUnavailableError):
        raise
    except Exception as problem:
        log_mistake("a listing cannot be shown", problem)
        return None


def _fields(sent: wire.SignedReceipt) -> dict[str, object]:
    key = {"public_key": sent.public_key} if isinstance(sent.public_key, str) else {}
    return {"receipt": sent.receipt, "signature": sent.signature, **key}
