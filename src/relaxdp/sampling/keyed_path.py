"""The path: reports at every level, past and future, as a pure function of words, for one object and for arrays.

Arrays are drawn by the compiled path where there is one, else by NumPy. Both give the same words, bit for bit. NumPy's
is the one to read: tests hold the other against it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from relaxdp.sampling.kernel.c_library import Kernel, get_kernel
from relaxdp.sampling.keyed_stream import CHUNK, AesBlockCipher, Messages, Selection, Words
from relaxdp.theory.epsilon import ONE


class AcceptedDraw(NamedTuple):
    """One accepted pair of words: at which try, and the position and value that it gave."""

    j: int
    position: int
    value: int


def reduce_words(
    position_word: int, value_word: int, bound: int, values: int, *, one: int = ONE
) -> tuple[int, int] | None:
    """Return (position, value), uniform in [0, bound) x [0, values), or None where the words would be biased.

    Words run over [0, one). The last, incomplete run of `bound` (or of `values`) is rejected, so that every
    remainder is hit by equally many words.

    Claim: exactly uniform; every word is fed in tests/exact/sampling/test_path.py.
    """
    if position_word > one - 1 - one % bound or value_word > one - 1 - one % values:
        return None
    return position_word % bound, value_word % values


def iterate_draws(words: Iterable[tuple[int, int]], values: int, *, one: int = ONE) -> Iterator[AcceptedDraw]:
    """Return the draws of a path: each position is uniform below the one before, down to 0."""
    bound = one
    for j, (position_word, value_word) in enumerate(words):
        drawn = reduce_words(position_word, value_word, bound, values, one=one)
        if drawn is not None:
            bound = drawn[0]
            yield AcceptedDraw(j, *drawn)
            if bound == 0:
                return


def find_report(draws: Iterable[AcceptedDraw], threshold: int, *, truth: int) -> int:
    """Return the report at `compute_threshold`: the value of the last draw at or above it, or else the truth.

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
Places = NDArray[np.intp]

# A walk with fewer objects than this costs more in calls than in work, so it waits for those of other chunks.
_FEW = CHUNK // 8


class _PendingRows(NamedTuple):
    """Objects whose position is still at or above the threshold, and where their reports belong."""

    target: Codes
    places: Places
    rows: Words
    bound: Words
    tries: Words


class NumpyPathSampler:
    """The reports of many objects on one path, at one threshold.

    `draw` as many chunks as there are, then `finish`: only then is every report in its place.
    """

    def __init__(self, derived: bytes, values: int, threshold: int) -> None:
        self.cipher = AesBlockCipher(derived)
        self._values = np.uint64(values)
        self._compute_threshold_of_decimal = np.uint64(threshold)
        # Value words above this are rejected. For a power of two there is none.
        self._limit = np.uint64(ONE - 1 - ONE % values)
        self._may_reject = ONE % values != 0
        self._most_runs = (ONE - 1) // max(threshold, 1)
        self._waiting: list[_PendingRows] = []
        self._scattered: list[tuple[Codes, Selection, Codes]] = []

    def draw_reports(self, target: Codes, messages: Messages, index: Words) -> None:
        """Write the reports of all symbols of at most CHUNK objects over their truths, (objects, symbols)."""
        for chosen, blocks in messages.groups():
            if target.shape[1] == 1:
                truth = target[chosen, 0].astype(np.uint64)
                self.draw(target[:, 0], chosen, self.cipher.compute_chaining_state(blocks), truth, index[chosen])
                continue
            part = target[chosen]  # a slice is the target itself; others are drawn elsewhere first
            if not isinstance(chosen, slice):
                self._scattered.append((target, chosen, part))
            self.draw_all_symbols(part, self.cipher.compute_chaining_state(blocks).copy(), index[chosen])

    def draw(self, target: Codes, places: Selection, state: Words, truth: Words, index: Words, symbol: int = 0) -> None:
        """Write the reports of at most CHUNK objects to `target[places]`.

        `state` is what the cipher made of the objects' canonical bytes, `truth` the symbol's truth, `index` the index
        of the object's truth.
        """
        target[places] = truth
        self._draw_first_attempt(target, places, self.cipher.make_last_block(state, index, symbol))

    def draw_all_symbols(self, target: Codes, state: Words, index: Words) -> None:
        """Write the reports of all symbols of some objects over `target`, which holds the symbols' truths.

        `target` is (objects, symbols) and contiguous. The encrypted id of an object serves all its symbols.
        """
        objects, symbols = target.shape
        flat, numbers = target.reshape(-1), np.arange(symbols, dtype=np.uint64)
        step = max(1, CHUNK // symbols)
        for first in range(0, objects, step):
            part = slice(first, first + step)
            for start in range(0, symbols, CHUNK):  # once, unless a single object has very many symbols
                rows = self.cipher.make_last_blocks(state[part], index[part], numbers[start : start + CHUNK])
                place = first * symbols + start
                self._draw_first_attempt(flat[place : place + len(rows)], slice(None), rows)

    def _draw_first_attempt(self, target: Codes, places: Selection, rows: Words) -> None:
        """Draw try 0 of at most CHUNK rows, whose truths `target[places]` holds, and let those who move on walk."""
        words = self.cipher.encrypt(rows)
        position, value = words[:, 0], words[:, 1]
        moving = np.flatnonzero(position >= self._compute_threshold_of_decimal)
        rejected: list[int] = []
        if self._may_reject and value.max() > self._limit:
            rejected = np.flatnonzero(value > self._limit).tolist()
            moving = np.setdiff1d(moving, rejected, assume_unique=True)
        at = moving if isinstance(places, slice) else places.take(moving)
        target[at] = self._reduce_modulo_values(value.take(moving))
        # The cipher's buffer, which `position` and `value` look into, is free to be reused from here on.
        self._draw_further_attempts(
            target, at, rows.take(moving, axis=0), position.take(moving), np.zeros(1, np.uint64), _FEW
        )
        for row in rejected:  # so rare (values / 2^64) that each is walked alone, by the path's own rule
            draws = iterate_draws(self.cipher.iterate_words(rows[row]), int(self._values))
            place = row if isinstance(places, slice) else places[row]
            target[place] = find_report(draws, int(self._compute_threshold_of_decimal), truth=int(target[place]))
        if sum(len(each.places) for each in self._waiting) > CHUNK - _FEW:
            self._finish_pending()

    def finish(self) -> None:
        """Walk all objects that wait to their end, and put what was drawn elsewhere into its place."""
        self._finish_pending()
        for target, chosen, drawn in self._scattered:
            target[chosen] = drawn
        self._scattered.clear()

    def _finish_pending(self) -> None:
        """Walk all objects that wait, whichever chunk and try they come from, to their end."""
        waiting, self._waiting = self._waiting, []
        if not waiting:
            return
        rows, bound = (np.concatenate([each[column] for each in waiting]) for column in (2, 3))
        tries = np.concatenate([np.broadcast_to(each.tries, each.bound.shape) for each in waiting])
        report = np.concatenate([each.target.take(each.places) for each in waiting])
        self._draw_further_attempts(report, np.arange(len(report)), rows, bound, tries, 1)
        start = 0
        for each in waiting:
            each.target[each.places] = report[start : start + len(each.places)]
            start += len(each.places)

    def _draw_further_attempts(
        self, target: Codes, places: Places, rows: Words, bound: Words, tries: Words, few: int
    ) -> None:
        """Follow objects until fewer than `few` are left; those wait. `tries` is one number, or one for each."""
        while len(places) >= few:
            tries = tries + np.uint64(1)
            rows[:, 1] ^= (tries ^ (tries - np.uint64(1))) << np.uint64(32)
            words = self.cipher.encrypt(rows)
            word, value = words[:, 0], words[:, 1]
            position = self._reduce_below_bound(word, bound)
            # word lies in a complete run of `bound` words: the run's start, word - position, is at most 2^64 - bound.
            accepted = (word - position) <= np.negative(bound)
            if self._may_reject and value.max() > self._limit:
                accepted &= value <= self._limit
            above = position >= self._compute_threshold_of_decimal
            moved = np.flatnonzero(accepted & above)
            target[places.take(moved)] = self._reduce_modulo_values(value.take(moved))
            bound[moved] = position.take(moved)
            stays = np.flatnonzero(above | ~accepted)
            # `take` is several times faster than indexing, above all for rows.
            places, rows, bound = places.take(stays), rows.take(stays, axis=0), bound.take(stays)
            tries = tries if len(tries) == 1 else tries.take(stays)
        if len(places):
            self._waiting.append(_PendingRows(target, places, rows, bound, tries))

    def _reduce_below_bound(self, word: Words, bound: Words) -> Words:
        """Return word % bound. A bound is at least the threshold, so that the quotient is often 0, 1, 2 or 3.

        Then subtracting that often, and keeping the smaller number (a negative one wraps to a large one), is twice as
        fast as dividing.
        """
        if self._most_runs > 3:
            return word % bound
        for _ in range(self._most_runs):
            word = np.minimum(word, word - bound)
        return word

    def _reduce_modulo_values(self, words: Words) -> Words:
        """Return words % values; a mask, or a division by a constant, is much faster than NumPy's remainder."""
        if not self._may_reject:
            return words & (self._values - np.uint64(1))
        result: Words = words - words // self._values * self._values
        return result


class PathSampler(Protocol):
    """The reports of many objects on one path, at one threshold."""

    def draw_reports(self, target: Codes, messages: Messages, index: Words) -> None:
        """Draw over `target`, the truths of at most CHUNK objects, (objects, symbols); ready after `finish`."""
        ...

    def finish(self) -> None:
        """Put every report into its place."""
        ...


def make_path_sampler(derived: bytes, values: int, threshold: int) -> PathSampler:
    """Return what draws a path here."""
    found = get_kernel()
    # A threshold of 0 would be noise, which nobody releases; the compiled path has no rule for it.
    if found is None or threshold < 1:
        return NumpyPathSampler(derived, values, threshold)
    return _CompiledPathSampler(found, derived, values, threshold)


class _CompiledPathSampler:
    def __init__(self, found: Kernel, derived: bytes, values: int, threshold: int) -> None:
        self._kernel, self._derived, self._values, self._compute_threshold_of_decimal = (
            found,
            derived,
            values,
            threshold,
        )

    def draw_reports(self, target: Codes, messages: Messages, index: Words) -> None:
        self._kernel.draw(self._derived, self._values, self._compute_threshold_of_decimal, messages, index, target)

    def finish(self) -> None:
        """Nothing waits here."""


class CmacTags(Protocol):
    """The CMACs of many messages, whose last blocks hold an index, a symbol and try 0."""

    def tags(self, messages: Messages, index: Words | None, symbol: Words | int) -> tuple[Words, Words]:
        """Return the first word of each of at most CHUNK tags, and the sum of all as two words."""
        ...


def make_cmac_tags(derived: bytes) -> CmacTags:
    """Return what makes tags here."""
    found = get_kernel()
    return NumpyCmacTags(derived) if found is None else _CompiledCmacTags(found, derived)


class NumpyCmacTags:
    """Tags by NumPy."""

    def __init__(self, derived: bytes) -> None:
        self._cipher = AesBlockCipher(derived)

    def tags(self, messages: Messages, index: Words | None, symbol: Words | int) -> tuple[Words, Words]:
        """Return the first word of each of at most CHUNK tags, and the sum of all as two words."""
        words, sums = np.empty(len(messages), np.uint64), np.zeros(2, np.uint64)
        for chosen, blocks in messages.groups():
            first = np.uint64(0) if index is None else index[chosen]
            second = symbol if isinstance(symbol, int) else symbol[chosen]
            rows = self._cipher.make_last_block(self._cipher.compute_chaining_state(blocks), first, second)
            tags = self._cipher.encrypt(rows)
            words[chosen] = tags[:, 0]
            sums += tags.sum(axis=0, dtype=np.uint64)
        return words, sums


class _CompiledCmacTags:
    def __init__(self, found: Kernel, derived: bytes) -> None:
        self._kernel, self._derived = found, derived

    def tags(self, messages: Messages, index: Words | None, symbol: Words | int) -> tuple[Words, Words]:
        if isinstance(symbol, int):
            symbols = None if symbol == 0 else np.full(len(messages), symbol, np.uint64)
        else:
            symbols = symbol
        return self._kernel.tags(self._derived, messages, index, symbols)
