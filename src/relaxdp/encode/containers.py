"""Released codes back as the kind of column that came in: list, NumPy, pyarrow, pandas or polars."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray


def like(column: Any, labels: Sequence[Any], codes: NDArray[np.unsignedinteger]) -> Any:
    """Return `labels[codes]` as the kind of column that `column` is."""
    library = type(column).__module__.partition(".")[0]
    are_numbers = all(isinstance(label, float) for label in labels)
    if library == "pandas":
        import pandas as pd  # noqa: PLC0415 (only where the caller has it)

        data = np.array(labels)[codes] if are_numbers else pd.Categorical.from_codes(codes, categories=list(labels))
        return pd.Series(data, index=getattr(column, "index", None), name=getattr(column, "name", None))
    if library in ("pyarrow", "polars"):
        array = pa.DictionaryArray.from_arrays(pa.array(codes), pa.array(list(labels)))
        array = array.dictionary_decode() if are_numbers else array
        if library == "pyarrow":
            return array
        import polars as pl  # noqa: PLC0415

        return pl.Series(column.name, array)
    if isinstance(column, np.ndarray):
        if codes.dtype == column.dtype and list(labels) == list(range(len(labels))):
            return codes  # coded data: the codes are the values
        if column.dtype.kind == "O" or (column.dtype.kind in "iu" and _fit(labels, column.dtype)):
            return np.array(labels, dtype=column.dtype)[codes]
        return np.array(labels)[codes]
    return [labels[code] for code in codes.tolist()]


def _fit(numbers: Sequence[int], dtype: np.dtype[Any]) -> bool:
    return bool(np.iinfo(dtype).min <= min(numbers) and max(numbers) <= np.iinfo(dtype).max)
