"""The files of deploy/ say what the service understands, and give it no rights that it does not need."""

from __future__ import annotations

import re
import shlex
import subprocess
from pathlib import Path

import yaml  # type: ignore[import-untyped]
from tests.conftest import require
from tests.patience import PATIENCE
from typer.main import get_command

from relaxdp.cli.main import app

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
UNIT = (DEPLOY / "relaxdp.service").read_text("utf-8")
CONTAINER = (DEPLOY / "Containerfile").read_text("utf-8").replace("\\\n", " ")


def instruction(name: str) -> str:
    """Return the last instruction of this name: the one that holds."""
    return str(re.findall(rf"^{name} (.*)$", CONTAINER, flags=re.MULTILINE)[-1])


def commands() -> list[list[str]]:
    (start,) = re.findall(r"^ExecStart=\S+/relaxdp (.*)$", UNIT.replace("\\\n", " "), flags=re.MULTILINE)
    return [shlex.split(start), yaml.safe_load(instruction("CMD"))]


def test_the_service_understands_its_options() -> None:
    serve = get_command(app).get_command(None, "serve")  # type: ignore[attr-defined]
    known = {option for each in serve.params for option in each.opts}
    for words in commands():
        assert words[0] == "serve"
        assert {word for word in words if word.startswith("--")} <= known
        serve.make_context("serve", words[1:])  # and their values


def test_the_container_needs_no_rights() -> None:
    assert instruction("USER") == "10001:10001"
    assert instruction("VOLUME") == "/var/lib/relaxdp"
    assert "/healthz" in instruction("HEALTHCHECK")
    assert instruction("STOPSIGNAL") == "SIGTERM"
    assert "--require-hashes" in CONTAINER
    for source in re.findall(r"^COPY (?!--from)(.*) \S+$", CONTAINER, flags=re.MULTILINE):
        assert all((ROOT / each).exists() for each in source.split() if not each.startswith("dist/"))


def test_compose_keeps_the_database_inside() -> None:
    asked = yaml.safe_load((DEPLOY / "compose.yaml").read_text("utf-8"))
    database, service = asked["services"]["database"], asked["services"]["service"]
    assert "ports" not in database
    assert all(asked["networks"][name]["internal"] for name in database["networks"])
    assert all(port.startswith("127.0.0.1:") for port in service["ports"])
    assert service["read_only"]
    assert service["cap_drop"] == ["ALL"]
    assert service["depends_on"]["database"]["condition"] == "service_healthy"
    assert (DEPLOY / service["build"]["context"] / service["build"]["dockerfile"]).resolve() == DEPLOY / "Containerfile"
    kept = {volume.partition(":")[0] for each in asked["services"].values() for volume in each["volumes"]}
    assert kept == set(asked["volumes"])
    assert "password" not in re.sub(r"DATABASE_PASSWORD|POSTGRES_PASSWORD", "", str(asked)).lower()


def test_systemd_understands_the_unit(tmp_path: Path) -> None:
    analyze = require("systemd-analyze")
    unit = tmp_path / "relaxdp.service"
    unit.write_text(re.sub(r"^ExecStart=\S+", "ExecStart=/bin/true", UNIT, flags=re.MULTILINE), "utf-8")
    done = subprocess.run(
        [analyze, "verify", "--man=no", unit], capture_output=True, text=True, timeout=PATIENCE, check=False
    )
    assert "relaxdp.service" not in done.stdout + done.stderr
    assert not re.search(r"^User=root|^User=0$", UNIT, flags=re.MULTILINE)
