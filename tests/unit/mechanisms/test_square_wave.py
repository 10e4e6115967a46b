"""The wave: its frozen vectors hold, by the scalar implementation and however they are drawn, and what it refuses."""

from __future__ import annotations

import json
from decimal import Decimal, localcontext
from itertools import product
from typing import Any

import pytest
from tests.refusals import refused
from tests.vectors.make import untyped
from tests.vectors.make_wave import FILE, check

import relaxdp as rx
from relaxdp.errors import ColumnError, EstimationError, MechanismError, UndeclaredValueError
from relaxdp.estimation.mechanism_choice import WINDOWS
from relaxdp.mechanisms.keyed_reports import ReportPath, release_codes
from relaxdp.mechanisms.registry import create_mechanism, get_mechanism_arguments
from relaxdp.mechanisms.report_arrays import read_report_column
from relaxdp.mechanisms.square_wave import choose_window_width
from relaxdp.sampling.kernel.c_library import SETTING, get_sampler_name
from relaxdp.sampling.keyed_stream import PathId

CASES: list[dict[str, Any]] = json.loads(FILE.read_text("utf-8"))["cases"]


def test_the_scalar_implementation() -> None:
    assert check() == len(CASES) == 54


@pytest.mark.parametrize("setting", ["", "off"])
def test_one_object_and_arrays(setting: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the compiled path, where there is one, and by NumPy."""
    monkeypatch.setenv(SETTING, setting)
    assert setting == "" or get_sampler_name() == "numpy"
    places = set()
    for case in CASES:
        wave = rx.SquareWave(
            float(case["low"]), float(case["high"]), bins=case["bins"], window=case["window"], clip=case["clip"]
        )
        encoding, object_id, truth = wave, untyped(case["object"]), float(case["truth"])
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
    assert [choose_window_width(epsilon) for epsilon in (2, 3, 4)] == [32, 16, 16]
    assert [choose_window_width(epsilon, bins=256) for epsilon in (2, 3, 4)] == [128, 64, 64]
    assert [choose_window_width(epsilon, bins=16) for epsilon in (2, 3, 4)] == [8, 4, 4]
    assert choose_window_width("0.01", bins=1024) == 1024
    assert choose_window_width(1000) == 1
    windows = [choose_window_width(epsilon) for epsilon in ("0.1", "0.5", "1", "1.5", "2", "3", "4", "6", "8", "12")]
    assert windows == sorted(windows, reverse=True)


def test_the_window_for_the_distribution_is_that_of_the_paper() -> None:
    """The nearest power of two to 0.72 of the range at 0.5, 0.51 at 1, 0.26 at 2 and 0.06 at 4, in steps of bins."""
    with localcontext(prec=60):
        for text, bins in product(
            ("0.0001", "0.01", "0.5", "1", "1.7", "2", "3.3", "4", "6", "19"), (2, 3, 49, 64, 1024)
        ):
            epsilon, odds = Decimal(text), Decimal(text).exp()
            half = (epsilon * odds - odds + 1) / (2 * odds * (odds - 1 - epsilon))
            windows = sorted((abs(window - 2 * half * (bins - 1)), window) for window in WINDOWS)
            assert choose_window_width(epsilon, bins, "distribution") == windows[0][1], (text, bins)
            assert windows[1][0] - windows[0][0] > Decimal("1e-9")  # No rounding decides.
    assert [choose_window_width(epsilon, goal="distribution") for epsilon in ("0.5", 1, 2, 4)] == [32, 32, 16, 4]
    for bins in range(
        2, 1025
    ):  # However small epsilon is, the window is that of the limit, just below the whole range.
        limit = min(WINDOWS, key=lambda window: abs(window - bins + 1))
        assert choose_window_width("1e-100", bins, "distribution") == limit
    assert choose_window_width(1000, goal="distribution") == 1


def test_the_goal_names_the_window() -> None:
    assert rx.SquareWave(0, 1, epsilon=4).window == rx.SquareWave(0, 1, epsilon=4, goal="mean").window == 16
    narrow, named = rx.SquareWave(0, 1, epsilon=4, goal="distribution"), rx.SquareWave(0, 1, window=4)
    assert (narrow.params, repr(narrow)) == (named.params, repr(named))
    by_name = create_mechanism("wave", range=(0, 1), epsilon=4, options={"goal": "distribution", "bins": 64})
    assert get_mechanism_arguments(by_name)["options"] == {"bins": 64, "window": 4}


def test_another_window_is_another_path() -> None:
    shapes: list[Any] = [{"window": 16}, {"window": 32}, {"window": 16, "bins": 65}, {"window": 16, "clip": True}]
    params = {rx.SquareWave(0, 10, **shape).params for shape in shapes}
    assert len(params) == 4
    assert get_mechanism_arguments(create_mechanism("wave", range=(0, 10), epsilon=3))["options"] == {
        "bins": 64,
        "window": 16,
    }
    assert repr(rx.SquareWave(0, 10, window=4, clip=True)) == "SquareWave(0, 10, clip=True, bins=64, window=4)"
    assert (
        repr(create_mechanism("wave", range=(0, 10), options={"window": 4})) == "SquareWave(0, 10, bins=64, window=4)"
    )


def test_what_is_refused() -> None:
    wrong: Any
    for wrong in ({}, {"window": 8, "epsilon": 2}):
        with refused(MechanismError, says="the largest epsilon that you plan; got {given}"):
            rx.SquareWave(0, 1, **wrong)
    with refused(MechanismError, says="cannot be combined"):
        rx.SquareWave(0, 1, window=8, goal="distribution")
    with refused(MechanismError, says="expected 'mean' or 'distribution'", goal="median"):
        create_mechanism("wave", range=(0, 1), epsilon=2, options={"goal": "median"})
    with refused(MechanismError, says="needs either `window` or `epsilon`"):
        rx.SquareWave(0, 1, goal="mean")
    for wrong in ({}, {"goal": "mean"}):
        with refused(MechanismError, options="window"):
            create_mechanism("wave", range=(0, 1), options=wrong)
    with refused(MechanismError, options="goal", mechanism="local-hash"):
        create_mechanism("local-hash", values=["a", "b"], epsilon=2, options={"goal": "mean"})
    for wrong in ({"bins": 1}, {"bins": 1025}, {"bins": 2.0}, {"window": 0}, {"window": 2048}, {"window": True}):
        with refused(MechanismError, says="must be a whole number from"):
            rx.SquareWave(0, 1, **{"window": 4, **wrong})
        with refused(MechanismError, says="must be a whole number from"):
            create_mechanism("wave", range=(0, 1), options={**{"window": 4, **wrong}})
    with refused(MechanismError, says="must be a whole number from"):
        create_mechanism("wave", range=(0, 1), epsilon=2, options={"bins": "9"})
    with refused(UndeclaredValueError, says="outside of the range"):
        rx.SquareWave(0, 1, window=4).read_true_values([0.5, 1.25])
    encoding = rx.SquareWave(0, 1, window=4)
    column: Any
    for column in (["3"], [True], [2**63]):
        with refused(ColumnError, says="must contain numbers"):
            read_report_column(encoding, column)
    for column in ([67], [-1], [1.5], [None]):
        with refused(EstimationError, alphabet=67, says="not a whole number from 0"):
            read_report_column(encoding, column)[0]
    assert read_report_column(encoding, [66.0, 0])[0][:, 0].tolist() == [66, 0]
