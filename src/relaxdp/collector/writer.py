"""The writer: one thread that takes whatever is waiting into one transaction (group commit).

A request is answered after the commit of the group that it was in. So every acknowledged report is durable, and a
commit is paid once for all requests that came while the last one was written.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from copy import copy
from dataclasses import dataclass, field
from queue import Empty, SimpleQueue
from threading import Thread
from typing import Any, TypeVar

from sqlalchemy import Connection

from relaxdp.collector import joint
from relaxdp.collector.campaign import Campaign
from relaxdp.collector.ingest import Item, ingest
from relaxdp.errors import RelaxdpError
from relaxdp.server_errors import StorageUnavailableError, TooManyRequestsError
from relaxdp.storage.database import Database, unacknowledged

MOST_GROUPED = 5_000
MOST_WAITING = 100_000
Result = TypeVar("Result")


@dataclass(slots=True)
class _Job:
    """What a request waits for: reports to be stored, or something else to be written."""

    future: asyncio.Future[Any]
    campaign: Campaign | None = None
    items: list[Item] = field(default_factory=list)
    work: Callable[[Connection], Any] | None = None
    result: Any = None
    problem: BaseException | None = None


class Writer:
    """All that the collector writes goes through here, in the order in which it came."""

    def __init__(self, database: Database, *, clock: Callable[[], float], stored: Callable[[], object]) -> None:
        """Take what is called for every group of reports."""
        self._database, self._clock, self._stored = database, clock, stored
        self._queue: SimpleQueue[list[_Job] | None] = SimpleQueue()
        self._fresh: list[_Job] = []
        self._thread = Thread(target=self._run, name="relaxdp-writer", daemon=True)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._connection: Connection | None = None
        self._stopping = False
        self.waiting = 0

    def start(self) -> None:
        """Begin, within the running loop whose requests will wait."""
        self._loop = asyncio.get_running_loop()
        self._thread.start()

    async def stop(self) -> None:
        """Finish what is waiting, and end."""
        self._stopping = True
        self._hand_over()
        self._queue.put(None)
        await asyncio.get_running_loop().run_in_executor(None, self._thread.join)

    @property
    def is_alive(self) -> bool:
        """Whether anybody would write."""
        return self._thread.is_alive() and not self._stopping

    async def store(self, campaign: Campaign, items: list[Item]) -> list[Item]:
        """Store reports; what comes back says what became of each, and is durable."""
        await self._submit(_Job(self._future(), campaign, items))
        return items

    async def call(self, work: Callable[[Connection], Result]) -> Result:
        """Do something else in a write transaction of its own."""
        result: Result = await self._submit(_Job(self._future(), work=work))
        return result

    def _future(self) -> asyncio.Future[Any]:
        assert self._loop is not None  # noqa: S101 (it was started)
        return self._loop.create_future()

    async def _submit(self, job: _Job) -> Any:
        size = len(job.items)
        if self.waiting + size > MOST_WAITING:
            raise TooManyRequestsError("more is waiting to be written than the service takes.")
        if not self.is_alive:
            raise unacknowledged(StorageUnavailableError("the service is stopping."))
        self.waiting += size
        try:
            if not self._fresh:  # whatever else is read in this turn of the loop goes with it
                self._loop.call_soon(self._hand_over)  # type: ignore[union-attr]
            self._fresh.append(job)
            return await job.future
        finally:
            self.waiting -= size

    def _hand_over(self) -> None:
        """Give the writer what has come together; waking it for each request would cost more than the request."""
        jobs, self._fresh = self._fresh, []
        if jobs:
            self._queue.put(jobs)

    def _run(self) -> None:
        last = False
        while not last:
            following = self._queue.get()
            group: list[_Job] = []
            size = 0
            while following is not None:
                group += following
                size += sum(len(job.items) for job in following)
                if size >= MOST_GROUPED:
                    break
                try:
                    following = self._queue.get_nowait()
                except Empty:
                    break
            last = following is None
            if group:
                self._write(group)
        self._drop()

    def _write(self, group: list[_Job]) -> None:
        """Write a group: reports that follow one another in one transaction, everything else in its own."""
        done: list[_Job] = []
        run: list[_Job] = []
        for job in group:
            if job.work is None:
                run.append(job)
                continue
            done += [*self._store_all(run), self._work(job)]
            run = []
        done += self._store_all(run)
        assert self._loop is not None  # noqa: S101
        self._loop.call_soon_threadsafe(_answer, done)

    def _store_all(self, jobs: list[_Job]) -> list[_Job]:
        if not jobs:
            return jobs
        campaigns: dict[int, Campaign] = {}
        items: dict[int, list[Item]] = {}
        for job in jobs:
            assert job.campaign is not None  # noqa: S101
            campaigns[job.campaign.number] = job.campaign
            items.setdefault(job.campaign.number, []).extend(job.items)
        outcomes = [item.outcome for job in jobs for item in job.items]

        def work(connection: Connection) -> None:
            # After a lost connection this runs again: what an item was before is what it starts from.
            for item, outcome in zip((item for job in jobs for item in job.items), outcomes, strict=True):
                item.outcome = outcome
            joint.hold(connection, campaigns.values())
            for number in sorted(campaigns):  # all services on a database hold campaigns in the same order
                ingest(connection, campaigns[number], items[number], self._clock())

        found: BaseException | None = None
        try:
            self._twice(work)
        except BaseException as problem:
            found = problem
        for job in jobs:
            job.problem = found
        self._stored()
        return jobs

    def _work(self, job: _Job) -> _Job:
        """Do something else, once: whether it was done before a connection was lost is not known."""
        assert job.work is not None  # noqa: S101
        try:
            with self._database.writing() as connection:
                job.result = job.work(connection)
        except BaseException as problem:
            job.problem = problem
        return job

    def _twice(self, work: Callable[[Connection], None]) -> None:
        """Try again once on a new connection: a database that was restarted is no reason to lose a group.

        Storing twice is harmless, since what is there already is accepted as the same.
        """
        try:
            self._transaction(work)
        except StorageUnavailableError as problem:
            self._drop()
            if not problem.fields.get("lost"):
                raise
            self._transaction(work)

    def _transaction(self, work: Callable[[Connection], None]) -> None:
        with self._database.translated():
            if self._connection is None:
                self._connection = self._database.engine.connect()
            with self._database.write_on(self._connection) as connection:
                work(connection)

    def _drop(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            try:
                connection.invalidate()
                connection.close()
            except Exception:  # noqa: S110 (it is broken, and that is why it is dropped)
                pass


def _answer(jobs: list[_Job]) -> None:
    """Wake the requests, in their own loop."""
    for job in jobs:
        if job.future.done():  # the client went away
            continue
        if job.problem is None:
            job.future.set_result(job.result)
        elif isinstance(job.problem, RelaxdpError):
            # An exception of its own: one that several requests raise would grow a traceback of all of them.
            job.future.set_exception(copy(job.problem))
        else:
            job.future.set_exception(job.problem)
