"""What a service shows of itself: metrics, the request log, mistakes of its own, and errors over HTTP.

Neither metrics nor log hold an address, an id, a body, a token or a query.
"""

from __future__ import annotations

import asyncio
import logging
import socketserver
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from typing import Any, TextIO

import msgspec
import prometheus_client
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from starlette.responses import Response

from relaxdp import errors, server_errors
from relaxdp.errors import RelaxdpError

_logger = logging.getLogger("relaxdp.service")

BOUNDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
METRICS_TYPE = "text/plain; version=0.0.4"


class Metrics:
    """The numbers of a service. Only what is named here is shown: nothing of the process or the machine."""

    def __init__(self) -> None:
        library: Any = prometheus_client  # not all of it has types
        library.disable_created_metrics()  # they would double every series
        self._registry = CollectorRegistry(auto_describe=False)

    def counter(self, name: str, meaning: str, labels: Sequence[str] = ()) -> Counter:
        """Return a counter. Code that counts often keeps the result of `labels`."""
        return Counter(name, meaning, labels, registry=self._registry)

    def histogram(self, name: str, meaning: str, labels: Sequence[str] = ()) -> Histogram:
        """Return a histogram of seconds."""
        return Histogram(name, meaning, labels, registry=self._registry, buckets=BOUNDS)

    def gauge(self, name: str, meaning: str, read: Callable[[], float]) -> None:
        """Declare a number that is asked for when it is read."""
        Gauge(name, meaning, registry=self._registry).set_function(read)

    def text(self) -> bytes:
        """Return Prometheus text."""
        return generate_latest(self._registry)


class MetricsServer(socketserver.ThreadingTCPServer):
    """Serves metrics without a token, on the loopback address.

    It has a separate port because the address of a client proves nothing: behind a proxy all requests may come from
    this machine. The Host header is checked, because a page in a browser may name this address by another host.
    """

    allow_reuse_address = daemon_threads = True

    def __init__(self, port: int) -> None:
        try:
            super().__init__(("127.0.0.1", port), _MetricsHandler)
        except OSError as problem:
            raise server_errors.ServiceError(
                "Cannot listen on 127.0.0.1:{port} for metrics: {why}. Choose another --metrics-port.",
                port=port,
                why=problem.strerror,
            ) from None
        self.address = f"http://127.0.0.1:{self.server_address[1]}/metrics"
        self.metrics: Metrics | None = None

    @contextmanager
    def serving(self, metrics: Metrics) -> Iterator[None]:
        """Serve in a thread for a while."""
        self.metrics = metrics
        threading.Thread(target=self.serve_forever, args=(0.05,), daemon=True).start()
        try:
            yield
        finally:
            self.shutdown()
            self.server_close()


class _MetricsHandler(BaseHTTPRequestHandler):
    timeout = 10

    def do_GET(self) -> None:
        metrics = self.server.metrics if isinstance(self.server, MetricsServer) else None
        is_local = self.headers.get("host", "").partition(":")[0] in ("127.0.0.1", "localhost")
        if metrics is None or not is_local or self.path.partition("?")[0] != "/metrics":
            self.send_error(404)
            return
        content = metrics.text()
        self.send_response(200)
        self.send_header("content-type", METRICS_TYPE)
        self.send_header("content-length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: Any) -> None:
        """Log nothing: a line would have an address in it."""


_MOST_WAITING = 64
_SECONDS = 1.0


class RequestLog:
    """Time, method, route, status, duration: a line for each request.

    A route is its template: the address itself may name a campaign that few people know of. By hand and a few lines at
    a time, because every request pays for it: a line of `logging` costs five times as much. No line waits for longer
    than a second, on an idle service either.
    """

    def __init__(self, *, enabled: bool = True, file: TextIO | None = None) -> None:
        self._enabled, self._file = enabled, file
        self._waiting: list[str] = []

    def add(self, method: str, route: str, status: int, seconds: float) -> None:
        """Note one request, in a running event loop."""
        if not self._enabled:
            return
        if not self._waiting:
            asyncio.get_running_loop().call_later(_SECONDS, self.flush)
        stamp = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        self._waiting.append(f"{stamp} {method} {route} {status} {seconds * 1000:.1f}ms\n")
        if len(self._waiting) >= _MOST_WAITING:
            self.flush()

    def flush(self) -> None:
        """Write what is waiting."""
        lines, self._waiting = self._waiting, []
        if lines:
            file = self._file or sys.stderr
            file.write("".join(lines))
            file.flush()


def log_mistake(what: str, problem: BaseException) -> None:
    """Write down a mistake of ours: where and of which kind, but not its text, which may quote a request."""
    frames = "".join(traceback.format_tb(problem.__traceback__))
    _logger.error("%s: %s\n%s", what, type(problem).__name__, frames)


STATUSES: dict[type[RelaxdpError], int] = {
    server_errors.MalformedRequestError: 400,
    server_errors.WrongTokenError: 401,
    server_errors.InvitationRefusedError: 403,
    server_errors.WrongRoleError: 403,
    server_errors.UnknownRouteError: 404,
    server_errors.UnknownCampaignError: 404,
    server_errors.NotPublishedError: 404,
    server_errors.UnknownListingError: 404,
    server_errors.UnknownOrderError: 404,
    server_errors.MethodNotAllowedError: 405,
    server_errors.RequestTimeoutError: 408,
    server_errors.CampaignExistsError: 409,
    server_errors.CampaignStateError: 409,
    server_errors.CampaignReducedError: 409,
    server_errors.CampaignClosedError: 409,
    server_errors.LevelNotOpenError: 409,
    server_errors.ReportDiffersError: 409,
    server_errors.DeviceWithdrawnError: 409,
    server_errors.ListingExistsError: 409,
    server_errors.LevelDiffersError: 409,
    server_errors.OrderStateError: 409,
    server_errors.BodyTooLargeError: 413,
    server_errors.WrongMediaTypeError: 415,
    server_errors.ReportOutsideEncodingError: 422,
    server_errors.CampaignError: 422,
    errors.MissingDependencyError: 422,
    server_errors.TooManyRequestsError: 429,
    server_errors.HeadTooLargeError: 431,
    server_errors.StorageUnavailableError: 503,
}
"""Whatever else the package raises on purpose is a mistake of the person who asked: 422."""

_HEADERS: dict[int, dict[str, str]] = {
    401: {"www-authenticate": "Bearer"},
    408: {"connection": "close"},
    413: {"connection": "close"},
    429: {"retry-after": "1"},
    503: {"retry-after": "2"},
}


class Problem(msgspec.Struct, frozen=True):
    """What every error looks like over HTTP, on every route."""

    error: str
    message: str
    """The problem, the hint and the consequence together."""
    fields: dict[str, Any]
    sentence: str
    hint: str
    consequence: str


def code_of(kind: type[RelaxdpError]) -> str:
    """Return how a kind of error is called over HTTP.

    >>> code_of(server_errors.ReportDiffersError)
    'report_differs'
    """
    return kind("").code.removesuffix("_error")


def status_of(kind: type[BaseException]) -> int:
    """Return the status of a kind of error: that of the nearest base class that has one."""
    return next((STATUSES[base] for base in kind.__mro__ if base in STATUSES), 422)


def problem_response(
    problem: RelaxdpError, nothing: str = "Nothing was done.", headers: dict[str, str] | None = None
) -> Response:
    """Return the answer for an error. `nothing` says what did not happen, unless whoever refused has said it."""
    status = status_of(type(problem))
    problem.consequence = problem.consequence or nothing
    content = msgspec.json.encode(
        Problem(
            code_of(type(problem)), problem.message, problem.fields, problem.sentence, problem.hint, problem.consequence
        )
    )
    return Response(
        content, status, headers={**_HEADERS.get(status, {}), **(headers or {})}, media_type="application/json"
    )
