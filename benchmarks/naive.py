"""What anybody would write with NumPy in one line: neither secure nor exact, but fast."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.timing import Contender

NAIVE_WIDE = "NumPy line, int64"
NAIVE_BYTES = "NumPy line, uint8"
NAIVE = (NAIVE_WIDE, NAIVE_BYTES)


def naive_contenders(values: int, truths: NDArray[np.uint8], epsilon: float) -> list[Contender]:
    """Return the line with NumPy's default integers and with bytes."""
    keep = math.expm1(epsilon) / (math.expm1(epsilon) + values)
    generator = np.random.default_rng(2)
    wide = truths.astype(np.int64)
    return [
        Contender(NAIVE_WIDE, len(truths), lambda: _naive(wide, values, keep, generator)),
        Contender(NAIVE_BYTES, len(truths), lambda: _naive(truths, values, keep, generator)),
    ]


def _naive(truths: NDArray[Any], values: int, keep: float, generator: np.random.Generator) -> NDArray[Any]:
    count = len(truths)
    return np.where(generator.random(count) < keep, truths, generator.integers(0, values, count, dtype=truths.dtype))
