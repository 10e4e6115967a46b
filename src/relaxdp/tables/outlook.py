"""What a release will tell: the expected margin of error of each column, before it is charged.

All of it follows from the number of rows, the declared values and epsilon: nothing here looks at a true value.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import TYPE_CHECKING

from relaxdp.errors import PlanError, UselessReleaseError
from relaxdp.estimation.planning import compute_max_margin, find_epsilon, find_margin
from relaxdp.mechanisms.base import Mechanism
from relaxdp.theory.epsilon import epsilon_text

if TYPE_CHECKING:
    from relaxdp.tables.plan import PlannedColumn

NEXT_TO_NOTHING = 0.5
"""A margin of error of this part of the widest possible one tells next to nothing: a share between 25 and 75 %."""
_PRECISE = 0.2
"""A margin of error of this part of the widest one is worth having, and is what the hint looks for."""
_MAX_SENSIBLE = 10
"""An epsilon above this protects next to nothing, so it is never advised."""

_MECHANISM_NAMES = {
    "categorical": "k-ary randomized response",
    "unary-optimised": "optimised unary encoding (OUE)",
    "unary-symmetric": "symmetric unary encoding (SUE)",
    "local-hash": "local hashing (OLH)",
    "numeric": "randomized rounding",
    "numeric-missing": "randomized rounding with missing values",
    "wave": "square wave",
    "bloom": "RAPPOR",
}


def get_mechanism_name(encoding: str) -> str:
    """Return the name of a mechanism as the field knows it."""
    return _MECHANISM_NAMES.get(encoding, encoding)


def compute_margin(mechanism: Mechanism, epsilon: Decimal, rows: int | None) -> float | None:
    """Return the expected margin of error (95 %) of a share or a mean; None for words, or an unknown number of rows."""
    if not rows or mechanism.domain == "words":
        return None
    return find_margin(n=rows, values=mechanism, epsilon=epsilon)


def reject_worthless(columns: Sequence[PlannedColumn], rows: int, planned_epsilon: Decimal | None) -> None:
    """Reject a cost for what tells next to nothing, now and at the planned epsilon."""
    for each in columns:
        epsilon = max(each.level.epsilon, planned_epsilon or each.level.epsilon)
        margin = compute_margin(each.mechanism, epsilon, rows)
        if not each.cost or margin is None or margin < NEXT_TO_NOTHING * compute_max_margin(each.mechanism):
            continue
        enough = _find_sensible_epsilon(each.mechanism, rows)
        raise UselessReleaseError(
            "{rows:,} rows at epsilon {epsilon} estimate each {answer} of {column!r} with a margin of error of "
            "{margin:.2g}, which tells next to nothing.",
            hint="Release more rows."
            if enough is None
            else "Use epsilon {enough} or more, or state that you plan to: planned_epsilon={enough} "
            "(--planned-epsilon {enough}).",
            rows=rows,
            epsilon=epsilon_text(epsilon),
            answer="mean" if each.mechanism.measure is not None else "share",
            column=each.column,
            margin=margin,
            enough=enough,
        )


def _find_sensible_epsilon(mechanism: Mechanism, rows: int) -> str | None:
    try:
        found = find_epsilon(_PRECISE * compute_max_margin(mechanism), n=rows, values=mechanism)
    except PlanError:
        return None
    return epsilon_text(found) if found <= _MAX_SENSIBLE else None
