"""Load the compiled path, if it was built and this processor has what it needs; otherwise NumPy draws.

`RELAXDP_KERNEL=off` leaves it alone; `aesni`, `vaes`, `avx512` and `neon` ask for one set of instructions.
"""

from __future__ import annotations

import ctypes
import os
import secrets
from collections.abc import Sequence
from fractions import Fraction
from functools import cache
from math import isqrt
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from relaxdp.errors import IdError, KernelError
from relaxdp.sampling.entropy import Keystream
from relaxdp.sampling.keyed_stream import MacInputs, Words

_UNSET = "Run: unset {setting}"

SETTING = "RELAXDP_KERNEL"
LIBRARY = Path(__file__).with_name("relaxdp_kernel.so")  # where build.py puts it
_VERSION = 9  # KERNEL_VERSION in kernel.h
_SETS = {"aesni": 1, "vaes": 2, "avx512": 3, "neon": 4}

Codes = NDArray[np.unsignedinteger]
Kinds = Sequence[tuple[int, int, Fraction]]
Texts = tuple[NDArray[np.signedinteger], NDArray[np.uint8]]
"""Text or bytes as Arrow has them: offsets of four or eight bytes, and the bytes of all rows."""

_TABLE_SLOTS, _PIECE_BITS = 1 << 14, 12  # SLOTS in distinct.c, and so many ids in a piece, on average at most
_MAX_LABELS = 1 << 12  # more of them would not stay in the cache

_Int, _Word, _Pointer = ctypes.c_int, ctypes.c_uint64, ctypes.c_void_p


class _PathLevelStruct(ctypes.Structure):
    _fields_ = (("threshold", _Word), ("values", _Word))


class _MacInputsStruct(ctypes.Structure):
    """`struct messages` of kernel.h. The arrays are the caller's and must live as long as the call."""

    _fields_ = (
        ("count", _Word),
        ("integers", _Pointer),
        ("is_unsigned", _Word),
        ("offsets", _Pointer),
        ("bytes", _Pointer),
        ("size", _Word),
        ("tag", _Word),
        ("more", _Pointer),
        ("more_blocks", _Word),
    )


class _ColumnStruct(ctypes.Structure):
    """`struct column` of kernel.h. The arrays are the caller's and must live as long as the call."""

    _fields_ = (
        ("count", _Word),
        ("integers", _Pointer),
        ("offsets", _Pointer),
        ("width", _Word),
        ("bytes", _Pointer),
        ("size", _Word),
    )


class _CodeColumnsStruct(ctypes.Structure):
    _fields_ = (("lower", _Pointer), ("upper", _Pointer), ("result", _Pointer), ("count", _Word))


class _StepPositionStruct(ctypes.Structure):
    _fields_ = (("position", _Word), ("largest", _Word))


class _ProbabilityStruct(ctypes.Structure):
    _fields_ = (
        ("digits", ctypes.c_uint64 * 2),
        ("tops", ctypes.c_uint8 * 2),
        ("decided", ctypes.c_uint8 * 2),
        ("is_decided", ctypes.c_uint8),
    )


class _BridgeStepStruct(ctypes.Structure):
    _fields_ = (("values", ctypes.c_uint64), ("first", _ProbabilityStruct), ("redraw", _ProbabilityStruct))


class Kernel:
    """The compiled path with one set of instructions. Its functions keep nothing, and release the GIL."""

    def __init__(self, library: ctypes.CDLL, name: str) -> None:
        self.name = name
        self._set = _SETS[name]
        self._draw, self._tags = library.relaxdp_draw, library.relaxdp_tags
        self._draw.argtypes = [_Int, ctypes.c_char_p, _Pointer, _Pointer, _Pointer, _Word, _Pointer, _Word]
        self._tags.argtypes = [_Int, ctypes.c_char_p, _Pointer, _Pointer, _Pointer, _Pointer, _Pointer]
        self._step, self._histogram = library.relaxdp_step, library.relaxdp_histogram
        self._step.argtypes = [_Int, ctypes.c_char_p, _Pointer, _Pointer, _Word, *[_Pointer] * 3]
        self._histogram.argtypes = [_Int, _Pointer, _Word, _Word, _Pointer]
        self._letters = library.relaxdp_letters
        self._letters.argtypes = [_Pointer, _Word, _Word, _Pointer, _Pointer]
        self._distinct, self._labels = library.relaxdp_distinct, library.relaxdp_labels
        self._distinct.argtypes = [_Pointer, _Pointer, _Word, _Word, *[_Pointer] * 3]
        self._labels.argtypes = [_Pointer, _Pointer, _Word, *[_Pointer] * 2]
        for function in (self._draw, self._tags, self._step, self._labels):
            function.restype = _Word
        self._histogram.restype = None

    def replace_symbols_by_reports(
        self,
        derived_key: bytes,
        n_values: int,
        threshold: int,
        messages: MacInputs,
        true_indices: Words,
        symbols: NDArray[np.unsignedinteger],
    ) -> None:
        """Write the reports of all symbols over `symbols`, (objects, symbols) of truths."""
        objects, n_symbols = symbols.shape
        if not symbols.flags.carray or {len(messages), len(true_indices)} != {objects}:
            raise ValueError("The numbers of true values, messages and indices differ.")
        level, true_indices = _PathLevelStruct(threshold, n_values), _require_c_array(true_indices, np.uint64)
        given, _arrays = _make_mac_inputs_struct(messages)
        pointers = (derived_key, ctypes.byref(level), ctypes.byref(given), true_indices.ctypes.data)
        _reject_damaged_offsets(self._draw(self._set, *pointers, n_symbols, symbols.ctypes.data, symbols.itemsize))

    def compute_tags(
        self, derived_key: bytes, messages: MacInputs, indices: Words | None, symbols: Words | None
    ) -> tuple[Words, Words]:
        """Return the first word of each message's tag, and the sum of all tags."""
        words, sums = np.empty(len(messages), np.uint64), np.zeros(2, np.uint64)
        last = [None if each is None else _require_c_array(each, np.uint64) for each in (indices, symbols)]
        if any(each is not None and len(each) != len(messages) for each in last):
            raise ValueError("The numbers of messages and last words differ.")
        places = [None if each is None else each.ctypes.data for each in last]
        given, _arrays = _make_mac_inputs_struct(messages)
        tags = (words.ctypes.data, sums.ctypes.data)
        _reject_damaged_offsets(self._tags(self._set, derived_key, ctypes.byref(given), *places, *tags))
        return words, sums

    def draw_bridge_step(
        self, seed: bytes, position: int, step: Any, codes: Sequence[NDArray[Any]], buffers: Sequence[NDArray[Any]]
    ) -> tuple[int, int, int]:
        """Draw a step from the lower and upper codes into the result, in chunks of as many objects as the buffers hold.

        Return how many objects are drawn, where the keystream goes on after them, and the largest code of both ends.
        """
        lower, upper, result = codes
        flags, places = buffers
        if {(len(each), each.itemsize) for each in codes} != {(len(result), 1)}:
            raise ValueError("The codes must have the same length and one byte each.")
        columns = _CodeColumnsStruct(*(each.ctypes.data for each in (lower, upper, result)), len(result))
        reached, most, where = _StepPositionStruct(position), len(places) - 2, (flags.ctypes.data, places.ctypes.data)
        if len(flags) < most:
            raise ValueError("The buffer for flags is too small for the chunk.")
        drawn: int = self._step(self._set, seed, step, ctypes.byref(columns), most, *where, ctypes.byref(reached))
        return drawn, reached.position, reached.largest

    def count_codes(self, codes: NDArray[np.uint8], size: int) -> NDArray[np.int64] | None:
        """Return how often each of 0 .. size - 1 occurs; None where a code is outside."""
        counts = np.zeros(256, np.int64)
        self._histogram(self._set, codes.ctypes.data, len(codes), size, counts.ctypes.data)
        return counts[:size] if int(counts[:size].sum()) == len(codes) else None

    def find_ascii_letters(self, code_points: NDArray[np.uint32]) -> tuple[NDArray[np.int64], NDArray[np.uint8]] | None:
        """Return the offsets of the rows of code points, and the letters of all; None unless all are ASCII.

        NULs end a row. A NUL that has a letter after it gives None, too.
        """
        count, width = code_points.shape
        points, offsets = _require_c_array(code_points, np.uint32), np.empty(count + 1, np.int64)
        letters = np.empty(points.size + 16, np.uint8)  # 16 are written at a time
        if not self._letters(points.ctypes.data, count, width, offsets.ctypes.data, letters.ctypes.data):
            return None
        return offsets, letters[: offsets[-1]]

    def are_distinct(self, ids: NDArray[np.integer] | Texts) -> bool:
        """Return True only if all ids are distinct. False may also mean that the hashes of two ids are equal."""
        column, _arrays = _make_column_struct(ids)
        bits = max(0, (column.count - 1).bit_length() - _PIECE_BITS)
        mean = (column.count >> bits) + 1
        capacity = mean + 10 * isqrt(mean) + 10  # ten standard deviations
        hashes, fills = np.empty(capacity << bits, np.uint64), np.zeros(1 << bits, np.uint64)
        table, secret = np.empty(_TABLE_SLOTS, np.uint64), secrets.token_bytes(24)
        room = (hashes.ctypes.data, fills.ctypes.data, table.ctypes.data)
        return bool(self._distinct(ctypes.byref(column), secret, bits, capacity, *room))

    def find_labels(self, labels: Texts, texts: Texts) -> Words | None:
        """Return the position of each text among the labels; None if one is missing or there are too many labels."""
        (values, _values), (cells, _cells) = _make_column_struct(labels), _make_column_struct(texts)
        if values.count > _MAX_LABELS:
            return None
        bits = max(10, (8 * values.count).bit_length())  # so many slots that labels seldom meet in one
        slots, places = np.zeros(4 << bits, np.uint64), np.empty(cells.count, np.uint64)
        room = (slots.ctypes.data, places.ctypes.data)
        found = self._labels(ctypes.byref(values), ctypes.byref(cells), bits, *room)
        return places if found == cells.count else None


def _make_column_struct(cells: NDArray[np.integer] | Texts) -> tuple[_ColumnStruct, object]:
    """Return a column as the library takes it, and the arrays that it points to, which must live as long."""
    if isinstance(cells, tuple):
        offsets, data = (np.require(each, None, ["C_CONTIGUOUS", "ALIGNED"]) for each in cells)
        where = (offsets.ctypes.data, offsets.itemsize, data.ctypes.data, len(data))
        return _ColumnStruct(len(offsets) - 1, None, *where), (offsets, data)
    # Every number keeps its 64 bits, so different numbers of one column stay different.
    numbers = _require_c_array(cells, np.uint64 if cells.dtype.kind == "u" else np.int64)
    return _ColumnStruct(len(numbers), numbers.ctypes.data), numbers


def _reject_damaged_offsets(damaged_row: int) -> None:
    """Reject an Arrow array whose offsets point outside of its buffer."""
    if damaged_row:
        raise IdError(
            "The id column is damaged: its Arrow array refers to bytes outside of its buffer.",
            hint="Write the id column again, for example with pa.array(ids.to_pylist()).",
        )


def _make_mac_inputs_struct(messages: MacInputs) -> tuple[_MacInputsStruct, list[NDArray[Any]]]:
    """Return messages as the library takes them, and the arrays that it points to, which must live as long."""
    made, arrays = _MacInputsStruct(count=len(messages)), []

    def point(array: NDArray[Any], kind: type[np.generic]) -> int:
        arrays.append(_require_c_array(array, kind))
        return int(arrays[-1].ctypes.data)

    ids = messages.ids
    if ids is not None and ids.integers is not None:
        made.is_unsigned = ids.integers.dtype.kind == "u"
        made.integers = point(ids.integers, np.uint64 if made.is_unsigned else np.int64)
    elif ids is not None:
        made.tag, made.size = ids.tag, len(ids.data)
        made.offsets, made.bytes = point(ids.offsets, np.int64), point(ids.data, np.uint8)
    if messages.more is not None:
        made.more, made.more_blocks = point(messages.more, np.uint64), len(messages.more)
    return made, arrays


class CompiledBridgeStep:
    """A step of a bridge by the compiled path, for codes of one byte, in chunks of `most` objects.

    `first` and `redraw` are chances of objects whose ends agree, and of others.
    A chance is its first byte, its next 64 binary digits, and all that is left after the byte.
    """

    def __init__(self, found: Kernel, source: Keystream, values: int, first: Kinds, redraw: Kinds, most: int) -> None:
        self._kernel, self._source = found, source
        self._law = _BridgeStepStruct(values, _make_probability_struct(first), _make_probability_struct(redraw))
        self._flags, self._places = np.empty(most, np.uint8), np.empty(most + 2, np.uint32)

    def draw_into(self, result: Codes, lower_codes: Codes, upper_codes: Codes) -> int:
        """Draw into `result`, chunk after chunk; return how many objects are drawn. Codes are checked.

        It draws nothing if codes have gaps or are wider than a byte. It stops early if a chance ties with all of its
        digits in the next chunk: no byte of the keystream counts as read for that chunk.
        """
        if any(each.itemsize > 1 or not each.flags.c_contiguous for each in (result, lower_codes, upper_codes)):
            return 0
        drawn, self._source.position, largest = self._kernel.draw_bridge_step(
            self._source.seed,
            self._source.position,
            ctypes.byref(self._law),
            (lower_codes, upper_codes, result),
            (self._flags, self._places),
        )
        if largest >= self._law.values:
            raise ValueError("A code is outside of the alphabet.")
        return drawn


def _make_probability_struct(kinds: Kinds) -> _ProbabilityStruct:
    tops, digits, rests = zip(*kinds, strict=True)
    made = _ProbabilityStruct(is_decided=all(rest in (0, 1) for rest in rests))
    for kind in (0, 1):
        made.tops[kind], made.digits[kind], made.decided[kind] = tops[kind], digits[kind], rests[kind] == 1
    return made


def _require_c_array(array: NDArray[np.generic], dtype: type[np.generic]) -> NDArray[Any]:
    """Return an array that C can read: of this type, without gaps, aligned. It is copied only if it must be."""
    return np.require(array, dtype, ["C_CONTIGUOUS", "ALIGNED"])


def get_kernel() -> Kernel | None:
    """Return the compiled path, or None where NumPy draws."""
    return _load_kernel(os.environ.get(SETTING, ""))


def get_sampler_name() -> str:
    """Return the name of the sampler that draws: numpy, or that of the compiled path."""
    found = get_kernel()
    return "numpy" if found is None else found.name


@cache
def _load_kernel(setting: str) -> Kernel | None:
    from relaxdp.sampling.kernel.self_test import has_correct_results  # noqa: PLC0415 (it imports this module)

    if setting not in ("", "off", *_SETS):
        raise KernelError(
            "The environment variable {setting} has an unknown value. Expected off, aesni, vaes, avx512 or neon.",
            hint=_UNSET,
            setting=SETTING,
        )
    library = None if setting == "off" else _open_library()
    sets = [] if library is None else _get_instruction_sets(library)
    if setting in _SETS and setting not in sets:
        raise KernelError(
            "The environment variable {setting} requires {asked!r}, which is not available on this machine.",
            hint=_UNSET,
            setting=SETTING,
            asked=setting,
        )
    if library is None or not sets:
        return None
    found = Kernel(library, setting or sets[-1])
    if not has_correct_results(found):
        raise KernelError(
            "The compiled sampler failed its self-test: it draws wrong reports on this machine.",
            hint="Turn it off: export {setting}=off. Please report this as a bug.",
            setting=SETTING,
        )
    return found


def _open_library() -> ctypes.CDLL | None:
    try:
        library = ctypes.CDLL(str(LIBRARY))
    except OSError:
        return None
    # One that was built from other sources, in a tree that has changed since, is as good as none.
    return library if library.relaxdp_version() == _VERSION else None


def _get_instruction_sets(library: ctypes.CDLL) -> list[str]:
    """Return the sets of instructions that this processor has, the best one last."""
    return [[], ["aesni"], ["aesni", "vaes"], ["aesni", "vaes", "avx512"], ["neon"]][library.relaxdp_best()]
