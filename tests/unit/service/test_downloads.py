"""Files for one answer: without a name once they are made, closed once they are sent, and refused in a sentence."""

from __future__ import annotations

import asyncio
import errno
import os
import tempfile
from pathlib import Path
from typing import Any

import pytest

from relaxdp.errors import TableFileError
from relaxdp.server_errors import CampaignError, StorageUnavailableError
from relaxdp.service.transfer import HandedOut, nameless

CONTENT = os.urandom(600_000)


@pytest.fixture
def everybodys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def write(path: Path) -> None:
    path.write_bytes(CONTENT)


def test_a_file_has_no_name_once_it_is_made(everybodys: Path) -> None:
    with nameless(write) as file:
        assert not list(everybodys.iterdir())
        assert os.fstat(file.fileno()).st_nlink == 0
        assert file.read() == CONTENT


@pytest.mark.parametrize(
    "problem", [CampaignError("a sentence."), TableFileError("a sentence."), KeyError("x"), KeyboardInterrupt()]
)
def test_what_fails_leaves_nothing(everybodys: Path, problem: BaseException) -> None:
    def fail(path: Path) -> None:
        write(path)
        raise problem

    with pytest.raises(type(problem)) as raised:
        nameless(fail)
    assert raised.value is problem
    assert not list(everybodys.iterdir())


@pytest.mark.parametrize(
    ("problem", "why"),
    [
        (OSError(errno.ENOSPC, "Failed to open local file '/secret/place'"), "No space left on device"),
        (OSError("Failed to open local file '/secret/place'"), "it is not known why"),
    ],
)
def test_the_disk_fails_without_a_path(everybodys: Path, problem: OSError, why: str) -> None:
    """Arrow names the file in its own words."""

    def fail(path: Path) -> None:
        raise problem

    with pytest.raises(StorageUnavailableError) as refused:
        nameless(fail)
    assert refused.value.fields == {"why": why}
    assert not list(everybodys.iterdir())


def test_no_folder_at_all_is_said_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """The system looks for a folder when it is first needed, and may find none."""

    def none() -> str:
        raise FileNotFoundError(errno.ENOENT, "No usable temporary directory found in ['/secret/place']")

    monkeypatch.setattr(tempfile, "gettempdir", none)
    with pytest.raises(StorageUnavailableError) as refused:
        nameless(write)
    assert "secret" not in refused.value.message


def sent(method: str, *, hangs_up: bool = False) -> tuple[Any, bytes, bool]:
    """Hand a file out without a server; return the head, the body, and whether the file was closed."""
    file, told = nameless(write), list[Any]()

    async def receive() -> Any:
        await asyncio.sleep(0 if hangs_up else 60)
        return {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        told.append(message)
        if hangs_up:
            await asyncio.sleep(60)

    scope = {"type": "http", "method": method, "headers": [(b"range", b"bytes=0-3")]}
    asyncio.run(HandedOut(file, "out.parquet", "application/x")(scope, receive, send))
    return told[0], b"".join(each.get("body", b"") for each in told), file.closed


def test_a_file_is_handed_out_whole_and_closed(everybodys: Path) -> None:
    head, body, is_closed = sent("GET")
    headers = dict(head["headers"])
    assert (head["status"], headers[b"content-length"], body, is_closed) == (200, b"600000", CONTENT, True)
    assert headers[b"content-disposition"] == b'attachment; filename="out.parquet"'
    head, body, is_closed = sent("HEAD")
    assert (dict(head["headers"])[b"content-length"], body, is_closed) == (b"600000", b"", True)
    assert sent("GET", hangs_up=True)[2]
    assert not list(everybodys.iterdir())
