"""Algorithm 1 for one object: kept before it is returned, one draw per level whatever happens."""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
import time
from collections import Counter
from fractions import Fraction
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from scipy.stats import chi2
from tests.exact.enumeration import chain_law

import relaxdp as rx
from relaxdp.draw.chain_file import FileStore
from relaxdp.errors import ChainFileError, LevelError
from relaxdp.hazmat import SeededEntropy
from relaxdp.law.epsilon import as_epsilon
from relaxdp.law.threshold import retention

ANSWERS = rx.Categorical(["flu", "covid", "none"])


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
    with pytest.raises(LevelError, match=r"the last report is at 0.5 and 0.1 was asked for"):
        chain(place).relax(epsilon=0.1)


def test_levels_that_share_a_threshold_keep_the_report() -> None:
    memory = chain(None)
    report = memory.relax(epsilon=100)
    assert memory.relax(epsilon=200) == report
    assert memory.epsilon == "200"


def test_another_truth_or_other_values_are_refused(tmp_path: Path) -> None:
    place = tmp_path / "chain.json"
    chain(place).relax(epsilon=1)
    with pytest.raises(ChainFileError, match="the truth is not the one") as caught:
        chain(place, truth="flu")
    assert "covid" not in str(caught.value)
    with pytest.raises(ChainFileError, match="another encoding or other values"):
        rx.Relaxation(rx.Categorical(["covid", "flu", "none"]), truth="covid", store=place)


@pytest.mark.parametrize(
    "damage",
    ["", "{", "[]", "{}", '{"format": "relaxdp chain 2"}', '{"format": "relaxdp chain 1", "encoding": "x"}', "\x00"],
)
def test_a_damaged_file_is_refused(tmp_path: Path, damage: str) -> None:
    place = tmp_path / "chain.json"
    place.write_text(damage)
    with pytest.raises(ChainFileError, match="is damaged or of another kind"):
        chain(place)


@pytest.mark.parametrize(
    ("field", "value"),
    [("report", [3]), ("report", []), ("report", ["1"]), ("threshold", "x"), ("threshold", str(2**64)),
     ("symbols", [9]), ("epsilon", "nan"), ("epsilon", 1)],
)  # fmt: skip
def test_a_file_with_impossible_content_is_refused(tmp_path: Path, field: str, value: Any) -> None:
    place = tmp_path / "chain.json"
    chain(place).relax(epsilon=1)
    content = json.loads(place.read_text())
    place.write_text(json.dumps({**content, field: value}))
    with pytest.raises(ChainFileError, match="is damaged or of another kind"):
        chain(place).relax(epsilon=2)


def test_nothing_is_returned_that_was_not_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = tmp_path / "chain.json"
    kept = chain(place).relax(epsilon=1)

    def full(self: object, target: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", full)
    with pytest.raises(ChainFileError, match=r"No space left on device. Nothing was released"):
        chain(place).relax(epsilon=2)
    monkeypatch.undo()
    assert chain(place).relax(epsilon=1) == kept


def test_unusable_folder(tmp_path: Path) -> None:
    with pytest.raises(ChainFileError, match="cannot be used"):
        chain(tmp_path / "absent" / "chain.json")


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


def test_processes_that_race_get_one_report(tmp_path: Path) -> None:
    context = multiprocessing.get_context("fork")
    for round_ in range(10):
        place, start, results = str(tmp_path / f"chain-{round_}"), context.Event(), context.Queue()
        workers = [context.Process(target=_relax_in_process, args=(place, "0.05", start, results)) for _ in range(6)]
        for worker in workers:
            worker.start()
        start.set()
        assert len({results.get(timeout=60) for _ in workers}) == 1
        for worker in workers:
            worker.join()


def test_threads_that_race_get_one_report() -> None:
    for _ in range(50):
        one, seen = chain(None), []
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
