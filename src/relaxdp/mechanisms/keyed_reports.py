"""True values become reports on the keyed path: for one individual, and for columns of many.

Tables, data frames, Spark and devices all draw here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NoReturn

import numpy as np
import pyarrow as pa

from relaxdp.errors import ColumnError, IdError, on_error
from relaxdp.mechanisms.base import PUBLIC, Mechanism, TrueValues, make_path_name, require_level
from relaxdp.mechanisms.report_arrays import (
    BATCH,
    Codes,
    get_code_dtype,
    make_label_container,
    make_packed_container,
    make_report_column,
    make_report_list,
)
from relaxdp.sampling.arrow_columns import ids_to_arrow, read_ids, reject_duplicate_ids, to_arrow
from relaxdp.sampling.canonical_encoding import encode_canonical, get_value_kind
from relaxdp.sampling.keyed_path import CmacTags, find_report, iterate_draws, make_cmac_tags, make_path_sampler
from relaxdp.sampling.keyed_stream import (
    CHUNK,
    Ids,
    Messages,
    PathId,
    PathName,
    Purpose,
    Words,
    derive_path_key,
    generate_words,
)
from relaxdp.sampling.keys import Key, require_key
from relaxdp.theory.epsilon import Epsilon
from relaxdp.theory.level import Level

_ID_AS_TEXT = "Convert the id to text, such as str(patient)."

Watch = Callable[[Messages, TrueValues], None]


@on_error("Nothing was released.")
def release_column(mechanism: Mechanism, values: Any, ids: Any, *, key: Key, epsilon: Epsilon, path: PathId) -> Any:
    """Return the reports of a column, in the same kind of container as `values`."""
    array = ids_to_arrow(ids)
    where: Any = {"key": require_key(key), "level": mechanism.level(epsilon), "path": path}
    if mechanism.report_width is None:
        released = make_label_container(
            values, mechanism.labels, release_codes(mechanism, values, array, **where)[:, 0]
        )
    else:
        released = make_packed_container(values, release_reports(mechanism, values, array, **where))
    reject_duplicate_ids(array)
    return released


def release_codes(
    mechanism: Mechanism,
    values: Any,
    ids: Any,
    *,
    key: Key,
    level: Level,
    path: PathId,
    first_row: int = 0,
    watch: Watch | None = None,
) -> Codes:
    """Return the reports of all individuals as codes of shape (individuals, symbols).

    A pure function of its arguments: called again, in pieces, in another order or on another machine, it gives
    each individual the same report. The caller checks that no id is repeated. `values` are a column, or true values as
    the mechanism made them from a column. `first_row` is for messages about a part of a table. `watch` is called with
    the ids and true values of every chunk, so it must be trusted.
    """
    draws = _ReportSampler(mechanism, key, path, level, first_row, watch)
    parts = [codes for codes, _ in draws.batches(values, ids)]
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


def release_reports(
    mechanism: Mechanism,
    values: Any,
    ids: Any,
    *,
    key: Key,
    level: Level,
    path: PathId,
    first_row: int = 0,
    watch: Watch | None = None,
) -> Any:
    """Return the reports of all individuals as an Arrow array of `get_report_type(mechanism)`.

    The arguments are those of `release_codes`. Reports of many symbols are packed a batch at a time.
    """
    draws = _ReportSampler(mechanism, key, path, level, first_row, watch)
    parts = [make_report_column(mechanism, codes, seeds) for codes, seeds in draws.batches(values, ids)]
    return parts[0] if len(parts) == 1 else pa.concat_arrays(parts)


class _ReportSampler:
    """One release: the state that all of its batches share."""

    def __init__(
        self,
        mechanism: Mechanism,
        key: Key,
        path: PathId,
        level: Level,
        first_row: int,
        watch: Watch | None,
    ) -> None:
        self._mechanism, self._first_row, self._watch = mechanism, first_row, watch
        name, threshold = make_path_name(mechanism, path), require_level(mechanism, level).threshold
        self._kept = PermanentTags(key, name)
        self._path = make_path_sampler(derive_path_key(key, name), mechanism.alphabet, threshold)
        self._kinds: set[str] = set()

    def batches(self, values: Any, ids: Any) -> Iterator[tuple[Codes, Words | None]]:
        """Return codes and seeds of all individuals, in order, in batches that fit into the processor's cache.

        Reports of one symbol are small enough to stay together, and then walks may wait for one another to the end.
        """
        column = values if isinstance(values, TrueValues) else to_arrow(values)
        array = ids_to_arrow(ids)
        if len(column) != len(array):
            raise ColumnError(
                "There are {values:,} values and {ids:,} ids. Each value needs one id.",
                hint="Pass two columns of the same table.",
                values=len(column),
                ids=len(array),
            )
        symbols, rows = self._mechanism.symbols, len(column)
        step = max(1, rows if symbols == 1 else BATCH // symbols)
        for first in range(0, max(rows, 1), step):
            last = min(first + step, rows)
            codes = np.empty((last - first, symbols), dtype=get_code_dtype(self._mechanism.alphabet))
            seeds = np.empty(last - first, dtype=np.uint64) if self._mechanism.seeded else None
            for start in range(first, last, CHUNK):
                stop = min(start + CHUNK, last)
                part = slice(start - first, stop - first)
                own = read_ids(array[start:stop], self._first_row + start)
                self._kinds.add(own.kind)
                cells = column[start:stop]
                truths = (
                    cells
                    if isinstance(cells, TrueValues)
                    else self._mechanism.read_true_values(cells, self._first_row + start)
                )
                permanent = self._draw_chunk(codes[part], own, truths)
                public = None if seeds is None else self._mechanism.draw_seeds(permanent)
                if seeds is not None and public is not None:
                    seeds[part] = public
            self._path.finish()
            if len(self._kinds) > 1:
                raise IdError(
                    "The ids are of different kinds. All ids must be whole numbers, or all text, bytes or UUIDs.",
                    hint="Convert the ids to text, such as df['patient'].astype(str).",
                )
            yield codes, seeds

    def _draw_chunk(self, target: Codes, ids: Ids, truths: TrueValues) -> KeyedRandomness:
        """Begin the walks of the individuals of a chunk."""
        messages = Messages(ids, truths.suffix)
        if self._watch is not None:
            self._watch(messages, truths)
        permanent = KeyedRandomness(self._kept, Messages(ids), messages, truths.index)
        target[:] = self._mechanism.compute_true_symbols(truths, permanent)
        self._path.draw_reports(target, messages, truths.index)
        return permanent


class PermanentTags:
    """The keys of kept randomness on one path, made when they are first asked for."""

    def __init__(self, key: Key, name: PathName) -> None:
        self._key, self._name = key, name
        self._tags: dict[Purpose, CmacTags] = {}

    def tags(self, purpose: Purpose) -> CmacTags:
        """Return what makes the tags of one purpose."""
        if purpose not in self._tags:
            self._tags[purpose] = make_cmac_tags(derive_path_key(self._key, self._name, purpose))
        return self._tags[purpose]


class KeyedRandomness:
    """The kept randomness of objects on the path: a keyed function of object and truth.

    Seeds and cohorts are public, so they are a function of the object alone.
    """

    def __init__(self, kept: PermanentTags, ids: Messages, messages: Messages, index: Words) -> None:
        self._kept, self._ids, self._messages, self._index = kept, ids, messages, index
        self._public: dict[Purpose, Words] = {}

    def draw_words(self, purpose: Purpose, symbol: Words | int = 0) -> Words:
        """Return the first word of try 0."""
        if purpose not in PUBLIC:
            return self._kept.tags(purpose).tags(self._messages, self._index, symbol)[0]
        if purpose not in self._public:
            self._public[purpose] = self._kept.tags(purpose).tags(self._ids, None, 0)[0]
        return self._public[purpose]


# The last block of a row's tag holds the truth's index and 0; that of an id's tag holds 0 and this.
_ID_ALONE = 1


class RowTagger:
    """Keyed 64-bit tags of ids and of (id, true value) pairs on one path.

    Equal rows have equal tags, and that is all that a tag shows without the key.
    """

    def __init__(self, key: Key, mechanism: Mechanism, path: PathId) -> None:
        self._tags = make_cmac_tags(derive_path_key(key, make_path_name(mechanism, path), "fingerprint"))

    def tag_ids(self, ids: Any) -> Words:
        """Return the tags of ids alone."""
        parts = [self._tags.tags(Messages(own), None, _ID_ALONE)[0] for own, _ in _iterate_id_chunks(ids)]
        return np.concatenate(parts) if parts else np.empty(0, np.uint64)

    def tag_rows(self, ids: Any, values: TrueValues) -> Words:
        """Return the tags of ids with their true values."""
        parts = []
        for own, part in _iterate_id_chunks(ids):
            found = values[part]
            parts.append(self._tags.tags(Messages(own, found.suffix), found.index, 0)[0])
        return np.concatenate(parts) if parts else np.empty(0, np.uint64)


def _iterate_id_chunks(ids: Any) -> Iterator[tuple[Ids, slice]]:
    array = ids_to_arrow(ids)
    for start in range(0, len(array), CHUNK):
        part = slice(start, min(start + CHUNK, len(array)))
        yield read_ids(array[part.start : part.stop], start), part


class ReportPath:
    """All reports of one individual, past and future: a pure function of key, individual, true value and epsilon.

    Levels may be read in any order and any number of times. Everything read from one path costs the largest
    epsilon read. The `repr` shows neither the true value nor the key.
    """

    def __init__(self, mechanism: Mechanism, truth: Any, *, key: Key, object_id: object, path: PathId) -> None:
        key, truths = require_key(key), mechanism.read_true_values([truth])
        own = encode_id(object_id)
        prefix = own + (b"" if truths.suffix is None else truths.suffix.tobytes())
        name = make_path_name(mechanism, path)
        derived = derive_path_key(key, name)
        blocks = np.frombuffer(prefix, dtype="<u8").reshape(-1, 1, 2)
        ids, messages = (Messages(None, each) for each in (blocks[: len(own) // 16], blocks))
        permanent = KeyedRandomness(PermanentTags(key, name), ids, messages, truths.index)
        self._mechanism = mechanism
        self._where = str(path)
        self._words = partial(generate_words, derived, prefix, index=int(truths.index[0]))
        self._truths: list[int] = mechanism.compute_true_symbols(truths, permanent)[0].tolist()
        self.seeds = mechanism.draw_seeds(permanent)
        """The public seed of the individual, as an array of one; None where the mechanism has none."""

    def at(self, epsilon: Epsilon) -> Any:
        """Return the report at this level: always the same one."""
        codes = np.array(
            [self.draw_codes(self._mechanism.level(epsilon))], dtype=get_code_dtype(self._mechanism.alphabet)
        )
        return make_report_list(self._mechanism, codes, self.seeds)[0]

    def draw_codes(self, level: Level) -> list[int]:
        """Return the report as the codes of its symbols."""
        threshold = require_level(self._mechanism, level).threshold
        # Every reading draws the words again, so that no interrupt or other thread can leave a state half done.
        return [
            find_report(iterate_draws(self._words(symbol=symbol), self._mechanism.alphabet), threshold, truth=truth)
            for symbol, truth in enumerate(self._truths)
        ]

    def __reduce__(self) -> NoReturn:
        raise TypeError("A path cannot be pickled, because it contains a true value.")

    def __repr__(self) -> str:
        return f"<relaxdp.ReportPath of {self._where}>"


def encode_id(value: object) -> bytes:
    """Return the canonical bytes of an id, or reject what has no identity."""
    kind = get_value_kind(value)
    if kind in (None, "number"):
        what = "missing" if value is None else "a floating-point number" if kind else "of another type"
        raise IdError(
            "An id must be a whole number, text, bytes or a UUID. This id is {what}.", hint=_ID_AS_TEXT, what=what
        )
    try:
        return encode_canonical(value)
    except ValueError as problem:
        raise IdError("The id cannot be used: {problem}.", hint=_ID_AS_TEXT, problem=problem) from None
