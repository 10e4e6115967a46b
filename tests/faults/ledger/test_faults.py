"""What can go wrong with a ledger in a file: kill -9, a full disk, damage. Nothing overspent, nothing lost."""

from __future__ import annotations

import os
import random
import resource
import shutil
import signal
import sqlite3
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from tests.faults.ledger.ledger_work import EVERYONE, FACTS, FORK, is_one_sentence, path
from tests.patience import PATIENCE, until
from tests.refusals import refused

from relaxdp.errors import (
    LedgerAccessError,
    LedgerDamagedError,
    LedgerError,
    LedgerFullError,
    LedgerLockedError,
)
from relaxdp.ledger import sqlite
from relaxdp.ledger.entries import Entry
from relaxdp.ledger.ledger import Ledger


@pytest.fixture
def place(tmp_path: Path) -> Path:
    with Ledger.open(tmp_path / "ledger.db") as ledger:
        ledger.charge(EVERYONE, path("a"), FACTS, "0.5", budget=1)
    return tmp_path / "ledger.db"


# kill -9


def _create_forever(folder: str) -> None:
    for number in range(100_000):
        Ledger.open(Path(folder) / f"{number}.db").charge(EVERYONE, path("a"), FACTS, "0.5", budget=1)


def test_killed_while_a_ledger_is_created(tmp_path: Path) -> None:
    """What bears the ledger's name is a whole ledger with its first charge, always; a mark never stands without one."""
    chance, whole = random.Random(7), 0
    for attempt in range(8):
        folder = tmp_path / str(attempt)
        folder.mkdir()
        worker = FORK.Process(target=_create_forever, args=(str(folder),))
        worker.start()
        until((folder / "0.db").exists)
        time.sleep(chance.uniform(0, 0.1))
        assert worker.pid is not None
        os.kill(worker.pid, signal.SIGKILL)
        worker.join()
        for place in folder.glob("[0-9]*.db"):
            with Ledger.open(place) as ledger:
                ledger.verify()
                assert ledger.charge(EVERYONE, path("a"), FACTS, "0.5").cost == 0
            whole += 1
        assert all(mark.with_suffix("").exists() for mark in folder.glob("*.begun"))
    assert whole >= 8


def test_the_commit_is_on_disk_before_the_charge_returns(place: Path) -> None:
    """A copy of the files as they are right after the call, without any closing, holds the charge."""
    holder = sqlite3.connect(place)  # somebody keeps the file open, so that the log is not folded in on close
    assert holder.execute("SELECT count(*) FROM ledger_event").fetchone() == (3,)
    with Ledger.open(place) as ledger:
        ledger.charge(EVERYONE, path("a"), FACTS, 1)
        copies = place.parent / "copies"
        copies.mkdir()
        for suffix in ("", "-wal"):
            shutil.copyfile(f"{place}{suffix}", copies / f"ledger.db{suffix}")
    holder.close()
    with Ledger.open(copies / "ledger.db") as copy:
        assert copy.balance(EVERYONE).spent == 1
    with sqlite.SqliteStore(place, timeout=PATIENCE).writing() as connection:
        assert connection.exec_driver_sql("PRAGMA synchronous").scalar() == 2  # FULL: each commit is synced


# A full disk


def test_no_room_for_another_page(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pages = sqlite3.connect(place)
    count = pages.execute("PRAGMA page_count").fetchone()[0]
    pages.close()
    monkeypatch.setattr(sqlite, "PRAGMAS", (*sqlite.PRAGMAS, f"max_page_count = {count}"))
    with Ledger.open(place) as ledger:
        problem, before, number = None, 0, 0
        while problem is None:
            before, number = len(ledger.history()), number + 1
            try:
                ledger.charge_all(
                    EVERYONE, [Entry(path(f"{number}-{each}"), FACTS, Decimal("0.0001")) for each in range(5)]
                )
            except LedgerFullError as found:
                problem = found
        assert "the disk is full" in problem.message
        is_one_sentence(problem, str(place))
        assert len(ledger.history()) == before
        ledger.verify()
    monkeypatch.undo()
    with Ledger.open(place) as ledger:  # when there is room again, it goes on
        ledger.charge(EVERYONE, path("a"), FACTS, "0.6")
        ledger.verify()


def in_a_child(work: Callable[[], object], *, without_rights: bool = False) -> LedgerError:
    """Run something in a process of its own, which may give up rights, and return how it was refused."""
    results: Any = FORK.Queue()

    def child() -> None:
        try:
            if without_rights and os.geteuid() == 0:  # root may do everything, so nobody must try
                os.setgroups([])
                os.setgid(65534)
                os.setuid(65534)
            results.put((None, repr(work()), {}))
        except LedgerError as problem:
            results.put((type(problem), problem.message, problem.fields))
        except BaseException as problem:
            results.put((None, repr(problem), {}))

    worker = FORK.Process(target=child)
    worker.start()
    kind, message, fields = results.get(timeout=PATIENCE)
    worker.join()
    assert kind is not None, message
    error: LedgerError = kind(message, **fields)
    return error


def test_a_write_that_the_system_refuses(place: Path) -> None:
    """A real refusal in the middle of the log: the process may not write files beyond a size."""

    def work() -> None:
        with Ledger.open(place) as ledger:
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (6000, 6000))
            ledger.charge(EVERYONE, path("a"), FACTS, 1)

    problem = in_a_child(work)
    assert isinstance(problem, LedgerFullError)
    is_one_sentence(problem, str(place))
    with Ledger.open(place) as ledger:
        assert ledger.balance(EVERYONE).spent == Decimal("0.5")
        ledger.verify()


def test_no_room_for_a_new_ledger(tmp_path: Path) -> None:
    def work() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (3000, 3000))
        Ledger.open(tmp_path / "ledger.db").charge(EVERYONE, path("a"), FACTS, 1, budget=1)

    problem = in_a_child(work)
    assert isinstance(problem, LedgerFullError)
    is_one_sentence(problem, str(tmp_path / "ledger.db"))
    assert list(tmp_path.iterdir()) == []


# Damage


def test_not_a_database(tmp_path: Path) -> None:
    place = tmp_path / "ledger.db"
    for content in (b"", b"x", b"id,diagnosis\n1,flu\n" * 1000, os.urandom(8192)):
        place.write_bytes(content)
        with pytest.raises(LedgerDamagedError, match="damaged|no ledger") as found:
            Ledger.open(place)
        is_one_sentence(found.value, str(place))
        assert place.read_bytes() == content


def test_a_database_of_another_kind(tmp_path: Path) -> None:
    place = tmp_path / "ledger.db"
    other = sqlite3.connect(place)
    other.execute("CREATE TABLE bookmarks (url)")
    other.close()
    content = place.read_bytes()
    with pytest.raises(LedgerDamagedError, match="is a database, but no ledger") as found:
        Ledger.open(place)
    is_one_sentence(found.value, str(place))
    assert place.read_bytes() == content


def test_a_truncated_file(place: Path) -> None:
    content = place.read_bytes()
    for length in [0, 1, 50, 100, 512, *range(4096, len(content), 2048), len(content) - 1]:
        place.write_bytes(content[:length])
        with pytest.raises(LedgerDamagedError) as found:
            Ledger.open(place)
        is_one_sentence(found.value, str(place))


def test_a_damaged_page_is_refused_or_shown_never_spent_from(place: Path) -> None:
    """Every page in turn is overwritten by noise, from its beginning and in its middle."""
    content, chance, refusals = place.read_bytes(), random.Random(3), 0
    pages = range(0, len(content), 4096)
    for start in pages:
        for offset in (0, 1000, 3000):
            damaged = bytearray(content)
            damaged[start + offset : start + offset + 1000] = chance.randbytes(1000)
            place.write_bytes(bytes(damaged))
            try:
                with Ledger.open(place) as ledger:
                    ledger.verify()
                    # Only what nobody uses was hit: everything still adds up.
                    assert ledger.balance(EVERYONE).spent == Decimal("0.5")
            except LedgerError as problem:
                is_one_sentence(problem, str(place))
                refusals += 1
    assert refusals >= len(pages)


def test_a_ledger_that_went_back_is_noticed(place: Path) -> None:
    backup = place.read_bytes()
    with Ledger.open(place) as ledger:
        ledger.charge(EVERYONE, path("a"), FACTS, 1)
        place.write_bytes(backup)
        with pytest.raises(LedgerDamagedError, match="went back to an earlier state") as found:
            ledger.charge(EVERYONE, path("a"), FACTS, 1)
        is_one_sentence(found.value, str(place))


def test_a_ledger_that_disappears_is_not_begun_anew(place: Path) -> None:
    with Ledger.open(place) as ledger:
        place.unlink()
        with pytest.raises(LedgerAccessError, match="it is gone") as found:
            ledger.charge(EVERYONE, path("a"), FACTS, 1)
        is_one_sentence(found.value, str(place))
    assert not place.exists()
    with pytest.raises(LedgerAccessError, match="is gone: one was begun here"):
        Ledger.open(place)
    Path(f"{place}.begun").unlink()
    with pytest.raises(LedgerAccessError, match="does not exist"):
        Ledger.open(place, create=False)
    Path(f"{place}-wal").write_bytes(b"x")
    for create in (True, False):
        with pytest.raises(LedgerDamagedError, match="its log .* is still there"):
            Ledger.open(place, create=create)


# Locks and rights


@contextmanager
def held(place: Path) -> Iterator[None]:
    holder = sqlite3.connect(place, isolation_level=None)
    holder.execute("PRAGMA locking_mode = EXCLUSIVE")
    holder.execute("BEGIN EXCLUSIVE")
    try:
        yield
    finally:
        holder.execute("ROLLBACK")
        holder.close()


def test_a_file_that_somebody_keeps_for_himself(place: Path) -> None:
    with held(place), pytest.raises(LedgerLockedError):
        Ledger.open(place, timeout=0.1)


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that another user can reach."""
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o755)
    yield folder
    folder.chmod(0o755)
    shutil.rmtree(folder)


@pytest.mark.parametrize(("file_mode", "folder_mode"), [(0o444, 0o777), (0o444, 0o555), (0o000, 0o555)])
def test_a_ledger_that_may_not_be_written(open_folder: Path, file_mode: int, folder_mode: int) -> None:
    place = open_folder / "ledger.db"
    with Ledger.open(place) as ledger:
        ledger.charge(EVERYONE, path("a"), FACTS, "0.5", budget=1)
    place.chmod(file_mode)
    open_folder.chmod(folder_mode)
    problem = in_a_child(lambda: Ledger.open(place).charge(EVERYONE, path("a"), FACTS, 1), without_rights=True)
    assert isinstance(problem, LedgerAccessError)
    is_one_sentence(problem, str(place))


def test_a_folder_that_may_not_be_written(open_folder: Path) -> None:
    open_folder.chmod(0o555)
    problem = in_a_child(lambda: Ledger.open(open_folder / "ledger.db"), without_rights=True)
    assert isinstance(problem, LedgerAccessError)
    assert "cannot be created: Permission denied" in problem.message
    is_one_sentence(problem, str(open_folder / "ledger.db"))


def test_places_that_are_none(place: Path) -> None:
    with pytest.raises(LedgerAccessError, match="cannot be created: its folder cannot be used"):
        Ledger.open(place.parent / "absent" / "ledger.db")
    with refused(LedgerAccessError, what="is not a file"):
        Ledger.open(place.parent)
    os.link(place, place.parent / "second.db")
    with pytest.raises(LedgerAccessError, match="has a second name"):
        Ledger.open(place)


def test_one_ledger_under_every_name_of_its_file(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (place.parent / "link.db").symlink_to(place)
    monkeypatch.chdir(place.parent)
    with Ledger.open("ledger.db") as relative, Ledger.open(place.parent / "link.db") as link:
        monkeypatch.chdir("/")
        relative.charge(EVERYONE, path("a"), FACTS, 1)
        assert link.balance(EVERYONE).spent == 1
