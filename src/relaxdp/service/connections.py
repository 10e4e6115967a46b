"""Connections: those that send nothing are told so and closed, and there are only so many of them."""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.config import Config
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol
from uvicorn.server import ServerState

from relaxdp.errors import RelaxdpError, RequestTimeoutError, TooManyRequestsError
from relaxdp.service.problems import problem_response


class PatientProtocol(HttpToolsProtocol):
    """Uvicorn's protocol, whose patience has an end before the first request as well.

    Uvicorn closes a connection that waits for its next request; one that never sends a whole first one it keeps.
    """

    def __init__(
        self, config: Config, server_state: ServerState, app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None, *, idle_seconds: float, most_connections: int,
    ) -> None:  # fmt: skip
        super().__init__(config, server_state, app_state, _loop)
        self.idle_seconds, self.most_connections = idle_seconds, most_connections
        self._patience: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Start to wait, or refuse one connection too many."""
        super().connection_made(transport)
        if len(self.connections) > self.most_connections:
            self._refuse(TooManyRequestsError("the service has too many connections. Nothing was stored."))
            return
        self._patience = self.loop.call_later(self.idle_seconds, self._too_slow)

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop waiting."""
        self._calm()
        super().connection_lost(exc)

    def on_message_begin(self) -> None:
        """Wait for the rest of a request that began."""
        if self._patience is None:
            self._patience = self.loop.call_later(self.idle_seconds, self._too_slow)
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        """Stop waiting: the body has a limit of its own."""
        self._calm()
        super().on_headers_complete()

    def _calm(self) -> None:
        if self._patience is not None:
            self._patience.cancel()
            self._patience = None

    def _too_slow(self) -> None:
        self._patience = None
        self._refuse(
            RequestTimeoutError(f"no request arrived within {self.idle_seconds:g} seconds. Nothing was stored.")
        )

    def _refuse(self, problem: RelaxdpError) -> None:
        """Answer without a request, and close."""
        if self.transport.is_closing():
            return
        answer = problem_response(problem)
        lines = [name + b": " + value + b"\r\n" for name, value in answer.raw_headers if name != b"connection"]
        head = [STATUS_LINE[answer.status_code], *lines, b"connection: close\r\n\r\n"]
        self.transport.write(b"".join(head) + bytes(answer.body))
        self.transport.close()
