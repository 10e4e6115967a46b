"""Algorithm 1 with its state, for one value and for an array: the joint distribution of all levels is exact.

Every number that a step can read is tried, from every state that an earlier step can leave. A state is told from
others by its last report, so that the probabilities of the steps multiply.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from tests.exact.enumeration import Transcript, compute_transcript_distribution
from tests.golden.enumeration import Numbers, enumerate_outcomes

import relaxdp as rx
from relaxdp.mechanisms.relaxation import RelaxationState
from relaxdp.theory.epsilon import Epsilon
from relaxdp.theory.randomized_response import Level

VALUES = ["flu", "covid", "none"]
TERNARY = rx.Categorical(VALUES)
ANSWER = 1
WAYS = [pytest.param(False, id="one"), pytest.param(True, id="array")]


class TranscriptSource:
    """Randomness out of the numbers that are tried."""

    def __init__(self, numbers: Numbers) -> None:
        self._numbers = numbers

    def make_keystream(self) -> TranscriptSource:
        return self

    def fill(self, buffer: Any) -> None:
        if len(buffer):
            buffer[:] = np.frombuffer(self._numbers.read(len(buffer)).to_bytes(len(buffer), "little"), np.uint8)


def joint_distribution(relaxation: rx.Relaxation, levels: Sequence[str]) -> dict[Transcript, Fraction]:
    """Return the distribution of all transcripts, but for words that lie on a boundary: one in 2^64."""
    joint: dict[Transcript, Fraction] = {(): Fraction(1)}
    states: dict[Transcript, RelaxationState] = {(): relaxation._seen}  # by the last report
    for epsilon in levels:
        steps: dict[Transcript, dict[int, Fraction]] = {}
        following: dict[Transcript, RelaxationState] = {}
        for last, state in states.items():

            def draw(numbers: Numbers, state: RelaxationState = state, epsilon: str = epsilon) -> int:
                relaxation._store.write(state)
                relaxation._seen, relaxation._entropy = state, TranscriptSource(numbers)
                report = relaxation.relax(epsilon)
                return VALUES.index(report[0] if isinstance(report, list) else report)

            found: Any = enumerate_outcomes(draw)
            steps[last] = found.chances
            for numbers, report in found.ways:
                draw(Numbers(numbers))
                following[report,] = relaxation._seen
        joint = {
            (*earlier, report): chance * share
            for earlier, chance in joint.items()
            for report, share in steps[earlier[-1:]].items()
        }
        states = following
    return joint


def is_same(found: dict[Transcript, Fraction], exact: dict[Transcript, Fraction]) -> bool:
    """Return whether two distributions are the same but for words that lie on a boundary."""
    every = found.keys() | exact.keys()
    return all(abs(found.get(each, Fraction(0)) - exact.get(each, Fraction(0))) < Fraction(1, 2**58) for each in every)


def exact_distribution(levels: Sequence[str], start: tuple[str, int] | None = None) -> dict[Transcript, Fraction]:
    """Return the paper's distribution of transcripts; given the report that it starts from, the conditional one."""
    every = [*([] if start is None else [start[0]]), *levels]
    law = compute_transcript_distribution(len(VALUES), [TERNARY.level(epsilon).retention for epsilon in every], ANSWER)
    if start is None:
        return dict(law)
    given = {transcript[1:]: chance for transcript, chance in law.items() if transcript[0] == start[1]}
    return {transcript: chance / sum(given.values()) for transcript, chance in given.items()}


@pytest.mark.parametrize("is_array", WAYS)
def test_all_levels_together(is_array: bool) -> None:
    """All transcripts of three levels, one of them requested twice."""
    levels = ["0.5", "1", "1", "2"]
    found = joint_distribution(make(is_array), levels)
    assert is_same(found, exact_distribution(levels))
    assert not is_same(found, exact_distribution(["0.5", "1", "1", "2.0000000001"]))


@pytest.mark.parametrize("is_array", WAYS)
@pytest.mark.parametrize("start", [0, pytest.param(ANSWER, marks=pytest.mark.long)])
def test_levels_after_reports_that_were_made_elsewhere(is_array: bool, start: int) -> None:
    found = joint_distribution(make(is_array, start=start), ["1", "2"])
    assert is_same(found, exact_distribution(["1", "2"], ("0.5", start)))


def make(is_array: bool, kind: type[rx.Relaxation] = rx.Relaxation, start: int | None = None) -> rx.Relaxation:
    value: Any = [VALUES[ANSWER]] if is_array else VALUES[ANSWER]
    if start is None:
        return kind(TERNARY, value)
    return kind(TERNARY, value, reports=[VALUES[start]] if is_array else VALUES[start], reports_epsilon="0.5")


class StatedAgain(rx.Relaxation):
    """A mistake: every step begins at the epsilon that the caller stated."""

    def _draw_next_state(self, state: RelaxationState, level: Level) -> RelaxationState:
        stated = self._mechanism.level(state.start_epsilon)
        return super()._draw_next_state(replace(state, threshold=str(stated.threshold)), level)


class DrawnAgain(rx.Relaxation):
    """A mistake: a level that is requested again is drawn again."""

    def relax(self, epsilon: Epsilon) -> Any:
        level = self._mechanism.level(epsilon)
        if level.epsilon == self.epsilon:
            again = self._draw_next_state(self._start_from_values([VALUES[ANSWER]]), level)
            self._seen = replace(again, origin=self._seen.origin)
            self._store.write(self._seen)
        return super().relax(epsilon)


@pytest.mark.parametrize("is_array", WAYS)
def test_a_stated_epsilon_that_counts_twice_is_noticed(is_array: bool) -> None:
    found = joint_distribution(make(is_array, StatedAgain, start=0), ["1", "2"])
    assert not is_same(found, exact_distribution(["1", "2"], ("0.5", 0)))


@pytest.mark.parametrize("is_array", WAYS)
def test_a_level_that_is_drawn_twice_is_noticed(is_array: bool) -> None:
    found = joint_distribution(make(is_array, DrawnAgain), ["1", "1"])
    assert not is_same(found, exact_distribution(["1", "1"]))
    assert is_same(joint_distribution(make(is_array), ["1", "1"]), exact_distribution(["1", "1"]))


class Bytes:
    """Randomness out of rows of bytes: each call gives one byte to each value, and zeros as further digits."""

    def __init__(self, rows: Any) -> None:
        self._rows, self._calls = len(rows), np.transpose(rows).tolist()

    def make_keystream(self) -> Bytes:
        return self

    def fill(self, buffer: Any) -> None:
        buffer[:] = self._calls.pop(0) if len(buffer) == self._rows else 0


def test_an_array_of_two_is_two_of_one() -> None:
    """Bytes that each of two values reads alone give the same reports when both read them together."""

    def draw(values: list[str], rows: Any) -> list[list[str]]:
        relaxation = rx.Relaxation(TERNARY, values)
        relaxation._entropy = Bytes(rows)
        return [relaxation.relax(epsilon) for epsilon in ("0.5", "1", "2")]

    for seed in range(50):
        rows = np.random.default_rng(seed).integers(0, 80, (2, 9)) * 3  # below 240: nothing is rejected
        first, second = draw(["covid"], rows[:1]), draw(["none"], rows[1:])
        assert draw(["covid", "none"], rows) == [[*pair[0], *pair[1]] for pair in zip(first, second, strict=True)]
