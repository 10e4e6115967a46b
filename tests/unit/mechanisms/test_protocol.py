"""A mechanism that a program registers: bits for three letters, with nothing else touched."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from tests.refusals import refused

import relaxdp as rx
from relaxdp.device.report import read_answer, read_typed_answer
from relaxdp.errors import MechanismError, UndeclaredValueError
from relaxdp.mechanisms import registry
from relaxdp.mechanisms.base import KeptRandomness, Mechanism, TrueValues
from relaxdp.mechanisms.bloom import Bloom, BloomShape
from relaxdp.mechanisms.categorical import Categorical, Unary
from relaxdp.mechanisms.keyed_reports import ReportPath, release_codes
from relaxdp.mechanisms.numeric import Numeric
from relaxdp.mechanisms.registry import MechanismKind, get_mechanism_kind, register_mechanism
from relaxdp.mechanisms.report_arrays import Codes, count_supported_labels
from relaxdp.sampling.keyed_stream import PathId
from relaxdp.theory.epsilon import compute_nonzero_threshold
from relaxdp.theory.randomized_response import SupportProbabilities


class Bits(Mechanism):
    """Symmetric unary encoding of three letters."""

    name = "test-bits"
    alphabet = 2
    symbols = 3
    params = b"three letters"
    _letters = "xyz"

    def threshold(self, epsilon: Decimal) -> int:
        return compute_nonzero_threshold(epsilon / 2, 2)

    def read_true_values(self, column: Any, first_row: int = 0) -> TrueValues:
        return TrueValues(np.array([self._letters.index(str(item)) for item in column], dtype=np.uint64))

    def compute_true_symbols(self, true_values: TrueValues, randomness: KeptRandomness) -> Codes:
        return np.asarray(true_values.index[:, None] == np.arange(3, dtype=np.uint64), np.uint8)

    labels = tuple("xyz")

    def compute_noise_and_gain(self, retention: Fraction) -> SupportProbabilities:
        return SupportProbabilities(noise=(1 - retention) / 2, gain=retention)


@pytest.fixture
def bits(monkeypatch: pytest.MonkeyPatch) -> Bits:
    monkeypatch.setattr(registry, "_kinds", dict(registry._kinds))
    register_mechanism(MechanismKind("test-bits", "values", Bits))
    return Bits()


def test_path_arrays_and_algorithm_1(bits: Bits) -> None:
    key = rx.Key.from_bytes(bytes(32))
    where: Any = {"path": PathId("r", "a")}
    truth = ["xyz"[row % 3] for row in range(500)]
    ids = [f"id {row * 7919}" * (1 + row % 3) for row in range(500)]
    codes = release_codes(bits, truth, ids, key=key, level=bits.level(Decimal(2)), **where)
    for row in range(500):
        path = ReportPath(bits, truth[row], key=key, object_id=ids[row], **where)
        assert path.draw_codes(bits.level(Decimal(2))).tolist() == [codes[row].tolist()]
        assert ReportPath(bits, truth[row], key=key, object_id=ids[row], **where).at(50) == bytes(
            [1 << "xyz".index(truth[row])]
        )
    chain = rx.Relaxation(bits, "y")
    assert chain.relax(epsilon=100) == b"\x02"


def test_shares(bits: Bits) -> None:
    truth = ["x"] * 60_000 + ["y"] * 40_000
    codes = release_codes(
        bits, truth, np.arange(100_000), key=rx.Key.from_bytes(bytes(32)), level=bits.level(3), path=PathId("", "")
    )
    support = bits.compute_noise_and_gain(bits.level(3).retention)
    shares = support.debias(count_supported_labels(bits, codes) / 100_000)
    assert np.abs(shares - [0.6, 0.4, 0.0]).max() < 0.02


def test_registry(bits: Bits) -> None:
    assert get_mechanism_kind("test-bits").create is Bits
    assert get_mechanism_kind("categorical").name == "categorical"
    with refused(MechanismError, name="nope", says="Unknown mechanism") as caught:
        get_mechanism_kind("nope")
    assert "categorical" in caught.value.fields["known"]

    with refused(MechanismError, name="test-bits", says="is registered already"):
        register_mechanism(MechanismKind("test-bits", "values", Bits))


@pytest.mark.parametrize(
    "encoding",
    [
        Categorical(["yes", "no"]), Unary(["yes", "no"]), Numeric(0, 10),
        Bloom(BloomShape(1, 1, 1)),
    ],
    ids=lambda each: each.name,
)  # fmt: skip
@pytest.mark.parametrize("read", [read_answer, read_typed_answer])
def test_a_refused_answer_is_nowhere_in_the_refusal(encoding: Mechanism, read: Any) -> None:
    """Neither in its words and fields, nor in what it was raised in the midst of."""
    with pytest.raises(UndeclaredValueError) as caught:
        read(encoding, "SECRET")
    assert "SECRET" not in repr((caught.value.message, caught.value.fields))
    assert caught.value.__context__ is caught.value.__cause__ is None
