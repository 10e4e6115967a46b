"""A survey from end to end: commands create and steer it, devices of every kind answer, and it is shown."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.contract.device.device_clients import CLIENTS
from typer.testing import CliRunner

from relaxdp.cli.main import app
from relaxdp.device.server import Running, own_server

VALUES: dict[str, Any] = {"diet": ["meat", "vegan"], "lunch": ["canteen", "home", "out"], "age": None}
ANSWERS = {"diet": "vegan", "lunch": "home", "age": 41}


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with own_server(tmp_path_factory.mktemp("service")) as running:
        yield running


@pytest.fixture
def command(service: Running, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setenv("RELAXDP_SERVER", str(service.server))
    monkeypatch.setenv("RELAXDP_TOKEN", service.token)

    def run(*words: str, code: int = 0) -> str:
        done = CliRunner().invoke(app, ["survey", *words])
        assert done.exit_code == code, done.output
        return done.output if done.exit_code == 0 else str(getattr(done.exception, "message", done.output))

    return run


def written(tmp_path: Path, **changes: Any) -> str:
    questions = [
        {
            "id": name,
            "question": f"Your {name}?",
            "encoding": {"name": "categorical", "values": values} if values else {"name": "numeric", "range": [0, 120]},
            "levels": [{"epsilon": "0.5"}, {"epsilon": "8"}],
        }
        for name, values in VALUES.items()
    ]
    file = tmp_path / "survey.json"
    file.write_text(json.dumps({"id": "canteen", "questions": questions, "cross": [["diet", "lunch"]], **changes}))
    return str(file)


def test_a_whole_survey(service: Running, command: Any, tmp_path: Path) -> None:
    said = command("create", written(tmp_path))
    assert f"people answer at {service.server}/surveys/canteen" in said
    assert "counted together: diet and lunch" in said
    assert "no reports yet" in command("show", "canteen")
    clients = {kind: made() for kind, made in CLIENTS.items()}
    addresses = {name: f"{service.server}/v1/campaigns/{name}" for name in VALUES}
    for kind, client in clients.items():
        assert client.do({"do": "open", "file": str(tmp_path / kind), "limit": "30"}) == {}
        joined = client.do({"do": "join_survey", "survey": f"{service.server}/v1/surveys/canteen", "upto": "24"})
        assert list(joined["questions"].values()) == ["8", "8", "8"], joined
        for name, address in addresses.items():
            assert client.do({"do": "answer", "campaign": address, "value": ANSWERS[name]}) == {}
            assert client.do({"do": "report", "campaign": address})["sent"]["status"] == "sent"
    assert command("relax", "canteen").splitlines() == ["diet: open", "lunch: open", "age: open"]
    for client in clients.values():
        for address in addresses.values():
            assert client.do({"do": "report", "campaign": address})["sent"]["epsilon"] == "8"
    found = json.loads(command("show", "canteen", "--json"))
    [table] = found["tables"]
    assert (table["devices"], len(table["cells"])) == (len(clients), 6)
    shown = command("show", "canteen")
    assert "Your diet?  by  Your lunch?" in shown
    assert "devices that answered both" in shown
    assert clients["python"].do({"do": "withdraw", "campaign": addresses["lunch"]}) == {}
    [after] = json.loads(command("show", "canteen", "--json"))["tables"]
    assert after["devices"] == len(clients) - 1
    assert "canteen" in command("list")
    assert [each["id"] for each in json.loads(command("list", "--json"))] == ["canteen"]
    assert "only a finished one is reduced" in command("reduce", "canteen", code=1)
    command("finish", "canteen")
    assert json.loads(command("reduce", "canteen", "--json"))["questions"][0]["reduced"]


def test_what_is_refused(command: Any, tmp_path: Path) -> None:
    assert "there is no survey with this name" in command("show", "nothing", code=1)
    assert "two different questions" in command("create", written(tmp_path, id="bad", cross=[["a", "b"]]), code=1)
    assert "no question of this survey" in _invite(command, tmp_path)
    assert "cannot be read" in command("create", str(tmp_path / "missing.json"), code=1)


def _invite(command: Any, tmp_path: Path) -> str:
    questions = json.loads(Path(written(tmp_path)).read_text("utf-8"))["questions"]
    for each in questions:
        each["id"] += "-2"
    command("create", written(tmp_path, id="closed", questions=questions, cross=[]))
    refused: str = command("invite", "closed", code=1)
    for each in questions:
        each.update(id=f"{each['id']}-3", invitations=True)
    command("create", written(tmp_path, id="invited", questions=questions, cross=[]))
    assert len(command("invite", "invited", "--count", "3").split()) == 3
    return refused
