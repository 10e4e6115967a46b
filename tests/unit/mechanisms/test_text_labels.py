"""Declared text is found by the compiled path and by Arrow alike: the same places, the same rejected rows."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from tests.conftest import missing
from tests.refusals import refused

import relaxdp as rx
from relaxdp.errors import UndeclaredValueError
from relaxdp.sampling.kernel import c_library
from relaxdp.sampling.kernel.c_library import SETTING, get_kernel

LABELS = (
    ["no", "yes"],
    ["", "a"],
    ["a", "a\0", "a\0\0", "\0a"],
    ["x" * length for length in range(60)],
    ["y" * 16 + letter + "y" * 20 for letter in "abcdefgh"] + ["y" * 16, "y" * 36, "y" * 37],
    [f"value {number:05d}" for number in range(3_000)],
    [f"value {number:05d}" for number in range(c_library._MAX_LABELS + 1)],  # Arrow looks for these
    ["Grüße", "Grusse", "Grüsse"],
)
TYPES = (pa.string(), pa.large_string())


@pytest.fixture(params=["compiled", "off"], autouse=True)
def setting(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Find labels with the compiled path, or without it."""
    if request.param == "off":
        monkeypatch.setenv(SETTING, "off")
        return
    monkeypatch.delenv(SETTING, raising=False)  # also where everything else is drawn by NumPy
    if get_kernel() is None:
        missing("the compiled path is not built")


@pytest.mark.parametrize("labels", LABELS, ids=len)
@pytest.mark.parametrize("kind", TYPES, ids=str)
@pytest.mark.parametrize("is_bytes", [False, True])
def test_every_label_is_found(labels: list[str], kind: pa.DataType, is_bytes: bool) -> None:
    declared = [label.encode() for label in labels] if is_bytes else labels
    arrow_type = {pa.string(): pa.binary(), pa.large_string(): pa.large_binary()}[kind] if is_bytes else kind
    mechanism = rx.Categorical(declared)
    truths = np.random.default_rng(len(labels)).integers(0, len(labels), 5_000)
    column = pa.array(declared, arrow_type).take(pa.array(truths))
    for skip in (0, 3, 4_999, 5_000):
        assert mechanism.find_value_indices(column[skip:]).tolist() == truths[skip:].tolist()
    codes = pa.array(truths.astype(np.int32))
    assert mechanism.find_value_indices(pa.DictionaryArray.from_arrays(codes, declared)).tolist() == truths.tolist()
    for row in (0, 1, 2_500, 4_999):
        strange = "value 0000" if not is_bytes else b"value 0000"
        cells = column.to_pylist()
        for cell, is_missing in ((strange, False), (None, True)):
            cells[row] = cell
            with refused(UndeclaredValueError, row=row + 8, missing=True if is_missing else None):
                mechanism.find_value_indices(pa.array(cells, arrow_type), 7)


def test_nothing_is_not_the_empty_text() -> None:
    for labels in (["", None, "a"], [None, ""], ["a", "", None]):
        cells = ["", None, labels[0], ""]
        expected = [labels.index(cell) for cell in cells]
        mechanism = rx.Categorical(labels)
        assert mechanism.find_value_indices(pa.array(cells)).tolist() == expected
        assert mechanism.find_value_indices(pa.array(cells).dictionary_encode()).tolist() == expected
        assert mechanism.find_value_indices(pa.array(["", ""])).tolist() == [labels.index("")] * 2
    with refused(UndeclaredValueError, row=1):
        rx.Categorical([None, "a"]).find_value_indices(pa.array(["", "a"]))


def test_dictionaries() -> None:
    mechanism = rx.Categorical(["no", "yes"])
    unused = pa.DictionaryArray.from_arrays(pa.array([2, 0, 2], pa.int8()), pa.array(["yes", "perhaps", "no"]))
    assert mechanism.find_value_indices(unused).tolist() == [0, 1, 0]
    assert mechanism.find_value_indices(unused[1:]).tolist() == [1, 0]
    for codes, row in (([0, 1, 2], 2), ([0, None, 2], 2)):
        column = pa.DictionaryArray.from_arrays(pa.array(codes, pa.int8()), unused.dictionary)
        with refused(UndeclaredValueError, row=row):
            mechanism.find_value_indices(column)
    for outside in (-1, 2, 3, 2**64 - 1):  # Arrow does not check the indices of a file
        codes = pa.array([0, outside], pa.int8() if outside < 4 else pa.uint64())
        damaged = pa.DictionaryArray.from_arrays(codes, pa.array(["no", "yes"]), safe=False)
        with refused(UndeclaredValueError):
            mechanism.find_value_indices(damaged)
