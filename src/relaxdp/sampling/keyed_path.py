"""The path: reports at every level, past and future, as a pure function of words.

The rule is written for one symbol of one individual. Arrays are drawn by the compiled path where there is one, else by
NumPy. All give the same reports, bit for bit.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import count
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from relaxdp.sampling.kernel.c_library import get_kernel
from relaxdp.sampling.keyed_stream import CHUNK, AesBlockCipher, MacInputs, Words
from relaxdp.theory.epsilon import ONE


class AcceptedDraw(NamedTuple):
    """A draw that was accepted: at which try j, and its position and value."""

    j: int
    position: int
    value: int


def reduce_word_pair(
    position_word: int, value_word: int, position_bound: int, n_values: int, *, base: int = ONE
) -> tuple[int, int] | None:
    """Return (position, value), uniform in [0, bound) x [0, values), or None where the words would be biased.

    Words run over [0, one). The last, incomplete run of `position_bound` (or of `n_values`) is rejected, so that every
    remainder is hit by equally many words.

    Claim: exactly uniform; every word is fed in tests/exact/sampling/test_path.py.
    """
    if position_word > base - 1 - base % position_bound or value_word > base - 1 - base % n_values:
        return None
    return position_word % position_bound, value_word % n_values


def iterate_path_draws(words: Iterable[tuple[int, int]], n_values: int, *, base: int = ONE) -> Iterator[AcceptedDraw]:
    """Return the draws of a path: each position is uniform below the one before, down to 0."""
    bound = base
    for j, (position_word, value_word) in enumerate(words):
        drawn = reduce_word_pair(position_word, value_word, bound, n_values, base=base)
        if drawn is not None:
            bound = drawn[0]
            yield AcceptedDraw(j, *drawn)
            if bound == 0:
                return


def find_report(draws: Iterable[AcceptedDraw], threshold: int, *, truth: int) -> int:
    """Return the report at a threshold: the value of the last draw at or above it, or else the truth.

    Read at several thresholds, in any order, the reports have exactly the joint distribution of Algorithm 1.

    Claim: path = chain; tests/exact/sampling/test_path.py.
    """
    report = truth
    for draw in draws:
        if draw.position < threshold:
            return report
        report = draw.value
    # A path goes down to 0, so this is a source that broke off: what was read so far must not pass as a report.
    raise RuntimeError("The draws of a path ended above the threshold.")


Codes = NDArray[np.unsignedinteger]


def replace_symbols_by_reports(
    derived_key: bytes, n_values: int, threshold: int, messages: MacInputs, true_indices: Words, symbols: Codes
) -> None:
    """Write the reports of at most CHUNK individuals over `symbols`, their true symbols, (individuals, symbols)."""
    found = get_kernel()
    # A threshold of 0 would be noise, which nobody releases; the compiled path has no rule for it.
    if found is None or threshold < 1:
        NumpyPathSampler(derived_key, n_values, threshold).replace_symbols_by_reports(messages, true_indices, symbols)
    else:
        found.replace_symbols_by_reports(derived_key, n_values, threshold, messages, true_indices, symbols)


class NumpyPathSampler:
    """The reports of many individuals on one path, at one threshold, by NumPy."""

    def __init__(self, derived_key: bytes, n_values: int, threshold: int) -> None:
        self.cipher = AesBlockCipher(derived_key)
        self._values, self._threshold = np.uint64(n_values), threshold
        self._largest_value_word = ONE - 1 - ONE % n_values

    def replace_symbols_by_reports(self, messages: MacInputs, true_indices: Words, symbols: Codes) -> None:
        """Write the reports over `symbols`, the true symbols of at most CHUNK individuals, (individuals, symbols)."""
        n_symbols = symbols.shape[1]
        step = max(1, CHUNK // n_symbols)
        for chosen, blocks in messages.group_by_block_count():
            reports, its_index = symbols[chosen], true_indices[chosen]
            states = self.cipher.compute_chaining_state(blocks).copy()
            for first in range(0, len(reports), step):
                part = slice(first, first + step)
                for start in range(0, n_symbols, CHUNK):  # once, unless a report has very many n_symbols
                    numbers = np.arange(start, min(start + CHUNK, n_symbols), dtype=np.uint64)
                    rows = self.cipher.make_last_blocks(states[part], its_index[part], numbers[None])
                    drawn = self.draw_from_last_blocks(rows, reports[part, start : start + CHUNK].reshape(-1))
                    reports[part, start : start + CHUNK] = drawn.reshape(-1, len(numbers))
            symbols[chosen] = reports

    def draw_from_last_blocks(self, last_blocks: Words, true_symbols: Codes) -> Codes:
        """Draw the reports of at most CHUNK symbols, from the last blocks (the input of the last AES pass) of try 0."""
        reports = true_symbols.copy()
        words = self.cipher.encrypt(last_blocks)
        position, value = words[:, 0], words[:, 1]
        rejected = np.flatnonzero(value > self._largest_value_word)
        places = np.setdiff1d(np.flatnonzero(position >= self._threshold), rejected, assume_unique=True)
        reports[places] = self._reduce_modulo_values(value.take(places))
        # `take` is several times faster than indexing, above all for rows.
        moving, bound = last_blocks.take(places, axis=0), position.take(places)
        for attempt in count(1):
            if not len(places):
                break
            moving[:, 1] ^= np.uint64((attempt ^ attempt - 1) << 32)
            words = self.cipher.encrypt(moving)
            word, value = words[:, 0], words[:, 1]
            position = word % bound
            # word lies in a complete run of `bound` words: the run's start, word - position, is at most 2^64 - bound.
            accepted = (word - position <= np.negative(bound)) & (value <= self._largest_value_word)
            is_above = position >= self._threshold
            drawn = np.flatnonzero(accepted & is_above)
            reports[places.take(drawn)] = self._reduce_modulo_values(value.take(drawn))
            bound[drawn] = position.take(drawn)
            stays = np.flatnonzero(is_above | ~accepted)
            places, moving, bound = places.take(stays), moving.take(stays, axis=0), bound.take(stays)
        for row in rejected:  # so rare (values / 2^64) that each is drawn alone, by the rule for one symbol
            draws = iterate_path_draws(self.cipher.iterate_word_pairs(last_blocks[row]), int(self._values))
            reports[row] = find_report(draws, self._threshold, truth=int(true_symbols[row]))
        return reports

    def _reduce_modulo_values(self, words: Words) -> Words:
        """Return words % values; a division by a constant is much faster than NumPy's remainder."""
        return np.asarray(words - words // self._values * self._values)


def compute_tags(derived_key: bytes, messages: MacInputs, indices: Words | None, symbols: Words | int = 0) -> Words:
    """Return the tag of each of at most CHUNK messages, the first word of a CMAC; last blocks hold index and symbol."""
    found = get_kernel()
    numbers = np.full(len(messages), symbols, np.uint64) if isinstance(symbols, int) else symbols
    if found is not None:
        return found.compute_tags(derived_key, messages, indices, numbers)[0]
    return compute_tags_with_numpy(derived_key, messages, indices, numbers)


def compute_tags_with_numpy(derived_key: bytes, messages: MacInputs, indices: Words | None, symbols: Words) -> Words:
    """Return the tags that `compute_tags` returns, by NumPy."""
    cipher, tags = AesBlockCipher(derived_key), np.empty(len(messages), np.uint64)
    for chosen, blocks in messages.group_by_block_count():
        first = np.zeros(1, np.uint64) if indices is None else indices[chosen]
        rows = cipher.make_last_blocks(cipher.compute_chaining_state(blocks), first, symbols[chosen, None])
        tags[chosen] = cipher.encrypt(rows)[:, 0]
    return tags
