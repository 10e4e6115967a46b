"""A population, relaxed level by level and attacked, again and again: what both of the paper's experiments measure.

What they say of it, checks and data of estimates and of attacks, is made here, too.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal

import numpy as np
from numpy.typing import NDArray

from relaxdp.audit.attacks import (
    ATTACKS,
    RelaxedReportsDistribution,
    compute_error_probabilities,
    compute_minimum_error_rate,
)
from relaxdp.estimation.mechanism_choice import compute_categorical_support, compute_debiased_variance
from relaxdp.paper import judge
from relaxdp.paper.claims import ClaimCheck, Data
from relaxdp.paper.lab import Lab, Sampler

Floats = NDArray[np.float64]

# Runs at a time, so that memory does not grow with their number.
_BATCH = 250
SHORT = {
    "last output": "LO",
    "maximum likelihood": "MLE",
    "highest frequency": "HF",
    "weighted highest frequency": "WHF",
}


@dataclass(frozen=True)
class Population:
    """How many objects have each value, and the levels that they are relaxed through."""

    name: str
    sizes: tuple[int, ...]
    levels: tuple[Decimal, ...]

    @property
    def values(self) -> int:
        """How many values there are."""
        return len(self.sizes)

    @property
    def objects(self) -> int:
        """How many objects there are."""
        return sum(self.sizes)

    @property
    def truth(self) -> NDArray[np.uint8]:
        """The truths of one run, equal ones together."""
        return np.repeat(np.arange(self.values, dtype=np.uint8), self.sizes)

    @property
    def shares(self) -> Floats:
        """The true shares."""
        return np.array(self.sizes) / self.objects

    @property
    def attacked(self) -> NDArray[np.intp]:
        """The objects whose truths are guessed: equally many of each value, as the theorem on error rates demands."""
        starts = np.cumsum([0, *self.sizes[:-1]])
        return np.concatenate([start + np.arange(min(self.sizes)) for start in starts])

    def variances(self) -> Floats:
        """Return the theoretical variance of every estimate, of shape (levels, values): the paper's last appendix."""
        supports = [compute_categorical_support(level, self.values) for level in self.levels]
        return np.array(
            [[compute_debiased_variance(each, share) / self.objects for share in self.shares] for each in supports]
        )

    def hits(self) -> Floats:
        """Return with which probability a report is the truth, at every level."""
        return np.array([float(compute_categorical_support(level, self.values).hit) for level in self.levels])

    @property
    def least_error_rate(self) -> float:
        """The theoretical minimum of error rates at the last level."""
        return compute_minimum_error_rate(self.values, self.levels[-1])


@dataclass(frozen=True)
class AttackedRuns:
    """What one sampler gave, run by run."""

    estimates: Floats
    """Estimated shares, of shape (levels, values, runs)."""
    hits: NDArray[np.int64]
    """How many reports were the truth, at every level, in all runs together."""
    error_rates: dict[str, Floats]
    """The error rate of each attack in each run."""
    same_guesses: bool
    """Whether the last output and maximum likelihood guessed the same for every object."""

    @property
    def runs(self) -> int:
        """How many runs there were."""
        return int(self.estimates.shape[-1])


def measure(lab: Lab, sampler: Sampler, population: Population) -> AttackedRuns:
    """Return what one sampler gives for all runs; measured once, however many claims ask."""

    def run() -> AttackedRuns:
        parts = []
        for start in range(0, lab.settings.runs, _BATCH):
            runs = min(_BATCH, lab.settings.runs - start)
            lab.say(f"{population.name}, {sampler.name}: {start} of {lab.settings.runs} runs")
            parts.append(_batch(sampler, population, runs, f"{population.name} from run {start}"))
        return AttackedRuns(
            np.concatenate([part.estimates for part in parts], axis=-1),
            np.sum([part.hits for part in parts], axis=0),
            {name: np.concatenate([part.error_rates[name] for part in parts]) for name in ATTACKS},
            all(part.same_guesses for part in parts),
        )

    result: AttackedRuns = lab.once(f"{population.name} {sampler.name}", run)
    return result


def _batch(sampler: Sampler, population: Population, runs: int, purpose: str) -> AttackedRuns:
    values, levels, truth = population.values, population.levels, np.tile(population.truth, runs)
    reports = sampler.transcripts(values, levels, truth, purpose=purpose)
    by_run = reports.reshape(len(levels), runs, population.objects)
    shares = np.stack([(by_run == value).mean(axis=-1) for value in range(values)], axis=1)
    debiased = [
        compute_categorical_support(level, values).debias(part) for level, part in zip(levels, shares, strict=True)
    ]
    attacked = by_run[:, :, population.attacked].reshape(len(levels), -1).T
    same, rates = _attack(attacked, np.tile(population.truth[population.attacked], runs), population, runs)
    hits = (reports == truth).sum(axis=1)
    return AttackedRuns(np.stack(debiased), hits, rates, same)


def _attack(
    transcripts: NDArray[np.unsignedinteger], truth: NDArray[np.uint8], population: Population, runs: int
) -> tuple[bool, dict[str, Floats]]:
    """Return whether the last output is always the likeliest truth, and every attack's error rate in each run."""
    law = RelaxedReportsDistribution.from_epsilons(population.levels, n_values=population.values)
    candidates = {name: attack(transcripts, law, population.levels) for name, attack in ATTACKS.items()}
    rates = {
        name: compute_error_probabilities(found, truth).reshape(runs, -1).mean(axis=1)
        for name, found in candidates.items()
    }
    return np.array_equal(candidates["last output"], candidates["maximum likelihood"]), rates


def estimate_checks(name: str, measured: AttackedRuns, population: Population) -> list[ClaimCheck]:
    """Return the checks that estimates and reports are those of randomized responses at every level."""
    shares = np.broadcast_to(population.shares, measured.estimates.shape[:-1])
    variances = population.variances()
    return [
        judge.means(f"{name}: means of the estimates", measured.estimates, shares, variances),
        judge.variances(f"{name}: variances of the estimates", measured.estimates, shares, variances),
        judge.rates(
            f"{name}: reports that are the truth", measured.hits, measured.runs * population.objects, population.hits()
        ),
    ]


def estimate_data(found: dict[str, AttackedRuns], population: Population, shown: int) -> Data:
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


def attack_outcome(found: dict[str, AttackedRuns], population: Population) -> tuple[str, str, list[ClaimCheck]]:
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


def attack_data(found: dict[str, AttackedRuns], population: Population, shown: int) -> Data:
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
