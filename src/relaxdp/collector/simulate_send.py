"""Batches of reports over several connections that stay open, each in a thread of its own."""

from __future__ import annotations

import http.client
import json
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from queue import SimpleQueue
from typing import Any

from relaxdp.collector.client import parsed, tidy
from relaxdp.collector.client_address import CampaignAddress, Server
from relaxdp.errors import SimulationError, UnreachableError

Progress = Callable[[int], None]
_ATTEMPTS = 8
_TIMEOUT = 120


class Sender:
    """Sends batches until every one was answered. What breaks off is sent again: the same reports, which is safe."""

    def __init__(self, address: CampaignAddress, *, batch: int, connections: int) -> None:
        if not 1 <= batch <= 1000 or not 1 <= connections <= 64:
            raise SimulationError("a batch has 1 to 1,000 reports, and there are 1 to 64 connections.")
        self._address, self._batch = address, batch
        self._pool = ThreadPoolExecutor(connections)
        self._idle: SimpleQueue[http.client.HTTPConnection] = SimpleQueue()
        for _ in range(connections):
            self._idle.put(_connection(address.server))
        self.requests = 0
        """How many requests were answered."""
        self.seconds = 0.0
        """How long sending has taken, together."""

    def send(self, reports: Sequence[dict[str, Any]], progress: Progress) -> Counter[str]:
        """Return how many reports were answered with what: new, same, or why they were refused."""
        began = time.perf_counter()
        results: Counter[str] = Counter()
        for answer in self._pool.map(self._one, _batches(reports, self._batch)):
            results.update(answer)
            self.requests += 1
            progress(sum(answer.values()))
        self.seconds += time.perf_counter() - began
        return results

    def close(self) -> None:
        """Close all connections."""
        self._pool.shutdown(cancel_futures=True)
        while not self._idle.empty():
            self._idle.get().close()

    def _one(self, reports: Sequence[dict[str, Any]]) -> Counter[str]:
        body = json.dumps({"reports": reports}, ensure_ascii=False, separators=(",", ":")).encode()
        connection = self._idle.get()
        try:
            return _counted(self._post(connection, body), len(reports))
        finally:
            self._idle.put(connection)

    def _post(self, connection: http.client.HTTPConnection, body: bytes) -> Any:
        path = f"{self._address.server.prefix}{self._address.path('reports', 'batch')}"
        for attempt in range(_ATTEMPTS):
            try:
                connection.request("POST", path, body, {"Content-Type": "application/json", "User-Agent": "relaxdp"})
                with connection.getresponse() as response:
                    content = response.read()
                    if response.status == 200:
                        return parsed(content)
                    if response.status not in (408, 429, 503):
                        raise SimulationError(
                            "the server refused a batch (status {status}): {said}",
                            status=response.status,
                            said=tidy(content.decode("utf-8", "replace")),
                        )
            except (OSError, http.client.HTTPException):
                connection.close()
            time.sleep(min(5.0, 0.1 * 2**attempt))
        raise UnreachableError(
            "{server} did not take a batch in {attempts} attempts.",
            server=self._address.server.host_and_port,
            attempts=_ATTEMPTS,
        )


def _batches(reports: Sequence[dict[str, Any]], size: int) -> Iterator[Sequence[dict[str, Any]]]:
    return (reports[start : start + size] for start in range(0, len(reports), size))


def _counted(answer: Any, expected: int) -> Counter[str]:
    results = answer.get("results") if isinstance(answer, dict) else None
    if not isinstance(results, list) or len(results) != expected or not all(isinstance(r, str) for r in results):
        raise SimulationError("the server did not answer every report of a batch.")
    return Counter(results)


def _connection(server: Server) -> http.client.HTTPConnection:
    kind = http.client.HTTPConnection if server.scheme == "http" else http.client.HTTPSConnection
    return kind(server.host, server.port, timeout=_TIMEOUT)
