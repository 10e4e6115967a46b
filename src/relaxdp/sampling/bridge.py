"""Exact draws from a bridge's mixture: Algorithm 1, blur and bridge are all drawn here."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from relaxdp.sampling.entropy import Bytestream, Entropy, Keystream
from relaxdp.sampling.kernel.c_library import CompiledBridgeStep, get_kernel
from relaxdp.theory.epsilon import ONE
from relaxdp.theory.randomized_response import NOISE, BridgeMixture, compute_bridge_mixture

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
    """Two probabilities, for objects whose ends agree and whose ends differ: a first byte and an exact rest."""

    def __init__(self, agree: Fraction, differ: Fraction) -> None:
        (top, rest), (other, other_rest) = _split_first_digit(agree, 256), _split_first_digit(differ, 256)
        self.top, self.more = np.uint8(top), np.uint8((other - top) % 256)
        self.rests = (rest, other_rest)

    def get_digits(self) -> list[tuple[int, int, Fraction]]:
        """Return first byte, next 64 binary digits and rest of both."""
        tops = int(self.top), (int(self.top) + int(self.more)) % 256
        return [(top, _split_first_digit(rest, ONE)[0], rest) for top, rest in zip(tops, self.rests, strict=True)]


class _FreshBridgeSampler:
    """Samples a bridge: one random byte decides most objects; the one in 256 with a tie reads further words."""

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
    """Return the first digit of a probability and what is left of it; certainty is the last digit and 1."""
    digit = min(int(probability * base), base - 1)
    return digit, probability * base - digit


def _compute_mixtures(
    n_values: int, lower: Fraction, middle: Fraction, upper: Fraction
) -> tuple[BridgeMixture, BridgeMixture]:
    """Return the mixtures where the ends agree and where they differ, which they cannot at equal levels."""
    agree = compute_bridge_mixture(n_values, lower, middle, upper, ends_agree=True)
    return agree, agree if lower == upper else compute_bridge_mixture(n_values, lower, middle, upper, ends_agree=False)
