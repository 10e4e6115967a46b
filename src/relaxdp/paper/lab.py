"""The laboratory: the settings of a run, and the two samplers that both have to reproduce the paper."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from hashlib import sha256
from typing import Any

import numpy as np
from numpy.typing import NDArray

from relaxdp.audit.attacks import compute_retentions
from relaxdp.hazmat import SeededEntropy, relax_once
from relaxdp.mechanisms.bridged_columns import make_noiseless_column
from relaxdp.mechanisms.categorical import Categorical
from relaxdp.mechanisms.numeric import Numeric
from relaxdp.sampling.keys import KEY_BYTES, Key
from relaxdp.theory.randomized_response import NOISE

Codes = NDArray[np.unsignedinteger]
Levels = Sequence[Decimal]


def seeded(seed: int, purpose: str) -> SeededEntropy:
    """Return randomness that belongs to one purpose alone, so that it does not matter what else was run before."""
    return SeededEntropy(int.from_bytes(sha256(f"{seed} {purpose}".encode()).digest()))


class Sampler(ABC):
    """A way to draw transcripts: the reports of many objects at growing levels."""

    name: str

    def __init__(self, seed: int) -> None:
        self.seed = seed

    @abstractmethod
    def transcripts(self, values: int, levels: Levels, truth: Codes, *, purpose: str) -> Codes:
        """Return the reports, one row per level; another `purpose` is drawn independently."""

    def numeric(self, mechanism: Numeric, levels: Levels, numbers: NDArray[np.float64], *, purpose: str) -> Codes:
        """Return the bits of numbers (1 is the upper end), one row per level; each is rounded once, and that is kept.

        This default is the paper's own way: draw the rounding, store it, relax responses to it.
        """
        ends = make_noiseless_column(mechanism, numbers, entropy=seeded(self.seed, f"rounding {self.name} {purpose}"))
        return self.transcripts(2, levels, mechanism.read_label_column(ends)[:, 0], purpose=purpose)


class AlgorithmOne(Sampler):
    """The paper's Algorithm 1: a fresh draw at each step, given the last report and the truth."""

    name = "Algorithm 1"

    def transcripts(self, values: int, levels: Levels, truth: Codes, *, purpose: str) -> Codes:
        """Return the reports, one row per level."""
        entropy = seeded(self.seed, f"algorithm 1 {purpose}")
        reports: list[Codes] = []
        old = NOISE
        for new in compute_retentions(levels, values):
            last = reports[-1] if reports else None
            reports.append(relax_once(values, old, new, truths=truth, last_reports=last, entropy=entropy))
            old = new
        return np.stack(reports)


class KeyedPathSampler(Sampler):
    """The path: every report a pure function of key, object, truth and level. Levels are read from the top down.

    The order does not matter on a path; reading it against the order of relaxation is the harder case.
    """

    name = "path"

    def transcripts(self, values: int, levels: Levels, truth: Codes, *, purpose: str) -> Codes:
        """Return the reports, one row per level."""
        return self._released(Categorical(range(values)), levels, truth, purpose)

    def numeric(self, mechanism: Numeric, levels: Levels, numbers: NDArray[np.float64], *, purpose: str) -> Codes:
        """Return the bits of numbers; the rounding is on the path too."""
        released = self._released(mechanism, levels, numbers, purpose)
        return np.asarray(released == mechanism.high, dtype=np.uint8)

    def _released(
        self, mechanism: Categorical | Numeric, levels: Levels, truth: NDArray[np.generic], name: str
    ) -> Codes:
        secret = np.empty(KEY_BYTES, dtype=np.uint8)
        seeded(self.seed, "key").make_keystream().fill(secret)
        key, ids = Key.from_bytes(secret.tobytes()), np.arange(len(truth))
        rows = [
            mechanism.release(truth, ids, key=key, epsilon=level, name="reproduce", column=name)
            for level in reversed(levels)
        ]
        return np.stack(rows[::-1])


MeanFormula = Callable[[Any, float, float], Any]


@dataclass(frozen=True, slots=True)
class LabSettings:
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
        settings: LabSettings | None = None,
        *,
        samplers: Sequence[Sampler] | None = None,
        mean: MeanFormula | None = None,
        say: Callable[[str], None] = lambda text: None,
    ) -> None:
        self.settings = settings or LabSettings()
        seed = self.settings.seed
        self.samplers: Sequence[Sampler] = (
            (KeyedPathSampler(seed), AlgorithmOne(seed)) if samplers is None else samplers
        )
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
