"""How often individuals are noticed that send one fabricated report at all levels: tables by simulation.

python -m tests.statistical.estimation.repeaters prints the tables of docs/made-up-reports.md.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import binom
from tests.statistical.estimation.test_integrity import add, path

from relaxdp import Categorical, Numeric, SquareWave, Unary
from relaxdp.estimation.poisoning import FALSE_ALARM_RATE, PoisoningTest, ReportPairs, check_pairs
from relaxdp.mechanisms.base import Mechanism
from relaxdp.mechanisms.report_arrays import pack_reports

PAGE = Path(__file__).parents[3] / "docs" / "made-up-reports.md"
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
            add(pairs, reports[place], reports[place + 1], levels[place], levels[place + 1])
    return check_pairs(pairs, levels=levels)


def compute_best_power(levels: tuple[str, str], n: int, share: float) -> float:
    """Return how often the best test for two reports notices this share of repeaters, whatever the honest mean is.

    It knows the share and the value that is sent. Given the newer reports, the number of equal pairs with this value is
    binomial, and the likelihood ratio grows with it.
    """
    kept = Numeric(0, 1).level(levels[0]).retention / Numeric(0, 1).level(levels[1]).retention
    stay, sent = float(1 + kept) / 2, (1 + share) / 2
    equal, trials = (stay * (1 - share) / 2 + share) / sent, round(n * sent)
    return float(binom.sf(binom.isf(FALSE_ALARM_RATE, trials, stay), trials, equal))


def measure_row(name: str, levels: tuple[str, str], n: int) -> str:
    """Return a row: alarms and p-values of at most 1 % for each share of repeaters, and the number that is stated."""
    rng, alarms = np.random.default_rng(SEED), []
    for share in SHARES:
        tests = [check_repeaters(rng, MECHANISMS[name], levels, n, round(n * share)) for _ in range(RUNS)]
        small = sum(each.p_value <= FALSE_ALARM_RATE for each in tests)
        alarms.append(f"{sum(each.is_alarm for each in tests)} ({small})")
    row = [name, " and ".join(levels), f"{n:,}", *alarms, f"{tests[0].n_unnoticed_repeaters:,}"]
    return f"| {' | '.join(row)} |"


def list_rows() -> list[tuple[str, tuple[str, str], int]]:
    """Return the mechanism, levels and number of individuals of all rows: many individuals for numbers alone."""
    cells = [(name, n) for name in MECHANISMS for n in SIZES if n == SIZES[0] or name == "`Numeric`"]
    return [(name, levels, n) for name, n in cells for levels in LEVELS]


def compute_best_rows() -> list[str]:
    """Return a row for each pair of levels: the power of the best test for two shares, and for more individuals."""
    cells = [(SIZES[0], SHARES[0]), (SIZES[0], SHARES[1]), (SIZES[1], SHARES[0])]
    powers = [[f"{100 * compute_best_power(levels, *each):.0f} %" for each in cells] for levels in LEVELS]
    return [f"| {' | '.join([' and '.join(levels), *row])} |" for levels, row in zip(LEVELS, powers, strict=True)]


def main() -> None:
    """Print both tables."""
    for row in list_rows():
        print(measure_row(*row), flush=True)
    print(*compute_best_rows(), sep="\n")


if __name__ == "__main__":
    main()
