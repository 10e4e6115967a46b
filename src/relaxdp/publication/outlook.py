"""What a release will tell: how a column is encoded, why so, and how precise its answer will be, before it is charged.

All of it follows from the number of rows, the declared values and epsilon: nothing here looks at a truth.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Literal

from relaxdp.errors import PlanError, TellsNothingError
from relaxdp.estimation.advice import best_encoding, best_for_numbers, mean_error
from relaxdp.estimation.planning import epsilon_for, half_width, widest
from relaxdp.law.epsilon import epsilon_text
from relaxdp.ledger.ledger import Charge
from relaxdp.mechanisms import Mechanism
from relaxdp.publication.request import Planned

NEXT_TO_NOTHING = 0.5
"""An interval that is so much of the widest one tells next to nothing: a share somewhere between 25 and 75 percent."""
_PRECISE = 0.2
"""An interval that is so much of the widest one is worth having: it is what a better choice is looked for."""
_BETTER = 0.7
"""Another encoding is worth a word where its interval is at most so much of this one's."""
_MOST_SENSIBLE = 10
"""An epsilon above this hides nothing that anybody would want hidden, so it is no advice."""


@dataclass(frozen=True, slots=True)
class Outlook:
    """One column of a release: its encoding, and how precise what is estimated of it will be."""

    column: str
    encoding: str
    chosen_for: Decimal | None
    """The last planned epsilon for which "auto" took this encoding; None where it was said, or goes on."""
    overruled: str | None
    """What "auto" would have taken, where the path was opened with something else."""
    is_worse_now: bool
    """Whether another encoding would be clearly better at this level, and nobody said that a larger one is planned."""
    answer: Literal["shares", "mean"]
    half_width: float | None
    """Of each share, or of a mean, at worst; None where nobody counted the rows or words have no shares yet."""


def outlook_of(planned: Planned, rows: int | None) -> Outlook:
    """Return what a column will tell."""
    asked = planned.request
    width = _half_width(asked.mechanism, planned.level.epsilon, rows)
    answer: Literal["shares", "mean"] = "shares" if planned.encoding.measure is None else "mean"
    is_guess = asked.planned is None and asked.chosen_for is not None and asked.chosen_for > planned.level.epsilon
    worse = is_guess and _better(planned) is not None
    return Outlook(asked.column, planned.encoding.name, asked.chosen_for, asked.overruled, worse, answer, width)


def refuse_worthless(columns: Sequence[Planned], charges: Sequence[Charge], rows: int) -> None:
    """Refuse to pay for what tells next to nothing, now and at the last level that a person said is planned."""
    for each, charge in zip(columns, charges, strict=True):
        asked, epsilon = each.request, each.level.epsilon
        width = _half_width(asked.mechanism, max(epsilon, asked.planned or epsilon), rows)
        if charge.cost and width is not None and width >= NEXT_TO_NOTHING * widest(asked.mechanism):
            raise _worthless(each, rows, is_new=charge.previous is None)


def _half_width(mechanism: Mechanism, epsilon: Decimal, rows: int | None) -> float | None:
    if not rows or mechanism.encoding.domain == "words":
        return None
    return half_width(objects=rows, values=mechanism, epsilon=epsilon)


def _worthless(planned: Planned, rows: int, *, is_new: bool) -> TellsNothingError:
    mechanism, encoding, epsilon = planned.request.mechanism, planned.encoding, planned.level.epsilon
    better, enough = _better(planned) if is_new else None, _enough(mechanism, rows)
    if better is not None:
        way_out = "better_encoding" if planned.request.chosen_for is None else "better_plan"
    else:
        way_out = "more_rows" if enough is None else "enough_epsilon"
    return TellsNothingError(
        "{rows:,} rows at epsilon {epsilon} as {encoding} tell each share of {column!r} to within {half_width:.2g}, "
        "which is next to nothing."
        if encoding.measure is None
        else "{rows:,} rows at epsilon {epsilon} as {encoding} tell the mean of {column!r} to within {half_width:.2g}, "
        "which is next to nothing.",
        remedy=f"{way_out} accept",
        column=planned.request.column,
        rows=rows,
        epsilon=epsilon_text(epsilon),
        encoding=encoding.name,
        half_width=_half_width(mechanism, epsilon, rows),
        better_encoding=better,
        chosen_for=planned.request.chosen_for,
        enough_epsilon=enough,
    )


def _better(planned: Planned) -> str | None:
    """Return the best encoding for this level, where it would tell clearly more."""
    encoding, epsilon = planned.encoding, planned.level.epsilon
    if encoding.domain == "words":
        return None
    is_number = encoding.domain == "range"
    advice = best_for_numbers(epsilon) if is_number else best_encoding(len(encoding.labels), epsilon)
    errors = {each.encoding: each.std_error for each in advice.choices}
    ours = errors.get(encoding.name)
    if ours is not None and is_number:  # with the window that it has, and not with the best one for this level
        ours = mean_error(encoding, epsilon)
    return advice.best if ours is not None and errors[advice.best] <= _BETTER * ours else None


def _enough(mechanism: Mechanism, rows: int) -> str | None:
    """Return the epsilon that would be worth having; None where there is none that anybody would spend."""
    try:
        found = epsilon_for(_PRECISE * widest(mechanism), objects=rows, values=mechanism)
    except PlanError:
        return None
    return epsilon_text(found) if found <= _MOST_SENSIBLE else None
