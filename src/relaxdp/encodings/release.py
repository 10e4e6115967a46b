"""Arrays of truths -> arrays of reports on the keyed path, and keyed tags of rows, by which tables are compared.

Tables, data frames and Spark all call this.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from relaxdp.draw.columns import as_column, column_slice, read_ids
from relaxdp.draw.key import Key
from relaxdp.draw.path import KeyedTags, keyed_path, keyed_tags
from relaxdp.draw.stream import CHUNK, Ids, Messages, PathId, PathName, Purpose, Words, path_key
from relaxdp.encodings.protocol import BATCH, PUBLIC, Codes, Encoding, Truths, code_dtype
from relaxdp.errors import LengthError, ObjectIdError
from relaxdp.law.level import Level

Watch = Callable[[Messages, Truths], None]


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
    every object the same report. That no id is repeated is the caller's to check. `values` are a column, or truths as
    the encoding made them of one. `first_row` is for messages about a part of a table; `watch` is shown what the stream
    is given of every chunk (ids and truths, so it must be trusted).
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
        self._path = keyed_path(path_key(key, name), encoding.alphabet, threshold)
        self._kinds: set[str] = set()

    def batches(self, values: Any, object_ids: Any) -> Iterator[tuple[Codes, Words | None]]:
        """Return codes and seeds of all objects, in order: all at once, or so many objects that the cache holds them.

        One symbol per object is little enough to stay together, and then walks may wait for one another to the end.
        """
        dtype = code_dtype(self._encoding.alphabet)
        values, object_ids = _column(values), as_column(object_ids)
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
            for start in range(first, last, CHUNK):
                stop = min(start + CHUNK, last)
                rows = slice(start - first, stop - first)
                ids = read_ids(column_slice(object_ids, start, stop), self._first_row + start)
                self._kinds.add(ids.kind)
                truths = _truths(self._encoding, values, start, stop, self._first_row)
                permanent = self._draw(codes[rows], ids, truths)
                public = None if seeds is None else self._encoding.seeds(permanent)
                if seeds is not None and public is not None:
                    seeds[rows] = public
            self._path.finish()
            if len(self._kinds) > 1:
                raise ObjectIdError("all ids must be of one kind.")
            yield codes, seeds

    def _draw(self, target: Codes, ids: Ids, truths: Truths) -> KeyedPermanent:
        """Begin the walks of the objects of a chunk."""
        messages = Messages(ids, truths.suffix)
        if self._watch is not None:
            self._watch(messages, truths)
        permanent = KeyedPermanent(self._kept, Messages(ids), messages, truths.index)
        if self._encoding.symbols == 1:
            target[:, 0] = self._encoding.symbol_truth(truths, 0, permanent)
        else:
            target[:] = self._encoding.symbol_truths(truths, permanent)
        self._path.draw_objects(target, messages, truths.index)
        return permanent


def _column(values: Any) -> Any:
    return values if isinstance(values, Truths) else as_column(values)


def _truths(encoding: Encoding, values: Any, start: int, stop: int, first_row: int) -> Truths:
    """Return a part of the truths: of a column, or of what an encoding made of one before."""
    if isinstance(values, Truths):
        return values[start:stop]
    return encoding.truths(column_slice(values, start, stop), first_row + start)


class KeptWords:
    """The keys of kept randomness on one path, made when they are first asked for."""

    def __init__(self, key: Key, name: PathName) -> None:
        self._key, self._name = key, name
        self._tags: dict[Purpose, KeyedTags] = {}

    def tags(self, purpose: Purpose) -> KeyedTags:
        """Return what makes the tags of one purpose."""
        if purpose not in self._tags:
            self._tags[purpose] = keyed_tags(path_key(self._key, self._name, purpose))
        return self._tags[purpose]


class KeyedPermanent:
    """The kept randomness of objects on the path: a keyed function of object and truth.

    Seeds and cohorts are public, so they are a function of the object alone.
    """

    def __init__(self, kept: KeptWords, ids: Messages, messages: Messages, index: Words) -> None:
        self._kept, self._ids, self._messages, self._index = kept, ids, messages, index
        self._public: dict[Purpose, Words] = {}

    def words(self, purpose: Purpose, symbol: Words | int = 0) -> Words:
        """Return the first word of try 0."""
        if purpose not in PUBLIC:
            return self._kept.tags(purpose).tags(self._messages, self._index, symbol)[0]
        if purpose not in self._public:
            self._public[purpose] = self._kept.tags(purpose).tags(self._ids, None, 0)[0]
        return self._public[purpose]


# The last block of a row's tag holds the truth's index and 0; that of an id's tag holds 0 and this.
_ID_ALONE = 1


class RowTags:
    """Keyed 64-bit tags of ids and of (id, true value) pairs on one path.

    Equal rows have equal tags, and that is all that a tag shows without the key.
    """

    def __init__(self, key: Key, encoding: Encoding, path: PathId) -> None:
        self._tags = keyed_tags(path_key(key, encoding.path_name(path), "fingerprint"))

    def tag_ids(self, ids: Any) -> Words:
        """Return the tags of ids alone."""
        parts = [self._tags.tags(Messages(own), None, _ID_ALONE)[0] for own, _ in _chunks(ids)]
        return np.concatenate(parts) if parts else np.empty(0, np.uint64)

    def tag_rows(self, ids: Any, values: Truths) -> Words:
        """Return the tags of ids with their true values."""
        parts = []
        for own, part in _chunks(ids):
            found = values[part]
            parts.append(self._tags.tags(Messages(own, found.suffix), found.index, 0)[0])
        return np.concatenate(parts) if parts else np.empty(0, np.uint64)


def _chunks(ids: Any) -> Iterator[tuple[Ids, slice]]:
    ids = as_column(ids)
    for start in range(0, len(ids), CHUNK):
        part = slice(start, min(start + CHUNK, len(ids)))
        yield read_ids(column_slice(ids, part.start, part.stop), start), part
