"""The wave: a number is reported as a place near it, so that the reports tell of the whole distribution.

This is the Square Wave mechanism (Li et al. 2020) on the categorical path. The range is cut by `bins` points, the first
and the last of which are its ends. A number is rounded to one of its two neighbours, at random and for good; the object
adds an offset below `window`, drawn at random and kept; the place that comes of it is what the path blurs.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from decimal import ROUND_HALF_EVEN, Context, Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from relaxdp.draw.columns import as_arrow, as_column, as_objects
from relaxdp.draw.stream import Words
from relaxdp.encodings.bits import histogram
from relaxdp.encodings.numeric import Floats, RangeEncoding
from relaxdp.encodings.protocol import Codes, Joint, Measure, Option, Parameters, Permanent, Truths, code_dtype
from relaxdp.encodings.registry import register
from relaxdp.errors import CountsError, EncodingError
from relaxdp.law.epsilon import ONE, Epsilon, as_epsilon, release_threshold
from relaxdp.law.support import Support

BINS = 64
"""How many bins there are where nobody says it."""
_MOST = 1024
# A float's rounding cannot bridge this distance between a word and the boundary that it is compared with: a number's
# place among at most 1,024 bins is off by less than 2^-40.
_CLEAR = 2.0**-36


def best_window(epsilon: Epsilon, bins: int = BINS) -> int:
    """Return the window, a power of two, with the least error of the mean where numbers lie in the middle of the range.

    It is fixed for the life of a path, so it is chosen for the last level that is planned.

    >>> [best_window(epsilon) for epsilon in ("0.5", 1, 2, 3, 4, 5, 8)]
    [64, 32, 32, 16, 16, 8, 4]
    """
    context = Context(prec=30, rounding=ROUND_HALF_EVEN)
    odds = Fraction(context.exp(min(as_epsilon(epsilon), Decimal(20))))

    def error(window: int) -> Fraction:
        places = bins + window - 1
        keep = (odds - 1) / (odds - 1 + Fraction(places, window))
        return (keep * (window**2 - 1) + (1 - keep) * (places**2 - 1)) / keep**2

    return min((1 << power for power in range(_MOST.bit_length())), key=error)


@register
class WaveEncoding(RangeEncoding):
    """A report is a place: 0 .. bins + window - 2. Without noise, a number in bin b has one of b .. b + window - 1.

    A truth is spread over `window` of all places, so places / window, a fraction, stands in the threshold where the
    number of values stands elsewhere. Rounding only mixes the laws of two neighbouring bins, so no ratio grows by it.

    Claim: all transcripts are enumerated in tests/exact/encodings/test_wave.py.
    """

    name = "wave"
    meaning = "a place near the number, for the mean and the whole distribution"
    symbols = 1
    joint: Joint = "exclusive"
    takes = (
        Option("bins", "Into how many bins numbers are rounded.", 2, _MOST, is_planned=True),
        Option("window", "Over how many places a number is spread: a power of two.", 1, _MOST, is_planned=True),
    )
    parameters = Parameters(
        "the range of the numbers, its bins or the window (or whether they are clipped)", "same_range"
    )

    def __init__(self, low: float, high: float, bins: int, window: int) -> None:
        """Declare the range, how many bins it has, and over how many places a number is spread."""
        super().__init__(low, high)
        for number, least, what in ((bins, 2, "bins"), (window, 1, "window")):
            if isinstance(number, bool) or not isinstance(number, int) or not least <= number <= _MOST:
                raise EncodingError(
                    "{option} of the encoding {encoding!r} is a whole number from {least} to {most:,}.",
                    option=what,
                    encoding=self.name,
                    least=least,
                    most=_MOST,
                )
        if window & (window - 1):
            raise EncodingError(
                "the window is a power of two, not {window}: only then are the last bits of a word exactly uniform.",
                hint="Use a window of 4, 8, 16 or 32.",
                window=window,
            )
        self.bins, self.window, self.alphabet = bins, window, bins + window - 1

    @classmethod
    def planned_options(cls, options: Mapping[str, Any], epsilon: Epsilon | None) -> dict[str, Any]:
        """Return the bins and the best window for the last epsilon, where they were not given."""
        given = {"bins": BINS, **options}
        if "window" in given:
            return given
        if epsilon is None:
            raise EncodingError("the wave needs a window, or the last epsilon that is planned.")
        bins = given["bins"]
        is_usable = isinstance(bins, int) and 2 <= bins <= _MOST  # what is not is refused by whoever makes the encoding
        return {**given, "window": best_window(epsilon, bins if is_usable else BINS)}

    @classmethod
    def options_in(cls, params: bytes) -> dict[str, Any]:
        """Return bins and window, which go last."""
        bins, window = struct.unpack("<II", params[-8:])
        return {"bins": bins, "window": window}

    @property
    def params(self) -> bytes:
        """The range, whether numbers are clipped, the bins and the window."""
        return super().params + struct.pack("<II", self.bins, self.window)

    @property
    def options(self) -> dict[str, Any]:
        """The bins and the window."""
        return {"bins": self.bins, "window": self.window}

    def threshold(self, epsilon: Decimal) -> int:
        """Return the threshold of the place."""
        return release_threshold(epsilon, Fraction(self.alphabet, self.window))

    def symbol_truth(self, truths: Truths, symbol: int, permanent: Permanent) -> Words:
        """Return the kept bin, moved by the kept offset."""
        rounded = round_to_bin(permanent.words("round"), self.numbers(truths), self.low, self.high, self.bins)
        return rounded + (permanent.words("coin") & np.uint64(self.window - 1))

    @property
    def labels(self) -> Sequence[int]:
        """The places."""
        return range(self.alphabet)

    @property
    def measure(self) -> Measure:
        """A place counts for the number in the middle of those that reach it; some lie a little beyond the range."""
        step, middle = (self.high - self.low) / (self.bins - 1), (self.window - 1) / 2
        weights = tuple(self.low + step * (place - middle) for place in self.labels)
        return Measure(weights, self.low, self.high, window=self.window)

    def reports(self, codes: Codes, seeds: Words | None = None) -> list[int]:
        """Return the places."""
        return [int(code) for code in codes[:, 0].tolist()]

    @property
    def report_type(self) -> Any:
        """Whole numbers."""
        return pa.int16()

    def column(self, codes: Codes, seeds: Words | None = None) -> Any:
        """Return the places as whole numbers."""
        return pa.array(codes[:, 0].astype(np.int16))

    def codes(self, column: Any) -> Codes:
        """Return the places of a column of reports; anything else is not a report."""
        places = _places(column)
        if places is None or (len(places) and not 0 <= int(places.min()) <= int(places.max()) < self.alphabet):
            raise CountsError("a report is none of the {alphabet:,} places.", alphabet=self.alphabet)
        return places.astype(code_dtype(self.alphabet))[:, None]

    def supports(self, codes: Codes, seeds: Words | None = None) -> NDArray[np.bool_]:
        """Return which place each report is."""
        return np.asarray(codes[:, :1] == np.arange(self.alphabet))

    def count(self, codes: Codes, seeds: Words | None = None) -> NDArray[np.int64]:
        """Return how many reports are each place."""
        return histogram(codes[:, 0], self.alphabet)

    def support(self, keep: Fraction) -> Support:
        """Return the chances that a report is a given place."""
        return Support.of_one_symbol(keep, self.alphabet)


def round_to_bin(words: Words, numbers: Floats, low: float, high: float, bins: int) -> Words:
    """Return floor(t), or one more where word < floor(2^64 (t - floor(t))), exactly.

    t = (bins - 1) (number - low) / (high - low) says where among the bins a number lies. Floats decide where word and
    boundary are clearly apart; the few others (one in 2^35) are compared as fractions.

    Claim: exact; tests/exact/encodings/test_rounding.py.
    """
    # As a whole it is the ceiling of t - word / 2^64, which is unclear near whole numbers only.
    moved = (numbers - low) / (high - low) * (bins - 1) - words.astype(np.float64) / float(ONE)
    result = np.ceil(moved)
    for row in np.flatnonzero(np.abs(moved - np.rint(moved)) < _CLEAR):
        exact = (bins - 1) * (Fraction(float(numbers[row])) - Fraction(low)) / (Fraction(high) - Fraction(low))
        whole = exact // 1
        result[row] = whole + (int(words[row]) < (exact - whole) * ONE // 1)
    return result.astype(np.uint64)


def _places(column: Any) -> NDArray[np.int64] | None:
    """Return whole numbers, also those that a column of numbers holds, or None for anything else."""
    try:
        array = as_arrow(as_objects(as_column(column)))
        if not (pa.types.is_integer(array.type) or pa.types.is_floating(array.type)) or array.null_count:
            return None
        return np.asarray(array.cast(pa.int64()).to_numpy(zero_copy_only=False))
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        return None
