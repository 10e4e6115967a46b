"""What collector and market say alike over the wire: levels, encodings, and how precise an answer is to be."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct

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
