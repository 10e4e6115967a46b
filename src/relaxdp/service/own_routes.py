"""The routes that every service has: health, metrics, and the description of all routes for programs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from relaxdp.service.component import Component
from relaxdp.service.openapi import Section, description
from relaxdp.service.operations import Operation
from relaxdp.service.shared_metrics import SharedMetrics
from relaxdp.service.worker import Worker

_JSON = "application/json"


class Health(msgspec.Struct, frozen=True):
    """Whether the service can do its work."""

    status: Literal["ok"]


class OwnRoutes:
    """What whoever runs the service asks for."""

    def __init__(self, worker: Worker, shared: SharedMetrics, parts: Sequence[Component]) -> None:
        self._worker, self._shared, self._parts = worker, shared, parts
        self._document = b""

    async def show_health(self, request: Request) -> Response:
        """Tell whether the database answers and every part can do its work."""
        await self._worker.read(lambda connection: connection.exec_driver_sql("SELECT 1").scalar())
        for part in self._parts:
            await part.check()
        return Response(msgspec.json.encode(Health("ok")), media_type=_JSON)

    async def show_metrics(self, request: Request) -> Response:
        """Show the metrics of all workers."""
        return Response(await self._worker.compute(self._shared.text), media_type="text/plain; version=0.0.4")

    async def show_openapi(self, request: Request) -> Response:
        """Show the description."""
        return Response(self._document, media_type=_JSON)

    def operations(self, others: Sequence[Section]) -> list[Operation]:
        """Return what the routes are, after describing them together with those of the parts."""
        own = [
            Operation("GET", "/healthz", self.show_health, "Tell whether the service can do its work.", answer=Health),
            Operation("GET", "/metrics", self.show_metrics, "Show metrics for Prometheus.", media_type="text/plain"),
            Operation("GET", "/openapi.json", self.show_openapi, "Show this description."),
        ]
        self._document = description([*others, (own, {})], title="relaxdp")
        return own
