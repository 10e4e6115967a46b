"""Places for files on their way, in a folder that everybody may write to: nobody is stopped, and nothing stays."""

from __future__ import annotations

import multiprocessing
import os
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.patience import PATIENCE

from relaxdp.server_errors import StorageUnavailableError
from relaxdp.service.transfer import workplace
from relaxdp.tables import atomic_files as temporary
from relaxdp.tables.atomic_files import make_unfinished_file

DIGEST = "0123456789abcdef" * 4


@pytest.fixture
def everybodys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "tmp"
    folder.mkdir()
    folder.chmod(0o1777)
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


NAME = "relaxdp-files"
HERE = temporary.make_unfinished_path(Path("x")).name.split("-")[1].split(".")[0]
ELSEWHERE = f"{int(HERE, 16) ^ 1:08x}"


def in_time(work: Callable[[], None]) -> bool:
    """Return whether something ends; what hangs must not hang the tests."""
    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    thread.join(PATIENCE)
    return not thread.is_alive()


def use_workplace() -> None:
    with workplace() as place:
        (place / "file").write_bytes(b"x")


def unfinished(folder: Path, of: str, number: int = 0, machine: str = HERE) -> Path:
    return folder / f".{of}.{number:012x}-{machine}.relaxdp-unfinished"


def left_folder(place: Path) -> Path:
    """Make a folder as a killed process leaves it: private, signed, and with something in it."""
    place.mkdir(0o700)
    descriptor = os.open(place, os.O_RDONLY)
    temporary.sign_unfinished_folder(descriptor, place.name)
    os.close(descriptor)
    (place / "within").mkdir()
    (place / "within" / "truths").write_bytes(b"x")
    return place


def test_a_workplace_is_private_and_gone_afterwards(everybodys: Path) -> None:
    with workplace() as place:
        assert place.parent == everybodys
        assert place.stat().st_mode & 0o777 == 0o700
        (place / "file").write_bytes(b"x")
    assert not list(everybodys.iterdir())


@pytest.mark.parametrize("make", [Path.touch, Path.mkdir, os.mkfifo, lambda path: path.symlink_to("/nowhere")])
def test_whatever_has_the_name_stops_no_workplace(everybodys: Path, make: Callable[[Path], None]) -> None:
    make(everybodys / NAME)
    assert in_time(use_workplace)
    with workplace() as place:
        assert place.is_dir()
    assert [each.name for each in everybodys.iterdir()] == [NAME]


def test_what_was_left_is_swept_and_what_is_at_work_is_not(everybodys: Path) -> None:
    left = left_folder(unfinished(everybodys, NAME))
    with workplace() as at_work:
        assert not left.exists()
        (at_work / "file").write_bytes(b"x")
        use_workplace()
        assert (at_work / "file").exists()
    assert not list(everybodys.iterdir())


def test_a_folder_that_others_may_read_is_no_unfinished_one(everybodys: Path) -> None:
    """Where others may rename what is ours, a folder of ours could get such a name: unfinished ones are private."""
    results = unfinished(everybodys, "out.parquet")
    results.mkdir(0o755)
    (results / "file").touch()
    with make_unfinished_file(everybodys / "out.parquet"):
        assert (results / "file").exists()


def test_a_folder_that_is_not_signed_is_no_unfinished_one(everybodys: Path) -> None:
    """Not even a private one, which others cannot enter but may rename; nor one with the signature of another."""
    ours, signed = unfinished(everybodys, "out.parquet"), unfinished(everybodys, "out.parquet", 2)
    ours.mkdir(0o700)
    (ours / "file").touch()
    left_folder(unfinished(everybodys, "out.parquet", 1)).rename(signed)
    unfinished(everybodys, "out.parquet", 3).mkdir(0o700)  # killed before it was signed
    half, full = unfinished(everybodys, "out.parquet", 4), unfinished(everybodys, "out.parquet", 5)
    for each in (half, full):
        each.mkdir(0o700)
        (each / ".relaxdp-unfinished").touch(0o600)  # killed while it was
    (full / "file").touch()  # and so nothing else can be in it
    with make_unfinished_file(everybodys / "out.parquet") as place:
        assert sorted(everybodys.iterdir()) == sorted([ours, signed, full, place])
        assert (ours / "file").exists()
        assert (signed / "within" / "truths").exists()


def test_what_another_machine_left_is_swept_after_a_day(everybodys: Path) -> None:
    """Over a network its locks may not be seen from here, so that a lock which nobody holds proves nothing."""
    file, folder = unfinished(everybodys, "a", machine=ELSEWHERE), unfinished(everybodys, "b", machine=ELSEWHERE)
    file.touch(0o600)
    left_folder(folder)
    old = time.time() - 90_000
    for path in (file, folder, folder / "within"):
        os.utime(path, (old, old))
    temporary.remove_abandoned_files(everybodys)
    assert list(everybodys.iterdir()) == [folder]  # somebody wrote into it
    for path in folder.rglob("*"):
        os.utime(path, (old, old))
    os.utime(folder, (old, old))
    temporary.remove_abandoned_files(everybodys)
    assert not list(everybodys.iterdir())


def test_no_place_at_all(everybodys: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(everybodys / "missing"))
    with pytest.raises(StorageUnavailableError, match="there is no place"):
        use_workplace()


def _come_and_go(target: Path, seconds: float) -> None:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        with temporary._make_unfinished(target, is_folder=True) as folder:
            (folder / "file").write_text("here")
            assert (folder / "file").read_text() == "here"
        with make_unfinished_file(target) as place:
            place.write_text("here")
            assert place.read_text() == "here"


def test_nobody_sweeps_what_was_made_a_moment_ago(tmp_path: Path) -> None:
    """Many come and go at once, and each of them sweeps: a place must not vanish before it is locked."""
    fork = multiprocessing.get_context("fork")
    people = [fork.Process(target=_come_and_go, args=(tmp_path / "target", 1.5)) for _ in range(6)]
    for each in people:
        each.start()
    for each in people:
        each.join(PATIENCE)
    assert [each.exitcode for each in people] == [0] * 6
    assert not list(tmp_path.iterdir())
