"""Estimates as they change: asked for at once, and as a stream of server-sent events."""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import AsyncIterator

from sqlalchemy import Connection

from relaxdp.collector import pairs, states
from relaxdp.collector.campaign import Campaign
from relaxdp.collector.estimate_wire import Estimate, EstimateOptions
from relaxdp.collector.estimates import Levels, estimate, read_counts
from relaxdp.collector.pairs import Kept
from relaxdp.collector.rules import CampaignState, decided
from relaxdp.collector.service import Collector
from relaxdp.collector.views import ENCODER
from relaxdp.errors import RelaxdpError, TooManyRequestsError

MOST_STREAMS = 100
_SECONDS = 1.0
_ALIVE_SECONDS = 15.0
_MOST_KEPT = 100


class Estimates:
    """Estimates of the present state. One that was asked for already is kept until something changes."""

    def __init__(self, collector: Collector) -> None:
        self._collector = collector
        self._kept: OrderedDict[tuple[int, EstimateOptions], Estimate] = OrderedDict()

    async def now(self, campaign: Campaign, options: EstimateOptions) -> Estimate:
        """Return the estimate."""
        clock = self._collector.clock()

        def read(connection: Connection) -> tuple[Levels, Levels, Kept]:
            counted = read_counts(connection, campaign), read_counts(connection, campaign, moved=True)
            return *counted, pairs.read(connection, campaign.number)

        def work(connection: Connection) -> tuple[CampaignState, tuple[Levels, Levels, Kept] | None]:
            state = decided(campaign, states.look(connection, campaign.number), clock)
            kept = self._kept.get((campaign.number, options))
            return state, None if kept is not None and kept.version == state.version else read(connection)

        state, counted = await self._collector.read(work)
        kept = self._kept.get((campaign.number, options))
        if kept is not None and kept.version == state.version:
            return kept
        if counted is None:  # somebody else's estimate was dropped in between
            counted = await self._collector.read(read)
        levels, moved, paired = counted
        found = await self._collector.compute(lambda: estimate(campaign, state, levels, options, paired, moved))
        self._kept[campaign.number, options] = found
        while len(self._kept) > _MOST_KEPT:
            self._kept.popitem(last=False)
        return found

    async def version(self, campaign: Campaign) -> int:
        """Return a number that grows whenever something changes."""
        state = await self._collector.read(lambda connection: states.look(connection, campaign.number))
        return decided(campaign, state, self._collector.clock()).version


class Streams:
    """Server-sent events, at most one a second for each listener and only when something changed.

    An event is three lines, written by hand: sse-starlette finds out through the server's handlers of signals that it
    stops, and we are told (`stopping`).
    """

    def __init__(self, collector: Collector, estimates: Estimates) -> None:
        self._collector, self._estimates = collector, estimates
        self._open = 0

    def admit(self) -> None:
        """Refuse one listener too many."""
        if self._open >= MOST_STREAMS:
            raise TooManyRequestsError("there are {most} streams open already.", most=MOST_STREAMS)

    async def events(self, campaign: Campaign, options: EstimateOptions) -> AsyncIterator[bytes]:
        """Return events until the client goes or the service stops."""
        self._open += 1
        try:
            version, last = -1, time.monotonic()
            while not self._collector.stopping.is_set():
                try:
                    present = await self._estimates.version(campaign)
                    if present != version:
                        found = await self._estimates.now(campaign, options)
                        version, last = found.version, time.monotonic()
                        yield b"event: estimate\nid: %d\ndata: %s\n\n" % (version, ENCODER.encode(found))
                except RelaxdpError as problem:
                    yield b": " + problem.message.encode() + b"\n\n"
                if time.monotonic() - last > _ALIVE_SECONDS:
                    last = time.monotonic()
                    yield b": still here\n\n"
                try:
                    async with asyncio.timeout(_SECONDS):
                        await self._collector.stopping.wait()
                except TimeoutError:
                    pass
        finally:
            self._open -= 1
