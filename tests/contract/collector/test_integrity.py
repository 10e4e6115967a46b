"""A real collector detects fabricated reports, on both stores: in its JSON, by the command, and by the metric."""

from __future__ import annotations

import asyncio
import os
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from tests.servers.collectors import Running
from typer.testing import CliRunner

import relaxdp as rx
from relaxdp.cli.main import app
from relaxdp.collector import campaigns
from relaxdp.collector.campaign import Campaign
from relaxdp.collector.definition import complete
from relaxdp.collector.ingest import Item, ingest
from relaxdp.collector.watch import Watch
from relaxdp.collector.wire import CampaignRequest, LevelRequest
from relaxdp.service.schema import SCHEMA
from relaxdp.service.wire import EncodingRequest
from relaxdp.storage.database import Database

VALUES = ["a", "b", "c", "d"]
HONEST, FAKES, ALONE = 1_800, 200, 300


def reports(mechanism: Any, truths: list[str], epsilon: str) -> list[str]:
    where: Any = {"key": rx.Key.from_bytes(bytes(range(32))), "name": "r", "column": "answer"}
    return list(mechanism.release(truths, list(range(len(truths))), epsilon=epsilon, **where))


def test_fabricated_reports(server: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    made = server.create(
        encoding={"name": "categorical", "values": VALUES}, levels=[{"epsilon": "0.5"}, {"epsilon": "2"}]
    )
    path = f"/v1/campaigns/{made['id']}"

    def send(devices: list[str], answers: list[str], level: int) -> None:
        for start in range(0, len(devices), 1_000):
            chosen = slice(start, start + 1_000)
            batch = [
                {"device": device, "level": made["levels"][level], "report": answer}
                for device, answer in zip(devices[chosen], answers[chosen], strict=True)
            ]
            assert server.ask("POST", f"{path}/reports/batch", {"reports": batch}).status == 200

    def found() -> dict[str, Any]:
        checked: dict[str, Any] = server.ask("GET", f"{path}/estimate", operator=True).json["integrity"]
        return checked

    answers = rx.Categorical(VALUES)
    truths = [VALUES[number % 3] for number in range(HONEST + ALONE)]
    honest, fakes = ([os.urandom(16).hex() for _ in range(number)] for number in (HONEST + ALONE, FAKES))
    send(honest, reports(answers, truths, "0.5"), 0)
    assert (found()["tested"], found()["untested"], found()["alarm"]) == (0, HONEST + ALONE, False)
    assert server.ask("POST", f"{path}/relax", operator=True).status == 200
    newer = reports(answers, truths, "2")
    send(honest[:HONEST], newer[:HONEST], 1)
    quiet = found()
    assert (quiet["tested"], quiet["untested"], quiet["alarm"], quiet["without"]) == (HONEST, ALONE, False, None)
    assert [row["value"] for row in quiet["shares"]] == VALUES
    assert 0 < quiet["unnoticed"] < FAKES
    about = f"About {quiet['unnoticed']} of 1,800"
    assert quiet["limits"][0].startswith(about)
    monkeypatch.setenv("RELAXDP_TOKEN", server.token)
    check = ["campaign", "check", made["id"], "--server", server.base]
    shown = CliRunner(env={"COLUMNS": "100"}).invoke(app, check)
    assert f"No fabricated reports were noticed. {about} devices" in shown.output, shown.output
    assert all(" ".join(each.split()) in " ".join(shown.output.split()) for each in quiet["limits"])

    for level in (0, 1):
        send(fakes, ["d"] * FAKES, level)
    loud = found()
    assert (loud["tested"], loud["untested"], loud["alarm"]) == (HONEST + FAKES, ALONE, True)
    assert [(each["value"], each["kind"]) for each in loud["pushed"]] == [("d", "repeated")]
    assert loud["made_up"]["low"] <= FAKES <= loud["made_up"]["high"]
    plain, corrected = (loud[name][3]["estimate"] for name in ("shares", "without"))
    assert abs(corrected) < plain / 3  # nobody honest has the value
    assert loud["p_value_ever"] < loud["false_alarms"] == 0.01

    shown = CliRunner(env={"COLUMNS": "100"}).invoke(app, check)
    assert "Fabricated reports were noticed" in shown.output, shown.output
    assert "sent again too often" in shown.output
    assert "cannot be tested: 300 of 2,300 here" in shown.output
    assert "Against many fabricating devices only invitations help." in shown.output

    for device in fakes:  # who withdraws takes the pairs along
        server.ask("POST", f"{path}/withdraw", {"device": device})
    assert found() == quiet


def test_a_campaign_with_one_level_cannot_be_tested(server: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    made = server.create(levels=[{"epsilon": "1"}])
    assert server.ask("GET", f"/v1/campaigns/{made['id']}/estimate", operator=True).json["integrity"] is None
    monkeypatch.setenv("RELAXDP_TOKEN", server.token)
    shown = CliRunner().invoke(app, ["campaign", "check", made["id"], "--server", server.base])
    assert "The campaign has one level" in shown.output


def test_the_metric_tells_of_campaigns_that_changed_and_of_no_others(tmp_path: Any) -> None:
    database = Database(f"sqlite:///{tmp_path}/service.db")
    database.prepare(SCHEMA)
    request = CampaignRequest("q", EncodingRequest("categorical", VALUES), [LevelRequest("0.5"), LevelRequest("2")])  # type: ignore[arg-type]
    with database.writing() as connection:
        campaign = campaigns.create(connection, Campaign(0, complete(request)), now=0.0)
        campaigns.step(connection, campaign, "relax", now=0.0)
        devices = [number.to_bytes(16) for number in range(400)]
        for level in (0, 1):
            ingest(connection, campaign, [Item(each, level, b"\1") for each in devices], now=0.0)
    counted: list[str] = []

    async def read(work: Any) -> Any:
        with database.reading() as connection:
            return work(connection)

    async def compute(work: Any) -> Any:
        return work()

    async def named(name: str) -> Campaign:
        assert name == campaign.id
        return campaign

    now = [0.0]
    labels = lambda outcome: SimpleNamespace(inc=lambda: counted.append(outcome))  # noqa: E731
    collector: Any = SimpleNamespace(
        read=read, compute=compute, campaign_named=named, clock=lambda: now[0], checks=SimpleNamespace(labels=labels)
    )
    watch = Watch(collector)
    for moment, expected in ((0.0, 1), (1.0, 1), (61.0, 1)):  # at once, too soon, and nothing new
        now[0] = moment
        asyncio.run(watch.look())
        assert counted == ["alarm"] * expected
    with database.writing() as connection:
        rng = np.random.default_rng(1)
        for level in (0, 1):
            more = [Item((1_000 + number).to_bytes(16), level, bytes([rng.integers(4)])) for number in range(5)]
            ingest(connection, campaign, more, now=0.0)
    now[0] = 122.0
    asyncio.run(watch.look())
    assert counted == ["alarm"] * 2
    database.close()
