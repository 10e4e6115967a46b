"""The self-test that the compiled path must pass before it draws: wrong noise would not be noticed later."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from fractions import Fraction
from hashlib import sha256
from itertools import cycle
from math import prod
from typing import TYPE_CHECKING

import numpy as np

from relaxdp.sampling.entropy import Keystream
from relaxdp.sampling.kernel.c_library import Codes, CompiledBridgeStep, Texts
from relaxdp.sampling.keyed_stream import Ids, MacInputs

if TYPE_CHECKING:
    from relaxdp.sampling.kernel.c_library import Kernel

# NIST SP 800-38B, appendix D.3 (AES-256), the message of four blocks; and the second vector of docs/stream.md.
_NIST_KEY = bytes.fromhex("603deb1015ca71be2b73aef0857d77811f352c073b6108d72d9810a30914dff4")
_NIST_MESSAGE = bytes.fromhex(
    "6bc1bee22e409f96e93d7e117393172aae2d8a571e03ac9c9eb76fac45af8e51"
    "30c81c46a35ce411e5fbc1191a0a52eff69f2445df4f9b17ad2b417be66c3710"
)
_NIST_CODE = bytes.fromhex("e1992190549f6ed5696a2c056c315410")
_PATH_KEY = bytes.fromhex("ba2c43f230a589d03e3f7b5c24942284a48da269652075cb93375e7d5493e01e")
_PATH = {921569357186432047: 1, 4517951884236491746: 1, 8524556932045589908: 0, 14048932482948833964: 1}

# What NumPy draws in the cases below: tests/unit/sampling/test_kernel_self_test.py draws it again.
DIGESTS = {
    "paths": "0759c7df895811e97b4a7aa7275c95a0",
    "steps": "cab0ed4397667ffd8f7d5df744942d1d",
}

# Values and the type of their codes: every width, and bytes that are divided in different ways, or not at all.
KINDS = ((2, "u1"), (3, "u1"), (200, "u1"), (256, "u1"), (300, "u2"), (70_000, "u4"), (2**40, "u8"))
BYTES = 4  # so many of them are codes of one byte
OBJECTS = 37  # whole groups for each set of instructions, and some that are left
LEVELS = (2**43, 2**61 + 3, 2**62 + 5, 2**63 + 7)  # thresholds: each is walked in another way
# The chances of a step: 1/5 and 3/7 to flip, 0 and 3/5 to go to the upper report, 2/5 and 2/7 to draw any value.
FLIP = ((51, 0x3333333333333333, Fraction(1, 5)), (109, 0xB6DB6DB6DB6DB6DB, Fraction(5, 7)))
TO_UPPER = ((0, 0, Fraction(0)), (153, 0x9999999999999999, Fraction(3, 5)))
REDRAW = ((102, 0x6666666666666666, Fraction(2, 5)), (73, 0x2492492492492492, Fraction(1, 7)))
STEPS, MAX_CHUNK = 1_500, 1_103  # a chunk and a part of one; more than the keystream makes at once, and an odd number


def has_correct_results(kernel: Kernel) -> bool:
    """Tell whether published answers and every way in which the compiled path draws are correct."""
    blocks = np.frombuffer(_NIST_MESSAGE, "<u8").reshape(-1, 1, 2)
    sums = kernel.compute_tags(_NIST_KEY, MacInputs(None, blocks[:-1]), blocks[-1, :, 0], blocks[-1, :, 1])[1]
    if sums.tobytes() != _NIST_CODE:
        return False
    object_id, index = MacInputs(Ids.from_integers(np.array([-7]))), np.array([1], np.uint64)
    for threshold, report in _PATH.items():
        target = np.array([[1]], np.uint8)
        kernel.replace_symbols_by_reports(_PATH_KEY, 2, threshold, object_id, index, target)
        if target[0, 0] != report:
            return False
    texts = _make_test_texts()
    numbers = np.arange(OBJECTS) % (OBJECTS - 1)  # the last one is the first one again
    if not kernel.are_distinct(texts) or not kernel.are_distinct(numbers[1:]) or kernel.are_distinct(numbers):
        return False
    if not np.array_equal(kernel.find_labels(texts, texts), np.arange(OBJECTS)):  # type: ignore[arg-type]
        return False
    asked = {"paths": _draw_paths, "steps": _draw_bridge_steps}
    return all(compute_digest(draws(kernel)) == DIGESTS[name] for name, draws in asked.items())


def compute_digest(draws: Iterable[Codes]) -> str:
    """Return a short digest of draws, to compare with that of correct ones."""
    made = sha256()
    for codes in draws:
        made.update(codes.astype("<u8").tobytes())
    return made.hexdigest()[:32]


def make_test_codes(values: int, dtype: str, shape: tuple[int, ...], factor: int) -> Codes:
    """Return a column of codes that look random, another one for another factor."""
    numbers = np.arange(1, 1 + prod(shape), dtype=np.uint64) * np.uint64(factor)
    return ((numbers >> np.uint64(20)) % np.uint64(values)).astype(dtype).reshape(shape)


def make_test_report_pairs(values: int, dtype: str, shape: tuple[int, ...]) -> tuple[Codes, Codes]:
    """Return pairs of lower and upper codes, of which every other one agrees."""
    factors = 0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F
    lower, upper = (make_test_codes(values, dtype, shape, factor) for factor in factors)
    lower.reshape(-1)[::2] = upper.reshape(-1)[::2]
    return lower, upper


def _make_test_texts() -> Texts:
    ids = make_test_mac_inputs()[1].ids
    assert ids is not None  # noqa: S101 (these messages have ids)
    return ids.offsets, ids.data


def make_test_mac_inputs() -> tuple[MacInputs, MacInputs]:
    """Return ids that are whole numbers, and others that are bytes of several lengths, as inputs of the MAC."""
    data = make_test_codes(256, "u1", (OBJECTS * OBJECTS,), 0xD6E8FEB86659FD93)
    offsets = np.arange(OBJECTS + 1, dtype=np.int64) ** 2 // 2
    return MacInputs(Ids.from_integers(np.arange(-9, OBJECTS - 9))), MacInputs(Ids("bytes", 3, None, offsets, data))


def _draw_paths(kernel: Kernel) -> Iterator[Codes]:
    index = np.arange(OBJECTS, dtype=np.uint64)
    for (values, kind), of in zip(KINDS, cycle(make_test_mac_inputs()), strict=False):
        for level, symbols in zip(LEVELS, (1, 3, 1, 2), strict=True):
            drawn = make_test_codes(values, kind, (OBJECTS, symbols), level)
            kernel.replace_symbols_by_reports(_PATH_KEY, values, level, of, index, drawn)
            yield drawn


def _draw_bridge_steps(kernel: Kernel) -> Iterator[Codes]:
    source = Keystream(_PATH_KEY + bytes(16))
    for values, kind in KINDS[:BYTES]:
        lower, upper = make_test_report_pairs(values, kind, (STEPS,))
        drawn = np.zeros_like(upper)
        step = CompiledBridgeStep(kernel, source, values, FLIP if values == 2 else TO_UPPER, REDRAW, MAX_CHUNK)
        step.draw_into(drawn, lower, upper)
        yield drawn
    yield np.array([source.position], np.uint64)
