"""Counts per level: a summary that can be added to, merged, saved, and turned into one estimate."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from numbers import Integral
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from relaxdp.errors import EstimationError, add_consequence
from relaxdp.estimation.distribution import Distribution
from relaxdp.estimation.frequency import Frequency, WeightedSum, compute_precision
from relaxdp.estimation.mean import Mean, NonMissingMean
from relaxdp.estimation.result import Result, get_frame_library
from relaxdp.mechanisms.base import MeanWeights, Mechanism
from relaxdp.mechanisms.report_arrays import count_report_column
from relaxdp.theory.epsilon import Epsilon
from relaxdp.theory.randomized_response import Level

_FORMAT = "relaxdp counts 1"
Method = Literal["average", "precision"]
Integers = NDArray[np.int64]


def check_mechanism(mechanism: Any) -> None:
    """Reject anything but a mechanism."""
    if not isinstance(mechanism, Mechanism):
        raise EstimationError(
            "Expected a mechanism, got {type}.",
            hint="Pass a mechanism such as rx.Categorical(['flu', 'covid', 'none']) or rx.Numeric(0, 120).",
            type=mechanism.__name__ if isinstance(mechanism, type) else type(mechanism).__name__,
        )


class Counts:
    """Counts of reports at each level, for one estimate from data that is larger than memory or was counted elsewhere.

    Every individual counts once, at the highest level. Counts of disjoint individuals may be merged.

    Args:
        mechanism: The mechanism of the reports, such as `rx.Categorical(["no", "yes"])`.

    Raises:
        EstimationError: `mechanism` is not a mechanism.

    Example:
        >>> from relaxdp import Categorical
        >>> counts = Counts(Categorical(["no", "yes"]))
        >>> counts.add(["no", "yes", "yes"], epsilon=1)
        >>> counts.add_counts({"yes": 20, "no": 10}, epsilon=2)
        >>> counts.n, counts.levels
        (33, {'1': 3, '2': 30})
        >>> print(counts.estimate())
        value  estimate  95 % confidence interval
        no       0.2683  [0.0550, 0.4724]
        yes      0.7317  [0.5276, 0.9450]
        n = 33, epsilon = 1 (3), 2 (30). Intervals are about these individuals.
    """

    def __init__(self, mechanism: Any) -> None:
        check_mechanism(mechanism)
        self._mechanism: Mechanism = mechanism
        self._tallies: dict[Level, Integers] = {}
        """For each level the number of individuals, then that of each value."""
        self._library = "pyarrow"

    @property
    def n(self) -> int:
        """How many individuals were counted."""
        return sum(self.levels.values())

    @property
    def levels(self) -> dict[str, int]:
        """How many individuals were counted at each epsilon, ascending."""
        return {str(level): int(self._tallies[level][0]) for level in sorted(self._tallies)}

    def add(self, reports: Any, *, epsilon: Epsilon) -> None:
        """Count a column of reports that were released at one level.

        Args:
            reports: A list, an array or a series of reports.
            epsilon: Their level.

        Raises:
            EstimationError: A report is not one of the declared values.
            ColumnError: `reports` is not a column.
        """
        counts, n = count_report_column(self._mechanism, reports)
        self._library = get_frame_library(reports)
        self._add_level_counts(np.append(n, counts), self._mechanism.level(epsilon))

    def add_counts(self, counts: Any, *, epsilon: Epsilon, n: int | None = None) -> None:
        """Add counts that were made elsewhere.

        Args:
            counts: How many reports are each declared value, in the order of the declared values. A mapping from
                values to counts, or a pandas series as `value_counts()` returns it, may have any order.
            epsilon: The level of the reports.
            n: How many individuals reported, where a report may support several values or none.

        Raises:
            EstimationError: The counts do not fit the declared values or the number of individuals.
        """
        if n is None and self._mechanism.joint != "exclusive":
            raise EstimationError(
                "`n`, the number of individuals, is missing. A report may count for several values, or for none.",
                hint="Pass the number of individuals who reported, such as n=10_000.",
            )
        checked = _order_counts(counts, self._mechanism.labels)
        total = int(checked.sum())
        if n is not None and (not isinstance(n, Integral) or n < 1 or np.any(checked > n)):
            raise EstimationError(
                "`n` must be a whole number, at least as large as each count, not {n}.",
                hint="Pass the number of all reports, such as n=10_000.",
                n=n if isinstance(n, Integral) else type(n).__name__,
            )
        if n is not None and self._mechanism.joint == "exclusive" and total != n:
            raise EstimationError(
                "The counts sum to {total:,}, but `n` is {n:,}. They must be equal, because each report counts once.",
                hint="Leave out `n`: it is the sum of the counts.",
                n=n,
                total=total,
            )
        self._add_level_counts(np.append(total if n is None else n, checked), self._mechanism.level(epsilon))

    def merge(self, other: Counts) -> None:
        """Add the counts of other individuals.

        Args:
            other: Counts of the same mechanism.

        Raises:
            EstimationError: `other` has a different mechanism or other values.
        """
        if not isinstance(other, Counts) or self._describe_mechanism() != other._describe_mechanism():
            raise EstimationError(
                "The counts to merge are not rx.Counts of the same mechanism and declared values.",
                hint="Create both with the same mechanism: rx.Counts(mechanism).",
            )
        for level, tally in other._tallies.items():
            self._add_level_counts(tally, level)

    def _add_level_counts(self, counts: Integers, level: Level) -> None:
        self._tallies[level] = self._tallies.get(level, np.int64(0)) + counts

    def estimate(self, method: Method = "average") -> Result:
        """Return one estimate from all levels.

        Args:
            method: "average" is the mean of the debiased reports of all individuals. It is unbiased unless a level
                depends on the individual's own earlier reports, and noisy if a few have a very low level. "precision"
                gives less noisy levels more weight. It is unbiased only if levels do not depend on the true values.

        Returns:
            The shares of the values, or the mean of numbers.

        Raises:
            EstimationError: Nothing was counted, or there is no such method.
        """
        parts = self._list_level_estimates()
        if not parts:
            raise EstimationError(
                "There are no reports to estimate from.",
                hint="Check that the column has rows, or add reports with counts.add(reports, epsilon=1).",
            )
        if method not in ("average", "precision"):
            raise EstimationError(
                "Unknown method {method!r}: expected 'average' or 'precision'.",
                hint="Pass method='average' or method='precision'.",
                method=method,
            )
        # Precision from the noise alone: weights that looked at the estimates would bias them.
        weights = [
            float(part.effective_n * compute_precision(part.support) if method == "precision" else part.size)
            for part in parts
        ]
        found = combine_levels(self._mechanism.mean_weights, parts, [weight / sum(weights) for weight in weights])
        found.set_frame_library(self._library)
        return found

    def _list_level_estimates(self) -> list[Frequency]:
        return [self._estimate_level(level) for level in sorted(self._tallies) if self._tallies[level][0]]

    def _estimate_level(self, level: Level) -> Frequency:
        mechanism, (n, *counts) = self._mechanism, self._tallies[level]
        support = mechanism.compute_noise_and_gain(level.retention)
        return Frequency(mechanism.labels, np.array(counts), int(n), support, level.epsilon, mechanism.joint)

    def _describe_mechanism(self) -> dict[str, str]:
        return {"encoding": self._mechanism.name, "params": self._mechanism.params.hex()}

    @add_consequence("Nothing was written.")
    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the counts as JSON. They are as public as the reports."""
        tallies = ((level, self._tallies[level].tolist()) for level in sorted(self._tallies))
        levels = [{"epsilon": str(level), "n": n, "counts": counts} for level, (n, *counts) in tallies]
        Path(path).write_text(json.dumps({"format": _FORMAT, **self._describe_mechanism(), "levels": levels}), "utf-8")

    @classmethod
    def load(cls, path: str | os.PathLike[str], mechanism: Any) -> Counts:
        """Read saved counts of the same values."""
        result = cls(mechanism)
        try:
            content = json.loads(Path(path).read_text("utf-8"))
            found = {name: content[name] for name in ("format", *result._describe_mechanism())}
            levels = [(level["counts"], level["n"], level["epsilon"]) for level in content["levels"]]
        except OSError as problem:
            raise EstimationError(
                "The file of counts {path!r} cannot be read: {why}.",
                hint="Check that the file exists and that you may read it.",
                path=str(path),
                why=problem.strerror,
            ) from None
        except (ValueError, KeyError, TypeError):
            raise EstimationError(
                "{path!r} is not a file of counts, or it is damaged.",
                hint="Pass a file that counts.save({path!r}) wrote.",
                path=str(path),
            ) from None
        if found != {"format": _FORMAT, **result._describe_mechanism()}:
            raise EstimationError(
                "The counts in {path!r} were made with another mechanism or other declared values.",
                hint="Pass the mechanism that was used for counting, as in rx.Counts.load({path!r}, mechanism).",
                path=str(path),
            )
        for counts, n, epsilon in levels:
            result.add_counts(counts, epsilon=epsilon, n=n)
        return result


def combine_levels(mean_weights: MeanWeights | None, parts: Sequence[Frequency], weights: Sequence[float]) -> Result:
    """Combine the estimates of all levels into one: shares of the values, or the mean of numbers."""
    if mean_weights is not None and mean_weights.absent is not None:
        return NonMissingMean(parts, weights, mean_weights)
    if mean_weights is not None and mean_weights.window is not None:
        return Distribution(parts, weights, mean_weights)
    shares = parts[0] if len(parts) == 1 else WeightedSum(parts, weights)
    return shares if mean_weights is None else Mean(shares, mean_weights)


def _order_counts(counts: Any, labels: Sequence[Any]) -> Integers:
    """Return counts in the order of the labels; a mapping, or a pandas series with an index, may have any order."""
    index = getattr(counts, "index", None) if type(counts).__module__.startswith("pandas") else None
    if index is not None and (type(index).__name__ != "RangeIndex" or set(index) <= set(labels)):
        counts = counts.to_dict()
    if isinstance(counts, Mapping):
        if set(counts) - set(labels):
            raise EstimationError(
                "The counts have {unknown:,} values that are not declared.",
                hint="Count only declared values: {listed}.",
                unknown=len(set(counts) - set(labels)),
                listed=", ".join(map(repr, list(labels)[:12])),
            )
        counts = [counts.get(label, 0) for label in labels]
    array = np.asarray(counts)
    if array.shape != (len(labels),):
        raise EstimationError(
            "Expected {values:,} counts, one for each declared value, got {counts:,}.",
            hint="Pass a list in the order of the declared values, or a mapping such as {{'flu': 10, 'none': 20}}.",
            values=len(labels),
            counts=array.size,
        )
    if array.dtype.kind not in "iuf" or not np.all((array >= 0) & (array == np.rint(array)) & np.isfinite(array)):
        raise EstimationError(
            "Counts must be whole numbers of 0 or more, and one of them is not.",
            hint="Pass how often each value was reported, such as [10, 20].",
        )
    return array.astype(np.int64)
