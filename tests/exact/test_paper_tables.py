"""The tables of the paper's appendix, to all printed digits: relaxation 0.1 -> 0.5 -> 1 -> 2 -> 10."""

from __future__ import annotations

import pytest

from relaxdp import relaxation_law
from relaxdp.errors import LevelError

LEVELS = ["0.1", "0.5", "1.0", "2.0", "10"]
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


@pytest.mark.parametrize(("field", "table"), [("p_aa", P_AA), ("p_bb", P_BB), ("p_ba", P_BA)])
def test_table(field: str, table: str) -> None:
    for line in table.split("\n")[1:-1]:
        m, *printed = line.split()
        for old, new, digits in zip(LEVELS, LEVELS[1:], printed, strict=False):
            law = relaxation_law(m=int(m), old_epsilon=old, new_epsilon=new)
            assert f"{float(getattr(law, field)):.3f}" == digits, (m, old, new)


def test_from_noise_and_at_the_same_level() -> None:
    first = relaxation_law(m=4, old_epsilon=0, new_epsilon=1)
    assert first.p_aa == first.p_ba  # the noise tells nothing
    same = relaxation_law(m=4, old_epsilon=1, new_epsilon=1)
    assert [same.p_aa, same.p_ba, same.p_bb] == [1, 0, 1]


def test_a_lower_level_is_refused() -> None:
    with pytest.raises(LevelError, match="epsilon may only grow: a relaxation from 1 to 0.5"):
        relaxation_law(m=3, old_epsilon=1, new_epsilon=0.5)
