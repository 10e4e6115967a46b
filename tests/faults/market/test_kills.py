"""kill -9 of a market and of those who publish on it: what was acknowledged is there, whole, and never replaced."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from tests.faults.market.traffic import Goods, Traffic
from tests.patience import until
from tests.servers.collectors import Running
from tests.servers.markets import PRICES, Market, make_vault, serve_market

import relaxdp as rx

MANY = int(os.environ.get("RELAXDP_FAULTS", "100"))


def kill_at_random(market: Market, traffic: Traffic, kills: int) -> None:
    """Kill the serving process again and again, each time after some more answers."""
    chance = random.Random(7)
    with traffic.running():
        for _ in range(kills):
            before = traffic.answers
            until(lambda: traffic.answers > before + 20 or traffic.problems)  # noqa: B023
            time.sleep(chance.uniform(0, 0.5))
            market.server.kill()
            market.start_again()
        before = traffic.answers
        until(lambda: traffic.answers > before + 20 or traffic.problems)


@pytest.mark.parametrize(
    ("store", "kills"),
    [
        ("sqlite", 10),
        pytest.param("postgres", 10, marks=pytest.mark.long),
        pytest.param("sqlite", MANY, marks=pytest.mark.long),
        pytest.param("postgres", MANY, marks=pytest.mark.long),
    ],
)
def test_a_market_that_is_killed_at_random(
    store: str, kills: int, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    with serve_market(store, tmp_path, request, "--no-request-log") as market:
        traffic = Traffic(market, Goods(tmp_path))
        kill_at_random(market, traffic, kills)
        figures = traffic.check()
        assert min(figures.values()) >= kills / 3, figures
        assert "Traceback" not in market.server.log.read_text("utf-8")
        print(f"\n{kills} kills, {figures}")


@pytest.mark.long
@pytest.mark.parametrize(
    ("mistake", "found"),
    [
        ("store_files_later", "a level has no file"),
        ("answer_before_the_commit", "an acknowledged level is lost"),
    ],
)
def test_a_market_with_a_mistake_is_found(
    mistake: str, found: str, tmp_path: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RELAXDP_MISTAKE", mistake)
    monkeypatch.setattr(Running, "module", "tests.faults.market.mutated_server")
    with serve_market("sqlite", tmp_path, request, "--no-request-log") as market:
        traffic = Traffic(market, Goods(tmp_path))
        kill_at_random(market, traffic, 10)
        traffic.problems.clear()
        with pytest.raises(AssertionError, match=found):
            traffic.check()


@pytest.mark.parametrize(("method", "is_charged"), [("create_listing", False), ("add_level", True)])
def test_a_publisher_that_is_killed_goes_on_for_free(
    method: str, is_charged: bool, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """Killed before the market hears of it, or after the charge: the same command finishes, with the same reports."""
    with serve_market("sqlite", tmp_path, request) as market:
        vault, seller, name = make_vault(tmp_path), market.add("seller"), market.make_name()
        prices = ",".join(f"{epsilon}={price}" for epsilon, price in PRICES.items())
        words = ["market", "publish", "survey", "--vault", str(vault.path), "--levels", prices, "--currency", "EUR"]
        words += ["--listing", name, "--server", market.server.base, "--json"]
        token = seller._headers["Authorization"].split()[1]

        def run(code: str = "") -> subprocess.CompletedProcess[str]:
            whole = f"{code}\nfrom relaxdp.cli.main import main\nmain()"
            return subprocess.run(
                [sys.executable, "-c", whole, *words], capture_output=True, text=True, check=False,
                env={**os.environ, "RELAXDP_TOKEN": token},
            )  # fmt: skip

        killed = run(
            "import os\nfrom relaxdp.market.client import MarketClient\n"
            f"MarketClient.{method} = lambda *_, **__: os.kill(os.getpid(), 9)"
        )
        assert killed.returncode == -signal.SIGKILL
        spent = vault.spent
        assert (spent == 1) == is_charged
        done = run()
        assert done.returncode == 0, done.stderr
        answer: dict[str, Any] = json.loads(done.stdout)
        assert answer["new"] == [*PRICES]
        assert answer["cost"] == ("0" if is_charged else "0.99")
        assert vault.spent == 1
        whole = market.publish(rx.Vault(vault.path)).listing["levels"]
        assert [each["digest"] for each in answer["listing"]["levels"]] == [each["digest"] for each in whole]
