"""RAPPOR's repeated samples against relaxation: the variance of both, and what averaging reports gives away.

python examples/rappor_attack.py            prints the figures of docs/rappor.md
python examples/rappor_attack.py FOLDER     draws them there too (needs matplotlib)

The attack: whoever keeps all reports of one device averages them, bit by bit. Samples of one permanent response then
give that response away, which is a name tag for the device and names its word as well as it ever can.
"""

from __future__ import annotations

import sys
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tests.bloom_fleet import Fleet

from relaxdp.estimation.schedules import Linear, compute_noisy_sampling_epsilon
from relaxdp.hazmat import SeededEntropy
from relaxdp.mechanisms.bloom import BloomShape, compute_bit_support, compute_bit_threshold, compute_epsilon
from relaxdp.paper.baselines import noisy_sampling_variance, relaxation_variance
from relaxdp.paper.classic import Responses, draw_permanent
from relaxdp.rappor.candidate_map import CandidateMap

Floats = NDArray[np.float64]
Bits = NDArray[np.uint8]

SHAPE = BloomShape(bits=128, hashes=2, cohorts=64)
CLASSIC = Responses(Fraction(1, 2), Fraction(1, 2), Fraction(3, 4))
WORDS = [f"word {number}" for number in range(100)]
SHARES = np.exp(-np.arange(100) / 20) / np.exp(-np.arange(100) / 20).sum()
SAMPLES = (1, 3, 10, 30, 100, 300, 1000)


class Devices:
    """Devices with words that the attacker wants to know, and the best guess from what is known of each bit."""

    def __init__(self, number: int, seed: int = 1) -> None:
        generator = np.random.default_rng(seed)
        self.words = generator.choice(len(WORDS), size=number, p=SHARES)
        self.cohorts = np.sort(generator.integers(0, SHAPE.cohorts, number))
        places = CandidateMap(WORDS, SHAPE).bits[:, self.cohorts].transpose(1, 0, 2)
        self.places = places.reshape(number, -1)
        self.again = places[:, :, 1] == places[:, :, 0]  # both hashes met in one bit: it counts once
        self.truth = np.zeros((number, SHAPE.bits), dtype=np.uint8)
        own = places[np.arange(number), self.words]
        for each in range(SHAPE.hashes):
            self.truth[np.arange(number), own[:, each]] = 1

    def named(self, evidence: Floats) -> float:
        """Return how often the likeliest word is the right one; `evidence` is the log odds of every bit being 1."""
        gathered = np.take_along_axis(evidence, self.places, axis=1).reshape(len(self.words), len(WORDS), -1)
        scores = gathered[:, :, 0] + np.where(self.again, 0.0, gathered[:, :, 1]) + np.log(SHARES)
        # Processors round logarithms differently: scores that are equal up to that are a tie, won by the first word.
        return float((scores.round(9).argmax(axis=1) == self.words).mean())


def sample_evidence(ones: Any, samples: int) -> tuple[Floats, Floats]:
    """Return the log odds of the permanent bit and of the true bit, given how many of the samples were ones."""
    one, zero, flip = (float(each) for each in (CLASSIC.one_from_one, CLASSIC.one_from_zero, CLASSIC.noise / 2))
    permanent = ones * np.log(one / zero) + (samples - ones) * np.log((1 - one) / (1 - zero))
    ratio = np.exp(np.clip(permanent, -700, 700))
    return permanent, np.log(((1 - flip) * ratio + flip) / (flip * ratio + (1 - flip)))


def classic_attack(devices: Devices, seed: int = 2) -> list[tuple[int, float, float, float, float]]:
    """Return rows of (samples, guarantee, permanent bits known, whole responses known, words named)."""
    generator = np.random.default_rng(seed)
    permanent = draw_permanent(devices.truth, CLASSIC.noise, generator)
    chances = np.where(permanent, float(CLASSIC.one_from_one), float(CLASSIC.one_from_zero))
    prior = np.log(permanent.mean() / (1 - permanent.mean()))
    ones, sent, rows = np.zeros(permanent.shape, dtype=np.int64), 0, []
    for samples in SAMPLES:
        ones += generator.binomial(samples - sent, chances)
        sent = samples
        kept, truth = sample_evidence(ones, samples)
        right = (kept + prior > 0) == permanent
        cost = float(CLASSIC.guarantee(SHAPE, samples))
        rows.append((samples, cost, float(right.mean()), float(right.all(axis=1).mean()), devices.named(truth)))
    return rows


def report_evidence(reports: Bits, epsilon: Any) -> Floats:
    """Return the log odds of every bit being 1, given one report at a level."""
    support = compute_bit_support(compute_bit_threshold(SHAPE, epsilon))
    odds = np.log(float(support.hit) / float(support.noise))
    return np.asarray(np.where(reports == 1, odds, -odds))


def relaxed_attack(
    devices: Devices, seed: int = 3
) -> tuple[list[tuple[int, float, float]], list[tuple[float, float, float]]]:
    """Return what relaxation gives away.

    First rows of (reports, guarantee, words named) of a device that stays at the level of one classic sample: its
    report is the same each time. Then rows of (guarantee, words named from the last report, from all reports averaged)
    of one that rises in ten steps to the level of f = 0.5.
    """
    held = CLASSIC.guarantee(SHAPE, 1)
    fleet = Fleet(SHAPE, [WORDS[word] for word in devices.words], devices.cohorts, entropy=SeededEntropy(seed))
    fleet.relax(epsilon=held)
    named = devices.named(report_evidence(fleet.reports, held))
    rows = [(reports, float(held), named) for reports in SAMPLES]
    fleet = Fleet(SHAPE, [WORDS[word] for word in devices.words], devices.cohorts, entropy=SeededEntropy(seed))
    total, steps = np.zeros(devices.truth.shape), []
    for level in Linear("0.4", compute_epsilon(SHAPE, "0.5"), steps=10):
        fleet.relax(epsilon=level)
        last = report_evidence(fleet.reports, level)
        total += last
        steps.append((float(level), devices.named(last), devices.named(total)))
    return rows, steps


def variances(beta: float, samples: int) -> tuple[list[float], list[float], list[float]]:
    """Return guarantee, variance of noisy sampling and of relaxation after 1, 2, ... samples; one device, one bit."""
    numbers = range(1, samples + 1)
    guarantees = [compute_noisy_sampling_epsilon(epsilon_alpha=1, epsilon_beta=beta, samples=each) for each in numbers]
    sampled = [noisy_sampling_variance(epsilon_alpha=1, epsilon_beta=beta, samples=each) for each in numbers]
    relaxed = [relaxation_variance([each], values=2) for each in guarantees]
    return [float(each) for each in guarantees], sampled, relaxed


def draw_variances(target: Path) -> None:
    """Draw the paper's figure 1: guarantees, variances of both, and linear relaxation."""
    import matplotlib.pyplot as plt  # noqa: PLC0415

    figure, (left, middle, right) = plt.subplots(1, 3, figsize=(10.5, 3.2), layout="constrained")
    numbers = range(1, 31)
    for colour, beta in zip(("#2563a8", "#3f8f5f", "#c2702e", "#8a3fa0"), (0.1, 0.25, 0.5, 1.0), strict=True):
        guarantees, sampled, relaxed = variances(beta, 30)
        left.plot(numbers, guarantees, color=colour, label=f"{beta:g}")
        middle.plot(numbers, sampled, color=colour, label=f"{beta:g}")
        middle.plot(numbers, relaxed, color=colour, linestyle="--")
    left.set(xlabel="samples sent", ylabel="guarantee of a bit", title="what both cost")
    left.legend(title="epsilon of a sample", fontsize=8, title_fontsize=8)
    middle.set(
        xlabel="samples sent", ylabel="variance x devices", yscale="log", title="solid: sampling, dashed: relaxation"
    )
    for steps, colour in ((5, "#2563a8"), (10, "#3f8f5f"), (20, "#c2702e")):
        levels = list(Linear("0.1", 1, steps=steps))
        right.plot(
            range(1, steps + 1), [relaxation_variance([each], values=2) for each in levels], color=colour, label=steps
        )
    right.set(xlabel="reports sent", yscale="log", title="relaxed linearly from 0.1 to 1")
    right.legend(title="steps", fontsize=8, title_fontsize=8)
    for axes in (left, middle, right):
        axes.spines[["top", "right"]].set_visible(False)
        axes.title.set_fontsize(9)
    figure.savefig(target, dpi=90)
    plt.close(figure)


def draw_attack(
    target: Path, classic: list[tuple[int, float, float, float, float]], held: list[tuple[int, float, float]]
) -> None:
    """Draw how the attack succeeds as reports of one device add up."""
    import matplotlib.pyplot as plt  # noqa: PLC0415

    figure, axes = plt.subplots(figsize=(6, 3.4), layout="constrained")
    numbers = [row[0] for row in classic]
    axes.plot(numbers, [row[2] for row in classic], "o-", color="#8a3fa0", label="sampling: permanent bits known")
    axes.plot(numbers, [row[3] for row in classic], "s-", color="#c2702e", label="sampling: whole response known")
    axes.plot(numbers, [row[4] for row in classic], "^-", color="#2563a8", label="sampling: word named")
    axes.plot(numbers, [row[2] for row in held], "^--", color="#3f8f5f", label="relaxation, level kept: word named")
    axes.axhline(SHARES.max(), color="#7a7a7a", linewidth=0.8)
    axes.annotate("a guess without any report", (1, SHARES.max()), xytext=(110, 0.008), fontsize=8, color="#7a7a7a")
    axes.set(xscale="log", xlabel="reports of one device", ylabel="success of the attack", ylim=(0, 1.02))
    axes.legend(fontsize=8)
    axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(target, dpi=90)
    plt.close(figure)


def main(folder: Path | None = None, devices: int = 4000) -> None:
    """Print the figures; draw them into a folder if one is named."""
    people = Devices(devices)
    classic = classic_attack(people)
    held, steps = relaxed_attack(people)
    print(f"{devices:,} devices; a guess without any report names {SHARES.max():.1%} of the words")
    print("noisy sampling: samples, guarantee, permanent bits known, whole responses known, words named")
    for samples, cost, bits, whole, named in classic:
        print(f"  {samples:5d}  {cost:.3f}  {bits:.1%}  {whole:.1%}  {named:.1%}")
    print("relaxation that stays at one level: reports, guarantee, words named")
    for reports, cost, named in held:
        print(f"  {reports:5d}  {cost:.3f}  {named:.1%}")
    print("relaxation in ten steps: guarantee, words named from the last report, from all reports averaged")
    for level, last, average in steps:
        print(f"  {level:.3f}  {last:.1%}  {average:.1%}")
    _, sampled, relaxed = variances(0.5, 10)
    print(f"variance x devices after 10 samples: {sampled[-1]:.3f} by sampling, {relaxed[-1]:.3f} by relaxation")
    if folder is not None:
        draw_variances(folder / "rappor-variance.png")
        draw_attack(folder / "rappor-attack.png", classic, held)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else None)
