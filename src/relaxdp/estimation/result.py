"""Results: estimates with standard errors and confidence intervals, as numbers, data frames, text and plots."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from difflib import get_close_matches
from html import escape
from numbers import Integral, Real
from typing import Any, Literal, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from relaxdp.errors import EstimationError, RelaxdpError
from relaxdp.estimation.consistency import compute_empirical_bayes_shares
from relaxdp.estimation.display import draw_estimate_bar, format_html_table, format_table
from relaxdp.lazy_imports import polars
from relaxdp.mechanisms.base import MeanWeights

Floats = NDArray[np.float64]
RowIndexes = NDArray[np.intp]
About = Literal["sample", "population"]

# What noise does once in a billion times: six standard errors of a normal law.
_NEVER = 1e-9
BEYOND = {-1: "below", 1: "above"}
TOGETHER = ", all values at once"
"""What is said of intervals that are simultaneous."""
UNKNOWN = "unknown"
"""The level of reports whose epsilon nobody stated."""
IMPLAUSIBLE = (
    "The reports do not look like reports at this level: an estimate lies farther outside what is possible than noise "
    "takes it once in a billion times. Were rows chosen by their reports, or is the level mistaken?"
)


class EstimateRow(NamedTuple):
    """One row of an estimate, as tables show it."""

    keys: tuple[Any, ...]
    """The value; of a two-way table, both values."""
    estimate: float
    std_error: float
    low: float
    high: float
    beyond: str | None
    """Whether the estimate lies "below" or "above" what can be told at this level."""


def format_label(label: Any) -> str:
    """Return a label as tables print it. None is the missing category.

    >>> format_label("flu"), format_label(None)
    ('flu', '(missing)')
    """
    return "(missing)" if label is None else str(label)


def check_about(about: str) -> None:
    """Reject an `about` other than "sample" (these individuals) and "population"."""
    if about not in ("sample", "population"):
        raise EstimationError(
            "Unknown `about` {about!r}: expected 'sample' (these individuals) or 'population'.",
            hint="Pass about='sample' or about='population'.",
            about=about,
        )


def check_between(error: type[RelaxdpError], name: str, number: Any, low: float, high: float, example: str) -> None:
    """Reject anything but a number between two others, both of which it must not reach."""
    if not isinstance(number, Real) or isinstance(number, bool) or not low < float(number) < high:
        raise error(
            "`{name}` must be a number between {low:g} and {high:g}, not {given}.",
            hint="Pass {example}.",
            **{"name": name, "low": low, "high": high, "example": example},
            given=_format_number_or_type(number),
        )


def check_whole_number(error: type[RelaxdpError], name: str, number: Any, least: int, most: int, example: str) -> None:
    """Reject anything but a whole number in a range."""
    if not isinstance(number, Integral) or isinstance(number, bool) or not least <= int(number) <= most:
        raise error(
            "`{name}` must be a whole number from {least:,} to {most:,}, not {given}.",
            hint="Pass {example}.",
            **{"name": name, "least": least, "most": most, "example": example},
            given=_format_number_or_type(number),
        )


def _format_number_or_type(number: Any) -> str:
    """Return a number, or a text given instead of one, as it is; of anything else, which may hold data, the type."""
    return repr(number) if isinstance(number, Real | str) else type(number).__name__


def compute_tail_probability(confidence_level: float, n_comparisons: int) -> float:
    """Return the tail probability on each side of each interval, so that this many intervals hold at once."""
    check_between(EstimationError, "confidence_level", confidence_level, 0, 1, "a number such as 0.95")
    return (1 - confidence_level) / 2 / n_comparisons


def count_comparisons(n_values: int, *, exclusive: bool) -> int:
    """Return how many comparisons the shares of values are: two shares that sum to 1 are one."""
    return 1 if exclusive and n_values == 2 else n_values


def get_frame_library(data: Any) -> str:
    """Return the library in which results from this data are returned: "pandas", "polars", or else "pyarrow"."""
    module = type(data).__module__.partition(".")[0]
    return module if module in ("pandas", "polars") else "pyarrow"


class _Tabular(ABC):
    """Estimates that can be returned as a table."""

    @property
    @abstractmethod
    def frame_library(self) -> str:
        """The library in which `to_frame` returns the estimates: "pandas", "polars" or "pyarrow"."""

    @abstractmethod
    def to_arrow(
        self, confidence_level: float = 0.95, *, simultaneous: bool = False, about: About = "sample"
    ) -> pa.Table:
        """Return a pyarrow table: value (of a crosstab, both values), estimate, standard error and interval."""

    def to_frame(self, confidence_level: float = 0.95, *, simultaneous: bool = False, about: About = "sample") -> Any:
        """Return the same in the library of the data: a pandas or polars data frame, else a pyarrow table."""
        table = self.to_arrow(confidence_level, simultaneous=simultaneous, about=about)
        if self.frame_library == "polars":
            return polars.from_arrow(table)
        return table.to_pandas() if self.frame_library == "pandas" else table


class Result(_Tabular):
    """An estimate with one row for each value. It prints as a table.

    Example:
        >>> from relaxdp import Categorical
        >>> result = Categorical(["no", "yes"]).estimate(["no"] * 700 + ["yes"] * 300, epsilon=2)
        >>> round(float(result["yes"]), 3), result.n, result.epsilon
        (0.237, 1000, Decimal('2'))
        >>> low, high = result["yes"].interval(0.99)
        >>> round(float(low), 3), round(float(high), 3)
        (0.202, 0.272)
        >>> result.to_frame().column_names
        ['value', 'estimate', 'std_error', 'low', 'high']
    """

    labels: Sequence[Any]
    minimum: float = 0.0
    """The least and the most that an estimated number can be in truth."""
    maximum: float = 1.0
    max_shown_rows: int = 20
    """How many rows are printed: the largest of more."""
    number_format: str = ".4f"
    """How numbers are printed."""
    is_share: bool = True
    """Whether a row is a share of the individuals; else it is a number, like a mean."""
    sums_to_one: bool = False
    """Whether the rows are the shares of all values, which `consistent` needs."""
    is_chosen: bool = False
    """Whether these rows were chosen by what they say: then all their intervals are simultaneous over all rows."""

    @property
    def frame_library(self) -> str:
        own: str | None = self.__dict__.get("_library")
        return own or (self.source_results[0].frame_library if self.source_results else "pyarrow")

    def set_frame_library(self, library: str) -> None:
        """State the library of the data that the result was estimated from."""
        object.__setattr__(self, "_library", library)
        for source in self.source_results:
            source.set_frame_library(library)

    @property
    def source_results(self) -> Sequence[Result]:
        """The results that this one is made from."""
        return ()

    @property
    def levels(self) -> dict[str, int]:
        """How many individuals were counted at each epsilon."""
        found: Counter[str] = Counter()
        for source in self.source_results:
            found.update(source.levels)
        return dict(found)

    @property
    def n(self) -> int:
        """How many individuals were counted."""
        return sum(self.levels.values())

    @property
    def size(self) -> float:
        """How many individuals the estimate is about: `n`, or the sum of the weights."""
        return sum(source.size for source in self.source_results) if self.source_results else self.n

    @property
    def epsilon(self) -> Decimal | None:
        """The epsilon of the reports, the largest of several; None where it is unknown, and for crosstabs."""
        known = [level for level in self.levels if level.replace(".", "").isdecimal()]
        return max(map(Decimal, known), default=None)

    def describe_n_and_epsilon(self) -> str:
        """Return the number of individuals and the epsilon in words."""
        levels = [level for level in self.levels if level != UNKNOWN]
        if len(levels) > 1:
            levels = [f"{level} ({n:,})" for level, n in self.levels.items()]
        weights = f", sum of weights = {self.size:,.6g}" if self.size != self.n else ""
        return f"n = {self.n:,}{weights}" + (f", epsilon = {', '.join(levels)}" if levels else "")

    def __getitem__(self, label: Any) -> Result:
        """Return the row of one value, such as `result["flu"]`; of a crosstab, of a pair such as `result["flu", "no"]`.

        Args:
            label: A declared value, or for a crosstab a tuple of two.

        Returns:
            A result with one row, so that `float(result["flu"])` is the estimate, and `.interval()` and `.std_error`
            are single numbers.

        Raises:
            EstimationError: If the result has no such row.
        """
        rows = list(self)
        if label in rows:
            return self.select_rows(rows.index(label))
        keys = list(map(repr, rows))
        near = get_close_matches(repr(label), keys, n=1) or keys[:1]
        raise EstimationError(
            "The result has no row {label}. Its rows are {listed}.",
            hint="Use one of these, such as result[{near}].",
            label=repr(label),
            listed=", ".join(keys[:12]) + (" ..." if len(keys) > 12 else ""),
            near=near[0].strip("()"),
        )

    def __len__(self) -> int:
        return len(self.labels)

    def __iter__(self) -> Iterator[Any]:
        return (name[0] if len(name) == 1 else name for name in zip(*self.key_columns.values(), strict=True))

    def __float__(self) -> float:
        if len(self.labels) != 1:
            raise EstimationError(
                "The result has {rows:,} rows, so it is not a single number.",
                hint="Choose a row, such as float(result[{first!r}]).",
                rows=len(self.labels),
                first=next(iter(self)),
            )
        return float(np.atleast_1d(self.value)[0])

    @property
    def comparison_count(self) -> int:
        """The number of comparisons, by which simultaneous intervals divide their error."""
        return len(self.labels)

    @property
    def key_columns(self) -> dict[str, list[Any]]:
        """The key of each row, as columns of a frame: the value, or for crosstabs a column for each side."""
        return {"value": list(self.labels)}

    @property
    @abstractmethod
    def value(self) -> Floats:
        """The unbiased estimates, in the order of the labels."""

    @abstractmethod
    def compute_std_error(self, about: About = "sample") -> Floats:
        """Return the standard errors of the estimates."""

    def interval(
        self, confidence_level: float = 0.95, *, simultaneous: bool = False, about: About = "sample"
    ) -> tuple[Floats, Floats]:
        """Return the confidence intervals, cut at the smallest and the largest possible number.

        An estimate outside of the possible range has the interval of an estimate at its edge. A cut of its own interval
        would be short or empty, and would look certain. The interval covers at least as often as stated.

        Args:
            confidence_level: The confidence level.
            simultaneous: Return intervals that hold for all rows at once. Those of chosen rows always do.
            about: By default these individuals, so that only the noise is random. "population" is the larger group
                that they are a random sample of.

        Returns:
            The lower and the upper ends, in the order of `labels`.

        Raises:
            EstimationError: The confidence level is not between 0 and 1.
        """
        low, high = self._compute_interval(confidence_level, simultaneous, about)
        outside = np.clip(self.value, self.minimum, self.maximum) - self.value
        return self._clip_interval(low + np.minimum(outside, 0), high + np.maximum(outside, 0), about)

    def _clip_interval(self, low: Floats, high: Floats, about: About) -> tuple[Floats, Floats]:
        return np.clip(low, self.minimum, self.maximum), np.clip(high, self.minimum, self.maximum)

    def mark_impossible_rows(
        self, confidence_level: float = 0.95, *, simultaneous: bool = False, about: About = "sample"
    ) -> NDArray[np.int8]:
        """Mark rows with impossible estimates: -1 for those far below the possible range, 1 far above it, 0 for others.

        Their estimates lie farther outside of what is possible than their error reaches. Noise does that; of the number
        nothing is known but the bound that `interval` gives.
        """
        low, high = map(np.atleast_1d, self._compute_interval(confidence_level, simultaneous, about))
        return (low >= self.maximum).astype(np.int8) - (high <= self.minimum)

    def _compute_interval(self, confidence_level: float, simultaneous: bool, about: About) -> tuple[Floats, Floats]:
        check_about(about)
        comparisons = self.comparison_count if simultaneous or self.is_chosen else 1
        return self.compute_unclipped_interval(compute_tail_probability(confidence_level, comparisons), about)

    @abstractmethod
    def compute_unclipped_interval(self, tail_probability: float, about: About) -> tuple[Floats, Floats]:
        """Return the ends of intervals with this tail probability on each side, not cut at what is possible."""

    def consistent(self) -> Floats:
        """Return shares that are not negative and sum to 1: less error, at the price of some bias.

        Each is what the share is expected to be, given its estimate, its noise and all other estimates. Where noise is
        small, they are the nearest such shares to the unbiased estimates.

        Raises:
            EstimationError: The rows are not the shares of all values.
        """
        if not self.sums_to_one:
            raise EstimationError(
                "`consistent` needs the shares of all values, which sum to 1. This result does not have all of them.",
                hint="Call result.consistent() on the whole result, or use the unbiased estimates, result.value.",
            )
        return compute_empirical_bayes_shares(self.value, self.std_error**2)

    def quantile(self, probabilities: float | Sequence[float]) -> Result:
        """Return quantiles, where the distribution of numbers is known; 0.5 is the median."""
        raise EstimationError(
            "This result has no quantiles. Only columns released with rx.SquareWave have them.",
            hint="Release the numbers with rx.SquareWave(0, 120, epsilon=2).",
        )

    @property
    def has_totals(self) -> bool:
        """Whether the estimate times the number of individuals is a total."""
        return self.is_share

    def totals(self) -> Result:
        """Return how many individuals have each value, or the sum of all numbers: `size` times the estimate.

        About these individuals, `size` is known. About the population, a sum of weights is an estimate itself.

        Example:
            >>> from relaxdp import Categorical
            >>> result = Categorical(["no", "yes"]).estimate(["no"] * 700 + ["yes"] * 300, epsilon=2)
            >>> print(result.totals())
            value  estimate  95 % confidence interval
            no        762.6  [735.8, 789.9]
            yes       237.4  [210.1, 264.2]
            n = 1,000, epsilon = 2. Intervals are about these individuals.

        Raises:
            EstimationError: The estimate is not a share or a mean of numbers of which none is missing.
        """
        from relaxdp.estimation.totals import Totals  # noqa: PLC0415 (which needs this module)

        return Totals(self)

    @property
    def missing(self) -> Result:
        """The share of missing numbers, where they may be missing."""
        raise EstimationError(
            "The share of missing numbers is unknown, because the column was released without `missing=True`.",
            hint="Make a new release with rx.Numeric(0, 120, missing=True).",
        )

    def largest(self, number: int) -> Result:
        """Return the rows with the largest estimates, largest first, or all in their own order if there are no more.

        They came out large because noise helped them: the interval of a single row, which knows nothing of the choice,
        would miss them far more often than it says. So theirs hold for all rows at once, and for any that are chosen.

        Claim: the share of intervals of chosen rows that hold; tests/statistical/estimation/test_coverage.py.
        """
        check_whole_number(EstimationError, "number", number, 1, 10**9, "a number such as 20")
        if len(self.labels) <= number:
            return self
        return self.select_rows_by_estimate(np.argsort(-self.ranking_values, kind="stable")[:number])

    @property
    def ranking_values(self) -> Floats:
        """The values by which `largest` ranks the rows."""
        return np.atleast_1d(self.value)

    def select_rows_by_estimate(self, indexes: Any) -> Result:
        """Return some rows, by their indexes, that were chosen by their estimates: see `largest`."""
        return self.select_rows(indexes, chosen_by_estimate=True)

    def select_rows(self, indexes: Any, *, chosen_by_estimate: bool = False) -> Result:
        """Return some rows, by their indexes; `chosen_by_estimate` if their estimates decided it."""
        return SelectedRows(self, np.asarray(indexes, dtype=np.intp), is_chosen=self.is_chosen or chosen_by_estimate)

    def has_impossible_estimates(self) -> bool:
        """Tell whether an estimate lies so far outside what is possible that these cannot be all reports of a release.

        Then no possible number makes the reports likelier than once in a billion times: the tail of the counts' own law
        says so, because with few reports an honest estimate may lie many standard errors away.
        """
        return bool(np.any(self.mark_impossible_rows(1 - 2 * _NEVER)))

    @property
    def std_error(self) -> Floats:
        """The standard errors about these individuals."""
        return self.compute_std_error()

    def to_rows(
        self, confidence_level: float = 0.95, *, simultaneous: bool = False, about: About = "sample"
    ) -> list[EstimateRow]:
        """Return a row for each label: its estimate, standard error and interval."""
        columns = self._compute_columns(confidence_level, simultaneous, about).values()
        sides = self.mark_impossible_rows(confidence_level, simultaneous=simultaneous, about=about)
        names = zip(*self.key_columns.values(), strict=True)
        rows = zip(names, *(column.tolist() for column in columns), sides.tolist(), strict=True)
        return [EstimateRow._make((*row, BEYOND.get(side))) for *row, side in rows]

    def to_arrow(
        self, confidence_level: float = 0.95, *, simultaneous: bool = False, about: About = "sample"
    ) -> pa.Table:
        names = {name: pa.array(column) for name, column in self.key_columns.items()}
        return pa.table(names | self._compute_columns(confidence_level, simultaneous, about))

    def _compute_columns(self, confidence_level: float, simultaneous: bool, about: About) -> dict[str, Floats]:
        low, high = self.interval(confidence_level, simultaneous=simultaneous, about=about)
        columns = {"estimate": self.value, "std_error": self.compute_std_error(about), "low": low, "high": high}
        return {name: np.atleast_1d(column) for name, column in columns.items()}

    def _repr_html_(self) -> str:
        shown = self.largest(self.max_shown_rows)
        found = shown.to_rows()
        scale = max(*(row.high for row in found), shown.minimum + 1e-9) - shown.minimum
        rows, pictures = [], []
        for row in found:
            number, low, high = (format(each, shown.number_format) for each in (row.estimate, row.low, row.high))
            number += f" ({row.beyond} what can be told)" if row.beyond else ""
            rows.append([*map(format_label, row.keys), number, f"{low} \N{EN DASH} {high}"])
            places = ((each - shown.minimum) / scale for each in (row.estimate, row.low, row.high))
            pictures.append(draw_estimate_bar(*(min(max(place, 0.0), 1.0) for place in places)))
        headings = [*shown.key_columns, "estimate", "95 % confidence interval"]
        return format_html_table(headings, rows, self._describe_notes(shown), pictures)

    def _describe_notes(self, shown: Result) -> list[str]:
        together = TOGETHER if shown.is_chosen else ""
        notes = [f"{self.describe_n_and_epsilon()}. Intervals are about these individuals{together}."]
        if shown is not self:
            notes.insert(0, f"... and {len(self.labels) - len(shown.labels):,} more, none of them larger")
        return [*notes, IMPLAUSIBLE] if self.has_impossible_estimates() else notes

    def plot(
        self,
        axes: Any = None,
        *,
        top: int | None = None,
        confidence_level: float = 0.95,
        simultaneous: bool = False,
        about: About = "sample",
    ) -> Any:
        """Draw the estimates with their intervals; returns matplotlib's axes. A two-way table becomes a heat map.

        Of more than `top` values the largest are drawn, with intervals that hold although they were chosen.
        """
        from relaxdp.estimation.plot import MAX_PLOTTED_ROWS, plot_result  # noqa: PLC0415

        shown = self.largest(max(MAX_PLOTTED_ROWS, self.max_shown_rows) if top is None else top)
        return plot_result(shown, axes, confidence_level=confidence_level, simultaneous=simultaneous, about=about)

    def __repr__(self) -> str:
        shown = self.largest(self.max_shown_rows)
        rows = []
        for text, row in zip(map(format_label, shown.labels), shown.to_rows(), strict=True):
            beyond = "" if row.beyond is None else f"  {row.beyond} what can be told at this level"
            number, low, high = (format(each, shown.number_format) for each in (row.estimate, row.low, row.high))
            rows.append([text, number, f"[{low}, {high}]{beyond}"])
        table = format_table(["value", "estimate", "95 % confidence interval"], rows, left=(0, 2))
        return "\n".join([table, *self._describe_notes(shown)])


def inherit_from_source(name: str) -> Any:
    """Return a property of a result that its first source has."""
    return property(lambda result: getattr(result.source_results[0], name))


class DerivedResult(Result):
    """A result made from others: everything that it does not define is that of the first one."""

    labels = inherit_from_source("labels")
    key_columns = inherit_from_source("key_columns")
    minimum = inherit_from_source("minimum")
    maximum = inherit_from_source("maximum")
    max_shown_rows = inherit_from_source("max_shown_rows")
    is_share = inherit_from_source("is_share")
    has_totals = inherit_from_source("has_totals")
    number_format = inherit_from_source("number_format")

    @property
    def comparison_count(self) -> int:
        return max(source.comparison_count for source in self.source_results)


class BoundedMean(Result):
    """A mean that is bounded by the range of its numbers: one row."""

    is_share = False
    has_totals = True
    labels = ("mean",)
    mean_weights: MeanWeights

    @property
    def minimum(self) -> float:  # type: ignore[override]
        return self.mean_weights.minimum

    @property
    def maximum(self) -> float:  # type: ignore[override]
        return self.mean_weights.maximum

    def scale_to_range(self, position: Any) -> Floats:
        """Return the number at a position from 0 to 1."""
        return np.asarray(self.minimum + (self.maximum - self.minimum) * position)


@dataclass(frozen=True, eq=False, repr=False)
class SelectedRows(DerivedResult):
    """Selected rows of an estimate, in any order; usually chosen by their estimates."""

    whole: Result
    indexes: RowIndexes
    """Where the rows are. A single number gives one row whose estimate is a number, not an array of one."""
    is_chosen: bool = True

    @property
    def source_results(self) -> Sequence[Result]:
        """The result with all rows. Choosing some by their estimates leaves as many comparisons."""
        return (self.whole,)

    @property
    def labels(self) -> Sequence[Any]:  # type: ignore[override]
        labels = self.whole.labels
        return [labels[place] for place in np.atleast_1d(self.indexes)]

    @property
    def key_columns(self) -> dict[str, list[Any]]:
        indexes = np.atleast_1d(self.indexes)
        return {name: [column[place] for place in indexes] for name, column in self.whole.key_columns.items()}

    @property
    def value(self) -> Floats:
        return np.asarray(np.atleast_1d(self.whole.value)[self.indexes])

    def compute_std_error(self, about: About = "sample") -> Floats:
        return np.asarray(np.atleast_1d(self.whole.compute_std_error(about))[self.indexes])

    def compute_unclipped_interval(self, tail_probability: float, about: About) -> tuple[Floats, Floats]:
        low, high = map(np.atleast_1d, self.whole.compute_unclipped_interval(tail_probability, about))
        return low[self.indexes], high[self.indexes]

    def _clip_interval(self, low: Floats, high: Floats, about: About) -> tuple[Floats, Floats]:
        return self.whole._clip_interval(low, high, about)

    @property
    def ranking_values(self) -> Floats:
        return np.atleast_1d(self.whole.ranking_values[self.indexes])

    def has_impossible_estimates(self) -> bool:
        return self.whole.has_impossible_estimates()


class GroupedResults(dict[str | None, Result], _Tabular):
    """The results of the groups of a pass-through column, by name; None is the group of missing names."""

    def __init__(self, by: str, results: dict[str | None, Result]) -> None:
        super().__init__(results)
        self.by = by

    def __missing__(self, group: object) -> Result:
        raise EstimationError(
            "The column {by!r} has no group with the name that you passed.",
            hint="Run list(result) to see the groups. Their names are text, as in result['north'].",
            by=self.by,
        )

    def totals(self) -> GroupedResults:
        """Return the totals of every group, see `Result.totals`."""
        return GroupedResults(self.by, {group: result.totals() for group, result in self.items()})

    @property
    def frame_library(self) -> str:
        return next(iter(self.values())).frame_library

    @property
    def group_titles(self) -> list[str]:
        """The headings of the groups."""
        return [f"{self.by}: {format_label(group)}" for group in self]

    def to_arrow(
        self, confidence_level: float = 0.95, *, simultaneous: bool = False, about: About = "sample"
    ) -> pa.Table:
        """Return one pyarrow table with the group in its first column."""
        tables = []
        for group, result in self.items():
            table = result.to_arrow(confidence_level, simultaneous=simultaneous, about=about)
            tables.append(table.add_column(0, self.by, pa.array([group] * len(table), pa.string())))
        return pa.concat_tables(tables)

    def __repr__(self) -> str:
        return "\n".join(f"{title}\n{result!r}" for title, result in zip(self.group_titles, self.values(), strict=True))

    def _repr_html_(self) -> str:
        groups = zip(self.group_titles, self.values(), strict=True)
        return "".join(f"<p><b>{escape(title)}</b></p>{result._repr_html_()}" for title, result in groups)

    def plot(self, *, top: int | None = None, confidence_level: float = 0.95, about: About = "sample") -> Any:
        """Draw all groups below each other, on one scale; returns matplotlib's axes, one for each."""
        from relaxdp.estimation.plot import plot_groups  # noqa: PLC0415

        return plot_groups(self, top, confidence_level=confidence_level, about=about)
