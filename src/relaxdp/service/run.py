"""Running a service: one worker in this process, or several that share one listening socket."""

from __future__ import annotations

import asyncio
import resource
import signal
import socket
import sys
import threading
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

from uvicorn.config import Config
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol
from uvicorn.server import Server, ServerState
from uvicorn.supervisors import Multiprocess

from relaxdp.errors import (
    HeadTooLargeError,
    MalformedRequestError,
    RelaxdpError,
    RequestTimeoutError,
    ServiceError,
    TooManyRequestsError,
)
from relaxdp.publication.staging import temporary_folder
from relaxdp.service.observe import problem_response
from relaxdp.service.settings import Settings
from relaxdp.service.transfer import WAITING, Waiting
from relaxdp.table.interrupts import leave

_ACKNOWLEDGED = slice(120, 128)
"""Where Linux has the bytes that were acknowledged in its `struct tcp_info`.

Python hands it out as bytes and names no field; Linux only ever adds fields at its end.
"""


MAX_HEAD_BYTES = 64 << 10
"""How long request line and headers may be together; also trailers, and anything else around the parts of a body."""


class PatientProtocol(HttpToolsProtocol):
    """Uvicorn's protocol, whose patience has an end before and within a request as well.

    Uvicorn closes a connection that waits for its next request; one that never sends the whole of one it keeps. A
    timer for each request would cost more than reading it does, so a connection notes since when it waits, and all of
    them are looked through now and then. A request must be here as a whole in time, but for files (`transfer.py`), of
    which some more must be. An answer may be read as slowly as one likes, as long as some of it is.

    A reverse proxy does this as well. It is done by hand because the service may stand without one, with TLS too.
    """

    def __init__(
        self, config: Config, server_state: ServerState, app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None, *, idle_seconds: float, most_connections: int,
    ) -> None:  # fmt: skip
        super().__init__(config, server_state, app_state, _loop)
        self.idle_seconds, self.most_connections = idle_seconds, most_connections
        self.waiting = Waiting(self.now, idle_seconds)
        self._unread_since: float | None = None
        self._unread = (0, 0)
        self._unfinished_bytes = 0
        self._has_finished = False

    def now(self) -> float:
        """Return the time by which patience ends; tests have a clock of their own."""
        return self.loop.time()

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Start to wait, or refuse one connection too many."""
        super().connection_made(transport)
        if len(self.connections) > self.most_connections:
            self._refuse(TooManyRequestsError("the service has too many connections."))
            return
        self.waiting.since = self.now()
        if not getattr(self.server_state, "is_watched", False):
            self.server_state.is_watched = True  # type: ignore[attr-defined]
            self.loop.call_later(self.idle_seconds / 8, self._look_through)

    def data_received(self, data: bytes) -> None:
        """Parse what arrived, and end a request whose head has no end: the parser would keep all of it."""
        while data and not self.transport.is_closing():
            piece = data[: MAX_HEAD_BYTES - self._unfinished_bytes]
            data = data[len(piece) :]
            self._has_finished = False
            super().data_received(piece)
            self._unfinished_bytes = 0 if self._has_finished else self._unfinished_bytes + len(piece)
            if self._unfinished_bytes >= MAX_HEAD_BYTES:
                self._refuse_head()

    def _refuse_head(self) -> None:
        asked = self.cycle
        is_next = asked is not None and asked.scope is not self.scope
        # An answer now would be taken for that of an earlier request, or stand in the middle of it.
        if asked is None or (asked.response_complete if is_next else not asked.response_started):
            self._refuse(
                HeadTooLargeError(
                    "The request head is too large. Request line and headers have at most {most:,} bytes together. "
                    "Send fewer or shorter headers.",
                    most=MAX_HEAD_BYTES,
                )
            )
        self.transport.close()

    def on_headers_complete(self) -> None:
        """Note that the head has an end."""
        self._has_finished = True
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        """Note that a part of the body arrived."""
        self._has_finished = True
        super().on_body(body)

    def on_message_begin(self) -> None:
        """Wait for the rest of a request that began."""
        self.waiting.since = self.now()
        super().on_message_begin()
        self.scope[WAITING] = self.waiting  # type: ignore[literal-required]

    def on_message_complete(self) -> None:
        """Stop waiting: the whole request is here."""
        self._has_finished = True
        self.waiting.since = None
        super().on_message_complete()

    def resume_writing(self) -> None:
        """Note that the client reads: what waits from now on waits anew."""
        self._unread_since = None
        super().resume_writing()

    def _look_through(self) -> None:
        """Close all connections that wait too long, and come back later while there are any."""
        now = self.now()
        for each in list(self.connections):
            if isinstance(each, PatientProtocol):
                each._look(now, now - self.idle_seconds)
        self.server_state.is_watched = bool(self.connections)  # type: ignore[attr-defined]
        if self.connections:
            self.loop.call_later(self.idle_seconds / 8, self._look_through)

    def _look(self, now: float, latest: float) -> None:
        if self.waiting.since is not None and self.waiting.since < latest:
            self._too_slow()
        elif self.flow.write_paused or self.transport.get_write_buffer_size():
            self._look_at_unread(now, latest)
        else:
            self._unread_since = None  # nothing waits for the client: a stream that is merely quiet lives

    def _look_at_unread(self, now: float, latest: float) -> None:
        """End a connection whose client has read nothing of what waits for it, also when it is closing already.

        It is not told: it would not read it. And what waits must be dropped, for a transport that is closed keeps it
        until it is read.
        """
        unread = (self.transport.get_write_buffer_size(), _acknowledged(self.transport))
        if self._unread_since is None or unread != self._unread:
            self._unread_since, self._unread = now, unread
        elif self._unread_since < latest:
            self.transport.abort()

    def _too_slow(self) -> None:
        self.waiting.since = None
        self._refuse(RequestTimeoutError("no request arrived within {seconds:g} seconds.", seconds=self.idle_seconds))

    def send_400_response(self, msg: str) -> None:
        """Refuse what is no HTTP in the shape of every error."""
        self._refuse(MalformedRequestError("this is no HTTP request."))

    def _refuse(self, problem: RelaxdpError) -> None:
        """Answer without a request, and close."""
        if self.transport.is_closing():
            return
        answer = problem_response(problem)
        lines = [name + b": " + value + b"\r\n" for name, value in answer.raw_headers if name != b"connection"]
        head = [STATUS_LINE[answer.status_code], *lines, b"connection: close\r\n\r\n"]
        self.transport.write(b"".join(head) + bytes(answer.body))
        self.transport.close()


def _acknowledged(transport: asyncio.Transport) -> int:
    """Return how many bytes the other side has acknowledged, 0 where the system does not tell.

    Behind TLS, most of what waits is in a buffer that we do not see, so its size alone does not show who reads.
    """
    plain = transport.get_extra_info("socket")
    if plain is None or not hasattr(socket, "TCP_INFO"):
        return 0
    try:
        told = plain.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _ACKNOWLEDGED.stop)
    except OSError:  # no TCP, or gone by now
        return 0
    return int.from_bytes(told[_ACKNOWLEDGED], sys.byteorder)


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
    _raise_open_files()
    _end_in_peace()
    if settings.workers == 1:
        Server(_config(build, settings)).run(sockets=[listening])
        return
    with temporary_folder("relaxdp-metrics") as folder:  # ours alone, so that nothing of an earlier start is in it
        shared = replace(settings, metrics_folder=folder)
        Multiprocess(_config(build, shared), sockets=[listening]).run()


def _config(build: Build, settings: Settings) -> Config:
    return Config(
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
