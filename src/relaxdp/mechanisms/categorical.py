"""Mechanisms that report one of the declared values, or a bit for each of them."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from relaxdp.errors import EstimationError, UndeclaredValueError
from relaxdp.mechanisms.base import Joint, KeptRandomness, TrueValues
from relaxdp.mechanisms.declared_values import DeclaredMechanism
from relaxdp.mechanisms.report_arrays import Codes, get_code_dtype, make_label_dictionary
from relaxdp.sampling.arrow_columns import to_arrow
from relaxdp.theory.epsilon import compute_nonzero_threshold, compute_split_threshold
from relaxdp.theory.randomized_response import SupportProbabilities

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

    def compute_true_symbols(self, true_values: TrueValues, randomness: KeptRandomness) -> Codes:
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


class Unary(DeclaredMechanism):
    """Report one bit for each declared value (OUE or SUE): the error does not grow with the number of values.

    Optimised (OUE): the bit of the true value is first ANDed with a fair coin that is kept, and every bit is blurred at
    epsilon. With the coin, a one is reported as a one half of the time, whatever the noise. So it reveals nothing that
    the zeros do not reveal: the odds of a whole report are those of a single bit.

    Symmetric (SUE): every bit is a randomized response at epsilon / 2, because two true values differ in two bits.

    Claim: epsilon is reached and not exceeded at every level and by all of them together;
    tests/exact/mechanisms/test_mechanisms.py.

    Args:
        values: The declared values, as in `Categorical`.
        optimised: Whether to use OUE. False is SUE, the basic RAPPOR.

    Raises:
        ValuesError: The values are too few, repeated, or of different kinds.

    Example:
        >>> from relaxdp import Key
        >>> answers = Unary(["flu", "covid", "none"])
        >>> key = Key.from_bytes(bytes(range(32)))
        >>> path = answers.path("covid", key=key, id="patient-19", name="survey-2026", column="diagnosis")
        >>> [path.at(epsilon).hex() for epsilon in (0.1, 1, 20)]
        ['05', '03', '02']
    """

    alphabet = 2
    joint: Joint = "independent"

    def __init__(self, values: Sequence[Hashable], *, optimised: bool = True) -> None:
        super().__init__(values)
        self.symbols = len(self.values)
        self.optimised = optimised
        self.name = "unary-optimised" if optimised else "unary-symmetric"

    def threshold(self, epsilon: Decimal) -> int:
        return compute_nonzero_threshold(epsilon, 2) if self.optimised else compute_split_threshold(epsilon, 2, parts=2)

    def compute_true_symbols(self, true_values: TrueValues, randomness: KeptRandomness) -> Codes:
        bits = np.zeros((len(true_values), self.symbols), dtype=np.uint8)
        own = randomness.draw_words("coin", true_values.index) & np.uint64(1) if self.optimised else 1
        bits[np.arange(len(true_values)), true_values.index.astype(np.intp)] = own
        return bits

    def compute_noise_and_gain(self, retention: Fraction) -> SupportProbabilities:
        if not self.optimised:
            return SupportProbabilities.from_one_symbol(retention, 2)
        return SupportProbabilities(noise=(1 - retention) / 2, gain=retention / 2)  # 1/2 for the bit of the true value

    def _format_repr_options(self) -> str:
        return "" if self.optimised else ", optimised=False"
