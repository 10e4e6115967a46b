"""Arrays of truths -> arrays of reports on the keyed path. Tables, data frames and Spark all call this."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Any

import numpy as np

from relaxdp.draw.blocks import CHUNK, RowCipher, Words
from relaxdp.draw.columns import as_column, column_slice, id_blocks
from relaxdp.draw.key import Key
from relaxdp.draw.path_arrays import ArrayPath
from relaxdp.draw.stream import PathName, Purpose, path_key
from relaxdp.encode.protocol import Codes, Encoding
from relaxdp.errors import LengthError, ObjectIdError

Watch = Callable[[Words, Words], None]


def release_codes(
    encoding: Encoding,
    values: Any,
    object_ids: Any,
    *,
    key: Key,
    epsilon: Decimal,
    release: str,
    attribute: str,
    first_row: int = 0,
    watch: Watch | None = None,
) -> Codes:
    """Return the reports of all objects as codes of shape (objects, symbols).

    A pure function of its arguments: called again, in pieces, in another order or on another machine, it gives
    every object the same report. That no id is repeated is the caller's to check. `first_row` is for messages about a
    part of a table; `watch` is shown what the stream is given of every chunk (ids and truths, so it must be trusted).
    """
    values, object_ids = as_column(values), as_column(object_ids)
    if len(values) != len(object_ids):
        raise LengthError(
            f"there are {len(values):,} values and {len(object_ids):,} ids. Nothing was released.",
            values=len(values),
            object_ids=len(object_ids),
        )
    name = encoding.path_name(release, attribute)
    path = ArrayPath(path_key(key, name), encoding.alphabet, encoding.threshold(epsilon))
    codes = np.empty((encoding.symbols, len(values)), dtype=code_dtype(encoding.alphabet))
    kinds = set()
    for start in range(0, len(values), CHUNK):
        stop = min(start + CHUNK, len(values))
        truths = encoding.truths(column_slice(values, start, stop), first_row + start)
        kind, groups = id_blocks(column_slice(object_ids, start, stop), first_row + start)
        kinds.add(kind)
        for chosen, blocks in groups:
            part = truths[chosen]
            prefix = blocks if part.suffix is None else np.concatenate([blocks, part.suffix])
            if watch is not None:
                watch(prefix, part.index)
            permanent = KeyedPermanent(key, name, prefix, part.index)
            state = path.cipher.absorb(prefix)
            state = state.copy() if encoding.symbols > 1 else state  # one symbol uses it at once
            for symbol in range(encoding.symbols):
                truth = encoding.symbol_truth(part, symbol, permanent)
                path.draw(codes[symbol, start:stop], chosen, state, truth, part.index, symbol)
    path.finish()
    if len(kinds) > 1:
        raise ObjectIdError("all ids must be of one kind. Nothing was released.")
    return codes.T


class KeyedPermanent:
    """The kept randomness of objects on the path: a keyed function of object and truth."""

    def __init__(self, key: Key, name: PathName, prefix: Words, index: Words) -> None:
        self._key, self._name, self._prefix, self._index = key, name, prefix, index

    def words(self, purpose: Purpose, symbol: Words | int = 0) -> Words:
        """Return the first word of try 0."""
        cipher = RowCipher(path_key(self._key, self._name, purpose))
        rows = cipher.last_block(cipher.absorb(self._prefix), self._index, symbol)
        return cipher.encrypt(rows)[:, 0].copy()


def code_dtype(alphabet: int) -> np.dtype[np.unsignedinteger]:
    """Return the smallest unsigned type that holds every code."""
    return np.min_scalar_type(alphabet - 1)
