"""Encodings that somebody asks a service for: every option named, checked, and built."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from relaxdp.encodings.protocol import Encoding
from relaxdp.errors import CampaignError
from relaxdp.mechanisms import Numeric, mechanism
from relaxdp.rappor.encoding import BloomEncoding
from relaxdp.rappor.filter import BloomShape
from relaxdp.service.wire import EncodingRequest

_OPTIONS = {"local-hash": {"buckets"}, "bloom": {"bits", "hashes", "cohorts"}}
_MOST_BLOOM_COUNTS = 1 << 18
_MOST_CANDIDATE_BITS = 1_000_000
_MOST_WHOLE = 1 << 53


def encoding_of(asked: EncodingRequest) -> Encoding:
    """Return the encoding of a completed definition."""
    if asked.name == "bloom":
        return BloomEncoding(BloomShape(**asked.options))
    if asked.name == "numeric":
        low, high = asked.range or (0.0, 0.0)
        return Numeric(low, high).encoding
    return mechanism(asked.values or [], encoding=asked.name, **asked.options).encoding


def resolved(asked: EncodingRequest, last: str) -> EncodingRequest:
    """Return the encoding with every option named, or refuse it; `last` is the last epsilon that is planned."""
    strange = set(asked.options) - _OPTIONS.get(asked.name, set())
    built_in = {"auto", "categorical", "numeric", "unary-optimised", "unary-symmetric", *_OPTIONS}
    if strange and asked.name in built_in:
        raise CampaignError("the encoding {encoding!r} takes other options than those given.", encoding=asked.name)
    if asked.name == "bloom":
        return _resolved_bloom(asked)
    if asked.candidates is not None:
        raise CampaignError("candidates are for the encoding 'bloom'.")
    if asked.name == "numeric":
        if asked.range is None or asked.values is not None:
            raise CampaignError("the encoding 'numeric' needs a range, and no values.")
        return asked
    if asked.values is None or asked.range is not None:
        raise CampaignError("this encoding needs values, and no range.")
    if any(isinstance(value, int) and abs(value) >= _MOST_WHOLE for value in asked.values):
        raise CampaignError("whole numbers as values must be below 2**53.")
    try:
        made = mechanism(asked.values, encoding=asked.name, epsilon=last, **asked.options).encoding
    except TypeError:  # options that an encoding from outside does not have
        raise CampaignError(
            "the encoding {encoding!r} takes other options than those given.", encoding=asked.name
        ) from None
    return replace(asked, name=made.name, options=made.options)


def _resolved_bloom(asked: EncodingRequest) -> EncodingRequest:
    if asked.values is not None or asked.range is not None or not asked.candidates:
        raise CampaignError("the encoding 'bloom' needs candidates, and neither values nor a range.")
    if set(asked.options) != _OPTIONS["bloom"]:
        raise CampaignError("the encoding 'bloom' needs the options bits, hashes and cohorts.")
    shape = BloomShape(**asked.options)
    if shape.is_boolean:
        raise CampaignError("one bit is a boolean: ask it as 'categorical' with two values.")
    if shape.bits * shape.cohorts > _MOST_BLOOM_COUNTS:
        raise CampaignError("bits times cohorts must be at most {most:,}.", most=_MOST_BLOOM_COUNTS)
    if len(asked.candidates) * shape.cohorts * shape.hashes > _MOST_CANDIDATE_BITS:
        raise CampaignError(
            "candidates times cohorts times hashes must be at most {most:,}.", most=_MOST_CANDIDATE_BITS
        )
    _check_distinct(asked.candidates)
    return asked


def _check_distinct(words: Sequence[str]) -> None:
    if len(set(words)) != len(words):
        raise CampaignError("a candidate is listed twice.")
