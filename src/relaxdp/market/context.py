"""What all routes of the market share: resources, the market, and who asks, with the role that a route needs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from relaxdp.market import accounts
from relaxdp.market.accounts import OPERATOR, MarketAccount, Role
from relaxdp.market.market import Market
from relaxdp.market.views import ENCODER
from relaxdp.server_errors import WrongTokenError
from relaxdp.service.resources import Resources


class Access:
    """Finds out whose token a request bears. Accounts are looked up each time: a renewed token ends at once."""

    def __init__(self, resources: Resources) -> None:
        self._resources = resources

    async def anybody(self, request: Request) -> MarketAccount | None:
        """Return who asks; None for somebody without a token. A token that nobody has is refused."""
        header = request.headers.get("authorization")
        if header is None:
            return None
        if await self._resources.is_operator(request):
            return OPERATOR
        scheme, _, token = header.partition(" ")
        found = None
        if scheme.lower() == "bearer":
            found = await self._resources.read(lambda connection: accounts.bearer(connection, token.strip()))
        if found is None:
            raise WrongTokenError("nobody has this token (Authorization: Bearer ...).")
        return found

    async def somebody(self, request: Request) -> MarketAccount:
        """Return who asks, with a token."""
        found = await self.anybody(request)
        if found is None:
            raise WrongTokenError("this needs a token (Authorization: Bearer ...).")
        return found

    async def role(self, request: Request, role: Role) -> MarketAccount:
        """Return who asks, or refuse who has another role."""
        found = await self.somebody(request)
        found.check(role)
        return found

    async def operator(self, request: Request) -> None:
        """Refuse who is not the operator: somebody with a role of their own, or nobody at all."""
        (await self.somebody(request)).check("operator")


JSON, PARQUET = "application/json", "application/vnd.apache.parquet"


@dataclass(frozen=True, slots=True)
class Room:
    """The market and what it needs."""

    resources: Resources
    market: Market
    access: Access


def answer(content: Any, status: int = 200) -> Response:
    """Return an answer in JSON."""
    return Response(ENCODER.encode(content), status, media_type=JSON, headers={"cache-control": "no-store"})
