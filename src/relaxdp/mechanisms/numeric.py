"""Numbers in a range: what such mechanisms share, and stochastic rounding to an end of the range for the mean."""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from relaxdp.errors import ColumnError, EstimationError, UndeclaredValueError, ValuesError
from relaxdp.mechanisms.base import Joint, KeptRandomness, MeanWeights, Mechanism, TrueValues
from relaxdp.mechanisms.report_arrays import GIVE_REPORTS, Codes
from relaxdp.sampling.arrow_columns import decode_dictionary, to_arrow, to_numpy
from relaxdp.sampling.keyed_stream import NUMBER, Words
from relaxdp.sampling.keys import add_length_prefix
from relaxdp.theory.epsilon import ONE

_GIVE_RANGE = "Pass two numbers, such as rx.Numeric(0, 120)."

Floats = NDArray[np.float64]

# A float's rounding cannot bridge this distance between a word and the boundary that it is compared with: a number's
# place among at most 1,024 bins is off by less than 2^-40.
_CLEAR = 2.0**-36
_MIN_WIDTH = 1e-290
_MAX_EXACT = 2**53
MISSING = "missing"
"""The report of a number that is missing."""


class RangeMechanism(Mechanism):
    """A mechanism for numbers from `low` to `high`. The range is public. With `clip` numbers are moved into it."""

    joint: Joint = "exclusive"
    missing = False
    """Whether a number may be missing, which then has a report of its own."""

    def __init__(self, low: float, high: float, *, clip: bool = False) -> None:
        self.low, self.high, self.clip = _require_finite(low), _require_finite(high), clip
        if not _MIN_WIDTH < self.high - self.low < math.inf:
            raise ValuesError(
                "The range {low} .. {high} is empty or too wide. It must go from a smaller to a larger number.",
                hint="Pass the smallest and the largest number that can occur, such as rx.Numeric(0, 120).",
                low=low,
                high=high,
            )

    @property
    def params(self) -> bytes:
        """The range, and the stream's name for clipping or for leaving numbers as they are."""
        name = b"clip" if self.clip else b"identity"
        return struct.pack("<dd", self.low, self.high) + add_length_prefix(name)

    def read_true_values(self, column: Any, first_row: int = 0) -> TrueValues:
        numbers = read_numbers(column)
        if self.missing:  # whatever is missing has the same bytes
            numbers = np.where(np.isnan(numbers), np.nan, numbers)
        if self.clip:  # here and not when it is rounded: the true value is what lies in the range
            numbers = np.clip(numbers, self.low, self.high)
        self._check_range(numbers, first_row)
        suffix = np.empty((1, len(numbers), 2), dtype=np.uint64)
        suffix[0, :, 0] = NUMBER | 8 << 32
        suffix[0, :, 1] = numbers.view(np.uint64)
        return TrueValues(np.zeros(len(numbers), dtype=np.uint64), suffix)

    def get_numbers(self, true_values: TrueValues) -> Floats:
        """Return the numbers in true values."""
        assert true_values.suffix is not None  # noqa: S101 (made by `read_true_values`)
        numbers = np.ascontiguousarray(true_values.suffix[0, :, 1]).view(np.float64)
        self._check_range(numbers, 0)
        return numbers

    def _check_range(self, numbers: Floats, first_row: int) -> None:
        """Reject a number outside of the range before anything is drawn."""
        outside = ~((numbers >= self.low) & (numbers <= self.high))  # NaN is outside
        if self.missing:
            outside &= ~np.isnan(numbers)
        if outside.any():
            place = int(np.argmax(outside))
            row = first_row + place + 1
            if np.isnan(numbers[place]):
                raise UndeclaredValueError(
                    "The number is missing.",
                    hint="Use rx.Numeric(0, 120, missing=True) (--missing NAME). It protects missing numbers too.",
                    row=row,
                    missing=True,
                )
            raise UndeclaredValueError(
                "The number is outside of the range {low:g} .. {high:g}.",
                hint="Widen the range, or move numbers into it with rx.Numeric(0, 120, clip=True) (--clip NAME).",
                low=self.low,
                high=self.high,
                row=row,
            )

    def _format_repr_range(self) -> str:
        return f"{self.low:g}, {self.high:g}{', clip=True' if self.clip else ''}"


class Numeric(RangeMechanism):
    """Numbers in a range, for estimating their mean: stochastic rounding to an end, then randomized response.

    A number x is rounded to `high` with probability (x - low) / (high - low), else to `low`. The rounding is kept: it
    is a keyed function of individual and number on the path, and stored by Algorithm 1. To estimate the mean of a
    function of the numbers, such as their squares, compute it in a column and release that column.

    Args:
        low: The lower end of the range. The range is public.
        high: The upper end of the range.
        clip: Whether numbers outside of the range are moved into it. Otherwise they are rejected.
        missing: Whether a number may be missing. Each individual still sends a report, and both the share of missing
            numbers and the mean of the others are estimated, for one epsilon.

    Raises:
        ValuesError: The range is not from a smaller to a larger finite number.

    Example:
        >>> from relaxdp import Key
        >>> ages = Numeric(0, 120)
        >>> key = Key.from_bytes(bytes(range(32)))
        >>> ages.path(41, key=key, id="patient-17", name="survey-2026", column="age").at(1)
        0.0
    """

    def __init__(self, low: float, high: float, *, clip: bool = False, missing: bool = False) -> None:
        super().__init__(low, high, clip=clip)
        self.missing = missing
        self.name = "numeric-missing" if missing else "numeric"
        self.alphabet = 3 if missing else 2

    @property
    def labels(self) -> Sequence[Any]:
        """The two ends; as text where a number may be missing, because a number would be taken for a number."""
        if self.missing:
            return (MISSING, _format_number(self.low), _format_number(self.high))
        return (self.low, self.high)

    @property
    def mean_weights(self) -> MeanWeights:
        if self.missing:
            return MeanWeights((0.0, self.low, self.high), self.low, self.high, absent=0)
        return MeanWeights((self.low, self.high), self.low, self.high)

    def compute_true_symbols(self, true_values: TrueValues, randomness: KeptRandomness) -> Codes:
        words, numbers = randomness.draw_words("round"), self.get_numbers(true_values)
        is_missing = np.isnan(numbers)
        present = np.where(is_missing, self.low, numbers)
        rounded = round_stochastically(words, present, self.low, self.high, bins=2).astype(np.uint8)
        return (np.where(is_missing, 0, 1 + rounded).astype(np.uint8) if self.missing else rounded)[:, None]

    def read_label_column(self, column: Any) -> Codes:
        if self.missing:
            codes = _find_label_positions(to_arrow(column), self.labels)
            if codes is None:
                raise EstimationError(
                    "A report is not one of {labels}.", hint=GIVE_REPORTS, labels=", ".join(self.labels)
                )
            return codes
        numbers = read_numbers(column)
        upper = numbers == self.high
        if not np.all(upper | (numbers == self.low)):
            raise EstimationError(
                "A report is neither {low:g} nor {high:g}. Every report of this mechanism is an end of the range.",
                hint=GIVE_REPORTS,
                low=self.low,
                high=self.high,
            )
        return np.asarray(upper, dtype=np.uint8)[:, None]

    def __repr__(self) -> str:
        return f"Numeric({self._format_repr_range()}{', missing=True' if self.missing else ''})"


def _find_label_positions(column: pa.Array, labels: Sequence[str]) -> Codes | None:
    """Return the position of each text among some labels; None where one is not among them."""
    try:
        found = pc.index_in(decode_dictionary(column).cast(pa.string()), pa.array(labels))
    except pa.ArrowException:
        return None
    return None if found.null_count else np.asarray(found.to_numpy(zero_copy_only=False), dtype=np.uint8)[:, None]


def _format_number(number: float) -> str:
    """Return a number as people write it, exactly."""
    return f"{number:.0f}" if number.is_integer() and abs(number) < _MAX_EXACT else repr(number)


def round_stochastically(words: Words, numbers: Floats, low: float, high: float, bins: int) -> Words:
    """Round each number at random to floor(t), or one more where word < floor(2^64 (t - floor(t))), exactly.

    t = (bins - 1) (number - low) / (high - low) is a number's position among the bins. Floats decide where word and
    boundary are clearly apart. The few others (one in 2^35) are compared as fractions.

    Claim: exact; tests/exact/mechanisms/test_rounding.py.
    """
    # As a whole it is the ceiling of t - word / 2^64, which is unclear near whole numbers only.
    moved = (numbers - low) / (high - low) * (bins - 1) - words.astype(np.float64) / float(ONE)
    result = np.ceil(moved)
    for row in np.flatnonzero(np.abs(moved - np.rint(moved)) < _CLEAR):
        exact = (bins - 1) * (Fraction(float(numbers[row])) - Fraction(low)) / (Fraction(high) - Fraction(low))
        whole = exact // 1
        result[row] = whole + (int(words[row]) < (exact - whole) * ONE // 1)
    return result.astype(np.uint64)


def read_numbers(column: Any) -> Floats:
    """Return a column as binary64 numbers, exactly, with -0 as +0. A missing number is NaN."""
    array = decode_dictionary(to_arrow(column))
    if pa.types.is_integer(array.type):
        numbers = to_numpy(array.drop_null())
        is_number = not len(numbers) or (int(numbers.max()) <= _MAX_EXACT and int(numbers.min()) >= -_MAX_EXACT)
    else:
        is_number = pa.types.is_floating(array.type) or pa.types.is_null(array.type)
    if not is_number:
        raise ColumnError(
            "The column must contain numbers, up to 2**53 if they are whole. Its Arrow type is {type}.",
            hint='Convert the column, such as df["age"].astype(float).',
            type=str(array.type).partition("<")[0],
        )
    floats = array.cast(pa.float64())
    return to_numpy(floats.fill_null(math.nan) if floats.null_count else floats) + 0.0


def _require_finite(number: float) -> float:  # the range is public, so it may be shown
    try:
        result = float(number) + 0.0
    except (TypeError, ValueError, OverflowError):
        raise ValuesError(
            "The ends of the range must be numbers, not {type}.", type=type(number).__name__, hint=_GIVE_RANGE
        ) from None
    if not math.isfinite(result):
        raise ValuesError("The ends of the range must be finite, not {number}.", hint=_GIVE_RANGE, number=number)
    return result
