"""The adapter's part for the market: sellers, buyers, receipts, and exact distributions of keyed reports."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pa_parquet
from tests.commands import printed
from tests.exact.enumeration import compute_transcript_distribution, path_law
from tests.golden.driver import DataHolder, k_ary
from tests.golden.driver_server import Service, estimate_files, rejecting

import relaxdp as rx
from relaxdp.audit.attacks import RelaxedReportsDistribution, guess_by_maximum_likelihood
from relaxdp.device.address import Server
from relaxdp.errors import RelaxdpError
from relaxdp.market.client import MarketClient
from relaxdp.market.publish import Terms, publish

_HOLDERS: dict[Path, tuple[DataHolder, str, str]] = {}
"""Who released a file, under which name and at which level."""


@dataclass(frozen=True)
class Bought:
    """One purchase: level, price and payment, the file with the reports, and the file with the receipt."""

    level: str
    price: int
    paid: int
    rows: int
    is_new: bool
    file: Path
    receipt_file: Path
    receipt: Mapping[str, Any]

    @property
    def values(self) -> dict[str, Any]:
        """What a scenario records."""
        terms = {"level": self.level, "price": self.price, "paid": self.paid, "rows": self.rows, "is_new": self.is_new}
        said = {name: self.receipt[name] for name in ("listing", "buyer", "rows")}
        amounts = {"price": int(self.receipt["price"]), "paid": int(self.receipt["due"])}
        return {**terms, "receipt": {**said, **amounts, "level": self.receipt["epsilon"]}}


class Marketplace:
    """The market of a service."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._operator = MarketClient(Server.parse(service.url), service.token)
        self.public_key = self._operator.public_key().hex()

    def add_seller(self, name: str) -> Seller:
        """Make the token of a seller."""
        return Seller(self._client(name, "seller"))

    def add_buyer(self, name: str, folder: Path) -> Buyer:
        """Make the token of a buyer, whose files go to the folder."""
        folder.mkdir(parents=True, exist_ok=True)
        return Buyer(self._client(name, "buyer"), folder)

    def _client(self, name: str, role: str) -> MarketClient:
        with rejecting():
            token = self._operator.create_token(name, role)
        return MarketClient(Server.parse(self._service.url), token)

    def show(self, listing: str) -> dict[str, Any]:
        """Return the levels of a listing without a token: prices and expected margins of error."""
        with rejecting():
            levels = MarketClient(Server.parse(self._service.url)).listing(listing)["levels"]
        (rows,) = {each["rows"] for each in levels}
        return {
            "rows": rows,
            "prices": {each["epsilon"]: int(each["price"]) for each in levels},
            "margins_of_error": {each["epsilon"]: each["margin"] for each in levels},
            "available": [each["epsilon"] for each in levels],
        }


class Seller:
    """Lists datasets, with a price for each level, and approves every order."""

    def __init__(self, client: MarketClient) -> None:
        self._client = client
        self._prices: dict[str, Mapping[str, int]] = {}

    def list_dataset(self, name: str, prices: Mapping[str, int], file: Path) -> None:
        """Put a dataset up for sale at these levels, and publish those up to the level of the file."""
        self._prices[name] = prices
        self.deliver(name, file)

    def deliver(self, name: str, file: Path) -> None:
        """Publish all levels of a listing up to the level of the file, from the vault that released it."""
        holder, release, top = _HOLDERS[file]
        prices = {level: str(price) for level, price in self._prices[name].items() if Decimal(level) <= Decimal(top)}
        terms = Terms(currency="EUR", approval="automatic")
        with rejecting(), holder.use_vault() as vault:
            publish(vault, release, self._client, prices, terms, listing=name)

    def privacy_loss(self, name: str) -> dict[str, Any]:
        """Return the privacy loss towards all buyers together, and the levels that were sold."""
        with rejecting():
            columns = self._client.sales()["columns"]
        (found,) = [each for each in columns if each["listing"] == name]
        return {
            "towards_all_buyers": found["largest_sold"],
            "sold": {each["epsilon"]: each["buyers"] for each in found["sold"]},
        }


class Buyer:
    """Buys levels and upgrades."""

    def __init__(self, client: MarketClient, folder: Path) -> None:
        self._client, self._folder = client, folder

    def ask_price(self, listing: str, level: str) -> dict[str, Any]:
        """Return the price of a level, the level that this buyer has, and the difference that is due."""
        with rejecting():
            found = self._client.listing(listing)
        (offer,) = [each for each in found["levels"] if each["epsilon"] == level]
        return {"price": int(offer["price"]), "due": int(offer["due"]), "owned": found["owned"]}

    def buy(self, listing: str, level: str, file: str) -> Bought:
        """Buy a level."""
        with rejecting():
            return self._download(self._client.order(listing, level), file)

    def upgrade(self, listing: str, level: str, file: str) -> Bought:
        """Buy a higher level for the difference."""
        with rejecting():
            return self._download(self._client.order(listing, level, upgrade=True), file)

    def download_again(self, listing: str, level: str, file: str) -> Bought:
        """Get the file of an earlier purchase once more."""
        with rejecting():
            (order,) = [
                each for each in self._client.orders() if (each["listing"], each["epsilon"]) == (listing, level)
            ]
            return self._download(order, file)

    def _download(self, order: Mapping[str, Any], name: str) -> Bought:
        file = self._folder / f"{name}.parquet"
        signed = self._client.download(order["id"], file)
        receipt_file = file.with_suffix(".json")
        receipt_file.write_text(json.dumps(signed.to_json()), "utf-8")
        return Bought(
            order["epsilon"], int(order["price"]), int(order["due"]), signed.receipt.rows, order["is_new"], file,
            receipt_file, signed.to_json()["receipt"],
        )  # fmt: skip


def verify_receipt(receipt: Path, data: Path, public_key: str) -> bool:
    """Return whether a receipt is the market's and belongs to this file. No market is asked."""
    try:
        printed("market", "verify", str(data), "--receipt", str(receipt), "--public-key", public_key)
    except RelaxdpError:
        return False
    return True


def release_dataset(
    file: Path, ids: Sequence[int], answers: Sequence[str], values: Sequence[str], *, key: bytes, name: str, level: str
) -> Path:
    """Release one column of a table at a level, as its owner does before it is sold."""
    table = pa.table({"id": pa.array(ids), "diagnosis": pa.array(answers)})
    where: Any = {"id": "id", "epsilon": level, "name": name, "planned_epsilon": "9"}
    holder = DataHolder(Path(mkdtemp(dir=file.parent), "holder"), key=key, budget=level)
    pa_parquet.write_table(holder.release(table, {"diagnosis": k_ary(values)}, **where).table, file)
    _HOLDERS[file] = holder, name, level
    return file


def stated_level(file: Path) -> str:
    """Return the level that a bought file states for its reports."""
    (level,) = estimate_files([file])["levels"]
    return str(level)


def change_one_report(file: Path, changed: Path, values: Sequence[str]) -> Path:
    """Write a copy of a bought file in which one report is another one."""
    table = pa_parquet.read_table(file)
    place = table.column_names.index("diagnosis")
    first, *others = table["diagnosis"].to_pylist()
    other = next(value for value in values if value != first)
    column = pa.array([other, *others], table.schema.field(place).type)
    pa_parquet.write_table(table.set_column(place, table.schema.field(place), column), changed)
    return changed


def guess_true_values(reports: Mapping[str, Sequence[str]], values: Sequence[str]) -> list[list[str]]:
    """Return for each row the likeliest true values, given its reports at some levels in ascending order."""
    codes = np.array([[list(values).index(report) for report in each] for each in reports.values()])
    likeliest = guess_by_maximum_likelihood(
        codes.T, RelaxedReportsDistribution.from_epsilons(list(reports), n_values=len(values))
    )
    return [[value for value, is_best in zip(values, row, strict=True) if is_best] for row in likeliest.tolist()]


# Exact distributions.

Distribution = dict[tuple[int, ...], Fraction]
WORDS = 1 << 64


def _thresholds(values: int, levels: Sequence[str]) -> list[int]:
    encoding = rx.Categorical(list(range(values)))
    return [encoding.level(level).threshold for level in levels]


def relaxed_distribution(values: int, levels: Sequence[str], true_value: int) -> Distribution:
    """Return the joint distribution of reports at ascending levels that are relaxed one after the other."""
    retentions = [Fraction(threshold, WORDS) for threshold in _thresholds(values, levels)]
    return compute_transcript_distribution(values, retentions, true_value)


def keyed_distribution(values: int, thresholds: Sequence[int], true_value: int, *, words: int) -> Distribution:
    """Return the joint distribution of keyed reports where words have few values, by enumeration of all words."""
    return path_law(values, thresholds, true_value, one=words)


def relaxed_distribution_on_grid(
    values: int, thresholds: Sequence[int], true_value: int, *, words: int
) -> Distribution:
    """Return the joint distribution of relaxed reports at the same thresholds."""
    return compute_transcript_distribution(values, [Fraction(threshold, words) for threshold in thresholds], true_value)
