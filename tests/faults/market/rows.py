"""The market's tables as plain SQL finds them: the check of a campaign uses nothing of what it checks."""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from contextlib import closing
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from typing import Any, NamedTuple

from tests.faults.market.witness import Seen
from tests.servers.ledgers import Place, PostgresPlace, SqlitePlace


class Account(NamedTuple):
    number: int
    name: str
    role: str
    balance: int


class Entry(NamedTuple):
    transaction: int
    account: int
    amount: int
    reason: str
    purchase: int | None


class Purchase(NamedTuple):
    number: int
    listing: int
    buyer: int
    epsilon: str
    threshold: str
    price: int
    paid: int
    objects: int
    digest: str
    state: str
    previous: int | None
    issued: str
    signature: str
    place: int
    history: str


class Level(NamedTuple):
    """A level of a release, or of one member of a pool; `content` is the digest of a file, or the report."""

    listing: int
    account: int
    threshold: str
    epsilon: str
    delivered: bool
    lower: str | None
    upper: str | None
    content: Any


@dataclass(frozen=True)
class Rows:
    """Everything that lies in the tables, at one moment in which nobody writes."""

    accounts: dict[int, Account]
    entries: list[Entry]
    purchases: dict[int, Purchase]
    levels: list[Level]
    members: dict[int, tuple[str, int]]
    """The pseudonym and the least price of each member of the pool."""
    shares: dict[int, dict[int, int]]
    """For each purchase from the pool, what each member in it costs."""
    listings: dict[int, str]
    files: dict[str, bytes]
    public_key: bytes
    seen: list[Seen]

    @cached_property
    def names(self) -> dict[str, int]:
        """The numbers of accounts by their names."""
        return {account.name: account.number for account in self.accounts.values()}

    @cached_property
    def transactions(self) -> dict[int, dict[int, int]]:
        """The lines of each transaction, in order."""
        found: defaultdict[int, dict[int, int]] = defaultdict(dict)
        for entry in sorted(self.entries):
            found[entry.transaction][entry.account] = entry.amount
        return found

    @cached_property
    def charges(self) -> dict[int, list[tuple[int, bool]]]:
        """The transactions of each purchase, and whether they are refunds."""
        found: dict[int, dict[int, bool]] = {number: {} for number in self.purchases}
        for entry in self.entries:
            if entry.purchase is not None:
                found[entry.purchase][entry.transaction] = entry.reason.startswith("refund of ")
        return {number: sorted(transactions.items()) for number, transactions in found.items()}

    @cached_property
    def appeared(self) -> dict[tuple[str, int, int, str], int]:
        """When something was seen first: its kind, listing, account or purchase, and threshold."""
        places: dict[tuple[str, int, int, str], int] = {}
        for each in self.seen:
            places.setdefault((each.kind, each.listing, each.one, each.threshold), each.place)
        return places

    @cached_property
    def delivered(self) -> set[tuple[int, str]]:
        """What was delivered: the account of a member (0 for the seller of the release), and the epsilon."""
        return {(level.account, level.epsilon) for level in self.levels if level.delivered}

    @cached_property
    def release(self) -> dict[str, tuple[Level, int]]:
        """The levels of the release by threshold, and when each of them appeared."""
        levels = [level for level in self.levels if not level.account]
        return {each.threshold: (each, self.appeared["level", each.listing, 0, each.threshold]) for each in levels}


def select(place: Place, *queries: str) -> list[list[Any]]:
    """Return the rows of several queries, over one connection."""
    if isinstance(place, SqlitePlace):
        with closing(sqlite3.connect(place.where)) as file:
            return [file.execute(query).fetchall() for query in queries]
    assert isinstance(place, PostgresPlace)
    with place.connect() as server:
        return [server.execute(query.encode()).fetchall() for query in queries]


def _columns(kind: type[Any], table: str, **other: str) -> str:
    columns = [other.get(column, f'"{column}"') for column in kind._fields]
    return f"SELECT {', '.join(columns)} FROM {table}"


def read(place: Place) -> Rows:
    """Read all tables, as soon as nobody is connected who could change them."""
    place.settle()
    (
        accounts, entries, purchases, levels, member_levels, members, shares, listings, files, setup, seen,
    ) = select(
        place,
        _columns(Account, "market_account"),
        _columns(Entry, "market_entry"),
        _columns(Purchase, "market_purchase"),
        _columns(Level, "market_level", account="0", content="digest"),
        _columns(Level, "market_member_level", content="report"),
        "SELECT account, pseudonym, minimum FROM market_member",
        "SELECT purchase, account, price FROM market_purchase_member",
        "SELECT number, id FROM market_listing",
        "SELECT digest, part, content FROM market_file ORDER BY digest, part",
        "SELECT public_key FROM market_setup",
        _columns(Seen, "witness"),
    )  # fmt: skip
    in_purchases: defaultdict[int, dict[int, int]] = defaultdict(dict)
    for purchase, account, price in shares:
        in_purchases[purchase][account] = price
    ((public_key,),) = setup
    return Rows(
        accounts={row[0]: Account(*row) for row in accounts},
        entries=[Entry(*row) for row in entries],
        purchases={row[0]: Purchase(*row) for row in sorted(purchases)},
        levels=[Level(*row) for row in levels + member_levels],
        members={account: (pseudonym, minimum) for account, pseudonym, minimum in members},
        shares=in_purchases,
        listings=dict(listings),
        files=_files(files),
        public_key=bytes(public_key),
        seen=sorted(Seen(*row) for row in seen),
    )


def _files(rows: list[Any]) -> dict[str, bytes]:
    """Return all files; each is whole, and what its name says."""
    parts: defaultdict[str, list[bytes]] = defaultdict(list)
    for digest, part, content in rows:
        assert part == len(parts[digest]), "a part of a file is missing"
        parts[digest].append(bytes(content))
    found = {digest: b"".join(content) for digest, content in parts.items()}
    for digest, whole in found.items():
        assert sha256(whole).hexdigest() == digest, "a file is not what its digest says"
    return found
