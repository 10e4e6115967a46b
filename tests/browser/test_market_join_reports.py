"""A pool's report made by the market's page is, byte for byte, the one that the command line makes."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.browser.market_people import Market
from tests.patience import PATIENCE

from relaxdp.market.client_pool import Pool
from relaxdp.sampling.keys import Key
from relaxdp.theory.epsilon import as_epsilon

pytestmark = pytest.mark.long

ADAPTER = Path(__file__).with_name("market_join_adapter.mjs")
EPSILONS = ["0.01", "0.1", "0.25", "0.5", "1", "1.75", "2.50", "4", "7", "12.000000000000001"]
TEXTS = ["no", "yes", "ja, naïve 🦉", "x" * 1500]  # longer than some implementations of HKDF allow
ENCODINGS: dict[str, dict[str, Any]] = {
    "categorical": {"name": "categorical", "values": TEXTS},
    "whole numbers": {"name": "categorical", "values": [-3, 0, 7, 2**52]},
    "unary-symmetric": {"name": "unary-symmetric", "values": TEXTS},
    "unary-optimised": {"name": "unary-optimised", "values": list(range(11))},
    "local-hash": {"name": "local-hash", "values": [f"v{number}" for number in range(40)], "options": {"buckets": 5}},
    "many buckets": {"name": "local-hash", "values": TEXTS, "options": {"buckets": 300}},
    "numeric": {"name": "numeric", "range": [-2.5, 10]},
    "wave": {"name": "wave", "range": [-2.5, 10], "options": {"bins": 64, "window": 16}},
    "a wide wave": {"name": "wave", "range": [-2.5, 10], "options": {"bins": 1024, "window": 1024}},
}
NUMBERS = [-2.5, -0.0, 0.1, 3, 9.999999999999998, 10]


def _listing(market: Market, name: str) -> dict[str, Any]:
    """Open a pool, and return it as everybody sees it."""
    place = name.replace(" ", "-")
    market.operator.create_pool("What?", ENCODINGS[name], {"formula": "1 + 2*epsilon"}, levels=EPSILONS, name=place)
    return market.client(None).listing(place)


@pytest.mark.parametrize("name", sorted(ENCODINGS))
def test_reports_agree(node: str, market: Market, name: str) -> None:
    listing = _listing(market, name)
    pool, random = Pool.of(listing, listing["id"]), np.random.default_rng(5)
    answers = ENCODINGS[name].get("values", NUMBERS)
    cases = [(answer, random.bytes(32)) for answer in answers for _ in range(3)]
    asked = [
        json.dumps({"listing": listing, "key": key.hex(), "answer": answer, "epsilons": EPSILONS})
        for answer, key in cases
    ]
    done = subprocess.run(
        [node, str(ADAPTER)],
        input="\n".join(asked) + "\n",
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    found = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(found) == len(cases)
    reports = set()
    for (answer, raw), made in zip(cases, found, strict=True):
        key = Key.from_bytes(raw)
        expected = [pool.report(pool.answer(str(answer)), key=key, epsilon=as_epsilon(each)) for each in EPSILONS]
        assert made["reports"] == expected
        assert made["params"] == pool.encoding.params.hex()
        reports |= {json.dumps(each["report"]) for each in expected}
    assert len(reports) > 1  # what is compared is not one constant
