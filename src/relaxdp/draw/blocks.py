"""CMAC over arrays: a few AES-ECB passes with XORs between, the same bytes as one CMAC call per object."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from numpy.typing import NDArray

Words = NDArray[np.uint64]

# So many objects at a time that all their words stay in the processor's cache.
CHUNK = 1 << 15


class RowCipher:
    """AES-256 under one derived key, over rows of two 64-bit words (one block each)."""

    def __init__(self, derived: bytes) -> None:
        # ECB is not used to hide anything here: it is the bare permutation that CMAC is made of.
        self._encryptor: Any = Cipher(algorithms.AES(derived), modes.ECB()).encryptor()  # noqa: S305
        self.subkey = _first_subkey(self._encryptor.update(bytes(16)))
        self._room = np.empty(2 * CHUNK + 2, dtype=np.uint64)  # the cipher asks for one spare block

    def encrypt(self, rows: Words) -> Words:
        """Return the encrypted rows, in a buffer that the next call reuses. At most CHUNK rows, contiguous."""
        count = len(rows)
        self._encryptor.update_into(rows.data.cast("B"), self._room.data.cast("B"))
        return self._room[: 2 * count].reshape(count, 2)

    def absorb(self, blocks: Words) -> Words:
        """Return the chaining state after whole message blocks: `blocks` is (objects, blocks, 2)."""
        state = self.encrypt(np.ascontiguousarray(blocks[:, 0]))
        for position in range(1, blocks.shape[1]):
            state = self.encrypt(state ^ blocks[:, position])
        return state.copy()

    def last_block(self, state: Words, first_word: Words | np.uint64, symbol: Words | int) -> Words:
        """Return the input of the last AES pass of CMAC for try 0; `retry` moves it on to the next try."""
        rows = np.empty_like(state)
        np.bitwise_xor(state[:, 0], first_word ^ self.subkey[0], out=rows[:, 0])
        np.bitwise_xor(state[:, 1], np.uint64(symbol) ^ self.subkey[1], out=rows[:, 1])
        return rows

    def words_of(self, row: Words) -> Iterator[tuple[int, int]]:
        """Return the words of one object, try after try, from its last block of try 0."""
        rows, j = row.reshape(1, 2).copy(), 0
        while True:
            position, value = self.encrypt(rows)[0]
            yield int(position), int(value)
            j += 1
            retry(rows, j)


def retry(rows: Words, j: int) -> None:
    """Turn the last block of try j - 1 into that of try j, in place."""
    rows[:, 1] ^= np.uint64(((j - 1) ^ j) << 32)


def _first_subkey(encrypted_zero: bytes) -> Words:
    """Return CMAC's first subkey: E(0) doubled in GF(2^128), as two little-endian words of its bytes."""
    number = int.from_bytes(encrypted_zero, "big") << 1
    if number >> 128:
        number ^= (1 << 128) | 0x87
    return np.frombuffer(number.to_bytes(16, "big"), dtype="<u8").astype(np.uint64)
