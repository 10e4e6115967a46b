"""Files over HTTP, on a real server: whole or refused, private, never in memory, and gone afterwards."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import http.client
import os
import random
import resource
import socket
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from starlette.requests import Request
from tests.patience import PATIENCE, until
from tests.servers.collectors import Answer
from tests.servers.sockets import read_all
from tests.servers.uploads import PARQUET, Uploads

from relaxdp.server_errors import BodyTooLargeError, MalformedRequestError, RequestTimeoutError, StorageUnavailableError
from relaxdp.service import transfer as uploads
from relaxdp.service.limits import MOST_DRAINED, Limits, read_body
from relaxdp.service.transfer import MOST_AT_ONCE, receive_file

LIMIT = 100 << 20


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Uploads]:
    folder = tmp_path_factory.mktemp("uploads")
    started = Uploads(f"sqlite:///{folder}/service.db", folder, str(LIMIT))
    try:
        yield started
    finally:
        started.kill()


@pytest.fixture(autouse=True)
def nothing_stays(server: Uploads) -> Iterator[None]:
    """Whatever a test did, no file is left behind, and others are served."""
    yield
    assert until(lambda: not list(server.kept.iterdir())), list(server.kept.iterdir())
    assert server.ask("GET", "/healthz").json == {"status": "ok"}


def send(server: Uploads, content: Any, kind: str = PARQUET, path: str = "/v1/file") -> Answer:
    return server.ask("POST", path, content, content_type=kind)


def sizes(server: Uploads) -> list[int]:
    """How much of each file arrived; a folder may be swept away as it is made, and made anew."""
    found = []
    for folder in server.kept.iterdir():
        with contextlib.suppress(FileNotFoundError):
            found.append((folder / "file").stat().st_size)
    return found


def send_chunks(server: Uploads, chunks: Iterator[bytes]) -> Answer:
    connection = http.client.HTTPConnection(server.host, server.port, timeout=PATIENCE)
    with contextlib.closing(connection):
        connection.request("POST", "/v1/file", chunks, {"content-type": PARQUET})
        answer = connection.getresponse()
        return Answer(answer.status, answer.read(), dict(answer.getheaders()))


@contextlib.contextmanager
def begun(server: Uploads, length: int, path: str = "/v1/file", kind: str = PARQUET) -> Iterator[socket.socket]:
    """Open a connection that has sent the head of a request."""
    with socket.create_connection((server.host, server.port), timeout=PATIENCE) as one:
        head = f"POST {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-type: {kind}\r\n"
        one.sendall(f"{head}content-length: {length}\r\n\r\n".encode())
        yield one


@pytest.mark.parametrize("size", [1, 65_536, 70_001, (1 << 20) - 1, 1 << 20, (3 << 20) + 1])
def test_a_file_arrives_as_it_was_and_is_private(server: Uploads, size: int) -> None:
    content = random.Random(size).randbytes(size)
    chunks = [content[start : start + 50_000] for start in range(0, size, 50_000)]
    for answer in (send(server, content), send_chunks(server, iter(chunks))):
        assert answer.status == 200, answer.body
        assert (answer.json["size"], answer.json["digest"]) == (size, hashlib.sha256(content).hexdigest())
        assert answer.json["modes"] == ["0o600", "0o700"]
        assert answer.json["folder"] == str(server.kept)


def test_a_type_may_have_parameters_and_must_be_the_one(server: Uploads) -> None:
    assert send(server, b"x", f"{PARQUET.upper()} ; version=2").status == 200
    for kind in ("application/json", "application/octet-stream", "application/vnd.apache.parquet2", ""):
        answer = send(server, b"x", kind)
        assert (answer.status, answer.error) == (415, "wrong_media_type"), kind
        assert PARQUET in answer.json["message"]


def test_an_empty_file_is_refused(server: Uploads) -> None:
    for answer in (send(server, b""), send_chunks(server, iter([]))):
        assert (answer.status, answer.error) == (400, "malformed_request")


def test_too_large_a_file_is_refused(server: Uploads) -> None:
    assert send(server, bytes(LIMIT)).json["size"] == LIMIT
    with begun(server, LIMIT + 1) as one:  # so much is refused before any of it was sent
        at_once = read_all(one)
        assert at_once.startswith(b"HTTP/1.1 413 "), at_once
        assert b'"most":%d' % LIMIT in at_once
    part = bytes(1 << 20)  # nobody knows beforehand how much comes in chunks
    answer = send_chunks(server, (part for _ in range((LIMIT >> 20) + 8)))
    assert (answer.status, answer.error) == (413, "body_too_large")


def test_a_file_that_breaks_off(server: Uploads) -> None:
    before = server.log.read_text("utf-8").count(" POST /v1/file 408 ")
    with begun(server, 5_000_000) as one:
        one.sendall(bytes(2_000_000))
        assert until(lambda: sizes(server))

    def is_logged() -> bool:
        server.ask("GET", "/healthz")  # lines are written a few at a time
        return server.log.read_text("utf-8").count(" POST /v1/file 408 ") > before

    assert until(is_logged)


def test_a_handler_that_fails(server: Uploads) -> None:
    answer = send(server, b"x" * 100_000, path="/v1/file?fail=1")
    assert (answer.status, answer.error) == (500, "internal")


def test_only_so_many_files_at_once(server: Uploads) -> None:
    with contextlib.ExitStack() as stack:
        others = [stack.enter_context(begun(server, 5_000)) for _ in range(MOST_AT_ONCE)]
        assert until(lambda: len(sizes(server)) == MOST_AT_ONCE)
        answer = send(server, b"x")
        assert (answer.status, answer.error) == (429, "too_many_requests")
        assert answer.json["message"] == "too many files are arriving at once. Nothing was stored."
        assert answer.headers["retry-after"]
        for each in others:
            each.sendall(bytes(5_000))
            assert read_all(each).startswith(b"HTTP/1.1 200 ")
    assert send(server, b"x").status == 200


def test_a_file_is_never_held_in_memory(server: Uploads) -> None:
    before = send(server, b"x").json["peak"]
    after = send(server, bytes(LIMIT)).json["peak"]
    assert after - before < LIMIT // 8


def request_of(*parts: bytes, disconnect: bool = False) -> Request:
    """A request whose body comes in these parts."""
    messages: list[Any] = [{"type": "http.request", "body": part, "more_body": True} for part in parts]
    messages += [{"type": "http.disconnect"} if disconnect else {"type": "http.request"}]

    async def receive() -> Any:
        return messages.pop(0)

    return Request({"type": "http", "headers": []}, receive)


def receive_once(request: Request, most: int) -> bytes:
    async def run() -> bytes:
        async with receive_file(request, most=most, media_type=PARQUET) as path:
            return path.read_bytes()

    return asyncio.run(run())


@pytest.fixture
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def test_without_a_server(kept: Path) -> None:
    assert receive_once(request_of(b"ab", b"", b"c"), 3) == b"abc"
    for problem, request in [
        (BodyTooLargeError, request_of(b"ab", b"cd")),
        (RequestTimeoutError, request_of(b"ab", disconnect=True)),
        (MalformedRequestError, request_of(b"")),
    ]:
        with pytest.raises(problem):
            receive_once(request, 3)
    assert not list(kept.iterdir())


def test_what_failed_makes_room(kept: Path) -> None:
    """However a file ends, it is not counted any more."""
    for _ in range(2 * MOST_AT_ONCE):
        with pytest.raises(MalformedRequestError):
            receive_once(request_of(b""), 3)
    assert receive_once(request_of(b"abc"), 3) == b"abc"


def test_a_full_disk_is_said_without_a_path(kept: Path) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, hard))
    try:
        with pytest.raises(StorageUnavailableError) as refused:
            receive_once(request_of(*[bytes(700_000)] * 4), 10 << 20)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert refused.value.message.startswith("the file cannot be kept now: ")
    assert str(kept) not in refused.value.message
    assert not list(kept.iterdir())


def test_no_room_for_a_file(kept: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(kept / "missing"))
    with pytest.raises(StorageUnavailableError, match="there is no place for files on their way"):
        receive_once(request_of(b"x"), 10)


def test_a_slow_disk_stops_nobody_else(kept: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The loop goes on while a part is written: it is the loop that lets the writing end."""
    written, seen = threading.Event(), []
    plain = uploads._write

    def slow(*arguments: Any) -> None:
        seen.append(written.wait(PATIENCE))
        plain(*arguments)

    async def run() -> None:
        asyncio.get_running_loop().call_later(0.05, written.set)
        async with receive_file(request_of(b"abc"), most=10, media_type=PARQUET) as path:
            assert path.read_bytes() == b"abc"

    monkeypatch.setattr(uploads, "_write", slow)
    asyncio.run(run())
    assert seen == [True]


def test_a_limit_above_what_is_drained_is_one(kept: Path) -> None:
    """JSON may be as large as its own limit says, and a larger body is refused."""
    most = MOST_DRAINED + 10
    content = os.urandom(1) * most
    assert asyncio.run(read_body(request_of(content), Limits(most))) == content
    with pytest.raises(BodyTooLargeError):
        asyncio.run(read_body(request_of(content, b"x"), Limits(most)))
