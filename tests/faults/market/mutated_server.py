"""`relaxdp` with a mistake in its market, which `RELAXDP_MISTAKE` names. The tests of this folder have to find each."""

from __future__ import annotations

import asyncio
import os
import time
from concurrent.futures import Future
from typing import Any

from relaxdp.cli.main import main
from relaxdp.market import component, listings
from relaxdp.market.component import MarketComponent


def store_files_later() -> None:
    """Store the file of a level after the level, in another transaction."""
    write, keep_file = MarketComponent.write, listings.keep_file
    waiting: list[Any] = []

    async def write_twice(self: MarketComponent, work: Any) -> Any:
        found = await write(self, work)
        while waiting:
            file = waiting.pop()
            await asyncio.sleep(0.05)
            await write(self, lambda connection: keep_file(connection, *file))  # noqa: B023
        return found

    vars(listings)["keep_file"] = lambda _, *file: waiting.append(file)
    MarketComponent.write = write_twice  # type: ignore[method-assign]


def answer_before_the_commit() -> None:
    """Acknowledge a level while its transaction is open."""
    write = MarketComponent.write

    async def answer(self: MarketComponent, work: Any) -> Any:
        if "add_level" not in work.__qualname__:
            return await write(self, work)
        found: Future[Any] = Future()

        def run() -> None:
            try:
                with self.writing() as connection:
                    found.set_result(work(connection))
                    time.sleep(0.05)
            except Exception as problem:  # the request fails with it
                found.set_exception(problem)

        self.resources._writers.submit(run)
        return await asyncio.wrap_future(found)

    MarketComponent.write = answer  # type: ignore[method-assign]


def hold_no_lock() -> None:
    """Let writers of PostgreSQL work at the same time."""
    list_levels = listings.list_levels

    def look_slowly(*arguments: Any) -> Any:
        found = list_levels(*arguments)
        time.sleep(0.01)
        return found

    vars(component)["_LOCK"] = "SELECT 1"
    vars(listings)["list_levels"] = look_slowly


if __name__ == "__main__":
    globals()[os.environ["RELAXDP_MISTAKE"]]()
    main()
