"""A simulated fleet of devices, relaxed by Algorithm 1 with fresh randomness: for experiments and for planning."""

from __future__ import annotations

from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from relaxdp.errors import ColumnError, LevelError, RapporError
from relaxdp.mechanisms.bloom import BloomShape, compute_bit_threshold
from relaxdp.sampling.bridge import draw_fresh_bridge_reports
from relaxdp.sampling.entropy import Entropy, SystemEntropy
from relaxdp.theory.epsilon import Epsilon, as_epsilon, format_epsilon
from relaxdp.theory.randomized_response import NOISE, TRUTH, compute_retention

Bits = NDArray[np.uint8]


class Fleet:
    """Many devices at one level. Each keeps its last report, as a device must; all of them live in memory.

    Devices are put in the order of their cohorts, so that a cohort is a run of rows.
    """

    def __init__(self, shape: BloomShape, words: Any, cohorts: Any, *, entropy: Entropy | None = None) -> None:
        """Give every device a word, as text, and a cohort. `entropy` is the system's own unless said otherwise."""
        self.shape = shape
        places, distinct = _distinct(words)
        numbers = np.asarray(cohorts)
        if len(numbers) != len(places):
            raise ColumnError(
                "there are {places:,} words and {numbers:,} cohorts.", places=len(places), numbers=len(numbers)
            )
        if numbers.dtype.kind not in "iu" or (len(numbers) and not 0 <= numbers.min() <= numbers.max() < shape.cohorts):
            raise RapporError(
                "cohorts are whole numbers from 0 to {last}.", last=shape.cohorts - 1, cohorts=shape.cohorts
            )
        order = np.argsort(numbers, kind="stable")
        self.order = order
        """Which of the given devices stands in each row."""
        self.devices = np.bincount(numbers, minlength=shape.cohorts).astype(np.int64)
        self._edges = np.concatenate([[0], np.cumsum(self.devices)])
        self._truth = self._filters(places[order], distinct)
        self._last: Bits | None = None
        self._entropy = entropy or SystemEntropy()
        self._level, self.epsilon = NOISE, as_epsilon(0, allow_zero=True)

    def relax(self, *, epsilon: Epsilon) -> None:
        """Take every device to a higher level, one step of Algorithm 1; the level of the whole report."""
        exact = as_epsilon(epsilon)
        if exact <= self.epsilon:
            raise LevelError(
                "epsilon may only grow: the fleet is at {epsilon} and {exact} was asked for. A report cannot "
                "be taken back.",
                epsilon=format_epsilon(self.epsilon),
                exact=format_epsilon(exact),
            )
        level = compute_retention(compute_bit_threshold(self.shape, exact))
        flat = None if self._last is None else self._last.reshape(-1)
        drawn = draw_fresh_bridge_reports(
            2, self._level, level, TRUTH,
            lower_reports=flat, upper_reports=self._truth.reshape(-1), entropy=self._entropy,
        )  # fmt: skip
        self._last = np.asarray(drawn, dtype=np.uint8).reshape(self._truth.shape)
        self._level, self.epsilon = level, exact

    @property
    def reports(self) -> Bits:
        """The bits of every device's last report, in the order of the rows."""
        if self._last is None:
            raise LevelError("the fleet has not reported yet.")
        return self._last

    def counts(self) -> NDArray[np.int64]:
        """Return how often each bit is set in each cohort: what a server counts."""
        rows = self.reports
        runs = zip(self._edges[:-1], self._edges[1:], strict=True)
        return np.array([rows[start:stop].sum(axis=0, dtype=np.int64) for start, stop in runs])

    def _filters(self, places: NDArray[np.intp], distinct: list[str]) -> Bits:
        filters = np.zeros((len(places), self.shape.bits), dtype=np.uint8)
        for cohort, (start, stop) in enumerate(zip(self._edges[:-1], self._edges[1:], strict=True)):
            table = np.zeros((len(distinct), self.shape.bits), dtype=np.uint8)
            for row, word in enumerate(distinct):
                table[row, list(self.shape.compute_bits(word, cohort))] = 1
            filters[start:stop] = table[places[start:stop]]
        return filters

    def __reduce__(self) -> NoReturn:
        raise TypeError("a fleet holds words and is not pickled.")


def _distinct(words: Any) -> tuple[NDArray[np.intp], list[str]]:
    distinct, places = np.unique(np.asarray(words, dtype=str), return_inverse=True)
    return places.reshape(-1), distinct.tolist()
