"""CMAC over arrays: a few AES-ECB passes with XORs between, the same bytes as one CMAC call per object."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from numpy.typing import NDArray

Words = NDArray[np.uint64]

# So many objects at a time that all their words stay in the processor's cache.
CHUNK = 1 << 16
# From so many symbols on, an object's symbols are the longer axis.
_MANY = 32


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
        """Return the chaining state after whole message blocks: `blocks` is (blocks, objects, 2).

        Like `encrypt`, it returns the buffer that the next call reuses.
        """
        state = self.encrypt(blocks[0])
        for block in blocks[1:]:
            state = self.encrypt(state ^ block)
        return state

    def last_block(self, state: Words, first_word: Words | np.uint64, symbol: Words | int) -> Words:
        """Return the input of the last AES pass of CMAC for try 0; a try's number goes into the last four bytes."""
        rows = np.empty_like(state)  # column by column: a broadcast over rows of two is six times slower
        np.bitwise_xor(state[:, 0], first_word ^ self.subkey[0], out=rows[:, 0])
        np.bitwise_xor(state[:, 1], np.uint64(symbol) ^ self.subkey[1], out=rows[:, 1])
        return rows

    def last_blocks(self, state: Words, first_word: Words, symbols: Words) -> Words:
        """Return the same for every one of several symbols, object by object: (objects * symbols) rows."""
        rows = np.empty((len(state), len(symbols), 2), dtype=np.uint64)
        first = (state[:, 0] ^ first_word ^ self.subkey[0])[:, None]
        second, numbers = state[:, 1:] ^ self.subkey[1], symbols[None, :]
        if len(symbols) >= _MANY:
            rows[:, :, 0] = first
            np.bitwise_xor(second, numbers, out=rows[:, :, 1])
        else:  # NumPy's inner loop runs over the last axis: it must not be the short one
            for place in range(len(symbols)):
                rows[:, place, 0] = first[:, 0]
                np.bitwise_xor(second[:, 0], symbols[place], out=rows[:, place, 1])
        return rows.reshape(-1, 2)

    def words_of(self, row: Words) -> Iterator[tuple[int, int]]:
        """Return the words of one object, try after try, from its last block of try 0."""
        start = int(row[1])
        for j in range(2**32):
            again = np.array([[row[0], np.uint64(start ^ j << 32)]], dtype=np.uint64)
            position, value = self.encrypt(again)[0]
            yield int(position), int(value)


def _first_subkey(encrypted_zero: bytes) -> Words:
    """Return CMAC's first subkey: E(0) doubled in GF(2^128), as two little-endian words of its bytes."""
    number = int.from_bytes(encrypted_zero, "big") << 1
    if number >> 128:
        number ^= (1 << 128) | 0x87
    return np.frombuffer(number.to_bytes(16, "big"), dtype="<u8").astype(np.uint64)
