"""The Square Wave mechanism of Li et al. (SIGMOD 2020) as we wrote it: one report, and no path.

A report is a number, drawn near the truth with a larger density than elsewhere: the paper's report, its window, its
buckets, and its smoothed expectation-maximisation. This is not the authors' code, which docs/numbers-measured.md
compares in a section with recorded figures.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

_STEPS = 10_000


@dataclass(frozen=True)
class SquareWave:
    """Numbers in 0 .. 1, reported within `half` of themselves with e^epsilon times the density of all else."""

    epsilon: float
    half: float
    bins: int = 64

    @classmethod
    def with_best_window(cls, epsilon: float, bins: int) -> SquareWave:
        """Return the mechanism with the paper's window for this level."""
        odds = float(np.exp(epsilon))
        return cls(epsilon, (epsilon * odds - odds + 1) / (2 * odds * (odds - 1 - epsilon)), bins)

    @property
    def _density(self) -> tuple[float, float]:
        odds = float(np.exp(self.epsilon))
        outside = 1 / (2 * self.half * odds + 1)
        return odds * outside, outside

    def report(self, truths: Floats, rng: np.random.Generator) -> Floats:
        """Return one report of each number, in -half .. 1 + half."""
        inside, _ = self._density
        near = truths + self.half * (2 * rng.random(len(truths)) - 1)
        # All that is not near has length 1: what lies below the window, and what lies above it.
        far = rng.random(len(truths))
        far = np.where(far < truths, far - self.half, far + self.half)
        return np.where(rng.random(len(truths)) < 2 * self.half * inside, near, far)

    def estimate(self, reports: Floats, *, smooth: bool = True) -> Floats:
        """Return the shares of equal bins of 0 .. 1; the paper stops where the likelihood grows by e^epsilon / 1000."""
        edges = np.linspace(-self.half, 1 + self.half, self.bins + 1)
        counts, _ = np.histogram(reports, edges)
        matrix = self._matrix(edges)
        shares, last = np.full(self.bins, 1 / self.bins), -np.inf
        enough = 1e-3 * np.exp(self.epsilon) if smooth else 1e-3
        for _ in range(_STEPS):
            chances = matrix @ shares
            shares = shares * (matrix.T @ (counts / chances))
            if smooth:
                edged = np.pad(shares, 1, mode="edge")
                shares = (edged[:-2] + 2 * edged[1:-1] + edged[2:]) / 4
            shares /= shares.sum()
            likelihood = float(counts @ np.log(matrix @ shares))
            if abs(likelihood - last) < enough:
                break
            last = likelihood
        return shares

    def _matrix(self, edges: Floats) -> Floats:
        """Return the chance of each bucket of reports, for a number that lies evenly in each bin."""
        inside, outside = self._density
        grid = (np.arange(self.bins * 32) + 0.5) / (self.bins * 32)
        low, high = np.maximum(edges[:-1, None], grid - self.half), np.minimum(edges[1:, None], grid + self.half)
        covered = np.maximum(0, high - low).reshape(self.bins, self.bins, 32).mean(axis=2)
        return np.asarray(outside * (edges[1] - edges[0]) + (inside - outside) * covered)
