"""What people call, with what they pass: labels of text or of a dictionary, ids in any order, and a data frame."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

import relaxdp as rx
from benchmarks import peers
from benchmarks.results import Comparison, compare
from benchmarks.settings import Settings
from benchmarks.timing import Contender, Race, race

LABELS = ("flu", "covid", "none", "cold", "asthma", "angina", "migraine", "eczema", "gout", "other illness")
DICTIONARY, TEXT = "dictionary labels", "text labels"
SHUFFLED, SHUFFLED_TEXT = "integer ids in any order", "text ids in any order"
FRAME = "pandas frame, ids in any order, vault and snapshot"
TARGETS: dict[str, dict[int, float | None]] = {
    DICTIONARY: {2: 22, 10: 16},
    TEXT: {2: 16, 10: 13},
    SHUFFLED: {2: 9, 10: 8},
    SHUFFLED_TEXT: {2: 6, 10: 5},
    FRAME: {2: None, 10: None},
}
MEMORY = Path("/dev/shm")  # a file system in memory, so that no disk is measured


def call_race(values: int, settings: Settings, note: Callable[[str], None], leave_out: Callable[[str], None]) -> Race:
    """Time whole calls at epsilon 1. Ids ascend unless the name of a contender states otherwise."""
    random, objects, labels = np.random.default_rng(1), settings.path_objects, LABELS[:values]
    codes = random.integers(0, values, objects, dtype=np.int8)
    coded = pa.DictionaryArray.from_arrays(pa.array(codes), list(labels))
    text, ids, shuffled = coded.dictionary_decode(), np.arange(objects), random.permutation(objects)
    frame = pd.DataFrame({"patient": shuffled, "illness": pd.Series(np.array(labels)[codes], dtype="str")})
    key = rx.Key.generate()

    def release(name: str, truths: Any, own: Any, mechanism: rx.Mechanism) -> Contender:
        def run() -> object:
            return mechanism.release(truths, own, key=key, epsilon="1", name="benchmark", column="illness")

        return Contender(name, objects, run)

    def release_frame() -> object:
        with TemporaryDirectory(dir=MEMORY if MEMORY.is_dir() else None) as folder:
            vault = rx.Vault.create(Path(folder, "vault"), budget=1)
            return vault.release(frame, {"illness": list(labels)}, id="patient", epsilon="1", name="benchmark")

    text_ids = pa.array([f"{number:09d}" for number in shuffled.tolist()])
    bytes_of_codes, numbers = codes.view(np.uint8), rx.Categorical(range(values))
    contenders = [
        release(DICTIONARY, coded, ids, rx.Categorical(labels)),
        release(TEXT, text, ids, rx.Categorical(labels)),
        release(SHUFFLED, bytes_of_codes, shuffled, numbers),
        release(SHUFFLED_TEXT, bytes_of_codes, text_ids, numbers),
        Contender(FRAME, objects, release_frame),
        *(peer for peer in peers.peers(values, settings, leave_out) if peer.name == peers.GRR),
    ]
    return race(f"what you call, m = {values}", contenders, settings.rounds, note)


def call_comparisons(values: int, result: Race) -> list[Comparison]:
    """Return how many times as fast each call is as the peer."""
    found = TARGETS.items() if peers.GRR in result.names else ()
    return [compare(result, name, peers.GRR, target[values]) for name, target in found]
