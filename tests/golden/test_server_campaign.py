"""Campaigns with Python devices: levels, limits, several questions, invitations, withdrawal, fabricated reports."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.golden import recorded
from tests.golden.driver_server import (
    Device,
    Question,
    Rejected,
    Service,
    draw_reports,
    estimate_files,
    read_reports,
    serve,
)
from tests.golden.people import LIMITS, at_once, make_devices, pseudonyms

LEVELS = ("0.5", "1", "2")
COMMUTE = Question("commute", LEVELS, values=("car", "bus", "bicycle", "on foot"))
DIET = Question("diet", LEVELS, values=("meat", "vegetarian", "vegan"))
LUNCH = Question("lunch", LEVELS, values=("canteen", "home"))
SPORT = Question("sport", ("1",), values=("no", "yes"))
AGE = Question("age", ("0.5", "1.5"), range=(0, 120), mechanism="mean")


@pytest.fixture(scope="module", params=["sqlite", pytest.param("postgres", marks=pytest.mark.long)])
def service(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """A service on each database. The recorded values are the same on both."""
    folder = tmp_path_factory.mktemp("service")
    if request.param == "sqlite":
        with serve(folder) as running:
            yield running
        return
    postgres = request.getfixturevalue("postgres")
    name = postgres.database()
    with serve(folder, database=postgres.url(name)) as running:
        yield running
    postgres.give_back(name)


def test_a_campaign_with_individuals_at_different_levels(service: Service, tmp_path: Path) -> None:
    """A device reports at every level that opens, up to its limit. It counts at its highest level."""
    campaign = service.create_campaign("commute", COMMUTE)
    people = make_devices(tmp_path / "devices", {number: LIMITS[number % 5] for number in range(30)})
    answers = ("car", "bus", "bicycle", "on foot")
    found: dict[str, Any] = {"devices_needed": campaign.devices_needed()["commute"]}
    found |= {"joined_up_to": {}, "counts": [], "estimates": []}

    def begin(number: int) -> None:
        joined = people[number].join(campaign, limit="1" if number % 7 == 0 else None)
        found["joined_up_to"][number] = joined["commute"]
        people[number].answer({"commute": answers[number * number % 7 % 4]})

    at_once(begin, people)
    for level in LEVELS:
        at_once(Device.report, people.values())
        found["counts"].append(campaign.counts()["commute"])
        found["estimates"].append(campaign.estimate()["commute"])
        if level != LEVELS[-1]:
            campaign.relax()
    found["reports"] = [list(device.sent()["commute"].values()) for device in people.values()]
    found["costs"] = [device.costs() for device in people.values()]
    found["joined_up_to"] = dict(sorted(found["joined_up_to"].items()))

    # 500 devices more make the confidence intervals narrow.
    crowd = {name: answers[place % 3] for place, name in enumerate(pseudonyms(500))}
    histories: dict[str, list[str]] = {}
    for level, count in (("0.5", 500), ("1", 400), ("2", 250)):
        reports = draw_reports(COMMUTE, level, dict(list(crowd.items())[:count]), key=bytes(range(32)))
        assert set(campaign.send_reports("commute", level, reports)) == {"new"}
        for name, report in reports.items():
            histories.setdefault(name, []).append(report)
    found["counts"].append(campaign.counts()["commute"])
    found["estimates"].append(campaign.estimate()["commute"])
    found["options"] = {
        "by_precision": campaign.estimate(method="precision")["commute"]["all_devices"],
        "about_the_population": campaign.estimate(about="population", confidence_level=0.9)["commute"]["all_devices"],
        "simultaneous": campaign.estimate(simultaneous="true")["commute"]["all_devices"],
        "the_two_largest": campaign.estimate(largest=2)["commute"]["all_devices"],
    }

    # The exported files hold the same reports, and a device can be followed over its levels.
    files = campaign.export(tmp_path / "export")["commute"]
    exported = [read_reports(file) for file in files]
    followed = {name: [each[name] for each in exported if name in each] for each in exported for name in each}
    assert sorted(followed.values()) == sorted([*found["reports"], *histories.values()])
    assert [len(each) for each in exported] == list(found["counts"][-1]["reports"].values())
    agreed = estimate_files(files)
    found["estimate_of_exported_files"] = agreed
    for row, expected in zip(agreed["rows"], found["estimates"][-1]["all_devices"], strict=True):
        assert row == [expected[0], *(pytest.approx(number, abs=1e-12) for number in expected[1:])]

    campaign.finish()
    at_once(Device.report, people.values())
    assert campaign.counts()["commute"] == {**found["counts"][-1], "state": "finished"}
    assert campaign.estimate()["commute"] == found["estimates"][-1]
    with pytest.raises(Rejected):
        campaign.relax()
    recorded.check("campaign-one-question", found)


def test_several_questions_with_a_crosstab(service: Service, tmp_path: Path) -> None:
    """One limit is divided among the questions before the first answer. Only declared pairs are counted together."""
    campaign = service.create_campaign("canteen", DIET, LUNCH, SPORT, AGE, crosstabs=[("diet", "lunch")])
    people = make_devices(tmp_path / "devices", dict.fromkeys(range(16), "10"))
    limits = ("0.9", "2", "3.5", "6.5")
    found: dict[str, Any] = {"given": {}, "counts": [], "estimates": [], "crosstabs": []}

    def begin(number: int) -> None:
        shown = people[number].preview(campaign, limit=limits[number % 4])
        given = found["given"][number] = people[number].join(campaign, limit=limits[number % 4])
        assert given == shown
        answers = {
            "diet": ("meat", "meat", "vegetarian", "vegan")[number % 4],
            "lunch": ("canteen", "home")[number // 3 % 2],
            "sport": ("no", "yes")[number // 5 % 2],
            "age": 20 + 2 * number,
        }
        people[number].answer({name: answer for name, answer in answers.items() if name in given})

    at_once(begin, people)
    for _ in LEVELS:
        at_once(Device.report, people.values())
        found["counts"].append(campaign.counts())
        found["estimates"].append(campaign.estimate())
        found["crosstabs"].append(campaign.crosstabs())
        if campaign.counts()["diet"]["open_level"] != "2":
            campaign.relax()
    found["reports"] = [device.sent() for device in people.values()]
    found["costs"] = [device.costs() for device in people.values()]
    found["given"] = dict(sorted(found["given"].items()))

    # 600 devices more make the confidence intervals narrow.
    crowd = pseudonyms(600)
    for question, answers in ((DIET, ("meat", "vegan", "vegetarian")), (LUNCH, ("home", "home", "canteen"))):
        reports = draw_reports(question, "2", {name: answers[place % 3] for place, name in enumerate(crowd)},
                               key=question.name.encode().ljust(32))  # fmt: skip
        assert set(campaign.send_reports(question.name, "2", reports)) == {"new"}
    found["crosstabs"].append(campaign.crosstabs())
    found["simultaneous_crosstab"] = campaign.crosstabs(simultaneous="true", confidence_level=0.9)

    # A device is the same one in the questions of the crosstab, and cannot be found again in the others.
    files = campaign.export(tmp_path / "export")
    devices = {name: set(read_reports(files[name][0])) for name in files}
    assert devices["lunch"] < devices["diet"]  # the lowest limit has room for one question
    assert not devices["diet"] & (devices["sport"] | devices["age"])
    assert not devices["sport"] & devices["age"]

    people[2].withdraw()
    found["crosstabs_after_a_withdrawal"] = campaign.crosstabs()
    campaign.finish()
    campaign.reduce_to_counts()
    assert campaign.crosstabs() == found["crosstabs_after_a_withdrawal"]
    recorded.check("campaign-several-questions", found)


def test_a_plan_before_the_campaign(service: Service) -> None:
    """The best mechanism for few and for many values, and how many devices a margin of error takes at each level."""
    few, many = (
        Question("planned", ("0.5", "1", "2"), values=[f"value {number}" for number in range(count)], mechanism="best")
        for count in (3, 60)
    )
    number = Question("planned", ("0.5", "1", "2"), range=(0, 120), mechanism="best")
    found = {
        "few_values": service.plan_campaign(few, devices=5000, margin=0.04),
        "many_values": service.plan_campaign(many, devices=5000, margin=0.04),
        "a_number": service.plan_campaign(number, devices=5000, margin=2.5),
    }
    recorded.check("campaign-plan", found)


def test_every_mechanism(service: Service, tmp_path: Path) -> None:
    """Frequencies by four mechanisms, a mean, a distribution with quartiles, and words by RAPPOR."""
    cities = tuple(f"city {number}" for number in range(12))
    questions = [
        Question("city-oue", ("1", "3"), values=cities, mechanism="OUE"),
        Question("city-sue", ("1", "3"), values=cities, mechanism="SUE"),
        Question("city-olh", ("1", "3"), values=cities, mechanism="OLH", options={"buckets": 4}),
        Question("years", ("1", "3"), range=(0, 120), mechanism="mean"),
        Question("minutes", ("1", "3"), range=(0, 90), mechanism="square wave", options={"bins": 24, "window": 8}),
        Question(
            "word", ("1", "3"), words=("tea", "coffee", "water"), mechanism="RAPPOR",
            options={"bits": 32, "hashes": 2, "cohorts": 4},
        ),
    ]  # fmt: skip
    people = make_devices(tmp_path / "devices", dict.fromkeys(range(12), "20"))
    campaign = service.create_campaign("mechanisms", *questions)

    def begin(number: int) -> None:
        people[number].join(campaign)
        place = number * number % 7
        answers = dict.fromkeys(("city-oue", "city-sue", "city-olh"), cities[place])
        numbers = {"years": 20 + 3 * number, "minutes": 2.5 * place + 10}
        people[number].answer({**answers, **numbers, "word": ("tea", "coffee", "juice")[number % 3]})
        people[number].report()

    at_once(begin, people)
    campaign.relax()
    at_once(Device.report, people.values())
    recorded.check(
        "campaign-mechanisms",
        {
            "reports": [device.sent() for device in people.values()],
            "estimates": campaign.estimate(quantiles="0.25,0.5,0.75"),
            "counts": campaign.counts(),
        },
    )


def test_invitations_pause_withdrawal_and_reduction(service: Service, tmp_path: Path) -> None:
    """Each invitation serves one device. A withdrawn device takes its reports along; counts outlive the reports."""
    question = Question("smoker", ("1", "2"), values=("no", "yes"))
    campaign = service.create_campaign("smoker", question, invitations=True)
    invitations = campaign.invite(5)
    people = make_devices(tmp_path / "devices", dict.fromkeys(range(7), "3"))
    for number, device in people.items():
        device.join(campaign, invitation=[*invitations, "unknown", invitations[0]][number])
        device.answer({"smoker": "yes" if number % 2 else "no"})
    for number in (5, 6):  # an unknown invitation, and one that is used below
        if number == 6:
            people[0].report()
        with pytest.raises(Rejected):
            people[number].report()
    for number in (1, 2):
        people[number].report()
    found: dict[str, Any] = {"three_devices": campaign.counts()["smoker"]}

    campaign.pause()
    for number in (3, 4):
        people[number].report()
    found["paused"] = campaign.counts()["smoker"]
    assert [people[number].sent()["smoker"] for number in (3, 4)] == [{}, {}]
    campaign.resume()
    campaign.relax()
    for number in range(5):
        people[number].report()
    found["five_devices"] = campaign.counts()["smoker"]
    found["estimate_of_five"] = campaign.estimate()["smoker"]
    people[1].withdraw()
    people[3].withdraw()
    found["after_withdrawal"] = campaign.counts()["smoker"]
    found["estimate_after_withdrawal"] = campaign.estimate()["smoker"]
    found["costs"] = [people[number].costs() for number in range(5)]
    found["reports"] = [people[number].sent()["smoker"] for number in range(5)]
    with pytest.raises(Rejected):
        campaign.reduce_to_counts()

    campaign.finish()
    campaign.reduce_to_counts()
    assert campaign.estimate()["smoker"] == found["estimate_after_withdrawal"]
    assert campaign.counts()["smoker"] == {**found["after_withdrawal"], "state": "finished"}
    with pytest.raises(Rejected):
        campaign.export(tmp_path / "export")
    with pytest.raises(Rejected):
        people[0].withdraw()
    recorded.check("campaign-invitations-withdrawal-reduction", found)


def test_one_limit_for_all_campaigns(service: Service, tmp_path: Path) -> None:
    """Campaigns add up under a device's limit, which never falls below what was spent. Nothing comes back."""
    campaigns = [
        service.create_campaign(name, Question(name, ("0.5", "1", "2"), values=("no", "yes")))
        for name in ("weekly", "dated", "precise")
    ]
    (device,) = make_devices(tmp_path / "devices", {100: "2.5"}).values()
    for campaign in campaigns[:2]:
        device.join(campaign)
        device.answer({campaign.name: "yes"})
        campaign.relax()
    device.report()  # both at 1
    found: dict[str, Any] = {"two_campaigns": [device.sent(), device.costs()]}
    campaigns[0].relax()
    campaigns[1].relax()
    device.report()  # 0.5 is left: neither can go on
    assert [device.sent(), device.costs()] == found["two_campaigns"]
    with pytest.raises(Rejected):
        device.change_limit("1.9")
    device.change_limit("3")
    device.report()  # the first one goes on to 2
    found["higher_limit"] = [device.sent(), device.costs()]
    device.join(campaigns[2])
    device.answer({"precise": "no"})
    with pytest.raises(Rejected):
        device.report()
    other = make_devices(tmp_path / "devices", {101: "2"})[101]
    other.join(campaigns[2])
    other.answer({"precise": "no"})
    other.report()
    other.forget()  # the service keeps the report, and no other one follows
    campaigns[2].relax()
    other.report()
    found["forgotten"] = [other.sent(), other.costs()]
    device.withdraw()
    found["after_withdrawal"] = [device.costs(), [campaign.counts()[campaign.name] for campaign in campaigns]]
    recorded.check("device-limit", found)


def test_fabricated_reports(service: Service) -> None:
    """Devices that always send the wanted value are noticed, and the estimate without them is given."""
    question = Question("browser", ("0.5", "2"), values=("a", "b", "c", "d"))
    campaign = service.create_campaign("browser", question)
    assert question.values is not None
    honest = {name: question.values[place % 3] for place, name in enumerate(pseudonyms(900))}
    fabricated = dict.fromkeys(pseudonyms(150, first=1000), "d")
    once = pseudonyms(900)[800:]

    def send(level: str, fakes: bool) -> None:
        reports = draw_reports(question, level, honest, key=bytes(range(32)))
        own = {name: report for name, report in reports.items() if level == "0.5" or name not in once}
        assert set(campaign.send_reports("browser", level, fabricated if fakes else own)) == {"new"}

    send("0.5", fakes=False)
    found = {"one_level": campaign.check_reports()}
    campaign.relax()
    send("2", fakes=False)
    found["honest"] = campaign.check_reports()
    send("0.5", fakes=True)
    send("2", fakes=True)
    found["fabricated"] = campaign.check_reports()
    found["estimate"] = campaign.estimate()["browser"]
    recorded.check("campaign-fabricated-reports", found)
