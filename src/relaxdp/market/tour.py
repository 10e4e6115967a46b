"""A market to look at: a release of simulated answers, a pool of simulated people, a seller, two buyers and a sale."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow as pa

from relaxdp.device.address import Server
from relaxdp.market.client import MarketClient
from relaxdp.market.client_pool import Pool
from relaxdp.mechanisms.categorical import Categorical
from relaxdp.sampling.keys import Key
from relaxdp.tables.vault import Vault
from relaxdp.theory.epsilon import as_epsilon

RELEASE, POOL = "heating", "night-shift"
SELLER, BUYERS, VISITOR = "energy-office", ("anna", "ben"), "you"
ROWS, MEMBERS, CREDITS = 4000, 80, 500
_VALUES, _SHARES = ["gas", "electricity", "wood"], [0.6, 0.3, 0.1]
_SOLD = "0.5"
_LEVELS = ["0.25", "0.5", "0.75", "1", "1.5", "2"]
_SAID = {
    "description": "How homes of a region are heated, one answer for each household.",
    "source": "Energy office",
    "collected": "Simulated for this tour",
    "method": "Drawn at random by a program: nobody was asked.",
    "licence": "CC0",
}
_ASKED = {
    "question": "Do you work at night?",
    "suggested": "1",
    "details": {
        "source": "Transport office",
        "description": "How many people work at night? It decides when buses run.",
    },
}


@dataclass(frozen=True, slots=True)
class Traders:
    """Who trades in the tour, by name, and their tokens, which the `repr` does not show."""

    seller: tuple[str, str] = field(repr=False)
    buyers: tuple[tuple[str, str], ...] = field(repr=False)
    member: tuple[str, str] = field(repr=False)
    """Somebody who has not joined the pool yet."""


def furnish(server: Server, token: str, folder: Path, *, seed: int) -> Traders:
    """Fill an empty market; the seed decides what the simulated people answer."""
    operator = MarketClient(server, token)
    seller = operator.create_account(SELLER, "seller")["token"]
    buyers = tuple((name, operator.create_account(name, "buyer")["token"]) for name in BUYERS)
    for name in BUYERS:
        operator.credit(name, CREDITS, "a purse for the tour")
    random = np.random.default_rng(seed)
    _list_release(MarketClient(server, seller), folder, random)
    _open_pool(operator, random)
    MarketClient(server, buyers[0][1]).buy(RELEASE, _SOLD)
    return Traders((SELLER, seller), buyers, (VISITOR, operator.create_account(VISITOR, "seller")["token"]))


def _list_release(seller: MarketClient, folder: Path, random: np.random.Generator) -> None:
    """Release a column at 1 and relax it to 2, as a data holder would, and deliver both."""
    answers = random.choice(_VALUES, ROWS, p=_SHARES)
    table = pa.table({"household": [f"h-{number:05d}" for number in range(ROWS)], "heating": answers})
    prices = {"points": [["0.1", 10], ["1", 100], ["2", 150], ["4", 200]]}
    seller.create_listing("How households heat", prices, name=RELEASE, budget="4", details=_SAID)
    vault = Vault.create(folder / "seller.vault", budget=4)
    for epsilon in ("1", "2"):
        file = folder / f"{RELEASE}-{epsilon}.parquet"
        columns = {"heating": Categorical(_VALUES)}
        vault.release(table, columns, id="household", epsilon=epsilon, name=RELEASE, output=file)
        seller.deliver(RELEASE, file)


def _open_pool(operator: MarketClient, random: np.random.Generator) -> None:
    """Open a pool, and let people join it: each with a key, a limit and a least price of their own."""
    encoding = {"name": "categorical", "values": ["no", "yes"]}
    prices = {"formula": "4 + 6*epsilon"}
    made = operator.create_pool("Night work", encoding, prices, levels=_LEVELS, name=POOL, **_ASKED)
    pool = Pool.of(made, POOL)
    for number in range(MEMBERS):
        token = operator.create_account(f"person-{number + 1:02d}", "seller")["token"]
        limit, minimum = random.choice(["1", "2"]), int(random.integers(0, 13))
        answer = pool.answer(str(random.choice(pool.choices, p=[0.8, 0.2])))
        body = pool.report(answer, key=Key.generate(), epsilon=as_epsilon(str(limit)))
        MarketClient(operator.server, token).report(POOL, {**body, "minimum": minimum})
