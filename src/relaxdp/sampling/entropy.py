"""Fresh randomness, from the operating system."""

from __future__ import annotations

import os
from typing import NoReturn, Protocol

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from numpy.typing import NDArray


class Entropy(Protocol):
    """A source of randomness. Samplers take it as an argument, so that a test can feed every byte."""

    def make_keystream(self) -> Bytestream:
        """Return a keystream, a source of uniform bytes, for one call of a sampler."""
        ...


class Bytestream(Protocol):
    """A source of uniform bytes."""

    def fill(self, buffer: NDArray[np.uint8]) -> None:
        """Overwrite a contiguous array with independent uniform bytes."""
        ...


class Keystream:
    """AES-256 in counter mode: uniform bytes as far as AES is pseudo-random, faster than any NumPy generator."""

    # Counter mode over a constant array of zeros, a piece at a time, so that memory does not grow with the request.
    _ZEROS = bytes(1 << 16)

    def __init__(self, seed: bytes) -> None:
        """Start the keystream of a 48-byte seed (32 bytes of key, 16 of counter)."""
        self.seed = seed[:48]
        self.position = 0
        """The place of the next byte. Whoever reads elsewhere what the seed gives moves it on."""
        self._reached = -1

    def __reduce__(self) -> NoReturn:
        raise TypeError("A keystream cannot be copied or pickled. Its bytes would be drawn twice.")

    def fill(self, buffer: NDArray[np.uint8]) -> None:
        """Overwrite `buffer` with the next bytes of the keystream."""
        if self._reached != self.position:
            self._seek()
        target = buffer.data
        for start in range(0, len(target), len(self._ZEROS)):
            piece = target[start : start + len(self._ZEROS)]
            self._encryptor.update_into(self._ZEROS[: len(piece)], piece)
        self.position += len(target)
        self._reached = self.position

    def _seek(self) -> None:
        blocks, skipped = divmod(self.position, 16)
        counter = (int.from_bytes(self.seed[32:], "big") + blocks) % 2**128
        self._encryptor = Cipher(algorithms.AES(self.seed[:32]), modes.CTR(counter.to_bytes(16, "big"))).encryptor()
        self._encryptor.update(bytes(skipped))


class SystemBytes:
    """Bytes straight from the operating system, for one individual."""

    def fill(self, buffer: NDArray[np.uint8]) -> None:
        """Overwrite `buffer` with fresh bytes."""
        buffer[:] = np.frombuffer(os.urandom(len(buffer)), np.uint8)


class SystemEntropy:
    """The operating system's randomness, which seeds a new keystream for each call of a sampler.

    Nothing is remembered between calls, so a fork or a restored snapshot of a process cannot repeat a draw.
    """

    def __init__(self, *, is_expanded: bool = True) -> None:
        self._is_expanded = is_expanded

    def make_keystream(self) -> Bytestream:
        """Return a keystream with a fresh seed, or the operating system's own bytes."""
        return Keystream(os.urandom(48)) if self._is_expanded else SystemBytes()
