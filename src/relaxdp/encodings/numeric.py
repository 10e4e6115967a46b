"""Numbers in a range: what all such encodings share, and the one that rounds to an end, once and for good."""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence
from contextlib import suppress
from copy import copy
from decimal import Decimal
from fractions import Fraction
from typing import Any, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from relaxdp.draw.canonical import NUMBER, length_prefixed
from relaxdp.draw.columns import as_arrow, as_column, as_objects, is_objects
from relaxdp.draw.stream import Words
from relaxdp.encodings.bits import histogram
from relaxdp.encodings.protocol import Codes, Domain, Encoding, Joint, Measure, Parameters, Permanent, Truths
from relaxdp.encodings.registry import register
from relaxdp.errors import CountsError, RangeError, UndeclaredValueError
from relaxdp.law.epsilon import ONE, release_threshold
from relaxdp.law.support import Support

Floats = NDArray[np.float64]

# A float's rounding cannot bridge this distance between a word and the boundary that it is compared with.
_CLEAR = 2.0**-48
_LEAST_WIDTH = 1e-290
_MOST_EXACT = 2**53
MISSING = "missing"
"""What is reported of a number that is not there."""


class RangeEncoding(Encoding):
    """An encoding of numbers from low to high. The range is public."""

    domain: Domain = "range"
    parameters = Parameters("the range of the numbers (or whether they are clipped)", "same_range")

    clip = False
    """Whether numbers outside of the range are put into it, which is part of every path."""

    def __init__(self, low: float, high: float) -> None:
        self.low, self.high = _finite(low), _finite(high)
        if not _LEAST_WIDTH < self.high - self.low < math.inf:
            raise RangeError(
                "the range must go from a lower to a higher number, not from {low} to {high}.",
                hint="Give the smallest and the largest number that can occur, such as 0 and 120.",
                low=low,
                high=high,
            )

    def clipping(self) -> Self:
        """Return the encoding of numbers that are put into the range first; that is part of its paths."""
        other = copy(self)
        other.clip = True
        return other

    @property
    def declared(self) -> dict[str, Any]:
        """The range, and whether numbers are clipped to it."""
        return {"range": (self.low, self.high), "clip": self.clip}

    @property
    def params(self) -> bytes:
        """The range, and the name that the stream has for clipping or for leaving numbers as they are."""
        name = b"clip" if self.clip else b"identity"
        return struct.pack("<dd", self.low, self.high) + length_prefixed(name)

    def answer_in(self, text: str) -> float:
        """Return the number that a person typed."""
        number = None
        with suppress(ValueError):  # raised from there, a refusal would carry the text along as its context
            number = float(text.strip())
        if number is None:
            raise self._no_answer()
        return float(self.answer(number))

    def _answer(self, given: Any) -> float | None:
        self.truths([given])
        return float(given) + 0.0

    def _no_answer(self) -> UndeclaredValueError:
        return UndeclaredValueError(
            "the answer is not a number from {low:g} to {high:g}.", low=self.low, high=self.high
        )

    def truths(self, column: Any, first_row: int = 0) -> Truths:
        """Return the numbers' canonical bytes."""
        numbers = _numbers(column)
        if self.clip:  # here and not when it is rounded: the truth is what lies in the range
            numbers = np.clip(numbers, self.low, self.high)
        self._check(numbers, first_row)
        suffix = np.empty((1, len(numbers), 2), dtype=np.uint64)
        suffix[0, :, 0] = NUMBER | 8 << 32
        suffix[0, :, 1] = numbers.view(np.uint64)
        return Truths(np.zeros(len(numbers), dtype=np.uint64), suffix)

    def numbers(self, truths: Truths) -> Floats:
        """Return the numbers that truths are made of."""
        assert truths.suffix is not None  # noqa: S101 (made by `truths` above)
        numbers = np.ascontiguousarray(truths.suffix[0, :, 1]).view(np.float64)
        self._check(numbers, 0)
        return numbers

    def _check(self, numbers: Floats, first_row: int) -> None:
        """Reject a number outside of the range before anything is drawn."""
        outside = ~((numbers >= self.low) & (numbers <= self.high) | self._are_missing(numbers))  # NaN is outside
        if outside.any():
            place = int(np.argmax(outside))
            row = first_row + place + 1
            if np.isnan(numbers[place]):
                raise RangeError("the number is missing.", remedy="missing_number", row=row, missing=True)
            raise RangeError(
                "the number is not within the range {low:g} .. {high:g}.",
                remedy="clip",
                low=self.low,
                high=self.high,
                row=row,
            )

    def _are_missing(self, numbers: Floats) -> NDArray[np.bool_]:
        """Tell which numbers are not there, and have a report all the same."""
        return np.zeros(len(numbers), np.bool_)


@register
class NumericEncoding(RangeEncoding):
    """A number that is rounded to an end of its range; the mean over the objects is what can be estimated.

    x is rounded to `high` with probability (x - low) / (high - low), else to `low`. The rounding is kept: it is a
    keyed function of object and number on the path, and stored by Algorithm 1.
    """

    name = "numeric"
    meaning = "the smallest or the largest number, for the mean"
    alphabet = 2
    symbols = 1
    joint: Joint = "exclusive"

    @property
    def labels(self) -> Sequence[float]:
        """The two ends."""
        return (self.low, self.high)

    @property
    def measure(self) -> Measure:
        """The mean counts each end for what it is."""
        return Measure((self.low, self.high), self.low, self.high)

    def threshold(self, epsilon: Decimal) -> int:
        """Return the threshold of the one bit."""
        return release_threshold(epsilon, 2)

    def symbol_truth(self, truths: Truths, symbol: int, permanent: Permanent) -> Words:
        """Return the kept rounding: 1 for the upper end."""
        return round_up(permanent.words("round"), self.numbers(truths), self.low, self.high).astype(np.uint64)

    def reports(self, codes: Codes, seeds: Words | None = None) -> list[float]:
        """Return the ends that the bits stand for."""
        return [self.labels[code] for code in codes[:, 0].tolist()]

    @property
    def report_type(self) -> Any:
        """Plain numbers."""
        return pa.float64()

    def column(self, codes: Codes, seeds: Words | None = None) -> Any:
        """Return the ends that the bits stand for, as numbers."""
        return pa.array(np.array(self.labels)[codes[:, 0]])

    def supports(self, codes: Codes, seeds: Words | None = None) -> NDArray[np.bool_]:
        """Return which end each report is."""
        return np.asarray(codes[:, :1] == np.arange(2))

    def count(self, codes: Codes, seeds: Words | None = None) -> NDArray[np.int64]:
        """Return how many reports are the lower and the upper end."""
        return histogram(codes[:, 0], 2)

    def codes(self, column: Any) -> Codes:
        """Return the bits of a column of ends; anything else is not a report."""
        numbers = _numbers(column)
        upper = numbers == self.high
        if not np.all(upper | (numbers == self.low)):
            raise CountsError(
                "a report is neither {low:g} nor {high:g}, the ends of the range.", low=self.low, high=self.high
            )
        return np.asarray(upper, dtype=np.uint8)[:, None]

    def support(self, keep: Fraction) -> Support:
        """Return the chances that a report is a given end."""
        return Support.of_one_symbol(keep, 2)


@register
class MissingNumericEncoding(RangeEncoding):
    """A number that is rounded to an end of its range, or missing: three symbols, of which every object sends one.

    It answers two questions for one epsilon: which share is missing, and the mean of the numbers that are there.
    """

    name = "numeric-missing"
    meaning = "missing, or the smallest or the largest number, for the mean of those that are there"
    is_asked = False
    alphabet = 3
    symbols = 1
    joint: Joint = "exclusive"

    @property
    def labels(self) -> Sequence[str]:
        """What a report can be. As text, because a number that stands for "missing" would be taken for a number."""
        return (MISSING, _text(self.low), _text(self.high))

    @property
    def measure(self) -> Measure:
        """The mean is that of the numbers that are there."""
        return Measure((0.0, self.low, self.high), self.low, self.high, absent=0)

    def threshold(self, epsilon: Decimal) -> int:
        """Return the threshold of the one symbol."""
        return release_threshold(epsilon, 3)

    def truths(self, column: Any, first_row: int = 0) -> Truths:
        """Return the numbers' canonical bytes; whatever is missing has the same ones."""
        numbers = _numbers(column)
        return super().truths(np.where(np.isnan(numbers), np.nan, numbers), first_row)

    def _are_missing(self, numbers: Floats) -> NDArray[np.bool_]:
        return np.isnan(numbers)

    def _answer(self, given: Any) -> float | None:
        if given is None:
            return None
        number = super()._answer(given)
        return None if number is None or math.isnan(number) else number

    def answer_in(self, text: str) -> Any:
        """Return the number that a person typed, or None for "missing"."""
        return None if text.strip() == MISSING else super().answer_in(text)

    def symbol_truth(self, truths: Truths, symbol: int, permanent: Permanent) -> Words:
        """Return 0 for what is missing, else the kept rounding: 1 for the lower end and 2 for the upper one."""
        numbers = self.numbers(truths)
        rounded = round_up(permanent.words("round"), numbers, self.low, self.high)
        return np.where(np.isnan(numbers), 0, 1 + rounded.astype(np.uint64)).astype(np.uint64)

    def reports(self, codes: Codes, seeds: Words | None = None) -> list[str]:
        """Return what the codes stand for."""
        return [self.labels[code] for code in codes[:, 0].tolist()]

    def column(self, codes: Codes, seeds: Words | None = None) -> Any:
        """Return what the codes stand for, as text."""
        return pa.array(self.labels).take(pa.array(codes[:, 0]))

    def codes(self, column: Any) -> Codes:
        """Return the codes of a column of reports; anything else is not a report."""
        try:
            found = pc.index_in(as_arrow(as_objects(as_column(column))).cast(pa.string()), pa.array(self.labels))
        except (pa.ArrowException, TypeError, ValueError):
            found = pa.array([None])
        if found.null_count:
            raise CountsError("a report is none of {labels}.", labels=", ".join(self.labels))
        return np.asarray(found.to_numpy(zero_copy_only=False), dtype=np.uint8)[:, None]

    def supports(self, codes: Codes, seeds: Words | None = None) -> NDArray[np.bool_]:
        """Return which label each report is."""
        return np.asarray(codes[:, :1] == np.arange(3))

    def count(self, codes: Codes, seeds: Words | None = None) -> NDArray[np.int64]:
        """Return how many reports are each label."""
        return histogram(codes[:, 0], 3)

    def support(self, keep: Fraction) -> Support:
        """Return the chances that a report is a given label."""
        return Support.of_one_symbol(keep, 3)


def _text(number: float) -> str:
    """Return a number as people write it, exactly."""
    return f"{number:.0f}" if number.is_integer() and abs(number) < _MOST_EXACT else repr(number)


def round_up(words: Words, numbers: Floats, low: float, high: float) -> NDArray[np.bool_]:
    """Return word < floor(2^64 (number - low) / (high - low)), exactly.

    Floats decide wherever word and boundary are clearly apart; the few others (one in 2^47) are compared as fractions.

    Claim: exact; tests/exact/encodings/test_rounding.py.
    """
    distance = words.astype(np.float64) / float(ONE) - (numbers - low) / (high - low)
    result: NDArray[np.bool_] = distance < 0
    for row in np.flatnonzero(np.abs(distance) < _CLEAR):
        share = (Fraction(float(numbers[row])) - Fraction(low)) / (Fraction(high) - Fraction(low))
        result[row] = int(words[row]) < share * ONE // 1
    return result


def _numbers(column: Any) -> Floats:
    """Return a column as binary64 numbers, exactly, with -0 as +0; what is missing is NaN and falls outside."""
    array = _as_numbers(as_objects(as_column(column)))
    if array is None or (array.dtype.kind in "iu" and len(array) and _too_large(array)):
        raise RangeError("the column must hold numbers, whole ones at most 2**53.")
    return np.ascontiguousarray(array, dtype=np.float64) + 0.0


def _as_numbers(column: Any) -> NDArray[Any] | None:
    """Return numbers, or None for anything else: an exception's context would carry a truth along."""
    if isinstance(column, np.ndarray) and column.dtype.kind in "iuf":
        return column
    if is_objects(column):
        column = list(column)
        if any(isinstance(item, bool | str | bytes) for item in column):
            return None
    try:
        array = as_arrow(column)
        whole = pa.types.is_integer(array.type)
        if not (whole or pa.types.is_floating(array.type) or pa.types.is_null(array.type)):
            return None
        kept = array if whole and not array.null_count else array.cast(pa.float64())
        return np.asarray(kept.to_numpy(zero_copy_only=False))
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        return None


def _too_large(array: NDArray[np.integer]) -> bool:
    return int(array.max()) > _MOST_EXACT or int(array.min()) < -_MOST_EXACT


def _finite(number: float) -> float:  # the range is public, so it may be shown
    try:
        result = float(number) + 0.0
    except (TypeError, ValueError, OverflowError):
        raise RangeError("the ends of the range must be numbers.") from None
    if not math.isfinite(result):
        raise RangeError(
            "the ends of the range must be finite, not {number}.",
            hint="Give two numbers such as 0 and 120.",
            number=number,
        )
    return result
