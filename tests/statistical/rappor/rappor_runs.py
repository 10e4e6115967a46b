"""Runs of RAPPOR, many times: python -m tests.statistical.rappor.rappor_runs writes docs/rappor-measured.md.

Bits are independent given the words, so counts are drawn as counts: the same law as device by device, much faster.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from relaxdp.mechanisms.bloom import BloomShape, compute_bit_support, compute_bit_threshold, compute_epsilon
from relaxdp.paper.classic import Responses
from relaxdp.rappor.candidate_map import CandidateMap
from relaxdp.rappor.decoding import DecodedWords, decode_words, fit_word_shares
from relaxdp.rappor.reports import BitEstimates, RapporCounts

PAGE = Path(__file__).parents[3] / "docs" / "rappor-measured.md"
Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
CLASSIC = Responses(Fraction(1, 2), Fraction(1, 2), Fraction(3, 4))
PLANTED = BloomShape(bits=128, hashes=2, cohorts=64)
WORDS_FOUND = 0.012
"""Words with at least this share must be found."""


@dataclass(frozen=True)
class Setting:
    """A fleet with known words: `present` of the candidates exponentially, and others that nobody lists."""

    shape: BloomShape
    candidates: int
    present: int
    scale: float
    devices: int
    noise: str
    unlisted: float = 0.0
    strangers: int = 200

    def shares(self) -> Floats:
        listed = np.zeros(self.candidates)
        listed[: self.present] = np.exp(-np.arange(self.present) / self.scale)
        others = np.exp(-np.arange(self.strangers if self.unlisted else 0) / 30)
        parts = [listed / listed.sum() * (1 - self.unlisted), others / max(others.sum(), 1e-9) * self.unlisted]
        return np.concatenate(parts)

    def words(self, run: int) -> list[str]:
        """Other words in every run, so that no lucky hash decides."""
        return [f"run {run} word {number}" for number in range(len(self.shares()))]


def draw_devices(
    setting: Setting, everything: CandidateMap, generator: np.random.Generator
) -> tuple[Integers, Integers, Integers]:
    """Return devices per word, devices per cohort, and true ones per (cohort, bit)."""
    shape = setting.shape
    per_word = generator.multinomial(setting.devices, setting.shares())
    table = np.array([generator.multinomial(count, np.full(shape.cohorts, 1 / shape.cohorts)) for count in per_word])
    ones = np.zeros((shape.cohorts, shape.bits), dtype=np.int64)
    for cohort in range(shape.cohorts):
        design = everything.make_design_matrix(np.array([cohort]))
        ones[cohort] = np.rint(design @ table[:, cohort].astype(float)).astype(np.int64)
    return per_word, table.sum(axis=0), ones


def answer(ones: Integers, devices: Integers, hit: float, noise: float, generator: np.random.Generator) -> Integers:
    return np.asarray(generator.binomial(ones, hit) + generator.binomial(devices[:, None] - ones, noise))


def relaxed(setting: Setting, epsilon: object, run: int, seed: int = 1) -> tuple[Floats, DecodedWords]:
    """One run: the true shares of the candidates among these devices, and what was decoded."""
    generator = np.random.default_rng([seed, run])
    words = setting.words(run)
    everything = CandidateMap(words, setting.shape)
    per_word, devices, ones = draw_devices(setting, everything, generator)
    support = compute_bit_support(compute_bit_threshold(setting.shape, epsilon))  # type: ignore[arg-type]
    counts = RapporCounts(setting.shape)
    counts.add_counts(devices, answer(ones, devices, float(support.hit), float(support.noise), generator), support)
    candidates = CandidateMap(words[: setting.candidates], setting.shape)
    return per_word[: setting.candidates] / setting.devices, decode_words(counts, candidates)


def sampled(setting: Setting, samples: int, run: int, seed: int = 1) -> tuple[Floats, Floats]:
    """One run of classic noisy sampling: the true shares, and those decoded from the mean of the samples."""
    generator = np.random.default_rng([seed, run])
    words = setting.words(run)
    everything = CandidateMap(words, setting.shape)
    per_word, devices, ones = draw_devices(setting, everything, generator)
    flip = float(CLASSIC.noise) / 2
    permanent = answer(ones, devices, 1 - flip, flip, generator)
    one, zero = float(CLASSIC.one_from_one), float(CLASSIC.one_from_zero)
    sums = answer(samples * permanent, samples * devices, one, zero, generator)
    means = BitEstimates(
        setting.shape,
        np.arange(setting.shape.cohorts),
        devices.astype(float),
        CLASSIC.support.debias(sums / samples / devices[:, None]),
        CLASSIC.mean_variance(setting.shape.compute_bit_probabilities(), samples) / devices[:, None],
    )
    fit = fit_word_shares(means, CandidateMap(words[: setting.candidates], setting.shape))
    return per_word[: setting.candidates] / setting.devices, fit.share


def planted(devices: int = 100_000) -> Setting:
    return Setting(PLANTED, candidates=300, present=100, scale=20, devices=devices, noise="0.5")


SETTINGS = {
    "64 cohorts, k = 128, h = 2, f = 0.5": planted(20_000),
    "the same, 30 % have words that are not listed": Setting(PLANTED, 300, 100, 20, 20_000, "0.5", 0.3),
    "8 cohorts, k = 64, h = 2, f = 0.5": Setting(BloomShape(64, 2, 8), 200, 50, 20, 20_000, "0.5"),
    "the same, 30 % not listed": Setting(BloomShape(64, 2, 8), 200, 50, 20, 20_000, "0.5", 0.3),
    "32 cohorts, k = 256, h = 1, f = 0.2": Setting(BloomShape(256, 1, 32), 500, 60, 20, 20_000, "0.2"),
    "16 cohorts, k = 128, h = 1, f = 0.05, 30 % not listed": Setting(
        BloomShape(128, 1, 16), 200, 50, 20, 20_000, "0.05", 0.3
    ),
    "LASSO: 2,000 candidates, 8 cohorts, k = 128, h = 2, f = 0.25": Setting(
        BloomShape(128, 2, 8), 2000, 40, 8, 50_000, "0.25"
    ),
    "the same, 20 % not listed": Setting(BloomShape(128, 2, 8), 2000, 40, 8, 50_000, "0.25", 0.2),
    "LASSO: 2,000 candidates, 4 cohorts, 20 % not listed": Setting(
        BloomShape(128, 2, 4), 2000, 40, 8, 50_000, "0.25", 0.2
    ),
}


@dataclass
class ColumnCounts:
    """What many runs of one setting came to."""

    covered: float
    covered_population: float
    covered_strong: float
    """Of the ten most frequent words."""
    runs_with_false: float
    false_share: float
    """The mean share of false words among those found, with Benjamini and Hochberg's correction."""
    unlisted_covered: float


def tally(setting: Setting, runs: int, seed: int = 1) -> ColumnCounts:
    level = compute_epsilon(setting.shape, setting.noise)
    shares = setting.shares()[: setting.candidates]
    rows = []
    for run in range(runs):
        truth, decoded = relaxed(setting, level, run, seed)
        absent = truth == 0
        inside = [
            (low <= wanted) & (wanted <= high)
            for wanted, (low, high) in (
                (truth, decoded.estimate.compute_unclipped_interval(0.025, "sample")),
                (shares, decoded.estimate.compute_unclipped_interval(0.025, "population")),
            )
        ]
        loose = decoded.find_detected_words(0.05, "benjamini-hochberg")
        rest, error = decoded.unlisted or (np.nan, np.nan)
        rows.append(
            (
                inside[0].mean(),
                inside[1].mean(),
                inside[0][:10].mean(),
                float((decoded.find_detected_words(0.05) & absent).any()),
                float((loose & absent).sum()) / max(1, int(loose.sum())),
                float(abs(rest - (1 - truth.sum())) <= -ndtri(0.025) * error),
            )
        )
    return ColumnCounts(*np.mean(rows, axis=0).tolist())


def comparison(runs: int, seed: int = 3) -> list[tuple[str, float, float, float, float]]:
    """Rows of (what, guarantee, L1 error, found of words with 1.2 % or more, share of runs with a false word)."""
    setting, rows = planted(), []
    last = compute_epsilon(PLANTED, "0.5")
    levels = [("relaxation, f = 0.5", last)]
    for samples in (1, 10):
        guarantee = CLASSIC.guarantee(PLANTED, samples)
        levels.append(
            (f"relaxation at what {samples} sample{'s' * (samples > 1)} cost{'s' * (samples == 1)}", guarantee)
        )
    for name, level in levels:
        found = [relaxed(setting, level, run, seed) for run in range(runs)]
        errors = [np.abs(decoded.consistent() - truth).sum() for truth, decoded in found]
        strong = [decoded.find_detected_words()[truth >= WORDS_FOUND].mean() for truth, decoded in found]
        false = [bool((decoded.find_detected_words() & (truth == 0)).any()) for truth, decoded in found]
        rows.append((name, float(level), float(np.mean(errors)), float(np.mean(strong)), float(np.mean(false))))
    for samples in (1, 10):
        pairs = [sampled(setting, samples, run, seed) for run in range(runs)]
        error = float(np.mean([np.abs(share - truth).sum() for truth, share in pairs]))
        name = f"classic, {samples} sample{'s' * (samples > 1)} (p = 0.5, q = 0.75)"
        rows.append((name, float(CLASSIC.guarantee(PLANTED, samples)), error, float("nan"), float("nan")))
    return rows


def main(runs: int = 200) -> None:
    lines = ["# RAPPOR, measured", ""]
    lines += [
        f"Written by `python -m tests.statistical.rappor.rappor_runs`. {runs} runs each, other words in every run.",
        "",
    ]
    lines += ["## Decoding a planted distribution", ""]
    lines += [
        "100,000 devices, k = 128, h = 2, 64 cohorts, 300 candidates of which 100 are present (exponentially).",
        "The L1 error is the sum over all candidates of the distance from the true share among these devices.",
        "For ever, f = 0.5 costs 4.394 both with relaxation and with however many samples.",
        "",
        "| responses | guarantee | L1 error | found, of words with 1.2 % or more | runs with a false word |",
        "|---|---|---|---|---|",
    ]
    for name, guarantee, error, strong, false in comparison(runs):
        shown = "" if np.isnan(strong) else f"{strong:.1%}"
        lines.append(
            f"| {name} | {guarantee:.3f} | {error:.3f} | {shown} | {'' if np.isnan(false) else f'{false:.1%}'} |"
        )
    lines += ["", "## Intervals and false words", ""]
    lines += [
        "Intervals of 95 %, each candidate by itself; words found with a rate of 5 %: the chance of even one false",
        "word (Holm), or the share of false words among those found (Benjamini and Hochberg).",
        "",
        "| setting | covers, these devices | population | ten strongest | runs with a false word | false share (B-H) "
        "| covers the share not listed |",
        "|---|---|---|---|---|---|---|",
    ]
    for name, setting in SETTINGS.items():
        found = tally(setting, runs)
        lines.append(
            f"| {name} | {found.covered:.1%} | {found.covered_population:.1%} | {found.covered_strong:.1%} "
            f"| {found.runs_with_false:.1%} | {found.false_share:.1%} "
            f"| {'' if 'LASSO' in name or setting.candidates == 2000 else f'{found.unlisted_covered:.1%}'} |"
        )
    PAGE.write_text("\n".join(lines) + "\n", "utf-8")


if __name__ == "__main__":
    main()
