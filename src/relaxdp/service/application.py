"""The application of a service: its routes, the shell around all of them, and what starts and stops with it."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING, Any

from starlette.applications import Starlette
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from relaxdp.server_errors import TooManyRequestsError
from relaxdp.service.limits import Buckets, behind_proxies, client_of
from relaxdp.service.observe import Metrics, MetricsServer, RequestLog, log_mistake, problem_response
from relaxdp.service.operations import Component, application
from relaxdp.service.pages import OwnRoutes, Pages
from relaxdp.service.resources import Resources, tune
from relaxdp.service.settings import Settings

if TYPE_CHECKING:
    from prometheus_client import Counter, Histogram


def build_application(
    settings: Settings, compose: Callable[[Resources], Sequence[Component]], metrics_server: MetricsServer | None = None
) -> ASGIApp:
    """Return the application; `compose` makes its parts, in the order in which they start."""
    resources, log = Resources(settings), RequestLog(enabled=settings.request_log)
    parts = list(compose(resources))
    sections = [(part.operations(), part.parameters()) for part in parts]
    operations = [operation for own, _ in sections for operation in own]
    operations += OwnRoutes(resources, parts).operations(sections)
    known = {operation.path: operation.handler for operation in operations if operation.method == "GET"}
    operations += Pages(embed=settings.embed, campaign=known.get("/v1/campaigns/{id}")).operations()

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        tune()
        async with AsyncExitStack() as stack:  # what was started is stopped, last first, whatever fails in between
            stack.callback(log.flush)
            stack.callback(resources.close)
            for part in parts:
                await part.start()
                stack.push_async_callback(part.stop)
            if metrics_server is not None:
                stack.enter_context(metrics_server.serving(resources.metrics))
            yield

    app, route_of = application(operations, lifespan=lifespan)
    shell = Shell(
        app,
        route_of=route_of,
        metrics=resources.metrics,
        log=log,
        buckets=Buckets(rate=settings.rate, burst=settings.burst),
    )
    return behind_proxies(shell, settings.trusted_proxies)


_METHODS = {"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"}


class Shell:
    """Limits, log, metrics, and no exception that is not an answer, for every request.

    One layer and plain ASGI, because the hot route goes through it too.
    """

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
