"""Two servers on one database, asked at the same time: the outcome is that of the same requests in some order.

Which outcomes there are, the market itself says, when it is asked for one thing after the other.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from threading import Barrier
from typing import Any

import pytest
from tests.faults.market.traffic import Goods
from tests.servers.collectors import STORES, Running, running
from tests.servers.markets import PRICES, Market, serve_market

from relaxdp.market.client import MarketClient
from relaxdp.server_errors import RefusedByServerError

ROUNDS = 6
Outcome = tuple[Any, ...]


class Two:
    """Two servers on one database, and goods to sell."""

    def __init__(self, first: Market, second: Market, folder: Path) -> None:
        self.markets, self.goods = (first, second), Goods(folder)
        self._places = itertools.count()

    def connect(self, token: str) -> MarketClient:
        """Return a client of one of the servers, which asks only once."""
        return self.markets[next(self._places) % 2].connect(token, attempts=1)


@contextmanager
def serve_two(store: str, folder: Path, request: pytest.FixtureRequest) -> Iterator[Two]:
    with serve_market(store, folder, request) as first, running(first.server.url, folder) as second:
        yield Two(first, Market(second), folder)


@pytest.fixture(scope="module", params=STORES)
def two(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Two]:
    with serve_two(request.param, tmp_path_factory.mktemp("market"), request) as made:
        yield made


class Scene:
    """A new listing with the level 0.25, a buyer who has ordered it, a pool, and things that people may do to them."""

    def __init__(self, two: Two) -> None:
        self.two, market = two, two.markets[0]
        names = [market.make_name() for _ in range(5)]
        roles = ["seller", "buyer", "buyer", "seller"]
        self.tokens = [market.operator.create_token(name, role) for name, role in zip(names, roles, strict=False)]
        self.name, self.pool, fingerprint = names[4], f"pool-{names[4]}", names[4].encode().hex()
        self.files = {epsilon: two.goods.write(epsilon, fingerprint)[0] for epsilon in PRICES}
        self.files["0.5, fewer rows"] = two.goods.write("0.5", fingerprint, rows=100)[0]
        seller = market.connect(self.tokens[0])
        seller.create_listing(self.name, **two.goods.describe(fingerprint))
        seller.add_level(self.name, self.files["0.25"], "20")
        self.first = market.connect(self.tokens[1]).order(self.name, "0.25")["id"]
        encoding = {"name": "categorical", "values": ["no", "yes"]}
        terms = {"title": "T", "currency": "EUR", "approval": "automatic"}
        market.operator.create_pool(self.pool, prices={"1": "9"}, encoding=encoding, **terms)

    def publish(self, level: str, price: str = "60") -> Outcome:
        found = self._connect(0).add_level(self.name, self.files[level], price)
        return tuple((level["epsilon"], level["price"], level["rows"]) for level in found["levels"])

    def order(self, epsilon: str, buyer: int) -> Outcome:
        found = self._connect(buyer).order(self.name, epsilon)
        return found["epsilon"], found["state"], found["due"], found["is_new"]

    def approve(self) -> Outcome:
        return (self._connect(0).approve(self.first)["state"],)

    def withdraw(self) -> Outcome:
        return (self._connect(1).withdraw(self.first)["state"],)

    def join(self, member: int, answer: str) -> Outcome:
        found = self._connect(member).join_pool(self.pool, {"1": answer})
        return (found["levels"][0]["rows"],)

    def order_pool(self) -> Outcome:
        order = self._connect(1).order(self.pool, "1")
        return order["state"], self._connect(1).receipt(order["id"]).receipt.rows

    def _connect(self, place: int) -> MarketClient:
        return self.two.connect(self.tokens[place])

    def end(self) -> Outcome:
        """Return what there is in the end. All receipts are verified."""
        levels = self._connect(0).listing(self.name)["levels"]
        orders = []
        for buyer in map(self._connect, (1, 2)):
            for order in buyer.orders():
                rows = buyer.receipt(order["id"]).receipt.rows if order["state"] == "approved" else 0
                orders.append((order["listing"] == self.name, order["epsilon"], order["state"], order["due"], rows))
        return tuple((level["epsilon"], level["price"], level["rows"]) for level in levels), tuple(sorted(orders))


Act = Callable[[Scene], Outcome]


def attempt(scene: Scene, act: Act) -> Outcome:
    try:
        return act(scene)
    except RefusedByServerError as problem:
        return (problem.fields["error"],)


def ask_in_order(scene: Scene, acts: tuple[tuple[int, Act], ...]) -> Outcome:
    found = {place: attempt(scene, act) for place, act in acts}
    return *(outcome for _, outcome in sorted(found.items())), scene.end()


def ask_at_once(scene: Scene, acts: list[Act]) -> Outcome:
    barrier = Barrier(len(acts))

    def ask(act: Act) -> Outcome:
        barrier.wait()
        return attempt(scene, act)

    with ThreadPoolExecutor(len(acts)) as threads:
        return *threads.map(ask, acts), scene.end()


def publish(level: str, price: str = "60") -> Act:
    return lambda scene: scene.publish(level, price)


def order(epsilon: str, buyer: int) -> Act:
    return lambda scene: scene.order(epsilon, buyer)


def join(member: int, answer: str) -> Act:
    return lambda scene: scene.join(member, answer)


RACES: dict[str, list[Act]] = {
    "one level": [publish("0.5")] * 3,
    "one level with different rows": [publish("0.5"), publish("0.5, fewer rows"), publish("0.5")],
    "levels whose prices exclude each other": [publish("0.5", "70"), publish("1", "50"), publish("1", "90")],
    "a level and its order": [publish("0.5"), order("0.5", 2), publish("1")],
    "one order": [order("0.25", 2)] * 3,
    "approved and withdrawn": [Scene.approve, Scene.withdraw, Scene.approve],
    "approved and ordered again": [Scene.approve, order("0.25", 1), Scene.withdraw],
    "members of a pool": [join(0, "yes"), join(3, "no"), join(0, "no")],
    "a member and an order": [join(0, "yes"), Scene.order_pool, join(3, "no")],
}


def race(two: Two, acts: list[Act], rounds: int = ROUNDS) -> None:
    """Ask for some things at once, again and again, and find each outcome among those of all orders."""
    serial = {ask_in_order(Scene(two), order) for order in itertools.permutations(enumerate(acts))}
    for _ in range(rounds):
        found = ask_at_once(Scene(two), acts)
        assert found in serial, found


@pytest.mark.parametrize("name", RACES)
def test_requests_at_once_are_requests_in_some_order(two: Two, name: str) -> None:
    race(two, RACES[name])


@pytest.mark.long
@pytest.mark.parametrize("name", ["one level", "one order"])
def test_a_market_that_holds_no_lock_is_found(
    name: str, tmp_path: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The database still keeps its rules, so that a request fails that would have succeeded a moment later."""
    monkeypatch.setenv("RELAXDP_MISTAKE", "hold_no_lock")
    monkeypatch.setattr(Running, "module", "tests.faults.market.mutated_server")
    with serve_two("postgres", tmp_path, request) as two, pytest.raises(AssertionError, match="storage_unavailable"):
        race(two, RACES[name], rounds=100)
