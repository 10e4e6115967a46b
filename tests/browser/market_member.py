"""A single seller in front of a pool's page: what the tests of joining share."""

from __future__ import annotations

import json
from typing import Any

from playwright.sync_api import Locator, Page, Request, expect
from tests.browser.market_people import LEVELS, Market, Trader

from relaxdp.market.client_pool import Pool
from relaxdp.sampling.keys import Key
from relaxdp.theory.epsilon import as_epsilon

CHOICES = {"name": "categorical", "values": ["no", "yes"]}
FORMULA = {"formula": "1 + 2*epsilon"}

READ = """(name) => new Promise((resolve, reject) => {
  const opening = indexedDB.open(name, 1);
  opening.onerror = reject;
  opening.onupgradeneeded = () => opening.result.createObjectStore("device");
  opening.onsuccess = () => {
    const reading = opening.result.transaction("device").objectStore("device").get("state");
    reading.onsuccess = () => { opening.result.close(); resolve(reading.result ?? null); };
  };
})"""

CLEAR = """(name) => new Promise((resolve, reject) => {
  const deleting = indexedDB.deleteDatabase(name);
  deleting.onsuccess = resolve;
  deleting.onerror = deleting.onblocked = reject;
})"""


class Member:
    """Somebody with an account, in one tab of a browser, on the page of a pool."""

    def __init__(self, trader: Trader, pool: str, account: tuple[str, str], page: Page | None = None) -> None:
        self.trader, self.pool, (self.name, self.token) = trader, pool, account
        self.market: Market = trader.market
        self.page = page or trader.page

    def arrive(self) -> Member:
        """Sign in, and open the pool."""
        self.page.goto(f"{self.market.server.base}/market#sign-in")
        self.page.get_by_label("Token").fill(self.token)
        self.page.keyboard.press("Enter")
        expect(self.page.get_by_role("heading", level=1)).to_have_text("My sales")
        self.page.goto(f"{self.market.server.base}/market#listing/{self.pool}")
        expect(self.card).to_be_visible()
        return self

    @property
    def card(self) -> Locator:
        """The part of the page that is for a seller."""
        return self.page.get_by_label("Your own report", exact=True)

    @property
    def limit(self) -> Locator:
        return self.page.get_by_label("Your limit (ε)")

    def answer(self, value: str) -> None:
        """Give the answer in whatever form is open: a choice, or a number."""
        given = self.page.get_by_label("Your answer")
        if given.evaluate("each => each.tagName") == "SELECT":
            given.select_option(value)
        else:
            given.fill(value)

    def choose(self, epsilon: str, least: int = 0) -> None:
        """Choose the limit and the least price, and go on to the question; whoever is there stays there."""
        join = self.page.get_by_role("button", name="Join …")
        expect(self.limit.or_(join)).to_be_visible()
        if self.limit.count():
            self.limit.select_option(epsilon)
            self.page.get_by_label("Your least price").fill(str(least))
            self.page.get_by_role("button", name="Go on to the question").click()
        expect(join).to_be_visible()

    def join(self, value: str, epsilon: str, least: int = 0, *, agree: bool = True) -> None:
        """Choose the limit, read the question, answer and agree."""
        self.page.bring_to_front()  # a browser takes its time for pages that nobody looks at
        self.choose(epsilon, least)
        self.answer(value)
        self.page.get_by_role("button", name="Join …").click()
        if agree:
            self.page.get_by_role("dialog").get_by_role("button", name=f"Join at ε {epsilon}").click()

    def raise_to(self, value: str, epsilon: str) -> None:
        """Raise the limit, with an answer, and agree."""
        self.page.bring_to_front()
        if not self.limit.is_visible():
            self.page.get_by_text("Raise your limit").click()
        self.limit.select_option(epsilon)
        self.answer(value)
        self.page.get_by_role("button", name="Raise …").click()
        self.page.get_by_role("dialog").get_by_role("button", name=f"Raise to ε {epsilon}").click()

    def stands(self, epsilon: str, least: int) -> None:
        """Wait until the page says where this member stands, and the market says the same."""
        price = "1 credit" if least == 1 else f"{least} credits"
        expect(self.card).to_contain_text(f"You are in this pool at ε {epsilon}, least price {price}.")
        (sale,) = [each for each in self.sales() if each["listing"]["id"] == self.pool]
        assert (sale["loss_platform"], sale["minimum"]) == (epsilon, least)

    def refused(self, sentence: str) -> None:
        """Wait until this is said in the place of the form."""
        expect(self.card.get_by_role("alert")).to_contain_text(sentence)

    def sales(self) -> list[dict[str, Any]]:
        """Where the market says that this account is in."""
        return list(self.market.client(self.token).sales()["listings"])

    def kept(self) -> dict[str, Any]:
        """What this browser keeps of the pool, its key included."""
        text = self.page.evaluate(READ, self.place)
        (record,) = [each for each in json.loads(text)["campaigns"] if each["address"].endswith(f"/{self.pool}")]
        return dict(record)

    @property
    def place(self) -> str:
        """The name of the database in the browser."""
        return f"relaxdp pools of {self.name} at {self.market.server.base}/"

    @property
    def posts(self) -> list[Request]:
        """Everything that was posted to the market by this browser."""
        return [request for request in self.trader.requests if request.method == "POST"]

    @property
    def bodies(self) -> list[dict[str, Any]]:
        """What was posted to the pool, in order."""
        place = f"{self.market.server.base}/v1/market/listings/{self.pool}/reports"
        assert {request.url for request in self.posts} <= {place}
        return [json.loads(request.post_data or "") for request in self.posts]

    def expected(self, value: str, *levels: tuple[str, int]) -> list[dict[str, Any]]:
        """What the command line would send with the key that this browser keeps."""
        joined = Pool.of(self.market.client(None).listing(self.pool), self.pool)
        key, answer = Key.from_bytes(bytes.fromhex(self.kept()["key"])), joined.answer(value)
        return [
            {**joined.report(answer, key=key, epsilon=as_epsilon(epsilon)), "minimum": least}
            for epsilon, least in levels
        ]


def open_pool(
    market: Market,
    encoding: dict[str, Any] = CHOICES,
    prices: dict[str, Any] = FORMULA,
    *,
    title: str = "Do you work at night?",
    levels: list[str] | None = LEVELS,
    **said: Any,
) -> str:
    """Open an empty pool, and return its name."""
    levels = levels if prices == FORMULA else None
    return str(market.operator.create_pool(title, encoding, prices, levels=levels, **said)["id"])
