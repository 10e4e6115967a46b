"""The shell around every route: limits, request log, metrics, and no exception that is not an answer."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from relaxdp.errors import TooManyRequestsError
from relaxdp.service.limits import Buckets, client_of
from relaxdp.service.metrics import Metrics
from relaxdp.service.mistakes import log_mistake
from relaxdp.service.problems import problem_response
from relaxdp.service.request_log import RequestLog

if TYPE_CHECKING:
    from prometheus_client import Counter, Histogram

_METHODS = {"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"}


class Shell:
    """One layer for everything that every request needs: plain ASGI, because the hot route goes through it too."""

    def __init__(
        self, inner: ASGIApp, *, route_of: Callable[[Any], str], metrics: Metrics, log: RequestLog, buckets: Buckets
    ) -> None:  # fmt: skip
        self._inner, self._route_of = inner, route_of
        self._log, self._buckets = log, buckets
        self._known: dict[tuple[Any, str, int], tuple[str, str, Counter, Histogram]] = {}
        self._requests = metrics.counter(
            "relaxdp_requests_total", "Requests by route, method and status.", ("route", "method", "status")
        )
        self._seconds = metrics.histogram("relaxdp_request_seconds", "How long requests took, by route.", ("route",))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            await self._inner(scope, receive, send)
            return
        start = time.perf_counter()
        status = 0

        async def watched(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            if not self._buckets.limited or self._buckets.take(client_of(scope), start):
                await self._inner(scope, receive, watched)
            else:
                await _refuse(scope, receive, watched)
        except Exception as problem:
            log_mistake("a request failed", problem)
        finally:
            seconds = time.perf_counter() - start
            method, route, counted, measured = self._names(scope.get("endpoint"), scope["method"], status)
            counted.inc()
            measured.observe(seconds)
            self._log.add(method, route, status, seconds)

    def _names(self, endpoint: Any, method: str, status: int) -> tuple[str, str, Counter, Histogram]:
        """Return what a request is called in the log, and what counts it; there are few, so they are made once."""
        method = method if method in _METHODS else "OTHER"
        known = self._known.get((endpoint, method, status))
        if known is None:
            route = self._route_of(endpoint)
            counted = self._requests.labels(route, method, str(status))
            known = self._known[endpoint, method, status] = (method, route, counted, self._seconds.labels(route))
        return known


async def _refuse(scope: Scope, receive: Receive, send: Send) -> None:
    problem = TooManyRequestsError("this client asks more often than it may.")
    await problem_response(problem)(scope, receive, send)
