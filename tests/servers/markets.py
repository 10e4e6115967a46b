"""Markets for tests: released files to deliver, and one way to trade, in this process or over HTTP.

Both traders take and give plain JSON and raise `Refused`, so that a test is written once for both of them.
"""

from __future__ import annotations

import io
import json
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import quote

import jsonschema_rs
import msgspec
import pyarrow as pa
import pyarrow.parquet as pa_parquet
from sqlalchemy import select
from tests.released import write_release
from tests.servers.collectors import Answer, Running

import relaxdp as rx
from relaxdp.errors import RelaxdpError
from relaxdp.market import accounts, listings, pools, purchases, views
from relaxdp.market.accounts import OPERATOR
from relaxdp.market.details import Details
from relaxdp.market.goods import parts_of
from relaxdp.market.journal import Journal
from relaxdp.market.market import Market
from relaxdp.market.prices import prices_from_json
from relaxdp.market.receipts import signed_of
from relaxdp.mechanisms.base import Mechanism
from relaxdp.service.observe import code_of
from relaxdp.service.schema import METADATA, SCHEMA
from relaxdp.service.wire import EncodingRequest, WireLevel, resolved
from relaxdp.storage.database import Database
from relaxdp.tables.metadata import METADATA_KEY
from relaxdp.theory.epsilon import as_epsilon

SELLER_KEY = rx.Key.from_bytes(bytes(range(32)))
MARKET_KEY = rx.Key.from_bytes(bytes(range(100, 132)))
NOW = 1_800_000_000.0
VALUES = ["flu", "covid", "none"]
PARQUET = "application/vnd.apache.parquet"
TABLES = [table for table in METADATA.sorted_tables if table.name.startswith("market_")]
Dump = dict[str, list[tuple[Any, ...]]]


class Refused(Exception):
    """What was asked for was refused: the code over HTTP, the sentence, and the status where there is one."""

    def __init__(self, code: str, sentence: str, status: int | None = None) -> None:
        super().__init__(f"{status} {code}: {sentence}")
        self.code, self.sentence, self.status = code, sentence, status


def dump(database: Database) -> Dump:
    """Return every row of every table of the market."""
    with database.reading() as connection:
        return {
            table.name: sorted((tuple(row) for row in connection.execute(select(table))), key=repr) for table in TABLES
        }


# Files to deliver.


def release_file(
    folder: Path,
    epsilon: str,
    *,
    mechanism: Mechanism | None = None,
    ids: Sequence[Any] | None = None,
    truths: Sequence[Any] | None = None,
    key: rx.Key = SELLER_KEY,
    release: str = "survey-2026",
    name: str | None = None,
    columns: Sequence[str] = ("diagnosis",),
) -> Path:
    """Release a small table as `relaxdp release` does, and return the file."""
    mechanism = rx.Categorical(VALUES) if mechanism is None else mechanism
    ids = list(range(1, 41)) if ids is None else ids
    if truths is None:
        truths = [mechanism.labels[place % len(mechanism.labels)] for place in range(len(ids))]
    target = folder / f"{name or f'{release}-{epsilon}'}.parquet"
    target.unlink(missing_ok=True)
    table = pa.table({"id": pa.array(ids), **{column: pa.array(truths) for column in columns}})
    chosen = dict.fromkeys(columns, mechanism)
    return write_release(target, table, chosen, key=key, epsilon=epsilon, name=release, id="id")


def described(path: Path | bytes) -> Any:
    """Return what a file says of itself."""
    metadata = pa_parquet.read_schema(io.BytesIO(path) if isinstance(path, bytes) else path).metadata
    return json.loads(metadata[METADATA_KEY])


def altered(
    path: Path,
    name: str,
    *,
    description: Callable[[Any], Any] | None = None,
    table: Callable[[Any], Any] | None = None,
) -> Path:
    """Return a copy of a released file with another description or another table in it."""
    content = pa_parquet.read_table(path)
    said = json.loads(content.schema.metadata[METADATA_KEY])
    if description is not None:
        said = description(said) or said
    content = content if table is None else table(content)
    target = path.with_name(f"{name}.parquet")
    pa_parquet.write_table(content.replace_schema_metadata({METADATA_KEY: json.dumps(said).encode()}), target)
    return target


def column_of(said: Any) -> Any:
    """Return the description of the first released column."""
    return next(iter(said["columns"].values()))


def level_of(epsilon: str, mechanism: Mechanism | None = None) -> dict[str, str]:
    """Return a level as it travels."""
    encoding = mechanism or rx.Categorical(VALUES)
    return {"epsilon": epsilon, "threshold": str(encoding.threshold(as_epsilon(epsilon)))}


# Traders.


class Trader(Protocol):
    """Everything that people do in a market."""

    database: Database

    def account(self, name: str, role: str) -> Any: ...
    def credit(self, name: str, amount: Any, reason: str = "a gift") -> Any: ...
    def balance(self, name: str) -> int: ...
    def books(self) -> Any: ...
    def statement(self, name: str) -> Any: ...
    def list_release(self, seller: str, listing: str | None, prices: Any, **more: Any) -> Any: ...
    def deliver(self, seller: str, listing: str, path: Path, column: str | None = None) -> Any: ...
    def prices(self, seller: str, listing: str, prices: Any, levels: Any = None) -> Any: ...
    def budget(self, seller: str, listing: str, budget: Any) -> Any: ...
    def close(self, seller: str, listing: str) -> Any: ...
    def pool(self, listing: str | None, encoding: Any, prices: Any, **more: Any) -> Any: ...
    def close_any(self, listing: str) -> Any: ...
    def join(self, seller: str, listing: str, level: Any, report: Any, minimum: Any = 0) -> Any: ...
    def sales(self, seller: str) -> Any: ...
    def listing(self, listing: str) -> Any: ...
    def quote(self, listing: str, epsilon: Any, buyer: str | None = None) -> Any: ...
    def buy(self, buyer: str, listing: str, epsilon: Any, most: Any = None, *, upgrade: bool = False) -> Any: ...
    def purchases(self, buyer: str) -> Any: ...
    def receipt(self, buyer: str, number: int) -> Any: ...
    def verify(self, signed: Any) -> Any: ...
    def data(self, buyer: str, number: int) -> bytes: ...
    def refund(self, who: str, number: int, reason: str = "a mistake") -> Any: ...


@contextmanager
def _refusing() -> Iterator[None]:
    try:
        yield
    except RelaxdpError as problem:
        raise Refused(code_of(type(problem)), problem.message) from problem


def _plain(view: Any) -> Any:
    return json.loads(msgspec.json.encode(view))


def _details(more: dict[str, Any]) -> Details:
    return Details(**more.get("details", {}))


class Here:
    """Trade in this process. Whatever the model refuses with another exception than ours is an error of the test."""

    def __init__(self, database: Database, key: rx.Key = MARKET_KEY, journal: Journal | None = None) -> None:
        self.database, self.market = database, Market(database, key, journal=journal, clock=lambda: NOW)
        database.prepare(SCHEMA)
        self.market.open()

    def account(self, name: str, role: str) -> Any:
        with _refusing():
            return self.market.create_account(name, role)  # type: ignore[arg-type]

    def credit(self, name: str, amount: Any, reason: str = "a gift") -> Any:
        with _refusing():
            return self.market.issue(name, amount, reason)

    def balance(self, name: str) -> int:
        return self.market.account(name).balance

    def books(self) -> Any:
        with self.database.reading() as connection:
            balanced, transactions, circulating = accounts.balances(connection)
        return {"balanced": balanced, "transactions": transactions, "credits": circulating}

    def statement(self, name: str) -> Any:
        with self.database.reading() as connection:
            entries = accounts.statement(connection, accounts.named(connection, name).number, 1000)
        return [_plain(entry) for entry in entries]

    def list_release(self, seller: str, listing: str | None, prices: Any, **more: Any) -> Any:
        with _refusing():
            made = self.market.list_release(
                seller, more.get("title", "Diagnoses"), prices_from_json(prices), listing_id=listing,
                budget=more.get("budget"), levels=more.get("levels"), details=_details(more),
            )  # fmt: skip
        return self._seller_view(made, seller)

    def deliver(self, seller: str, listing: str, path: Path, column: str | None = None) -> Any:
        with _refusing():
            return self._seller_view(self.market.deliver(seller, listing, path, column), seller)

    def prices(self, seller: str, listing: str, prices: Any, levels: Any = None) -> Any:
        with _refusing():
            extended = self.market.extend_prices(seller, listing, prices_from_json(prices), levels)
            return self._seller_view(extended, seller)

    def budget(self, seller: str, listing: str, budget: Any) -> Any:
        with _refusing():
            return self._seller_view(self.market.raise_budget(seller, listing, budget), seller)

    def close(self, seller: str, listing: str) -> Any:
        with _refusing():
            return self._seller_view(self.market.close_listing(seller, listing), seller)

    def pool(self, listing: str | None, encoding: Any, prices: Any, **more: Any) -> Any:
        with _refusing():
            asked = resolved(msgspec.convert(encoding, EncodingRequest), "1")
            made = self.market.create_pool(
                more.get("title", "What did you eat?"), asked, prices_from_json(prices), listing_id=listing,
                levels=more.get("levels"), details=_details(more), question=more.get("question"),
                suggested=more.get("suggested"),
            )  # fmt: skip
        return self.listing(made.id)

    def close_any(self, listing: str) -> Any:
        with _refusing():
            return self.listing(self.market.close_any(listing).id)

    def join(self, seller: str, listing: str, level: Any, report: Any, minimum: Any = 0) -> Any:
        with _refusing():
            joined = self.market.join_pool(seller, listing, WireLevel(**level), report, minimum)
        return self._seller_view(joined, seller)

    def sales(self, seller: str) -> Any:
        with self.database.reading() as connection:
            who = accounts.named(connection, seller)
            found = listings.of_seller(connection, who.number)
            found += [listings.numbered(connection, number) for number in pools.pools_of(connection, who.number)]
            return [_plain(views.seller_view(connection, each, who.number)) for each in found]

    def listing(self, listing: str) -> Any:
        with _refusing(), self.database.reading() as connection:
            return _plain(views.listing_view(connection, self.market.visible(connection, listing, None)))

    def quote(self, listing: str, epsilon: Any, buyer: str | None = None) -> Any:
        with _refusing():
            return _plain(views.quote_view(self.market.quote(listing, epsilon, buyer)))

    def buy(self, buyer: str, listing: str, epsilon: Any, most: Any = None, *, upgrade: bool = False) -> Any:
        with _refusing():
            purchase, new = self.market.buy(buyer, listing, epsilon, most=most, upgrade=upgrade)
        with self.database.reading() as connection:
            return _plain(views.purchase_view(connection, purchase, new=new))

    def purchases(self, buyer: str) -> Any:
        with self.database.reading() as connection:
            found = purchases.of_buyer(connection, accounts.named(connection, buyer).number)
            return [_plain(views.purchase_view(connection, each)) for each in found]

    def receipt(self, buyer: str, number: int) -> Any:
        with _refusing():
            return self.market.receipt(self.market.account(buyer), number).to_json()

    def verify(self, signed: Any) -> Any:
        with _refusing():
            return self.market.verified(signed_of(signed))[1].state

    def data(self, buyer: str, number: int) -> bytes:
        with _refusing(), self.database.reading() as connection:
            purchase = self.market.purchase_of(connection, accounts.named(connection, buyer), number)
            return b"".join(parts_of(connection, purchase.digest))

    def refund(self, who: str, number: int, reason: str = "a mistake") -> Any:
        with _refusing():
            found = self.market.refund(OPERATOR if who == "operator" else self.market.account(who), number, reason)
        return {"number": found.number, "state": found.state}

    def _seller_view(self, listing: Any, seller: str) -> Any:
        with self.database.reading() as connection:
            account = accounts.named(connection, seller)
            return _plain(views.seller_view(connection, listings.numbered(connection, listing.number), account.number))


class Remote:
    """Trade over HTTP. Every answer, also of a refusal, is held against the service's own description."""

    def __init__(self, server: Running, database: Database) -> None:
        self.server, self.database = server, database
        self.tokens = {"operator": server.token}
        self.document = server.ask("GET", "/openapi.json").json
        self._schemas: dict[str, Any] = {}
        self.seen: set[tuple[str, str, int]] = set()

    def ask(self, method: str, path: str, body: Any = None, *, who: str | None = None, **headers: str) -> Answer:
        """Ask as somebody, and check the answer."""
        if who is not None:
            headers["authorization"] = f"Bearer {self.tokens[who]}"
        sent: dict[str, Any] = dict(headers)
        found = self.server.ask(method, f"/v1/market{path}", body, **sent)
        self.check(method, f"/v1/market{path}", found)
        return found

    def check(self, method: str, path: str, answer: Answer) -> None:
        """Refuse an answer that the description does not have."""
        template = next(
            each for each in self.document["paths"]
            if re.fullmatch(re.sub(r"{\w+}", "[^/]+", each), path.partition("?")[0])
        )  # fmt: skip
        responses = self.document["paths"][template][method.lower()]["responses"]
        self.seen.add((method, template, answer.status))
        assert str(answer.status) in responses, (method, path, answer)
        described = responses[str(answer.status)]
        kind, _, _ = answer.headers["content-type"].partition(";")
        content = described["content"][kind]
        if answer.status < 400:
            assert answer.headers["cache-control"] == "no-store", (method, path)
        else:
            assert set(answer.json) == {"error", "message", "fields"}
            assert answer.error in described["description"].split(", "), (method, path, answer)
        if "schema" in content:
            self._validator(content["schema"]).validate(answer.json)

    def _validator(self, schema: Any) -> Any:
        text = json.dumps(schema)
        if text not in self._schemas:
            whole = {**schema, "components": self.document["components"]}
            self._schemas[text] = jsonschema_rs.Draft202012Validator(whole)
        return self._schemas[text]

    def _do(self, method: str, path: str, body: Any = None, *, who: str | None = None, **headers: str) -> Answer:
        answer = self.ask(method, path, body, who=who, **headers)
        if answer.status >= 400:
            raise Refused(answer.error, answer.json["message"], answer.status)
        return answer

    def account(self, name: str, role: str) -> Any:
        made = self._do("POST", "/accounts", {"name": name, "role": role}, who="operator").json
        self.tokens[name] = made["token"]
        return made["token"]

    def credit(self, name: str, amount: Any, reason: str = "a gift") -> Any:
        return self._do("POST", "/credits", {"account": name, "amount": amount, "reason": reason}, who="operator").json

    def balance(self, name: str) -> int:
        found: int = self._do("GET", "/me", who=name).json["balance"]
        return found

    def books(self) -> Any:
        return self._do("GET", "/books", who="operator").json

    def statement(self, name: str) -> Any:
        return self._do("GET", "/statement", who=name).json["entries"]

    def list_release(self, seller: str, listing: str | None, prices: Any, **more: Any) -> Any:
        return self._do(
            "POST", "/listings", {"id": listing, "title": "Diagnoses", "prices": prices, **more}, who=seller
        ).json

    def deliver(self, seller: str, listing: str, path: Path, column: str | None = None) -> Any:
        query = "" if column is None else f"?column={quote(column)}"
        return self._do(
            "POST", f"/listings/{listing}/deliveries{query}", path.read_bytes(), who=seller, content_type=PARQUET
        ).json

    def prices(self, seller: str, listing: str, prices: Any, levels: Any = None) -> Any:
        return self._do("POST", f"/listings/{listing}/prices", {"prices": prices, "levels": levels}, who=seller).json

    def budget(self, seller: str, listing: str, budget: Any) -> Any:
        return self._do("POST", f"/listings/{listing}/budget", {"budget": budget}, who=seller).json

    def close(self, seller: str, listing: str) -> Any:
        return self._do("POST", f"/listings/{listing}/close", who=seller).json

    def pool(self, listing: str | None, encoding: Any, prices: Any, **more: Any) -> Any:
        asked = {"id": listing, "title": "What did you eat?", "encoding": encoding, "prices": prices, **more}
        return self._do("POST", "/pools", asked, who="operator").json

    def close_any(self, listing: str) -> Any:
        return self._do("POST", f"/pools/{listing}/close", who="operator").json

    def join(self, seller: str, listing: str, level: Any, report: Any, minimum: Any = 0) -> Any:
        body = {"level": level, "report": report, "minimum": minimum}
        return self._do("POST", f"/listings/{listing}/reports", body, who=seller).json

    def sales(self, seller: str) -> Any:
        return self._do("GET", "/sales", who=seller).json["listings"]

    def listing(self, listing: str) -> Any:
        return self._do("GET", f"/listings/{listing}").json

    def quote(self, listing: str, epsilon: Any, buyer: str | None = None) -> Any:
        return self._do("GET", f"/listings/{listing}/quote?epsilon={quote(str(epsilon))}", who=buyer).json

    def buy(self, buyer: str, listing: str, epsilon: Any, most: Any = None, *, upgrade: bool = False) -> Any:
        verb = "upgrade" if upgrade else "buy"
        answer = self._do("POST", f"/listings/{listing}/{verb}", {"epsilon": epsilon, "most": most}, who=buyer)
        assert answer.json["new"] == (answer.status == 201)
        return answer.json

    def purchases(self, buyer: str) -> Any:
        return self._do("GET", "/purchases", who=buyer).json["purchases"]

    def receipt(self, buyer: str, number: int) -> Any:
        return self._do("GET", f"/purchases/{number}/receipt", who=buyer).json

    def verify(self, signed: Any) -> Any:
        return self._do("POST", "/receipts/verify", signed).json["state"]

    def data(self, buyer: str, number: int) -> bytes:
        return self._do("GET", f"/purchases/{number}/data", who=buyer).body

    def refund(self, who: str, number: int, reason: str = "a mistake") -> Any:
        return self._do("POST", f"/purchases/{number}/refund", {"reason": reason}, who=who).json


@contextmanager
def here(folder: Path, *, key: rx.Key = MARKET_KEY) -> Iterator[Here]:
    """Open a market in a file, for a while."""
    database = Database(str(folder / "market.db"))
    try:
        yield Here(database, key)
    finally:
        database.close()
