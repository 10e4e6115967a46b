"""What both experiments say of what they measured: checks and data of estimates and of attacks."""

from __future__ import annotations

import numpy as np

from relaxdp.audit.attacks import ATTACKS
from relaxdp.paper import judge
from relaxdp.paper.claims import Check, Data
from relaxdp.paper.repeated import SHORT, Measured, Population


def estimate_checks(name: str, measured: Measured, population: Population) -> list[Check]:
    """Return the checks that estimates and reports are those of randomized responses at every level."""
    shares = np.broadcast_to(population.shares, measured.estimates.shape[:-1])
    variances = population.variances()
    return [
        judge.means(f"{name}: means of the estimates", measured.estimates, shares, variances),
        judge.variances(f"{name}: variances of the estimates", measured.estimates, shares, variances),
        judge.rates(
            f"{name}: reports that are the truth",
            measured.hits,
            measured.runs * population.objects,
            population.hits(),
        ),
    ]


def estimate_data(found: dict[str, Measured], population: Population, shown: int) -> Data:
    """Return mean and standard deviation of the shown runs, beside theory, for every level and value."""
    variances = population.variances()
    rows = []
    for place, level in enumerate(population.levels):
        for value, share in enumerate(population.shares):
            row = [level, value + (population.values > 2), share, float(np.sqrt(variances[place, value]))]
            for each in found.values():
                runs = each.estimates[place, value, :shown]
                row += [float(runs.mean()), float(runs.std(ddof=1))]
            rows.append(row)
    columns = ["epsilon", "value", "true_share", "theoretical_deviation"]
    columns += [f"{name}, {what}" for name in found for what in ("mean", "deviation")]
    return Data(columns, rows)


def attack_outcome(found: dict[str, Measured], population: Population) -> tuple[str, str, list[Check]]:
    """Return what was measured of the attacks, by which test, and the checks."""
    least = population.least_error_rate
    checks, said = [], []
    for name, each in found.items():
        trials = each.runs * len(population.attacked)
        wrong = {attack: float(each.error_rates[attack].sum() * len(population.attacked)) for attack in ATTACKS}
        checks += [
            judge.at_least(f"{name}: no attack is below the minimum", list(wrong.values()), trials, least),
            judge.rates(f"{name}: the last output reaches the minimum", [round(wrong["last output"])], trials, [least]),
            judge.exact(
                f"{name}: maximum likelihood guesses the last output, for every object",
                each.same_guesses,
                f"{trials:,} objects compared",
            ),
        ]
        said.append(f"{name} " + ", ".join(f"{SHORT[attack]} {count / trials:.4f}" for attack, count in wrong.items()))
    return (
        f"Theoretical minimum {least:.4f}. Error rates: {'; '.join(said)}.",
        "One-sided: no error rate below the minimum (binomial). Two-sided: the last output reaches it (binomial). "
        "Ties are broken uniformly.",
        checks,
    )


def attack_data(found: dict[str, Measured], population: Population, shown: int) -> Data:
    """Return the error rates of every attack: those shown, and those of all runs."""
    columns = ["attack", "theoretical_minimum"]
    columns += [f"{name}, {what}" for name in found for what in (f"mean of {shown}", f"deviation of {shown}", "mean")]
    rows = []
    for attack in ATTACKS:
        row: list[object] = [attack, population.least_error_rate]
        for each in found.values():
            rates = each.error_rates[attack]
            row += [float(rates[:shown].mean()), float(rates[:shown].std(ddof=1)), float(rates.mean())]
        rows.append(row)
    return Data(columns, rows)
