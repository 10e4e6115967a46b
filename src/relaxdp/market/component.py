"""The market as a component of the application, open or closed."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from relaxdp.errors import add_consequence
from relaxdp.market.accounts import NAME_PATTERN
from relaxdp.market.buyer_routes import BuyerRoutes
from relaxdp.market.context import Access, Room
from relaxdp.market.journal import Journal
from relaxdp.market.keys import journal_folder, key_file
from relaxdp.market.listings import ID_PATTERN
from relaxdp.market.market import Market
from relaxdp.market.operator_routes import MarketOperatorRoutes
from relaxdp.market.public_routes import MarketPublicRoutes
from relaxdp.market.seller_routes import SellerRoutes
from relaxdp.sampling.keys import Key
from relaxdp.server_errors import MarketClosedError
from relaxdp.service.operations import Handler, Operation
from relaxdp.service.resources import Resources


class MarketComponent:
    """The market was opened before the service started; without a key it stays closed."""

    def __init__(self, resources: Resources) -> None:
        file = key_file(resources.settings, resources.database)
        self._is_open = file is not None
        key = Key.generate() if file is None else Key.load(file)  # a closed market never uses its key
        journal = None if file is None else Journal(journal_folder(resources.settings, file))
        self._room = Room(
            resources, Market(resources.database, key, journal=journal, clock=resources.clock), Access(resources)
        )

    def operations(self) -> list[Operation]:
        """Return what the routes are."""
        found = [
            *MarketPublicRoutes(self._room).operations(),
            *BuyerRoutes(self._room).operations(),
            *SellerRoutes(self._room).operations(),
            *MarketOperatorRoutes(self._room).operations(),
        ]
        problems = [replace(each, problems=(*each.problems, MarketClosedError)) for each in found]
        return problems if self._is_open else [replace(each, handler=_closed(each.handler)) for each in problems]

    def parameters(self) -> dict[str, dict[str, Any]]:
        """Return what ids, names and numbers look like."""
        return {
            "id": {"type": "string", "pattern": ID_PATTERN},
            "name": {"type": "string", "pattern": NAME_PATTERN},
            "number": {"type": "string", "pattern": "^[0-9]{1,9}$"},
        }

    async def start(self) -> None:
        """Check the key once more: its file may have been exchanged while the service ran."""
        if self._is_open:
            with add_consequence("Nothing was started."):
                await self._room.resources.compute(self._room.market.check_key)

    async def stop(self) -> None:
        """End: sales that were begun are finished by the service's threads."""

    async def check(self) -> None:
        """Raise nothing: the market needs what the service needs."""


def _closed(handler: Handler) -> Handler:
    async def refuse(request: Request) -> Response:
        raise MarketClosedError("the market is closed: the service was started without a key for it.")

    refuse.__name__ = getattr(handler, "__name__", "refuse")
    return refuse
