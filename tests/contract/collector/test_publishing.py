"""What a campaign publishes: once, of closed groups that are large enough, and for good; on both stores."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.contract.collector.test_counts import ENCODINGS, kept
from tests.patience import until
from tests.servers.collectors import Answer, Running, running
from typer.testing import CliRunner

import relaxdp as rx
import relaxdp.market.schema
from relaxdp.cli.main import app
from relaxdp.collector import campaigns, publishing, states
from relaxdp.collector.campaign import Campaign
from relaxdp.collector.ingest import DIFFERS, SAME, Item, ingest
from relaxdp.collector.wire import CampaignRequest, LevelRequest, Publish
from relaxdp.server_errors import CampaignError, CampaignStateError, NotPublishedError
from relaxdp.service.wire import Target
from relaxdp.storage.database import Database

CLOSES, END = "2001-01-01T00:00:00Z", 978307200.0
LEVELS = [
    LevelRequest("0.5"),
    LevelRequest("1", opens="1971-01-01T00:00:00Z"),
    LevelRequest("2", opens="1972-01-01T00:00:00Z"),
]
OPEN = END - 1


@pytest.fixture(scope="module")
def folder(address: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the token of the service stays, which is told once."""
    return tmp_path_factory.mktemp("token")


def created(database: Database, encoding: str = "categorical", **more: Any) -> Campaign:
    asked: dict[str, Any] = {"closes": CLOSES, "publish": Publish(4), **more}
    request = CampaignRequest("q", ENCODINGS[encoding], LEVELS, **asked)
    with database.writing() as connection:
        return campaigns.create(connection, campaigns.prepared(request), now=0.0)


def device(number: int) -> bytes:
    return bytes([number + 1]) * 16


def send(database: Database, campaign: Campaign, reports: list[tuple[int, int, bytes]]) -> list[str]:
    items = [Item(device(number), level, report) for number, level, report in reports]
    with database.writing() as connection:
        ingest(connection, campaign, items, OPEN)
    return [item.outcome for item in items]


def end(database: Database, campaign: Campaign) -> None:
    with database.writing() as connection:
        assert campaigns.tick(connection, campaign, END).state == "finished"


def write(database: Database, campaign: Campaign) -> None:
    """Do what the duty does."""
    with database.writing() as connection:
        levels = publishing.kept_counts(connection, campaign)
        content = msgspec.json.encode(publishing.published(campaign, levels))
        publishing.write(connection, campaign, content)


def read(database: Database, campaign: Campaign) -> bytes:
    with database.reading() as connection:
        return publishing.read(connection, campaign)


def stage(database: Database, campaign: Campaign) -> str:
    with database.reading() as connection:
        return publishing.stage(connection, campaign, states.look(connection, campaign.number))


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_only_large_groups_and_only_their_counts_are_told(database: Database, encoding: str) -> None:
    """Level 0 has three devices, which are left out; the others tell the same whoever sent which report."""
    told = []
    for turn in (0, 3):
        campaign = created(database, encoding, id=f"{encoding}-{turn}")
        reports = [(number, 1 + number // 6, kept(encoding, number, number % 4)) for number in range(12)]
        if turn:  # the same reports by other devices of the same level
            moved = [6 * (number // 6) + (number + turn) % 6 for number in range(12)]
            reports = [(moved[number], level, report) for number, level, report in reports]
        few = [(20 + number, 0, kept(encoding, 0, number + turn)) for number in range(3)]
        assert set(send(database, campaign, few + reports)) == {"new"}
        assert stage(database, campaign) == "later"
        with pytest.raises(NotPublishedError):
            read(database, campaign)
        end(database, campaign)
        assert (stage(database, campaign), publishing_names(database, campaign)) == ("soon", True)
        write(database, campaign)
        assert (stage(database, campaign), publishing_names(database, campaign)) == ("done", False)
        told.append(read(database, campaign).replace(campaign.id.encode(), b"it"))
    assert told[0] == told[1]
    found = json.loads(told[0])
    assert [(group["level"]["epsilon"], group["devices"]) for group in found["groups"]] == [("1", 6), ("2", 6)]
    assert sum(each["reports"] for group in found["groups"] for each in group["counts"]) == found["devices"] == 12
    bounds = [
        rx.shuffling.compute_bound(epsilon, n=6, delta=1e-6, values=campaign.mechanism).epsilon
        for epsilon in ("1", "2")
    ]
    assert [group["public_epsilon"] for group in found["groups"]] == [str(bound) for bound in bounds]
    assert found["public_epsilon"] == str(max(bounds))
    assert (found["report_epsilon"], found["delta"]) == ("2", 1e-6)
    assert len(found["assumes"]) == 7


def publishing_names(database: Database, campaign: Campaign) -> bool:
    with database.reading() as connection:
        return campaign.id in publishing.unwritten(connection)


@pytest.mark.parametrize("devices", [0, 3])
def test_too_few_devices_publish_nothing(database: Database, devices: int) -> None:
    campaign = created(database)
    send(database, campaign, [(number, 2, b"\1") for number in range(devices)])
    end(database, campaign)
    assert stage(database, campaign) == "never"
    assert send(database, campaign, [(9, 2, b"\1")]) == ["campaign_closed"]
    end(database, campaign)
    with pytest.raises(NotPublishedError):
        read(database, campaign)


def test_nothing_that_happens_later_changes_what_is_published(database: Database) -> None:
    """Neither before it is written, nor after: withdrawals, reports again, another turn of the duty, reduction."""
    reports = [(number, 2, bytes([number % 3])) for number in range(6)]
    quiet, busy = created(database, id="quiet"), created(database, id="busy")
    for campaign in (quiet, busy):
        send(database, campaign, reports)
        end(database, campaign)
    write(database, quiet)

    def disturb(first: int) -> None:
        with database.writing() as connection:
            campaigns.withdraw(connection, busy, device(first), END)
        assert send(database, busy, [(4, 2, b"\1"), (5, 2, b"\1")]) == [SAME, DIFFERS]
        end(database, busy)

    disturb(0)
    write(database, busy)
    told = read(database, busy)
    assert told.replace(b'"busy"', b'"quiet"') == read(database, quiet)
    disturb(1)
    with database.writing() as connection:
        publishing.write(connection, busy, b"something else")
        campaigns.step(connection, busy, "reduce", END)
        campaigns.sweep(connection, busy, 100)
    assert read(database, busy) == told


def test_who_looks_at_reports_does_not_steer(database: Database) -> None:
    """Levels open by themselves, and a campaign that somebody ends publishes nothing."""
    with pytest.raises(CampaignError, match="ends by itself"):
        created(database, closes=None)
    campaign = created(database, id="steered")
    with database.writing() as connection:
        assert campaigns.step(connection, campaign, "pause", now=0.0).open_level == 0
        campaigns.step(connection, campaign, "resume", now=0.0)
        with pytest.raises(CampaignStateError, match="by dates and by numbers"):
            campaigns.step(connection, campaign, "relax", now=0.0)
    send(database, campaign, [(number, 2, b"\1") for number in range(6)])
    with database.writing() as connection:
        campaigns.step(connection, campaign, "finish", OPEN)
    end(database, campaign)
    assert stage(database, campaign) == "never"


def test_a_campaign_that_is_reduced_as_soon_as_it_has_ended_is_published(database: Database) -> None:
    campaign = created(database, id="reduced-at-once")
    send(database, campaign, [(number, 2, b"\1") for number in range(6)])
    with database.writing() as connection:
        assert campaigns.step(connection, campaign, "reduce", END).reduced
    assert stage(database, campaign) == "soon"


def test_the_last_report_that_a_target_needs_is_published_with_the_others(database: Database) -> None:
    campaign = created(database, id="target", closes=None, target=Target(0.4), publish=Publish(50))
    send(database, campaign, [(number, 2, bytes([number % 3])) for number in range(200)])
    with database.reading() as connection:
        assert states.look(connection, campaign.number).state == "finished"
    write(database, campaign)
    assert json.loads(read(database, campaign))["devices"] == 200


def published(server: Running, name: str) -> Answer:
    """Return what is published, as soon as it is."""
    return until(
        lambda: [found for found in [server.ask("GET", f"/v1/campaigns/{name}/published")] if found.status == 200]
    )[0]


def test_a_server_publishes_what_was_closed_before_it_began(
    address: str, database: Database, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A service that ended the campaign dies before publishing: the counts are kept, and the next service publishes."""
    campaign = created(database, publish=Publish(100, 1e-5), id="gone")
    send(database, campaign, [(number, 2, bytes([number % 3])) for number in range(200)])
    end(database, campaign)
    waiting = created(database, closes="2999-01-01T00:00:00Z", publish=Publish(2_000), id="waiting")
    with running(address, folder) as server:
        first = published(server, "gone")
        assert server.ask("GET", "/v1/campaigns/gone/published", if_none_match=first.headers["etag"]).status == 304
        assert (first.json["devices"], first.json["delta"]) == (200, 1e-5)
        assert first.json["public_epsilon"] == str(rx.shuffling.compute_bound(2, n=200, delta=1e-5, values=3).epsilon)
        assert [row["value"] for row in first.json["rows"]] == ["a", "b", "c"]
        page = server.ask("GET", "/published/gone")
        assert page.status == 200
        assert first.json["public_epsilon"] in page.body.decode()
        assert server.ask("GET", "/published/gone", if_none_match=page.headers["etag"]).status == 304
        assert server.ask("GET", "/v1/campaigns/gone").json["publish"] == {"least": 100, "delta": 1e-5}
        for path in ("/v1/campaigns/waiting/published", "/published/waiting"):
            early = server.ask("GET", path)
            assert (early.status, early.error) == (404, "not_published")
        monkeypatch.setenv("RELAXDP_TOKEN", server.token)
        words = ["published at http", "at least 2,000 devices"]
        for name, said in zip(["gone", waiting.id], words, strict=True):
            shown = CliRunner(env={"COLUMNS": "100"}).invoke(app, ["campaign", "show", name, "--server", server.base])
            assert said in shown.output, shown.output


@pytest.mark.long
def test_a_server_that_is_killed_tells_the_same_again(address: str, database: Database, folder: Path) -> None:
    with running(address, folder) as server:
        made = server.create(levels=[{"epsilon": "2"}], closes=None, target={"half_width": 0.4}, publish={"least": 100})
        assert made["published"] == "later"
        names = [os.urandom(16).hex() for _ in range(400)]
        sent = [
            {"device": name, "level": made["levels"][0], "report": ["no", "yes"][number % 2]}
            for number, name in enumerate(names)
        ]
        path = f"/v1/campaigns/{made['id']}"
        assert server.ask("POST", f"{path}/reports/batch", {"reports": sent}).status == 200
        server.kill()  # it ended with the last report, and was published or not
        server.start()
        first = published(server, made["id"])
        page = server.ask("GET", f"/published/{made['id']}")
        assert server.ask("POST", f"{path}/withdraw", {"device": names[0]}).status == 200
        server.kill()
        server.start()
        assert published(server, made["id"]).body == first.body
        assert server.ask("GET", f"/published/{made['id']}").body == page.body
        status = server.ask("GET", f"{path}/status", operator=True).json
        assert (status["published"], status["devices"]["total"]) == ("done", 399)
