"""A small market to be raced and killed in: one release, one pool, and sixteen processes with buyers of their own."""

from __future__ import annotations

import random
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from tests.faults.market.witness import place_witness
from tests.released import write_release
from tests.servers.ledgers import Place, PostgresPlace, SqlitePlace
from tests.servers.postgres import Server

from relaxdp.market.journal import Journal
from relaxdp.market.market import Market
from relaxdp.market.prices import prices_of
from relaxdp.mechanisms.categorical import Categorical
from relaxdp.sampling.keys import Key
from relaxdp.service.schema import SCHEMA
from relaxdp.service.wire import EncodingRequest, WireLevel
from relaxdp.storage.database import Database
from relaxdp.theory.epsilon import format_epsilon

SLOTS = 16
VALUES = ["flu", "covid", "none"]
ENCODING = Categorical(VALUES)
OBJECTS = 300
SELLER_KEY, MARKET_KEY = Key.from_bytes(bytes(range(32))), Key.from_bytes(bytes(range(1, 33)))

RELEASE, LISTING, POOL = "faults", "survey", "pool"
PRICES, PRICES_EACH = "10 + 90*epsilon + 50*precision", "2 + 3*epsilon"
DELIVERIES = [format_epsilon(Decimal(tenths) / 10) for tenths in range(4, 44, 2)]
MEMBERS = [f"member-{number}" for number in range(8)]
MINIMA = dict(zip(MEMBERS, [0, 0, 0, 0, 0, 4, 6, 10**6], strict=True))
MEMBER_LEVELS = [format_epsilon(Decimal(tenths) / 10) for tenths in range(3, 42, 3)]
# Many small ones, which everybody can pay for, and a few that nobody else names.
LEVELS = [
    format_epsilon(level)
    for level in sorted({
        *(Decimal(hundredths) / 100 for hundredths in range(5, 41)),
        *(Decimal(twentieths) / 20 for twentieths in range(9, 29)),
        *(Decimal(tenths) / 10 for tenths in range(15, 43)),
        *map(Decimal, ("0.052", "0.1234567", "0.2345678")),
    })
]  # fmt: skip
SHARED = ["shared-0", "shared-1"]
BEGINNING, OWN_CREDITS, SHARED_CREDITS = "a beginning", 300, 60


def own_buyers(slot: int) -> list[str]:
    """Return the buyers that only one process acts for."""
    return [f"buyer-{slot}-{number}" for number in range(3)]


def url_of(place: Place) -> str:
    """Return the address of a place as the service has it."""
    return f"sqlite:///{place.where}" if isinstance(place, SqlitePlace) else place.where


def journal_in(folder: Path) -> Journal:
    """Return the journal of the market whose files lie in a folder."""
    (folder / "journal").mkdir(exist_ok=True)
    return Journal(folder / "journal")


def open_market(url: str, folder: Path) -> Market:
    """Return the market that is there."""
    return Market(Database(url), MARKET_KEY, journal=journal_in(folder))


@contextmanager
def new_place(store: str, request: pytest.FixtureRequest, folder: Path) -> Iterator[Place]:
    """Return a place in which there is nothing yet, and empty it in the end."""
    if store == "sqlite":
        yield SqlitePlace(folder / "market.db")
        return
    server: Server = request.getfixturevalue("postgres")
    name = server.database()
    yield PostgresPlace(server.url(name))
    server.give_back(name)


def delivery(folder: Path, epsilon: str) -> Path:
    """Return where the seller's release at a level lies."""
    return folder / f"delivery-{epsilon}.parquet"


def member_report(member: str, epsilon: str) -> tuple[WireLevel, str]:
    """Return what a member of the pool delivers at a level: one path, whoever asks and whenever."""
    where: Any = {"name": POOL, "column": "answer"}
    truth = VALUES[MEMBERS.index(member) % len(VALUES)]
    (report,) = Categorical(VALUES).release([truth], [member], key=SELLER_KEY, epsilon=epsilon, **where)
    return WireLevel(**ENCODING.level(epsilon).to_dict()), report


def set_up(place: Place, folder: Path) -> Market:
    """Make a market with a witness, whose seller and members have delivered their first levels."""
    (folder / "temporary").mkdir()
    for epsilon, content in releases().items():
        delivery(folder, epsilon).write_bytes(content)
    database = Database(url_of(place))
    database.prepare(SCHEMA)
    place_witness(place)
    market = Market(database, MARKET_KEY, journal=journal_in(folder))
    market.open()
    market.create_account("seller", "seller")
    market.list_release("seller", "A survey", prices_of(None, PRICES), levels=LEVELS, listing_id=LISTING)
    market.deliver("seller", LISTING, delivery(folder, DELIVERIES[0]))
    encoding = EncodingRequest(name="categorical", values=list(VALUES))
    market.create_pool("A pool", encoding, prices_of(None, PRICES_EACH), levels=LEVELS, listing_id=POOL)
    for member in MEMBERS:
        market.create_account(member, "seller")
    for member in MEMBERS[1:]:  # the first one comes later
        market.join_pool(member, POOL, *member_report(member, MEMBER_LEVELS[1]), MINIMA[member])
    return market


def open_account(market: Market, name: str, amount: int = OWN_CREDITS) -> str:
    """Make a buyer with some credits."""
    market.create_account(name, "buyer")
    market.issue(name, amount, BEGINNING)
    return name


def open_accounts(market: Market) -> None:
    """Make the buyers of all processes; those whom everybody acts for have little."""
    for slot in range(SLOTS):
        for name in own_buyers(slot):
            open_account(market, name)
    for name in SHARED:
        open_account(market, name, SHARED_CREDITS)


@cache
def releases() -> dict[str, bytes]:
    """Return the seller's files, each of which relaxes the one before."""
    truths = random.Random(1).choices(VALUES, k=OBJECTS)
    with tempfile.TemporaryDirectory() as folder:
        table, found = pa.table({"id": list(range(OBJECTS)), "answer": truths}), {}
        where: Any = {"key": SELLER_KEY, "name": RELEASE, "id": "id"}
        for epsilon in DELIVERIES:
            target, columns = delivery(Path(folder), epsilon), {"answer": Categorical(VALUES)}
            found[epsilon] = write_release(target, table, columns, epsilon=epsilon, **where).read_bytes()
    return found
