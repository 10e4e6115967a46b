"""What a campaign publishes, as a random outcome: enumerated in fractions, it keeps the bound that stands beside it."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Hashable
from fractions import Fraction
from functools import cache
from itertools import product

import msgspec
import numpy as np

from relaxdp.collector import campaigns, publishing
from relaxdp.collector.wire import CampaignRequest, LevelRequest, Publish
from relaxdp.service.wire import EncodingRequest

DELTA, SIZE = 0.1, 3
CAMPAIGN = campaigns.prepared(
    CampaignRequest(
        "q",
        EncodingRequest("categorical", ["a", "b"]),
        [LevelRequest("0.5"), LevelRequest("1.5")],
        closes="2999-01-01T00:00:00Z",
        publish=Publish(SIZE, DELTA),
    )
)
Reports = tuple[int, ...]


def content(reports: Reports) -> bytes:
    """Return what is published where the first half stopped at level 0, and the others at level 1."""
    packed = [bytes([report]) for report in reports]
    return written(*(CAMPAIGN.codec.count(half)[0].tobytes() for half in (packed[:SIZE], packed[SIZE:])))


@cache
def written(*levels: bytes) -> bytes:
    return msgspec.json.encode(publishing.published(CAMPAIGN, [{0: np.frombuffer(each, np.int64)} for each in levels]))


def test_the_bound_holds_for_who_is_in_either_group() -> None:
    """The mutants are told apart by it: reports in the order of the devices, and a group before and after somebody."""
    bound = math.exp(float(msgspec.json.decode(content((0,) * 2 * SIZE))["public_epsilon"]))
    assert bound < math.exp(1.5)
    told = {reports: content(reports) for reports in product((0, 1), repeat=2 * SIZE)}
    assert len(set(told.values())) == (SIZE + 1) ** 2
    for place, others in product((0, SIZE), ((0,) * 2 * SIZE, (0, 1) * SIZE, (1,) * 2 * SIZE)):
        assert exceeded(place, others, told.__getitem__, bound) <= DELTA
    last = (0,) * 2 * SIZE
    assert exceeded(SIZE, last, lambda reports: reports, bound) > DELTA
    assert exceeded(SIZE, last, lambda reports: (told[reports], sum(reports[SIZE + 1 :])), bound) > DELTA


def exceeded(place: int, others: Reports, outcome: Callable[[Reports], Hashable], bound: float) -> Fraction:
    """Return how far the law of an outcome exceeds the bound when one truth changes, at most."""
    laws = []
    for truth in (0, 1):
        truths = (*others[:place], truth, *others[place + 1 :])
        law: dict[Hashable, Fraction] = defaultdict(Fraction)
        for reports in product((0, 1), repeat=2 * SIZE):
            law[outcome(reports)] += math.prod(map(chance, range(2 * SIZE), truths, reports))
        laws.append(law)
    times = Fraction(bound)
    one, other = laws
    return max(
        sum((max(a[each] - times * b[each], Fraction(0)) for each in a | b), Fraction(0))
        for a, b in ((one, other), (other, one))
    )


def chance(place: int, truth: int, report: int) -> Fraction:
    keep = CAMPAIGN.encoding.level(CAMPAIGN.levels[place >= SIZE].epsilon).retention
    return (keep if truth == report else Fraction(0)) + (1 - keep) / 2
