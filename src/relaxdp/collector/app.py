"""The collector's application: routes, shell, and what starts and stops with a worker."""

from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp

from relaxdp.collector.advice_routes import AdviceRoutes
from relaxdp.collector.duties import Duties
from relaxdp.collector.history_routes import HistoryRoutes
from relaxdp.collector.operator_routes import OperatorRoutes
from relaxdp.collector.report_routes import ReportRoutes
from relaxdp.collector.service import Collector
from relaxdp.collector.views import ENCODER
from relaxdp.collector.wire import ID_PATTERN, Health
from relaxdp.errors import StorageUnavailableError
from relaxdp.service.bodies import Limits
from relaxdp.service.buckets import Buckets
from relaxdp.service.clients import networks_of
from relaxdp.service.database import Database
from relaxdp.service.metrics import Metrics
from relaxdp.service.openapi import description
from relaxdp.service.operations import Operation, application
from relaxdp.service.orphans import end_with_parent
from relaxdp.service.pages import Pages
from relaxdp.service.request_log import RequestLog
from relaxdp.service.settings import Settings
from relaxdp.service.shared_metrics import SharedMetrics
from relaxdp.service.shell import Shell
from relaxdp.service.tuning import tune


def build(settings: Settings) -> ASGIApp:
    """Return the application of one worker; its database is prepared already."""
    metrics, log = Metrics(), RequestLog(enabled=settings.request_log)
    database = Database(settings.database)
    collector = Collector(database, metrics)
    shared = SharedMetrics(database, metrics, settings)
    limits = Limits(settings.body_limit)
    operations = [
        *ReportRoutes(collector, limits).operations(),
        *OperatorRoutes(collector, limits).operations(),
        *AdviceRoutes(collector, limits).operations(),
        *HistoryRoutes(collector).operations(),
    ]
    operations += _own_operations(collector, shared, operations)
    operations += Pages(embed=settings.embed).operations()

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        tune()
        duties = Duties(collector)
        collector.writer.start()
        duties.start()
        shared.start(collector.writer)
        _on_signal(collector.stopping.set)
        orphan = asyncio.ensure_future(end_with_parent()) if settings.workers > 1 else None
        yield
        if orphan is not None:
            orphan.cancel()
        await shared.stop()
        await duties.stop()
        await collector.stop()
        log.flush()

    app, route_of = application(operations, lifespan=lifespan)
    return Shell(
        app,
        route_of=route_of,
        metrics=metrics,
        log=log,
        buckets=Buckets(rate=settings.own_rate, burst=settings.own_burst),
        trusted=networks_of(settings.trusted_proxies),
    )


def _own_operations(collector: Collector, shared: SharedMetrics, others: list[Operation]) -> list[Operation]:
    async def show_health(request: Request) -> Response:
        await collector.read(lambda connection: connection.exec_driver_sql("SELECT 1").scalar())
        if not collector.writer.is_alive:
            raise StorageUnavailableError("the service does not write. Nothing was stored.")
        return Response(ENCODER.encode(Health("ok")), media_type="application/json")

    async def show_metrics(request: Request) -> Response:
        text = await collector.compute(shared.text)
        return Response(text, media_type="text/plain; version=0.0.4")

    async def show_openapi(request: Request) -> Response:
        return Response(document, media_type="application/json")

    own = [
        Operation("GET", "/healthz", show_health, "Tell whether the service can do its work.", answer=Health),
        Operation("GET", "/metrics", show_metrics, "Show metrics for Prometheus.", media_type="text/plain"),
        Operation("GET", "/openapi.json", show_openapi, "Show this description."),
    ]
    parameters = {"id": {"type": "string", "pattern": ID_PATTERN}}
    document = description([*others, *own], title="relaxdp collector", parameters=parameters)
    return own


def _on_signal(deed: Callable[[], None]) -> None:
    """Do something when the process is asked to stop, before the server waits for its connections to end.

    A stream never ends by itself, and the server tells an application of its end only afterwards.
    """
    if threading.current_thread() is not threading.main_thread():
        return
    for number in (signal.SIGINT, signal.SIGTERM):
        before = signal.getsignal(number)

        def both(number: int, frame: Any, before: Any = before) -> None:
            deed()
            if callable(before):
                before(number, frame)

        signal.signal(number, both)
