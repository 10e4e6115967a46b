"""An answer and a level -> the report as it travels. The only place where a device draws."""

from __future__ import annotations

from base64 import b64encode
from typing import Any, NamedTuple
from unicodedata import normalize

import numpy as np

from relaxdp.device.offer import ATTRIBUTE
from relaxdp.device.state import Record
from relaxdp.draw.canonical import kind_of
from relaxdp.draw.key import Key
from relaxdp.draw.stream import PathId
from relaxdp.encodings.declared import DeclaredEncoding
from relaxdp.encodings.numeric import NumericEncoding
from relaxdp.encodings.path import ReportPath
from relaxdp.encodings.protocol import Encoding, code_dtype
from relaxdp.errors import RelaxdpError, UndeclaredValueError
from relaxdp.law.level import Level
from relaxdp.rappor.encoding import BloomEncoding, as_words, cohorts_of
from relaxdp.table.description import typed, untyped


class WireReport(NamedTuple):
    """What leaves the device beside pseudonym and level."""

    report: Any
    cohort: int | None = None


def kept_answer(encoding: Encoding, answer: Any) -> Any:
    """Return an answer in the one form in which it is kept, or refuse what is none. The refusal shows nothing of it."""
    try:
        if isinstance(encoding, BloomEncoding):
            text = normalize("NFC", answer) if isinstance(answer, str) else answer
            return as_words(encoding.shape, [text])[0].as_py()
        truths = encoding.truths([answer])
        if isinstance(encoding, NumericEncoding):
            return typed(float(answer) + 0.0)
        if isinstance(encoding, DeclaredEncoding):
            return typed(encoding.values[int(truths.index[0])])
        if kind_of(answer) is not None:
            return typed(answer)
    except (RelaxdpError, TypeError, ValueError, OverflowError, UnicodeError):
        pass
    raise _no_answer(encoding)


def draw(encoding: Encoding, record: Record, release: str, level: Level) -> WireReport:
    """Return the report at a level: a pure function of what the record holds, the same at every call."""
    assert record.key is not None  # noqa: S101 (the rules refuse a record without one)
    key = Key.from_bytes(bytes.fromhex(record.key))
    where: Any = {"key": key, "path": PathId(release, ATTRIBUTE)}
    cohort = None
    if isinstance(encoding, BloomEncoding):
        cohort = int(cohorts_of(encoding.shape, [record.device], **where)[0])
        encoding = BloomEncoding(encoding.shape, cohort)
    path = ReportPath(encoding, untyped(record.answer), object_id=record.device, **where)
    codes = np.array([path.codes_at(level)], dtype=code_dtype(encoding.alphabet))
    return WireReport(written_report(encoding.reports(codes, path.seeds)[0]), cohort)


def written_report(report: Any) -> Any:
    """Return a report as JSON: packed bytes in base64, labels and numbers as they are."""
    if isinstance(report, bytes):
        return b64encode(report).decode("ascii")
    return report if isinstance(report, float) else typed(report)


def _no_answer(encoding: Encoding) -> UndeclaredValueError:
    if isinstance(encoding, BloomEncoding):
        if encoding.shape.is_boolean:
            return UndeclaredValueError("the answer is not false or true.")
        return UndeclaredValueError("the answer is not text.")
    if isinstance(encoding, NumericEncoding):
        return UndeclaredValueError(
            "the answer is not a number from {low:g} to {high:g}.", low=encoding.low, high=encoding.high
        )
    return UndeclaredValueError(
        "the answer is not one of the {values:,} values of this campaign.", values=len(encoding.labels)
    )
