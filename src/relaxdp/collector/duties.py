"""Duties: work of the service that no request triggers.

Two services on one database both do them: each step holds its campaign and does what is still to be done.
"""

from __future__ import annotations

import asyncio
import logging

from sqlalchemy import Connection, select

from relaxdp.collector import campaigns, publishing
from relaxdp.collector.campaign import Campaign
from relaxdp.collector.rules import CampaignState, decided
from relaxdp.collector.schema import CAMPAIGNS, REPORTS, STATES
from relaxdp.collector.service import Collector
from relaxdp.collector.states import look
from relaxdp.collector.views import ENCODER
from relaxdp.collector.watch import Watch
from relaxdp.errors import RelaxdpError
from relaxdp.service.observe import log_mistake

_SWEPT = 2_000

_logger = logging.getLogger("relaxdp.service")


class Duties:
    """Dates that open and close, reduced reports that go, what is published, made-up reports."""

    def __init__(self, collector: Collector, *, seconds: float = 2.0) -> None:
        self._collector, self._seconds = collector, seconds
        self._watch = Watch(collector)
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin, within the running loop."""
        self._task = asyncio.get_running_loop().create_task(self._run())

    async def stop(self) -> None:
        """End."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def once(self) -> None:
        """Do what is to be done now."""
        for campaign in await self._due():
            now = self._collector.clock()
            await self._collector.writer.call(lambda connection: campaigns.tick(connection, campaign, now))  # noqa: B023
        for name in await self._collector.read(_unswept):
            campaign = await self._collector.campaign_named(name)
            while await self._collector.writer.call(
                lambda connection: campaigns.sweep(connection, campaign, _SWEPT)  # noqa: B023
            ):
                pass
            if self._collector.database.is_sqlite:
                await self._collector.compute(self._collector.database.empty_log)
        for name in await self._collector.read(publishing.unwritten):
            try:
                await self._publish(await self._collector.campaign_named(name))
            except Exception as problem:  # the other duties go on, and it is tried again
                log_mistake("a publication failed", problem)
        await self._watch.look()

    async def _publish(self, campaign: Campaign) -> None:
        """Write what a campaign publishes: work for seconds, and so not part of the transaction that ended it."""
        levels = await self._collector.read(lambda connection: publishing.kept_counts(connection, campaign))
        content = await self._collector.compute(lambda: ENCODER.encode(publishing.published(campaign, levels)))
        await self._collector.writer.call(lambda connection: publishing.write(connection, campaign, content))

    async def _run(self) -> None:
        while True:
            try:
                await self.once()
            except RelaxdpError as problem:
                _logger.warning("duties: %s", problem.message)
            except Exception as problem:
                log_mistake("duties failed", problem)
            await asyncio.sleep(self._seconds)

    async def _due(self) -> list[Campaign]:
        """Return the campaigns whose state no longer is what the dates say."""
        due = []
        for name, state in (await self._collector.read(_unfinished)).items():
            campaign = await self._collector.campaign_named(name)
            if decided(campaign, state, self._collector.clock()) is not state:
                due.append(campaign)
        return due


def _unfinished(connection: Connection) -> dict[str, CampaignState]:
    """Return the states of all campaigns that go on, by their ids."""
    query = select(CAMPAIGNS.c.id, CAMPAIGNS.c.number).join(STATES, STATES.c.campaign == CAMPAIGNS.c.number)
    rows = connection.execute(query.where(STATES.c.state != "finished")).all()
    return {name: look(connection, number) for name, number in rows}


def _unswept(connection: Connection) -> list[str]:
    some = select(REPORTS.c.campaign).where(REPORTS.c.campaign == STATES.c.campaign).exists()
    query = select(CAMPAIGNS.c.id).join(STATES, STATES.c.campaign == CAMPAIGNS.c.number).where(STATES.c.reduced, some)
    return list(connection.execute(query).scalars())
