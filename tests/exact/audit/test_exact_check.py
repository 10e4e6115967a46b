"""The exact check of a small encoding: it passes what keeps its promise, and rejects what breaks it."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from tests.refusals import refused

from relaxdp.audit.exact_check import check_exactly
from relaxdp.errors import MechanismError
from relaxdp.mechanisms.base import KeptRandomness, MeanWeights, TrueValues
from relaxdp.mechanisms.bloom import Bloom, BloomShape
from relaxdp.mechanisms.categorical import Categorical, Unary
from relaxdp.mechanisms.declared_values import DeclaredMechanism
from relaxdp.mechanisms.local_hash import LocalHash
from relaxdp.mechanisms.numeric import Numeric
from relaxdp.mechanisms.report_arrays import Codes
from relaxdp.mechanisms.square_wave import SquareWave
from relaxdp.sampling.keyed_stream import Words
from relaxdp.theory.epsilon import compute_nonzero_threshold
from relaxdp.theory.randomized_response import SupportProbabilities

LETTERS = ["a", "b", "c"]
NUMBERS = [0.0, 1.0, 3.0, 4.0, 6.0, 8.0]


@pytest.mark.parametrize(
    ("encoding", "truths"),
    [
        (Categorical(LETTERS), LETTERS),
        (Unary(LETTERS, optimised=False), LETTERS),
        (Unary(LETTERS), LETTERS),
        (LocalHash(LETTERS, buckets=3), LETTERS),
        (Numeric(0, 8), NUMBERS),
        (Numeric(0, 8, missing=True), [*NUMBERS, float("nan"), None]),
        (Numeric(0, 8, clip=True), [-5.0, *NUMBERS, 1e9]),
        (Numeric(0, 8, clip=True, missing=True), [-5.0, *NUMBERS, 1e9, None]),
        (Bloom(BloomShape(4, 1, 2), 1), ["false", "true", "w"]),
        (SquareWave(0, 8, bins=3, window=2), NUMBERS),
        (SquareWave(0, 8, bins=3, window=4), NUMBERS),
    ],
    ids=lambda each: getattr(each, "name", ""),
)
def test_what_keeps_its_promise_passes(encoding: Any, truths: list[Any]) -> None:
    """And uses the whole of it: the largest ratio is e^epsilon, up to what the threshold is rounded by."""
    epsilons = ("0.5", "3") if encoding.symbols > 3 else ("0.5", "1", "3")
    found = check_exactly(encoding, truths, epsilons=epsilons)
    assert Decimal("2.9999999") < found.privacy_loss <= found.epsilon == 3


class WholeAlphabet(SquareWave):
    """D in the place of D / w: more private than it says, so it is no breach, and wasteful."""

    def threshold(self, epsilon: Decimal) -> int:
        return compute_nonzero_threshold(epsilon, self.alphabet)


def test_what_wastes_epsilon_is_seen() -> None:
    found = check_exactly(WholeAlphabet(0, 8, bins=3, window=4), NUMBERS)
    assert found.privacy_loss < Decimal("2.2")


class Greedy(Categorical):
    """A threshold of one value less."""

    def threshold(self, epsilon: Decimal) -> int:
        return compute_nonzero_threshold(epsilon, self.alphabet - 1)


class WholeBits(Unary):
    """The whole epsilon for each of two bits."""

    def __init__(self, values: list[str]) -> None:
        super().__init__(values, optimised=False)

    def threshold(self, epsilon: Decimal) -> int:
        return compute_nonzero_threshold(epsilon, 2)


class WithoutOffset(SquareWave):
    """A window that nobody uses: each truth has one place."""

    def compute_true_symbols(self, true_values: TrueValues, randomness: KeptRandomness) -> Codes:
        class Still:
            def draw_words(self, purpose: Any, symbol: Any = 0) -> Words:
                found = randomness.draw_words(purpose, symbol)
                return found * np.uint64(0) if purpose == "coin" else found

        return super().compute_true_symbols(true_values, Still())


class WiderThanItIs(SquareWave):
    """The window off by one, in the threshold."""

    def threshold(self, epsilon: Decimal) -> int:
        return compute_nonzero_threshold(epsilon, Fraction(self.alphabet, self.window + 1))


class OddWindow(SquareWave):
    """A window of three out of two bits: one offset is twice as likely."""

    def compute_true_symbols(self, true_values: TrueValues, randomness: KeptRandomness) -> Codes:
        class Three:
            def draw_words(self, purpose: Any, symbol: Any = 0) -> Words:
                found = randomness.draw_words(purpose, symbol)
                return found % np.uint64(4) % np.uint64(3) if purpose == "coin" else found

        return super().compute_true_symbols(true_values, Three())


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
    with refused(MechanismError, mechanism=encoding.name, epsilon="0.5", says="reveals more than it claims"):
        check_exactly(encoding, truths)


class Biased(Numeric):
    """Ends that count for something else."""

    @property
    def mean_weights(self) -> MeanWeights:
        return MeanWeights((self.low, self.high + 1), self.low, self.high)


class Boasting(Categorical):
    """A support that is not so."""

    def compute_noise_and_gain(self, retention: Fraction) -> SupportProbabilities:
        return SupportProbabilities.from_one_symbol(retention, self.alphabet + 1)


class Shrinking(Categorical):
    """A threshold that does not grow."""

    def threshold(self, epsilon: Decimal) -> int:
        return 5


class Secretive(Numeric):
    """A rounding that looks at bits which are not enumerated."""

    def compute_true_symbols(self, true_values: TrueValues, randomness: KeptRandomness) -> Codes:
        return (randomness.draw_words("round") >> np.uint64(30) & np.uint64(1)).astype(np.uint8)[:, None]


class SecretiveHash(LocalHash):
    """The same beside a public seed, of which any bit may be looked at."""

    def compute_true_symbols(self, true_values: TrueValues, randomness: KeptRandomness) -> Codes:
        moved = randomness.draw_words("coin") >> np.uint64(30) & np.uint64(1)
        return (
            (super().compute_true_symbols(true_values, randomness)[:, 0] + moved) % np.uint64(self.alphabet)
        ).astype(np.uint8)[:, None]


class Chained(Categorical):
    """A second word is asked for only where the first one says so: it would not be enumerated."""

    def compute_true_symbols(self, true_values: TrueValues, randomness: KeptRandomness) -> Codes:
        moved = randomness.draw_words("coin") & np.uint64(1)
        if moved.any():
            moved = moved & randomness.draw_words("round")
        return ((true_values.index + moved) % np.uint64(3)).astype(np.uint8)[:, None]


@pytest.mark.parametrize(
    ("encoding", "says"),
    [
        (Biased(0, 8), "would be biased"),
        (Boasting(LETTERS), "would be biased"),
        (Shrinking(LETTERS), "does not grow with epsilon"),
        (Secretive(0, 8), "depend on more than the first and last"),
        (SecretiveHash(LETTERS, buckets=3), "depend on more than the first and last"),
        (Chained(LETTERS), "random numbers it draws decide what it draws next"),
        (Categorical(range(100)), "The exact check covers at most"),
    ],
    ids=lambda each: type(each).__name__ if not isinstance(each, str) else "",
)
def test_what_would_mislead_is_refused(encoding: Any, says: str) -> None:
    with refused(MechanismError, says=says):
        check_exactly(encoding, LETTERS if isinstance(encoding, DeclaredMechanism) else NUMBERS)
