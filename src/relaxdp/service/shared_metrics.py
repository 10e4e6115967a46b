"""Metrics of several workers: each leaves its numbers in the database, and whichever is asked adds them up."""

from __future__ import annotations

import asyncio
import contextlib
import os
from typing import Any

from sqlalchemy import Connection, delete, insert, select

from relaxdp.errors import RelaxdpError
from relaxdp.service.database import Database
from relaxdp.service.metrics import Metrics
from relaxdp.service.schema import METRICS
from relaxdp.service.settings import Settings

_SECONDS = 5.0


class SharedMetrics:
    """With a single worker nothing is written. A worker that died is still counted, so no number falls."""

    def __init__(self, database: Database, metrics: Metrics, settings: Settings) -> None:
        self._database, self._metrics = database, metrics
        self._run, self._shared = settings.run, settings.workers > 1
        self._worker = str(os.getpid())
        self._task: asyncio.Task[None] | None = None

    def start(self, writer: Any) -> None:
        """Begin to leave numbers, through whoever writes."""
        if self._shared:
            self._task = asyncio.get_running_loop().create_task(self._repeat(writer))

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
        query = select(table.snapshot).where(table.run == self._run, table.worker != self._worker)
        with self._database.reading() as connection:
            return self._metrics.text(list(connection.execute(query).scalars()))

    def _write(self, connection: Connection) -> None:
        table = METRICS.c
        old = (table.run != self._run) | (table.worker == self._worker)
        connection.execute(delete(METRICS).where(old))
        row = {"run": self._run, "worker": self._worker, "snapshot": self._metrics.snapshot()}
        connection.execute(insert(METRICS).values(row))

    async def _repeat(self, writer: Any) -> None:
        while True:
            with contextlib.suppress(RelaxdpError):  # the next time
                await writer.call(self._write)
            await asyncio.sleep(_SECONDS)
