"""A second, plain implementation of the encodings of stream version 1: one object, one block at a time, from the page.

It shares no code with the package (docs/stream.md is all that it follows).
"""

from __future__ import annotations

import hmac
import struct
import uuid
from collections.abc import Iterator
from hashlib import sha256
from itertools import count, islice
from typing import Any

import mpmath
from cryptography.hazmat.primitives.ciphers.algorithms import AES
from cryptography.hazmat.primitives.cmac import CMAC

ONE = 2**64
PRIME = 2**31 - 1


def lp(data: bytes) -> bytes:
    return struct.pack("<I", len(data)) + data


def enc(value: Any) -> bytes:
    if value is None:
        tag, payload = 7, b""  # the missing category among declared values
    elif isinstance(value, int):
        tag, payload = (1, struct.pack("<q", value)) if value < 2**63 else (2, struct.pack("<Q", value))
    elif isinstance(value, str):
        tag, payload = 3, value.encode()
    elif isinstance(value, uuid.UUID):
        tag, payload = 4, value.bytes
    elif isinstance(value, bytes):
        tag, payload = 5, value
    else:
        tag, payload = 6, struct.pack("<d", value)
    data = struct.pack("<BxxxI", tag, len(payload)) + payload
    return data + bytes(-len(data) % 16)


def derive(key: bytes, info: bytes) -> bytes:
    """HKDF-SHA256 with one round of expansion."""
    return hmac.digest(hmac.digest(b"relaxdp stream 1", key, sha256), info + b"\x01", sha256)


def block(key: bytes, message: bytes) -> tuple[int, int]:
    code = CMAC(AES(key))
    code.update(message)
    u, v = struct.unpack("<QQ", code.finalize())
    return u, v


def words(key: bytes, prefix: bytes, index: int = 0, number: int = 0) -> Iterator[tuple[int, int]]:
    """The words of one symbol of one object, try after try; `prefix` is whole blocks."""
    return (block(key, prefix + struct.pack("<QII", index, number, j)) for j in count())


def threshold(epsilon: str, alphabet: float, parts: int) -> int:
    """2^64 - ceil(2^64 m / (e^(eps / parts) - 1 + m)), with 400 bits."""
    with mpmath.workprec(400):
        power = mpmath.exp(mpmath.mpf(epsilon) / parts)
        return max(min(ONE - int(mpmath.ceil(ONE * alphabet / (power - 1 + alphabet))), ONE - 1), 0)


def symbol(key: bytes, object_bytes: bytes, index: int, number: int, alphabet: int, level: int, truth: int) -> int:
    """Walk the path of one symbol down to the threshold."""
    bound, report = ONE, truth
    for u, v in islice(words(key, object_bytes, index, number), 10_000):
        if u > ONE - 1 - ONE % bound or v > ONE - 1 - ONE % alphabet:
            continue
        bound = u % bound
        if bound < level:
            return report
        report = v % alphabet
        if bound == 0:
            return report
    raise AssertionError


def report(case: dict[str, Any], values: list[Any], object_id: Any, epsilon: str) -> tuple[int, bytes]:
    """The threshold and the packed report of one case at one level."""
    digest = sha256(struct.pack("<Q", len(values)) + b"".join(map(enc, values))).digest()
    hashed = case["encoding"] == "local-hash"
    alphabet = case["buckets"] if hashed else len(values) if case["encoding"] == "categorical" else 2
    params = struct.pack("<Q", alphabet) + lp(b"mersenne31") + digest if hashed else digest

    def derived(purpose: bytes) -> bytes:
        names = (case["release"], case["attribute"], case["encoding"])
        info = lp(purpose) + b"".join(lp(name.encode()) for name in names)
        return derive(bytes.fromhex(case["key"]), info + struct.pack("<Q", alphabet) + lp(params))

    me, index = enc(object_id), case["truth"]
    level = threshold(epsilon, alphabet, 2 if case["encoding"] == "unary-symmetric" else 1)
    if hashed:
        seed, _ = block(derived(b"seed"), me + bytes(16))
        slope, height = seed % 2**31 % PRIME, (seed >> 32) % 2**31 % PRIME
        place = (slope * pow(index + 506952122, 5, PRIME) + height) % PRIME
        bucket = symbol(derived(b"path"), me, index, 0, alphabet, level, place * alphabet // PRIME)
        size = ((alphabet - 1).bit_length() + 7) // 8
        return level, seed.to_bytes(8, "little") + bucket.to_bytes(size, "little")
    if case["encoding"] == "categorical":
        code = symbol(derived(b"path"), me, index, 0, alphabet, level, index)
        return level, code.to_bytes(((alphabet - 1).bit_length() + 7) // 8, "little")
    own = 1
    if case["encoding"] == "unary-optimised":
        own = block(derived(b"coin"), me + struct.pack("<QII", index, index, 0))[0] & 1
    packed = bytearray(-(-len(values) // 8))
    path = derived(b"path")
    for place in range(len(values)):
        packed[place // 8] |= symbol(path, me, index, place, 2, level, own if place == index else 0) << place % 8
    return level, bytes(packed)
