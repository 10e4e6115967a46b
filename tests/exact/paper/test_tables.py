"""The tables of the paper's appendix, to all printed digits: relaxation 0.1 -> 0.5 -> 1 -> 2 -> 10."""

from __future__ import annotations

from itertools import pairwise

import pytest
from tests.refusals import refused

from relaxdp.errors import LevelError
from relaxdp.paper.tables import LEVELS, TABLES, rows
from relaxdp.theory import relaxation_law


@pytest.mark.parametrize("field", TABLES)
def test_table(field: str) -> None:
    printed = rows(TABLES[field])
    assert sorted(printed) == list(range(3, 11))
    for m, row in printed.items():
        for (old, new), digits in zip(pairwise(LEVELS), row, strict=True):
            law = relaxation_law(m=m, old_epsilon=old, new_epsilon=new)
            assert f"{float(getattr(law, field)):.3f}" == digits, (m, old, new)


def test_from_noise_and_at_the_same_level() -> None:
    first = relaxation_law(m=4, old_epsilon=0, new_epsilon=1)
    assert first.p_aa == first.p_ba  # the noise tells nothing
    same = relaxation_law(m=4, old_epsilon=1, new_epsilon=1)
    assert [same.p_aa, same.p_ba, same.p_bb] == [1, 0, 1]


def test_a_lower_level_is_refused() -> None:
    with refused(LevelError, old_epsilon="1", new_epsilon="0.5", says="A relaxation from"):
        relaxation_law(m=3, old_epsilon=1, new_epsilon=0.5)
