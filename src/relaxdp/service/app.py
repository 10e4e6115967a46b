"""The application of a service: the routes of its parts and its own, and what starts and stops with a worker."""

from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

from starlette.applications import Starlette
from starlette.types import ASGIApp

from relaxdp.service.component import Component
from relaxdp.service.limits import Buckets, behind_proxies
from relaxdp.service.middleware import Shell
from relaxdp.service.operations import application
from relaxdp.service.pages import OwnRoutes, Pages
from relaxdp.service.request_log import RequestLog
from relaxdp.service.settings import Settings
from relaxdp.service.worker import Worker, end_with_parent, tune


def build_application(settings: Settings, compose: Callable[[Worker], Sequence[Component]]) -> ASGIApp:
    """Return the application of one worker; `compose` makes its parts, in the order in which they start."""
    worker, log = Worker(settings), RequestLog(enabled=settings.request_log)
    parts = list(compose(worker))
    sections = [(part.operations(), part.parameters()) for part in parts]
    operations = [operation for own, _ in sections for operation in own]
    operations += OwnRoutes(worker, parts).operations(sections)
    operations += Pages(embed=settings.embed).operations()

    def end_what_never_ends() -> None:
        for part in parts:
            part.stopping()

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        tune()
        async with AsyncExitStack() as stack:  # what was started is stopped, last first, whatever fails in between
            stack.callback(log.flush)
            stack.callback(worker.close)
            for part in parts:
                await part.start()
                stack.push_async_callback(part.stop)
            _on_signal(end_what_never_ends)
            if settings.workers > 1:
                stack.callback(asyncio.ensure_future(end_with_parent()).cancel)
            yield

    app, route_of = application(operations, lifespan=lifespan)
    shell = Shell(
        app,
        route_of=route_of,
        metrics=worker.metrics,
        log=log,
        buckets=Buckets(rate=settings.own_rate, burst=settings.own_burst),
    )
    return behind_proxies(shell, settings.trusted_proxies)


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
