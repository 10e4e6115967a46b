"""The exact bytes of ids, values and numbers in stream version 1 (docs/stream.md)."""

from __future__ import annotations

import inspect
import math
import struct
import uuid
import warnings
from decimal import Decimal
from typing import Any
from unicodedata import is_normalized

import numpy as np

INTEGER, INTEGER_UNSIGNED, TEXT, UUID, BYTES, NUMBER, MISSING = 1, 2, 3, 4, 5, 6, 7
BLOCK = 16

_NOT_THE_CALLER = ("relaxdp", "concurrent", "contextlib", "threading")
NOT_NFC = (
    "some text is not in Unicode's composed form (NFC): letters that look alike may have other bytes, "
    "and then they are other objects."
)


def warn_not_nfc() -> None:
    """Warn at the caller's line: a line of this package would not show which text it is."""
    frame, level = inspect.currentframe(), 1
    while frame is not None and str(frame.f_globals.get("__name__")).partition(".")[0] in _NOT_THE_CALLER:
        frame, level = frame.f_back, level + 1
    warnings.warn(NOT_NFC, UnicodeWarning, stacklevel=level)


def add_length_prefix(data: bytes) -> bytes:
    """Return lp(data): its length in four bytes, then the data."""
    return struct.pack("<I", len(data)) + data


def get_value_kind(value: object) -> str | None:
    """Return the kind of exact bytes that a value has, or None (for null, bool and all other types)."""
    if isinstance(value, bool | np.bool_ | np.timedelta64) or value is None:  # which NumPy counts as integers
        return None
    if isinstance(value, int | np.integer):
        return "integer"
    if isinstance(value, str):
        return "text"
    if isinstance(value, uuid.UUID):
        return "uuid"
    if isinstance(value, bytes):
        return "bytes"
    if isinstance(value, float):
        return "number"
    return None


def is_missing(value: object) -> bool:
    """Tell whether there is no value: None, NaN of any kind, and what pandas has for it.

    Nothing is compared: pandas' NA cannot be, and other objects may say what they hold when they fail.
    """
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    if isinstance(value, float | np.floating):
        return math.isnan(value)
    if isinstance(value, np.datetime64 | np.timedelta64):
        return bool(np.isnat(value))
    return isinstance(value, Decimal) and value.is_nan()


def encode_canonical(value: Any) -> bytes:
    """Return enc(value): a tag, the length and the payload, padded to whole AES blocks.

    The messages of `ValueError` name the rule, never the value: it may be a truth.

    >>> encode_canonical(-7).hex()
    '0100000008000000f9ffffffffffffff'
    """
    kind = get_value_kind(value)
    if kind == "integer":
        return _encode_integer(int(value))
    if kind == "text":
        return _add_tag(TEXT, encode_utf8(value))
    if kind == "uuid":
        return _add_tag(UUID, value.bytes)
    if kind == "bytes":
        return _add_tag(BYTES, value)
    if kind == "number":
        return _encode_number(float(value))
    raise ValueError("it must be a whole number, text, bytes, a UUID or a finite number")


def encode_declared_value(value: Any) -> bytes:
    """Return enc(value) of a declared value, which may be None: the missing category. An id is never missing.

    >>> encode_declared_value(None).hex()
    '07000000000000000000000000000000'
    """
    return _add_tag(MISSING, b"") if value is None else encode_canonical(value)


def encode_utf8(text: str) -> bytes:
    """Return the UTF-8 bytes of text exactly as given: no normalisation, because its tables change."""
    if not is_utf8_encodable(text):  # an exception of `encode` would carry the text along
        raise ValueError("the text contains a lone surrogate, so it has no UTF-8 form")
    encoded = text.encode("utf-8")
    if len(encoded) != len(text) and not is_normalized("NFC", text):
        warn_not_nfc()
    return encoded


def is_utf8_encodable(text: str) -> bool:
    """Tell whether text can be written in UTF-8: half of a surrogate pair cannot."""
    return text.isascii() or not any("\ud800" <= letter <= "\udfff" for letter in text)


def _encode_integer(value: int) -> bytes:
    if -(2**63) <= value < 2**63:
        return _add_tag(INTEGER, struct.pack("<q", value))
    if value < 2**64 and value > 0:
        return _add_tag(INTEGER_UNSIGNED, struct.pack("<Q", value))
    raise ValueError("a whole number must be between -2**63 and 2**64 - 1")


def _encode_number(value: float) -> bytes:
    if not math.isfinite(value):
        raise ValueError("a number must be finite")
    return _add_tag(NUMBER, struct.pack("<d", value + 0.0))  # adding 0.0 turns -0.0 into 0.0


def _add_tag(tag: int, payload: bytes) -> bytes:
    data = struct.pack("<BxxxI", tag, len(payload)) + payload
    return data + bytes(-len(data) % BLOCK)
