"""A finished file gets its mode and its name, whatever others put in its place meanwhile: nothing else is touched."""

from __future__ import annotations

import os
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from tests.patience import PATIENCE
from tests.refusals import refused

import relaxdp as rx
from relaxdp.errors import TableFileError
from relaxdp.tables import release_output
from relaxdp.tables.atomic_files import make_temporary_folder, make_unfinished_file, move_to_target

EXCHANGED = "while it was written"


@pytest.fixture(autouse=True)
def umask() -> Iterator[None]:
    """Modes are those of any new file, so the tests must know what these are."""
    before = os.umask(0o027)
    yield
    os.umask(before)


@pytest.fixture
def ours(tmp_path: Path) -> Path:
    """A folder of ours, in which everything is for us alone."""
    folder = tmp_path / "ours"
    folder.mkdir(0o700)
    for path in (folder / "key", folder / "whole" / "part"):
        path.parent.mkdir(0o700, exist_ok=True)
        path.touch(0o600)
    return folder


@pytest.fixture
def target(tmp_path: Path) -> Path:
    folder = tmp_path / "shared"
    folder.mkdir()
    folder.chmod(0o777)
    return folder / "out.parquet"


def mode(path: Path) -> int:
    return path.stat().st_mode & 0o777


def modes(ours: Path) -> set[int]:
    """Return the modes of a folder and all that is in it."""
    return {mode(path) for path in (ours, *ours.rglob("*"))}


def test_a_file_gets_the_mode_of_any_new_one(target: Path) -> None:
    with make_unfinished_file(target) as place:
        place.write_text("reports")
        assert mode(place) == 0o600
        move_to_target(place, target)
    assert (mode(target), target.read_text()) == (0o640, "reports")
    assert list(target.parent.iterdir()) == [target]


def test_what_is_written_at_the_same_time_is_told_apart(target: Path) -> None:
    other = target.with_name("other.parquet")
    with make_unfinished_file(target) as place, make_unfinished_file(other) as elsewhere:
        with refused(TableFileError, says=EXCHANGED):
            move_to_target(elsewhere, target)
        move_to_target(place, target)
        move_to_target(elsewhere, other)
    assert sorted(target.parent.iterdir()) == sorted([target, other])


Exchange = Callable[[Path, Path], object]
EXCHANGES: dict[str, Exchange] = {
    "a link to a file": lambda place, ours: place.symlink_to(ours / "key"),
    "a link to a folder": lambda place, ours: place.symlink_to(ours),
    "a link to nothing": lambda place, ours: place.symlink_to(ours / "nothing"),
    "a second name": lambda place, ours: place.hardlink_to(ours / "key"),
    "another file of ours": lambda place, ours: (ours / "key").rename(place),
    "a folder of ours": lambda place, ours: ours.rename(place),
    "a pipe": lambda place, _: os.mkfifo(place, 0o600),
    "a new file": lambda place, _: place.touch(0o600),
    "nothing": lambda place, _: None,
}


def put_in_time(place: Path, target: Path) -> None:
    """Put in place, which must be refused in time, with nothing under the name; a pipe would block whoever opens it."""
    found: list[BaseException] = []

    def work() -> None:
        try:
            move_to_target(place, target)
        except BaseException as problem:
            found.append(problem)

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    thread.join(PATIENCE)
    assert not thread.is_alive()
    assert not os.path.lexists(target)
    raise found[0]


@pytest.mark.parametrize("exchange", EXCHANGES.values(), ids=EXCHANGES)
def test_an_exchanged_file_is_rejected(target: Path, ours: Path, exchange: Exchange) -> None:
    """Another private file under that name would be one that everybody may read afterwards."""
    key = ours / "key"
    before = key.stat()
    with make_unfinished_file(target) as place:
        place.write_text("reports")
        place.rename(target.with_name("away"))
        exchange(place, ours)
        moved = next(path for path in (key, place, place / "key") if path.is_file())
        with refused(TableFileError, says=EXCHANGED):
            put_in_time(place, target)
    # Nor is it removed as if it were unfinished.
    assert (moved.stat().st_ino, mode(moved)) == (before.st_ino, 0o600)
    assert mode(target.with_name("away")) == 0o600


def test_a_release_states_that_it_is_charged(tmp_path: Path, ours: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same reports come out the next time, and cost nothing."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    Path("in.csv").write_text("id,answer\n" + "".join(f"{number:03},yes\n{number:03}b,no\n" for number in range(200)))
    vault = rx.Vault.create("study.vault", budget=2)

    def release() -> rx.Release:
        columns = {"answer": ["no", "yes"]}
        return vault.release("in.csv", columns, id="id", epsilon=1, name="in", output="out.parquet")

    def exchanged(place: Path, target: Path) -> None:
        place.unlink()
        place.symlink_to(ours / "key")
        move_to_target(place, target)

    with monkeypatch.context() as patch:
        patch.setattr(release_output, "move_to_target", exchanged)
        with refused(TableFileError, says=EXCHANGED) as caught:
            release()
    assert caught.value.consequence == (
        "The release was charged, but its rows were not written. The same call again writes them at no cost."
    )
    assert modes(ours) == {0o600, 0o700}
    assert not Path("out.parquet").exists()
    assert (float(release().cost), float(vault.spent), mode(Path("out.parquet"))) == (0, 1, 0o640)


def count_open_files() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def interrupt(function: str, event_number: int) -> Callable[[FrameType, str, object], Any]:
    """Return a trace function that raises once, as Ctrl-C does, at one of the lines of a function."""
    left = [event_number]

    def trace(frame: FrameType, event: str, argument: object) -> Any:
        if frame.f_code.co_name != function:
            return None
        left[0] -= 1
        if left[0] == -1:
            raise KeyboardInterrupt
        return trace

    return trace


@pytest.mark.parametrize("make", [make_temporary_folder, lambda: make_unfinished_file(Path("reports.csv").resolve())])
def test_an_interrupted_removal_is_completed(
    make: Callable[[], AbstractContextManager[Path]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ctrl-C may come at any line of the removal, while true values of a sort lie in the folder."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    before, interrupts = sys.gettrace(), 0
    while True:
        files_before = count_open_files()
        try:
            with make() as place:
                (place / "values" if place.is_dir() else place).write_text("flu")
                sys.settrace(interrupt("_remove_unfinished", interrupts))
            break
        except KeyboardInterrupt:
            interrupts += 1
        finally:
            sys.settrace(before)
            assert not list(tmp_path.iterdir())
            assert count_open_files() <= files_before + 1
    assert interrupts > 4


@pytest.mark.parametrize("make", [make_temporary_folder, lambda: make_unfinished_file(Path("reports.csv").resolve())])
def test_an_interrupted_creation_leaves_nothing(
    make: Callable[[], AbstractContextManager[Path]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    before, interrupts = sys.gettrace(), 0
    while True:
        sys.settrace(interrupt("_try_create_and_lock", interrupts))
        try:
            with make():
                sys.settrace(before)
            break
        except KeyboardInterrupt:
            interrupts += 1
        finally:
            sys.settrace(before)
            assert not list(tmp_path.iterdir())
    assert interrupts > 4


def test_a_link_to_nothing_is_not_replaced(target: Path) -> None:
    target.symlink_to("nothing")
    with refused(TableFileError, says="exists"), make_unfinished_file(target):
        pass
    assert target.is_symlink()


def test_a_folder_that_is_reached_through_a_link_is_one(target: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(target.parent)
    through = tmp_path / "link" / "out.parquet"
    with make_unfinished_file(through) as place:
        move_to_target(place, through)
    assert mode(target) == 0o640
