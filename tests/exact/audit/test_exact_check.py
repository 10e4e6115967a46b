"""The exact check of a small encoding: it passes what keeps its promise, and rejects what breaks it."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from tests.refusals import refused

from relaxdp.audit.exact_check import check_encoding
from relaxdp.draw.stream import Words
from relaxdp.encodings.declared import CategoricalEncoding
from relaxdp.encodings.local_hash import LocalHashEncoding
from relaxdp.encodings.numeric import MissingNumericEncoding, NumericEncoding
from relaxdp.encodings.protocol import Measure, Permanent, Truths
from relaxdp.encodings.unary import OptimisedUnaryEncoding, SymmetricUnaryEncoding
from relaxdp.encodings.wave import WaveEncoding
from relaxdp.errors import EncodingError
from relaxdp.law.epsilon import release_threshold
from relaxdp.law.support import Support
from relaxdp.rappor.encoding import BloomEncoding
from relaxdp.rappor.filter import BloomShape

LETTERS = ["a", "b", "c"]
NUMBERS = [0.0, 1.0, 3.0, 4.0, 6.0, 8.0]


@pytest.mark.parametrize(
    ("encoding", "truths"),
    [
        (CategoricalEncoding(LETTERS), LETTERS),
        (SymmetricUnaryEncoding(LETTERS), LETTERS),
        (OptimisedUnaryEncoding(LETTERS), LETTERS),
        (LocalHashEncoding(LETTERS, 3), LETTERS),
        (NumericEncoding(0, 8), NUMBERS),
        (MissingNumericEncoding(0, 8), [*NUMBERS, float("nan"), None]),
        (NumericEncoding(0, 8).clipping(), [-5.0, *NUMBERS, 1e9]),
        (MissingNumericEncoding(0, 8).clipping(), [-5.0, *NUMBERS, 1e9, None]),
        (BloomEncoding(BloomShape(4, 1, 2), 1), ["false", "true", "w"]),
        (WaveEncoding(0, 8, bins=3, window=2), NUMBERS),
        (WaveEncoding(0, 8, bins=3, window=4), NUMBERS),
    ],
    ids=lambda each: getattr(each, "name", ""),
)
def test_what_keeps_its_promise_passes(encoding: Any, truths: list[Any]) -> None:
    """And uses the whole of it: the largest ratio is e^epsilon, up to what the threshold is rounded by."""
    epsilons = ("0.5", "3") if encoding.symbols > 3 else ("0.5", "1", "3")
    found = check_encoding(encoding, truths, epsilons=epsilons)
    assert Decimal("2.9999999") < found.realised <= found.epsilon == 3


class WholeAlphabet(WaveEncoding):
    """D in the place of D / w: more private than it says, so it is no breach, and wasteful."""

    def threshold(self, epsilon: Decimal) -> int:
        return release_threshold(epsilon, self.alphabet)


def test_what_wastes_epsilon_is_seen() -> None:
    found = check_encoding(WholeAlphabet(0, 8, bins=3, window=4), NUMBERS)
    assert found.realised < Decimal("2.2")


class Greedy(CategoricalEncoding):
    """A threshold of one value less."""

    def threshold(self, epsilon: Decimal) -> int:
        return release_threshold(epsilon, self.alphabet - 1)


class WholeBits(SymmetricUnaryEncoding):
    """The whole epsilon for each of two bits."""

    def threshold(self, epsilon: Decimal) -> int:
        return release_threshold(epsilon, 2)


class WithoutOffset(WaveEncoding):
    """A window that nobody uses: each truth has one place."""

    def symbol_truth(self, truths: Truths, symbol: int, permanent: Permanent) -> Words:
        class Still:
            def words(self, purpose: Any, symbol: Any = 0) -> Words:
                found = permanent.words(purpose, symbol)
                return found * np.uint64(0) if purpose == "coin" else found

        return super().symbol_truth(truths, symbol, Still())


class WiderThanItIs(WaveEncoding):
    """The window off by one, in the threshold."""

    def threshold(self, epsilon: Decimal) -> int:
        return release_threshold(epsilon, Fraction(self.alphabet, self.window + 1))


class OddWindow(WaveEncoding):
    """A window of three out of two bits: one offset is twice as likely."""

    def symbol_truth(self, truths: Truths, symbol: int, permanent: Permanent) -> Words:
        class Three:
            def words(self, purpose: Any, symbol: Any = 0) -> Words:
                found = permanent.words(purpose, symbol)
                return found % np.uint64(4) % np.uint64(3) if purpose == "coin" else found

        return super().symbol_truth(truths, symbol, Three())


@pytest.mark.parametrize(
    ("encoding", "truths"),
    [
        (Greedy(LETTERS), LETTERS),
        (WholeBits(LETTERS), LETTERS),
        (WithoutOffset(0, 8, bins=3, window=2), NUMBERS),
        (WiderThanItIs(0, 8, bins=3, window=2), NUMBERS),
        (OddWindow(0, 8, bins=3, window=4), NUMBERS),
    ],
    ids=lambda each: type(each).__name__,
)
def test_what_breaks_its_promise_is_refused(encoding: Any, truths: list[Any]) -> None:
    with refused(EncodingError, encoding=encoding.name, epsilon="0.5", says="tells more than it says"):
        check_encoding(encoding, truths)


class Biased(NumericEncoding):
    """Ends that count for something else."""

    @property
    def measure(self) -> Measure:
        return Measure((self.low, self.high + 1), self.low, self.high)


class Boasting(CategoricalEncoding):
    """A support that is not so."""

    def support(self, keep: Fraction) -> Support:
        return Support.of_one_symbol(keep, self.alphabet + 1)


class Shrinking(CategoricalEncoding):
    """A threshold that does not grow."""

    def threshold(self, epsilon: Decimal) -> int:
        return 5


class Secretive(NumericEncoding):
    """A rounding that looks at bits which are not enumerated."""

    def symbol_truth(self, truths: Truths, symbol: int, permanent: Permanent) -> Words:
        return permanent.words("round") >> np.uint64(30) & np.uint64(1)


class SecretiveHash(LocalHashEncoding):
    """The same beside a public seed, of which any bit may be looked at."""

    def symbol_truth(self, truths: Truths, symbol: int, permanent: Permanent) -> Words:
        moved = permanent.words("coin") >> np.uint64(30) & np.uint64(1)
        return (super().symbol_truth(truths, symbol, permanent) + moved) % np.uint64(self.alphabet)


class Chained(CategoricalEncoding):
    """A second word is asked for only where the first one says so: it would not be enumerated."""

    def symbol_truth(self, truths: Truths, symbol: int, permanent: Permanent) -> Words:
        moved = permanent.words("coin") & np.uint64(1)
        if moved.any():
            moved = moved & permanent.words("round")
        return (truths.index + moved) % np.uint64(3)


@pytest.mark.parametrize(
    ("encoding", "says"),
    [
        (Biased(0, 8), "biased"),
        (Boasting(LETTERS), "more or less often"),
        (Shrinking(LETTERS), "larger threshold"),
        (Secretive(0, 8), "more bits"),
        (SecretiveHash(LETTERS, 3), "more bits"),
        (Chained(LETTERS), "depends on another word"),
        (CategoricalEncoding(range(100)), "too many"),
    ],
    ids=lambda each: type(each).__name__ if not isinstance(each, str) else "",
)
def test_what_would_mislead_is_refused(encoding: Any, says: str) -> None:
    with refused(EncodingError, says=says):
        check_encoding(encoding, LETTERS if encoding.domain == "values" else NUMBERS)
