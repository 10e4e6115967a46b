"""The path for many objects at once: the same reports as one object at a time, tens of millions a second."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from relaxdp.draw.blocks import RowCipher, Words, retry
from relaxdp.draw.path import accepted_draws, report_at
from relaxdp.law.threshold import ONE

_NONE = np.empty(0, dtype=np.intp)


class ArrayPath:
    """The reports of one symbol of many objects, on one path and at one threshold."""

    def __init__(self, derived: bytes, values: int, threshold: int, *, symbol: int = 0) -> None:
        self._cipher = RowCipher(derived)
        self._values = np.uint64(values)
        self._threshold = np.uint64(threshold)
        self._symbol = symbol
        # Value words above this are rejected. For a power of two there is none.
        self._limit = np.uint64(ONE - 1 - ONE % values)
        self._may_reject = ONE % values != 0

    def reports(self, blocks: Words, truth: Words, index: Words | None = None) -> Words:
        """Return the report of each object, at most CHUNK of them.

        `blocks` are the canonical bytes of the ids as (objects, blocks, 2) words, `truth` is the symbol's truth, and
        `index` the index of the object's truth, where it is not the symbol's truth itself.
        """
        state = self._cipher.absorb(blocks)
        rows = self._cipher.last_block(state, truth if index is None else index, self._symbol)
        words = self._cipher.encrypt(rows)
        position, value = words[:, 0], words[:, 1]
        report = truth.astype(np.uint64)
        moving = np.flatnonzero(position >= self._threshold)
        report[moving] = self._remainder(value[moving])
        rejected = np.flatnonzero(value > self._limit) if self._may_reject else _NONE
        if rejected.size:
            moving = np.setdiff1d(moving, rejected, assume_unique=True)
        # The cipher's buffer, which `position` and `value` look into, is free to be reused from here on.
        self._walk(report, moving, rows[moving], position[moving])
        for row in rejected:  # so rare (values / 2^64) that each is walked alone, by the path's own rule
            report[row] = self._walk_alone(rows[row], int(truth[row]))
        return report

    def _walk(self, report: Words, moving: NDArray[np.intp], rows: Words, bound: Words) -> None:
        """Follow the objects whose position is still at or above the threshold until none is left."""
        j = 0
        while moving.size:
            j += 1
            retry(rows, j)
            words = self._cipher.encrypt(rows)
            word, value = words[:, 0], words[:, 1]
            position = word % bound
            # word lies in a complete run of `bound` words: the run's start, word - position, is at most 2^64 - bound.
            accepted = (word - position) <= np.negative(bound)
            if self._may_reject:
                accepted &= value <= self._limit
            above = position >= self._threshold
            moved = np.flatnonzero(accepted & above)
            report[moving[moved]] = self._remainder(value[moved])
            bound[moved] = position[moved]
            stays = np.flatnonzero(above | ~accepted)
            moving, rows, bound = moving[stays], rows[stays], bound[stays]

    def _walk_alone(self, row: Words, truth: int) -> int:
        draws = accepted_draws(self._cipher.words_of(row), int(self._values))
        return report_at(draws, int(self._threshold), truth=truth)

    def _remainder(self, words: Words) -> Words:
        """Return words % values; a division by a constant is much faster than NumPy's remainder."""
        result: Words = words - words // self._values * self._values
        return result
