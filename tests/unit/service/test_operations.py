"""Whatever a token is asked for is kept nowhere on its way."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from starlette.requests import Request
from starlette.responses import Response

from relaxdp.service.operations import Operation, Security, application


async def show(request: Request) -> Response:
    return Response(b"numbers")


async def show_kept(request: Request) -> Response:
    return Response(b"numbers", headers={"cache-control": "no-cache"})


def said(operation: Operation) -> str | None:
    """Ask, and return what is said of keeping the answer."""
    app, route_of = application([operation])
    sent: list[Any] = []
    scope: dict[str, Any] = {
        "type": "http", "method": "GET", "path": "/x", "raw_path": b"/x", "query_string": b"", "headers": [],
    }  # fmt: skip

    async def receive() -> Any:
        return {"type": "http.request"}

    async def send(message: Any) -> None:
        sent.append(message)

    asyncio.run(app(scope, receive, send))
    assert sent[0]["status"] == 200
    assert route_of(scope["endpoint"]) == "/x"
    found: bytes | None = dict(sent[0]["headers"]).get(b"cache-control")
    return None if found is None else found.decode()


@pytest.mark.parametrize("security", ["operator", "seller", "buyer", "account"])
def test_what_a_token_is_asked_for_is_not_kept(security: Security) -> None:
    assert said(Operation("GET", "/x", show, "Show.", security=security)) == "no-store"


def test_what_everybody_may_ask_says_it_by_itself() -> None:
    assert said(Operation("GET", "/x", show, "Show.")) is None
    assert said(Operation("GET", "/x", show_kept, "Show.")) == "no-cache"
