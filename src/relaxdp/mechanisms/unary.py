"""Unary encoding: one bit for each declared value. Optimised (OUE), or symmetric (SUE, basic RAPPOR)."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from decimal import Decimal
from fractions import Fraction

import numpy as np

from relaxdp.mechanisms.base import Joint, PermanentWords, TrueValues
from relaxdp.mechanisms.declared import DeclaredMechanism
from relaxdp.mechanisms.report_arrays import Codes
from relaxdp.theory.epsilon import compute_nonzero_threshold, compute_split_threshold
from relaxdp.theory.randomized_response import SupportProbabilities


class Unary(DeclaredMechanism):
    """Report one bit for each declared value (OUE or SUE): the error does not grow with the number of values.

    Optimised (OUE): the bit of the true value is first ANDed with a fair coin that is kept, and every bit is blurred at
    epsilon. With the coin, a one is reported as a one half of the time, whatever the noise. So it reveals nothing that
    the zeros do not reveal: the odds of a whole report are those of a single bit.

    Symmetric (SUE): every bit is a randomized response at epsilon / 2, because two true values differ in two bits.

    Claim: epsilon is reached and not exceeded at every level and by all of them together;
    tests/exact/mechanisms/test_mechanisms.py.

    Args:
        values: The declared values, as in `Categorical`.
        optimised: Whether to use OUE. False is SUE, the basic RAPPOR.

    Raises:
        ValuesError: The values are too few, repeated, or of different kinds.

    Example:
        >>> from relaxdp import Key
        >>> answers = Unary(["flu", "covid", "none"])
        >>> key = Key.from_bytes(bytes(range(32)))
        >>> path = answers.path("covid", key=key, id="patient-19", name="survey-2026", column="diagnosis")
        >>> [path.at(epsilon).hex() for epsilon in (0.1, 1, 20)]
        ['05', '03', '02']
    """

    alphabet = 2
    joint: Joint = "independent"

    def __init__(self, values: Sequence[Hashable], *, optimised: bool = True) -> None:
        super().__init__(values)
        self.symbols = len(self.values)
        self.optimised = optimised
        self.name = "unary-optimised" if optimised else "unary-symmetric"

    def threshold(self, epsilon: Decimal) -> int:
        return compute_nonzero_threshold(epsilon, 2) if self.optimised else compute_split_threshold(epsilon, 2, parts=2)

    def compute_true_symbols(self, true_values: TrueValues, randomness: PermanentWords) -> Codes:
        bits = np.zeros((len(true_values), self.symbols), dtype=np.uint8)
        own = randomness.draw_words("coin", true_values.index) & np.uint64(1) if self.optimised else 1
        bits[np.arange(len(true_values)), true_values.index.astype(np.intp)] = own
        return bits

    def compute_support_probabilities(self, retention: Fraction) -> SupportProbabilities:
        if not self.optimised:
            return SupportProbabilities.from_one_symbol(retention, 2)
        return SupportProbabilities(noise=(1 - retention) / 2, gain=retention / 2)  # 1/2 for the bit of the true value

    def _format_repr_options(self) -> str:
        return "" if self.optimised else ", optimised=False"
