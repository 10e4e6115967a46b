"""The file of an export, on a real server: private, handed out whole, and nothing of it stays, whatever happens."""

from __future__ import annotations

import contextlib
import io
import os
import resource
import socket
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pa_parquet
import pytest
from sqlalchemy import select
from tests.conftest import missing
from tests.patience import PATIENCE, until
from tests.servers.collectors import Answer, Running, running
from tests.servers.sockets import read_all

from relaxdp.collector import reports
from relaxdp.collector.schema import REPORTS
from relaxdp.storage.database import Database

DEVICES = 250_000
"""So many that the file is larger than what the system's buffers hold, and takes a while to write."""


class Place:
    """A server with a campaign of many devices, and the folder that it has for temporary files."""

    def __init__(self, server: Running, temporary: Path) -> None:
        self.server, self.temporary = server, temporary
        made = server.create()
        self.path = f"/v1/campaigns/{made['id']}/export?level=0"
        first = {"device": os.urandom(16).hex(), "level": made["levels"][0], "report": "yes"}
        assert server.ask("POST", f"/v1/campaigns/{made['id']}/reports", first).json == {"status": "new"}
        database = Database(server.url)
        with contextlib.closing(database), database.writing() as connection:
            number, report = connection.execute(select(REPORTS.c.campaign, REPORTS.c.report)).one()
            for start in range(1, DEVICES, 10_000):
                reports.store(
                    connection,
                    number,
                    0,
                    [(os.urandom(16), bytes(report)) for _ in range(min(10_000, DEVICES - start))],
                )

    def export(self, method: str = "GET", **headers: str) -> Answer:
        return self.server.ask(method, self.path, operator=True, **headers)

    @contextlib.contextmanager
    def asked(self) -> Iterator[socket.socket]:
        """Open a connection with little room for the answer, and ask for the export."""
        with socket.socket() as one:
            one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 32 << 10)
            one.settimeout(PATIENCE)
            one.connect((self.server.host, self.server.port))
            head = f"GET {self.path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n"
            one.sendall(f"{head}authorization: Bearer {self.server.token}\r\n\r\n".encode())
            yield one

    def left(self) -> list[Path]:
        return list(self.temporary.iterdir())


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    folder = tmp_path_factory.mktemp("exports")
    (folder / "tmp").mkdir()
    tempfile.gettempdir()  # ours stays where it is
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TMPDIR", str(folder / "tmp"))
        with running(f"sqlite:///{folder}/service.db", folder) as server:
            yield Place(server, folder / "tmp")


@pytest.fixture(autouse=True)
def nothing_stays(place: Place) -> Iterator[None]:
    """Whatever a test did, the next export is whole, and no file is left behind."""
    yield
    assert len(rows(place.export())) == DEVICES
    assert until(lambda: not place.left()), place.left()


def rows(answer: Answer) -> list[Any]:
    assert answer.status == 200, answer.body
    return list(pa_parquet.read_table(io.BytesIO(answer.body))["device"].to_pylist())


@pytest.mark.long
def test_an_export_is_whole_whatever_part_is_asked_for(place: Place) -> None:
    whole = place.export()
    names = rows(whole)
    assert names == sorted(set(names))
    assert int(whole.headers["content-length"]) == len(whole.body)
    assert whole.headers["content-type"] == "application/vnd.apache.parquet"
    assert whole.headers["content-disposition"].endswith('-0.parquet"')
    assert (whole.headers["cache-control"], whole.headers["accept-ranges"]) == ("no-store", "none")
    for part in ("bytes=0-3", "bytes=x", "bytes=99999999-", "bytes=0-1,4-5", "bytes=-5"):
        answer = place.export(range=part)
        assert (answer.status, answer.body) == (200, whole.body), part
    head = place.export("HEAD")
    assert (head.status, head.body, head.headers["content-length"]) == (200, b"", str(len(whole.body)))
    with place.asked():  # and whoever hangs up
        pass


def test_while_it_is_sent_it_has_no_name_that_could_stay(place: Place) -> None:
    with place.asked() as one:
        begin = one.recv(1000)
        assert begin.startswith(b"HTTP/1.1 200 ")
        assert not place.left()
        assert len(rows(place.export())) == DEVICES  # which takes nothing away from the one that is not read
        head, _, body = (begin + read_all(one)).partition(b"\r\n\r\n")
    assert f"content-length: {len(body)}\r\n".encode() in head + b"\r\n"
    assert pa_parquet.read_table(io.BytesIO(body)).num_rows == DEVICES


@pytest.mark.long
def test_killed_while_it_is_sent(place: Place) -> None:
    with place.asked() as one:
        assert one.recv(1000).startswith(b"HTTP/1.1 200 ")
        place.server.kill()
    left = place.left()
    place.server.start()
    assert not left


def test_killed_while_it_is_written(place: Place) -> None:
    """What a kill leaves nobody else can read, and the next export removes it."""
    with place.asked():
        until(place.left)
        place.server.kill()
    left = [(each.is_dir(), each.stat().st_mode & 0o777) for each in place.left()]
    place.server.start()
    assert left == [(True, 0o700)]  # or nobody was killed while writing, and this shows nothing
    assert len(rows(place.export())) == DEVICES
    assert until(lambda: not place.left()), place.left()


def test_a_full_disk_is_said_in_a_sentence(place: Place) -> None:
    if not hasattr(resource, "prlimit"):
        missing("the limits of another process cannot be set here")
    assert place.server.process is not None
    number = place.server.process.pid
    limits = resource.prlimit(number, resource.RLIMIT_FSIZE)
    resource.prlimit(number, resource.RLIMIT_FSIZE, (1 << 20, limits[1]))
    try:
        full = place.export()
    finally:
        resource.prlimit(number, resource.RLIMIT_FSIZE, limits)
    assert (full.status, full.error, full.headers["retry-after"]) == (503, "storage_unavailable", "2")
    assert full.json["message"] == "the file cannot be written now: File too large. Nothing was exported."
    assert not place.left()


def test_no_place_for_temporary_files(place: Place) -> None:
    assert place.export("HEAD").status == 200  # it knows by now which folder it is
    assert until(lambda: not place.left())
    place.temporary.rmdir()
    try:
        refused = place.export()
    finally:
        place.temporary.mkdir()
    assert (refused.status, refused.error) == (503, "storage_unavailable")
    assert refused.json["message"].startswith("there is no place for files on their way: ")
    assert str(place.temporary) not in refused.json["message"]
