"""Data poisoning of a survey with local privacy: fabricated reports, with the test of pairs and without it.

Run it: python examples/made_up_reports.py

100,000 devices are asked at epsilon 0.5, and again at 2. One, five or ten in a hundred do not answer: they send the
reports that push their wanted answers most (the maximal gain attack of Cao, Jia and Gong, 2021). Bits have all wanted
ones set, and a hash has a seed that puts them together. Clumsy attackers send the same report twice. Careful ones
fabricate the newest report and blur it as the software would: no test can tell them from people who lie.

The last lines show attackers that the test does not notice: 2 % of 10,000 devices that report numbers.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

import relaxdp as rx
from relaxdp.mechanisms.report_arrays import pack_reports, read_report_column

DEVICES, VALUES, WANTED = 100_000, 10, (8, 9)
LEVELS = ("0.5", "2")
SHARES = np.array([0.25, 0.2, 0.15, 0.1, 0.08, 0.07, 0.05, 0.04, 0.03, 0.03])
MECHANISMS = {
    "categorical": rx.Categorical(range(VALUES)),
    "bits": rx.Unary(range(VALUES)),
    "hashes": rx.LocalHash(range(VALUES), buckets=8),
}
KEY = rx.Key.from_bytes(bytes(range(32)))


def honest(mechanism: Any, truths: Any) -> list[Any]:
    """Return the packed reports of honest devices at both levels."""
    where: Any = {"key": KEY, "name": "survey", "column": "answer"}
    released = [mechanism.release(truths, np.arange(len(truths)), epsilon=each, **where) for each in LEVELS]
    return [pack_reports(mechanism, *read_report_column(mechanism, each)) for each in released]


def wanted(rng: np.random.Generator, mechanism: Any, fakes: int) -> tuple[Any, Any]:
    """Return the codes and seeds that push the wanted answers most."""
    if mechanism.symbols > 1:
        return np.isin(np.arange(VALUES), WANTED).astype(np.uint8) * np.ones((fakes, 1), np.uint8), None
    if not mechanism.seeded:
        return rng.choice(WANTED, (fakes, 1)).astype(np.uint8), None
    seeds = rng.integers(0, 1 << 63, 50 * fakes).astype(np.uint64)
    codes = np.arange(mechanism.alphabet, dtype=np.uint8)
    both = np.stack(
        [
            mechanism.find_supported_labels(np.full((len(seeds), 1), code), seeds)[:, WANTED].all(axis=1)
            for code in codes
        ]
    )
    found = np.flatnonzero(both.any(axis=0))[:fakes]
    return np.argmax(both[:, found], axis=0).astype(np.uint8)[:, None], seeds[found]


def fabricate(rng: np.random.Generator, mechanism: Any, fakes: int, *, careful: bool) -> list[Any]:
    """Return the packed reports of attackers at both levels."""
    codes, seeds = wanted(rng, mechanism, fakes)
    older = codes
    if careful:
        lower, upper = (mechanism.level(each).retention for each in LEVELS)
        noise = rng.integers(0, mechanism.alphabet, codes.shape).astype(np.uint8)
        older = np.where(rng.random(codes.shape) < float(lower / upper), codes, noise)
    return [pack_reports(mechanism, each, seeds) for each in (older, codes)]


def attack(name: str, percent: int, *, careful: bool = False) -> tuple[float, rx.poisoning.PoisoningTest]:
    """Return the true share of a wanted answer among honest devices, and what is found."""
    rng, mechanism = np.random.default_rng(percent), MECHANISMS[name]
    fakes = DEVICES * percent // 100
    truths = rng.choice(VALUES, DEVICES - fakes, p=SHARES)
    reports = honest(mechanism, truths)
    if fakes:
        sent = fabricate(rng, mechanism, fakes, careful=careful)
        reports = [np.concatenate(each) for each in zip(sent, reports, strict=True)]
    if not mechanism.seeded and mechanism.symbols == 1:  # these travel as what they stand for
        reports = [each[:, 0].astype(np.int64) for each in reports]
    found = rx.poisoning.check_reports(mechanism, *reports, older_epsilon=LEVELS[0], newer_epsilon=LEVELS[1])
    return float(np.mean(truths == WANTED[0])), found


def attack_mean(devices: int, percent: int) -> rx.poisoning.PoisoningTest:
    """Return the result of the test if some of the devices always send the upper end of the range."""
    ages = rx.Numeric(0, 120)
    truths = np.random.default_rng(percent).uniform(20, 80, devices)
    where: Any = {"key": KEY, "name": "survey", "column": "age"}
    reports = [ages.release(truths, np.arange(devices), epsilon=each, **where) for each in LEVELS]
    for each in reports:
        each[: devices * percent // 100] = 120.0
    return rx.poisoning.check_reports(ages, *reports, older_epsilon=LEVELS[0], newer_epsilon=LEVELS[1])


def share_of(result: Any) -> float:
    """Return the share of a wanted answer."""
    return float(result.value[WANTED[0]])


def main() -> None:
    """Print what attackers gain."""
    table = Table(title=f"share of answer {WANTED[0]} in %, {DEVICES:,} devices, epsilon {' -> '.join(LEVELS)}")
    for column in ("reports", "attackers", "true", "no check", "noticed", "pushed", "at least", "with check", "careful",
                   "noticed", "bound"):  # fmt: skip
        table.add_column(column, justify="left" if column == "reports" else "right")
    for name in MECHANISMS:
        for percent in (0, 1, 5, 10):
            true, found = attack(name, percent)
            plain = share_of(found.uncleaned_shares)
            cleaned = plain if found.cleaned_shares is None else share_of(found.cleaned_shares)
            row = [name, f"{percent} %", f"{100 * true:.1f}", f"{100 * plain:.1f}"]
            row += [
                "yes" if found.is_alarm else "no",
                ", ".join(sorted({str(each.label) for each in found.suspicious_values})),
            ]
            row += [f"{found.fabricator_count.estimate:,.0f}" if found.is_alarm else "", f"{100 * cleaned:.1f}"]
            if percent:
                _, sly = attack(name, percent, careful=True)
                assert sly.undetected_influence is not None
                row += [f"{100 * share_of(sly.uncleaned_shares):.1f}", "yes" if sly.is_alarm else "no"]
                row.append(f"{100 * true + percent * sly.undetected_influence.individuals:.1f}")
            table.add_row(*row)
    Console().print(table)
    for percent in (2, 10):
        found = attack_mean(10_000, percent)
        noticed = "noticed" if found.is_alarm else "not noticed"
        print(f"{percent} % of 10,000 devices that report numbers always send 120: {noticed}.")
    print(attack_mean(10_000, 0).limitations[0])


if __name__ == "__main__":
    main()
