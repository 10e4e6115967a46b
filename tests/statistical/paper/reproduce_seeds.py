"""Reproduce the paper with ten seeds, and print the verdicts: python -m tests.statistical.paper.reproduce_seeds."""

from __future__ import annotations

import sys
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

from rich.console import Console
from rich.table import Table

from relaxdp.paper.claims import Verdict
from relaxdp.paper.lab import Lab, LabSettings
from relaxdp.paper.runner import CLAIMS, judge_all

SEEDS = range(1, 11)


def verdicts(seed: int) -> tuple[dict[str, Verdict], float]:
    """Return the verdict of every claim, and the false-alarm rate of the whole run."""
    run = judge_all(CLAIMS, Lab(LabSettings(seed=seed)))
    return {each.claim.name: each.verdict for each in run.judged}, run.false_alarm


def main() -> int:
    """Print one row per claim; the exit status tells whether no claim failed at any seed."""
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        found = list(pool.map(verdicts, SEEDS))
    table = Table(title=f"Verdicts at seeds {SEEDS.start} to {SEEDS.stop - 1}")
    table.add_column("claim", no_wrap=True)
    for verdict in Verdict:
        table.add_column(verdict.value, justify="right", min_width=8)
    for claim in CLAIMS:
        counts = Counter(by_claim[claim.name] for by_claim, _ in found)
        table.add_row(claim.name, *(str(counts[verdict] or "") for verdict in Verdict))
    Console().print(table)
    failed = sum(verdict is Verdict.FAILS for by_claim, _ in found for verdict in by_claim.values())
    Console().print(
        f"{failed} failed; correct code fails somewhere with probability {sum(rate for _, rate in found):.1g}."
    )
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
