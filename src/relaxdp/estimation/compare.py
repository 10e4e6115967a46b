"""The change between two results: of two groups, or of two releases, whose noises are independent."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, cast

import numpy as np
import pyarrow as pa

from relaxdp.errors import EstimationError
from relaxdp.estimation.display import draw_change_interval, format_html_table
from relaxdp.estimation.distribution import AT_LEAST, Distribution, Quantiles
from relaxdp.estimation.frequency import LinearCombination
from relaxdp.estimation.result import IMPLAUSIBLE, TOGETHER, About, Floats, Result, format_label
from relaxdp.estimation.totals import Totals


@dataclass(frozen=True, eq=False, repr=False)
class Change(LinearCombination):
    """The new estimate minus the old one, row by row.

    Claim: coverage of 94.5 % or more; tests/statistical/estimation/test_coverage.py.
    """

    old: Result
    new: Result
    is_chosen: bool = False
    has_totals = False

    @property
    def weighted_parts(self) -> Sequence[tuple[float, Result]]:
        return [(-1.0, self.old), (1.0, self.new)]

    @property
    def minimum(self) -> float:  # type: ignore[override]
        return self.new.minimum - self.old.maximum

    @property
    def maximum(self) -> float:  # type: ignore[override]
        return self.new.maximum - self.old.minimum

    @property
    def ranking_values(self) -> Floats:
        return np.abs(np.atleast_1d(self.value))

    def quantile(self, probabilities: float | Sequence[float]) -> Change:
        """Return how quantiles of numbers changed that were released as waves; 0.5 is the median."""
        old, new = self._require_distributions()
        return Change(old.quantile(probabilities), new.quantile(probabilities))

    @property
    def quartiles(self) -> Change | None:
        """How the quartiles changed, or None if the reports do not contain them, or have weights."""
        if not all(isinstance(each, Distribution) and each.has_quantiles for each in (self.old, self.new)):
            return None
        return self.quantile((0.25, 0.5, 0.75))

    def share(self, low: float, high: float) -> Change:
        """Return how the share of the numbers from `low` to `high` changed."""
        old, new = self._require_distributions()
        return Change(old.share(low, high), new.share(low, high))

    def _require_distributions(self) -> tuple[Distribution, Distribution]:
        if not isinstance(self.old, Distribution) or not isinstance(self.new, Distribution):
            raise EstimationError(
                "These results have neither quantiles nor shares of a range. Only columns of rx.SquareWave have them.",
                hint="Release the numbers with rx.SquareWave(0, 120, epsilon=2).",
            )
        return self.old, self.new

    def consistent(self) -> Floats:
        raise EstimationError(
            "A change has no `consistent`: that makes shares that are not negative, and a change may be negative.",
            hint="Use change.value, or change.new.consistent() for the new shares.",
        )

    def largest(self, number: int) -> Change:
        """Return the rows that changed most, up or down, with intervals that hold although they were chosen."""
        return cast(Change, super().largest(number))

    def select_rows(self, indexes: Any, *, chosen_by_estimate: bool = False) -> Change:
        old, new = (each.select_rows(indexes, chosen_by_estimate=chosen_by_estimate) for each in self.source_results)
        return replace(self, old=old, new=new, is_chosen=self.is_chosen or chosen_by_estimate)

    def has_impossible_estimates(self) -> bool:
        return self.old.has_impossible_estimates() or self.new.has_impossible_estimates()

    def to_arrow(self, confidence_level: float = 0.95, *, simultaneous: bool = False, about: About = "sample") -> Any:
        """Return a pyarrow table: value, both estimates, their difference, its standard error and interval."""
        table = super().to_arrow(confidence_level, simultaneous=simultaneous, about=about)
        names = ["change" if name == "estimate" else name for name in table.column_names]
        table, place = table.rename_columns(names), len(self.key_columns)
        for name, result in (("new", self.new), ("old", self.old)):
            table = table.add_column(place, name, pa.array(np.atleast_1d(result.value)))
        return table

    def __repr__(self) -> str:
        shown = self.largest(self.max_shown_rows)
        quartiles = [] if self.quartiles is None else format_change_rows(self.quartiles)
        lines = [*map(str, format_change_rows(shown)), *map(str, quartiles)]
        if shown is not self:
            lines.append(f"... and {len(self.labels) - len(shown.labels):,} more, none of which changed more")
        return "\n".join([*lines, *self._describe_notes(shown)])

    def _describe_notes(self, shown: Result) -> list[str]:
        levels = f"{self.old.describe_n_and_epsilon()} -> {self.new.describe_n_and_epsilon()}"
        notes = [f"95 % confidence intervals about these individuals{TOGETHER if shown.is_chosen else ''}; {levels}."]
        if self.quartiles is not None or isinstance(self.old, Quantiles):
            notes.append(AT_LEAST.format(95))
        return [*notes, IMPLAUSIBLE] if self.has_impossible_estimates() else notes

    def _repr_html_(self) -> str:
        shown = self.largest(self.max_shown_rows)
        low, high = map(np.atleast_1d, shown.interval())
        reach = max(float(np.abs([low, high]).max()), 1e-9)
        rows = [[*texts[:4], f"{texts.low} to {texts.high}"] for texts in format_change_rows(shown)]
        places = zip((low / reach + 1) / 2, (high / reach + 1) / 2, strict=True)
        pictures = [draw_change_interval(start, stop) for start, stop in places]
        notes = self._describe_notes(shown)
        if shown is not self:
            notes.insert(0, f"the {len(shown.labels):,} of {len(self.labels):,} that changed most")
        return format_html_table(["value", "old", "new", "change", "95 % confidence interval"], rows, notes, pictures)


def compare(old: Result, new: Result) -> Change:
    """Return the change from one result to another, the second minus the first.

    The results must come from different releases, or from groups of one release that have no individual in common: two
    levels of one release share their noise. An interval about the individuals holds whether or not the same individuals
    are in both results. An interval about the population is for two samples without a common individual.

    Args:
        old: A result.
        new: A result of the same values, in the same order.

    Returns:
        The change of every value with its interval, as a result: `change["yes"]`, `.largest(10)`, `.to_frame()`.

    Raises:
        EstimationError: The two results are of different values or ranges.

    Example:
        >>> from relaxdp import Categorical
        >>> answers = Categorical(["yes", "no"])
        >>> old, new = (answers.estimate(["yes"] * n + ["no"] * (1000 - n), epsilon=8) for n in (412, 440))
        >>> print(compare(old, new))
        yes: 41.19 % -> 44.00 %, +2.80 points (+2.56 to +3.04)
        no: 58.81 % -> 56.00 %, -2.80 points (-3.04 to -2.56)
        95 % confidence intervals about these individuals; n = 1,000, epsilon = 8 -> n = 1,000, epsilon = 8.
    """
    for each in (old, new):
        if not isinstance(each, Result):
            raise EstimationError(
                "`compare` expects two results of rx.estimate, got {type}.",
                hint="Estimate each side first: rx.compare(rx.estimate(old), rx.estimate(new)).",
                type=type(each).__name__,
            )
    if _get_comparison_key(old) != _get_comparison_key(new):
        raise EstimationError(
            "The two results have different values or ranges: {old} and {new}. Only the same values can be compared.",
            hint="Compare results of one column whose values were declared in the same order.",
            old=_describe_labels(old),
            new=_describe_labels(new),
        )
    return Change(old, new)


def _get_comparison_key(result: Result) -> tuple[Any, ...]:
    """Return what must be equal to compare two results. Totals of different numbers of individuals are comparable."""
    source = result.source if isinstance(result, Totals) else result
    return isinstance(result, Totals), list(result.labels), source.minimum, source.maximum


def _describe_labels(result: Result) -> str:
    if not result.is_share:
        return f"{result.labels[0]} of {result.minimum:g} to {result.maximum:g}"
    return ", ".join(map(format_label, result.labels[:3])) + (" ..." if len(result.labels) > 3 else "")


class FormattedChange(NamedTuple):
    """One row of a change, as people read it: shares in percent and points, means as numbers."""

    label: str
    old: str
    new: str
    change: str
    low: str
    high: str

    def __str__(self) -> str:
        return f"{self.label}: {self.old} -> {self.new}, {self.change} ({self.low} to {self.high})"


def format_change_rows(
    change: Change, confidence_level: float = 0.95, *, simultaneous: bool = False, about: About = "sample"
) -> list[FormattedChange]:
    """Return the rows of a change in words, with as many digits as their errors leave a meaning."""
    ends = change.interval(confidence_level, simultaneous=simultaneous, about=about)
    columns = (np.atleast_1d(each) for each in (change.old.value, change.new.value, change.value, *ends))
    scale, unit, points, digits = (100, " %", " points", 1) if change.is_share else (1, "", "", 0)
    errors = np.atleast_1d(change.compute_std_error(about)) * scale
    finest = float(np.min(errors, initial=np.inf, where=errors > 0))
    if np.isfinite(finest):
        digits = max(digits, (not change.is_share) - int(np.floor(np.log10(finest))))

    def write(number: float, sign: str = "") -> str:
        return f"{round(float(number) * scale, digits) + 0.0:{sign},.{digits}f}"  # Adding 0.0 turns -0.0 into 0.0.

    rows = []
    for label, old, new, *numbers in zip(change.labels, *columns, strict=True):
        by, low, high = (write(number, "+") for number in numbers)
        rows.append(FormattedChange(format_label(label), write(old) + unit, write(new) + unit, by + points, low, high))
    return rows
