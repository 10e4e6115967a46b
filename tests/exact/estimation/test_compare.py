"""Two dates are two paths: their joint law is a product, so variances add."""

from __future__ import annotations

import itertools
from fractions import Fraction as F
from math import prod
from typing import get_args

import pytest
from tests.exact.enumeration import Law, path_law

from relaxdp.draw.key import Key
from relaxdp.draw.stream import PathId, PathName, Purpose, path_key
from relaxdp.estimation.frequency import report_variance
from relaxdp.law.support import Support

KEY = Key.from_bytes(bytes(range(32)))
DATES = PathId("survey", "voted", date="2026"), PathId("survey", "voted", date="2027")
ONE, VALUES = 8, 3
THRESHOLDS = (2, 5), (3,)
"""Two levels at the first date, one at the second."""


def joint_law(truths: tuple[int, int]) -> Law:
    """The law of all reports of one object at both dates, every word fed: equal keys and truths read the same words."""
    sources: dict[tuple[bytes, int], list[int]] = {}
    for date, (path, truth) in enumerate(zip(DATES, truths, strict=True)):
        key = path_key(KEY, PathName(path, "categorical", VALUES, b""))
        sources.setdefault((key, truth), []).append(date)
    law: Law = {}
    parts = [
        path_law(VALUES, [each for date in dates for each in THRESHOLDS[date]], truth, one=ONE).items()
        for (_, truth), dates in sources.items()
    ]
    for drawn in itertools.product(*parts):
        transcript = tuple(report for reports, _ in drawn for report in reports)
        law[transcript] = law.get(transcript, F(0)) + prod((chance for _, chance in drawn), start=F(1))
    return law


def check_dates(truths: tuple[int, int]) -> None:
    """The law is the product of two paths; so a debiased change has the sum of both variances."""
    then, now = (path_law(VALUES, each, truth, one=ONE) for each, truth in zip(THRESHOLDS, truths, strict=True))
    product = {(*a, *b): p * q for (a, p), (b, q) in itertools.product(then.items(), now.items())}
    law = joint_law(truths)
    assert sum(law.values()) == 1
    assert law == product
    supports = [Support.of_one_symbol(F(each[-1], ONE), VALUES) for each in THRESHOLDS]
    for value in range(VALUES):
        scores = {
            reports: supports[1].debias(F(int(reports[-1] == value))) - supports[0].debias(F(int(reports[1] == value)))
            for reports in law
        }
        mean = sum(chance * scores[reports] for reports, chance in law.items())
        variance = sum(chance * (scores[reports] - mean) ** 2 for reports, chance in law.items())
        has = [F(int(truth == value)) for truth in truths]
        assert mean == has[1] - has[0]
        assert variance == sum(
            report_variance(share, each.hit, each.noise, "objects") / each.gain**2
            for share, each in zip(has, supports, strict=True)
        )


TRUTHS = list(itertools.product(range(VALUES), repeat=2))


@pytest.mark.parametrize("truths", TRUTHS)
def test_two_dates_are_two_paths(truths: tuple[int, int]) -> None:
    check_dates(truths)


def test_mutant_a_path_that_dates_share_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """Were the date no part of the stream's name, who did not change would answer with the same noise again."""
    monkeypatch.setattr(PathId, "stream_name", lambda self: "survey")
    for truth in range(VALUES):
        with pytest.raises(AssertionError):
            check_dates((truth, truth))


@pytest.mark.parametrize("purpose", get_args(Purpose))
def test_dates_share_no_kept_randomness_either(purpose: Purpose) -> None:
    """A rounding or a hash that were kept from one date to the next would be noise in common."""
    keys = {path_key(KEY, PathName(path, "categorical", VALUES, b""), purpose) for path in DATES}
    assert len(keys) == 2
