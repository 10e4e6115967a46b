"""The square wave in files, plans, frames, a campaign and the market."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pa_parquet
import pytest
from tests.servers.collectors import running
from typer.testing import CliRunner

import relaxdp as rx
from relaxdp.cli.main import app
from relaxdp.device.address import Server
from relaxdp.device.device import Device
from relaxdp.market.client import MarketClient
from relaxdp.market.pool_member import join_pool
from relaxdp.market.publish import Terms, publish
from relaxdp.mechanisms.base import Mechanism
from relaxdp.mechanisms.registry import create_mechanism

OPTIONS: Any = {"bins": 9, "window": 4}
ROWS, MEAN = 4_000, 6.25


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    numbers = 10 * np.random.default_rng(1).beta(5, 3, ROWS)
    numbers += MEAN - numbers.mean()
    table = pa.table({"id": range(ROWS), "income": np.clip(numbers, 0, 10)})
    pa_parquet.write_table(table, tmp_path / "in.parquet")
    monkeypatch.chdir(tmp_path)
    rx.Key.from_bytes(bytes(range(32))).save("key")
    rx.Vault.create("study.vault", budget=8, key_command="cat key")
    return tmp_path


def spread() -> Mechanism:
    return create_mechanism("wave", range=(0, 10), options={**OPTIONS})


def run(*words: str) -> Any:
    done = CliRunner().invoke(app, list(words), catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return json.loads(done.output)


def release(target: str, epsilon: str, *more: str) -> Any:
    words = ["release", "in.parquet", target, "--column", "income=0..10", "--id", "id", "--epsilon", epsilon, "--json"]
    return run(*words, *more)


def is_right(rows: list[dict[str, Any]], widest: float) -> None:
    (row,) = rows
    assert row["value"] == "mean"
    assert row["low"] < MEAN < row["high"]
    assert row["high"] - row["low"] < widest


def test_files_and_plans(place: Path) -> None:
    """The relaxed release goes on with the encoding that the path was opened with."""
    assert release("two.parquet", "2", "--mechanism", "income=wave:bins=9,window=4")["columns"]["income"]["cost"] == "2"
    assert release("four.parquet", "4")["columns"]["income"]["cost"] == "2"
    found = run("estimate", "two.parquet", "four.parquet", "--json")
    assert found["encoding"] == "wave"
    planned = [
        run(
            "plan",
            "--range",
            "0",
            "10",
            "--mechanism",
            "wave:bins=9,window=4",
            "--n",
            str(ROWS),
            "--epsilon",
            level,
            "--json",
        )
        for level in ("2", "4")
    ]
    for file, plan in zip(("two", "four"), planned, strict=True):
        (row,) = run("estimate", f"{file}.parquet", "--json")["groups"][0]["estimates"]
        is_right([row], 2.2 * plan["margin"])
        assert row["high"] - row["low"] < 2 * plan["margin"]  # which is that of the worst case
    assert planned[1]["margin"] < planned[0]["margin"]
    assert planned[0]["margin"] == rx.plan(values=spread(), n=ROWS, epsilon=2).margin


def test_our_own_tells_quartiles(place: Path) -> None:
    """In JSON and in words, for each group; and its window is the best one for the planned epsilon."""
    opened = release("four.parquet", "4", "--mechanism", "income=wave", "--planned-epsilon", "4")
    assert opened["columns"]["income"]["cost"] == "4"
    (group,) = run("estimate", "four.parquet", "--json")["groups"]
    truth = np.quantile(pa_parquet.read_table("in.parquet")["income"].to_numpy(), [0.25, 0.5, 0.75])
    assert [row["probability"] for row in group["quantiles"]] == [0.25, 0.5, 0.75]
    for row, number in zip(group["quantiles"], truth, strict=True):
        assert row["low"] <= number <= row["high"] < row["low"] + 3
        assert row["low"] <= row["estimate"] <= row["high"]
    shown = CliRunner().invoke(app, ["estimate", "four.parquet"], catch_exceptions=False).output
    assert re.search(r"│ median +│ +[0-9.]+ │ +[0-9.]+ │ +[0-9.]+ │", shown)
    found: Any = rx.estimate("four.parquet", "income")
    assert repr(rx.SquareWave(0, 10, epsilon=4)) == "SquareWave(0, 10, bins=64, window=16)"
    assert len(found.points) == 64
    low, high = found.share(5, 10).interval()
    assert low < 0.8 < high


def test_a_goal_chooses_the_window(place: Path) -> None:
    """By name and in Python alike, and a window is written where no last level is planned."""
    release("four.parquet", "4", "--mechanism", "income=wave:goal=distribution", "--planned-epsilon", "4")
    table, wave = pa_parquet.read_table("in.parquet"), rx.SquareWave(0, 10, epsilon=4, goal="distribution")
    again = rx.Vault("study.vault").release(table, {"income": wave}, id="id", epsilon=4, name="in")
    assert again.cost == 0
    assert wave.window == 4
    asked = ("release", "in.parquet", "two.parquet", "--id", "id", "--name", "two", "--column", "income=0..10")
    mechanism = ("--mechanism", "income=wave:goal=distribution", "--epsilon", "2")
    refused = CliRunner().invoke(app, [*asked, *mechanism])
    assert "income=wave:bins=64,window=16" in str(refused.exception)


def test_frames(place: Path) -> None:
    table = pa_parquet.read_table("in.parquet")
    vault = rx.Vault("study.vault")
    released = vault.release(table, {"income": spread()}, id="id", epsilon=2, name="survey")
    low, high = rx.estimate(released, "income").interval()
    assert low < MEAN < high
    own = spread().release(
        table["income"], table["id"], key=rx.Key.load("key"), epsilon=2, name="survey", column="income"
    )
    assert own.to_pylist() == released.to_frame()["income_report"].to_pylist()


def test_campaign(place: Path) -> None:
    """Python devices report twice; a seed or offset is theirs alone, and the counts are those of places."""
    with running(f"sqlite:///{place}/db.sqlite", place / "server") as server:
        made = server.create(
            id="incomes", encoding={"name": "wave", "range": [0, 10], "options": OPTIONS},
            levels=[{"epsilon": "2"}, {"epsilon": "5"}],
        )  # fmt: skip
        path = f"/v1/campaigns/{made['id']}"
        devices = [Device.open(place / f"device-{number}", limit=5) for number in range(12)]
        joined = [device.join(f"{server.base}/v1/campaigns/{made['id']}") for device in devices]
        for one in joined:
            one.answer(6.25)
            one.report()
        assert server.ask("POST", f"{path}/relax", operator=True).status == 200
        for one in joined:
            one.report()
        found = server.ask("GET", f"{path}/estimate", operator=True).json
        assert found["devices"] == 12
        (row,) = found["pooled"]
        assert row["value"] == "mean"
        assert row["low"] <= 6.25 <= row["high"]
        assert found["quantiles"] is None
        quartiles = server.ask("GET", f"{path}/estimate?quantiles=0.25,0.5,0.75", operator=True).json["quantiles"]
        assert [each["probability"] for each in quartiles] == [0.25, 0.5, 0.75]
        assert all(0 <= each["low"] <= each["estimate"] <= each["high"] <= 10 for each in quartiles)
        refused = {"device": "0" * 32, "level": made["levels"][0], "report": 12}  # one place too far
        assert server.ask("POST", f"{path}/reports", refused).error == "report_outside_encoding"
        exported = server.ask("GET", f"{path}/export?level=1", operator=True)
        assert exported.status == 200
        (place / "export.parquet").write_bytes(exported.body)
    is_right(run("estimate", "export.parquet", "--json")["groups"][0]["estimates"], 10.1)


def test_market(place: Path) -> None:
    """Levels of a release are published and ordered, and a pool takes single reports."""
    vault = rx.Vault("study.vault")
    vault.release("in.parquet", {"income": spread()}, id="id", epsilon=1, name="incomes")
    with running(f"sqlite:///{place}/db.sqlite", place / "server") as server:
        operator = MarketClient(Server.parse(server.base), server.token)
        seller, buyer = (
            MarketClient(operator.server, operator.create_token(role, role)) for role in ("seller", "buyer")
        )
        prices, terms = {"2": "10", "8": "80"}, Terms(currency="EUR", approval="automatic")
        publish(vault, "incomes", seller, prices, terms)
        for epsilon, widest in (("2", 1.2), ("8", 0.4)):
            order = buyer.order("incomes", epsilon, upgrade=epsilon == "8")
            buyer.download(order["id"], place / f"{epsilon}.parquet")
            is_right(run("estimate", f"{epsilon}.parquet", "--json")["groups"][0]["estimates"], widest)
        encoding = {"name": "wave", "range": [0, 10], "options": OPTIONS}
        operator.create_pool(
            "pool", title="Income", currency="EUR", prices=prices, approval="automatic", encoding=encoding
        )
        key, memory = rx.Key.generate(), place / "answers"
        pool = join_pool(seller, "pool", "6.25", key=key, limit=2, memory=memory)
        assert pool["mechanism"]["encoding"] == "wave"
        assert pool["mechanism"]["options"] == OPTIONS
        receipt = buyer.download(buyer.order("pool", "8")["id"], place / "pool.parquet").receipt
        assert receipt.rows == 1
        assert pa_parquet.read_table(place / "pool.parquet")["answer_epsilon"].to_pylist() == ["2"]
