"""Reports on the wire and in the database: checked when they arrive, kept as few bytes, counted many at once."""

from __future__ import annotations

import binascii
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from relaxdp.draw.stream import Words
from relaxdp.encodings.protocol import Codes, Encoding, Packed, code_dtype
from relaxdp.errors import ReportOutsideEncodingError
from relaxdp.estimation.transitions import count_both, equal_symbols, told_labels

Integers = NDArray[np.int64]
Counted = dict[int, Integers]
"""For each part (a cohort, or 0): the number of devices, then how many reports support each label."""

COHORT_BYTES = 4


class Codec:
    """How the reports of one campaign or pool are read, kept and counted: as their encoding packs them, cohort first.

    A report travels as its label, or as its bytes in base64 where it has none.
    """

    def __init__(self, encoding: Encoding) -> None:
        self._encoding = encoding
        self._first = COHORT_BYTES if encoding.cohorts else 0
        self.width = self._first + encoding.packed_width
        """How many bytes a kept report has."""
        self._known = None if encoding.report_width else _labels(encoding)
        self._told: int | None = None

    def read(self, report: str | int | float, cohort: int | None) -> bytes:
        """Return what is kept of a report, or refuse what the encoding does not have."""
        kept = self._bytes(report) if self._known is None else self._known.get(report)
        if kept is None or (cohort is not None) != bool(self._first):
            raise outside()
        if cohort is None:
            return kept
        if not 0 <= cohort < self._encoding.cohorts:
            raise outside()
        return cohort.to_bytes(COHORT_BYTES, "little") + kept

    def fixed(self, kept: bytes) -> bytes:
        """Return what must be the same at all levels of a device: its seed, its cohort."""
        return kept[: self._first] if self._first else self._encoding.kept_part(kept)

    def count(self, kept: Sequence[bytes]) -> Counted:
        """Return the counts of kept reports, by cohort where there are any."""
        packed, cohorts = self._packed(kept), self.cohorts(kept)
        if cohorts is None:
            return {0: self._counted(packed)}
        return {int(each): self._counted(np.ascontiguousarray(packed[cohorts == each])) for each in np.unique(cohorts)}

    def count_pairs(
        self, older: Sequence[bytes], newer: Sequence[bytes], news: Counted, olds: Counted | None = None
    ) -> Integers:
        """Return what is kept of pairs of kept reports, whose own counts are known; all cohorts together."""
        if self._told is None:
            self._told = told_labels(self._encoding)
        lower, upper = self._packed(older), self._packed(newer)
        parts = [np.array([len(newer), equal_symbols(self._encoding, lower, upper)], dtype=np.int64)]
        if self._told:
            first = news[0][1:]
            second = np.zeros_like(first) if olds is None else olds[0][1:]
            parts += [first, second, count_both(self._encoding, lower, upper)]
        return np.concatenate(parts)

    def codes(self, kept: Sequence[bytes]) -> tuple[Codes, Words | None]:
        """Return codes and seeds of kept reports."""
        return self._encoding.unpack(self._packed(kept))

    def column(self, kept: Sequence[bytes]) -> Any:
        """Return kept reports as an Arrow column, as a released file has it."""
        return self._encoding.column(*self.codes(kept))

    def kept(self, column: Any) -> list[bytes]:
        """Return a column of reports as the bytes in which single ones are kept: the inverse of `column`."""
        return [row.tobytes() for row in self._encoding.pack(*self._encoding.read(column))]

    def cohorts(self, kept: Sequence[bytes]) -> NDArray[np.uint32] | None:
        """Return the cohorts of kept reports, where there are any."""
        if not self._first:
            return None
        first = np.ascontiguousarray(self._matrix(kept)[:, :COHORT_BYTES])
        return np.asarray(first.view("<u4")[:, 0], dtype=np.uint32)

    def _counted(self, packed: Packed) -> Integers:
        return np.concatenate([np.array([len(packed)], dtype=np.int64), self._encoding.count_packed(packed)])

    def _bytes(self, report: str | int | float) -> bytes | None:
        try:
            kept = binascii.a2b_base64(report, strict_mode=True) if isinstance(report, str) else b""
        except ValueError:  # also what is not ASCII
            return None
        return kept if len(kept) == self._encoding.packed_width and self._encoding.is_report(kept) else None

    def _packed(self, kept: Sequence[bytes]) -> Packed:
        return np.ascontiguousarray(self._matrix(kept)[:, self._first :])

    def _matrix(self, kept: Sequence[bytes]) -> Packed:
        return np.frombuffer(b"".join(kept), dtype=np.uint8).reshape(len(kept), self.width)


def _labels(encoding: Encoding) -> dict[Any, bytes]:
    """Return what is kept of each report that there is."""
    codes = np.arange(encoding.alphabet, dtype=code_dtype(encoding.alphabet))[:, None]
    return dict(zip(encoding.reports(codes), (row.tobytes() for row in encoding.pack(codes)), strict=True))


def outside() -> ReportOutsideEncodingError:
    """Return the error for what is no report. It does not show it."""
    return ReportOutsideEncodingError("this is no report of the campaign's encoding.")
