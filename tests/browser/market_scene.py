"""A market for the tests of its page, and visitors with a browser of their own."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
from playwright.sync_api import Browser, Locator, Page, expect
from tests.browser.dashboard_operator import Operator
from tests.servers.collectors import Running, running

from relaxdp.device.address import Server
from relaxdp.market.client import MarketClient
from relaxdp.market.publish import Terms, publish
from relaxdp.mechanisms.categorical import Categorical
from relaxdp.tables.vault import Vault

VALUES = ["gas", "electricity", "wood"]
ROWS = 2000
PRICES = {"0.1": "10", "0.5": "60", "1": "160"}
TITLE = "How households heat"


class Market:
    """A market that a test fills through its routes."""

    def __init__(self, server: Running, folder: Path) -> None:
        self.server, self.folder = server, folder
        self.tokens = [server.token]
        self.operator = self.get_client(server.token)
        self._numbers = itertools.count(1)

    def get_client(self, token: str | None) -> MarketClient:
        """Return the market with a token."""
        return MarketClient(Server.parse(self.server.base), token)

    def create_token(self, role: str) -> str:
        """Return the token of a new member."""
        self.tokens.append(self.operator.create_token(f"{role}-{next(self._numbers)}", role))
        return self.tokens[-1]

    def publish(self, *, prices: dict[str, str] = PRICES, rows: int = ROWS, **terms: Any) -> tuple[str, str]:
        """Publish a release from a new vault, and return the listing and the seller's token."""
        name, seller = f"heating-{next(self._numbers)}", self.create_token("seller")
        vault = Vault.create(self.folder / f"{name}.vault", budget=4)
        table = pa.table({"household": list(range(rows)), "heating": [VALUES[each % 3] for each in range(rows)]})
        vault.release(table, {"heating": Categorical(VALUES)}, id="household", epsilon=1, name=name)
        publish(vault, name, self.get_client(seller), prices, Terms(**{"currency": "EUR", "title": TITLE, **terms}))
        return name, seller


class Visitor(Operator):
    """A visitor of the market's page. Each request and each message of the console is kept."""

    def __init__(self, browser: Browser, market: Market, **options: Any) -> None:
        self.market = market
        self.console: list[str] = []
        super().__init__(browser, market.server, **options)

    def open(self) -> Page:
        """Open the market in a tab."""
        page = self.context.new_page()
        # Chromium reports each answer that is an error, such as that to a wrong token.
        page.on("console", lambda each: None if "status of 4" in each.text else self.console.append(each.text))
        page.goto(f"{self.server.base}/market")
        return page

    def go(self, place: str, heading: str = TITLE) -> None:
        """Open a view of the page, and wait until it is shown."""
        self.page.goto(f"{self.server.base}/market#{place}")
        self.heading(heading)

    def type_token(self, token: str) -> None:
        """Type a token and press Enter."""
        self.page.get_by_label("Token").fill(token)
        self.page.keyboard.press("Enter")

    def sign_in(self, token: str | None = None) -> None:
        """Sign in, and wait until the token was accepted."""
        self.page.get_by_role("link", name="Sign in", exact=True).click()
        self.type_token(token or self.server.token)
        expect(self.page.get_by_role("button", name="Sign out")).to_be_visible()

    def row(self, text: str) -> Locator:
        """Return the row of a table with this heading."""
        return self.page.locator("tbody tr").filter(has=self.page.locator("th").get_by_text(text, exact=True))

    def leave(self) -> None:
        """Close the browser: the console is empty, and no address had a token."""
        super().leave()
        assert self.console == []
        assert not any(token in request.url for token in self.market.tokens for request in self.requests)


New = Callable[..., Visitor]


@contextmanager
def run_market(folder: Path) -> Iterator[Market]:
    """Run a service with an empty market for a while."""
    with running(f"sqlite:///{folder / 'market.db'}", folder) as started:
        yield Market(started, folder)


@contextmanager
def open_visits(browser: Browser, market: Market) -> Iterator[New]:
    """Yield a function that opens the page for a new visitor, signed in if there is a token."""
    made: list[Visitor] = []

    def make(token: str | None = None, **options: Any) -> Visitor:
        made.append(Visitor(browser, market, **options))
        if token is not None:
            made[-1].sign_in(token)
        return made[-1]

    yield make
    for each in made:
        each.leave()
