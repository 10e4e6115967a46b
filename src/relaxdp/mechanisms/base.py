"""The base class of all mechanisms. A subclass gets the path, Algorithm 1, tables, campaigns and the market.

Two mechanisms differ only in how a value becomes symbols and in how epsilon becomes the retention of a symbol. So that
is all that a subclass states. Drawing, relaxing, blurring and accounting are written once, elsewhere.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from relaxdp.errors import LevelError, MechanismError
from relaxdp.mechanisms.report_arrays import Codes
from relaxdp.sampling.keyed_stream import PathId, PathKeyInfo, Purpose, Words
from relaxdp.theory.epsilon import Epsilon, as_epsilon, compute_nonzero_threshold, format_epsilon
from relaxdp.theory.randomized_response import Level, Scale, SupportProbabilities

if TYPE_CHECKING:
    from relaxdp.estimation.result import Result
    from relaxdp.mechanisms.keyed_reports import ReportPath
    from relaxdp.sampling.keys import Key

Joint = Literal["exclusive", "independent", "unknown"]

PUBLIC: tuple[Purpose, ...] = ("seed", "cohort")
"""Kept randomness that everybody may see: a function of the individual alone."""


@dataclass(frozen=True, slots=True, repr=False)
class TrueValues:
    """The true values of some individuals, in the form in which the stream takes them. Its `repr` shows none."""

    index: Words
    """The index of each true value among the declared values, or zeros where values have no index."""
    suffix: Words | None = None
    """Where values have no index: their canonical bytes, as (blocks, individuals, 2) words."""

    def __len__(self) -> int:
        return len(self.index)

    def __getitem__(self, selection: slice | NDArray[np.intp]) -> TrueValues:
        # Contiguous, because AES takes whole rows: NumPy's own order would put the blocks of one individual together.
        chosen = None if self.suffix is None else np.ascontiguousarray(self.suffix[:, selection])
        return TrueValues(self.index[selection], chosen)


class KeptRandomness(Protocol):
    """Randomness that an individual draws once and keeps: a coin, a rounding, a hash seed, a cohort.

    On the path it is keyed, so it is the same whenever it is asked for. For Algorithm 1 it is fresh and stored. Seeds
    and cohorts are public, so they do not depend on the true value.
    """

    def draw_words(self, purpose: Purpose, symbol: Words | int = 0) -> Words:
        """Return a uniform 64-bit word per individual, for one purpose and symbol: the same word at every call."""
        ...


@dataclass(frozen=True, slots=True)
class MeanWeights:
    """The weight of each label, where the answer is a mean: the sum of weights times shares of labels."""

    weights: tuple[float, ...]
    minimum: float
    """The smallest and the largest mean that is possible."""
    maximum: float
    absent: int | None = None
    """The label of individuals without a number: then it is the mean of all others, whose number is estimated too."""
    window: int | None = None
    """Where a number is spread evenly over so many labels in a row: then the whole distribution can be estimated."""


class Mechanism(ABC):
    """Define how a value becomes symbols, how epsilon becomes retention, and which values a report supports.

    A report is the codes of its symbols and, where `seeded`, a public word of its individual. Blur, bridge and
    Algorithm 1 act on the codes. The seed stays as it is. Reports of one symbol without a seed are labels, all others
    are packed into bytes.

    To add a mechanism, write a subclass with `name`, `params`, `labels`, `threshold`, `read_true_values` and
    `compute_true_symbols`.

    Example:
        >>> from relaxdp import Categorical
        >>> answers = Categorical(["flu", "covid", "none"])
        >>> isinstance(answers, Mechanism), answers.alphabet, answers.symbols
        (True, 3, 1)
    """

    name: str
    """The name in the stream, in ledgers and in files."""
    alphabet: int
    """How many values a symbol can take."""
    symbols: int = 1
    """How many symbols a report has."""
    seeded: bool = False
    """Whether a report carries a public word of its individual, such as the seed of a hash."""
    joint: Joint = "unknown"
    """How the supports of two values go together, given all true values.

    "exclusive": a report supports exactly one value. "independent": whether it supports one value is independent of
    whether it supports another. It decides covariances and simultaneous intervals of two values. "unknown" is always
    safe.
    """

    @property
    @abstractmethod
    def params(self) -> bytes:
        """The parameters that tell this mechanism from others of its name, as bytes that are bound into the stream."""

    @property
    @abstractmethod
    def labels(self) -> Sequence[Any]:
        """The values that are estimated, as people read them."""

    @property
    def mean_weights(self) -> MeanWeights | None:
        """How a mean is estimated; None where the shares of the labels are estimated."""
        return None

    # Levels.

    def threshold(self, epsilon: Decimal) -> int:
        """Return the threshold of every symbol at which a whole report is epsilon-private, rounded down.

        A subclass defines it. All other code uses `level`.
        """
        return compute_nonzero_threshold(epsilon, self.alphabet)

    def level(self, epsilon: Epsilon, threshold: int | None = None) -> Level:
        """Return the level of an epsilon: the only place where levels are made.

        `threshold` is that of reports which were drawn elsewhere; one that reveals more than epsilon is rejected.
        """
        exact = as_epsilon(epsilon)
        most = self.threshold(exact)
        if threshold is not None and not 0 < threshold <= most:
            raise LevelError(
                "The threshold {threshold} (the amount of noise) does not fit epsilon {epsilon}: expected 1 to {most}.",
                hint="Pass the threshold that the metadata of the reports states, or leave it out.",
                epsilon=format_epsilon(exact),
                threshold=str(threshold),
                most=str(most),
            )
        return Level(exact, most if threshold is None else threshold, self._scale)

    @property
    def _scale(self) -> Scale:
        """The scale of its levels: only levels of one mechanism with the same parameters are comparable."""
        return self.name, self.params

    # From true values to symbols.

    @abstractmethod
    def read_true_values(self, column: Any, first_row: int = 0) -> TrueValues:
        """Return the true values of a column, or reject it. An error names the row, never the value."""

    @abstractmethod
    def compute_true_symbols(self, true_values: TrueValues, randomness: KeptRandomness) -> Codes:
        """Return what each individual would report without noise, as codes of shape (individuals, symbols)."""

    # From reports to counts.

    def read_label_column(self, column: Any) -> Codes:
        """Return the codes of a column of reports that are labels, of shape (individuals, 1), or reject it."""
        raise NotImplementedError

    def find_supported_labels(self, codes: Codes, seeds: Words | None = None) -> NDArray[np.bool_]:
        """Return which values each report supports, of shape (individuals, labels)."""
        return np.asarray(codes[:, :1] == np.arange(self.alphabet)) if self.symbols == 1 else codes.astype(np.bool_)

    def compute_noise_and_gain(self, retention: Fraction) -> SupportProbabilities:
        """Return the noise and the gain of the probability that a report supports a value, at this retention."""
        return SupportProbabilities.from_one_symbol(retention, self.alphabet)

    # The public methods.

    def path(self, value: Any, *, key: Key, id: object, name: str, column: str) -> ReportPath:
        """Return the path of one individual: its report at any level, in any order, always the same.

        Args:
            value: The true value: one of the declared values, or a number of the range.
            key: The secret key, such as `rx.Key.generate()`.
            id: The id of the individual: a whole number, text, bytes or a UUID.
            name: The name of the release. Another name is another path, whose cost adds up.
            column: The name of the column, or of the question.

        Returns:
            The path. `path.at(0.5)` is its report at epsilon 0.5.

        Raises:
            UndeclaredValueError: The value is not one of the declared values, or is outside of the range.
            IdError: The id is missing or of another type.
            KeyFileError: The key is not a `Key`.
        """
        from relaxdp.mechanisms.keyed_reports import ReportPath  # noqa: PLC0415 (which needs this module)

        return ReportPath(self, value, key=key, object_id=id, path=PathId(name, column))

    def release(self, values: Any, ids: Any, *, key: Key, epsilon: Epsilon, name: str, column: str) -> Any:
        """Return the reports of many individuals at one level, without accounting; a `Vault` keeps a budget.

        The same call again gives the same reports. A call with a larger `epsilon` relaxes them.

        Args:
            values: The true values: a list, NumPy array, pyarrow array, pandas or polars series.
            ids: The id of each individual, row by row, each once.
            key: The secret key.
            epsilon: The level.
            name: The name of the release. Another name is another path, whose cost adds up.
            column: The name of the column.

        Returns:
            Reports, in the same kind of container as `values`. Packed reports of a NumPy array are a matrix of bytes.

        Raises:
            UndeclaredValueError: A value is not one of the declared values, or is outside of the range.
            IdError: An id is missing, repeated or of another type.
            ColumnError: The columns do not have the same length, or are not lists, arrays or series.
            EpsilonError: Epsilon is not a positive number, or is too small.
        """
        from relaxdp.mechanisms.keyed_reports import release_column  # noqa: PLC0415 (which needs this module)

        return release_column(self, values, ids, key=key, epsilon=epsilon, path=PathId(name, column))

    def estimate(self, reports: Any, *, epsilon: Epsilon) -> Result:
        """Estimate shares or a mean from reports at one level.

        For individuals at different levels, and for counts made elsewhere, use `rx.Counts`.

        Args:
            reports: The reports: a list, NumPy array, pyarrow array, pandas or polars series.
            epsilon: The epsilon of the reports.

        Returns:
            The estimate, with confidence intervals.

        Raises:
            EstimationError: A report does not fit the mechanism.
        """
        from relaxdp.estimation.counts import Counts  # noqa: PLC0415 (which needs this module)

        counts = Counts(self)
        counts.add(reports, epsilon=epsilon)
        return counts.estimate()


def draw_seeds(mechanism: Mechanism, randomness: KeptRandomness) -> Words | None:
    """Return the public word of each individual; None unless the mechanism is `seeded`."""
    return randomness.draw_words("seed") if mechanism.seeded else None


def require_level(mechanism: Mechanism, level: Level) -> Level:
    """Return a level of this mechanism; reject one of another, whose threshold would mean something else."""
    if level.scale != mechanism._scale:
        raise LevelError(
            "The level was made for the mechanism {given!r}, not for {mechanism!r} with these values and parameters.",
            hint="Create the level with the mechanism that you use it with: mechanism.level(0.5).",
            given=level.scale[0],
            mechanism=mechanism.name,
        )
    return level


def make_path_key_info(mechanism: Mechanism, path_id: PathId) -> PathKeyInfo:
    """Return the information that is bound into the key of a path of this mechanism."""
    return PathKeyInfo(path_id, mechanism.name, mechanism.alphabet, mechanism.params)


def check_option(option: str, number: object, minimum: int, maximum: int) -> None:
    """Reject an option that is not a whole number in a range."""
    if isinstance(number, bool) or not isinstance(number, int) or not minimum <= number <= maximum:
        raise MechanismError(
            "`{option}` must be a whole number from {minimum} to {maximum:,}, not {number!r}.",
            hint="Pass a number in this range, such as {option}={minimum}.",
            option=option,
            minimum=minimum,
            maximum=maximum,
            number=number,
        )
