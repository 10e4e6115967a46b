"""Exact distributions of programs that read uniform numbers: every number that such a program can read is tried.

A program reads whole numbers that are uniform below 256 to some power, as many as it wants. Numbers of eight bytes are
too many to be tried one by one. So a number is taken to decide either by its order (all numbers between two cuts do the
same) or by its remainder, with the last, incomplete run of remainders rejected. Which of both, and where the cuts are,
is found by trying: halving finds a cut to the last digit, and further numbers of every part are tried to see that it is
one. A number that lies on a cut, so that the program reads further digits, has probability 1 / 256^bytes: it is left
open, and the probability of everything that is left open is returned.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

Outcome = Hashable
Behave = Callable[[int], Any]
Then = Callable[[int, int], int]
"""Returns a number below the first argument; the second one counts the numbers that were read so."""
MOST_READ = 24
LARGEST_PERIOD = 3
OPEN = "open"


class ExhaustedError(Exception):
    """A program wants to read more numbers than there are."""

    def __init__(self, size: int) -> None:
        """Say how many bytes the number has that it wants to read."""
        super().__init__(size)
        self.size = size


class Numbers:
    """The numbers that a program reads: those that are given, then those that a rule gives for their size."""

    def __init__(self, given: tuple[int, ...], then: Then | None = None) -> None:
        self._given, self._then, self._read = given, then, 0

    def read(self, size: int) -> int:
        """Return the next number, which has so many bytes."""
        place, self._read = self._read, self._read + 1
        if place < len(self._given):
            return self._given[place]
        if self._then is None or place >= len(self._given) + MOST_READ:
            raise ExhaustedError(size)
        return self._then(256**size, place - len(self._given))


Program = Callable[[Numbers], Outcome]
# What comes after a number that is tried: small and large numbers in turn. More of these would tell more numbers apart;
# too few give a wrong distribution, which then differs from the exact one.
CONTINUATIONS: tuple[Then, ...] = (
    lambda count, step: 0,
    lambda count, step: 1,
    lambda count, step: 0 if step == 0 else count - 2,
    lambda count, step: count - 2 if step == 0 else 1,
)


@dataclass
class Distribution:
    """Outcomes with their probabilities, one way to each of them, and the probability of what is left open."""

    chances: dict[Outcome, Fraction] = field(default_factory=lambda: defaultdict(Fraction))
    ways: list[tuple[tuple[int, ...], Outcome]] = field(default_factory=list)
    open: Fraction = Fraction(0)

    def includes(self, exact: dict[Outcome, Fraction]) -> bool:
        """Return whether a distribution agrees with this one: what is left open may belong to any outcome."""
        low = all(self.chances.get(outcome, Fraction(0)) <= chance for outcome, chance in exact.items())
        high = all(chance <= self.chances.get(outcome, Fraction(0)) + self.open for outcome, chance in exact.items())
        return low and high and set(self.chances) <= set(exact) and sum(exact.values()) == 1


def enumerate_outcomes(program: Program) -> Distribution:
    """Return the exact distribution of the outcomes of a program."""
    found = Distribution()
    _Search(program, found).explore((), Fraction(1))
    assert sum(found.chances.values()) + found.open == 1
    return found


class _Search:
    """Goes through all numbers that a program can read, one part after the other."""

    def __init__(self, program: Program, found: Distribution) -> None:
        self._program, self._found = program, found
        self._known: list[tuple[int, list[int]]] = []

    def explore(self, prefix: tuple[int, ...], chance: Fraction) -> None:
        """Add everything that can follow after some numbers."""
        try:
            outcome = self._program(Numbers(prefix))
        except ExhaustedError as wanted:
            for number, share in self._parts(prefix, 256**wanted.size):
                if number is None:
                    self._found.open += chance * share
                else:
                    self.explore((*prefix, number), chance * share)
            return
        self._found.chances[outcome] += chance
        self._found.ways.append((prefix, outcome))

    def _run(self, numbers: Numbers) -> Any:
        try:
            return self._program(numbers)
        except ExhaustedError:
            return OPEN

    def _parts(self, prefix: tuple[int, ...], count: int) -> Iterator[tuple[int | None, Fraction]]:
        """Return one number of each part of 0 .. count - 1, and the share of the part; None is what is left open."""
        seen: dict[int, Any] = {}

        def behave(number: int) -> Any:
            if number not in seen:
                seen[number] = tuple(self._run(Numbers((*prefix, number), then)) for then in CONTINUATIONS)
            return seen[number]

        # A rejected number is read again, so that the others share its probability.
        period = _find_period(behave)
        if period > 1:
            self._check_remainders(prefix, behave, period, count)
            yield from ((number, Fraction(1, period)) for number in range(period))
            return
        parts = self._runs(behave, count)
        first, stop = parts[-1]
        if len(parts) > 1 and stop - first < LARGEST_PERIOD and self._is_rejected(prefix, first, range(first)):
            parts, count = parts[:-1], first
        for first, stop in parts:
            middle = first + (stop - first) // 2
            yield None if stop - first == 1 and count > 256 else middle, Fraction(stop - first, count)

    def _runs(self, behave: Behave, count: int) -> list[tuple[int, int]]:
        """Return where parts of 0 .. count - 1 begin and stop; cuts that were found before are tried first."""
        for known_count, cuts in self._known:
            if known_count == count and _are_cuts(behave, cuts, count):
                return _between(cuts, count)
        cuts = list(_find_cuts(behave, count))
        assert _are_cuts(behave, cuts, count), "a number decides neither by its order nor by its remainder"
        self._known.append((count, cuts))
        return _between(cuts, count)

    def _check_remainders(self, prefix: tuple[int, ...], behave: Behave, period: int, count: int) -> None:
        """Require that remainders decide everywhere, and that the last, incomplete run is rejected."""
        limit = count - count % period
        near = [
            *range(limit - 2 * period, limit),
            *(limit * part // 5 + place for part in range(5) for place in (0, 1)),
        ]
        for number in near:
            assert behave(number) == behave(number % period), "a number decides neither by order nor by remainder"
        for number in range(limit, count):
            assert self._is_rejected(prefix, number, range(limit))

    def _is_rejected(self, prefix: tuple[int, ...], number: int, others: range) -> bool:
        """Return whether another number is read in the place of this one, and does what it would have done."""
        for again in (*range(LARGEST_PERIOD), *_within(0, others.stop), others[-1]):
            for then in CONTINUATIONS:
                if self._run(Numbers((*prefix, number, again), then)) != self._run(Numbers((*prefix, again), then)):
                    return False
        return True


def _find_period(behave: Behave) -> int:
    """Return by which number the remainder decides; 1 if the order does."""
    first = [behave(number) for number in range(2 * LARGEST_PERIOD)]
    every = range(1, LARGEST_PERIOD + 1)
    return next((each for each in every if all(first[place] == first[place % each] for place in range(len(first)))), 1)


def _find_cuts(behave: Behave, count: int) -> Iterator[int]:
    """Return the first number of every part but the first, by halving."""
    first, last = 0, count - 1
    while behave(first) != behave(last) or any(behave(each) != behave(first) for each in _within(first, count)):
        low = first
        high = next((each for each in (*_within(first, count), last) if behave(each) != behave(first)), last)
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if behave(middle) == behave(first) else (low, middle)
        yield high
        first = high


def _are_cuts(behave: Behave, cuts: Sequence[int], count: int) -> bool:
    """Return whether numbers do the same within parts, and something else beyond a cut."""
    differ = all(behave(cut - 1) != behave(cut) for cut in cuts)
    return differ and all(
        behave(each) == behave(first)
        for first, stop in _between(cuts, count)
        for each in (*_within(first, stop), stop - 1)
    )


def _between(cuts: Sequence[int], count: int) -> list[tuple[int, int]]:
    return list(zip([0, *cuts], [*cuts, count], strict=True))


def _within(first: int, stop: int) -> list[int]:
    """Return some numbers of a part."""
    return [first + (stop - 1 - first) * part // 5 for part in range(1, 5)]
