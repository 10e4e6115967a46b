"""RAPPOR: words become the bits of Bloom filters with cohorts, bit for bit those of Google, and each bit is randomized.

Conversions between epsilon and RAPPOR's noise f round to the private side: epsilon down, noise up.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from decimal import MAX_EMAX, MIN_EMIN, ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from hashlib import md5, sha512
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from relaxdp.errors import RapporError, add_consequence
from relaxdp.mechanisms.base import Joint, KeptRandomness, Mechanism, TrueValues, make_path_key_info
from relaxdp.mechanisms.keyed_reports import KeyedRandomness, release_codes
from relaxdp.mechanisms.report_arrays import Codes, Packed, make_arrow_from_packed, pack_bits
from relaxdp.sampling.arrow_columns import check_lengths, decode_dictionary, find_row, ids_to_arrow, read_ids, to_arrow
from relaxdp.sampling.keyed_stream import CHUNK, MacInputs, PathId, Words
from relaxdp.sampling.keys import Key, add_length_prefix
from relaxdp.theory.epsilon import MAX_DIGITS, Epsilon, as_epsilon, compute_split_threshold
from relaxdp.theory.randomized_response import Level, Scale, SupportProbabilities, compute_retention

MAX_HASHES = 16
MAX_BITS = 1 << 16
MAX_COHORTS = 1 << 16
ALL_COHORTS = (1 << 32) - 1
"""Stands where a cohort's number would, for what belongs to no single cohort: the draw of the cohort, the ledger."""
_MAX_BYTE_BITS = 256


@dataclass(frozen=True, slots=True)
class BloomShape:
    """How many bits, hashes and cohorts a Bloom filter has: k, h and m of RAPPOR. All three are public.

    One bit is a boolean: it is the answer itself, false or true, and nothing is hashed.

    >>> BloomShape(bits=128, hashes=2, cohorts=64).compute_bits("hello", cohort=5)
    (96, 14)
    """

    bits: int
    hashes: int
    cohorts: int

    def __post_init__(self) -> None:
        limits = (("bits", "k", MAX_BITS), ("hashes", "h", MAX_HASHES), ("cohorts", "m", MAX_COHORTS))
        for parameter, letter, most in limits:
            number = getattr(self, parameter)
            if isinstance(number, bool) or not isinstance(number, int) or not 1 <= number <= most:
                raise RapporError(
                    "The number of {parameter} ({letter}) must be a whole number from 1 to {most:,}, not {number}.",
                    hint="Choose {letter} in this range. An example is k = 32, h = 2 and m = 64.",
                    letter=letter,
                    most=most,
                    number=number,
                    parameter=parameter,
                )
        if self.bits == 1 and self.hashes != 1:
            raise RapporError(
                "With one bit (k = 1), the number of hash functions (h) must be 1, not {hashes}.",
                hint="Set h to 1, or k to 2 or more.",
                hashes=self.hashes,
            )

    @property
    def is_boolean(self) -> bool:
        """Whether a report is one bit that is the answer itself."""
        return self.bits == 1

    @property
    def max_differing_bits(self) -> int:
        """In how many bits two words can differ at most: 2 h, or all of them where there are fewer.

        The guarantee of a whole report is that many times the guarantee of a bit.
        """
        return min(2 * self.hashes, self.bits)

    def compute_bits(self, word: str | bytes, cohort: int) -> tuple[int, ...]:
        """Return the bits that a word sets: one for each hash, perhaps the same bit twice.

        Up to 256 bits the hash is Google's: MD5, one byte of the digest for each hash. A byte cannot reach more bits,
        so beyond it is SHA-512, four bytes for each hash.

        Claim: as Google's client computes them; vectors made with hashlib by hand in
        tests/unit/rappor/test_bloom.py.
        """
        self.check_cohort(cohort)
        data = word.encode("utf-8") if isinstance(word, str) else word
        if self.is_boolean:
            return (0,) if data == b"true" else ()
        message = struct.pack(">I", cohort) + data
        if self.bits <= _MAX_BYTE_BITS:
            digest = md5(message, usedforsecurity=False).digest()
            return tuple(byte % self.bits for byte in digest[: self.hashes])
        words = struct.unpack(">16I", sha512(message).digest())
        return tuple(number % self.bits for number in words[: self.hashes])

    def compute_bit_probabilities(self) -> NDArray[np.float64]:
        """Return for each bit the probability that an unknown word sets it."""
        if self.is_boolean:
            return np.full(1, 0.5)
        reach = _MAX_BYTE_BITS if self.bits <= _MAX_BYTE_BITS else self.bits  # with 2^32 the rest does not show
        each = np.bincount(np.arange(reach) % self.bits, minlength=self.bits) / reach
        return np.asarray(1 - (1 - each) ** self.hashes)

    def params(self, cohort: int = ALL_COHORTS) -> bytes:
        """Return the parameters as bytes, which the stream binds into the key: another cohort is another path."""
        # How words are hashed follows from k alone, so that devices, maps and servers cannot disagree.
        name = b"boolean" if self.is_boolean else b"md5-bytes" if self.bits <= _MAX_BYTE_BITS else b"sha512-words"
        return struct.pack("<IIII", self.bits, self.hashes, self.cohorts, cohort) + add_length_prefix(name)

    def check_cohort(self, cohort: int) -> None:
        """Reject a cohort that does not exist."""
        if not 0 <= cohort < self.cohorts:
            raise RapporError(
                "The cohort must be a whole number from 0 to {last}, not {cohort}.",
                hint="Correct the cohort, or pass the parameters (k, h, m) with which the reports were made.",
                last=self.cohorts - 1,
                cohort=cohort,
                cohorts=self.cohorts,
            )

    def __str__(self) -> str:
        return f"k = {self.bits}, h = {self.hashes}, m = {self.cohorts}"


DIGITS = 12
"""How many significant digits a converted level has."""
_DOWN = Context(prec=MAX_DIGITS, rounding=ROUND_FLOOR, Emin=MIN_EMIN, Emax=MAX_EMAX, traps=[])


def compute_bit_epsilon(shape: BloomShape, epsilon: Epsilon) -> Decimal:
    """Return the epsilon of one bit of a report that has `epsilon` as a whole.

    >>> compute_bit_epsilon(BloomShape(bits=128, hashes=2, cohorts=64), "4.4")
    Decimal('1.1')
    """
    return as_epsilon(_DOWN.divide(as_epsilon(epsilon), Decimal(shape.max_differing_bits)))


def compute_report_epsilon(shape: BloomShape, epsilon: Epsilon) -> Decimal:
    """Return the epsilon of a whole report whose bits have `epsilon` each.

    >>> compute_report_epsilon(BloomShape(bits=128, hashes=2, cohorts=64), "1.1")
    Decimal('4.4')
    """
    return as_epsilon(_DOWN.multiply(as_epsilon(epsilon), Decimal(shape.max_differing_bits)))


def compute_bit_threshold(shape: BloomShape, epsilon: Epsilon) -> int:
    """Return the threshold of every bit at which a whole report is epsilon-private, rounded down.

    Two words differ in at most 2 h bits, and a bit at epsilon / (2 h) cannot tell more than that.

    Claim: reached and not exceeded; tests/exact/rappor/test_bloom.py.
    """
    return compute_split_threshold(epsilon, 2, parts=shape.max_differing_bits)


def compute_noise(shape: BloomShape, epsilon: Epsilon) -> Decimal:
    """Return the noise of a level: RAPPOR's f = 1 - tanh(eps_bit / 2), rounded up in its twelfth digit.

    >>> compute_noise(BloomShape(bits=128, hashes=2, cohorts=64), "4.394449154672")
    Decimal('0.500000000001')
    """
    noise = 1 - compute_retention(compute_bit_threshold(shape, epsilon))
    return Context(prec=DIGITS, rounding=ROUND_CEILING).divide(Decimal(noise.numerator), Decimal(noise.denominator))


def compute_epsilon(shape: BloomShape, noise: Decimal | Fraction | str) -> Decimal:
    """Return the epsilon with this noise, RAPPOR's f: 2 h ln((2 - f) / f), rounded down in its twelfth digit.

    >>> compute_epsilon(BloomShape(bits=128, hashes=2, cohorts=64), "0.5")
    Decimal('4.39444915467')
    """
    exact = Fraction(noise)
    if not 0 < exact < 1:
        raise RapporError(
            "The permanent noise f must be greater than 0 and less than 1, not {noise}.",
            hint="Choose f in this range, such as 0.5. With f = 1 every report would be pure noise.",
            noise=noise,
        )
    ratio = (2 - exact) / exact
    logarithm = _DOWN.ln(_DOWN.divide(Decimal(ratio.numerator), Decimal(ratio.denominator)))
    below = _DOWN.multiply(_DOWN.next_minus(_DOWN.next_minus(logarithm)), Decimal(shape.max_differing_bits))
    return as_epsilon(Context(prec=DIGITS, rounding=ROUND_FLOOR).plus(below))


def compute_bit_support(threshold: int) -> SupportProbabilities:
    """Return the support probabilities of a bit: with which probability it is 1, given its truth."""
    return SupportProbabilities.from_one_symbol(compute_retention(threshold), 2)


Cohorts = NDArray[np.uint32]
_HEADER_BYTES, _BLOCK = 8, 16


class Bloom(Mechanism):
    """The Bloom filter of a word in one cohort: k bits of which the word sets h, and every bit at epsilon / (2 h).

    A word has no index, so its bytes go into the stream. The cohort is part of the path: a device that changed it
    would be on another path. Without a cohort the mechanism is that of the whole release, in ledgers and files.

    Claim: the guarantee of the whole report is reached and not exceeded, at every level and by all levels together;
    tests/exact/rappor/test_bloom.py.

    Args:
        shape: The numbers of bits, hashes and cohorts.
        cohort: The cohort; by default all of them together.

    Raises:
        RapporError: The cohort does not exist.

    Example:
        >>> from relaxdp.mechanisms.bloom import BloomShape
        >>> Bloom(BloomShape(bits=16, hashes=2, cohorts=64)).symbols
        16
    """

    name = "bloom"
    alphabet = 2
    joint: Joint = "independent"

    def __init__(self, shape: BloomShape, cohort: int = ALL_COHORTS) -> None:
        if cohort != ALL_COHORTS:
            shape.check_cohort(cohort)
        self.shape, self.cohort, self.symbols = shape, cohort, shape.bits
        self.bits, self.hashes, self.cohorts = shape.bits, shape.hashes, shape.cohorts

    @property
    def params(self) -> bytes:
        """The numbers of bits, hashes and cohorts, the cohort, and the name of the hash."""
        return self.shape.params(self.cohort)

    @property
    def labels(self) -> range:
        """The numbers of the bits, which are counted. Words are found from the counts of all cohorts."""
        return range(self.shape.bits)

    @property
    def _scale(self) -> Scale:  # all cohorts have the same levels
        return self.name, self.shape.params(ALL_COHORTS)

    def threshold(self, epsilon: Decimal) -> int:
        return compute_bit_threshold(self.shape, epsilon)

    def read_true_values(self, column: Any, first_row: int = 0) -> TrueValues:
        """Return the words' canonical bytes, which must all have the same number of blocks (see `release_bloom`)."""
        words = convert_words_to_text(self.shape, column, first_row)
        groups = list(read_ids(words, first_row).group_by_block_count())
        if len(groups) > 1:
            raise RapporError(
                "Words of different lengths cannot be encoded together.",
                hint="Call relaxdp.mechanisms.bloom.release_bloom(...), which groups words by length.",
            )
        suffix = groups[0][1] if groups else np.empty((1, 0, 2), dtype=np.uint64)
        return TrueValues(np.zeros(len(words), dtype=np.uint64), suffix)

    def compute_true_symbols(self, true_values: TrueValues, randomness: KeptRandomness) -> Codes:
        assert true_values.suffix is not None  # noqa: S101 (made by `read_true_values`)
        rows = np.ascontiguousarray(true_values.suffix.transpose(1, 0, 2)).reshape(len(true_values), -1).view(np.uint8)
        lengths = np.ascontiguousarray(rows[:, 4:_HEADER_BYTES]).view("<u4").ravel()
        filters = np.zeros((len(true_values), self.symbols), dtype=np.uint8)
        known: dict[bytes, list[int]] = {}
        for row, length in enumerate(lengths.tolist()):
            word = rows[row, _HEADER_BYTES : _HEADER_BYTES + length].tobytes()
            if word not in known:
                known[word] = list(self.shape.compute_bits(word, self.cohort))
            filters[row, known[word]] = 1
        return filters

    def find_supported_labels(self, codes: Codes, seeds: Words | None = None) -> NDArray[np.bool_]:
        return codes.astype(np.bool_)

    def for_device(self, device_id: object, *, key: Key, path: PathId) -> Bloom:
        """Return the mechanism of a device: that of its cohort."""
        return Bloom(self.shape, int(draw_cohorts(self.shape, [device_id], key=key, path=path)[0]))

    def release_text_column(
        self, cells: Any, ids: Any, *, key: Key, level: Level, path: PathId, first_row: int
    ) -> tuple[list[Any], Any]:
        """Release a column of text: return cohorts and packed reports, and the words as the stream takes them."""
        words = convert_words_to_text(self.shape, cells, first_row)
        made = release_bloom(self.shape, words, ids, key=key, level=level, path=path, first_row=first_row)
        return [pa.array(made.cohorts), make_arrow_from_packed(made.packed)], words

    def __repr__(self) -> str:
        return f"Bloom({self.shape!r})"


def convert_words_to_text(shape: BloomShape, column: Any, first_row: int = 0) -> pa.Array:
    """Return a column of words as Arrow text, or reject it. An error names the row, never the word.

    For a boolean: false and true, as booleans, as 0 and 1, or as text.
    """
    array = _convert_to_text(to_arrow(column), is_boolean=shape.is_boolean)
    if array is None:
        what = "booleans, 0 and 1, or the words false and true" if shape.is_boolean else "text"
        raise RapporError(
            "The words must be {what}.", hint='Convert the column, such as df["word"].astype(str).', what=what
        )
    if array.null_count:
        row = first_row + find_row(pc.is_null(array))
        raise RapporError(
            "The word is missing.", hint='Remove rows without a word, or write "" for an empty one.', row=row
        )
    if shape.is_boolean:
        known = pc.is_in(array, value_set=pa.array(["false", "true"], pa.large_string()))
        if row := find_row(known, is_set=False):
            raise RapporError(
                "The value is neither false nor true. Reports of one bit (k = 1) hold only a yes-or-no answer.",
                hint="Write false or true. To release words, choose k = 2 or more.",
                row=first_row + row,
            )
    return array


def _convert_to_text(array: pa.Array, *, is_boolean: bool) -> pa.Array | None:
    """Return Arrow text, or None for anything else: an exception's context would carry a word along."""
    try:
        array = decode_dictionary(array)
        kind = array.type
        if is_boolean and (pa.types.is_integer(kind) or pa.types.is_boolean(kind)):
            array = array.cast(pa.int64())
        elif not (pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_null(kind)):
            return None
        array = array.cast(pa.large_string())
        array.validate(full=True)
        if is_boolean:
            array = pc.utf8_lower(array)
            array = pc.if_else(pc.equal(array, "0"), "false", pc.if_else(pc.equal(array, "1"), "true", array))
    except (pa.ArrowException, TypeError, UnicodeError):
        return None
    return array.cast(pa.large_string())


class BloomReports(NamedTuple):
    """The reports of many devices as packed bits, with their cohorts, which are public."""

    cohorts: Cohorts
    packed: Packed


def draw_cohorts(shape: BloomShape, ids: Any, *, key: Key, path: PathId, first_row: int = 0) -> Cohorts:
    """Return the cohort of each device: a keyed function of its id, the same for every word and at every level.

    A cohort is public, so it must not depend on the word.
    """
    array, name = ids_to_arrow(ids), make_path_key_info(Bloom(shape), path)
    cohorts = np.empty(len(array), dtype=np.uint32)
    for start in range(0, len(array), CHUNK):
        own = MacInputs(read_ids(array[start : start + CHUNK], first_row + start))
        words = KeyedRandomness(key, name, own).draw_words("cohort")
        cohorts[start : start + CHUNK] = words % np.uint64(shape.cohorts)
    return cohorts


@add_consequence("Nothing was released.")
def release_bloom(
    shape: BloomShape, words: Any, ids: Any, *, key: Key, level: Level, path: PathId, first_row: int = 0
) -> BloomReports:
    """Release the words of many devices at one level, as cohorts and reports: a pure function, like `release_codes`.

    Each cohort is a separate path, and words with the same number of blocks go together.
    """
    array, texts = ids_to_arrow(ids), convert_words_to_text(shape, words, first_row)
    check_lengths(words=texts, ids=array)
    cohorts = draw_cohorts(shape, array, key=key, path=path, first_row=first_row)
    blocks = (pc.binary_length(texts).to_numpy(zero_copy_only=False).astype(np.int64) + _HEADER_BYTES - 1) // _BLOCK
    packed = np.zeros((len(texts), -(-shape.bits // 8)), dtype=np.uint8)
    order = np.lexsort((blocks, cohorts))
    edges = np.flatnonzero((np.diff(cohorts[order]) != 0) | (np.diff(blocks[order]) != 0)) + 1
    for chosen in np.split(order, edges) if len(order) else []:
        mechanism = Bloom(shape, int(cohorts[chosen[0]]))
        codes = release_codes(mechanism, texts.take(chosen), array.take(chosen), key=key, level=level, path=path)
        packed[chosen] = pack_bits(codes)
    return BloomReports(cohorts, packed)
