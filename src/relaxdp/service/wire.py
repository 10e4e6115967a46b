"""What collector and market say alike over the wire, and the encodings that are asked for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal

from msgspec import Meta, Struct
from msgspec.structs import replace

from relaxdp.encodings.protocol import Encoding
from relaxdp.errors import CampaignError
from relaxdp.mechanisms import Numeric, mechanism
from relaxdp.rappor.encoding import BloomEncoding
from relaxdp.rappor.filter import BloomShape

ID_PATTERN = "^[a-z0-9][a-z0-9-]{0,63}$"

Text = Annotated[str, Meta(max_length=2000)]

EpsilonText = Annotated[str, Meta(max_length=80, description="An epsilon as decimal text.")]

Label = str | int

About = Literal["objects", "population"]

Method = Literal["average", "precision"]


class WireLevel(Struct, frozen=True, forbid_unknown_fields=True, gc=False):
    """A level: epsilon as decimal text and threshold as integer text, so that nothing is rounded on the way."""

    epsilon: EpsilonText
    threshold: Annotated[str, Meta(max_length=20)]


class EncodingRequest(Struct, frozen=True, forbid_unknown_fields=True):
    """An encoding by its name, its values or its range, and its options."""

    name: Annotated[str, Meta(max_length=64)]
    values: Annotated[list[Label], Meta(max_length=10_000)] | None = None
    range: tuple[float, float] | None = None
    options: dict[str, int] = {}
    candidates: Annotated[list[Annotated[str, Meta(max_length=1000)]], Meta(max_length=10_000)] | None = None


class Target(Struct, frozen=True, forbid_unknown_fields=True):
    """How precise the answer must be: then the campaign finishes by itself."""

    half_width: float
    confidence_level: Annotated[float, Meta(gt=0, lt=1)] = 0.95
    simultaneous: bool = False
    about: About = "objects"
    method: Method = "average"


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
