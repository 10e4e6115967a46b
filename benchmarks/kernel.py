"""The compiled path beside NumPy's, the AES blocks that a path cannot do without, and histograms of bytes."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from benchmarks.results import Comparison, compare
from benchmarks.settings import Settings
from benchmarks.timing import Contender, Race, race
from relaxdp.mechanisms.report_arrays import count_codes
from relaxdp.sampling.kernel.c_library import SETTING
from relaxdp.sampling.keyed_path import NumpyPathSampler
from relaxdp.sampling.keyed_stream import CHUNK, AesBlockCipher, Ids, MacInputs, Words
from relaxdp.theory.epsilon import compute_threshold

BLOCKS = "the same AES blocks, cryptography"
HISTOGRAM = "relaxdp histogram, m = {values}"
BINCOUNT = "np.bincount, m = {values}"
HISTOGRAM_TARGET = 10.0
ALPHABETS = (2, 10, 256)


def numpy_name(name: str) -> str:
    """Return what a contender is called where NumPy draws."""
    return f"{name}, NumPy"


def by_numpy(contender: Contender) -> Contender:
    """Return the same contender without the compiled path."""

    def run() -> object:
        before = os.environ.get(SETTING)
        os.environ[SETTING] = "off"
        try:
            return contender.run()
        finally:
            if before is None:
                del os.environ[SETTING]
            else:
                os.environ[SETTING] = before

    return replace(contender, name=numpy_name(contender.name), run=run)


def beside_numpy(result: Race, own: str, rival: str, target: float | None) -> list[Comparison]:
    """Return how a contender did with the compiled path, which is held to the target, and without it."""
    return [compare(result, own, rival, target), compare(result, numpy_name(own), rival, None)]


class Counting(AesBlockCipher):
    """A cipher that counts its blocks."""

    blocks = 0

    def encrypt(self, rows: Words) -> Words:
        self.blocks += len(rows)
        return super().encrypt(rows)


def block_contender(values: int, epsilon: str, objects: int) -> Contender:
    """Return as many AES blocks as the paths of so many objects need, encrypted by the library as fast as it can."""
    path = NumpyPathSampler(bytes(32), values, compute_threshold(epsilon, values))
    counting = path.cipher = Counting(bytes(32))
    ids = MacInputs(Ids.from_integers(np.arange(CHUNK)))
    path.replace_symbols_by_reports(ids, np.zeros(CHUNK, np.uint64), np.zeros((CHUNK, 1), np.uint8))
    return encryptions(counting.blocks * objects // CHUNK, objects)


def encryptions(blocks: int, objects: int) -> Contender:
    """Return so many AES blocks for so many objects, in pieces that stay in the cache."""
    encryptor = Cipher(algorithms.AES(os.urandom(32)), modes.ECB()).encryptor()
    source, room = np.zeros(2 * CHUNK, np.uint64), np.zeros(2 * CHUNK + 2, np.uint64)

    def run() -> None:
        for start in range(0, blocks, CHUNK):
            part = source[: 2 * min(CHUNK, blocks - start)]
            encryptor.update_into(part.data.cast("B"), room.data.cast("B"))

    return Contender(BLOCKS, objects, run)


def histogram_race(settings: Settings, note: Callable[[str], None]) -> Race:
    """Time histograms of one-byte reports."""
    contenders = []
    for values in ALPHABETS:
        codes = np.random.default_rng(1).integers(0, values, settings.step_objects, dtype=np.uint8)
        own = Contender(HISTOGRAM.format(values=values), len(codes), partial(count_codes, codes, values))
        rival = Contender(BINCOUNT.format(values=values), len(codes), partial(np.bincount, codes))
        contenders += [own, by_numpy(own), rival]
    return race("histogram", contenders, settings.rounds, note)


def histogram_comparisons(result: Race) -> list[Comparison]:
    """Return what histograms are held to: a tenth of the time."""
    return [
        row
        for values in ALPHABETS
        for row in beside_numpy(
            result, HISTOGRAM.format(values=values), BINCOUNT.format(values=values), HISTOGRAM_TARGET
        )
    ]
