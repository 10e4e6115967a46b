"""The classic pair of responses: its guarantee is the greatest likelihood ratio, enumerated."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from fractions import Fraction as F
from itertools import product

import pytest

from relaxdp.estimation.schedules import compute_noisy_sampling_epsilon
from relaxdp.mechanisms.bloom import BloomShape
from relaxdp.paper.classic import Responses
from relaxdp.theory.randomized_response import compute_log_rounded_up

CLASSIC = Responses(F(1, 2), F(1, 2), F(3, 4))


def sample_law(responses: Responses, truth: int, samples: int) -> dict[tuple[int, ...], Fraction]:
    law: dict[tuple[int, ...], Fraction] = {}
    for permanent in (0, 1):
        kept = 1 - responses.noise / 2 if permanent == truth else responses.noise / 2
        one = responses.one_from_one if permanent else responses.one_from_zero
        for seen in product((0, 1), repeat=samples):
            chance = kept
            for bit in seen:
                chance *= one if bit else 1 - one
            law[seen] = law.get(seen, F(0)) + chance
    return law


@pytest.mark.parametrize("samples", [1, 2, 3])
@pytest.mark.parametrize(
    "responses", [CLASSIC, Responses(F(1, 4), F(1, 3), F(2, 3)), Responses(F(1, 2), F(1, 5), F(3, 5))]
)
def test_guarantee_of_whole_reports(responses: Responses, samples: int) -> None:
    """Two words that differ in four bits (h = 2): two that are ones of the first, two of the second."""
    laws = [sample_law(responses, truth, samples) for truth in (0, 1)]
    up = max(laws[1][each] / laws[0][each] for each in laws[0])
    down = max(laws[0][each] / laws[1][each] for each in laws[0])
    shape = BloomShape(128, 2, 64)
    assert responses.guarantee(shape, samples) == compute_log_rounded_up((up * down) ** 2)
    assert responses.guarantee(BloomShape(1, 1, 1), samples) == compute_log_rounded_up(max(up, down))
    assert responses.guarantee(BloomShape(4, 3, 1), samples) == compute_log_rounded_up(
        max(up, down) ** 3 * min(up, down)
    )


def test_it_is_the_papers_for_symmetric_samples() -> None:
    """alpha = 3/4 and beta = 2/3: eps_alpha = ln 3, eps_beta = ln 2."""
    symmetric = Responses(F(1, 2), F(1, 3), F(2, 3))
    for samples in (1, 2, 5, 10):
        paper = compute_noisy_sampling_epsilon(
            epsilon_alpha=str(compute_log_rounded_up(F(3), digits=50)),
            epsilon_beta=str(compute_log_rounded_up(F(2), digits=50)),
            samples=samples,
        )
        assert abs(symmetric.guarantee(BloomShape(1, 1, 1), samples) - paper) < Decimal("1e-30")


def test_more_samples_cost_more_up_to_the_permanent_response() -> None:
    shape = BloomShape(128, 2, 64)
    costs = [CLASSIC.guarantee(shape, samples) for samples in range(1, 30)]
    assert costs == sorted(costs)
    permanent = ((2 - F(CLASSIC.noise)) / F(CLASSIC.noise)) ** shape.max_differing_bits
    assert costs[0] < costs[-1] < compute_log_rounded_up(permanent)
