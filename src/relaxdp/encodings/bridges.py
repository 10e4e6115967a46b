"""Whole columns of reports, of any encoding, blurred, bridged or relaxed: symbols change, seeds stay.

With the truth's own column (`truth_column`) as the upper one, a bridge is the step of Algorithm 1 for a fleet of
objects. Without a lower column it is a blur, or the first report.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa

from relaxdp.draw.bridge_arrays import ArrayBridges, fresh_bridges
from relaxdp.draw.columns import as_column, column_slice, read_ids
from relaxdp.draw.entropy import Entropy
from relaxdp.draw.key import Key
from relaxdp.draw.stream import CHUNK, Messages, PathName, Purpose, Words, bridge_key
from relaxdp.encodings.protocol import BATCH, PUBLIC, Codes, Encoding
from relaxdp.errors import LengthError, LevelError
from relaxdp.law.bridge import NOISE


class FreshPermanent:
    """Kept randomness for Algorithm 1: fresh, the same at every call. Whoever uses it stores what comes of it."""

    def __init__(self, entropy: Entropy, objects: int) -> None:
        self._entropy, self._objects = entropy, objects
        self._drawn: dict[tuple[Purpose, bytes], Words] = {}

    def words(self, purpose: Purpose, symbol: Words | int = 0) -> Words:
        """Return one uniform word per object, another one for each purpose and symbol; what is public has no symbol."""
        of = (purpose, b"" if purpose in PUBLIC else np.asarray(symbol, dtype=np.uint64).tobytes())
        if of not in self._drawn:
            words = np.empty(self._objects, dtype=np.uint64)
            self._entropy.keystream().fill(words.view(np.uint8))
            self._drawn[of] = words
        return self._drawn[of]


def truth_column(encoding: Encoding, values: Any, *, entropy: Entropy) -> Any:
    """Return what many objects would report if nothing were hidden, with all that they keep for good, drawn now.

    It is as secret as the truth. A fleet keeps it, and takes every step from it: a second call draws other coins.
    """
    values = as_column(values)
    parts = []
    for start, stop in _pieces(encoding, len(values)):
        truths = encoding.truths(column_slice(values, start, stop), start)
        permanent = FreshPermanent(entropy, len(truths))
        parts.append(encoding.column(encoding.symbol_truths(truths, permanent), encoding.seeds(permanent)))
    return _joined(encoding, parts)


def fresh_column(
    encoding: Encoding,
    lower_level: Fraction,
    middle: Fraction,
    upper_level: Fraction,
    *,
    lower: Any | None,
    upper: Any,
    entropy: Entropy,
) -> Any:
    """Return reports at retention `middle` between two columns, with fresh randomness. They must be kept.

    Claim: every symbol has exactly the law of `bridge_law`; tests/exact/draw/test_bridge_arrays.py.
    """
    parts = []
    for _, ends, seeds in _ends(encoding, lower, upper):
        low, high = (None if codes is None else codes.reshape(-1) for codes in ends)
        assert high is not None  # noqa: S101
        drawn = fresh_bridges(
            encoding.alphabet,
            lower_level,
            middle,
            upper_level,
            lower_reports=low,
            upper_reports=np.ascontiguousarray(high),
            entropy=entropy,
        )
        parts.append(encoding.column(drawn.reshape(-1, encoding.symbols), seeds))
    return _joined(encoding, parts)


def keyed_column(
    encoding: Encoding,
    lower_level: Fraction,
    middle: Fraction,
    upper_level: Fraction,
    *,
    lower: Any | None,
    upper: Any,
    object_ids: Any,
    key: Key,
    name: PathName,
) -> Any:
    """Return the same as a pure function of the key and its arguments: asked for again, it is the same column."""
    if lower is None and lower_level != NOISE:
        raise ValueError("only noise has no lower reports")
    object_ids = as_column(object_ids)
    if len(object_ids) != len(upper):
        raise LengthError(
            "there are {upper:,} reports and {object_ids:,} ids.", upper=len(upper), object_ids=len(object_ids)
        )
    derived = bridge_key(key, name, lower_level, middle, upper_level)
    draw = ArrayBridges(derived, encoding.alphabet, lower_level, middle, upper_level)
    parts = []
    for start, (low, high), seeds in _ends(encoding, lower, upper, CHUNK):
        assert high is not None  # noqa: S101
        codes, below = np.empty_like(high), np.zeros_like(high) if low is None else low
        messages = Messages(read_ids(column_slice(object_ids, start, start + len(high)), start))
        for first in range(0, encoding.symbols, CHUNK):
            part = slice(first, first + CHUNK)
            codes[:, part] = draw.reports(messages, below[:, part], high[:, part], first=first)
        parts.append(encoding.column(codes, seeds))
    return _joined(encoding, parts)


def _ends(
    encoding: Encoding, lower: Any | None, upper: Any, most: int = BATCH
) -> Iterator[tuple[int, tuple[Codes | None, Codes | None], Words | None]]:
    """Return the codes of both columns a piece of at most so many symbols at a time, and their common seeds."""
    if lower is not None and len(lower) != len(upper):
        raise LengthError("there are {lower:,} lower and {upper:,} upper reports.", lower=len(lower), upper=len(upper))
    for start, stop in _pieces(encoding, len(upper), most):
        codes, seeds = encoding.read(upper[start:stop])
        below = None
        if lower is not None:
            below, other = encoding.read(lower[start:stop])
            if seeds is not None and not np.array_equal(seeds, other):  # type: ignore[arg-type]
                raise LevelError("two reports of one object have different seeds: they are not of one path.")
        yield start, (below, codes), seeds


def _pieces(encoding: Encoding, objects: int, most: int = BATCH) -> Iterator[tuple[int, int]]:
    step = min(CHUNK, max(1, most // encoding.symbols))
    for start in range(0, objects, step):
        yield start, min(start + step, objects)


def _joined(encoding: Encoding, parts: list[Any]) -> Any:
    if not parts:
        return pa.array([], encoding.report_type)
    return parts[0] if len(parts) == 1 else pa.concat_arrays(parts)
