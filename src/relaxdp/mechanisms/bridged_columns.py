"""Columns of reports that are blurred, bridged or relaxed, for any mechanism: symbols change, seeds stay.

With the column of true symbols (`make_noiseless_column`) as the upper one, a bridge is a step of Algorithm 1 for many
individuals. Without a lower column it is a blur, or the first report.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa

from relaxdp.errors import ColumnError, LevelError
from relaxdp.mechanisms.base import PUBLIC, Mechanism
from relaxdp.mechanisms.report_arrays import BATCH, Codes, get_report_type, make_report_column, read_report_column
from relaxdp.sampling.arrow_columns import ids_to_arrow, read_ids, to_arrow
from relaxdp.sampling.bridge import KeyedBridgeSampler, draw_fresh_bridges
from relaxdp.sampling.entropy import Entropy
from relaxdp.sampling.keyed_stream import CHUNK, Messages, PathName, Purpose, Words, derive_bridge_key
from relaxdp.sampling.keys import Key
from relaxdp.theory.randomized_response import NOISE


class FreshRandomness:
    """Kept randomness for Algorithm 1: fresh, and the same at every call. The caller stores the result."""

    def __init__(self, entropy: Entropy, individuals: int) -> None:
        self._entropy, self._individuals = entropy, individuals
        self._drawn: dict[tuple[Purpose, bytes], Words] = {}

    def draw_words(self, purpose: Purpose, symbol: Words | int = 0) -> Words:
        """Return one uniform word per individual, for each purpose and symbol; public randomness has no symbol."""
        of = (purpose, b"" if purpose in PUBLIC else np.asarray(symbol, dtype=np.uint64).tobytes())
        if of not in self._drawn:
            words = np.empty(self._individuals, dtype=np.uint64)
            self._entropy.make_keystream().fill(words.view(np.uint8))
            self._drawn[of] = words
        return self._drawn[of]


def make_noiseless_column(mechanism: Mechanism, values: Any, *, entropy: Entropy) -> Any:
    """Return what many individuals would report without noise, with the randomness that they keep, drawn now.

    It is as secret as the true values. Keep it, and take every step from it: a second call draws other coins.
    """
    column = to_arrow(values)
    parts = []
    for start, stop in _iterate_slices(mechanism, len(column)):
        truths = mechanism.read_true_values(column[start:stop], start)
        permanent = FreshRandomness(entropy, len(truths))
        parts.append(
            make_report_column(
                mechanism, mechanism.compute_true_symbols(truths, permanent), mechanism.draw_seeds(permanent)
            )
        )
    return _join_columns(mechanism, parts)


def draw_bridged_column(
    mechanism: Mechanism,
    lower_level: Fraction,
    middle: Fraction,
    upper_level: Fraction,
    *,
    lower: Any | None,
    upper: Any,
    entropy: Entropy,
) -> Any:
    """Return reports at retention `middle` between two columns, with fresh randomness. They must be kept.

    Claim: every symbol has exactly the distribution of `compute_bridge_distribution`;
    tests/exact/sampling/test_bridge_arrays.py.
    """
    parts = []
    for _, ends, seeds in _read_bridge_columns(mechanism, lower, upper):
        low, high = (None if codes is None else codes.reshape(-1) for codes in ends)
        assert high is not None  # noqa: S101
        drawn = draw_fresh_bridges(
            mechanism.alphabet,
            lower_level,
            middle,
            upper_level,
            lower_reports=low,
            upper_reports=np.ascontiguousarray(high),
            entropy=entropy,
        )
        parts.append(make_report_column(mechanism, drawn.reshape(-1, mechanism.symbols), seeds))
    return _join_columns(mechanism, parts)


def draw_keyed_bridged_column(
    mechanism: Mechanism,
    lower_level: Fraction,
    middle: Fraction,
    upper_level: Fraction,
    *,
    lower: Any | None,
    upper: Any,
    ids: Any,
    key: Key,
    name: PathName,
) -> Any:
    """Return the same as a pure function of the key and its arguments: asked for again, it is the same column."""
    if lower is None and lower_level != NOISE:
        raise ValueError("Lower reports are missing. Only a lower retention of 0 has no reports.")
    array = ids_to_arrow(ids)
    if len(array) != len(upper):
        raise ColumnError(
            "There are {upper:,} reports and {ids:,} ids. Each report needs one id.",
            hint="Pass two columns of the same table.",
            upper=len(upper),
            ids=len(array),
        )
    derived = derive_bridge_key(key, name, lower_level, middle, upper_level)
    draw = KeyedBridgeSampler(derived, mechanism.alphabet, lower_level, middle, upper_level)
    parts = []
    for start, (low, high), seeds in _read_bridge_columns(mechanism, lower, upper, CHUNK):
        assert high is not None  # noqa: S101
        codes, below = np.empty_like(high), np.zeros_like(high) if low is None else low
        messages = Messages(read_ids(array[start : start + len(high)], start))
        for first in range(0, mechanism.symbols, CHUNK):
            part = slice(first, first + CHUNK)
            codes[:, part] = draw.draw_reports(messages, below[:, part], high[:, part], first=first)
        parts.append(make_report_column(mechanism, codes, seeds))
    return _join_columns(mechanism, parts)


def _read_bridge_columns(
    mechanism: Mechanism, lower: Any | None, upper: Any, most: int = BATCH
) -> Iterator[tuple[int, tuple[Codes | None, Codes | None], Words | None]]:
    """Return the codes of both columns a piece of at most so many symbols at a time, and their common seeds."""
    if lower is not None and len(lower) != len(upper):
        raise ColumnError(
            "There are {lower:,} lower and {upper:,} upper reports. Both columns must have the same rows.",
            hint="Join the two columns by id first.",
            lower=len(lower),
            upper=len(upper),
        )
    for start, stop in _iterate_slices(mechanism, len(upper), most):
        codes, seeds = read_report_column(mechanism, upper[start:stop])
        below = None
        if lower is not None:
            below, other = read_report_column(mechanism, lower[start:stop])
            if seeds is not None and not np.array_equal(seeds, other):  # type: ignore[arg-type]
                raise LevelError(
                    "Two reports in the same row belong to different individuals: their seeds differ.",
                    hint="Pass two releases of the same individuals, in the same order.",
                )
        yield start, (below, codes), seeds


def _iterate_slices(mechanism: Mechanism, individuals: int, most: int = BATCH) -> Iterator[tuple[int, int]]:
    step = min(CHUNK, max(1, most // mechanism.symbols))
    for start in range(0, individuals, step):
        yield start, min(start + step, individuals)


def _join_columns(mechanism: Mechanism, parts: list[Any]) -> Any:
    if not parts:
        return pa.array([], get_report_type(mechanism))
    return parts[0] if len(parts) == 1 else pa.concat_arrays(parts)
