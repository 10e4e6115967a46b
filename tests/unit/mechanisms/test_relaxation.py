"""Algorithm 1 for one value and for arrays: kept before it is returned, one draw per level whatever happens."""

from __future__ import annotations

import fcntl
import json
import multiprocessing
import os
import pickle
import resource
import signal
import time
from collections import Counter
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from hashlib import sha256
from pathlib import Path
from threading import Thread
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy.stats import chi2
from tests.exact.enumeration import compute_transcript_distribution
from tests.patience import PATIENCE
from tests.refusals import refused

import relaxdp as rx
from relaxdp.errors import (
    ArgumentError,
    ColumnError,
    EpsilonError,
    EstimationError,
    LevelError,
    StateFileError,
    UndeclaredValueError,
)
from relaxdp.hazmat import SeededEntropy
from relaxdp.mechanisms.relaxation import _FORMAT, RelaxationState, StateFileStore
from relaxdp.mechanisms.report_arrays import read_report_column
from relaxdp.sampling import private_file
from relaxdp.sampling.entropy import Bytestream, SystemBytes, SystemEntropy
from relaxdp.sampling.private_file import lock_folder
from relaxdp.theory.epsilon import as_epsilon
from relaxdp.theory.randomized_response import compute_retention

VALUES = ["flu", "covid", "none"]
ANSWERS = rx.Categorical(VALUES)
OPEN = Path("/proc/self/fd")
MANY = np.random.default_rng(5).choice(VALUES, 20_000)


def relaxation(state: Path | None, value: Any = "covid") -> rx.Relaxation:
    return rx.Relaxation(ANSWERS, value, state=state)


def stored(place: Path) -> RelaxationState:
    state = StateFileStore(place).read()
    assert state is not None
    return state


def test_it_continues_where_it_stopped(tmp_path: Path) -> None:
    place = tmp_path / "state"
    assert relaxation(place).epsilon == relaxation(place).cost == 0
    first = relaxation(place).relax("0.1")
    assert place.stat().st_mode & 0o777 == 0o600
    assert relaxation(place).relax(epsilon=0.1) == first
    second = relaxation(place).relax("0.5")
    assert [relaxation(place).relax("0.50") for _ in range(20)] == [second] * 20
    assert relaxation(place).epsilon == Decimal("0.5")
    with refused(LevelError, last_epsilon="0.5", epsilon="0.1", says="that of the last reports"):
        relaxation(place).relax(0.1)


def test_an_array_continues_where_it_stopped(tmp_path: Path) -> None:
    """The same reports at the same level, from the file and from memory; at a large epsilon the values show."""
    place = tmp_path / "state"
    living = relaxation(place, MANY)
    first = living.relax("0.5")
    assert living.relax("0.5").tolist() == relaxation(place, list(MANY)).relax("0.5") == first.tolist()
    second = relaxation(place, pa.array(MANY)).relax(2).to_numpy(zero_copy_only=False)
    assert living.relax(2).tolist() == second.tolist()
    assert np.mean(first == MANY) < np.mean(second == MANY) < 1
    assert living.relax(40).tolist() == MANY.tolist()
    assert place.stat().st_size < 2 * len(MANY) + 1000
    assert repr(living) == "<relaxdp.Relaxation of 20,000 values at epsilon 40>"
    assert living.epsilon == living.cost == 40


@pytest.mark.parametrize("is_longer", [True, False])
def test_a_list_that_the_caller_changes_does_not_count(is_longer: bool) -> None:
    """There are as many reports as values were given at first."""
    values = ["flu", "none"] * 50
    living = rx.Relaxation(ANSWERS, values)
    living.relax(1)
    if is_longer:
        values.extend(["none"] * 100)
    else:
        del values[20:]
    assert len(living.relax(2)) == 100


def test_reports_are_a_column_of_the_same_kind() -> None:
    values = ["flu", "none"]
    assert rx.Relaxation(ANSWERS, values).relax(50) == values
    assert rx.Relaxation(rx.Categorical([b"flu", b"none"]), b"none").relax(50) == b"none"
    assert rx.Relaxation(rx.Unary(range(3), optimised=False), 2).relax(100) == b"\4"
    assert rx.Relaxation(ANSWERS, pa.array(values)).relax(50).to_pylist() == values
    series = rx.Relaxation(ANSWERS, pd.Series(values, index=[7, 9], name="d")).relax(50)
    assert (series.to_dict(), series.name) == ({7: "flu", 9: "none"}, "d")
    assert rx.Relaxation(ANSWERS, pl.Series("d", values)).relax(50).to_list() == values
    coded = np.array([0, 2, 1], np.uint8)
    living = rx.Relaxation(rx.Categorical(range(3)), coded)
    living.relax(50)[:] = 0  # the caller's copy
    assert living.relax(50).tolist() == [0, 2, 1]
    bits = rx.Relaxation(rx.Unary(range(12), optimised=False), np.arange(12)).relax(100)
    assert np.unpackbits(bits, axis=1, count=12, bitorder="little").tolist() == np.eye(12).tolist()
    assert rx.Relaxation(rx.Numeric(0, 1), [0, 1, 1.0]).relax(50) == [0, 1, 1]
    for mechanism in (ANSWERS, rx.Unary(VALUES), rx.LocalHash(VALUES, epsilon=1)):
        assert rx.Relaxation(mechanism, []).relax(1) == []


def test_values_and_reports_stay_as_they_were_given(tmp_path: Path) -> None:
    """An array that the caller changes after the start changes nothing."""
    values = np.array([0, 1, 2], np.uint8)
    living = rx.Relaxation(rx.Categorical(range(3)), values, state=tmp_path / "state")
    values[:] = 0
    assert living.relax(50).tolist() == [0, 1, 2]


@pytest.mark.parametrize(
    "values", [{"flu"}, {"flu": 1}, np.array([["flu"]]), np.array("flu"), pd.DataFrame({"a": [1]})]
)
def test_other_things_than_a_value_or_a_column_are_rejected(values: Any) -> None:
    with pytest.raises(ColumnError):
        rx.Relaxation(ANSWERS, values)


def test_an_undeclared_value_is_rejected_with_its_row(tmp_path: Path) -> None:
    with refused(UndeclaredValueError, row=3) as caught:
        rx.Relaxation(ANSWERS, ["flu", "none", "secret"], state=tmp_path / "state")
    assert "secret" not in str(caught.value)
    assert not list(tmp_path.iterdir())


def test_one_value_is_drawn_from_the_operating_system() -> None:
    """Without a cipher in between; every draw reads other bytes."""
    one, buffer = rx.Relaxation(ANSWERS, "flu"), np.zeros((2, 64), np.uint8)
    assert isinstance(one._entropy.make_keystream(), SystemBytes)
    assert not isinstance(rx.Relaxation(ANSWERS, ["flu"])._entropy.make_keystream(), SystemBytes)
    for row in buffer:
        one._entropy.make_keystream().fill(row)
    assert len({*map(bytes, buffer), bytes(64)}) == 3


@pytest.mark.parametrize("batch", [20, 100])
def test_many_symbols_are_drawn_in_parts(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, batch: int) -> None:
    monkeypatch.setattr("relaxdp.mechanisms.bridged_columns.BATCH", batch)
    for name, mechanism in {
        "unary": rx.Unary(range(33), optimised=False),
        "hash": rx.LocalHash(range(30), buckets=300),
        "numbers": rx.SquareWave(0, 29, bins=30, window=1),
    }.items():
        values = np.arange(1000) % 30
        living = rx.Relaxation(mechanism, values, state=tmp_path / name)
        first, last = (read_report_column(mechanism, living.relax(epsilon)) for epsilon in (1, 200))
        assert first[1] is None or (first[1] == last[1]).all()
        if name != "numbers":
            assert mechanism.find_supported_labels(*last)[np.arange(1000), values].all()
        else:
            assert (last[0][:, 0] == values).all()
        assert (
            read_report_column(mechanism, rx.Relaxation(mechanism, values, state=tmp_path / name).relax(200))[0]
            == last[0]
        ).all()


def test_reports_that_were_made_elsewhere(tmp_path: Path) -> None:
    """The stated epsilon is written at once; the total is the new level, of which that part was spent elsewhere."""
    place, given = tmp_path / "state", np.roll(MANY, 7)
    start: Any = {"state": place, "reports": given, "reports_epsilon": "1"}
    living = rx.Relaxation(ANSWERS, MANY, **start)
    assert (stored(place).epsilon, living.epsilon, living.cost) == ("1", Decimal(1), Decimal(0))
    assert living.relax(1).tolist() == given.tolist()
    assert np.mean(living.relax("1.000001") == given) > 0.99
    better = living.relax("2.5")
    assert (living.epsilon, living.cost) == (Decimal("2.5"), Decimal("1.5"))
    for again in (start, {"state": place}, {**start, "reports": list(given)}):
        assert rx.Relaxation(ANSWERS, MANY, **again).relax(2.5).tolist() == better.tolist()
    for wrong in ({**start, "reports_epsilon": 2}, {**start, "reports": MANY}):
        with refused(StateFileError, what="started from other reports, or at another epsilon"):
            rx.Relaxation(ANSWERS, MANY, **wrong)
    with refused(LevelError, last_epsilon="2.5"):
        rx.Relaxation(ANSWERS, MANY, **start).relax(1)
    fresh = tmp_path / "fresh"
    relaxation(fresh, MANY).relax("0.5")
    with refused(StateFileError, what="started from other reports, or at another epsilon"):
        rx.Relaxation(ANSWERS, MANY, **{**start, "state": fresh})


def test_one_report_that_was_made_elsewhere() -> None:
    one = rx.Relaxation(ANSWERS, "covid", reports="flu", reports_epsilon=1)
    assert (one.relax(1), one.relax(60), one.epsilon, one.cost) == ("flu", "covid", Decimal(60), Decimal(59))


@pytest.mark.parametrize(
    ("kind", "given"),
    [
        (ArgumentError, {"reports": ["flu", "none"]}),
        (ColumnError, {"reports_epsilon": 1}),
        (ColumnError, {"reports": ["flu"], "reports_epsilon": 1}),
        (EstimationError, {"reports": ["flu", "secret"], "reports_epsilon": 1}),
        (EstimationError, {"reports": ["flu", None], "reports_epsilon": 1}),
        (EpsilonError, {"reports": ["flu", "flu"], "reports_epsilon": 0}),
    ],
)
def test_reports_that_cannot_be_started_from(tmp_path: Path, kind: Any, given: dict[str, Any]) -> None:
    with pytest.raises(kind) as caught:
        rx.Relaxation(ANSWERS, ["flu", "flu"], state=tmp_path / "state", **given)
    assert "secret" not in str(caught.value)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("mechanism", [rx.Unary(VALUES), rx.LocalHash(VALUES, epsilon=1)])
def test_mechanisms_with_kept_randomness_do_not_start_from_reports(mechanism: Any) -> None:
    reports = rx.Relaxation(mechanism, ["flu"]).relax(1)
    with refused(ArgumentError, mechanism=mechanism.name):
        rx.Relaxation(mechanism, ["flu"], reports=reports, reports_epsilon=1)


def test_levels_that_share_a_threshold_keep_the_report() -> None:
    memory = relaxation(None)
    report = memory.relax(100)
    assert memory.relax(200) == report
    assert memory.epsilon == 200


def test_a_state_of_something_else_is_rejected(tmp_path: Path) -> None:
    place = tmp_path / "state"
    relaxation(place).relax(1)
    with refused(StateFileError) as caught:
        relaxation(place, "flu")
    assert "was made for other values" in str(caught.value)
    assert "covid" not in str(caught.value)
    with refused(StateFileError, what="was made for another mechanism, or for other declared values"):
        rx.Relaxation(rx.Categorical(["covid", "flu", "none"]), "covid", state=place)
    with refused(StateFileError, what="was made for 1 values, not for 2"):
        relaxation(place, ["covid", "covid"])
    assert relaxation(place, ["covid"]).relax(1) == [relaxation(place).relax(1)]
    numbers = rx.Numeric(0, 10)
    rx.Relaxation(numbers, [1, 2.5], state=tmp_path / "numbers").relax(1)
    with refused(StateFileError):
        rx.Relaxation(numbers, [1, 2.75], state=tmp_path / "numbers")


def test_a_damaged_file_is_rejected(tmp_path: Path) -> None:
    place = tmp_path / "state"
    relaxation(place, MANY).relax(1)
    whole = place.read_bytes()
    changed = [whole[:place_] + bytes([whole[place_] ^ 1]) + whole[place_ + 1 :] for place_ in (0, 30, 900, 30_000, -1)]
    for damage in (b"", b"{", whole[:-1], whole + b"0", whole[:100], *changed):
        place.write_bytes(damage)
        with refused(StateFileError, what="is damaged, or is not a state file"):
            relaxation(place, MANY)


@pytest.mark.parametrize(
    "change",
    [
        {"threshold": "7"},
        {"epsilon": "0.5"},
        {"reports": np.array([[3]], np.uint8)},
        {"symbols": np.array([[200]], np.uint8)},
        {"reports": np.zeros((1, 2), np.uint8), "symbols": np.zeros((1, 2), np.uint8)},
    ],
)
def test_a_file_with_impossible_content_is_rejected(tmp_path: Path, change: dict[str, Any]) -> None:
    place = tmp_path / "state"
    relaxation(place).relax(1)
    place.write_bytes(replace(stored(place), **change).to_bytes())
    with refused(StateFileError, what="is damaged"):
        relaxation(place)


def test_a_file_of_another_version_is_rejected(tmp_path: Path) -> None:
    place = tmp_path / "state"
    relaxation(place)
    content = place.read_bytes()[:-32].replace(b"relaxdp relaxation 1", b"relaxdp relaxation 2")
    place.write_bytes(content + sha256(content).digest())
    with refused(StateFileError, what="is damaged, or is not a state file"):
        relaxation(place)


@pytest.mark.parametrize("header", ["[]", "{}", '{"rows": 1, "width": 1, "seeded": false}', '{"rows": "x"}', "x"])
def test_a_header_of_another_kind_is_rejected(tmp_path: Path, header: str) -> None:
    place = tmp_path / "state"
    content = _FORMAT + header.encode() + b"\n\0\0"
    place.touch(mode=0o600)
    place.write_bytes(content + sha256(content).digest())
    with refused(StateFileError, what="is damaged, or is not a state file"):
        relaxation(place)


def test_the_file_holds_what_is_documented(tmp_path: Path) -> None:
    """One line for the format, one of JSON, then reports without noise, and last reports; at the end a SHA-256."""
    place = tmp_path / "state"
    hashed = rx.LocalHash(range(50), buckets=300)
    reports = rx.Relaxation(hashed, [7, 8], state=place).relax(1)
    first, header, rest = place.read_bytes().split(b"\n", 2)
    assert first == b"relaxdp relaxation 1"
    assert {**json.loads(header), "origin": "", "values": "", "params": "", "threshold": ""} == {
        "rows": 2, "width": 10, "mechanism": "local-hash", "params": "", "values": "", "origin": "",
        "epsilon": "1", "threshold": "", "start_epsilon": "0", "start_reports": "",
    }  # fmt: skip
    assert [rest[20:30], rest[30:40]] == reports
    assert [rest[:8], rest[10:18]] == [report[:8] for report in reports]
    assert len(rest) == 20 + 20 + 32


def test_nothing_is_returned_that_was_not_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = tmp_path / "state"
    kept = relaxation(place).relax(1)

    def full(self: object, target: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", full)
    with pytest.raises(StateFileError, match=r"No space left on device"):
        relaxation(place).relax(2)
    monkeypatch.undo()
    assert relaxation(place).relax(1) == kept
    assert list(tmp_path.iterdir()) == [place]


def test_one_state_under_every_name_of_its_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A relative name after a change of folder, and a symbolic link, lead to the same state."""
    (tmp_path / "a").mkdir()
    monkeypatch.chdir(tmp_path)
    answers = rx.Categorical(range(1000))
    one = rx.Relaxation(answers, 7, state="a/state")
    report = one.relax("0.1")
    monkeypatch.chdir(tmp_path / "a")
    assert one.relax("0.1") == report
    (tmp_path / "link").symlink_to(tmp_path / "a" / "state")
    assert rx.Relaxation(answers, 7, state=tmp_path / "link").relax("0.1") == report
    assert (tmp_path / "link").is_symlink()
    rx.Relaxation(answers, 7, state=tmp_path / "a" / "state.new").relax(1)
    assert one.relax("0.1") == report
    os.link(tmp_path / "a" / "state", tmp_path / "hard")
    with pytest.raises(StateFileError, match="has a second name"):
        rx.Relaxation(answers, 7, state=tmp_path / "hard")


def test_a_file_that_others_can_read_is_rejected(tmp_path: Path) -> None:
    relaxation(tmp_path / "state").relax(1)
    (tmp_path / "state").chmod(0o644)
    with pytest.raises(StateFileError, match=r"can be read by others .*chmod 600"):
        relaxation(tmp_path / "state")


def test_a_state_that_went_back_is_noticed(tmp_path: Path) -> None:
    place = tmp_path / "state"
    living = relaxation(place, MANY)
    began = place.read_bytes()
    living.relax("0.1")
    old = place.read_bytes()
    living.relax(1)
    last = place.read_bytes()
    for earlier in (began, old):
        place.write_bytes(earlier)
        with pytest.raises(StateFileError, match="older than the last reports"):
            living.relax(1)
    relaxation(place, MANY).relax(1)  # a second draw of the level, from the earlier state
    with pytest.raises(StateFileError, match="older than"):
        living.relax(1)
    place.unlink()
    for epsilon in (1, 2):
        with pytest.raises(StateFileError, match="is missing"):
            living.relax(epsilon)
    relaxation(place, MANY).relax(3)  # another state of the same values
    with pytest.raises(StateFileError, match="older than"):
        living.relax(4)
    place.write_bytes(last)
    relaxation(place, MANY).relax(3)
    assert living.epsilon == 3  # another process may be ahead


def test_a_state_that_went_back_is_noticed_although_the_report_is_the_same(tmp_path: Path) -> None:
    place = tmp_path / "state"
    living = relaxation(place)
    living.relax(100)
    old = place.read_bytes()
    living.relax(200)
    place.write_bytes(old)
    with pytest.raises(StateFileError, match="older than"):
        living.relax(200)


def test_a_relaxation_in_memory_stays_in_its_process() -> None:
    memory = relaxation(None)
    memory.relax(1)
    context = multiprocessing.get_context("fork")
    results = context.Queue()

    def child() -> None:
        try:
            results.put(memory.relax(2))
        except StateFileError as problem:
            results.put(problem.message)

    worker = context.Process(target=child)
    worker.start()
    assert "belongs to the process that created it" in results.get(timeout=PATIENCE)
    worker.join()


def test_neither_pickle_nor_repr_shows_a_value() -> None:
    with pytest.raises(TypeError, match="cannot be pickled"):
        pickle.dumps(relaxation(None, ["covid"]))
    assert repr(relaxation(None)) == "<relaxdp.Relaxation of 1 value at epsilon 0>"
    assert "covid" not in repr(relaxation(None)._seen)


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

    living = relaxation(tmp_path / "state")
    monkeypatch.setattr("os.fsync", record)
    living.relax(1)
    assert synced == ["a whole file", "folder"]
    living.relax(1)
    assert len(synced) == 2


def test_a_folder_is_held_until_it_is_left_even_by_a_child_and_nothing_stays_open(tmp_path: Path) -> None:
    """A forked child has the descriptor too, and must not keep the lock."""
    context = multiprocessing.get_context("fork")
    done = context.Event()
    child = context.Process(target=done.wait)
    before, elsewhere = len([*OPEN.iterdir()]), os.open(tmp_path, os.O_RDONLY)
    with lock_folder(tmp_path):
        with pytest.raises(BlockingIOError):
            fcntl.flock(elsewhere, fcntl.LOCK_EX | fcntl.LOCK_NB)
        child.start()
    fcntl.flock(elsewhere, fcntl.LOCK_EX | fcntl.LOCK_NB)
    os.close(elsewhere)
    done.set()
    child.join()
    child.close()
    relaxation(tmp_path / "state").relax(1)
    assert len([*OPEN.iterdir()]) == before


def test_unusable_folder(tmp_path: Path) -> None:
    with pytest.raises(StateFileError, match="cannot be used"):
        relaxation(tmp_path / "absent" / "state")
    with refused(StateFileError, what="is a folder"):
        relaxation(tmp_path)


@pytest.mark.long
def test_the_chain_draws_by_the_law() -> None:
    """60,000 values at two levels against the exact joint distribution (chi-square at 1e-6, seeded)."""
    runs = 60_000
    many = relaxation(None, ["covid"] * runs)
    many._entropy = SeededEntropy(11)
    codes = [[VALUES.index(report) for report in many.relax(level)] for level in ("0.5", "1.5")]
    singles = []
    entropy = SeededEntropy(12)
    for _ in range(runs):
        one = relaxation(None)
        one._entropy = entropy
        singles.append(tuple(VALUES.index(one.relax(level)) for level in ("0.5", "1.5")))

    def statistic(seen: Counter[tuple[int, ...]], levels: tuple[str, str]) -> float:
        law = compute_transcript_distribution(
            3, [compute_retention(ANSWERS.threshold(as_epsilon(e))) for e in levels], 1
        )
        return sum((seen[key] - runs * float(p)) ** 2 / (runs * float(p)) for key, p in law.items())

    limit = chi2.isf(1e-6, 8)
    for seen in (Counter(zip(*codes, strict=True)), Counter(singles)):
        assert statistic(seen, ("0.5", "1.5")) < limit
        assert statistic(seen, ("0.5", "1.575")) > limit  # an epsilon that is 5 % off is noticed


def _relax_in_process(place: str, value: Any, epsilon: str, start: Any, results: Any) -> None:
    start.wait()
    results.put(np.asarray(relaxation(Path(place), value).relax(epsilon)).tolist())


@pytest.mark.parametrize("value", ["covid", MANY], ids=["one", "array"])
@pytest.mark.parametrize("rounds", [1, pytest.param(10, marks=pytest.mark.long)])
def test_processes_that_race_get_one_report(tmp_path: Path, value: Any, rounds: int) -> None:
    context = multiprocessing.get_context("fork")
    for round_ in range(rounds):
        place, start, results = str(tmp_path / f"state-{round_}"), context.Event(), context.Queue()
        arguments = (place, value, "0.05", start, results)
        workers = [context.Process(target=_relax_in_process, args=arguments) for _ in range(2 if rounds == 1 else 6)]
        for worker in workers:
            worker.start()
        start.set()
        assert len({str(results.get(timeout=PATIENCE)) for _ in workers}) == 1
        for worker in workers:
            worker.join()


class SlowEntropy(SystemEntropy):
    """Gives other threads the time to step in."""

    def make_keystream(self) -> Bytestream:
        time.sleep(0.002)
        return super().make_keystream()


def test_threads_that_race_get_one_report() -> None:
    for _ in range(20):
        one, seen = relaxation(None), []
        one._entropy = SlowEntropy()
        threads = [Thread(target=lambda: seen.append(one.relax("0.05"))) for _ in range(8)]  # noqa: B023
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(set(seen)) == 1


def run_in_child(work: Any) -> int:
    """Return how a forked process ended that did some work: -9 where it was killed."""
    worker = multiprocessing.get_context("fork").Process(target=work)
    worker.start()
    worker.join(PATIENCE)
    assert worker.exitcode is not None
    return worker.exitcode


@pytest.mark.parametrize("value", ["covid", MANY], ids=["one", "array"])
@pytest.mark.parametrize(
    ("owner", "name", "is_kept"),
    [
        (os, "fsync", False),
        (Path, "replace", False),
        (private_file, "sync_folder", True),
        (StateFileStore, "write", True),
    ],
)
def test_a_process_that_is_killed_at_a_step_of_writing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, value: Any, owner: Any, name: str, is_kept: bool
) -> None:
    """Killed before the file is replaced, the old state is whole. Killed after it, the draw is the one that is kept."""
    place, drawn = tmp_path / "state", tmp_path / "drawn"
    old = np.asarray(relaxation(place, value).relax("0.1")).tolist()
    before, real, step = place.read_bytes(), getattr(owner, name), rx.Relaxation._draw_next_state

    def note(self: Any, state: RelaxationState, level: Any) -> RelaxationState:
        after = step(self, state, level)
        drawn.write_text(json.dumps(np.asarray(self._make_reports(after)).tolist()))
        return after

    def killed(*arguments: Any, **named: Any) -> None:
        if is_kept:
            real(*arguments, **named)
        os.kill(os.getpid(), signal.SIGKILL)

    def work() -> None:
        monkeypatch.setattr(rx.Relaxation, "_draw_next_state", note)
        monkeypatch.setattr(owner, name, killed)
        relaxation(place, value).relax("0.2")

    assert run_in_child(work) == -signal.SIGKILL
    if is_kept:
        kept = json.loads(drawn.read_text())
        assert [np.asarray(relaxation(place, value).relax("0.2")).tolist() for _ in range(2)] == [kept, kept]
    else:
        assert place.read_bytes() == before
        assert np.asarray(relaxation(place, value).relax("0.1")).tolist() == old


def test_a_full_disk_leaves_the_old_state(tmp_path: Path) -> None:
    """A file that may not grow beyond 10,000 bytes fails in the middle of being written."""
    place = tmp_path / "state"
    old = relaxation(place, MANY).relax("0.1")
    before = place.read_bytes()

    def work() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, 10_000))
        living = relaxation(place, MANY)
        for epsilon in ("0.2", "0.3"):
            with pytest.raises(StateFileError, match="cannot be written: File too large"):
                living.relax(epsilon)
        assert living.relax("0.1").tolist() == old.tolist()
        assert living.epsilon == Decimal("0.1")

    assert run_in_child(work) == 0
    assert list(tmp_path.iterdir()) == [place]
    assert place.read_bytes() == before
    assert relaxation(place, MANY).relax("0.1").tolist() == old.tolist()


def _relax_forever(place: Path, log: Path) -> None:
    with log.open("a", buffering=1) as out:
        for step in range(1, 100_000):
            epsilon = f"0.{step:06d}"
            state = StateFileStore(place).read()
            if state is None or Fraction(state.epsilon) < Fraction(epsilon):
                out.write(f"{epsilon} {relaxation(place).relax(epsilon)}\n")


@pytest.mark.long
def test_killed_at_random_instants(tmp_path: Path) -> None:
    """SIGKILL during relaxations: what was returned is what the state still holds; the file is never half-written."""
    context = multiprocessing.get_context("fork")
    place, log, compared = tmp_path / "state", tmp_path / "log", 0
    for attempt in range(25):
        worker = context.Process(target=_relax_forever, args=(place, log))
        worker.start()
        time.sleep(0.02 + 0.004 * attempt)
        assert worker.pid is not None
        os.kill(worker.pid, signal.SIGKILL)
        worker.join()
        returned = (
            [line.split() for line in log.read_text().splitlines() if line.count(" ") == 1] if log.exists() else []
        )
        if returned:
            epsilon, report = returned[-1]
            state = stored(place)
            assert Fraction(state.epsilon) >= Fraction(epsilon)
            if Fraction(state.epsilon) == Fraction(epsilon):
                assert relaxation(place).relax(epsilon) == report
                compared += 1
    assert compared > 5
