"""Reports on the wire and in the database: checked when they arrive, kept as few bytes, counted many at once."""

from __future__ import annotations

import binascii
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from relaxdp.estimation.report_pairs import count_equal_symbols_in_pairs, count_labels_in_both, count_tracked_labels
from relaxdp.mechanisms.base import Mechanism
from relaxdp.mechanisms.bloom import Bloom
from relaxdp.mechanisms.report_arrays import (
    SEED_BYTES,
    Codes,
    Packed,
    count_packed_reports,
    get_code_dtype,
    get_packed_width,
    get_report_width,
    make_report_column,
    make_report_list,
    pack_reports,
    read_report_column,
    unpack_reports,
)
from relaxdp.sampling.keyed_stream import Words
from relaxdp.server_errors import ReportOutsideEncodingError

Integers = NDArray[np.int64]
Counted = dict[int, Integers]
"""For each part (a cohort, or 0): the number of devices, then how many reports support each label."""

COHORT_BYTES = 4


class Codec:
    """How the reports of one campaign or pool are read, kept and counted: as their encoding packs them, cohort first.

    A report travels as its label, or as its bytes in base64 where it has none.
    """

    def __init__(self, encoding: Mechanism) -> None:
        self._encoding = encoding
        self._cohorts = encoding.shape.cohorts if isinstance(encoding, Bloom) else 0
        self._first = COHORT_BYTES if self._cohorts else 0
        self._packed_width = get_packed_width(encoding)
        self.width = self._first + self._packed_width
        """How many bytes a kept report has."""
        self._known = None if get_report_width(encoding) else _labels(encoding)
        self._told: int | None = None

    def read(self, report: str | int | float, cohort: int | None) -> bytes:
        """Return what is kept of a report, or refuse what the encoding does not have."""
        kept = self._bytes(report) if self._known is None else self._known.get(report)
        if kept is None or (cohort is not None) != bool(self._first):
            raise outside()
        if cohort is None:
            return kept
        if not 0 <= cohort < self._cohorts:
            raise outside()
        return cohort.to_bytes(COHORT_BYTES, "little") + kept

    def fixed(self, kept: bytes) -> bytes:
        """Return what must be the same at all levels of a device: its seed, its cohort."""
        return kept[: SEED_BYTES if self._encoding.seeded else self._first]

    def count(self, kept: Sequence[bytes]) -> Counted:
        """Return the counts of kept reports, by cohort where there are any."""
        packed, cohorts = self._packed(kept), self.cohorts(kept)
        if cohorts is None:
            return {0: self._counted(packed)}
        return {int(each): self._counted(np.ascontiguousarray(packed[cohorts == each])) for each in np.unique(cohorts)}

    def count_packed_report_pairs(
        self, older: Sequence[bytes], newer: Sequence[bytes], news: Counted, olds: Counted | None = None
    ) -> Integers:
        """Return what is kept of pairs of kept reports, whose own counts are known; all cohorts together."""
        if self._told is None:
            self._told = count_tracked_labels(self._encoding)
        lower, upper = self._packed(older), self._packed(newer)
        parts = [np.array([len(newer), count_equal_symbols_in_pairs(self._encoding, lower, upper)], dtype=np.int64)]
        if self._told:
            first = news[0][1:]
            second = np.zeros_like(first) if olds is None else olds[0][1:]
            parts += [first, second, count_labels_in_both(self._encoding, lower, upper)]
        return np.concatenate(parts)

    def codes(self, kept: Sequence[bytes]) -> tuple[Codes, Words | None]:
        """Return codes and seeds of kept reports."""
        return unpack_reports(self._encoding, self._packed(kept))

    def column(self, kept: Sequence[bytes]) -> Any:
        """Return kept reports as an Arrow column, as a released file has it."""
        return make_report_column(self._encoding, *self.codes(kept))

    def kept(self, column: Any) -> list[bytes]:
        """Return a column of reports as the bytes in which single ones are kept: the inverse of `column`."""
        return [row.tobytes() for row in pack_reports(self._encoding, *read_report_column(self._encoding, column))]

    def cohorts(self, kept: Sequence[bytes]) -> NDArray[np.uint32] | None:
        """Return the cohorts of kept reports, where there are any."""
        if not self._first:
            return None
        first = np.ascontiguousarray(self._matrix(kept)[:, :COHORT_BYTES])
        return np.asarray(first.view("<u4")[:, 0], dtype=np.uint32)

    def _counted(self, packed: Packed) -> Integers:
        return np.concatenate([np.array([len(packed)], dtype=np.int64), count_packed_reports(self._encoding, packed)])

    def _bytes(self, report: str | int | float) -> bytes | None:
        try:
            kept = binascii.a2b_base64(report, strict_mode=True) if isinstance(report, str) else b""
        except ValueError:  # also what is not ASCII
            return None
        return kept if len(kept) == self._packed_width and self._is_report(kept) else None

    def _is_report(self, packed: bytes) -> bool:
        """Return whether bytes of the right width are a report. Called once for every report that arrives."""
        if self._encoding.symbols > 1 or self._cohorts:
            return not packed[-1] >> (8 - -self._encoding.symbols % 8)  # the rest of the last byte is zero
        return int.from_bytes(packed[SEED_BYTES if self._encoding.seeded else 0 :], "little") < self._encoding.alphabet

    def _packed(self, kept: Sequence[bytes]) -> Packed:
        return np.ascontiguousarray(self._matrix(kept)[:, self._first :])

    def _matrix(self, kept: Sequence[bytes]) -> Packed:
        return np.frombuffer(b"".join(kept), dtype=np.uint8).reshape(len(kept), self.width)


def _labels(encoding: Mechanism) -> dict[Any, bytes]:
    """Return what is kept of each report that there is."""
    codes = np.arange(encoding.alphabet, dtype=get_code_dtype(encoding.alphabet))[:, None]
    return dict(
        zip(make_report_list(encoding, codes), (row.tobytes() for row in pack_reports(encoding, codes)), strict=True)
    )


def outside() -> ReportOutsideEncodingError:
    """Return the error for what is no report. It does not show it."""
    return ReportOutsideEncodingError("this is no report of the campaign's encoding.")
