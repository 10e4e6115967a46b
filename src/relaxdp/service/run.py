"""Running a service: its listening socket, and uvicorn with a limit for request heads."""

from __future__ import annotations

import resource
import signal
import socket
import threading
from collections.abc import Callable
from typing import Any

from uvicorn.config import Config
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol
from uvicorn.server import Server

from relaxdp.server_errors import HeadTooLargeError, ServiceError
from relaxdp.service.observe import problem_response
from relaxdp.service.settings import Settings
from relaxdp.tables.interrupts import exit_from_signal

MAX_HEAD_BYTES = 64 << 10
"""How long request line and headers may be together; also trailers, and anything else around the parts of a body."""

_KEEP_ALIVE_SECONDS = 150
"""Longer than nginx (60 s) and Caddy (120 s) keep an idle connection, so that a proxy never writes to a closed one."""


class LimitedHeadProtocol(HttpToolsProtocol):
    """Uvicorn's protocol with a limit for request heads, of which its parser would keep any length in memory."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._unfinished_bytes = 0
        self._has_finished = False

    def data_received(self, data: bytes) -> None:
        """Parse received bytes, and reject a request whose head does not end in time."""
        while data and not self.transport.is_closing():
            piece = data[: MAX_HEAD_BYTES - self._unfinished_bytes]
            data = data[len(piece) :]
            self._has_finished = False
            super().data_received(piece)
            self._unfinished_bytes = 0 if self._has_finished else self._unfinished_bytes + len(piece)
            if self._unfinished_bytes >= MAX_HEAD_BYTES:
                self._reject_head()

    def _reject_head(self) -> None:
        """Close the connection, with an answer where it cannot be mistaken for the answer to an earlier request."""
        asked = self.cycle
        is_next = asked is not None and asked.scope is not self.scope
        if asked is None or (asked.response_complete if is_next else not asked.response_started):
            problem = HeadTooLargeError(
                "The request head is too large. Request line and headers have at most {most:,} bytes together. "
                "Send fewer or shorter headers.",
                most=MAX_HEAD_BYTES,
            )
            answer = problem_response(problem)
            lines = [name + b": " + value + b"\r\n" for name, value in answer.raw_headers if name != b"connection"]
            head = [STATUS_LINE[answer.status_code], *lines, b"connection: close\r\n\r\n"]
            self.transport.write(b"".join(head) + bytes(answer.body))
        self.transport.close()

    def on_headers_complete(self) -> None:
        """Note that the head has an end."""
        self._has_finished = True
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        """Note that a part of the body arrived."""
        self._has_finished = True
        super().on_body(body)

    def on_message_complete(self) -> None:
        """Note that the whole request arrived."""
        self._has_finished = True
        super().on_message_complete()


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
    host, port = made.getsockname()[:2]
    scheme = "https" if settings.certificate else "http"
    return made, f"{scheme}://[{host}]:{port}" if family == socket.AF_INET6 else f"{scheme}://{host}:{port}"


def serve(build: Build, settings: Settings, listening: socket.socket) -> None:
    """Serve until a signal ends it; `build` makes the application."""
    _raise_open_files()
    _end_in_peace()
    config = Config(
        build(settings),
        http=LimitedHeadProtocol,
        ws="none",
        access_log=False,
        log_level="warning",
        server_header=False,
        proxy_headers=False,
        timeout_keep_alive=_KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=settings.shutdown_seconds,
        ssl_certfile=settings.certificate,
        ssl_keyfile=settings.certificate_key,
        backlog=BACKLOG,
    )
    Server(config).run(sockets=[listening])


def _end_in_peace() -> None:
    """Exit with status 0 when asked to stop, also before the server looks after signals itself.

    After it has stopped, it raises the signal once more.
    """
    if threading.current_thread() is threading.main_thread():
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda number, frame: exit_from_signal(number, 0))


def _raise_open_files() -> None:
    """Allow as many open connections as the system lets us have."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
