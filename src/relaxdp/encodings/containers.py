"""Released codes back as the kind of column that came in: list, NumPy, pyarrow, pandas or polars."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from relaxdp.encodings.packed import packed_matrix
from relaxdp.lazy import pandas as pd
from relaxdp.lazy import polars as pl


def like(column: Any, labels: Sequence[Any], codes: NDArray[np.unsignedinteger]) -> Any:
    """Return `labels[codes]` as the kind of column that `column` is."""
    library = type(column).__module__.partition(".")[0]
    are_numbers = all(isinstance(label, float) for label in labels)
    if library == "pandas":
        data = np.array(labels)[codes] if are_numbers else pd.Categorical.from_codes(codes, categories=list(labels))
        return pd.Series(data, index=getattr(column, "index", None), name=getattr(column, "name", None))
    if library in ("pyarrow", "polars"):
        wide = not are_numbers and isinstance(labels[0], int) and max(labels) >= 2**63
        array = pa.DictionaryArray.from_arrays(pa.array(codes), pa.array(list(labels), pa.uint64() if wide else None))
        array = array.dictionary_decode() if are_numbers else array
        if library == "pyarrow":
            return array
        return pl.Series(column.name, array)
    if isinstance(column, np.ndarray):
        if codes.dtype == column.dtype and list(labels) == list(range(len(labels))):
            return codes  # coded data: the codes are the values
        return _label_array(column.dtype, labels)[codes]
    return [labels[code] for code in codes.tolist()]


def like_packed(column: Any, reports: Any) -> Any:
    """Return an Arrow array of packed reports as the kind of column that `column` is; NumPy gets a matrix of bytes."""
    library = type(column).__module__.partition(".")[0]
    if library == "pandas":
        data = pd.array(reports, dtype=pd.ArrowDtype(reports.type))
        return pd.Series(data, index=getattr(column, "index", None), name=getattr(column, "name", None))
    if library == "polars":
        return pl.Series(column.name, reports)
    if library == "pyarrow":
        return reports
    if isinstance(column, np.ndarray):
        return packed_matrix(reports, reports.type.byte_width)
    return reports.to_pylist()


def _label_array(dtype: np.dtype[Any], labels: Sequence[Any]) -> NDArray[Any]:
    """Return the labels as an array of the column's own type if they fit, else of a type that keeps them whole."""
    if dtype.kind in "iu" and all(isinstance(label, int) for label in labels):
        limits = np.iinfo(dtype)
        if limits.min <= min(labels) and max(labels) <= limits.max:
            return np.array(labels, dtype=dtype)
    ends_in_nul = any(isinstance(label, str | bytes) and label[-1:] in ("\0", b"\0") for label in labels)
    return np.array(labels, dtype=object if dtype.kind == "O" or ends_in_nul else None)
