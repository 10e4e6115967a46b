"""What the compiled path is asked when it is loaded: the answers are NumPy's, and a wrong one is noticed."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from itertools import cycle
from typing import Any

import numpy as np
import pytest
from tests.conftest import missing
from tests.refusals import refused

from relaxdp.errors import KernelError
from relaxdp.sampling.bridge import Codes, _FreshBridgeSampler
from relaxdp.sampling.entropy import Keystream
from relaxdp.sampling.kernel import c_library, self_test
from relaxdp.sampling.kernel.c_library import SETTING, Kernel, get_kernel
from relaxdp.sampling.kernel.self_test import (
    BYTES,
    KINDS,
    OBJECTS,
    compute_digest,
    make_test_codes,
    make_test_mac_inputs,
    make_test_report_pairs,
)
from relaxdp.sampling.keyed_path import NumpyPathSampler
from relaxdp.theory.randomized_response import BridgeMixture


def paths() -> Iterator[Codes]:
    index = np.arange(OBJECTS, dtype=np.uint64)
    for (values, kind), of in zip(KINDS, cycle(make_test_mac_inputs()), strict=False):
        for level, symbols in zip(self_test.LEVELS, (1, 3, 1, 2), strict=True):
            drawn = make_test_codes(values, kind, (OBJECTS, symbols), level)
            NumpyPathSampler(self_test._PATH_KEY, values, level).replace_symbols_by_reports(of, index, drawn)
            yield drawn


def steps(monkeypatch: pytest.MonkeyPatch) -> Iterator[Codes]:
    """In chunks as short as those of the question."""
    monkeypatch.setattr("relaxdp.sampling.bridge.FRESH_CHUNK", self_test.MAX_CHUNK)
    source = Keystream(self_test._PATH_KEY + bytes(16))
    agree, differ = (BridgeMixture(*(Fraction(each, 35) for each in of)) for of in ((21, 0, 14), (15, 10, 10)))
    for values, kind in KINDS[:BYTES]:
        ends = make_test_report_pairs(values, kind, (self_test.STEPS,))
        bridge, drawn = _FreshBridgeSampler(values, agree, differ, source), np.zeros_like(ends[0])
        assert (bridge._flip if values == 2 else bridge._to_upper).get_digits() == [
            *(self_test.FLIP if values == 2 else self_test.TO_UPPER)
        ]
        assert bridge._redraw.get_digits() == [*self_test.REDRAW]
        bridge.draw_into(drawn, *ends)
        yield drawn
    yield np.array([source.position], np.uint64)


def test_the_results_are_those_of_numpy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(SETTING, "off")
    made = {"paths": compute_digest(paths()), "steps": compute_digest(steps(monkeypatch))}
    assert made == self_test.DIGESTS


class Wrong(Kernel):
    """Right in all but one code of one kind of draw: the last one, of a value that is not the first."""

    where: str

    def replace_symbols_by_reports(self, *given: Any) -> None:
        super().replace_symbols_by_reports(*given)
        self._spoil("paths", given[1], given[-1])

    def draw_bridge_step(self, seed: bytes, position: int, law: Any, codes: Any, room: Any) -> tuple[int, int, int]:
        drawn, position, largest = super().draw_bridge_step(seed, position, law, codes, room)
        self._spoil("steps", law._obj.values, codes[-1])
        return drawn, position + (self.where == "positions"), largest

    def are_distinct(self, ids: Any) -> bool:
        return self.where == "repeats" or super().are_distinct(ids)

    def find_labels(self, labels: Any, texts: Any) -> Any:
        found = super().find_labels(labels, texts)
        return found if self.where != "labels" or found is None else np.roll(found, 1)

    def _spoil(self, where: str, values: int, codes: Any) -> None:
        if where == self.where and values == KINDS[-1 if where == "paths" else BYTES - 1][0]:
            codes.reshape(-1)[-1] ^= 1


@pytest.fixture(params=["paths", "steps", "positions", "repeats", "labels"])
def wrong(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.delenv(SETTING, raising=False)  # also where everything else is drawn by NumPy
    if get_kernel() is None:
        missing("the compiled path is not built, or this processor has not what it needs")
    c_library._load_kernel.cache_clear()
    monkeypatch.setattr(Wrong, "where", request.param, raising=False)
    monkeypatch.setattr(c_library, "Kernel", Wrong)
    yield
    c_library._load_kernel.cache_clear()


@pytest.mark.usefixtures("wrong")
def test_a_library_that_draws_one_code_wrong_is_refused() -> None:
    with refused(KernelError, says="draws wrong reports"):
        get_kernel()


def test_a_library_that_draws_nothing_wrong_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Wrong, "where", "nowhere", raising=False)
    monkeypatch.delenv(SETTING, raising=False)
    if get_kernel() is None:
        missing("the compiled path is not built, or this processor has not what it needs")
    library = c_library._open_library()
    assert library is not None
    assert all(self_test.has_correct_results(Wrong(library, name)) for name in c_library._get_instruction_sets(library))
