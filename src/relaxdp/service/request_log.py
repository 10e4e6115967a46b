"""The request log: time, method, route, status, duration. No address, no id, no body, no token, no query."""

from __future__ import annotations

import sys
import time
from typing import TextIO

_MOST_WAITING = 64
_SECONDS = 1.0


class RequestLog:
    """Lines for people and programs, written a few at a time so that a log does not cost a request.

    A route is its template: the address itself may name a campaign that few people know of.
    """

    def __init__(self, *, enabled: bool = True, file: TextIO | None = None) -> None:
        self._enabled, self._file = enabled, file
        self._waiting: list[str] = []
        self._last = 0.0

    def add(self, method: str, route: str, status: int, seconds: float) -> None:
        """Note one request."""
        if not self._enabled:
            return
        now = time.time()
        stamp = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(now))
        self._waiting.append(f"{stamp} {method} {route} {status} {seconds * 1000:.1f}ms\n")
        if len(self._waiting) >= _MOST_WAITING or now - self._last > _SECONDS:
            self._last = now
            self.flush()

    def flush(self) -> None:
        """Write what is waiting."""
        lines, self._waiting = self._waiting, []
        if lines:
            file = self._file or sys.stderr
            file.write("".join(lines))
            file.flush()
