"""Contenders take turns, so that whatever else the machine does hits all of them alike."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from statistics import median
from time import perf_counter


@dataclass(frozen=True, slots=True)
class Contender:
    """Something to be timed: one call handles `objects` objects."""

    name: str
    objects: int
    run: Callable[[], object]


@dataclass(frozen=True, slots=True)
class Ratio:
    """How many times as fast one contender was as another: the median of all rounds, and the extremes."""

    median: float
    lowest: float
    highest: float


class Race:
    """The speeds of all contenders in all rounds, in objects per second."""

    def __init__(self, title: str, speeds: dict[str, list[float]]) -> None:
        self.title = title
        self._speeds = speeds

    @property
    def names(self) -> list[str]:
        """The contenders, in the order in which they ran."""
        return list(self._speeds)

    def speed(self, name: str) -> float:
        """Return the median speed of a contender."""
        return median(self._speeds[name])

    def ratio(self, name: str, rival: str) -> Ratio:
        """Return how many times as fast as `rival` a contender was, compared within each round."""
        pairs = zip(self._speeds[name], self._speeds[rival], strict=True)
        ratios = [own / other for own, other in pairs]
        return Ratio(median(ratios), min(ratios), max(ratios))

    def fastest(self, names: Iterable[str]) -> str:
        """Return which of these contenders has the largest median speed."""
        return max(names, key=self.speed)


def race(title: str, contenders: Sequence[Contender], rounds: int, note: Callable[[str], None]) -> Race:
    """Run every contender once unmeasured (compilers, caches, page tables), then `rounds` times in turns."""
    note(f"{title}: {len(contenders)} contenders, warming up ...")
    for contender in contenders:
        contender.run()
    speeds: dict[str, list[float]] = {contender.name: [] for contender in contenders}
    # Millions of small objects would wake the collector at random moments, and no contender leaves it anything to do.
    gc.disable()
    try:
        for number in range(1, rounds + 1):
            note(f"{title}: round {number} of {rounds} ...")
            for contender in contenders:
                speeds[contender.name].append(contender.objects / _seconds(contender.run))
    finally:
        gc.enable()
    return Race(title, speeds)


def _seconds(run: Callable[[], object]) -> float:
    start = perf_counter()
    result = run()
    stop = perf_counter()
    del result  # what a contender returns is freed off the clock
    return stop - start
