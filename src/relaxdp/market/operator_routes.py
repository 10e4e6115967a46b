"""Routes of the operator: accounts, credits, pools, and whether the books balance."""

from __future__ import annotations

from dataclasses import asdict, replace

from sqlalchemy import Connection
from starlette.requests import Request
from starlette.responses import Response

from relaxdp.errors import EpsilonError, MechanismError, ValuesError
from relaxdp.market import accounts, views, wire
from relaxdp.market.accounts import MarketAccount
from relaxdp.market.context import Room, answer
from relaxdp.market.details import NOTHING_SAID
from relaxdp.market.prices import prices_of
from relaxdp.server_errors import (
    AccountExistsError,
    CampaignError,
    ListingExistsError,
    ListingStateError,
    MarketError,
    PriceError,
    UnknownAccountError,
    UnknownLevelError,
    UnknownListingError,
    WrongRoleError,
)
from relaxdp.service.limits import decode, decoder_of, read_body
from relaxdp.service.operations import Operation
from relaxdp.service.wire import EncodingRequest, resolved

_ACCOUNT, _CREDIT, _POOL = decoder_of(wire.AccountRequest), decoder_of(wire.CreditRequest), decoder_of(wire.PoolRequest)


class MarketOperatorRoutes:
    """What the operator asks for, with the service's own token."""

    def __init__(self, room: Room) -> None:
        self._room = room

    async def create_account(self, request: Request) -> Response:
        """Make an account; its token is shown this once."""
        await self._room.access.operator(request)
        asked = decode(await read_body(request, self._room.resources.limits), _ACCOUNT)
        token = await self._room.resources.perform(lambda: self._room.market.create_account(asked.name, asked.role))
        return answer(wire.NewAccount(asked.name, asked.role, 0, token), 201)

    async def list_accounts(self, request: Request) -> Response:
        """List all accounts."""
        await self._room.access.operator(request)
        found = await self._room.resources.read(accounts.everybody)
        return answer(wire.Accounts([account_view(each) for each in found]))

    async def renew_account_token(self, request: Request) -> Response:
        """Replace the token of an account."""
        await self._room.access.operator(request)
        name = request.path_params["name"]
        token = await self._room.resources.perform(lambda: self._room.market.renew_token(name))
        found = await self._room.resources.compute(lambda: self._room.market.account(name))
        return answer(wire.NewAccount(found.name, found.role, found.balance, token))

    async def issue_credits(self, request: Request) -> Response:
        """Give an account new credits."""
        await self._room.access.operator(request)
        asked = decode(await read_body(request, self._room.resources.limits), _CREDIT)
        found = await self._room.resources.perform(
            lambda: self._room.market.issue(asked.account, asked.amount, asked.reason)
        )
        return answer(account_view(found))

    async def create_pool(self, request: Request) -> Response:
        """Make a pool of single sellers."""
        await self._room.access.operator(request)
        asked = decode(await read_body(request, self._room.resources.limits), _POOL)
        wanted = asked.encoding
        encoding = resolved(EncodingRequest(wanted.name, wanted.values, wanted.range, wanted.options), "1")
        prices = prices_of(asked.prices.points, asked.prices.formula)

        def work() -> wire.Listing:
            made = self._room.market.create_pool(
                asked.title,
                encoding,
                prices,
                levels=asked.levels,
                listing_id=asked.id,
                details=asked.details or NOTHING_SAID,
                question=asked.question,
                suggested=asked.suggested,
            )
            with self._room.market.reading() as connection:
                return views.listing_view(connection, made)

        return answer(await self._room.resources.perform(work), 201)

    async def close_any(self, request: Request) -> Response:
        """Sell no more from a pool, or of a seller's release."""
        await self._room.access.operator(request)

        def work() -> wire.Listing:
            closed = self._room.market.close_any(request.path_params["id"])
            with self._room.market.reading() as connection:
                return views.listing_view(connection, closed)

        return answer(await self._room.resources.perform(work))

    async def show_books(self, request: Request) -> Response:
        """Tell whether the books balance."""
        await self._room.access.operator(request)
        return answer(wire.Books(*await self._room.resources.read(accounts.balances)))

    async def show_account(self, request: Request) -> Response:
        """Show whose token this is."""
        return answer(account_view(await self._room.access.somebody(request)))

    async def show_statement(self, request: Request) -> Response:
        """Show the last entries of one's account."""
        who = await self._room.access.somebody(request)

        def work(connection: Connection) -> list[wire.Entry]:
            return [wire.Entry(**asdict(entry)) for entry in accounts.statement(connection, who.number, 1000)]

        return answer(wire.Statement(await self._room.resources.read(work)))

    def operations(self) -> list[Operation]:
        """Return what the routes are."""
        path = "/v1/market/accounts"
        own = [
            Operation("POST", path, self.create_account, "Make an account; its token is shown this once.",
                      wire.AccountRequest, wire.NewAccount, status=201, security="operator",
                      nothing="Nothing was created.", problems=(AccountExistsError, MarketError)),
            Operation("GET", path, self.list_accounts, "List all accounts.", answer=wire.Accounts, security="operator"),
            Operation("POST", f"{path}/{{name}}/token", self.renew_account_token, "Replace the token of an account.",
                      answer=wire.NewAccount, security="operator", problems=(UnknownAccountError,)),
            Operation("POST", "/v1/market/credits", self.issue_credits, "Give an account new credits.",
                      wire.CreditRequest, wire.Account, security="operator", nothing="Nothing was issued.",
                      problems=(UnknownAccountError, MarketError)),
            Operation("POST", "/v1/market/pools", self.create_pool, "Make a pool of single sellers.", wire.PoolRequest,
                      wire.Listing, status=201, security="operator", nothing="Nothing was listed.",
                      problems=(ListingExistsError, MarketError, PriceError, CampaignError,
                                MechanismError, ValuesError, EpsilonError, UnknownLevelError)),
            Operation("POST", "/v1/market/pools/{id}/close", self.close_any,
                      "Sell no more from a pool, or of a seller's release.", answer=wire.Listing, security="operator",
                      nothing="Nothing was changed.", problems=(UnknownListingError, ListingStateError)),
            Operation("GET", "/v1/market/books", self.show_books, "Tell whether the books balance.", answer=wire.Books,
                      security="operator"),
        ]  # fmt: skip
        return [
            *(replace(each, problems=(*each.problems, WrongRoleError)) for each in own),
            Operation("GET", "/v1/market/me", self.show_account, "Show whose token this is.", answer=wire.Account,
                      security="account"),
            Operation("GET", "/v1/market/statement", self.show_statement, "Show the last entries of one's account.",
                      answer=wire.Statement, security="account"),
        ]  # fmt: skip


def account_view(account: MarketAccount) -> wire.Account:
    """Return what is shown of an account."""
    return wire.Account(account.name, account.role, account.balance)
