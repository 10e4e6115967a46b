"""The ripple: a number is reported as a place near it. A toy of the Square Wave mechanism, on the path.

The range has `bins` points. A number is rounded to one of its two neighbours, at random and for good; the object adds
an offset below `window`, drawn at random and kept; the place that comes of it is what the path blurs. Of all places, a
truth reaches as many as the window has: so D / w stands where the number of values stands elsewhere.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from relaxdp.draw.columns import as_arrow, as_column
from relaxdp.draw.stream import Words
from relaxdp.encodings.numeric import RangeEncoding, round_up
from relaxdp.encodings.protocol import Codes, Joint, Measure, Option, Parameters, Permanent, Truths, code_dtype
from relaxdp.errors import CountsError, EncodingError
from relaxdp.law.epsilon import release_threshold
from relaxdp.law.support import Support


class RippleEncoding(RangeEncoding):
    """A report is a place on the range, and a little beyond its ends."""

    name = "ripple"
    meaning = "a place near the number"
    symbols = 1
    joint: Joint = "exclusive"
    takes = (
        Option("bins", "How many points the range has.", 2, 1024),
        Option("window", "How many places a number reaches: a power of two.", 1, 1024),
    )
    parameters = Parameters("the range of the numbers, the bins or the window", "same_range")

    def __init__(self, low: float, high: float, bins: int, window: int) -> None:
        """Declare the range, its points and the window."""
        super().__init__(low, high)
        if window & (window - 1):
            raise EncodingError("the window is a power of two: then the last bits of a word are exactly uniform.")
        self.bins, self.window, self.alphabet = bins, window, bins + window - 1
        self._points = np.linspace(self.low, self.high, bins)

    @property
    def params(self) -> bytes:
        """The range, the bins and the window."""
        return super().params + struct.pack("<II", self.bins, self.window)

    @property
    def options(self) -> dict[str, Any]:
        """The bins and the window."""
        return {"bins": self.bins, "window": self.window}

    @classmethod
    def options_in(cls, params: bytes) -> dict[str, Any]:
        """Return bins and window, which go last."""
        bins, window = struct.unpack("<II", params[-8:])
        return {"bins": bins, "window": window}

    def threshold(self, epsilon: Decimal) -> int:
        """Return the threshold of the place."""
        return release_threshold(epsilon, Fraction(self.alphabet, self.window))

    def symbol_truth(self, truths: Truths, symbol: int, permanent: Permanent) -> Words:
        """Return the rounded number's point, moved by the kept offset."""
        numbers, words = self.numbers(truths), permanent.words("round")
        lower = np.clip(np.searchsorted(self._points, numbers, side="right") - 1, 0, self.bins - 2)
        up = np.zeros(len(numbers), dtype=bool)
        for point in np.unique(lower).tolist():
            own = lower == point
            up[own] = round_up(words[own], numbers[own], float(self._points[point]), float(self._points[point + 1]))
        offset = permanent.words("coin") & np.uint64(self.window - 1)
        return (lower + up).astype(np.uint64) + offset

    @property
    def labels(self) -> Sequence[int]:
        """The places."""
        return range(self.alphabet)

    @property
    def measure(self) -> Measure:
        """A place counts for the number that it is nearest to, on average over the offsets."""
        step = (self.high - self.low) / (self.bins - 1)
        middle = (self.window - 1) / 2
        return Measure(tuple(self.low + step * (place - middle) for place in self.labels), self.low, self.high)

    def reports(self, codes: Codes, seeds: Words | None = None) -> list[int]:
        """Return the places."""
        return [int(code) for code in codes[:, 0]]

    @property
    def report_type(self) -> Any:
        """Whole numbers."""
        return pa.int32()

    def codes(self, column: Any) -> Codes:
        """Return places as codes."""
        array = as_arrow(as_column(column))
        if not pa.types.is_integer(array.type) or array.null_count:
            raise CountsError("a report is a place.")
        places = np.asarray(array.to_numpy(zero_copy_only=False)).astype(np.int64)
        if len(places) and not 0 <= int(places.min()) <= int(places.max()) < self.alphabet:
            raise CountsError("a report is none of the places.")
        return places.astype(code_dtype(self.alphabet))[:, None]

    def supports(self, codes: Codes, seeds: Words | None = None) -> NDArray[np.bool_]:
        """Return which place each report is."""
        return np.asarray(codes[:, :1] == np.arange(self.alphabet))

    def support(self, keep: Fraction) -> Support:
        """Return the chances that a report is a given place."""
        return Support.of_one_symbol(keep, self.alphabet)
