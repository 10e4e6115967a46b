"""Two surveys under two names are two paths: their joint law is a product, so variances add."""

from __future__ import annotations

import itertools
from dataclasses import replace
from fractions import Fraction as F
from math import prod
from typing import get_args

import pytest
from tests.exact.enumeration import Law, path_law

from relaxdp.estimation.frequency import compute_support_variance
from relaxdp.sampling.keyed_stream import PathId, PathKeyInfo, Purpose, derive_path_key
from relaxdp.sampling.keys import Key
from relaxdp.theory.randomized_response import SupportProbabilities

KEY = Key.from_bytes(bytes(range(32)))
NAMES = PathId("survey-2026", "voted"), PathId("survey-2027", "voted")
ONE, VALUES = 8, 3
THRESHOLDS = (2, 5), (3,)
"""Two levels under the first name, one under the second."""


def joint_law(truths: tuple[int, int]) -> Law:
    """The law of all reports under both names, every word fed: equal keys and truths read the same words."""
    sources: dict[tuple[bytes, int], list[int]] = {}
    for date, (path, truth) in enumerate(zip(NAMES, truths, strict=True)):
        key = derive_path_key(KEY, PathKeyInfo(path, "categorical", VALUES, b""))
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


def check_names(truths: tuple[int, int]) -> None:
    """The law is the product of two paths; so a debiased change has the sum of both variances."""
    then, now = (path_law(VALUES, each, truth, one=ONE) for each, truth in zip(THRESHOLDS, truths, strict=True))
    product = {(*a, *b): p * q for (a, p), (b, q) in itertools.product(then.items(), now.items())}
    law = joint_law(truths)
    assert sum(law.values()) == 1
    assert law == product
    supports = [SupportProbabilities.from_one_symbol(F(each[-1], ONE), VALUES) for each in THRESHOLDS]
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
            compute_support_variance(share, each.hit, each.noise, "sample") / each.gain**2
            for share, each in zip(has, supports, strict=True)
        )


TRUTHS = list(itertools.product(range(VALUES), repeat=2))


@pytest.mark.parametrize("truths", TRUTHS)
def test_two_names_are_two_paths(truths: tuple[int, int]) -> None:
    check_names(truths)


def test_mutant_a_path_that_names_share_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """If the name were not part of the stream, an individual who did not change would answer with the same noise."""
    info = PathKeyInfo.make_hkdf_info
    monkeypatch.setattr(
        PathKeyInfo,
        "make_hkdf_info",
        lambda self, purpose: info(replace(self, path=PathId("survey", self.path.attribute)), purpose),
    )
    for truth in range(VALUES):
        with pytest.raises(AssertionError):
            check_names((truth, truth))


@pytest.mark.parametrize("purpose", get_args(Purpose))
def test_names_share_no_kept_randomness_either(purpose: Purpose) -> None:
    """A rounding or a hash that were kept from one name to the next would be noise in common."""
    keys = {derive_path_key(KEY, PathKeyInfo(path, "categorical", VALUES, b""), purpose) for path in NAMES}
    assert len(keys) == 2
