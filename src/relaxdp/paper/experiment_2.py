"""The paper's second experiment: 1,500 objects with five values, relaxed from 0.1 to 1.0."""

from __future__ import annotations

from functools import partial

import numpy as np

from relaxdp.estimation.schedules import Linear
from relaxdp.paper import figures
from relaxdp.paper.claims import Claim, ClaimOutcome, Picture
from relaxdp.paper.lab import Lab
from relaxdp.paper.repeated import (
    AttackedRuns,
    Population,
    attack_data,
    attack_outcome,
    estimate_checks,
    estimate_data,
    measure,
)

POPULATION = Population("experiment 2", (100, 200, 300, 400, 500), tuple(Linear("0.1", 1, steps=10)))


def all_measured(lab: Lab) -> dict[str, AttackedRuns]:
    """Return what every sampler gave."""
    return {sampler.name: measure(lab, sampler, POPULATION) for sampler in lab.samplers}


def frequency(lab: Lab) -> ClaimOutcome:
    """Check the means and the variances of the five estimated shares, at every level."""
    found = all_measured(lab)
    said = []
    for name, each in found.items():
        runs = each.estimates[-1]
        said.append(f"{name} " + ", ".join(f"{value:.4f}" for value in runs.mean(axis=-1)))
    deviations = ", ".join(f"{value:.4f}" for value in np.sqrt(POPULATION.variances()[-1]))
    return ClaimOutcome(
        f"At ε = 1, mean shares of {lab.settings.runs:,} runs: {'; '.join(said)}; truth "
        f"{', '.join(f'{share:.4f}' for share in POPULATION.shares)}, with theoretical standard deviations of one run "
        f"{deviations}.",
        "Means against the true shares (normal), variances against the paper's last appendix (chi-square), and how "
        "many reports are the truth against its probability (binomial), at every level.",
        [check for name, each in found.items() for check in estimate_checks(name, each, POPULATION)],
        {"experiment-2-frequency": estimate_data(found, POPULATION, lab.settings.shown)},
        {
            "figure-3a-e": Picture(
                "The shares of five values, relaxed from 0.1 to 1.0: mean and two-sigma band of "
                f"{lab.settings.shown} runs with either sampler. Dashed: theory.",
                partial(figures.estimates_of_all, found, POPULATION, lab.settings.shown),
            )
        },
    )


def error_rates(lab: Lab) -> ClaimOutcome:
    """Check that no attack has fewer errors than the theoretical minimum."""
    found = all_measured(lab)
    return ClaimOutcome(
        *attack_outcome(found, POPULATION),
        {"experiment-2-errors": attack_data(found, POPULATION, lab.settings.shown)},
        {
            "figure-3f": Picture(
                "Error rates of the four attacks on 100 objects of each of five values, at ε = 1: mean and standard "
                f"deviation of {lab.settings.shown} runs. Dashed: theoretical minimum, around which the two best "
                "attacks scatter.",
                partial(figures.attacks, found, POPULATION, lab.settings.shown),
            )
        },
    )


CLAIMS = [
    Claim(
        "experiment-2-frequency",
        "Experiment 2: the estimated shares of five values",
        "Section VI-B and figure 3a-e",
        "1,500 objects with 100 to 500 of five values, relaxed from 0.1 to 1.0 in steps of 0.1: mean and two-sigma "
        "intervals of the estimates match the theoretical values.",
        frequency,
    ),
    Claim(
        "experiment-2-errors",
        "Experiment 2: four attacks",
        "Section VI-B and figure 3f",
        "None of the error rates, over equally many objects of each value, is below the theoretical minimum.",
        error_rates,
    ),
]
