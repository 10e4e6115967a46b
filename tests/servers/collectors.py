"""Collectors for tests: a real server in a process of its own, and a client that says what it got."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import pytest
from tests.patience import PATIENCE

STORES = ["sqlite", pytest.param("postgres", marks=pytest.mark.long)]
"""What a service runs on. The short tests meet PostgreSQL as the store of the ledger."""


def url_of(store: str, request: pytest.FixtureRequest) -> str:
    """Return where a service may keep a new database."""
    if store == "sqlite":
        return f"sqlite:///{request.getfixturevalue('tmp_path')}/service.db"
    return str(request.getfixturevalue("postgres_url")())


class Answer(NamedTuple):
    """What a server said."""

    status: int
    body: bytes
    headers: dict[str, str]

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def error(self) -> str:
        return str(self.json["error"])


class Running:
    """A server that runs, until it is stopped or killed. It may be started again on the same database."""

    module = "relaxdp"

    def __init__(self, url: str, folder: Path, *options: str) -> None:
        self.url, self.folder, self.options = url, folder, options
        self.token_file = folder / "token"
        self.log = folder / "server.log"
        self.process: subprocess.Popen[str] | None = None
        self.start()
        self.token = self.token_file.read_text("utf-8").strip()

    def start(self) -> None:
        """Start it, and wait until it listens."""
        words = ["serve", "--db", self.url, "--port", "0", "--token-file", str(self.token_file), *self.options]
        if "--rate" not in self.options:
            words += ["--rate", "0"]
        if self.token_file.exists():
            words = [word for word in words if word not in ("--token-file", str(self.token_file))]
        with self.log.open("a") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", self.module, *words],
                stdout=subprocess.PIPE, stderr=log, text=True, start_new_session=True,
            )  # fmt: skip
        assert self.process.stdout is not None
        line, self.said = "", ""
        while not line.startswith("listening on "):
            line = self.process.stdout.readline()
            self.said += line
            assert line, self.log.read_text("utf-8")[-3000:]
        self.base = line.removeprefix("listening on ").strip()
        self.process.stdout.close()
        place = urlsplit(self.base)
        self.host, self.port = str(place.hostname), int(place.port or 0)

    def kill(self) -> None:
        """End it without any warning."""
        assert self.process is not None
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait(PATIENCE)

    def stop(self) -> int:
        """Ask it to end, and return its status."""
        assert self.process is not None
        if self.process.poll() is None:
            self.process.terminate()
        return self.process.wait(PATIENCE)

    def ask(self, method: str, path: str, body: Any = None, *, operator: bool = False, **headers: str) -> Answer:
        """Ask once, on a connection of its own."""
        connection = http.client.HTTPConnection(self.host, self.port, timeout=PATIENCE)
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        content = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
        if content is not None:
            sent.setdefault("content-type", "application/json")
        if operator:
            sent["authorization"] = f"Bearer {self.token}"
        with contextlib.closing(connection):
            connection.request(method, path, content, sent)
            answer = connection.getresponse()
            return Answer(answer.status, answer.read(), {name.lower(): value for name, value in answer.getheaders()})

    def create(self, **definition: Any) -> dict[str, Any]:
        """Create a campaign, and return what the operator sees."""
        asked = {
            "question": "Did you have flu?",
            "encoding": {"name": "categorical", "values": ["no", "yes"]},
            "levels": [{"epsilon": "0.5"}, {"epsilon": "1"}, {"epsilon": "2"}],
            **definition,
        }
        answer = self.ask("POST", "/v1/campaigns", asked, operator=True)
        assert answer.status == 201, answer.body
        found: dict[str, Any] = answer.json
        return found


@contextlib.contextmanager
def running(url: str, folder: Path, *options: str) -> Iterator[Running]:
    """Run a server for a while."""
    folder.mkdir(parents=True, exist_ok=True)
    server = Running(url, folder, *options)
    try:
        yield server
    finally:
        server.kill()
