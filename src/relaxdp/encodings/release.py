"""Arrays of truths -> arrays of reports on the keyed path, and the fingerprint of a table that is drawn from.

Tables, data frames and Spark all call this. A fingerprint is keyed and does not depend on the order of the rows: a
changed table is noticed, and nothing is shown. Every row has a tag, a CMAC under a key of its own purpose; the
fingerprint is the sum of the tags and their number. Without the key it is a random number.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from threading import Lock
from typing import Any, Self

import numpy as np
import pyarrow as pa

from relaxdp.draw.columns import Selection, as_column, column_slice, id_blocks
from relaxdp.draw.key import Key
from relaxdp.draw.path_arrays import ArrayPath
from relaxdp.draw.stream import CHUNK, PathId, PathName, Purpose, RowCipher, Words, path_key
from relaxdp.encodings.protocol import BATCH, PUBLIC, Codes, Encoding, Truths, code_dtype
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
        name, threshold = encoding.path_name(path), encoding.checked(level).threshold
        self._kept = KeptWords(key, name)
        self._path = ArrayPath(path_key(key, name), encoding.alphabet, threshold)
        self._kinds: set[str] = set()

    def batches(self, values: Any, object_ids: Any) -> Iterator[tuple[Codes, Words | None]]:
        """Return codes and seeds of all objects, in order: all at once, or so many objects that the cache holds them.

        One symbol per object is little enough to stay together, and then walks may wait for one another to the end.
        """
        dtype = code_dtype(self._encoding.alphabet)
        values, object_ids = as_column(values), as_column(object_ids)
        if len(values) != len(object_ids):
            raise LengthError(
                "there are {values:,} values and {object_ids:,} ids.",
                values=len(values),
                object_ids=len(object_ids),
            )
        symbols, objects = self._encoding.symbols, len(values)
        step = max(1, objects if symbols == 1 else BATCH // symbols)
        for first in range(0, max(objects, 1), step):
            last = min(first + step, objects)
            codes = np.empty((last - first, symbols), dtype=dtype)
            seeds = np.empty(last - first, dtype=np.uint64) if self._encoding.seeded else None
            scattered: list[tuple[Codes, Selection, Codes]] = []
            for start in range(first, last, CHUNK):
                stop = min(start + CHUNK, last)
                rows = slice(start - first, stop - first)
                kind, groups = id_blocks(column_slice(object_ids, start, stop), self._first_row + start)
                self._kinds.add(kind)
                truths = self._encoding.truths(column_slice(values, start, stop), self._first_row + start)
                for chosen, blocks in groups:
                    permanent = self._draw(codes[rows], chosen, truths[chosen], blocks, scattered)
                    public = None if seeds is None else self._encoding.seeds(permanent)
                    if seeds is not None and public is not None:
                        seeds[rows][chosen] = public
            self._path.finish()
            for target, chosen, drawn in scattered:
                target[chosen] = drawn
            if len(self._kinds) > 1:
                raise ObjectIdError("all ids must be of one kind.")
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


# The last block of a row's tag holds the truth's index and 0; that of an id's tag holds 0 and this.
_ID_ALONE = 1


class Fingerprint:
    """The sum of the tags of rows, in any order and from any thread."""

    def __init__(self, key: Key, name: PathName) -> None:
        self._derived = path_key(key, name, "fingerprint")
        self._sums = np.zeros(2, dtype=np.uint64)
        self._rows = 0
        self._lock = Lock()

    @classmethod
    def of(cls, key: Key, encoding: Encoding, path: PathId) -> Self:
        """Return the fingerprint of a table under a path, keyed by its first epoch: a table is the same in all."""
        return cls(key, encoding.path_name(PathId(path.release, path.attribute)))

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


def add_texts(texts: Iterable[str]) -> str:
    """Return the fingerprint of a table from those of its parts."""
    rows, sums = 0, [0, 0]
    for text in texts:
        count, words = text.split(":")
        rows += int(count)
        sums = [(total + int(word, 16)) % 2**64 for total, word in zip(sums, (words[:16], words[16:]), strict=True)]
    return f"{rows}:{sums[0]:016x}{sums[1]:016x}"
