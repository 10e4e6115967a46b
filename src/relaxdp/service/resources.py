"""What the parts of a service share: the database, threads, metrics, limits, and who the operator is."""

from __future__ import annotations

import asyncio
import gc
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from sqlalchemy import Connection
from starlette.requests import Request

from relaxdp.server_errors import WrongTokenError
from relaxdp.service.limits import Limits
from relaxdp.service.observe import Metrics
from relaxdp.service.settings import Settings
from relaxdp.service.tokens import OPERATOR, bears, digest_for
from relaxdp.storage.database import Database

_SWITCH_SECONDS = 0.0005
_THRESHOLDS = (20_000, 20, 50)


def tune() -> None:
    """Let the writer have the interpreter soon, and the garbage collector look only at what requests leave behind.

    The writer comes back from the database often and briefly: it must not wait 5 ms each time. Everything that was
    imported stays for good; without this, looking through it takes longer than a thousand requests.
    """
    sys.setswitchinterval(_SWITCH_SECONDS)
    gc.collect()
    gc.freeze()
    gc.set_threshold(*_THRESHOLDS)


_THREADS = 4
_FOR_STRANGERS = 2
_RELOAD_SECONDS = 5.0
Result = TypeVar("Result")


class Resources:
    """Database, threads, metrics and limits of a service. The database is prepared already."""

    def __init__(self, settings: Settings, *, clock: Callable[[], float] = time.time) -> None:
        self.settings, self.clock = settings, clock
        self.database = Database(settings.database)
        self.metrics = Metrics()
        self.limits = Limits(settings.body_limit)
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="relaxdp-read")
        # A write may wait long for others that write: nobody who only reads waits behind it.
        self._writers = ThreadPoolExecutor(_THREADS, thread_name_prefix="relaxdp-write")
        self._strangers = ThreadPoolExecutor(_FOR_STRANGERS, thread_name_prefix="relaxdp-look")
        self._digest: bytes | None = None
        self._reload_at = 0.0

    async def read(self, work: Callable[[Connection], Result]) -> Result:
        """Look at one snapshot of the database, in a thread."""
        return await self.compute(lambda: self._seen(work))

    async def look(self, work: Callable[[Connection], Result]) -> Result:
        """Look at one snapshot for somebody who need not be known: in few threads, so that nobody else waits long."""
        return await asyncio.get_running_loop().run_in_executor(self._strangers, lambda: self._seen(work))

    def _seen(self, work: Callable[[Connection], Result]) -> Result:
        with self.database.reading() as connection:
            return work(connection)

    async def perform(self, work: Callable[[], Result]) -> Result:
        """Do something that writes in transactions of its own, in a thread; nobody who only reads waits behind it."""
        return await asyncio.get_running_loop().run_in_executor(self._writers, work)

    async def compute(self, work: Callable[[], Result]) -> Result:
        """Do something that takes a while, in a thread."""
        return await asyncio.get_running_loop().run_in_executor(self._threads, work)

    async def is_operator(self, request: Request) -> bool:
        """Tell whether a request bears the operator's token. One that was renewed counts after seconds."""
        now = time.monotonic()
        if self._digest is None or now >= self._reload_at:
            self._reload_at = now + _RELOAD_SECONDS
            self._digest = await self.read(lambda connection: digest_for(connection, OPERATOR))
        return bears(request.headers.get("authorization"), self._digest)

    async def check_operator(self, request: Request) -> None:
        """Refuse whoever does not bear the operator's token."""
        if not await self.is_operator(request):
            raise WrongTokenError("this needs the operator's token (Authorization: Bearer ...).")

    def close(self) -> None:
        """Wait for the threads, and close the database."""
        for threads in (self._writers, self._strangers, self._threads):
            threads.shutdown(wait=True, cancel_futures=True)
        self.database.close()
