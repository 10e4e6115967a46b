"""Metrics of several workers: each leaves its numbers in the database, and whichever is asked adds them up."""

from __future__ import annotations

import asyncio
import contextlib
import os

from sqlalchemy import Connection, delete, insert, select

from relaxdp.errors import RelaxdpError
from relaxdp.service.schema import METRICS
from relaxdp.service.worker import Worker

_SECONDS = 5.0


class SharedMetrics:
    """With a single worker nothing is written. A worker that died is still counted, so no number falls."""

    def __init__(self, worker: Worker) -> None:
        self._worker, self._metrics = worker, worker.metrics
        self._run, self._shared = worker.settings.run, worker.settings.workers > 1
        self._name = str(os.getpid())
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin to leave numbers."""
        if self._shared:
            self._task = asyncio.get_running_loop().create_task(self._repeat())

    async def stop(self) -> None:
        """End."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    def text(self) -> str:
        """Return Prometheus text of all workers."""
        if not self._shared:
            return self._metrics.text()
        table = METRICS.c
        query = select(table.snapshot).where(table.run == self._run, table.worker != self._name)
        with self._worker.database.reading() as connection:
            return self._metrics.text(list(connection.execute(query).scalars()))

    def _write(self, connection: Connection) -> None:
        table = METRICS.c
        old = (table.run != self._run) | (table.worker == self._name)
        connection.execute(delete(METRICS).where(old))
        row = {"run": self._run, "worker": self._name, "snapshot": self._metrics.snapshot()}
        connection.execute(insert(METRICS).values(row))

    async def _repeat(self) -> None:
        while True:
            with contextlib.suppress(RelaxdpError):  # the next time
                await self._worker.write(self._write)
            await asyncio.sleep(_SECONDS)
