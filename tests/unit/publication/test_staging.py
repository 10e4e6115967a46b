"""A finished file gets its mode and its name, whatever others put in its place meanwhile: nothing else is touched."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import pytest
from tests.patience import PATIENCE
from tests.refusals import refused
from typer.testing import CliRunner

import relaxdp as rx
from relaxdp.cli.main import app
from relaxdp.errors import TableFileError
from relaxdp.publication import staging as temporary
from relaxdp.publication.staging import aside, aside_folder, kept_aside, put_in_place, refuse_existing
from relaxdp.table import release

DIGEST = "0123456789abcdef" * 4
EXCHANGED = "was exchanged while it was written"


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
    with aside(target) as place:
        place.write_text("reports")
        assert mode(place) == 0o600
        put_in_place(place, target)
    assert (mode(target), target.read_text()) == (0o640, "reports")
    assert list(target.parent.iterdir()) == [target]


def test_a_folder_gets_the_mode_of_any_new_one(target: Path) -> None:
    with aside_folder(target) as place:
        whole = place / "whole"
        whole.mkdir(0o700)
        for number in range(3):
            (whole / f"part-{number}").touch(0o600)
        put_in_place(whole, target)
    assert mode(target) == 0o750
    assert [mode(target / f"part-{number}") for number in range(3)] == [0o640] * 3
    assert list(target.parent.iterdir()) == [target]


def test_what_was_kept_by_a_run_that_was_killed(target: Path) -> None:
    """In the next run nobody holds it: it must be a file of ours."""
    with aside(target) as place:
        kept = place.rename(kept_aside(target, DIGEST, "ledger"))
    put_in_place(kept, target)
    assert mode(target) == 0o640


def test_what_is_written_at_the_same_time_is_told_apart(target: Path) -> None:
    other = target.with_name("other.parquet")
    with aside(target) as place, aside(other) as elsewhere:
        with refused(TableFileError, says=EXCHANGED):
            put_in_place(elsewhere, target)
        put_in_place(place, target)
        put_in_place(elsewhere, other)
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
            put_in_place(place, target)
        except BaseException as problem:
            found.append(problem)

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    thread.join(PATIENCE)
    assert not thread.is_alive()
    assert not os.path.lexists(target)
    raise found[0]


@pytest.mark.parametrize("is_kept", [False, True], ids=["unfinished", "kept"])
@pytest.mark.parametrize("exchange", EXCHANGES.values(), ids=EXCHANGES)
def test_an_exchanged_file_is_refused(target: Path, ours: Path, exchange: Exchange, is_kept: bool) -> None:
    """Another file of ours under that name would be one that everybody may read afterwards."""
    key = ours / "key"
    before = key.stat()
    with aside(target) as unfinished:
        unfinished.write_text("reports")
        place = unfinished.rename(kept_aside(target, DIGEST, "ledger")) if is_kept else unfinished
        place.rename(target.with_name("away"))
        exchange(place, ours)
        moved = next(path for path in (key, place, place / "key") if path.is_file())
        with refused(TableFileError, says=EXCHANGED):
            put_in_time(place, target)
    # Nor is it removed as if it were unfinished.
    assert (moved.stat().st_ino, mode(moved)) == (before.st_ino, 0o600)
    assert mode(target.with_name("away")) == 0o600


@pytest.mark.parametrize("what", ["a link to a file", "a link to a folder", "a second name", "a pipe", "nothing"])
def test_what_was_kept_and_exchanged_is_refused_later_too(target: Path, ours: Path, what: str) -> None:
    kept = kept_aside(target, DIGEST, "ledger")
    EXCHANGES[what](kept, ours)
    with refused(TableFileError, says=EXCHANGED):
        put_in_time(kept, target)
    assert modes(ours) == {0o600, 0o700}


def test_what_was_kept_by_somebody_else_is_refused(target: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = kept_aside(target, DIGEST, "ledger")
    kept.touch(0o600)
    mine = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: mine + 1)
    with refused(TableFileError, says=EXCHANGED):
        put_in_place(kept, target)
    assert mode(kept) == 0o600


@pytest.mark.parametrize(
    "what", ["a link to a file", "a link to a folder", "a second name", "a folder of ours", "a pipe"]
)
def test_an_entry_that_is_no_file_of_its_own_is_refused(target: Path, ours: Path, what: str) -> None:
    with aside_folder(target) as place:
        whole = place / "whole"
        whole.mkdir(0o700)
        EXCHANGES[what](whole / "part", ours)
        at = whole / "part" if what == "a folder of ours" else ours
        with refused(TableFileError, says=EXCHANGED):
            put_in_time(whole, target)
        assert modes(at) == {0o600, 0o700}
        assert mode(whole) == 0o700


@pytest.mark.parametrize("exchange", [
    lambda place, ours: place.symlink_to(ours), lambda place, ours: ours.rename(place),
])  # fmt: skip
def test_an_exchanged_folder_is_refused(target: Path, ours: Path, exchange: Exchange) -> None:
    """Ours has a folder of the same name in it, whose files must stay as they are."""
    with aside_folder(target) as place:
        (place / "whole").mkdir(0o700)
        place.rename(target.with_name("away"))
        exchange(place, ours)
        with refused(TableFileError, says=EXCHANGED):
            put_in_time(place / "whole", target)
        assert modes(place.resolve()) == {0o600, 0o700}
    assert (place / "whole" / "part").exists()  # nor is any of it removed


def test_a_release_says_so_and_can_be_made_again(tmp_path: Path, ours: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The ledger is charged by then; the same reports come out the next time, and cost nothing."""
    monkeypatch.chdir(tmp_path)
    rx.Key.from_bytes(bytes(range(32))).save(tmp_path / "key")
    Path("in.csv").write_text("id,answer\n1,yes\n2,no\n")
    words = ["release", "in.csv", "out.parquet", "--column", "answer", "--id", "id", "--values", "no,yes"]
    words += ["--epsilon", "1", "--key", "key", "--yes", "--budget", "2"]

    def exchanged(place: Path, target: Path) -> None:
        place.unlink()
        place.symlink_to(ours / "key")
        put_in_place(place, target)

    with monkeypatch.context() as patch:
        patch.setattr(release, "put_in_place", exchanged)
        problem = CliRunner().invoke(app, words).exception
    assert isinstance(problem, TableFileError)
    assert problem.message == (
        f"{problem.fields['name']!r} was exchanged while it was written. "
        "It is charged, and was not handed over: the same release again costs nothing."
    )
    assert modes(ours) == {0o600, 0o700}
    assert not Path("out.parquet").exists()
    again = CliRunner().invoke(app, words[:-2])
    assert again.exit_code == 0, again.output
    assert "cost 0; spent 1" in again.output
    assert mode(Path("out.parquet")) == 0o640


def test_a_folder_that_is_reached_through_a_link_is_one(target: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(target.parent)
    through = tmp_path / "link" / "out.parquet"
    with aside(through) as place:
        put_in_place(place, through)
    assert mode(target) == 0o640


@pytest.mark.parametrize("context", [aside, aside_folder])
def test_a_link_to_nothing_is_not_replaced(
    target: Path, context: Callable[[Path], AbstractContextManager[Path]]
) -> None:
    """It was put there so that something be written elsewhere, or by somebody whose link we could not replace."""
    target.symlink_to("nowhere")
    with refused(TableFileError, says="exists already"), context(target):
        pass
    with refused(TableFileError, says="exists already"):
        refuse_existing(target)
    assert list(target.parent.iterdir()) == [target]
    target.unlink()
    with context(target) as place:
        target.symlink_to("nowhere")
        with refused(TableFileError, says="exists already"):
            put_in_place(place, target)
    assert target.is_symlink()


def test_where_a_system_knows_no_such_descriptors(target: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(os, "name", "another")
        patch.delattr(os, "O_NOFOLLOW")
        patch.delattr(os, "O_DIRECTORY")
        patch.delattr(os, "fchmod")
        with aside(target) as place:
            place.write_text("reports")
            put_in_place(place, target)
        with aside_folder(target.with_name("folder")) as place:
            whole = place / "whole"
            whole.mkdir(0o700)
            (whole / "part").touch(0o600)
            put_in_place(whole, target.with_name("folder"))
    assert (mode(target), mode(target.with_name("folder"))) == (0o640, 0o750)
    assert mode(target.with_name("folder") / "part") == 0o640


def test_nothing_is_remembered_of_what_is_over(target: Path) -> None:
    """A file that gets the number of one that is gone is not taken for it."""
    before = dict(temporary._written)
    with aside(target) as place, aside_folder(target):
        assert len(temporary._written) == len(before) + 2
        put_in_place(place, target)
    with pytest.raises(KeyError), aside_folder(target.with_name("other")):
        raise KeyError
    assert temporary._written == before
