"""The three tables of the appendix: every printed number computed again."""

from __future__ import annotations

from functools import partial
from itertools import pairwise

from relaxdp.law.relaxation import relaxation_law
from relaxdp.paper import judge
from relaxdp.paper.claims import Claim, Data, Outcome
from relaxdp.paper.lab import Lab
from relaxdp.paper.printed import LEVELS, TABLES, rows

_MEANING = {
    "p_aa": "the last report was the truth, and the next one is too",
    "p_bb": "the last report was another value, and the next one is the same",
    "p_ba": "the last report was another value, and the next one is the truth",
}


def table(field: str, lab: Lab) -> Outcome:
    """Compare one table to all of its printed digits."""
    computed, wrong = [], 0
    for m, digits in rows(TABLES[field]).items():
        for (old, new), printed in zip(pairwise(LEVELS), digits, strict=True):
            probability = float(getattr(relaxation_law(m=m, old_epsilon=old, new_epsilon=new), field))
            computed.append([m, old, new, printed, probability])
            wrong += f"{probability:.3f}" != printed
    return Outcome(
        f"{len(computed) - wrong} of {len(computed)} printed numbers are right to all digits.",
        "Rounded to three digits, the exact law of this package is what is printed.",
        [judge.exact(f"all numbers of {field}", wrong == 0, f"{wrong} differ")],
        {f"table-{field.replace('_', '-')}": Data(["m", "old_epsilon", "new_epsilon", "printed", field], computed)},
    )


CLAIMS = [
    Claim(
        f"table-{field.replace('_', '-')}",
        f"Table of {field}",
        f"Appendix, table {'I' * number}",
        f"The probabilities {field} ({_MEANING[field]}) for m from 3 to 10, relaxed through {', '.join(LEVELS)}.",
        partial(table, field),
    )
    for number, field in enumerate(TABLES, 1)
]
