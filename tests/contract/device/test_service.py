"""Devices and the commands of an operator against the real service, over HTTP on this machine."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from scipy.stats import norm
from tests.contract.device.test_devices import ENCODINGS
from tests.servers.fake_collector import Reply, Request, fake_collector
from typer.testing import CliRunner, Result

from relaxdp.cli.main import app
from relaxdp.device import Device
from relaxdp.device.client import Client
from relaxdp.device.operator import Operator
from relaxdp.device.server import Running, own_server
from relaxdp.device.simulate import Simulation, simulate
from relaxdp.errors import RelaxdpError
from relaxdp.server_errors import SimulationError
from relaxdp.theory.epsilon import as_epsilon

ALARM = 1e-6
"""How often a test of estimates may fail although all is well, over all seeds; the seeds are fixed."""


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with own_server(tmp_path_factory.mktemp("service")) as running:
        yield running


@pytest.fixture
def operator(service: Running) -> Operator:
    return Operator(service.server, service.token)


def campaign(operator: Operator, encoding: Any, **options: Any) -> str:
    made = operator.create(
        {
            "question": "Which?",
            "encoding": encoding,
            "levels": [{"epsilon": "0.5"}, {"epsilon": "1"}, {"epsilon": "2"}],
            **options,
        }
    )
    return str(made["id"])


def address(service: Running, name: str) -> str:
    return f"{service.server}/v1/campaigns/{name}"


@pytest.mark.parametrize("kind", sorted(set(ENCODINGS) - {"boolean"}))
def test_a_device_through_a_whole_campaign(service: Running, operator: Operator, tmp_path: Path, kind: str) -> None:
    encoding, value = ENCODINGS[kind]
    if encoding["name"] == "bloom":
        encoding = {**encoding, "candidates": ["Käse", "Wurst"]}
    name = campaign(operator, encoding)
    device = Device.open(tmp_path / "device", limit="3")
    participation = device.join(address(service, name))
    participation.answer(value)
    for level, epsilon in enumerate(("0.5", "1", "2")):
        sent = participation.report()
        assert sent is not None
        assert (sent.epsilon, sent.status) == (epsilon, "sent")
        assert operator.status(name)["devices"]["per_level"][level] == 1
        if epsilon != "2":
            operator.act(name, "relax")
    # A device that was killed before it heard the answer sends the same report, and the service knows it.
    file = json.loads((tmp_path / "device").read_bytes())
    assert [sent["epsilon"] for sent in file["campaigns"][0]["sent"]] == ["0.5", "1", "2"]
    assert operator.status(name)["refused"]["differing"] == 0
    operator.act(name, "finish")
    assert participation.report() is None
    assert participation.record.key is None
    participation.withdraw()
    assert operator.status(name)["devices"]["total"] == 0
    assert device.spent == 2


def test_a_device_that_forgets_that_it_was_acknowledged(service: Running, operator: Operator, tmp_path: Path) -> None:
    """The file of a moment ago, restored: the same report goes out again, and is the same."""
    name = campaign(operator, ENCODINGS["categorical"][0])
    device = Device.open(tmp_path / "device", limit="3")
    device.join(address(service, name)).answer("fruit")
    before = (tmp_path / "device").read_bytes()
    device.campaigns[0].report()
    (tmp_path / "device").write_bytes(before)
    again = Device.open(tmp_path / "device")
    assert [outcome.problem for outcome in again.sync()] == [None]
    status = operator.status(name)
    assert (status["devices"]["total"], status["refused"]["differing"]) == (1, 0)


def test_invitations(service: Running, operator: Operator, tmp_path: Path) -> None:
    name = campaign(operator, ENCODINGS["categorical"][0], invitations=True)
    (invitation,) = operator.invite(name, 1)
    for number, (given, problem) in enumerate(
        [("wrong", "refused_by_server_error"), (invitation, None), (invitation, "refused_by_server_error")]
    ):
        device = Device.open(tmp_path / f"device-{number}", limit="3")
        device.join(address(service, name), invitation=given).answer("fruit")
        (outcome,) = device.sync()
        assert (outcome.problem.code if outcome.problem else None) == problem


def test_many_devices_at_once(service: Running, operator: Operator, tmp_path: Path) -> None:
    name = campaign(operator, ENCODINGS["categorical"][0])
    problems: list[RelaxdpError] = []

    def work(number: int) -> None:
        device = Device.open(tmp_path / f"device-{number}", limit="3")
        device.join(address(service, name)).answer("fruit")
        problems.extend(outcome.problem for outcome in device.sync() if outcome.problem)

    threads = [threading.Thread(target=work, args=[number]) for number in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert problems == []
    assert operator.status(name)["devices"]["total"] == 20


@pytest.mark.long
def test_a_hundred_thousand_devices_over_five_levels(tmp_path: Path) -> None:
    """The campaign stops by itself at the smallest level that suffices, and the estimates hold the truth.

    No estimate is so far from the truth as one of five is in one of 10^6 campaigns. Had the devices reported at 0.5
    while the service believes that it is 1, they would be far outside.
    """
    levels = tuple(map(as_epsilon, ("0.1", "0.2", "0.5", "1", "2")))
    simulation = Simulation(100_000, levels, 0.012, seed=7, batch=1000, connections=2, name="simulation-7")
    with own_server(tmp_path) as running:
        client, sent = Client(), [0]
        outcome = simulate(
            simulation,
            Operator(running.server, running.token),
            client,
            lambda done: sent.__setitem__(0, sent[0] + done),
        )
    assert outcome.state == "finished"
    assert outcome.stopped_at == outcome.planned_stop == 1
    assert outcome.target_met
    assert outcome.per_level == [0, 0, 0, 100_000, 0]
    assert outcome.answers == {"new": 400_000}
    assert (sent[0], outcome.requests) == (400_000, 400)
    far = norm.isf(ALARM / 2 / 5)
    distances = [
        abs(row["estimate"] - truth) / row["std_error"] for row, truth in zip(outcome.rows, outcome.truth, strict=True)
    ]
    assert max(distances) < far
    assert outcome.covered == 5, "of 5; with this seed"
    assert all((row["high"] - row["low"]) / 2 <= 0.012 for row in outcome.rows)
    # The wrong law: retention at 0.5 is 0.49 of that at 1, so the largest share would be seen as 0.32 and not as 0.44.
    wrong = abs((outcome.truth[0] - 0.2) * (1 - 0.49)) / outcome.rows[0]["std_error"]
    assert wrong > 2 * far


@pytest.mark.long
def test_a_simulation_that_cannot_get_there(service: Running, operator: Operator) -> None:
    simulation = Simulation(200, (as_epsilon(1), as_epsilon(2)), 0.001, batch=100)
    outcome = simulate(simulation, operator, Client(), lambda _: None)
    assert (outcome.state, outcome.target_met, outcome.planned_stop) == ("open", False, None)
    assert outcome.per_level == [0, 200]
    with pytest.raises(SimulationError):
        simulate(Simulation(0, (as_epsilon(1),), 0.1), operator, Client(), lambda _: None)


class Commands:
    """`relaxdp campaign ...` against the service."""

    def __init__(self, service: Running, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("RELAXDP_TOKEN", service.token)
        monkeypatch.setenv("RELAXDP_SERVER", str(service.server))
        self.token = service.token

    def __call__(self, *words: str) -> Result:
        result = CliRunner(env={"COLUMNS": "100"}).invoke(app, ["campaign", *words])
        assert self.token not in result.output
        return result

    def json(self, *words: str) -> Any:
        result = self(*words, "--json")
        assert result.exit_code == 0, result.exception
        return json.loads(result.stdout)

    def refused(self, *words: str) -> str:
        result = self(*words)
        assert isinstance(result.exception, RelaxdpError), result.output
        message = result.exception.message
        assert self.token not in message
        assert message.isprintable()
        return message


@pytest.fixture
def commands(service: Running, monkeypatch: pytest.MonkeyPatch) -> Commands:
    return Commands(service, monkeypatch)


def test_the_life_of_a_campaign(commands: Commands, service: Running, tmp_path: Path) -> None:
    made = commands(
        "create", "--question", "Which [bold]one?", "--values", "a,b,c", "--levels", "1, 2,4", "--id", "life",
        "--encoding", "categorical", "--half-width", "0.2",
    )  # fmt: skip
    assert made.output.splitlines() == [
        "created life",
        f"people answer at {service.server}/survey/life; apps use {service.server}/v1/campaigns/life",
    ]
    for number in range(30):
        device = Device.open(tmp_path / f"device-{number}", limit="3")
        device.join(address(service, "life")).answer("abc"[number % 3])
        device.sync()
    assert "life" in commands("list").output
    assert [each["id"] for each in commands.json("list") if each["id"] == "life"] == ["life"]
    shown = commands("show", "life").output
    assert "life: Which [bold]one?\nopen at epsilon 1, 30 devices" in shown
    assert "from 30 devices" in shown
    assert "paused" in commands("pause", "life").output
    assert "open" in commands("resume", "life").output
    assert "open at epsilon 2" in commands("relax", "life").output
    for number in range(10):
        Device.open(tmp_path / f"device-{number}").sync()
    found = commands.json("show", "life")
    assert found["status"]["devices"] == {"total": 30, "per_level": [20, 10, 0], "reports": [30, 10, 0]}
    assert "finished" in commands("finish", "life").output
    folder = tmp_path / "export"
    assert len(commands.json("export", "life", str(folder))["files"]) == 2
    assert "holds an export already" in commands.refused("export", "life", str(folder))
    files = sorted(map(str, folder.iterdir()))
    read = CliRunner().invoke(app, ["estimate", *files, "--json"])
    assert read.exit_code == 0, read.exception
    (group,) = json.loads(read.stdout)["groups"]
    shown_by = [
        [(row["value"], row["estimate"], row["low"], row["high"]) for row in rows]
        for rows in (group["estimates"], found["estimate"]["pooled"])
    ]
    assert shown_by[0] == shown_by[1], "the files say what the service says"
    assert commands.json("reduce", "life")["reduced"] is True
    assert "409" in commands.refused("export", "life", str(tmp_path / "again"))
    assert list((tmp_path / "again").iterdir()) == []


def test_kinds_of_campaigns(commands: Commands, tmp_path: Path) -> None:
    words = tmp_path / "words.txt"
    words.write_text("Käse\nWurst\n", "utf-8")
    made = commands.json("create", "--question", "Age?", "--range", "0", "120", "--levels", "1", "--devices", "10")
    assert made["encoding"]["range"] == [0, 120]
    made = commands.json("create", "--question", "Food?", "--words", str(words), "--levels", "4", "--invitations")
    assert made["encoding"] == {"name": "bloom", "options": {"bits": 128, "hashes": 2, "cohorts": 64}}
    assert len(commands.json("invite", made["id"], "--count", "3")["invitations"]) == 3
    assert len(commands("invite", made["id"], "--count", "2").output.split()) == 2
    made = commands.json("create", "--question", "Which?", "--values-file", str(words), "--levels", "1")
    assert made["encoding"]["values"] == ["Käse", "Wurst"]
    file = tmp_path / "campaign.json"
    file.write_text(
        json.dumps(
            {"question": "q", "encoding": {"name": "categorical", "values": [1, 2]}, "levels": [{"epsilon": "1"}]}
        )
    )
    assert commands.json("create", "--file", str(file))["encoding"]["values"] == [1, 2]


def test_a_campaign_says_who_asks(commands: Commands, tmp_path: Path) -> None:
    asked = ("create", "--question", "How?", "--values", "bus,foot", "--levels", "0.5,1")
    logo = tmp_path / "Logo.SVG"
    logo.write_text("<svg xmlns='http://www.w3.org/2000/svg'/>")
    said = {
        "asker": "City library", "about": "How people come", "purpose": "Opening hours", "contact": "desk@example.org",
        "privacy_notice": "https://example.org/privacy", "colour": "#aa3300", "suggested": "1",
    }  # fmt: skip
    options = [word for name, text in said.items() for word in (f"--{name.replace('_', '-')}", text)]
    ending = ("--closes", "2090-01-01T00:00:00Z", "--publish-least", "1000", "--shows-results")
    made = commands.json(*asked, *options, "--logo", str(logo), *ending)
    assert {name: made[name] for name in said} == said
    assert made["logo"].startswith("data:image/svg+xml;base64,")
    assert made["shows_results"] is True
    assert "ends in .png" in commands.refused(*asked, "--logo", str(tmp_path / "logo.gif"))
    assert "cannot be read" in commands.refused(*asked, "--logo", str(tmp_path / "logo.png"))
    assert "none that the campaign offers" in commands.refused(*asked, "--suggested", "0.7")


def test_a_campaign_of_numbers_tells_quartiles(commands: Commands, service: Running, tmp_path: Path) -> None:
    asked = ("create", "--question", "Age?", "--range", "0", "120", "--levels", "4,6", "--id", "ages")
    assert "power of two, not 12" in commands.refused(*asked, "--encoding", "wave:window=12")
    assert "not one of those allowed" in commands.refused(*asked, "--encoding", "wave:goal=median")
    narrow = commands.json(*asked[:-1], "narrow", "--encoding", "wave:goal=distribution,bins=256")
    assert narrow["encoding"]["options"] == {"bins": 256, "window": 4}  # a device needs no goal
    made = commands.json(*asked, "--encoding", "wave")
    assert made["encoding"]["options"] == {"bins": 64, "window": 8}  # the best one for the last level
    assert commands.json("show", "ages")["estimate"]["quantiles"] is None
    for number in range(12):
        device = Device.open(tmp_path / f"device-{number}", limit="6")
        device.join(address(service, "ages")).answer(40)
        device.sync()
    found = commands.json("show", "ages")["estimate"]
    assert [each["value"] for each in found["pooled"]] == ["mean"]
    shown = commands("show", "ages").output
    for name, each in zip(("quantile 0.25", "median", "quantile 0.75"), found["quantiles"], strict=True):
        assert 0 <= each["low"] <= each["estimate"] <= each["high"] <= 120
        assert re.search(rf"│ {name} +│ +{each['estimate']:.4f} │ ", shown)
    assert "at least 95 %" in shown
    found = commands.json("show", "ages", "--quantiles", "0.1,0.000001")["estimate"]
    assert [each["probability"] for each in found["quantiles"]] == [0.1, 0.000001]
    assert "not a list of numbers between 0 and 1" in commands.refused("show", "ages", "--quantiles", "0")


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("create",), "a campaign needs a --question"),
        (("create", "--question", "q", "--levels", "1"), "say what can be answered"),
        (("create", "--question", "q", "--levels", "1", "--values", "a,b", "--range", "0", "1"), "say what can be"),
        (("create", "--question", "q", "--levels", "2,1", "--values", "a,b"), "refused (status 4"),
        (
            ("create", "--question", "q", "--levels", "1", "--range", "0", "1", "--encoding", "bloom"),
            "words that are not declared",
        ),
        (("create", "--file", "none.json"), "cannot be read"),
        (("create", "--file", "none.json", "--question", "q"), "--question does not go with it"),
        (("show", "nothing-here"), "refused (status 404)"),
        (("relax", "../healthz"), "the name of a campaign has"),
        (("invite", "nothing-here", "--count", "0"), "refused (status 4"),
        (("list", "--token-file", "no-such-file"), "there is no token file"),
        (("list", "--server", "http://collect.example"), "unencrypted"),
        (("list", "--server", "nonsense"), "not the address of a server"),
        (("list", "--ca-file", "none.pem", "--server", "https://127.0.0.1:9"), "certificates cannot be read"),
    ],
)
def test_mistakes_are_one_sentence(commands: Commands, words: tuple[str, ...], sentence: str) -> None:
    assert sentence in commands.refused(*words)


def test_tokens(commands: Commands, service: Running, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "token"
    file.write_text(f"{service.token}\n")
    file.chmod(0o644)
    assert "can be read by others" in commands.refused("list", "--token-file", str(file))
    file.chmod(0o600)
    assert commands("list", "--token-file", str(file)).exit_code == 0
    monkeypatch.setenv("RELAXDP_TOKEN", "wrong")
    assert commands.refused("list").endswith("does not accept the operator token. Nothing was done.")
    monkeypatch.setenv("RELAXDP_TOKEN", "two\r\nlines: x")
    assert "that is no token" in commands.refused("list")
    monkeypatch.delenv("RELAXDP_TOKEN")
    assert "set RELAXDP_TOKEN" in commands.refused("list")


def _says(body: Any, _: Request) -> Reply:
    return Reply(200, body)


def test_an_odd_server(commands: Commands, tmp_path: Path) -> None:
    with fake_collector() as odd:
        bodies: list[Any] = [
            [], {}, {"campaigns": [1]}, {"campaigns": [{}]}, {"levels": [{"epsilon": "../x"}], "open_level": 0},
        ]  # fmt: skip
        for body in bodies:
            odd.instead = partial(_says, body)
            for words in (
                ("list",),
                ("show", "a"),
                ("relax", "a"),
                ("invite", "a"),
                ("export", "a", str(tmp_path)),
            ):
                if body or words[0] != "list":
                    assert "Is the address right?" in commands.refused(*words, "--server", odd.url)
        status = {"levels": [{"epsilon": "1"}], "open_level": 0}
        odd.instead = lambda request: Reply(200, b"PAR") if "export" in request.path else Reply(200, status)
        message = commands.refused("export", "a", str(tmp_path / "cut"), "--server", odd.url)
        assert message.endswith("broke off in the middle of the export. Nothing was written.")
        assert list((tmp_path / "cut").iterdir()) == []
        port = odd.url
    assert "cannot be reached (connection refused)" in commands.refused("list", "--server", port)


def test_a_folder_that_holds_a_collector_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "collector.db").touch()
    with pytest.raises(SimulationError, match="holds a collector already"), own_server(tmp_path):
        pass
    assert [each.name for each in tmp_path.iterdir()] == ["collector.db"]
