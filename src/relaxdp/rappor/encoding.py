"""Bloom: a word becomes the bits of a Bloom filter, and each bit is a randomized response. RAPPOR on the keyed path."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from fractions import Fraction
from math import comb
from typing import Any, NamedTuple, Self
from unicodedata import normalize

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from relaxdp.draw.columns import as_arrow, as_column, as_objects, column_slice, id_blocks, is_objects, read_ids
from relaxdp.draw.key import Key
from relaxdp.draw.stream import CHUNK, Messages, PathId, Words
from relaxdp.encodings.packed import BitEncoding, packed_array
from relaxdp.encodings.protocol import (
    Codes,
    Domain,
    Encoding,
    Joint,
    Option,
    Packed,
    Parameters,
    Permanent,
    Truths,
)  # fmt: skip
from relaxdp.encodings.registry import register
from relaxdp.encodings.release import KeptWords, KeyedPermanent, release_codes
from relaxdp.errors import EncodingError, LengthError, RapporError, UndeclaredValueError, refusing
from relaxdp.law.level import Level, Scale
from relaxdp.law.support import Support
from relaxdp.rappor.filter import ALL_COHORTS, MOST_BITS, MOST_COHORTS, MOST_HASHES, BloomShape, bloom_threshold

_HEADER_BYTES = 8


@register
class BloomEncoding(BitEncoding):
    """The Bloom filter of a word in one cohort: k bits of which the word sets h; every bit at epsilon / (2 h).

    A word has no index, so its own bytes go into the stream. The cohort is part of the path: a device that changed it
    would be on another path. Without a cohort it stands for the whole release, in ledgers and files.

    Claim: the guarantee of the whole report is reached and not exceeded, at every level and by all levels together;
    tests/exact/rappor/test_encoding.py.
    """

    name = "bloom"
    meaning = "a Bloom filter of a word that is looked for among candidates"
    alphabet = 2
    joint: Joint = "independent"
    domain: Domain = "words"
    takes = (
        Option("bits", "How many bits a filter has.", 1, MOST_BITS),
        Option("hashes", "How many bits a word sets.", 1, MOST_HASHES),
        Option("cohorts", "Into how many cohorts devices fall, each with hashes of its own.", 1, MOST_COHORTS),
    )
    parameters = Parameters("the shape of the reports", "same_shape")
    cohort: int

    def __init__(self, shape: BloomShape, cohort: int = ALL_COHORTS) -> None:
        """Say which bits, hashes and cohorts there are, and which cohort this is."""
        if not isinstance(shape, BloomShape):
            raise EncodingError(
                "Bloom filters are of words that nobody declares: `relaxdp rappor` and `release_bloom` make them."
            )
        if cohort != ALL_COHORTS:
            shape.check_cohort(cohort)
        self.shape, self.cohort, self.cohorts = shape, cohort, shape.cohorts
        self.symbols = shape.bits
        self.report_width = -(-shape.bits // 8)

    @classmethod
    def make(cls, declared: Any, options: Mapping[str, Any]) -> Self:
        """Return the encoding of all cohorts together."""
        return cls(BloomShape(**options))

    def for_object(self, object_id: str, *, key: Key, path: PathId) -> Encoding:
        """Return the encoding of an object's cohort."""
        return BloomEncoding(self.shape, int(cohorts_of(self.shape, [object_id], key=key, path=path)[0]))

    def _answer(self, given: Any) -> str:
        text = normalize("NFC", given) if isinstance(given, str) else given
        return str(as_words(self.shape, [text])[0].as_py())

    def _no_answer(self) -> UndeclaredValueError:
        if self.shape.is_boolean:
            return UndeclaredValueError("the answer is not false or true.")
        return UndeclaredValueError("the answer is not text.")

    @property
    def params(self) -> bytes:
        """The numbers of bits, hashes and cohorts, the cohort, and the name of the hash."""
        return self.shape.params(self.cohort)

    @property
    def options(self) -> dict[str, Any]:
        """The numbers of bits, hashes and cohorts, and the cohort unless it stands for all."""
        numbers = {"bits": self.shape.bits, "hashes": self.shape.hashes, "cohorts": self.shape.cohorts}
        return numbers if self.cohort == ALL_COHORTS else {**numbers, "cohort": self.cohort}

    @property
    def labels(self) -> range:
        """The numbers of the bits: what is counted. Words are found from the counts of all cohorts."""
        return range(self.shape.bits)

    @property
    def scale(self) -> Scale:
        """That of the shape: all cohorts have the same levels."""
        return self.name, self.shape.params(ALL_COHORTS)

    def threshold(self, epsilon: Decimal) -> int:
        """Return the threshold of each bit."""
        return bloom_threshold(self.shape, epsilon)

    def truths(self, column: Any, first_row: int = 0) -> Truths:
        """Return the words' canonical bytes, which must be equally many blocks (see `release_bloom`)."""
        words = as_words(self.shape, column, first_row)
        groups = list(id_blocks(words, first_row)[1])
        if len(groups) > 1:
            raise RapporError("words of different lengths are encoded with `release_bloom`.")
        suffix = groups[0][1] if groups else np.empty((1, 0, 2), dtype=np.uint64)
        return Truths(np.zeros(len(words), dtype=np.uint64), suffix)

    def symbol_truth(self, truths: Truths, symbol: int, permanent: Permanent) -> Words:
        """Return one bit of each filter."""
        return np.asarray(self.symbol_truths(truths, permanent)[:, symbol], dtype=np.uint64)

    def symbol_truths(self, truths: Truths, permanent: Permanent) -> Codes:
        """Return the Bloom filters of all words."""
        assert truths.suffix is not None  # noqa: S101 (made by `truths` above)
        rows = np.ascontiguousarray(truths.suffix.transpose(1, 0, 2)).reshape(len(truths), -1).view(np.uint8)
        lengths = np.ascontiguousarray(rows[:, 4:_HEADER_BYTES]).view("<u4").ravel()
        filters = np.zeros((len(truths), self.symbols), dtype=np.uint8)
        known: dict[bytes, list[int]] = {}
        for row, length in enumerate(lengths.tolist()):
            word = rows[row, _HEADER_BYTES : _HEADER_BYTES + length].tobytes()
            if word not in known:
                known[word] = list(self.shape.bits_of(word, self.cohort))
            filters[row, known[word]] = 1
        return filters

    def release_words(
        self, cells: Any, ids: Any, *, key: Key, level: Level, path: PathId, first_row: int
    ) -> tuple[list[Any], Any]:
        """Return the cohorts and packed reports of a column of a table, and its words as the stream takes them."""
        words = as_words(self.shape, cells, first_row)
        made = release_bloom(self.shape, words, ids, key=key, level=level, path=path, first_row=first_row)
        return [pa.array(made.cohorts), packed_array(made.packed)], words

    def support(self, keep: Fraction) -> Support:
        """Return the chances of a bit."""
        return Support.of_one_symbol(keep, 2)

    def distance(self, keep: Fraction) -> Fraction:
        """Return the distance of all bits in which two words can differ: that of how many of them agree with one."""
        bits, same = self.shape.differing, (1 + keep) / 2
        law = [comb(bits, agree) * same**agree * (1 - same) ** (bits - agree) for agree in range(bits + 1)]
        return sum((max(one - other, Fraction(0)) for one, other in zip(law, law[::-1], strict=True)), Fraction(0))


def as_words(shape: BloomShape, column: Any, first_row: int = 0) -> Any:
    """Return a column of words as Arrow text, or refuse it. An error names the row, never the word.

    For a boolean: false and true, as booleans, as 0 and 1, or as text.
    """
    column = as_objects(as_column(column))
    array = _as_text(list(column) if is_objects(column) else column, boolean=shape.is_boolean)
    if array is None:
        what = "booleans, 0 and 1, or the words false and true" if shape.is_boolean else "text"
        raise RapporError("the words must be {what}.", what=what)
    if array.null_count:
        row = first_row + pc.index(pc.is_null(array), True).as_py() + 1
        raise RapporError("the word is missing.", row=row)
    if shape.is_boolean:
        known = pc.is_in(array, value_set=pa.array(["false", "true"], pa.large_string()))
        if not pc.all(known, min_count=0).as_py():
            row = first_row + pc.index(known, False).as_py() + 1
            raise RapporError("the value is neither false nor true.", row=row)
    return array


def _as_text(column: Any, *, boolean: bool) -> Any | None:
    """Return Arrow text, or None for anything else: an exception's context would carry a truth along."""
    try:
        array = as_arrow(column)
        if boolean and pa.types.is_integer(array.type):
            array = pc.if_else(pc.equal(array, 0), "false", pc.if_else(pc.equal(array, 1), "true", "neither"))
        elif boolean and pa.types.is_boolean(array.type):
            array = pc.if_else(array, "true", "false")
        elif boolean and pa.types.is_large_string(array.type):
            lower = pc.utf8_lower(array)
            array = pc.if_else(pc.equal(lower, "0"), "false", pc.if_else(pc.equal(lower, "1"), "true", lower))
        if pa.types.is_null(array.type) or pa.types.is_string(array.type):
            array = array.cast(pa.large_string())
        if not pa.types.is_large_string(array.type):
            return None
        array.validate(full=True)
    except (pa.ArrowException, TypeError, UnicodeError):
        return None
    return array


Cohorts = NDArray[np.uint32]
_HEADER_BYTES, _BLOCK = 8, 16


class BloomReports(NamedTuple):
    """The public part of many devices: their cohorts, and their reports as packed bits."""

    cohorts: Cohorts
    packed: Packed


def cohorts_of(shape: BloomShape, object_ids: Any, *, key: Key, path: PathId, first_row: int = 0) -> Cohorts:
    """Return the cohort of each device: a keyed function of its id, the same for every word and at every level.

    A cohort that knew the word would give it away: it travels in the open.
    """
    object_ids = as_column(object_ids)
    kept = KeptWords(key, BloomEncoding(shape).path_name(path))
    cohorts = np.empty(len(object_ids), dtype=np.uint32)
    for start in range(0, len(object_ids), CHUNK):
        ids = Messages(read_ids(column_slice(object_ids, start, start + CHUNK), first_row + start))
        words = KeyedPermanent(kept, ids, ids, np.zeros(len(ids), np.uint64)).words("cohort")
        cohorts[start : start + CHUNK] = words % np.uint64(shape.cohorts)
    return cohorts


@refusing("Nothing was released.")
def release_bloom(
    shape: BloomShape,
    words: Any,
    object_ids: Any,
    *,
    key: Key,
    level: Level,
    path: PathId,
    first_row: int = 0,
) -> BloomReports:
    """Return cohorts and reports of many devices at one level: a pure function, like `release_codes`.

    Every cohort is a path of its own, and words of equally many blocks go together.
    """
    object_ids, texts = as_column(object_ids), as_words(shape, words, first_row)
    if len(texts) != len(object_ids):
        raise LengthError(
            "there are {values:,} words and {object_ids:,} ids.",
            values=len(texts),
            object_ids=len(object_ids),
        )
    cohorts = cohorts_of(shape, object_ids, key=key, path=path, first_row=first_row)
    blocks = (pc.binary_length(texts).to_numpy(zero_copy_only=False).astype(np.int64) + _HEADER_BYTES - 1) // _BLOCK
    packed = np.zeros((len(texts), -(-shape.bits // 8)), dtype=np.uint8)
    order = np.lexsort((blocks, cohorts))
    edges = np.flatnonzero((np.diff(cohorts[order]) != 0) | (np.diff(blocks[order]) != 0)) + 1
    for chosen in np.split(order, edges) if len(order) else []:
        encoding = BloomEncoding(shape, int(cohorts[chosen[0]]))
        codes = release_codes(
            encoding,
            texts.take(chosen),
            _take(object_ids, chosen),
            key=key,
            level=level,
            path=path,
        )
        packed[chosen] = encoding.pack(codes)
    return BloomReports(cohorts, packed)


def _take(column: Any, places: NDArray[np.intp]) -> Any:
    """Return some rows of any kind of column."""
    if hasattr(column, "iloc"):
        return column.iloc[places]
    if hasattr(column, "take") and not isinstance(column, np.ndarray):  # pyarrow
        return column.take(places)
    if isinstance(column, list | tuple):
        return [column[place] for place in places.tolist()]
    return column[places]
