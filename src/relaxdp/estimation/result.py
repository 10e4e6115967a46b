"""What every estimate can be asked for: value, error, interval, a frame, a readable text, a plot."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from relaxdp.encodings.protocol import Measure
from relaxdp.errors import CountsError, MissingPartError

Floats = NDArray[np.float64]
Places = NDArray[np.intp]
About = Literal["objects", "population"]

# What noise does once in a billion times: six standard errors of a normal law.
_NEVER = 1e-9
_SHOWN = 20
"""How many rows a result prints."""
BEYOND = {-1: "below", 1: "above"}
TOGETHER = ", all values at once"
"""What is said of intervals that are simultaneous."""
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


def label_text(label: Any) -> str:
    """Return a label as tables print it. None is the missing category.

    >>> label_text("flu"), label_text(None)
    ('flu', '(missing)')
    """
    return "(missing)" if label is None else str(label)


def check_about(about: str) -> None:
    """Refuse a meaning of an interval that is not offered."""
    if about not in ("objects", "population"):
        raise CountsError("an interval is about 'objects' (these ones) or 'population', not {about!r}.", about=about)


def tail_of(confidence_level: float, questions: int) -> float:
    """Return the error on each side of each interval so that all of so many independent questions hold at once."""
    if not 0 < confidence_level < 1:
        raise CountsError(
            "a confidence level lies between 0 and 1, like 0.95; not {confidence_level}.",
            confidence_level=confidence_level,
        )
    return (1 - confidence_level) / 2 / questions


def questions_of(values: int, *, exclusive: bool) -> int:
    """Return how many questions the shares of values are: two that sum to 1 are one question."""
    return 1 if exclusive and values == 2 else values


def as_pandas(table: Any) -> Any:
    """Return a pyarrow table as a pandas data frame."""
    try:
        import pandas  # noqa: F401, PLC0415
    except ImportError:
        raise MissingPartError("to_frame() needs pandas (pip install pandas); to_arrow() does not.") from None
    return table.to_pandas()


class Result(ABC):
    """An estimate with one row per label."""

    labels: Sequence[Any]
    least: float = 0.0
    """The least and the most that an estimated number can be in truth."""
    most: float = 1.0
    most_shown: int = _SHOWN
    """How many rows are printed: the largest of more."""
    is_share: bool = True
    """Whether a row is a share of the objects; else it is a number, like a mean."""
    is_chosen: bool = False
    """Whether these rows were chosen by what they say: then all their intervals are simultaneous over all rows."""

    @property
    def questions(self) -> int:
        """How many questions the rows answer, by which simultaneous intervals divide their error."""
        return len(self.labels)

    @property
    def keys(self) -> dict[str, list[Any]]:
        """What tells the rows apart, as columns of a frame: the value, or one column for each side of a table."""
        return {"value": list(self.labels)}

    @property
    @abstractmethod
    def value(self) -> Floats:
        """The unbiased estimates, in the order of the labels."""

    @abstractmethod
    def standard_error(self, about: About = "objects") -> Floats:
        """Return the standard errors of the estimates."""

    def interval(
        self, confidence_level: float = 0.95, *, simultaneous: bool = False, about: About = "objects"
    ) -> tuple[Floats, Floats]:
        """Return the lower and upper ends of the intervals, cut at what is possible.

        An estimate outside of what is possible has the interval that it would have at the edge: what a cut leaves of
        its own would be short or nothing, and read as certainty. It still holds as often as it says, and more.

        About "objects": these very objects, so that only the noise is random. About "population": the larger one that
        these objects are a random sample of. `simultaneous` intervals hold for all rows at once; those of chosen rows
        always do.
        """
        low, high = self._ends(confidence_level, simultaneous, about)
        outside = np.clip(self.value, self.least, self.most) - self.value
        low, high = low + np.minimum(outside, 0), high + np.maximum(outside, 0)
        return np.clip(low, self.least, self.most), np.clip(high, self.least, self.most)

    def beyond(
        self, confidence_level: float = 0.95, *, simultaneous: bool = False, about: About = "objects"
    ) -> NDArray[np.int8]:
        """Return -1 for rows that lie below what can be told at this level, 1 for those above, 0 for all others.

        Their estimates lie farther outside of what is possible than their error reaches. Noise does that; of the number
        nothing is known but the bound that `interval` gives.
        """
        low, high = map(np.atleast_1d, self._ends(confidence_level, simultaneous, about))
        return (low >= self.most).astype(np.int8) - (high <= self.least)

    def _ends(self, confidence_level: float, simultaneous: bool, about: About) -> tuple[Floats, Floats]:
        check_about(about)
        together = simultaneous or self.is_chosen
        return self.ends(tail_of(confidence_level, self.questions if together else 1), about)

    @abstractmethod
    def ends(self, tail: float, about: About) -> tuple[Floats, Floats]:
        """Return the ends of intervals with error `tail` on each side, not cut at what is possible."""

    def consistent(self) -> Floats:
        """Return shares that are not negative and sum to 1, where the answer is made of shares."""
        raise CountsError("this answer is not made of shares, so none of them can be made consistent.")

    def largest(self, number: int) -> Result:
        """Return the rows with the largest estimates, largest first, or all in their own order if there are no more.

        They came out large because noise helped them: the interval of a single row, which knows nothing of the choice,
        would miss them far more often than it says. So theirs hold for all rows at once, and for any that are chosen.

        Claim: the share of intervals of chosen rows that hold; tests/statistical/estimation/test_coverage.py.
        """
        if number < 1:
            raise CountsError("at least one row is shown, not {number}.", number=number)
        if len(self.labels) <= number:
            return self
        return self.choose(np.argsort(-self.prominence, kind="stable")[:number])

    @property
    def prominence(self) -> Floats:
        """By what rows are the largest."""
        return np.atleast_1d(self.value)

    def choose(self, places: Any) -> Result:
        """Return some rows, by their places, that were chosen by what they say: see `largest`."""
        return Chosen(self, np.asarray(places, dtype=np.intp))

    def only(self, places: Any) -> Result:
        """Return some rows, by their places, that were chosen without a look at what they say."""
        return Chosen(self, np.asarray(places, dtype=np.intp), is_chosen=False)

    def is_implausible(self) -> bool:
        """Tell whether an estimate lies so far outside what is possible that these cannot be all reports of a release.

        Then no possible number makes the reports likelier than once in a billion times: the tail of the counts' own law
        says so, because with few reports an honest estimate may lie many standard errors away.
        """
        return bool(np.any(self.beyond(1 - 2 * _NEVER)))

    @property
    def std_error(self) -> Floats:
        """The standard errors about these objects."""
        return self.standard_error()

    def to_rows(
        self, confidence_level: float = 0.95, *, simultaneous: bool = False, about: About = "objects"
    ) -> list[EstimateRow]:
        """Return the estimate of each label with its error and interval, for whatever shows them."""
        asked: Any = {"confidence_level": confidence_level, "simultaneous": simultaneous, "about": about}
        numbers = (self.value, self.standard_error(about), *self.interval(**asked), self.beyond(**asked))
        columns = (np.atleast_1d(each).tolist() for each in numbers)
        rows = zip(zip(*self.keys.values(), strict=True), *columns, strict=True)
        return [EstimateRow._make((*row[:-1], BEYOND.get(row[-1]))) for row in rows]

    def to_arrow(self, confidence_level: float = 0.95, *, simultaneous: bool = False, about: About = "objects") -> Any:
        """Return a pyarrow table: value (of a two-way table, both values), estimate, standard error and interval."""
        low, high = self.interval(confidence_level, simultaneous=simultaneous, about=about)
        columns = {
            **{name: pa.array(column) for name, column in self.keys.items()},
            "estimate": np.atleast_1d(self.value),
            "std_error": np.atleast_1d(self.standard_error(about)),
            "low": np.atleast_1d(low),
            "high": np.atleast_1d(high),
        }
        return pa.table(columns)

    def to_frame(self, confidence_level: float = 0.95, *, simultaneous: bool = False, about: About = "objects") -> Any:
        """Return the same as a pandas data frame."""
        return as_pandas(self.to_arrow(confidence_level, simultaneous=simultaneous, about=about))

    def _repr_html_(self) -> str:
        from relaxdp.estimation.html import html_of  # noqa: PLC0415

        return html_of(self)

    def plot(
        self,
        axes: Any = None,
        *,
        top: int | None = None,
        confidence_level: float = 0.95,
        simultaneous: bool = False,
        about: About = "objects",
    ) -> Any:
        """Draw the estimates with their intervals; returns matplotlib's axes. A two-way table becomes a heat map.

        Of more than `top` values the largest are drawn, with intervals that hold although they were chosen.
        """
        from relaxdp.estimation.plot import MOST_DRAWN, plot_result  # noqa: PLC0415

        shown = self.largest(max(MOST_DRAWN, self.most_shown) if top is None else top)
        return plot_result(shown, axes, confidence_level=confidence_level, simultaneous=simultaneous, about=about)

    def __repr__(self) -> str:
        shown = self.largest(self.most_shown)
        texts = list(map(label_text, shown.labels))
        width = max([5, *map(len, texts)])
        lines = [
            f"{'value':<{width}}  estimate  95 % interval (about these objects{TOGETHER if shown.is_chosen else ''})"
        ]
        for text, row in zip(texts, shown.to_rows(), strict=True):
            said = "" if row.beyond is None else f"  {row.beyond} what can be told at this level"
            lines.append(f"{text:<{width}}  {row.estimate:8.4f}  [{row.low:.4f}, {row.high:.4f}]{said}")
        if shown is not self:
            lines.append(f"... and {len(self.labels) - self.most_shown:,} more, none of them larger")
        return "\n".join([*lines, IMPLAUSIBLE] if self.is_implausible() else lines)


class Measured(Result):
    """The mean of numbers that reports stand for: one row, within the range of the measure."""

    is_share = False
    labels = ("mean",)
    measure: Measure

    @property
    def least(self) -> float:  # type: ignore[override]
        """The lower end of the range."""
        return self.measure.least

    @property
    def most(self) -> float:  # type: ignore[override]
        """The upper end of the range."""
        return self.measure.most


@dataclass(frozen=True, eq=False, repr=False)
class Chosen(Result):
    """Rows of an estimate, in any order; usually chosen by what they say."""

    whole: Result
    places: Places
    is_chosen: bool = True

    @property
    def labels(self) -> Sequence[Any]:  # type: ignore[override]
        """The labels of the chosen rows."""
        labels = self.whole.labels
        return [labels[place] for place in self.places]

    @property
    def keys(self) -> dict[str, list[Any]]:
        """Those of the chosen rows."""
        return {name: [column[place] for place in self.places] for name, column in self.whole.keys.items()}

    @property
    def least(self) -> float:  # type: ignore[override]
        """As of all rows."""
        return self.whole.least

    @property
    def most(self) -> float:  # type: ignore[override]
        """As of all rows."""
        return self.whole.most

    @property
    def is_share(self) -> bool:  # type: ignore[override]
        """As all rows."""
        return self.whole.is_share

    @property
    def questions(self) -> int:
        """As many as all rows are: choosing some by what they say does not make the others unasked."""
        return self.whole.questions

    @property
    def value(self) -> Floats:
        """The estimates of the chosen rows."""
        return np.asarray(np.atleast_1d(self.whole.value)[self.places])

    def standard_error(self, about: About = "objects") -> Floats:
        """Return the standard errors of the chosen rows."""
        return np.asarray(np.atleast_1d(self.whole.standard_error(about))[self.places])

    def ends(self, tail: float, about: About) -> tuple[Floats, Floats]:
        """Return the ends of the chosen rows."""
        low, high = map(np.atleast_1d, self.whole.ends(tail, about))
        return low[self.places], high[self.places]

    @property
    def prominence(self) -> Floats:
        """That of the chosen rows."""
        return self.whole.prominence[self.places]

    def is_implausible(self) -> bool:
        """Tell it of all rows."""
        return self.whole.is_implausible()
