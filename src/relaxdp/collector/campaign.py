"""A campaign as the service holds it: its definition never changes, so it may be kept for good."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from relaxdp.collector.definition import seconds
from relaxdp.collector.introduction import Learning
from relaxdp.collector.wire import CampaignRequest, PublicEncoding
from relaxdp.mechanisms.base import Mechanism
from relaxdp.mechanisms.bloom import Bloom
from relaxdp.rappor.candidate_map import CandidateMap
from relaxdp.server_errors import CampaignError
from relaxdp.service.codecs import Codec
from relaxdp.service.precision import DEFAULT, Precision
from relaxdp.service.wire import WireLevel, encoding_of

ATTRIBUTE = "answer"
"""The attribute of every path in a campaign; its release is the campaign's id."""


@dataclass(frozen=True, slots=True)
class Partner:
    """Another question of the same survey, with which a campaign is counted together."""

    id: str
    number: int
    encoding: Mechanism
    codec: Codec
    is_rows: bool
    """Whether the other question makes the rows of the table."""


@dataclass(frozen=True, slots=True)
class Membership:
    """Which survey a campaign is a question of, and with which other questions it is counted together."""

    survey: str
    partners: tuple[Partner, ...] = ()


class Campaign:
    """The definition, and what follows from it."""

    def __init__(self, number: int, definition: CampaignRequest, member: Membership | None = None) -> None:
        """Take a completed definition, and of which survey the campaign is, if of any."""
        self.number, self.definition, self.member = number, definition, member
        self.partners = () if member is None else member.partners
        self.id = str(definition.id)
        self.encoding: Mechanism = encoding_of(definition.encoding)
        self.codec = Codec(self.encoding)
        self.levels = [WireLevel(**self.encoding.level(each.epsilon).to_dict()) for each in definition.levels]
        self.places = {(level.epsilon, level.threshold): place for place, level in enumerate(self.levels)}
        self.opens, self.closes = seconds(definition.opens), seconds(definition.closes)
        self.level_opens = [seconds(level.opens) for level in definition.levels]
        self.precision = Precision(
            self.encoding,
            [level.epsilon for level in self.levels],
            definition.target or DEFAULT,
            len(definition.encoding.candidates or []),
        )
        if definition.target is not None and not 0 < definition.target.half_width < self.precision.widest:
            raise CampaignError("the target's half-width lies between 0 and {widest:g}.", widest=self.precision.widest)

    @property
    def digest_name(self) -> str:
        """Where a device's pseudonym means something: in this campaign, or in all that are counted together."""
        return f"survey\n{self.member.survey}" if self.member and self.partners else f"device\n{self.id}"

    @cached_property
    def mechanism(self) -> Mechanism:
        """What estimates the answer, unless words are looked for."""
        return self.encoding

    @cached_property
    def words(self) -> CandidateMap | None:
        """The bits of the candidates, where words are looked for."""
        if not isinstance(self.encoding, Bloom):
            return None
        return CandidateMap(self.definition.encoding.candidates or [], self.encoding.shape)

    @cached_property
    def public_encoding(self) -> PublicEncoding:
        """What a device must know of the encoding. The candidates are the operator's business."""
        asked = self.definition.encoding
        options: Any = asked.options  # A completed definition has numbers, and no goal.
        if asked.values is not None:
            return PublicEncoding(asked.name, options, values=asked.values)
        if asked.range is not None:
            return PublicEncoding(asked.name, options, range=asked.range)
        return PublicEncoding(asked.name, options)

    @cached_property
    def learning(self) -> Learning:
        """How many people it takes at each level, which follows from the definition alone."""
        target = self.definition.target
        wanted = self.precision.readable if target is None else target.half_width
        return Learning(wanted, [self.precision.needed(place, wanted) for place in range(len(self.levels))])

    def target_met(self, devices: list[int]) -> bool:
        """Tell whether so many devices at each level make the answer precise enough, whatever it is."""
        if self.definition.target is None:
            return False
        width = self.precision.half_width(devices)
        return width is not None and width <= self.definition.target.half_width
