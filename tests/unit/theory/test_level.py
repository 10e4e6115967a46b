"""Levels and paths are types: who may make a level, what it may be compared with, and what an epoch is called."""

from __future__ import annotations

import ast
import operator
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

import relaxdp as rx
from relaxdp.errors import LevelError
from relaxdp.mechanisms.bloom import Bloom, BloomShape
from relaxdp.mechanisms.keyed_reports import ReportPath, release_codes
from relaxdp.sampling.keyed_stream import PathId
from relaxdp.theory.epsilon import ONE

SRC = Path(rx.__file__).parent
KEY = rx.Key.from_bytes(bytes(range(32)))
TWO, THREE = (rx.Categorical(range(number)) for number in (2, 3))


def test_a_level_is_equal_and_ordered_by_its_threshold() -> None:
    low, high = THREE.level("0.5"), THREE.level(1)
    assert low < high
    assert high >= low
    assert max(low, high) is high
    assert THREE.level("0.50") == low
    assert hash(THREE.level("0.50")) == hash(low)
    assert (low.epsilon, low.threshold, low.retention) == (
        Decimal("0.5"), THREE.threshold(Decimal("0.5")), Fraction(low.threshold, ONE),
    )  # fmt: skip
    # Two epsilons with one threshold give the same reports, so they are one level.
    tiny = THREE.level("0.5" + "0" * 30 + "1")
    assert tiny.epsilon != low.epsilon
    assert tiny == low
    assert not tiny < low
    assert not low < tiny
    assert (str(low), repr(low)) == ("0.5", "<relaxdp.Level 0.5 of categorical>")
    assert low != "0.5"
    said = low.to_dict()
    assert THREE.level(said["epsilon"], int(said["threshold"])) == low


@pytest.mark.parametrize("other", [TWO, rx.Categorical([*"abc"]), rx.Unary(range(3))])
def test_levels_of_two_encodings_are_not_compared(other: Any) -> None:
    mine, its = THREE.level(1), other.level(1)
    for compare in (operator.lt, operator.eq, operator.ge, operator.ne):
        with pytest.raises(LevelError):
            compare(mine, its)
    with pytest.raises(LevelError):
        sorted([THREE.level(2), its])


@pytest.mark.parametrize("draw", ["path", "array"])
def test_nothing_is_drawn_at_a_level_of_another_encoding(draw: str) -> None:
    """With two values less is hidden at the same threshold than with three: the guarantee would be another one."""
    level, path = TWO.level(1), PathId("r", "a")
    draws: dict[str, Any] = {
        "path": lambda: ReportPath(THREE, 0, key=KEY, object_id=1, path=path).draw_codes(level),
        "array": lambda: release_codes(THREE, [0], [1], key=KEY, level=level, path=path),
    }
    with pytest.raises(LevelError):
        draws[draw]()


def test_mutant_levels_that_compare_across_encodings_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(type(THREE.level(1)), "_require_same_mechanism", lambda self, other: other.threshold)
    with pytest.raises(pytest.fail.Exception):
        test_levels_of_two_encodings_are_not_compared(TWO)


def test_all_cohorts_have_the_levels_of_their_shape() -> None:
    shape = BloomShape(bits=16, hashes=2, cohorts=8)
    assert Bloom(shape, 3).level(2) == Bloom(shape).level(2)


def test_a_threshold_from_elsewhere_may_tell_less_and_not_more() -> None:
    most = THREE.level(1).threshold
    assert THREE.level(1, most - 5) < THREE.level(1)
    for threshold in (most + 1, 0, -1, ONE):
        with pytest.raises(LevelError):
            THREE.level(1, threshold)


def calls(name: str) -> list[str]:
    """Return the files of the package that call a function or method of this name."""
    found = []
    for file in sorted(SRC.rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            if isinstance(node, ast.Call) and getattr(node.func, "attr", getattr(node.func, "id", None)) == name:
                found.append(str(file.relative_to(SRC)))
    return found


def test_only_encodings_make_levels() -> None:
    assert calls("Level") == ["mechanisms/base.py"]
