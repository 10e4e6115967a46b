"""Exact draws from a bridge's mixture: Algorithm 1, blur and bridge are all drawn here."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from itertools import tee

import numpy as np
from numpy.typing import NDArray

from relaxdp.sampling.entropy import Bytestream, Entropy, Keystream
from relaxdp.sampling.kernel.c_library import CompiledBridgeStep, get_kernel
from relaxdp.sampling.keyed_stream import (
    AesBlockCipher,
    MacInputs,
    PathKeyInfo,
    Words,
    derive_bridge_key,
    encode_canonical,
    generate_word_pairs,
)
from relaxdp.sampling.keys import Key
from relaxdp.theory.epsilon import ONE
from relaxdp.theory.randomized_response import NOISE, BridgeMixture, compute_bridge_mixture


def find_interval(boundaries: tuple[Fraction, ...], position_words: Iterator[int], *, base: int = ONE) -> int:
    """Return into which part of [0, 1), cut at `boundaries`, a uniform real number falls; exactly.

    The number is drawn digit by digit (a word is one digit) until its side of every boundary is clear. So no
    probability is ever rounded.

    Claim: every word is fed in tests/exact/sampling/test_bridge_draw.py.
    """
    low, width = Fraction(0), Fraction(1)
    while True:
        part = sum(cut <= low for cut in boundaries)
        if part == sum(cut < low + width for cut in boundaries):
            return part
        width /= base
        low += next(position_words) * width


def draw_uniform(n_values: int, value_words: Iterator[int], *, base: int = ONE) -> int:
    """Return a uniform value; the last, incomplete run of words is rejected."""
    for word in value_words:
        if word <= base - 1 - base % n_values:
            return word % n_values
    raise AssertionError("`value_words` ended before a value was drawn. Pass an iterator that does not end.")


def draw_from_mixture(
    mixture: BridgeMixture,
    n_values: int,
    word_pairs: Iterator[tuple[int, int]],
    *,
    lower_report: int,
    upper_report: int,
    base: int = ONE,
) -> int:
    """Return one exact draw from a bridge's distribution.

    The position comes from the first words of the pairs (as many as it needs), the value from the first second word
    that is not rejected.
    """
    first, second = tee(word_pairs)
    part = find_interval(_compute_cumulative_probabilities(mixture), (position for position, _ in first), base=base)
    if part == 2:
        return draw_uniform(n_values, (value for _, value in second), base=base)
    return (upper_report, lower_report)[part]


def draw_keyed_bridge_report(
    key: Key,
    inputs: PathKeyInfo,
    object_id: object,
    lower: Fraction,
    middle: Fraction,
    upper: Fraction,
    *,
    lower_report: int,
    upper_report: int,
    symbol: int = 0,
) -> int:
    """Return a report between two reports, as a pure function of the key and its arguments.

    With `lower` = 0 it is a blur, and `lower_report` must be 0.
    """
    mixture = compute_bridge_mixture(inputs.alphabet, lower, middle, upper, ends_agree=lower_report == upper_report)
    derived = derive_bridge_key(key, inputs, lower, middle, upper)
    prefix = encode_canonical(object_id) + upper_report.to_bytes(8, "little") + lower_report.to_bytes(8, "little")
    pairs = generate_word_pairs(derived, prefix, symbol=symbol)
    return draw_from_mixture(mixture, inputs.alphabet, pairs, lower_report=lower_report, upper_report=upper_report)


Codes = NDArray[np.unsignedinteger]
Bytes = NDArray[np.uint8]
Flags = NDArray[np.bool_]

# Objects at a time for fresh draws, so that the handful of bytes that each needs stay in the cache.
FRESH_CHUNK = 1 << 17


def draw_fresh_bridge_reports(
    n_values: int,
    lower: Fraction,
    middle: Fraction,
    upper: Fraction,
    *,
    lower_reports: Codes | None,
    upper_reports: Codes,
    entropy: Entropy,
) -> Codes:
    """Return a report for every code of an array, drawn exactly and once; it must be kept.

    `lower_reports` is None where the lower level is noise: then the upper reports are blurred. With the truth as
    the upper report (retention 1) this is the step of Algorithm 1. A code outside of the alphabet is an error.

    Claim: each object has exactly the distribution of `compute_bridge_distribution`.
    tests/exact/sampling/test_bridge_arrays.py feeds every byte.
    """
    if lower_reports is None and middle == 0:
        raise ValueError("A report at retention 0 is not drawn. It would be pure noise.")
    if lower_reports is None and lower != NOISE:  # it would be drawn as if the lower report were the upper one
        raise ValueError("Lower reports are missing. Only a lower retention of 0 has no reports.")
    lower_reports = upper_reports if lower_reports is None else lower_reports
    if lower == upper and not np.array_equal(lower_reports, upper_reports):
        raise ValueError("Different reports at equal levels have no bridge.")
    draw = _FreshBridgeSampler(n_values, *_compute_mixtures(n_values, lower, middle, upper), entropy.make_keystream())
    result = np.empty(upper_reports.shape, upper_reports.dtype)
    draw.draw_into(*(each.reshape(-1) for each in (result, lower_reports, upper_reports)))
    return result


class _AgreeDifferProbability:
    """A probability for objects whose ends agree and one for others, as a first byte and an exact rest."""

    def __init__(self, agree: Fraction, differ: Fraction) -> None:
        (top, rest), (other, other_rest) = _split_first_digit(agree, 256), _split_first_digit(differ, 256)
        self.top, self.more = np.uint8(top), np.uint8((other - top) % 256)
        self.rests = (rest, other_rest)

    def get_digits(self) -> list[tuple[int, int, Fraction]]:
        """Return first byte, next 64 binary digits and rest of both."""
        tops = int(self.top), (int(self.top) + int(self.more)) % 256
        return [(top, _split_first_digit(rest, ONE)[0], rest) for top, rest in zip(tops, self.rests, strict=True)]


class _FreshBridgeSampler:
    """One random byte decides most objects; the one in 256 whose byte ties with the boundary reads further words."""

    def __init__(self, values: int, agree: BridgeMixture, differ: BridgeMixture, source: Bytestream) -> None:
        self._values = values
        self._source = source
        # With two values a redraw is a flip half of the time, so one comparison settles everything.
        self._flip = _AgreeDifferProbability(agree.redraw / 2, differ.to_lower + differ.redraw / 2)
        self._redraw = _AgreeDifferProbability(agree.redraw, differ.redraw)
        ends = differ.to_upper + differ.to_lower
        self._to_upper = _AgreeDifferProbability(Fraction(0), differ.to_upper / ends if ends else Fraction(0))
        self._compiled, kernel = None, get_kernel()
        if kernel is not None and isinstance(source, Keystream) and values <= 256:
            first, redraw = (self._flip if values == 2 else self._to_upper).get_digits(), self._redraw.get_digits()
            self._compiled = CompiledBridgeStep(kernel, source, values, first, redraw, FRESH_CHUNK)
        # Buffers that are used again for every chunk: fresh ones would be mapped and cleared each time.
        self._random, self._top, self._differ = np.empty((3, FRESH_CHUNK), dtype=np.uint8)

    def draw_into(self, result: Codes, lower_codes: Codes, upper_codes: Codes) -> None:
        """Write the draws of all objects into `result`, chunk after chunk."""
        compiled, done = self._compiled, 0
        while True:
            # One in 2^64 ties needs more digits than the compiled step has: then NumPy draws that chunk.
            done += 0 if compiled is None else compiled.draw_into(result[done:], lower_codes[done:], upper_codes[done:])
            if done >= len(result):
                return
            part = slice(done, done + FRESH_CHUNK)
            self._draw_chunk(result[part], lower_codes[part], upper_codes[part])
            done += FRESH_CHUNK

    def _draw_chunk(self, result: Codes, lower_codes: Codes, upper_codes: Codes) -> None:
        """Write the draws of at most FRESH_CHUNK objects."""
        if max(int(lower_codes.max()), int(upper_codes.max())) >= self._values:
            raise ValueError("A code is outside of the alphabet.")
        differ = self._differ[: len(result)]
        np.not_equal(lower_codes, upper_codes, out=differ.view(np.bool_))
        if self._values == 2:
            np.bitwise_xor(upper_codes, self._draw_flags(self._flip, differ).view(np.uint8), out=result)
            return
        _select_by_flags(result, lower_codes, upper_codes, self._draw_flags(self._to_upper, differ))
        redraw = self._draw_flags(self._redraw, differ)
        if self._values <= 256:
            _select_by_flags(result, result, self._draw_uniform(len(result), np.uint8), redraw)
        else:
            rows = np.flatnonzero(redraw)
            result[rows] = self._draw_uniform(len(rows), np.uint64)

    def _draw_flags(self, probabilities: _AgreeDifferProbability, differs: Bytes) -> Flags:
        """Return independent flags, set with the chance of each object's kind, exactly."""
        random, top = self._random[: len(differs)], self._top[: len(differs)]
        self._source.fill(random)
        np.multiply(differs, probabilities.more, out=top)
        np.add(top, probabilities.top, out=top)
        flags: Flags = random < top
        ties = np.flatnonzero(random == top)
        flags[ties] = self._draw_exact_flags(probabilities.rests, differs.take(ties))
        return flags

    def _draw_exact_flags(self, probabilities: tuple[Fraction, Fraction], kinds: Bytes) -> Flags:
        """Return exact coins, each with the chance of its kind; a tie with a 64-bit digit (one in 2^64) reads on."""
        if all(chance in (0, 1) for chance in probabilities):
            return np.array([chance == 1 for chance in probabilities]).take(kinds)
        (digit, rest), (other, other_rest) = (_split_first_digit(chance, ONE) for chance in probabilities)
        digits = np.array([digit, other], dtype=np.uint64).take(kinds)
        words = self._read(len(kinds), np.uint64)
        coins: Flags = words < digits
        ties = np.flatnonzero(words == digits)
        if ties.size:
            coins[ties] = self._draw_exact_flags((rest, other_rest), kinds[ties])
        return coins

    def _draw_uniform(self, count: int, word_type: type[np.uint8 | np.uint64]) -> Codes:
        """Return uniform values, each from a byte or a word; the last, incomplete run of them is rejected."""
        random, most = self._read(count, word_type), int(np.iinfo(word_type).max)
        if most < self._values:  # 256 values are the bytes
            return random
        limit, divisor = word_type(most - (most + 1) % self._values), word_type(self._values)
        rejected = np.flatnonzero(random > limit)
        while rejected.size:
            again = self._read(len(rejected), word_type)
            random[rejected] = again
            rejected = rejected[again > limit]
        return np.asarray(random - random // divisor * divisor)

    def _read(self, count: int, word_type: type[np.uint8 | np.uint64]) -> Codes:
        random = np.empty(count, word_type)
        self._source.fill(random.view(np.uint8))
        return random


def _select_by_flags(result: Codes, otherwise: Codes, chosen: Codes, flags: Flags) -> None:
    """Write `chosen` where the flag is set; with bit masks, which on bytes is far faster than `np.where`."""
    mask = np.negative(flags.view(np.uint8).astype(result.dtype, copy=False))
    mask &= otherwise ^ chosen
    np.bitwise_xor(otherwise, mask, out=result)


def _split_first_digit(probability: Fraction, base: int) -> tuple[int, Fraction]:
    """Return the first digit of a chance's expansion and what is left of it; certainty is the last digit and 1."""
    digit = min(int(probability * base), base - 1)
    return digit, probability * base - digit


class KeyedBridgeSampler:
    """Keyed bridges of all symbols of many objects: the same reports as `draw_keyed_bridge_report` one at a time."""

    def __init__(self, derived_key: bytes, n_values: int, lower: Fraction, middle: Fraction, upper: Fraction) -> None:
        self.cipher = AesBlockCipher(derived_key)
        self._values = n_values
        self._one_level, self._mixtures = lower == upper, _compute_mixtures(n_values, lower, middle, upper)
        self._boundaries = tuple(
            _BoundaryPair(*cuts) for cuts in zip(*map(_compute_cumulative_probabilities, self._mixtures), strict=True)
        )

    def draw_reports(
        self, messages: MacInputs, lower_reports: Codes, upper_reports: Codes, *, first_symbol: int
    ) -> Codes:
        """Return the reports of each object, from codes of shape (objects, symbols): at most CHUNK objects or symbols.

        Where the lower level is noise, pass zeros as its reports. `first_symbol` is the first symbol's number.
        """
        if max(int(lower_reports.max()), int(upper_reports.max())) >= self._values:
            raise ValueError("A code is outside of the alphabet.")
        if self._one_level and not np.array_equal(lower_reports, upper_reports):
            raise ValueError("Different reports at equal levels have no bridge.")
        result = np.empty_like(upper_reports)
        for chosen, blocks in messages.group_by_block_count():
            result[chosen] = self._draw_group(blocks, lower_reports[chosen], upper_reports[chosen], first_symbol)
        return result

    def _draw_group(self, blocks: Words, lower_reports: Codes, upper_reports: Codes, first_symbol: int) -> Codes:
        """Return the reports of objects whose messages have equally many blocks."""
        state = self.cipher.compute_chaining_state(blocks).copy()
        rows = self._make_last_blocks(state, lower_reports, upper_reports, first_symbol)
        words = self.cipher.encrypt(rows)
        lower, upper = lower_reports.reshape(-1), upper_reports.reshape(-1)
        differ = lower != upper
        position, value = np.ascontiguousarray(words.T)
        kinds, unclear = differ.view(np.uint8), value > np.uint64(ONE - 1 - ONE % self._values)
        above, at_least = (cut.find_reached(position, kinds, unclear) for cut in self._boundaries)
        # From the first cut on it is the lower report, from the second on any value.
        report = np.where(above, lower, upper)
        np.copyto(report, (value % np.uint64(self._values)).astype(report.dtype), where=at_least)
        for row in np.flatnonzero(unclear):  # one in 2^64 or fewer: drawn alone, by the rule for one object
            ends = {"lower_report": int(lower[row]), "upper_report": int(upper[row])}
            pairs = self.cipher.iterate_word_pairs(rows[row])
            report[row] = draw_from_mixture(self._mixtures[kinds[row]], self._values, pairs, **ends)
        return report.reshape(upper_reports.shape)

    def _make_last_blocks(self, state: Words, lower_reports: Codes, upper_reports: Codes, first_symbol: int) -> Words:
        """Return the input of the last AES pass of every symbol of every object, in rows."""
        objects, symbols = upper_reports.shape
        ends = np.stack([upper_reports.reshape(-1), lower_reports.reshape(-1)], axis=1).astype(np.uint64)
        after = self.cipher.encrypt(ends ^ np.repeat(state, symbols, axis=0))
        numbers = np.tile(np.arange(first_symbol, first_symbol + symbols, dtype=np.uint64), objects)
        return self.cipher.make_last_blocks(after, np.zeros(1, np.uint64), numbers[:, None])


class _BoundaryPair:
    """A boundary for objects whose ends agree and one for others, as a first word and whether more follows."""

    def __init__(self, agree: Fraction, differ: Fraction) -> None:
        cuts = [_split_first_digit(cut, ONE) for cut in (agree, differ)]
        self.digits = np.array([digit for digit, _ in cuts], dtype=np.uint64)
        # A boundary of 1 is never reached; one whose digits end is reached by the word that equals it.
        self._never = np.array([rest == 1 for _, rest in cuts])
        self._open = np.array([0 < rest < 1 for _, rest in cuts])

    def find_reached(self, position: Words, kinds: Bytes, unclear: Flags) -> Flags:
        """Return which positions lie at or above the boundary of their kind; what a word cannot tell is noted."""
        digits = self.digits.take(kinds)
        reached: Flags = position >= digits
        ties = np.flatnonzero(position == digits)
        unclear[ties] |= self._open.take(kinds.take(ties))
        reached[ties] &= ~self._never.take(kinds.take(ties))
        return reached


def _compute_mixtures(
    n_values: int, lower: Fraction, middle: Fraction, upper: Fraction
) -> tuple[BridgeMixture, BridgeMixture]:
    """Return the mixture where the ends agree, and where they differ, which they cannot at equal levels."""
    agree = compute_bridge_mixture(n_values, lower, middle, upper, ends_agree=True)
    return agree, agree if lower == upper else compute_bridge_mixture(n_values, lower, middle, upper, ends_agree=False)


def _compute_cumulative_probabilities(mixture: BridgeMixture) -> tuple[Fraction, Fraction]:
    return mixture.to_upper, mixture.to_upper + mixture.to_lower
