"""The version-1 stream: the exact bytes of ids and values, and the words that follow from (key, path, object, truth).

Words come one at a time, and for arrays of objects. Frozen; docs/stream.md has every byte.
"""

from __future__ import annotations

import inspect
import math
import struct
import uuid
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Literal, Self
from unicodedata import is_normalized

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from numpy.typing import NDArray

from relaxdp.errors import ArgumentError
from relaxdp.sampling.keys import Key, add_length_prefix, require_key

INTEGER, INTEGER_UNSIGNED, TEXT, UUID, BYTES, NUMBER, MISSING = 1, 2, 3, 4, 5, 6, 7
BLOCK = 16

_NOT_THE_CALLER = ("relaxdp", "concurrent", "contextlib", "threading")
NOT_NFC = (
    "some text is not in Unicode's composed form (NFC): letters that look alike may have other bytes, "
    "and then they are other objects."
)


def warn_not_nfc() -> None:
    """Warn of text that is not NFC, at the caller's line: a line of this package would not show which text it is."""
    frame, level = inspect.currentframe(), 1
    while frame is not None and str(frame.f_globals.get("__name__")).partition(".")[0] in _NOT_THE_CALLER:
        frame, level = frame.f_back, level + 1
    warnings.warn(NOT_NFC, UnicodeWarning, stacklevel=level)


def get_value_kind(value: object) -> str | None:
    """Return the kind of exact bytes that a value has, or None (for null, bool and all other types)."""
    if isinstance(value, bool | np.bool_ | np.timedelta64) or value is None:  # which NumPy counts as integers
        return None
    if isinstance(value, int | np.integer):
        return "integer"
    if isinstance(value, str):
        return "text"
    if isinstance(value, uuid.UUID):
        return "uuid"
    if isinstance(value, bytes):
        return "bytes"
    if isinstance(value, float):
        return "number"
    return None


def is_missing(value: object) -> bool:
    """Tell whether there is no value: None, NaN of any kind, and what pandas has for it.

    Nothing is compared: pandas' NA cannot be, and other objects may say what they hold when they fail.
    """
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    if isinstance(value, float | np.floating):
        return math.isnan(value)
    if isinstance(value, np.datetime64 | np.timedelta64):
        return bool(np.isnat(value))
    return isinstance(value, Decimal) and value.is_nan()


def encode_canonical(value: Any) -> bytes:
    """Return enc(value): a tag, the length and the payload, padded to whole AES blocks.

    The messages of `ValueError` name the rule, never the value: it may be a truth.

    >>> encode_canonical(-7).hex()
    '0100000008000000f9ffffffffffffff'
    """
    kind = get_value_kind(value)
    if kind == "integer":
        return _encode_integer(int(value))
    if kind == "text":
        return _add_tag(TEXT, encode_utf8(value))
    if kind == "uuid":
        return _add_tag(UUID, value.bytes)
    if kind == "bytes":
        return _add_tag(BYTES, value)
    if kind == "number":
        return _encode_number(float(value))
    raise ValueError("it must be a whole number, text, bytes, a UUID or a finite number")


def encode_declared_value(value: Any) -> bytes:
    """Return enc(value) of a declared value, which may be None: the missing category. An id is never missing.

    >>> encode_declared_value(None).hex()
    '07000000000000000000000000000000'
    """
    return _add_tag(MISSING, b"") if value is None else encode_canonical(value)


def encode_utf8(text: str) -> bytes:
    """Return the UTF-8 bytes of text exactly as given: no normalisation, because its tables change."""
    if not is_utf8_encodable(text):  # an exception of `encode` would carry the text along
        raise ValueError("the text contains a lone surrogate, so it has no UTF-8 form")
    encoded = text.encode("utf-8")
    if len(encoded) != len(text) and not is_normalized("NFC", text):
        warn_not_nfc()
    return encoded


def is_utf8_encodable(text: str) -> bool:
    """Tell whether text can be written in UTF-8: half of a surrogate pair cannot."""
    return text.isascii() or not any("\ud800" <= letter <= "\udfff" for letter in text)


def _encode_integer(value: int) -> bytes:
    if -(2**63) <= value < 2**63:
        return _add_tag(INTEGER, struct.pack("<q", value))
    if value < 2**64 and value > 0:
        return _add_tag(INTEGER_UNSIGNED, struct.pack("<Q", value))
    raise ValueError("a whole number must be between -2**63 and 2**64 - 1")


def _encode_number(value: float) -> bytes:
    if not math.isfinite(value):
        raise ValueError("a number must be finite")
    return _add_tag(NUMBER, struct.pack("<d", value + 0.0))  # adding 0.0 turns -0.0 into 0.0


def _add_tag(tag: int, payload: bytes) -> bytes:
    data = struct.pack("<BxxxI", tag, len(payload)) + payload
    return data + bytes(-len(data) % BLOCK)


_USE_NAME = "Use a name such as 'patients'."

Purpose = Literal["path", "coin", "round", "seed", "cohort", "fingerprint"]


@dataclass(frozen=True, slots=True, order=True)
class PathId:
    """The id of a path: an attribute of a release.

    >>> print(PathId("survey-2026", "diagnosis"))
    'diagnosis' of release 'survey-2026'
    """

    release: str
    attribute: str

    def __post_init__(self) -> None:
        names = (self.release, self.attribute)
        if not all(isinstance(name, str) for name in names):
            raise ArgumentError("The name of a release or column must be text (str).", hint=_USE_NAME)
        if not all(map(is_utf8_encodable, names)):
            raise ArgumentError(
                "The name of a release or column contains half of a character (a lone surrogate).",
                hint=_USE_NAME,
            )

    def __str__(self) -> str:
        return f"{self.attribute!r} of release {self.release!r}"


@dataclass(frozen=True, slots=True)
class PathKeyInfo:
    """The information that is bound into the key of a path: its id, and how its reports are made.

    Two mechanisms with the same noise would reveal the truth. So another release, attribute, value list, mechanism or
    parameter is another path, whose cost adds up.
    """

    path: PathId
    encoding: str
    alphabet: int
    params: bytes

    def make_hkdf_info(self, purpose: Purpose) -> bytes:
        """Return what HKDF binds into the key of one purpose."""
        return (
            add_length_prefix(purpose.encode("ascii"))
            + add_length_prefix(encode_utf8(self.path.release))
            + add_length_prefix(encode_utf8(self.path.attribute))
            + add_length_prefix(encode_utf8(self.encoding))
            + struct.pack("<Q", self.alphabet)
            + add_length_prefix(self.params)
        )


def derive_path_key(key: Key, path_info: PathKeyInfo, purpose: Purpose = "path") -> bytes:
    """Derive the key K(purpose) of one path."""
    return require_key(key).derive(path_info.make_hkdf_info(purpose))


Words = NDArray[np.uint64]

# So many objects at a time that all their words stay in the processor's cache.
CHUNK = 1 << 16


class AesBlockCipher:
    """AES-256 under one derived key, over rows of two 64-bit words (one block each).

    CMAC over arrays is put together by hand from the library's AES. Its own CMAC takes one message per call, and 200
    times as long.
    """

    def __init__(self, derived_key: bytes) -> None:
        # ECB is not used to hide anything here: it is the bare permutation that CMAC is made of.
        self._encryptor: Any = Cipher(algorithms.AES(derived_key), modes.ECB()).encryptor()  # noqa: S305
        self.subkey = _compute_cmac_subkey(self._encryptor.update(bytes(16)))
        self._room = np.empty(2 * CHUNK + 2, dtype=np.uint64)  # the cipher asks for one spare block

    def encrypt(self, rows: Words) -> Words:
        """Return the encrypted rows, in a buffer that the next call reuses. At most CHUNK rows, contiguous."""
        count = len(rows)
        if count:
            self._encryptor.update_into(rows.data.cast("B"), self._room.data.cast("B"))
        return self._room[: 2 * count].reshape(count, 2)

    def compute_chaining_state(self, blocks: Words) -> Words:
        """Return the chaining state after whole message blocks: `blocks` is (blocks, objects, 2).

        Like `encrypt`, it returns the buffer that the next call reuses.
        """
        state = self.encrypt(blocks[0])
        for block in blocks[1:]:
            state = self.encrypt(state ^ block)
        return state

    def make_last_blocks(self, state: Words, first_word: Words, symbols: Words) -> Words:
        """Return the input of the last AES pass of CMAC for try 0; a try's number goes into the last four bytes.

        `symbols` is (individuals, symbols), or one row for all. The result has a row for each symbol.
        """
        rows = np.empty((len(state), symbols.shape[1], 2), dtype=np.uint64)
        rows[:, :, 0] = (state[:, 0] ^ first_word ^ self.subkey[0])[:, None]
        np.bitwise_xor((state[:, 1] ^ self.subkey[1])[:, None], symbols, out=rows[:, :, 1])
        return rows.reshape(-1, 2)

    def iterate_word_pairs(self, last_block: Words) -> Iterator[tuple[int, int]]:
        """Return the words of one object, try after try, from its last block of try 0."""
        start = int(last_block[1])
        for j in range(2**32):
            again = np.array([[last_block[0], np.uint64(start ^ j << 32)]], dtype=np.uint64)
            position, value = self.encrypt(again)[0]
            yield int(position), int(value)


def _compute_cmac_subkey(encrypted_zero: bytes) -> Words:
    """Return CMAC's first subkey: E(0) doubled in GF(2^128), as two little-endian words of its bytes."""
    number = int.from_bytes(encrypted_zero, "big") << 1
    if number >> 128:
        number ^= (1 << 128) | 0x87
    return np.frombuffer(number.to_bytes(16, "big"), dtype="<u8").astype(np.uint64)


Selection = slice | NDArray[np.intp]
"""Some of many objects; a slice means all of them."""
Groups = Iterator[tuple[Selection, Words]]

_FIRST_BYTES = np.array([(1 << 8 * count) - 1 for count in range(9)], dtype=np.uint64)
NO_BYTES: NDArray[np.uint8] = np.empty(0, np.uint8)
NO_OFFSETS: NDArray[np.int64] = np.zeros(1, np.int64)


@dataclass(frozen=True, slots=True, repr=False)
class Ids:
    """The ids of some objects, checked and not laid out yet: whole numbers, or bytes behind a tag.

    Id i is `data[offsets[i] : offsets[i + 1]]` where there are no integers. Its `repr` shows none of them.
    """

    kind: str
    tag: int
    integers: NDArray[np.integer] | None
    offsets: NDArray[np.int64]
    data: NDArray[np.uint8]

    @classmethod
    def from_integers(cls, numbers: NDArray[np.integer]) -> Self:
        """Return ids that are whole numbers."""
        return cls("integer", INTEGER, numbers, NO_OFFSETS, NO_BYTES)

    def __len__(self) -> int:
        return len(self.offsets) - 1 if self.integers is None else len(self.integers)

    def group_by_block_count(self) -> Groups:
        """Return their canonical blocks, grouped by equal numbers of blocks.

        Each group is (which of the objects, words of shape (blocks, objects, 2)).
        """
        if self.integers is not None:
            return _encode_integers(self.integers)
        return _encode_payloads(self.offsets, self.data, self.tag)


@dataclass(frozen=True, slots=True, repr=False)
class MacInputs:
    """Inputs of a MAC: ids of some objects and, after them, blocks of (blocks, objects, 2) words, which `repr` hides.

    Blocks without ids are those of one object, whose bytes are known already.
    """

    ids: Ids | None
    more: Words | None = None

    def __len__(self) -> int:
        if self.ids is not None:
            return len(self.ids)
        return 0 if self.more is None else self.more.shape[1]

    def extend(self, blocks: Words | None) -> MacInputs:
        """Return the messages with more blocks after them."""
        if blocks is None:
            return self
        return MacInputs(self.ids, blocks if self.more is None else np.concatenate([self.more, blocks]))

    def group_by_block_count(self) -> Groups:
        """Return all blocks, laid out: objects with equally many go together."""
        if self.ids is None:
            if self.more is not None:
                yield slice(None), self.more
            return
        for chosen, blocks in self.ids.group_by_block_count():
            # Contiguous, because AES takes whole rows.
            more = None if self.more is None else np.ascontiguousarray(self.more[:, chosen])
            yield chosen, blocks if more is None else np.concatenate([blocks, more])


def _encode_integers(numbers: NDArray[Any]) -> Groups:
    """Encode whole numbers: every dtype gives the same bytes, and only 2^63 and more has a separate tag."""
    blocks = np.empty((1, len(numbers), 2), dtype=np.uint64)
    blocks[0, :, 0] = INTEGER | 8 << 32
    if numbers.dtype.kind == "u":
        blocks[0, :, 1] = numbers
        blocks[0, :, 0] += blocks[0, :, 1] >> np.uint64(63)
    else:
        blocks[0, :, 1] = numbers.astype(np.int64, copy=False).view(np.uint64)
    yield slice(None), blocks


def _encode_payloads(offsets: NDArray[np.int64], payload: NDArray[np.uint8], tag: int) -> Groups:
    """Encode text or bytes, eight bytes at a time; objects with equally many blocks go together."""
    if len(offsets) == 1:
        return
    data = np.zeros(len(payload) // 8 + 2, dtype="<u8")  # a copy, aligned and padded
    data.view(np.uint8)[: len(payload)] = payload
    begins, lengths = offsets[:-1], np.diff(offsets)
    counts = (lengths + 23) // 16
    if (least := int(counts.min())) == counts.max():
        yield slice(None), _pack_payloads(data, begins, lengths, least, tag)
        return
    for count in np.flatnonzero(np.bincount(counts)).tolist():
        chosen = np.flatnonzero(counts == count)
        yield chosen, _pack_payloads(data, begins[chosen], lengths[chosen], count, tag)


def _pack_payloads(data: Words, begins: NDArray[np.int64], lengths: NDArray[np.int64], count: int, tag: int) -> Words:
    """Pack payloads that begin anywhere into blocks: each word is put together from two aligned ones."""
    blocks = np.empty((count, len(begins), 2), dtype=np.uint64)
    blocks[0, :, 0] = lengths.astype(np.uint64) << np.uint64(32) | np.uint64(tag)
    word, shift = begins >> 3, (begins.astype(np.uint64) & np.uint64(7)) << np.uint64(3)
    back = np.uint64(63) - shift
    shortest = int(lengths.min())
    here = data.take(word, mode="clip")
    for position in range(2 * count - 1):
        following = data.take(word + (position + 1), mode="clip")
        payload = here >> shift | following << back << np.uint64(1)
        if shortest < 8 * (position + 1):
            left = np.minimum(np.maximum(lengths - 8 * position, 0), 8)
            payload &= _FIRST_BYTES.take(left)  # past the end there are zeros
        blocks[(position + 1) // 2, :, (position + 1) % 2] = payload
        here = following
    return blocks
