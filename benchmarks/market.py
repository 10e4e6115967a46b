"""What selling costs beside releasing: deliveries, new levels, kept levels and downloads, on both databases.

python -m benchmarks.market [--rows N] [--rounds N] (`make bench-market`) writes docs/benchmarks-market.md. All take
turns in every round, and a ratio is that of one round: its release against its sale. A release has a name of its own in
every round, since a path is sold in one place only.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pa_parquet
from tests.servers.collectors import running
from tests.servers.postgres import a_server

import relaxdp as rx
from benchmarks.market_page import COMMAND, LIBRARY, LIBRARY_ALL, Figures, Turn, page
from relaxdp.device.address import Server
from relaxdp.market.client import MarketClient
from relaxdp.market.market import Market
from relaxdp.market.prices import prices_of
from relaxdp.service.schema import SCHEMA
from relaxdp.storage.database import Database

PAGE = Path(__file__).parents[1] / "docs" / "benchmarks-market.md"
PRICES = "100 + 100*epsilon"
BUYERS = ("first", "second", "third")
FIRST, RELAXED, BLURRED, BETWEEN = "1", "2", "0.5", "0.75"
LISTENING = ("--no-request-log", "--upload-limit", str(2 << 30))


class Released(NamedTuple):
    """One release at two levels, as files."""

    name: str
    first: Path
    relaxed: Path


class Watch:
    """Takes times, and the peak of a process's memory while something happens."""

    def __init__(self) -> None:
        self.figures: Figures = defaultdict(list)
        self.counts = False
        """Whether this round is for the record: the first one warms everything up."""

    @contextmanager
    def turn(self, what: str, where: str = "", process: int | str = "self") -> Iterator[None]:
        """Watch one turn of something."""
        # Linux forgets the peak that a process had when it is asked to.
        Path(f"/proc/{process}/clear_refs").write_text("5", encoding="ascii")
        start = time.perf_counter()
        yield
        seconds = time.perf_counter() - start
        if self.counts:
            self.figures[what, where].append(Turn(seconds, peak(process)))


def peak(process: int | str) -> float:
    """Return the peak of a process's memory in MB."""
    lines = Path(f"/proc/{process}/status").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM:")) / 1000


class Seller:
    """A table of so many rows, and its releases by library and by command."""

    def __init__(self, folder: Path, rows: int, values: int) -> None:
        self.folder, self.labels = folder, [f"value-{number}" for number in range(values)]
        self.source, self.place = folder / "table.parquet", folder / "seller.vault"
        self.vault = rx.Vault.create(self.place, budget=1_000)
        codes = pa.array(np.random.default_rng(1).integers(0, values, rows).astype(np.int8))
        answers = pa.DictionaryArray.from_arrays(codes, pa.array(self.labels))
        pa_parquet.write_table(pa.table({"id": np.arange(rows), "answer": answers}), self.source)

    def release(self, name: str, watch: Watch) -> Released:
        """Release by library, with one core and with all, and by command; then once more, relaxed and unwatched."""
        made = [self.folder / f"{name}-{what}.parquet" for what in ("first", "all", "command", "relaxed")]
        first, everything, command, relaxed = made
        cores = os.sched_getaffinity(0)
        os.sched_setaffinity(0, set(sorted(cores)[:1]))
        with watch.turn(LIBRARY):
            self._by_library(name, first, FIRST)
        os.sched_setaffinity(0, cores)
        with watch.turn(LIBRARY_ALL):
            self._by_library(name, everything, FIRST)
        words = [
            "release", str(self.source), str(command), "--id", "id", "--column", f"answer={','.join(self.labels)}",
            "--name", name, "--epsilon", FIRST, "--vault", str(self.place),
        ]  # fmt: skip
        with watch.turn(COMMAND):
            subprocess.run([sys.executable, "-m", "relaxdp", *words], check=True, capture_output=True)
        self._by_library(name, relaxed, RELAXED)
        return Released(name, first, relaxed)

    def _by_library(self, name: str, target: Path, epsilon: str) -> None:
        columns = {"answer": rx.Categorical(self.labels)}
        self.vault.release(self.source, columns, id="id", epsilon=epsilon, name=name, output=target)


class InProcess:
    """A market that is called as a library."""

    def __init__(self, store: str, url: str, stack: ExitStack) -> None:
        self._where = f"library, {store}"
        database = Database(url)
        stack.callback(database.close)
        database.prepare(SCHEMA)
        self._market = Market(database, rx.Key.generate())
        self._market.open()
        self._market.create_account("seller", "seller")
        for buyer in BUYERS:
            self._market.create_account(buyer, "buyer")
            self._market.issue(buyer, 10**6, "a benchmark")

    def trade(self, released: Released, watch: Watch) -> None:
        """Deliver, sell by blur, by bridge and from what is kept, and deliver the relaxed level."""
        market, name = self._market, released.name
        market.list_release("seller", "a benchmark", prices_of(None, PRICES), listing_id=name)
        with watch.turn("deliver", self._where):
            market.deliver("seller", name, released.first)
        for what, buyer, epsilon in _sales():
            with watch.turn(what, self._where):
                market.buy(buyer, name, epsilon)
        with watch.turn("deliver a relaxed level", self._where):
            market.deliver("seller", name, released.relaxed)


class OverHttp:
    """A market that is asked over HTTP, by the package's own client on the same machine."""

    def __init__(self, store: str, url: str, folder: Path, stack: ExitStack) -> None:
        self._where, self._folder = f"HTTP, {store}", folder
        options = (*LISTENING, "--market-key", str(folder / "market-key"))
        server = stack.enter_context(running(url, folder, *options))
        assert server.process is not None
        self._process, place = server.process.pid, Server.parse(server.base)
        operator = MarketClient(place, server.token)
        self._seller = MarketClient(place, operator.create_account("seller", "seller")["token"])
        self._buyers = {}
        for buyer in BUYERS:
            self._buyers[buyer] = MarketClient(place, operator.create_account(buyer, "buyer")["token"])
            operator.credit(buyer, 10**6, "a benchmark")

    def trade(self, released: Released, watch: Watch) -> None:
        """Do the same, and download what was bought."""
        name = released.name
        self._seller.create_listing("a benchmark", {"formula": PRICES}, name=name)
        with watch.turn("deliver", self._where, self._process):
            self._seller.deliver(name, released.first)
        for what, buyer, epsilon in _sales():
            with watch.turn(what, self._where, self._process):
                bought = self._buyers[buyer].buy(name, epsilon)
        with watch.turn("download", self._where, self._process):
            self._buyers[BUYERS[-1]].download(bought["number"], self._folder / "bought.parquet")
        (self._folder / "bought.parquet").unlink()
        with watch.turn("deliver a relaxed level", self._where, self._process):
            self._seller.deliver(name, released.relaxed)


def _sales() -> list[tuple[str, str, str]]:
    """Return what is sold: a blur of the delivery, a bridge between the two, and the blur again, which is kept."""
    levels = (BLURRED, BETWEEN, BLURRED)
    names = ("sell a new level, blur", "sell a new level, bridge", "sell a kept level")
    return list(zip(names, BUYERS, levels, strict=True))


def measure(values: int, rows: int, rounds: int, folder: Path, one: str, other: str) -> Figures:
    """Return all figures for a number of values; `one` and `other` are empty PostgreSQL databases."""
    watch = Watch()
    (folder / "a").mkdir()
    seller = Seller(folder / "a", rows, values)
    with ExitStack() as stack:
        markets: list[InProcess | OverHttp] = [
            InProcess("SQLite", f"sqlite:///{folder}/library.db", stack),
            InProcess("PostgreSQL", one, stack),
            OverHttp("SQLite", f"sqlite:///{folder}/served.db", folder / "b", stack),
            OverHttp("PostgreSQL", other, folder / "c", stack),
        ]
        for number in range(rounds + 1):
            watch.counts = number > 0
            released = seller.release(f"round-{number}", watch)
            for market in markets:
                market.trade(released, watch)
            print(f"{values} values, round {number} of {rounds}", flush=True)
    return watch.figures


def main() -> None:
    """Measure, print and write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=5)
    chosen = parser.parse_args()
    found, load = {}, os.getloadavg()[0]
    with tempfile.TemporaryDirectory(dir=".") as name, a_server() as server:
        for values in (3, 10):
            folder, databases = Path(name).resolve() / str(values), [server.database() for _ in range(2)]
            folder.mkdir()
            urls = [server.url(database) for database in databases]
            found[values] = measure(values, chosen.rows, chosen.rounds, folder, *urls)
            shutil.rmtree(folder)
            for database in databases:
                server.give_back(database)
    written = page(found, chosen.rows, chosen.rounds, load)
    print(written)
    if chosen.rows == parser.get_default("rows"):
        PAGE.write_text(written, "utf-8")


if __name__ == "__main__":
    main()
