"""Repeated ids are rejected: two people under one id would show whether their answers are equal."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from relaxdp.errors import IdError
from relaxdp.sampling.columns import to_numpy

_STRIDE = 1 << 16


def reject_duplicate_ids(ids: pa.Array) -> None:
    """Raise an error where an id occurs twice. Ids in ascending order are checked without extra memory."""
    row = _find_repeat(ids) if len(ids) > 1 else None
    if row is not None:
        raise IdError(
            "The id occurs in an earlier row. Two people with the same id would show whether their answers are equal.",
            hint='Use one row per id. In pandas, df.drop_duplicates("patient") keeps the first row of each.',
            row=row + 1,
        )


def _find_repeat(ids: pa.Array) -> int | None:
    if pa.types.is_integer(ids.type):
        numbers = to_numpy(ids)
        return None if _are_ascending(numbers) else _find_repeated_number(numbers)
    ids = getattr(ids, "storage", ids)  # pyarrow compares the bytes of a UUID, not the UUID
    if pc.all(pc.less(ids[:-1], ids[1:])).as_py() or len(pc.unique(ids)) == len(ids):
        return None
    return _find_repeated_number(pc.dictionary_encode(ids).indices.to_numpy())


def _are_ascending(numbers: NDArray[Any]) -> bool:
    starts = range(0, len(numbers) - 1, _STRIDE)
    return all(
        (numbers[a + 1 : a + 1 + _STRIDE] > numbers[a : a + _STRIDE][: len(numbers) - 1 - a]).all() for a in starts
    )


def _find_repeated_number(numbers: NDArray[Any]) -> int | None:
    order = np.argsort(numbers, kind="stable")
    repeated = order[1:][numbers[order[1:]] == numbers[order[:-1]]]
    return int(repeated.min()) if repeated.size else None
