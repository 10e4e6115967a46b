"""One device: its word, its cohort, and its report at every level, up to a limit of its own."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from decimal import Decimal
from typing import NamedTuple, NoReturn

from relaxdp.errors import LevelError
from relaxdp.mechanisms.bloom import Bloom, draw_cohorts
from relaxdp.mechanisms.bloom_filter import BloomShape
from relaxdp.mechanisms.keyed_reports import ReportPath
from relaxdp.sampling.keys import Key
from relaxdp.sampling.stream import PathId
from relaxdp.theory.epsilon import Epsilon, as_epsilon, epsilon_text


class DeviceReport(NamedTuple):
    """The report of a device: its cohort, the bits as text (the highest first, as in RAPPOR's files), and the level."""

    cohort: int
    bits: str
    epsilon: Decimal


class Device:
    """A device that reports its word a little more clearly each time, at its own pace and up to its own limit.

    All its reports together cost the largest epsilon among them. The `repr` shows neither word nor key.

    >>> shape = BloomShape(bits=16, hashes=2, cohorts=64)
    >>> device = Device(
    ...     shape, "cheese", key=Key.from_bytes(bytes(range(32))), device_id="d-1",
    ...     release="words-2026", attribute="word", limit=6,
    ... )
    >>> [report.bits for report in device.iterate_reports([2, 4, 6])]
    ['1111101001000101', '0111100000011111', '0000001000001110']
    >>> device.at(7)
    Traceback (most recent call last):
    relaxdp.errors.LevelError: Epsilon 7 is above 6, the limit of this device. Request a report at 6 or less.
    """

    def __init__(
        self,
        shape: BloomShape,
        word: str | bool,
        *,
        key: Key,
        device_id: object,
        release: str,
        attribute: str,
        limit: Epsilon | None = None,
    ) -> None:
        """Take a word; `limit` is the most that this device will ever spend on it, and is best set before the word."""
        ids = [device_id]
        path = PathId(release, attribute)
        self.cohort = int(draw_cohorts(shape, ids, key=key, path=path)[0])
        """Public, and drawn from the id alone."""
        self.limit = None if limit is None else as_epsilon(limit)
        self._shape = shape
        self._bloom = Bloom(shape, self.cohort)
        self._path = ReportPath(self._bloom, word, key=key, object_id=device_id, path=path)

    def at(self, epsilon: Epsilon) -> DeviceReport:
        """Return the report at a level, that of the whole report: always the same one."""
        level = self._bloom.level(epsilon)
        exact = level.epsilon
        if self.limit is not None and exact > self.limit:
            raise LevelError(
                "Epsilon {epsilon} is above {limit}, the limit of this device.",
                hint="Request a report at {limit} or less.",
                limit=epsilon_text(self.limit),
                epsilon=epsilon_text(exact),
            )
        return DeviceReport(self.cohort, "".join(map(str, reversed(self._path.codes_at(level)))), exact)

    def iterate_reports(self, schedule: Iterable[Epsilon]) -> Iterator[DeviceReport]:
        """Return a report for every level of a schedule that the limit allows, when it is asked for."""
        for level in map(as_epsilon, schedule):
            if self.limit is not None and level > self.limit:
                return
            yield self.at(level)

    def __reduce__(self) -> NoReturn:
        raise TypeError("A device cannot be pickled, because it contains a word.")

    def __repr__(self) -> str:
        return f"<Device in cohort {self.cohort}>"
