"""Repeated ids: two people under one id would show whether their answers are equal, so they are refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow.compute as pc
from numpy.typing import NDArray

from relaxdp.draw.columns import as_arrow, as_objects, code_points, is_objects
from relaxdp.draw.kernel.loaded import kernel
from relaxdp.errors import ObjectIdError

_STRIDE = 1 << 16


def refuse_repeats(column: Any) -> None:
    """Raise an error where an id occurs twice. Ids in ascending order are checked without extra memory."""
    row = _first_repeat(column.to_numpy() if hasattr(column, "iloc") else column) if len(column) > 1 else None
    if row is not None:
        raise ObjectIdError(
            "the id stands in an earlier row already. One id is one object: two people under one "
            "id would show whether their answers are equal.",
            row=row + 1,
        )


def _first_repeat(column: Any) -> int | None:
    if isinstance(column, np.ndarray) and column.dtype.kind in "iu":
        return None if _ascending(column) else _first_repeat_in(column)
    if isinstance(column, np.ndarray) and column.dtype.kind == "U" and _ascending_text(column):
        return None  # Arrow's comparison is as fast, but the way to Arrow takes longer than all else
    column = as_objects(column)
    if is_objects(column):
        seen: set[Any] = set()
        for row, item in enumerate(column):
            if item in seen:
                return row
            seen.add(item)
        return None
    array = as_arrow(column, widen=False)
    array = getattr(array, "storage", array)  # pyarrow compares the bytes of a UUID, not the UUID
    if pc.all(pc.less(array[:-1], array[1:])).as_py() or len(pc.unique(array)) == len(array):
        return None
    return _first_repeat_in(pc.dictionary_encode(array).indices.to_numpy())


def _ascending(column: NDArray[Any]) -> bool:
    starts = range(0, len(column) - 1, _STRIDE)
    return all((column[a + 1 : a + 1 + _STRIDE] > column[a : a + _STRIDE][: len(column) - 1 - a]).all() for a in starts)


def _ascending_text(column: NDArray[Any]) -> bool:
    found = kernel()
    if found is None or not (column.nbytes and column.flags.c_contiguous and column.dtype.isnative):
        return _ascending(column)
    return found.ascending(code_points(column))


def _first_repeat_in(column: NDArray[Any]) -> int | None:
    order = np.argsort(column, kind="stable")
    repeated = order[1:][column[order[1:]] == column[order[:-1]]]
    return int(repeated.min()) if repeated.size else None
