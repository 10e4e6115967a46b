"""Other ways of this package to let reports out: a sale between two deliveries, one object at a time, noisy samples."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np

from relaxdp.audit.sources import (
    PATH,
    EncodedSource,
    FunctionSource,
    Source,
    Truths,
    batch_entropy,
    batch_key,
    released,
)
from relaxdp.audit.views import Transcripts
from relaxdp.draw.key import Key
from relaxdp.encodings.bridges import fresh_column, keyed_column
from relaxdp.encodings.protocol import Encoding
from relaxdp.hazmat import relax_once
from relaxdp.law.bridge import NOISE
from relaxdp.law.epsilon import Epsilon
from relaxdp.mechanisms import Categorical, Relaxation


class SaleSource(EncodedSource):
    """Three levels, of which the middle one is drawn last, from the other two and without the truth."""

    def __init__(self, encoding: Encoding, epsilons: tuple[Epsilon, Epsilon, Epsilon], *, keyed: bool) -> None:
        super().__init__(encoding, epsilons)
        self._keyed = keyed

    def draw(self, truths: Truths, seed: int, batch: int) -> Transcripts:
        """Deliver the lowest and the highest level, then sell the one in between."""
        key, (low, _, high) = batch_key(seed, batch), self.epsilons
        lowest, highest = (released(self.encoding, truths, key, epsilon) for epsilon in (low, high))
        levels = self.retentions()
        columns: Any = {"lower": self.encoding.column(*lowest), "upper": self.encoding.column(*highest)}
        if self._keyed:
            name, ids = self.encoding.path_name(PATH), np.arange(len(truths))
            sold = keyed_column(
                self.encoding, *levels, **columns, object_ids=ids, key=batch_key(seed, batch, 1), name=name
            )
        else:
            sold = fresh_column(self.encoding, *levels, **columns, entropy=batch_entropy(seed, batch))
        transcripts = self.empty(len(truths))
        for level, (codes, seeds) in enumerate((lowest, self.encoding.read(sold), highest)):
            self.show(transcripts, level, codes, seeds)
        return transcripts


class OneAtATime(FunctionSource):
    """The front door's objects, with the operating system's randomness: a key and a chain for each trial."""

    def __init__(self, values: int, epsilons: list[Epsilon], *, keyed: bool) -> None:
        answers = Categorical(range(values))

        def path(truth: int, place: int, key: Key) -> list[int]:
            way = answers.path(truth, key=key, object_id=place, release="audit", attribute="truth")
            return [way.at(epsilon) for epsilon in epsilons]

        def chain(truth: int, place: int, key: Key) -> list[int]:
            steps = Relaxation(answers, truth=truth)
            return [steps.relax(epsilon=epsilon) for epsilon in epsilons]

        def draw(truths: Truths) -> Transcripts:
            key, one = Key.generate(), path if keyed else chain
            return np.array([one(truth, place, key) for place, truth in enumerate(truths.tolist())], dtype=np.uint8)

        super().__init__(draw)


class NoisySampleSource(Source):
    """The paper's baseline: samples of one permanent response."""

    def __init__(self, permanent: Fraction, sample: Fraction, samples: int) -> None:
        self._permanent, self._sample, self._samples = permanent, sample, samples

    def draw(self, truths: Truths, seed: int, batch: int) -> Transcripts:
        """Return all samples."""
        entropy = batch_entropy(seed, batch)
        kept = relax_once(2, NOISE, self._permanent, truth=truths.astype(np.uint8), last=None, entropy=entropy)
        samples = [
            relax_once(2, NOISE, self._sample, truth=kept, last=None, entropy=entropy) for _ in range(self._samples)
        ]
        return np.stack(samples).T
