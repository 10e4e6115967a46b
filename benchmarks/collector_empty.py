"""The least that a route can do: Starlette takes a report, msgspec reads it, and the answer is always the same."""

from __future__ import annotations

import msgspec
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from relaxdp.collector.wire import Report

_DECODER = msgspec.json.Decoder(Report)


async def take(request: Request) -> Response:
    """Read a report and forget it."""
    _DECODER.decode(await request.body())
    return Response(b'{"status":"new"}', media_type="application/json")


app = Starlette(routes=[Route("/v1/campaigns/{id}/reports", take, methods=["POST"])])
