"""A keyed, order-independent fingerprint of all (id, truth) pairs: a changed table is noticed, and nothing is shown.

Every row has a tag, a CMAC under a key of its own purpose; the fingerprint is the sum of the tags and their number.
Without the key it is a random number.
"""

from __future__ import annotations

from threading import Lock

import numpy as np

from relaxdp.draw.blocks import CHUNK, RowCipher, Words
from relaxdp.draw.key import Key
from relaxdp.draw.stream import PathName, path_key


class Fingerprint:
    """The sum of the tags of rows, in any order and from any thread."""

    def __init__(self, key: Key, name: PathName) -> None:
        self._derived = path_key(key, name, "fingerprint")
        self._sums = np.zeros(2, dtype=np.uint64)
        self._rows = 0
        self._lock = Lock()

    def add(self, prefix: Words, index: Words) -> None:
        """Add rows: the canonical bytes of ids (and of truths without an index), and the truths' indices."""
        cipher, sums = RowCipher(self._derived), np.zeros(2, dtype=np.uint64)
        for start in range(0, len(index), CHUNK):
            part = slice(start, start + CHUNK)
            rows = cipher.last_block(cipher.absorb(prefix[:, part]), index[part], 0)
            sums += cipher.encrypt(rows).sum(axis=0, dtype=np.uint64)
        with self._lock:
            self._sums += sums
            self._rows += len(index)

    def text(self) -> str:
        """Return the fingerprint."""
        return f"{self._rows}:{self._sums[0]:016x}{self._sums[1]:016x}"
