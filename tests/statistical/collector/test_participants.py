"""Ten thousand simulated people at a real server: what was planned is what happens."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.servers.collectors import Running, running

import relaxdp as rx
from relaxdp.device.address import CampaignAddress, Server
from relaxdp.device.client import Client
from relaxdp.device.participation import ask_offer
from relaxdp.device.simulate import Fleet

PEOPLE, LEVELS, SUGGESTED = 10_000, ["0.5", "1", "2"], "2"
VALUES = ["on foot", "bicycle", "bus", "train", "car"]
ENCODING = {"name": "categorical", "values": VALUES}


def answered(server: Running, name: str) -> dict[str, Any]:
    """Let everybody report at every level; return the estimate."""
    client, address = Client(attempts=3), CampaignAddress(Server.parse(server.base), name)
    fleet = Fleet(PEOPLE, len(VALUES), seed=7)
    while True:
        offer = ask_offer(client, address)
        if offer.state != "open":
            break
        level = offer.open[-1]
        reports = fleet.reports(offer, level)
        for start in range(0, len(reports), 1000):
            body = {"reports": reports[start : start + 1000]}
            assert server.ask("POST", f"/v1/campaigns/{name}/reports/batch", body).status == 200
        if level == offer.levels[-1]:
            break
        assert server.ask("POST", f"/v1/campaigns/{name}/relax", operator=True).status == 200
    found: dict[str, Any] = server.ask("GET", f"/v1/campaigns/{name}/estimate", operator=True).json
    return found


def widest(found: dict[str, Any]) -> float:
    return max(float(row["high"] - row["low"]) / 2 for row in found["pooled"])


@pytest.mark.long
def test_what_was_planned_is_what_happens(tmp_path: Path) -> None:
    levels, common = [{"epsilon": each} for each in LEVELS], max(Fleet(PEOPLE, len(VALUES), seed=7).shares(len(VALUES)))
    told: dict[str, Any] = {"values": len(VALUES), "n": PEOPLE, "epsilon": SUGGESTED, "mechanism": "categorical"}
    planned = rx.plan(**told).margin
    assert planned is not None
    with running(f"sqlite:///{tmp_path}/db", tmp_path) as server:
        server.create(id="all", encoding=ENCODING, levels=levels, suggested=SUGGESTED, target={"half_width": planned})
        found = answered(server, "all")
        # Whatever the shares are, so it is no wider; and by itself it ended, because that was reached.
        assert widest(found) <= planned
        assert server.ask("GET", "/v1/campaigns/all/status", operator=True).json["state"] == "finished"
        assert widest(found) == pytest.approx(rx.plan(**told, share=common).margin, rel=0.1)
