"""Reports on the wire and in the database: checked when they arrive, kept as few bytes, counted many at once."""

from __future__ import annotations

import binascii
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from relaxdp.encodings.bits import count_bits, histogram
from relaxdp.encodings.local_hash import LocalHashEncoding
from relaxdp.encodings.packed import PackedEncoding
from relaxdp.encodings.protocol import Encoding
from relaxdp.encodings.unary import UnaryEncoding
from relaxdp.errors import RelaxdpError, ReportOutsideEncodingError
from relaxdp.rappor.encoding import BloomEncoding

Integers = NDArray[np.int64]
Counted = dict[int, Integers]
"""For each part (a cohort, or 0): the number of devices, then how many reports support each label."""

COHORT_BYTES = 4


class Codec(ABC):
    """How the reports of one campaign are read, kept and counted."""

    width: int
    """How many bytes a kept report has."""
    fixed: int = 0
    """How many of the first bytes stay the same at all levels of a device: a seed, a cohort."""

    @abstractmethod
    def read(self, report: str | int | float, cohort: int | None) -> bytes:
        """Return what is kept of a report, or refuse what the encoding does not have."""

    @abstractmethod
    def count(self, kept: Sequence[bytes]) -> Counted:
        """Return the counts of kept reports."""

    @abstractmethod
    def column(self, kept: Sequence[bytes]) -> Any:
        """Return kept reports as an Arrow column, as a released file has it."""

    def cohorts(self, kept: Sequence[bytes]) -> NDArray[np.uint32] | None:
        """Return the cohorts of kept reports, where there are any."""
        return None

    def _matrix(self, kept: Sequence[bytes]) -> NDArray[np.uint8]:
        return np.frombuffer(b"".join(kept), dtype=np.uint8).reshape(len(kept), self.width)


class LabelCodec(Codec):
    """Reports that are one of the labels: categorical and numeric."""

    def __init__(self, encoding: Encoding) -> None:
        self._encoding = encoding
        self._labels = len(encoding.labels)
        self.width = 1 if self._labels <= 1 << 8 else 2 if self._labels <= 1 << 16 else 4
        self._known: dict[Any, bytes] = {
            label: place.to_bytes(self.width, "little") for place, label in enumerate(encoding.labels)
        }

    def read(self, report: str | int | float, cohort: int | None) -> bytes:
        """Return the place of the label."""
        kept = self._known.get(report)
        if kept is None or cohort is not None:
            raise outside()
        return kept

    def count(self, kept: Sequence[bytes]) -> Counted:
        """Return how often each label was reported."""
        return {0: _with_devices(len(kept), histogram(self._places(kept), self._labels))}

    def column(self, kept: Sequence[bytes]) -> Any:
        """Return the labels."""
        return self._encoding.column(self._places(kept)[:, None])

    def _places(self, kept: Sequence[bytes]) -> NDArray[np.unsignedinteger]:
        return np.frombuffer(b"".join(kept), dtype=f"<u{self.width}")


class PackedCodec(Codec):
    """Reports that are packed bytes: unary, local hashing, and what others plug in."""

    def __init__(self, encoding: PackedEncoding) -> None:
        self._encoding = encoding
        self.width = encoding.report_width
        self.fixed = 8 if encoding.seeded else 0
        self._spare = -encoding.symbols % 8 if isinstance(encoding, UnaryEncoding) else None
        self._buckets = encoding.alphabet if isinstance(encoding, LocalHashEncoding) else None

    def read(self, report: str | int | float, cohort: int | None) -> bytes:
        """Return the bytes."""
        kept = _bytes(report, self.width)
        if cohort is not None:
            raise outside()
        if self._spare is not None:
            if kept[-1] >> (8 - self._spare):
                raise outside()
        elif self._buckets is not None:
            if int.from_bytes(kept[8:], "little") >= self._buckets:
                raise outside()
        else:
            try:
                self._encoding.unpack(self._matrix([kept]))
            except RelaxdpError:
                raise outside() from None
        return kept

    def count(self, kept: Sequence[bytes]) -> Counted:
        """Return how many reports support each value."""
        return {0: _with_devices(len(kept), self._encoding.count_packed(self._matrix(kept)))}

    def column(self, kept: Sequence[bytes]) -> Any:
        """Return the packed reports."""
        return self._encoding.column(*self._encoding.unpack(self._matrix(kept)))


class BloomCodec(Codec):
    """Reports of Bloom filters: the cohort first, then the bits."""

    fixed = COHORT_BYTES

    def __init__(self, encoding: BloomEncoding) -> None:
        self._encoding = encoding
        self.width = COHORT_BYTES + encoding.report_width
        self._spare = -encoding.symbols % 8

    def read(self, report: str | int | float, cohort: int | None) -> bytes:
        """Return cohort and bits."""
        bits = _bytes(report, self._encoding.report_width)
        if cohort is None or not 0 <= cohort < self._encoding.shape.cohorts or bits[-1] >> (8 - self._spare):
            raise outside()
        return cohort.to_bytes(COHORT_BYTES, "little") + bits

    def count(self, kept: Sequence[bytes]) -> Counted:
        """Return, for each cohort, how often each bit was set."""
        cohorts, bits = self.cohorts(kept), self._matrix(kept)[:, COHORT_BYTES:]
        found: Counted = {}
        for cohort in np.unique(cohorts):
            rows = np.ascontiguousarray(bits[cohorts == cohort])
            found[int(cohort)] = _with_devices(len(rows), count_bits(rows, self._encoding.symbols))
        return found

    def column(self, kept: Sequence[bytes]) -> Any:
        """Return the packed bits."""
        packed = np.ascontiguousarray(self._matrix(kept)[:, COHORT_BYTES:])
        return self._encoding.column(self._encoding.unpack(packed)[0])

    def cohorts(self, kept: Sequence[bytes]) -> NDArray[np.uint32]:
        """Return the cohorts."""
        first = np.ascontiguousarray(self._matrix(kept)[:, :COHORT_BYTES])
        return np.asarray(first.view("<u4")[:, 0], dtype=np.uint32)


def codec_of(encoding: Encoding) -> Codec:
    """Return how an encoding's reports are read, kept and counted."""
    if isinstance(encoding, BloomEncoding):
        return BloomCodec(encoding)
    if isinstance(encoding, PackedEncoding):
        return PackedCodec(encoding)
    return LabelCodec(encoding)


def outside() -> ReportOutsideEncodingError:
    """Return the error for what is no report. It does not show it."""
    return ReportOutsideEncodingError("this is no report of the campaign's encoding.")


def _bytes(report: str | int | float, width: int) -> bytes:
    try:
        kept = binascii.a2b_base64(report, strict_mode=True) if isinstance(report, str) else b""
    except ValueError:  # also what is not ASCII
        kept = b""
    if len(kept) != width:
        raise outside()
    return kept


def _with_devices(devices: int, counts: Integers) -> Integers:
    return np.concatenate([np.array([devices], dtype=np.int64), counts])
