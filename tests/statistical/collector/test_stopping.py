"""Coverage after a campaign has stopped by itself, over many campaigns; and it stops at the smallest level that does.

The rule is the collector's own. Counts are drawn as devices would report them. Seeds are written down; if the coverage
is 95 % or more, a measured one falls below 94.5 % with a chance of less than 1e-6.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from relaxdp.collector.campaign import Campaign
from relaxdp.collector.definition import complete
from relaxdp.collector.rules import CampaignState, decided, first_state
from relaxdp.collector.wire import CampaignRequest, LevelRequest
from relaxdp.estimation.frequency import Frequency, WeightedSum
from relaxdp.estimation.schedules import Explicit, UntilPrecise
from relaxdp.service.wire import EncodingRequest, Target
from relaxdp.theory.randomized_response import compute_retention

RUNS, LEAST_COVERAGE, TARGET = 50_000, 0.945, 0.05
LEVELS = ["0.2", "0.5", "1", "1.5", "2"]
VALUES = ["a", "b", "c"]
EVEN, UNEVEN = (400, 400, 400), (780, 300, 120)


def campaign(devices: int, target: float = TARGET) -> Campaign:
    asked = CampaignRequest(
        "q", EncodingRequest("categorical", list(VALUES)), [LevelRequest(level) for level in LEVELS],
        devices=devices, target=Target(target),
    )  # fmt: skip
    return Campaign(1, complete(asked))


def stop(where: Campaign, limits: Sequence[int]) -> CampaignState:
    """Let devices report at every level that opens, up to the limit of each; return where the campaign stops."""
    state = decided(where, first_state(where), 0.0)
    highest = [-1] * len(limits)
    while state.state == "open":
        assert state.open_level is not None
        level = state.open_level
        for device, limit in enumerate(limits):
            if limit >= level or highest[device] < 0:
                highest[device] = min(level, max(limit, 0))
                devices = tuple(highest.count(each) for each in range(len(LEVELS)))
                if device % 60 == 0 or device == len(limits) - 1:  # looking more seldom makes nothing better
                    state = decided(where, replace(state, devices=devices), 0.0)
                if state.state != "open":
                    break
        assert state.state != "open" or state.open_level != level, "it neither goes on nor stops"
    return state


def coverage(where: Campaign, truths: Sequence[Sequence[int]], seed: int, *, wrong: float = 1.0) -> NDArray[Any]:
    """How often the pooled interval of each value covers; `truths` are the devices with each value, at each level."""
    rng = np.random.default_rng(seed)
    parts, objects = [], []
    for level, own in zip(where.levels, truths, strict=True):
        if not sum(own):
            continue
        support = where.encoding.compute_noise_and_gain(compute_retention(int(level.threshold)))
        counts = np.zeros((RUNS, len(VALUES)), dtype=np.int64)
        for value, number in enumerate(own):
            law = np.full(len(VALUES), float(support.noise))
            law[value] = float(support.hit)
            counts += rng.multinomial(number, law, size=RUNS)
        claimed = where.encoding.compute_noise_and_gain(compute_retention(round(int(level.threshold) * wrong)))
        parts.append(Frequency(range(counts.size), counts.reshape(-1), sum(own), claimed))
        objects.append(sum(own))
    found = parts[0] if len(parts) == 1 else WeightedSum(parts, [each / sum(objects) for each in objects])
    low, high = (end.reshape(RUNS, len(VALUES)) for end in found.interval())
    share = np.sum(truths, axis=0) / sum(objects)
    return np.asarray(((low <= share) & (share <= high)).mean(axis=0))


@pytest.mark.parametrize(("truths", "seed"), [(EVEN, 811), (UNEVEN, 812)])
def test_coverage_where_everybody_relaxes(truths: tuple[int, ...], seed: int) -> None:
    where = campaign(devices=sum(truths))
    state = stop(where, [len(LEVELS)] * sum(truths))
    until = UntilPrecise(Explicit(LEVELS), margin=TARGET, n=sum(truths), values=len(VALUES))
    smallest = len(list(until)) - 1
    assert until.is_reached
    assert 0 < smallest < len(LEVELS) - 1
    assert state.open_level == smallest
    # It may stop before the last device has relaxed: then some still stand one level below.
    assert sum(state.devices[: smallest - 1]) == 0
    width = where.precision.half_width(state.devices)
    assert width is not None
    assert width <= TARGET
    split = _split(truths, state)
    found = coverage(where, split, seed)
    assert found.min() >= LEAST_COVERAGE
    if truths == UNEVEN:  # the check would notice a retention that is 5 % off
        assert coverage(where, split, seed, wrong=1.05).min() < LEAST_COVERAGE - 0.01


def test_coverage_where_limits_depend_on_the_truth() -> None:
    """A quarter of the devices stay below, mostly those with the second value; the average stays honest."""
    truths = (700, 600, 300)
    limits = [4] * 700 + [1] * 350 + [4] * 250 + [1] * 50 + [4] * 250
    where = campaign(devices=1000, target=0.085)
    state = stop(where, limits)
    assert state.state == "finished"
    assert state.devices[1] >= 300
    level = state.open_level
    assert level is not None
    split = [[0, 0, 0] for _ in LEVELS]
    split[1] = [0, 350, 50]
    above = [700, 250, 250]
    left = state.devices[level] - sum(above)
    split[level] = above
    if left < 0:  # stopped before everybody had relaxed: the last ones stand a level below
        split[level - 1] = [a + b for a, b in zip(split[level - 1], _last(above, -left), strict=True)]
        split[level] = [a - b for a, b in zip(above, _last(above, -left), strict=True)]
    assert [sum(own) for own in split] == list(state.devices)
    assert np.sum(split, axis=0).tolist() == list(truths)
    assert coverage(where, split, 813).min() >= LEAST_COVERAGE


def _split(truths: Sequence[int], state: CampaignState) -> list[list[int]]:
    """Give the levels their devices: those that have not relaxed yet are taken from all values alike."""
    split = [[0] * len(truths) for _ in state.devices]
    left = list(truths)
    for level, number in enumerate(state.devices[:-1]):
        if level != state.open_level and number:
            split[level] = _last(left, number)
            left = [a - b for a, b in zip(left, split[level], strict=True)]
    assert state.open_level is not None
    split[state.open_level] = left
    return split


def _last(numbers: Sequence[int], wanted: int) -> list[int]:
    taken = [wanted * number // sum(numbers) for number in numbers]
    taken[0] += wanted - sum(taken)
    return taken
