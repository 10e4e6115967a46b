"""The wave: its frozen vectors hold, by the scalar implementation and however they are drawn, and what it refuses."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.refusals import refused
from tests.vectors.make import untyped
from tests.vectors.make_wave import FILE, check

import relaxdp as rx
from relaxdp.draw.kernel.loaded import SETTING, in_use
from relaxdp.draw.stream import PathId
from relaxdp.encodings.path import ReportPath
from relaxdp.encodings.release import release_codes
from relaxdp.encodings.wave import best_window
from relaxdp.errors import CountsError, EncodingError, RangeError

CASES: list[dict[str, Any]] = json.loads(FILE.read_text("utf-8"))["cases"]


def test_the_scalar_implementation() -> None:
    assert check() == len(CASES) == 54


@pytest.mark.parametrize("setting", ["", "off"])
def test_one_object_and_arrays(setting: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the compiled path, where there is one, and by NumPy."""
    monkeypatch.setenv(SETTING, setting)
    assert setting == "" or in_use() == "numpy"
    places = set()
    for case in CASES:
        wave = rx.Wave(
            float(case["low"]), float(case["high"]), bins=case["bins"], window=case["window"], clip=case["clip"]
        )
        encoding, object_id, truth = wave.encoding, untyped(case["object"]), float(case["truth"])
        where: Any = {
            "key": rx.Key.from_bytes(bytes.fromhex(case["key"])),
            "path": PathId(case["release"], case["attribute"]),
        }
        path = ReportPath(encoding, truth, object_id=object_id, **where)
        for level in case["levels"]:
            asked = encoding.level(level["epsilon"])
            assert str(asked.threshold) == level["threshold"]
            assert path.at(level["epsilon"]) == level["report"]
            codes = release_codes(encoding, [truth] * 3, [object_id] * 3, level=asked, **where)
            assert codes[:, 0].tolist() == [level["report"]] * 3
            places.add(level["report"] < 256)
    assert places == {True, False}


def test_the_window_is_the_best_one_for_the_mean() -> None:
    """Half of it is nearest to 0.22 of the range at epsilon 2, 0.15 at 3 and 0.11 at 4, however many bins there are."""
    assert [best_window(epsilon) for epsilon in (2, 3, 4)] == [32, 16, 16]
    assert [best_window(epsilon, bins=256) for epsilon in (2, 3, 4)] == [128, 64, 64]
    assert [best_window(epsilon, bins=16) for epsilon in (2, 3, 4)] == [8, 4, 4]
    assert best_window("0.01", bins=1024) == 1024
    assert best_window(1000) == 1
    windows = [best_window(epsilon) for epsilon in ("0.1", "0.5", "1", "1.5", "2", "3", "4", "6", "8", "12")]
    assert windows == sorted(windows, reverse=True)


def test_another_window_is_another_path() -> None:
    shapes: list[Any] = [{"window": 16}, {"window": 32}, {"window": 16, "bins": 65}, {"window": 16, "clip": True}]
    params = {rx.Wave(0, 10, **shape).encoding.params for shape in shapes}
    assert len(params) == 4
    assert rx.mechanism(range=(0, 10), encoding="wave", epsilon=3).encoding.options == {"bins": 64, "window": 16}
    assert repr(rx.Wave(0, 10, window=4, clip=True)) == "Wave(0, 10, clip=True, bins=64, window=4)"
    assert repr(rx.mechanism(range=(0, 10), encoding="wave", window=4)) == "Wave(0, 10, bins=64, window=4)"


def test_what_is_refused() -> None:
    wrong: Any
    for wrong in ({}, {"window": 8, "epsilon": 2}):
        with refused(EncodingError, says="the last epsilon that is planned"):
            rx.Wave(0, 1, **wrong)
    with refused(EncodingError, says="the last epsilon that is planned"):
        rx.mechanism(range=(0, 1), encoding="wave")
    for wrong in ({"bins": 1}, {"bins": 1025}, {"bins": 2.0}, {"window": 0}, {"window": 2048}, {"window": True}):
        with refused(EncodingError, says="is a whole number from"):
            rx.Wave(0, 1, **{"window": 4, **wrong})
        with refused(EncodingError, says="is a whole number from"):
            rx.mechanism(range=(0, 1), encoding="wave", **{"window": 4, **wrong})
    with refused(EncodingError, says="is a whole number from"):
        rx.mechanism(range=(0, 1), encoding="wave", epsilon=2, bins="9")
    with refused(RangeError, says="not within the range"):
        rx.Wave(0, 1, window=4).encoding.truths([0.5, 1.25])
    encoding = rx.Wave(0, 1, window=4).encoding
    for column in ([67], [-1], [1.5], ["3"], [None], [True], [2**63]):
        with refused(CountsError, alphabet=67, says="none of the"):
            encoding.codes(column)
    assert encoding.codes([66.0, 0])[:, 0].tolist() == [66, 0]
