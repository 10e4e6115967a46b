"""How often individuals are noticed that send one fabricated report at all levels: tables by simulation.

python -m tests.statistical.estimation.repeaters prints the tables of docs/made-up-reports.md.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.stats import binom
from tests.statistical.estimation.test_integrity import add, path

from relaxdp import Categorical, Numeric, SquareWave, Unary
from relaxdp.estimation.poisoning import FALSE_ALARM_RATE, PoisoningTest, ReportPairs, check_pairs
from relaxdp.mechanisms.base import Mechanism
from relaxdp.mechanisms.report_arrays import pack_reports

SEED, RUNS = 2321, 40
SHARES = (0.02, 0.05, 0.1, 0.2)
LEVELS = (("0.5", "1"), ("1", "2"), ("2", "4"))
SIZES = (10_000, 100_000)
MECHANISMS: dict[str, Mechanism] = {
    "`Numeric`": Numeric(0, 100),
    "`Categorical`, 10 values": Categorical(range(10)),
    "`SquareWave`, 32 bins": SquareWave(0, 100, bins=32, window=8),
    "`Unary`, 10 values": Unary(range(10)),
}


def check_repeaters(
    rng: np.random.Generator, mechanism: Mechanism, levels: tuple[str, ...], n: int, repeaters: int
) -> PoisoningTest:
    """Test reports of honest individuals with uniform true values, and of others that always send the last value."""
    if isinstance(mechanism, SquareWave):
        symbols = rng.integers(0, 32, n) + rng.integers(0, 8, n)
    elif mechanism.symbols > 1:
        symbols = np.zeros((n, mechanism.symbols), dtype=np.int64)
        symbols[np.arange(n), rng.integers(0, mechanism.symbols, n)] = rng.integers(0, 2, n)
    else:
        symbols = rng.integers(0, mechanism.alphabet, n)
    reports = path(rng, mechanism, symbols, levels)
    wanted: Any = mechanism.alphabet - 1
    if mechanism.symbols > 1:
        wanted = np.arange(mechanism.symbols) == mechanism.symbols - 1
    for each in reports:
        each[:repeaters] = wanted
    pairs = ReportPairs(mechanism)
    if mechanism.symbols > 1:
        pairs.add([pack_reports(mechanism, each.astype(np.uint8)) for each in reports], epsilons=levels)
    else:
        for place in range(len(levels) - 1):
            add(pairs, *reports[place : place + 2], *levels[place : place + 2])
    return check_pairs(pairs, levels=levels)


def compute_best_power(levels: tuple[str, str], n: int, share: float) -> tuple[float, float]:
    """Return how often the best test for two reports notices the share: at one planned look, and at any number of them.

    It knows the share and the value that is sent. Given the newer reports, the number of equal pairs with this value is
    binomial, so the likelihood ratio is best. For any number of looks it must reach 1 / a, here after the last report.
    """
    kept = Numeric(0, 1).level(levels[0]).retention / Numeric(0, 1).level(levels[1]).retention
    stay, sent = float(1 + kept) / 2, (1 + share) / 2
    equal = (stay * (1 - share) / 2 + share) / sent
    counts = np.arange(round(n * sent) + 1)
    ratio = counts * np.log(equal / stay) + (counts[-1] - counts) * np.log((1 - equal) / (1 - stay))
    any_look = binom.pmf(counts[ratio >= -np.log(FALSE_ALARM_RATE)], counts[-1], equal).sum()
    one_look = binom.sf(binom.isf(FALSE_ALARM_RATE, counts[-1], stay), counts[-1], equal)
    return float(one_look), float(any_look)


def measure_row(name: str, levels: tuple[str, str], n: int) -> str:
    """Return a row: alarms of all runs for each share of repeaters, and the number that the test prints."""
    rng, alarms = np.random.default_rng(SEED), []
    for share in SHARES:
        tests = [check_repeaters(rng, MECHANISMS[name], levels, n, round(n * share)) for _ in range(RUNS)]
        alarms.append(str(sum(each.is_alarm for each in tests)))
    row = [name, " and ".join(levels), f"{n:,}", *alarms, f"{tests[0].n_unnoticed_repeaters:,}"]
    return f"| {' | '.join(row)} |"


def list_rows() -> list[tuple[str, tuple[str, str], int]]:
    """Return the mechanism, levels and number of individuals of all rows."""
    return [(name, levels, n) for name in MECHANISMS for n in SIZES for levels in LEVELS]


def compute_best_rows() -> list[str]:
    """Return a row for each pair of levels: the power of the best test for 2 % of 10,000 individuals."""
    rows = []
    for levels in LEVELS:
        one, any_look = compute_best_power(levels, SIZES[0], SHARES[0])
        rows.append(f"| {' and '.join(levels)} | {one:.0%} | {any_look:.1%} |".replace("%", " %"))
    return rows


def main() -> None:
    """Print both tables."""
    for row in list_rows():
        print(measure_row(*row), flush=True)
    print(*compute_best_rows(), sep="\n")


if __name__ == "__main__":
    main()
