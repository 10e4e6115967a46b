"""The randomized response of the paper: a report is one of the declared values."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from relaxdp.errors import EstimationError, UndeclaredValueError
from relaxdp.mechanisms.base import Joint, PermanentWords, TrueValues
from relaxdp.mechanisms.declared import DeclaredMechanism
from relaxdp.mechanisms.report_arrays import Codes, get_code_dtype, make_label_dictionary
from relaxdp.sampling.arrow_columns import to_arrow

_DECLARE_AS_RELEASED = "Declare the values as in the release, in the same order."


class Categorical(DeclaredMechanism):
    """k-ary randomized response: answers out of a list of declared values, relaxed on the path.

    Args:
        values: Two or more values, all of one kind. They are public, and their order is part of every path. None among
            them is the missing category: a null, NaN or NaT in a column is then that value, and rejected otherwise.

    Raises:
        ValuesError: The values are too few, repeated, or of different kinds.

    Example:
        >>> from relaxdp import Key
        >>> answers = Categorical(["flu", "covid", "none"])
        >>> key = Key.from_bytes(bytes(range(32)))
        >>> path = answers.path("covid", key=key, id="patient-17", name="survey-2026", column="diagnosis")
        >>> path.at(0.1), path.at(0.5), path.at(2)
        ('none', 'covid', 'covid')
        >>> answers.release(
        ...     ["covid", "flu"], ["patient-17", "patient-18"],
        ...     key=key, epsilon=0.5, name="survey-2026", column="diagnosis",
        ... )
        ['covid', 'none']
    """

    name = "categorical"
    joint: Joint = "exclusive"

    def __init__(self, values: Sequence[Hashable]) -> None:
        super().__init__(values)
        self.alphabet = len(self.values)

    def compute_true_symbols(self, true_values: TrueValues, randomness: PermanentWords) -> Codes:
        return true_values.index.astype(get_code_dtype(self.alphabet))[:, None]

    def read_label_column(self, column: Any) -> Codes:
        column = to_arrow(column)
        if isinstance(column, pa.DictionaryArray) and column.dictionary.equals(make_label_dictionary(self.values)):
            found = column.indices  # a column that we made is coded already
            are_places = pc.less(found.cast(pa.uint64(), safe=False), len(column.dictionary))
            if self.missing is None and not found.null_count and pc.all(are_places).as_py():
                return np.asarray(found.to_numpy()[:, None], get_code_dtype(self.alphabet))
            if self.missing is not None and pc.all(are_places, min_count=0).as_py():
                places = np.asarray(found.fill_null(0).to_numpy(), np.int64)
                codes = np.where(found.is_null(), self.missing, places + (places >= self.missing))
                return codes.astype(get_code_dtype(self.alphabet))[:, None]
        try:
            return self.find_value_indices(column)[:, None].astype(get_code_dtype(self.alphabet))
        except UndeclaredValueError as problem:
            raise EstimationError(
                problem.template, hint=_DECLARE_AS_RELEASED, **{**problem.fields, "what": "report"}
            ) from None
