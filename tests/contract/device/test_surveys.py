"""Surveys of several questions, for every kind of device: one limit, divided before any answer, kept to for good."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from tests.contract.device.device_clients import CLIENTS, DeviceClient
from tests.servers.fake_collector import FakeCollector, Reply, Request, fake_collector

NAMES = ["diet", "lunch", "age", "sport"]


@pytest.fixture
def server() -> Iterator[FakeCollector]:
    with fake_collector() as collector:
        for name in NAMES:
            collector.open(name, question=f"What about {name}?")
        yield collector


@pytest.fixture(params=sorted(CLIENTS))
def client(request: pytest.FixtureRequest, tmp_path: Path) -> DeviceClient:
    made: DeviceClient = CLIENTS[request.param]()
    assert made.do({"do": "open", "file": str(tmp_path / "device"), "limit": "6"}) == {}
    return made


def join(client: DeviceClient, survey: str | None, **options: Any) -> Any:
    found = client.do({"do": "join_survey", "survey": survey, **options})
    assert "error" not in found, found
    return found


def arrived(server: FakeCollector) -> dict[str, Decimal]:
    """What each question cost, from the bytes that arrived."""
    cost: dict[str, Decimal] = {}
    for request in server.requests:
        if request.path.endswith("/reports"):
            name, epsilon = request.path.split("/")[3], Decimal(request.json["level"]["epsilon"])
            cost[name] = max(cost.get(name, Decimal(0)), epsilon)
    return cost


def answer_all(client: DeviceClient, joined: Any) -> None:
    for address in joined["questions"]:
        assert client.do({"do": "answer", "campaign": address, "value": "fruit"}) == {}


def report_all(client: DeviceClient, joined: Any) -> list[str]:
    return [client.do({"do": "report", "campaign": address}).get("error", "") for address in joined["questions"]]


def test_the_limit_is_divided_level_by_level(server: FakeCollector, client: DeviceClient) -> None:
    survey = server.survey("canteen", NAMES[:3])
    for upto, given, left_out in (
        ("0.4", {}, NAMES[:3]),
        ("1.2", {"diet": "0.5", "lunch": "0.5"}, ["age"]),
        ("2", {"diet": "1", "lunch": "0.5", "age": "0.5"}, []),
        ("3.7", {"diet": "1", "lunch": "1", "age": "1"}, []),
        (None, {"diet": "2", "lunch": "2", "age": "2"}, []),
    ):
        found = client.do({"do": "look", "survey": survey, "upto": upto})
        assert found == {"given": given, "left_out": left_out}
    assert client.do({"do": "balance"})["spent"] == "0"
    assert not any(request.path.endswith("/reports") for request in server.requests)


def test_a_survey_stays_within_its_limit_whatever_is_opened(server: FakeCollector, client: DeviceClient) -> None:
    joined = join(client, server.survey("canteen", NAMES[:3]), upto="2.2")
    assert joined["limit"] == "2.2"
    assert list(joined["questions"].values()) == ["1", "0.5", "0.5"]
    answer_all(client, joined)
    server.campaigns["age"]["open_level"] = 2  # the one that opens first gets no more than its share
    assert report_all(client, joined) == ["", "", ""]
    for name in NAMES:
        server.campaigns[name]["open_level"] = 2
    assert report_all(client, joined) == ["", "", ""]
    assert arrived(server) == {"diet": 1, "lunch": Decimal("0.5"), "age": Decimal("0.5")}
    assert client.do({"do": "balance"}) == {"limit": "6", "spent": "2", "left": "4"}


def test_what_does_not_fit_is_not_asked_and_stays_out(server: FakeCollector, client: DeviceClient) -> None:
    survey = server.survey("canteen", NAMES[:3])
    joined = join(client, survey, upto="1")
    assert joined["left_out"] == ["What about age?"]
    assert [address.rpartition("/")[2] for address in joined["questions"]] == ["diet", "lunch"]
    answer_all(client, joined)
    assert report_all(client, joined) == ["", ""]
    assert join(client, survey) == joined == join(client, survey, upto="1")
    more = client.do({"do": "join_survey", "survey": survey, "upto": "3"})
    assert more["error"] == "consent_error"
    assert arrived(server).keys() == {"diet", "lunch"}


def test_a_survey_of_which_nothing_fits_is_refused(server: FakeCollector, client: DeviceClient) -> None:
    survey = server.survey("canteen", NAMES)
    assert client.do({"do": "join_survey", "survey": survey, "upto": "0.4"})["error"] == "budget_exceeded_error"
    assert join(client, survey)["left_out"] == []  # nothing had been joined


def test_the_devices_own_limit_holds_over_surveys_and_campaigns(server: FakeCollector, client: DeviceClient) -> None:
    address = server.address("sport")
    assert client.do({"do": "join", "campaign": address, "upto": None})["consent"] == "2"
    server.campaigns["sport"]["open_level"] = 2
    assert client.do({"do": "answer", "campaign": address, "value": "fruit"}) == {}
    assert client.do({"do": "report", "campaign": address})["sent"]["epsilon"] == "2"
    joined = join(client, server.survey("canteen", NAMES[:3]))
    assert joined["limit"] == "6"
    assert list(joined["questions"].values()) == ["2", "1", "1"]  # 4 were left
    assert client.do({"do": "change_limit", "limit": "3"}) == {}
    answer_all(client, joined)
    for name in NAMES:
        server.campaigns[name]["open_level"] = 2
    assert report_all(client, joined) == ["", "budget_exceeded_error", "budget_exceeded_error"]
    assert sum(arrived(server).values()) == 3


def test_a_question_that_was_joined_by_itself_counts(server: FakeCollector, client: DeviceClient) -> None:
    address, survey = server.address("lunch"), server.survey("canteen", NAMES[:3], ("diet", "lunch"))
    assert client.do({"do": "join", "campaign": address, "upto": "1"})["consent"] == "1"
    assert client.do({"do": "join_survey", "survey": survey, "upto": "0.6"})["error"] == "consent_error"
    joined = join(client, survey, upto="2")
    assert {each.rpartition("/")[2]: most for each, most in joined["questions"].items()} == {
        "diet": "0.5", "lunch": "1", "age": "0.5",
    }  # fmt: skip
    # It was joined by itself, so it stays apart.
    devices = {name: client.do({"do": "secrets", "campaign": server.address(name)})["device"] for name in NAMES[:3]}
    assert len(set(devices.values())) == 3


def test_a_question_that_is_another_than_was_joined_by_itself(server: FakeCollector, client: DeviceClient) -> None:
    """The survey would be joined with an answer that no longer fits: nothing of it is."""
    assert "error" not in client.do({"do": "join", "campaign": server.address("lunch"), "upto": "1"})
    server.open("lunch", {"name": "categorical", "values": ["home", "canteen"]}, question="What about lunch?")
    survey = server.survey("canteen", NAMES[:2])
    assert client.do({"do": "join_survey", "survey": survey, "upto": "2"})["error"] == "values_changed_error"
    server.open("lunch", question="What about lunch?")
    assert (
        join(client, server.survey("canteen", NAMES[:2]), upto="1.5")["limit"] == "1.5"
    )  # as if it had not been tried


def test_one_pseudonym_where_questions_are_counted_together_and_nowhere_else(
    server: FakeCollector, client: DeviceClient
) -> None:
    """Directly, or by way of a third; a key of its own for each in any case."""
    survey = server.survey("canteen", NAMES, ("diet", "lunch"), ("sport", "lunch"))
    joined = join(client, survey, upto="5")
    assert joined["cross"] == [["diet", "lunch"], ["sport", "lunch"]]
    secrets = {name: client.do({"do": "secrets", "campaign": server.address(name)}) for name in NAMES}
    devices = {name: each["device"] for name, each in secrets.items()}
    assert devices["diet"] == devices["lunch"] == devices["sport"] != devices["age"]
    assert len({each["key"] for each in secrets.values()}) == 4
    again = client.do({"do": "join_survey", "survey": server.survey("another", NAMES, ("diet", "age"))})
    assert again["error"] == "consent_error"  # they are joined already, and stay apart
    assert client.do({"do": "secrets", "campaign": server.address("age")})["device"] == devices["age"]


def test_what_a_person_has_seen_is_what_is_joined(server: FakeCollector, client: DeviceClient) -> None:
    """A server that counts more together a moment later learns nothing more by it."""
    seen = server.survey("canteen", NAMES[:3], ("diet", "lunch"))
    client.do({"do": "look", "survey": seen, "upto": "3"})
    server.survey("canteen", NAMES, ("diet", "lunch"), ("lunch", "age"))
    joined = join(client, None, upto="3")
    assert (len(joined["questions"]), joined["cross"]) == (3, [["diet", "lunch"]])
    devices = {name: client.do({"do": "secrets", "campaign": server.address(name)})["device"] for name in NAMES[:3]}
    assert devices["diet"] == devices["lunch"] != devices["age"]


def test_a_survey_whose_questions_were_all_replaced_gets_no_second_limit(
    server: FakeCollector, client: DeviceClient
) -> None:
    """What was agreed to was for the survey: a server that asks something else under its name gets nothing more."""
    joined = join(client, server.survey("canteen", NAMES[:2]), upto="1")
    answer_all(client, joined)
    assert report_all(client, joined) == ["", ""]
    survey = server.survey("canteen", NAMES[2:])
    assert client.do({"do": "look", "survey": survey, "upto": "1"}) == {"given": {}, "left_out": NAMES[2:]}
    for upto, questions in (("1", 0), (None, 0)):
        again = join(client, survey, upto=upto)
        assert (again["limit"], len(again["questions"])) == ("1", questions)
    assert client.do({"do": "join_survey", "survey": survey, "upto": "3"})["error"] == "consent_error"
    assert sum(arrived(server).values()) == 1


@pytest.mark.parametrize("asked", [NAMES, NAMES[2:]], ids=["added", "replaced"])
def test_a_survey_of_questions_that_were_joined_by_themselves_gets_no_second_limit(
    server: FakeCollector, client: DeviceClient, asked: list[str]
) -> None:
    """Nothing was new in it when it was joined, and what was agreed to is remembered all the same."""
    for name in NAMES[:2]:
        assert client.do({"do": "join", "campaign": server.address(name), "upto": "0.5"})["consent"] == "0.5"
    joined = join(client, server.survey("canteen", NAMES[:2]), upto="1")
    assert [*joined["questions"].values()] == ["0.5", "0.5"]
    survey = server.survey("canteen", asked)
    for upto in ("1", None):
        again = join(client, survey, upto=upto)
        assert (again["limit"], [each in again["questions"] for each in map(server.address, NAMES[2:])]) == (
            "1",
            [False, False],
        )
    assert client.do({"do": "join_survey", "survey": survey, "upto": "3"})["error"] == "consent_error"


def test_a_question_belongs_to_one_survey(server: FakeCollector, client: DeviceClient) -> None:
    """A second survey of questions that are joined already would have nowhere to keep its limit."""
    joined = join(client, server.survey("canteen", NAMES[:2]), upto="1")
    for asked in (NAMES[:2], NAMES[:3]):
        other = server.survey("other", asked)
        assert client.do({"do": "join_survey", "survey": other})["error"] == "consent_error"
        assert client.do({"do": "look", "survey": other, "upto": None})["error"] == "consent_error"
    assert join(client, server.survey("canteen", NAMES[:2])) == joined


def test_an_invitation_goes_to_all_questions_and_may_come_later(server: FakeCollector, client: DeviceClient) -> None:
    for name in NAMES[:2]:
        server.campaigns[name]["needs_invitation"] = True
    survey = server.survey("canteen", NAMES[:2])
    joined = join(client, survey)
    answer_all(client, joined)
    assert report_all(client, joined) == ["participation_error", "participation_error"]
    server.invitations["welcome"] = None
    assert join(client, survey, invitation="welcome") == joined
    report_all(client, joined)
    sent = [request.json for request in server.requests if request.path.endswith("/reports")]
    assert [each["invitation"] for each in sent] == ["welcome", "welcome"]
    assert client.do({"do": "join_survey", "survey": survey, "invitation": ""})["error"] == "participation_error"


@pytest.mark.parametrize(
    "changes",
    [
        {"id": "other"},
        {"questions": []},
        {"questions": None},
        {"questions": [{}]},
        {"questions": "twice"},
        {"questions": "broken"},
        {"cross": None},
        {"cross": [["diet"]]},
        {"cross": [["diet", "diet"]]},
        {"cross": [["diet", "sport"]]},
        {"cross": [{"0": "diet", "1": "lunch", "length": 2}]},
    ],
)
def test_a_description_that_cannot_be_relied_on(
    server: FakeCollector, client: DeviceClient, changes: dict[str, Any]
) -> None:
    survey = server.survey("canteen", NAMES[:2])
    first, second = (server.campaigns[name] for name in NAMES[:2])
    changed = {
        "twice": [first, first],
        "broken": [first, {**second, "levels": [{"epsilon": "1", "threshold": "18446744073709551615"}]}],
    }

    def instead(request: Request) -> Reply | None:
        whole: dict[str, Any] = {"id": "canteen", "questions": [first, second], "cross": [], **changes}
        if isinstance(whole["questions"], str):
            whole["questions"] = changed[whole["questions"]]
        return Reply(200, whole)

    server.instead = instead
    refused = client.do({"do": "join_survey", "survey": survey})
    assert refused["error"] in ("offer_error", "level_error")
    assert "Nothing was" in refused["message"]
    server.instead = None
    assert len(join(client, survey)["questions"]) == 2  # nothing had been joined


@pytest.mark.parametrize("address", ["", "https://collect.example/v1/surveys/", "https://x/v1/campaigns/diet", "a b"])
def test_addresses_that_are_none(client: DeviceClient, address: str) -> None:
    assert client.do({"do": "join_survey", "survey": address})["error"] == "address_error"


def test_plain_http_to_elsewhere_is_refused(client: DeviceClient) -> None:
    found = client.do({"do": "join_survey", "survey": "http://collect.example/v1/surveys/canteen"})
    assert found["error"] == "address_error"
