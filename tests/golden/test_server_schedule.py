"""Campaigns that steer themselves: levels by the number of devices and by date, a stop rule, one publication."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.golden import recorded
from tests.golden.driver_server import Campaign, Question, Rejected, Service, draw_reports, serve_with_clock
from tests.golden.people import make_devices, pseudonyms

VALUES = ("no", "sometimes", "yes")
KEY = bytes(range(32))
DAYS = [f"2031-03-{day:02}T12:00:00+00:00" for day in range(1, 10)]


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with serve_with_clock(tmp_path_factory.mktemp("service"), DAYS[0]) as running:
        yield running


def send(campaign: Campaign, level: str, first: int, count: int) -> set[str]:
    """Send the reports of `count` devices, each with an answer that depends on its number, under one key."""
    (question,) = campaign.questions
    answers = {name: VALUES[place * place % 7 % 3] for place, name in enumerate(pseudonyms(count, first), first)}
    return set(campaign.send_reports(question.name, level, draw_reports(question, level, answers, key=KEY)))


def test_levels_that_open_by_the_number_of_devices(service: Service, tmp_path: Path) -> None:
    """The next level opens as soon as three devices have reported at the open one."""
    service.set_clock(DAYS[0])
    campaign = service.create_campaign("weekly", Question("weekly", ("0.5", "1", "2"), values=VALUES),
                                       devices_per_level=3)  # fmt: skip
    people = make_devices(tmp_path / "devices", {number: ("2", "0.5")[number % 4 == 3] for number in range(8)})
    open_levels = []
    for number, device in people.items():
        device.join(campaign)
        device.answer({"weekly": VALUES[number % 3]})
        device.report()
        open_levels.append(campaign.counts()["weekly"]["open_level"])
    for _ in range(2):
        for device in people.values():
            device.report()
            open_levels.append(campaign.counts()["weekly"]["open_level"])
    found = {
        "open_levels": open_levels,
        "reports": [device.sent()["weekly"] for device in people.values()],
        "counts": campaign.counts()["weekly"],
        "estimate": campaign.estimate()["weekly"],
    }
    recorded.check("campaign-levels-by-number", found)


def test_levels_that_open_by_date(service: Service, tmp_path: Path) -> None:
    """The campaign opens, relaxes and closes at its dates."""
    service.set_clock(DAYS[0])
    dated = Question("dated", ("0.5", "1", "2"), values=VALUES, level_dates=(None, DAYS[3], DAYS[5]))
    campaign = service.create_campaign("dated", dated, opens=DAYS[1], closes=DAYS[7])
    people = make_devices(tmp_path / "devices", dict.fromkeys(range(4), "3"))
    for number, device in people.items():
        device.join(campaign)
        device.answer({"dated": VALUES[number % 3]})
    found: dict[str, Any] = {"counts": {}}
    for place, day in enumerate(DAYS):
        service.set_clock(day)
        if place != 4:  # no device looks on this day
            for device in people.values():
                device.report()
        found["counts"][day[:10]] = campaign.counts()["dated"]
    found["reports"] = [device.sent()["dated"] for device in people.values()]
    found["costs"] = [device.costs() for device in people.values()]
    recorded.check("campaign-levels-by-date", found)


def test_a_stop_rule(service: Service) -> None:
    """The campaign ends by itself at the smallest level whose margin of error suffices, whatever the answers are."""
    service.set_clock(DAYS[0])
    campaign = service.create_campaign("precise", Question("precise", ("0.5", "1", "2", "4"), values=VALUES),
                                       margin=0.12, devices_per_level=300)  # fmt: skip
    found: dict[str, Any] = {"counts": [], "margins": []}
    for level in ("0.5", "1", "2", "4"):
        if campaign.counts()["precise"]["open_level"] == level:
            send(campaign, level, 0, 300)
        found["counts"].append(campaign.counts()["precise"])
        found["margins"].append(campaign.estimate()["precise"]["margin_of_error"])
    found["estimate"] = campaign.estimate()["precise"]
    assert send(campaign, "2", 5000, 1) == {"closed"}
    recorded.check("campaign-stop-rule", found)


def test_one_publication_at_the_end(service: Service) -> None:
    """Levels with enough devices are published once, with what it costs towards the public; nothing changes it."""
    service.set_clock(DAYS[0])
    kept = Question("kept", ("0.5", "1", "2"), values=VALUES, level_dates=(None, DAYS[1], DAYS[2]))
    campaign = service.create_campaign("kept", kept, closes=DAYS[4], publish_from=250, delta=1e-5)
    for level, day, count in (("0.5", DAYS[0], 900), ("1", DAYS[1], 600), ("2", DAYS[2], 500)):
        service.set_clock(day)
        assert send(campaign, level, 0, count) == {"new"}
    with pytest.raises(Rejected):
        campaign.relax()  # only dates and numbers of devices open the levels of a campaign that is published
    assert campaign.publication() is None
    before = campaign.counts()["kept"]
    service.set_clock(DAYS[4])
    published = campaign.wait_for_publication()
    assert send(campaign, "2", 700, 1) == {"closed"}
    campaign.reduce_to_counts()
    assert campaign.wait_for_publication() == published
    recorded.check("campaign-publication", {"counts": before, "published": published})


def test_a_campaign_that_its_operator_ends_is_not_published(service: Service) -> None:
    """An operator who sees the estimates could end it because of them. Those that end by themselves are published."""
    service.set_clock(DAYS[0])
    ended, first, second = (
        service.create_campaign(name, Question(name, ("2",), values=VALUES), closes=day, publish_from=100)
        for name, day in (("ended", DAYS[4]), ("first", DAYS[4]), ("second", DAYS[6]))
    )
    for campaign in (ended, first, second):
        assert send(campaign, "2", 0, 150) == {"new"}
    ended.finish()
    # When the second one is published, the service has gone through all that ended before.
    for campaign, day in ((first, DAYS[4]), (second, DAYS[6])):
        service.set_clock(day)
        assert campaign.wait_for_publication()["devices"] == 150
    assert ended.counts()["ended"]["state"] == "finished"
    assert ended.publication() is None
