"""A market to look at: a release of simulated answers, a pool, a seller, two buyers, and orders."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow as pa

from relaxdp.device.address import Server
from relaxdp.market.client import MarketClient
from relaxdp.market.pool_member import join_pool
from relaxdp.market.publish import Terms, publish
from relaxdp.mechanisms.categorical import Categorical
from relaxdp.sampling.keys import Key
from relaxdp.tables.vault import Vault

LISTING, POOL = "heating", "night-shift"
SELLER, BUYERS = "energy-office", ("anna", "ben")
ROWS, MEMBERS = 4000, 40
_VALUES, _SHARES = ["gas", "electricity", "wood"], [0.6, 0.3, 0.1]
_PRICES = {"0.25": "20", "0.5": "60", "1": "100", "2": "150"}


@dataclass(frozen=True, slots=True)
class Traders:
    """Names and tokens, which the `repr` does not show."""

    seller: tuple[str, str] = field(repr=False)
    buyers: tuple[tuple[str, str], ...] = field(repr=False)


def furnish_market(server: Server, token: str, folder: Path, *, seed: int) -> Traders:
    """Fill an empty market. The seed decides what the simulated people answer."""
    operator, random = MarketClient(server, token), np.random.default_rng(seed)
    seller = operator.create_token(SELLER, "seller")
    buyers = tuple((name, operator.create_token(name, "buyer")) for name in BUYERS)
    _publish_release(MarketClient(server, seller), folder, random)
    _fill_pool(operator, folder, random)
    first = MarketClient(server, buyers[0][1]).order(LISTING, "0.5")
    MarketClient(server, seller).approve(first["id"])
    MarketClient(server, buyers[1][1]).order(LISTING, "1")  # the seller has not decided yet
    return Traders((SELLER, seller), buyers)


def _publish_release(seller: MarketClient, folder: Path, random: np.random.Generator) -> None:
    table = pa.table(
        {
            "household": [f"h-{number:05d}" for number in range(ROWS)],
            "heating": random.choice(_VALUES, ROWS, p=_SHARES),
            "limit": random.choice(["1", "4"], ROWS, p=[0.2, 0.8]),
        }
    )
    vault = Vault.create(folder / "seller.vault", budget=4)
    vault.release(
        table, {"heating": Categorical(_VALUES)}, id="household", epsilon=1, name=LISTING, passthrough=["limit"]
    )
    about = "Simulated for this tour, one answer for each household. Source: Energy office. Licence: CC0."
    terms = Terms(currency="EUR", title="How households heat", about=about)
    publish(vault, LISTING, seller, _PRICES, terms, limits="limit")


def _fill_pool(operator: MarketClient, folder: Path, random: np.random.Generator) -> None:
    """Create a pool, and let people join it, each with an own key and limit."""
    operator.create_pool(
        POOL, title="Do you work at night?", about="It decides when buses run. Source: Transport office.",
        currency="EUR", prices={"0.5": "10", "1": "15", "2": "25"}, approval="automatic",
        encoding={"name": "categorical", "values": ["no", "yes"]},
    )  # fmt: skip
    for number in range(MEMBERS):
        member = MarketClient(operator.server, operator.create_token(f"person-{number + 1:02d}", "seller"))
        answer, limit = str(random.choice(["no", "yes"], p=[0.8, 0.2])), str(random.choice(["1", "2"]))
        join_pool(member, POOL, answer, key=Key.generate(), limit=limit, memory=folder / f"person-{number}.pools")
