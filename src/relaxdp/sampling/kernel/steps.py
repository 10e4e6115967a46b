"""Fresh draws by the compiled path: the law of a step as C takes it, and where its keystream goes on."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from relaxdp.sampling.entropy import Keystream

if TYPE_CHECKING:
    from relaxdp.sampling.kernel.loaded import Kernel

Codes = NDArray[np.unsignedinteger]
Kinds = Sequence[tuple[int, int, Fraction]]


class _Chance(ctypes.Structure):
    _fields_ = (
        ("digits", ctypes.c_uint64 * 2),
        ("tops", ctypes.c_uint8 * 2),
        ("decided", ctypes.c_uint8 * 2),
        ("is_decided", ctypes.c_uint8),
    )


class _Step(ctypes.Structure):
    _fields_ = (("values", ctypes.c_uint64), ("first", _Chance), ("redraw", _Chance))


class CompiledStep:
    """Steps for codes of one byte, in chunks of `most` objects.

    `first` and `redraw` are chances of objects whose ends agree, and of others.
    A chance is its first byte, its next 64 binary digits, and all that is left after the byte.
    """

    def __init__(
        self,
        found: Kernel,
        source: Keystream,
        values: int,
        first: Kinds,
        redraw: Kinds,
        most: int,
    ) -> None:
        self._kernel, self._source = found, source
        self._law = _Step(values, _chance(first), _chance(redraw))
        self._room, self._places = np.empty(most, np.uint8), np.empty(most + 2, np.uint32)

    def draw_into(self, result: Codes, lower: Codes, upper: Codes) -> int:
        """Draw into `result`, chunk after chunk; return how many objects are drawn. Codes are checked.

        It draws nothing if codes have gaps or are wider than a byte. It stops early if a chance ties with all of its
        digits in the next chunk: no byte of the keystream counts as read for that chunk.
        """
        if any(each.itemsize > 1 or not each.flags.c_contiguous for each in (result, lower, upper)):
            return 0
        drawn, self._source.position, largest = self._kernel.step(
            self._source.seed,
            self._source.position,
            ctypes.byref(self._law),
            (lower, upper, result),
            (self._room, self._places),
        )
        if largest >= self._law.values:
            raise ValueError("A code is outside of the alphabet.")
        return drawn


def _chance(kinds: Kinds) -> _Chance:
    tops, digits, rests = zip(*kinds, strict=True)
    made = _Chance(is_decided=all(rest in (0, 1) for rest in rests))
    for kind in (0, 1):
        made.tops[kind], made.digits[kind], made.decided[kind] = tops[kind], digits[kind], rests[kind] == 1
    return made
