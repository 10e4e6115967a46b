"""The laboratory: the settings of a run, its samplers, and what several claims measure together."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from relaxdp.hazmat import SeededEntropy
from relaxdp.paper.samplers import AlgorithmOne, KeyedPath, Sampler, seeded

MeanFormula = Callable[[Any, float, float], Any]


@dataclass(frozen=True, slots=True)
class Settings:
    """How much is run. The paper's own 100 runs are what the figures show; the tests use all runs."""

    seed: int = 1
    runs: int = 1000
    shown: int = 100
    objects: int = 1_000_000
    """For tests of a law by counting transcripts."""


class Lab:
    """Where claims are checked. `samplers` and `mean` can be replaced, to see that wrong ones are caught."""

    def __init__(
        self,
        settings: Settings | None = None,
        *,
        samplers: Sequence[Sampler] | None = None,
        mean: MeanFormula | None = None,
        say: Callable[[str], None] = lambda text: None,
    ) -> None:
        self.settings = settings or Settings()
        seed = self.settings.seed
        self.samplers: Sequence[Sampler] = (KeyedPath(seed), AlgorithmOne(seed)) if samplers is None else samplers
        self.mean = mean
        self.say = say
        self._known: dict[str, Any] = {}

    def entropy(self, purpose: str) -> SeededEntropy:
        """Return randomness for one purpose, whatever was run before."""
        return seeded(self.settings.seed, purpose)

    def once(self, name: str, measure: Callable[[], Any]) -> Any:
        """Return what was measured under this name, measuring it the first time."""
        if name not in self._known:
            self._known[name] = measure()
        return self._known[name]
