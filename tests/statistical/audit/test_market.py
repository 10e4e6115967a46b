"""Five buyers of one listing pool what they bought: they reach what the best of them has, and no more.

Bounds are made at a confidence of 1 - 1e-6, which is the false-alarm rate of each check that nothing is violated. What
a market with a mistake really gives away is known exactly (tests/exact/market/orders.py), so the auditor must stay
below that as well. Seeds are fixed; the longer campaign is `make audit`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import pytest
from tests.exact.market.orders import Afresh, FromTheTop, Market, State, deliver, pooled, sell

from relaxdp.audit.attacks import RelaxedReportsDistribution, TranscriptDistribution
from relaxdp.audit.auditor import AuditResult, audit
from relaxdp.audit.case_sources import (
    FIVE_BUYERS,
    BlurredDeliverySource,
    Event,
    IndependentReportsSource,
    PooledPurchasesSource,
    RedrawnLevelSource,
    list_pooled_levels,
)
from relaxdp.audit.transcript_sources import TranscriptSource
from relaxdp.mechanisms.categorical import Categorical, Unary
from relaxdp.mechanisms.declared_values import DeclaredMechanism
from relaxdp.mechanisms.local_hash import LocalHash
from relaxdp.theory.epsilon import ONE

pytestmark = pytest.mark.long

CONFIDENCE = 1 - 1e-6
BEST = 0.7
# A delivery between sales, all sales from the top down, and one delivery from which everything is sold upwards.
DAYS: list[Sequence[Event]] = [
    FIVE_BUYERS,
    [("deliver", "1"), *(("sell", level) for level in ("0.7", "0.5", "0.3", "0.2", "0.1"))],
    [("deliver", "1"), *(("sell", level) for level in ("0.1", "0.2", "0.3", "0.5", "0.7"))],
]


def judged(
    source: TranscriptSource, values: int, *, law: TranscriptDistribution | None = None, trials: int = 1_000_000
) -> AuditResult:
    return audit(
        source,
        range(values),
        claimed_epsilon="0.7",
        trials=trials,
        confidence_level=CONFIDENCE,
        distribution=law,
        seed=20260801,
    )


def pooled_epsilon(market: Market, encoding: DeclaredMechanism, events: Sequence[Event] = FIVE_BUYERS) -> float:
    """What all sales of some events together give away, exactly up to the last logarithm."""
    state = State()
    for (kind, _), level in zip(events, thresholds(encoding, events), strict=True):
        state = (deliver if kind == "deliver" else sell)(market, state, level)
    laws = pooled(encoding.alphabet, ONE, state.draws, tuple(sorted(set(state.sold))))
    transcripts = {reports for law in laws for reports in law}
    return max(
        math.log(max(law[reports] for law in laws) / min(law[reports] for law in laws)) for reports in transcripts
    )


def thresholds(encoding: DeclaredMechanism, events: Sequence[Event]) -> list[int]:
    return [encoding.threshold(epsilon) for _, epsilon in PooledPurchasesSource(encoding, events).events]


@pytest.mark.parametrize("events", DAYS)
@pytest.mark.parametrize("values", [2, 3])
def test_pooled_purchases_stay_at_the_best_level(values: int, events: Sequence[Event]) -> None:
    encoding = Categorical(range(values))
    found = judged(
        PooledPurchasesSource(encoding, events),
        values,
        law=RelaxedReportsDistribution.from_epsilons(list_pooled_levels(events), n_values=values),
    )
    assert not found.is_violated
    assert (
        found.share_of_claim > 0.9
    )  # 0.97 and more is usual: the bound's own 4.9 standard errors are 3 % at a million trials
    assert pooled_epsilon(Market(), encoding, events) == pytest.approx(BEST, abs=1e-12)


@pytest.mark.parametrize(
    "encoding", [Unary(range(3)), Unary(range(3), optimised=False), LocalHash(range(3), buckets=2)]
)
def test_other_encodings_are_sold_alike(encoding: DeclaredMechanism) -> None:
    found = judged(PooledPurchasesSource(encoding), 3)
    assert not found.is_violated
    assert found.share_of_claim > 0.9


@pytest.mark.parametrize("values", [2, 3])
@pytest.mark.parametrize(("source", "market"), [(RedrawnLevelSource, Afresh()), (BlurredDeliverySource, FromTheTop())])
def test_planted_mistakes_are_flagged(source: type[PooledPurchasesSource], market: Market, values: int) -> None:
    encoding = Categorical(range(values))
    found = judged(source(encoding), values, trials=3_000_000)
    assert found.is_violated, found
    assert BEST < found.epsilon_lower_bound < pooled_epsilon(market, encoding)


@pytest.mark.parametrize("values", [2, 3])
def test_the_naive_market_is_flagged(values: int) -> None:
    """A response of their own for each buyer: whoever pools them has the sum of all levels, 3.3."""
    found = judged(IndependentReportsSource(Categorical(range(values)), list_pooled_levels(FIVE_BUYERS)), values)
    assert found.is_violated, found
    assert 3 * BEST < found.epsilon_lower_bound < float(sum(list_pooled_levels(FIVE_BUYERS)))
