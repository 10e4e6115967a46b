"""An answer and a level -> the report as it travels. The only place where a device draws."""

from __future__ import annotations

from base64 import b64encode
from typing import Any, NamedTuple
from unicodedata import normalize

from relaxdp.device.offer import ATTRIBUTE
from relaxdp.device.state import Record
from relaxdp.errors import RelaxdpError, UndeclaredValueError
from relaxdp.mechanisms.base import Mechanism
from relaxdp.mechanisms.bloom import Bloom, convert_words_to_text
from relaxdp.mechanisms.declared_values import DeclaredMechanism
from relaxdp.mechanisms.keyed_reports import ReportPath
from relaxdp.mechanisms.numeric import RangeMechanism
from relaxdp.sampling.keyed_stream import PathId, get_value_kind
from relaxdp.sampling.keys import Key
from relaxdp.tables.metadata import decode_json_value, encode_json_value
from relaxdp.theory.randomized_response import Level


class WireReport(NamedTuple):
    """What leaves the device beside pseudonym and level."""

    report: Any
    cohort: int | None = None


def kept_answer(encoding: Mechanism, answer: Any) -> Any:
    """Return an answer in the one form in which it is kept, or refuse what is none."""
    return encode_json_value(read_answer(encoding, answer))


def read_answer(mechanism: Mechanism, given: Any) -> Any:
    """Return an answer in the one form in which it is stored, or reject it without showing it."""
    try:
        return _read_answer(mechanism, given)
    except (RelaxdpError, TypeError, ValueError, OverflowError, UnicodeError):
        pass  # an exception's context would carry the answer along
    raise _explain(mechanism)


def read_typed_answer(mechanism: Mechanism, text: str) -> Any:
    """Return the answer that a person typed. Two spellings of a letter are one."""
    if isinstance(mechanism, DeclaredMechanism):
        wanted = normalize("NFC", text.strip())
        same = [value for value in mechanism.values if value is not None and str(value).strip() == wanted]
        if len(same) != 1:
            raise _explain(mechanism)
        return same[0]
    if isinstance(mechanism, RangeMechanism):
        return read_answer(mechanism, _to_number(text))
    return read_answer(mechanism, text)


def _read_answer(mechanism: Mechanism, given: Any) -> Any:
    if isinstance(mechanism, Bloom):
        text = normalize("NFC", given) if isinstance(given, str) else given
        return str(convert_words_to_text(mechanism.shape, [text])[0].as_py())
    truths = mechanism.read_true_values([given])
    if isinstance(mechanism, DeclaredMechanism):
        return mechanism.values[int(truths.index[0])]
    if isinstance(mechanism, RangeMechanism):
        return float(given) + 0.0
    if get_value_kind(given) is None:
        raise TypeError
    return given


def _to_number(text: str) -> float | None:
    try:
        return float(text.strip())
    except ValueError:
        return None


def _explain(mechanism: Mechanism) -> UndeclaredValueError:
    if isinstance(mechanism, DeclaredMechanism):
        return UndeclaredValueError(
            "the answer is not one of the {values:,} values that can be chosen.", values=len(mechanism.values)
        )
    if isinstance(mechanism, RangeMechanism):
        return UndeclaredValueError(
            "the answer is not a number from {low:g} to {high:g}.", low=mechanism.low, high=mechanism.high
        )
    if isinstance(mechanism, Bloom):
        expected = "false or true" if mechanism.shape.is_boolean else "text"
        return UndeclaredValueError("the answer is not {expected}.", expected=expected)
    return UndeclaredValueError("the answer cannot be given here.")


def draw(encoding: Mechanism, record: Record, release: str, level: Level) -> WireReport:
    """Return the report at a level: a pure function of what the record holds, the same at every call."""
    assert record.key is not None  # noqa: S101 (the rules refuse a record without one)
    key = Key.from_bytes(bytes.fromhex(record.key))
    where: Any = {"key": key, "path": PathId(release, ATTRIBUTE)}
    cohort = None
    if isinstance(encoding, Bloom):
        encoding = encoding.for_device(record.device, **where)
        cohort = encoding.cohort
    path = ReportPath(encoding, decode_json_value(record.answer), object_id=record.device, **where)
    return WireReport(written_report(path.draw_report(level)), cohort)


def written_report(report: Any) -> Any:
    """Return a report as JSON: packed bytes in base64, labels and numbers as they are."""
    if isinstance(report, bytes):
        return b64encode(report).decode("ascii")
    return report if isinstance(report, float) else encode_json_value(report)
