"""Markets for tests: a real server with an operator, sellers who publish from vaults, and buyers."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pyarrow as pa
import pytest
import uvicorn
from sqlalchemy import select
from tests.patience import until
from tests.servers.collectors import Running

import relaxdp as rx
import relaxdp.collector.component  # both parts declare their tables when they are imported
import relaxdp.market.component
from relaxdp.cli.serve import build
from relaxdp.device.address import Server
from relaxdp.device.client import Client
from relaxdp.market.client import MarketClient
from relaxdp.market.publish import Published, Terms, publish
from relaxdp.market.receipts import Receipt, SignedReceipt, Signer
from relaxdp.market.schema import SETUP
from relaxdp.mechanisms.base import Mechanism
from relaxdp.service import application, run
from relaxdp.service.maintenance import prepare
from relaxdp.service.settings import Settings
from relaxdp.storage.database import Database

VALUES = ["flu", "covid", "none"]
ROWS = 1200
PRICES = {"0.25": "20", "0.5": "60", "1": "100"}
LIMITS = ["0.25", "0.5", "1", "4"]
_NUMBERS = itertools.count(1)


def make_table(ids: Sequence[Any] = range(ROWS), values: Sequence[Any] = VALUES) -> pa.Table:
    """Return a table with an answer for each id, and a limit that does not depend on it."""
    answers = [values[row % len(values)] for row in range(len(ids))]
    limits = [LIMITS[row // len(values) % len(LIMITS)] for row in range(len(ids))]
    return pa.table({"id": pa.array(list(ids)), "diagnosis": pa.array(answers), "limit": pa.array(limits)})


def make_vault(
    folder: Path, table: pa.Table | None = None, mechanism: Mechanism | None = None, *, budget: Any = 10
) -> rx.Vault:
    """Return a new vault with the release `survey`, whose limits pass through. Each vault has its own key."""
    vault = rx.Vault.create(folder / f"{next(_NUMBERS)}.vault", budget=budget)
    release_again(vault, make_table() if table is None else table, mechanism)
    return vault


def release_again(
    vault: rx.Vault, table: pa.Table, mechanism: Mechanism | None = None, passthrough: Sequence[str] = ("limit",)
) -> None:
    """Release a table, whose rows may have joined or left, at a level that is never listed."""
    columns = {"diagnosis": mechanism or rx.Categorical(VALUES)}
    where: Any = {"id": "id", "name": "survey", "passthrough": list(passthrough), "planned_epsilon": 20}
    vault.release(table, columns, epsilon="0.01", accept_new_rows=True, **where)


def ask_for_listing(vault: rx.Vault, prices: Mapping[str, str] = PRICES) -> dict[str, Any]:
    """Return what a seller sends before the levels of the release `survey`."""
    described = vault.relax("survey", 1, dry_run=True).description.columns["diagnosis"].to_dict()
    return {
        "currency": "EUR", "prices": prices, "column": "diagnosis", "id_column": "id", "description": described,
    }  # fmt: skip


class InThisProcess(Running):
    """A server in a thread of this process, so that mistakes can be planted into its functions."""

    def start(self) -> None:
        """Start it, and wait until it answers."""
        settings = Settings(database=self.url, port=0, rate=0.0, request_log=False)
        listening, self.base = run.listen(settings)
        prepare(settings, self.token_file)
        listening.listen()
        place = urlsplit(self.base)
        self.host, self.port = str(place.hostname), int(place.port or 0)
        made: list[uvicorn.Server] = []

        class KeptServer(uvicorn.Server):
            def __init__(self, config: uvicorn.Config) -> None:
                super().__init__(config)
                made.append(self)

        def serve() -> None:
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(run, "Server", KeptServer)
                patch.setattr(application, "tune", lambda: None)  # which would change how all tests collect garbage
                run.serve(build, settings, listening)

        self._thread = threading.Thread(target=serve)
        self._thread.start()
        until(lambda: (made and made[0].started) or not self._thread.is_alive())
        assert self._thread.is_alive(), "the server did not start"
        self._server = made[0]

    def kill(self) -> None:
        """Stop it."""
        self._server.should_exit = True
        self._thread.join()


class Market:
    """A running market. Every name that is made here is new, so that tests share a server and not each other's data."""

    def __init__(self, server: Running) -> None:
        self.server = server
        self._clients: list[MarketClient] = []
        self.operator = self.connect(server.token)
        self.tokens: dict[str, str] = {}

    def connect(self, token: str | None = None, attempts: int = 3) -> MarketClient:
        """Return the market as the holder of a token sees it."""
        client = MarketClient(Server.parse(self.server.base), token, Client(attempts=attempts, first_wait=0.05))
        self._clients.append(client)
        return client

    def start_again(self) -> None:
        """Start a server that was stopped or killed. It gets another port, which its clients learn."""
        self.server.start()
        for client in self._clients:
            client.server = Server.parse(self.server.base)

    def add(self, role: str) -> MarketClient:
        """Return the market as a new seller or buyer sees it."""
        name = self.make_name(role)
        self.tokens[name] = self.operator.create_token(name, role)
        return self.connect(self.tokens[name])

    def make_name(self, prefix: str = "listing") -> str:
        """Return a new name."""
        return f"{prefix}-{next(_NUMBERS)}"

    def publish(
        self,
        vault: rx.Vault,
        seller: MarketClient | None = None,
        prices: Mapping[Any, str] = PRICES,
        approval: str = "automatic",
        name: str = "survey",
        **options: Any,
    ) -> Published:
        """Publish levels of a release, by default as a new seller."""
        options.setdefault("listing", self.make_name())
        terms = Terms(currency="EUR", title="Diagnoses", approval=approval)
        return publish(vault, name, seller or self.add("seller"), prices, terms, **options)

    def sign_lost_order(self, receipt: Receipt, buyer: MarketClient, **changes: str) -> SignedReceipt:
        """Return a receipt like this one, for an order of a buyer that the database of the market has lost."""
        with self.open_database() as database, database.reading() as connection:
            signer = Signer(bytes(connection.execute(select(SETUP.c.signing_key)).scalar_one()))
        lost = {"order": self.make_name("order"), "buyer": buyer.member()["name"], **changes}
        return signer.sign(replace(receipt, **lost))

    @contextmanager
    def open_database(self) -> Iterator[Database]:
        """Open the database of the server."""
        database = Database(self.server.url)
        try:
            yield database
        finally:
            database.close()


@contextmanager
def serve_market(
    store: str, folder: Path, request: pytest.FixtureRequest, *options: str, in_this_process: bool = False
) -> Iterator[Market]:
    """Run a market for a while, on SQLite or on a new PostgreSQL database."""
    url, postgres, name = f"sqlite:///{folder / 'service.db'}", None, ""
    if store == "postgres":
        postgres = request.getfixturevalue("postgres")
        name = postgres.database()
        url = postgres.url(name)
    try:
        server = InThisProcess(url, folder) if in_this_process else Running(url, folder, *options)
        try:
            yield Market(server)
        finally:
            server.kill()
    finally:
        if postgres is not None:
            postgres.give_back(name)


def make_market_fixture(stores: Sequence[Any], *options: str) -> Any:
    """Return a fixture: one market on each store for all tests of a module, in this process where it has no options."""

    @pytest.fixture(scope="module", params=stores)
    def market(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Market]:
        folder, here = tmp_path_factory.mktemp("market"), not options
        with serve_market(request.param, folder, request, *options, in_this_process=here) as served:
            yield served

    return market
