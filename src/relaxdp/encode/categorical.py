"""Categorical: one symbol, one of m declared values. The randomized response of the paper."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from relaxdp.draw.blocks import Words
from relaxdp.draw.columns import as_column
from relaxdp.encode.declared import NOTHING, DeclaredEncoding
from relaxdp.encode.histogram import histogram
from relaxdp.encode.protocol import Codes, Joint, Permanent, Truths, code_dtype
from relaxdp.encode.registry import register
from relaxdp.errors import CountsError, UndeclaredValueError
from relaxdp.law.support import Support
from relaxdp.law.threshold import release_threshold


@register
class CategoricalEncoding(DeclaredEncoding):
    """The truth is the index of a declared value, and so is the report."""

    name = "categorical"
    symbols = 1
    joint: Joint = "exclusive"

    def __init__(self, values: Sequence[Hashable]) -> None:
        """Declare the values, in an order that is part of the path. They are public."""
        super().__init__(values)
        self.alphabet = len(self.values)

    def threshold(self, epsilon: Decimal) -> int:
        """Return the threshold of the one symbol."""
        return release_threshold(epsilon, self.alphabet)

    def symbol_truth(self, truths: Truths, symbol: int, permanent: Permanent) -> Words:
        """Return the index itself."""
        return truths.index

    def reports(self, codes: Codes, seeds: Words | None = None) -> list[Hashable]:
        """Return the declared values that the codes stand for."""
        return [self.values[code] for code in codes[:, 0].tolist()]

    @property
    def report_type(self) -> Any:
        """A dictionary of all declared values, whether they occur or not."""
        size = len(self.values)
        index = pa.int8() if size <= 2**7 else pa.int16() if size <= 2**15 else pa.int32()
        return pa.dictionary(index, self._label_array().type)

    def column(self, codes: Codes, seeds: Words | None = None) -> Any:
        """Return the codes with the declared values as their dictionary."""
        indices = codes[:, 0].astype(self.report_type.index_type.to_pandas_dtype(), copy=False)
        return pa.DictionaryArray.from_arrays(pa.array(indices), self._label_array())

    def supports(self, codes: Codes, seeds: Words | None = None) -> NDArray[np.bool_]:
        """Return which value each report is."""
        return np.asarray(codes[:, :1] == np.arange(self.alphabet))

    def count(self, codes: Codes, seeds: Words | None = None) -> NDArray[np.int64]:
        """Return how often each value was reported."""
        return histogram(codes[:, 0], self.alphabet)

    def codes(self, column: Any) -> Codes:
        """Return the indices of reported values."""
        try:
            return self._indices(as_column(column), 0)[:, None].astype(code_dtype(self.alphabet))
        except UndeclaredValueError as problem:
            raise CountsError(problem.message.replace("the value", "the report").removesuffix(NOTHING)) from None

    def count_reports(self, column: Any) -> tuple[NDArray[np.int64], int]:
        """Return how often each value was reported. Coded columns are counted as they are, without a copy."""
        column = as_column(column)
        if isinstance(column, pa.ChunkedArray):
            counts = sum((self.count_reports(chunk)[0] for chunk in column.chunks), np.zeros(self.alphabet, np.int64))
        elif self._is_range and isinstance(column, np.ndarray) and column.dtype.kind in "iu":
            try:
                counts = histogram(column, self.alphabet)
            except ValueError:
                raise CountsError(f"a report is not one of the {self.alphabet} declared values.") from None
        elif isinstance(column, pa.DictionaryArray) and not column.null_count:
            counts = self._count_dictionary(column)
        else:
            return super().count_reports(column)
        return counts, len(column)

    def _count_dictionary(self, column: pa.DictionaryArray) -> NDArray[np.int64]:
        """Count the entries of the dictionary, then give each entry to its value; unused entries may be anything."""
        entries = histogram(column.indices.to_numpy(), len(column.dictionary))
        used = np.flatnonzero(entries)
        counts = np.zeros(self.alphabet, np.int64)
        np.add.at(counts, self.codes(column.dictionary.take(pa.array(used)))[:, 0], entries[used])
        return counts

    def support(self, keep: Fraction) -> Support:
        """Return the chances that a report is a given value."""
        return Support.of_one_symbol(keep, self.alphabet)

    def _label_array(self) -> Any:
        wide = self.kind == "integer" and max(map(int, self.values)) >= 2**63
        return pa.array(list(self.values), pa.uint64() if wide else None)
