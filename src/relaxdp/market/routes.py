"""The routes of the market."""

from __future__ import annotations

from collections.abc import AsyncIterator
from functools import partial
from itertools import count
from typing import TYPE_CHECKING, Any

import msgspec
from sqlalchemy import Connection
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from relaxdp.errors import EpsilonError, MechanismError, MetadataError, ValuesError
from relaxdp.market import listings, orders, pools, views, wire
from relaxdp.market.level_file import read_level_file
from relaxdp.market.listings import PreparedLevel
from relaxdp.market.members import create_token
from relaxdp.market.orders import APPROVED, Order
from relaxdp.market.receipts import read_receipt
from relaxdp.server_errors import (
    CampaignError,
    LevelDiffersError,
    LevelFileError,
    ListingExistsError,
    MarketError,
    OrderStateError,
    ReceiptError,
    ReportOutsideEncodingError,
    UnknownLevelError,
    UnknownListingError,
    UnknownOrderError,
    WrongRoleError,
    WrongTokenError,
)
from relaxdp.service.limits import decode, decoder_of, read_body
from relaxdp.service.operations import Operation, Query, read_queries
from relaxdp.service.transfer import receive_file, workplace
from relaxdp.service.wire import encoding_of, resolved
from relaxdp.tables.metadata import ColumnDescription
from relaxdp.theory.epsilon import as_epsilon

if TYPE_CHECKING:
    from relaxdp.market.component import MarketComponent

PARQUET = "application/vnd.apache.parquet"
_PRICE = (Query("price", {"type": "string", "maxLength": 20}, "The price of the level, such as 60.", required=True),)
_TOKEN, _LISTING, _POOL = map(decoder_of, (wire.TokenRequest, wire.ListingRequest, wire.PoolRequest))
_REPORTS, _ORDER, _RECEIPT = map(decoder_of, (wire.PoolReports, wire.OrderRequest, wire.ReceiptContent))


class MarketRoutes:
    """The handlers of the market's routes."""

    def __init__(self, market: MarketComponent) -> None:
        self._market = market

    async def show_market(self, request: Request) -> Response:
        """Show the public key of the receipts."""
        signer = self._market.signer
        found = await self._market.resources.look(listings.list_listings)
        return _answer(wire.MarketView(signer.public_key.hex(), signer.fingerprint, len(found)))

    async def show_member(self, request: Request) -> Response:
        """Show whose token this is."""
        member = await self._market.require_member(request)
        return _answer(wire.MemberView(member.name, member.role))

    async def create_token(self, request: Request) -> Response:
        """Make the token of a seller or a buyer."""
        await self._market.require_member(request, "operator")
        asked: wire.TokenRequest = await self._read(request, _TOKEN)
        token = await self._market.write(
            lambda connection: create_token(connection, asked.name, asked.role, renew=asked.renew)
        )
        return _answer(wire.NewToken(asked.name, asked.role, token), 201)

    # Listings.

    async def list_listings(self, request: Request) -> Response:
        """List what is for sale."""
        member = await self._market.find_member(request)

        def work(connection: Connection) -> list[wire.ListingView]:
            return [views.view_listing(connection, each, member) for each in listings.list_listings(connection)]

        return _answer(wire.ListingViews(await self._market.resources.look(work)))

    async def show_listing(self, request: Request) -> Response:
        """Show a listing, its levels and their prices."""
        member = await self._market.find_member(request)

        def work(connection: Connection) -> wire.ListingView:
            return views.view_listing(connection, listings.find_listing(connection, request.path_params["id"]), member)

        return _answer(await self._market.resources.look(work))

    async def create_listing(self, request: Request) -> Response:
        """Create a listing, or confirm it before levels are added: all prices are checked before anything is drawn."""
        seller = await self._market.require_member(request, "seller")
        asked: wire.ListingRequest = await self._read(request, _LISTING)
        description = ColumnDescription.from_dict(asked.description)

        def work(connection: Connection) -> wire.ListingView:
            made = listings.create_listing(
                connection, listing_id=asked.id, kind="release", seller=seller.name, description=description,
                column=asked.column, id_column=asked.id_column, title=asked.title, about=asked.about,
                currency=asked.currency, approval=asked.approval, limits=asked.limits,
            )  # fmt: skip
            listings.plan_levels(connection, made, asked.prices)
            return views.view_listing(connection, made, seller)

        return _answer(await self._market.write(work), 201)

    async def add_level(self, request: Request) -> Response:
        """Publish the file of a level. The same level again is accepted only if its ids and reports are identical."""
        seller = await self._market.require_member(request, "seller")
        options: wire.LevelOptions = read_queries(request, _PRICE, wire.LevelOptions)
        limit = self._market.resources.settings.upload_limit
        async with receive_file(request, most=limit, media_type=PARQUET) as path:
            whole = path.rename(path.with_suffix(".parquet"))  # the ending says what it is

            def prepare() -> PreparedLevel:
                with workplace() as folder:
                    return PreparedLevel.create(read_level_file(whole), folder)

            prepared = await self._market.resources.compute(prepare)

        def work(connection: Connection) -> tuple[wire.ListingView, bool]:
            listing = listings.find_listing(connection, request.path_params["id"])
            if listing.seller != seller.name or listing.kind != "release":
                raise UnknownListingError("You have no listing {listing!r}.", listing=listing.id)
            is_new = listings.add_level(connection, listing, prepared, options.price)
            return views.view_listing(connection, listing, seller), is_new

        view, is_new = await self._market.write(work)
        return _answer(view, 201 if is_new else 200)

    async def show_sales(self, request: Request) -> Response:
        """Show the largest level sold of each column, and their sum."""
        seller = await self._market.require_member(request, "seller")
        return _answer(
            await self._market.resources.read(
                lambda connection: views.view_sales(connection, listings.list_listings(connection, seller.name))
            )
        )

    # Pools.

    async def create_pool(self, request: Request) -> Response:
        """Create a pool of individuals who sell one report each."""
        operator = await self._market.require_member(request, "operator")
        asked: wire.PoolRequest = await self._read(request, _POOL)
        mechanism = _create_mechanism(asked)

        def work(connection: Connection) -> wire.ListingView:
            made = pools.create_pool(
                connection, asked.id, mechanism, asked.prices, title=asked.title, about=asked.about,
                currency=asked.currency, approval=asked.approval,
            )  # fmt: skip
            return views.view_listing(connection, made, operator)

        return _answer(await self._market.write(work), 201)

    async def join_pool(self, request: Request) -> Response:
        """Send the reports of one member up to the member's limit."""
        member = await self._market.require_member(request, "seller")
        asked: wire.PoolReports = await self._read(request, _REPORTS)

        def work(connection: Connection) -> wire.ListingView:
            listing = listings.find_listing(connection, request.path_params["id"])
            pools.join_pool(connection, listing, member.name, asked.reports)
            return views.view_listing(connection, listing, member)

        return _answer(await self._market.write(work))

    # Orders.

    async def create_order(self, request: Request) -> Response:
        """Order a level, or upgrade to it for the difference."""
        buyer = await self._market.require_member(request, "buyer")
        asked: wire.OrderRequest = await self._read(request, _ORDER)
        signer, now = self._market.signer, self._market.resources.clock()

        def work(connection: Connection) -> tuple[Order, bool]:
            listing = listings.find_listing(connection, request.path_params["id"])
            return orders.request_order(
                connection, listing, buyer.name, asked.epsilon, upgrade=asked.upgrade, signer=signer, now=now
            )

        order, is_new = await self._market.write(work)
        return _answer(views.view_order(order, is_new=is_new), 201 if is_new else 200)

    async def list_orders(self, request: Request) -> Response:
        """List the orders of a buyer, or of a seller's listings."""
        member = await self._market.require_member(request)

        def work(connection: Connection) -> list[wire.OrderView]:
            if member.role == "buyer":
                found = orders.list_orders(connection, buyer=member.name)
            else:
                seller = "" if member.role == "operator" else member.name
                own = listings.list_listings(connection, seller)
                found = [order for each in own for order in orders.list_orders(connection, listing=each)]
            return [views.view_order(each) for each in sorted(found, key=lambda each: each.requested, reverse=True)]

        return _answer(wire.OrderViews(await self._market.resources.read(work)))

    async def approve_order(self, request: Request) -> Response:
        """Approve an order: its receipt is signed, and its buyer can download the file."""
        member = await self._market.require_member(request, "seller", "operator")
        signer, now = self._market.signer, self._market.resources.clock()
        order = await self._market.write(
            lambda connection: orders.approve_order(
                connection, orders.find_order(connection, request.path_params["id"], member), signer, now
            )
        )
        return _answer(views.view_order(order))

    async def withdraw_order(self, request: Request) -> Response:
        """Withdraw a request that is not approved, as its buyer or its seller."""
        member = await self._market.require_member(request)
        order = await self._market.write(
            lambda connection: orders.withdraw_order(
                connection, orders.find_order(connection, request.path_params["id"], member)
            )
        )
        return _answer(views.view_order(order))

    async def restore_order(self, request: Request) -> Response:
        """Restore an order that a restored database has lost, from its receipt."""
        buyer = await self._market.require_member(request, "buyer")
        asked: wire.ReceiptContent = await self._read(request, _RECEIPT)
        signed = read_receipt({"receipt": asked.receipt, "signature": asked.signature})
        order = await self._market.write(
            lambda connection: orders.restore_order(connection, signed, buyer.name, self._market.signer)
        )
        return _answer(views.view_order(order))

    async def show_receipt(self, request: Request) -> Response:
        """Show the signed receipt of an order."""
        order = await self._find_approved(request)
        assert order.signed is not None  # noqa: S101 (an approved order has a receipt)
        return _answer(order.signed.to_json())

    async def download(self, request: Request) -> Response:
        """Send the file of an approved order."""
        order = await self._find_approved(request)
        digest = str(order.digest)
        length = await self._market.resources.read(lambda connection: listings.count_file_bytes(connection, digest))
        headers = {
            "content-length": str(length),
            "content-disposition": f'attachment; filename="{order.listing.id}-{order.level}.parquet"',
            "cache-control": "no-store",
        }
        parts = () if request.method == "HEAD" else self._read_parts(digest)
        return StreamingResponse(parts, media_type=PARQUET, headers=headers)

    async def _read_parts(self, digest: str) -> AsyncIterator[bytes]:
        """Read part after part. A stored file never changes, so no snapshot is held while a client reads slowly."""
        for place in count():
            part = await self._market.resources.read(partial(listings.read_file_part, digest=digest, place=place))
            if part is None:
                return
            yield part

    async def _find_approved(self, request: Request) -> Order:
        buyer = await self._market.require_member(request, "buyer")
        order = await self._market.resources.read(
            lambda connection: orders.find_order(connection, request.path_params["id"], buyer)
        )
        if order.state != APPROVED:
            raise OrderStateError(
                "The order {order!r} is {state}, so there is no file and no receipt.",
                hint="Wait for the seller's approval: relaxdp market orders.",
                order=order.id,
                state=order.state,
            )
        return order

    async def _read(self, request: Request, decoder: Any) -> Any:
        return decode(await read_body(request, self._market.resources.limits), decoder)


def _create_mechanism(asked: wire.PoolRequest) -> Any:
    levels = sorted(map(as_epsilon, asked.prices))
    return encoding_of(resolved(asked.encoding, str(levels[-1])))


def _answer(content: Any, status: int = 200) -> Response:
    return Response(
        msgspec.json.encode(content), status, media_type="application/json", headers={"cache-control": "no-store"}
    )


def make_operations(market: MarketComponent) -> list[Operation]:
    """Return the routes of the market."""
    routes = MarketRoutes(market)
    path, one = "/v1/market/listings", "/v1/market/listings/{id}"
    order = "/v1/market/orders/{id}"
    levels = (EpsilonError, MarketError, UnknownLevelError)
    describe = (MetadataError, LevelFileError, MechanismError, ValuesError)
    found = (UnknownListingError, WrongRoleError)
    return [
        Operation("GET", "/v1/market", routes.show_market, "Show the public key of the receipts.",
                  answer=wire.MarketView),
        Operation("GET", "/v1/market/me", routes.show_member, "Show whose token this is.", answer=wire.MemberView,
                  security="account"),
        Operation("POST", "/v1/market/tokens", routes.create_token, "Make the token of a seller or a buyer.",
                  wire.TokenRequest, wire.NewToken, status=201, security="operator", nothing="No token was made.",
                  problems=(MarketError, WrongRoleError)),
        Operation("GET", path, routes.list_listings, "List what is for sale.", answer=wire.ListingViews,
                  problems=(WrongTokenError,)),
        Operation("GET", one, routes.show_listing, "Show a listing.", answer=wire.ListingView,
                  problems=(UnknownListingError, WrongTokenError)),
        Operation("POST", path, routes.create_listing, "Create or confirm a listing.", wire.ListingRequest,
                  wire.ListingView, status=201, security="seller", nothing="Nothing was listed.",
                  problems=(*levels, *describe, ListingExistsError)),
        Operation("POST", f"{one}/levels", routes.add_level, "Publish a level.", answer=wire.ListingView, status=201,
                  also=(200,), body_media_type=PARQUET, queries=_PRICE, security="seller",
                  nothing="Nothing was published.", problems=(*levels, *found, LevelFileError, LevelDiffersError)),
        Operation("GET", "/v1/market/sales", routes.show_sales, "Show the largest levels sold, and their sum.",
                  answer=wire.Sales, security="seller"),
        Operation("POST", "/v1/market/pools", routes.create_pool, "Create a pool.", wire.PoolRequest, wire.ListingView,
                  status=201, security="operator", nothing="Nothing was listed.",
                  problems=(*levels, *describe, ListingExistsError, CampaignError, WrongRoleError)),
        Operation("POST", "/v1/market/pools/{id}/reports", routes.join_pool, "Join a pool.", wire.PoolReports,
                  wire.ListingView, security="seller", nothing="Nothing was stored.",
                  problems=(*levels, *found, LevelDiffersError, ReportOutsideEncodingError)),
        Operation("POST", f"{one}/orders", routes.create_order, "Order a level, or upgrade to it.", wire.OrderRequest,
                  wire.OrderView, status=201, also=(200,), security="buyer", nothing="Nothing was ordered.",
                  problems=(*levels, *found, OrderStateError)),
        Operation("GET", "/v1/market/orders", routes.list_orders, "List orders.", answer=wire.OrderViews,
                  security="account"),
        Operation("POST", f"{order}/approve", routes.approve_order, "Approve an order.", answer=wire.OrderView,
                  security="account", nothing="Nothing was approved.",
                  problems=(UnknownOrderError, OrderStateError, MarketError, WrongRoleError)),
        Operation("POST", f"{order}/withdraw", routes.withdraw_order, "Withdraw a request.", answer=wire.OrderView,
                  security="account", nothing="Nothing was withdrawn.", problems=(UnknownOrderError, OrderStateError)),
        Operation("POST", "/v1/market/receipts", routes.restore_order, "Restore an order from its receipt.",
                  wire.ReceiptContent, wire.OrderView, security="buyer", nothing="Nothing was restored.",
                  problems=(*levels, *found, ReceiptError)),
        Operation("GET", f"{order}/receipt", routes.show_receipt, "Show the receipt of an order.",
                  answer=wire.ReceiptContent, security="buyer", problems=(UnknownOrderError, OrderStateError)),
        Operation("GET", f"{order}/file", routes.download, "Download the file of an order.", media_type=PARQUET,
                  security="buyer", problems=(UnknownOrderError, OrderStateError)),
    ]  # fmt: skip
