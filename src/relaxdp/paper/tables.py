"""The three tables of the appendix: the numbers that it prints, and every one of them computed again."""

from __future__ import annotations

from functools import partial
from itertools import pairwise

from relaxdp.paper import judge
from relaxdp.paper.claims import Claim, ClaimOutcome, Data
from relaxdp.paper.lab import Lab
from relaxdp.theory.randomized_response import relaxation_law

LEVELS = ("0.1", "0.5", "1.0", "2.0", "10")

P_AA = """
3  0.584 0.840 0.943 1.000
4  0.511 0.802 0.922 1.000
5  0.463 0.775 0.906 1.000
6  0.430 0.755 0.891 1.000
7  0.405 0.740 0.879 1.000
8  0.386 0.728 0.869 1.000
9  0.371 0.718 0.860 1.000
10 0.359 0.710 0.852 1.000
"""
P_BB = """
3  0.392 0.509 0.347 0.000
4  0.342 0.486 0.339 0.000
5  0.310 0.470 0.333 0.000
6  0.288 0.458 0.328 0.000
7  0.272 0.449 0.324 0.000
8  0.259 0.442 0.320 0.000
9  0.249 0.436 0.316 0.000
10 0.241 0.431 0.314 0.000
"""
P_BA = """
3  0.379 0.359 0.575 1.000
4  0.297 0.296 0.520 1.000
5  0.245 0.252 0.474 1.000
6  0.208 0.219 0.436 0.999
7  0.181 0.194 0.403 0.999
8  0.160 0.174 0.375 0.999
9  0.143 0.158 0.351 0.999
10 0.130 0.144 0.330 0.999
"""

TABLES = {"p_aa": P_AA, "p_bb": P_BB, "p_ba": P_BA}


def rows(table: str) -> dict[int, list[str]]:
    """Return the printed digits by m, as text.

    >>> rows(P_AA)[3]
    ['0.584', '0.840', '0.943', '1.000']
    """
    return {int(m): digits for m, *digits in (line.split() for line in table.strip().splitlines())}


_MEANING = {
    "p_aa": "the last report was the truth, and the next one is too",
    "p_bb": "the last report was another value, and the next one is the same",
    "p_ba": "the last report was another value, and the next one is the truth",
}


def table(field: str, lab: Lab) -> ClaimOutcome:
    """Compare one table to all of its printed digits."""
    computed, wrong = [], 0
    for m, digits in rows(TABLES[field]).items():
        for (old, new), printed in zip(pairwise(LEVELS), digits, strict=True):
            probability = float(getattr(relaxation_law(m=m, old_epsilon=old, new_epsilon=new), field))
            computed.append([m, old, new, printed, probability])
            wrong += f"{probability:.3f}" != printed
    return ClaimOutcome(
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
