"""A device that reports a word by RAPPOR, at growing levels."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from decimal import Decimal
from typing import NamedTuple

import numpy as np

from relaxdp.errors import LevelError
from relaxdp.mechanisms.bloom import Bloom, BloomShape
from relaxdp.mechanisms.report_arrays import format_bits
from relaxdp.sampling.keyed_stream import PathId
from relaxdp.sampling.keys import Key
from relaxdp.theory.epsilon import Epsilon, as_epsilon, format_epsilon


class RapporReport(NamedTuple):
    """A report: the cohort of the device, the bits as text (the highest first, as in RAPPOR's files), and the level."""

    cohort: int
    bits: str
    epsilon: Decimal


class RapporDevice:
    """A device that reports its word at growing levels, at its own pace and up to its own limit.

    All its reports together cost the largest epsilon among them. The `repr` shows neither word nor key.

    Args:
        shape: Bits, hashes and cohorts of the Bloom filter.
        word: The true value; true or false if the shape has one bit.
        key: The secret key of the device.
        id: The id of the device, from which its cohort is drawn.
        name: The name of the release. Another name is another path, whose cost adds up.
        column: The name of the column, or of the question, that the word belongs to.
        limit: The largest epsilon that the device will ever report at. Set it before the word is known.

    >>> shape = BloomShape(bits=16, hashes=2, cohorts=64)
    >>> device = RapporDevice(
    ...     shape, "cheese", key=Key.from_bytes(bytes(range(32))), id="d-1", name="words-2026",
    ...     column="word", limit=6,
    ... )
    >>> [report.bits for report in device.iterate_reports([2, 4, 6])]
    ['1111101001000101', '0111100000011111', '0000001000001110']
    >>> device.get_report(7)
    Traceback (most recent call last):
    relaxdp.errors.LevelError: Epsilon 7 is above 6, the limit of this device. Request a report at 6 or less.
    """

    def __init__(
        self,
        shape: BloomShape,
        word: str | bool,
        *,
        key: Key,
        id: object,
        name: str,
        column: str,
        limit: Epsilon | None = None,
    ) -> None:
        self.limit = None if limit is None else as_epsilon(limit)
        self._bloom = Bloom(shape).for_cohort(id, key=key, path=PathId(name, column))
        self.cohort = self._bloom.cohort
        """Public, and drawn from the id alone."""
        self._path = self._bloom.path(word, key=key, id=id, name=name, column=column)

    def get_report(self, epsilon: Epsilon) -> RapporReport:
        """Return the report at the epsilon of a whole report. The same epsilon gives the same report again.

        Raises:
            LevelError: Epsilon is above the limit of the device.
        """
        level = self._bloom.level(epsilon)
        if self.limit is not None and level.epsilon > self.limit:
            raise LevelError(
                "Epsilon {epsilon} is above {limit}, the limit of this device.",
                hint="Request a report at {limit} or less.",
                limit=format_epsilon(self.limit),
                epsilon=format_epsilon(level.epsilon),
            )
        packed = np.frombuffer(self._path.at(level.epsilon), dtype=np.uint8)
        return RapporReport(self.cohort, format_bits(packed[None], self._bloom.symbols)[0], level.epsilon)

    def iterate_reports(self, schedule: Iterable[Epsilon]) -> Iterator[RapporReport]:
        """Yield a report for every level of a schedule, up to the limit."""
        for level in map(as_epsilon, schedule):
            if self.limit is not None and level > self.limit:
                return
            yield self.get_report(level)
