"""Counts per level: a summary that can be added to, merged, saved, and turned into one estimate."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from relaxdp.errors import ColumnError, EstimationError, on_error
from relaxdp.estimation.consistency import compute_likeliest_shares
from relaxdp.estimation.distribution import Distribution
from relaxdp.estimation.frequency import Frequency, WeightedSum, check_counts, order_counts
from relaxdp.estimation.mean import Mean, NonMissingMean
from relaxdp.estimation.result import Result, get_frame_library
from relaxdp.mechanisms.base import MeanWeights, Mechanism
from relaxdp.mechanisms.report_arrays import count_report_column
from relaxdp.theory.epsilon import Epsilon, as_epsilon
from relaxdp.theory.level import Level

_FORMAT = "relaxdp counts 1"
Method = Literal["average", "precision"]


@dataclass(slots=True)
class _LevelCounts:
    level: Level
    counts: NDArray[np.int64]
    n: int


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
        self._levels: dict[Level, _LevelCounts] = {}
        self._library = "pyarrow"

    @property
    def n(self) -> int:
        """How many individuals were counted."""
        return sum(tally.n for tally in self._levels.values())

    @property
    def levels(self) -> dict[str, int]:
        """How many individuals were counted at each epsilon, ascending."""
        return {str(tally.level): tally.n for tally in self._sort_levels()}

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
        self._add(counts, n, self._mechanism.level(epsilon))

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
                "The number of individuals is missing. A report of this mechanism may support several values.",
                hint="Pass n=, the number of reports.",
            )
        checked = check_counts(order_counts(counts, self._mechanism.labels), len(self._mechanism.labels), n)
        total = int(checked.sum())
        if n is not None and self._mechanism.joint == "exclusive" and total != n:
            raise EstimationError(
                "The counts sum to {total:,}, but `n` is {n:,}. Each report is one value.",
                hint="Leave n= out.",
                n=n,
                total=total,
            )
        self._add(checked, total if n is None else int(n), self._mechanism.level(epsilon))

    def merge(self, other: Counts) -> None:
        """Add the counts of other individuals.

        Args:
            other: Counts of the same mechanism.

        Raises:
            EstimationError: `other` has a different mechanism or other values.
        """
        if not isinstance(other, Counts) or self._describe_mechanism() != other._describe_mechanism():
            raise EstimationError(
                "Only counts of the same mechanism and values can be merged.",
                hint="Create both with the same mechanism: rx.Counts(mechanism).",
            )
        for tally in other._levels.values():
            self._add(tally.counts, tally.n, tally.level)

    def _add(self, counts: NDArray[np.int64], n: int, level: Level) -> None:
        kept = self._levels.setdefault(level, _LevelCounts(level, np.zeros(len(self._mechanism.labels), np.int64), 0))
        kept.counts = kept.counts + counts
        kept.n += n

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
        found = combine_levels(self._mechanism.mean_weights, *self.estimate_levels(method))
        found.set_library(self._library)
        return found

    def estimate_levels(self, method: Method = "average") -> tuple[list[Frequency], list[float]]:
        """Return the shares at each level, and what each level counts for in the estimate."""
        parts = self._estimate_frequencies()
        if method == "average":
            weights = [float(part.n) for part in parts]
        elif method == "precision":
            # From the noise alone: weights that looked at the estimates would bias them.
            weights = [
                float(part.n * part.support.gain**2 / (part.support.noise * (1 - part.support.noise))) for part in parts
            ]
        else:
            raise EstimationError(
                "Unknown method {method!r}: expected 'average' or 'precision'.",
                hint="Pass method='average'.",
                method=method,
            )
        return parts, [weight / sum(weights) for weight in weights]

    @property
    def mean_weights(self) -> MeanWeights | None:
        """What the labels count for where the answer is a mean; None where it is their shares."""
        return self._mechanism.mean_weights

    def find_likeliest_shares(self) -> NDArray[np.float64]:
        """Return the likeliest shares: not negative, summing to 1, at all levels together.

        The least error, some bias, no interval; like "precision" it assumes levels that do not depend on the truth.
        """
        parts = self._estimate_frequencies()
        silent = None if self._mechanism.joint == "exclusive" else [part.n - part.counts for part in parts]
        return compute_likeliest_shares([part.counts for part in parts], [part.support for part in parts], silent)

    def _estimate_frequencies(self) -> list[Frequency]:
        parts = [self._make_frequency(tally) for tally in self._sort_levels() if tally.n]
        if not parts:
            raise EstimationError(
                "There are no reports to estimate from.",
                hint="Check that the column has rows, or add reports with counts.add(reports, epsilon=1).",
            )
        return parts

    def _sort_levels(self) -> list[_LevelCounts]:
        return [tally for _, tally in sorted(self._levels.items(), key=lambda item: item[0])]

    def _make_frequency(self, tally: _LevelCounts) -> Frequency:
        return Frequency(
            labels=self._mechanism.labels,
            counts=tally.counts,
            individuals=tally.n,
            support=self._mechanism.compute_support(tally.level.retention),
            epsilon=tally.level.epsilon,
            joint=self._mechanism.joint,
        )

    def _describe_mechanism(self) -> dict[str, str]:
        return {"encoding": self._mechanism.name, "params": self._mechanism.params.hex()}

    @on_error("Nothing was written.")
    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the counts as JSON. They are as public as the reports."""
        levels = [
            {"epsilon": str(tally.level), "n": tally.n, "counts": tally.counts.tolist()}
            for tally in self._sort_levels()
        ]
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
                hint="Check the name and the folder.",
                path=str(path),
                why=problem.strerror,
            ) from None
        except (ValueError, KeyError, TypeError):
            raise EstimationError(
                "{path!r} is not a file of counts, or it is damaged.",
                hint="Write one with counts.save({path!r}).",
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
    """Return one estimate from the shares at each level: shares of the values, or the mean of numbers."""
    if mean_weights is not None and mean_weights.absent is not None:
        return NonMissingMean(parts, weights, mean_weights)
    if mean_weights is not None and mean_weights.window is not None:
        return Distribution(parts, weights, mean_weights)
    shares = parts[0] if len(parts) == 1 else WeightedSum(parts, weights)
    return shares if mean_weights is None else Mean(shares, *mean_weights.weights)


def keep_highest_level(object_ids: Any, epsilons: Any, reports: Any) -> tuple[list[Any], list[Any]]:
    """Keep the report of each individual at its highest level: the others add nothing to it.

    Args:
        object_ids: The ids, row by row.
        epsilons: The level of each row. The level counts, not the date: a lower level may have been made later.
        reports: The report of each row.

    Returns:
        The epsilons and the reports, with each individual once.

    Raises:
        ColumnError: The three columns have different lengths.

    Example:
        >>> keep_highest_level(["a", "b", "a"], ["0.5", "0.5", 2], ["no", "no", "yes"])
        ([2, '0.5'], ['yes', 'no'])
    """
    if not len(object_ids) == len(epsilons) == len(reports):
        raise ColumnError(
            "There are {ids:,} ids, {epsilons:,} epsilons and {reports:,} reports. They belong together row by row.",
            hint="Pass three columns of the same rows.",
            ids=len(object_ids),
            epsilons=len(epsilons),
            reports=len(reports),
        )
    best: dict[Any, tuple[Decimal, Any, Any]] = {}
    for object_id, epsilon, report in zip(object_ids, epsilons, reports, strict=True):
        exact = as_epsilon(epsilon)
        if object_id not in best or exact > best[object_id][0]:
            best[object_id] = (exact, epsilon, report)
    return [epsilon for _, epsilon, _ in best.values()], [report for _, _, report in best.values()]
