"""Processes that race for a ledger and are killed at random instants, on every store.

Nothing overspent, nothing lost. The short campaign runs with the tests; `make faults` sets RELAXDP_FAULTS=500.
"""

from __future__ import annotations

import multiprocessing
import os
import random
import signal
import time
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from tests.faults.collector.campaign import sizes
from tests.faults.ledger.ledger_work import (
    EVERYONE,
    FACTS,
    FORK,
    STEP,
    is_one_sentence,
    open_and_count,
    path,
    spend,
    spend_forever,
)
from tests.patience import PATIENCE, until
from tests.servers.ledgers import LONG_STORES, STORES, Place, SqlitePlace, place_of

from relaxdp.errors import LedgerAccessError, LedgerLockedError
from relaxdp.ledger.ledger import Ledger

pytestmark = pytest.mark.long


@pytest.fixture(params=STORES)
def place(request: pytest.FixtureRequest) -> Place:
    return place_of(request.param, request)


@pytest.mark.parametrize("method", ["fork", pytest.param("spawn", marks=pytest.mark.long)])
def test_processes_that_spend_the_last_of_a_budget(place: Place, tmp_path: Path, method: str) -> None:
    """16 processes (or 4 that share nothing at all) create one ledger and want 6.4 (or 1.6) of 2.05 at once."""
    context: Any = multiprocessing.get_context(method)
    count = 16 if method == "fork" else 4
    start, results = context.Event(), context.Queue()
    workers = [context.Process(target=spend, args=(place.where, number, start, results)) for number in range(count)]
    for worker in workers:
        worker.start()
    start.set()
    granted = sum(results.get(timeout=PATIENCE) for _ in workers)
    for worker in workers:
        worker.join()
        assert worker.exitcode == 0
    assert granted == min(20, count * 4)
    with Ledger.open(place.where) as ledger:
        ledger.verify()
        assert ledger.balance(EVERYONE).spent == Decimal("0.1") * granted
    assert {file.name for file in tmp_path.iterdir()} <= {"ledger.db", "ledger.db.begun"}  # nothing lies about


def test_a_ledger_that_is_open_when_a_process_forks(place: Place) -> None:
    """Parent and children go on with one and the same object."""
    ledger, results = Ledger.open(place.where), FORK.Queue()
    ledger.charge(EVERYONE, path("parent"), FACTS, "0.1", budget=1)
    workers = [
        FORK.Process(target=lambda n: results.put(ledger.charge(EVERYONE, path(n), FACTS, "0.1").cost), args=(n,))
        for n in range(4)
    ]
    for worker in workers:
        worker.start()
    ledger.charge(EVERYONE, path("parent"), FACTS, "0.2")
    assert [results.get(timeout=PATIENCE) for _ in workers] == [Decimal("0.1")] * 4
    for worker in workers:
        worker.join()
    assert ledger.balance(EVERYONE).spent == Decimal("0.6")
    ledger.verify()


@pytest.mark.parametrize("place", LONG_STORES, indirect=True)
def test_16_processes_begin_a_new_ledger_at_once(request: pytest.FixtureRequest, place: Place) -> None:
    for _ in range(3):
        start, results = FORK.Event(), FORK.Queue()
        workers = [FORK.Process(target=open_and_count, args=(place.where, start, results)) for _ in range(16)]
        for worker in workers:
            worker.start()
        start.set()
        assert [results.get(timeout=PATIENCE) for _ in workers] == [2] * 16
        for worker in workers:
            worker.join()
            assert worker.exitcode == 0
        if isinstance(place, SqlitePlace):
            assert Path(place.where).stat().st_mode & 0o777 == 0o600
            Path(place.where).unlink()
            Path(f"{place.where}.begun").unlink()
        else:
            place = place_of("postgres", request)


def exists(place: Place) -> bool:
    try:
        Ledger.open(place.where, create=False).close()
    except LedgerAccessError as problem:
        if "does not exist" in problem.message:
            return False
        raise
    return True


def kill_at_random_instants(place: Place, log: Path, kills: int, *, seed: int, writers: int = 2) -> tuple[int, int]:
    """Kill writers while they charge, and check the ledger after each kill.

    Never less than what was acknowledged, never half of a charge, never damaged; a charge that was not acknowledged
    may have been written, at most one per killed process. Return how many charges were acknowledged, and how many
    were written without.
    """
    chance, silent = random.Random(seed), 0
    before: dict[str, Decimal] = {}
    for kill in range(kills):
        size = log.stat().st_size if log.exists() else 0
        workers = [FORK.Process(target=spend_forever, args=(place.where, n, str(log))) for n in range(writers)]
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
        place.settle()
        lines = log.read_text().splitlines() if log.exists() else []
        if not exists(place):
            assert not lines
            continue
        acknowledged: dict[str, Decimal] = {}
        for line in lines:
            number, level = line.split()
            assert Decimal(level) > acknowledged.get(number, Decimal(0))
            acknowledged[number] = Decimal(level)
        with Ledger.open(place.where, create=False) as ledger:  # checks what can be checked
            ledger.verify()  # every account is what its events add up to, within its budget
            paths = ledger.balance(EVERYONE).paths if ledger.subjects() else ()
        after = {each.path.attribute: each.largest for each in paths}
        for number in map(str, range(writers)):
            told = max(acknowledged.get(number, Decimal(0)), before.get(number, Decimal(0)))
            assert told <= after.get(number, Decimal(0)) <= told + STEP
            assert after.get(number) == after.get(f"{number}-b")
            silent += after.get(number, Decimal(0)) > told
        before = after
    return len(log.read_text().splitlines()), silent


@pytest.mark.parametrize("place", LONG_STORES, indirect=True)
@pytest.mark.parametrize("kills", sizes(10, 40))
def test_killed_at_random_instants(place: Place, tmp_path: Path, kills: int) -> None:
    """Two writers, killed together; `make faults` runs the campaign of 500."""
    acknowledged, silent = kill_at_random_instants(place, tmp_path / "log", kills, seed=20260701)
    assert acknowledged >= kills / 2
    print(f"{kills} kills of two writers: {acknowledged} charges acknowledged, {silent} written without")


def test_held_longer_than_the_timeout(place: Place) -> None:
    with Ledger.open(place.where, timeout=0.2) as ledger:
        ledger.charge(EVERYONE, path("a"), FACTS, "0.5", budget=1)
        with place.hold():
            with pytest.raises(LedgerLockedError, match="did not become free within 0.2 seconds") as found:
                ledger.charge(EVERYONE, path("a"), FACTS, 1)
            is_one_sentence(found.value, place.name)
            assert ledger.quote(EVERYONE, path("a"), FACTS, 1).cost == Decimal("0.5")  # looking is still possible
            assert ledger.balance(EVERYONE).spent == Decimal("0.5")
            Ledger.open(place.where, timeout=0.2).close()
        ledger.charge(EVERYONE, path("a"), FACTS, 1)


def test_a_reader_sees_one_state(place: Place) -> None:
    """What others write while one looks is not seen in part."""
    with Ledger.open(place.where) as writer, Ledger.open(place.where) as reader:
        writer.charge(EVERYONE, path("a"), FACTS, "0.5", budget=1)
        with reader._store.reading() as connection:
            count = "SELECT count(*) FROM ledger_event"
            assert connection.exec_driver_sql(count).scalar() == 3
            writer.charge(EVERYONE, path("b"), FACTS, "0.5")
            assert connection.exec_driver_sql(count).scalar() == 3
        assert len(reader.history()) == 5
