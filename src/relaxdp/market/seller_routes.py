"""Routes of sellers: listings, deliveries, prices, single reports in pools, and income against privacy loss."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from sqlalchemy import Connection
from starlette.requests import Request
from starlette.responses import Response

from relaxdp.errors import EpsilonError
from relaxdp.market import listings, pools, views, wire
from relaxdp.market.accounts import MarketAccount
from relaxdp.market.context import PARQUET, Room, answer
from relaxdp.market.details import NOTHING_SAID
from relaxdp.market.listings import StoredListing
from relaxdp.market.prices import prices_of
from relaxdp.server_errors import (
    DeliveryError,
    ListingExistsError,
    ListingStateError,
    MarketError,
    PriceError,
    ReportOutsideEncodingError,
    UnknownLevelError,
    UnknownListingError,
)
from relaxdp.service.limits import decode, decoder_of, read_body
from relaxdp.service.operations import Operation, Query, read_queries
from relaxdp.service.transfer import receive_file

_LISTING, _PRICES = decoder_of(wire.ListingRequest), decoder_of(wire.PricesRequest)
_BUDGET, _REPORT = decoder_of(wire.BudgetRequest), decoder_of(wire.MemberReport)
_COLUMN = (Query("column", {"type": "string", "maxLength": 1000}, "Which released column is for sale."),)


class SellerRoutes:
    """What sellers ask for."""

    def __init__(self, room: Room) -> None:
        self._room = room

    async def create_listing(self, request: Request) -> Response:
        """List a release: a draft until its first delivery."""
        seller = await self._room.access.role(request, "seller")
        asked = await self._body(request, _LISTING)
        prices = prices_of(asked.prices.points, asked.prices.formula)

        def work() -> StoredListing:
            return self._room.market.list_release(
                seller.name,
                asked.title,
                prices,
                levels=asked.levels,
                listing_id=asked.id,
                budget=asked.budget,
                details=asked.details or NOTHING_SAID,
            )

        return await self._changed(seller, work, 201)

    async def deliver(self, request: Request) -> Response:
        """Deliver the first level of a release, or a higher one."""
        seller = await self._room.access.role(request, "seller")
        options: wire.DeliveryOptions = read_queries(request, _COLUMN, wire.DeliveryOptions)
        limit = self._room.resources.settings.upload_limit
        async with receive_file(request, most=limit, media_type=PARQUET) as path:
            whole = path.rename(path.with_suffix(".parquet"))  # the ending says what it is
            return await self._changed(seller, lambda: self._delivered(seller, request, whole, options.column))

    def _delivered(self, seller: MarketAccount, request: Request, path: Path, column: str | None) -> StoredListing:
        return self._room.market.deliver(seller.name, request.path_params["id"], path, column)

    async def extend_prices(self, request: Request) -> Response:
        """Let prices reach further up, with more levels there."""
        seller = await self._room.access.role(request, "seller")
        asked = await self._body(request, _PRICES)
        prices = prices_of(asked.prices.points, asked.prices.formula)
        name = request.path_params["id"]
        return await self._changed(
            seller, lambda: self._room.market.extend_prices(seller.name, name, prices, asked.levels)
        )

    async def raise_budget(self, request: Request) -> Response:
        """Raise the budget of a listing."""
        seller = await self._room.access.role(request, "seller")
        asked = await self._body(request, _BUDGET)
        name = request.path_params["id"]
        return await self._changed(seller, lambda: self._room.market.raise_budget(seller.name, name, asked.budget))

    async def close_listing(self, request: Request) -> Response:
        """Sell no more of a listing."""
        seller = await self._room.access.role(request, "seller")
        name = request.path_params["id"]
        return await self._changed(seller, lambda: self._room.market.close_listing(seller.name, name))

    async def send_member_report(self, request: Request) -> Response:
        """Offer one report in a pool, or a higher level of it."""
        seller = await self._room.access.role(request, "seller")
        asked = await self._body(request, _REPORT)
        name = request.path_params["id"]
        return await self._changed(
            seller,
            lambda: self._room.market.join_pool(seller.name, name, asked.level, asked.report, asked.minimum),
        )

    async def show_sales(self, request: Request) -> Response:
        """Show income against privacy loss."""
        seller = await self._room.access.role(request, "seller")

        def work(connection: Connection) -> list[wire.SellerListing]:
            own = listings.of_seller(connection, seller.number)
            own += [listings.numbered(connection, number) for number in pools.pools_of(connection, seller.number)]
            return [views.seller_view(connection, each, seller.number) for each in own]

        return answer(wire.Sales(await self._room.resources.read(work), seller.balance))

    async def _body(self, request: Request, decoder: Any) -> Any:
        return decode(await read_body(request, self._room.resources.limits), decoder)

    async def _changed(self, seller: MarketAccount, work: Callable[[], StoredListing], status: int = 200) -> Response:
        """Do something, and show what came of it as the seller sees it."""

        def run() -> wire.SellerListing:
            changed = work()
            with self._room.market.reading() as connection:
                return views.seller_view(connection, listings.numbered(connection, changed.number), seller.number)

        return answer(await self._room.resources.perform(run), status)

    def operations(self) -> list[Operation]:
        """Return what the routes are."""
        path, known = "/v1/market/listings", (UnknownListingError, ListingStateError)
        own: Any = {"answer": wire.SellerListing, "security": "seller"}
        return [
            Operation("POST", path, self.create_listing, "List a release: a draft until its first delivery.",
                      wire.ListingRequest, status=201, nothing="Nothing was listed.",
                      problems=(ListingExistsError, PriceError, EpsilonError, MarketError),
                      **own),
            Operation("POST", f"{path}/{{id}}/deliveries", self.deliver, "Deliver the first level, or a higher one.",
                      body_media_type=PARQUET, queries=_COLUMN, nothing="Nothing was delivered.",
                      problems=(*known, ListingExistsError, EpsilonError, DeliveryError, PriceError), **own),
            Operation("POST", f"{path}/{{id}}/prices", self.extend_prices, "Let prices reach further up.",
                      wire.PricesRequest, nothing="Nothing was changed.",
                      problems=(*known, PriceError, MarketError, EpsilonError), **own),
            Operation("POST", f"{path}/{{id}}/budget", self.raise_budget, "Raise the budget of a listing.",
                      wire.BudgetRequest, nothing="Nothing was changed.",
                      problems=(*known, MarketError, EpsilonError), **own),
            Operation("POST", f"{path}/{{id}}/close", self.close_listing, "Sell no more of a listing.", problems=known,
                      nothing="Nothing was changed.", **own),
            Operation("POST", f"{path}/{{id}}/reports", self.send_member_report, "Offer one report in a pool.",
                      wire.MemberReport, nothing="Nothing was delivered.",
                      problems=(*known, DeliveryError, ReportOutsideEncodingError, EpsilonError,
                                UnknownLevelError, MarketError),
                      **own),
            Operation("GET", "/v1/market/sales", self.show_sales, "Show income against privacy loss.",
                      answer=wire.Sales, security="seller"),
        ]  # fmt: skip
