"""The keyed path through the public classes: our own curve, text ids against integer ids, and peers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

import relaxdp as rx
from benchmarks import peers
from benchmarks.kernel import BLOCKS, beside_numpy, block_contender, by_numpy, numpy_name
from benchmarks.naive import NAIVE, naive_contenders
from benchmarks.results import Comparison, compare
from benchmarks.settings import Settings
from benchmarks.timing import Contender, Race, race

EPSILONS = ("0.1", "1", "3")
LONGEST_ID = 24
TARGETS = {2: 30.0, 10: 20.0}
BLOCK_TARGETS = {2: 0.6, 10: 0.5}
NAIVE_TARGETS = {2: 1.0, 10: 0.45}


def _own(epsilon: str) -> str:
    return f"relaxdp, epsilon {epsilon}"


OWN = _own("1")
TEXT = ("relaxdp, text ids (pyarrow)", "relaxdp, text ids (NumPy)")
TEXT_TARGETS = (0.5, 0.3)  # NumPy's text takes four bytes a letter, which are narrowed first


def path_race(values: int, settings: Settings, note: Callable[[str], None], leave_out: Callable[[str], None]) -> Race:
    """Time releases of one column, beside one-shot randomized response by others."""
    objects = settings.path_objects
    truths = np.random.default_rng(1).integers(0, values, objects, dtype=np.uint8)
    mechanism, key = rx.Categorical(range(values)), rx.Key.generate()

    def release(name: str, object_ids: Any, epsilon: str) -> Contender:
        def run() -> object:
            return mechanism.release(truths, object_ids, key=key, epsilon=epsilon, name="benchmark", column="answer")

        return Contender(name, objects, run)

    integers, texts = np.arange(objects), text_ids(objects)
    contenders = [
        *(release(_own(epsilon), integers, epsilon) for epsilon in EPSILONS),
        by_numpy(release(OWN, integers, "1")),
        release(TEXT[0], pa.array(texts.tolist()), "1"),
        release(TEXT[1], texts, "1"),
        block_contender(values, "1", objects),
        *peers.peers(values, settings, leave_out),
        *naive_contenders(values, truths, peers.EPSILON),
    ]
    return race(f"path, m = {values}", contenders, settings.rounds, note)


def text_ids(objects: int) -> NDArray[np.str_]:
    """Return distinct ids of up to 24 characters, of mixed lengths: numbers behind random numbers of zeros.

    In ascending order, as the integer ids are: then both are proved distinct on the way. Ids in another order cost a
    sort or a hash table on top, whatever their type.
    """
    widths = np.random.default_rng(3).integers(1, LONGEST_ID + 1, objects)
    return np.sort(np.array([f"{number:0{width}}" for number, width in enumerate(widths.tolist())]))


def path_comparisons(values: int, result: Race) -> list[Comparison]:
    """Return what the path is held to, and beside it what it is not held to."""
    targets: dict[str, float | None] = {
        peers.GRR: TARGETS[values],
        BLOCKS: BLOCK_TARGETS[values],
        result.fastest(NAIVE): NAIVE_TARGETS[values],
    }
    others = (peers.GRR_COMPILED, peers.DIRECT, peers.OPENDP, peers.OPENDP_BITS)
    rows = [compare(result, OWN, numpy_name(OWN), None)]
    for rival, target in targets.items():
        rows += beside_numpy(result, OWN, rival, target) if rival in result.names else []
    rows += [compare(result, OWN, rival, None) for rival in others if rival in result.names]
    return rows + [compare(result, text, OWN, target) for text, target in zip(TEXT, TEXT_TARGETS, strict=True)]
