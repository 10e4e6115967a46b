"""The square wave mechanism (Li et al. 2020) on the keyed path: a report is a place near the number.

The range is cut by `bins` points, the first and the last of which are its ends. A number is rounded to one of its two
neighbours, and an offset below `window` is added. Both are drawn once and kept. The path blurs the resulting place.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from decimal import ROUND_HALF_EVEN, Context, Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np

from relaxdp.errors import EstimationError, MechanismError
from relaxdp.mechanisms.base import KeptRandomness, MeanWeights, TrueValues, check_option
from relaxdp.mechanisms.numeric import RangeMechanism, read_numbers, round_stochastically
from relaxdp.mechanisms.report_arrays import GIVE_REPORTS, Codes, get_code_dtype
from relaxdp.theory.epsilon import Epsilon, as_epsilon, compute_nonzero_threshold

if TYPE_CHECKING:
    from relaxdp.estimation.distribution import Distribution

BINS = 64
"""The default number of bins."""
MAX_PLACES = 1024


Goal = Literal["mean", "distribution"]
"""What the window is chosen for."""


def choose_window_width(epsilon: Epsilon, bins: int = BINS, goal: Goal = "mean") -> int:
    """Return the best window for one level, a power of two. It is fixed for the life of a path.

    For the mean it has the smallest error for numbers in the middle of the range. For the distribution it is the
    window of Li et al. (2020), which maximizes a bound on the mutual information of number and report: a part of the
    range, rounded to the nearest power of two.

    >>> [choose_window_width(epsilon) for epsilon in ("0.5", 1, 2, 3, 4, 5, 8)]
    [64, 32, 32, 16, 16, 8, 4]
    >>> [choose_window_width(epsilon, goal="distribution") for epsilon in ("0.5", 1, 2, 3, 4, 5, 8)]
    [32, 32, 16, 8, 4, 2, 1]
    """
    context = Context(prec=30, rounding=ROUND_HALF_EVEN)
    exact = min(as_epsilon(epsilon), Decimal(20))
    windows = [1 << power for power in range(MAX_PLACES.bit_length())]
    if goal == "distribution":
        exact = max(exact, Decimal("0.0001"))  # Below, the part is 1 - 2 epsilon / 3 and rounds to the same window.
        odds, loss = Fraction(context.exp(exact)), Fraction(exact)
        wanted = (bins - 1) * (loss * odds - odds + 1) / (odds * (odds - 1 - loss))
        return min(windows, key=lambda window: abs(window - wanted))
    odds = Fraction(context.exp(exact))

    def compute_error(window: int) -> Fraction:
        places = bins + window - 1
        retention = (odds - 1) / (odds - 1 + Fraction(places, window))
        return (retention * (window**2 - 1) + (1 - retention) * (places**2 - 1)) / retention**2

    return min(windows, key=compute_error)


class SquareWave(RangeMechanism):
    """The square wave (Li et al. 2020): numbers in a range, for estimating their mean and their whole distribution.

    A report is a place, 0 .. bins + window - 2. Without noise, a number in bin b has one of b .. b + window - 1.
    A true value is spread over `window` of all places, so the threshold depends on places / window, a fraction, where
    it depends on the number of values elsewhere. Rounding only mixes the distributions of two neighbouring bins, so
    no ratio grows by it.

    Claim: all transcripts are enumerated in tests/exact/mechanisms/test_square_wave.py.

    Args:
        low: The lower end of the range. The range is public.
        high: The upper end of the range.
        bins: The number of points to which numbers are rounded, from 2 to 1,024.
        window: The number of places over which a number is spread: a power of two. It is part of every path, so it is
            chosen once.
        epsilon: Instead of `window`: the last epsilon that is planned, for which the best window is taken.
        goal: With `epsilon`, what the window is best for: "mean" (the default) or "distribution". The window for the
            distribution is narrower, so earlier levels of the path estimate mean and distribution worse.
        clip: Whether numbers outside of the range are moved into it. Otherwise they are rejected.

    Raises:
        ValuesError: The range is not from a smaller to a larger finite number.
        MechanismError: Both or none of `window` and `epsilon` are given, `goal` is unknown or given without `epsilon`,
            or the window is not a power of two.

    Example:
        >>> from relaxdp import Key
        >>> ages = SquareWave(0, 120, epsilon=4)
        >>> ages
        SquareWave(0, 120, bins=64, window=16)
        >>> key = Key.from_bytes(bytes(range(32)))
        >>> path = ages.path(41, key=key, id="patient-17", name="survey-2026", column="age")
        >>> path.at(2), path.at(4)
        (29, 29)
    """

    name = "wave"

    if TYPE_CHECKING:

        def estimate(self, reports: Any, *, epsilon: Epsilon) -> Distribution: ...

    def __init__(
        self,
        low: float,
        high: float,
        *,
        bins: int = BINS,
        window: int | None = None,
        epsilon: Epsilon | None = None,
        goal: Goal | None = None,
        clip: bool = False,
    ) -> None:
        super().__init__(low, high, clip=clip)
        if (window is None) == (epsilon is None):
            raise MechanismError(
                "The square wave needs either `window` or `epsilon`, the largest epsilon that you plan; got {given}.",
                hint="Pass epsilon=, such as epsilon=2, or window=, such as window=32.",
                given="neither" if epsilon is None else "both",
            )
        if goal is not None and window is not None:
            raise MechanismError(
                "`goal` and `window` cannot be combined: a goal chooses the window.",
                hint="Leave one of them out. A goal needs epsilon=, such as epsilon=2 (--planned-epsilon 2).",
            )
        if goal is not None and goal not in get_args(Goal):
            raise MechanismError(
                "Unknown goal {goal!r}: expected 'mean' or 'distribution'.",
                hint="Pass goal='distribution' (wave:goal=distribution), or leave the goal out for the mean.",
                goal=goal,
            )
        check_option("bins", bins, 2, MAX_PLACES)
        if epsilon is not None:
            window = choose_window_width(epsilon, bins, goal or "mean")
        assert window is not None  # noqa: S101 (checked above)
        check_option("window", window, 1, MAX_PLACES)
        if window & (window - 1):
            raise MechanismError(
                "`window` must be a power of two, not {window}, so that its random numbers are exactly uniform.",
                hint="Pass window=4, 8, 16 or 32.",
                window=window,
            )
        self.bins, self.window, self.alphabet = bins, window, bins + window - 1

    @property
    def params(self) -> bytes:
        """The range, whether numbers are clipped, the bins and the window."""
        return super().params + struct.pack("<II", self.bins, self.window)

    def threshold(self, epsilon: Decimal) -> int:
        return compute_nonzero_threshold(epsilon, Fraction(self.alphabet, self.window))

    def compute_true_symbols(self, true_values: TrueValues, randomness: KeptRandomness) -> Codes:
        """Return the kept bin, moved by the kept offset."""
        words, numbers = randomness.draw_words("round"), self.get_numbers(true_values)
        rounded = round_stochastically(words, numbers, self.low, self.high, self.bins)
        places = rounded + (randomness.draw_words("coin") & np.uint64(self.window - 1))
        return places.astype(get_code_dtype(self.alphabet))[:, None]

    @property
    def labels(self) -> Sequence[int]:
        return range(self.alphabet)

    @property
    def mean_weights(self) -> MeanWeights:
        """A place counts for the number in the middle of those that reach it; some lie outside of the range."""
        step, middle = (self.high - self.low) / (self.bins - 1), (self.window - 1) / 2
        weights = tuple(self.low + step * (place - middle) for place in self.labels)
        return MeanWeights(weights, self.low, self.high, window=self.window)

    def read_label_column(self, column: Any) -> Codes:
        places = read_numbers(column)
        if not np.all((places >= 0) & (places < self.alphabet) & (places == np.floor(places))):
            raise EstimationError(
                "A report is not a whole number from 0 to {last:,}.",
                hint=GIVE_REPORTS,
                alphabet=self.alphabet,
                last=self.alphabet - 1,
            )
        return places.astype(get_code_dtype(self.alphabet))[:, None]

    def __repr__(self) -> str:
        return f"SquareWave({self._format_repr_range()}, bins={self.bins}, window={self.window})"
