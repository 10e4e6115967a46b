"""What collector and market say alike over the wire, and the encodings that are asked for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal

from msgspec import Meta, Struct
from msgspec.structs import replace

from relaxdp.estimation.mechanism_choice import rank_mechanisms
from relaxdp.mechanisms.base import Mechanism
from relaxdp.mechanisms.bloom import Bloom, BloomShape
from relaxdp.mechanisms.registry import create_mechanism, get_mechanism_arguments
from relaxdp.mechanisms.square_wave import Goal
from relaxdp.server_errors import CampaignError

WHOLE_TEXT = "$(?!\\n)"
"""The end of a pattern: `$` alone would let a last line feed pass where Python reads it."""
ID_PATTERN = f"^[a-z0-9][a-z0-9-]{{0,63}}{WHOLE_TEXT}"

Text = Annotated[str, Meta(max_length=2000)]

EpsilonText = Annotated[str, Meta(max_length=80, description="An epsilon as decimal text.")]

Label = str | int

About = Literal["sample", "population"]

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
    options: dict[str, int | Goal] = {}
    candidates: Annotated[list[Annotated[str, Meta(max_length=1000)]], Meta(max_length=10_000)] | None = None


class Target(Struct, frozen=True, forbid_unknown_fields=True):
    """How precise the answer must be: then the campaign finishes by itself."""

    half_width: float
    confidence_level: Annotated[float, Meta(gt=0, lt=1)] = 0.95
    simultaneous: bool = False
    about: About = "sample"
    method: Method = "average"


ONLY_IN_TABLES = frozenset({"numeric-missing"})
"""Mechanisms that a campaign cannot have: a device has an answer."""
_MOST_BLOOM_COUNTS = 1 << 18
_MOST_CANDIDATE_BITS = 1_000_000
_MOST_WHOLE = 1 << 53


def encoding_of(asked: EncodingRequest) -> Mechanism:
    """Return the encoding of a completed definition."""
    return create_mechanism(asked.name, values=asked.values, range=asked.range, options=asked.options)


def resolved(asked: EncodingRequest, last: str) -> EncodingRequest:
    """Return the encoding with every option named, or refuse it; `last` is the last epsilon that is planned."""
    if any(isinstance(value, int) and abs(value) >= _MOST_WHOLE for value in asked.values or ()):
        raise CampaignError("whole numbers as values must be below 2**53.")
    name = asked.name
    if name == "auto":
        name = "numeric" if asked.values is None else rank_mechanisms(len(asked.values), last).best
    encoding = create_mechanism(name, values=asked.values, range=asked.range, options=asked.options, epsilon=last)
    if name in ONLY_IN_TABLES:
        raise CampaignError("the encoding {encoding!r} is for tables, and no device is asked for it.", encoding=name)
    if isinstance(encoding, Bloom):
        _check_words(encoding.shape, asked.candidates)
    elif asked.candidates is not None:
        raise CampaignError("candidates are for encodings of words, like 'bloom'.")
    return replace(asked, name=name, options=get_mechanism_arguments(encoding)["options"])


def _check_words(shape: BloomShape, candidates: Sequence[str] | None) -> None:
    if not candidates:
        raise CampaignError("words are looked for among candidates, and there are none.")
    if shape.is_boolean:
        raise CampaignError("one bit is a boolean: ask it as 'categorical' with two values.")
    if shape.bits * shape.cohorts > _MOST_BLOOM_COUNTS:
        raise CampaignError("bits times cohorts must be at most {most:,}.", most=_MOST_BLOOM_COUNTS)
    if len(candidates) * shape.cohorts * shape.hashes > _MOST_CANDIDATE_BITS:
        raise CampaignError(
            "candidates times cohorts times hashes must be at most {most:,}.", most=_MOST_CANDIDATE_BITS
        )
    if len(set(candidates)) != len(candidates):
        raise CampaignError("a candidate is listed twice.")
