"""Words of many devices -> their cohorts and reports, on the keyed path."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pyarrow.compute as pc
from numpy.typing import NDArray

from relaxdp.draw.columns import as_column, column_slice, id_blocks
from relaxdp.draw.key import Key
from relaxdp.draw.stream import CHUNK, PathId
from relaxdp.encodings.bloom import BloomEncoding, as_words
from relaxdp.encodings.bloom_filter import BloomShape
from relaxdp.encodings.packed import Packed
from relaxdp.encodings.release import KeptWords, KeyedPermanent, Watch, release_codes
from relaxdp.errors import LengthError, refusing
from relaxdp.law.level import Level

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
        part = cohorts[start : start + CHUNK]
        for chosen, blocks in id_blocks(column_slice(object_ids, start, start + CHUNK), first_row + start)[1]:
            words = KeyedPermanent(kept, blocks, blocks, np.zeros(blocks.shape[1], np.uint64)).words("cohort")
            part[chosen] = words % np.uint64(shape.cohorts)
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
    watch: Watch | None = None,
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
            watch=watch,
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
