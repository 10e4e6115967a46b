"""Algorithm 1 for one object: kept before it is returned, one draw per level whatever happens."""

from __future__ import annotations

import fcntl
import json
import multiprocessing
import os
import signal
import time
from collections import Counter
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from scipy.stats import chi2
from tests.exact.enumeration import chain_law
from tests.patience import PATIENCE
from tests.refusals import refused

import relaxdp as rx
from relaxdp.draw.chain_file import FileStore, _checksum
from relaxdp.draw.entropy import SystemEntropy
from relaxdp.draw.private_file import locked_folder
from relaxdp.errors import ChainFileError, EpsilonError, LevelError
from relaxdp.hazmat import SeededEntropy
from relaxdp.law.epsilon import as_epsilon
from relaxdp.law.level import retention

ANSWERS = rx.Categorical(["flu", "covid", "none"])
OPEN = Path("/proc/self/fd")


def chain(store: Path | None, truth: str = "covid") -> rx.Relaxation:
    return rx.Relaxation(ANSWERS, truth=truth, store=store)


def test_it_goes_on_where_it_stopped(tmp_path: Path) -> None:
    place = tmp_path / "chain.json"
    first = chain(place).relax(epsilon="0.1")
    assert place.stat().st_mode & 0o777 == 0o600
    assert chain(place).relax(epsilon=0.1) == first
    second = chain(place).relax(epsilon="0.5")
    assert [chain(place).relax(epsilon="0.50") for _ in range(20)] == [second] * 20
    assert chain(place).epsilon == "0.5"
    with refused(LevelError, last_epsilon="0.5", epsilon="0.1", says="the last report is at"):
        chain(place).relax(epsilon=0.1)


def test_levels_that_share_a_threshold_keep_the_report() -> None:
    memory = chain(None)
    report = memory.relax(epsilon=100)
    assert memory.relax(epsilon=200) == report
    assert memory.epsilon == "200"


def test_another_truth_or_other_values_are_refused(tmp_path: Path) -> None:
    place = tmp_path / "chain.json"
    chain(place).relax(epsilon=1)
    with refused(ChainFileError, says="the truth is not the one") as caught:
        chain(place, truth="flu")
    assert "covid" not in str(caught.value)
    with refused(ChainFileError, says="another encoding or other values"):
        rx.Relaxation(rx.Categorical(["covid", "flu", "none"]), truth="covid", store=place)


@pytest.mark.parametrize(
    "damage",
    ["", "{", "[]", "{}", '{"format": "relaxdp chain 2"}', '{"format": "relaxdp chain 1", "encoding": "x"}', "\x00"],
)
def test_a_damaged_file_is_refused(tmp_path: Path, damage: str) -> None:
    place = tmp_path / "chain.json"
    place.touch(mode=0o600)
    place.write_text(damage)
    with pytest.raises(ChainFileError, match="is damaged or of another kind"):
        chain(place)


@pytest.mark.parametrize(
    ("field", "value"),
    [("report", [3]), ("report", []), ("report", ["1"]), ("threshold", "x"), ("threshold", str(2**64)),
     ("symbols", [9]), ("epsilon", "nan"), ("epsilon", 1), ("epsilon", "0.5")],
)  # fmt: skip
def test_a_file_with_impossible_content_is_refused(tmp_path: Path, field: str, value: Any) -> None:
    place = tmp_path / "chain.json"
    chain(place).relax(epsilon=1)
    content = json.loads(place.read_text())
    place.write_text(json.dumps({**content, field: value}))
    with pytest.raises(ChainFileError, match="is damaged or of another kind"):
        chain(place).relax(epsilon=2)
    del content["check"], content["format"]
    content[field] = value
    place.write_text(json.dumps({"format": "relaxdp chain 1", **content, "check": _checksum(content)}))
    with pytest.raises((ChainFileError, EpsilonError), match="damaged|must be finite"):
        chain(place).relax(epsilon=2)


def test_nothing_is_returned_that_was_not_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = tmp_path / "chain.json"
    kept = chain(place).relax(epsilon=1)

    def full(self: object, target: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", full)
    with pytest.raises(ChainFileError, match=r"No space left on device"):
        chain(place).relax(epsilon=2)
    monkeypatch.undo()
    assert chain(place).relax(epsilon=1) == kept


def test_one_chain_under_every_name_of_its_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A relative name after a change of folder, and a symbolic link, lead to the same chain."""
    (tmp_path / "a").mkdir()
    monkeypatch.chdir(tmp_path)
    answers = rx.Categorical(range(1000))
    one = rx.Relaxation(answers, truth=7, store="a/chain")
    report = one.relax(epsilon="0.1")
    monkeypatch.chdir(tmp_path / "a")
    assert one.relax(epsilon="0.1") == report
    (tmp_path / "link").symlink_to(tmp_path / "a" / "chain")
    assert rx.Relaxation(answers, truth=7, store=tmp_path / "link").relax(epsilon="0.1") == report
    assert (tmp_path / "link").is_symlink()
    rx.Relaxation(answers, truth=7, store=tmp_path / "a" / "chain.new").relax(epsilon=1)
    assert one.relax(epsilon="0.1") == report
    os.link(tmp_path / "a" / "chain", tmp_path / "hard")
    with pytest.raises(ChainFileError, match="has a second name"):
        rx.Relaxation(answers, truth=7, store=tmp_path / "hard")


def test_a_file_that_others_can_read_is_refused(tmp_path: Path) -> None:
    chain(tmp_path / "chain").relax(epsilon=1)
    (tmp_path / "chain").chmod(0o644)
    with pytest.raises(ChainFileError, match=r"can be read by others .*chmod 600"):
        chain(tmp_path / "chain")


def test_a_chain_that_went_back_is_noticed(tmp_path: Path) -> None:
    place = tmp_path / "chain"
    living = chain(place)
    living.relax(epsilon="0.1")
    old = place.read_bytes()
    living.relax(epsilon=1)
    place.write_bytes(old)
    with refused(ChainFileError, says="went back to an earlier state"):
        living.relax(epsilon=1)
    place.unlink()
    with refused(ChainFileError, says="is gone"):
        living.relax(epsilon=2)


def test_a_chain_in_memory_stays_in_its_process() -> None:
    memory = chain(None)
    memory.relax(epsilon=1)
    context = multiprocessing.get_context("fork")
    results = context.Queue()

    def child() -> None:
        try:
            results.put(memory.relax(epsilon=2))
        except ChainFileError as problem:
            results.put(problem.message)

    worker = context.Process(target=child)
    worker.start()
    assert "belongs to the process that began it" in results.get(timeout=PATIENCE)
    worker.join()


def test_file_and_folder_are_synced_before_a_report_is_returned(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[str] = []
    real = os.fsync

    def record(descriptor: int) -> None:
        is_folder = (OPEN / str(descriptor)).is_dir()
        synced.append(
            "folder" if is_folder else "a whole file" if os.fstat(descriptor).st_size > 100 else "a part of it"
        )
        real(descriptor)

    monkeypatch.setattr("os.fsync", record)
    chain(tmp_path / "chain").relax(epsilon=1)
    assert synced == ["a whole file", "folder"]


def test_a_folder_is_held_until_it_is_left_even_by_a_child_and_nothing_stays_open(tmp_path: Path) -> None:
    """A forked child has the descriptor too, and must not keep the lock."""
    context = multiprocessing.get_context("fork")
    done = context.Event()
    child = context.Process(target=done.wait)
    before, elsewhere = len([*OPEN.iterdir()]), os.open(tmp_path, os.O_RDONLY)
    with locked_folder(tmp_path):
        with pytest.raises(BlockingIOError):
            fcntl.flock(elsewhere, fcntl.LOCK_EX | fcntl.LOCK_NB)
        child.start()
    fcntl.flock(elsewhere, fcntl.LOCK_EX | fcntl.LOCK_NB)
    os.close(elsewhere)
    done.set()
    child.join()
    child.close()
    chain(tmp_path / "chain").relax(epsilon=1)
    assert len([*OPEN.iterdir()]) == before


def test_a_file_whose_fields_stand_in_another_order_is_the_same(tmp_path: Path) -> None:
    place = tmp_path / "chain.json"
    report = chain(place).relax(epsilon="0.1")
    place.write_text(json.dumps(json.loads(place.read_text()), sort_keys=True))
    assert chain(place).relax(epsilon="0.1") == report


def test_unusable_folder(tmp_path: Path) -> None:
    with pytest.raises(ChainFileError, match="cannot be used"):
        chain(tmp_path / "absent" / "chain.json")
    with refused(ChainFileError, what="is a folder"):
        chain(tmp_path)


@pytest.mark.long
def test_the_chain_draws_by_the_law() -> None:
    """60,000 chains of two levels against the exact joint law (chi-square at 1e-6, seeded)."""
    entropy, runs = SeededEntropy(11), 60_000
    seen: Counter[tuple[int, ...]] = Counter()
    for _ in range(runs):
        one = chain(None)
        one._entropy = entropy
        seen[tuple(ANSWERS.values.index(one.relax(epsilon=level)) for level in ("0.5", "1.5"))] += 1

    def statistic(levels: tuple[str, str]) -> float:
        law = chain_law(3, [retention(ANSWERS.encoding.threshold(as_epsilon(e))) for e in levels], 1)
        return sum((seen[key] - runs * float(p)) ** 2 / (runs * float(p)) for key, p in law.items())

    limit = chi2.isf(1e-6, 8)
    assert statistic(("0.5", "1.5")) < limit
    assert statistic(("0.5", "1.575")) > limit  # an epsilon that is 5 % off is noticed


def _relax_in_process(place: str, epsilon: str, start: Any, results: Any) -> None:
    start.wait()
    results.put(chain(Path(place)).relax(epsilon=epsilon))


@pytest.mark.long
def test_processes_that_race_get_one_report(tmp_path: Path) -> None:
    context = multiprocessing.get_context("fork")
    for round_ in range(10):
        place, start, results = str(tmp_path / f"chain-{round_}"), context.Event(), context.Queue()
        workers = [context.Process(target=_relax_in_process, args=(place, "0.05", start, results)) for _ in range(6)]
        for worker in workers:
            worker.start()
        start.set()
        assert len({results.get(timeout=PATIENCE) for _ in workers}) == 1
        for worker in workers:
            worker.join()


class SlowEntropy(SystemEntropy):
    """Gives other threads the time to step in."""

    def words(self) -> Iterator[int]:
        time.sleep(0.002)
        return super().words()


def test_threads_that_race_get_one_report() -> None:
    for _ in range(20):
        one, seen = chain(None), []
        one._entropy = SlowEntropy()
        threads = [Thread(target=lambda: seen.append(one.relax(epsilon="0.05"))) for _ in range(8)]  # noqa: B023
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(set(seen)) == 1


def _relax_forever(place: str, log: str) -> None:
    with Path(log).open("a", buffering=1) as out:
        for step in range(1, 100_000):
            epsilon = f"0.{step:06d}"
            store = FileStore(place)
            link = store.read()
            if link is None or link.epsilon < epsilon:
                out.write(f"{epsilon} {chain(Path(place)).relax(epsilon=epsilon)}\n")


@pytest.mark.long
def test_killed_at_random_instants(tmp_path: Path) -> None:
    """SIGKILL during relaxations: what was returned is what the chain still says; the file is never half-written."""
    context = multiprocessing.get_context("fork")
    place, log, compared = tmp_path / "chain.json", tmp_path / "log", 0
    for attempt in range(25):
        worker = context.Process(target=_relax_forever, args=(str(place), str(log)))
        worker.start()
        time.sleep(0.02 + 0.004 * attempt)
        assert worker.pid is not None
        os.kill(worker.pid, signal.SIGKILL)
        worker.join()
        returned = (
            [line.split() for line in log.read_text().splitlines() if line.count(" ") == 1] if log.exists() else []
        )
        link = FileStore(place).read()
        if returned:
            epsilon, report = returned[-1]
            assert link is not None
            assert Fraction(link.epsilon) >= Fraction(epsilon)
            if Fraction(link.epsilon) == Fraction(epsilon):
                assert chain(place).relax(epsilon=epsilon) == report
                compared += 1
    assert compared > 5
