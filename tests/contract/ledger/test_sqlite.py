"""What can go wrong with a ledger in a file: a full disk, damage, rights. One sentence each, and nothing is lost."""

from __future__ import annotations

import os
import random
import resource
import shutil
import signal
import sqlite3
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.contract.ledger.ledger_places import FORK, KEY, VAULT, FilePlace, charge, created, spend
from tests.patience import PATIENCE

from relaxdp.errors import (
    LedgerBusyError,
    LedgerError,
    LedgerUncertainError,
    MissingDependencyError,
)
from relaxdp.ledger import sqlite_store
from relaxdp.ledger.ledger import Ledger, open_store
from relaxdp.ledger.sqlite_store import SqliteStore


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A ledger of two events."""
    ledger = open_ledger(tmp_path / "ledger.db")
    ledger.create(created())
    ledger.append_event(charge)
    return tmp_path / "ledger.db"


def open_ledger(path: Path) -> Ledger:
    return Ledger(SqliteStore(path, timeout=PATIENCE), KEY, VAULT)


def rejected(
    kind: type[LedgerError], path: Path, words: str, use: Callable[[Ledger], object] = Ledger.read_account
) -> None:
    with pytest.raises(kind, match=words) as found:
        use(open_ledger(path))
    assert_one_sentence(found.value, path)


def assert_one_sentence(problem: LedgerError, path: Path) -> None:
    assert str(path) in problem.message or VAULT in problem.message
    assert problem.sentence.startswith("The ledger ")
    assert problem.sentence.endswith(".")
    assert problem.hint
    for word in ("\n", "SELECT", "INSERT", "event (", "sqlite3"):
        assert word not in problem.message


def append(ledger: Ledger) -> object:
    return ledger.append_event(charge)


def test_a_private_file_and_nothing_next_to_it(path: Path) -> None:
    assert path.stat().st_mode & 0o777 == 0o600
    assert [each.name for each in path.parent.iterdir()] == ["ledger.db"]
    [(application,)], [(version,)], [(journal,)] = (
        FilePlace(path).run(f"PRAGMA {name}") for name in ("application_id", "user_version", "journal_mode")
    )
    assert (application, version, journal) == (int.from_bytes(b"rxdp"), 1, "delete")


def test_a_commit_is_on_disk_before_it_returns(path: Path) -> None:
    open_ledger(path).append_event(charge)
    copy = path.with_name("copy.db")
    copy.write_bytes(path.read_bytes())
    assert open_ledger(copy).read_account().number == 3
    with SqliteStore(path).begin_transaction("write") as rows:
        found = [rows._connection.execute(f"PRAGMA {name}").fetchone()[0] for name in ("synchronous", "fullfsync")]
    assert found == [3, 1]  # EXTRA


def test_each_call_opens_one_connection(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[object] = []
    connect: Callable[..., sqlite3.Connection] = sqlite3.connect

    def counted(*given: Any, **more: Any) -> sqlite3.Connection:
        opened.append(given)
        return connect(*given, **more)

    monkeypatch.setattr(sqlite3, "connect", counted)
    ledger = open_ledger(path)
    assert (ledger.read_account().number, ledger.get_digest(1) is None, len(opened)) == (2, False, 1)
    ledger.append_event(charge)
    assert (ledger.get_digest(3) is None, len(opened)) == (False, 2)


# A full disk


def test_no_room_for_another_page(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    [(pages,)] = FilePlace(path).run("PRAGMA page_count")
    monkeypatch.setattr(sqlite_store, "PRAGMAS", (*sqlite_store.PRAGMAS, f"max_page_count = {pages}"))
    before = open_ledger(path).read_account()

    def fill(ledger: Ledger) -> None:
        for _ in range(100):
            ledger.append_event(lambda account: charge(account, "x" * 400, levels={"y" * 400: "0.001"}))

    rejected(LedgerError, path, "the disk is full", fill)
    monkeypatch.undo()
    assert open_ledger(path).read_account().number >= before.number
    open_ledger(path).append_event(charge)


def in_a_child(path: Path, work: Callable[[], object], *, without_rights: bool = False) -> LedgerError:
    """Run something in another process, which may give up its rights, and return how it was rejected."""
    results: Any = FORK.Queue()

    def child() -> None:
        try:
            if without_rights and os.geteuid() == 0:
                os.setgroups([])
                os.setgid(65534)
                os.setuid(65534)
            results.put(repr(work()))
        except BaseException as problem:
            results.put(problem if isinstance(problem, LedgerError) else repr(problem))

    worker = FORK.Process(target=child)
    worker.start()
    found = results.get(timeout=PATIENCE)
    worker.join()
    assert isinstance(found, LedgerError), found
    assert_one_sentence(found, path)
    return found


@pytest.mark.parametrize("limit", [100, 3000, 6000])
def test_a_write_that_the_system_rejects(path: Path, limit: int) -> None:
    def work() -> object:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
        return append(open_ledger(path))

    assert isinstance(in_a_child(path, work), LedgerError | LedgerUncertainError)
    assert open_ledger(path).read_account().number == 2


def test_no_room_for_a_new_ledger(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"

    def work() -> object:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (3000, 3000))
        return open_ledger(path).create(created())

    assert isinstance(in_a_child(path, work), LedgerError | LedgerUncertainError)
    assert list(tmp_path.iterdir()) == []


def test_an_error_that_hides_how_a_commit_ended(path: Path) -> None:
    store, error = SqliteStore(path), sqlite3.OperationalError("disk I/O error")
    error.sqlite_errorcode = sqlite3.SQLITE_IOERR_DIR_FSYNC
    assert isinstance(store._make_error(store._explain_error(error, "use")), LedgerError)
    problem = store._make_error(store._explain_error(error, "commit"))
    assert isinstance(problem, LedgerUncertainError)
    assert problem.message.endswith("Nothing is charged twice.")
    assert_one_sentence(problem, path)


# Damage


def test_not_a_ledger(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    for content in (b"", b"x", b"id,diagnosis\n1,flu\n" * 1000, os.urandom(8192)):
        path.write_bytes(content)
        for use in (Ledger.read_account, append):
            rejected(LedgerError, path, "is damaged, or is not a ledger", use)
        assert path.read_bytes() == content
    path.unlink()
    sqlite3.connect(path).executescript("CREATE TABLE event (number, content, digest)")
    rejected(LedgerError, path, "is damaged, or is not a ledger")


def test_another_version(path: Path) -> None:
    FilePlace(path).run("PRAGMA user_version = 2")
    rejected(LedgerError, path, "has version 2, and this version of relaxdp needs 1")


@pytest.mark.parametrize(
    "statement",
    ["UPDATE event SET content = x'00ff'", "UPDATE event SET content = CAST(x'ff' AS TEXT)", "DROP TABLE event"],
)
def test_rows_that_cannot_be_read(path: Path, statement: str) -> None:
    FilePlace(path).tamper(statement)
    rejected(LedgerError, path, "is damaged")


def test_a_truncated_file(path: Path) -> None:
    content = path.read_bytes()
    for length in [0, 1, 50, 100, 512, *range(1024, len(content), 1024), len(content) - 1]:
        path.write_bytes(content[:length])
        try:
            assert open_ledger(path).read_account().number == 2  # only unused bytes of the last page are gone
        except LedgerError as problem:
            assert_one_sentence(problem, path)
        else:
            assert length > len(content) - 4096


def test_a_damaged_page_is_rejected_or_unused(path: Path) -> None:
    for name in range(20):
        assert spend(open_ledger(path), str(name), "0.001")
    content, account, chance, rejections = path.read_bytes(), open_ledger(path).read_account(), random.Random(3), 0
    for start in range(0, len(content), 1024):
        damaged = bytearray(content)
        damaged[start : start + 1024] = chance.randbytes(1024)
        path.write_bytes(bytes(damaged))
        try:
            assert open_ledger(path).read_account() == account
        except LedgerError as problem:
            assert_one_sentence(problem, path)
            rejections += 1
    assert rejections > len(content) / 4096


def test_a_ledger_that_disappears_is_not_created_again(path: Path) -> None:
    ledger = open_ledger(path)
    ledger.read_account()
    path.unlink()
    for use in (Ledger.read_account, append):
        with pytest.raises(LedgerError, match="is missing") as found:
            use(ledger)
        assert "A new ledger would not contain the epsilon spent" in found.value.hint
    assert not path.exists()


# Locks and rights


def test_a_file_that_another_program_keeps(path: Path) -> None:
    holder = sqlite3.connect(path, isolation_level=None)
    holder.execute("BEGIN EXCLUSIVE")
    with pytest.raises(LedgerBusyError):
        Ledger(SqliteStore(path, timeout=0.1), KEY, VAULT).read_account()
    holder.close()


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that another user can reach."""
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o755)
    yield folder
    folder.chmod(0o755)
    shutil.rmtree(folder)


@pytest.mark.parametrize(("file_mode", "folder_mode"), [(0o444, 0o777), (0o444, 0o555), (0o666, 0o555), (0, 0o555)])
def test_a_ledger_that_may_not_be_written(open_folder: Path, file_mode: int, folder_mode: int) -> None:
    path = open_folder / "ledger.db"
    open_ledger(path).create(created())
    path.chmod(file_mode)
    open_folder.chmod(folder_mode)
    problem = in_a_child(path, lambda: append(open_ledger(path)), without_rights=True)
    assert isinstance(problem, LedgerError)
    assert "Check the owner and the mode" in problem.hint


def test_places_that_cannot_hold_a_ledger(path: Path, open_folder: Path) -> None:
    with pytest.raises(LedgerError, match="cannot be created: No such file"):
        open_ledger(path.parent / "absent" / "ledger.db").create(created())
    open_folder.chmod(0o555)
    made = open_ledger(open_folder / "ledger.db")
    problem = in_a_child(open_folder, lambda: made.create(created()), without_rights=True)
    assert "cannot be created: Permission denied" in problem.sentence
    rejected(LedgerError, path.parent, "cannot be opened")
    os.link(path, path.with_name("second.db"))
    rejected(LedgerError, path, "has a second name")


def test_one_ledger_under_every_name_of_its_file(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (path.parent / "link.db").symlink_to(path)
    monkeypatch.chdir(path.parent)
    relative, link = open_ledger(Path("ledger.db")), open_ledger(path.parent / "link.db")
    monkeypatch.chdir("/")
    relative.append_event(charge)
    assert link.read_account().number == 3
    assert link.address == relative.address == str(path)


# Addresses


@pytest.mark.parametrize(
    "place",
    ["mysql://u:s3cret@h/d", "sqlite:///s3cret", "postgres:u:s3cret@h", "host=h password=s3cret", "postgresql:/x"],
)
def test_an_address_that_is_no_ledger_is_not_shown(place: str) -> None:
    with pytest.raises(LedgerError, match="must be the URL of a PostgreSQL database") as found:
        open_store(place, VAULT)
    assert "s3cret" not in repr(found.value) + str(found.value.fields)


def test_a_path_is_a_file(tmp_path: Path) -> None:
    assert open_store(tmp_path / "a:b.db", VAULT).address == str(tmp_path / "a:b.db")


def test_postgres_without_psycopg(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "relaxdp.ledger.postgres_store", None)
    with pytest.raises(MissingDependencyError, match=r"pip install 'relaxdp\[postgres\]'"):
        open_store("postgresql://u@h/d", VAULT)
