"""What every estimate can be asked for: value, error, interval, a frame, a readable text, a plot."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from relaxdp.errors import CountsError, MissingPartError

Floats = NDArray[np.float64]
About = Literal["objects", "population"]

# What noise does once in a billion times: six standard errors of a normal law.
_NEVER = 1e-9
IMPLAUSIBLE = (
    "The reports do not look like reports at this level: an estimate lies farther outside what is possible than noise "
    "takes it once in a billion times. Were rows chosen by their reports, or is the level mistaken?"
)


def check_about(about: str) -> None:
    """Refuse a meaning of an interval that is not offered."""
    if about not in ("objects", "population"):
        raise CountsError(f"an interval is about 'objects' (these ones) or 'population', not {about!r}.")


def tail_of(confidence_level: float, questions: int) -> float:
    """Return the error on each side of each interval so that all of so many independent questions hold at once."""
    if not 0 < confidence_level < 1:
        raise CountsError(f"a confidence level lies between 0 and 1, like 0.95; not {confidence_level}.")
    return (1 - confidence_level) / 2 / questions


def questions_of(values: int, *, exclusive: bool) -> int:
    """Return how many questions the shares of values are: two that sum to 1 are one question."""
    return 1 if exclusive and values == 2 else values


class Result(ABC):
    """An estimate with one row per label."""

    labels: Sequence[Any]
    least: float = 0.0
    """The least and the most that an estimated number can be in truth."""
    most: float = 1.0

    @property
    def questions(self) -> int:
        """How many questions the rows answer, by which simultaneous intervals divide their error."""
        return len(self.labels)

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

        About "objects": these very objects, so that only the noise is random. About "population": the larger one that
        these objects are a random sample of. `simultaneous` intervals hold for all rows at once.
        """
        check_about(about)
        low, high = self.ends(tail_of(confidence_level, self.questions if simultaneous else 1), about)
        return np.clip(low, self.least, self.most), np.clip(high, self.least, self.most)

    @abstractmethod
    def ends(self, tail: float, about: About) -> tuple[Floats, Floats]:
        """Return the ends of intervals with error `tail` on each side, not cut at what is possible."""

    def is_implausible(self) -> bool:
        """Tell whether an estimate lies so far outside what is possible that these cannot be all reports of a release.

        Then no possible number makes the reports likelier than once in a billion times: the tail of the counts' own law
        says so, because with few reports an honest estimate may lie many standard errors away.
        """
        low, high = self.interval(1 - 2 * _NEVER)
        margin = 1e-12 * (self.most - self.least) if np.isfinite(self.most) else 0.0
        return bool(np.any(low >= self.most - margin) or np.any(high <= self.least + margin))

    @property
    def std_error(self) -> Floats:
        """The standard errors about these objects."""
        return self.standard_error()

    def to_arrow(self, confidence_level: float = 0.95, *, simultaneous: bool = False, about: About = "objects") -> Any:
        """Return a pyarrow table: value, estimate, standard error and interval."""
        low, high = self.interval(confidence_level, simultaneous=simultaneous, about=about)
        columns = {
            "value": pa.array(list(self.labels)),
            "estimate": np.atleast_1d(self.value),
            "std_error": np.atleast_1d(self.standard_error(about)),
            "low": np.atleast_1d(low),
            "high": np.atleast_1d(high),
        }
        return pa.table(columns)

    def to_frame(self, confidence_level: float = 0.95, *, simultaneous: bool = False, about: About = "objects") -> Any:
        """Return the same as a pandas data frame."""
        try:
            import pandas  # noqa: F401, PLC0415
        except ImportError:
            raise MissingPartError("to_frame() needs pandas (pip install pandas); to_arrow() does not.") from None
        return self.to_arrow(confidence_level, simultaneous=simultaneous, about=about).to_pandas()

    def plot(self, axes: Any = None, *, confidence_level: float = 0.95, about: About = "objects") -> Any:
        """Draw the estimates with their intervals; returns matplotlib's axes."""
        from relaxdp.estimate.plot import plot_result  # noqa: PLC0415

        return plot_result(self, axes, confidence_level=confidence_level, about=about)

    def __repr__(self) -> str:
        low, high = map(np.atleast_1d, self.interval())
        width = max([5, *(len(str(label)) for label in self.labels[:20])])
        lines = [f"{'value':<{width}}  estimate  95 % interval (about these objects)"]
        rows = zip(self.labels[:20], np.atleast_1d(self.value)[:20], low[:20], high[:20], strict=True)
        lines += [f"{label!s:<{width}}  {value:8.4f}  [{a:.4f}, {b:.4f}]" for label, value, a, b in rows]
        if len(self.labels) > 20:
            lines.append(f"... and {len(self.labels) - 20:,} more")
        return "\n".join([*lines, IMPLAUSIBLE] if self.is_implausible() else lines)
