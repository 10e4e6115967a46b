"""True values become reports on the keyed path: for one individual, and for columns of many.

Tables, data frames, Spark and devices all draw here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NoReturn

import numpy as np
import pyarrow as pa

from relaxdp.errors import IdError, add_consequence
from relaxdp.mechanisms.base import PUBLIC, Mechanism, TrueValues, draw_seeds, make_path_key_info, require_level
from relaxdp.mechanisms.report_arrays import (
    BATCH,
    Codes,
    ReportPart,
    get_code_dtype,
    join_report_parts,
    make_report_container,
    make_report_list,
)
from relaxdp.sampling.arrow_columns import check_lengths, ids_to_arrow, read_ids, reject_duplicate_ids, to_arrow
from relaxdp.sampling.keyed_path import compute_tags, replace_symbols_by_reports
from relaxdp.sampling.keyed_stream import (
    CHUNK,
    Ids,
    MacInputs,
    PathId,
    PathKeyInfo,
    Purpose,
    Words,
    derive_path_key,
    encode_canonical,
    get_value_kind,
)
from relaxdp.sampling.keys import Key, require_key
from relaxdp.theory.epsilon import Epsilon
from relaxdp.theory.randomized_response import Level

_ID_AS_TEXT = "Convert the id to text, such as str(patient)."


class KeyedRandomness:
    """The kept randomness of individuals on one path: a keyed function of individual and true value."""

    def __init__(self, key: Key, name: PathKeyInfo, ids: MacInputs, truths: TrueValues | None = None) -> None:
        self._key, self._name, self._ids, self._truths = key, name, ids, truths
        self._public: dict[Purpose, Words] = {}

    def draw_words(self, purpose: Purpose, symbol: Words | int = 0) -> Words:
        """Return a word per individual, the first of try 0; public words are a function of the individual alone."""
        if purpose not in PUBLIC:
            assert self._truths is not None  # noqa: S101 (only public words are drawn without true values)
            messages = self._ids.extend(self._truths.suffix)
            return compute_tags(self._derive_key(purpose), messages, self._truths.index, symbol)
        if purpose not in self._public:
            self._public[purpose] = compute_tags(self._derive_key(purpose), self._ids, None)
        return self._public[purpose]

    def _derive_key(self, purpose: Purpose) -> bytes:
        return derive_path_key(self._key, self._name, purpose)


class _PathChunk:
    """A chunk of at most CHUNK individuals on one path, whose codes can be drawn at any level."""

    def __init__(self, mechanism: Mechanism, key: Key, path: PathId, ids: MacInputs, truths: TrueValues) -> None:
        name = make_path_key_info(mechanism, path)
        permanent = KeyedRandomness(key, name, ids, truths)
        self._mechanism, self._index, self._messages = mechanism, truths.index, ids.extend(truths.suffix)
        self._derived = derive_path_key(key, name)
        self._symbols = mechanism.compute_true_symbols(truths, permanent)
        self.seeds = draw_seeds(mechanism, permanent)

    def draw_codes(self, level: Level) -> Codes:
        alphabet, threshold = self._mechanism.alphabet, require_level(self._mechanism, level).threshold
        # A copy, so that no interrupt or other thread can leave a level half drawn.
        codes = np.array(self._symbols, get_code_dtype(alphabet), order="C")
        replace_symbols_by_reports(self._derived, alphabet, threshold, self._messages, self._index, codes)
        return codes


@add_consequence("Nothing was released.")
def release_column(mechanism: Mechanism, values: Any, ids: Any, *, key: Key, epsilon: Epsilon, path: PathId) -> Any:
    """Release a column: return its reports in the same kind of container as `values`."""
    array = ids_to_arrow(ids)
    chunks = _iterate_reports(mechanism, values, array, require_key(key), mechanism.level(epsilon), path, 0)
    released = make_report_container(mechanism, values, len(array), chunks)
    reject_duplicate_ids(array)
    return released


def release_codes(
    mechanism: Mechanism, values: Any, ids: Any, *, key: Key, level: Level, path: PathId, first_row: int = 0
) -> Codes:
    """Return the reports of all individuals as codes of shape (individuals, symbols).

    A pure function of its arguments: called again, in pieces, in another order or on another machine, it gives
    each individual the same report. The caller checks that no id is repeated. `values` are a column, or true values as
    the mechanism made them from a column. `first_row` is for messages about a part of a table.
    """
    chunks = _iterate_reports(mechanism, values, ids, key, level, path, first_row)
    return np.concatenate([codes for codes, _ in chunks])


def release_reports(
    mechanism: Mechanism, values: Any, ids: Any, *, key: Key, level: Level, path: PathId, first_row: int = 0
) -> pa.Array:
    """Return the reports of all individuals as an Arrow array; the arguments are those of `release_codes`."""
    chunks = _iterate_reports(mechanism, values, ids, key, level, path, first_row)
    return join_report_parts(mechanism, chunks)


def _iterate_reports(
    mechanism: Mechanism, values: Any, ids: Any, key: Key, level: Level, path: PathId, first_row: int
) -> Iterator[ReportPart]:
    """Yield the reports of all individuals as codes and seeds, in chunks that fit into the processor's cache."""
    column, array = values if isinstance(values, TrueValues) else to_arrow(values), ids_to_arrow(ids)
    check_lengths(values=column, ids=array)
    step = max(1, min(CHUNK, BATCH // mechanism.symbols))
    for start in range(0, max(len(column), 1), step):
        own, cells = (MacInputs(read_ids(array[start : start + step], first_row + start)), column[start : start + step])
        truths = cells if isinstance(cells, TrueValues) else mechanism.read_true_values(cells, first_row + start)
        chunk = _PathChunk(mechanism, key, path, own, truths)
        yield chunk.draw_codes(level), chunk.seeds


class RowTagger:
    """Keyed 64-bit tags of ids and of (id, true value) pairs on one path.

    Equal rows have equal tags, and that is all that a tag shows without the key.
    """

    def __init__(self, key: Key, mechanism: Mechanism, path: PathId) -> None:
        self._derived = derive_path_key(key, make_path_key_info(mechanism, path), "fingerprint")

    def tag_ids(self, ids: Any) -> Words:
        """Return the tags of ids alone. Their last block holds 0 and 1, that of a row the true value's index and 0."""
        return self._tag_in_chunks(ids, lambda own, _: compute_tags(self._derived, MacInputs(own), None, 1))

    def tag_rows(self, ids: Any, values: TrueValues) -> Words:
        """Return the tags of ids with their true values."""

        def tag(own: Ids, part: slice) -> Words:
            truths = values[part]
            return compute_tags(self._derived, MacInputs(own, truths.suffix), truths.index)

        return self._tag_in_chunks(ids, tag)

    def _tag_in_chunks(self, ids: Any, tag: Callable[[Ids, slice], Words]) -> Words:
        array = ids_to_arrow(ids)
        parts = [slice(start, min(start + CHUNK, len(array))) for start in range(0, len(array), CHUNK)]
        tags = [tag(read_ids(array[part.start : part.stop], part.start), part) for part in parts]
        return np.concatenate([np.empty(0, np.uint64), *tags])


class ReportPath:
    """All reports of one individual, past and future: a pure function of key, individual, true value and epsilon.

    Levels may be read in any order and any number of times. Everything read from one path costs the largest
    epsilon read. The `repr` shows neither the true value nor the key.
    """

    def __init__(self, mechanism: Mechanism, truth: Any, *, key: Key, object_id: object, path: PathId) -> None:
        truths, blocks = mechanism.read_true_values([truth]), np.frombuffer(encode_id(object_id), "<u8")
        self._mechanism, self._where = mechanism, str(path)
        ids = MacInputs(None, blocks.reshape(-1, 1, 2).astype(np.uint64))
        self._individual = _PathChunk(mechanism, require_key(key), path, ids, truths)

    def at(self, epsilon: Epsilon) -> Any:
        """Return the report at this level: always the same one."""
        return self.draw_report(self._mechanism.level(epsilon))

    def draw_report(self, level: Level) -> Any:
        """Return the report at a level of the mechanism."""
        return make_report_list(self._mechanism, self.draw_codes(level), self._individual.seeds)[0]

    def draw_codes(self, level: Level) -> Codes:
        """Return the report as the codes of its symbols, of shape (1, symbols)."""
        return self._individual.draw_codes(level)

    def __reduce__(self) -> NoReturn:
        raise TypeError("A path cannot be pickled, because it contains a true value.")

    def __repr__(self) -> str:
        return f"<relaxdp.ReportPath of {self._where}>"


def encode_id(value: object) -> bytes:
    """Encode an id as its canonical bytes, or reject what has no identity."""
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
