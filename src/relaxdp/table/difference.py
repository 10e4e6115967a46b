"""`difference`: what changed between released tables of two or more dates. It reads what was released, nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from relaxdp.errors import CountsError, refusing
from relaxdp.estimation.counts import Method
from relaxdp.estimation.dates import Dates
from relaxdp.estimation.difference import change_between
from relaxdp.estimation.result import Result
from relaxdp.remedies import IN_PYTHON


@refusing("", IN_PYTHON)
def difference(
    old: Any,
    new: Any,
    *later: Any,
    column: str | int | None = None,
    new_column: str | int | None = None,
    independent: bool = False,
    method: Method = "average",
    description: Sequence[Any] | None = None,
    labels: Sequence[str] | None = None,
) -> Any:
    """Return what changed from one date to another: a `Difference`; with more than two dates `Dates`, step by step.

    Each date (`old`, `new` and all `later` ones) is a released table as `estimate` takes it: a file, a data frame, or a
    list of either that holds the same release at several levels; `column` and `method` are as there, too. Dates are
    releases of their own, so that their noise is independent; levels and encodings may differ, declared values may not.
    Rows are joined by id, which tells those who stayed from those who left and joined; `independent` compares everybody
    then with everybody now, and no ids. `new_column` says that the later dates have another column, whatever it is
    called there. `description` has what `estimate` calls so, for each date, and `labels` is how the dates are called:
    else by their date, their file or their release.

    Two estimates of groups that have no object in common give their `Change`, the second minus the first.
    """
    if isinstance(old, Result) and isinstance(new, Result) and not later:
        return change_between(old, new)
    dates = [old, new, *later]
    for given, what in ((description, "descriptions"), (labels, "labels")):
        if given is not None and (isinstance(given, str) or len(given) != len(dates)):
            raise CountsError(
                "there are {dates} dates: {what} are a list with one for each.", dates=len(dates), what=what
            )
    from relaxdp.table.dates import differences  # noqa: PLC0415

    steps = differences(
        dates, column, new_column, independent=independent, method=method, description=description, labels=labels
    )
    return steps[0] if len(steps) == 1 else Dates([steps[0].old, *(step.new for step in steps)], steps)
