"""The frozen stream of k-ary randomized response, written again from its specification to check the product by it."""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Iterator, Sequence
from decimal import ROUND_CEILING, Decimal, localcontext
from typing import Any

from cryptography.hazmat.primitives.ciphers.algorithms import AES
from cryptography.hazmat.primitives.cmac import CMAC
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

ONE = 1 << 64


def compute_threshold(epsilon: str, values: int) -> int:
    """Return the threshold of a level: ONE times the retention, rounded down."""
    with localcontext() as context:
        context.prec = 80
        noise = ONE * values / (Decimal(epsilon).exp() - 1 + values)
        return ONE - int(noise.to_integral_value(ROUND_CEILING))


def draw_report(key: bytes, name: str, column: str, values: Sequence[Any], id: Any, value: Any, epsilon: str) -> Any:
    """Return the report of one individual at one level."""
    digest = hashlib.sha256(_u64(len(values)) + b"".join(map(_encode, values))).digest()
    texts = (b"path", name.encode(), column.encode(), b"categorical")
    info = b"".join(map(_prefix, texts)) + _u64(len(values)) + _prefix(digest)
    derived = HKDF(SHA256(), 32, b"relaxdp stream 1", info).derive(key)
    index, limit = values.index(value), compute_threshold(epsilon, len(values))
    report = index
    for position, drawn in _draws(derived, _encode(id) + _u64(index), len(values)):
        if position < limit:
            return values[report]
        report = drawn
        if position == 0:
            return values[report]
    raise AssertionError("the draws never end")


def _draws(derived: bytes, message: bytes, values: int) -> Iterator[tuple[int, int]]:
    """Return positions, each below the one before, and values."""
    bound, counter = ONE, 0
    while True:
        mac = CMAC(AES(derived))
        mac.update(message + (0).to_bytes(4, "little") + counter.to_bytes(4, "little"))
        block, counter = mac.finalize(), counter + 1
        first, second = int.from_bytes(block[:8], "little"), int.from_bytes(block[8:], "little")
        if first < ONE - ONE % bound and second < ONE - ONE % values:
            yield first % bound, second % values
            bound = max(1, first % bound)


def _encode(value: Any) -> bytes:
    if isinstance(value, uuid.UUID):
        tag, payload = 4, value.bytes
    elif isinstance(value, int):
        is_signed = value < 1 << 63
        tag, payload = 1 if is_signed else 2, value.to_bytes(8, "little", signed=is_signed)
    elif isinstance(value, bytes):
        tag, payload = 5, value
    else:
        tag, payload = 3, value.encode()
    plain = bytes([tag, 0, 0, 0]) + len(payload).to_bytes(4, "little") + payload
    return plain + bytes(-len(plain) % 16)


def _prefix(text: bytes) -> bytes:
    return len(text).to_bytes(4, "little") + text


def _u64(number: int) -> bytes:
    return number.to_bytes(8, "little")
