"""Clients that stop reading or never end a request, on a real server with either loop: both are cut off."""

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

from relaxdp.service.run import MAX_HEAD_BYTES, PatientProtocol

IDLE = 0.1
"""What a server waits, in seconds of the test's clock. It looks at its connections eight times in as many real ones."""

SIZE = 16 << 20  # more than the system's own buffers hold
PARTS = {"/parts": 256 << 10, "/whole": SIZE}


class Patient(PatientProtocol):
    """The server's protocol by a clock that a test moves, so that nobody is late on a machine that is busy."""

    clock = 0.0
    looks = 0
    accepted = 0

    def now(self) -> float:
        return Patient.clock

    def data_received(self, data: bytes) -> None:
        Patient.accepted += len(data)
        super().data_received(data)

    def _look_through(self) -> None:
        super()._look_through()
        Patient.looks += 1


async def application(scope: Any, receive: Any, send: Any) -> None:
    """Give much, in parts or as a whole; or little, with a long silence in between or after the whole request."""
    if scope["type"] != "http":
        return
    if scope["path"] == "/last":
        while (await receive()).get("more_body"):
            pass
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]})
        await send({"type": "http.response.body", "body": b"ok"})
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
        """Open a connection, and ask."""
        with self.connected() as one:
            one.sendall(f"GET {path} HTTP/1.1\r\nhost: x\r\n\r\n".encode())
            yield one

    @contextlib.contextmanager
    def connected(self) -> Iterator[socket.socket]:
        """Open a connection with little room for answers."""
        with socket.socket() as plain:
            plain.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 32 << 10)
            plain.settimeout(PATIENCE)
            plain.connect(("127.0.0.1", self.port))
            trusted = self.trusted
            with contextlib.ExitStack() as stack:
                one: socket.socket = plain
                if trusted is not None:
                    one = stack.enter_context(trusted.wrap_socket(plain, server_hostname="localhost"))
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


GET = b"GET /last HTTP/1.1\r\nhost: x\r\n"
CHUNKS = b"POST /last HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n1\r\na\r\n"
MAX_ACCEPTED = 1 << 20
ENDLESS = {
    "a header": (GET + b"a: ", b"a" * 1000),
    "a name": (GET, b"a" * 1000),
    "headers": (GET, b"a: b\r\n" * 100),
    "a request line": (b"GET /", b"a" * 1000),
    "a later head": (GET + b"\r\n" + GET, b"a: b\r\n" * 100),
    "trailers": (CHUNKS + b"0\r\n", b"a: b\r\n" * 100),
    "a trailer": (CHUNKS + b"0\r\na: ", b"a" * 1000),
    "a chunk's extension": (CHUNKS + b"1;a=", b"a" * 1000),
}


@pytest.mark.parametrize("endless", ENDLESS)
def test_a_head_without_end_is_answered_with_431(served: Served, endless: str) -> None:
    """Whatever of it does not end, the server takes some of it and no more, and says why."""
    start, part = ENDLESS[endless]
    before = Patient.accepted
    with served.connected() as one:
        one.sendall(start)
        if endless == "a later head":
            assert read_answer(one).endswith(b"ok")
        with contextlib.suppress(OSError):
            for _ in range(8 * MAX_ACCEPTED // len(part)):
                one.sendall(part)
        assert Patient.accepted - before <= MAX_ACCEPTED
        answer = read_all(one)
    assert answer.startswith(b"HTTP/1.1 431 Request Header Fields Too Large\r\n")
    assert b"connection: close\r\n" in answer
    assert b'"error":"head_too_large"' in answer
    assert until(lambda: served.connections() == 0)


def read_answer(one: socket.socket) -> bytes:
    """The answer up to its last letters, or up to the end of the connection."""
    answer = b""
    with contextlib.suppress(ConnectionResetError, ssl.SSLError):
        while not answer.endswith(b"ok") and (part := one.recv(1000)):
            answer += part
    return answer


@pytest.mark.parametrize(
    ("size", "status"), [(32 << 10, b"200"), (MAX_HEAD_BYTES - 1, b"200"), (MAX_HEAD_BYTES + 1, b"431")]
)
def test_a_head_may_have_64_kib(served: Served, size: int, status: bytes) -> None:
    """To the byte, twice on one connection, and however many bytes of a body follow."""
    head = b"POST /last HTTP/1.1\r\nhost: x\r\ncontent-length: 200000\r\na: \r\n\r\n"
    head = head.replace(b"a: ", b"a: " + b"a" * (size - len(head)))
    with served.connected() as one:
        for _ in range(2):
            with contextlib.suppress(OSError):
                one.sendall(head + bytes(200_000))
            assert read_answer(one).startswith(b"HTTP/1.1 " + status)
            if status == b"431":
                break
