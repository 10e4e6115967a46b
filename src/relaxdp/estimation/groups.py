"""Estimates of groups: a dictionary of results that is also one frame, one table in a notebook, and one picture."""

from __future__ import annotations

from html import escape
from typing import Any

import pyarrow as pa

from relaxdp.errors import EstimationError, MissingDependencyError
from relaxdp.estimation.plot import MOST_DRAWN, plot_result
from relaxdp.estimation.result import About, Result, convert_frame


class Groups(dict[str | None, Result]):
    """The estimate of every group of a kept column, by the group's name; None is the group of what is missing there."""

    def __init__(self, by: str, found: dict[str | None, Result]) -> None:
        super().__init__(found)
        self.by = by

    def __missing__(self, group: object) -> Result:
        raise EstimationError(
            "The column {by!r} has no such group.",
            hint="list(groups) shows the groups. Their names are text, as in groups['north'].",
            by=self.by,
        )

    def to_arrow(
        self, confidence_level: float = 0.95, *, simultaneous: bool = False, about: About = "sample"
    ) -> pa.Table:
        """Return one pyarrow table with the group in its first column."""
        tables = []
        for group, result in self.items():
            table = result.to_arrow(confidence_level, simultaneous=simultaneous, about=about)
            tables.append(table.add_column(0, self.by, pa.array([group] * len(table), pa.string())))
        return pa.concat_tables(tables)

    def to_frame(self, confidence_level: float = 0.95, *, simultaneous: bool = False, about: About = "sample") -> Any:
        """Return the same in the library of the data: a pandas or polars data frame, else a pyarrow table."""
        table = self.to_arrow(confidence_level, simultaneous=simultaneous, about=about)
        return convert_frame(table, next(iter(self.values())).library)

    def __repr__(self) -> str:
        return "\n".join(
            f"{self.by}: {'(missing)' if group is None else group}\n{result!r}" for group, result in self.items()
        )

    def _repr_html_(self) -> str:
        return "".join(
            f"<p><b>{escape(self.by)}: {escape('(missing)' if group is None else group)}</b></p>{result._repr_html_()}"
            for group, result in self.items()
        )

    def plot(self, *, top: int | None = None, confidence_level: float = 0.95, about: About = "sample") -> Any:
        """Draw all groups below each other, on one scale; returns matplotlib's axes, one for each."""
        try:
            import matplotlib.pyplot as plt  # noqa: PLC0415
        except ImportError:
            raise MissingDependencyError("Plots need matplotlib.", hint="Run pip install 'relaxdp[plot]'.") from None
        shown = [result.largest(top or MOST_DRAWN) for result in self.values()]
        heights = [0.9 + 0.32 * len(each.labels) for each in shown]
        _, axes = plt.subplots(
            len(shown),
            figsize=(6, sum(heights)),
            height_ratios=heights,
            sharex=True,
            squeeze=False,
            layout="constrained",
        )
        for place, (group, result) in enumerate(zip(self, shown, strict=True)):
            plot_result(result, axes[place, 0], confidence_level=confidence_level, simultaneous=False, about=about)
            axes[place, 0].set_title(f"{self.by}: {'(missing)' if group is None else group}", loc="left", fontsize=10)
            if place < len(shown) - 1:
                axes[place, 0].set_xlabel("")
        return axes[:, 0]
