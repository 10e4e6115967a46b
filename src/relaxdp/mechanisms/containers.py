"""Released codes back as the kind of column that came in: list, NumPy, pyarrow, pandas or polars.

A label that is None, the missing category, is what each of them has for a missing value.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from relaxdp.lazy_imports import pandas as pd
from relaxdp.lazy_imports import polars as pl
from relaxdp.mechanisms.packed import packed_matrix


def label_array(labels: Sequence[Any]) -> Any:
    """Return the labels without None as an Arrow array."""
    present = [label for label in labels if label is not None]
    wide = isinstance(present[0], int) and max(present) >= 2**63
    return pa.array(present, pa.uint64() if wide else None)


def dictionary_array(labels: Sequence[Any], codes: NDArray[np.integer]) -> Any:
    """Return `labels[codes]` as an Arrow array with the labels as its dictionary. None is a null of the column.

    It is not an entry of the dictionary, because neither Parquet nor pandas takes a null there.
    """
    dictionary = label_array(labels)
    if len(dictionary) == len(labels):
        return pa.DictionaryArray.from_arrays(pa.array(codes), dictionary)
    is_present = np.array([label is not None for label in labels])
    places = (np.cumsum(is_present) - is_present).astype(codes.dtype)
    return pa.DictionaryArray.from_arrays(pa.array(places[codes], mask=~is_present[codes]), dictionary)


def match_container(column: Any, labels: Sequence[Any], codes: NDArray[np.unsignedinteger]) -> Any:
    """Return `labels[codes]` as the kind of column that `column` is."""
    library = type(column).__module__.partition(".")[0]
    are_numbers = all(isinstance(label, float) or label is None for label in labels)
    if library == "pandas":
        data = np.array(labels, float)[codes] if are_numbers else _categorical(labels, codes)
        return pd.Series(data, index=getattr(column, "index", None), name=getattr(column, "name", None))
    if library in ("pyarrow", "polars"):
        array = dictionary_array(labels, codes)
        array = array.dictionary_decode() if are_numbers else array
        if library == "pyarrow":
            return array
        return pl.Series(column.name, array)
    if isinstance(column, np.ndarray):
        if codes.dtype == column.dtype and list(labels) == list(range(len(labels))):
            return codes  # coded data: the codes are the values
        return _label_array(column.dtype, labels)[codes]
    return [labels[code] for code in codes.tolist()]


def match_packed_container(column: Any, reports: Any) -> Any:
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


def _categorical(labels: Sequence[Any], codes: NDArray[np.integer]) -> Any:
    """Return pandas' column of categories, for which -1 is what is missing."""
    present = [label for label in labels if label is not None]
    if len(present) < len(labels):
        missing = list(labels).index(None)
        codes = np.where(codes == missing, -1, codes.astype(np.int64) - (codes > missing))
    return pd.Categorical.from_codes(codes, categories=present)


def _label_array(dtype: np.dtype[Any], labels: Sequence[Any]) -> NDArray[Any]:
    """Return the labels as an array of the column's own type if they fit, else of a type that keeps them whole."""
    if dtype.kind == "f" and all(isinstance(label, float) or label is None for label in labels):
        return np.array(labels, dtype=float)  # in which None is NaN
    if dtype.kind in "iu" and all(isinstance(label, int) for label in labels):
        limits = np.iinfo(dtype)
        if limits.min <= min(labels) and max(labels) <= limits.max:
            return np.array(labels, dtype=dtype)
    ends_in_nul = any(isinstance(label, str | bytes) and label[-1:] in ("\0", b"\0") for label in labels)
    return np.array(labels, dtype=object if dtype.kind == "O" or ends_in_nul else None)
