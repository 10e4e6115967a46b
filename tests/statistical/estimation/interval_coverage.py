"""How often the intervals hold: exactly where that can be summed, by seeded simulation elsewhere.

python -m tests.statistical.estimation.interval_coverage writes docs/coverage.md from the full grid (`make coverage`);
the test suite runs a small one.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binom, norm
from tests.statistical.estimation import wave_coverage
from tests.statistical.estimation.coverage_point import LEAST, NOMINAL, Point, simulated

from relaxdp import Categorical, Numeric, Unary
from relaxdp.estimation.compare import compare
from relaxdp.estimation.crosstab import Crosstab
from relaxdp.estimation.frequency import Frequency, WeightedSum, compute_support_variance
from relaxdp.estimation.mean import Mean
from relaxdp.estimation.result import About, Result
from relaxdp.mechanisms.base import MeanWeights
from relaxdp.mechanisms.registry import create_mechanism
from relaxdp.theory.epsilon import as_epsilon
from relaxdp.theory.randomized_response import SupportProbabilities, compute_retention

Floats = NDArray[np.float64]
WIDEST = 1.1
ABOUTS: tuple[About, About] = ("sample", "population")
PAGE = Path(__file__).parents[3] / "docs" / "coverage.md"


@dataclass(frozen=True)
class Grid:
    objects: Sequence[int]
    shares: Sequence[float]
    epsilons: Sequence[str]
    values: Sequence[int]
    runs: int


FULL = Grid(
    objects=(50, 100, 1000, 10_000, 1_000_000),
    shares=(0, 0.002, 0.01, 0.05, 0.1, 0.3, 0.5, 0.8, 0.95, 1),
    epsilons=("0.1", "0.5", "1", "2", "4"),
    values=(2, 3, 10, 100),
    runs=10_000,
)
SMALL = Grid(objects=(50, 2000), shares=(0, 0.02, 0.5, 1), epsilons=("0.1", "1", "4"), values=(2, 10), runs=4000)


def support_of(values: int, epsilon: str) -> SupportProbabilities:
    encoding = Categorical(range(values))
    return encoding.compute_noise_and_gain(compute_retention(encoding.threshold(as_epsilon(epsilon))))


def window(objects: int, chance: float) -> tuple[NDArray[np.int64], Floats]:
    """The counts of a binomial that matter, with their probabilities."""
    low, high = (int(binom.isf(tail, objects, chance)) for tail in (1 - 1e-12, 1e-12))
    counts = np.arange(max(low - 1, 0), min(high + 1, objects) + 1)
    return counts, binom.pmf(counts, objects, chance)


def count_law(
    truths: int, objects: int, support: SupportProbabilities, about: About
) -> tuple[NDArray[np.int64], Floats]:
    """The law of how many reports support a value."""
    hit, noise = float(support.hit), float(support.noise)
    if about == "population":
        return window(objects, noise + (hit - noise) * truths / objects)
    (own, own_law), (other, other_law) = window(truths, hit), window(objects - truths, noise)
    law = np.convolve(own_law, other_law)
    return own[0] + other[0] + np.arange(len(law)), law


def wald_width(estimate: Frequency, share: float, about: About) -> float | None:
    """Wald's width at the true share, where Wald is valid.

    That is where the count has a variance of ten or more and the interval around the truth lies within 0 .. 1.
    """
    sup = estimate.support
    variance = estimate.n * float(compute_support_variance(share, float(sup.hit), float(sup.noise), about))
    reach = float(norm.isf((1 - NOMINAL) / 2) * np.sqrt(variance) / (estimate.n * float(sup.gain)))
    return 2 * reach if variance >= 10 and reach <= min(share, 1 - share) else None


def single_values(grid: Grid) -> Iterator[Point]:
    """One value: summed exactly over all counts."""
    for objects, share, epsilon, values, about in itertools.product(
        grid.objects, grid.shares, grid.epsilons, grid.values, ABOUTS
    ):
        where = f"n = {objects:,}, share {share:g}, eps {epsilon}, m = {values}"
        yield exactly(f"one value, about the {about}", where, objects, share, support_of(values, epsilon), about)


def exactly(kind: str, where: str, objects: int, share: float, support: SupportProbabilities, about: About) -> Point:
    truths = round(share * objects)
    counts, law = count_law(truths, objects, support, about)
    estimate = Frequency(range(len(counts)), counts, objects, support)
    low, high = estimate.interval(NOMINAL, about=about)
    held = (low <= truths / objects + 1e-9) & (truths / objects - 1e-9 <= high)
    wald = wald_width(estimate, truths / objects, about)
    width = None if wald is None else float((law * (high - low)).sum() / wald)
    return Point(kind, where, float(law[held].sum()), 0.0, width)


def encodings(grid: Grid) -> Iterator[Point]:
    """One value, reported as bits or hashed: a count of supports has the same kind of law, so it is summed as well."""
    for objects, share, epsilon, about in itertools.product(grid.objects, grid.shares, grid.epsilons, ABOUTS):
        for name in ("unary-symmetric", "unary-optimised", "local-hash"):
            encoding = create_mechanism(name, values=range(3), epsilon=epsilon)
            support = encoding.compute_noise_and_gain(compute_retention(encoding.threshold(as_epsilon(epsilon))))
            where = f"n = {objects:,}, share {share:g}, eps {epsilon}, {name}"
            yield exactly(f"one value as bits or hashed, about the {about}", where, objects, share, support, about)


def all_bits(grid: Grid) -> Iterator[Point]:
    """All values at once, reported as bits, which are independent: the chances that all hold multiply, exactly."""
    for objects, epsilon, values in itertools.product(grid.objects, grid.epsilons, grid.values):
        encoding = Unary(range(values))
        support = encoding.compute_noise_and_gain(compute_retention(encoding.threshold(as_epsilon(epsilon))))
        for name, shares in distributions(values):
            tail = (1 - NOMINAL) / 2 / values
            coverage = 1.0
            for share, repeats in zip(*np.unique(shares, return_counts=True), strict=True):
                truths = round(share * objects)
                counts, law = count_law(truths, objects, support, "sample")
                low, high = Frequency(range(len(counts)), counts, objects, support).compute_unclipped_interval(
                    tail, "sample"
                )
                held = (low <= truths / objects + 1e-9) & (truths / objects - 1e-9 <= high)
                coverage *= float(law[held].sum()) ** int(repeats)
            where = f"n = {objects:,}, {name}, eps {epsilon}, m = {values}"
            yield Point("all values at once as bits, about the sample", where, coverage, 0.0, None)


def distributions(values: int) -> Iterator[tuple[str, Floats]]:
    """Shares of all values: uniform, falling by half, all in one."""
    yield "uniform", np.full(values, 1 / values)
    falling = 0.5 ** np.arange(values)
    yield "halving", falling / falling.sum()
    yield "one value", np.eye(values)[0]


def draw_counts(
    rng: np.random.Generator, truths: NDArray[np.int64], support: SupportProbabilities, about: About, runs: int
) -> NDArray[np.int64]:
    """Counts of categorical reports, one row per run."""
    values, objects = len(truths), int(truths.sum())
    law = float(support.gain) * np.eye(values) + float(support.noise)
    if about == "population":
        return rng.multinomial(objects, truths / objects @ law, size=runs)
    counts = np.zeros((runs, values), dtype=np.int64)
    for truth in np.flatnonzero(truths):
        counts += rng.multinomial(truths[truth], law[truth], size=runs)
    return counts


def all_values(grid: Grid) -> Iterator[Point]:
    """All values at once: simulated."""
    rng = np.random.default_rng(20260601)
    for objects, epsilon, values, about in itertools.product(grid.objects, grid.epsilons, grid.values, ABOUTS):
        support, runs = support_of(values, epsilon), grid.runs if values < 50 else grid.runs // 5
        for name, shares in distributions(values):
            truths = np.diff(np.rint(np.concatenate([[0], np.cumsum(shares)]) * objects)).astype(np.int64)
            counts = draw_counts(rng, truths, support, about, runs)
            # Ends depend on the count alone: run by run and value by value, in one flat estimate.
            flat = Frequency(range(counts.size), counts.reshape(-1), objects, support)
            tail = (1 - NOMINAL) / 2 / (values if values > 2 else 1)
            low, high = (
                np.clip(end, 0, 1).reshape(counts.shape) for end in flat.compute_unclipped_interval(tail, about)
            )
            held = ((low <= truths / objects + 1e-9) & (truths / objects - 1e-9 <= high)).all(axis=1).mean()
            yield simulated(
                f"all values at once, about the {about}",
                f"n = {objects:,}, {name}, eps {epsilon}, m = {values}",
                float(held),
                runs,
            )


def binary_parts(
    rng: np.random.Generator, objects: int, share: float, support: SupportProbabilities, about: About, runs: int
) -> tuple[Frequency, float]:
    """Many runs of one value's count as the rows of one estimate, and the true share."""
    truths = round(share * objects)
    hit, noise = float(support.hit), float(support.noise)
    if about == "population":
        counts = rng.binomial(objects, noise + (hit - noise) * truths / objects, runs)
    else:
        counts = rng.binomial(truths, hit, runs) + rng.binomial(objects - truths, noise, runs)
    return Frequency(range(runs), counts, objects, support), truths / objects


def combinations(grid: Grid) -> Iterator[Point]:
    """Differences between groups, and objects at two levels."""
    rng = np.random.default_rng(20260602)
    for objects, epsilon, values, about in itertools.product(grid.objects, grid.epsilons, grid.values, ABOUTS):
        support, low_support = support_of(values, epsilon), support_of(values, "0.3")
        for share, other in itertools.product(grid.shares[::2], repeat=2):
            first, one = binary_parts(rng, objects, share, support, about, grid.runs)
            second, two = binary_parts(rng, objects // 2, other, support, about, grid.runs)
            where = f"n = {objects:,} and {objects // 2:,}, shares {one:g} and {two:g}, eps {epsilon}, m = {values}"
            yield judged(f"difference, about the {about}", where, compare(first, second), two - one, about, grid.runs)
            if share == other:
                below, _ = binary_parts(rng, objects // 2, share, low_support, about, grid.runs)
                sizes = np.array([objects, objects // 2]) / (objects + objects // 2)
                pooled = WeightedSum([first, below], sizes.tolist())
                truth = float(sizes @ [one, round(share * (objects // 2)) / (objects // 2)])
                where = f"n = {objects:,} at eps {epsilon} and {objects // 2:,} at 0.3, share {share:g}, m = {values}"
                yield judged(f"two levels, about the {about}", where, pooled, truth, about, grid.runs)


def judged(kind: str, where: str, result: Result, truth: float, about: About, runs: int) -> Point:
    low, high = result.interval(NOMINAL, about=about)
    held = float(((low <= truth + 1e-9) & (truth - 1e-9 <= high)).mean())
    return simulated(kind, where, held, runs)


def mean_differences(grid: Grid) -> Iterator[Point]:
    """Differences of means of the same individuals: a number is a chance of the upper end, rounded to at every date."""
    rng = np.random.default_rng(20260606)
    for objects, epsilon in itertools.product(grid.objects, grid.epsilons):
        encoding = Numeric(-1, 3)
        support = encoding.compute_noise_and_gain(compute_retention(encoding.threshold(as_epsilon(epsilon))))
        shapes: dict[str, list[tuple[float, float]]] = {
            "alike": [(0.5, 0.52)],
            "at the ends": [(0.0, 0.0)] * 12 + [(1.0, 1.0)] * 7 + [(0.0, 1.0)],
            "spread": [(place, 0.9 * place + 0.05) for place in np.linspace(0, 1, 10)],
        }
        for name, numbers in shapes.items():
            sizes = np.diff(np.rint(np.linspace(0, objects, len(numbers) + 1))).astype(np.int64)
            counts, places = np.zeros((2, grid.runs), np.int64), np.zeros(2)
            for pair, size in zip(numbers, sizes, strict=True):
                chances = [float(support.noise) + float(support.gain) * place for place in pair]
                counts += [rng.binomial(size, chance, grid.runs) for chance in chances]
                places += size * np.array(pair)
            first, second = (Frequency(range(grid.runs), each, objects, support) for each in counts)
            # The ends of a mean are those of the upper end's share about the population, whatever it is about.
            where = f"n = {objects:,}, numbers {name}, eps {epsilon}"
            truth, change = float(places[1] - places[0]) / objects, compare(first, second)
            yield judged("difference of means, about the sample", where, change, truth, "population", grid.runs)


def means(grid: Grid) -> Iterator[Point]:
    """The mean of numbers at mid-range, at both ends, spread out and all at one end; exact where all are alike."""
    rng = np.random.default_rng(20260603)
    encoding = Numeric(-1, 3)
    for objects, epsilon in itertools.product(grid.objects, grid.epsilons):
        support = encoding.compute_noise_and_gain(compute_retention(encoding.threshold(as_epsilon(epsilon))))
        shapes: dict[str, Any] = {
            "mid-range": 0.5,
            "at both ends": np.arange(objects) % 2,
            "spread": np.linspace(0, 1, objects),
            "low": 0,
        }
        for name, places in shapes.items():
            chances = float(support.noise) + float(support.gain) * np.broadcast_to(places, objects)
            truth = -1 + 4 * float(np.broadcast_to(places, objects).mean())
            groups, sizes = np.unique(np.round(chances, 3), return_counts=True)
            exact_groups = [float(chances[np.round(chances, 3) == group].mean()) for group in groups]
            upper = sum(rng.binomial(size, chance, grid.runs) for size, chance in zip(sizes, exact_groups, strict=True))
            held = 0
            for count, times in zip(*np.unique(upper, return_counts=True), strict=True):
                shares = Frequency((-1.0, 3.0), np.array([objects - count, count]), objects, support)
                low, high = Mean(shares, MeanWeights((-1.0, 3.0), -1.0, 3.0)).interval(NOMINAL)
                held += times * bool(low <= truth + 1e-9 and truth - 1e-9 <= high)
            where = f"n = {objects:,}, numbers {name}, eps {epsilon}"
            yield simulated("mean, about the sample", where, held / grid.runs, grid.runs)


def tables(grid: Grid) -> Iterator[Point]:
    """Two-way tables: the mean over the cells of a kind, because a thousand cells have a worst one by chance."""
    rng = np.random.default_rng(20260604)
    runs = grid.runs // 5
    sizes = [size for size in grid.values if size <= 10]
    for objects, epsilon, rows, about in itertools.product(grid.objects, grid.epsilons, sizes, ABOUTS):
        columns = 2 if rows > 2 else 3
        supports = support_of(rows, epsilon), support_of(columns, epsilon)
        law = np.kron(
            *(float(s.gain) * np.eye(k) + float(s.noise) for s, k in zip(supports, (rows, columns), strict=True))
        )
        joint = np.zeros((rows, columns))
        joint[0, 0], joint[-1, -1], joint[0, -1] = 0.6, 0.3, 0.1
        for name, shares in [("uniform", np.full((rows, columns), 1 / rows / columns)), ("corners", joint)]:
            truths = rng.multinomial(objects, shares.reshape(-1))
            truth = truths / objects if about == "sample" else shares.reshape(-1)
            if about == "sample":
                counts = sum(rng.multinomial(k, law[cell], runs) for cell, k in enumerate(truths) if k)
            else:
                counts = rng.multinomial(objects, shares.reshape(-1) @ law, runs)
            drawn = [Crosstab(range(rows), range(columns), each, *supports)
                     for each in np.reshape(counts, (runs, rows, columns))]  # fmt: skip
            # Ends depend on a cell's own numbers alone: those of all runs at once.
            laws = [table.compute_sampling_distribution(about) for table in drawn]
            every = replace(
                laws[0],
                rows=np.concatenate([each.rows for each in laws]),
                columns=np.concatenate([each.columns for each in laws]),
            )
            ends = every.compute_unclipped_interval(np.concatenate([table.value for table in drawn]), (1 - NOMINAL) / 2)
            low, high = (np.clip(end, 0, 1).reshape(runs, -1) for end in ends)
            held = ((low <= truth + 1e-9) & (truth - 1e-9 <= high)).sum(axis=0)
            for kind, cells in (("empty", shares.reshape(-1) == 0), ("filled", shares.reshape(-1) > 0)):
                if cells.any():
                    where = f"n = {objects:,}, {rows} x {columns}, {name}, {kind} cells, eps {epsilon}"
                    yield simulated(f"two-way table, about the {about}", where, float(held[cells].mean() / runs), runs)


def all_points(grid: Grid) -> Iterator[Point]:
    for part in (single_values, encodings, all_values, all_bits, combinations, mean_differences, means, tables):
        yield from part(grid)


def page(points: Sequence[Point], grid: Grid) -> str:
    kinds = list(dict.fromkeys(point.kind for point in points))
    lines = [
        "# Do the intervals hold?",
        "",
        "Measured coverage of every 95 % interval that is offered, over a grid: "
        f"n in {_list(grid.objects)}; shares in {_list(grid.shares)}; eps in {_list(grid.epsilons)}; "
        f"m in {_list(grid.values)}. Intervals of one value, and of all values as bits, are summed *exactly* over all "
        f"possible counts, the others simulated ({grid.runs:,} seeded runs a point; a fifth of that for 100 values at "
        f"once and for two-way tables). Waves are of n in {_list(wave_coverage.OBJECTS)}, "
        "one level or half of the objects at each of two, numbers of several shapes; runs are a tenth of the above, "
        "and a fiftieth for shares and variances. Quantiles are of n in "
        f"{_list(sorted({each[0] for each in wave_coverage.QUANTILE_GRID}))}, numbers of nine shapes and the windows "
        f"for both goals, {wave_coverage.QUANTILE_RUNS} runs each. Made by `make coverage`; a small grid is part of "
        "`make test-long`.",
        "",
        "The requirement is 94.5 % at every point (simulated points get four standard errors of leave), and for one "
        "value a mean width of at most 1.1 times Wald's wherever Wald is valid: a variance of the count of ten or "
        "more, and an interval around the truth that lies within 0 .. 1.",
        "",
        "| interval | points | least coverage | where | mean coverage | widest against Wald |",
        "|---|---|---|---|---|---|",
    ]
    for kind in kinds:
        mine = [point for point in points if point.kind == kind]
        worst = min(mine, key=lambda point: point.coverage)
        widths = [point.width for point in mine if point.width is not None]
        exact = "" if worst.error else " (exact)"
        lines.append(
            f"| {kind} | {len(mine):,} | {worst.coverage:.2%}{exact} | {worst.where} | "
            f"{np.mean([point.coverage for point in mine]):.2%} | {f'{max(widths):.3f}' if widths else ''} |"
        )
    lines += [
        "",
        "Single values use tails of the count's own law, so they are conservative where counts are few. Intervals for "
        "all values at once divide the error by the number of values (two categorical values are one question: nothing "
        "is divided). Differences and pools of levels recover the parts' distances to their ends. A mean is "
        "always judged with its kept rounding. Two-way tables are averaged over cells of a kind. Quantiles and shares "
        "of a range hold whatever the distribution is, so they cover more than 95 % for most.",
    ]
    return "\n".join(lines) + "\n"


def _list(items: Sequence[Any]) -> str:
    return ", ".join(f"{item:,}" if isinstance(item, int) else str(item) for item in items)


def main() -> None:
    points = []
    for point in itertools.chain(all_points(FULL), wave_coverage.waves(wave_coverage.FULL, FULL.runs // 10)):
        points.append(point)
        if not point.holds:
            print(f"{point.coverage:.4f} +- {point.error:.4f}  {point.kind}: {point.where}", flush=True)
    PAGE.write_text(page(points, FULL), "utf-8")
    failed = sum(not point.holds for point in points)
    widest = max(point.width for point in points if point.width is not None)
    print(f"{len(points)} points, {failed} below {LEAST:.1%}, widest {widest:.3f} times Wald")
    sys.exit(bool(failed) or widest > WIDEST)


if __name__ == "__main__":
    main()
