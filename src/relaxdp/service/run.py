"""Running a service: one worker in this process, or several that share one listening socket."""

from __future__ import annotations

import resource
import secrets
import signal
import socket
import threading
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

from relaxdp.errors import ServiceError
from relaxdp.service.settings import Settings
from relaxdp.table.interrupts import leave

Build = Callable[[Settings], Any]
BACKLOG = 2048


def listen(settings: Settings) -> tuple[socket.socket, str]:
    """Return a bound socket and the address that clients use."""
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    made = socket.socket(family, socket.SOCK_STREAM)
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind((settings.host, settings.port))
    except OSError as problem:
        made.close()
        raise ServiceError(
            "{host}:{port} cannot be listened on: {why}.", host=settings.host, port=settings.port, why=problem.strerror
        ) from None
    made.set_inheritable(True)
    host, port = made.getsockname()[:2]
    scheme = "https" if settings.certificate else "http"
    return made, f"{scheme}://[{host}]:{port}" if family == socket.AF_INET6 else f"{scheme}://{host}:{port}"


def serve(build: Build, settings: Settings, listening: socket.socket) -> None:
    """Serve until a signal ends it. `build` makes the application of a worker, in that worker's process."""
    import uvicorn  # noqa: PLC0415
    from uvicorn.supervisors import Multiprocess  # noqa: PLC0415

    from relaxdp.service.connections import PatientProtocol  # noqa: PLC0415

    _raise_open_files()
    _end_in_peace()
    settings = replace(settings, run=secrets.token_hex(8))
    config = uvicorn.Config(
        partial(build, settings),
        factory=True,
        workers=settings.workers,
        http=partial(  # type: ignore[arg-type]
            PatientProtocol, idle_seconds=settings.idle_seconds, most_connections=settings.most_connections
        ),
        ws="none",
        access_log=False,
        log_level="warning",
        server_header=False,
        proxy_headers=False,
        timeout_keep_alive=max(1, round(settings.idle_seconds)),
        timeout_graceful_shutdown=settings.shutdown_seconds,
        ssl_certfile=settings.certificate,
        ssl_keyfile=settings.certificate_key,
        backlog=BACKLOG,
    )
    if settings.workers == 1:
        uvicorn.Server(config).run(sockets=[listening])
    else:
        Multiprocess(config, sockets=[listening]).run()


def _end_in_peace() -> None:
    """Exit with status 0 when asked to stop, also before the server looks after signals itself.

    After it has stopped, it raises the signal once more.
    """
    if threading.current_thread() is threading.main_thread():
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda number, frame: leave(number, 0))


def _raise_open_files() -> None:
    """Allow as many open connections as the system lets us have."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
