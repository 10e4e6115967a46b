"""What is refused, as programs see it: which kind of error, with which fields."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from relaxdp.errors import RelaxdpError


@contextmanager
def refused(kind: type[RelaxdpError], /, **fields: Any) -> Iterator[Any]:
    """Expect an error of exactly this kind, with at least these fields; a part of the hint may be given as `hint=`.

    Words are tested where they are shown. A sentence is a constant of the code, so a part of it tells which refusal
    of a kind this is where the fields do not: say it as `says=`.
    """
    says, hint = fields.pop("says", ""), fields.pop("hint", "")
    with pytest.raises(kind) as caught:
        yield caught
    problem = caught.value
    assert type(problem) is kind, repr(problem)
    assert {name: problem.fields.get(name) for name in fields} == fields, problem.fields
    assert says in problem.template, problem.template
    assert hint in problem.hint, problem.hint
