"""The paper's first experiment: 600 ones and 400 zeros, relaxed along noisy sampling's guarantee for ten rounds."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from relaxdp.audit.attacks import compute_retentions
from relaxdp.estimation.schedules import NoisySampling
from relaxdp.hazmat import relax_once
from relaxdp.paper import figures, judge
from relaxdp.paper.baselines import noisy_sampling_estimate, noisy_sampling_variance
from relaxdp.paper.claims import Claim, ClaimOutcome, Data, Picture
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
from relaxdp.theory.randomized_response import NOISE

ALPHA, BETA, ROUNDS = Decimal(1), Decimal("0.5"), 10
POPULATION = Population("experiment 1", (400, 600), tuple(NoisySampling(ALPHA, BETA, ROUNDS)))

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Sampled:
    """Estimates from noisy samples, of shape (rounds, runs)."""

    estimates: Floats


def all_measured(lab: Lab) -> dict[str, AttackedRuns]:
    """Return what every sampler gave."""
    return {sampler.name: measure(lab, sampler, POPULATION) for sampler in lab.samplers}


def frequency(lab: Lab) -> ClaimOutcome:
    """Check the mean and the variance of the estimated share of ones, after every round."""
    found = all_measured(lab)
    last = {name: each.estimates[-1, 1] for name, each in found.items()}
    said = "; ".join(f"{name} {runs.mean():.4f} ± {2 * runs.std():.4f}" for name, runs in last.items())
    theory = np.sqrt(POPULATION.variances()[-1, 1])
    return ClaimOutcome(
        f"After ten rounds, mean ± two standard deviations of {lab.settings.runs:,} runs: {said}; theory 0.6000 ± "
        f"{2 * theory:.4f}.",
        "Means against the true share (normal), variances against theory (chi-square), and how many reports are the "
        "truth against its probability (binomial), after every round.",
        [check for name, each in found.items() for check in estimate_checks(name, each, POPULATION)],
        {"experiment-1-frequency": estimate_data(found, POPULATION, lab.settings.shown)},
        {
            "figure-2a": Picture(
                f"The share of ones over ten rounds: mean and two-sigma band of {lab.settings.shown} runs with either "
                "sampler. Dashed: theory.",
                partial(figures.estimates_of_one, found, POPULATION, lab.settings.shown),
            )
        },
    )


def variance(lab: Lab) -> ClaimOutcome:
    """Compare the variance of relaxation with that of noisy sampling at the same guarantee."""
    found, sampled = all_measured(lab), noisy_samples(lab)
    rounds = range(1, ROUNDS + 1)
    ours = POPULATION.variances()[:, 1]
    options: Any = {"epsilon_alpha": ALPHA, "epsilon_beta": BETA, "objects": POPULATION.objects}
    theirs = np.array([noisy_sampling_variance(samples=samples, **options) for samples in rounds])
    ratio = theirs[-1] / ours[-1]
    checks = [
        judge.variances("noisy sampling: variance after every round", sampled.estimates, np.full(10, 0.6), theirs)
    ]
    for name, each in found.items():
        relaxed = each.estimates[:, 1]
        checks += [
            judge.variances(f"{name}: variance after every round", relaxed, np.full(10, 0.6), ours),
            judge.larger_variance(
                f"{name}: noisy sampling has the larger variance after ten rounds",
                sampled.estimates[-1], relaxed[-1], 0.6, ratio,
            ),
        ]  # fmt: skip
    checks.append(judge.exact("theory: equal after one round, larger after every other", _is_larger(ours, theirs), ""))
    mean_square = {name: each.estimates[:, 1] for name, each in found.items()} | {"noisy sampling": sampled.estimates}
    measured = {name: ((runs - 0.6) ** 2).mean(axis=-1) for name, runs in mean_square.items()}
    said = ", ".join(f"{name} {1000 * each[-1]:.3f}" for name, each in measured.items())
    shown = {name: runs[:, : lab.settings.shown].var(axis=-1, ddof=1) for name, runs in mean_square.items()}
    columns = ["round", "epsilon", "theory_relaxation", "theory_noisy_sampling"]
    columns += [f"{name}, {runs} runs" for name in measured for runs in (lab.settings.runs, lab.settings.shown)]
    rows = [
        [k, POPULATION.levels[k - 1], ours[k - 1], theirs[k - 1]]
        + [each[name][k - 1] for name in measured for each in (measured, shown)]
        for k in rounds
    ]
    return ClaimOutcome(
        f"Variance x objects after ten rounds: {said}; theory {1000 * ours[-1]:.3f} for relaxation and "
        f"{1000 * theirs[-1]:.3f} for noisy sampling, {ratio:.2f} times as much. After one round both are "
        "the same response, with equal variances.",
        "Variances against theory after every round (chi-square), and the ratio after ten rounds (F).",
        checks,
        {"experiment-1-variance": Data(columns, rows)},
        {
            "figure-2b": Picture(
                "The variance of the estimated share of ones, by relaxation and by noisy sampling at the same "
                f"guarantee ({lab.settings.shown} runs). Lines: theory.",
                partial(figures.variances, shown, ours, theirs),
            )
        },
    )


def compute_error_rates(lab: Lab) -> ClaimOutcome:
    """Check that no attack has fewer errors than the theoretical minimum."""
    found = all_measured(lab)
    outcome = attack_outcome(found, POPULATION)
    return ClaimOutcome(
        *outcome,
        {"experiment-1-errors": attack_data(found, POPULATION, lab.settings.shown)},
        {
            "figure-2c": Picture(
                f"Error rates of the four attacks on 400 ones and 400 zeros after ten rounds: mean and standard "
                f"deviation of {lab.settings.shown} runs. Dashed: theoretical minimum, around which the two best "
                "attacks scatter.",
                partial(figures.attacks, found, POPULATION, lab.settings.shown),
            )
        },
    )


def noisy_samples(lab: Lab) -> Sampled:
    """Return the estimates from RAPPOR's noisy samples, drawn with the package's own exact responses."""

    def run() -> Sampled:
        lab.say("experiment 1, noisy sampling")
        entropy, runs = lab.entropy("noisy sampling"), lab.settings.runs
        keep, sample = compute_retentions([ALPHA, BETA], 2)
        truth = np.tile(POPULATION.truth, runs)
        permanent = relax_once(2, NOISE, keep, truths=truth, last_reports=None, entropy=entropy)
        ones, estimates = np.zeros(len(truth), dtype=np.int64), []
        for samples in range(1, ROUNDS + 1):
            ones += relax_once(2, NOISE, sample, truths=permanent, last_reports=None, entropy=entropy)
            estimates.append(
                noisy_sampling_estimate(
                    ones.reshape(runs, -1).T, samples=samples, epsilon_alpha=ALPHA, epsilon_beta=BETA
                )
            )
        return Sampled(np.stack(estimates))

    result: Sampled = lab.once("noisy sampling", run)
    return result


def _is_larger(ours: Floats, theirs: Floats) -> bool:
    # Levels are rounded down in their sixth digit, so the two variances of one round agree to five.
    return bool(np.isclose(ours[0], theirs[0], rtol=1e-5) and np.all(theirs[1:] > ours[1:]))


CLAIMS = [
    Claim(
        "experiment-1-frequency",
        "Experiment 1: the estimated share of ones",
        "Section VI-A and figure 2a",
        "1,000 objects, 600 of them ones, relaxed along ε_ns(K) with ε_α = 1 and ε_β = 0.5 for ten rounds: mean and "
        "two-sigma interval of the estimates match the theoretical values.",
        frequency,
    ),
    Claim(
        "experiment-1-variance",
        "Experiment 1: variance against noisy sampling",
        "Section VI-A and figure 2b",
        "The variance of relaxation matches theory and is smaller than that of noisy sampling with the same guarantee.",
        variance,
    ),
    Claim(
        "experiment-1-errors",
        "Experiment 1: four attacks",
        "Section VI-A and figure 2c",
        "After ten rounds none of four attacks on all outputs has an error rate below the theoretical minimum, and the "
        "last output and maximum likelihood are the best of them.",
        compute_error_rates,
    ),
]
