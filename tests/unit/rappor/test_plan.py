"""Choosing parameters: the plan says what the decoder then finds."""

from __future__ import annotations

import numpy as np
import pytest
from tests.refusals import refused
from tests.statistical.rappor.rappor_runs import Setting, relaxed

from relaxdp.errors import PlanError, RapporError
from relaxdp.mechanisms.bloom import BloomShape, compute_epsilon
from relaxdp.rappor.parameters import (
    compute_word_std_error,
    plan_parameters,
    plan_parameters_for_share,
)


@pytest.mark.parametrize(
    ("shape", "candidates", "noise"),
    [
        (BloomShape(128, 2, 64), 300, "0.5"),
        (BloomShape(256, 1, 32), 300, "0.2"),
        (BloomShape(64, 4, 32), 200, "0.7"),
        (BloomShape(32, 1, 64), 500, "0.6"),
    ],
)
def test_planned_errors_are_what_the_decoder_finds(shape: BloomShape, candidates: int, noise: str) -> None:
    setting = Setting(shape, candidates, candidates // 4, candidates / 20, 20_000, noise)
    level = compute_epsilon(shape, noise)
    truth, decoded = relaxed(setting, level, run=1)
    found = float(np.median(decoded.std_error[truth == 0]))
    planned = compute_word_std_error(shape, epsilon=level, n_devices=20_000, n_candidates=candidates)
    assert abs(planned / found - 1) < 0.1


@pytest.mark.long
def test_the_promised_share_is_found_nine_times_in_ten() -> None:
    """200 runs of one word at the smallest share beside others: found in 90 %, within four standard errors."""
    shape, devices, candidates = BloomShape(128, 1, 32), 5_000, 30
    level = compute_epsilon(shape, "0.3")
    (plan,) = plan_parameters(
        n_devices=devices, n_candidates=candidates, epsilon=level, hashes=[1], bits=128, cohorts=32
    )
    share = plan.smallest_share

    class Weak(Setting):
        def shares(self) -> np.ndarray:
            result = np.zeros(self.candidates)
            result[:3] = [0.6, 0.4 - share, share]
            return result

    setting = Weak(shape, candidates, 3, 1, devices, "0.3")
    found = [bool(relaxed(setting, level, run)[1].find_detected_words()[2]) for run in range(200)]
    assert 0.9 - 4 * 0.0212 - 0.02 < np.mean(found) < 0.9 + 4 * 0.0212 + 0.02


def test_advice_is_sorted_and_consistent() -> None:
    plans = plan_parameters(n_devices=100_000, n_candidates=300, epsilon="4.394449")
    assert [plan.smallest_share for plan in plans] == sorted(plan.smallest_share for plan in plans)
    assert {plan.shape.hashes for plan in plans} == {1, 2, 4}
    assert plans[0].shape.hashes == 1  # one hash is best: the same epsilon makes clearer bits
    for plan in plans:
        assert 0.1 * plan.shape.bits * plan.shape.cohorts >= 300
    (fixed,) = plan_parameters(n_devices=100_000, n_candidates=300, epsilon=4, hashes=[2], bits=128, cohorts=64)
    assert fixed.shape == BloomShape(128, 2, 64)


def test_the_epsilon_for_a_share() -> None:
    plans = plan_parameters_for_share(0.01, n_devices=100_000, n_candidates=300)
    assert [plan.epsilon for plan in plans] == sorted(plan.epsilon for plan in plans)
    for plan in plans:
        assert 0.0095 < plan.smallest_share <= 0.01
        again = plan_parameters(n_devices=100_000, n_candidates=300, epsilon=plan.epsilon, hashes=[plan.shape.hashes])[
            0
        ]
        assert again == plan
    with refused(PlanError, share=1e-05, candidates=300, devices=100):
        plan_parameters_for_share(1e-5, n_devices=100, n_candidates=300)


def test_mistakes() -> None:
    with refused(PlanError, what="devices"):
        plan_parameters(n_devices=0, n_candidates=3, epsilon=1)
    with refused(PlanError, maximum=100000):
        plan_parameters(n_devices=5, n_candidates=0, epsilon=1)
    with refused(PlanError, says="The share of a word must be between 0 and 1"):
        plan_parameters_for_share(1.5, n_devices=5, n_candidates=3)
    with refused(RapporError, says="A boolean is planned as two values"):
        compute_word_std_error(BloomShape(1, 1, 1), epsilon=1, n_devices=5, n_candidates=1)
