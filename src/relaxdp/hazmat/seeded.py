"""Randomness from a seed, for experiments that are to be repeated. Never for a person's data."""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import sha512

import numpy as np

from relaxdp.draw.entropy import Keystream


class SeededEntropy:
    """A keystream from a seed: the same seed gives the same draws, in the same order of calls."""

    def __init__(self, seed: int) -> None:
        self._stream = Keystream(sha512(f"relaxdp seeded {seed}".encode()).digest())

    def words(self) -> Iterator[int]:
        """Return an endless iterator of words."""
        word = np.empty(1, dtype=np.uint64)
        while True:
            self._stream.fill(word.view(np.uint8))
            yield int(word[0])

    def keystream(self) -> Keystream:
        """Return the one keystream, which goes on from call to call."""
        return self._stream
