"""What an operator asks while choosing: which encodings there are, and how precise a campaign would be."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct
from starlette.requests import Request
from starlette.responses import Response

from relaxdp.collector import campaigns
from relaxdp.collector.service import Collector
from relaxdp.collector.views import ENCODER
from relaxdp.collector.wire import CampaignRequest, LevelRequest, PublicEncoding
from relaxdp.mechanisms.registry import BUILT_IN, Domain
from relaxdp.server_errors import CampaignError
from relaxdp.service.limits import Limits, decode, decoder_of, read_body
from relaxdp.service.operations import Operation
from relaxdp.service.precision import MOST_DEVICES
from relaxdp.service.wire import ONLY_IN_TABLES, EncodingRequest, Target


class AdviceRequest(Struct, frozen=True, forbid_unknown_fields=True):
    """A campaign that somebody thinks about, and how many devices may take part."""

    encoding: EncodingRequest
    levels: Annotated[list[LevelRequest], Meta(min_length=1, max_length=100)]
    devices: Annotated[int, Meta(ge=1, le=MOST_DEVICES)]
    target: Target | None = None


class LevelAdvice(Struct, frozen=True):
    """What to expect of a level at which all devices report."""

    epsilon: str
    half_width: float
    met: bool | None
    """Whether the target is met; None without one."""
    devices_needed: int | None
    """With how many devices it would be; None without a target, or where no number suffices."""


class Advice(Struct, frozen=True):
    """What to expect of a campaign, whatever the answer turns out to be."""

    encoding: PublicEncoding
    widest: float
    """The half-width of knowing nothing."""
    levels: list[LevelAdvice]


class OfferedOption(Struct, frozen=True):
    """A whole number that an encoding takes."""

    name: str
    meaning: str
    least: int
    most: int
    is_planned: bool
    """Whether it may be left out: then the last level decides."""


class OfferedEncoding(Struct, frozen=True):
    """An encoding that a campaign may have."""

    name: str
    meaning: str
    domain: Domain
    """What is declared: values, a range, or candidates of words."""
    options: list[OfferedOption]


class OfferedEncodings(Struct, frozen=True):
    """All of them."""

    encodings: list[OfferedEncoding]


_ADVICE = decoder_of(AdviceRequest)


class AdviceRoutes:
    """What an operator asks while choosing. It is the rule by which the campaign would stop, so both agree."""

    def __init__(self, collector: Collector, limits: Limits) -> None:
        self._collector, self._limits = collector, limits

    async def advise(self, request: Request) -> Response:
        """Tell how precise each level would be."""
        await self._collector.check_operator(request)
        asked: AdviceRequest = decode(await read_body(request, self._limits), _ADVICE)
        found = await self._collector.compute(lambda: advice(asked))
        return Response(ENCODER.encode(found), media_type="application/json")

    async def show_encodings(self, request: Request) -> Response:
        """Show which encodings there are: what a form asks for comes from them."""
        await self._collector.check_operator(request)
        return Response(ENCODER.encode(offered_encodings()), media_type="application/json")

    def operations(self) -> list[Operation]:
        """Return what the routes are."""
        return [
            Operation("GET", "/v1/encodings", self.show_encodings, "Show the encodings that a campaign may have.",
                      answer=OfferedEncodings, security="operator"),
            Operation("POST", "/v1/advice", self.advise, "Tell how precise a campaign would be.", AdviceRequest, Advice,
                      security="operator", problems=(CampaignError,)),
        ]  # fmt: skip


def offered_encodings() -> OfferedEncodings:
    """Return the encodings of a campaign."""
    return OfferedEncodings(
        [
            OfferedEncoding(
                each.name,
                each.meaning,
                each.domain,
                [
                    OfferedOption(one.name, one.meaning, one.minimum, one.maximum, one.is_planned)
                    for one in each.options
                ],
            )
            for each in BUILT_IN
            if each.name not in ONLY_IN_TABLES
        ]
    )


def advice(asked: AdviceRequest) -> Advice:
    """Return what to expect at each level; nothing is stored.

    >>> values = EncodingRequest("categorical", values=["flu", "covid", "cold", "other", "none"])
    >>> levels = [LevelRequest("0.5"), LevelRequest("1")]
    >>> found = advice(AdviceRequest(values, levels, 100_000, Target(half_width=0.01)))
    >>> [(each.epsilon, round(each.half_width, 4), each.devices_needed) for each in found.levels]
    [('0.5', 0.0246, 602858), ('1', 0.0119, 141860)]
    """
    campaign = campaigns.prepared(CampaignRequest("?", asked.encoding, asked.levels, target=asked.target))
    wanted = None if asked.target is None else asked.target.half_width
    levels = []
    for place, level in enumerate(campaign.levels):
        width = campaign.precision.half_width_at(place, asked.devices)
        needed = None if wanted is None else campaign.precision.needed(place, wanted)
        levels.append(LevelAdvice(level.epsilon, width, None if wanted is None else width <= wanted, needed))
    return Advice(campaign.public_encoding, campaign.precision.widest, levels)
