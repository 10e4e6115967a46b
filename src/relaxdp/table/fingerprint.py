"""A keyed, order-independent fingerprint of all (id, truth) pairs: a changed table is noticed, and nothing is shown.

Every row has a tag, a CMAC under a key of its own purpose; the fingerprint is the sum of the tags and their number.
Without the key it is a random number.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from threading import Lock
from typing import Any

import numpy as np

from relaxdp.draw.blocks import CHUNK, RowCipher, Words
from relaxdp.draw.columns import as_column, column_slice, id_blocks
from relaxdp.draw.key import Key
from relaxdp.draw.stream import PathId, PathName, path_key
from relaxdp.encode.protocol import Encoding
from relaxdp.table.request import Planned, ReleaseRequest

# The last block of a row's tag holds the truth's index and 0; that of an id's tag holds 0 and this.
_ID_ALONE = 1


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
        self._add(sums, len(index))

    def add_rows(self, encoding: Encoding, truths: Any, ids: Any, first_row: int) -> tuple[Words, Words]:
        """Add a part of a table, and return the 64-bit tags of its ids alone and of its (id, truth) pairs.

        Tags are as secret as the key makes them: equal rows have equal tags, and that is all that they show.
        """
        truths, ids = as_column(truths), as_column(ids)
        cipher, sums = RowCipher(self._derived), np.zeros(2, dtype=np.uint64)
        id_tags, row_tags = np.empty((2, len(ids)), dtype=np.uint64)
        for start in range(0, len(ids), CHUNK):
            stop = min(start + CHUNK, len(ids))
            found = encoding.truths(column_slice(truths, start, stop), first_row + start)
            for chosen, blocks in id_blocks(column_slice(ids, start, stop), first_row + start)[1]:
                part = found[chosen]
                alone = cipher.last_block(cipher.absorb(blocks), np.uint64(0), _ID_ALONE)
                id_tags[start:stop][chosen] = cipher.encrypt(alone)[:, 0]
                prefix = blocks if part.suffix is None else np.concatenate([blocks, part.suffix])
                tags = cipher.encrypt(cipher.last_block(cipher.absorb(prefix), part.index, 0))
                row_tags[start:stop][chosen] = tags[:, 0]
                sums += tags.sum(axis=0, dtype=np.uint64)
        self._add(sums, len(ids))
        return id_tags, row_tags

    def _add(self, sums: Words, rows: int) -> None:
        with self._lock:
            self._sums += sums
            self._rows += rows

    def text(self) -> str:
        """Return the fingerprint."""
        return f"{self._rows}:{self._sums[0]:016x}{self._sums[1]:016x}"


def fingerprints_of(request: ReleaseRequest, columns: Sequence[Planned]) -> list[Fingerprint]:
    """Return an empty fingerprint for each column, keyed by its first epoch: a table is the same in all of them."""
    return [
        Fingerprint(request.key, each.encoding.path_name(PathId(each.path.release, each.path.attribute)))
        for each in columns
    ]


def add_texts(texts: Iterable[str]) -> str:
    """Return the fingerprint of a table from those of its parts."""
    rows, sums = 0, [0, 0]
    for text in texts:
        count, words = text.split(":")
        rows += int(count)
        sums = [(total + int(word, 16)) % 2**64 for total, word in zip(sums, (words[:16], words[16:]), strict=True)]
    return f"{rows}:{sums[0]:016x}{sums[1]:016x}"
