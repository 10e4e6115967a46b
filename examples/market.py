"""One release, many buyers: the data market of the paper, and what buyers gain who pool what they bought.

A clinic sells the diagnoses of 20,000 people at any epsilon from 0.1 to 1.0 in steps of 0.01. It makes the reports of a
level from its key when they are needed, in any order, and always the same ones. All levels together cost the largest.

Then buyers pool all their levels and guess each person's diagnosis. They are right exactly as often as the best
informed of them alone, even if all 91 levels are sold. With an independent answer for each buyer, the answers add up.

Run it: python examples/market.py. To sell from a vault, over HTTP, see docs/market.md.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from decimal import Decimal

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

import relaxdp as rx
from relaxdp.audit.attacks import (
    IndependentReportsDistribution,
    RelaxedReportsDistribution,
    compute_error_rate,
    compute_minimum_error_rate,
    guess_by_maximum_likelihood,
)
from relaxdp.mechanisms.report_arrays import read_report_column

DIAGNOSES = rx.Categorical(["flu", "covid", "none"])
KEY = rx.Key.from_bytes(bytes(range(32)))  # A fixed key, so that this example can be repeated. A vault makes its own.
PEOPLE = np.arange(20_000)
TRUTH = np.random.default_rng(1).permutation(PEOPLE % 3)
LEVELS = [f"{step / 100:.2f}" for step in range(10, 101)]
TOTAL = sum(map(Decimal, LEVELS))
BUYERS = {
    "ada": ["0.20", "0.35", "0.80"],
    "ben": ["0.35", "0.66"],
    "cem": ["0.50"],
    "dan": ["0.80"],
    "eve": ["0.42"],
}
Codes = NDArray[np.int64]


def read_level(epsilon: str, name: str = "clinic") -> Codes:
    """Return the clinic's reports at a level of a release: a function of the key, so they never change."""
    diagnoses = np.array(DIAGNOSES.values)[TRUTH]
    reports = DIAGNOSES.release(diagnoses, PEOPLE, key=KEY, epsilon=epsilon, name=name, column="diagnosis")
    return read_report_column(DIAGNOSES, reports)[0][:, 0].astype(np.int64)


def compute_likelihoods(levels: Sequence[str]) -> NDArray[np.float64]:
    """Return the log likelihood of each diagnosis given all reports at some levels, relative to the first diagnosis."""
    reports = {level: read_level(level) for level in levels}  # in the order in which they are bought
    distribution = RelaxedReportsDistribution.from_epsilons(sorted(reports), n_values=3)
    found = distribution.compute_log_likelihoods(np.stack([reports[level] for level in sorted(reports)], axis=1))
    return np.asarray(found - found[:, :1])


def guess(levels: Sequence[str]) -> float:
    """Return how often a guess from these levels is right; no attack does better than maximum likelihood."""
    return float(np.mean(compute_likelihoods(levels).argmax(axis=1) == TRUTH))


def guess_from_independent_answers(levels: Sequence[str]) -> float:
    """Return the same where each buyer has an answer of their own: a release for each sale."""
    reports = np.stack([read_level(level, f"sale {number}") for number, level in enumerate(levels)], axis=1)
    distribution = IndependentReportsDistribution.from_epsilons(levels, n_values=3)
    return 1 - compute_error_rate(guess_by_maximum_likelihood(reports, distribution), TRUTH)


def main() -> None:
    """Sell levels, and let buyers pool them."""
    console, everyone = Console(), random.Random(1).sample(LEVELS, len(LEVELS))  # buyers come in any order
    table = Table(
        "who guesses", "best epsilon", "right", "if answers were independent",
        title=f"Diagnoses of {len(PEOPLE):,} people guessed from what was bought (a blind guess: 33.3 %)",
    )  # fmt: skip

    def add(name: str, levels: Sequence[str]) -> None:
        table.add_row(name, max(levels), f"{guess(levels):.1%}", f"{guess_from_independent_answers(levels):.1%}")

    for buyer, levels in BUYERS.items():
        add(f"{buyer}, alone", levels)
    table.add_section()
    add("all five, pooled", [level for levels in BUYERS.values() for level in levels])
    table.add_section()
    add("the buyer of 1.00, alone", ["1.00"])
    add(f"{len(everyone)} buyers of all levels, pooled", everyone)
    console.print(table)
    most = [1 - compute_minimum_error_rate(3, epsilon) for epsilon in ("0.8", "1")]
    console.print(f"On average no guess can be right more often than {most[0]:.1%} at 0.80, and {most[1]:.1%} at 1.00.")
    difference = abs(compute_likelihoods(everyone) - compute_likelihoods(["1.00"])).max()
    console.print(f"Log likelihood ratios of each person, pooled and at 1.00 alone: equal up to {difference:.0e}.")
    console.print(
        f"All 91 levels together cost a person epsilon {max(LEVELS)}. Independent answers would cost {TOTAL}."
    )


if __name__ == "__main__":
    main()
