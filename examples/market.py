"""One release, many buyers: the data market of the paper, and what buyers gain who put together what they bought.

A clinic sells the diagnoses of 20,000 people at any epsilon from 0.1 to 1.0 in steps of 0.01. It delivers the level 0.5
first, and relaxes to 1.0 later. Buyers buy and upgrade in between. Whatever was not delivered, the market draws from
what is out already, without the people, and keeps it for the next buyer of the same level.

Then buyers pool everything that they bought and guess each person's diagnosis. They are right exactly as often as the
best informed of them alone, even if all 91 levels were sold. Were each buyer given an answer of their own instead, the
answers would add up.

Run it: python examples/market.py (it needs no service: the market is a temporary SQLite file)
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from decimal import Decimal
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyarrow import parquet
from rich.console import Console
from rich.table import Table

import relaxdp as rx
from relaxdp.audit.attacks import (
    IndependentReportsDistribution,
    RelaxedReportsDistribution,
    TranscriptDistribution,
    compute_error_rate,
    compute_minimum_error_rate,
    guess_by_maximum_likelihood,
)
from relaxdp.market.goods import read_file
from relaxdp.market.listings import find, levels_of
from relaxdp.market.market import Market
from relaxdp.market.prices import prices_of
from relaxdp.market.purchases import StoredPurchase
from relaxdp.mechanisms.report_arrays import read_report_column
from relaxdp.service.schema import SCHEMA
from relaxdp.storage.database import Database

ANSWERS = rx.Categorical(["flu", "covid", "none"])
CLINIC_KEY = rx.Key.from_bytes(bytes(range(32)))  # so that this example can be repeated; a vault makes its own key,
MARKET_KEY = rx.Key.from_bytes(bytes(range(32, 64)))  # and the market's comes from rx.Key.generate()
PEOPLE = 20_000
PRICES = prices_of(None, "10 + 90*epsilon")
LEVELS = [Decimal(step) / 100 for step in range(10, 101)]
EVENTS = [
    ("clinic", "delivers", "0.50"),
    ("ada", "buys", "0.20"),
    ("ben", "buys", "0.35"),
    ("ada", "upgrades to", "0.35"),
    ("cem", "buys", "0.50"),
    ("clinic", "delivers", "1.00"),
    ("dan", "buys", "0.80"),
    ("eve", "buys", "0.42"),
    ("ben", "upgrades to", "0.66"),
    ("ada", "upgrades to", "0.80"),
]
Codes = NDArray[np.int64]


class Example:
    """A market with one listing, its truth (which only the clinic knows), and everything that was bought."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        CLINIC_KEY.save(folder / "key")
        self.vault = rx.Vault.create(folder / "clinic.vault", budget=1, key_command=f"cat '{folder / 'key'}'")
        self.database = Database(f"sqlite:///{folder / 'market.db'}")
        self.database.prepare(SCHEMA)
        self.market = Market(self.database, MARKET_KEY)
        self.market.open()
        self.truth = np.random.default_rng(1).permutation(np.arange(PEOPLE) % 3)
        self.market.create_account("clinic", "seller")
        self.market.list_release("clinic", "Diagnoses", PRICES, levels=LEVELS, listing_id="diagnoses", budget="1")
        self.bought: dict[str, list[StoredPurchase]] = {}

    def deliver(self, epsilon: str) -> None:
        """Release the diagnoses at a level from the clinic's vault, and deliver that file."""
        table = pa.table({"person": np.arange(PEOPLE), "diagnosis": np.array(ANSWERS.values)[self.truth]})
        output = self.folder / f"delivery-{epsilon}.parquet"
        self.vault.release(table, {"diagnosis": ANSWERS}, id="person", epsilon=epsilon, name="clinic", output=output)
        self.market.deliver("clinic", "diagnoses", output)

    def buy(self, buyer: str, epsilon: str | Decimal) -> StoredPurchase:
        """Buy a level, or upgrade to it, and return the purchase."""
        if buyer not in self.bought:
            self.market.create_account(buyer, "buyer")
            self.market.issue(buyer, 1000, "to begin with")
        owned = self.bought.setdefault(buyer, [])
        purchase, _ = self.market.buy(buyer, "diagnoses", epsilon, upgrade=bool(owned))
        owned.append(purchase)
        return purchase

    def origin(self, purchase: StoredPurchase) -> str:
        """Say what a level was drawn from."""
        with self.market.reading() as connection:
            levels = levels_of(connection, find(connection, "diagnoses"))
        level = levels[purchase.level]
        earlier = [each for purchases in self.bought.values() for each in purchases if each.number < purchase.number]
        if level.between is None:
            return "as delivered"
        if purchase.digest in {each.digest for each in earlier}:
            return "the file that was kept"
        lower, upper = level.between.lower, f"{level.between.upper.epsilon:.2f}"
        return f"blurred from {upper}" if lower is None else f"between {lower.epsilon:.2f}, {upper}"

    def right(self, purchases: Sequence[StoredPurchase]) -> float:
        """Return how often whoever has these purchases guesses right; no attack does better (maximum likelihood)."""
        distinct = {purchase.level.epsilon: purchase for purchase in purchases}
        epsilons = sorted(distinct)
        reports = np.stack([self._reports(distinct[epsilon]) for epsilon in epsilons], axis=1)
        return self._guessed(reports, RelaxedReportsDistribution.from_epsilons(epsilons, n_values=3))

    def right_if_independent(self, epsilons: Sequence[Decimal]) -> float:
        """Return the same for a market that gives every buyer an answer of their own: a release for each sale."""
        people, diagnoses = np.arange(PEOPLE), np.array(ANSWERS.values)[self.truth]
        sales = [
            ANSWERS.release(
                diagnoses, people, key=CLINIC_KEY, epsilon=epsilon, name=f"sale {number}", column="diagnosis"
            )
            for number, epsilon in enumerate(epsilons)
        ]
        reports = np.stack([_codes(sale) for sale in sales], axis=1)
        return self._guessed(reports, IndependentReportsDistribution.from_epsilons(epsilons, n_values=3))

    def _reports(self, purchase: StoredPurchase) -> Codes:
        with self.market.reading() as connection:
            file = read_file(connection, purchase.digest)
        return _codes(parquet.read_table(BytesIO(file)).column("diagnosis"))

    def _guessed(self, reports: Codes, law: TranscriptDistribution) -> float:
        return 1 - compute_error_rate(guess_by_maximum_likelihood(reports, law), self.truth)


def _codes(reports: Any) -> Codes:
    return read_report_column(ANSWERS, reports)[0][:, 0].astype(np.int64)


def trade(example: Example, console: Console) -> None:
    """Let the events happen, and print who paid what for a level that came from where."""
    table = Table("what happens", "epsilon", "credits", "where the level comes from", title="One release, five buyers")
    for who, does, epsilon in EVENTS:
        if who == "clinic":
            example.deliver(epsilon)
            table.add_row(f"{who} {does}", epsilon, "", "the clinic's path")
        else:
            purchase = example.buy(who, epsilon)
            table.add_row(f"{who} {does}", epsilon, str(purchase.paid), example.origin(purchase))
    console.print(table)


def collude(example: Example, console: Console) -> None:
    """Let buyers pool what they bought, before and after all levels were sold, and print what they can guess."""
    table = Table(
        "who guesses", "best epsilon", "right", "if answers were independent",
        title=f"Diagnoses of {PEOPLE:,} people guessed from what was bought (a blind guess: 33.3 %)",
    )  # fmt: skip

    def add(name: str, purchases: Sequence[StoredPurchase]) -> None:
        epsilons = [purchase.level.epsilon for purchase in purchases]
        independent = example.right_if_independent(epsilons)
        table.add_row(name, f"{max(epsilons):.2f}", f"{example.right(purchases):.1%}", f"{independent:.1%}")

    for buyer, purchases in example.bought.items():
        add(f"{buyer}, alone", purchases)
    table.add_section()
    five = [purchase for purchases in example.bought.values() for purchase in purchases]
    add("all five, pooled", five)
    table.add_section()
    order = random.Random(1).sample(LEVELS, len(LEVELS))  # anybody may come at any time
    everyone = [example.buy(f"buyer-{number}", epsilon) for number, epsilon in enumerate(order)]
    add("the buyer of 1.00, alone", [purchase for purchase in everyone if purchase.level.epsilon == 1])
    add(f"{len(everyone)} buyers of all levels, pooled", everyone)
    console.print(table)
    most = [1 - compute_minimum_error_rate(3, epsilon) for epsilon in ("0.8", "1")]
    console.print(f"On average no guess can be right more often than {most[0]:.1%} at 0.80, and {most[1]:.1%} at 1.00.")
    console.print(f"All 91 levels together cost a person epsilon 1.00. Independent answers would cost {sum(LEVELS)}.")


def main() -> None:
    """Run the market, and then the collusion."""
    console = Console()
    with TemporaryDirectory() as folder:
        example = Example(Path(folder))
        try:
            trade(example, console)
            collude(example, console)
        finally:
            example.database.close()


if __name__ == "__main__":
    main()
