"""A mechanism from outside of the package: Hadamard response, one hidden bit and a public row for each individual.

Run it: python examples/hadamard.py

Values are the columns of a Hadamard matrix, whose rows are as many (a power of two). An object's row is public and
drawn from the object alone; its symbol is the entry of its row in its truth's column, a bit. Two columns agree in
exactly one half of all rows, so a report supports every other value one half of the time.

This class is all there is to it. Keyed paths, Algorithm 1, blurring, bridges, estimates and intervals come with it.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from decimal import Decimal
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

import relaxdp as rx
from relaxdp.mechanisms.base import Joint, KeptRandomness, TrueValues
from relaxdp.mechanisms.declared_values import DeclaredMechanism
from relaxdp.mechanisms.registry import MechanismKind, register_mechanism
from relaxdp.mechanisms.report_arrays import Codes
from relaxdp.sampling.keyed_stream import Words
from relaxdp.theory.epsilon import compute_nonzero_threshold
from relaxdp.theory.randomized_response import SupportProbabilities


class Hadamard(DeclaredMechanism):
    """Hadamard response: a report is a public row and one hidden bit."""

    name = "hadamard"
    alphabet = 2
    symbols = 1
    seeded = True
    # Three columns of a Hadamard matrix are independent, two by two.
    joint: Joint = "independent"

    def __init__(self, values: Sequence[Hashable]) -> None:
        """Declare the values: each is a column."""
        super().__init__(values)
        self.rows = 1 << (len(self.values) - 1).bit_length()

    def threshold(self, epsilon: Decimal) -> int:
        """Return the threshold of the bit: given the row, it is all that a report tells."""
        return compute_nonzero_threshold(epsilon, 2)

    def compute_true_symbols(self, truths: TrueValues, randomness: KeptRandomness) -> Codes:
        """Return the matrix's entry: the parity of the bits that row and column have in common."""
        rows = randomness.draw_words("seed") & np.uint64(self.rows - 1)
        return parity(rows & truths.index).astype(np.uint8)[:, None]

    def find_supported_labels(self, codes: Codes, seeds: Words | None = None) -> NDArray[np.bool_]:
        """Return which columns have the reported bit in the reported row."""
        assert seeds is not None  # the row of a report is its seed's lowest bits
        rows, columns = seeds & np.uint64(self.rows - 1), np.arange(len(self.values), dtype=np.uint64)
        return np.asarray(parity(rows[:, None] & columns) == codes[:, :1])

    def compute_noise_and_gain(self, retention: Fraction) -> SupportProbabilities:
        """Return the chances over all rows: one half for another value."""
        return SupportProbabilities(noise=Fraction(1, 2), gain=retention / 2)


register_mechanism(MechanismKind("hadamard", "values", Hadamard))  # released files find it by its name


def parity(numbers: Words) -> Words:
    """Return whether an odd number of bits is set."""
    for shift in (32, 16, 8, 4, 2, 1):
        numbers = numbers ^ numbers >> np.uint64(shift)
    return numbers & np.uint64(1)


def main() -> None:
    """Release 100,000 answers out of 1,000 at two levels, and estimate their shares."""
    towns = [f"town {number}" for number in range(1000)]
    answers = Hadamard(towns)
    truth = np.random.default_rng(1).choice(towns, 100_000, p=np.r_[[0.4, 0.2], np.full(998, 0.4 / 998)])
    key = rx.Key.from_bytes(bytes(32))  # an example; yours comes from rx.Key.generate()
    for epsilon in (0.5, 2):
        reports = answers.release(truth, np.arange(100_000), key=key, epsilon=epsilon, name="survey", column="town")
        estimate = answers.estimate(reports, epsilon=epsilon)
        low, high = estimate.interval()
        print(f"epsilon {epsilon}: {reports.shape[1]} bytes a report")
        for place in (0, 1, 2):
            print(f"  {towns[place]}  {estimate.value[place]:7.4f}  [{low[place]:.4f}, {high[place]:.4f}]")
    answer = rx.Relaxation(answers, "town 7")
    print(f"Algorithm 1: {answer.relax(0.5).hex()}, then {answer.relax(2).hex()}: the row stays.")


if __name__ == "__main__":
    main()
