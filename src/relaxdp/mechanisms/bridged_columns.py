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

from relaxdp.errors import LevelError
from relaxdp.mechanisms.base import PUBLIC, Mechanism, TrueValues, draw_seeds
from relaxdp.mechanisms.report_arrays import BATCH, ReportPart, join_report_parts, read_report_column
from relaxdp.sampling.arrow_columns import check_lengths, to_arrow
from relaxdp.sampling.bridge import draw_fresh_bridge_reports
from relaxdp.sampling.entropy import Entropy
from relaxdp.sampling.keyed_stream import CHUNK, Purpose, Words


class DrawnOnceRandomness:
    """Kept randomness for Algorithm 1: drawn once, fresh, and the same at every call. The caller stores it."""

    def __init__(self, entropy: Entropy, individuals: int) -> None:
        self._entropy, self._individuals = entropy, individuals
        self._drawn: dict[tuple[Purpose, bytes], Words] = {}

    def draw_words(self, purpose: Purpose, symbol: Words | int = 0) -> Words:
        """Return a uniform word per individual, for each purpose and symbol; public randomness has no symbol."""
        of = (purpose, b"" if purpose in PUBLIC else np.asarray(symbol, dtype=np.uint64).tobytes())
        if of not in self._drawn:
            words = np.empty(self._individuals, dtype=np.uint64)
            self._entropy.make_keystream().fill(words.view(np.uint8))
            self._drawn[of] = words
        return self._drawn[of]


def iterate_noiseless_reports(
    mechanism: Mechanism, column: pa.Array, entropy: Entropy
) -> Iterator[tuple[TrueValues, ReportPart]]:
    """Yield true values and their reports without noise, with kept randomness that is drawn now."""
    for start, stop in iterate_slices(mechanism, len(column)):
        truths = mechanism.read_true_values(column[start:stop], start)
        permanent = DrawnOnceRandomness(entropy, len(truths))
        yield truths, (mechanism.compute_true_symbols(truths, permanent), draw_seeds(mechanism, permanent))


def make_noiseless_column(mechanism: Mechanism, values: Any, *, entropy: Entropy) -> pa.Array:
    """Return a column of reports without noise, with kept randomness that is drawn now.

    It is as secret as the true values. Keep it, and take every step from it: a second call draws other coins.
    """
    parts = iterate_noiseless_reports(mechanism, to_arrow(values), entropy)
    return join_report_parts(mechanism, (part for _, part in parts))


def draw_bridged_column(
    mechanism: Mechanism,
    lower_retention: Fraction,
    middle_retention: Fraction,
    upper_retention: Fraction,
    *,
    lower_reports: Any | None,
    upper_reports: Any,
    entropy: Entropy,
) -> pa.Array:
    """Draw a column of reports between two others, with fresh randomness. It must be kept.

    Claim: every symbol has exactly the distribution of `compute_bridge_distribution`;
    tests/exact/sampling/test_bridge_arrays.py.
    """
    if lower_reports is not None:
        check_lengths(lower_reports=lower_reports, upper_reports=upper_reports)
    retentions, parts = (lower_retention, middle_retention, upper_retention), []
    for start, stop in iterate_slices(mechanism, len(upper_reports)):
        above, seeds = read_report_column(mechanism, upper_reports[start:stop])
        below = None
        if lower_reports is not None:
            below, other = read_report_column(mechanism, lower_reports[start:stop])
            if seeds is not None and not np.array_equal(seeds, other):  # type: ignore[arg-type]
                raise LevelError(
                    "Two reports in the same row belong to different individuals: their seeds differ.",
                    hint="Pass two releases of the same individuals, in the same order: an individual keeps its seed.",
                )
        drawn = draw_fresh_bridge_reports(
            mechanism.alphabet, *retentions, lower_reports=below, upper_reports=above, entropy=entropy
        )
        parts.append((drawn, seeds))
    return join_report_parts(mechanism, parts)


def iterate_slices(mechanism: Mechanism, n_individuals: int) -> Iterator[tuple[int, int]]:
    """Return the start and the end of slices of individuals, with at most BATCH symbols each."""
    step = min(CHUNK, max(1, BATCH // mechanism.symbols))
    return ((start, min(start + step, n_individuals)) for start in range(0, n_individuals, step))
