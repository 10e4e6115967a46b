"""Sellers and buyers who never give up, a memory of what a market acknowledged, and the check that it is all there."""

from __future__ import annotations

import json
import random
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from decimal import Decimal
from pathlib import Path
from typing import Any, TypeVar

from sqlalchemy import select
from tests.servers.markets import PRICES, Market, ask_for_listing, make_vault

from relaxdp.market.client import MarketClient
from relaxdp.market.level_file import compute_level_digest, read_level_file, write_level_file
from relaxdp.market.publish import draw_levels
from relaxdp.market.receipts import Receipt, SignedReceipt, verify_receipt
from relaxdp.market.schema import FILES, LEVELS, ORDERS
from relaxdp.server_errors import RefusedByServerError, UnreachableError

T = TypeVar("T")


class Goods:
    """Levels of one release, drawn once. Each listing gets another key fingerprint, so that its files are its own."""

    def __init__(self, folder: Path) -> None:
        self.folder, vault = folder, make_vault(folder)
        self.asked = ask_for_listing(vault)
        drawn = draw_levels(vault, "survey", "diagnosis", sorted(map(Decimal, PRICES), reverse=True), None)
        self._levels = {str(level.description.epsilon): level for level in drawn}

    def describe(self, fingerprint: str) -> dict[str, Any]:
        """Return what creates the listing of a fingerprint."""
        description = {**self.asked["description"], "key_fingerprint": fingerprint}
        return {**self.asked, "approval": "seller", "description": description}

    def write(self, epsilon: str, fingerprint: str, *, rows: int | None = None) -> tuple[Path, str]:
        """Write the file of a level, or one with fewer rows, and return it with its digest."""
        level = self._levels[epsilon]
        level = replace(level, description=replace(level.description, key_fingerprint=fingerprint))
        level = replace(level, ids=level.ids[:rows], reports=level.reports[:rows])
        path = self.folder / f"{fingerprint}-{epsilon}-{rows}.parquet"
        if not path.exists():
            write_level_file(level, path)
        return path, compute_level_digest(level)


class _Stopped(Exception):
    """The traffic ends."""


@dataclass
class Offer:
    """A listing with its seller."""

    name: str
    seller: MarketClient


class Traffic:
    """Two sellers and two buyers at a time. What was not answered is asked again, until there is an answer."""

    def __init__(self, market: Market, goods: Goods, seed: int = 1) -> None:
        self.market, self.goods = market, goods
        self.public_key = market.operator.public_key()
        self.answers, self.problems = 0, list[str]()
        self.levels: dict[tuple[str, str], str] = {}
        """The digests of all levels that were acknowledged."""
        self.orders: dict[str, str] = {}
        """The last state of each order that was acknowledged."""
        self.receipts: dict[str, SignedReceipt] = {}
        self._offers: list[Offer] = []
        self._stop, self._chance = threading.Event(), random.Random(seed)

    @contextmanager
    def running(self) -> Iterator[None]:
        """Trade for a while."""
        threads = [threading.Thread(target=self._run, args=(act,)) for act in [self._sell, self._buy] * 2]
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            self._stop.set()
            for thread in threads:
                thread.join()

    def _run(self, act: Callable[[], None]) -> None:
        try:
            while not self._stop.is_set():
                act()
        except _Stopped:
            pass
        except Exception as problem:  # whatever it is, the check shall see it
            self.problems.append(repr(problem))

    def _retry(self, ask: Callable[[], T]) -> T:
        while not self._stop.is_set():
            try:
                found = ask()
            except (UnreachableError, RefusedByServerError) as problem:
                if problem.fields.get("status", 503) != 503:
                    raise
                time.sleep(0.01)
            else:
                self.answers += 1
                return found
        raise _Stopped

    def _add(self, role: str) -> MarketClient:
        client = self._retry(lambda: self.market.add(role))  # a new name with every attempt
        return self.market.connect(client._headers["Authorization"].split()[1], attempts=1)

    def _sell(self) -> None:
        """Publish all levels of a new listing in some order, some of them again, and approve what was ordered."""
        seller, name, fingerprint = self._add("seller"), self.market.make_name(), self._chance.randbytes(8).hex()
        self._retry(lambda: seller.create_listing(name, **self.goods.describe(fingerprint)))
        for epsilon in self._chance.sample(list(PRICES), len(PRICES)):
            path, digest = self.goods.write(epsilon, fingerprint)
            self._retry(lambda: seller.add_level(name, path, PRICES[epsilon]))  # noqa: B023
            self.levels[name, epsilon] = digest
            if self._chance.random() < 0.2:
                other, _ = self.goods.write(epsilon, fingerprint, rows=100)
                self._expect("level_differs", lambda: seller.add_level(name, other, PRICES[epsilon]))  # noqa: B023
        self._offers.append(Offer(name, seller))
        for offer in self._offers[-3:]:
            for order in self._retry(offer.seller.orders):
                if order["state"] == "requested":
                    self._act(offer.seller.approve, order["id"])

    def _buy(self) -> None:
        """Order a level, perhaps withdraw it, and download what is approved."""
        if not self._offers:
            time.sleep(0.01)
            return
        buyer, offer = self._add("buyer"), self._chance.choice(self._offers[-3:])
        epsilon = self._chance.choice(["0.5", "1"])
        order = self._retry(lambda: buyer.order(offer.name, epsilon))
        self.orders.setdefault(order["id"], order["state"])
        if self._chance.random() < 0.3:
            self._act(buyer.withdraw, order["id"])
        else:
            self._act(offer.seller.approve, order["id"])
            output = self.goods.folder / f"{order['id']}.parquet"
            self.receipts[order["id"]] = self._retry(lambda: buyer.download(order["id"], output))
            output.unlink()

    def _act(self, act: Callable[[str], Any], order: str) -> None:
        """Approve or withdraw an order, unless the other was done meanwhile."""
        try:
            self.orders[order] = self._retry(lambda: act(order))["state"]
        except RefusedByServerError as problem:
            if problem.fields["error"] != "order_state":
                raise

    def _expect(self, error: str, ask: Callable[[], Any]) -> None:
        try:
            self._retry(ask)
        except RefusedByServerError as problem:
            if problem.fields["error"] == error:
                return
            raise
        self.problems.append(f"{error} was expected")

    def check(self) -> dict[str, int]:
        """Compare what was acknowledged with what is stored, and publish everything again."""
        assert self.problems == [], self.problems
        with self.market.open_database() as database, database.reading() as connection:
            levels = {(row.listing, row.epsilon): row.digest for row in connection.execute(select(LEVELS))}
            orders = {row.id: row for row in connection.execute(select(ORDERS))}
            for digest in set(levels.values()):
                query = select(FILES.c.content).where(FILES.c.digest == digest).order_by(FILES.c.part)
                place = self.goods.folder / "stored.parquet"
                place.write_bytes(b"".join(map(bytes, connection.execute(query).scalars())))
                assert place.stat().st_size, "a level has no file"
                assert compute_level_digest(read_level_file(place)) == digest, "a file is not that of its level"
        for listed, digest in self.levels.items():
            assert levels.get(listed) == digest, "an acknowledged level is lost or replaced"
        for order, state in self.orders.items():
            assert order in orders, "an acknowledged order is lost"
            assert orders[order].state == state or state == "requested", "an order went back"
        for row in orders.values():
            if row.state == "approved":
                receipt = verify_receipt(
                    SignedReceipt(Receipt(**json.loads(row.receipt)), row.signature), self.public_key
                )
                assert (receipt.order, receipt.digest) == (row.id, row.digest)
                assert row.digest in levels.values()
        for order, signed in self.receipts.items():
            assert json.loads(orders[order].receipt) == asdict(signed.receipt), "a receipt was replaced"
        for offer in self._offers:
            fingerprint = self._find_fingerprint(offer)
            for epsilon, price in PRICES.items():
                path, _ = self.goods.write(epsilon, fingerprint)
                assert offer.seller.add_level(offer.name, path, price)["id"] == offer.name
        return {"levels": len(levels), "orders": len(orders), "downloads": len(self.receipts), "answers": self.answers}

    def _find_fingerprint(self, offer: Offer) -> str:
        (column,) = offer.seller.sales()["columns"]
        return str(column["key_fingerprint"])
