"""The data market's example: 0.1 to 1.0 in steps of 0.01, sold in any order, from one delivered report."""

from __future__ import annotations

from bisect import bisect
from decimal import Decimal
from functools import partial
from itertools import product

import numpy as np
from numpy.typing import NDArray

from relaxdp.audit.attacks import (
    ATTACKS,
    RelaxedReportsDistribution,
    compute_error_probabilities,
    compute_minimum_error_rate,
    compute_retentions,
)
from relaxdp.hazmat import bridge_once
from relaxdp.paper import figures, judge
from relaxdp.paper.claims import Claim, ClaimCheck, ClaimOutcome, Data, Picture
from relaxdp.paper.lab import Lab
from relaxdp.theory.privacy_loss import compute_transcript_probability
from relaxdp.theory.randomized_response import NOISE, compute_odds

VALUES = 3
LEVELS = tuple(Decimal(step) / 100 for step in range(10, 101))
COUNTED = (0, 45, 90)
"""Which levels' joint law is counted: 0.1, 0.55 and 1.0."""
POOLED = tuple(range(0, 91, 10))
"""How far coalitions have bought that are attacked: everything up to 0.1, 0.2, ... 1.0."""
_SHARE = 10  # a tenth of the objects of other tests of a law will do: each of them has 91 reports

Codes = NDArray[np.unsignedinteger]
Floats = NDArray[np.float64]


def sold_in_any_order(lab: Lab, top: Codes, purpose: str) -> Codes:
    """Return the reports of all levels, bridged one at a time, in a random order, from the report at 1.0.

    Each new level is drawn from its two nearest neighbours among all that were sold: no truth is needed.
    """
    entropy = lab.entropy(f"market bridged from {purpose}")
    order = np.empty(len(LEVELS) - 1, np.uint64)
    entropy.make_keystream().fill(order.view(np.uint8))
    keeps, sold, reports = compute_retentions(LEVELS, VALUES), [len(LEVELS) - 1], {len(LEVELS) - 1: top}
    for level in np.argsort(order).tolist():
        place = bisect(sold, level)
        below, above = (sold[place - 1] if place else None), sold[place]
        reports[level] = bridge_once(
            VALUES,
            NOISE if below is None else keeps[below],
            keeps[level],
            keeps[above],
            lower_reports=None if below is None else reports[below],
            upper_reports=reports[above],
            entropy=entropy,
        )
        sold.insert(place, level)
    return np.stack([reports[level] for level in range(len(LEVELS))])


def market(lab: Lab) -> ClaimOutcome:
    """Check the joint law of what is sold, the pooled privacy loss, and what coalitions can guess."""
    objects = lab.settings.objects // _SHARE
    truth = (np.arange(objects) % VALUES).astype(np.uint8)
    ways: dict[str, Codes] = {}
    for sampler in lab.samplers:
        lab.say(f"market, {sampler.name}: 91 levels")
        ways[sampler.name] = sampler.transcripts(VALUES, LEVELS, truth, purpose="market")
        ways[f"bridged from {sampler.name}"] = sold_in_any_order(lab, ways[sampler.name][-1], sampler.name)
    checks = [check for name, reports in ways.items() for check in _checks(lab, name, reports, truth)]
    shown = f"bridged from {lab.samplers[0].name}"
    rates = {
        name: _coalitions(lab, name, reports, truth, POOLED if name == shown else POOLED[-1:])
        for name, reports in ways.items()
    }
    least = [compute_minimum_error_rate(VALUES, LEVELS[last]) for last in POOLED]
    for name, by_attack in rates.items():
        wrong = [rate[-1] * objects for rate in by_attack.values()]
        checks.append(judge.at_least(f"{name}: all 91 levels pooled", wrong, objects, least[-1]))
    steps = [float(level) for level in LEVELS]
    rows = [
        [name, attack, LEVELS[last], rate, lowest]
        for name, by_attack in rates.items()
        for attack, curve in by_attack.items()
        for last, lowest, rate in zip(POOLED[-len(curve) :], least[-len(curve) :], curve, strict=True)
    ]
    best = min(rates[shown][attack][-1] for attack in ATTACKS)
    return ClaimOutcome(
        f"91 levels of {objects:,} objects, relaxed step by step, and bridged in random order from the report at 1.0: "
        f"one law. No transcript's likelihood ratio exceeds e^1.0 (adding up all sales would say {sum(steps):.2f}). "
        f"Whoever pools all 91 guesses wrong at best at a rate of {best:.4f}; the minimum is {least[-1]:.4f}.",
        "Joint counts at 0.1, 0.55 and 1.0 (chi-square), likelihood ratios of whole transcripts in fractions, error "
        "rates one-sided against the minimum (binomial).",
        checks,
        {"market": Data(["reports", "attack", "bought_up_to", "error_rate", "theoretical_minimum"], rows)},
        {
            "market": Picture(
                "What a coalition of buyers can guess (m = 3) that pools every level from 0.1 up to ε, bridged from "
                "one report at 1.0. Dashed: theoretical minimum for its best level alone.",
                partial(figures.coalitions, rates[shown], [steps[last] for last in POOLED], least),
            )
        },
    )


def _checks(lab: Lab, name: str, reports: Codes, truth: NDArray[np.uint8]) -> list[ClaimCheck]:
    # Values are interchangeable, so reports are counted relative to the truth.
    relative = ((reports[list(COUNTED)].astype(np.int64) - truth) % VALUES).astype(np.int64)
    cells = np.ravel_multi_index(tuple(relative), (VALUES,) * len(COUNTED))
    keeps = compute_retentions([LEVELS[place] for place in COUNTED], VALUES)
    law = [
        float(compute_transcript_probability(VALUES, keeps, each, truth=0))
        for each in product(range(VALUES), repeat=len(COUNTED))
    ]
    all_keeps = compute_retentions(LEVELS, VALUES)
    most, largest = compute_odds(all_keeps[-1], VALUES), 0.0
    for column in reports.T[:6].tolist():
        chances = [compute_transcript_probability(VALUES, all_keeps, column, truth=each) for each in range(VALUES)]
        largest = max(largest, float(max(chances) / min(chances) / most))
    return [
        judge.histogram(f"{name}: joint law at 0.1, 0.55 and 1.0", np.bincount(cells, minlength=len(law)), law),
        judge.exact(f"{name}: likelihood ratios of 91 levels", largest <= 1, f"greatest ratio / e^1.0: {largest:.6f}"),
    ]


def _coalitions(
    lab: Lab, name: str, reports: Codes, truth: NDArray[np.uint8], pooled: tuple[int, ...]
) -> dict[str, list[float]]:
    """Return the error rate of each attack for each coalition."""
    rates: dict[str, list[float]] = {attack: [] for attack in ATTACKS}
    for last in pooled:
        lab.say(f"market, {name}: attacks up to {LEVELS[last]}")
        bought = LEVELS[: last + 1]
        law = RelaxedReportsDistribution.from_epsilons(bought, n_values=VALUES)
        for attack, guess in ATTACKS.items():
            found = guess(np.ascontiguousarray(reports[: last + 1].T), law, bought)
            rates[attack].append(float(compute_error_probabilities(found, truth).mean()))
    return rates


CLAIMS = [
    Claim(
        "market",
        "The data market",
        "Section V-C",
        "Relaxed from 0.1 to 1.0 in steps of 0.01, data can be sold and resold at any of these levels to many buyers, "
        "and the overall privacy loss remains 1.0.",
        market,
    ),
]
