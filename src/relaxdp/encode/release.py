"""Arrays of truths -> arrays of reports on the keyed path. Tables, data frames and Spark all call this."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from relaxdp.draw.blocks import CHUNK, RowCipher, Words
from relaxdp.draw.columns import Selection, as_column, column_slice, id_blocks
from relaxdp.draw.key import Key
from relaxdp.draw.path_arrays import ArrayPath
from relaxdp.draw.stream import PathId, PathName, Purpose, path_key
from relaxdp.encode.protocol import BATCH, PUBLIC, Codes, Encoding, Truths, code_dtype
from relaxdp.errors import LengthError, ObjectIdError
from relaxdp.law.level import Level

Watch = Callable[[Words, Words], None]

__all__ = ["KeptWords", "KeyedPermanent", "Watch", "code_dtype", "release_codes", "release_reports"]


def release_codes(
    encoding: Encoding,
    values: Any,
    object_ids: Any,
    *,
    key: Key,
    level: Level,
    path: PathId,
    first_row: int = 0,
    watch: Watch | None = None,
) -> Codes:
    """Return the reports of all objects as codes of shape (objects, symbols); `release_reports` returns a column.

    A pure function of its arguments: called again, in pieces, in another order or on another machine, it gives
    every object the same report. That no id is repeated is the caller's to check. `first_row` is for messages about a
    part of a table; `watch` is shown what the stream is given of every chunk (ids and truths, so it must be trusted).
    """
    draws = _Draws(encoding, key, path, level, first_row, watch)
    parts = [codes for codes, _ in draws.batches(values, object_ids)]
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


def release_reports(
    encoding: Encoding,
    values: Any,
    object_ids: Any,
    *,
    key: Key,
    level: Level,
    path: PathId,
    first_row: int = 0,
    watch: Watch | None = None,
) -> Any:
    """Return the reports of all objects as a finished Arrow column of `encoding.report_type`, whatever the encoding.

    The arguments are those of `release_codes`. Reports of many symbols are packed a batch at a time.
    """
    draws = _Draws(encoding, key, path, level, first_row, watch)
    parts = [encoding.column(codes, seeds) for codes, seeds in draws.batches(values, object_ids)]
    return parts[0] if len(parts) == 1 else pa.concat_arrays(parts)


class _Draws:
    """One release: what all of its batches share."""

    def __init__(
        self,
        encoding: Encoding,
        key: Key,
        path: PathId,
        level: Level,
        first_row: int,
        watch: Watch | None,
    ) -> None:
        self._encoding, self._first_row, self._watch = encoding, first_row, watch
        name = encoding.path_name(path)
        self._path = ArrayPath(path_key(key, name), encoding.alphabet, encoding.checked(level).threshold)
        self._kept = KeptWords(key, name)
        self._kinds: set[str] = set()

    def batches(self, values: Any, object_ids: Any) -> Iterator[tuple[Codes, Words | None]]:
        """Return codes and seeds of all objects, in order: all at once, or so many objects that the cache holds them.

        One symbol per object is little enough to stay together, and then walks may wait for one another to the end.
        """
        values, object_ids = as_column(values), as_column(object_ids)
        if len(values) != len(object_ids):
            raise LengthError(
                f"there are {len(values):,} values and {len(object_ids):,} ids. Nothing was released.",
                values=len(values),
                object_ids=len(object_ids),
            )
        symbols, objects = self._encoding.symbols, len(values)
        step = max(1, objects if symbols == 1 else BATCH // symbols)
        for first in range(0, max(objects, 1), step):
            last = min(first + step, objects)
            codes = np.empty((last - first, symbols), dtype=code_dtype(self._encoding.alphabet))
            seeds = np.empty(last - first, dtype=np.uint64) if self._encoding.seeded else None
            scattered: list[tuple[Codes, Selection, Codes]] = []
            for start in range(first, last, CHUNK):
                stop = min(start + CHUNK, last)
                rows = slice(start - first, stop - first)
                truths = self._encoding.truths(column_slice(values, start, stop), self._first_row + start)
                kind, groups = id_blocks(column_slice(object_ids, start, stop), self._first_row + start)
                self._kinds.add(kind)
                for chosen, blocks in groups:
                    permanent = self._draw(codes[rows], chosen, truths[chosen], blocks, scattered)
                    public = self._encoding.seeds(permanent)
                    if seeds is not None and public is not None:
                        seeds[rows][chosen] = public
            self._path.finish()
            for target, chosen, drawn in scattered:
                target[chosen] = drawn
            if len(self._kinds) > 1:
                raise ObjectIdError("all ids must be of one kind. Nothing was released.")
            yield codes, seeds

    def _draw(
        self,
        target: Codes,
        chosen: Selection,
        truths: Truths,
        blocks: Words,
        scattered: list[tuple[Codes, Selection, Codes]],
    ) -> KeyedPermanent:
        """Begin the walks of some objects of a chunk; what is drawn elsewhere first is noted in `scattered`."""
        prefix = blocks if truths.suffix is None else np.concatenate([blocks, truths.suffix])
        if self._watch is not None:
            self._watch(prefix, truths.index)
        permanent = KeyedPermanent(self._kept, blocks, prefix, truths.index)
        if self._encoding.symbols == 1:
            truth = self._encoding.symbol_truth(truths, 0, permanent)
            self._path.draw(target[:, 0], chosen, self._path.cipher.absorb(prefix), truth, truths.index)
            return permanent
        drawn = self._encoding.symbol_truths(truths, permanent).astype(target.dtype, copy=False)
        if isinstance(chosen, slice):
            target[:] = drawn
            drawn = target
        else:
            scattered.append((target, chosen, drawn))
        self._path.draw_all(drawn, self._path.cipher.absorb(prefix).copy(), truths.index)
        return permanent


class KeptWords:
    """The ciphers of kept randomness on one path, made when they are first asked for."""

    def __init__(self, key: Key, name: PathName) -> None:
        self._key, self._name = key, name
        self._ciphers: dict[Purpose, RowCipher] = {}

    def cipher(self, purpose: Purpose) -> RowCipher:
        """Return the cipher of one purpose."""
        if purpose not in self._ciphers:
            self._ciphers[purpose] = RowCipher(path_key(self._key, self._name, purpose))
        return self._ciphers[purpose]


class KeyedPermanent:
    """The kept randomness of objects on the path: a keyed function of object and truth.

    Seeds and cohorts are public, so they are a function of the object alone.
    """

    def __init__(self, kept: KeptWords, blocks: Words, prefix: Words, index: Words) -> None:
        self._kept, self._blocks, self._prefix, self._index = kept, blocks, prefix, index
        self._public: dict[Purpose, Words] = {}

    def words(self, purpose: Purpose, symbol: Words | int = 0) -> Words:
        """Return the first word of try 0."""
        if purpose not in PUBLIC:
            return self._words(purpose, self._prefix, self._index, symbol)
        if purpose not in self._public:
            self._public[purpose] = self._words(purpose, self._blocks, np.uint64(0), 0)
        return self._public[purpose]

    def _words(self, purpose: Purpose, prefix: Words, index: Words | np.uint64, symbol: Words | int) -> Words:
        cipher = self._kept.cipher(purpose)
        rows = cipher.last_block(cipher.absorb(prefix), index, symbol)
        return cipher.encrypt(rows)[:, 0].copy()
