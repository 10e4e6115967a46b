"""A market of canned answers, for tests of its client: it keeps every byte, and can be told to misbehave."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction
from typing import Any

from tests.servers.fake_collector import FakeCollector, Reply, Request, fake_collector

from relaxdp.market.receipts import VERSION, Receipt, Signer
from relaxdp.sampling.keys import Key
from relaxdp.theory.epsilon import ONE

SIGNER = Signer(Key.from_bytes(bytes(range(32))))
DATA = b"PAR1" + bytes(3_000_000) + b"PAR1"
VALUES = ["flu", "covid", "none"]
LEVELS = [
    {
        "epsilon": "0.1",
        "price": 10,
        "each": None,
        "objects": 2000,
        "half_width": 0.31,
        "available": True,
        "better": "0.5",
    },
    {
        "epsilon": "0.5",
        "price": 10,
        "each": None,
        "objects": 2000,
        "half_width": 0.06,
        "available": True,
        "better": None,
    },
    {
        "epsilon": "1",
        "price": 100,
        "each": None,
        "objects": 2000,
        "half_width": 0.028,
        "available": True,
        "better": None,
    },
    {
        "epsilon": "3",
        "price": 300,
        "each": None,
        "objects": 2000,
        "half_width": 0.011,
        "available": False,
        "better": None,
    },
]
LISTING: dict[str, Any] = {
    "id": "diagnoses",
    "kind": "release",
    "title": "Diagnoses of 2026",
    "details": {"description": "One of three.", "source": "A clinic", "licence": "CC BY 4.0"},
    "question": None,
    "suggested": None,
    "seller": "clinic",
    "state": "open",
    "encoding": {"name": "categorical", "options": {}, "values": VALUES},
    "objects": 2000,
    "authorised": "1",
    "prices": {"points": [["0.1", 10], ["1", 100]]},
    "levels": LEVELS,
}
POOL = {
    **LISTING,
    "id": "snacks",
    "kind": "pool",
    "title": "What did you eat?",
    "details": {},
    "question": "Yesterday at noon?",
    "suggested": "0.5",
    "seller": None,
    "levels": [{**level, "each": 5} for level in LEVELS],
}
SELLER = {
    "listing": LISTING,
    "budget": "2",
    "delivered": [{"epsilon": "1", "threshold": "7"}],
    "sold": [{"epsilon": "0.5", "buyers": 3, "from": [None, "1"]}],
    "buyers": 3,
    "income": 120,
    "loss_buyers": "0.5",
    "loss_platform": "1",
    "left": "1",
    "minimum": None,
}
THRESHOLD = 2**62
PURCHASE = {
    "number": 17,
    "listing": "diagnoses",
    "title": "Diagnoses of 2026",
    "epsilon": "0.5",
    "threshold": str(THRESHOLD),
    "retention": str(Fraction(THRESHOLD, ONE)),
    "price": 40,
    "paid": 40,
    "objects": 2000,
    "half_width": 0.0613,
    "digest": hashlib.sha256(DATA).hexdigest(),
    "state": "owned",
    "previous": None,
    "issued": "2026-11-15T14:00:00Z",
    "authorised": "1",
    "new": True,
}
ACCOUNT = {"name": "clinic", "role": "seller", "balance": 120}


def signed(**changes: Any) -> dict[str, Any]:
    """The receipt of the purchase, with a good signature of whatever it says."""
    bought = {name: content for name, content in PURCHASE.items() if name in Receipt.__slots__}
    rest = {"version": VERSION, "buyer": "institute", "market": SIGNER.fingerprint}
    fields: dict[str, Any] = {**bought, **rest, **changes}
    return SIGNER.sign(Receipt(**fields)).to_json()


def answers() -> dict[str, Any]:
    """What the market says to each route; a test may change it."""
    return {
        "GET ": {"public_key": SIGNER.public_key.hex(), "fingerprint": SIGNER.fingerprint, "listings": 2},
        "GET /listings": {"listings": [LISTING, {**POOL, "authorised": None, "objects": 0}]},
        "GET /listings/diagnoses": LISTING,
        "GET /listings/snacks": POOL,
        "GET /listings/diagnoses/quote?epsilon=0.5": {
            "listing": "diagnoses", "epsilon": "0.5", "threshold": "7", "price": 50, "due": 40, "owned": "0.1",
            "objects": 2000, "half_width": 0.0613,
        },
        "POST /receipts/verify": {"valid": True, "state": "owned"},
        "GET /me": ACCOUNT,
        "GET /statement": {
            "entries": [
                {"transaction": 3, "amount": -40, "reason": "sale of diagnoses", "purchase": 17, "issued": "2026-11-15"}
            ]
        },
        "POST /listings": {**SELLER, "listing": {**LISTING, "state": "draft"}},
        "POST /listings/diagnoses/deliveries?column=diagnosis": SELLER,
        "POST /listings/diagnoses/prices": SELLER,
        "POST /listings/diagnoses/budget": SELLER,
        "POST /listings/diagnoses/close": SELLER,
        "POST /pools/snacks/close": POOL,
        "POST /pools/diagnoses/close": LISTING,
        "POST /listings/snacks/reports": SELLER,
        "GET /sales": {"listings": [SELLER], "balance": 120},
        "POST /listings/diagnoses/buy": PURCHASE,
        "POST /listings/diagnoses/upgrade": {**PURCHASE, "previous": 16, "paid": 30},
        "GET /purchases": {"purchases": [PURCHASE], "balance": 60},
        "GET /purchases/17/receipt": signed(),
        "GET /purchases/17/data": DATA,
        "GET /purchases/17/told": {"objects": 2000, "values": 3, "range": None, "rows": []},
        "POST /purchases/17/refund": {**PURCHASE, "state": "refunded"},
        "POST /accounts": {**ACCOUNT, "token": "fresh-token"},
        "POST /accounts/clinic/token": {**ACCOUNT, "token": "second-token"},
        "GET /accounts": {"accounts": [{"name": "issue", "role": "issue", "balance": -120}, ACCOUNT]},
        "POST /credits": ACCOUNT,
        "POST /pools": POOL,
        "GET /books": {"balanced": True, "transactions": 3, "credits": 120},
    }  # fmt: skip


class FakeMarket:
    """The market, and what was asked of it."""

    def __init__(self, server: FakeCollector) -> None:
        self.url, self.answers = server.url, answers()
        self._server = server
        self.failures: list[Reply | bytes] = []
        """What comes first instead of answers; empty bytes hang up."""
        server.instead = self._reply

    @property
    def requests(self) -> list[Request]:
        return self._server.requests

    @property
    def routes(self) -> list[str]:
        return [f"{each.method} {each.path.removeprefix('/v1/market')}" for each in self.requests]

    def refuse(self, route: str, status: int, code: str, sentence: str) -> None:
        self.answers[route] = Reply(status, {"error": code, "message": sentence, "fields": {}})

    def _reply(self, request: Request) -> Reply | bytes:
        if self.failures:
            return self.failures.pop(0)
        found = self.answers.get(f"{request.method} {request.path.removeprefix('/v1/market')}")
        if found is None:
            return Reply(404, {"error": "unknown_route", "message": "there is no such route.", "fields": {}})
        return found if isinstance(found, Reply) else Reply(200, found)


@contextmanager
def fake_market() -> Iterator[FakeMarket]:
    """A market on a port of its own."""
    with fake_collector() as server:
        yield FakeMarket(server)
