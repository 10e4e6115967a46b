"""Clients that do not read, on a real server with either loop: whoever reads goes on, whoever stops is cut off."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
import subprocess
import threading
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import uvicorn
from tests.conftest import require
from tests.patience import PATIENCE, until
from tests.servers.sockets import read_all

from relaxdp.service.run import PatientProtocol

IDLE = 0.1
"""What a server waits, in seconds of the test's clock. It looks at its connections eight times in as many real ones."""

SIZE = 16 << 20  # more than the system's own buffers hold
PARTS = {"/parts": 256 << 10, "/whole": SIZE}


class Patient(PatientProtocol):
    """The server's protocol by a clock that a test moves, so that nobody is late on a machine that is busy."""

    clock = 0.0
    looks = 0

    def now(self) -> float:
        return Patient.clock

    def _look_through(self) -> None:
        super()._look_through()
        Patient.looks += 1


async def application(scope: Any, receive: Any, send: Any) -> None:
    """Give much, in parts or as a whole, or little with a long silence in between."""
    if scope["type"] != "http":
        return
    await send({"type": "http.response.start", "status": 200, "headers": [(b"connection", b"close")]})
    if scope["path"] == "/quiet":
        await send({"type": "http.response.body", "body": b"one ", "more_body": True})
        end = Patient.clock + 4 * IDLE
        while Patient.clock < end:
            await asyncio.sleep(0.001)
        await send({"type": "http.response.body", "body": b"two"})
        return
    size = PARTS[scope["path"]]
    for _ in range(SIZE // size):
        await send({"type": "http.response.body", "body": bytes(size), "more_body": True})
    await send({"type": "http.response.body"})


class Served(NamedTuple):
    """A server, and what its clients need."""

    server: uvicorn.Server
    port: int
    trusted: ssl.SSLContext | None

    @contextlib.contextmanager
    def asked(self, path: str) -> Iterator[socket.socket]:
        """Open a connection with little room for answers, and ask."""
        with socket.socket() as plain:
            plain.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 32 << 10)
            plain.settimeout(PATIENCE)
            plain.connect(("127.0.0.1", self.port))
            trusted = self.trusted
            with contextlib.ExitStack() as stack:
                one: socket.socket = plain
                if trusted is not None:
                    one = stack.enter_context(trusted.wrap_socket(plain, server_hostname="localhost"))
                one.sendall(f"GET {path} HTTP/1.1\r\nhost: x\r\n\r\n".encode())
                yield one

    def connections(self) -> int:
        return len(self.server.server_state.connections)

    def pass_time(self, seconds: float) -> None:
        """Let time pass, and the server look at its connections before and after."""
        self._look()
        Patient.clock += seconds
        self._look()

    def _look(self) -> None:
        """Wait until the server has looked at all connections as they are now, if there are any."""
        seen = Patient.looks
        until(lambda: Patient.looks > seen + 1 or not self.connections())


LOOPS = [
    "asyncio",
    "uvloop with TLS",
    *(pytest.param(each, marks=pytest.mark.long) for each in ("uvloop", "asyncio with TLS")),
]


@pytest.fixture(scope="module", params=LOOPS)
def served(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    loop, _, tls = request.param.partition(" with ")
    options: dict[str, Any] = {}
    trusted = None
    if tls:
        certificate, key = certificate_in(tmp_path_factory.mktemp("tls"))
        options = {"ssl_certfile": certificate, "ssl_keyfile": key}
        trusted = ssl.create_default_context(cafile=str(certificate))
    protocol: Any = partial(Patient, idle_seconds=IDLE, most_connections=100)
    config = uvicorn.Config(
        application, http=protocol, loop=loop, lifespan="off", log_level="critical", timeout_keep_alive=1, **options
    )
    server = uvicorn.Server(config)
    with socket.create_server(("127.0.0.1", 0)) as listening:
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
        thread.start()
        try:
            assert until(lambda: server.started)
            yield Served(server, listening.getsockname()[1], trusted)
        finally:
            server.should_exit = True
            thread.join(PATIENCE)
            assert not thread.is_alive()


def certificate_in(folder: Path) -> tuple[Path, Path]:
    """Make a certificate for this machine and this hour."""
    certificate, key = folder / "certificate.pem", folder / "key.pem"
    words = ["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1", "-subj", "/CN=localhost"]
    words += ["-addext", "subjectAltName=DNS:localhost", "-keyout", str(key), "-out", str(certificate)]
    subprocess.run([require("openssl"), *words], check=True, capture_output=True)
    return certificate, key


@pytest.mark.parametrize("path", PARTS)
def test_who_stops_reading_is_cut_off(served: Served, path: str) -> None:
    """Whether more is to come or everything was handed out: what waits is dropped, and the connection with it."""
    with served.asked(path) as one:
        assert one.recv(1000)
        served.pass_time(0.9 * IDLE)
        assert served.connections() == 1
        served.pass_time(1.2 * IDLE)
        until(lambda: served.connections() == 0)
        assert len(read_all(one)) < SIZE / 2


@pytest.mark.parametrize("path", PARTS)
def test_who_reads_slowly_gets_everything(served: Served, path: str) -> None:
    """A part that takes several times the patience arrives as well: it is progress that counts."""
    with served.asked(path) as one:
        answer = bytearray()
        for eighth in range(1, 8):
            while len(answer) < eighth * SIZE // 8:
                answer += one.recv(64 << 10)
            served.pass_time(0.9 * IDLE)
        answer += read_all(one)
    assert answer.startswith(b"HTTP/1.1 200 ")
    assert len(answer) > SIZE
    assert answer.endswith(b"\r\n0\r\n\r\n")


def test_a_quiet_stream_lives(served: Served) -> None:
    with served.asked("/quiet") as one:
        answer = one.recv(1000)
        for _ in range(6):
            served.pass_time(0.9 * IDLE)
        answer += read_all(one)
    assert b"one " in answer
    assert answer.endswith(b"3\r\ntwo\r\n0\r\n\r\n")
