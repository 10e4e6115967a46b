"""How far consistent shares are from the truth, by the methods that are known: one run over a grid, by simulation.

python -m tests.statistical.estimation.consistent_shares writes docs/consistent.md (`make consistent`); the test suite
looks at the points that decide.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from relaxdp.estimation.consistency import project_onto_simplex
from relaxdp.estimation.frequency import Frequency
from relaxdp.mechanisms.registry import create_mechanism
from relaxdp.theory.epsilon import as_epsilon
from relaxdp.theory.randomized_response import compute_retention

Floats = NDArray[np.float64]
PAGE = Path(__file__).parents[3] / "docs" / "consistent.md"

ENCODINGS = {"categorical": "one value", "unary-optimised": "bits"}
VALUES = (2, 5, 20, 100, 1000)
EPSILONS = ("0.25", "0.5", "1", "2", "4")
FEW_FOR_BITS = 20
OBJECTS = (1000, 10_000, 100_000)
RUNS = 40
SEED = 1


@dataclass(frozen=True)
class Place:
    """Where methods are compared: an encoding, how many values, the level, how many objects, and their shares."""

    encoding: str
    values: int
    epsilon: str
    objects: int
    truth: str

    def __str__(self) -> str:
        return (
            f"{ENCODINGS[self.encoding]}, m = {self.values:,}, eps {self.epsilon}, n = {self.objects:,}, {self.truth}"
        )


def truths(values: int) -> dict[str, Floats]:
    """Shares of all values: equal, Zipf's, three that have nine tenths of everything, falling by half."""
    heavy = np.full(values, 0.1)
    top = min(3, values - 1)
    heavy[:top], heavy[top:] = 0.9 / top, 0.1 / (values - top)
    raw = {"equal": np.ones(values), "Zipf": 1 / np.arange(1, values + 1), "heavy": heavy}
    raw["halving"] = 0.5 ** np.arange(values)
    return {name: shares / shares.sum() for name, shares in raw.items()}


def other_truths(values: int) -> dict[str, Floats]:
    """Shares that nothing was chosen by: the method was settled with `truths` in view, and these came afterwards."""
    rng = np.random.default_rng(99)
    raw = {
        "half empty": (np.arange(values) < max(values // 2, 1)).astype(float),
        "linear": np.arange(1.0, values + 1),
        "Dirichlet 0.3": rng.gamma(0.3, size=values) + 1e-12,
        "one value": np.eye(values)[0],
        "lognormal": np.exp(rng.normal(0, 1.5, values)),
    }
    return {name: shares / shares.sum() for name, shares in raw.items()}


def whole(shares: Floats, objects: int) -> NDArray[np.int64]:
    """How many objects have each value: whole numbers that sum to all, as near to the shares as they can be."""
    counts = np.floor(shares * objects).astype(np.int64)
    counts[np.argsort(counts - shares * objects, kind="stable")[: objects - counts.sum()]] += 1
    return counts


def estimates(place: Place, runs: int, rng: np.random.Generator) -> tuple[Floats, Iterator[Frequency]]:
    """The true shares of the objects, and estimates of them from simulated counts."""
    encoding = create_mechanism(place.encoding, values=range(place.values), epsilon=place.epsilon)
    keep = compute_retention(encoding.threshold(as_epsilon(place.epsilon)))
    support = encoding.compute_noise_and_gain(keep)
    have = whole((truths(place.values) | other_truths(place.values))[place.truth], place.objects)

    def draws() -> Iterator[Frequency]:
        for _ in range(runs):
            if encoding.joint == "exclusive":
                kept = rng.binomial(have, float(keep))
                noise = rng.multinomial(place.objects - kept.sum(), np.full(place.values, 1 / place.values))
                counts = kept + noise
            else:
                counts = rng.binomial(have, float(support.hit))
                counts += rng.binomial(place.objects - have, float(support.noise))
            yield Frequency(range(place.values), counts, place.objects, support, joint=encoding.joint)

    return have / place.objects, draws()


def normalised(shares: Floats) -> Floats:
    """Shares divided by their sum; equal ones where nothing is left of them."""
    return shares / shares.sum() if shares.sum() > 0 else np.full(len(shares), 1 / len(shares))


def clipped(estimate: Frequency) -> Floats:
    """Clip and normalise: what is negative is 0, and all is divided by its sum."""
    return normalised(np.maximum(estimate.value, 0))


def likeliest(estimate: Frequency) -> Floats:
    """The likeliest shares in closed form, where a report is one value; elsewhere there is none."""
    if estimate.joint != "exclusive":
        return np.full(len(estimate.labels), np.nan)
    noise = float(estimate.support.noise / estimate.support.gain)
    falling = np.sort(estimate.counts)[::-1]
    scale = (1 + noise * np.arange(1, len(falling) + 1)) / np.cumsum(falling)
    return np.asarray(np.maximum(estimate.counts * scale[np.flatnonzero(falling * scale > noise)[-1]] - noise, 0))


def base_cut(estimate: Frequency) -> Floats:
    """Keep what noise does not explain in one of twenty cases, over all values, and normalise."""
    limit = -ndtri(0.05 / len(estimate.labels)) * estimate.std_error
    return normalised(np.where(estimate.value > limit, estimate.value, 0))


def power_law(estimate: Frequency) -> Floats:
    """Means given the estimates, if shares follow a power law whose exponent is the likeliest; then the nearest."""
    grid = np.geomspace(1 / estimate.n, 1, 150)
    away = (estimate.value[:, None] - grid) / estimate.std_error[:, None]
    likely = np.exp(-(away**2 - (away**2).min(axis=1, keepdims=True)) / 2)
    laws = [grid**-exponent * np.gradient(grid) for exponent in np.linspace(0, 3, 13)]
    best = max((law / law.sum() for law in laws), key=lambda law: float(np.log(likely @ law).sum()))
    return project_onto_simplex(likely @ (best * grid) / (likely @ best))


def james_stein(estimate: Frequency) -> Floats:
    """All shares pulled towards equal ones by one factor (positive-part James-Stein); then the nearest."""
    away = estimate.value - estimate.value.mean()
    factor = 1 - max(len(away) - 3, 0) * float((estimate.std_error**2).mean()) / max(float((away**2).sum()), 1e-300)
    return project_onto_simplex(max(factor, 0.0) * away)


METHODS: dict[str, Callable[[Frequency], Floats]] = {
    "nearest": lambda estimate: project_onto_simplex(estimate.value),
    "clip and normalise": clipped,
    "likelihood": likeliest,
    "base-cut": base_cut,
    "power law": power_law,
    "James-Stein": james_stein,
    "expected": lambda estimate: estimate.consistent(),
}
ERRORS: dict[str, Callable[[Floats], float]] = {
    "squared": lambda away: float((away**2).sum()),
    "absolute": lambda away: float(np.abs(away).sum()),
    "worst value": lambda away: float(np.abs(away).max()),
}


def measure(place: Place, runs: int, methods: Sequence[str] = tuple(METHODS), seed: int = SEED) -> Floats:
    """The mean errors at a place, of shape (methods, errors). All methods see the same estimates."""
    rng = np.random.default_rng([seed, *map(ord, str(place))])
    truth, drawn = estimates(place, runs, rng)
    found = []
    for estimate in drawn:
        away = [METHODS[name](estimate) - truth for name in methods]
        found.append([[error(each) for error in ERRORS.values()] for each in away])
    return np.asarray(np.mean(found, axis=0))


def places() -> Iterator[Place]:
    for encoding, values, epsilon, objects in itertools.product(ENCODINGS, VALUES, EPSILONS, OBJECTS):
        if encoding == "categorical" or values >= FEW_FOR_BITS:
            yield from (Place(encoding, values, epsilon, objects, truth) for truth in truths(values))


def other_places() -> Iterator[Place]:
    for encoding, values, epsilon, objects in itertools.product(
        ENCODINGS, (5, 20, 100), ("0.25", "1", "4"), OBJECTS[::2]
    ):
        yield from (Place(encoding, values, epsilon, objects, truth) for truth in other_truths(values))


SHOWN = [
    Place("categorical", 100, "1", 1000, truth) for truth in truths(100)
] + [
    Place("unary-optimised", 100, "1", 10_000, truth) for truth in truths(100)
] + [Place("categorical", 5, "1", 10_000, truth) for truth in truths(5)]  # fmt: skip


def page(found: dict[Place, Floats], others: dict[Place, Floats]) -> str:
    names = [f"**{name}**" if name == "expected" else name for name in METHODS]
    lines = [_HEAD, *_table(f"over all {len(found)} points", names)]
    for place, error in enumerate(ERRORS):
        against = np.array([errors[:, place] / errors[0, place] for errors in found.values()])
        rival = np.array([errors[:, place] / errors[:2, place].min() for errors in found.values()])
        lines.append(f"| {error} error against nearest, geometric mean | {_row(_mean(against))}")
        lines.append(
            f"| {error} error against the better of the first two, at worst | {_row(np.nanmax(rival, axis=0))}"
        )
    lines += ["", _GROUPS, "", *_table("squared error against nearest", names)]
    for values, truth in itertools.product(VALUES, truths(2)):
        own = np.array(
            [each[:, 0] / each[0, 0] for at, each in found.items() if (at.values, at.truth) == (values, truth)]
        )
        pairs = zip(_mean(own), np.nanmax(own, axis=0), strict=True)
        cells = " | ".join(f"{_number(mean)} (to {_number(most)})" for mean, most in pairs)
        lines.append(f"| m = {values:,}, {truth} | {cells} |")
    lines += ["", _SHOWN, "", *_table("mean squared error", names)]
    for at in SHOWN:
        cells = " | ".join("" if np.isnan(error) else f"{error:.2g}" for error in found[at][:, 0])
        lines.append(f"| {at} | {cells} |")
    lines += ["", _OTHERS, "", *_table("squared error against nearest", names)]
    for truth in other_truths(2):
        own = np.array([each[:, 0] / each[0, 0] for at, each in others.items() if at.truth == truth])
        pairs = zip(_mean(own), np.nanmax(own, axis=0), strict=True)
        lines.append(f"| {truth} | {' | '.join(f'{_number(mean)} (to {_number(most)})' for mean, most in pairs)} |")
    behind = {at: errors[-1, 0] / errors[:2, 0].min() for at, errors in found.items()}
    worst = sorted(behind, key=lambda at: -behind[at])[:3]
    return "\n".join([*lines, "", _END % "; ".join(f"{behind[at]:.2f} times ({at})" for at in worst)]) + "\n"


def _table(first: str, names: Sequence[str]) -> list[str]:
    return [f"| {first} | {' | '.join(names)} |", "|---" * (len(names) + 1) + "|"]


def _mean(ratios: Floats) -> Floats:
    """The geometric mean; an estimate without any error has no logarithm."""
    return np.asarray(np.exp(np.nanmean(np.log(np.maximum(ratios, 1e-3)), axis=0)))


def _row(numbers: Floats) -> str:
    return " | ".join(map(_number, numbers)) + " |"


def _number(number: float) -> str:
    return f"{number:.2f}" if number < 9.95 else f"{number:,.0f}"


def _list(numbers: Sequence[int]) -> str:
    return ", ".join(f"{number:,}" for number in numbers)


_HEAD = f"""# Which consistent shares?

An unbiased estimate may lie below 0. `estimate.consistent()` and `relaxdp estimate --consistent` give shares that are
not negative and sum to 1. This page says how, and what other ways would have cost. Made by `make consistent`.

The default, **expected**, is an empirical Bayes estimate. The shares are thought of as draws from one law with a
falling density, whose mean is known: 1/m, because they sum to 1. The law is a mixture of exponential laws with the
scales 1, 1/2, 1/4 ... 1/(4m), with the weights that make all estimates likeliest. Each share becomes what it is
expected to be, given its estimate and its noise; then the nearest point is taken whose shares sum to 1. So the noise,
and how far estimates stand out of it, say how far they are pulled: hardly where noise is small, to nearly equal shares
where nothing stands out. It needs estimates and standard errors and nothing else, so it is the same for values, bits,
hashed values, mixed levels and two-way tables, and nobody has to choose anything.

The others:

- *nearest*: the closest point; one number is subtracted from all, and what is negative is 0 (norm-sub).
- *clip and normalise*: what is negative is 0, then all is divided by the sum (norm-mul).
- *likelihood*: the likeliest shares (here only where a report is one value).
- *base-cut*: only what is beyond noise, 5 % over all values, normalised.
- *power law*: means given a power law of shares whose exponent is the likeliest, then the nearest.
- *James-Stein*: all pulled towards equal shares by one factor, then the nearest.

Simulated over a grid: m in {_list(VALUES)}; eps in {", ".join(EPSILONS)}; n in {_list(OBJECTS)}; reports
that are one value, and from m = {FEW_FOR_BITS} also bits (optimised unary); four truths: equal shares, Zipf's law,
three heavy values with nine tenths of everything, shares that halve. {RUNS} seeded runs a point, the same for all
methods. Errors are about these objects.
"""
_GROUPS = """For each number of values and each truth, over all levels, numbers of objects and kinds of report: the
geometric mean, and the largest. Equal shares can be hit exactly, so a ratio below 0.001 counts as 0.001."""
_SHOWN = "Some points, among them one where noise dominates (one value, m = 100, eps 1, n = 1,000):"
_OTHERS = """The method was settled with the four truths above in view. Five that came afterwards (half of the values
empty, shares that grow evenly, draws from a Dirichlet and from a lognormal law, everybody with one value), over m in 5,
20, 100, eps in 0.25, 1, 4, n in 1,000, 100,000 and both kinds of report: on average the gain stays, though smaller.
With few values, some of which have no share at all, *nearest* is better: it can say 0, and a mean cannot."""
_END = """*nearest* picks a few values that noise lifted where noise is large; *clip and normalise* takes from values
that are really there. *expected* is mostly ahead of both. Where it is farthest behind the better of the two, its
squared error is %s. With two values there is next to nothing to gain.

**All of them are biased.** *expected* pulls large shares down and small ones up, the more the larger the noise: where
intervals are as wide as the shares, it says more about the number of values than about any of them. Add up, compare
and test the unbiased estimates, to which the intervals belong; consistent shares are for showing."""


def main() -> None:
    started = time.perf_counter()
    found = {place: measure(place, RUNS) for place in places()}
    others = {place: measure(place, RUNS) for place in other_places()}
    PAGE.write_text(page(found, others), "utf-8")
    print(f"{len(found) + len(others)} points in {time.perf_counter() - started:.0f} seconds: {PAGE}")


if __name__ == "__main__":
    main()
