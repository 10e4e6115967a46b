"""The claim that motivates the paper: spending only what was added to a budget wastes most of it."""

from __future__ import annotations

from decimal import Decimal
from functools import partial

import numpy as np
from numpy.typing import NDArray

from relaxdp.estimation.mechanism_choice import compute_categorical_support
from relaxdp.paper import figures, judge
from relaxdp.paper.baselines import relaxation_variance, split_budget, split_budget_estimate, split_budget_variance
from relaxdp.paper.claims import Claim, ClaimOutcome, Data, Picture
from relaxdp.paper.lab import Lab, Sampler

LEVELS = tuple(map(Decimal, ("0.1", "0.5", "1", "2")))
VALUES = (2, 5, 52)
OBJECTS = 400
SHARE = 0.5
"""The share of the value that is estimated; all other objects have the last value."""

Floats = NDArray[np.float64]


def simulate(lab: Lab, sampler: Sampler, values: int) -> tuple[Floats, Floats]:
    """Return estimates of value 0 after every release, relaxed and from a split budget, of shape (levels, runs)."""

    def counts(levels: tuple[Decimal, ...], purpose: str) -> Floats:
        reports = sampler.transcripts(values, levels, truth, purpose=f"{purpose}, m = {values}")
        by_run = reports.reshape(len(levels), runs, OBJECTS)
        return np.stack([(by_run == value).sum(axis=-1) for value in range(values)], axis=-1)

    lab.say(f"split budget, {sampler.name}, m = {values}")
    runs = lab.settings.runs
    truth = np.tile(np.repeat(np.array([0, values - 1], np.uint8), OBJECTS // 2), runs)
    relaxed = [
        compute_categorical_support(level, values).debias(each[:, 0] / OBJECTS)
        for level, each in zip(LEVELS, counts(LEVELS, "relaxed"), strict=True)
    ]
    parts = np.concatenate([counts((part,), f"part {place}") for place, part in enumerate(split_budget(LEVELS))])
    split = [
        [split_budget_estimate(parts[: last + 1, run], levels=LEVELS[: last + 1])[0] for run in range(runs)]
        for last in range(len(LEVELS))
    ]
    return np.array(relaxed), np.array(split)


def split(lab: Lab) -> ClaimOutcome:
    """Compare relaxation with fresh responses at the differences of levels, at the same guarantee."""
    checks, rows, said = [], [], []
    for values in VALUES:
        shown = [LEVELS[: place + 1] for place in range(len(LEVELS))]
        theory = {
            name: np.array([compute(each, values=values, objects=OBJECTS, share=SHARE) for each in shown])
            for name, compute in (("relaxation", relaxation_variance), ("split budget", split_budget_variance))
        }
        ratio = theory["split budget"][-1] / theory["relaxation"][-1]
        found: dict[str, tuple[Floats, Floats]] = {}
        for sampler in lab.samplers:
            relaxed, parts = found[sampler.name] = simulate(lab, sampler, values)
            where, expected = f"{sampler.name}, m = {values}", np.full(len(LEVELS), SHARE)
            checks += [
                judge.variances(f"{where}: relaxation", relaxed, expected, theory["relaxation"]),
                judge.variances(f"{where}: split budget", parts, expected, theory["split budget"]),
                judge.larger_variance(f"{where}: the split budget is worse", parts[-1], relaxed[-1], SHARE, ratio),
            ]
        said.append(f"{ratio:.2f} times (m = {values})")
        for place, level in enumerate(LEVELS):
            measured = [_times_objects(runs[place]) for pair in found.values() for runs in pair]
            rows.append([values, level, *(OBJECTS * each[place] for each in theory.values()), *measured])
    columns = ["m", "epsilon", "theory_relaxation", "theory_split_budget"]
    columns += [f"{sampler.name}, {what}" for sampler in lab.samplers for what in ("relaxation", "split budget")]
    return ClaimOutcome(
        f"After releases at 0.1, 0.5, 1 and 2 the split budget has {', '.join(said)} the variance of relaxation, for a "
        "value that half of the objects have.",
        "Variances after every release against theory (chi-square), and the ratio after the last (F).",
        checks,
        {"split-budget": Data(columns, rows)},
        {
            "motivation": Picture(
                "The variance of an estimated share after releases at 0.1, 0.5, 1 and 2, relaxed or with the budget "
                f"split among fresh responses. Lines: theory; marks: {lab.settings.runs:,} runs, discs on the path, "
                "open squares with Algorithm 1.",
                partial(figures.split_budgets, columns, rows),
            )
        },
    )


def _times_objects(runs: Floats) -> float:
    return float(OBJECTS * ((runs - SHARE) ** 2).mean())


CLAIMS = [
    Claim(
        "split-budget",
        "The motivating claim: relaxation against a split budget",
        "Section I",
        "Running (ε_2 - ε_1)-LDP responses when the budget grows to ε_2 may give a larger variance than an ε_2-LDP "
        "response.",
        split,
    ),
]
