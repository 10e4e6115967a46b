"""One step of Algorithm 1 for many objects, against the cheapest way to touch as many bytes securely."""

from __future__ import annotations

import os
from collections.abc import Callable

import numpy as np

from benchmarks.kernel import beside_numpy, by_numpy
from benchmarks.naive import NAIVE_BYTES, NAIVE_WIDE, naive_contenders
from benchmarks.results import Comparison
from benchmarks.settings import Settings
from benchmarks.timing import Contender, Race, race
from relaxdp.hazmat import relax_once
from relaxdp.sampling.entropy import Keystream
from relaxdp.theory.epsilon import compute_threshold
from relaxdp.theory.randomized_response import compute_retention

OLD, NEW = "0.5", "1"
OWN = f"relaxdp, epsilon {OLD} to {NEW}"
KEYSTREAM = "keystream"
COPY = "memcpy"
LIMIT = "keystream + memcpy"
LIMIT_TARGETS = {2: 0.8, 10: 0.3}
NAIVE_TARGETS = {2: 10.0, 10: 3.0}


def step_race(values: int, settings: Settings, note: Callable[[str], None]) -> Race:
    """Time the step, a keystream and a copy of as many bytes, and the naive line."""
    objects = settings.step_objects
    generator = np.random.default_rng(1)
    truths = generator.integers(0, values, objects, dtype=np.uint8)
    old, new = (compute_retention(compute_threshold(epsilon, values)) for epsilon in (OLD, NEW))
    last = relax_once(values, compute_retention(0), old, truths=truths, last_reports=None)
    # The limits write into memory that is mapped already, while the step and the line allocate what they return:
    # the comparison with the limit is strict.
    room, stream = np.ones(objects, dtype=np.uint8), Keystream(os.urandom(48))

    def limit() -> None:
        stream.fill(room)
        np.copyto(room, truths)

    own = Contender(OWN, objects, lambda: relax_once(values, old, new, truths=truths, last_reports=last))
    contenders = [
        own,
        by_numpy(own),
        Contender(KEYSTREAM, objects, lambda: stream.fill(room)),
        Contender(COPY, objects, lambda: np.copyto(room, truths)),
        Contender(LIMIT, objects, limit),
        *naive_contenders(values, truths, float(NEW)),
    ]
    return race(f"step, m = {values}", contenders, settings.rounds, note)


def step_comparisons(values: int, result: Race) -> list[Comparison]:
    """Return what the step is held to."""
    # Held to the line as anybody would write it, with NumPy's own integers; the byte form is shown beside it.
    targets = {LIMIT: LIMIT_TARGETS[values], NAIVE_WIDE: NAIVE_TARGETS[values], NAIVE_BYTES: None}
    return [row for rival, target in targets.items() for row in beside_numpy(result, OWN, rival, target)]
