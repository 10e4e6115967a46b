"""An encoding that a program registers: two bits per value and a kept coin, with nothing else touched."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.refusals import refused

import relaxdp as rx
from relaxdp.draw.stream import PathId, Words
from relaxdp.encodings import registry
from relaxdp.encodings.declared import CategoricalEncoding
from relaxdp.encodings.numeric import NumericEncoding
from relaxdp.encodings.path import ReportPath
from relaxdp.encodings.protocol import Codes, Encoding, Permanent, Truths
from relaxdp.encodings.registry import encoding_named, register
from relaxdp.encodings.release import release_codes
from relaxdp.encodings.unary import OptimisedUnaryEncoding
from relaxdp.errors import EncodingError, UndeclaredValueError
from relaxdp.law.epsilon import release_threshold
from relaxdp.law.support import Support
from relaxdp.mechanisms import Mechanism
from relaxdp.rappor.encoding import BloomEncoding
from relaxdp.rappor.filter import BloomShape


class Bits(Encoding):
    """Symmetric unary over three letters, whose last bit is a kept coin (to exercise kept randomness)."""

    name = "test-bits"
    alphabet = 2
    symbols = 4
    params = b"three letters"
    _letters = "xyz"

    def threshold(self, epsilon: Decimal) -> int:
        return release_threshold(epsilon / 2, 2)

    def truths(self, column: Any, first_row: int = 0) -> Truths:
        return Truths(np.array([self._letters.index(item) for item in column], dtype=np.uint64))

    def symbol_truth(self, truths: Truths, symbol: int, permanent: Permanent) -> Words:
        if symbol == 3:
            return np.asarray(permanent.words("coin", truths.index) & np.uint64(1), dtype=np.uint64)
        return np.asarray(truths.index == symbol, dtype=np.uint64)

    def reports(self, codes: Codes, seeds: Words | None = None) -> Sequence[Any]:
        return ["".join(map(str, row)) for row in codes.tolist()]

    def supports(self, codes: Codes, seeds: Words | None = None) -> NDArray[np.bool_]:
        return np.asarray(codes[:, :3] == 1)

    labels = tuple("xyz")

    def codes(self, column: Any) -> Codes:
        return np.array([[int(bit) for bit in report] for report in column], np.uint8)

    def support(self, keep: Fraction) -> Support:
        return Support(noise=(1 - keep) / 2, gain=keep)


@pytest.fixture
def bits(monkeypatch: pytest.MonkeyPatch) -> Bits:
    monkeypatch.setattr(registry, "_members", dict(registry._members))
    register(Bits)
    return Bits()


def test_path_arrays_and_algorithm_1(bits: Bits) -> None:
    key = rx.Key.from_bytes(bytes(32))
    where: Any = {"path": PathId("r", "a")}
    truth = ["xyz"[row % 3] for row in range(500)]
    ids = [f"id {row * 7919}" * (1 + row % 3) for row in range(500)]
    codes = release_codes(bits, truth, ids, key=key, level=bits.level(Decimal(2)), **where)
    for row in range(500):
        path = ReportPath(bits, truth[row], key=key, object_id=ids[row], **where)
        assert path.codes_at(bits.level(Decimal(2))) == codes[row].tolist()
        assert ReportPath(bits, truth[row], key=key, object_id=ids[row], **where).at(50)[:3] == "".join(
            "1" if letter == truth[row] else "0" for letter in "xyz"
        )
    coins = release_codes(bits, truth, ids, key=key, level=bits.level(Decimal(80)), **where)[:, 3]
    assert 150 < coins.sum() < 350
    chain = rx.Relaxation(Mechanism(bits), "y")
    assert chain.relax(epsilon=100)[:3] == "010"


def test_shares(bits: Bits) -> None:
    truth = ["x"] * 60_000 + ["y"] * 40_000
    codes = release_codes(
        bits, truth, np.arange(100_000), key=rx.Key.from_bytes(bytes(32)), level=bits.level(3), path=PathId("", "")
    )
    support = bits.support(bits.level(3).retention)
    shares = support.debias(bits.count(codes) / 100_000)
    assert np.abs(shares - [0.6, 0.4, 0.0]).max() < 0.02


def test_registry(bits: Bits) -> None:
    assert encoding_named("test-bits") is Bits
    assert encoding_named("categorical").name == "categorical"
    with refused(EncodingError, name="nope", says="no encoding named") as caught:
        encoding_named("nope")
    assert "categorical" in caught.value.fields["known"]

    class Impostor(Bits):
        pass

    with refused(EncodingError, name="test-bits", says="there is an encoding named"):
        register(Impostor)


@pytest.mark.parametrize(
    "encoding",
    [
        CategoricalEncoding(["yes", "no"]), OptimisedUnaryEncoding(["yes", "no"]), NumericEncoding(0, 10),
        BloomEncoding(BloomShape(1, 1, 1)),
    ],
    ids=lambda each: each.name,
)  # fmt: skip
@pytest.mark.parametrize("door", ["answer", "answer_in"])
def test_a_refused_answer_is_nowhere_in_the_refusal(encoding: Encoding, door: str) -> None:
    """Neither in its words and fields, nor in what it was raised in the midst of."""
    with pytest.raises(UndeclaredValueError) as caught:
        getattr(encoding, door)("SECRET")
    assert "SECRET" not in repr((caught.value.message, caught.value.fields))
    assert caught.value.__context__ is caught.value.__cause__ is None
