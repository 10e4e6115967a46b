"""Five buyers of one listing pool their levels: they reach what the best of them has, and no more.

Bounds are made at a confidence of 1 - 1e-6, which is the false-alarm rate of each check that nothing is violated. Seeds
are fixed; the longer campaign is `make audit`.
"""

from __future__ import annotations

import pytest

from relaxdp.audit.attacks import RelaxedReportsDistribution, TranscriptDistribution
from relaxdp.audit.auditor import AuditResult, audit
from relaxdp.audit.case_sources import FIVE_BUYERS, PooledLevelsSource, SecondKeySource
from relaxdp.audit.transcript_sources import TranscriptSource
from relaxdp.mechanisms.base import Mechanism
from relaxdp.mechanisms.categorical import Categorical, Unary
from relaxdp.mechanisms.local_hash import LocalHash

pytestmark = pytest.mark.long

BEST = "0.7"
# Upgrades from below, from above, and a level that is added between two that were ordered.
ORDERS = [FIVE_BUYERS, ("0.1", "0.2", "0.3", "0.5", "0.7"), ("0.7", "0.5", "0.1", "0.3", "0.2")]


def judged(
    source: TranscriptSource, values: int, claimed: str = BEST, distribution: TranscriptDistribution | None = None
) -> AuditResult:
    return audit(
        source, range(values), claimed_epsilon=claimed, trials=1_000_000, confidence_level=1 - 1e-6,
        distribution=distribution, seed=20260801,
    )  # fmt: skip


@pytest.mark.parametrize("ordered", ORDERS)
@pytest.mark.parametrize(("values", "limit"), [(2, BEST), (3, BEST), (3, "0.4")])
def test_pooled_levels_stay_at_the_best_one_and_at_the_limit(values: int, limit: str, ordered: tuple[str, ...]) -> None:
    source = PooledLevelsSource(Categorical(range(values)), ordered, limit)
    distribution = RelaxedReportsDistribution.from_epsilons(source.epsilons, n_values=values)
    found = judged(source, values, limit, distribution)
    assert not found.is_violated
    # 0.97 and more is usual: the bound's own 4.9 standard errors are 3 % at a million trials.
    assert found.share_of_claim > 0.9


@pytest.mark.parametrize(
    "encoding", [Unary(range(3)), Unary(range(3), optimised=False), LocalHash(range(3), buckets=2)]
)
def test_other_encodings_are_pooled_alike(encoding: Mechanism) -> None:
    found = judged(PooledLevelsSource(encoding, FIVE_BUYERS), 3)
    assert not found.is_violated
    assert found.share_of_claim > 0.9


@pytest.mark.parametrize("values", [2, 3])
def test_another_key_for_each_buyer_is_flagged(values: int) -> None:
    """Who pools independent reports has the sum of all levels, 3.3."""
    found = judged(SecondKeySource(Categorical(range(values)), FIVE_BUYERS), values)
    assert found.is_violated, found
    assert 3 * float(BEST) < found.epsilon_lower_bound < sum(map(float, FIVE_BUYERS))
