"""One point of a grid of coverage: how often an interval held, and whether that is often enough."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

NOMINAL, LEAST = 0.95, 0.945


@dataclass(frozen=True)
class Point:
    """One point of the grid: how often the interval held, and how wide it was against Wald's."""

    kind: str
    where: str
    coverage: float
    error: float
    width: float | None

    @property
    def holds(self) -> bool:
        """Simulated points get four standard errors of leave; exact ones none."""
        return self.coverage >= LEAST - 4 * self.error


def simulated(kind: str, where: str, held: float, runs: int, width: float | None = None) -> Point:
    return Point(kind, where, held, float(np.sqrt(NOMINAL * (1 - NOMINAL) / runs)), width)
