"""The paper's own numbers: p_aa, p_ba and p_bb of one relaxation, for two epsilons."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from relaxdp.errors import LevelError
from relaxdp.law.bridge import TRUTH, bridge_mixture
from relaxdp.law.epsilon import Epsilon, as_epsilon, check_values, epsilon_text, release_threshold, threshold
from relaxdp.law.level import retention


@dataclass(frozen=True, slots=True)
class RelaxationLaw:
    """With which probability the next report is what, given the last one. The truth is a, another value is b.

    The first letter is the last report, the second letter the next one. The fields are exact fractions; `float()`
    makes them readable, and so does `print`.
    """

    values: int
    p_aa: Fraction
    """The last report was the truth and the next one is too."""
    p_ba: Fraction
    """The last report was another value and the next one is the truth."""
    p_bb: Fraction
    """The last report was another value and the next one is the same."""

    def __str__(self) -> str:
        return (
            f"m = {self.values}: p_aa = {float(self.p_aa):.6f}, "
            f"p_ba = {float(self.p_ba):.6f}, p_bb = {float(self.p_bb):.6f}"
        )

    __repr__ = __str__


def relaxation_law(*, m: int, old_epsilon: Epsilon, new_epsilon: Epsilon) -> RelaxationLaw:
    """Return p_aa, p_ba and p_bb of the paper for a relaxation from `old_epsilon` to `new_epsilon`.

    `m` is the number of values, 2 or more. `old_epsilon` may be 0: then the last report was pure noise. The law is that
    of the thresholds that are really used, which differ from the paper's real numbers by less than 2^-63.

    Claim: the tables of the paper's appendix to all printed digits; tests/exact/paper/test_tables.py.

    >>> relaxation_law(m=3, old_epsilon=0.1, new_epsilon=0.5)
    m = 3: p_aa = 0.584433, p_ba = 0.378607, p_bb = 0.391757
    """
    check_values(m)
    old, new = as_epsilon(old_epsilon, zero=True), as_epsilon(new_epsilon)
    if new < old:
        raise LevelError(
            "epsilon may only grow: a relaxation from {old_epsilon} to {new_epsilon} was asked for.",
            old_epsilon=epsilon_text(old),
            new_epsilon=epsilon_text(new),
        )
    levels = retention(threshold(old, m)), retention(release_threshold(new, m))
    same, other = (bridge_mixture(m, *levels, TRUTH, agree=agree) for agree in (True, False))
    return RelaxationLaw(
        m,
        p_aa=same.probability(m, 0, lower=0, upper=0),
        p_ba=other.probability(m, 0, lower=1, upper=0),
        p_bb=other.probability(m, 1, lower=1, upper=0),
    )
