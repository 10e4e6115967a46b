"""What can go wrong with a ledger: races, kill -9, a full disk, damage. Nothing overspent, nothing lost."""

from __future__ import annotations

import multiprocessing
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

from relaxdp.errors import (
    BudgetExceededError,
    LedgerAccessError,
    LedgerDamagedError,
    LedgerError,
    LedgerFullError,
    LedgerLockedError,
    LedgerVersionError,
)
from relaxdp.ledger import sqlite
from relaxdp.ledger.ledger import Ledger
from relaxdp.ledger.migrate import VERSION_TABLE
from relaxdp.ledger.paths import PathFacts, PathIdentity
from relaxdp.ledger.subject import Subject

EVERYONE = Subject.population("everyone")
FACTS = PathFacts("categorical", "ab" * 32, "1234", "text", "aa")
FORK = multiprocessing.get_context("fork")
STEP = Decimal("0.001")


def path(name: object) -> PathIdentity:
    return PathIdentity("r", str(name))


@pytest.fixture
def place(tmp_path: Path) -> Path:
    with Ledger.open(tmp_path / "ledger.db") as ledger:
        ledger.charge(EVERYONE, path("a"), FACTS, "0.5", budget=1)
    return tmp_path / "ledger.db"


def is_one_sentence(problem: LedgerError, place: Path) -> None:
    """It names the file, says that nothing was released, and shows nothing of SQL."""
    assert problem.message.startswith(f"the ledger {str(place)!r} ")
    assert problem.message.endswith(". Nothing was released.")
    assert "\n" not in problem.message
    assert "SELECT" not in problem.message
    assert problem.fields["path"] == str(place)


# Races


def _spend(where: str, number: int, start: Any, results: Any) -> None:
    start.wait()
    granted = 0
    with Ledger.open(where) as ledger:
        for step in range(4):
            try:
                ledger.charge(EVERYONE, path(f"{number}-{step}"), FACTS, "0.1", budget="2.05")
                granted += 1
            except BudgetExceededError:
                pass
    results.put(granted)


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_processes_that_spend_the_last_of_a_budget(tmp_path: Path, method: str) -> None:
    """16 processes (or 4 that share nothing at all) create one ledger and want 6.4 (or 1.6) of 2.05 at once."""
    context: Any = multiprocessing.get_context(method)
    count = 16 if method == "fork" else 4
    start, results, where = context.Event(), context.Queue(), tmp_path / "ledger.db"
    workers = [context.Process(target=_spend, args=(str(where), number, start, results)) for number in range(count)]
    for worker in workers:
        worker.start()
    start.set()
    granted = sum(results.get(timeout=60) for _ in workers)
    for worker in workers:
        worker.join()
        assert worker.exitcode == 0
    assert granted == min(20, count * 4)
    with Ledger.open(where) as ledger:
        ledger.verify()
        assert ledger.balance(EVERYONE).spent == Decimal("0.1") * granted
    assert sorted(file.name for file in tmp_path.iterdir()) == ["ledger.db"]  # nothing is left lying about


def _open_and_count(where: str, start: Any, results: Any) -> None:
    start.wait()
    results.put(len(Ledger.open(where).history()))


def test_16_processes_open_a_new_file_at_once(tmp_path: Path) -> None:
    for round_ in range(5):
        start, results, where = FORK.Event(), FORK.Queue(), tmp_path / f"{round_}.db"
        workers = [FORK.Process(target=_open_and_count, args=(str(where), start, results)) for _ in range(16)]
        for worker in workers:
            worker.start()
        start.set()
        assert [results.get(timeout=60) for _ in workers] == [0] * 16
        for worker in workers:
            worker.join()
        assert where.stat().st_mode & 0o777 == 0o600
    assert len(list(tmp_path.iterdir())) == 5


# kill -9


def until(condition: Callable[[], object]) -> None:
    """Wait for something that another process does."""
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline, "the other process did not get there"
        time.sleep(0.002)


def _spend_forever(where: str, worker: int, log: str) -> None:
    """Charge a little more, again and again, and acknowledge each after it returned."""
    descriptor = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    ledger = Ledger.open(where)
    for _ in range(100_000):
        paths = ledger.balance(EVERYONE).paths if ledger.subjects() else ()
        here = max((each.largest for each in paths if each.identity == path(worker)), default=Decimal(0)) + STEP
        ledger.charge_all(EVERYONE, [(path(worker), FACTS, here), (path(f"{worker}-b"), FACTS, here)], budget=10**9)
        os.write(descriptor, f"{worker} {here}\n".encode())


def kill_at_random_instants(folder: Path, kills: int, *, seed: int, writers: int = 2) -> int:
    """Kill writers while they charge, and check the ledger after each kill; return how many charges were acknowledged.

    Never less than what was acknowledged, never half of a charge, never damaged; a charge that was not acknowledged
    may have been written, at most one per killed process.
    """
    chance = random.Random(seed)
    where, log = folder / "ledger.db", folder / "log"
    before: dict[str, Decimal] = {}
    for kill in range(kills):
        size = log.stat().st_size if log.exists() else 0
        workers = [FORK.Process(target=_spend_forever, args=(str(where), n, str(log))) for n in range(writers)]
        for worker in workers:
            worker.start()
        if kill % 2:  # every other time in the middle of the work, however slow the machine; else anywhere
            until(lambda: log.exists() and log.stat().st_size > size)  # noqa: B023
        time.sleep(chance.uniform(0, 0.15))
        for worker in workers:
            assert worker.pid is not None
            os.kill(worker.pid, signal.SIGKILL)
        for worker in workers:
            worker.join()
            assert worker.exitcode == -signal.SIGKILL
        if not where.exists():
            assert not log.exists() or not log.stat().st_size
            continue
        acknowledged: dict[str, Decimal] = {}
        for line in log.read_text().splitlines() if log.exists() else []:
            number, level = line.split()
            assert Decimal(level) > acknowledged.get(number, Decimal(0))
            acknowledged[number] = Decimal(level)
        with Ledger.open(where) as ledger:  # checks the file
            ledger.verify()  # every account is what its events add up to, within its budget
            paths = ledger.balance(EVERYONE).paths if ledger.subjects() else ()
        after = {each.identity.attribute: each.largest for each in paths}
        for number in map(str, range(writers)):
            told = max(acknowledged.get(number, Decimal(0)), before.get(number, Decimal(0)))
            assert told <= after.get(number, Decimal(0)) <= told + STEP
            assert after.get(number) == after.get(f"{number}-b")
        before = after
    return len(log.read_text().splitlines())


def test_killed_at_random_instants(tmp_path: Path) -> None:
    """40 times two writers; `make faults` runs the campaign of 500."""
    kills = int(os.environ.get("RELAXDP_FAULTS", "40"))
    assert kill_at_random_instants(tmp_path, kills, seed=20260701) >= kills / 2


def _create_forever(folder: str) -> None:
    for number in range(100_000):
        Ledger.open(Path(folder) / f"{number}.db")


def test_killed_while_a_ledger_is_created(tmp_path: Path) -> None:
    """What bears the ledger's name is a whole ledger, always."""
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
            Ledger.open(place).verify()
            whole += 1
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
    with sqlite.SqliteStore(place, timeout=1).writing() as connection:
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
                ledger.charge_all(EVERYONE, [(path(f"{number}-{each}"), FACTS, "0.0001") for each in range(5)])
            except LedgerFullError as found:
                problem = found
        assert "the disk is full" in problem.message
        is_one_sentence(problem, place)
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
    kind, message, fields = results.get(timeout=60)
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
    is_one_sentence(problem, place)
    with Ledger.open(place) as ledger:
        assert ledger.balance(EVERYONE).spent == Decimal("0.5")
        ledger.verify()


def test_no_room_for_a_new_ledger(tmp_path: Path) -> None:
    def work() -> None:
        import alembic.script  # noqa: F401, PLC0415 (its compiled files must not meet the limit)

        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (3000, 3000))
        Ledger.open(tmp_path / "ledger.db")

    problem = in_a_child(work)
    assert isinstance(problem, LedgerFullError)
    is_one_sentence(problem, tmp_path / "ledger.db")
    assert list(tmp_path.iterdir()) == []


# Damage


def test_not_a_database(tmp_path: Path) -> None:
    place = tmp_path / "ledger.db"
    for content in (b"", b"x", b"id,diagnosis\n1,flu\n" * 1000, os.urandom(8192)):
        place.write_bytes(content)
        with pytest.raises(LedgerDamagedError, match="damaged|no ledger") as found:
            Ledger.open(place)
        is_one_sentence(found.value, place)
        assert place.read_bytes() == content


def test_a_database_of_another_kind(tmp_path: Path) -> None:
    place = tmp_path / "ledger.db"
    other = sqlite3.connect(place)
    other.execute("CREATE TABLE bookmarks (url)")
    other.close()
    content = place.read_bytes()
    with pytest.raises(LedgerDamagedError, match="is a database, but no ledger") as found:
        Ledger.open(place)
    is_one_sentence(found.value, place)
    assert place.read_bytes() == content


def test_a_truncated_file(place: Path) -> None:
    content = place.read_bytes()
    for length in [0, 1, 50, 100, 512, *range(4096, len(content), 2048), len(content) - 1]:
        place.write_bytes(content[:length])
        with pytest.raises(LedgerDamagedError) as found:
            Ledger.open(place)
        is_one_sentence(found.value, place)


def test_a_damaged_page_is_refused_or_shown_never_spent_from(place: Path) -> None:
    """Every page in turn is overwritten by noise, from its beginning and in its middle."""
    content, chance, refused = place.read_bytes(), random.Random(3), 0
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
                is_one_sentence(problem, place)
                refused += 1
    assert refused >= len(pages)


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE ledger_subject SET budget = '99'",
        "UPDATE ledger_subject SET budget = 'much'",
        "UPDATE ledger_path SET largest = '0.1'",
        "UPDATE ledger_path SET largest = 'NaN'",
        "UPDATE ledger_path SET release = ''",
        "UPDATE ledger_path SET key_fingerprint = '9'",
        "INSERT INTO ledger_event (time, event, subject_kind, subject_name, reason) VALUES ('x', 'y', 'z', '', '')",
        "INSERT INTO ledger_subject VALUES ('population', 'nobody', '1')",
    ],
)
def test_accounts_that_are_not_what_happened(place: Path, statement: str) -> None:
    database = sqlite3.connect(place)
    with database:
        database.execute(statement)
    database.close()
    with Ledger.open(place) as ledger, pytest.raises(LedgerDamagedError, match="is damaged: ") as found:
        ledger.verify()
    is_one_sentence(found.value, place)


def test_a_newer_schema(place: Path) -> None:
    database = sqlite3.connect(place)
    with database:
        database.execute(f"UPDATE {VERSION_TABLE} SET version_num = '0099'")
    database.close()
    with pytest.raises(LedgerVersionError, match="has schema version '0099' .* written by a newer one") as found:
        Ledger.open(place)
    is_one_sentence(found.value, place)


def test_a_ledger_that_went_back_is_noticed(place: Path) -> None:
    backup = place.read_bytes()
    with Ledger.open(place) as ledger:
        ledger.charge(EVERYONE, path("a"), FACTS, 1)
        place.write_bytes(backup)
        with pytest.raises(LedgerDamagedError, match="went back to an earlier state") as found:
            ledger.charge(EVERYONE, path("a"), FACTS, 1)
        is_one_sentence(found.value, place)


def test_a_ledger_that_disappears_is_not_begun_anew(place: Path) -> None:
    with Ledger.open(place) as ledger:
        place.unlink()
        with pytest.raises(LedgerAccessError, match="it is gone") as found:
            ledger.charge(EVERYONE, path("a"), FACTS, 1)
        is_one_sentence(found.value, place)
    assert not place.exists()
    Path(f"{place}-wal").write_bytes(b"x")
    with pytest.raises(LedgerDamagedError, match="its log .* is still there"):
        Ledger.open(place)
    with pytest.raises(LedgerAccessError, match="does not exist"):
        Ledger.open(place, create=False)


# Locks and rights


@contextmanager
def held(place: Path, how: str) -> Iterator[None]:
    holder = sqlite3.connect(place, isolation_level=None)
    if how == "EXCLUSIVE":
        holder.execute("PRAGMA locking_mode = EXCLUSIVE")
    holder.execute(f"BEGIN {how}")
    try:
        yield
    finally:
        holder.execute("ROLLBACK")
        holder.close()


def test_locked_longer_than_the_timeout(place: Path) -> None:
    with Ledger.open(place, timeout=0.2) as ledger:
        with held(place, "IMMEDIATE"):
            began = time.monotonic()
            with pytest.raises(LedgerLockedError, match="did not become free within 0.2 seconds") as found:
                ledger.charge(EVERYONE, path("a"), FACTS, 1)
            assert 0.1 < time.monotonic() - began < 10
            is_one_sentence(found.value, place)
            assert ledger.quote(EVERYONE, path("a"), FACTS, 1).cost == Decimal("0.5")  # looking is still possible
        assert ledger.balance(EVERYONE).spent == Decimal("0.5")
        ledger.charge(EVERYONE, path("a"), FACTS, 1)
    with held(place, "EXCLUSIVE"), pytest.raises(LedgerLockedError):
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
    is_one_sentence(problem, place)


def test_a_folder_that_may_not_be_written(open_folder: Path) -> None:
    open_folder.chmod(0o555)
    problem = in_a_child(lambda: Ledger.open(open_folder / "ledger.db"), without_rights=True)
    assert isinstance(problem, LedgerAccessError)
    assert "cannot be created: Permission denied" in problem.message
    is_one_sentence(problem, open_folder / "ledger.db")


def test_places_that_are_none(place: Path) -> None:
    with pytest.raises(LedgerAccessError, match="cannot be created: its folder cannot be used"):
        Ledger.open(place.parent / "absent" / "ledger.db")
    with pytest.raises(LedgerAccessError, match="is not a file"):
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
