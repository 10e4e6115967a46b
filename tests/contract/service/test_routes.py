"""What holds for every route of `relaxdp serve`, whichever parts it has: it is described, and it asks for its token."""

from __future__ import annotations

import re
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.servers.collectors import Running, running
from typer.testing import CliRunner

from relaxdp.cli.main import app
from relaxdp.service import run
from relaxdp.service.pages import Pages
from relaxdp.service.settings import Settings

PAGES = {(operation.method, operation.path) for operation in Pages().operations()}
"""They are for browsers, and need no token."""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    folder = tmp_path_factory.mktemp("routes")
    with running(f"sqlite:///{folder}/service.db", folder) as started:
        yield started


@pytest.fixture
def routes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> set[tuple[str, str]]:
    """The routes of the application that the command builds."""
    found: list[Any] = []

    def build_only(build: Any, settings: Settings, listening: socket.socket) -> None:
        listening.close()
        found.append(build(settings))

    monkeypatch.setattr(run, "serve", build_only)
    shown = CliRunner().invoke(app, ["serve", "--port", "0", "--db", str(tmp_path / "x.db")])
    assert shown.exit_code == 0, shown.output
    return {(method, route.path) for route in found[0]._inner.routes for method in route.methods - {"HEAD"}}


def operations(document: Any) -> dict[tuple[str, str], Any]:
    return {
        (method.upper(), path): operation
        for path, methods in document["paths"].items()
        for method, operation in methods.items()
    }


def test_every_route_is_described(server: Running, routes: set[tuple[str, str]]) -> None:
    assert routes > PAGES
    described = operations(server.ask("GET", "/openapi.json").json)
    assert routes - PAGES == set(described)
    assert len(described) >= 20
    names = [operation["operationId"] for operation in described.values()]
    assert len(set(names)) == len(names)


def test_every_secured_route_refuses_strangers(server: Running) -> None:
    """A route asks for a token exactly where its description says so, and before it looks at anything else."""
    document = server.ask("GET", "/openapi.json").json
    assert document["info"]["title"] == "relaxdp"
    schemes = document["components"]["securitySchemes"]
    assert {(each["type"], each["scheme"]) for each in schemes.values()} == {("http", "bearer")}
    secured = 0
    for (method, path), operation in operations(document).items():
        address = re.sub(r"{\w+}", "1", path)
        body = b"{}" if method == "POST" else None
        kind = next(iter(operation.get("requestBody", {}).get("content", {"application/json": None})))
        plain = server.ask(method, address, body, content_type=kind)
        wrong = server.ask(method, address, body, content_type=kind, authorization="Bearer wrong")
        assert str(plain.status) in operation["responses"], (method, path, plain)
        if "security" not in operation:
            assert plain.status != 401, path
            continue
        secured += 1
        assert {name for each in operation["security"] for name in each} <= set(schemes)
        assert "wrong_token" in operation["responses"]["401"]["description"]
        for answer in (plain, wrong):
            assert (answer.status, answer.error) == (401, "wrong_token"), path
            assert answer.headers["www-authenticate"] == "Bearer"
    assert secured >= 10
