"""An answer and a level -> the report as it travels. The only place where a device draws."""

from __future__ import annotations

from base64 import b64encode
from typing import Any, NamedTuple

import numpy as np

from relaxdp.device.offer import ATTRIBUTE
from relaxdp.device.state import Record
from relaxdp.draw.key import Key
from relaxdp.draw.stream import PathId
from relaxdp.encodings.path import ReportPath
from relaxdp.encodings.protocol import Encoding, code_dtype
from relaxdp.law.level import Level
from relaxdp.tables.metadata import typed, untyped


class WireReport(NamedTuple):
    """What leaves the device beside pseudonym and level."""

    report: Any
    cohort: int | None = None


def kept_answer(encoding: Encoding, answer: Any) -> Any:
    """Return an answer in the one form in which it is kept, or refuse what is none."""
    return typed(encoding.answer(answer))


def draw(encoding: Encoding, record: Record, release: str, level: Level) -> WireReport:
    """Return the report at a level: a pure function of what the record holds, the same at every call."""
    assert record.key is not None  # noqa: S101 (the rules refuse a record without one)
    key = Key.from_bytes(bytes.fromhex(record.key))
    where: Any = {"key": key, "path": PathId(release, ATTRIBUTE)}
    encoding = encoding.for_object(record.device, **where)
    path = ReportPath(encoding, untyped(record.answer), object_id=record.device, **where)
    codes = np.array([path.codes_at(level)], dtype=code_dtype(encoding.alphabet))
    return WireReport(written_report(encoding.reports(codes, path.seeds)[0]), encoding.cohort)


def written_report(report: Any) -> Any:
    """Return a report as JSON: packed bytes in base64, labels and numbers as they are."""
    if isinstance(report, bytes):
        return b64encode(report).decode("ascii")
    return report if isinstance(report, float) else typed(report)
