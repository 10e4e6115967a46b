"""A collector of one's own for a while: `relaxdp serve` on a free port of this machine, with an empty database."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from relaxdp.device.address import Server
from relaxdp.device.client import Client
from relaxdp.device.operator import operator_token
from relaxdp.errors import add_consequence
from relaxdp.server_errors import SimulationError

_LISTENING = re.compile(r"listening on (http://[0-9.]+:[0-9]+)\s*")
_PATIENCE = 30


@dataclass(frozen=True, slots=True)
class Running:
    """A server that is running, and the token of its operator, which the `repr` does not show."""

    server: Server
    token: str = field(repr=False)


@contextmanager
def own_server(folder: Path) -> Iterator[Running]:
    """Start a server whose database lies in `folder`, and stop it in the end."""
    token_file = folder / "operator-token"
    database = (folder / "collector.db").resolve()
    if database.exists() or token_file.exists():
        with add_consequence("Nothing was started."):
            raise SimulationError("the folder {path!r} holds a collector already.", path=str(folder))
    words = ["serve", "--db", f"sqlite:///{database}", "--port", "0", "--rate", "0"]
    process = subprocess.Popen(  # noqa: S603 (our own program)
        [sys.executable, "-m", "relaxdp", *words, "--token-file", str(token_file), "--no-request-log"],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )
    with process:
        try:
            server = _listening(process)
            # The address is known a moment before anybody answers there.
            Client(attempts=40, first_wait=0.1, longest_wait=0.2).ask_json(server, "GET", "/healthz")
            yield Running(server, operator_token(token_file, {}))
        finally:
            process.terminate()
            try:
                process.wait(_PATIENCE)
            except subprocess.TimeoutExpired:
                process.kill()


def _listening(process: subprocess.Popen[str]) -> Server:
    """Wait for the line that says where the server is; what it says before is not for us."""
    assert process.stdout is not None  # noqa: S101
    for line in process.stdout:
        found = _LISTENING.fullmatch(line)
        if found:
            return Server.parse(found[1])
    raise SimulationError("the server did not start; it says why above.")
