"""The collector of one worker: its database, its writer, its threads, and the campaigns that it has seen."""

from __future__ import annotations

import asyncio
import re
import time
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from sqlalchemy import Connection
from starlette.requests import Request

from relaxdp.collector import campaigns
from relaxdp.collector.campaign import Campaign
from relaxdp.collector.wire import ID_PATTERN
from relaxdp.collector.writer import Writer
from relaxdp.errors import UnknownCampaignError, WrongTokenError
from relaxdp.service.database import Database
from relaxdp.service.metrics import Metrics
from relaxdp.service.prepare import OPERATOR
from relaxdp.service.tokens import bears, digest_for

REPORTS = "relaxdp_reports_total"
_MOST_KEPT = 1000
_RELOAD_SECONDS = 5.0
_ID = re.compile(ID_PATTERN)
Result = TypeVar("Result")


class Collector:
    """What all routes share."""

    def __init__(self, database: Database, metrics: Metrics, *, clock: Callable[[], float] = time.time) -> None:
        self.database, self.metrics, self.clock = database, metrics, clock
        self.writer = Writer(database, clock=clock)
        self.stopping = asyncio.Event()
        self._threads = ThreadPoolExecutor(4, thread_name_prefix="relaxdp-read")
        self._kept: OrderedDict[str, Campaign] = OrderedDict()
        self._digest: bytes | None = None
        self._read_digest = 0.0
        metrics.counter(REPORTS, "Reports by what became of them.")
        metrics.gauge("relaxdp_waiting_reports", "Reports that wait for their commit.", lambda: self.writer.waiting)
        metrics.gauge(
            "relaxdp_commits_total", "Groups of reports, each one commit.", lambda: self.writer.groups, kind="counter"
        )

    async def read(self, work: Callable[[Connection], Result]) -> Result:
        """Look at one snapshot of the database, in a thread."""

        def run() -> Result:
            with self.database.reading() as connection:
                return work(connection)

        return await self.compute(run)

    async def compute(self, work: Callable[[], Result]) -> Result:
        """Do something that takes a while, in a thread."""
        return await asyncio.get_running_loop().run_in_executor(self._threads, work)

    async def campaign(self, request: Request) -> Campaign:
        """Return the campaign that a request's address names."""
        return await self.campaign_named(request.path_params["id"])

    async def campaign_named(self, campaign_id: str) -> Campaign:
        """Return a campaign. It never changes, so that it is read once."""
        found = self._kept.get(campaign_id)
        if found is not None:
            return found
        if _ID.fullmatch(campaign_id) is None:
            raise UnknownCampaignError("there is no campaign with this id. Nothing was done.")
        found = await self.read(lambda connection: campaigns.find(connection, campaign_id))
        self.keep(found)
        return found

    def keep(self, campaign: Campaign) -> None:
        """Remember a campaign."""
        self._kept[campaign.id] = campaign
        while len(self._kept) > _MOST_KEPT:
            self._kept.popitem(last=False)

    async def check_operator(self, request: Request) -> None:
        """Refuse whoever does not bear the operator's token."""
        header = request.headers.get("authorization")
        if bears(header, self._digest):
            return
        now = time.monotonic()
        if self._digest is None or now - self._read_digest > _RELOAD_SECONDS:  # it may have been renewed
            self._read_digest = now
            self._digest = await self.read(lambda connection: digest_for(connection, OPERATOR))
            if bears(header, self._digest):
                return
        raise WrongTokenError("this needs the operator's token (Authorization: Bearer ...). Nothing was done.")

    async def stop(self) -> None:
        """Finish what is waiting, and close."""
        self.stopping.set()
        await self.writer.stop()
        self._threads.shutdown(wait=True, cancel_futures=True)
        self.database.close()
