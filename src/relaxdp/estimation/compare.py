"""The change between two results: of two groups, or of two releases, whose noises are independent."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np
import pyarrow as pa

from relaxdp.errors import CountsError
from relaxdp.estimation.result import IMPLAUSIBLE, TOGETHER, About, Floats, Result, label_text
from relaxdp.estimation.wave import Distribution


@dataclass(frozen=True, eq=False, repr=False)
class Change(Result):
    """The new estimate minus the old one, row by row.

    The noises of the two results are independent, so squared distances to the ends are added.

    Claim: coverage of 94.5 % or more; tests/statistical/estimation/test_coverage.py.
    """

    old: Result
    new: Result
    is_chosen: bool = False

    @property
    def labels(self) -> Sequence[Any]:  # type: ignore[override]
        """The labels, which both results share."""
        return self.old.labels

    @property
    def is_share(self) -> bool:  # type: ignore[override]
        """As in each result."""
        return self.old.is_share

    @property
    def most_shown(self) -> int:  # type: ignore[override]
        """As many rows as each result shows."""
        return self.old.most_shown

    @property
    def keys(self) -> dict[str, list[Any]]:
        """The columns that tell the rows apart."""
        return self.old.keys

    @property
    def least(self) -> float:  # type: ignore[override]
        """The largest decrease that is possible."""
        return self.new.least - self.old.most

    @property
    def most(self) -> float:  # type: ignore[override]
        """The largest increase that is possible."""
        return self.new.most - self.old.least

    @property
    def questions(self) -> int:
        """As many as the result with more questions has."""
        return max(self.old.questions, self.new.questions)

    @property
    def value(self) -> Floats:
        """The unbiased estimate of every change."""
        return np.asarray(self.new.value - self.old.value)

    @property
    def prominence(self) -> Floats:
        """A change is large whether it goes up or down."""
        return np.abs(np.atleast_1d(self.value))

    def standard_error(self, about: About = "objects") -> Floats:
        """Return the standard errors of the changes."""
        return np.sqrt(self.old.standard_error(about) ** 2 + self.new.standard_error(about) ** 2)

    def ends(self, tail: float, about: About) -> tuple[Floats, Floats]:
        """Return the ends before they are cut, from the distances of both results to their own ends."""
        old_low, old_high = self.old.ends(tail, about)
        new_low, new_high = self.new.ends(tail, about)
        below = np.sqrt((self.new.value - new_low) ** 2 + (old_high - self.old.value) ** 2)
        above = np.sqrt((new_high - self.new.value) ** 2 + (self.old.value - old_low) ** 2)
        return self.value - below, self.value + above

    def quantile(self, probabilities: float | Sequence[float]) -> Change:
        """Return how quantiles of numbers changed that were released as waves; 0.5 is the median."""
        old, new = self._distributions()
        return Change(old.quantile(probabilities), new.quantile(probabilities))

    @property
    def quartiles(self) -> Change | None:
        """How the quartiles changed, or None where the reports do not tell them."""
        return self.quantile(self.old.quartiles.probabilities) if isinstance(self.old, Distribution) else None

    def share(self, low: float, high: float) -> Change:
        """Return how the share of the numbers from `low` to `high` changed."""
        old, new = self._distributions()
        return Change(old.share(low, high), new.share(low, high))

    def _distributions(self) -> tuple[Distribution, Distribution]:
        if not isinstance(self.old, Distribution) or not isinstance(self.new, Distribution):
            raise CountsError("quantiles and shares of a range are told by numbers that were released as waves.")
        return self.old, self.new

    def consistent(self) -> Floats:
        """Raise an error: a change has no consistent shares."""
        raise CountsError("a difference may be negative: there are no consistent shares of it.")

    def largest(self, number: int) -> Change:
        """Return the rows that changed most, up or down, with intervals that hold although they were chosen."""
        return cast(Change, super().largest(number))

    def choose(self, places: Any) -> Change:
        """Return some rows that were chosen by their estimates, with those of both results."""
        return replace(self, old=self.old.choose(places), new=self.new.choose(places), is_chosen=True)

    def only(self, places: Any) -> Change:
        """Return some rows that were chosen without a look at their estimates."""
        return replace(self, old=self.old.only(places), new=self.new.only(places))

    def is_implausible(self) -> bool:
        """Tell whether one of the two results is implausible."""
        return self.old.is_implausible() or self.new.is_implausible()

    def to_arrow(self, confidence_level: float = 0.95, *, simultaneous: bool = False, about: About = "objects") -> Any:
        """Return a pyarrow table: value, both estimates, their difference, its standard error and interval."""
        table = super().to_arrow(confidence_level, simultaneous=simultaneous, about=about)
        names = ["change" if name == "estimate" else name for name in table.column_names]
        table, place = table.rename_columns(names), len(self.keys)
        for name, result in (("new", self.new), ("old", self.old)):
            table = table.add_column(place, name, pa.array(np.atleast_1d(result.value)))
        return table

    def __repr__(self) -> str:
        shown = self.largest(self.most_shown)
        quartiles = [] if self.quartiles is None else describe_rows(self.quartiles)
        lines = [*map(str, describe_rows(shown)), *map(str, quartiles)]
        if shown is not self:
            lines.append(f"... and {len(self.labels) - len(shown.labels):,} more, none of which changed more")
        lines.append(f"(95 % intervals about these objects{TOGETHER if shown.is_chosen else ''})")
        return "\n".join([*lines, IMPLAUSIBLE] if self.is_implausible() else lines)

    def _repr_html_(self) -> str:
        from relaxdp.estimation.html import html_of_change  # noqa: PLC0415

        return html_of_change(self)


def compare(old: Result, new: Result) -> Change:
    """Return the change from one result to another, the second minus the first.

    The results must come from different releases, or from groups of one release that have no individual in common: two
    levels of one release share their noise. An interval about the objects holds whether or not the same individuals
    are in both results. An interval about the population is for two samples without a common individual.

    Args:
        old: An estimate.
        new: An estimate of the same values, in the same order.

    Returns:
        The change of every value with its interval, as a `Result`.

    Raises:
        CountsError: If the two results are of different values or ranges.

    >>> from relaxdp import Categorical
    >>> answers = Categorical(["yes", "no"])
    >>> old, new = (answers.estimate(["yes"] * n + ["no"] * (1000 - n), epsilon=8) for n in (412, 440))
    >>> print(compare(old, new))
    yes: 41.19 % -> 44.00 %, +2.80 points (+2.56 to +3.04)
    no: 58.81 % -> 56.00 %, -2.80 points (-3.04 to -2.56)
    (95 % intervals about these objects)
    """
    for each in (old, new):
        if not isinstance(each, Result):
            raise CountsError(
                "Expected two estimates, got {type}. Estimate each side first: rx.compare(rx.estimate(old), "
                "rx.estimate(new)).",
                type=type(each).__name__,
            )
    if list(old.labels) != list(new.labels) or (old.least, old.most) != (new.least, new.most):
        raise CountsError("a difference needs two estimates of the same values, in the same order.")
    return Change(old, new)


@dataclass(frozen=True, slots=True)
class ChangeText:
    """One row of a change, as people read it: shares in percent and points, means as numbers."""

    label: str
    old: str
    new: str
    change: str
    low: str
    high: str

    def __str__(self) -> str:
        return f"{self.label}: {self.old} -> {self.new}, {self.change} ({self.low} to {self.high})"


def describe_rows(
    change: Change, confidence_level: float = 0.95, *, simultaneous: bool = False, about: About = "objects"
) -> list[ChangeText]:
    """Return the rows of a change in words, with as many digits as their errors leave a meaning."""
    low, high = change.interval(confidence_level, simultaneous=simultaneous, about=about)
    numbers = [np.atleast_1d(each) for each in (change.old.value, change.new.value, change.value, low, high)]
    scale, unit, points, least = (100, " %", " points", 1) if change.is_share else (1, "", "", 0)
    errors = np.atleast_1d(change.standard_error(about)) * scale
    finest = float(np.min(errors, initial=np.inf, where=errors > 0))
    digits = least
    if np.isfinite(finest):
        digits = max(least, (not change.is_share) - int(np.floor(np.log10(finest))))

    def write(number: float, sign: str = "") -> str:
        return f"{round(float(number) * scale, digits) + 0.0:{sign},.{digits}f}"  # Adding 0.0 turns -0.0 into 0.0.

    return [
        ChangeText(
            label_text(label),
            write(a) + unit,
            write(b) + unit,
            write(by, "+") + points,
            write(least_change, "+"),
            write(most_change, "+"),
        )
        for label, a, b, by, least_change, most_change in zip(change.labels, *numbers, strict=True)
    ]
