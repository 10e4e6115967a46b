"""Bloom filters, numbers and waves, by the plain implementation of stream version 1: truths that have no index.

Like its sister it shares no code with the package (docs/stream.md and docs/rappor.md).
"""

from __future__ import annotations

import struct
from fractions import Fraction
from hashlib import md5, sha512
from typing import Any

from tests.vectors.scalar import ONE, block, derive, enc, lp, symbol, threshold

NO_COHORT = 2**32 - 1


def derived(case: dict[str, Any], purpose: bytes, params: bytes, alphabet: int = 2) -> bytes:
    names = (case["release"], case["attribute"], case["encoding"])
    info = lp(purpose) + b"".join(lp(name.encode()) for name in names)
    return derive(bytes.fromhex(case["key"]), info + struct.pack("<Q", alphabet) + lp(params))


def bloom_report(case: dict[str, Any], object_id: Any, epsilon: str) -> tuple[int, int, bytes]:
    """The threshold, the cohort and the packed report of one case at one level."""
    bits, hashes, cohorts, word = case["bits"], case["hashes"], case["cohorts"], case["truth"]
    name = b"boolean" if bits == 1 else b"md5-bytes" if bits <= 256 else b"sha512-words"
    me = enc(object_id)
    drawn, _ = block(
        derived(case, b"cohort", struct.pack("<IIII", bits, hashes, cohorts, NO_COHORT) + lp(name)), me + bytes(16)
    )
    cohort = drawn % cohorts
    message = cohort.to_bytes(4, "big") + word.encode()
    if bits == 1:
        ones = {0} if word == "true" else set()
    elif bits <= 256:
        ones = {byte % bits for byte in md5(message, usedforsecurity=False).digest()[:hashes]}
    else:
        digest = sha512(message).digest()
        ones = {int.from_bytes(digest[4 * i : 4 * i + 4], "big") % bits for i in range(hashes)}
    level = threshold(epsilon, 2, min(2 * hashes, bits))
    path = derived(case, b"path", struct.pack("<IIII", bits, hashes, cohorts, cohort) + lp(name))
    packed = bytearray(-(-bits // 8))
    for place in range(bits):
        packed[place // 8] |= symbol(path, me + enc(word), 0, place, 2, level, int(place in ones)) << place % 8
    return level, cohort, bytes(packed)


def numeric_report(case: dict[str, Any], object_id: Any, epsilon: str) -> tuple[int, float]:
    """The threshold and the reported end of one case at one level."""
    low, high, number = (float(case[name]) + 0.0 for name in ("low", "high", "truth"))
    params = struct.pack("<dd", low, high) + lp(b"identity")
    message = enc(object_id) + enc(number)
    word, _ = block(derived(case, b"round", params), message + bytes(16))
    boundary = ONE * (Fraction(number) - Fraction(low)) // (Fraction(high) - Fraction(low))
    level = threshold(epsilon, 2, 1)
    code = symbol(derived(case, b"path", params), message, 0, 0, 2, level, int(word < boundary))
    return level, high if code else low


def wave_report(case: dict[str, Any], object_id: Any, epsilon: str) -> tuple[int, int]:
    """The threshold and the reported place of one case at one level."""
    low, high, number = (float(case[name]) + 0.0 for name in ("low", "high", "truth"))
    bins, window = case["bins"], case["window"]
    places = bins + window - 1
    if case["clip"]:
        number = min(max(number, low), high)
    name = b"clip" if case["clip"] else b"identity"
    params = struct.pack("<dd", low, high) + lp(name) + struct.pack("<II", bins, window)
    message = enc(object_id) + enc(number)
    word, _ = block(derived(case, b"round", params, places), message + bytes(16))
    coin, _ = block(derived(case, b"coin", params, places), message + bytes(16))
    place = (bins - 1) * (Fraction(number) - Fraction(low)) / (Fraction(high) - Fraction(low))
    lower = int(place)
    truth = lower + (word < ONE * (place - lower) // 1) + coin % window
    level = threshold(epsilon, places / window, 1)  # exact, because the window is a power of two
    return level, symbol(derived(case, b"path", params, places), message, 0, 0, places, level, truth)
