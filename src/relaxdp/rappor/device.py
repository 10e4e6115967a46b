"""One device: its word, its cohort, and its report at every level, up to a limit of its own."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from decimal import Decimal
from typing import NamedTuple, NoReturn

from relaxdp.draw.key import Key
from relaxdp.draw.stream import PathId
from relaxdp.encodings.path import ReportPath
from relaxdp.errors import LevelError
from relaxdp.law.epsilon import Epsilon, as_epsilon, epsilon_text
from relaxdp.rappor.encoding import BloomEncoding, cohorts_of
from relaxdp.rappor.filter import BloomShape


class DeviceReport(NamedTuple):
    """What leaves a device: its cohort, the bits as text (the highest first, as in RAPPOR's files), and the level."""

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
    >>> [report.bits for report in device.along([2, 4, 6])]
    ['1111101001000101', '0111100000011111', '0000001000001110']
    >>> device.at(7)
    Traceback (most recent call last):
    relaxdp.errors.LevelError: this device goes up to epsilon 6, and 7 was asked for.
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
        self.cohort = int(cohorts_of(shape, ids, key=key, path=path)[0])
        """Public, and drawn from the id alone."""
        self.limit = None if limit is None else as_epsilon(limit)
        self._shape = shape
        self._encoding = BloomEncoding(shape, self.cohort)
        self._path = ReportPath(self._encoding, word, key=key, object_id=device_id, path=path)

    def at(self, epsilon: Epsilon) -> DeviceReport:
        """Return the report at a level, that of the whole report: always the same one."""
        level = self._encoding.level(epsilon)
        exact = level.epsilon
        if self.limit is not None and exact > self.limit:
            raise LevelError(
                "this device goes up to epsilon {limit}, and {epsilon} was asked for.",
                limit=epsilon_text(self.limit),
                epsilon=epsilon_text(exact),
            )
        return DeviceReport(self.cohort, "".join(map(str, reversed(self._path.codes_at(level)))), exact)

    def along(self, schedule: Iterable[Epsilon]) -> Iterator[DeviceReport]:
        """Return a report for every level of a schedule that the limit allows, when it is asked for."""
        for level in map(as_epsilon, schedule):
            if self.limit is not None and level > self.limit:
                return
            yield self.at(level)

    def __reduce__(self) -> NoReturn:
        raise TypeError("a device holds a word and is not pickled.")

    def __repr__(self) -> str:
        return f"<Device in cohort {self.cohort}>"
