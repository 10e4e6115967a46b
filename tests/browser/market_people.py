"""People in front of the market's page, and a market for them: what its tests share."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from playwright.sync_api import Browser, Locator, Page, expect
from tests.browser.dashboard_operator import Operator
from tests.released import write_release
from tests.servers.collectors import Running, running

from relaxdp.device.address import Server
from relaxdp.market.client import MarketClient
from relaxdp.market.client_pool import Pool
from relaxdp.mechanisms.categorical import Categorical
from relaxdp.sampling.keys import Key
from relaxdp.theory.epsilon import as_epsilon

VALUES = ["gas", "electricity", "wood"]
ROWS = 2000
PRICES = {"points": [["0.1", 10], ["1", 100], ["4", 400]]}
ANSWERS = np.random.default_rng(7).choice(VALUES, ROWS, p=[0.6, 0.3, 0.1])

DETAILS = {
    "description": "One answer for each household.",
    "source": "Energy office",
    "collected": "March to May 2026",
    "method": "By post, from all households.",
    "licence": "CC BY 4.0",
}
LEVELS = ["0.25", "0.5", "0.75", "1", "1.25", "2", "2.5", "3", "4", "5", "8"]


class Market:
    """A market that a test fills through its routes, as programs do."""

    def __init__(self, server: Running, folder: Path) -> None:
        self.server, self.folder = server, folder
        self.tokens = [server.token]
        self.operator = self.client(server.token)
        self._numbers = itertools.count(1)

    def client(self, token: str | None) -> MarketClient:
        """Return the market as somebody sees it."""
        return MarketClient(Server.parse(self.server.base), token)

    def account(self, role: str, credits: int = 0) -> tuple[str, str]:
        """Make an account, and return its name and its token."""
        name = f"{role}-{next(self._numbers)}"
        token = str(self.operator.create_account(name, role)["token"])
        self.tokens.append(token)
        if credits:
            self.operator.credit(name, credits, "for a test")
        return name, token

    def truths(self, **more: Any) -> pa.Table:
        """Return what a seller never sends."""
        return pa.table({"household": [f"h{number:05d}" for number in range(ROWS)], "heating": ANSWERS, **more})

    def file(self, key: Key, name: str, epsilon: str, **options: Any) -> Path:
        """Release the simulated answers to a file."""
        columns = {"heating": Categorical(options.pop("values", VALUES))}
        table = options.pop("table", self.truths())
        place = self.folder / f"{name}-{epsilon}-{next(self._numbers)}.parquet"
        where: dict[str, Any] = {"key": key, "name": name, "epsilon": epsilon, "id": "household"}
        return write_release(place, table, columns, **where, **options)

    def listing(self, *, title: str = "How households heat", epsilon: str = "1", **options: Any) -> Listed:
        """List a release, and deliver it."""
        seller, token = self.account("seller")
        name, key = f"heating-{next(self._numbers)}", Key.generate()
        client = self.client(token)
        client.create_listing(title, PRICES, name=name, budget="4", details=options.pop("details", DETAILS))
        client.deliver(name, self.file(key, name, epsilon, **options))
        return Listed(self, name, seller, token, key)

    def pool(self, members: int, *, epsilon: str = "1") -> str:
        """Open a pool that people have joined, and return its name."""
        name, encoding = f"night-{next(self._numbers)}", {"name": "categorical", "values": ["no", "yes"]}
        self.operator.create_pool(
            "Do you work at night?", encoding, {"formula": "1 + 2*epsilon"}, levels=LEVELS, name=name
        )
        for _ in range(members):
            self.join(name, epsilon)
        return name

    def join(self, name: str, epsilon: str) -> str:
        """Let somebody join a pool, and return their token."""
        _, token = self.account("seller")
        client = self.client(token)
        joined = Pool.of(client.listing(name), name)
        report = joined.report(joined.answer("no"), key=Key.generate(), epsilon=as_epsilon(epsilon))
        client.report(name, {**report, "minimum": 0})
        return token


class Listed:
    """A release on sale, with the key that never leaves its seller."""

    def __init__(self, market: Market, name: str, seller: str, token: str, key: Key) -> None:
        self.market, self.name, self.seller, self.token, self.key = market, name, seller, token, key

    def file(self, epsilon: str) -> Path:
        """Relax the release."""
        return self.market.file(self.key, self.name, epsilon)


class Trader(Operator):
    """Somebody with one browser profile, in front of the market's page. Everything that leaves the page is kept."""

    def __init__(self, browser: Browser, market: Market, **options: Any) -> None:
        self.market = market
        super().__init__(browser, market.server, **options)

    def open(self) -> Page:
        """Open the market in a tab."""
        page = self.context.new_page()
        page.goto(f"{self.server.base}/market")
        return page

    def go(self, place: str) -> None:
        """Open a page of the market."""
        self.page.goto(f"{self.server.base}/market#{place}")

    def enter(self, token: str) -> None:
        """Sign in, and wait until the token was accepted."""
        self.go("sign-in")
        self.type_token(token)
        expect(self.page.get_by_role("button", name="Sign out")).to_be_visible()

    def type_token(self, token: str) -> None:
        """Type a token and press Enter."""
        self.page.get_by_label("Token").fill(token)
        self.page.keyboard.press("Enter")

    def listing(self, name: str) -> None:
        """Open a listing, and wait until its first quote is shown."""
        self.go(f"listing/{name}")
        expect(self.page.locator(".quote dd").first).to_be_visible()

    def choose(self, epsilon: str) -> None:
        """Choose a level, and wait for its quote."""
        self.page.get_by_label("Level (ε)").select_option(epsilon)
        expect(self.page.locator(".quote dt").first).to_have_text(f"Price of ε {epsilon}")

    @property
    def dialog(self) -> Locator:
        """The question that is asked before credits are spent."""
        return self.page.get_by_role("dialog")

    def leave(self) -> None:
        """Close the browser, and look back: no address had anybody's token in it."""
        super().leave()
        assert not any(token in request.url for token in self.market.tokens for request in self.requests)


New = Callable[..., Trader]


@contextmanager
def a_market(folder: Path) -> Iterator[Market]:
    """Run a service with an empty market for a while."""
    with running(f"sqlite:///{folder / 'market.db'}", folder) as started:
        yield Market(started, folder)


@contextmanager
def traders(browser: Browser, market: Market) -> Iterator[New]:
    """Give a function that opens the page for somebody, signed in where there is a token; look back in the end."""
    made: list[Trader] = []

    def make(token: str | None = None, **options: Any) -> Trader:
        made.append(Trader(browser, market, **options))
        if token is not None:
            made[-1].enter(token)
        return made[-1]

    yield make
    for each in made:
        each.leave()
