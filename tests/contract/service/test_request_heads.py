"""Request heads that are too long or never end, on a real server with either loop."""

from __future__ import annotations

import contextlib
import socket
import ssl
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import uvicorn
from tests.conftest import require
from tests.patience import PATIENCE, until
from tests.servers.sockets import read_all

from relaxdp.service.run import MAX_HEAD_BYTES, LimitedHeadProtocol


class CountingProtocol(LimitedHeadProtocol):
    """The server's protocol, which counts the bytes that it accepts."""

    accepted = 0

    def data_received(self, data: bytes) -> None:
        CountingProtocol.accepted += len(data)
        super().data_received(data)


async def application(scope: Any, receive: Any, send: Any) -> None:
    """Read the whole request, and answer it."""
    while (await receive()).get("more_body"):
        pass
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]})
    await send({"type": "http.response.body", "body": b"ok"})


class Served(NamedTuple):
    """A server, and what its clients need."""

    server: uvicorn.Server
    port: int
    trusted: ssl.SSLContext | None

    @contextlib.contextmanager
    def connected(self) -> Iterator[socket.socket]:
        """Open a connection."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=PATIENCE) as plain:
            if self.trusted is None:
                yield plain
                return
            with self.trusted.wrap_socket(plain, server_hostname="localhost") as one:
                yield one

    def connections(self) -> int:
        return len(self.server.server_state.connections)


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
    config = uvicorn.Config(
        application, http=CountingProtocol, loop=loop, lifespan="off", log_level="critical", **options
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
    before = CountingProtocol.accepted
    with served.connected() as one:
        one.sendall(start)
        if endless == "a later head":
            assert read_answer(one).endswith(b"ok")
        with contextlib.suppress(OSError):
            for _ in range(8 * MAX_ACCEPTED // len(part)):
                one.sendall(part)
        assert CountingProtocol.accepted - before <= MAX_ACCEPTED
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
