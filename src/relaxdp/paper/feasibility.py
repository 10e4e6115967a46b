"""The linear program of the feasibility appendix: solved for every case, and its solution shown to be the only one."""

from __future__ import annotations

from math import exp
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linprog
from scipy.sparse import block_diag, csr_array, hstack

from relaxdp.paper import judge
from relaxdp.paper.claims import Claim, ClaimOutcome, Data
from relaxdp.paper.lab import Lab
from relaxdp.paper.laws import GRID
from relaxdp.theory.randomized_response import relaxation_law

Floats = NDArray[np.float64]

SUPPORTS = {"aa_bb": 0, "ba_ab": 3, "ca_cb": 6}
"""The inequalities that the paper finds always tight, by their row in the program."""
TOLERANCE = 1e-7
_OPTIONS = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}


def inequalities(values: int, old: float, new: float) -> tuple[Floats, Floats]:
    """Return A and b of A p <= b for p = (p_aa, p_ba, p_bb): the paper's eight inequalities, and p_ba + p_bb <= 1.

    They are in the paper's order: aa_bb, bb_aa, ab_ba, ba_ab, ac_bc, bc_ac, ca_cb, cb_ca.
    """
    a, b = exp(old), exp(new)
    one = np.array([0.0, 0.0, 0.0, 1.0])  # coefficients of p_aa, p_ba and p_bb, and a constant
    aa, ba, bb = np.eye(4)[:3]
    other = (one - aa) / (values - 1)
    third = (one - ba - bb) / (values - 2)
    sides = [
        (a * aa, b * bb), (bb, a * b * aa),
        (a * other, b * ba), (ba, a * b * other),
        (a * other, b * third), (third, a * b * other),
        (ba, b * third), (third, b * ba),
        (ba + bb, one),
    ]  # fmt: skip
    rows = np.array([left - right for left, right in sides])
    return rows[:, :3], -rows[:, 3]


def equality(values: int, old: float, new: float) -> tuple[Floats, float]:
    """Return the equation that makes the second output a response of its level."""
    a, b, rest = exp(old), exp(new), values - 1
    return np.array([a / (a + rest), rest / (a + rest), 0.0]), b / (b + rest)


def solve(values: int, cases: list[tuple[float, float]]) -> tuple[Floats, Floats]:
    """Return the least and the greatest p_aa, p_ba and p_bb of every case, each of shape (cases, 3).

    Cases do not touch each other, so a program of all of them at once is solved by solving each.
    """
    parts = [inequalities(values, *case) for case in cases]
    equations = [equality(values, *case) for case in cases]
    program = {
        "A_ub": _diagonal([rows for rows, _ in parts]),
        "b_ub": np.concatenate([limits for _, limits in parts]),
        "A_eq": _diagonal([row[None] for row, _ in equations]),
        "b_eq": np.array([target for _, target in equations]),
    }
    ends = []
    for sign in (1.0, -1.0):
        columns = []
        for variable in range(3):
            objective = np.tile(sign * np.eye(3)[variable], len(cases))
            columns.append(_solved(objective, bounds=(0, 1), **program).reshape(-1, 3)[:, variable])
        ends.append(np.stack(columns, axis=1))
    return ends[0], ends[1]


def least_violation(values: int, cases: list[tuple[float, float]]) -> Floats:
    """Return by how much the inequalities of every case must be violated at least: 0 where there is a solution."""
    parts = [inequalities(values, *case) for case in cases]
    equations = [equality(values, *case) for case in cases]
    count, rows = len(cases), len(parts[0][0])
    slack = csr_array(np.kron(np.eye(count), -np.ones((rows, 1))))
    result = _solved(
        np.concatenate([np.zeros(3 * count), np.ones(count)]),
        A_ub=hstack([_diagonal([left for left, _ in parts]), slack], format="csr"),
        b_ub=np.concatenate([limits for _, limits in parts]),
        A_eq=hstack([_diagonal([row[None] for row, _ in equations]), csr_array((count, count))], format="csr"),
        b_eq=np.array([target for _, target in equations]),
        bounds=[(0, 1)] * (3 * count) + [(0, None)] * count,
    )
    return result[3 * count :]


def _diagonal(blocks: list[Floats]) -> Any:
    """Return a sparse matrix with the blocks on its diagonal; of arrays, which later versions of SciPy take alone."""
    return block_diag([csr_array(block) for block in blocks], format="csr")


def linear_program(lab: Lab) -> ClaimOutcome:
    """Solve all cases, and compare both ends of every variable with each other and with the closed form."""
    grid = [float(level) for level in GRID]
    cases = [(old, new) for old in grid for new in grid if old <= new]
    others = [(old, new) for old in grid for new in grid if old > new]
    width = difference = 0.0
    slack = dict.fromkeys(SUPPORTS, 0.0)
    violation, rows = np.inf, []
    for values in range(3, 11):
        lab.say(f"linear program, m = {values}")
        least, greatest = solve(values, cases)
        width = max(width, float(np.abs(greatest - least).max()))
        found = (least + greatest) / 2
        for case, point in zip(cases, found, strict=True):
            law = relaxation_law(m=values, old_epsilon=case[0], new_epsilon=case[1])
            closed = [float(law.p_aa), float(law.p_ba), float(law.p_bb)]
            difference = max(difference, float(np.abs(point - closed).max()))
            left, limits = inequalities(values, *case)
            gaps = limits - left @ point
            slack = {name: max(slack[name], abs(float(gaps[row]))) for name, row in SUPPORTS.items()}
            rows.append([values, *case, *point.tolist(), *closed])
        violation = min(violation, float(least_violation(values, others).min()))
    columns = ["m", "epsilon_1", "epsilon_2", "lp_p_aa", "lp_p_ba", "lp_p_bb", "p_aa", "p_ba", "p_bb"]
    loosest = max(slack.values())
    return ClaimOutcome(
        f"{len(rows):,} cases with ε_1 ≤ ε_2: least and greatest value of each variable differ by at most "
        f"{width:.0e}, and from the closed form by {difference:.0e}; the three supports are tight to {loosest:.0e}. "
        f"{8 * len(others):,} cases with ε_1 > ε_2 have no solution (least violation {violation:.3f}).",
        f"Each variable minimised and maximised (HiGHS); equal where they differ by less than {TOLERANCE:.0e}.",
        [
            judge.exact("one solution", width < TOLERANCE, f"largest range {width:.1e}"),
            judge.exact("equal to the closed form", difference < TOLERANCE, f"largest difference {difference:.1e}"),
            judge.exact("aa_bb, ba_ab and ca_cb are tight", loosest < 10 * TOLERANCE, f"loosest {loosest:.1e}"),
            judge.exact("no solution where ε falls", violation > 1e-3, f"least violation {violation:.1e}"),
        ],
        {"linear-program": Data(columns, rows)},
    )


def _solved(objective: Floats, **program: Any) -> Floats:
    result = linprog(objective, method="highs", options=_OPTIONS, **program)
    if result.status != 0:
        raise RuntimeError(f"the linear program was not solved: {result.message}")
    return np.asarray(result.x)


CLAIMS = [
    Claim(
        "linear-program",
        "The linear program and its only solution",
        "Appendix on feasibility",
        "For ε_1 and ε_2 from 0.1 to 2 in steps of 0.1 and m from 3 to 10 the program has exactly one solution, the "
        "closed form, with (aa_bb), (ba_ab) and (ca_cb) always tight.",
        linear_program,
        correction="For ε_1 ≤ ε_2. Where ε_1 > ε_2, the first output alone exceeds the second guarantee, and there is "
        "no solution.",
    ),
]
